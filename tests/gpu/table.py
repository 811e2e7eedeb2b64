#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The figures of one run beside each other and beside what is wanted, as a
Markdown table. Reads the logs that tests/gpu/gpu.sh leaves (speed, llama, speed8,
llama8); what was not measured is left empty.

usage: table.py LOG_DIR"""
import os
import re
import sys


def read(folder, name):
    try:
        with open(os.path.join(folder, name + ".log")) as f:
            return f.read()
    except OSError:
        return ""


def hearth(text):
    """{"decode 0": tok/s, "prefill 33": tok/s, "steps 33": decode steps, "sessions 4": of one, ...}"""
    out = {}
    for d, v in re.findall(r"decode, depth +(\d+): +([\d.]+) tok/s", text):
        out["decode " + d] = float(v)
    for n, v in re.findall(r"decode, (\d) sessions: .*?, ([\d.]+) of one", text):
        out["sessions " + n] = float(v)
    for n, v, s in re.findall(r"prefill +(\d+): +([\d.]+) tok/s +[\d.]+ ms +([\d.]+) decode steps", text):
        out["prefill " + n], out["steps " + n] = float(v), float(s)
    for key, pattern in (("read", r"read: (\d+) GB/s"), ("weights", r"depth +0:.*weights +(\d+) GB/s"),
                         ("warm", r"warm turn .*?([-\d.]+) decode steps more"), ("memory", r"planned .*taken \(([-+\d.]+) %\)"),
                         ("memory after", r"at the end .*taken \(([-+\d.]+) %\)")):
        m = re.search(pattern, text)
        if m:
            out[key] = float(m.group(1))
    return out


def llama(text):
    """The same keys; of two kinds of KV the q8_0 figure for decode, the better one for prefill."""
    out, kv = {}, "f16"
    for line in text.splitlines():
        m = re.match(r"== KV (\w+)", line)
        if m:
            kv = m.group(1)
        m = re.search(r"\| +(pp|tg)(\d+)(?: @ d(\d+))? +\| +([\d.]+)", line)
        if not m:
            continue
        key = "prefill " + m.group(2) if m.group(1) == "pp" else "decode " + (m.group(3) or "0")
        if m.group(1) == "pp" or kv == "q8_0":
            out[key] = max(out.get(key, 0), float(m.group(4)))
    return out


def main():
    folder = sys.argv[1]
    missed, measured = 0, False

    def line(name, got, peer, want, figure):
        nonlocal missed
        if got is None:
            return
        ratio = figure(got, peer)
        met = "" if ratio is None or want is None else " " if ratio[1] else " **missed** "
        missed += met == " **missed** "
        print(f"| {name} | {got:g} | {'' if peer is None else f'{peer:g}'} | {'' if ratio is None else ratio[0]}{met} | {'' if want is None else want} |")

    for title, a, b, rows in (
        ("All SMs", hearth(read(folder, "speed")), llama(read(folder, "llama")),
         [("decode 0", 2.5), ("decode 4096", 2.5), ("decode 16384", 2)] +
         [("prefill %d" % n, 2.5 if n <= 64 else 1.3) for n in (18, 33, 64, 128, 235, 512, 2048)]),
        ("8 SMs", hearth(read(folder, "speed8")), llama(read(folder, "llama8")),
         [("decode 0", None), ("prefill 33", 2), ("prefill 128", None), ("prefill 512", 1.3)])):
        if not a:
            continue
        measured = True
        print(f"\n{title}:\n\n| | hearth | llama.cpp | ratio | wanted |\n|---|---|---|---|---|")
        for key, want in rows:
            line(key + ", tok/s", a.get(key), b.get(key), want,
                 lambda x, y: None if not y else (f"{x / y:.2f}", want is None or x / y >= want))
        at_most = lambda limit: lambda x, _: ("", x <= limit)
        at_least = lambda limit: lambda x, _: ("", x >= limit)
        if title == "8 SMs":
            line("decode, tok/s", a.get("decode 0"), None, "80", at_least(80))
        else:
            line("33 tokens, decode steps", a.get("steps 33"), None, "at most 1.5", at_most(1.5))
            line("four sessions, of one", a.get("sessions 4"), None, "3", at_least(3))
            line("20 new on 1900 cached, decode steps more", a.get("warm"), None, "at most 2", at_most(2))
            line("device memory, % off the plan", a.get("memory"), None, "at most 1", lambda x, _: ("", abs(x) <= 1))
            line("device memory at the end, % off the plan", a.get("memory after"), None, "at most 1", lambda x, _: ("", abs(x) <= 1))
            line("weights read, GB/s", a.get("weights"), a.get("read"), None,
                 lambda x, y: None if not y else (f"{100 * x / y:.0f} % of what reading does", True))
    print(f"\n{missed} missed" if measured else f"nothing was measured: {folder} has no figures")


main()
