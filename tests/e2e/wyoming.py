#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hearthd's Wyoming side, read as strictly as the Python client library reads
(a header line of at most 64 KiB, what it raises on, what it takes for a
disconnect). Standard library only; prints TAP."""
import array
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import wave

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hearthd as t
from hearthd import ROOT, Daemon, Wyoming, call, chat, check

HOME = os.path.join(ROOT, "docs/examples/home.yaml")
CONF = f"""model: {{path: {{model}}, id: home, context: 2048, sessions: 4, threads: 2}}
http: {{host: 127.0.0.1, port: 0}}
speech: {{stt: true, tts: true, cache: {{dir}}, home: {HOME}, wake: okay hearth}}
wyoming:
  enabled: true
  zeroconf: true
  listen:
    - {{port: 0}}
    - {{port: 0, services: [tts]}}
    - {{port: 0, services: [asr]}}
    - {{port: 0, services: [wake]}}
    - {{unix: {{dir}}/handle.sock, services: [handle, intent]}}
"""


class Disconnected(Exception):
    pass


class Strict(Wyoming):
    """Reads as the library does: what it cannot read is a disconnect or an exception."""

    def __init__(self, where):
        if isinstance(where, str):
            self.s = socket.socket(socket.AF_UNIX)
            self.s.settimeout(60)
            self.s.connect(where)
        else:
            self.s = socket.create_connection(("127.0.0.1", where), timeout=60)
        self.f = self.s.makefile("rb")

    def read(self):
        line = self.f.readline(65537)
        if not line:
            return None, None, None
        if len(line) > 65536 or not line.endswith(b"\n"):
            raise Disconnected("the header line is over 64 KiB")
        h = json.loads(line.decode("utf-8"))
        kind = h["type"]
        data = h.get("data", {})
        assert "data" not in h, "data belongs into a block of its own"
        if h.get("data_length"):
            data = {**data, **json.loads(self.exactly(h["data_length"]).decode("utf-8"))}
        payload = self.exactly(h["payload_length"]) if h.get("payload_length") else b""
        assert h.get("data_length", 1) and h.get("payload_length", 1), "an empty block has no length"
        return kind, data, payload

    def exactly(self, n):
        b = self.f.read(n)
        if len(b) != n:
            raise EOFError
        return b


def program(p, items):
    """Program and model as the library's dataclasses want them: what is missing raises."""
    for x in [p] + p[items]:
        assert isinstance(x["name"], str) and x["attribution"]["name"] and x["attribution"]["url"] and x["installed"] is True, x
    for m in p[items]:
        assert isinstance(m["languages"], list) and m["languages"]
    return p


def info_of(where):
    w = Strict(where)
    w.send("describe")
    kind, info, _ = w.read()
    w.s.close()
    assert kind == "info"
    for k in ("asr", "tts", "handle", "intent", "wake", "mic", "snd"):
        assert isinstance(info[k], list), k
    assert "satellite" not in info, "a satellite's other services are not loaded"
    return {"asr": [program(p, "models") for p in info["asr"]], "tts": [program(p, "voices") for p in info["tts"]],
            "wake": [program(p, "models") for p in info["wake"]],
            "handle": [program(p, "models") for p in info["handle"]], "intent": [program(p, "models") for p in info["intent"]]}


def test_describe(d):
    i = info_of(d.ports[0])
    whose = [(p["attribution"], p["version"]) for k in i for p in i[k]] + [(m["attribution"], None) for k in i for p in i[k] for key in ("models", "voices") for m in p.get(key, [])]
    check({"CMU Sphinx": "https://cmusphinx.github.io", "CMU Flite": "http://cmuflite.org", "hearth": "https://hearth.example"} == {a["name"]: a["url"] for a, _ in whose} and
          all(v is None or v.count(".") == 2 for _, v in whose), "whose each is, with their own homes, and the version", whose)
    check(all(len(i[k]) == 1 for k in i), "one address for all services describes all of them", i)
    check(i["asr"][0]["supports_transcript_streaming"] is True and i["tts"][0]["supports_synthesize_streaming"] is True and
          i["handle"][0]["supports_handled_streaming"] is True, "and says what it streams")
    i = [info_of(p) for p in d.ports[1:] + [d.sock]]
    check([[k for k in x if x[k]] for x in i] == [["tts"], ["asr"], ["wake"], ["handle", "intent"]], "an address for one service describes that service", i)
    busy = threading.Thread(target=call, args=(d, "POST", "/v1/chat/completions", chat("tell me a story", max_tokens=300, temperature=1), None))
    busy.start()
    worst = 0
    for _ in range(20):
        t0 = time.monotonic()
        info_of(d.ports[0])
        worst = max(worst, time.monotonic() - t0)
    busy.join()
    print(f"# describe while the model generates: {worst * 1000:.0f} ms at worst")
    check(worst < 10, "describe is answered while the model generates", worst)


def test_framing(d):
    """The table of what writers send, and what must not end a connection."""
    ok = [
        ("data in the header only", b'{"type":"ping","data":{"text":"a"}}\n', "a"),
        ("data in a block", b'{"type":"ping","data_length":12}\n{"text":"b"}', "b"),
        ("both: the block wins, key by key", b'{"type":"ping","data":{"text":"c","x":1},"data_length":12}\n{"text":"d"}', "d"),
        ("CRLF", b'{"type":"ping","data":{"text":"e"}}\r\n', "e"),
        ("unknown header keys and a version", b'{"type":"ping","version":"9.9","future":[1],"data":{"text":"f"},"payload_length":0}\n', "f"),
        ("a payload that nobody asked for", b'{"type":"ping","data":{"text":"g"},"payload_length":3}\nxyz', "g"),
        ("null lengths", b'{"type":"ping","data":{"text":"h"},"data_length":null,"payload_length":null}\n', "h"),
        ("data null", b'{"type":"ping","data":null}\n', None),
        ("data null with a block", b'{"type":"ping","data":null,"data_length":12}\n{"text":"i"}', "i"),
        ("text of another type", b'{"type":"ping","data":{"text":7}}\n', None),
        ("raw UTF-8", '{"type":"ping","data":{"text":"K\u00fcche \U0001f4a1"}}\n'.encode(), "K\u00fcche \U0001f4a1"),
        ("a data block of 70 kB", b'{"type":"ping","data_length":70011}\n{"text":"' + b"z" * 70000 + b'"', None),
    ]
    w = Strict(d.ports[0])
    for name, raw, want in ok:
        if name.startswith("a data block of"):
            raw += b"}"
            raw = raw.replace(b"70011", str(len(raw) - raw.index(b"\n") - 1).encode())
            want = "z" * 70000
        w.s.sendall(raw)
        kind, data, _ = w.read()
        check(kind == "pong" and data.get("text") == want, "read: " + name, (kind, str(data)[:200]))
    # one byte at a time, and many events in one piece
    for b in ok[2][1]:
        w.s.sendall(bytes([b]))
    check(w.read()[:2] == ("pong", {"text": "d"}), "read: a byte at a time")
    w.s.sendall(ok[1][1] * 50)
    check(all(w.read()[1] == {"text": "b"} for _ in range(50)), "read: fifty events in one piece")
    for kind in ("run-satellite", "pause-satellite", "satellite-connected", "run-pipeline", "timer-started", "timer-cancelled", "detect", "detection", "not-detected", "played",
                 "user-event", "voice-started", "audio-chunk", "audio-stop", "synthesize-chunk", "streaming-started", "x" * 63, "info", "pong", "error"):
        w.send(kind, {"x": None})
    w.send("ping", {"text": "still"})
    check(w.read()[:2] == ("pong", {"text": "still"}), "events that are unknown or out of place are ignored")
    bad = [
        ("a blank line", b"\n"), ("no JSON", b"hello\n"), ("an array", b"[]\n"), ("no type", b"{}\n"), ("a type that is no text", b'{"type":1}\n'),
        ("a type of 64 bytes", b'{"type":"' + b"x" * 64 + b'"}\n'), ("invalid UTF-8", b'{"type":"\xff"}\n'), ("a negative length", b'{"type":"ping","data_length":-1}\n'),
        ("a length that is a text", b'{"type":"ping","payload_length":"3"}\n'), ("a payload over the limit", b'{"type":"ping","payload_length":999999999999}\n'),
        ("a data block over the limit", b'{"type":"ping","data_length":2000000}\n'), ("a block that is no object", b'{"type":"ping","data_length":2}\n[]'),
        ("a block that is no JSON", b'{"type":"ping","data_length":2}\n{]'), ("a header line over 64 KiB", b'{"type":"' + b"x" * 70000),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ("TLS", bytes.fromhex("16030100c8010000c40303") + b"\n"), ("zeros", bytes(100) + b"\n"),
        ("deep nesting", b'{"type":' + b"[" * 60000 + b"\n"),
    ]
    for name, raw in bad:
        b = Strict(d.ports[0])
        b.s.sendall(raw)
        e = b.read()
        check(e[0] == "error" and e[1]["text"] and e[1]["code"] == "bad-event" and b.read()[0] is None, "refused with a sentence: " + name, e)
    for raw in (b'{"type":"audio-chunk","payload_length":100}\nabc', b'{"type":"pi', b'{"type":"ping","data_length":50}\n{"te', b""):
        b = Strict(d.ports[0])
        b.s.sendall(raw)
        b.s.close()
    w.send("ping")
    check(w.read()[0] == "pong" and d.proc.poll() is None, "a connection that ends inside an event ends alone")


def test_speech(d):
    """Text to speech in both forms, then its sound back as text, with partials."""
    w = Strict(d.ports[1])
    w.send("synthesize", {"text": "Turn on the kitchen light.", "voice": {"name": "slt"}})
    ev = w.until("audio-stop")
    rate, pcm = ev[0][1]["rate"], b"".join(e[2] for e in ev)
    check(ev[0][0] == "audio-start" and all(e[1] == ev[0][1] for e in ev[1:-1]), "each chunk says the format of the first")
    # the writer and the reader are two tasks: sound must come while text is still to be sent
    w.send("synthesize-start", {"voice": {"name": "slt", "speaker": None}, "context": None})
    w.send("synthesize-chunk", {"text": "The lamp is on. The hall is dark. And there is "})
    first = w.read()
    check(first[0] == "audio-start", "streamed: sound comes before the text is whole", first[0])
    w.send("synthesize-chunk", {"text": "more to say."})
    w.send("synthesize", {"text": "The lamp is on. The hall is dark. And there is more to say."})
    w.send("synthesize-stop")
    ev = w.until("synthesize-stopped")
    secs = sum(len(e[2]) for e in ev) / 2 / rate
    check([e[0] for e in ev].count("audio-start") == 0 and {e[1]["rate"] for e in ev if e[0] == "audio-chunk"} == {rate} and 2 < secs < 10, "streamed: one start, one rate, spoken once", secs)
    w.send("synthesize-start")
    w.send("synthesize-chunk", {"text": "Words without an end come after some time because nobody waits for ever"})
    check(w.read()[0] == "audio-start", "streamed: what has no end is begun after a time")
    w.send("synthesize-stop")
    check(w.until("synthesize-stopped")[-1][0] == "synthesize-stopped", "streamed: and ends")
    for name, data, code in (("a voice that is not there", {"text": "x", "voice": {"name": "nobody"}}, "unknown-voice"), ("SSML", {"text": "<speak/>", "text_format": "ssml"}, "unsupported-text-format")):
        w.send("synthesize", data)
        ev = w.until("audio-stop")
        check(ev[0][0] == "error" and ev[0][1]["code"] == code and ev[-1][0] == "audio-stop", "refused and ended: " + name, ev[0])
        w.send("synthesize-start", data)
        w.send("synthesize-chunk", {"text": "x"})
        w.send("synthesize-stop")
        ev = w.until("synthesize-stopped")
        check(ev[0][0] == "error" and sum(len(e[2]) for e in ev) == 0, "refused and stopped, streamed: " + name, ev[0])
    w.send("synthesize", {"text": ""})
    check([e[0] for e in w.until("audio-stop")] == ["audio-start", "audio-stop"], "nothing to say is a start and a stop")
    # back into text
    for name, old in (("with partials", False), ("of an old client", True)):
        a = Strict(d.ports[2])
        if not old:
            a.send("transcribe", {"language": "en", "transcript_names": ["x"], "vad_sensitivity": "default"})
        a.send("audio-start", {"rate": rate, "width": 2, "channels": 1, "timestamp": None})
        sound = bytes(rate) + pcm + bytes(rate * 2)
        for i in range(0, len(sound), 2048):
            a.send("audio-chunk", {"rate": rate, "width": 2, "channels": 1, "timestamp": None}, sound[i:i + 2048])
        a.send("audio-stop", {"timestamp": None})
        ev = a.until("transcript" if old else "transcript-stop", "error")
        kinds = [e[0] for e in ev if not e[0].startswith("voice-")]
        final = [e[1]["text"] for e in ev if e[0] == "transcript"]
        check(len(final) == 1 and "kitchen" in final[0], "speech is heard: " + name, ev)
        vad = [e for e in ev if e[0].startswith("voice-")]
        check([e[0] for e in vad][:2] == ["voice-started", "voice-stopped"] and vad[0][1]["timestamp"] < vad[1][1]["timestamp"], "the detector says when it began and ended", vad)
        if old:
            check(kinds == ["transcript"], "without transcribe only the transcript comes", kinds)
        else:
            check(kinds[0] == "transcript-start" and kinds[-2:] == ["transcript", "transcript-stop"] and set(kinds[1:-2]) == {"transcript-chunk"}, "start, chunks, transcript, stop", kinds)
    # who leaves inside an utterance, or begins another, gives the recogniser back
    for leave in (True, False):
        a = Strict(d.ports[2])
        a.send("audio-start", {"rate": rate, "width": 2, "channels": 1})
        a.send("audio-chunk", {"rate": rate, "width": 2, "channels": 1}, pcm[:len(pcm) // 2])
        time.sleep(0.2)
        if leave:
            a.s.shutdown(socket.SHUT_RDWR)
        b = Strict(d.ports[2]) if leave else a
        b.send("audio-start", {"rate": rate, "width": 2, "channels": 1})
        b.send("audio-chunk", {"rate": rate, "width": 2, "channels": 1}, bytes(rate) + pcm + bytes(rate * 2))
        b.send("audio-stop")
        ev = b.until("transcript", "error")
        check(ev[-1][0] == "transcript" and "kitchen" in ev[-1][1]["text"], "an utterance that is left is no trouble to the next" + (" client" if leave else ""), ev)
    a = Strict(d.ports[1])
    a.send("audio-start", {"rate": 16000, "width": 2, "channels": 1})
    a.send("audio-stop")
    check(a.read()[1]["code"] == "no-asr" and a.read()[:2] == ("transcript", {"text": "", "language": "en"}), "an address without it refuses speech and still ends the utterance")
    a = Strict(d.ports[2])
    for bad in ({"rate": 1, "width": 2, "channels": 1}, {"rate": 16000, "width": 9, "channels": 1}, {"rate": 16000, "width": 2, "channels": 99}):
        a.send("audio-start", bad)
        a.send("audio-chunk", bad, b"abc")
        a.send("audio-stop")
        check(a.read()[1]["code"] == "unsupported-audio" and a.read()[0] == "transcript", "audio of that form is refused: %s" % bad)
    # a client that takes nothing must not keep the voice from another
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    slow.connect(("127.0.0.1", d.ports[1]))
    text = "This is a long sentence that is spoken to somebody who does not listen. " * 40
    block = json.dumps({"text": text}).encode()
    slow.sendall(b'{"type":"synthesize","data_length":%d}\n' % len(block) + block)
    time.sleep(1)
    t0 = time.monotonic()
    w.send("synthesize", {"text": "Quick."})
    check(w.until("audio-stop")[-1][0] == "audio-stop" and time.monotonic() - t0 < 20, "a client that reads nothing keeps nobody waiting", time.monotonic() - t0)
    slow.close()


def test_noise(d):
    """Sounds of a home, each its own utterance, with the energy detector alone: none has words."""
    folder = os.path.join(d.dir.name, "noises")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "bench", "noises.py"), folder, "--n", "1", "--seed", "5"], check=True)
    heard, n = {}, 0
    for name in sorted(os.listdir(folder)):
        with wave.open(os.path.join(folder, name)) as f:
            form = {"rate": f.getframerate(), "width": f.getsampwidth(), "channels": f.getnchannels()}
            sound = f.readframes(f.getnframes())
        a = Strict(d.ports[2])
        a.send("audio-start", form)
        for i in range(0, len(sound), 8192):
            a.send("audio-chunk", form, sound[i:i + 8192])
        a.send("audio-stop")
        ev = a.until("transcript", "error")
        n += 1
        if ev[-1][1].get("text") != "":
            heard[name] = ev[-1][1]
        a.s.close()
    check(n >= 20 and not heard, "a noise has no words", (n, heard))


def test_room(d):
    """What lies before, between and after the commands of a stream does not count."""
    w = Strict(d.ports[1])

    def said(text):
        w.send("synthesize", {"text": text, "voice": {"name": "slt"}})
        ev = w.until("audio-stop")
        return ev[0][1]["rate"], array.array("h", b"".join(e[2] for e in ev))

    def heard(pcm, step=2048, stream=False):
        a = Strict(d.ports[2])
        if stream:
            a.send("transcribe", {"language": "en"})
        a.send("audio-start", fmt)
        raw = pcm.tobytes()
        for i in range(0, len(raw), step):
            a.send("audio-chunk", fmt, raw[i:i + step])
        a.send("audio-stop")
        ev = a.until("transcript-stop" if stream else "transcript", "error")
        a.s.close()
        return ([e[1]["text"] for e in ev if e[0] == "transcript"] or [ev])[-1], ev

    rate, light = said("Turn on the kitchen light.")
    _, lamp = said("Turn off the wall lamp.")
    fmt = {"rate": rate, "width": 2, "channels": 1}
    r = random.Random(7)

    def quiet(seconds):
        return array.array("h", bytes(2 * int(seconds * rate)))

    def noisy(pcm, sigma=100, offset=0):
        return array.array("h", (max(-32768, min(32767, int(v + offset + r.gauss(0, sigma)))) for v in pcm))

    text, ev = heard(noisy(quiet(3) + light + quiet(0.8)))
    check(text == "turn on the kitchen light", "a command after 3 s of a room that is not silent is heard", ev)
    start = [e[1]["timestamp"] for e in ev if e[0] == "voice-started"]
    check(len(start) == 1 and 2500 < start[0] < 3400, "and began when it did", start)
    text, ev = heard(quiet(15) + light + quiet(0.8))
    check(text == "turn on the kitchen light", "a command after 15 s of silence is heard", ev)
    check(heard(noisy(quiet(15)))[0] == "", "15 s of a room without a word have none")
    text, ev = heard(noisy(light + quiet(3) + lamp + quiet(0.8)), stream=True)
    check(text == "turn on the kitchen light turn off the wall lamp", "two commands in a stream are both in its transcript", ev)
    check([[e[0] for e in ev].count(k) for k in ("transcript-start", "transcript", "transcript-stop", "voice-started", "voice-stopped")] == [1, 1, 1, 2, 2], "and there is one transcript", ev)
    sound = quiet(1) + light + quiet(0.8)
    texts = [heard(sound, step)[0] for step in (14, 1001 * 2, len(sound) * 2)]
    check(texts == ["turn on the kitchen light"] * 3, "tiny pieces and one that holds all are the same", texts)
    soft = array.array("h", (v // 4 for v in sound))
    for offset in (1540, -6000):
        text, ev = heard(noisy(soft, 5, offset))
        check(text == "turn on the kitchen light", "speech on an offset of %d is heard" % offset, ev)


def test_handle(d):
    w = Strict(d.sock)
    ctx = {"conversation_id": "c1", "device_id": "dev", "satellite_id": None}
    w.send("transcript", {"text": "turn on the kitchen light", "language": "en", "context": ctx})
    ev = w.until("handled", "not-handled", "intent", "intents-stop", "error")
    check(ev[-1][0] in ("intent", "intents-stop"), "a command becomes intents", ev)
    it = [e[1] for e in ev if e[0] == "intent"]
    check(it and it[0]["name"].startswith("Hass") and isinstance(it[0]["entities"], list) and all(set(e) == {"name", "value"} for e in it[0]["entities"]) and it[0]["context"] == ctx,
          "an intent has a name, entities and the context back", it)
    w.send("transcript", {"text": "is the front door locked", "context": {"conversation_id": "c2"}})
    ev = w.until("handled-stop", "intent", "intents-stop", "error")
    check(ev[-1][0] != "error" and "GetLiveContext" not in [e[1].get("name") for e in ev], "a question for a state asks Home Assistant by an intent that it has", ev)
    w.send("transcript", {"text": "what time is it", "context": {"conversation_id": "c3"}})
    ev = w.until("handled-stop", "intent", "intents-stop", "error")
    check(ev[-1][0] == "handled-stop" and not [e for e in ev if e[0] == "intent"], "the time is told here", ev)
    w.send("recognize", {"text": "turn off the kitchen light", "context": ctx})
    ev = w.until("intent", "intents-stop", "not-recognized", "error")
    check(ev[-1][0] in ("intent", "intents-stop"), "recognize gives intents", ev)
    w.send("transcript", {"text": "thank you", "context": ctx})
    ev = w.until("handled-stop", "intent", "intents-stop", "error")
    kinds = [e[0] for e in ev]
    if kinds[-1] == "handled-stop":
        whole = [e[1]["text"] for e in ev if e[0] == "handled"]
        check(kinds[0] == "handled-start" and len(whole) == 1 and "".join(e[1]["text"] for e in ev if e[0] == "handled-chunk") == whole[0], "an answer is streamed and then whole", ev)
    else:
        check("error" not in kinds, "an answer that is an intent", ev)
    for text in ("", "   "):
        w.send("transcript", {"text": text})
        check(w.read()[0] == "not-handled", "nothing said is not handled")
        w.send("recognize", {"text": text})
        check(w.read()[0] == "not-recognized", "nothing said is not recognized")
    w.send("transcript", {})
    check(w.read()[0] == "not-handled", "a missing text is not handled")
    w.send("transcript", {"text": "word " * 4000})
    ev = w.until("not-handled")
    check(ev[0][0] == "error" and "2048" in ev[0][1]["text"], "a text over the context is refused with the number, and ended", ev)
    a = Strict(d.ports[1])
    a.send("transcript", {"text": "hi"})
    check(a.read()[1]["code"] == "no-handle", "an address without it handles no text")
    # many conversations: the oldest gives way
    for i in range(40):
        w.send("transcript", {"text": "", "context": {"conversation_id": f"x{i}"}})
        assert w.read()[0] == "not-handled"
    g = Strict(d.sock)
    g.send("transcript", {"text": "turn on the hall light", "context": {"conversation_id": "gone"}})
    g.s.close()
    w.send("ping")
    check(w.read()[0] == "pong", "a client that leaves while it is answered harms nobody")


def test_names(_):
    """Names with characters that the model was not taught: it finds them, and Home Assistant gets them as they are."""
    names = ("TV/Hifi", "Lamp (old)", "Lamp, left", "A&B", "Lamp_1", "Zoë", "Straße", "O’Brien", "Hall – left", "Кухня", "厨房", "50% Lamp")
    for name in names:
        with tempfile.TemporaryDirectory() as dir:
            with open(os.path.join(dir, "home.yaml"), "w") as f:
                f.write("areas: [{name: Kitchen}, {name: Hall}, {name: Büro/Flur}]\nentities:\n"
                        "  - {name: Hall Light, domain: light, area: Hall, state: 'off'}\n  - {name: Awning, domain: cover, device_class: awning, area: Hall, state: closed}\n"
                        f"  - {{name: {json.dumps(name, ensure_ascii=False)}, aliases: [wonder light], domain: light, area: Büro/Flur, state: 'off'}}\n"
                        "  - {name: Oven, domain: switch, area: Kitchen, state: 'off'}\n")
            n = Daemon(text=f"model: {{path: {{model}}, context: 2048, sessions: 1, threads: 2}}\nhttp: {{port: 0}}\nspeech: {{home: {dir}/home.yaml}}\n"
                            "wyoming: {enabled: true, zeroconf: false, listen: [{unix: {dir}/handle.sock, services: [handle, intent]}]}\n")
            w = Strict(os.path.join(n.dir.name, "handle.sock"))
            for text in ("turn on the wonder light", "turn off " + name):
                w.send("transcript", {"text": text})
                ev = w.until("handled-stop", "not-handled", "intent", "intents-stop", "error")
                got = [(e["name"], e["value"]) for k in ev if k[0] == "intent" for e in k[1]["entities"] if e["name"] == "name"]
                check(got == [("name", name)], f"{text}: the device {name}, by its own name", ev)
            n.stop()


def test_wake(d):
    w = Strict(d.ports[1])

    def said(text):
        w.send("synthesize", {"text": text})
        ev = w.until("audio-stop")
        return ev[0][1]["rate"], b"".join(e[2] for e in ev)

    rate, yes = said("Okay hearth.")
    _, no = said("Turn on the kitchen light.")
    fmt = {"rate": rate, "width": 2, "channels": 1}

    def listen(a, sound):
        a.send("audio-start", fmt)
        for i in range(0, len(sound), 2048):
            a.send("audio-chunk", fmt, sound[i:i + 2048])
        a.send("audio-stop")

    for port in (d.ports[3], d.ports[0]):
        a = Strict(port)
        a.send("detect", {"names": ["okay_hearth"], "context": None})
        listen(a, bytes(rate) + yes + bytes(rate * 2))
        e = a.read()
        check(e[0] == "detection" and e[1]["name"] == "okay_hearth" and 500 < e[1]["timestamp"] < 6000, "the wake word is found", e)
        listen(a, bytes(rate) + no + bytes(rate * 2))
        check(a.read()[0] == "not-detected", "what is not the wake word is not detected")
    a.send("transcribe", {"language": "en"})
    listen(a, bytes(rate) + no + bytes(rate * 2))
    check("kitchen" in [e for e in a.until("transcript-stop") if e[0] == "transcript"][0][1]["text"], "the same connection transcribes after it woke")
    a.send("detect", {"names": ["alexa"]})
    check(a.read()[1]["code"] == "unknown-wake-word", "a wake word that is not known is refused")
    b = Strict(d.ports[2])
    b.send("detect")
    check(b.read()[1]["code"] == "no-wake", "an address without it listens for no wake word")
    many = [Strict(d.ports[3]) for _ in range(5)]
    for x in many:
        x.send("detect", {})
        x.send("audio-start", fmt)
        x.send("ping")
    kinds = [x.read() for x in many]
    check([k[0] for k in kinds].count("pong") == 4 and [k[1].get("code") for k in kinds].count("wake-busy") == 1, "a fifth listener is refused", kinds)
    [x.s.shutdown(socket.SHUT_RDWR) for x in many]
    deadline = time.time() + 20
    while True:
        a = Strict(d.ports[3])
        a.send("detect", {})
        a.send("audio-start", fmt)
        a.send("ping")
        if (e := a.read())[0] == "pong" or time.time() > deadline:
            break
        time.sleep(0.1)
    check(e[0] == "pong", "and taken when the others left", e)


def test_zeroconf(_):
    if not shutil.which("avahi-daemon") or not shutil.which("avahi-browse") or os.geteuid():
        return check(True, "zeroconf # SKIP needs avahi-daemon, avahi-browse and root")
    with tempfile.TemporaryDirectory() as tmp:
        # a network, a bus and a daemon of its own: nothing of the machine's is touched
        script = f"""ip link set lo up || exit 77
mount -t tmpfs none /run || exit 77
mkdir -p /run/dbus /run/avahi-daemon; chown avahi /run/avahi-daemon
dbus-daemon --system --fork --nopidfile || exit 77
avahi-daemon --no-drop-root --no-rlimits --no-chroot -f {tmp}/avahi.conf >{tmp}/avahi.log 2>&1 &
for i in $(seq 100); do avahi-browse -t _none._tcp >/dev/null 2>&1 && break; sleep 0.1; done
{os.path.join(t.BUILD, 'bin/hearthd')} -c {tmp}/h.yaml 2>{tmp}/log &
for i in $(seq 600); do grep -q 'announced by' {tmp}/log && break; sleep 0.1; done
avahi-browse -rpt _wyoming._tcp
kill %2; wait %2; sleep 2
avahi-browse -pt _wyoming._tcp | sed 's/^/after /'
kill %1
"""
        with open(os.path.join(tmp, "avahi.conf"), "w") as f:
            f.write("[server]\nuse-ipv6=no\nallow-interfaces=lo\n[wide-area]\n[publish]\n[reflector]\n[rlimits]\n")
        with open(os.path.join(tmp, "h.yaml"), "w") as f:
            f.write(f"model: {{path: {t.MODEL}, context: 256, sessions: 1}}\nhttp: {{port: 0}}\nwyoming: {{enabled: true, host: 0.0.0.0, port: 10399}}\n")
        r = subprocess.run(["unshare", "-n", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=120)
        if r.returncode == 77 or "unshare:" in r.stderr:
            return check(True, "zeroconf # SKIP no network namespace or bus of its own can be made here: " + r.stderr.strip()[:80].replace("\n", "; "))
        with open(os.path.join(tmp, "log")) as f:
            log = f.read()
        found = [l.split(";") for l in r.stdout.splitlines() if l.startswith("=") and ";10399;" in l]
        check(bool(found) and found[0][3].startswith("hearth") and found[0][4] == "_wyoming._tcp", "avahi-browse finds it with its port", (r.stdout, r.stderr, log))
        check("announced by zeroconf" in log, "and the log says so", log)
        check("after +" not in r.stdout, "a stop takes it back", r.stdout)


def test_no_zeroconf(_):
    """A machine without the daemon: one line, and everything else works."""
    if os.path.exists("/run/avahi-daemon/socket"):
        return check(True, "no avahi-daemon # SKIP one runs here")
    d = Daemon(text="model: {path: {model}, context: 256, sessions: 1}\nhttp: {port: 0}\nwyoming: {enabled: true, host: 0.0.0.0, port: 0}\n")
    time.sleep(0.3)
    lines = [l for l in d.text().splitlines() if "zeroconf" in l]
    check(len(lines) == 1, "without a daemon one line says so", d.text())
    w = Strict(d.wyoming)
    w.send("ping")
    check(w.read()[0] == "pong" and d.stop() == 0, "and it serves")


def test_no_descriptors(_):
    """A daemon that has no descriptor left waits for one, without burning a core, and then serves on."""
    d = Daemon(text="model: {path: {model}, context: 256, sessions: 1}\nhttp: {port: 0}\nwyoming: {enabled: true, port: 0}\n")
    resource.prlimit(d.proc.pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{d.proc.pid}/fd")), 4096))

    def used():
        with open(f"/proc/{d.proc.pid}/stat") as f:
            return sum(int(x) for x in f.read().split()[13:15])

    knock = socket.create_connection(("127.0.0.1", d.wyoming), timeout=30)
    time.sleep(0.2)
    before = used()
    time.sleep(1)
    ticks = used() - before
    check(ticks < 10, "no descriptor left: it sleeps", ticks)
    resource.prlimit(d.proc.pid, resource.RLIMIT_NOFILE, (1024, 4096))
    knock.sendall(b'{"type": "ping"}\n')
    check(b"pong" in knock.recv(100), "and takes the client when there is one")
    knock.close()
    check(d.stop() == 0, "and it stops", d.text())


def main():
    if not os.path.exists(t.MODEL):
        print("1..1\nok 1 - wyoming # SKIP there is no model at " + os.path.relpath(t.MODEL, ROOT))
        return 0
    d = Daemon(text=CONF)
    d.ports = [int(l.rsplit(":", 1)[1]) for l in d.text().splitlines() if "on tcp://" in l]
    d.sock = os.path.join(d.dir.name, "handle.sock")
    only = sys.argv[1:]
    for fn in (test_describe, test_framing, test_speech, test_noise, test_room, test_wake, test_handle, test_names, test_zeroconf, test_no_zeroconf, test_no_descriptors):
        if only and fn.__name__[5:] not in only:
            continue
        try:
            fn(d)
        except Exception:
            import traceback
            check(False, fn.__name__, traceback.format_exc())
        if d.proc.poll() is not None:
            check(False, "hearthd lives on after " + fn.__name__, d.text()[-1500:])
            break
    check(d.stop() == 0 and not os.path.exists(d.sock), "SIGTERM ends it cleanly and removes the socket", d.text()[-500:])
    print("1..%d" % t.count)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
