# SPDX-License-Identifier: MIT
"""The ways in which people say things: reads lines/*.txt, one file for each noun.

[key] heads the lines of a key, [key +] those that came later: the same, but
what the first keep out of training they do not bring back. One line is one
template group: (a|b) is a choice, [a] is optional, {x} is filled in: {t} the
thing, {in} "in the kitchen", {v} "forty percent", {n} just the number, {by}
"by fifteen percent", "a bit", "a lot" or nothing. A line that starts with ! is
said as it stands; the others are commands that may get a "could you ..." or a
"... please" around them. Whole lines are kept out of training by a hash
(held_out), so that unseen templates can be measured.
"""
import glob
import hashlib
import os
import re

import wordings


# -- reading the lines --------------------------------------------------------

def _parse(s):
    """AST: list of str | ("slot", name) | ("alt", [ast, ...])"""
    def seq(i, end):
        out, alts, buf = [], [], ""
        while i < len(s):
            ch = s[i]
            if ch in end:
                break
            if ch in "([":
                if buf:
                    out.append(buf)
                    buf = ""
                inner, i = seq(i + 1, ")" if ch == "(" else "]")
                if ch == "[":
                    inner = inner + [[]]
                out.append(("alt", inner))
            elif ch == "{":
                if buf:
                    out.append(buf)
                    buf = ""
                j = s.index("}", i)
                out.append(("slot", s[i + 1:j]))
                i = j
            elif ch == "|":
                if buf:
                    out.append(buf)
                    buf = ""
                alts.append(out)
                out = []
            else:
                buf += ch
            i += 1
        if buf:
            out.append(buf)
        alts.append(out)
        return alts, i

    alts, i = seq(0, "")
    return ("alt", alts) if len(alts) > 1 else alts[0]


class Line:
    __slots__ = ("text", "_ast", "plain", "held", "grown")

    def __init__(self, key, text, grown=False):
        self.plain = text.startswith("!")
        self.text = text.lstrip("!")
        self._ast = None
        self.grown = grown
        self.held = held_out(key, text)

    @property
    def ast(self):
        if self._ast is None:
            self._ast = _parse(self.text)
        return self._ast

    def say(self, rng, fill):
        def walk(n, out):
            if isinstance(n, str):
                out.append(n)
            elif isinstance(n, list):
                for x in n:
                    walk(x, out)
            elif n[0] == "slot":
                out.append(fill[n[1]](rng) if callable(fill[n[1]]) else fill[n[1]])
            else:
                walk(rng.choice(n[1]), out)
            return out
        return re.sub(r"\s+", " ", "".join(walk(self.ast, []))).strip()

    def forms(self, limit=400):
        """Every wording of the line, slots as they are written; None when there are too many."""
        def walk(n):
            if isinstance(n, str):
                return [n]
            if isinstance(n, list):
                out = [""]
                for x in n:
                    out = [a + b for a in out for b in walk(x)]
                    if len(out) > limit:
                        raise OverflowError
                return out
            if n[0] == "slot":
                return ["{%s}" % n[1]]
            return [y for x in n[1] for y in walk(x)]
        try:
            return {" ".join(x.split()) for x in walk(self.ast)}
        except OverflowError:
            return None


def held_out(key, text):
    """One line in twelve, by its hash alone, is for the held-out set."""
    return hashlib.sha256(("%s\n%s" % (key, text)).encode()).digest()[0] < 21


HERE = os.path.dirname(os.path.abspath(__file__))


def _read():
    """({key: lines}, {key: lines that came later})"""
    first, later = {}, {}
    for path in sorted(glob.glob(os.path.join(HERE, "lines", "*.txt"))):
        at = None
        with open(path, encoding="utf-8") as f:
            for num, s in enumerate(f, 1):
                s = s.strip()
                m = re.fullmatch(r"\[(\w+)( \+)?\]", s)
                if m:
                    part = later if m[2] else first
                    if m[1] in part:
                        raise ValueError("%s:%d: %s comes twice" % (path, num, s))
                    at = part[m[1]] = []
                elif s and s[0] != "#":
                    if at is None:
                        raise ValueError("%s:%d: a line before any key" % (path, num))
                    at.append(s)
    return first, later


def _lines():
    out = {}
    first, later = _read()
    if set(later) - set(first):
        raise ValueError("lines that came later, and none before: %s" % ", ".join(sorted(set(later) - set(first))))
    grown, crossed = wordings.grow(), wordings.crossed()
    for key, text in first.items():
        ls = [Line(key, x) for x in text]
        if len(ls) < 5 or sum(not x.held for x in ls) < 2:      # a key keeps at least two lines to learn from, and a short one loses none
            for x in ls:
                x.held = False
        seen = {x.text for x in ls}
        new = [Line(key, x) for x in dict.fromkeys(crossed.get(key, []) + later.get(key, []))] + [Line(key, x, True) for x in dict.fromkeys(grown.get(key, ()))]
        # what one line keeps out of training, no other line brings back
        forms = lambda xs: {f for x in xs for f in x.forms() or {x.text}}
        known = forms(x for x in ls if not x.held)
        for x in ls + new:
            if x.held and known & forms([x]):
                x.held = False
        kept = forms(x for x in ls + new if x.held)
        out[key] = ls + [x for x in new if x.text not in seen and (x.held or not kept & forms([x]))]
    return out


LINES = _lines()
GROUPS = {}      # (key, held): lines of the one sort and of the other
for _k, _v in LINES.items():
    for _h in (False, True):
        GROUPS[_k, _h] = ([x for x in _v if x.held == _h and not x.grown], [x for x in _v if x.held == _h and x.grown])
GROWN = 0.4      # how often a verb put into an opening is drawn, where a key has both


def pick(rng, key, held=False, need=None):
    """A line of @key; held: only lines that training never sees (None if there is none)."""
    a, b = GROUPS[key, held]
    ls = a if a and (not b or rng.random() >= GROWN) else b
    for _ in range(12):
        if not ls:
            return None
        x = rng.choice(ls)
        if need is None or need(x):
            return x
    ls = [x for x in a + b if need(x)]
    return rng.choice(ls) if ls else None


if __name__ == "__main__":
    n = sum(len(v) for v in LINES.values())
    print(len(LINES), "keys", n, "lines,", sum(x.grown for v in LINES.values() for x in v), "of them grown,", sum(x.held for v in LINES.values() for x in v), "held out")
