#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sounds of a home that are no speech, as 16 kHz WAV files: what a recogniser must not take for words.

    noises.py DIR [--n 12] [--seed 1]

Each kind comes n times with other lengths, levels and pitches, from the seed alone. Only the standard library is used.
"""
import argparse
import array
import math
import os
import random
import wave

RATE = 16000


def silence(r, n):
    return [r.gauss(0, 0.001) for _ in range(n)]


def add(s, at, tone):
    for j, v in enumerate(tone):
        if at + j < len(s):
            s[at + j] += v


def ring(f, seconds, decay, level, harmonics=1):
    n = int(seconds * RATE)
    return [level * math.exp(-j / (decay * RATE)) * sum(math.sin(2 * math.pi * f * h * j / RATE) / h for h in range(1, harmonics + 1)) for j in range(n)]


def white(r, n):
    a = r.uniform(0.02, 0.3)
    return [r.uniform(-a, a) for _ in range(n)]


def brown(r, n):
    p, s, a = 0.0, [], r.uniform(0.01, 0.05)
    for _ in range(n):
        p = 0.98 * p + r.gauss(0, a)
        s.append(p)
    return s


def pink(r, n):
    b, s, a = [0.0] * 5, [], r.uniform(0.02, 0.1)
    for _ in range(n):
        x = r.gauss(0, 1)
        for i, (k, g) in enumerate(((.99886, .0555), (.99332, .0751), (.969, .1539), (.8665, .3105), (.55, .533))):
            b[i] = k * b[i] + g * x
        s.append(a * (sum(b) + x * 0.536))
    return s


def water(r, n):
    s, e, a = [], 0.0, r.uniform(0.05, 0.3)
    step = r.randrange(800, 6400)
    for i in range(n):
        if i % step == 0:
            e = r.choice([0, 0.1, 0.3, 1]) * a
        s.append(r.gauss(0, 1) * e + r.gauss(0, 0.001))
    return s


def knocks(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(2, 14)):
        add(s, r.randrange(n), ring(r.uniform(120, 900), 0.4, r.uniform(0.01, 0.08), r.uniform(0.1, 0.6)))
    return s


def steps(r, n):
    s = silence(r, n)
    gap = r.randrange(6000, 10000)
    for at in range(r.randrange(4000), n, gap):
        add(s, at, [v + r.gauss(0, 0.1) * math.exp(-j / 400) for j, v in enumerate(ring(r.uniform(60, 150), 0.2, 0.03, r.uniform(0.2, 0.5)))])
    return s


def dishes(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(3, 12)):
        at = r.randrange(n)
        for _ in range(4):
            add(s, at, ring(r.uniform(1500, 6000), 0.5, r.uniform(0.02, 0.15), r.uniform(0.05, 0.2)))
    return s


def claps(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(2, 30)):
        at, a, d = r.randrange(n), r.uniform(0.1, 0.6), r.uniform(80, 500)
        add(s, at, [r.gauss(0, a) * math.exp(-j / d) for j in range(3000)])
    return s


def motor(r, n):
    s, on, f, step = [], True, r.uniform(50, 220), r.randrange(4000, 20000)
    for i in range(n):
        if i % step == 0:
            on = r.random() < 0.7
        s.append(r.gauss(0, 0.01) + (0.08 * sum(math.sin(2 * math.pi * f * h * i / RATE) / h for h in range(1, 15)) if on else 0))
    return s


def tune(r, n):
    s, scale = silence(r, n), [262, 294, 330, 349, 392, 440, 494, 523]
    step, harmonics = r.randrange(2500, 8000), r.randrange(2, 9)
    for at in range(0, n, step):
        add(s, at, ring(r.choice(scale), step / RATE * 1.2, r.uniform(0.1, 0.6), 0.2, harmonics))
    return s


def chords(r, n):
    s, step = silence(r, n), r.randrange(5000, 16000)
    for at in range(0, n, step):
        base = r.choice([131, 147, 165, 175, 196, 220])
        for k in (1, r.choice([1.2, 1.26]), 1.5, 2):
            add(s, at, ring(base * k, step / RATE * 1.3, 0.5, 0.1, 5))
    return s


def beeps(r, n):
    f, step, a = r.uniform(600, 3000), r.randrange(1600, 8000), r.uniform(0.05, 0.4)
    return [(a * math.sin(2 * math.pi * f * i / RATE) if i // step % 2 == 0 else 0) + r.gauss(0, 0.001) for i in range(n)]


def barks(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(1, 6)):
        at, m, f0 = r.randrange(n), r.randrange(2500, 5000), r.uniform(250, 700)
        add(s, at, [0.3 * math.sin(math.pi * j / m) * (sum(math.sin(2 * math.pi * (f0 - 0.4 * f0 * j / m) * h * j / RATE) / h for h in range(1, 8)) + r.gauss(0, 0.3)) for j in range(m)])
    return s


def cries(r, n):
    s, f0 = silence(r, n), r.uniform(350, 600)
    for at in range(r.randrange(3000), n, r.randrange(9000, 20000)):
        m, p = r.randrange(6000, 12000), 0.0
        tone = []
        for j in range(m):
            p += 2 * math.pi * (f0 + 60 * math.sin(math.pi * j / m) + 8 * math.sin(2 * math.pi * 6 * j / RATE)) / RATE
            tone.append(0.12 * math.sin(math.pi * j / m) * sum(math.sin(h * p) / h ** 0.7 for h in range(1, 9)))
        add(s, at, tone)
    return s


def coughs(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(1, 5)):
        at, m, p, q = r.randrange(n), r.randrange(3000, 7000), 0.0, 0.0
        tone = []
        for j in range(m):
            x = r.gauss(0, 1)
            p, q = 1.6 * p - 0.75 * q + x * 0.2, p # a throat's resonance
            tone.append(0.15 * p * math.exp(-j / (m / 3)))
        add(s, at, tone)
    return s


def drums(r, n):
    s, beat = silence(r, n), r.randrange(3500, 7000)
    for i, at in enumerate(range(0, n, beat)):
        add(s, at, ring(r.uniform(50, 80), 0.3, 0.08, 0.5) if i % 2 == 0 else [r.gauss(0, 0.25) * math.exp(-j / 900) for j in range(3000)])
        add(s, at + beat // 2, [r.gauss(0, 0.08) * math.exp(-j / 250) for j in range(1200)])
    return s


def whistle(r, n):
    s, p, f = [], 0.0, r.uniform(900, 2000)
    for i in range(n):
        if i % 5000 == 0:
            g = r.uniform(900, 2200)
        f += (g - f) * 0.0008
        p += 2 * math.pi * f / RATE
        s.append(0.2 * math.sin(p) + r.gauss(0, 0.004))
    return s


def siren(r, n):
    s, p, lo, hi, rate = [], 0.0, r.uniform(400, 700), r.uniform(900, 1500), r.uniform(0.3, 4)
    for i in range(n):
        p += 2 * math.pi * (lo + (hi - lo) * (0.5 + 0.5 * math.sin(2 * math.pi * rate * i / RATE))) / RATE
        s.append(0.15 * (math.sin(p) + 0.5 * math.sin(2 * p) + 0.3 * math.sin(3 * p)) + r.gauss(0, 0.002))
    return s


def birds(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(3, 15)):
        f, d, p, tone, m = r.uniform(1800, 4500), r.uniform(-0.4, 0.4), 0.0, [], r.randrange(800, 3200)
        for j in range(m):
            p += 2 * math.pi * f * (1 + d * j / m + 0.1 * math.sin(2 * math.pi * 30 * j / RATE)) / RATE
            tone.append(0.2 * math.sin(math.pi * j / m) * math.sin(p))
        add(s, r.randrange(n), tone)
    return s


def plucks(r, n):
    """Strings of a guitar (Karplus and Strong), one note or a strum at a time."""
    s, step = silence(r, n), r.randrange(2500, 9000)
    for at in range(0, n, step):
        for k in range(r.choice((1, 1, 1, 3, 5))):
            f, m = 82.4 * 2 ** (r.randrange(0, 30) / 12), int(step * 1.5)
            q = int(RATE / f)
            b, tone = [r.uniform(-0.3, 0.3) for _ in range(q)], []
            for j in range(m):
                tone.append(b[j % q])
                b[j % q] = 0.498 * (b[j % q] + b[(j + 1) % q])
            add(s, at + k * 200, tone)
    return s


def humming(r, n):
    """A mouth that is shut, or one vowel, on the notes of a tune, gliding from one to the next, with vibrato."""
    s, p, f, key, step = [], 0.0, 0.0, r.choice((110, 130, 165, 220, 262)), r.randrange(4000, 10000)
    for i in range(n):
        if i % step == 0:
            g = key * 2 ** (r.choice((0, 2, 4, 5, 7, 9, 11, 12)) / 12)
            f = f or g
        f += (g - f) * 0.002
        p += 2 * math.pi * f * (1 + 0.008 * math.sin(2 * math.pi * 5.5 * i / RATE)) / RATE
        e = 0.1 * (0.7 + 0.3 * math.sin(math.pi * (i % step) / step))
        s.append(e * (math.sin(p) + 0.4 * math.sin(2 * p) + 0.15 * math.sin(3 * p) + 0.08 * math.sin(4 * p)) + r.gauss(0, 0.002))
    return s


def organ(r, n):
    s, step = silence(r, n), r.randrange(3000, 12000)
    for at in range(0, n, step):
        base = r.choice((131, 147, 165, 175, 196, 220, 262))
        for k in (1, r.choice((1.2, 1.26)), 1.5):
            add(s, at, [0.05 * min(1, j / 300, (step - j) / 300) * sum(math.sin(2 * math.pi * base * k * h * j / RATE) for h in (1, 2, 3, 4, 6)) for j in range(step)])
    return s


def snores(r, n):
    s, f = silence(r, n), r.uniform(25, 60)
    for at in range(r.randrange(4000), n, r.randrange(16000, 30000)):
        m, p, q = r.randrange(8000, 16000), 0.0, 0.0
        tone = []
        for j in range(m):
            x = (1.0 if j % int(RATE / f) < 20 else 0.0) + r.gauss(0, 0.1)
            p, q = 1.85 * p - 0.88 * q + x * 0.05, p
            tone.append(0.4 * p * math.sin(math.pi * j / m))
        add(s, at, tone)
    return s


def typing(r, n):
    s, at = silence(r, n), 0
    while at < n:
        add(s, at, [r.gauss(0, 0.2) * math.exp(-j / 60) + 0.1 * math.sin(2 * math.pi * 400 * j / RATE) * math.exp(-j / 200) for j in range(800)])
        at += r.randrange(1200, 6000)
    return s


def scrapes(r, n):
    s = silence(r, n)
    for _ in range(r.randrange(1, 5)):
        m, f, p, q = r.randrange(3000, 16000), r.uniform(300, 2500), 0.0, 0.0
        tone = []
        for j in range(m):
            p, q = 2 * 0.97 * math.cos(2 * math.pi * f * (1 + 0.3 * math.sin(j / m * 3)) / RATE) * p - 0.94 * q + r.gauss(0, 0.03) * (j % 200 < 60), p
            tone.append(p * math.sin(math.pi * j / m))
        add(s, r.randrange(n), tone)
    return s


def phone(r, n):
    a, b, on = r.uniform(400, 900), r.uniform(1000, 1400), r.randrange(400, 1000)
    return [0.15 * (math.sin(2 * math.pi * (a if i // on % 2 else b) * i / RATE) + 0.3 * math.sin(6 * math.pi * a * i / RATE)) * (i // 16000 % 2 == 0) + r.gauss(0, 0.002) for i in range(n)]


def mains(r, n):
    f, a = r.choice((50, 60, 100, 120)), r.uniform(0.02, 0.2)
    return [a * sum(math.sin(2 * math.pi * f * h * i / RATE) / h for h in (1, 2, 3, 5, 7)) + r.gauss(0, 0.003) for i in range(n)]


def ringing(r, n):
    """Knocks that ring like a bowl or a pipe: a few partials that are no harmonics."""
    s = silence(r, n)
    for _ in range(r.randrange(1, 5)):
        at, f, d = r.randrange(n), r.uniform(150, 900), r.uniform(0.05, 0.25)
        for k in (1, r.uniform(1.4, 1.7), r.uniform(2.1, 2.9), r.uniform(3.5, 5)):
            add(s, at, ring(f * k, 0.8, d / k, 0.25 / k))
    return s


def mixture(r, n):
    """Two other kinds at once."""
    a, b = (k(r, n) for k in r.sample(KINDS, 2))
    return [x + y for x, y in zip(a, b)]


def medley(r, n):
    """A few other kinds, one after the other, some without a pause."""
    s = []
    for k in r.sample(KINDS, r.randrange(2, 6)):
        s += k(r, r.randrange(RATE // 4, RATE * 3 // 2)) + silence(r, r.choice((0, 0, 800, 2400, 8000)))
    return s


KINDS = (white, brown, pink, water, knocks, steps, dishes, claps, motor, tune, chords, beeps, barks, cries, coughs, drums, whistle,
         siren, birds, plucks, humming, organ, snores, typing, scrapes, phone, mains, ringing)
TOGETHER = (mixture, medley)


def sound(kind, i, seed):
    r = random.Random("%s %d %d" % (kind.__name__, i, seed))
    return array.array("h", (max(-32767, min(32767, int(v * 32767))) for v in kind(r, r.randrange(RATE // 2, RATE * 4))))


def write(path, samples):
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(RATE)
        f.writeframes(samples.tobytes())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("dir")
    a.add_argument("--n", type=int, default=12)
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    for kind in KINDS + TOGETHER:
        for i in range(a.n):
            write(os.path.join(a.dir, "%s%02d.wav" % (kind.__name__, i)), sound(kind, i, a.seed))


if __name__ == "__main__":
    main()
