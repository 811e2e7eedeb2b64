# SPDX-License-Identifier: MIT
"""What recognisers and fingers make of a sentence.

hear() uses confusions measured by speaking generated sentences with five
synthetic voices and recognising them with PocketSphinx (confuse.py wrote
confusions.json): for each word what was heard instead and how often, and how
often words are lost or come up from nowhere.
"""
import json
import os

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "confusions.json")
try:
    with open(_path, encoding="utf-8") as f:
        _T = json.load(f)
except FileNotFoundError:
    _T = {"sub": {}, "ins": ["the", "a", "and"], "phone": {}}
# words that carry the request alone: they are never lost, nor turned into each other
KEY = set("on off up down open close closed shut lock unlock locked unlocked no not first second both more less brighter dimmer darker louder quieter warmer cooler mute unmute pause resume next previous start stop add remove cancel".split())
KEY |= set("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred half quarter".split())
_FIT = {w: {x: n for x, n in c.items() if w not in KEY or x != "-" and x not in KEY} for w, c in _T["sub"].items()}
SUB = {w: (list(c), list(c.values())) for w, c in _FIT.items() if c}
INS = _T["ins"]

# words that sound alike, for words that the measured sentences did not hold
ALIKE = {"lamp": ["lamb", "land"], "light": ["like", "right", "lite"], "lights": ["likes", "rights"], "fan": ["van", "than"], "blinds": ["lines", "blind"], "door": ["doors", "dora"],
         "to": ["two", "too", "the"], "two": ["to", "too"], "four": ["for"], "for": ["four"], "the": ["a", "that", "they"], "off": ["of"], "of": ["off"], "on": ["an", "and", "own"], "a": ["the", "uh"], "eight": ["ate"],
         "kitchen": ["kitchens", "chicken"], "please": ["police", "peas"], "ceiling": ["sealing"], "hall": ["all", "whole"], "sink": ["think"], "bed": ["bad"], "blue": ["blew"], "red": ["read"], "set": ["said", "sat"],
         "turn": ["term", "town", "turned"], "switch": ["which", "switched"], "dim": ["them", "jim"], "lock": ["look", "log"], "close": ["clothes"], "shut": ["shot", "shots"], "in": ["and", "an"], "and": ["in", "an", "end"], "is": ["as", "his"], "it": ["that", "at"], "my": ["mine", "by"], "percent": ["per cent", "present"],
         "fifteen": ["fifty"], "thirteen": ["thirty"], "timer": ["time or", "timers"], "minutes": ["minute"], "minute": ["minutes"], "volume": ["volumes"], "pause": ["paws", "pores"], "mute": ["moot"], "study": ["studying"], "desk": ["disk", "desks"], "curtains": ["certain", "curtain"], "shade": ["shades", "shape"], "garage": ["garages"], "hello": ["hollow"], "thanks": ["thank"]}
NUMBER = {"fifteen", "fifty", "thirteen", "thirty", "fourteen", "forty", "sixteen", "sixty", "seventeen", "seventy", "eighteen", "eighty", "nineteen", "ninety"}


def hear(r, s):
    ws, out = s.split(), []
    rate = r.choice((0.03, 0.06, 0.1))
    changed = 0
    for i, w in enumerate(ws):
        x = r.random()
        if x < rate and changed < 1 + len(ws) // 6 and w not in NUMBER:
            changed += 1
            if w in SUB and r.random() < 0.85:
                w = r.choices(*SUB[w])[0]
            elif w in ALIKE:
                w = r.choice(ALIKE[w])
            elif w not in KEY and r.random() < 0.5:
                w = mangle(r, w)
            if w == "-":
                continue
            out.append(w)
        elif x < rate + 0.008 and w in ("the", "a", "my", "please", "to", "in", "of", "is", "on") and len(ws) > 4 and w != "on":
            continue
        else:
            out.append(w)
            if x > 1 - 0.006:
                out.append(w)
            elif x > 1 - 0.012 and INS:
                out.append(r.choice(INS))
    return " ".join(out) if out else s


_NEAR = {"b": "pd", "p": "bt", "d": "tb", "t": "dk", "k": "tc", "g": "kd", "v": "bf", "f": "v", "s": "z", "z": "s", "m": "n", "n": "m", "l": "r", "r": "l", "a": "eo", "e": "ia", "i": "e", "o": "au", "u": "o"}


def mangle(r, w):
    """A word that sounds nearly the same, spelt as heard."""
    if len(w) < 4 or not w.isalpha():
        return w
    i = r.randrange(len(w))
    x = r.random()
    if x < 0.45 and w[i] in _NEAR:
        return w[:i] + r.choice(_NEAR[w[i]]) + w[i + 1:]
    if x < 0.6:
        return w + r.choice(("s", "s", "ed", "er"))
    if x < 0.75 and w.endswith("s"):
        return w[:-1]
    if x < 0.9 and len(w) > 6:
        k = r.randrange(3, len(w) - 2)
        return w[:k] + " " + w[k:]
    return w[:i] + w[i + 1:]


def typo(r, s):
    if len(s) < 6:
        return s
    i = r.randrange(1, len(s) - 2)
    if not (s[i].isalpha() and s[i + 1].isalpha()):
        return s
    x = r.random()
    if x < 0.4:
        return s[:i] + s[i + 1] + s[i] + s[i + 2:]
    if x < 0.7:
        return s[:i] + s[i + 1:]
    return s[:i] + s[i] + s[i:]
