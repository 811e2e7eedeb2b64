#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what a recogniser hears: speaks generated sentences, recognises them, counts confusions.

usage: confuse.py [--n N] [--work DIR] [--lm FILE --dict FILE]

Needs flite, espeak-ng, sox and pocketsphinx_batch with its US English model.
Writes confusions.json beside this file. Without --lm the recogniser's own
general language model is used, which makes the many errors that are wanted here.
"""
import argparse
import json
import os
import random
import subprocess
import wave

import asks
from sentences import words_only
from talk import Talk

MODEL = "/usr/share/pocketsphinx/model/en-us"
VOICES = ["awb", "kal16", "rms", "slt", "espeak", "espeak+f3"]


def sentences(n, seed=7):
    i = 0
    while n > 0:
        k = Talk(random.Random("confuse %d %d" % (seed, i)), noisy=0.0, variety=False)
        k.spoken = True
        i += 1
        asks.converse(k, 6)
        for t in k.turns:
            if k.messages[t["at"]][0] == "user" and n > 0:
                s = words_only(k.messages[t["at"]][1])
                if len(s.split()) > 1:
                    n -= 1
                    yield s


def speak(text, voice, path):
    if voice.startswith("espeak"):
        v = voice.partition("+")[2]
        subprocess.run(["espeak-ng", "-v", "en-us" + ("+" + v if v else ""), "-w", path + ".22.wav", text], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["sox", "-q", path + ".22.wav", "-r", "16000", "-b", "16", "-c", "1", path], check=True, stderr=subprocess.DEVNULL)
        os.unlink(path + ".22.wav")
    else:
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", path], check=True)


def align(a, b):
    """Pairs of words, "" for a gap, by least edits."""
    n, m = len(a), len(b)
    d = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        d[i][0] = i
    for j in range(m + 1):
        d[0][j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i][j] = min(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]), d[i - 1][j] + 1, d[i][j - 1] + 1)
    out, i, j = [], n, m
    while i or j:
        if i and j and d[i][j] == d[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            out.append((a[i - 1], b[j - 1]))
            i, j = i - 1, j - 1
        elif i and d[i][j] == d[i - 1][j] + 1:
            out.append((a[i - 1], ""))
            i -= 1
        else:
            out.append(("", b[j - 1]))
            j -= 1
    return out[::-1]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--n", type=int, default=250)
    ap.add_argument("--work", default="/tmp/confuse")
    ap.add_argument("--lm", default=MODEL + "/en-us.lm.bin")
    ap.add_argument("--dict", default=MODEL + "/cmudict-en-us.dict")
    a = ap.parse_args()
    os.makedirs(a.work, exist_ok=True)
    truth = {}
    for i, s in enumerate(sentences(a.n)):
        for v in VOICES:
            uid = "u%04d-%s" % (i, v.replace("+", "-"))
            truth[uid] = s
            path = os.path.join(a.work, uid + ".wav")
            if not os.path.exists(path):
                speak(s, v, path)
    with open(a.work + "/ctl", "w") as f:
        f.write("\n".join(truth) + "\n")
    subprocess.run(["pocketsphinx_batch", "-adcin", "yes", "-adchdr", "44", "-cepdir", a.work, "-cepext", ".wav", "-ctl", a.work + "/ctl", "-hyp", a.work + "/hyp", "-hmm", MODEL + "/en-us",
                    "-lm", a.lm, "-dict", a.dict, "-ds", "2", "-topn", "2", "-maxhmmpf", "3000", "-logfn", "/dev/null"], check=True)
    sub, ins, total, wrong, by = {}, {}, 0, 0, {}
    with open(a.work + "/hyp") as f:
        for line in f:
            hyp, _, uid = line.rpartition(" (")
            uid = uid.split()[0]
            want = truth[uid].split()
            got = [w.split("(")[0] for w in hyp.split()]
            pairs = align(want, got)
            err = sum(x != y for x, y in pairs)
            v = uid.split("-", 1)[1]
            b = by.setdefault(v, [0, 0])
            b[0] += err
            b[1] += len(want)
            if err > 0.6 * len(want):          # nothing was understood: no lesson in it
                continue
            total += len(want)
            wrong += err
            for x, y in pairs:
                if x == y:
                    continue
                if x:
                    c = sub.setdefault(x, {})
                    c[y or "-"] = c.get(y or "-", 0) + 1
                else:
                    ins[y] = ins.get(y, 0) + 1
    out = {"source": "%d sentences x %d voices, PocketSphinx; word error rate of those understood %.3f" % (a.n, len(VOICES), wrong / max(1, total)), "wer": {v: round(e / n, 3) for v, (e, n) in by.items()},
           "sub": {w: dict(sorted(c.items(), key=lambda kv: (-kv[1], kv[0]))[:8]) for w, c in sorted(sub.items())}, "ins": [w for w, _ in sorted(ins.items(), key=lambda kv: (-kv[1], kv[0]))[:40]]}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "confusions.json"), "w") as f:
        json.dump(out, f, indent=0, ensure_ascii=False)
    print(out["source"], out["wer"])


if __name__ == "__main__":
    main()
