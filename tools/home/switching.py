# SPDX-License-Identifier: MIT
"""On and off, open and close, lock and unlock, scenes, whole rooms."""
import re

from acts import FIX, act, args, in_floor, some_ent, speak, target, templates_wrap, undo_of, where
from refer import Target, names, norm
from talk import Skip, and_list


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
    (("radiator",), ("heat up the radiator", "warm up the radiator")),
    (("heater",), ("warm up the heater", "start the heater")),
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
        es = [e for e in k.home.entities if e.domain not in ("sensor", "binary_sensor", "scene", "script", "todo") and any(w in norm(n).split() for n in names(e) for w in words)]
        es = es if all(e.domain in (("light", "switch") if "christmas" in words else ("switch", "media_player", "fan")) for e in es) else []
        if len(es) == 1 and not (words[0] in ("radiator", "heater") and k.home.of("climate")):
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


def negated(k):
    """What should not be: "the fan should not be on"."""
    r = k.rng
    key, tool, doms = r.choice((("off_not", "HassTurnOff", ("light", "light", "switch", "fan", "media_player")), ("off_not", "HassTurnOff", ("light", "light", "switch", "fan", "media_player")), ("on_not", "HassTurnOn", ("light", "light", "switch", "fan")),
                                ("close_not", "HassTurnOff", ("cover",)), ("open_not", "HassTurnOn", ("cover",)), ("lock_not", "HassTurnOn", ("lock",))))
    t = target(k, r.choice(doms), "eeeea")
    act(k, tool, speak(k, key, t=lambda _: k.say(t)), tool, t)


def all_but(k):
    """A room's lights but one: the others, by name."""
    r = k.rng
    rooms = [a.name for a in k.home.areas if 2 <= len(k.home.of("light", a.name)) <= 6]
    if not rooms:
        raise Skip
    area = k.here if k.here in rooms and r.random() < 0.6 else r.choice(rooms)
    es = k.home.of("light", area)
    kept = r.choice(es)
    ts = [k.refs.ent(e) for e in es if e is not kept]
    on = r.random() < 0.4
    tool = "HassTurnOn" if on else "HassTurnOff"
    at = r.choice(("in here", "", "here", "in this room")) if area == k.here and r.random() < 0.6 else k.in_area(area)
    text = speak(k, "but_on" if on else "but_off", **{"t": lambda _: k.ent_say(kept), "in": at, "kind": r.choice(("lights", "lights", "lights", "lamps"))})
    k.do(tool, text, [(tool, args(tool, t, {})) for t in ts], "%s %s." % ("Turned on" if on else "Turned off", and_list([k.desc(t) for t in ts])), [c for t in ts for c in undo_of(k, tool, t, {}) or []], None, tool, {"multi": ts})


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
