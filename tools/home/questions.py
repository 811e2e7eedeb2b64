# SPDX-License-Identifier: MIT
"""Questions about states and time."""
import datetime
import re

import words as W
from acts import in_floor, some_ent, speak, where
from homes import is_shopping
from talk import Skip, and_list, clock_words, g, is_plural, num_words, the
from todo import list_say


def cap(s):
    return s[:1].upper() + s[1:]


def state_words(e):
    """What there is to say of one entity."""
    st, d, n = e.state, e.domain, cap(the(e.name))
    s = st.get("state", "unknown")
    be = "are" if is_plural(e.name) and d in ("light", "cover") else "is"
    if d == "light":
        x = "%s %s %s" % (n, be, s)
        if s == "on":
            if "color" in st:
                x += ", %s" % st["color"]
            if "brightness" in st:
                x += ", at %d percent" % st["brightness"]
        return x + "."
    if d == "fan" and s == "on":
        return "%s is on at %d percent." % (n, st.get("percentage", 100))
    if d == "cover":
        return "%s %s %s." % (n, be, "%d percent open" % st["position"] if 0 < st.get("position", 0) < 100 else s)
    if d == "climate":
        x = "%s is %s" % (n, "off" if s == "off" else "set to %s degrees" % g(st["temperature"]))
        return x + ("; it is %s degrees now." % g(st["current_temperature"]) if "current_temperature" in st else ".")
    if d == "media_player":
        if s == "playing" and "media_title" in st:
            return "%s is playing %s." % (n, st["media_title"])
        return "%s is %s." % (n, s)
    if d == "sensor":
        return "%s is %s." % (n, reading(e))
    if d == "todo":
        items = st.get("items", [])
        return "On %s: %s." % (the(e.name), and_list(items)) if items else "There is nothing on %s." % the(e.name)
    return "%s is %s." % (n, s)


UNIT_WORDS = {"%": " percent", "°C": " degrees", "°F": " degrees", "W": " watts", "kWh": " kilowatt hours", "ppm": " ppm", "lx": " lux", "km/h": " kilometers per hour"}


def reading(e):
    return e.state["state"] + UNIT_WORDS.get(e.state.get("unit", ""), " " + e.state.get("unit", "")).rstrip()


def ask_live(k, intent, text, q, reply, expect):
    """Answers from what was told, or looks it up first."""
    if k.live:
        return k.answer(intent, text, reply(), expect)
    if "GetLiveContext" not in k.has:
        raise Skip
    k.tick_then_user(intent, text, {"calls": [("GetLiveContext", q)]})
    res = k.run([("GetLiveContext", q)])
    k.turns.append({"at": len(k.messages) - 1, "intent": intent, "expect": expect if res[0].get("success") else {"no": 1}, "clean": k.clean})
    k.reply(reply() if res[0].get("success") else "Sorry, %s." % res[0]["error"])


def yes_no(truth, e):
    return ("Yes, " if truth else "No, ") + (lambda s: s[0].lower() + s[1:] if s.startswith("The ") else s)(state_words(e))


def q_state(k):
    r = k.rng
    d = r.choice(("light", "light", "light", "switch", "switch", "fan", "media_player", "climate", "cover", "cover", "lock", "lock", "vacuum", "lawn_mower", "binary_sensor", "sensor", "sensor"))
    t = some_ent(k, d)
    e = t.ents[0]
    st = e.state
    q = dict(t.slots)
    say = lambda _: k.say(t)
    s = st.get("state")
    if d == "sensor":
        text = speak(k, "q_sensor", t=lambda _: "the " + k.spoken_name(e.name) if r.random() < 0.7 else k.say(t))
        return ask_live(k, "question", text, q, lambda: state_words(e), {"say": [[e.state["state"]]]})
    if d == "binary_sensor":
        on = s == W.BINARY[e.cls][2]
        if e.cls in ("motion", "occupancy") and r.random() < 0.4 and e.area and len([x for x in k.home.of("binary_sensor", e.area) if x.cls in ("motion", "occupancy")]) == 1:
            text = speak(k, "q_motion", **{"in": k.in_area(e.area)})
            return ask_live(k, "question", text, {"area": e.area, "domain": "binary_sensor"}, lambda: yes_no(on, e), {"say": [["yes" if on else "no"]]})
        if e.cls == "moisture" and r.random() < 0.4 and e.area and len([x for x in k.home.of("binary_sensor", e.area) if x.cls == "moisture"]) == 1:
            ln, x = k.line("q_leak", None, {"in": k.in_area(e.area)})
            dry = "dry" in x
            return ask_live(k, "question", k.finish(x), {"area": e.area, "domain": "binary_sensor"}, lambda: yes_no(on != dry, e), {"say": [["yes" if on != dry else "no"]]})
        bw = r.choice(W.BINARY[e.cls][1:])
        if bw in ("clear", "detected"):
            ln, x = k.line("q_binary", lambda z: "{bw}" not in z.text, {"t": say})
            return ask_live(k, "question", k.finish(x), q, lambda: state_words(e), {"say": [[s]]})
        ln, x = k.line("q_binary", None, {"t": say, "bw": bw})
        yn = "{bw}" in ln.text
        truth = s == bw
        return ask_live(k, "question", k.finish(x), q, lambda: yes_no(truth, e) if yn else state_words(e), {"say": [["yes" if truth else "no", s]] if yn else [[s]]})
    if d in ("vacuum", "lawn_mower"):
        ln, x = k.line("q_vacuum" if d == "vacuum" else "q_mower", None, {"t": say})
        return ask_live(k, "question", k.finish(x), q, lambda: state_words(e), {"say": [[s]]})
    x = r.random()
    if d == "light" and x < 0.4:
        if s == "on" and "brightness" in st and x < 0.2:
            return q_value(k, "q_bright", t, q, e, str(st["brightness"]), "%s is at %d percent." % (cap(the(e.name)), st["brightness"]))
        if s == "on" and "color" in st:
            return q_value(k, "q_color", t, q, e, st["color"], "%s is %s." % (cap(the(e.name)), st["color"]))
    if d == "fan" and x < 0.5 and s == "on":
        return q_value(k, "q_fan", t, q, e, str(st["percentage"]), "%s is at %d percent." % (cap(the(e.name)), st["percentage"]))
    if d == "cover" and x < 0.35 and "position" in st:
        return q_value(k, "q_position", t, q, e, "closed" if st["position"] == 0 else "open" if st["position"] == 100 else str(st["position"]), state_words(e), str(st["position"]))
    if d == "climate" and x < 0.7 and s != "off":
        return q_value(k, "q_set", t, q, e, g(st["temperature"]), "%s is set to %s degrees." % (cap(the(e.name)), g(st["temperature"])))
    if d == "media_player" and x < 0.35 and "volume" in st:
        return q_value(k, "q_volume", t, q, e, str(st["volume"]), "The volume of %s is %d percent." % (the(e.name), st["volume"]))
    key = {"cover": "q_open", "lock": "q_locked"}.get(d, "q_on")
    ln, x = k.line(key, None, {"t": say})
    m = ln.text
    pos = s not in ("off", "closed", "unlocked")
    other = re.search(r"\boff\b|closed\b|shut|unlocked|close\b", x) and not re.search(r" or |forget|leave .* (on|open)|left", x)
    open_q = re.match(r"(what|{t}|check|tell|.* or |i wonder|(can|could|would) you|do you (know|happen)|any idea|i'd like|i want|i'm not|please check|let me know|find out|see |look |are you sure|give me|how's|stat)", m) or " or " in x
    if open_q:
        told = [s, g(st["temperature"])] if d == "climate" and s != "off" else [s]      # "on" is not said of what is set to 20 degrees
        return ask_live(k, "question", k.finish(x), q, lambda: state_words(e), {"say": [told]})
    if "forget to lock" in x or "leave" in x and "unlocked" in x:
        truth = not pos
    elif "forget" in x:
        truth = pos
    elif other:
        truth = not pos
    else:
        truth = pos
    if d == "lock" and ("unlocked" in x and "leave" not in x):
        truth = s == "unlocked"
    ask_live(k, "question", k.finish(x), q, lambda: yes_no(truth, e), {"say": [["yes" if truth else "no", s]]})
    k.last = {"calls": [], "undo": None, "target": t, "tool": "question", "params": {}}


def q_value(k, key, t, q, e, val, reply, also=None):
    text = speak(k, key, t=lambda _: k.say(t))
    ask_live(k, "question", text, q, lambda: reply, {"say": [[val] + ([also] if also else [])]})
    k.last = {"calls": [], "undo": None, "target": t, "tool": "question", "params": {}}


def place(k, domain=None):
    """A room to ask about: (words, area); None is the whole home."""
    r = k.rng
    if k.here and r.random() < 0.3:
        return r.choice(("in here", "here", "in this room", "in here")), k.here
    if r.random() < (0.35 if k.hard else 0.2):
        return r.choice(("", "in the house", "anywhere", "at home", "in the whole house", "right now")), None
    a = r.choice(k.home.areas).name
    if domain and r.random() < 0.85:
        es = [e.area for e in k.home.of(domain) if e.area]
        if not es:
            raise Skip
        a = r.choice(es)
    return k.in_area(a), a


def q_which(k):
    r = k.rng
    w, area = place(k, "light")
    es = k.home.of("light", area)
    floor = r.choice(k.home.floors) if k.hard and k.live and k.home.floors and r.random() < 0.25 else None
    if floor:
        w, area = in_floor(k, floor), None
        es = k.home.of("light", floor=floor[0])
    on = [e for e in es if e.state["state"] == "on"]
    if not es or len(on) > (7 if k.hard else 5) or (area is None and len(es) > (20 if k.hard else 14)):
        raise Skip
    q = {"area": area, "domain": "light"} if area else {"domain": "light"}
    ln, x = k.line("q_which_on", None, {"in": w})
    at = " in %s" % the(area) if area else " on %s" % the(floor[0]) if floor else ""
    off_q = "off" in ln.text
    names_ = and_list([the(e.name) + (" in %s" % the(e.area) if sum(y.name == e.name for y in k.home.entities) > 1 else "") for e in on]) if on else ""

    def reply():
        if not on:
            return ("Yes, all lights%s are off." if off_q else "No lights are on%s.") % at
        return ("No, %s %s on." if off_q else "%s %s on%s.") % ((names_ if off_q else cap(names_), "is" if len(on) == 1 and not is_plural(on[0].name) else "are") + (() if off_q else (at,)))
    ask_live(k, "question", k.finish(x), q, reply, {"say": [[e.name] for e in on] or [["no", "off"]]})
    if k.hard and len(on) > 1:
        k.last = {"calls": [], "undo": None, "target": None, "tool": "listed", "params": {"multi": [k.refs.ent(e) for e in on]}}


def q_count(k):
    w, area = place(k, "light")
    es = k.home.of("light", area)
    on = [e for e in es if e.state["state"] == "on"]
    if not es or len(es) > 9:
        raise Skip
    text = speak(k, "q_count", **{"in": w})
    n = len(on)
    ask_live(k, "question", text, {"area": area, "domain": "light"} if area else {"domain": "light"},
             lambda: "%d light%s on%s." % (n, " is" if n == 1 else "s are", " in " + the(area) if area else "") if n else "No lights are on%s." % (" in " + the(area) if area else ""), {"say": [[str(n)] + (["no", "none"] if not n else [num_words(n)])]})


def q_area(k):
    r = k.rng
    w, area = place(k)
    if area is None:
        raise Skip
    es = [e for e in k.home.of(area=area) if e.domain in ("light", "switch", "fan", "media_player")]
    on = [e for e in es if e.state["state"] in ("on", "playing")]
    if not es or len(on) > 5:
        raise Skip
    ln, x = k.line("q_area", None, {"in": w})
    off_q = "off" in ln.text

    def reply():
        if not on:
            return ("Yes, everything in %s is off." if off_q else "Nothing is on in %s.") % the(area)
        s = and_list([the(e.name) for e in on])
        be = "is" if len(on) == 1 and not is_plural(on[0].name) else "are"
        return "No, %s %s on." % (s, be) if off_q else "%s %s on." % (cap(s), be)
    ask_live(k, "question", k.finish(x), {"area": area}, reply, {"say": [[e.name] for e in on] or [["nothing", "off"]]})


def q_locks(k):
    r = k.rng
    es = k.home.of("lock")
    if not es:
        raise Skip
    bad = [e for e in es if e.state["state"] == "unlocked"]
    ln, x = k.line("q_which_locked", None, {})
    which = ln.text.startswith("(which")
    anyq = "any" in ln.text

    def reply():
        if not bad:
            return "No, all doors are locked." if anyq else "All doors are locked." if which else "Yes, everything is locked."
        s = "%s %s unlocked" % (and_list([the(e.name) for e in bad]), "is" if len(bad) == 1 else "are")
        return ("Yes, %s." if anyq else "No, %s.") % s if not which else cap(s) + "."
    ask_live(k, "question", k.finish(x), {"domain": "lock"}, reply, {"say": [[e.name] for e in bad] or [["locked"]]})


def q_windows(k):
    es = [e for e in k.home.of("binary_sensor") if e.cls in ("window", "door")]
    if not es:
        raise Skip
    w, area = place(k, None)
    es = [e for e in es if not area or e.area == area]
    if not es:
        raise Skip
    ln, x = k.line("q_which_open", lambda z: "windows" in z.text or "window" in z.text, {"in": w})
    op = [e for e in es if e.state["state"] == "open"]
    if len(op) > 4 or any(e.cls in ("window", "door") for e in k.home.of("cover", area)):
        raise Skip
    q = {"area": area, "domain": "binary_sensor"} if area else {"domain": "binary_sensor"}
    ask_live(k, "question", k.finish(x), q, lambda: ("%s %s open." % (cap(and_list([the(e.name) for e in op])), "is" if len(op) == 1 else "are")) if op else "No, nothing is open%s." % (" in %s" % the(area) if area else ""),
             {"say": [[e.name] for e in op] or [["no", "nothing"]]})


def q_temp(k):
    r = k.rng
    hum = r.random() < 0.25
    cls = "humidity" if hum else "temperature"
    src = [e for e in k.home.of("sensor") if e.cls == cls and e.area and not re.search(r"fridge|freezer|water|pool|outdoor|outside", e.name.lower())]
    cl = [] if hum else [e for e in k.home.of("climate") if "current_temperature" in e.state and e.area]
    areas = [e.area for e in src + cl]
    if not areas:
        raise Skip
    area = r.choice(areas)
    if len([e for e in src if e.area == area]) > 1 or not [e for e in src if e.area == area] and len([e for e in cl if e.area == area]) > 1:
        raise Skip
    here = area == k.here and r.random() < 0.6
    w = r.choice(("in here", "", "here", "in this room")) if here else k.in_area(area)
    key = "q_humidity" if hum else "q_temp"
    text = speak(k, key, (lambda x: "{room}" not in x.text) if here else None, **{"in": w, "room": lambda _: k.room_say(area)})
    e = next((x for x in src if x.area == area), None)
    q = {"area": area, "domain": "sensor" if e else "climate"}
    e = e or next(x for x in cl if x.area == area)
    val = e.state["state"] if e.domain == "sensor" else g(e.state["current_temperature"])
    ask_live(k, "question", text, q, lambda: "It is %s%s in %s." % (val, " percent" if hum else " degrees", the(area)), {"say": [[val]]})


def q_heat_on(k):
    """Whether a room is heated, its device not named."""
    w, t = where(k, "climate")
    if len(t.ents) != 1:
        raise Skip
    e = t.ents[0]
    on = e.state["state"] != "off"
    ask_live(k, "question", speak(k, "q_heat_on", **{"in": w}), dict(t.slots), lambda: yes_no(on, e), {"say": [["yes" if on else "no"]]})


def q_outside(k):
    """How warm it is outside, where one sensor is called after that."""
    es = [e for e in k.home.of("sensor") if e.cls == "temperature" and re.search(r"outdoor|outside|garden", e.name.lower())]
    if len(es) != 1:
        raise Skip
    e = es[0]
    ask_live(k, "question", speak(k, "q_outside"), {"name": e.name}, lambda: state_words(e), {"say": [[e.state["state"]]]})


def q_no_reading(k):
    """What another room's sensor tells, and this one's does not."""
    r = k.rng
    cls = r.choice(("humidity", "humidity", "temperature"))
    areas = {e.area for e in k.home.of("sensor") if e.cls == cls}
    if cls == "temperature":
        areas |= {e.area for e in k.home.of("climate")}
    without = [a.name for a in k.home.areas if a.name not in areas]
    if not areas - {None} or not without:
        raise Skip
    area = k.here if k.here in without and r.random() < 0.3 else r.choice(without)
    if any(re.search(r"temp|therm|humid|hygro|air", (e.name + e.domain).lower()) for e in k.home.of(area=area)):
        raise Skip
    here = area == k.here and r.random() < 0.4
    text = speak(k, "q_humidity" if cls == "humidity" else "q_temp", (lambda x: "{room}" not in x.text) if here else None,
                 **{"in": r.choice(("in here", "here", "in this room")) if here else k.in_area(area), "room": lambda _: k.room_say(area)})
    k.answer("no device", text, "There is no %s sensor in %s." % (cls, the(area)) if k.clean else "I can't find that here.", {"no": 1})
    k.last = None


def q_set_here(k):
    """What a room's heating is set to, its device not named."""
    w, t = where(k, "climate")
    if len(t.ents) != 1 or t.ents[0].state["state"] == "off":
        raise Skip
    e = t.ents[0]
    v = g(e.state["temperature"])
    ask_live(k, "question", speak(k, "q_set_here", **{"in": w}), dict(t.slots), lambda: "%s is set to %s degrees." % (cap(the(e.name)), v), {"say": [[v]]})


def q_list(k):
    r = k.rng
    es = k.home.of("todo")
    if not es:
        raise Skip
    e = r.choice(es)
    items = e.state.get("items", [])
    x = r.random()
    q = {"name": e.name}
    if x < 0.15:
        i = r.choice(items) if items and r.random() < 0.5 else r.choice(W.ITEMS if is_shopping(e.name) else W.TASKS)
        yes = i in items
        text = speak(k, "q_list_has", i=i, l=lambda _: list_say(k, e))
        return ask_live(k, "question", text, q, lambda: ("Yes, %s is on %s." if yes else "No, %s is not on %s.") % (i, the(e.name)), {"say": [["yes" if yes else "no"]]})
    if x < 0.25:
        text = speak(k, "q_list_count", l=lambda _: list_say(k, e))
        return ask_live(k, "question", text, q, lambda: "There %s %d thing%s on %s." % ("is" if len(items) == 1 else "are", len(items), "" if len(items) == 1 else "s", the(e.name)), {"say": [[str(len(items))]]})
    if is_shopping(e.name) and len([l for l in es if is_shopping(l.name)]) == 1 and r.random() < 0.2:
        text = speak(k, "q_list_shop")
    else:
        text = speak(k, "q_list", l=lambda _: list_say(k, e))
    ask_live(k, "question", text, q, lambda: state_words(e), {"say": [[i] for i in items] or [["nothing"]]})


def q_playing(k):
    w, t = where(k, "media_player")
    es = [e for e in t.ents if e.state["state"] == "playing"] if k.hard and len(t.ents) > 1 else t.ents
    if len(es) != 1:
        raise Skip
    e = es[0]
    on = w or ""
    if not w and t.kind == "ent" and k.rng.random() < 0.5:
        on = "on " + k.ent_say(e)
    text = speak(k, "q_playing", on=on)
    st = e.state
    q = dict(t.slots)
    if st["state"] == "playing" and "media_title" in st:
        return ask_live(k, "question", text, q, lambda: "%s is playing %s." % (cap(the(e.name)), st["media_title"]), {"say": [[st["media_title"]]]})
    if st["state"] in ("off", "idle", "paused"):
        return ask_live(k, "question", text, q, lambda: "Nothing is playing on %s." % the(e.name), {"say": [["nothing"]]})
    raise Skip


def q_time(k):
    r = k.rng
    c = k.home.clock
    key = r.choice(("q_time", "q_time", "q_time", "q_weekday", "q_date", "q_month", "q_year"))
    if k.hard and r.random() < 0.2:
        key = r.choice(("q_tomorrow", "q_tomorrow", "q_yesterday"))
    ln, x = k.line(key, None, {})
    text = k.finish(x)
    date = "%s %d %s" % (c.strftime("%A"), c.day, c.strftime("%B"))
    if key == "q_time":
        reply, exp = "It is %s." % clock_words(c), [["%d:%02d" % (c.hour % 12 or 12, c.minute), c.strftime("%H:%M")]]
    elif key in ("q_tomorrow", "q_yesterday"):
        wd = (c + datetime.timedelta(days=1 if key == "q_tomorrow" else -1)).strftime("%A")
        reply, exp = ("Tomorrow is %s." if key == "q_tomorrow" else "Yesterday was %s.") % wd, [[wd]]
    elif key == "q_weekday":
        m = re.search(r"monday|tuesday|wednesday|thursday|friday|saturday|sunday", x)
        wd = c.strftime("%A")
        reply = "Today is %s." % wd if not m else ("Yes, today is %s." if m.group() == wd.lower() else "No, today is %s.") % wd
        exp = [[wd]]
    elif key == "q_date":
        reply, exp = "It is %s, %d." % (date, c.year), [[str(c.day)], [c.strftime("%B")]]
    elif key == "q_month":
        reply, exp = "It is %s." % c.strftime("%B"), [[c.strftime("%B")]]
    else:
        reply, exp = "It is %d." % c.year, [[str(c.year)]]
    if k.live:
        k.tell()
        return k.answer("time", text, reply, {"say": exp})
    if "GetDateTime" not in k.has:
        raise Skip
    k.tick_then_user("time", text, {"calls": [("GetDateTime", {})]})
    k.run([("GetDateTime", {})])
    k.turns.append({"at": len(k.messages) - 1, "intent": "time", "expect": {"say": exp}, "clean": k.clean})
    k.reply(reply)
