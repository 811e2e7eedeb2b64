# SPDX-License-Identifier: MIT
"""Exchanges that do not act, or not at once: questions, what refers back, what is not there, small talk."""
import re

import acts
import house
import templates
import words as W
from acts import act, args, clamp, norm_num, relative, some_ent, some_group, speak, told
from homes import is_shopping
from refer import GENERIC, KIND, Target, names, norm
from talk import Skip, and_list, clock_words, g, is_plural, num_words, or_list, the


def cap(s):
    return s[:1].upper() + s[1:]


# -- questions ----------------------------------------------------------------

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
        return ask_live(k, "question", k.finish(x), q, lambda: state_words(e), {"say": [[s]]})
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
    if r.random() < 0.2:
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
    on = [e for e in es if e.state["state"] == "on"]
    if not es or len(on) > 5 or (area is None and len(es) > 14):
        raise Skip
    q = {"area": area, "domain": "light"} if area else {"domain": "light"}
    ln, x = k.line("q_which_on", None, {"in": w})
    at = " in %s" % the(area) if area else ""
    off_q = "off" in ln.text
    names_ = and_list([the(e.name) + (" in %s" % the(e.area) if sum(y.name == e.name for y in k.home.entities) > 1 else "") for e in on]) if on else ""

    def reply():
        if not on:
            return ("Yes, all lights%s are off." if off_q else "No lights are on%s.") % at
        return ("No, %s %s on." if off_q else "%s %s on%s.") % ((names_ if off_q else cap(names_), "is" if len(on) == 1 and not is_plural(on[0].name) else "are") + (() if off_q else (at,)))
    ask_live(k, "question", k.finish(x), q, reply, {"say": [[e.name] for e in on] or [["no", "off"]]})


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
        text = speak(k, "q_list_has", i=i, l=lambda _: acts.list_say(k, e))
        return ask_live(k, "question", text, q, lambda: ("Yes, %s is on %s." if yes else "No, %s is not on %s.") % (i, the(e.name)), {"say": [["yes" if yes else "no"]]})
    if x < 0.25:
        text = speak(k, "q_list_count", l=lambda _: acts.list_say(k, e))
        return ask_live(k, "question", text, q, lambda: "There %s %d thing%s on %s." % ("is" if len(items) == 1 else "are", len(items), "" if len(items) == 1 else "s", the(e.name)), {"say": [[str(len(items))]]})
    if is_shopping(e.name) and len([l for l in es if is_shopping(l.name)]) == 1 and r.random() < 0.2:
        text = speak(k, "q_list_shop")
    else:
        text = speak(k, "q_list", l=lambda _: acts.list_say(k, e))
    ask_live(k, "question", text, q, lambda: state_words(e), {"say": [[i] for i in items] or [["nothing"]]})


def q_playing(k):
    w, t = acts.where(k, "media_player")
    if len(t.ents) != 1:
        raise Skip
    e = t.ents[0]
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
    ln, x = k.line(key, None, {})
    text = k.finish(x)
    date = "%s %d %s" % (c.strftime("%A"), c.day, c.strftime("%B"))
    if key == "q_time":
        reply, exp = "It is %s." % clock_words(c), [["%d:%02d" % (c.hour % 12 or 12, c.minute), c.strftime("%H:%M")]]
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


# -- which one? ---------------------------------------------------------------

def which_one(k):
    r = k.rng
    x = r.random()
    if x < 0.4:
        return which_word(k)
    if x < 0.62:
        return which_dup(k)
    if x < 0.8:
        return which_room(k)
    return which_player(k)


DO = {"on": ("HassTurnOn", "on"), "off": ("HassTurnOff", "off")}


def after_ask(k, cands, tool, params, rooms=False, group=None):
    """The answer to "which one?", and the call it leads to."""
    r = k.rng
    k.between()
    k.st = k.style()
    x = r.random()
    if rooms:                     # a room was asked for
        if group:
            areas = [a.name for a in k.home.areas if k.home.of(group, a.name)]
            if not areas:
                return
            area = r.choice(areas)
            t = k.refs.group(group, area)
        else:
            e = r.choice(cands)
            area, t = e.area, k.refs.ent(e)
        text = speak(k, "ans_room", room=lambda _: k.area_say(area) if r.random() < 0.5 else k.room_say(area), in_room=lambda _: k.in_area(area))
        return act(k, tool, text, tool, t, params)
    if x < 0.07:
        text = speak(k, "ans_never")
        return k.answer("chat", text, "Okay.", {"chat": 1})
    if x < 0.22 and len(cands) == 2:
        ts = [k.refs.ent(e) for e in cands]
        text = speak(k, "ans_both")
        calls = [(tool, args(tool, t, params)) for t in ts]
        return k.do(tool, text, calls, " ".join(told(k, tool, t, params) for t in ts), None, None, tool, {})
    if x < 0.3 and len(cands) == 2:
        i = r.randrange(2)
        text = speak(k, "ans_first" if i == 0 else "ans_last")
        return act(k, tool, text, tool, k.refs.ent(cands[i]), params)
    e = r.choice(cands)
    words = [set(norm(c.name).split()) for c in cands]
    own = [w for w in norm(e.name).split() if not any(w in s for c, s in zip(cands, words) if c is not e)]
    p = " ".join(own) if own else norm(e.name)
    text = speak(k, "ans_one", None if own else lambda z: "{p}" not in z.text, t=lambda _: k.article(k.spoken_name(e.name)), p=p)
    act(k, tool, text, tool, k.refs.ent(e), params)


def some_doing(k, domain):
    """A verb for a domain: (template key, tool, params, fill)"""
    r = k.rng
    if domain == "cover":
        return r.choice((("open", "HassTurnOn", {}, {}), ("close", "HassTurnOff", {}, {})))
    if domain == "lock":
        return r.choice((("lock", "HassTurnOn", {}, {}), ("unlock", "HassTurnOff", {}, {})))
    if domain == "light" and r.random() < 0.3:
        if r.random() < 0.5:
            v = r.randrange(10, 101, 10)
            return "bright", "HassLightSet", {"brightness": v}, {"v": k.pct(v), "n": k.number(v)}
        c = r.choice(W.COLORS_COMMON)
        return "color", "HassLightSet", {"color": c}, {"c": c, "t_bare": None}
    if domain == "fan" and r.random() < 0.3:
        v = r.randrange(10, 101, 10)
        return "fan", "HassFanSetSpeed", {"percentage": v}, {"v": k.pct(v)}
    if domain == "climate":
        v = r.randint(60, 80) if k.home.unit == "fahrenheit" else r.randint(15, 26)
        return "temp", "HassClimateSetTemperature", {"temperature": v}, {"v": k.degrees(v)}
    if domain == "media_player" and r.random() < 0.6:
        tool = r.choice(list(acts.MEDIA_KEYS))
        return acts.MEDIA_KEYS[tool], tool, {}, {}
    on = r.random() < 0.5
    return ("on", "HassTurnOn", {}, {}) if on else ("off", "HassTurnOff", {}, {})


def ask_options(k, cands):
    return "Which one, %s?" % or_list([the(e.name) for e in cands])


def which_word(k):
    """A word that several names share: "the lamp"."""
    r = k.rng
    pool = {}
    for e in k.home.entities:
        if e.domain in ("scene", "script", "sensor", "binary_sensor", "todo", "vacuum", "lawn_mower"):
            continue
        for n in names(e):
            ws = norm(n).split()
            for i in range(len(ws)):
                for w in dict.fromkeys((ws[i], " ".join(ws[i:]))):      # in order: a set has none that lasts
                    pool.setdefault(w, set()).add(id(e))
    opts = [w for w, s in pool.items() if len(s) > 1 and w not in ("the", "a", "of", "s") and (w not in GENERIC or w in ("lamp", "tv", "blind", "curtain", "shade", "shutter", "speaker", "fan", "door", "lock", "thermostat"))]
    if not opts:
        raise Skip
    w = r.choice(opts)
    if w in k.refs.by_name or w in k.refs.area_words or any(w == norm(n) or w in norm(n).split() for a in k.home.areas for n in [a.name] + a.aliases) or w in W.COLORS:
        raise Skip
    cands = [e for e in k.home.entities if any(set(w.split()) <= set(norm(n).split()) for n in names(e))]
    doms = {e.domain for e in cands}
    if len(doms) > 1:
        raise Skip
    if k.here:
        near = [e for e in cands if e.area == k.here]
        if len(near) == 1:
            raise Skip
        cands = near or cands
    if not 2 <= len(cands) <= 4 or len({e.name for e in cands}) < len(cands):
        raise Skip
    key, tool, params, fill = some_doing(k, cands[0].domain)
    if tool not in k.has:
        raise Skip
    ln, s = k.line(key, lambda z: "{t_bare}" not in z.text and "(is|are)" not in z.text and "them" not in z.text, {"t": r.choice(("the ", "the ", "the ", "my ", "")) + w, **fill})
    text = k.finish(k.wrap(ln, s))
    k.answer("which", text, ask_options(k, cands), {"ask": [e.name for e in cands]})
    if r.random() < 0.75:
        after_ask(k, cands, tool, params)


def lone(k):
    """A word that is the name of a kind, and of one device only: "the lamp", "the tv"."""
    r = k.rng
    w = r.choice(("lamp", "lamp", "tv", "tv"))
    if w in k.refs.by_name or w in k.refs.area_words:
        raise Skip
    cands = [e for e in k.home.entities if any(w in norm(n).split() for n in names(e))]
    cands = [e for e in cands if k.here and e.area == k.here] or cands
    if len(cands) != 1 or cands[0].domain not in ("light", "switch", "media_player"):
        raise Skip
    e = cands[0]
    key, tool, params, fill = some_doing(k, e.domain)
    t = k.refs.ent(e)
    t.words = r.choice(("the ", "the ", "the ", "my ", "")) + w
    act(k, tool, speak(k, key, lambda z: "{t_bare}" not in z.text, t=t.words, **{a: b for a, b in fill.items() if a != "t_bare"}), tool, t, params)


def which_dup(k):
    """One name in several rooms, and the room not known."""
    r = k.rng
    dups = {}
    for e in k.home.entities:
        if e.area:
            dups.setdefault(norm(e.name), []).append(e)
    dups = [v for v in dups.values() if len(v) > 1 and not any(e.area == k.here for e in v)]
    if not dups:
        raise Skip
    cands = r.choice(dups)
    key, tool, params, fill = some_doing(k, cands[0].domain)
    if tool not in k.has:
        raise Skip
    ln, s = k.line(key, lambda z: "{t_bare}" not in z.text, {"t": k.article(k.spoken_name(cands[0].name)), **fill})
    k.answer("which", k.finish(k.wrap(ln, s)), "In which room, %s?" % or_list([the(e.area) for e in cands]), {"ask": [e.area for e in cands]})
    if r.random() < 0.75:
        after_ask(k, cands, tool, params, rooms=True)


def which_room(k):
    """Lights, but no room is known."""
    r = k.rng
    if k.here and k.home.of("light", k.here) or len(k.home.of("light")) < 2 or len({e.area for e in k.home.of("light")}) < 2:
        raise Skip
    x = r.random()
    if x < 0.25:
        key = r.choice(("light_on", "light_off"))
        tool, params = ("HassTurnOn" if key == "light_on" else "HassTurnOff"), {}
        ln, s = k.line(key, lambda z: "{t}" not in z.text and "nobody" not in z.text, {"in": ""})
    else:
        key, tool, params, fill = some_doing(k, "light")
        w = r.choice(("the lights", "the light", "lights", "light", "the lights", "a light", "some lights"))
        if k.refs.match(w.replace("the ", "").replace("a ", "").replace("some ", ""), None, None):
            raise Skip
        ln, s = k.line(key, lambda z: "{t_bare}" not in z.text, {"t": w, **fill})
    k.answer("which", k.finish(k.wrap(ln, s)), "In which room?", {"ask": ["room"]})
    if r.random() < 0.75:
        after_ask(k, [], tool, params, rooms=True, group="light")


def which_player(k):
    """A kind of which there are several, none of them here."""
    r = k.rng
    d = r.choice(("media_player", "media_player", "media_player", "climate", "fan", "cover"))
    c = ""
    es = k.home.of(d)
    if d == "cover" and es:
        c = r.choice(es).cls
        es = k.home.of(d, cls=c)
    if len(es) < 2 or k.here and k.home.of(d, k.here, cls=c or None) or len(es) > 6:
        raise Skip
    fill = {}
    if d == "media_player":
        key, tool, params = r.choice((("pause_here", "HassMediaPause", {}), ("resume_here", "HassMediaUnpause", {}), ("next_here", "HassMediaNext", {}), ("previous_here", "HassMediaPrevious", {}), ("mute_here", "HassMediaPlayerMute", {}),
                                      ("volume_here", "HassSetVolume", None), ("louder_here", "HassSetVolumeRelative", {"volume_step": 10}), ("quieter_here", "HassSetVolumeRelative", {"volume_step": -10})))
        if params is None:
            v = r.randrange(5, 101, 5)
            params, fill = {"volume_level": v}, {"v": k.pct(v)}
        fill.update({"in": "", "by": ""})
    elif d == "climate":
        v = r.randint(60, 80) if k.home.unit == "fahrenheit" else r.randint(15, 26)
        key, tool, params, fill = "temp_room", "HassClimateSetTemperature", {"temperature": v}, {"v": k.degrees(v), "in": ""}
    else:
        key, tool, params, fill = some_doing(k, d)
        w, pl = k.kind_word(d, c, False)
        if w in k.refs.by_name or (d == "cover" and w in ("door", "window", "gate")):
            raise Skip
        fill["t"] = "the " + w
    if tool not in k.has:
        raise Skip
    ln, s = k.line(key, lambda z: "{room}" not in z.text and "{t_bare}" not in z.text, fill)
    names_ = [e.name for e in es]
    if len(set(names_)) < len(names_):
        raise Skip
    k.answer("which", k.finish(k.wrap(ln, s)), ask_options(k, es) if len(es) <= 4 else "Which one?", {"ask": ["which"]})
    if r.random() < 0.75 and len(es) <= 4:
        after_ask(k, es, tool, params)


def here_decides(k):
    """Several fit, and the one in this room is meant: a name that rooms share, a kind of which there is one here."""
    r = k.rng
    if not k.here:
        raise Skip
    x = r.random()
    if x < 0.5:
        near = [e for e in k.home.of(area=k.here) if len(k.refs.by_name[norm(e.name)]) > 1]
        if not near:
            raise Skip
        e = r.choice(near)
        if len([y for y in near if norm(y.name) == norm(e.name)]) > 1:
            raise Skip
        t = k.refs.ent(e)
        t.words = k.article(k.spoken_name(e.name))
        key, tool, params, fill = some_doing(k, e.domain)
        if r.random() < 0.2:
            o = [y for y in near if norm(y.name) != norm(e.name)]
            if o:
                o = k.refs.ent(r.choice(o))
                if tool in ("HassTurnOn", "HassTurnOff"):
                    text = speak(k, key, lambda z: "(is|are)" not in z.text, t=t.words + " and " + k.article(k.spoken_name(o.ents[0].name)))
                    return k.do(tool, text, [(tool, args(tool, m, {})) for m in (t, o)], " ".join(told(k, tool, m, {}) for m in (t, o)))
    else:
        d = r.choice(("media_player", "media_player", "media_player", "climate", "cover", "fan"))
        es = k.home.of(d, k.here)
        if d == "cover" and es:
            c = r.choice(es).cls
        else:
            c = ""
        if not k.home.of(d, k.here, cls=c or None) or len(k.home.of(d, cls=c or None)) < 2:
            raise Skip
        t = k.refs.group(d, k.here, cls=c)
        t.kind = "here"
        fill = {"in": "", "by": ""}
        if d == "media_player":
            key, tool, params = r.choice((("pause_here", "HassMediaPause", {}), ("resume_here", "HassMediaUnpause", {}), ("next_here", "HassMediaNext", {}), ("previous_here", "HassMediaPrevious", {}), ("mute_here", "HassMediaPlayerMute", {}), ("unmute_here", "HassMediaPlayerUnmute", {}),
                                          ("volume_here", "HassSetVolume", None), ("louder_here", "HassSetVolumeRelative", 1), ("quieter_here", "HassSetVolumeRelative", -1)))
            if params is None:
                v = r.randrange(5, 101, 5)
                params, fill["v"] = {"volume_level": v}, k.pct(v)
            elif params in (1, -1):
                sign = params
                by, step = k.by((10, 5, 30), "percent")
                fill["by"] = by
                ln, s = k.line(key, None, fill)
                return act(k, tool, k.finish(k.wrap(ln, s)), tool, t, {"volume_step": sign * (step if "{by}" in ln.text else 10)})
        elif d == "climate":
            v = r.randint(60, 80) if k.home.unit == "fahrenheit" else r.randint(15, 26)
            key, tool, params = "temp_room", "HassClimateSetTemperature", {"temperature": v}
            fill["v"] = k.degrees(v)
        else:
            key, tool, params, f2 = some_doing(k, d)
            fill.update(f2)
            w, _ = k.kind_word(d, c, len(t.ents) > 1)
            if k.refs.match(w, None, k.here):
                raise Skip
            fill["t"] = "the " + w
        ln, s = k.line(key, lambda z: "{room}" not in z.text and ("{t}" not in z.text or "t" in fill), fill)
        return act(k, tool, k.finish(k.wrap(ln, s)), tool, t, params)
    fill["t"] = t.words
    fill["t_bare"] = k.spoken_name(t.ents[0].name)
    ln, s = k.line(key, None, fill)
    act(k, tool, k.finish(k.wrap(ln, s)), tool, t, params)


# -- not there, not possible --------------------------------------------------

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


COMMON = set("the a an of my me i is it in on off to for and at do does what what's who how when where which with you your this that tell read set make get open turn good night time day home new old one two".split())
CHAT = {
    "thanks": ("You're welcome.",), "hello": ("Hello. What can I do?",), "morning": ("Good morning.",), "evening": ("Good evening.",), "afternoon": ("Good afternoon.",), "night": ("Good night.",),
    "bye": ("Goodbye.",), "howare": ("I'm fine, thank you.",), "who": ("I'm the voice of this home.",), "can": ("I can switch lights and devices, set timers and answer questions about your home.",),
    "joke": ("Why did the lamp go to school? To get brighter.", "I told the fan a joke. It was blown away.", "The thermostat and I had an argument. It got heated."),
    "nevermind": ("Okay.",), "praise": ("Thank you, that is kind.",), "insult": ("Sorry about that.",), "feel": ("I hear you.",), "chat_misc": ("I'm here if you need me.",),
}


def chat(k):
    r = k.rng
    if r.random() < 0.07:
        t = acts.target(k, r.choice(("light", "light", "switch", "fan")), "eeeah")
        return k.answer("chat", speak(k, "dont", t=lambda _: k.say(t)), "Okay, I'll leave it.", {"chat": 1})
    key = r.choice(("thanks", "thanks", "thanks", "hello", "hello", "morning", "evening", "afternoon", "night", "bye", "howare", "who", "can", "joke", "nevermind", "nevermind", "nevermind", "praise", "insult", "feel", "chat_misc", "chat_misc"))
    text = speak(k, key)
    if key in ("night", "morning", "bye", "can", "feel") and any(norm(text.strip(".!?")) in norm(n) or norm(n) in norm(text) for e in k.home.of("scene") + k.home.of("script") for n in names(e)):
        raise Skip
    k.answer("chat", text, r.choice(CHAT[key]), {"chat": 1})
    if key in ("nevermind",):
        k.last = None


# -- what refers back ---------------------------------------------------------

def follow(k):
    """Something that only the exchange before makes clear."""
    last, r = k.last, k.rng
    if not last:
        raise Skip
    tool, t, params = last["tool"], last["target"], last["params"]
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
        t2 = r.choice(list(acts.MEDIA_KEYS))
        return act(k, "follow-up", speak(k, acts.MEDIA_KEYS[t2] + "_here", lambda z: "{t}" not in z.text, **{"in": ""}), t2, t)
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
        base = params["brightness"] if "brightness" in params else acts.base_light(t.ents)
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
            return k.do("follow-up", k.finish(r.choice(("%s more", "another %s", "add %s")) % d if t2 == "HassIncreaseTimer" else r.choice(("%s less", "take off %s")) % d), [(t2, {**extra, **slots})], lambda res: acts.timer_told(t2, res[0], extra), None, None, t2, slots)
    k.do("follow-up", speak(k, key, lambda z: "{d}" not in z.text or bool(d), x=it, d=d), [(t2, {**extra, **slots})], lambda res: acts.timer_told(t2, res[0], extra), None, None, t2, slots)


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


# -- a whole conversation -----------------------------------------------------

PLAN = [  # (weight, exchange)
    (15, acts.onoff), (5, acts.covers), (3, acts.locks), (2.5, acts.scenes), (2.5, acts.everything), (9, acts.lights), (7, acts.lights_rel), (3.5, acts.position), (3.5, acts.fans), (6, acts.temps),
    (12, acts.media), (8, acts.volume), (5, acts.play), (8, acts.vacuum), (6, acts.mower), (9, acts.lists), (6, acts.timer), (5, acts.timer_more), (2, acts.broadcast), (6, acts.multi),
    (7, q_state), (2, q_which), (0.7, q_count), (2.5, acts.wish), (1.2, q_area), (0.8, q_locks), (0.8, q_windows), (2, q_temp), (1.5, q_list), (1, q_playing), (2.5, q_time), (34, which_one), (9, here_decides), (5, lone), (11, no_device), (3.5, cannot), (4, chat),
]
# what is hard to learn comes up more often in training than where it is measured
MORE_OF = {which_one: 3.5, here_decides: 4, no_device: 1.6, lone: 2.5, q_state: 1.3, q_time: 0.7, cannot: 1.2, acts.mower: 0.6, acts.vacuum: 0.8, acts.lists: 0.8}
FNS = [f for _, f in PLAN]
WEIGHTS = [w for w, _ in PLAN]
TRAINING = (FNS, [w * MORE_OF.get(f, 1) for w, f in PLAN])
SAFE = ("messages", "turns")


def attempt(k, fn):
    """One exchange, or nothing at all: a Skip half way leaves no trace."""
    n, m = len(k.messages), len(k.turns)
    home, last, told_, changed, timers = k.home.clock, k.last, k.told, list(k.changed), [dict(t) for t in k.home.timers]
    states = [dict(e.state) for e in k.home.entities]
    k.st = k.style()
    try:
        fn(k)
        return True
    except Skip:
        del k.messages[n:], k.turns[m:]
        k.last, k.told, k.changed, k.home.timers = last, told_, changed, timers
        for e, s in zip(k.home.entities, states):
            e.state = s
        return False


def converse(k, n, plan=None):
    """@n exchanges; a follow-up now and then."""
    done = tries = 0
    fns, weights = plan or (FNS, WEIGHTS)
    while done < n and tries < 60 * n:
        tries += 1
        if tries % 8 == 1:
            k.between()
        fn = follow if k.last and k.rng.random() < 0.36 else k.rng.choices(fns, weights)[0]
        if attempt(k, fn):
            done += 1
            k.between()
    return done
