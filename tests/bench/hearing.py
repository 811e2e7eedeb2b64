#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The set that bench_hear is run over: sounds without words, and commands by every synthetic voice of this machine.

    hearing.py DIR [--noises 12] [--commands 400] [--seed 1] [--home family]

Writes WAV files and DIR/list.txt. Noises are those of noises.py. Commands are the sentences of the hand-written evaluation
set that belong to one home, each said by a voice, at a speed, a level and with a noise that the seed picks: none, or
white or pink noise 20 or 10 dB under it. Voices: flite's, and espeak-ng's where it is installed.
"""
import argparse
import array
import math
import os
import random
import shutil
import subprocess
import tempfile
import wave

import noises

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLITE = ("awb", "slt", "rms", "kal16")
ESPEAK = ("en-us", "en-gb", "en-us+f2", "en-us+f4", "en-us+m3", "en-gb+m5", "en-gb-scotland", "en-us+f5")


def sentences(home):
    out, here = [], False
    for line in open(os.path.join(ROOT, "tools", "home", "eval", "hand.txt")):
        if line.startswith("home "):
            here = line.split()[1] == home
        elif here and line.startswith("u: "):
            out.append(line[3:].strip())
    return out


def plain(text):
    """As the recogniser writes it; sentences with figures are left out."""
    w = "".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split()
    return " ".join(w)


def say(text, voice, speed, path):
    if voice in FLITE:
        subprocess.run(["flite", "--setf", "duration_stretch=%.2f" % (1 / speed), "-voice", voice, "-t", text, "-o", path], check=True)
    else:
        subprocess.run(["espeak-ng", "-v", voice, "-s", "%d" % (165 * speed), "-w", path, text], check=True)


def samples(path):
    with wave.open(path) as f:
        a = array.array("h", f.readframes(f.getnframes()))
        rate = f.getframerate()
    n = int(len(a) * 16000 / rate)
    if rate == 16000:
        return [v / 32768 for v in a]
    # A mean over two neighbours keeps most of what would fold down; the voices hold little there.
    out = []
    for i in range(n):
        x = i * rate / 16000
        k = int(x)
        out.append((a[k] + ((a[k + 1] if k + 1 < len(a) else a[k]) - a[k]) * (x - k)) / 32768)
    return out


def spoil(r, s, snr, gain):
    s = [0.0] * 4800 + s + [0.0] * 4800
    loud = math.sqrt(sum(v * v for v in s) / max(1, len(s) - 9600))
    if snr is not None:
        kind = r.choice((noises.white, noises.pink))
        other = kind(r, len(s))
        k = loud * 10 ** (-snr / 20) / math.sqrt(sum(v * v for v in other) / len(other))
        s = [v + k * o for v, o in zip(s, other)]
    g = 10 ** (gain / 20)
    return array.array("h", (max(-32767, min(32767, int(v * g * 32767))) for v in s))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("dir")
    a.add_argument("--noises", type=int, default=12)
    a.add_argument("--commands", type=int, default=400)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--home", default="family")
    a = a.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    voices = FLITE + (ESPEAK if shutil.which("espeak-ng") else ())
    texts = [t for t in sentences(a.home) if not any(c.isdigit() for c in t)]
    with open(os.path.join(a.dir, "list.txt"), "w") as listing, tempfile.TemporaryDirectory() as tmp:
        for kind in noises.KINDS + noises.TOGETHER:
            for i in range(a.noises):
                path = os.path.join(a.dir, "%s%02d.wav" % (kind.__name__, i))
                noises.write(path, noises.sound(kind, i, a.seed))
                listing.write("%s\t-\t%s\n" % (kind.__name__, path))
        for i in range(a.commands):
            r = random.Random("command %d %d" % (i, a.seed))
            text, voice, speed = r.choice(texts), voices[i % len(voices)], r.choice((0.85, 1.0, 1.0, 1.15))
            snr, gain = r.choice((None, None, 20, 10)), r.choice((0, 0, -6, -20))
            said = os.path.join(tmp, "said.wav")
            say(text, voice, speed, said)
            path = os.path.join(a.dir, "command%04d.wav" % i)
            noises.write(path, spoil(r, samples(said), snr, gain))
            listing.write("%s %s\t%s\t%s\n" % ("flite" if voice in FLITE else "espeak", "clean" if snr is None else "%d dB" % snr, plain(text), path))


main()
