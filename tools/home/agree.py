#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the generator answers the same question in the same way.

usage: agree.py [--n TURNS] [--seed S] [--all]

Looks for requests that name a kind and nothing else ("turn on the lamp", no
room, no name), and counts what is right there by the word, by how many such
devices are in this room and in the home, and by the form of the answer. A row
with more than one form is a contradiction, unless what was said decides it.
"""
import argparse
import collections
import random
import re
import sys

import asks
import corpus
from refer import KIND, names, norm
from talk import ONES, TENS, Talk

ONE, MANY = {}, {}       # the word: (domain, class)
for _key, (_s, _p) in KIND.items():
    for _w in _s:
        ONE.setdefault(_w, _key)
    for _w in _p:
        MANY.setdefault(_w, _key)
ONE["tv"] = ("media_player", "")
NUMBER = "|".join(("a", "to", "by", "at", "full", "half", *ONES, *TENS[2:]))
THE = {"the", "my", "our", "this", "that", "those", "these"}
WHOLE = {"and", "plus", "then", "also", "except", "but", "not", "apart", "bar", "all", "every", "everything", "everywhere", "both", "each", "house", "home", "whole", "rest", "other", "others", "entire", "any", "anywhere", "a"}


def situation(k, text, here):
    """(word, how many here by name, by kind, in the home by name, by kind), or None when more than a kind was said."""
    ws = norm(text.strip(".?!").replace(",", "").replace("?", "").replace(".", "")).split()
    said = [w for w in ws if w in ONE or w in MANY]
    if len(said) != 1 or set(ws) & WHOLE:
        return None
    w = said[0]
    at = ws.index(w)
    after = ws[at + 1:]
    if not at or ws[at - 1] not in THE or after[:1] in (["one"], ["two"], ["three"], ["four"]) or set(after) & {"in", "on", "off", "of", "is", "at"} and re.search(r"\b(in|on|off|of) (?!here|this room|\d|%s)" % NUMBER, " ".join(after)):
        return None                      # a room that was heard in other words; a name that ends in a number
    if w == "light" and ws[:2] == ["let", "the"] or w == "door":
        return None                      # that is daylight; doors are locked and opened, and the verb says which
    if any(a in " ".join(ws) for a in (*k.refs.area_words, *k.refs.floor_words)):
        return None
    one = w if w in ONE else next((s for s, key in ONE.items() if key == MANY[w]), w)
    dom, cls = ONE.get(w) or MANY[w]
    named = [e for e in k.home.entities if e.domain not in ("sensor", "binary_sensor", "scene", "script", "todo") and any({w, one} & set(norm(n).split()) for n in names(e))]
    if any(set(norm(n).split()) - {w, one} and set(norm(n).split()) - {w, one} <= set(ws) for e in k.home.entities for n in names(e)):
        return None
    if w in k.refs.by_name or set(ws) & {x for e in named for n in names(e) for x in norm(n).split()} - {w, one, "the"}:
        return None
    kind = k.home.of(dom, cls=cls or None)
    few = lambda es: min(2, len(es))
    at = lambda es: few([e for e in es if here and e.area == here])
    return (w if w in ONE else w + " (many)", "here" if here else "-", at(named), at(kind), few(named), few(kind))


def form(k, e):
    if "ask" in e:
        return "ask"
    if "calls" not in e:
        return next(iter(e))
    if len(e["calls"]) > 1:
        return "several calls"
    a = e["calls"][0][1]
    if e["calls"][0][0] == "GetLiveContext":
        return "name" if "name" in a else "area" if "area" in a else "all"
    return "name" if "name" in a else "area" if "area" in a else "floor" if "floor" in a else "all" if "domain" in a else "call"


def rows(n, seed):
    out = collections.defaultdict(lambda: collections.defaultdict(list))
    turns = i = 0
    while turns < n:
        rng = random.Random("%s agree %d" % (seed, i))
        i += 1
        k = Talk(rng, noisy=0, hard=rng.random() < 0.6)
        asks.converse(k, 12, asks.TRAINING)
        turns += len(k.turns)
        for t in k.turns:
            text = k.messages[t["at"]][1]
            if k.messages[t["at"]][0] != "user" or t["intent"] in ("follow-up", "chat", "cannot", "question", "time", "no device", "HassStartTimer", "HassBroadcast") or "List" in t["intent"]:
                continue
            if t["at"] > 2 and k.messages[t["at"] - 1][1].endswith("?"):      # an answer to "which one?"
                continue
            s = situation(k, text, k.here)
            if s:
                out[s][form(k, t["expect"])].append((text, t["expect"]))
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--n", type=int, default=100000)
    ap.add_argument("--seed", default="1")
    ap.add_argument("--all", action="store_true", help="show the rows that agree, too")
    a = ap.parse_args()
    bad = 0
    print("%-22s %-5s %11s %11s   forms" % ("word", "room", "here n/k", "home n/k"))
    for s, forms in sorted(rows(a.n, a.seed).items()):
        if len(forms) > 1 or a.all:
            bad += len(forms) > 1
            print("%-22s %-5s %9d/%d %9d/%d   %s" % (*s, ", ".join("%s %d" % (f, len(x)) for f, x in sorted(forms.items(), key=lambda y: -len(y[1])))))
            for f, x in forms.items():
                if len(forms) > 1:
                    print("    %-5s %s -> %s" % (f, x[0][0], x[0][1]))
    print("%d situations with more than one form" % bad)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
