# SPDX-License-Identifier: MIT
"""Made-up homes, from a seeded generator.

Names in the held-out part (one in sixteen, by hash) never occur in training
homes; homes for the unseen-homes set use them wherever they can.
"""
import datetime
import hashlib

import words as W
from house import Area, Entity, Home


def held_name(name):
    return hashlib.sha256(name.lower().encode()).digest()[1] < 16


def made_up(rng):
    w = rng.choice(W.SYLLABLES_A)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        w += rng.choice(W.SYLLABLES_B)
    return (w + rng.choice(W.SYLLABLES_C)).capitalize()


def odd(rng):
    """A name without any pattern: to be copied letter by letter."""
    r = rng
    letters = lambda s, n: "".join(r.choice(s) for _ in range(n))
    x = r.random()
    if x < 0.3:
        return letters("bcdfghjklmnpqrstvwxyz", 1).upper() + letters("aeiouy", 1) + letters("abcdefghijklmnopqrstuvwxyz", r.choice((2, 3, 4, 5)))
    if x < 0.45:
        return letters("ABCDEFGHJKLMNPRSTVWXZ", r.choice((2, 3))) + r.choice(("", " ", "-")) + letters("123456789", r.choice((1, 2, 3)))
    if x < 0.6:
        return made_up(r) + r.choice(("", " ", "-")) + letters("123456789", r.choice((1, 2)))
    if x < 0.75:
        return made_up(r) + made_up(r)
    if x < 0.85:
        return made_up(r)[:r.choice((2, 3))] + letters("bcdfgklmnprstvz", 1) + made_up(r).lower()
    w = made_up(r)
    i = r.randrange(len(w))
    return w[:i] + r.choice("äöüéèåøçñ") + w[i + 1:] if i else w + r.choice("éåö")


class Maker:
    def __init__(self, rng, held=False, hard=False):
        self.rng, self.held, self.used, self.hard = rng, held, set(), hard

    def fits(self, name, strict):
        if name.lower() in self.used:
            return False
        if " " not in name:             # plain words like Kitchen or TV belong to everybody
            return True
        return not strict or held_name(name) == self.held

    def draw(self, make):
        for i in range(40):
            n = make()
            if self.fits(n, not self.held or i < 30):
                break
        else:
            while True:
                n = made_up(self.rng) + " " + made_up(self.rng)
                if self.fits(n, True):
                    break
        self.used.add(n.lower())
        return n

    def area_name(self):
        r, x = self.rng, self.rng.random()
        if r.random() < (0.05 if self.hard else 0.01):
            return odd(r)
        if x < 0.72:
            return r.choice(W.ROOMS)
        if x < 0.84:
            return r.choice(W.ROOM_MODS) + " " + r.choice(W.ROOMS)
        if x < 0.93:
            return r.choice(W.PEOPLE) + r.choice(("'s ", "'s ", " ")) + r.choice(("Room", "Bedroom", "Office", "Study", "Bathroom", "Den", "Corner", "Studio", "Workshop"))
        if x < 0.96:
            return r.choice(("Bedroom", "Room", "Office", "Suite", "Cabin", "Studio", "Bathroom")) + " " + r.choice(("One", "Two", "Three", "Four", "1", "2", "3", "4"))
        return made_up(r)

    def device_name(self, nouns, area, lone=0.08):
        r, x = self.rng, self.rng.random()
        noun = r.choice(nouns)
        y = r.random()
        if y < 0.05:
            b = r.choice(W.BRANDS)
            return b if r.random() < 0.6 else b + " " + noun if r.random() < 0.7 else (area or "Old") + " " + b
        if y < (0.11 if self.hard else 0.06):
            return odd(r) + ("" if r.random() < 0.5 else " " + noun)
        if x < 0.22 and area:
            return area + " " + noun
        if x < 0.58:
            return r.choice(W.PLACES) + " " + noun
        if x < 0.66:
            return r.choice(W.PEOPLE) + r.choice(("'s ", "'s ", " ")) + noun
        if x < 0.71:
            return r.choice(W.COLORS).capitalize() + " " + noun
        if x < 0.77:
            return made_up(r) + " " + noun
        if x < 0.81:
            return made_up(r)
        if x < 0.86:
            return r.choice(W.WHIMSY)
        if x < 0.86 + lone:
            return noun
        if x < 0.965:
            return noun + " " + r.choice(("1", "2", "3", "4", "One", "Two", "Three", "A", "B"))
        return r.choice(W.PLACES) + " " + r.choice(W.PLACES) + " " + noun

    def kin(self, noun, area):
        """A name that has this word and something that tells it from others."""
        r, x = self.rng, self.rng.random()
        if x < 0.5:
            return r.choice(W.PLACES) + " " + noun
        if x < 0.62:
            return r.choice(W.PEOPLE) + "'s " + noun
        if x < 0.7:
            return r.choice(W.COLORS).capitalize() + " " + noun
        if x < 0.78:
            return area + " " + noun
        if x < 0.86:
            return (made_up(r) if r.random() < 0.7 else odd(r)) + " " + noun
        if x < 0.93:
            return noun + " " + r.choice(("1", "2", "3", "4", "One", "Two", "Left", "Right", "A", "B"))
        return r.choice(("Left", "Right", "Big", "Small", "Old", "New", "Tall", "Little", "Upper", "Lower", "Front", "Back")) + " " + noun

    def aliases(self, nouns, area):
        r = self.rng
        if not nouns or r.random() > 0.35:
            return []
        out = []
        for _ in range(r.choice((1, 1, 1, 2))):
            def make():
                if r.random() < 0.6:
                    return (r.choice(W.PLACES) + " " + r.choice(nouns)).lower()
                if r.random() < 0.5:
                    return r.choice(nouns).lower()
                return (r.choice(W.WHIMSY) if r.random() < 0.5 else made_up(r)).lower()
            n = make()
            # a bare kind ("light") is no name: it would shadow every request for the room
            if n not in self.used and n not in KIND_WORDS and not (held_name(n) and not self.held):
                self.used.add(n)
                out.append(n)
        return out


KIND_WORDS = {"light", "lights", "lamp", "lamps", "fan", "fans", "blind", "blinds", "curtain", "curtains", "shade", "shades", "shutter", "shutters",
              "door", "doors", "lock", "locks", "window", "windows", "speaker", "speakers", "switch", "plug", "outlet", "socket", "strip", "bulb", "bulbs",
              "drapes", "drape", "gate", "awning", "garage", "heater", "radiator", "vacuum", "mower", "robot", "heating", "temperature", "humidity", "battery",
              "beam", "glow", "panel", "spots", "pendant", "entrance", "ac", "thermostat", "music", "screen", "display", "leds", "timer", "list"}


def state_of(rng, e, unit):
    r, d = rng, e.domain
    pct = lambda: r.choice((r.randrange(5, 101, 5), r.randrange(10, 101, 10), r.randint(1, 100)))
    f = unit == "fahrenheit"
    if d == "light":
        if r.random() < 0.5:
            return {"state": "off"}
        s = {"state": "on"}
        if r.random() < 0.75:
            s["brightness"] = pct()
        x = r.random()
        if x < 0.2:
            s["color"] = r.choice(W.COLORS_COMMON if r.random() < 0.7 else W.COLORS)
        elif x < 0.28:
            s["color_temp"] = r.choice((2200, 2700, 3000, 4000, 5000, 6500))
        return s
    if d == "switch":
        return {"state": r.choice(("on", "off"))}
    if d == "fan":
        if r.random() < 0.5:
            return {"state": "off", "percentage": 0}
        return {"state": "on", "percentage": pct()}
    if d == "cover":
        p = r.choice((0, 0, 0, 100, 100, pct()))
        return {"state": "open" if p else "closed", "position": p} if r.random() < 0.85 or 0 < p < 100 else {"state": "open" if p else "closed"}
    if d == "climate":
        cur = r.randint(58, 84) if f else r.choice((r.randint(14, 28), r.randint(140, 280) / 10))
        tgt = r.randint(60, 80) if f else r.choice((r.randint(15, 26), r.randint(15, 26), r.randint(30, 50) / 2))
        return {"state": r.choice(("heat", "heat", "heat", "cool", "auto", "off")), "temperature": tgt, "current_temperature": cur}
    if d == "lock":
        return {"state": r.choice(("locked", "locked", "unlocked"))}
    if d == "media_player":
        st = r.choice(("playing", "playing", "paused", "off", "idle", "on"))
        s = {"state": st}
        if st != "off" or r.random() < 0.3:
            s["volume"] = r.choice((r.randrange(5, 101, 5), r.randint(1, 100)))
            if r.random() < 0.08:
                s["muted"] = True
        if st in ("playing", "paused") and r.random() < 0.75:
            s["media_title"] = r.choice(W.TITLES)
        return s
    if d == "vacuum":
        return {"state": r.choice(("docked", "docked", "cleaning", "returning", "idle"))}
    if d == "lawn_mower":
        return {"state": r.choice(("docked", "docked", "mowing"))}
    if d == "todo":
        n = r.choice((0, 1, 1, 2, 2, 3, 4, 5))
        pool = W.ITEMS if is_shopping(e.name) else W.BOOKS if "pack" in e.name.lower() else W.TASKS
        items = r.sample(pool, n)
        return {"state": str(n), "items": items} if n else {"state": "0"}
    if d == "sensor":
        nouns, u, lo, hi, dec = W.SENSORS[e.cls]
        if e.cls == "temperature":
            u = "°F" if f else "°C"
            if f:
                lo, hi, dec = 20, 95, r.choice((0, 1))
            else:
                dec = r.choice((0, 1, 1))
        v = r.randint(lo * 10 ** dec, hi * 10 ** dec)
        return {"state": "%g" % (v / 10 ** dec), "unit": u}
    if d == "binary_sensor":
        _, off, on = W.BINARY[e.cls]
        return {"state": on if r.random() < 0.4 else off}
    return {}


def is_shopping(name):
    n = name.lower()
    return any(w in n for w in ("shop", "grocer", "store", "pharma"))


SAME = [("Ceiling Light", "light", ""), ("Main Light", "light", ""), ("Spotlights", "light", ""), ("Ceiling Fan", "fan", ""), ("Window Lamp", "light", ""), ("Thermostat", "climate", ""), ("Bedside Lamp", "light", ""), ("Wall Light", "light", ""),
        ("Lamp", "light", ""), ("Speaker", "media_player", ""), ("Radiator", "climate", ""), ("TV", "media_player", ""), ("Blinds", "cover", "blind"), ("Curtains", "cover", "curtain"), ("LED Strip", "light", ""), ("Fan", "fan", ""), ("Heater", "switch", ""), ("Desk Lamp", "light", ""), ("Pendant", "light", "")]
# kinds that may be a device's whole name
BARE = set("lamp lamps fan blind blinds curtain curtains shade shades shutter shutters speaker plug outlet socket strip bulb bulbs drapes gate awning heater radiator vacuum mower robot ac thermostat screen display leds panel spots pendant".split())


def make_home(rng, held=False, size=None, hard=False):
    r = rng
    m = Maker(r, held, hard)
    h = Home()
    h.unit = "fahrenheit" if r.random() < 0.25 else "celsius"
    floors = [(n, list(a) if r.random() < 0.7 else []) for n, a in r.choice(W.FLOORS)] if r.random() < 0.5 else []
    h.floors = floors
    for n, al in floors:
        m.used.add(n.lower())
        m.used.update(al)
    size = size or r.choice((1, 1, 2, 2, 3, 3, 4, 4) if hard else (0, 1, 1, 2, 2, 2, 3, 3, 4))
    n_areas = r.randint(*((1, 3), (2, 5), (3, 6), (4, 8), (6, 11))[size])
    for _ in range(n_areas):
        n = m.draw(m.area_name)
        al = []
        if r.random() < 0.25:
            pool = W.ROOM_ALIASES.get(n) or [made_up(r).lower(), r.choice(W.ROOMS).lower(), r.choice(W.PEOPLE).lower() + "'s room"]
            al = [a for a in r.sample(pool, r.choice((1, 1, min(2, len(pool))))) if a not in m.used]
            m.used.update(al)
        h.areas.append(Area(n, r.choice(floors)[0] if floors and r.random() < 0.9 else None, al))

    def add(domain, area, nouns, cls="", lone=0.08, name=None):
        n = name or m.draw(lambda: fix(m.device_name(nouns, area, lone)))
        if name:
            m.used.add(n.lower())
        e = Entity(n, domain, area, cls, m.aliases(nouns, area))
        h.entities.append(e)
        return e

    def fix(n):     # most bare kinds are no names; draw() looks at what comes out
        return n if n.lower() not in KIND_WORDS or n.lower() in BARE and r.random() < 0.6 else r.choice(W.PLACES) + " " + n

    rich = r.choice((0.35, 0.6, 0.85))
    climate = r.random() < 0.75
    media = r.random() < 0.75
    for a in h.areas:
        for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3) if size < 4 else (0, 1, 1, 1, 2))):
            add("light", a.name, W.NOUNS["light"])
        for d, p in (("switch", 0.45), ("fan", 0.22), ("cover", 0.4), ("climate", 0.25 * climate), ("media_player", 0.4 * media), ("sensor", 0.2), ("binary_sensor", 0.2), ("lock", 0.1)):
            k = 0
            while r.random() < p * rich * (0.5 if k else 1) and k < 3:
                k += 1
                if d == "cover":
                    cls = r.choice(("blind", "blind", "blind", "curtain", "curtain", "shade", "shade", "shutter", "awning", "window", "garage", "gate", "door"))
                    add(d, a.name, W.COVERS[cls], cls)
                elif d == "sensor":
                    cls = r.choice(("temperature", "temperature", "humidity", "humidity", *W.SENSORS))
                    add(d, a.name, W.SENSORS[cls][0], cls, name=None if r.random() < 0.5 else m.draw(lambda: a.name + " " + r.choice(W.SENSORS[cls][0])))
                elif d == "binary_sensor":
                    cls = r.choice(list(W.BINARY))
                    add(d, a.name, W.BINARY[cls][0], cls, lone=0.05)
                elif d == "switch":
                    e = add(d, a.name, W.NOUNS[d], lone=0.2)
                    if r.random() < 0.5:
                        e.cls = W.SWITCH_CLASSES.get(e.name.split()[-1], "") or r.choice(("", "", "outlet", "switch"))
                else:
                    add(d, a.name, W.NOUNS[d], lone=0.25 if d in ("media_player", "climate") else 0.08)
    some = lambda p: r.random() < p
    spot = lambda p=0.6: r.choice(h.areas).name if some(p) else None
    if some(0.5):
        for _ in range(r.choice((1, 1, 2))):
            add("lock", spot(), W.NOUNS["lock"], lone=0.5)
    if some(0.4):
        add("vacuum", spot(), W.NOUNS["vacuum"] + W.WHIMSY[:8], lone=0.3)
    if some(0.3):
        add("lawn_mower", spot(), W.NOUNS["lawn_mower"], lone=0.3)
    if some(0.6):
        for _ in range(r.choice((1, 1, 2))):
            add("todo", None, W.LISTS, name=m.draw(lambda: r.choice(W.LISTS)))
    if some(0.45):
        for _ in range(r.choice((1, 2, 3))):
            add("scene", None, W.SCENES, name=m.draw(lambda: r.choice(W.SCENES)))
    if some(0.25):
        for _ in range(r.choice((1, 2))):
            add("script", None, W.SCRIPTS, name=m.draw(lambda: r.choice(W.SCRIPTS)))
    if some(0.3):
        cls = r.choice(("temperature", "temperature", "power", "energy", "wind_speed", "water", "battery"))
        add("sensor", spot(0.3), W.SENSORS[cls][0], cls, name=m.draw(lambda: r.choice(("Outdoor ", "Outside ", "House ", "Garden ", "Car ", "Solar ", "Grid ")) + r.choice(W.SENSORS[cls][0])))
    if climate and not h.of("climate") and some(0.5):
        add("climate", spot(), W.NOUNS["climate"], lone=0.5)
    for p in (0.28, 0.55, 0.25) if hard else (0.28,):
        if not some(p) or len(h.areas) < 2:     # the same name in several rooms
            continue
        kind, d, cls = r.choice(SAME)
        if m.fits(kind, not held):
            m.used.add(kind.lower())
            for a in r.sample(h.areas, min(len(h.areas), r.choice((2, 2, 3, 3, 4) if hard else (2, 2, 3)))):
                h.entities.append(Entity(kind, d, a.name, cls))
    if hard and some(0.55):                     # a word that several things of one room share
        for _ in range(r.choice((1, 1, 2))):
            w = "lamp" if some(0.3) else r.choice(list(W.ALIKE))
            d, cls, _ = W.ALIKE[w]
            a = r.choice(h.areas).name
            for _ in range(r.choice((1, 2, 2, 2, 2, 3, 3, 4))):
                add(d, a, [], cls, name=m.draw(lambda: fix(m.kin(w.upper() if w == "tv" else w.capitalize(), a))))
    if not h.entities:
        add("light", h.areas[0].name, W.NOUNS["light"])
    order = {a.name: i for i, a in enumerate(h.areas)}
    if some(0.8):
        h.entities.sort(key=lambda e: order.get(e.area, 99))
    else:
        r.shuffle(h.entities)
    h.entities = h.entities[:40]
    x = r.random()
    if x < 0.2:      # people who write everything small
        low = lambda s: s.lower() if s else s
        for e in h.entities:
            e.name, e.area = e.name.lower(), low(e.area)
        for a in h.areas:
            a.name, a.floor = a.name.lower(), low(a.floor)
        h.floors = [(n.lower(), al) for n, al in h.floors]
    elif x < 0.25:
        cap = lambda s: s[:1] + s[1:].lower() if s and s.lower() != "tv" else s
        for e in h.entities:
            e.name = cap(e.name)
    awake(r, h)
    return h


def awake(r, h):
    """States for everything in the home, and a moment."""
    for e in h.entities:
        e.state = state_of(r, e, h.unit)
    h.clock = datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=r.randrange(0, 60 * 24 * 365 * 6))
