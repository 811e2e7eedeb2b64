#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Patterns for the recogniser out of the home model's own sentences.

The generator of tools/home is run over a home whose names are markers, and
each marker is written back as a slot: "turn off {light} in {area}". The lines
fit every home; runtime/voice/phrasebook.c fills the slots with a home's names.

usage: speech_phrases.py [N]
"""
import os
import re
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "home"))

import house  # noqa: E402
import sentences  # noqa: E402

# Names that are no words, so that nothing is read into them.
DOMAINS = [
    ("light", "light", 6, 'state: "off", brightness: 50'),
    ("switch", "switch", 4, 'state: "off"'),
    ("fan", "fan", 2, 'state: "off", percentage: 0'),
    ("cover", "cover", 2, "device_class: blind, state: closed, position: 0"),
    ("cover", "cover", 1, "device_class: curtain, state: closed, position: 0"),
    ("cover", "cover", 1, "device_class: garage, state: closed, position: 0"),
    ("climate", "climate", 2, "state: heat, temperature: 20, current_temperature: 18"),
    ("lock", "lock", 2, "state: locked"),
    ("media", "media_player", 3, 'state: playing, volume: 30, media_title: "x"'),
    ("vacuum", "vacuum", 1, "state: docked"),
    ("mower", "lawn_mower", 1, "state: docked"),
    ("sensor", "sensor", 2, 'state: "21", unit: "%", device_class: humidity'),
    ("scene", "scene", 2, None),
    ("list", "todo", 2, "items: [zitema, zitemb]"),
]
AREAS = 6


def marker_home():
    out = ["floors:", "  - name: zfloora", "  - name: zfloorb", "areas:"]
    for i in range(AREAS):
        out += ["  - name: zarea%s" % chr(97 + i), "    floor: zfloor%s" % "ab"[i % 2]]
    out.append("entities:")
    n = 0
    names = {}
    for slot, domain, count, state in DOMAINS:
        for _ in range(count):
            i = names[slot] = names.get(slot, -1) + 1
            area = "" if domain in ("todo", "scene") else ", area: zarea%s" % chr(97 + n % AREAS)
            n += 1
            out.append("  - {name: z%s%s, domain: %s%s%s}" % (slot, chr(97 + i), domain, area, ", " + state if state else ""))
    return "\n".join(out) + "\n"


CMUDICT = "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"


def dictionary():
    """The words that can be heard; None where the dictionary is not installed."""
    try:
        with open(CMUDICT, encoding="latin-1") as f:
            return {line.split(" ", 1)[0] for line in f}
    except OSError:
        return None


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 40000
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(marker_home())
        f.flush()
        home = house.load(f.name)
    marker = re.compile(r"\bz(light|switch|fan|cover|climate|lock|media|vacuum|mower|sensor|scene|list|item|area|floor)[a-z]('s|s)?\b")
    known = dictionary()
    made = 0
    for s in sentences.sentences(home, 1):
        s = marker.sub(lambda m: "{%s}%s" % (m.group(1), m.group(2) or ""), s)
        s = s.replace("per cent", "percent")
        if not re.fullmatch(r"[a-z'{} ]+", s):
            continue
        # A slip of the pen is nothing that anybody says.
        if known is None or all(w in known for w in re.sub(r"\{[a-z]+\}('s|s)?", " ", s).split()):
            print(s)
            made += 1
            if made == n:
                return


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        pass
