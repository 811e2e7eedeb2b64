# SPDX-License-Identifier: MIT
"""How people refer to things at home, and which slots that means (docs/home-prompt.md, section 6)."""

KIND = {  # domain (and device class): singular and plural words for it
    ("light", ""): (["light", "light", "lamp"], ["lights", "lights", "lights", "lights", "lamps"]),
    ("fan", ""): (["fan"], ["fans"]),
    ("climate", ""): (["thermostat", "heating", "heat", "heater", "ac", "air conditioning"], ["thermostats"]),
    ("lock", ""): (["lock", "door"], ["locks", "doors"]),
    ("media_player", ""): (["speaker", "music", "stereo", "player"], ["speakers"]),
    ("switch", ""): (["switch"], ["switches"]),
    ("switch", "outlet"): (["outlet", "plug", "socket"], ["outlets", "plugs", "sockets"]),
    ("cover", "blind"): (["blind"], ["blinds", "blinds"]),
    ("cover", "curtain"): (["curtain"], ["curtains", "curtains", "drapes"]),
    ("cover", "shade"): (["shade"], ["shades", "shades"]),
    ("cover", "shutter"): (["shutter"], ["shutters"]),
    ("cover", "garage"): (["garage door"], ["garage doors"]),
    ("cover", "awning"): (["awning"], ["awnings"]),
    ("cover", "gate"): (["gate"], ["gates"]),
    ("cover", "window"): (["window"], ["windows"]),
    ("cover", "door"): (["door"], ["doors"]),
}
WITH_DOMAIN = {"HassTurnOn", "HassTurnOff", "HassSetPosition"}   # tools whose room targets carry domain and class
GENERIC = {w for s, p in KIND.values() for x in (s, p) for w in x} | {"tv", "the", "a", "one", "two", "1", "2", "3", "4", "three", "four", "b", "of", "and", "room", "door", "list", "sensor"}


def norm(s):
    return " ".join(s.lower().replace("'s", "s").replace("'", "").split())


def names(e):
    return [e.name] + e.aliases


class Target:
    """What a request is about: kind, the slots it means, the entities it touches."""

    def __init__(self, kind, ents, slots, domain, cls="", area=None, floor=None, words=None):
        self.kind, self.ents, self.slots, self.domain, self.cls = kind, ents, slots, domain, cls
        self.area, self.floor, self.words = area, floor, words

    def args(self, tool):
        s = dict(self.slots)
        if tool not in WITH_DOMAIN and self.kind != "ent":
            if tool.startswith("HassTurn"):
                return s
            s.pop("domain", None)
            s.pop("device_class", None)
        return s

    def key(self):
        return tuple(sorted(self.slots.items()))


class Refs:
    """Lookups in one home, remade whenever names change (they do not)."""

    def __init__(self, home):
        self.home = home
        self.by_name = {}
        self.word_sets = []
        for e in home.entities:
            for n in {norm(x) for x in names(e)}:
                self.by_name.setdefault(n, []).append(e)
            for n in names(e):
                self.word_sets.append((frozenset(norm(n).split()), e))
        self.area_words = {}
        for a in home.areas:
            for n in [a.name] + a.aliases:
                self.area_words.setdefault(norm(n), a)
        self.floor_words = {norm(n) for f, al in home.floors for n in [f, *al]}
        self.dup = {n for n, es in self.by_name.items() if len(es) > 1}

    def match(self, phrase, area=None, here=None, domains=None):
        """Entities that a phrase can mean, best rule first; one: resolved, several: ask."""
        p = norm(phrase)
        hits = self.by_name.get(p, [])
        if area:
            inside = [e for e in hits if e.area == area] or [e for e in self.by_name.get(norm(area) + " " + p, []) if e.area == area]
            hits = inside
        if not hits:
            ws = set(p.split())
            if not ws - GENERIC:
                return []
            seen = []
            for s, e in self.word_sets:
                if ws <= s and e not in seen and (not area or e.area == area) and (not domains or e.domain in domains):
                    seen.append(e)
            hits = seen
        if len(hits) > 1 and here and not area:
            near = [e for e in hits if e.area == here]
            if near:
                hits = near
        return hits

    def ent(self, e, here=None):
        slots = {"name": e.name}
        if len([x for x in self.by_name[norm(e.name)] if x.name == e.name]) > 1 and e.area:
            slots["area"] = e.area
        return Target("ent", [e], slots, e.domain, e.cls, e.area)

    def group(self, domain, area=None, floor=None, cls=""):
        es = self.home.of(domain, area, floor, cls or None)
        slots = {}
        if area:
            slots["area"] = area
        if floor:
            slots["floor"] = floor
        slots["domain"] = domain
        if cls:
            slots["device_class"] = cls
        return Target("area" if area else "floor" if floor else "all", es, slots, domain, cls, area, floor)

    def implicit(self, domain, here, cls=""):
        """Rule 4. A Target, or the candidates to ask about, or []."""
        es = self.home.of(domain, cls=cls or None)
        if not es:
            return []
        if len(es) == 1:
            return self.ent(es[0])
        if here and self.home.of(domain, here, cls=cls or None):
            t = self.group(domain, here, cls=cls)
            t.kind = "here"
            return t
        return es
