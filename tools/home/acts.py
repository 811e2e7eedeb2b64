# SPDX-License-Identifier: MIT
"""Exchanges that act: what is asked, the call that is right, and what may follow; what all kinds of devices share."""
import re

import templates
from refer import Target
from talk import Skip, g, is_plural

FIX = (" no ", " no wait ", " sorry ", " i mean ", " no i mean ", " no sorry ", " uh no ", " wait no ", " actually ", " no make that ", " or rather ", " no not that ", " scratch that ", " um no ", " er ", " oops ", " no no ")


def args(tool, target, params):
    a = target.args(tool) if target else {}
    if tool == "HassMediaSearchAndPlay":
        return {"search_query": params["search_query"], **a, **{k: v for k, v in params.items() if k != "search_query"}}
    return {**a, **params}


def told(k, tool, target, params):
    """The short answer after a call that worked."""
    d = k.desc(target) if target else ""
    if tool in ("HassTurnOn", "HassTurnOff"):
        on = tool == "HassTurnOn"
        if target.domain == "cover":
            return ("Opened %s." if on else "Closed %s.") % d
        if target.domain == "lock":
            return ("Locked %s." if on else "Unlocked %s.") % d
        if target.domain in ("scene", "script"):
            return "Started %s." % target.ents[0].name
        return ("Turned on %s." if on else "Turned off %s.") % d
    if tool == "HassLightSet":
        parts = []
        if "color" in params:
            parts.append(params["color"])
        if "temperature" in params:
            parts.append("%d kelvin" % params["temperature"])
        if "brightness" in params:
            parts.append(("at " if parts else "") + "%d percent" % params["brightness"])
        return "Set %s to %s." % (d, " ".join(parts))
    if tool in ("HassSetPosition", "HassFanSetSpeed"):
        return "Set %s to %d percent." % (d, params.get("position", params.get("percentage")))
    if tool == "HassClimateSetTemperature":
        return "Set %s to %s degrees." % (d, g(params["temperature"]))
    if tool == "HassSetVolume":
        return "Volume of %s at %d percent." % (d, params["volume_level"])
    if tool == "HassSetVolumeRelative":
        return "Turned %s %s." % (d, "up" if params["volume_step"] > 0 else "down")
    return {"HassMediaPause": "Paused %s.", "HassMediaUnpause": "Resumed %s.", "HassMediaNext": "Skipped to the next one on %s.", "HassMediaPrevious": "Back to the previous one on %s.",
            "HassMediaPlayerMute": "Muted %s.", "HassMediaPlayerUnmute": "Unmuted %s.", "HassVacuumStart": "Started %s.", "HassVacuumReturnToBase": "%s is on its way back.",
            "HassLawnMowerStartMowing": "Started %s.", "HassLawnMowerDock": "%s is on its way back."}[tool] % (d[0].upper() + d[1:] if tool in ("HassVacuumReturnToBase", "HassLawnMowerDock") else d)


def speak(k, key, need=None, /, **fill):
    ln, s = k.line(key, need, fill)
    return k.finish(k.wrap(ln, s))


def clause(k, key, /, **fill):
    """A bare command, to stand beside another."""
    ln, s = k.line(key, lambda x: not x.plain, fill)
    return s


def undo_of(k, tool, target, params):
    """The calls that take an action back, or None; to be asked before it is done."""
    if not target or tool is None:
        return None
    if tool in ("HassTurnOn", "HassTurnOff"):
        if target.domain in ("scene", "script") or target.kind == "room":
            return None
        other = "HassTurnOff" if tool == "HassTurnOn" else "HassTurnOn"
        return [(other, args(other, target, {}))]
    pair = {"HassMediaPause": "HassMediaUnpause", "HassMediaUnpause": "HassMediaPause", "HassMediaPlayerMute": "HassMediaPlayerUnmute", "HassMediaPlayerUnmute": "HassMediaPlayerMute",
            "HassVacuumStart": "HassVacuumReturnToBase", "HassVacuumReturnToBase": "HassVacuumStart", "HassMediaNext": "HassMediaPrevious", "HassMediaPrevious": "HassMediaNext",
            "HassLawnMowerStartMowing": "HassLawnMowerDock", "HassLawnMowerDock": "HassLawnMowerStartMowing"}
    if tool in pair:
        return [(pair[tool], args(pair[tool], target, {}))]
    if tool == "HassSetVolumeRelative":
        return [(tool, args(tool, target, {"volume_step": -params["volume_step"]}))]
    if not k.live or len(target.ents) != 1:
        return None
    st = target.ents[0].state
    if tool == "HassLightSet":
        if st.get("state") == "off":
            t2 = Target(target.kind, target.ents, target.slots, target.domain, target.cls, target.area, target.floor)
            return [("HassTurnOff", args("HassTurnOff", t2, {}))]
        old = {}
        if "brightness" in params:
            if "brightness" not in st:
                return None
            old["brightness"] = st["brightness"]
        if "color" in params:
            if "color" not in st:
                return None
            old["color"] = st["color"]
        if "temperature" in params:
            if "color_temp" not in st:
                return None
            old["temperature"] = st["color_temp"]
        return [(tool, args(tool, target, old))]
    for t, key, slot in (("HassClimateSetTemperature", "temperature", "temperature"), ("HassSetPosition", "position", "position"), ("HassFanSetSpeed", "percentage", "percentage"), ("HassSetVolume", "volume", "volume_level")):
        if tool == t:
            if key not in st or t == "HassFanSetSpeed" and st["state"] == "off":
                return None
            return [(tool, args(tool, target, {slot: st[key]}))]
    return None


def act(k, intent, text, tool, target, params=None):
    params = params or {}
    calls = [(tool, args(tool, target, params))]
    undo = undo_of(k, tool, target, params)
    k.do(intent, text, calls, told(k, tool, target, params), undo, target, tool, params)


def some_ent(k, *domains, ok=None):
    es = [e for e in k.home.entities if e.domain in domains and (ok is None or ok(e))]
    if not es:
        raise Skip
    return k.refs.ent(k.rng.choice(es))


def some_group(k, domain, cls=None):
    """A room that has such devices."""
    r = k.rng
    es = [e for e in k.home.of(domain) if e.area and (cls is None or e.cls == cls)]
    if not es:
        raise Skip
    e = r.choice(es)
    c = e.cls if domain in ("cover",) or e.cls == "outlet" else ""
    return k.refs.group(domain, e.area, cls=c)


def target(k, domain, kinds="eeeeeaaaahhfl"):
    """e: one device, a: a room's, h: those here (or the only one), f: a floor's, l: all."""
    r = k.rng
    x = r.choice(kinds)
    if x == "e":
        return some_ent(k, domain)
    if x == "a":
        return some_group(k, domain)
    if x == "f":
        fl = [f[0] for f in k.home.floors if k.home.of(domain, floor=f[0])]
        if not fl:
            raise Skip
        e = r.choice(k.home.of(domain, floor=r.choice(fl)))
        c = e.cls if domain == "cover" or e.cls == "outlet" else ""
        return k.refs.group(domain, None, k.home.area(e.area).floor, c)
    es = k.home.of(domain)
    if not es:
        raise Skip
    e = r.choice(es)
    c = e.cls if domain == "cover" or e.cls == "outlet" else ""
    if x == "l":
        if len(k.home.of(domain, cls=c or None)) < 2:
            raise Skip
        return k.refs.group(domain, cls=c)
    t = k.refs.implicit(domain, k.here, c)
    if isinstance(t, list):
        raise Skip
    if t.kind == "here":
        return t
    return Target("ent", t.ents, t.slots, t.domain, t.cls, t.area, words=only_words(k, t.ents[0], c))


def only_words(k, e, cls):
    """The kind's word for the only device of its kind: "the fan"."""
    w, _ = k.kind_word(e.domain, cls, is_plural(e.name) if e.domain in ("light", "cover") else False)
    hits = k.refs.match(w, None, k.here)
    if hits and hits != [e] or w == "lamp":
        raise Skip
    return k.article(w)


def in_floor(k, f):
    n = k.spoken_name(k.rng.choice([f[0]] + list(f[1])))
    if n in ("upstairs", "downstairs", "outside"):
        return n
    return ("on the " if re.search(r"floor|level|deck", n) else "in the ") + n


def where(k, domain, cls=""):
    """For "... in the kitchen" phrases: (words for {in}, target). Empty words: rule 4."""
    r = k.rng
    if domain == "light" and k.home.floors and r.random() < 0.15:
        f = r.choice(k.home.floors)
        if k.home.of("light", floor=f[0]):
            return in_floor(k, f), k.refs.group("light", floor=f[0])
    if r.random() < 0.6:
        t = k.refs.implicit(domain, k.here, cls)
        if isinstance(t, list):
            raise Skip
        here = t.kind == "here" or t.area and t.area == k.here
        return (r.choice(("", "", "in here", "here", "in this room")) if here and r.random() < 0.6 else ""), t
    t = some_group(k, domain)
    if domain == "cover":
        t = k.refs.group(domain, t.area, cls=t.cls)
    return k.in_area(t.area), t


def relative(k, intent, text, tool, t, slot, value):
    """A change from the present state. value(ents) is asked when the state is known."""
    if k.live:
        return act(k, intent, text, tool, t, {slot: value(t.ents)})
    if tool not in k.has or "GetLiveContext" not in k.has:
        raise Skip
    q = dict(t.slots) if t.kind == "ent" else {a: t.slots[a] for a in ("area", "domain") if a in t.slots}
    if "area" in q and t.kind == "ent":
        q = {"name": q["name"], "area": q["area"]}
    k.tick_then_user(intent, text, {"calls": [("GetLiveContext", q)]})
    k.run([("GetLiveContext", q)])
    params = {slot: value(t.ents)}
    calls = [(tool, args(tool, t, params))]
    k.turns.append({"at": len(k.messages) - 1, "intent": intent, "expect": {"calls": calls}, "clean": k.clean})
    k.run(calls)
    ok = '"success":false' not in k.messages[-1][1]
    k.reply(told(k, tool, t, params) if ok else "Sorry, that did not work.")
    k.last = {"calls": calls, "undo": None, "target": t, "tool": tool, "params": params} if ok else None


def clamp(v, lo, hi):
    return max(lo, min(hi, v))


def norm_num(v):
    return int(v) if v == int(v) else v


def quiet(k, key, /, **fill):
    """Words with no recogniser noise: part of them is copied into a slot."""
    noisy, k.noisy = k.noisy, 0.0
    sp, k.st.typed = k.st.typed, False
    try:
        ln, s = k.line(key, None, fill)
        if "cmd" not in fill:
            s = k.wrap(ln, s)
        elif k.rng.random() < 0.15:
            s = k.rng.choice(("please ", "hey ", "um ", "okay ", "could you please ")) + s
        k.clean = True
        return s
    finally:
        k.noisy, k.st.typed = noisy, sp


def templates_wrap(k, s):
    if k.rng.random() > 0.35:
        return s
    return templates.pick(k.rng, "wrap").say(k.rng, {"x": s})
