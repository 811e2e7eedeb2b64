# SPDX-License-Identifier: MIT
"""Several requests in one sentence."""
import words as W
from acts import args, clause, some_group, speak, target, templates_wrap, told, undo_of, where
from players import MEDIA_KEYS
from talk import Skip, and_list, the
from timers import span


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
        tool = r.choice(list(MEDIA_KEYS))
        if k.hard and r.random() < 0.5:
            w, t = where(k, "media_player")
            return clause(k, MEDIA_KEYS[tool] + "_here", **{"in": w}), (tool, args(tool, t, {})), told(k, tool, t, {})
        t = target(k, "media_player", "eeea")
        return clause(k, MEDIA_KEYS[tool], t=say(t)), (tool, args(tool, t, {})), told(k, tool, t, {})
    if "HassStartTimer" not in k.has:
        raise Skip
    d, adj, slots = k.duration()
    return clause(k, "timer", d=d, d_adj=adj), ("HassStartTimer", slots), "Timer set, %s." % span(slots)


AND_THEN = {  # what may come second, of the same player: the lines for it, and after what it makes sense
    "louder": ("HassSetVolumeRelative", ("next", "previous", "resume", "unmute", "on")), "quieter": ("HassSetVolumeRelative", ("next", "previous", "resume", "unmute", "on")),
    "volume": ("HassSetVolume", ("next", "previous", "resume", "unmute", "on")), "next": ("HassMediaNext", ("louder", "quieter", "volume", "unmute", "resume", "on")),
    "previous": ("HassMediaPrevious", ("louder", "quieter", "volume", "unmute", "resume")), "pause": ("HassMediaPause", ("mute", "quieter")), "mute": ("HassMediaPlayerMute", ("pause",)),
    "off": ("HassTurnOff", ("pause", "mute")),
}


def two_of_one(k):
    """Two things of one player: "next song and turn it up"."""
    r = k.rng
    second = r.choice(list(AND_THEN))
    first = r.choice(AND_THEN[second][1])
    tools = {"on": "HassTurnOn", "louder": "HassSetVolumeRelative", "quieter": "HassSetVolumeRelative", "volume": "HassSetVolume", **{b: a for a, b in MEDIA_KEYS.items()}}
    if first == "on" or r.random() < 0.4:
        t = target(k, "media_player", "eeeeeea")
        key, fill = first, {"t": lambda _: k.say(t)}
    else:
        w, t = where(k, "media_player")
        key, fill = first + "_here", {"in": w}

    def one(what, key, tool, fill):
        if what in ("louder", "quieter"):
            by, step = k.by((10, 5, 30), "percent")
            ln, s = k.line(key, lambda z: not z.plain, {**fill, "by": by})
            p = {"volume_step": (step if "{by}" in ln.text else 10) * (1 if what == "louder" else -1)}
        elif what == "volume":
            v = r.randrange(5, 101, 5)
            p = {"volume_level": v}
            s = clause(k, key, **fill, v=lambda _: k.pct(v), n=lambda _: k.number(v))
        else:
            p, s = {}, clause(k, key, **fill)
        return s, (tool, args(tool, t, p)), told(k, tool, t, p)

    a = one(first, key, tools[first], fill)
    b = one(second, "and_" + second, AND_THEN[second][0], {})
    j = r.choice((" and ", " and ", " and ", " and then ", " then ", " and also ", " plus ", " and please "))
    text = k.finish(templates_wrap(k, a[0] + j + b[0]))
    k.do(a[1][0], text, [a[1], b[1]], "%s %s" % (a[2], b[2]), None, None, None, {})
