# SPDX-License-Identifier: MIT
"""What refers back to the exchange before."""
import words as W
from acts import act, args, clamp, norm_num, speak
from homes import is_shopping
from lighting import base_light
from players import MEDIA_KEYS
from questions import ask_live, state_words
from talk import Skip, and_list, the
from timers import timer_told


def follow(k):
    """Something that only the exchange before makes clear."""
    last, r = k.last, k.rng
    if not last:
        raise Skip
    tool, t, params = last["tool"], last["target"], last["params"]
    if k.hard and r.random() < 0.35:
        return follow_more(k, tool, t, params)
    if tool == "listed":
        raise Skip
    x = r.random()
    if last["undo"] and x < 0.18:
        text = speak(k, "undo")
        calls = last["undo"]
        return k.do("follow-up", text, calls, "Undone.", None, None, None, {})
    if tool in ("HassTurnOn", "HassTurnOff") and t is None and "multi" in params:
        on = tool == "HassTurnOff"
        text = speak(k, "it_on" if on else "it_off", lambda z: True)
        if " it" in text or text.endswith(" it"):
            raise Skip
        if any(m.domain in ("cover", "lock") for m in params["multi"]):
            raise Skip
        t2 = "HassTurnOn" if on else "HassTurnOff"
        return k.do("follow-up", text, [(t2, args(t2, m, {})) for m in params["multi"]], "Turned %s %s." % ("on" if on else "off", and_list([k.desc(m) for m in params["multi"]])))
    b = last.get("before")
    if b and t is not None and tool in ("HassTurnOn", "HassTurnOff") and b["tool"] == tool and b["target"].key() != t.key() and t.domain not in ("cover", "lock", "scene", "script") and b["target"].domain not in ("cover", "lock", "scene", "script") and x < 0.6:
        on = tool == "HassTurnOff"
        t2 = "HassTurnOn" if on else "HassTurnOff"
        w = "on" if on else "off"
        text = k.finish(r.choice(("turn both %s again", "turn both %s", "both %s again", "turn them both %s", "switch both %s", "turn both of them %s again please", "both %s please", "okay turn both %s")) % w)
        return k.do("follow-up", text, [(t2, args(t2, m, {})) for m in (b["target"], t)], "Turned %s %s." % (w, and_list([k.desc(m) for m in (b["target"], t)])))
    if tool == "HassListAddItem" and t is not None:
        i = r.choice(W.ITEMS if is_shopping(t.ents[0].name) else W.TASKS)
        noisy, k.noisy = k.noisy, 0.0
        try:
            text = speak(k, "and_too", lambda z: not any(w in z.text for w in ("do the same", "same", "what about", "how about", "repeat", "likewise", "now")), t=r.choice(("", "", "some ") if is_shopping(t.ents[0].name) else ("",)) + i)
        finally:
            k.noisy = noisy
        return k.do("follow-up", text, [("HassListAddItem", {"item": i, "name": t.ents[0].name})], "Added %s to %s." % (i, the(t.ents[0].name)), None, t, tool, {"item": i})
    if tool == "HassVacuumCleanArea":
        area = r.choice(k.home.areas).name
        if area == params["area"]:
            raise Skip
        text = speak(k, "and_too", t=lambda _: k.room_say(area))
        return k.do("follow-up", text, [(tool, {"area": area})], "Cleaning %s." % the(area), None, None, tool, {"area": area})
    if tool in ("HassStartTimer", "HassIncreaseTimer", "HassPauseTimer", "HassUnpauseTimer", "HassTimerStatus", "HassDecreaseTimer"):
        return follow_timer(k, tool, params)
    if tool == "question":
        return follow_question(k, t)
    if t is None or t.domain == "todo":
        raise Skip
    d = t.domain
    if x < 0.5 and tool not in ("HassMediaSearchAndPlay",):     # the same for another
        o = another(k, t, tool)
        if o.kind == "area" and r.random() < 0.6:
            o.words = k.room_say(o.area) if r.random() < 0.7 else k.in_area(o.area)
        text = speak(k, "and_too", t=lambda _: k.say(o))
        return act(k, "follow-up", text, tool, o, params)
    return same_target(k, t, tool, params)


def follow_more(k, tool, t, params):
    """Shorter and rarer ways to refer back."""
    r = k.rng
    if tool == "listed":
        ts = params["multi"]
        return k.do("follow-up", speak(k, "those_off"), [("HassTurnOff", args("HassTurnOff", m, {})) for m in ts], "Turned off %s." % and_list([k.desc(m) for m in ts]))
    if t is None:
        raise Skip
    if tool in ("HassListAddItem", "HassListRemoveItem", "HassListCompleteItem"):
        e = t.ents[0]
        return ask_live(k, "follow-up", speak(k, "list_it"), {"name": e.name}, lambda: state_words(e), {"say": [[i] for i in e.state.get("items", [])] or [["nothing"]]})
    x = r.random()
    if t.domain == "media_player" and tool in (*MEDIA_KEYS, "HassMediaSearchAndPlay", "HassSetVolume", "HassSetVolumeRelative") and x < 0.5:
        key, t2 = ("it_go", "HassMediaUnpause") if tool == "HassMediaPause" else r.choice((("it_stop", "HassMediaPause"), ("it_next", "HassMediaNext")))
        if t2 not in k.has:
            raise Skip
        return act(k, "follow-up", speak(k, key), t2, t)
    if x < 0.4 and tool in ("HassLightSet", "HassFanSetSpeed") and ("brightness" in params or "percentage" in params):
        return act(k, "follow-up", speak(k, "it_max"), tool, t, {"brightness" if tool == "HassLightSet" else "percentage": 100})
    if tool in ("HassMediaSearchAndPlay", "question") or t.domain in ("todo", "scene", "script", "vacuum", "lawn_mower"):
        raise Skip
    o = another(k, t, tool)
    text = speak(k, "meant", t=lambda _: k.say(o))
    act(k, "follow-up", text, tool, o, params)


def another(k, t, tool):
    r = k.rng
    if t.domain in ("scene", "script"):
        raise Skip
    if t.kind in ("area", "here"):
        es = [e for e in k.home.of(t.domain) if e.area and e.area != t.area]
        if t.cls:
            es = [e for e in es if e.cls == t.cls]
        if not es:
            raise Skip
        return k.refs.group(t.domain, r.choice(es).area, cls=t.cls)
    if t.kind == "floor":
        fl = [f[0] for f in k.home.floors if f[0] != t.floor and k.home.of(t.domain, floor=f[0])]
        if not fl:
            raise Skip
        o = k.refs.group(t.domain, floor=r.choice(fl))
        f = next(f for f in k.home.floors if f[0] == o.floor)
        n = k.spoken_name(r.choice([f[0]] + f[1]))
        o.words = n if n in ("upstairs", "downstairs") else "the " + n
        return o
    if t.kind != "ent":
        raise Skip
    doms = {t.domain} if tool not in ("HassTurnOn", "HassTurnOff") or t.domain in ("cover", "lock") else {"light", "switch", "fan", "media_player"}
    es = [e for e in k.home.entities if e.domain in doms and e is not t.ents[0]]
    if not es:
        raise Skip
    return k.refs.ent(r.choice(es))


def same_target(k, t, tool, params):
    r = k.rng
    d = t.domain
    opts = []
    if tool in ("HassTurnOn", "HassTurnOff", "HassLightSet", "HassFanSetSpeed", "HassSetPosition") and t.kind != "room":
        opts.append("flip")
    if d == "light" and t.kind != "room" and tool in ("HassTurnOn", "HassLightSet"):
        opts += ["bright", "color", "rel"]
    if d == "climate" and tool == "HassClimateSetTemperature":
        opts += ["temp", "trel", "trel"]
    if d == "fan" and tool in ("HassFanSetSpeed",):
        opts += ["fan", "frel"]
    if d == "cover" and tool == "HassSetPosition":
        opts += ["pos", "prel"]
    if d == "media_player":
        opts += ["vol", "vrel", "media"]
        if tool in ("HassSetVolume", "HassSetVolumeRelative"):
            opts += ["vrel", "vrel"]
    if d in ("scene", "script") or not opts:
        raise Skip
    o = r.choice(opts)
    if o == "flip":
        if d == "climate":
            raise Skip
        now = tool == "HassTurnOff"
        key = {"cover": ("it_open", "it_close"), "lock": ("it_lock", "it_unlock")}.get(d, ("it_on", "it_off"))[0 if now else 1]
        t2 = "HassTurnOn" if now else "HassTurnOff"
        return act(k, "follow-up", speak(k, key), t2, t)
    if o == "bright":
        v = r.choice((r.randrange(5, 101, 5), r.randint(1, 100)))
        return act(k, "follow-up", speak(k, "it_bright", v=lambda _: k.pct(v)), "HassLightSet", t, {"brightness": v})
    if o == "color":
        c = r.choice(W.COLORS_COMMON if r.random() < 0.7 else W.COLORS)
        return act(k, "follow-up", speak(k, "it_color", c=c), "HassLightSet", t, {"color": c})
    if o == "temp":
        v = r.randint(55, 85) if k.home.unit == "fahrenheit" else r.choice((r.randint(14, 27), r.randint(30, 52) / 2))
        v = norm_num(v)
        return act(k, "follow-up", speak(k, "it_bright", lambda z: "dim" not in z.text, v=lambda _: k.degrees(v)), "HassClimateSetTemperature", t, {"temperature": v})
    if o == "fan":
        v = r.randrange(5, 101, 5)
        return act(k, "follow-up", speak(k, "it_bright", lambda z: "dim" not in z.text, v=lambda _: k.pct(v)), "HassFanSetSpeed", t, {"percentage": v})
    if o == "pos":
        v = r.randrange(5, 100, 5)
        return act(k, "follow-up", speak(k, "it_bright", lambda z: "dim" not in z.text, v=lambda _: k.pct(v)), "HassSetPosition", t, {"position": v})
    if o == "vol":
        v = r.randrange(5, 101, 5)
        return act(k, "follow-up", speak(k, "volume_here", **{"in": "", "v": lambda _: k.pct(v)}), "HassSetVolume", t, {"volume_level": v})
    if o == "media":
        t2 = r.choice(list(MEDIA_KEYS))
        return act(k, "follow-up", speak(k, MEDIA_KEYS[t2] + "_here", lambda z: "{t}" not in z.text, **{"in": ""}), t2, t)
    up = r.random() < 0.5
    if o == "vrel":
        by, step = k.by((10, 5, 30), "percent")
        ln, s = k.line("it_louder" if up else "it_quieter", None, {"by": by})
        step = step if "{by}" in ln.text else 10
        return act(k, "follow-up", k.finish(s), "HassSetVolumeRelative", t, {"volume_step": step if up else -step})
    if o == "rel":
        # known: what was just set, or what is told
        if not k.live and "brightness" not in params or not t.ents:
            raise Skip
        base = params["brightness"] if "brightness" in params else base_light(t.ents)
        if up and base >= 100 or not up and base <= 1:
            raise Skip
        by, step = k.by((20, 10, 40), "percent")
        ln, s = k.line("it_brighter" if up else "it_dimmer", None, {"by": by})
        step = step if "{by}" in ln.text else 10 if "notch" in s else 20
        return act(k, "follow-up", k.finish(s), "HassLightSet", t, {"brightness": clamp(base + (step if up else -step), 1, 100)})
    if o == "trel":
        if not t.ents or "temperature" not in params:
            raise Skip
        by, step = k.by((1, 1, 3), "degree")
        ln, s = k.line("it_warmer" if up else "it_cooler", None, {"by": by})
        step = step if "{by}" in ln.text else 1
        return act(k, "follow-up", k.finish(s), "HassClimateSetTemperature", t, {"temperature": norm_num(params["temperature"] + (step if up else -step))})
    if o in ("frel", "prel"):
        slot, keys, tool2 = ("percentage", ("it_faster", "it_slower"), "HassFanSetSpeed") if o == "frel" else ("position", ("it_opener", "it_closer"), "HassSetPosition")
        base = params[slot]
        if up and base >= 100 or not up and base <= 0:
            raise Skip
        by, step = k.by((20, 10, 40), "percent")
        ln, s = k.line(keys[0 if up else 1], None, {"by": by})
        step = step if "{by}" in ln.text else 10 if "touch" in s else 20
        return act(k, "follow-up", k.finish(s), tool2, t, {slot: clamp(base + (step if up else -step), 0, 100)})
    raise Skip


def follow_timer(k, tool, params):
    r = k.rng
    name = {"name": params["name"]} if "name" in params else {}
    it = r.choice(("it", "it", "the timer", "that", "that timer"))
    x = r.random()
    if x < 0.25:
        key, t2, extra = "timer_cancel", "HassCancelTimer", {}
    elif x < 0.5:
        key, t2, extra = "timer_add", "HassIncreaseTimer", None
    elif x < 0.65:
        key, t2, extra = "timer_sub", "HassDecreaseTimer", None
    elif x < 0.75:
        key, t2, extra = "timer_pause", "HassPauseTimer", {}
    elif x < 0.85:
        key, t2, extra = "timer_resume", "HassUnpauseTimer", {}
    else:
        key, t2, extra = "timer_status", "HassTimerStatus", {}
    slots = dict(name)
    for a in ("start_hours", "start_minutes", "start_seconds"):
        if a in params:
            slots[a] = params[a]
    d = ""
    if extra is None:
        d, _, extra = k.duration()
        if r.random() < 0.3:
            return k.do("follow-up", k.finish(r.choice(("%s more", "another %s", "add %s")) % d if t2 == "HassIncreaseTimer" else r.choice(("%s less", "take off %s")) % d), [(t2, {**extra, **slots})], lambda res: timer_told(t2, res[0], extra), None, None, t2, slots)
    k.do("follow-up", speak(k, key, lambda z: "{d}" not in z.text or bool(d), x=it, d=d), [(t2, {**extra, **slots})], lambda res: timer_told(t2, res[0], extra), None, None, t2, slots)


def follow_question(k, t):
    """After "is it on?": then switch it."""
    r = k.rng
    e = t.ents[0]
    d, s = e.domain, e.state.get("state")
    if d in ("light", "switch", "fan", "media_player"):
        on = s == "off"
        key, tool = ("it_on", "HassTurnOn") if on else ("it_off", "HassTurnOff")
    elif d == "cover":
        on = s == "closed"
        key, tool = ("it_open", "HassTurnOn") if on else ("it_close", "HassTurnOff")
    elif d == "lock":
        on = s == "unlocked"
        key, tool = ("it_lock", "HassTurnOn") if on else ("it_unlock", "HassTurnOff")
    else:
        raise Skip
    act(k, "follow-up", speak(k, key), tool, t)
