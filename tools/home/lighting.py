# SPDX-License-Identifier: MIT
"""Brightness, colours and what makes a room darker."""
import words as W
from acts import FIX, act, clamp, relative, some_group, speak, target, where
from switching import corrected
from talk import Skip, num_words

CTEMPS = {"warm white": 2700, "warm": 2700, "soft white": 2700, "neutral white": 4000, "neutral": 4000, "cool white": 6500, "cold white": 6500, "daylight": 6500, "cool": 6500}


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
    v = r.choice((33, 67)) if k.hard and r.random() < 0.04 else v
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
