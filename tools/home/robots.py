# SPDX-License-Identifier: MIT
"""Vacuums and mowers."""
from acts import act, some_ent, speak
from talk import Skip, the


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
