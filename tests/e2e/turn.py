#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hearth turn, plan, say and bench as people use them. Prints TAP.

Every bad input of the issue's list must give one sentence on stderr, the exit
code of docs/man/hearth.1, and leave nothing half-written. What needs the home
model is skipped with that reason where the tree has none. Arguments are names of cases: only these run.
"""
import array
import json
import math
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import wave

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
HEARTH = os.path.join(BUILD, "bin", "hearth")
MODEL = os.environ.get("HEARTH_MODEL", os.path.join(ROOT, "models", "home-q8_0.gguf"))
HOME = os.path.join(ROOT, "docs", "examples", "home.yaml")
CACHE = os.environ.get("HEARTH_CACHE", os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "hearth"))
SILERO = os.path.join(CACHE, "silero-16k-1.weights")
TMP = tempfile.mkdtemp(prefix="hearth-e2e-")
count = 0
failed = 0


def path(name):
    return os.path.join(TMP, name)


def report(name, ok, why=""):
    global count, failed
    count += 1
    if not ok:
        failed += 1
        for line in str(why).splitlines()[:20]:
            print("# " + line)
    print("%s %d - %s" % ("ok" if ok else "not ok", count, name), flush=True)


def skip(name, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, name, why), flush=True)


class Skip(Exception):
    pass


def case(needs_model=False):
    def wrap(fn):
        name = fn.__name__
        if sys.argv[1:] and name not in sys.argv[1:]:
            return fn
        if needs_model and not os.path.exists(MODEL):
            skip(name, "%s is not there" % os.path.relpath(MODEL, ROOT))
            return fn
        try:
            fn()
            report(name, True)
        except Skip as e:
            skip(name, e)
        except AssertionError as e:
            report(name, False, str(e) or traceback.format_exc(limit=-1))
        except Exception as e:  # a broken test is a failed test
            report(name, False, "%s: %s" % (type(e).__name__, e))
        return fn
    return wrap


def run(*args, timeout=120, **kw):
    return subprocess.run([HEARTH, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, text=True, cwd=TMP, **kw)


def turn(*args, **kw):
    return run("turn", "-m", MODEL, "-H", HOME, "--fast", *args, **kw)


def refused(r, code, *words):
    """One sentence, the right code, no answer left behind."""
    lines = [l for l in r.stderr.splitlines() if l.startswith("hearth: ")]
    assert r.returncode == code, "exit code %d, not %d\n%s" % (r.returncode, code, r.stderr)
    assert len(lines) == 1 and len(r.stderr.splitlines()) == 1, "not one sentence:\n" + r.stderr
    for w in words:
        assert w in lines[0], "\"%s\" is not in: %s" % (w, lines[0])
    left = [f for f in os.listdir(TMP) if f.startswith("reply")]
    assert not left, "left behind: %s" % left


# -- sounds ---------------------------------------------------------------------

def wav(name, samples, rate=16000, channels=1, width=2, tag=1, cut=0, claim=None):
    """@samples in -1..1, the same in each channel."""
    out = bytearray()
    for s in samples:
        s = max(-1.0, min(1.0, s))
        if tag == 3:
            one = struct.pack("<f", s)
        elif width == 1:
            one = struct.pack("<B", int(s * 127) + 128)
        elif width == 3:
            one = struct.pack("<i", int(s * 8388607))[:3]
        else:
            one = struct.pack("<h", int(s * 32767))
        out += one * channels
    block = channels * (4 if tag == 3 else width)
    n = len(out) if claim is None else claim
    head = b"RIFF" + struct.pack("<I", 36 + n) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, tag, channels, rate, rate * block, block, 8 * block // channels)
    with open(path(name), "wb") as f:
        f.write(head + b"data" + struct.pack("<I", n) + (out[:len(out) - cut] if cut else out))
    return path(name)


def read_wav(p):
    with open(p, "rb") as f:
        b = f.read()
    assert b[:4] == b"RIFF" and b[8:12] == b"WAVE", p + " is no WAV"
    at, rate = 12, 0
    while at + 8 <= len(b):
        kind, n = b[at:at + 4], struct.unpack("<I", b[at + 4:at + 8])[0]
        if kind == b"fmt ":
            rate = struct.unpack("<I", b[at + 12:at + 16])[0]
        if kind == b"data":
            assert at + 8 + n <= len(b), p + " is cut off"
            a = array.array("h")
            a.frombytes(b[at + 8:at + 8 + n])
            return rate, a
        at += 8 + n + n % 2
    raise AssertionError(p + " has no data")


def spoken(name, text, voice="rms"):
    p = path(name)
    if not os.path.exists(p):
        r = run("say", "--voice", voice, "-o", p, text)
        assert r.returncode == 0, r.stderr
    return p


def spoken_samples(text, rate):
    """The command's samples at another rate, by straight lines: enough for a recogniser."""
    r, a = read_wav(spoken("src-%s.wav" % re.sub(r"\W", "-", text), text))
    n = int(len(a) * rate / r)
    out = []
    for i in range(n):
        x = i * r / rate
        k = int(x)
        v = a[k] + (a[k + 1] - a[k]) * (x - k) if k + 1 < len(a) else a[-1]
        out.append(v / 32768)
    return [0.0] * (rate // 3) + out + [0.0] * (rate // 3)


# -- wrong use ------------------------------------------------------------------

@case()
def help_tells_every_command():
    r = run("--help")
    assert r.returncode == 0
    for c in ("turn", "plan", "say", "bench"):
        assert "\n  %s " % c in r.stdout
        assert run(c, "--help").returncode == 0


@case()
def wrong_use_is_exit_2():
    for args in ([], ["fly"], ["turn"], ["turn", "--mic", "a.wav"], ["turn", "--ctx", "many", "a.wav"], ["turn", "--budget", "x=1", "a.wav"],
                 ["turn", "--kv", "int4", "a.wav"], ["turn", "--nonsense", "a.wav"], ["say"], ["plan", "a", "b"], ["bench"], ["bench", "turns"],
                 ["bench", "turns", "-n", "5x", "a.wav"], ["plan", "--backend", "gpu"], ["turn", "--device", "--embedded", "a.wav"], ["plan", "--ctx"]):
        r = run(*args)
        assert r.returncode == 2, "%s: exit code %d" % (args, r.returncode)
        assert r.stderr.startswith(("hearth", "usage: hearth")) and not r.stdout, "%s: %s" % (args, r.stderr)
    assert 'not "gpu"' in run("plan", "--backend", "gpu").stderr and 'not "llm.kv=1X"' in run("plan", "--budget", "llm.kv=1X").stderr


@case()
def no_output_replaces_an_input():
    for name, args in (("reply.wav", ()), ("q.wav", ("-o", path("q.wav"))), ("q.wav", ("-o", "", "--trace", "./q.wav"))):
        wav(name, [0.0] * 1600)
        with open(path(name), "rb") as f:
            was = f.read()
        r = run("turn", *args, name)
        assert r.returncode == 2 and "would replace it" in r.stderr, r.stderr
        with open(path(name), "rb") as f:
            assert f.read() == was
        os.unlink(path(name))
    r = run("turn", "--text", "-o", path("one"), "--trace", path("one"), "hello")
    assert r.returncode == 2 and "one file" in r.stderr, r.stderr


@case()
def the_manual_lists_every_exit_code():
    with open(os.path.join(ROOT, "tools", "hearth.h")) as f:
        codes = re.findall(r"EXIT_\w+ = (\d+)", f.read())
    with open(os.path.join(ROOT, "docs", "man", "hearth.1")) as f:
        man = f.read()
    assert len(codes) > 8
    for c in codes:
        assert re.search(r"^\.B %s$" % c, man, re.M), "exit code %s is not in the manual" % c


# -- bad sounds ------------------------------------------------------------------

@case()
def a_missing_file_is_exit_5():
    refused(turn("nowhere.wav"), 5, "nowhere.wav", "No such file")


@case()
def a_folder_is_exit_5():
    refused(turn(TMP), 5, TMP)


@case()
def what_is_no_wav_is_exit_5():
    for name, data in (("text.wav", b"this is no sound at all, only words" * 50), ("empty.wav", b""), ("short.wav", b"RIFF"),
                       ("noise.wav", bytes(random.Random(1).randrange(256) for _ in range(5000)))):
        with open(path(name), "wb") as f:
            f.write(data)
        refused(turn(name), 5, name)


@case()
def a_cut_off_wav_is_exit_5():
    refused(turn(wav("cut.wav", [0.1] * 16000, cut=9000)), 5, "cut.wav")


@case()
def zero_samples_are_exit_5():
    refused(turn(wav("zero.wav", [])), 5, "zero.wav")


# -- bad models --------------------------------------------------------------------

def gguf(name, kvs, tensors=0, tail=b""):
    out = struct.pack("<4sIQQ", b"GGUF", 3, tensors, len(kvs))
    for k, v in kvs:
        out += struct.pack("<Q", len(k)) + k.encode()
        if isinstance(v, str):
            out += struct.pack("<IQ", 8, len(v)) + v.encode()
        else:
            out += struct.pack("<II", 4, v)
    with open(path(name), "wb") as f:
        f.write(out + tail)
    return path(name)


COMMAND = []


def command():
    if not COMMAND:
        COMMAND.append(spoken("command.wav", "turn on the kitchen light"))
    return COMMAND[0]


@case()
def bad_models_are_exit_6():
    with open(path("garbage.gguf"), "wb") as f:
        f.write(b"not a model" * 100)
    gguf("strange.gguf", [("general.architecture", "teapot"), ("general.name", "x")])
    gguf("absurd.gguf", [("general.architecture", "qwen3")], tensors=1 << 60)
    gguf("empty.gguf", [("general.architecture", "qwen3")])
    with open(path("cut.gguf"), "wb") as f:
        f.write(struct.pack("<4sIQQ", b"GGUF", 3, 1, 1))
    for name in ("garbage.gguf", "strange.gguf", "absurd.gguf", "empty.gguf", "cut.gguf", "missing.gguf"):
        refused(run("plan", path(name)), 6)
        refused(run("turn", "-m", path(name), "-H", HOME, command()), 6)


@case()
def an_unknown_architecture_is_named():
    refused(run("plan", path("strange.gguf")), 6, "teapot")


@case(needs_model=True)
def a_model_with_a_tensor_gone_or_misshapen_is_exit_6():
    whole = open(MODEL, "rb").read()
    name = b"blk.3.ffn_up.weight"
    at = whole.index(name)
    dims, shape = struct.unpack_from("<I2Q", whole, at + len(name))[0], at + len(name) + 4
    assert dims == 2
    gone = bytearray(whole)
    gone[at:at + len(name)] = b"blk.3.ffn_uq.weight"
    narrow = bytearray(whole)
    struct.pack_into("<2Q", narrow, shape, *reversed(struct.unpack_from("<2Q", whole, shape)))
    flat = bytearray(whole)
    struct.pack_into("<2Q", flat, shape, 0, 0)
    for file, data, *words in (("gone.gguf", gone, "blk.3.ffn_up.weight"), ("narrow.gguf", narrow, "blk.3.ffn_up.weight"), ("flat.gguf", flat, "blk.3.ffn_up.weight")):
        with open(path(file), "wb") as f:
            f.write(data)
        refused(run("plan", path(file)), 6, *words)
        refused(turn("-m", path(file), command()), 6, *words)
        os.unlink(path(file))


@case(needs_model=True)
def a_truncated_model_is_exit_6():
    with open(MODEL, "rb") as f:
        data = f.read()
    with open(path("half.gguf"), "wb") as f:
        f.write(data[:len(data) // 2])
    refused(run("plan", path("half.gguf")), 6)
    refused(run("turn", "-m", path("half.gguf"), "-H", HOME, command()), 6)


# -- what does not fit ---------------------------------------------------------------

@case(needs_model=True)
def a_plan_is_printed_and_parsed():
    r = run("plan", MODEL)
    assert r.returncode == 0 and "The plan fits." in r.stdout, r.stdout + r.stderr
    p = json.loads(run("plan", "--json", MODEL).stdout)
    assert p["fits"] and p["total"] == sum(row["needs"] for row in p["rows"])
    assert {row["tenant"] for row in p["rows"]} == {"llm", "stt", "tts", "vad", "audio"}
    line = re.search(r"^compute  (.*), \d+ threads: (.+)$", r.stdout, re.M)
    assert line and line[1] == p["backend"] and line[2] == p["why_backend"], r.stdout
    asked = run("plan", "--backend", "cuda", MODEL)
    assert asked.returncode == 0 or (p["why_backend"] in asked.stderr and "(backend: cpu)" in asked.stderr), "not why the GPU is not used: " + p["why_backend"]
    assert json.loads(run("plan", "--json", "--backend", "cpu", MODEL).stdout)["why_backend"] == "as asked"


@case(needs_model=True)
def a_home_that_fills_the_context_is_exit_8():
    with open(path("big-home.yaml"), "w") as f:
        f.write("areas:\n" + "".join(f"  - {{name: Room {i}}}\n" for i in range(40)) + "entities:\n" +
                "".join(f"  - {{name: Lamp {i} {k}, domain: light, area: Room {i}, state: \"off\"}}\n" for i in range(40) for k in range(4)))
    words = ("big-home.yaml takes", "context is 4096", "may take 3968", "fewer devices")
    refused(run("turn", "-m", MODEL, "-H", path("big-home.yaml"), "--text", "hello"), 8, *words)
    r = run("plan", "-H", path("big-home.yaml"), MODEL)
    refused(r, 8, *words)
    assert re.search(r"^home     \d+ of 4096 tokens$", r.stdout, re.M) and "The plan fits." not in r.stdout, r.stdout
    p = json.loads(run("plan", "--json", "-H", path("big-home.yaml"), MODEL).stdout)
    assert not p["fits"] and "may take 3968" in p["why_not"] and p["home_tokens"] > 3968
    # The example's home is counted, and refused only where it was named.
    r = run("plan", "-c", "1024", MODEL)
    assert r.returncode == 0 and re.search(r"^home     \d+ of 1024 tokens$", r.stdout, re.M), r.stdout + r.stderr
    r = run("plan", "-c", "1024", "-H", HOME, MODEL)
    refused(r, 8, "context is 1024", "--ctx")
    n = int(re.search(r"at least (\d+)", r.stderr).group(1))
    assert run("plan", "-c", n, "-H", HOME, MODEL).returncode == 0 and run("plan", "-c", n - 1, "-H", HOME, MODEL).returncode == 8
    refused(run("plan", "-H", path("no-home.yaml"), MODEL), 7, "no-home.yaml")


@case(needs_model=True)
def a_context_that_does_not_fit_is_exit_8():
    r = run("plan", "--budget", "llm.kv=1M", MODEL)
    assert r.returncode == 8 and "llm      kv" in r.stdout and re.search(r"^hearth: .*largest context that fits is \d+ tokens$", r.stderr), r.stderr
    assert run("plan", "--json", "--budget", "llm.kv=1M", MODEL).stderr == r.stderr
    refused(turn("--budget", "llm.kv=1M", command()), 8, "largest context that fits is")
    # And that context does fit.
    n = int(re.search(r"fits is (\d+)", r.stderr).group(1))
    assert run("plan", "--budget", "llm.kv=1M", "-c", n, MODEL).returncode == 0
    refused(turn("-c", "1000000", command()), 8, "1000000")
    refused(turn("-c", "64", command()), 8, "context is 64")


@case(needs_model=True)
def a_budget_that_does_not_fit_is_exit_8():
    for b in ("llm.weights=2M", "stt.account=1M", "tts.account=100K"):
        refused(turn("--budget", b, command()), 8, b.split(".")[0], {"M": ".0 MiB", "K": "100.0 KiB"}[b[-1]])


@case()
def a_device_that_was_asked_for_and_is_missing_is_exit_10():
    if os.path.exists("/dev/hearth"):
        raise Skip("/dev/hearth is there")
    if not os.path.exists(MODEL):
        raise Skip("%s is not there" % os.path.relpath(MODEL, ROOT))
    refused(turn("--device", command()), 10, "/dev/hearth")


# -- bad homes -------------------------------------------------------------------------

@case()
def mistakes_in_the_home_are_exit_7():
    for text, where in (("entities:\n  - {name: a, domain: lamp}\n", ":2:23: "), ("entities: [", ":1:"), ("", "empty"),
                        ("entities:\n  - {name: a, domain: light, area: x}\n", ":2:36: ")):
        with open(path("bad.yaml"), "w") as f:
            f.write(text)
        refused(run("turn", "-m", MODEL, "-H", path("bad.yaml"), command()), 7, "bad.yaml", where)
    refused(run("turn", "-m", MODEL, "-H", path("none.yaml"), command()), 7, "none.yaml", "No such file")
    with open(path("two.yaml"), "w") as f:
        f.write("areas: [{name: Hall}]\nentities: [{name: Lamp, domain: light}]\n---\nareas: [{name: Attic}]\n")
    refused(run("turn", "-m", MODEL, "-H", path("two.yaml"), "--text", "hello"), 7, "two.yaml:4:1: ", "second document")


@case(needs_model=True)
def here_is_an_area_as_people_call_it():
    refused(run("turn", "-m", MODEL, "-H", HOME, "--here", "Moon", command()), 2, "Moon", "Kitchen, Living Room, Hall, Bedroom, Bathroom")
    for here in ("Living Room", "living room", "the lounge"):
        r = turn("--here", here, "-o", "", "--text", "is the front door locked")
        assert r.returncode == 0, r.stderr


@case()
def words_without_quotes_are_no_commands():
    refused(run("turn", "--text", "turn", "on", "the", "kitchen", "light"), 2, "5 single words", "quotes", '--text "turn on ..."')
    refused(run("turn", "-t", "99", "--text", "hello"), 2, "--threads", "1 to 64")
    r = run("--version")
    assert r.returncode == 0 and re.fullmatch(r"hearth \d+\.\d+\.\d+\n", r.stdout), r
    for other in ("hearthd", "hearthctl"):
        o = subprocess.run([os.path.join(BUILD, "bin", other), "--version"], capture_output=True, text=True)
        assert o.stdout == r.stdout.replace("hearth", other), (o, r)


# -- outputs -----------------------------------------------------------------------------

@case()
def say_writes_a_wav_or_nothing():
    r = run("say", "-o", path("said.wav"), "It is 21.5 °C.")
    assert r.returncode == 0, r.stderr
    rate, a = read_wav(path("said.wav"))
    assert rate in (8000, 16000, 22050) and max(a) > 1000
    r = run("say", "-o", path("no/where.wav"), "hello")
    assert r.returncode == 9 and not os.path.exists(path("no")), r.stderr
    for nothing in ("", " ", "***", "\U0001f600"):
        refused(run("say", "-o", path("reply.wav"), nothing), 2, "nothing in it that can be said")
    r = run("say", "--voice", "nobody", "hello")
    assert r.returncode == 11 and len(r.stderr.splitlines()) == 1, r.stderr


@case(needs_model=True)
def an_output_that_cannot_be_written_is_exit_9():
    refused(turn("-o", path("no/where.wav"), command()), 9, "where.wav")
    r = turn("-o", "/dev/full", command())
    assert r.returncode == 9 and "No space left" in r.stderr, "%d %s" % (r.returncode, r.stderr)
    r = turn("-o", path("ok.wav"), "--trace", path("no/trace.json"), command())
    # before the turn, which would have been for nothing
    assert r.returncode == 9 and "trace.json" in r.stderr and not r.stdout and not os.path.exists(path("ok.wav")), r.stderr
    refused(turn("-o", "", "--trace", TMP, command()), 9, "Is a directory")
    with open("/dev/full", "w") as full:
        for args in (["plan", MODEL], ["--help"], ["plan", "--help"]):
            r = subprocess.run([HEARTH, *args], stdout=full, stderr=subprocess.PIPE, text=True)
            assert r.returncode == 9 and "standard output cannot be written: No space left" in r.stderr, "%s: %d %s" % (args, r.returncode, r.stderr)
    with open("/dev/full", "w") as full:
        r = subprocess.run([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--fast", "--json", "-o", "", command()], stdout=full, stderr=subprocess.PIPE, text=True, cwd=TMP)
    assert r.returncode == 9 and "No space left" in r.stderr, "%d %s" % (r.returncode, r.stderr)


@case(needs_model=True)
def no_permission_is_exit_9():
    d = path("locked")
    os.makedirs(d, exist_ok=True)
    os.chmod(d, 0o555)
    if os.getuid():
        refused(turn("-o", d + "/a.wav", command()), 9, "ermission")
        return
    # root may write anywhere: as nobody, then.
    os.chmod(TMP, 0o755)
    r = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", HEARTH, "say", "-o", d + "/a.wav", "hello"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if "setpriv" in r.stderr or "cannot execute" in r.stderr or r.returncode in (126, 127):
        raise Skip("not as another user here: " + r.stderr.strip())
    assert r.returncode == 9 and "ermission" in r.stderr, "%d %s" % (r.returncode, r.stderr)
    assert not os.listdir(d)


@case(needs_model=True)
def a_full_disk_leaves_nothing():
    d = path("small")
    os.makedirs(d, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", d], stderr=subprocess.DEVNULL).returncode:
        raise Skip("a small tmpfs cannot be mounted here; /dev/full stands for it")
    try:
        r = turn("-o", d + "/reply.wav", command())
        assert r.returncode == 9 and "No space left" in r.stderr, "%d %s" % (r.returncode, r.stderr)
        assert not os.listdir(d), os.listdir(d)
        # An answer that is there already stays as it was.
        with open(d + "/reply.wav", "w") as f:
            f.write("old")
        r = turn("-o", d + "/reply.wav", command())
        assert r.returncode == 9 and open(d + "/reply.wav").read() == "old" and os.listdir(d) == ["reply.wav"]
    finally:
        subprocess.run(["umount", d])


# -- turns -------------------------------------------------------------------------------

def state_of(doc, name):
    return next(e["state"] for e in doc["state"] if e["name"] == name)


@case(needs_model=True)
def the_demo_turn_calls_the_tool_and_answers():
    r = run("turn", "-m", MODEL, "-H", HOME, "--json", "-o", "demo.wav", "--trace", "trace.json", command())
    assert r.returncode == 0, r.stderr
    d = json.loads(r.stdout)
    t = d["turns"][0]
    assert t["transcript"] == "turn on the kitchen light", t["transcript"]
    assert t["end"] == "answered" and t["finish"] == "stop" and not t["fallback"], t
    assert [c["name"] for c in t["calls"]] == ["HassTurnOn"], t["calls"]
    assert t["calls"][0]["arguments"] == {"name": "Kitchen Light"}, t["calls"]
    assert t["calls"][0]["changes"][0]["to"]["state"] == "on"
    assert state_of(d, "Kitchen Light")["state"] == "on"
    assert t["phrases"] and "{" not in t["reply"] and "<" not in t["reply"], t["reply"]
    rate, a = read_wav(path("demo.wav"))
    assert len(a) == t["samples_out"] and max(a) > 1000
    points = t["trace"]["points"]
    for p in ("speech_start", "speech_end", "endpoint", "stt_partial", "stt_final", "prefill_start", "prefill_end", "first_token", "tool_call", "tool_done",
              "reply_token", "first_phrase", "first_audio", "first_played", "done"):
        assert points[p] is not None, p + " is missing"
    assert t["trace"]["anomalies"] == 0
    assert points["speech_start"] < points["speech_end"] < points["endpoint"] <= points["tool_call"] <= points["tool_done"] <= points["reply_token"] \
        <= points["first_phrase"] <= points["first_audio"] <= points["first_played"] <= points["done"], points
    for row in d["tenants"]:
        assert row["min"] <= row["max"] and row["current"] <= row["peak"] <= row["max"], row
        assert abs(row["peak"] - row["predicted"]) <= 0.01 * row["predicted"], row
    assert {row["tenant"] for row in d["tenants"]} == {"llm", "stt", "tts", "vad", "audio"}
    print("# resident at most %.1f MiB; speech end to first audio %.1f ms, without the wait %.1f ms" % (
        d["max_rss"] / 1048576, t["trace"]["gaps_ms"]["speech_end_to_first_audio"], t["trace"]["gaps_ms"]["endpoint_to_first_audio"]))
    assert d["max_rss"] < 400 * 1048576, d["max_rss"]
    events = json.load(open(path("trace.json")))["traceEvents"]
    assert len(events) > 20
    for e in events:
        assert e["ph"] in "XiM" and "pid" in e and "tid" in e and e["name"], e
        if e["ph"] == "X":
            assert e["dur"] >= 0 and e["ts"] >= 0, e
        if e["ph"] == "i":
            assert e["s"] in "gpt" and e["ts"] >= 0, e
    os.unlink(path("demo.wav"))


@case(needs_model=True)
def the_text_form_tells_everything():
    r = turn("-o", "plain.wav", command())
    assert r.returncode == 0, r.stderr
    for w in ("heard       turn on the kitchen light", "tool call   HassTurnOn", "changed   Kitchen Light: state off -> on", "reply       ", "wait for the end", "tenant",
              "peak", "resident memory"):
        assert w in r.stdout, w + " is not in\n" + r.stdout
    os.unlink(path("plain.wav"))


@case(needs_model=True)
def several_turns_are_one_conversation():
    r = turn("--json", "-o", "", command(), spoken("off.wav", "turn it off"))
    d = json.loads(r.stdout)
    assert [t["transcript"] for t in d["turns"]] == ["turn on the kitchen light", "turn it off"], [t["transcript"] for t in d["turns"]]
    assert [c["name"] for c in d["turns"][1]["calls"]] == ["HassTurnOff"] and state_of(d, "Kitchen Light")["state"] == "off", d["turns"][1]["calls"]
    r = turn("--json", "-o", "", "--text", "turn on the kitchen light", "now turn it off again")
    assert r.returncode == 0, r.stderr
    d = json.loads(r.stdout)
    assert d["turns"][1]["cached_tokens"] > 0.8 * d["turns"][0]["prompt_tokens"], "the conversation was read again"
    assert [c["name"] for c in d["turns"][1]["calls"]] == ["HassTurnOff"], d["turns"][1]["calls"]
    assert state_of(d, "Kitchen Light")["state"] == "off", d["turns"]


@case(needs_model=True)
def a_turn_without_words_does_not_end_the_conversation():
    p = wav("quiet.wav", [0.0] * 16000)
    fox = spoken("fox.wav", "the quick brown fox jumps over the lazy dog and never looks back")
    r = turn("--json", "-o", "reply.wav", command(), p, fox, spoken("off.wav", "turn it off"))
    d = json.loads(r.stdout)
    assert [t["end"] for t in d["turns"]] == ["answered", "heard nothing", "not a command", "answered"], [t["end"] for t in d["turns"]]
    assert r.returncode == 3 and r.stderr.count("hearth: ") == 2, "%d %s" % (r.returncode, r.stderr)
    assert state_of(d, "Kitchen Light")["state"] == "off"
    # What was answered is in the file, and the document says so.
    assert d["out"] == "reply.wav"
    rate, a = read_wav(path("reply.wav"))
    assert len(a) == sum(t["samples_out"] for t in d["turns"]) and len(a) > 0
    os.unlink(path("reply.wav"))
    r = turn("--json", "-o", "reply.wav", p)
    assert r.returncode == 3 and json.loads(r.stdout)["out"] is None and not os.path.exists(path("reply.wav"))


@case(needs_model=True)
def output_that_nobody_takes_is_exit_9():
    args = [HEARTH, "turn", "-m", MODEL, "-H", HOME, "--fast", "-o", "", "--text", "turn on the kitchen light"]
    for more, out in (([], "/dev/full"), (["-q"], "/dev/full"), (["--json"], "/dev/full")):
        with open(out, "w") as f:
            r = subprocess.run(args[:-2] + more + args[-2:], stdout=f, stderr=subprocess.PIPE, timeout=120, text=True, cwd=TMP)
        refused(r, 9, "standard output", "No space left")
    # Closed from the start: what is printed must not go into the next file that is opened.
    args[args.index("-o") + 1] = "closed.wav"
    r = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh"] + args, stderr=subprocess.PIPE, timeout=120, text=True, cwd=TMP)
    refused(r, 9, "standard output", "Bad file descriptor")
    read_wav(path("closed.wav"))
    r = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"] + args, timeout=120, cwd=TMP)
    assert r.returncode == 9, r.returncode
    rate, a = read_wav(path("closed.wav"))
    assert max(a) > 1000
    os.unlink(path("closed.wav"))


@case(needs_model=True)
def names_that_are_no_utf8_lose_no_turn():
    name = os.path.join(os.fsencode(TMP), b"b\xff\xfed.wav")
    with open(command(), "rb") as f, open(name, "wb") as g:
        g.write(f.read())
    r = subprocess.run([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--fast", "--json", "-o", os.path.join(os.fsencode(TMP), b"o\xff.wav"), name], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=120)
    d = json.loads(r.stdout.decode())
    assert r.returncode == 0 and len(d["turns"]) == 1, "%d %s" % (r.returncode, r.stderr)
    assert d["turns"][0]["source"].endswith("/b\ufffd\ufffdd.wav") and d["out"].endswith("/o\ufffd.wav"), d["turns"][0]["source"]
    assert d["turns"][0]["transcript"] == "turn on the kitchen light"
    read_wav(os.path.join(os.fsencode(TMP), b"o\xff.wav"))


@case(needs_model=True)
def commands_that_are_no_text_are_exit_2():
    for arg, word in ((b"", "empty"), (b" \t", "empty"), (b"turn on \xff the light", "UTF-8"), (b"a" * 512, "511")):
        r = subprocess.run([HEARTH, "turn", "-m", MODEL, "-H", HOME, "-o", "", "--text", b"turn on the kitchen light", arg], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=120, text=True)
        refused(r, 2, "command 2", word)
        assert r.stdout == "", r.stdout


@case(needs_model=True)
def silence_noise_and_music_are_heard_as_nothing():
    rnd = random.Random(3)
    tune = [0.3 * sum(math.sin(2 * math.pi * f * i / 16000) for f in (262, 330, 392)) / 3 * (0.6 + 0.4 * math.sin(i / 4000)) for i in range(48000)]
    for name, s in (("silence.wav", [0.0] * 48000), ("noise.wav", [rnd.uniform(-0.3, 0.3) for _ in range(48000)]),
                    ("hiss.wav", [rnd.gauss(0, 0.01) for _ in range(48000)]), ("music.wav", tune)):
        r = turn("--json", "-o", "reply.wav", wav(name, s))
        assert r.returncode == 3, "%s: exit code %d\n%s" % (name, r.returncode, r.stdout[:500] + r.stderr)
        t = json.loads(r.stdout)["turns"][0]
        assert not t["calls"] and t["transcript"] == "" and t["reply"] == "" and "heard nothing" in r.stderr, "%s: %s" % (name, t)
        if os.path.exists(path("reply.wav")):
            os.unlink(path("reply.wav"))


@case(needs_model=True)
def the_sounds_of_a_home_are_no_words():
    """Thirty kinds (tests/bench/noises.py), one after the other with pauses; nobody speaks, so nothing is heard by either detector."""
    folder = path("noises")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "bench", "noises.py"), folder, "--n", "1", "--seed", "2"], check=True)
    names = sorted(os.listdir(folder))
    assert len(names) == 30, names
    silero = os.path.exists(SILERO)
    for part in range(4):
        s = []
        for n in names[part::4]:
            with wave.open(os.path.join(folder, n)) as f:
                s += array.array("h", f.readframes(f.getnframes())) + array.array("h", [0] * 12800)
        s = [v / 32768 for v in s[:29 * 16000]]
        for kind in ("silero", "energy"):
            if kind == "silero" and not silero:
                continue
            r = turn("--json", "-o", "", "--fast", "--vad", kind, wav("sounds.wav", s))
            t = json.loads(r.stdout)["turns"][0]
            assert r.returncode == 3 and not t["calls"] and t["transcript"] == "" and t["reply"] == "", "part %d, %s: %s" % (part, kind, t)
    if not silero:
        raise Skip("no weights of the Silero detector are set up; the energy detector alone was tried")


@case(needs_model=True)
def a_bare_answer_to_no_question_is_nothing():
    r = turn("--json", "-o", "", spoken("both.wav", "both"))
    t = json.loads(r.stdout)["turns"][0]
    assert r.returncode == 3 and not t["calls"] and t["reply"] == "", "exit code %d, %s" % (r.returncode, t)
    r = turn("--json", "-o", "", command(), spoken("both.wav", "both"))
    d = json.loads(r.stdout)
    assert len(d["turns"]) == 2 and d["turns"][1]["transcript"] == "both", d["turns"][-1]


@case(needs_model=True)
def speech_that_is_no_command_is_exit_4():
    r = turn("--json", "-o", "", spoken("fox.wav", "the quick brown fox jumps over the lazy dog and never looks back"))
    assert r.returncode == 4, "exit code %d\n%s" % (r.returncode, r.stdout[:600])
    t = json.loads(r.stdout)["turns"][0]
    assert not t["calls"] and t["fallback"], t


@case(needs_model=True)
def without_silero_short_commands_and_other_speech_are_told_apart():
    r = turn("--json", "-o", "", "--vad", "energy", spoken("lights.wav", "lights off"), spoken("fox.wav", "the quick brown fox jumps over the lazy dog and never looks back"), command())
    t = json.loads(r.stdout)["turns"]
    assert [x["end"] for x in t] == ["answered", "not a command", "answered"] and t[0]["transcript"] == "lights off", [(x["end"], x["transcript"], x["score"]) for x in t]


@case(needs_model=True)
def any_rate_width_and_channel_count_is_heard():
    text = "turn on the kitchen light"
    for name, kw in (("r8ch.wav", dict(channels=8)), ("r24.wav", dict(width=3)), ("rfloat.wav", dict(tag=3)), ("r44.wav", dict(rate=44100)), ("r48s.wav", dict(rate=48000, channels=2))):
        p = wav(name, spoken_samples(text, kw.get("rate", 16000)), **kw)
        t = json.loads(turn("--json", "-o", "", p).stdout)["turns"][0]
        assert t["transcript"] == text, "%s: heard \"%s\"" % (name, t["transcript"])


@case(needs_model=True)
def a_pipe_is_heard_too():
    with open(command(), "rb") as f:
        data = f.read()
    os.mkfifo(path("pipe"))
    for name in ("-", path("pipe"), "/dev/stdin"):
        writer = None
        if name == path("pipe"):
            writer = subprocess.Popen(["sh", "-c", 'cat "$0" > "$1"', command(), name])
        r = subprocess.run([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--fast", "--json", "-o", "", name], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        if writer:
            writer.wait(timeout=60)
        assert r.returncode == 0, "%s: exit code %d, %s" % (name, r.returncode, r.stderr)
        assert json.loads(r.stdout)["turns"][0]["transcript"] == "turn on the kitchen light", name
    r = subprocess.run([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--fast", "--json", "-o", "", "-"], input=data[:20000], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert r.returncode == 5 and b"cut off" in r.stderr, "exit code %d, %s" % (r.returncode, r.stderr)


@case(needs_model=True)
def a_1_khz_file_is_exit_5():
    s = spoken_samples("turn on the kitchen light", 16000)
    refused(turn("--json", "-o", "", wav("k1.wav", s[::16], rate=1000)), 5, "1000 Hz")


@case(needs_model=True)
def an_hour_of_audio_ends_in_time():
    p = path("hour.wav")
    n = 8000 * 3600
    with open(p, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + n) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", n))
        block = bytes([128]) * 80000
        for _ in range(n // 80000):
            f.write(block)
    start = time.time()
    r = turn("--json", "-o", "", p)
    assert r.returncode == 3, r.returncode
    t = json.loads(r.stdout)["turns"][0]
    assert t["heard_s"] < 40 and t["unheard_s"] > 3500, t
    m = re.fullmatch(r"hearth: .*hour.wav: heard nothing in ([0-9.]+) s; the ([0-9.]+) s after them were not listened to\n", r.stderr)
    assert m and abs(float(m[1]) + float(m[2]) - 3600) < 1, r.stderr
    assert time.time() - start < 60
    os.unlink(p)


@case(needs_model=True)
def ten_minutes_of_music_are_not_all_listened_to():
    rnd = random.Random(11)
    bar = []
    for _ in range(12):
        f = rnd.choice((262, 294, 330, 349, 392, 440, 494, 523))
        bar += [0.3 * math.exp(-i / 3000) * sum(math.sin(2 * math.pi * f * h * i / 8000) / h for h in (1, 2, 3)) / 2 for i in range(3000)]
    p = path("tune.wav")
    with wave.open(p, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(8000)
        f.writeframes(array.array("h", [int(v * 32767) for v in bar + [0.0] * 8000]).tobytes() * 110)
    r = turn("--json", "-o", "", "--vad", "energy", p) # the one that music keeps awake
    t = json.loads(r.stdout)["turns"][0]
    assert r.returncode == 3 and not t["calls"], "exit code %d, %s" % (r.returncode, t)
    assert t["heard_s"] < 150 and t["unheard_s"] > 400, t
    os.unlink(p)


@case(needs_model=True)
def endless_speech_is_cut_and_no_command():
    s = spoken_samples("turn on the kitchen light", 16000)
    s = [v for v in s if abs(v) > 0.002] * 20
    r = turn("--json", "-o", "", wav("endless.wav", s))
    assert r.returncode in (3, 4), "exit code %d\n%s" % (r.returncode, r.stdout[:300])


@case(needs_model=True)
def ctrl_c_at_any_moment_leaves_nothing_half_written():
    rnd = random.Random(5)
    for k in range(12):
        for f in ("reply.wav", "t.json"):
            if os.path.exists(path(f)):
                os.unlink(path(f))
        before = set(os.listdir(TMP))
        p = subprocess.Popen([HEARTH, "turn", "-m", MODEL, "-H", HOME, "-o", "reply.wav", "--trace", "t.json", command()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=TMP)
        time.sleep(rnd.uniform(0.0, 3.5))
        p.send_signal(signal.SIGINT if k % 3 else signal.SIGTERM)
        out, err = p.communicate(timeout=20)
        after = set(os.listdir(TMP)) - before
        if p.returncode == 0:
            read_wav(path("reply.wav"))
            json.load(open(path("t.json")))
            continue
        assert p.returncode == 130, "exit code %d: %s" % (p.returncode, err)
        assert after <= {"reply.wav", "t.json"}, "left behind: %s" % after
        # One that is there is whole.
        if "reply.wav" in after:
            read_wav(path("reply.wav"))
        if "t.json" in after:
            json.load(open(path("t.json")))
    for f in ("reply.wav", "t.json"):
        if os.path.exists(path(f)):
            os.unlink(path(f))


@case(needs_model=True)
def a_sound_card_is_played_on_or_missed():
    r = turn("-o", "", "-q", "--play", "--sound", "null", command())
    assert r.returncode == 0 and r.stdout.strip(), r.stderr
    refused(turn("-o", "", "--play", "--sound", "nonsense", command()), 10, "nonsense")
    refused(turn("-o", "", "--mic", "--sound", "nonsense"), 10, "nonsense")


@case(needs_model=True)
def a_microphone_is_left_by_ctrl_c():
    # ALSA's null device gives silence as fast as it is asked.
    p = subprocess.Popen([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--mic", "--sound", "null", "-o", "reply.wav"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TMP)
    time.sleep(3)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20)
    assert p.returncode in (0, 130), "%d %s" % (p.returncode, err)
    assert not os.path.exists(path("reply.wav"))


@case(needs_model=True)
def a_microphone_is_heard_and_the_card_gets_the_answer():
    """ALSA's file plugin plays a recording into the microphone and records the card: all of ALSA but the hardware."""
    if not os.path.exists("/usr/share/alsa/alsa.conf"):
        raise Skip("ALSA's own configuration is not installed")
    said = array.array("h", [0] * 16000) + array.array("h", [int(v * 32767) for v in spoken_samples("turn on the kitchen light", 16000)]) + array.array("h", [0] * 64000)
    with open(path("mic.raw"), "wb") as f:
        f.write(said.tobytes())
    with open(path("asound.conf"), "w") as f:
        f.write('</usr/share/alsa/alsa.conf>\npcm.card { type file slave.pcm "null" file "%s" format "raw" }\n'
                'pcm.mic { type file slave.pcm "null" file "/dev/null" infile "%s" format "raw" }\n'
                'pcm.room { type asym playback.pcm "card" capture.pcm "mic" }\n' % (path("card.raw"), path("mic.raw")))
    p = subprocess.Popen([HEARTH, "turn", "-m", MODEL, "-H", HOME, "--mic", "--play", "--sound", "room", "-o", "answer.wav"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         cwd=TMP, env=dict(os.environ, ALSA_CONFIG_PATH=path("asound.conf")))
    lines = []
    for line in p.stdout:
        lines.append(line)
        if line.startswith("reply"):
            p.send_signal(signal.SIGINT)
            break
    rest, err = p.communicate(timeout=60)
    text = "".join(lines)
    assert "heard       turn on the kitchen light" in text and "HassTurnOn" in text, text + err
    with wave.open(path("answer.wav")) as f:
        answer = f.readframes(f.getnframes())
    with open(path("card.raw"), "rb") as f:
        card = f.read()
    # Ctrl-C may have fallen into the next answer, which the card began and the file has as far.
    assert len(answer) > 16000 and (card.startswith(answer) or answer.startswith(card[:len(card) - len(card) % 2])), "%d bytes in the file, %d at the card" % (len(answer), len(card))
    for n in ("mic.raw", "card.raw", "asound.conf", "answer.wav"):
        os.unlink(path(n))


@case(needs_model=True)
def an_evaluation_of_nothing_is_no_success():
    open(path("none.jsonl"), "w").close()
    refused(run("eval-home", "-m", MODEL, TMP), 1, "Is a directory")
    refused(run("eval-home", "-m", MODEL, path("none.jsonl")), 1, "none.jsonl: the file is empty")


@case(needs_model=True)
def bench_gives_percentiles():
    r = run("bench", "turns", "-m", MODEL, "-H", HOME, "--fast", "-n", "2", "--json", command())
    assert r.returncode == 0, r.stderr
    d = json.loads(r.stdout)
    assert d["turns"] == 2 and d["answered"] == 2
    g = d["gaps_ms"]["endpoint_to_first_audio"]
    assert g["count"] == 2 and g["min"] <= g["p50"] <= g["p90"] <= g["p99"] <= g["max"]


print("1..%d" % count)
subprocess.run(["rm", "-rf", TMP])
sys.exit(1 if failed else 0)
