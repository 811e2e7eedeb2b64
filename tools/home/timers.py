# SPDX-License-Identifier: MIT
"""Timers, what is to be done later, announcements."""
import words as W
from acts import FIX, args, clause, quiet, speak, target
from talk import Skip, and_list


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
        n = k.any_words(2, errand=False) if k.hard and r.random() < 0.2 else r.choice(W.TIMERS) if r.random() < 0.85 else r.choice(W.PEOPLE).lower()
        return start_timer(k, quiet(k, "timer_named", d=d, d_adj=adj, tn=n), {**slots, "name": n})
    if x < 0.8:
        n = k.any_words(5) if k.hard and r.random() < 0.4 else r.choice(W.REMINDERS)
        return start_timer(k, quiet(k, "remind", d=d, r=n), {**slots, "name": n})
    # delayed commands: the command is kept as it was said
    cmd = command_words(k)
    text = quiet(k, "delayed", d=d, cmd=cmd)
    if cmd not in text:
        raise Skip
    k.do("HassStartTimer", text, [("HassStartTimer", {**slots, "conversation_command": cmd})], "I'll do that in %s." % span(slots), None, None, "HassStartTimer", {})


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


def two_timers(k):
    """Two at once, each with its name."""
    r = k.rng
    (d1, _, s1), (d2, _, s2) = k.duration(), k.duration()
    a, b = r.sample(W.TIMERS, 2)
    calls = [("HassStartTimer", {**s1, "name": a}), ("HassStartTimer", {**s2, "name": b})]
    k.do("HassStartTimer", quiet(k, "timers_two", a=a, b=b, d1=d1, d2=d2), calls, "%s timer set, %s. %s timer set, %s." % (a.capitalize(), span(s1), b.capitalize(), span(s2)), [("HassCancelTimer", {"name": n}) for n in (a, b)], None, None, {})


def for_while(k):
    """On now, and off after a time: a call and a timer with a command."""
    r = k.rng
    t = target(k, r.choice(("light", "light", "switch", "switch", "fan")), "eeeea")
    d, _, slots = k.duration()
    w = k.say(t)
    text = quiet(k, "for_while", t=w, d=d)
    if not {"HassTurnOn", "HassStartTimer"} <= k.has:
        raise Skip
    k.do("HassTurnOn", text, [("HassTurnOn", args("HassTurnOn", t, {})), ("HassStartTimer", {**slots, "conversation_command": "turn off " + w})], "Turned on %s for %s." % (k.desc(t), span(slots)), None, t, "HassTurnOn", {})


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
    m = k.any_words(8) if k.hard and r.random() < 0.3 else r.choice(W.MESSAGES)
    if r.random() < 0.3:
        m = r.choice(("the %s is ready", "we are out of %s", "please bring me the %s", "who took my %s", "there is %s in the kitchen")) % r.choice(W.ITEMS)
    k.do("HassBroadcast", quiet(k, "broadcast", b=m), [("HassBroadcast", {"message": m})], "Announced.", None, None, "HassBroadcast", {})
