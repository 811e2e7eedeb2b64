# SPDX-License-Identifier: MIT
"""What is meant when several fit: asking back, the room that decides, the only one of its kind."""
import words as W
from acts import act, args, speak, told
from players import MEDIA_KEYS
from refer import GENERIC, KIND, names, norm
from talk import Skip, or_list, the


KINDS = {}       # the kinds that a word may mean; a lamp goes by its name
for _key, (_one, _) in KIND.items():
    for _w in set(_one) - {"lamp"}:
        KINDS.setdefault(_w, []).append(_key)


def which_one(k):
    r = k.rng
    if k.hard and r.random() < 0.45:
        return several_here(k)
    x = r.random()
    if x < 0.4:
        return which_word(k)
    if x < 0.62:
        return which_dup(k)
    if x < 0.8:
        return which_room(k)
    return which_player(k)


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
        tool = r.choice(list(MEDIA_KEYS))
        return MEDIA_KEYS[tool], tool, {}, {}
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
        if len(near) == 1 or not near and w in KINDS and any(k.home.of(d, k.here, cls=c or None) for d, c in KINDS[w]):
            raise Skip                  # the one that is here; the kind of which there is one here
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


def alike(k, area):
    """{word: devices of the room whose name has it}, for words that two or more have, and that mean nothing else."""
    pool = {}
    for e in k.home.of(area=area):
        for w in {x for n in names(e) for x in norm(n).split()} & set(W.ALIKE):
            pool.setdefault(w, []).append(e)
    out = {}
    for w, es in sorted(pool.items()):
        dom, cls, _ = W.ALIKE[w]
        kind = (dom, cls if dom == "cover" else "")
        if len(es) < 2 or len(es) > 4 or {e.domain for e in es} != {dom} or len({e.name for e in es}) < len(es) or w in k.refs.by_name or w in k.refs.area_words:
            continue
        if kind in KIND and w in KIND[kind][0] and w != "lamp" and len(k.home.of(dom, area, cls=cls or None)) > len(es):
            continue                    # another of the kind, called something else: nobody knows which are meant
        out[w] = es
    return out


NUMBERS = {2: "two", 3: "three", 4: "four"}


def several_here(k):
    """A word that several things of one room share: "the lamp" is to be asked about, "both lamps" is not."""
    r = k.rng
    named = r.random() < 0.22                # the room is said, and need not be this one
    rooms = [a.name for a in k.home.areas if alike(k, a.name)] if named else [k.here] if k.here else []
    if not rooms:
        raise Skip
    area = r.choice(rooms)
    pool = alike(k, area)
    if named:                                # "the kitchen fan" is a room and a kind
        pool = {w: es for w, es in pool.items() if w in ("lamp", "tv") or w not in GENERIC}
    if not pool:
        raise Skip
    w = r.choice(list(pool))
    cands = pool[w]
    at = ""
    if named:
        if any(norm(a + " " + w) in k.refs.by_name for a in [area] + k.home.area(area).aliases):
            raise Skip
        at = " " + k.in_area(area)
    elif r.random() < 0.18:
        at = r.choice((" in here", " here", " in this room", " over here"))
    key, tool, params, fill = some_doing(k, cands[0].domain)
    if tool not in k.has:
        raise Skip
    fill = {a: b for a, b in fill.items() if a != "t_bare"}
    x = r.random()
    many = W.ALIKE[w][2]
    if x < 0.22:                             # all that bear the word
        n = len(cands)
        forms = ["both %s" % many, "both the %s" % many, "both of the %s" % many, "the two %s" % many, "both my %s" % many] if n == 2 else ["all %s %s" % (NUMBERS[n], many), "the %s %s" % (NUMBERS[n], many), "all %s of the %s" % (NUMBERS[n], many)]
        ts = [k.refs.ent(e) for e in cands]
        text = speak(k, key, lambda z: "{t_bare}" not in z.text and "(is|are)" not in z.text and " it" not in z.text, t=r.choice(forms) + at, **fill)
        return k.do(tool, text, [(tool, args(tool, t, params)) for t in ts], " ".join(told(k, tool, t, params) for t in ts), None, None, tool, {})
    t = r.choice(("the ", "the ", "the ", "the ", "my ", "our ", "that ", "")) + (k.area_say(area) + " " + w if named and r.random() < 0.35 else w + at)
    ln, s = k.line(key, lambda z: "{t_bare}" not in z.text and "(is|are)" not in z.text and "them" not in z.text, {"t": t, **fill})
    k.answer("which", k.finish(k.wrap(ln, s)), ask_options(k, cands), {"ask": [e.name for e in cands]})
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
        ln, s = k.line(key, lambda z: "{room}" not in z.text and ("{t}" not in z.text or "t" in fill) and not (len(t.ents) > 1 and "thermostat" in z.text), fill)
        return act(k, tool, k.finish(k.wrap(ln, s)), tool, t, params)
    fill["t"] = t.words
    fill["t_bare"] = k.spoken_name(t.ents[0].name)
    ln, s = k.line(key, None, fill)
    act(k, tool, k.finish(k.wrap(ln, s)), tool, t, params)
