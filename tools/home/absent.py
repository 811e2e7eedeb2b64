# SPDX-License-Identifier: MIT
"""What is not there, and what cannot be done."""
import re

import words as W
from acts import speak, target
from homes import made_up
from refer import GENERIC, names, norm
from talk import Skip, the
from which import some_doing


def no_device(k):
    r = k.rng
    x = r.random()
    doms = [("on", {}), ("off", {}), ("on", {}), ("off", {})]
    why = None
    if x < 0.44:                  # something that nobody has here
        y = r.random()
        near = r.random() < 0.18
        if near:                  # nearly a name of this home
            n = near_miss(k)
        elif y < 0.55:
            n = r.choice(W.ABSENT)
        elif y < 0.75:
            from homes import made_up
            n = made_up(r).lower() + ("" if r.random() < 0.4 else " " + r.choice(r.choice(list(W.NOUNS.values()))).lower())
        elif y < 0.85:
            n = r.choice(W.WHIMSY).lower()
        else:
            n = (r.choice(W.PLACES) + " " + r.choice(r.choice(list(W.NOUNS.values())))).lower() if r.random() < 0.7 else r.choice(W.PEOPLE).lower() + "'s " + r.choice(r.choice(list(W.NOUNS.values()))).lower()
        if not near and known_words(k, n):
            raise Skip
        key, fill = r.choice(doms + [("q_on", {}), ("q_on", {}), ("open", {}), ("close", {}), ("lock", {}), ("unlock", {}), ("q_open", {}), ("q_locked", {})])
        if r.random() < 0.15:
            v = r.randrange(10, 101, 10)
            key, fill = r.choice((("bright", {"v": k.pct(v), "n": ""}), ("fan", {"v": k.pct(v)}), ("position", {"v": k.pct(v)}), ("brighter", {"by": ""}), ("dimmer", {"by": ""}), ("color", {"c": r.choice(W.COLORS_COMMON), "t_bare": n}), ("temp", {"v": k.degrees(r.randint(16, 24))}), ("pause", {}), ("volume", {"v": k.pct(v), "n": ""})))
        w = k.article(n) if r.random() < 0.85 else n
        if r.random() < 0.15 and not near:
            w += " " + k.in_area(r.choice(k.home.areas).name)
        noisy, k.noisy = k.noisy, 0.0 if near else k.noisy
        try:
            text = speak(k, key, t=w, **fill)
        finally:
            k.noisy = noisy
        why = "There is no %s here." % n
    elif x < 0.64:                # a room that is not there
        n = r.choice(W.ABSENT_ROOMS) if r.random() < 0.8 else r.choice(W.PEOPLE).lower() + "'s " + r.choice(("room", "bedroom", "office"))
        if any(set(n.split()) & set(f.split()) - {"floor", "level"} for f in k.refs.floor_words):
            raise Skip
        if n in k.refs.area_words or any(set(n.split()) & set(norm(a).split()) for a in list(k.refs.area_words)) or known_words(k, n) or any(n in norm(m) for e in k.home.entities for m in names(e)):
            raise Skip
        at = "in " + (n if "'s" in n else "the " + n)
        y = r.random()
        if y < 0.4:
            text = speak(k, r.choice(("light_on", "light_off")), lambda z: "{t}" not in z.text and "nobody" not in z.text and "anymore" not in z.text, **{"in": at})
        elif y < 0.6:
            t = r.choice(("%s lights" % n, "the lights " + at, "the light " + at, "the %s light" % n))
            key, fill = r.choice(doms + [("bright", {"v": k.pct(r.randrange(10, 101, 10)), "n": ""}), ("color", {"c": r.choice(W.COLORS_COMMON), "t_bare": t}), ("q_on", {})])
            text = speak(k, key, t=t, **fill)
        elif y < 0.7:
            text = speak(k, "temp_room", **{"in": at, "room": "the " + n, "v": k.degrees(r.randint(16, 24))})
        elif y < 0.8:
            text = speak(k, r.choice(("pause_here", "next_here", "louder_here", "quieter_here")), **{"in": at, "by": ""})
        elif y < 0.9:
            text = speak(k, r.choice(("q_temp", "q_which_on", "q_area")), **{"in": at, "room": "the " + n})
        elif k.home.of("vacuum"):
            text = speak(k, "vacuum_area", lambda z: "{vac}" not in z.text, **{"in": at, "room": "the " + n})
        else:
            raise Skip
        why = "There is no %s in this home." % n
    elif x < 0.87:                # a room without such a thing
        d = r.choice(("fan", "climate", "media_player", "cover", "lock", "light"))
        area = r.choice(k.home.areas).name
        c = r.choice(("blind", "curtain", "shade", "shutter")) if d == "cover" else ""
        if k.home.of(d, area):
            raise Skip
        if d == "cover" and k.home.of("cover", area):
            raise Skip
        w, pl = k.kind_word(d, c)
        if d in ("climate", "switch") and any(z in norm(n) for e in k.home.entities for n in names(e) for z in ("heat", "radiator", "thermostat", " ac", "air con", "furnace") if e.area in (area, None)):
            raise Skip
        if any(w in norm(n) for e in k.home.of(area=area) for n in names(e)):
            raise Skip
        at = k.in_area(area)
        if d == "lock" or len([e for e in k.home.of(d) if not e.area]):
            raise Skip
        y = r.random()
        if d == "light" and y < 0.5:
            text = speak(k, r.choice(("light_on", "light_off")), lambda z: "{t}" not in z.text and "nobody" not in z.text and "anymore" not in z.text, **{"in": at})
        elif d == "climate" and y < 0.5:
            text = speak(k, "temp_room", **{"in": at, "room": k.room_say(area), "v": k.degrees(r.randint(16, 24))})
        elif d == "media_player" and y < 0.6:
            text = speak(k, r.choice(("pause_here", "next_here", "louder_here", "quieter_here", "resume_here", "play", "play", "q_playing")), **{"in": at, "on": at, "by": "", "q": r.choice(W.GENRES + ["something", "something nice", "music"])})
        elif d == "fan" and y < 0.2:
            text = speak(k, "stuffy", **{"in": at})
        else:
            key, tool, params, fill = some_doing(k, d)
            text = speak(k, key, lambda z: "{t_bare}" not in z.text, t=r.choice(("the %s %s" % (w, at), "the %s %s" % (k.area_say(area), w))), **fill)
        why = "There is no %s in %s." % (w, the(area)) if not pl else "There are no %s in %s." % (w, the(area))
    elif x < 0.93:                # a reading that nothing gives
        w, cls = r.choice((("humidity", "humidity"), ("temperature", "temperature"), ("air quality", "carbon_dioxide"), ("c o two level", "carbon_dioxide"), ("battery level", "battery"), ("power consumption", "power"), ("wind speed", "wind_speed"), ("water level", "water"), ("noise level", None), ("radon level", None), ("uv index", None), ("air pressure", None), ("rainfall", None)))
        if any(e.cls == cls for e in k.home.of("sensor")) or cls == "temperature" and k.home.of("climate") or any(set(w.split()) & set(norm(n).split()) for e in k.home.entities for n in names(e)):
            raise Skip
        text = speak(k, "q_none", x=w)
        why = "There is no sensor for that."
    else:                         # a kind that this home does not have at all
        d = r.choice(("vacuum", "lawn_mower", "climate", "fan", "media_player", "todo", "lock", "cover", "timer"))
        if d == "timer":
            if "HassStartTimer" in k.has:
                raise Skip
            dd, adj, slots = k.duration()
            text = speak(k, "timer", d=dd, d_adj=adj)
            why = "I can't set timers here."
        else:
            if k.home.of(d):
                raise Skip
            if d == "vacuum":
                a = r.choice(k.home.areas).name
                text = speak(k, r.choice(("vacuum_any", "vacuum_area", "vacuum_area", "vacuum", "vacuum_dock")), lambda z: "{vac}" not in z.text, **{"in": k.in_area(a), "room": lambda _: k.room_say(a), "t": r.choice(("the vacuum", "the robot vacuum", "the hoover"))})
                why = "There is no vacuum here."
            elif d == "lawn_mower":
                text = speak(k, r.choice(("mow", "mow_dock")), None, t="the mower")
                why = "There is no mower here."
            elif d == "climate":
                if any(z in norm(n) for e in k.home.entities for n in names(e) for z in ("heat", "radiator", "thermostat", " ac", "furnace")):
                    raise Skip
                text = speak(k, r.choice(("temp_room", "cold", "hot")), lambda z: "{room}" not in z.text, **{"in": "", "v": k.degrees(r.randint(16, 24)), "by": ""})
                why = "There is no heating here that I can control."
            elif d == "todo":
                text = speak(k, r.choice(("list_add", "shop_add", "q_list")), i=r.choice(W.ITEMS), l="the shopping list")
                why = "There is no list here."
            elif d == "media_player":
                w = "" if r.random() < 0.5 else k.in_area(r.choice(k.home.areas).name)
                text = speak(k, r.choice(("pause_here", "next_here", "louder_here", "play", "play", "volume_here", "q_playing", "mute_here")), **{"in": w, "by": "", "q": r.choice(W.GENRES + ["something", "some music", "music"]), "on": w, "v": k.pct(30)})
                why = "There is nothing here that plays music."
            elif d == "lock":
                if any("door" in norm(n) or "gate" in norm(n) for e in k.home.entities for n in names(e)):
                    raise Skip
                text = speak(k, r.choice(("lock", "unlock", "q_locked")), t=r.choice(("the door", "the front door", "the back door")))
                why = "There is no lock here."
            elif d == "fan":
                if any("fan" in norm(n) for e in k.home.entities for n in names(e)):
                    raise Skip
                text = speak(k, r.choice(("on", "off", "faster", "fan_max")), t="the fan", by="")
                why = "There is no fan here."
            else:
                w = r.choice(("blinds", "curtains", "shutters"))
                if any(w[:-1] in norm(n) for e in k.home.entities for n in names(e)):
                    raise Skip
                text = speak(k, r.choice(("open", "close")), t="the " + w)
                why = "There are no %s here." % w
    k.answer("no device", text, why if k.clean else "I can't find that here.", {"no": 1})
    k.last = None


def out_of_range(k):
    """More, or less, than there is."""
    r = k.rng
    x = r.random()
    if x < 0.35:
        t = target(k, "climate", "eeea")
        f = k.home.unit == "fahrenheit"
        v = r.choice((5, 10, 20, 30, 110, 120, 150, 200, 300, 500, 1000)) if f else r.choice((0, 1, 2, 3, 45, 50, 60, 70, 80, 100, 200, 500, 1000))
        text, lim = speak(k, "temp", t=lambda _: k.say(t), v=lambda _: k.degrees(v)), "40 to 95 degrees" if f else "5 to 35 degrees"
    else:
        d, key = r.choice((("light", "bright"), ("light", "bright"), ("fan", "fan"), ("cover", "position"), ("media_player", "volume")))
        t = target(k, d, "eeea")
        v = r.choice((105, 110, 120, 130, 150, 200, 200, 250, 300, 400, 500, 1000))
        text, lim = speak(k, key, t=lambda _: k.say(t), v=lambda _: k.number(v) + r.choice((" percent", " percent", "%" if k.st.digits else " per cent")), n=lambda _: k.number(v)), "0 to 100 percent"
    k.answer("cannot", text, "Sorry, that goes from %s." % lim, {"no": 1})


def no_such_ability(k):
    """A percentage, a colour or a temperature for what is only on or off."""
    t = target(k, k.rng.choice(("switch", "switch", "switch", "switch", "lock")), "e")
    e = t.ents[0]
    if any(re.search(r"lamp|light|bulb|fan|speaker|radio|heat|radiator|boiler|blind|curtain", norm(n)) for n in names(e)):
        raise Skip
    v = k.rng.randrange(10, 101, 10)
    if k.rng.random() < 0.2:
        key, fill = "temp", {"v": lambda _: k.degrees(k.rng.randrange(100, 260, 10))}
    else:
        key, fill = k.rng.choice((("bright", {"v": lambda _: k.pct(v), "n": ""}), ("bright", {"v": lambda _: k.pct(v), "n": ""}), ("color", {"c": k.rng.choice(W.COLORS_COMMON), "t_bare": lambda _: k.say(t, True)})))
    text = speak(k, key, t=lambda _: k.say(t), **fill)
    k.answer("cannot", text, "Sorry, I can't do that.", {"no": 1})
    k.last = None


def near_miss(k):
    """Words that share a part with a device of this home, and mean none: "the floor fan", with a floor lamp."""
    r = k.rng
    e = r.choice(k.home.entities)
    ws = norm(e.name).split()
    if len(ws) < 2 or e.domain in ("scene", "script", "sensor", "binary_sensor", "todo"):
        raise Skip
    if r.random() < 0.5:
        n = r.choice(W.PLACES).lower() + " " + ws[-1]
    else:
        n = ws[0] + " " + r.choice(r.choice([W.NOUNS[d] for d in ("light", "fan", "media_player", "switch")])).lower()
    s = set(n.split())
    if len(s) < 2 or ws[0].endswith("s") and ws[0][:-1] in {x.lower() for x in W.PEOPLE}:
        raise Skip
    known = [set(norm(m).split()) for o in k.home.entities for m in names(o)]
    rooms = {w for a in [*k.refs.area_words, *k.refs.floor_words] for w in a.split()}
    stem = lambda x: {w[:-1] if w.endswith("s") and len(w) > 3 else w for w in x}
    if s & rooms or any(stem(m) <= stem(s) or stem(s) <= stem(m) for m in known):
        raise Skip
    return n


def known_words(k, n):
    """Whether a phrase could mean something in this home."""
    ws = set(norm(n).split()) - {"the", "a", "of"}
    for e in k.home.entities:
        for m in names(e):
            s = set(norm(m).split())
            if ws & s - {"door", "light", "lights", "lamp", "lamps", "fan", "speaker", "tv"} or ws <= s or s <= ws:
                return True
    for a in [*k.refs.area_words, *k.refs.floor_words]:
        if set(a.split()) & ws:
            return True
    sc = {norm(x) for e in k.home.entities for x in names(e)}
    return norm(n) in sc


def cannot(k):
    if k.hard and k.rng.random() < 0.25:
        return cannot_here(k)
    text = speak(k, "cannot")
    s = text.lower()
    ws = set(norm(text).split()) - GENERIC - COMMON
    if any(ws & set(norm(n).split()) for e in k.home.entities for n in names(e)):
        raise Skip
    q = re.match(r"(what|who|how|when|where|which|is it|will it|do i|translate|explain)", s)
    reply = "I don't know the weather." if re.search(r"weather|rain|snow|sunny|umbrella|forecast", s) else \
        "I can't set alarms, but I can set a timer." if "alarm" in s or "wake me" in s else \
        "Sorry, I don't know that." if q else "Sorry, I can't do that."
    k.answer("cannot", text, reply, {"no": 1})


def cannot_here(k):
    """About what is here, and still nothing that a home knows or does."""
    t = target(k, k.rng.choice(("light", "light", "switch", "fan", "media_player", "vacuum", "cover")), "e")
    ln, s = k.line("cannot_home", None, {"t": lambda _: k.say(t)})
    if "{t}" not in ln.text and any(set(norm(s).split()) & set(norm(n).split()) for e in k.home.of("scene") + k.home.of("script") for n in names(e)):
        raise Skip
    k.answer("cannot", k.finish(k.wrap(ln, s)), "Sorry, I don't know that." if re.match(r"(how|when|since|who|where|why)", ln.text) else "Sorry, I can't do that.", {"no": 1})


COMMON = set("the a an of my me i is it in on off to for and at do does what what's who how when where which with you your this that tell read set make get open turn good night time day home new old one two".split())
