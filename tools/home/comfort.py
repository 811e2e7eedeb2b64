# SPDX-License-Identifier: MIT
"""Covers part of the way, fans, heating."""
import re

from acts import act, clamp, norm_num, relative, some_group, speak, target, where
from talk import Skip


def position(k):
    r = k.rng
    t = target(k, "cover", "eeeeeeaaah")
    if t.kind == "here" and len(t.ents) > 1:
        raise Skip
    v = r.choice((r.randrange(5, 100, 5), r.randrange(10, 100, 10), r.randint(1, 99)))
    v = r.choice((33, 67)) if k.hard and r.random() < 0.12 else v
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
        if t.ents and (len(t.ents) > 1 or "thermostat" in k.refs.by_name and k.refs.by_name["thermostat"] != t.ents):
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
