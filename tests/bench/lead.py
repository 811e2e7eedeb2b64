#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commands after a pause in a room that is not silent, over every way that sound comes in.

    lead.py [--dir DIR] [--seed 1] [--rows 100,3 200,1] [--tail 0.8] [--gain 0] [--offset 0] [--energy] [--list]

Twenty sentences by four voices of flite, with white noise of a standard deviation (of 32768) over all of the file, and
seconds of it before the speech. The same samples go to hearthd as a Wyoming stream, to /v1/audio/transcriptions, and
through the turn's own path (bench_hear); how many of each came back word for word is printed. BUILD is the folder with
bin/; --dir keeps the voices for a second run. --gain (dB) is of the voices; --offset adds a constant to every sample;
--energy leaves Silero out.
"""
import argparse
import array
import os
import random
import subprocess
import sys
import tempfile
import wave

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from hearthd import BUILD, SILERO, Daemon, Wyoming, call, multipart

RATE = 16000
HOME = os.path.join(ROOT, "docs", "examples", "home.yaml")
VOICES = ("awb", "slt", "rms", "kal16")
SENTENCES = (
    "turn on the kitchen light", "turn off the kitchen light", "turn on the hall light", "is the front door locked", "what time is it",
    "turn off all the lights", "turn off the wall lamp", "turn on the bedside lamp", "lock the front door", "open the curtains",
    "close the curtains", "turn on the floor lamp", "turn on the bedroom fan", "turn off the television", "turn off the hall light",
    "is the kitchen light on", "turn on the bathroom light", "turn off the bedroom fan", "stop the music", "turn on the television",
)
ROWS = ((0, 1), (0, 15), (100, 1), (100, 3), (200, 0), (200, 1), (200, 3))


def speech(folder):
    out = []
    for i, text in enumerate(SENTENCES):
        path = os.path.join(folder, "said%02d.wav" % i)
        # flite's excitation is random: what is in the folder is kept, so that two builds hear the same
        if not os.path.exists(path):
            subprocess.run([os.path.join(BUILD, "bin", "hearth"), "say", "--voice", VOICES[i % 4], "-o", path, text], check=True, stdout=subprocess.DEVNULL)
        with wave.open(path) as f:
            assert (f.getframerate(), f.getnchannels(), f.getsampwidth()) == (RATE, 1, 2)
            out.append((text, array.array("h", f.readframes(f.getnframes()))))
    return out


def room(r, said, sigma, lead, tail, gain, offset):
    s = [0] * int(lead * RATE) + [v * 10 ** (gain / 20) for v in said] + [0] * int(tail * RATE)
    return array.array("h", (max(-32768, min(32767, int(v + offset + (r.gauss(0, sigma) if sigma else 0)))) for v in s))


def plain(text):
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split())


def by_wyoming(d, pcm):
    w, fmt = Wyoming(d.wyoming), {"rate": RATE, "width": 2, "channels": 1}
    w.send("audio-start", fmt)
    raw = pcm.tobytes()
    for i in range(0, len(raw), 2048):
        w.send("audio-chunk", fmt, raw[i:i + 2048])
    w.send("audio-stop")
    ev = w.until("transcript", "error")[-1]
    w.s.close()
    return ev[1]["text"]


def by_file(d, path):
    with open(path, "rb") as f:
        raw, headers = multipart({"model": "whisper-1"}, "a.wav", f.read())
    status, j, _ = call(d, "POST", "/v1/audio/transcriptions", raw=raw, headers=headers, key=None)
    assert status == 200, j
    return j["text"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rows", nargs="*", default=ROWS, type=lambda x: tuple(map(int, x.split(","))))
    p.add_argument("--tail", type=float, default=0.8)
    p.add_argument("--gain", type=float, default=0)
    p.add_argument("--offset", type=int, default=0)
    p.add_argument("--energy", action="store_true")
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    tmp = tempfile.TemporaryDirectory()
    folder = a.dir or tmp.name
    os.makedirs(folder, exist_ok=True)
    vad = ", vad: " + SILERO if os.path.exists(SILERO) and not a.energy else ""
    d = Daemon(text="model: {path: {model}, context: 256, sessions: 1, threads: 1}\nhttp: {host: 127.0.0.1, port: 0, max_body: 8M}\n"
                    "speech: {stt: true, cache: {dir}, home: %s%s}\nwyoming: {enabled: true, host: 127.0.0.1, port: 0, zeroconf: false}\n" % (HOME, vad))
    said, counts = speech(folder), {}
    listing = os.path.join(folder, "list.txt")
    with open(listing, "w") as out:
        for sigma, lead in a.rows:
            n = counts[sigma, lead] = [0, 0]
            for i, (text, pcm) in enumerate(said):
                r = random.Random("%d %d %d %d" % (i, sigma, lead, a.seed))
                path = os.path.join(folder, "%d-%d-%02d.wav" % (sigma, lead, i))
                s = room(r, pcm, sigma, lead, a.tail, a.gain, a.offset)
                with wave.open(path, "wb") as f:
                    f.setparams((1, 2, RATE, 0, "NONE", ""))
                    f.writeframes(s.tobytes())
                out.write("%d, %d s\t%s\t%s\n" % (sigma, lead, plain(text), path))
                heard = by_wyoming(d, s), by_file(d, path)
                for k in (0, 1):
                    n[k] += plain(heard[k]) == plain(text)
                if a.list:
                    print("#", sigma, lead, text, heard, flush=True)
    d.stop()
    turn = subprocess.run([os.path.join(BUILD, "bin", "bench_hear"), "-d", "silero" if vad else "energy", "-w", SILERO, "-H", HOME, listing], check=True, capture_output=True, text=True).stdout
    print("| noise, lead | Wyoming | /v1/audio/transcriptions | turn |\n|---|---|---|---|")
    for (sigma, lead), n in counts.items():
        name = "%d, %d s" % (sigma, lead)
        right = next(line for line in turn.splitlines() if line.startswith(name + " "))[len(name):].split()[2]
        print("| %s | %d | %d | %s |" % (name, n[0], n[1], right))


if __name__ == "__main__":
    main()
