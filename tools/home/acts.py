# SPDX-License-Identifier: MIT
"""Exchanges that act: what is asked, the call that is right, and what may follow."""
import re

import words as W
from homes import is_shopping
from refer import GENERIC, KIND, Target, names, norm
from talk import Skip, and_list, g, is_plural, num_words, or_list, the

FIX = (" no ", " no wait ", " sorry ", " i mean ", " no i mean ", " no sorry ", " uh no ", " wait no ", " actually ", " no make that ", " or rather ", " no not that ", " scratch that ", " um no ", " er ", " oops ", " no no ")
CTEMPS = {"warm white": 2700, "warm": 2700, "soft white": 2700, "neutral white": 4000, "neutral": 4000, "cool white": 6500, "cold white": 6500, "daylight": 6500, "cool": 6500}


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


# -- choosing what it is about ------------------------------------------------

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


# -- on and off, open and close, lock and unlock ------------------------------

def onoff(k):
    r = k.rng
    d = r.choice(("light", "light", "light", "light", "light", "light", "switch", "switch", "switch", "fan", "media_player", "climate"))
    on = r.random() < 0.55
    if d == "light" and r.random() < 0.2:
        w, t = where(k, "light")
        act(k, "HassTurnOn" if on else "HassTurnOff", speak(k, "light_on" if on else "light_off", **{"in": w, "t": lambda _: k.say(t)}), "HassTurnOn" if on else "HassTurnOff", t)
        return
    t = target(k, d, "eeeeeeaaaahhfl" if d == "light" else "eeeeeeeeeaahl" if d != "climate" else "eeeeh")
    key = "on" if on else "off"
    words = None
    if r.random() < 0.07:
        words = corrected(k, t, d)
    act(k, "HassTurnOn" if on else "HassTurnOff", speak(k, key, t=lambda _: words or k.say(t)), "HassTurnOn" if on else "HassTurnOff", t)


def corrected(k, t, d):
    """First something else, then what is meant."""
    o = target(k, d, "eeea")
    if o.key() == t.key():
        raise Skip
    return k.say(o) + k.rng.choice(FIX) + k.say(t)


WISHES = [  # (a word of the name, what people say to have it on)
    (("sprinkler", "sprinklers", "irrigation"), ("water the lawn", "water the garden", "water the plants", "the lawn needs water", "it's dry out there water the garden", "give the plants some water")),
    (("kettle",), ("boil the kettle", "boil some water", "heat some water", "put the kettle on", "boil water for tea")),
    (("coffee",), ("make some coffee", "brew some coffee", "i need a coffee", "make me a coffee", "start the coffee", "coffee please", "i could use a coffee")),
    (("espresso",), ("make an espresso", "i need an espresso", "pull me an espresso")),
    (("towel",), ("warm up the towels", "warm the towels", "i want warm towels", "heat the towels")),
    (("fireplace",), ("light the fire", "get the fire going", "start the fire", "i want a fire", "light the fireplace")),
    (("hot", "jacuzzi"), ("heat up the hot tub", "get the hot tub ready", "warm up the hot tub")),
    (("blanket",), ("warm up the blanket", "warm my bed", "heat the blanket")),
    (("purifier",), ("clean the air", "freshen the air", "purify the air")),
    (("dehumidifier",), ("dry the air", "get rid of the damp", "take the moisture out of the air")),
    (("humidifier",), ("the air is too dry", "make the air more humid", "i need more moisture in the air")),
    (("toaster",), ("heat up the toaster", "i want toast", "warm up the toaster")),
    (("oven",), ("heat up the oven", "preheat the oven", "warm up the oven")),
    (("washer", "washing"), ("start the wash", "start the laundry", "do a wash")),
    (("dryer",), ("dry the clothes", "start drying the clothes", "dry the laundry")),
    (("dishwasher",), ("do the dishes", "wash the dishes", "start the dishes")),
    (("christmas",), ("light the christmas tree", "light up the tree")),
    (("charger",), ("charge the car", "start charging", "start charging the car")),
    (("radiator", "heater"), ("warm up the heater", "start heating", "heat up the radiator")),
    (("pump",), ("start pumping", "get the pump going")),
    (("ventilation",), ("ventilate", "get the ventilation going", "air the place")),
    (("fountain",), ("let the fountain flow", "start the water fountain")),
    (("printer",), ("i need to print something", "get the printer ready")),
    (("tv", "television"), ("i want to watch tv", "let's watch tv", "i want to watch television", "time for some tv", "let's watch some tv")),
    (("radio",), ("i want to hear the radio", "let's hear the radio", "play the radio")),
]


def wish(k):
    """Somebody says what they want, not what to switch."""
    r = k.rng
    opts = []
    for words, says in WISHES:
        es = [e for e in k.home.entities if e.domain in (("light", "switch") if "christmas" in words else ("switch", "media_player", "fan")) and any(w in norm(n).split() for n in names(e) for w in words)]
        if len(es) == 1:
            opts.append((es[0], says))
    if not opts:
        raise Skip
    e, says = r.choice(opts)
    s = r.choice(says)
    if not re.match(r"(i |the |it's|let's|time)", s) and r.random() < 0.4:
        s = templates_wrap(k, s)
    act(k, "HassTurnOn", k.finish(s), "HassTurnOn", k.refs.ent(e))


def covers(k):
    r = k.rng
    on = r.random() < 0.5
    if on and r.random() < 0.08:
        w, t = where(k, "cover", r.choice(("blind", "curtain", "shade", "shutter")))
        if t.kind == "floor":
            raise Skip
        return act(k, "HassTurnOn", k.finish(r.choice(("let some light in %s", "let the sun in %s", "let some sunlight in %s", "let the light in %s", "let in some daylight %s")) % w), "HassTurnOn", t)
    if not on and r.random() < 0.08:
        w, t = where(k, "cover", r.choice(("blind", "curtain", "shade", "shutter")))
        if t.kind == "floor":
            raise Skip
        return act(k, "HassTurnOff", k.finish(r.choice(("the sun is blinding me %s", "i want some privacy %s", "keep the sun out %s", "the sun is too bright %s", "block the sun %s", "the neighbors can see me %s")) % w), "HassTurnOff", t)
    t = target(k, "cover", "eeeeeaaaahl")
    if t.kind == "here" and len(t.ents) > 1:
        w, pl = k.kind_word("cover", t.cls, True)
        if k.refs.match(w, None, k.here):
            raise Skip
        t.words = "the " + w
    act(k, "HassTurnOn" if on else "HassTurnOff", speak(k, "open" if on else "close", t=lambda _: k.say(t)), "HassTurnOn" if on else "HassTurnOff", t)


def locks(k):
    r = k.rng
    on = r.random() < 0.6
    t = target(k, "lock", "eeeeeeal")
    if t.kind == "all" and not on:
        raise Skip
    act(k, "HassTurnOn" if on else "HassTurnOff", speak(k, "lock" if on else "unlock", t=lambda _: k.say(t)), "HassTurnOn" if on else "HassTurnOff", t)


def scenes(k):
    t = some_ent(k, "scene", "script")
    n = k.spoken_name(k.rng.choice(names(t.ents[0])))
    act(k, "HassTurnOn", speak(k, "scene", t=n), "HassTurnOn", t)


def everything(k):
    """A whole room, or the whole home."""
    r = k.rng
    on = r.random() < 0.12
    tool = "HassTurnOn" if on else "HassTurnOff"
    x = r.random()
    if x < 0.7:
        area = r.choice([a.name for a in k.home.areas])
        if r.random() < 0.4 and k.here:
            area = k.here
        es = [e for e in k.home.of(area=area) if e.domain in ("light", "switch", "fan", "media_player")]
        if not es:
            raise Skip
        t = Target("room", es, {"area": area}, "light", area=area)
        if area == k.here and r.random() < 0.5:
            t.words = r.choice(("everything in here", "everything in this room", "everything here", "all devices in here"))
        if not on and r.random() < 0.35:
            here = area == k.here and r.random() < 0.4
            need = (lambda x: "{room}" not in x.text) if here else (lambda x: True)
            return act(k, tool, speak(k, "room_off", need, **{"in": r.choice(("in here", "here", "in this room")) if here else k.in_area(area), "room": k.room_say(area)}), tool, t)
        act(k, tool, speak(k, "on" if on else "off", lambda x: not any(w in x.text for w in ("that ", "them ")), t=lambda _: k.say(t)), tool, t)
        return
    if x < 0.8:
        fl = [f for f in k.home.floors if [e for e in k.home.of(floor=f[0]) if e.domain in ("light", "switch", "fan", "media_player")]]
        if not fl:
            raise Skip
        f = r.choice(fl)
        n = k.spoken_name(r.choice([f[0]] + f[1]))
        w = "everything %s" % n if n in ("upstairs", "downstairs") else r.choice(("everything %s" % in_floor(k, (f[0], f[1])), "the " + n, "the whole " + n)) if not on else "everything on the " + n
        es = [e for e in k.home.of(floor=f[0]) if e.domain in ("light", "switch", "fan", "media_player")]
        t = Target("room", es, {"floor": f[0]}, "light", floor=f[0], area=f[0], words=w)
        act(k, tool, speak(k, "off" if not on else "on", lambda x: not any(w in x.text for w in ("that ", "them ")), t=w), tool, t)
        return
    doms = [d for d in ("light", "switch", "fan", "media_player") if k.home.of(d)]
    if not doms:
        raise Skip
    w = r.choice(("everything", "everything in the house", "everything in the whole house", "all devices", "every device", "the whole house", "everything everywhere", "absolutely everything", "all the devices in the house", "everything at home"))
    calls = [("HassTurnOff", {"domain": d}) for d in doms]
    k.do("HassTurnOff", speak(k, "off", lambda x: "{t}" in x.text and not any(w in x.text for w in ("that ", "them ", "done", "nobody", "(is|are)")), t=w), calls, "Turned off everything.")


# -- lights -------------------------------------------------------------------

def room_alone(k, domain="light"):
    """(words for {in}, words for {room}, target): the room stands for its lights."""
    r = k.rng
    if k.here and k.home.of(domain, k.here) and r.random() < 0.3 and len(k.home.of(domain)) > 1:
        t = k.refs.group(domain, k.here)
        return r.choice(("in here", "here", "", "in this room")), r.choice(("this room", "the room", "it in here")), t
    t = some_group(k, domain)
    return k.in_area(t.area), k.room_say(t.area), t


def lights(k):
    r = k.rng
    if r.random() < 0.12:
        w, room, t = room_alone(k)
        if r.random() < 0.6:
            v = r.choice((r.randrange(5, 101, 5), r.randint(1, 100)))
            return act(k, "HassLightSet", speak(k, "bright_bare", **{"in": w, "room": room, "v": lambda _: k.pct(v)}), "HassLightSet", t, {"brightness": v})
        c = r.choice(W.COLORS_COMMON)
        return act(k, "HassLightSet", speak(k, "color_bare", **{"in": w, "room": room, "c": c}), "HassLightSet", t, {"color": c})
    t = target(k, "light", "eeeeeeaaaahhfl")
    x = r.random()
    say = lambda _: k.say(t)
    v = r.choice((r.randrange(5, 101, 5), r.randrange(10, 101, 10), r.randint(1, 100)))
    fixed = lambda: k.pct(r.choice((10, 20, 30, 40, 60, 80))) + r.choice(FIX) + k.pct(v)
    if x < 0.36:
        if r.random() < 0.06:
            text = speak(k, "bright", t=say, v=lambda _: fixed(), n=lambda _: k.number(v))
        elif r.random() < 0.06:
            w = corrected(k, t, "light")
            text = speak(k, "bright", t=w, v=lambda _: k.pct(v), n=lambda _: k.number(v))
        else:
            text = speak(k, "bright", t=say, v=lambda _: k.pct(v), n=lambda _: k.number(v))
        return act(k, "HassLightSet", text, "HassLightSet", t, {"brightness": v})
    if x < 0.44:
        return act(k, "HassLightSet", speak(k, "on_bright", t=say, v=lambda _: k.pct(v)), "HassLightSet", t, {"brightness": v})
    if x < 0.48:
        return act(k, "HassLightSet", speak(k, "bright_max", t=say), "HassLightSet", t, {"brightness": 100})
    if x < 0.52:
        return act(k, "HassLightSet", speak(k, "bright_min", t=say), "HassLightSet", t, {"brightness": 1})
    c = r.choice(W.COLORS_COMMON if r.random() < 0.6 else W.COLORS)
    if x < 0.74:
        bare = lambda _: k.say(t, True)
        key = "on_color" if r.random() < 0.12 else "color"
        if r.random() < 0.06:
            o = r.choice(W.COLORS_COMMON)
            if o == c:
                raise Skip
            return act(k, "HassLightSet", speak(k, "color", lambda x: "{t_bare}" not in x.text, t=say, c=o + r.choice(FIX) + c), "HassLightSet", t, {"color": c})
        return act(k, "HassLightSet", speak(k, key, None if t.kind == "ent" else lambda x: "{t_bare}" not in x.text, t=say, t_bare=bare, c=c), "HassLightSet", t, {"color": c})
    if x < 0.82:
        return act(k, "HassLightSet", speak(k, "color_bright", t=say, c=c, v=lambda _: k.pct(v)), "HassLightSet", t, {"brightness": v, "color": c})
    if r.random() < 0.7:
        w = r.choice(list(CTEMPS))
        kv = CTEMPS[w]
    else:
        kv = r.choice((2000, 2200, 2500, 2700, 3000, 3500, 4000, 4500, 5000, 5500, 6000, 6500))
        w = (str(kv) if k.st.digits or r.random() < 0.3 else num_words(kv) if kv % 1000 == 0 or r.random() < 0.5 else num_words(kv // 100) + " hundred") + " kelvin"
    if x < 0.95:
        return act(k, "HassLightSet", speak(k, "ctemp", t=say, k=w), "HassLightSet", t, {"temperature": kv})
    return act(k, "HassLightSet", speak(k, "ctemp_bright", t=say, k=w, v=lambda _: k.pct(v)), "HassLightSet", t, {"brightness": v, "temperature": kv})


def base_light(ents):
    e = next((e for e in ents if e.state.get("state") == "on"), ents[0])
    return e.state.get("brightness", 100) if e.state.get("state") == "on" else 0


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


def lights_rel(k):
    r = k.rng
    up = r.random() < 0.5
    if not up and r.random() < 0.15:
        w, t = where(k, "light")
        if base_light(t.ents) == 0:
            raise Skip
        return relative(k, "HassLightSet", speak(k, "too_bright", **{"in": w}), "HassLightSet", t, "brightness", lambda es: clamp(base_light(es) - 20, 1, 100))
    if r.random() < 0.2:
        w, room, t = room_alone(k)
        if up and base_light(t.ents) == 100 or not up and base_light(t.ents) <= 1:
            raise Skip
        by, step = k.by((20, 10, 40), "percent")
        ln, s = k.line("rel_bare_up" if up else "rel_bare_down", None, {"in": w, "room": room, "by": by})
        step = step if "{by}" in ln.text else 20
        return relative(k, "HassLightSet", k.finish(k.wrap(ln, s)), "HassLightSet", t, "brightness", lambda es: clamp(base_light(es) + (step if up else -step), 1, 100))
    t = target(k, "light", "eeeeeeaah")
    if not up and base_light(t.ents) <= 1 or up and base_light(t.ents) == 100:
        raise Skip
    by, step = k.by((20, 10, 40), "percent")
    ln, s = k.line("brighter" if up else "dimmer", None, {"t": lambda _: k.say(t), "by": by})
    if "{by}" not in ln.text:
        step = 20
    relative(k, "HassLightSet", k.finish(k.wrap(ln, s)), "HassLightSet", t, "brightness", lambda es: clamp(base_light(es) + (step if up else -step), 1, 100))


# -- covers, fans, heating ----------------------------------------------------

def position(k):
    r = k.rng
    t = target(k, "cover", "eeeeeeaaah")
    if t.kind == "here" and len(t.ents) > 1:
        raise Skip
    v = r.choice((r.randrange(5, 100, 5), r.randrange(10, 100, 10), r.randint(1, 99)))
    x = r.random()
    if x < 0.25:
        return act(k, "HassSetPosition", speak(k, "position_half", t=lambda _: k.say(t)), "HassSetPosition", t, {"position": 50})
    if x < 0.75 or any("position" not in e.state for e in t.ents):
        return act(k, "HassSetPosition", speak(k, "position", t=lambda _: k.say(t), v=lambda _: k.pct(v)), "HassSetPosition", t, {"position": v})
    up = r.random() < 0.5
    cur = t.ents[0].state["position"]
    if up and cur == 100 or not up and cur == 0:
        raise Skip
    by, step = k.by((20, 10, 40), "percent")
    need = None if by else lambda z: re.search("more|further|wider", z.text)      # "raise the blind" opens it
    relative(k, "HassSetPosition", speak(k, "opener" if up else "closer", need, t=lambda _: k.say(t), by=by), "HassSetPosition", t, "position", lambda es: clamp(es[0].state.get("position", 0) + (step if up else -step), 0, 100))


def base_fan(es):
    return es[0].state.get("percentage", 0) if es[0].state.get("state") == "on" else 0


def fans(k):
    r = k.rng
    x = r.random()
    if x < 0.12:
        w, t = where(k, "fan")
        return act(k, "HassTurnOn", speak(k, "stuffy", **{"in": w}), "HassTurnOn", t)
    t = target(k, "fan", "eeeeeeaah")
    if t.kind == "here" and len(t.ents) > 1:
        raise Skip
    v = r.choice((r.randrange(5, 101, 5), r.randrange(10, 101, 10), r.randint(1, 100)))
    if x < 0.6:
        return act(k, "HassFanSetSpeed", speak(k, "fan", t=lambda _: k.say(t), v=lambda _: k.pct(v)), "HassFanSetSpeed", t, {"percentage": v})
    if x < 0.7:
        if r.random() < 0.5:
            w, v = r.choice((("low", 33), ("medium", 66), ("high", 100)))
            return act(k, "HassFanSetSpeed", speak(k, "fan_level", t=lambda _: k.say(t), v=w), "HassFanSetSpeed", t, {"percentage": v})
        return act(k, "HassFanSetSpeed", speak(k, "fan_max", t=lambda _: k.say(t)), "HassFanSetSpeed", t, {"percentage": 100})
    up = r.random() < 0.5
    if up and base_fan(t.ents) == 100 or not up and base_fan(t.ents) == 0:
        raise Skip
    by, step = k.by((20, 10, 40), "percent")
    ln, s = k.line("faster" if up else "slower", None, {"t": lambda _: k.say(t), "by": by})
    if "{by}" not in ln.text:
        step = 20
    relative(k, "HassFanSetSpeed", k.finish(k.wrap(ln, s)), "HassFanSetSpeed", t, "percentage", lambda es: clamp(base_fan(es) + (step if up else -step), 0, 100))


def climate_where(k):
    r = k.rng
    if r.random() < 0.5:
        t = k.refs.implicit("climate", k.here)
        if isinstance(t, list):
            raise Skip
        here = t.kind == "here" or t.area == k.here and k.here
        return (r.choice(("", "", "in here")) if here else ""), "this room" if here else "the house", t
    t = some_group(k, "climate")
    return k.in_area(t.area), k.room_say(t.area), t


def temps(k):
    r = k.rng
    f = k.home.unit == "fahrenheit"
    v = r.randint(55, 85) if f else r.choice((r.randint(10, 30), r.randint(16, 25), r.randint(16, 25), r.randint(30, 52) / 2, r.randint(100, 300) / 10))
    if isinstance(v, float) and v == int(v):
        v = int(v)
    x = r.random()
    if x < 0.3:
        t = target(k, "climate", "eeeeeeah")
        return act(k, "HassClimateSetTemperature", speak(k, "temp", t=lambda _: k.say(t), v=lambda _: k.degrees(v)), "HassClimateSetTemperature", t, {"temperature": v})
    if x < 0.6:
        w, room, t = climate_where(k)
        need = None if w not in ("", "in here") else lambda x: "{room}" not in x.text
        if t.ents and "thermostat" in k.refs.by_name and k.refs.by_name["thermostat"] != t.ents:
            need2, need = need, lambda x: "thermostat" not in x.text and (need2 is None or need2(x))
        return act(k, "HassClimateSetTemperature", speak(k, "temp_room", need, **{"in": w, "room": room, "v": lambda _: k.degrees(v)}), "HassClimateSetTemperature", t, {"temperature": v})
    up = r.random() < 0.5
    by, step = k.by((1, 1, 3), "degree")
    move = lambda es: norm_num(es[0].state.get("temperature", 20) + (step if up else -step))
    if x < 0.8:
        t = target(k, "climate", "eeeeeah")
        if any("temperature" not in e.state for e in t.ents):
            raise Skip
        ln, s = k.line("warmer" if up else "cooler", None, {"t": lambda _: k.say(t), "by": by})
    else:
        w, room, t = climate_where(k)
        need = None if room != "the house" and w else lambda x: "{room}" not in x.text
        ln, s = k.line("cold" if up else "hot", need, {"in": w, "room": room, "by": by})
    if "{by}" not in ln.text:
        step = 1
    relative(k, "HassClimateSetTemperature", k.finish(k.wrap(ln, s)), "HassClimateSetTemperature", t, "temperature", move)


def norm_num(v):
    return int(v) if v == int(v) else v


# -- media --------------------------------------------------------------------

MEDIA_KEYS = {"HassMediaPause": "pause", "HassMediaUnpause": "resume", "HassMediaNext": "next", "HassMediaPrevious": "previous", "HassMediaPlayerMute": "mute", "HassMediaPlayerUnmute": "unmute"}


def media(k):
    r = k.rng
    tool = r.choice(("HassMediaPause", "HassMediaPause", "HassMediaUnpause", "HassMediaNext", "HassMediaNext", "HassMediaPrevious", "HassMediaPlayerMute", "HassMediaPlayerUnmute"))
    key = MEDIA_KEYS[tool]
    if r.random() < 0.45:
        t = target(k, "media_player", "eeeeeeea")
        return act(k, tool, speak(k, key, t=lambda _: k.say(t)), tool, t)
    w, t = where(k, "media_player")
    act(k, tool, speak(k, key + "_here", **{"in": w}), tool, t)


def volume(k):
    r = k.rng
    v = r.choice((r.randrange(5, 101, 5), r.randrange(10, 101, 10), r.randint(0, 100)))
    x = r.random()
    if x < 0.45:
        if r.random() < 0.6:
            t = target(k, "media_player", "eeeeeeea")
            text = speak(k, "volume", t=lambda _: k.say(t), v=lambda _: k.pct(v), n=lambda _: k.number(v))
        else:
            w, t = where(k, "media_player")
            text = speak(k, "volume_here", **{"in": w, "v": lambda _: k.pct(v)})
        return act(k, "HassSetVolume", text, "HassSetVolume", t, {"volume_level": v})
    up = r.random() < 0.5
    by, step = k.by((10, 5, 30), "percent")
    if r.random() < 0.5:
        t = target(k, "media_player", "eeeeeeea")
        ln, s = k.line("louder" if up else "quieter", None, {"t": lambda _: k.say(t), "by": by})
    else:
        w, t = where(k, "media_player")
        ln, s = k.line("louder_here" if up else "quieter_here", None, {"in": w, "by": by})
    if "{by}" not in ln.text:
        step = 10
    act(k, "HassSetVolumeRelative", k.finish(k.wrap(ln, s)), "HassSetVolumeRelative", t, {"volume_step": step if up else -step})


def play(k):
    r = k.rng
    if r.random() < 0.5:
        t = target(k, "media_player", "eeeeeea")
        w = k.ent_say(t.ents[0]) if t.kind == "ent" else None
        on = "on " + w if w else k.in_area(t.area)
    else:
        on, t = where(k, "media_player")
    x = r.random()
    if x < 0.28:
        key, q, m = "play", r.choice(W.GENRES + W.ARTISTS), None
    else:
        key, pool, m = r.choice((("play_playlist", W.PLAYLISTS, "playlist"), ("play_artist", W.ARTISTS, "artist"), ("play_track", W.SONGS, "track"), ("play_album", W.ALBUMS, "album"),
                                 ("play_movie", W.MOVIES, "movie"), ("play_show", W.SHOWS, "tv_show"), ("play_podcast", W.PODCASTS, "podcast"), ("play", W.SONGS + W.ALBUMS + W.MOVIES + W.SHOWS, None)))
        q = r.choice(pool)
    if r.random() < 0.2:      # things nobody has heard of
        q = r.choice(W.PEOPLE).lower() + " " + r.choice(W.WHIMSY).lower() if r.random() < 0.5 else r.choice(W.ITEMS) + " " + r.choice(W.WHIMSY).lower()
    noisy, k.noisy = k.noisy, 0.0      # what is searched is what was heard: it stays as it is
    try:
        plain = key != "play" or q in W.GENRES       # nobody hears "a little yesterday"
        text = speak(k, key, None if plain else lambda z: not re.search(r"some|little|bit of|touch", z.text), q=q, on=on)
    finally:
        k.noisy = noisy
    if q.lower() not in text:
        raise Skip
    params = {"search_query": q}
    if m:
        params["media_class"] = m
    k.do("HassMediaSearchAndPlay", text, [("HassMediaSearchAndPlay", args("HassMediaSearchAndPlay", t, params))], "Playing %s." % q, None, t, "HassMediaSearchAndPlay", params)


# -- robots -------------------------------------------------------------------

def vacuum(k):
    r = k.rng
    if not k.home.of("vacuum"):
        raise Skip
    x = r.random()
    if x < 0.42:
        area = r.choice([a.name for a in k.home.areas])
        here = area == k.here and r.random() < 0.4
        es = k.home.of("vacuum")
        vac = lambda _: k.ent_say(es[0])
        if len(es) > 1:
            vac = None
        need = lambda x: (vac is not None or "{vac}" not in x.text) and (not here or "{room}" not in x.text)
        text = speak(k, "vacuum_area", need, **{"in": "in here" if here else k.in_area(area), "room": lambda _: k.room_say(area), "vac": vac})
        return k.do("HassVacuumCleanArea", text, [("HassVacuumCleanArea", {"area": area})], "Cleaning %s." % the(area), None, None, "HassVacuumCleanArea", {"area": area})
    start = r.random() < 0.5
    t = some_ent(k, "vacuum")
    if start and r.random() < 0.3:
        t = k.refs.implicit("vacuum", k.here)
        if isinstance(t, list):
            raise Skip
        return act(k, "HassVacuumStart", speak(k, "vacuum_any"), "HassVacuumStart", t)
    words = None
    if len(k.home.of("vacuum")) == 1 and r.random() < 0.35:
        w = r.choice(("vacuum", "robot", "vacuum cleaner", "robot vacuum", "cleaner", "hoover", "vacuum robot"))
        if k.refs.match(w, None, k.here) not in ([], t.ents):
            raise Skip
        words = "the " + w
    tool = "HassVacuumStart" if start else "HassVacuumReturnToBase"
    act(k, tool, speak(k, "vacuum" if start else "vacuum_dock", t=lambda _: words or k.say(t)), tool, t)


def mower(k):
    r = k.rng
    t = k.refs.implicit("lawn_mower", k.here)
    if isinstance(t, list) or t.kind != "ent":
        raise Skip
    start = r.random() < 0.5
    words = None
    if r.random() < 0.4:
        w = r.choice(("mower", "lawn mower", "lawnmower", "robot mower"))
        if k.refs.match(w, None, k.here) not in ([], t.ents):
            raise Skip
        words = "the " + w
    tool = "HassLawnMowerStartMowing" if start else "HassLawnMowerDock"
    act(k, tool, speak(k, "mow" if start else "mow_dock", t=lambda _: words or k.say(t)), tool, t)


# -- lists --------------------------------------------------------------------

def list_say(k, e):
    r = k.rng
    n = k.spoken_name(e.name)
    if len(k.home.of("todo")) == 1 and r.random() < 0.3:
        return r.choice(("the list", "my list", "the list", "our list"))
    if not n.endswith("list") and r.random() < 0.5:
        return r.choice(("the %s list", "my %s list", "%s")) % n
    if n == "to do" or n == "todo":
        return r.choice(("my to do list", "the to do list", "my to do's"))
    return r.choice(("the %s", "the %s", "my %s", "our %s", "%s")) % n


def lists(k):
    r = k.rng
    es = k.home.of("todo")
    if not es:
        raise Skip
    e = r.choice(es)
    items = e.state.get("items", [])
    shop = is_shopping(e.name)
    x = r.random()
    pool = W.ITEMS if shop or r.random() < 0.2 else W.BOOKS if "pack" in e.name.lower() else W.TASKS
    if x < 0.62 or not items:
        i = r.choice(pool)
        if r.random() < 0.25 and pool is W.ITEMS:
            i = r.choice(("two", "three", "six", "a bag of", "a bottle of", "a box of", "some more", "red", "organic", "fresh", "a pound of", "a pack of")) + " " + i
        if i in items:
            raise Skip
        tool = "HassListAddItem"
        only_shop = shop and len([l for l in es if is_shopping(l.name)]) == 1
        many = r.random() < 0.2
        extra = [y for y in r.sample(pool, r.choice((1, 1, 2))) if y != i and y not in items and " and " not in y] if many else []
        its = [i] + extra
        key = "shop_add" if only_shop and pool is W.ITEMS and r.random() < 0.3 else "list_add"
        noisy, k.noisy = k.noisy, 0.0
        try:
            text = speak(k, key, i=and_list(its).replace(",", "" if k.st.spoken else ","), l=lambda _: list_say(k, e))
        finally:
            k.noisy = noisy
        calls = [(tool, {"item": y, "name": e.name}) for y in its]
        undo = [("HassListRemoveItem", {"item": y, "name": e.name}) for y in its]
        return k.do(tool, text, calls, "Added %s to %s." % (and_list(its), the(e.name)), undo, Target("ent", [e], {"name": e.name}, "todo"), tool, {"item": i})
    i = r.choice(items)
    done = r.random() < 0.6
    tool = "HassListCompleteItem" if done else "HassListRemoveItem"
    if r.random() < 0.45 and sum(i in l.state.get("items", []) for l in es) == 1:    # the list is the one that holds it
        key = ("done_any" if pool is W.ITEMS and shop else "did_any") if done else "remove_any"
        text = speak(k, key, i=(r.choice(("the ", "")) + i if pool is W.ITEMS else i))
        return k.do(tool, text, [(tool, {"item": i, "name": e.name})], ("Checked off %s on %s." if done else "Removed %s from %s.") % (i, the(e.name)), None, None, tool, {"item": i})
    text = speak(k, "list_done" if done else "list_remove", i=(r.choice(("the ", "")) + i if pool is W.ITEMS else i), l=lambda _: list_say(k, e))
    k.do(tool, text, [(tool, {"item": i, "name": e.name})], ("Checked off %s on %s." if done else "Removed %s from %s.") % (i, the(e.name)), None, Target("ent", [e], {"name": e.name}, "todo"), tool, {"item": i})


# -- timers -------------------------------------------------------------------

def span(slots, ks=("hours", "minutes", "seconds")):
    return and_list(["%d %s" % (slots[x], x[:-1] if slots[x] == 1 else x) for x in ks if x in slots])


def timer(k):
    r = k.rng
    d, adj, slots = k.duration()
    x = r.random()
    if x < 0.45:
        if r.random() < 0.06:
            d2, _, s2 = k.duration()
            return start_timer(k, speak(k, "timer", lambda z: "{d_adj}" not in z.text, d=d2 + r.choice(FIX) + d), slots)
        return start_timer(k, speak(k, "timer", d=d, d_adj=adj), slots)
    if x < 0.7:
        n = r.choice(W.TIMERS) if r.random() < 0.85 else r.choice(W.PEOPLE).lower()
        return start_timer(k, quiet(k, "timer_named", d=d, d_adj=adj, tn=n), {**slots, "name": n})
    if x < 0.8:
        n = r.choice(W.REMINDERS)
        return start_timer(k, quiet(k, "remind", d=d, r=n), {**slots, "name": n})
    # delayed commands: the command is kept as it was said
    cmd = command_words(k)
    text = quiet(k, "delayed", d=d, cmd=cmd)
    if cmd not in text:
        raise Skip
    k.do("HassStartTimer", text, [("HassStartTimer", {**slots, "conversation_command": cmd})], "I'll do that in %s." % span(slots), None, None, "HassStartTimer", {})


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


def command_words(k):
    r = k.rng
    d = r.choice(("light", "light", "light", "switch", "switch", "fan", "media_player", "cover", "lock", "climate"))
    if d == "cover":
        t = target(k, "cover", "eeea")
        return clause(k, r.choice(("open", "close")), t=lambda _: k.say(t))
    if d == "lock":
        t = target(k, "lock", "e")
        return clause(k, "lock", t=lambda _: k.say(t))
    if d == "climate":
        t = target(k, "climate", "e")
        return clause(k, "temp", t=lambda _: k.say(t), v=lambda _: k.degrees(r.randint(16, 24)))
    t = target(k, d, "eeeeaah")
    if d == "light" and r.random() < 0.25:
        return clause(k, "bright", t=lambda _: k.say(t), v=lambda _: k.pct(r.randrange(10, 101, 10)), n="")
    return clause(k, r.choice(("on", "off", "off")), t=lambda _: k.say(t))


def start_timer(k, text, slots):
    n = " for %s" % slots["name"] if "name" in slots and " " in slots["name"] else ""
    label = "%s timer" % slots["name"].capitalize() if "name" in slots and not n else "Timer"
    k.do("HassStartTimer", text, [("HassStartTimer", slots)], "%s set%s, %s." % (label, "" if not n else ": " + slots["name"], span(slots)),
         [("HassCancelTimer", {"name": slots["name"]} if "name" in slots else {})], None, "HassStartTimer", slots)


def timer_ref(k):
    """(words for an existing timer, slots): those that are set, or one that was set before."""
    r = k.rng
    x = r.random()
    live = k.home.timers
    if live and x < 0.75:
        t = r.choice(live)
        if t["name"]:
            n = t["name"]
            return (r.choice(("the %s timer", "my %s timer", "%s timer", "the %s timer")) % n if " " not in n or r.random() < 0.3 else "the timer to " + n), {"name": n}, t
        if len(live) == 1 and r.random() < 0.6:
            return r.choice(("the timer", "my timer", "that timer", "the timer", "this timer")), {}, t
        h, m, s = t["seconds"] // 3600, t["seconds"] % 3600 // 60, t["seconds"] % 60
        # as it was said, for the common spans only
        if h and not m and not s:
            return "the %s hour timer" % ("one" if h == 1 and not k.st.digits else k.number(h)), {"start_hours": h}, t
        if m and not h and not s:
            return "the %s minute timer" % k.number(m), {"start_minutes": m}, t
        raise Skip
    if x < 0.85:
        return r.choice(("the timer", "my timer", "the timer")), {}, None
    if x < 0.93:
        n = r.choice(W.TIMERS)
        return r.choice(("the %s timer", "my %s timer")) % n, {"name": n}, None
    m = r.choice((1, 2, 3, 5, 10, 15, 20, 25, 30, 45))
    if r.random() < 0.2:
        h = r.choice((1, 2, 3))
        return "the %s hour timer" % k.number(h), {"start_hours": h}, None
    return "the %s minute timer" % k.number(m), {"start_minutes": m}, None


def timer_more(k):
    r = k.rng
    x = r.random()
    if x < 0.08:
        return k.do("HassCancelAllTimers", speak(k, "timer_cancel_all"), [("HassCancelAllTimers", {})], "All timers are cancelled.")
    w, slots, t = timer_ref(k)
    if x < 0.3:
        key, tool, extra = "timer_cancel", "HassCancelTimer", {}
    elif x < 0.44:
        key, tool, extra = "timer_add", "HassIncreaseTimer", None
    elif x < 0.56:
        key, tool, extra = "timer_sub", "HassDecreaseTimer", None
    elif x < 0.68:
        key, tool, extra = "timer_pause", "HassPauseTimer", {}
    elif x < 0.8:
        key, tool, extra = "timer_resume", "HassUnpauseTimer", {}
    else:
        key, tool, extra = "timer_status", "HassTimerStatus", {}
        if not slots and r.random() < 0.5:
            key = "timer_status_any"
    d = ""
    if extra is None:
        d, _, extra = k.duration()
    if tool == "HassTimerStatus" and "name" in slots and r.random() < 0.45:
        key, w = "timer_of", r.choice(("the %s", "the %s", "my %s")) % slots["name"] if " " not in slots["name"] else w
    elif tool in ("HassIncreaseTimer", "HassDecreaseTimer") and "name" in slots and " " not in slots["name"] and r.random() < 0.3:
        w = "the " + slots["name"]
    q = quiet if "name" in slots else speak
    text = q(k, key, x=w, d=d)
    k.do(tool, text, [(tool, {**extra, **slots})], lambda res: timer_told(tool, res[0], extra), None, None, tool, slots)


def left_words(s):
    h, m, s = s // 3600, s % 3600 // 60, s % 60
    return span({k: v for k, v in (("hours", h), ("minutes", m), ("seconds", s)) if v}) or "no time"


def timer_told(tool, res, extra):
    ts = res.get("timers", [])
    if tool == "HassTimerStatus":
        if not ts:
            return "No timer is running."
        return " ".join("The %s has %s left%s." % (t["name"] + " timer" if t["name"] else "timer", left_words(t["left"]), " and is paused" if t["state"] == "paused" else "") for t in ts[:3])
    n = "The %s timer" % ts[0]["name"] if ts and ts[0]["name"] else "The timer"
    return {"HassCancelTimer": n + " is cancelled.", "HassPauseTimer": n + " is paused.", "HassUnpauseTimer": n + " is running again."}.get(tool) or \
        "%s now has %s left." % (n, left_words(ts[0]["left"]) if ts else span(extra))


def broadcast(k):
    r = k.rng
    m = r.choice(W.MESSAGES)
    if r.random() < 0.3:
        m = r.choice(("the %s is ready", "we are out of %s", "please bring me the %s", "who took my %s", "there is %s in the kitchen")) % r.choice(W.ITEMS)
    k.do("HassBroadcast", quiet(k, "broadcast", b=m), [("HassBroadcast", {"message": m})], "Announced.", None, None, "HassBroadcast", {})


# -- several things at once ---------------------------------------------------

def multi(k):
    r = k.rng
    x = r.random()
    if x < 0.12:                     # one verb, one kind, several rooms
        d = r.choice(("light", "light", "light", "cover", "fan"))
        t = some_group(k, d)
        areas = [a.name for a in k.home.areas if a.name != t.area and k.home.of(d, a.name, cls=t.cls or None)]
        if not areas:
            raise Skip
        n = 1 if r.random() < 0.85 or len(areas) < 2 else 2
        ts = [t] + [k.refs.group(d, a, cls=t.cls) for a in r.sample(areas, n)]
        w, _ = k.kind_word(d, t.cls, True)
        rooms = [k.area_say(m.area) for m in ts]
        y = r.random()
        words = "the %s in %s" % (w, " and ".join(z if "'s" in z else "the " + z for z in rooms)) if y < 0.5 else "the %s %s" % (" and ".join(rooms), w) if y < 0.75 else "%s %s" % (" and ".join(rooms), w)
        z = r.random()
        if d == "light" and z < 0.35:
            v = r.randrange(5, 101, 5)
            text = speak(k, "bright", t=words, v=lambda _: k.pct(v), n="")
            return k.do("HassLightSet", text, [("HassLightSet", args("HassLightSet", m, {"brightness": v})) for m in ts], "Set %s to %d percent." % (and_list([k.desc(m) for m in ts]), v))
        on = r.random() < 0.5
        tool = "HassTurnOn" if on else "HassTurnOff"
        text = speak(k, {"cover": ("open", "close")}.get(d, ("on", "off"))[0 if on else 1], lambda x: "(is|are)" not in x.text, t=words)
        return k.do(tool, text, [(tool, args(tool, m, {})) for m in ts], "%s %s." % ({"cover": ("Opened", "Closed")}.get(d, ("Turned on", "Turned off"))[0 if on else 1], and_list([k.desc(m) for m in ts])),
                    [c for m in ts for c in undo_of(k, tool, m, {}) or []], None, tool, {"multi": ts})
    if x < 0.55:                      # one verb, several targets
        d = r.choice(("light", "light", "light", "switch", "cover", "lock", "fan", "mixed", "mixed"))
        n = 2 if r.random() < 0.85 else 3
        if d == "mixed":
            ts = [target(k, r.choice(("light", "switch", "fan", "media_player")), "eeea") for _ in range(n)]
        else:
            ts = [target(k, d, "eeea") for _ in range(n)]
        if len({t.key() for t in ts}) < n:
            raise Skip
        on = r.random() < 0.5
        key = {"cover": ("open", "close"), "lock": ("lock", "unlock")}.get(d, ("on", "off"))[0 if on else 1]
        tool = "HassTurnOn" if on else "HassTurnOff"
        ws = [k.say(t) for t in ts]
        if any("all " in w or "every" in w for w in ws):
            raise Skip
        words = (" and ".join(ws) if r.random() < 0.8 or k.st.spoken else and_list(ws)) if n == 2 else (" and ".join(ws) if r.random() < 0.3 else (" " if k.st.spoken else ", ").join(ws[:-1]) + " and " + ws[-1])
        both = r.choice(("both ", "", "", "", "", "")) if n == 2 else ""
        text = speak(k, key, lambda x: "(is|are)" not in x.text, t=both + words)
        calls = [(tool, args(tool, t, {})) for t in ts]
        undo = [c for t in ts for c in undo_of(k, tool, t, {}) or []]
        verb = {"cover": ("Opened", "Closed"), "lock": ("Locked", "Unlocked")}.get(d, ("Turned on", "Turned off"))[0 if on else 1]
        return k.do(tool, text, calls, "%s %s." % (verb, and_list([k.desc(t) for t in ts])), undo, None, tool, {"multi": ts})
    if r.random() < 0.08 and k.home.of("vacuum"):
        areas = r.sample([a.name for a in k.home.areas], min(len(k.home.areas), r.choice((2, 2, 3))))
        if len(areas) < 2:
            raise Skip
        rooms = [k.room_say(a) for a in areas]
        j = r.choice((" and ", " and ", " then ", " and then "))
        text = speak(k, "vacuum_area", lambda z: "{room}" in z.text and "{vac}" not in z.text and "{in}" not in z.text and " is " not in z.text and " (needs" not in z.text, room=j.join(rooms))
        return k.do("HassVacuumCleanArea", text, [("HassVacuumCleanArea", {"area": a}) for a in areas], "Cleaning %s." % and_list([the(a) for a in areas]))
    if r.random() < 0.12:              # "washer off dryer on"
        ts = [target(k, r.choice(("light", "switch", "switch", "fan", "media_player")), "e") for _ in range(2)]
        if ts[0].key() == ts[1].key():
            raise Skip
        on = [r.random() < 0.5 for _ in ts]
        ws = [k.say(t) + (" on" if o else " off") for t, o in zip(ts, on)]
        calls = [("HassTurnOn" if o else "HassTurnOff", args("HassTurnOn", t, {})) for t, o in zip(ts, on)]
        return k.do(calls[0][0], k.finish(r.choice((" ", " and ", " ")).join(ws)), calls, " ".join(told(k, c[0], t, {}) for c, t in zip(calls, ts)))
    n = 2 if r.random() < 0.9 else 3
    cl, calls, tells, seen = [], [], [], set()
    for _ in range(n):
        c = one_clause(k)
        kk = (c[1][0], tuple(sorted((a, str(b)) for a, b in c[1][1].items())))
        if kk in seen:
            raise Skip
        seen.add(kk)
        cl.append(c[0])
        calls.append(c[1])
        tells.append(c[2])
    j = r.choice((" and ", " and ", " and ", " and then ", " then ", ", ", " and also ", " ", " ", " plus "))
    if k.st.spoken:
        j = j.replace(",", "")
    s = j.join(cl)
    w = templates_wrap(k, s)
    text = k.finish(w)
    k.do(calls[0][0], text, calls, " ".join(tells), None, None, None, {})


def templates_wrap(k, s):
    import templates
    if k.rng.random() > 0.35:
        return s
    return templates.pick(k.rng, "wrap").say(k.rng, {"x": s})


def one_clause(k):
    """(words, call, what is said of it)"""
    r = k.rng
    x = r.random()
    say = lambda t: (lambda _: k.say(t))
    if x < 0.45:
        d = r.choice(("light", "light", "light", "switch", "switch", "fan", "media_player"))
        t = target(k, d, "eeeeaaah")
        on = r.random() < 0.5
        tool = "HassTurnOn" if on else "HassTurnOff"
        return clause(k, "on" if on else "off", t=say(t)), (tool, args(tool, t, {})), told(k, tool, t, {})
    if x < 0.55:
        t = target(k, "cover", "eeea")
        on = r.random() < 0.5
        tool = "HassTurnOn" if on else "HassTurnOff"
        return clause(k, "open" if on else "close", t=say(t)), (tool, args(tool, t, {})), told(k, tool, t, {})
    if x < 0.62:
        t = target(k, "lock", "e")
        return clause(k, "lock", t=say(t)), ("HassTurnOn", args("HassTurnOn", t, {})), told(k, "HassTurnOn", t, {})
    if x < 0.75:
        t = target(k, "light", "eeea")
        p = {"brightness": r.randrange(5, 101, 5)} if r.random() < 0.6 else {"color": r.choice(W.COLORS_COMMON)}
        s = clause(k, "bright", t=say(t), v=lambda _: k.pct(p["brightness"]), n="") if "brightness" in p else clause(k, "color", t=say(t), t_bare=lambda _: k.say(t, True), c=p["color"])
        return s, ("HassLightSet", args("HassLightSet", t, p)), told(k, "HassLightSet", t, p)
    if x < 0.83:
        t = target(k, "climate", "eeeea")
        v = r.randint(60, 80) if k.home.unit == "fahrenheit" else r.randint(15, 26)
        return clause(k, "temp", t=say(t), v=lambda _: k.degrees(v)), ("HassClimateSetTemperature", args("HassClimateSetTemperature", t, {"temperature": v})), told(k, "HassClimateSetTemperature", t, {"temperature": v})
    if x < 0.88:
        t = target(k, "fan", "eeea")
        v = r.randrange(10, 101, 10)
        return clause(k, "fan", t=say(t), v=lambda _: k.pct(v)), ("HassFanSetSpeed", args("HassFanSetSpeed", t, {"percentage": v})), told(k, "HassFanSetSpeed", t, {"percentage": v})
    if x < 0.94:
        t = target(k, "media_player", "eeea")
        tool = r.choice(list(MEDIA_KEYS))
        return clause(k, MEDIA_KEYS[tool], t=say(t)), (tool, args(tool, t, {})), told(k, tool, t, {})
    if "HassStartTimer" not in k.has:
        raise Skip
    d, adj, slots = k.duration()
    return clause(k, "timer", d=d, d_adj=adj), ("HassStartTimer", slots), "Timer set, %s." % span(slots)
