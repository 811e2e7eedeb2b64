#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sentences that people say to a home, for a recogniser's language model.

usage: sentences.py --home FILE [--n N] [--seed S]

One sentence a line: lower case, words only, numbers in words. The same
arguments give the same lines. Only the standard library is needed.
"""
import argparse
import random
import re
import sys

import asks
import house
from talk import Talk, num_words


def words_only(s):
    """A recogniser's spelling: letters and apostrophes."""
    s = s.lower().replace("’", "'")
    s = re.sub(r"(\d+):(\d\d)", r"\1 \2", s)
    s = re.sub(r"(\d+)\.(\d+)", lambda m: num_words(float(m.group())), s)
    s = re.sub(r"\d+", lambda m: " " + num_words(int(m.group())) + " ", s)
    s = s.replace("%", " percent ").replace("°", " degrees ").replace("&", " and ")
    s = re.sub(r"[^a-zà-ÿ' ]+", " ", s)
    s = re.sub(r"(^|\s)'+|'+(\s|$)", " ", s)
    return " ".join(s.split())


def sentences(home, seed):
    """Without end; every home name comes up by and by."""
    rng = random.Random("sentences %d" % seed)
    areas = [a.name for a in home.areas]
    for name in [n for e in home.entities for n in [e.name] + e.aliases] + [n for a in home.areas for n in [a.name] + a.aliases] + [n for f, al in home.floors for n in [f] + al]:
        yield words_only(name)
    while True:
        k = Talk(rng, home=home.clone(), noisy=0.0, live=True, variety=False, here=rng.choice(areas + [""]) if areas else "")
        k.spoken = True
        asks.converse(k, 8)
        for t in k.turns:
            if k.messages[t["at"]][0] == "user" and t["intent"] != "no device":
                s = words_only(k.messages[t["at"]][1])
                if s:
                    yield s


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--home", required=True, help="the home's YAML file")
    ap.add_argument("--n", type=int, default=20000, help="how many sentences (20000)")
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    try:
        home = house.load(a.home)
    except (OSError, KeyError, ValueError) as e:
        sys.exit("sentences: %s: %s" % (a.home, e))
    out = sys.stdout
    for i, s in enumerate(sentences(home, a.seed)):
        if i >= a.n:
            break
        out.write(s + "\n")


if __name__ == "__main__":
    main()
