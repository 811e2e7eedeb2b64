#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""32 clients at once, of every kind, that now and then leave in the middle:
chat, streams, tools, schemas, speech both ways, realtime, Wyoming. Afterwards
nothing may be left: no session, no descriptor, no thread, no memory; and every
client must have been served. usage: load.py [SECONDS [CLIENTS]]; prints TAP."""
import base64
import http.client
import json
import os
import random
import socket
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hearthd as t
from hearthd import KEY, ROOT, TOOLS, Daemon, WebSocket, Wyoming, as_home_assistant, call, chat, check, multipart
from realtime import command

HOME = os.path.join(ROOT, "docs/examples/home.yaml")
CONF = f"""model: {{path: {{model}}, id: home, context: 2048, sessions: 4, threads: {os.environ.get('LOAD_THREADS', '2')}}}
http: {{host: 127.0.0.1, port: 0, max_connections: 256, queue: 128}}
speech: {{stt: true, tts: true, cache: {{dir}}, home: {HOME}}}
wyoming: {{enabled: true, port: 0}}
keys: [{{name: load, key: {KEY}, priority: voice}}]
"""
BUSY = (429, 503)
SYSTEM = {"role": "system", "content": "You are a voice assistant for a home. Answer in one short sentence."}
SCHEMA = {"type": "object", "properties": {"room": {"enum": ["kitchen", "hall"]}, "level": {"type": "integer", "minimum": 0, "maximum": 100}}, "required": ["room", "level"], "additionalProperties": False}


class Refused(Exception):
    """An honest no: counted, not a failure."""


def whole(d, r, **body):
    s, j, _ = call(d, "POST", "/v1/chat/completions", {**chat(r.choice(["turn on the kitchen light", "is the front door locked", "good night", "what time is it"])), "max_tokens": 24, **body})
    if s in BUSY:
        raise Refused
    assert s == 200, (s, j)
    return j["choices"][0]


def op_chat(d, r):
    c = whole(d, r, temperature=r.choice([0, 1]))
    assert isinstance(c["message"]["content"], str)


# one with free keys, which a random text says twice now and then
FREE = {"type": "function", "function": {"name": "Note", "parameters": {"type": "object", "additionalProperties": True}}}


def op_tools(d, r):
    c = whole(d, r, tools=[*TOOLS, FREE], tool_choice="required", temperature=2, max_tokens=200)
    assert c["finish_reason"] == "tool_calls" and c["message"].get("tool_calls"), c
    for k in c["message"]["tool_calls"]:
        assert k["function"]["name"] in [t["function"]["name"] for t in (*TOOLS, FREE)], c
        assert isinstance(json.loads(k["function"]["arguments"]), dict), c


def op_schema(d, r):
    c = whole(d, r, response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}, temperature=2)
    if c["finish_reason"] == "stop":
        v = json.loads(c["message"]["content"])
        assert v["room"] in ("kitchen", "hall") and 0 <= v["level"] <= 100


def op_stream(d, r):
    c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=1.7 * t.LONG)
    leave = r.random() < 0.4
    c.request("POST", "/v1/chat/completions", json.dumps(chat("tell me about the house", stream=True, max_tokens=300 if leave else 40, temperature=1, tools=TOOLS)),
              {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    x = c.getresponse()
    if x.status in BUSY:
        raise Refused
    assert x.status == 200
    if leave:
        x.read(r.randrange(1, 400))
        x.close()
        c.close()
        return
    text = x.read().decode()
    c.close()
    assert text.endswith("data: [DONE]\n\n")
    as_home_assistant([json.loads(b[6:]) for b in text.split("\n\n") if b.startswith("data: {")])


def op_half(d, r):
    """A request that is never finished, or whose sender is gone when it is answered."""
    body = json.dumps(chat("leave", stream=r.random() < 0.5, max_tokens=200)).encode()
    raw = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    c = socket.create_connection(("127.0.0.1", d.port), timeout=60)
    c.sendall(raw[:r.randrange(1, len(raw) + 1)])
    time.sleep(r.random() / 20)
    c.close()


def op_speech(d, r):
    c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=1.7 * t.LONG)
    c.request("POST", "/v1/audio/speech", json.dumps({"input": "The kitchen light is on. " * r.randrange(1, 5), "response_format": r.choice(["pcm", "wav", "flac"])}),
              {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
    x = c.getresponse()
    if x.status in BUSY:
        raise Refused
    assert x.status == 200
    try:
        n = len(x.read(100)) if r.random() < 0.3 else len(x.read())
        assert n > 50
    except http.client.IncompleteRead:
        raise Refused from None    # the voice was busy for too long
    x.close()
    c.close()


def op_transcribe(d, r):
    raw, h = multipart({"model": "x", "stream": r.choice(["true", "false"])}, "a.wav", d.wav)
    s, j, _ = call(d, "POST", "/v1/audio/transcriptions", raw=raw, headers=h)
    if s in BUSY:
        raise Refused
    assert s == 200, (s, j)


def op_realtime(d, r):
    w = WebSocket(d.port, "/v1/realtime")
    if w.status in BUSY:
        raise Refused
    w.s.settimeout(1.7 * t.LONG)
    w.read()
    audio = r.random() < 0.5
    w.send({"type": "session.update", "session": {"instructions": SYSTEM["content"], "temperature": 1, "max_output_tokens": 30, "output_modalities": [r.choice(["text", "audio"])]}})
    if audio:
        cut = len(d.pcm) if r.random() < 0.6 else r.randrange(len(d.pcm))
        sound = bytes(24000) + d.pcm[:cut] + bytes(72000)
        for i in range(0, len(sound), 9600):
            w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(sound[i:i + 9600]).decode()})
    else:
        w.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "good evening"}]}})
        w.send({"type": "response.create"})
        if r.random() < 0.3:
            w.send({"type": "response.cancel"})
    if cut < len(d.pcm) if audio else r.random() < 0.3:
        time.sleep(r.random() / 5)
    else:
        e = w.until("response.done", "conversation.item.input_audio_transcription.failed")[-1]
        assert e is not None
        if e["type"] == "response.done" and e["response"]["status"] == "failed" or e.get("error", {}).get("code") == "busy":
            raise Refused
    w.s.shutdown(socket.SHUT_RDWR)
    w.f.close()
    w.s.close()


def op_wyoming(d, r):
    w = Wyoming(d.wyoming)
    w.s.settimeout(1.7 * t.LONG)
    kind = r.choice(["ping", "tts", "asr", "handle", "half"])
    if kind == "half":
        w.s.sendall(b'{"type":"synthesize","data_length":100}\n{"te'[:r.randrange(1, 44)])
    elif kind == "ping":
        w.send("describe")
        w.send("ping", {"text": "x"})
        assert w.until("pong")[-1][0] == "pong"
    elif kind == "handle":
        w.send("transcript", {"text": "turn on the hall light", "context": {"conversation_id": str(r.randrange(50))}})
        if r.random() < 0.7:
            assert w.until("handled-stop", "intent", "intents-stop", "not-handled", None)[-1][0]
    elif kind == "tts":
        w.send("synthesize-start")
        w.send("synthesize-chunk", {"text": "The lamp is on. "})
        if r.random() < 0.7:
            w.send("synthesize-chunk", {"text": "And the door is locked."})
            w.send("synthesize-stop")
            assert w.until("synthesize-stopped")[-1][0] == "synthesize-stopped"
    else:
        w.send("transcribe", {"language": "en"})
        w.send("audio-start", {"rate": 24000, "width": 2, "channels": 1})
        n = len(d.pcm) if r.random() < 0.7 else r.randrange(len(d.pcm))
        for i in range(0, n, 4096):
            w.send("audio-chunk", {"rate": 24000, "width": 2, "channels": 1}, d.pcm[i:min(i + 4096, n) & ~1])
        if n == len(d.pcm):
            w.send("audio-stop")
            assert w.until("transcript-stop")[-1][0] == "transcript-stop"
    w.s.shutdown(socket.SHUT_RDWR)
    w.f.close()
    w.s.close()


OPS = [op_chat, op_chat, op_tools, op_schema, op_stream, op_stream, op_half, op_half, op_speech, op_transcribe, op_realtime, op_realtime, op_wyoming, op_wyoming, op_wyoming]


def look(d):
    """Memory in KiB, descriptors, threads of the daemon."""
    with open(f"/proc/{d.proc.pid}/status") as f:
        s = dict(l.split(":", 1) for l in f)
    return int(s["VmRSS"].split()[0]), len(os.listdir(f"/proc/{d.proc.pid}/fd")), int(s["Threads"])


def metrics(d):
    return {l.rsplit(" ", 1)[0]: float(l.rsplit(" ", 1)[1]) for l in call(d, "GET", "/metrics")[1].decode().splitlines() if not l.startswith("#")}


def settle(d, seconds=90):
    """Waits until nothing runs; what there is then."""
    deadline = time.time() + seconds
    while True:
        m = metrics(d)
        busy = [k for k in m if (k.startswith(("hearth_sessions_active", "hearth_requests_waiting", "hearth_key_running"))) and m[k]]
        if (not busy and look(d)[1] <= d.idle[1] and look(d)[2] <= d.idle[2]) or time.time() > deadline:
            return m, busy
        time.sleep(0.2)


def main():
    if not os.path.exists(t.MODEL):
        print("1..1\nok 1 - load # SKIP there is no model at " + os.path.relpath(t.MODEL, ROOT))
        return 0
    seconds, clients = float((sys.argv[1:] or ["20"])[0]), int((sys.argv[2:] or ["32"])[0])
    d = Daemon(text=CONF)
    d.pcm = command(lambda *a: call(d, *a))
    import io
    import wave
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setparams((1, 2, 24000, 0, "NONE", ""))
        f.writeframes(bytes(24000) + d.pcm + bytes(48000))
    d.wav = out.getvalue()
    for op in OPS:                 # everything once, so that what is made once is there
        for i in range(6):
            try:
                op(d, random.Random(i))
            except Refused:
                pass
    time.sleep(1)
    d.idle = look(d)
    before = metrics(d)
    stop, lock = time.monotonic() + seconds, threading.Lock()
    done, refused, longest, failed, kinds = [0] * clients, [0] * clients, [0.0] * clients, [], {}
    rss = []

    def client(i):
        r = random.Random(1000 + i)
        tries = 0
        # on a machine so slow that the time is over before the first answer, the first answer is waited for
        while time.monotonic() < stop or (not done[i] and tries < 20):
            tries += 1
            op = r.choice(OPS)
            t0 = time.monotonic()
            try:
                op(d, r)
                done[i] += 1
            except Refused:
                refused[i] += 1
                time.sleep(0.05)
            except Exception:
                failed.append(op.__name__ + ": " + traceback.format_exc()[-700:])
                if d.proc.poll() is not None:
                    return
            took = time.monotonic() - t0
            longest[i] = max(longest[i], took)
            with lock:
                kinds.setdefault(op.__name__[3:], []).append(took)

    ts = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    [x.start() for x in ts]
    while any(x.is_alive() for x in ts):
        time.sleep(min(1, seconds / 20))
        if d.proc.poll() is None:
            rss.append(look(d)[0])
    print(f"# {clients} clients, {seconds:.0f} s: {sum(done)} served, {sum(refused)} refused, {len(failed)} failed; each client {min(done)} to {max(done)}; longest {max(longest):.1f} s")
    print("# " + ", ".join(f"{k} {len(v)}" for k, v in sorted(kinds.items())))
    check(d.proc.poll() is None, "it lives", d.text()[-1500:])
    check(not failed, "every answer is right", "\n".join(failed[:3]))
    check(min(done) > 0, "every client is served", done)
    check(sum(refused) <= sum(done), "few are refused", (sum(done), sum(refused)))
    m, busy = settle(d)
    now = look(d)
    check(not busy, "no session is stuck", busy)
    check(now[1] <= d.idle[1] and now[2] <= d.idle[2], "no descriptor and no thread is left", (d.idle, now))
    moved = {k: (before[k], m[k]) for k in before if k.startswith("hearth_tenant_current_bytes") and before[k] != m[k] and 'tenant="llm"' in k}
    check(not moved, "the model's tenants hold what they held", moved)
    # the first quarter is for buffers that grow once; afterwards it is flat
    quarter, end = max(rss[:max(1, len(rss) // 4)]), max(rss[-max(1, len(rss) // 8):])
    print(f"# memory: idle {d.idle[0] >> 10} MiB, after a quarter {quarter >> 10} MiB, at the end {end >> 10} MiB, idle again {now[0] >> 10} MiB")
    if os.environ.get("TSAN_OPTIONS") or os.environ.get("ASAN_OPTIONS"):
        check(True, "memory is flat # SKIP a sanitizer keeps its own")
    else:
        check(end <= quarter + (24 << 10), "memory is flat", (quarter, end, rss[::max(1, len(rss) // 20)]))
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("hello"))
    check(s == 200, "and it serves on", (s, j))
    check(d.stop() == 0, "SIGTERM ends it cleanly", d.text()[-1500:])
    log = d.text()
    bad = sorted({l for l in log.splitlines() if l.startswith("SUMMARY:")})
    check(not bad and "Sanitizer" not in log, "no sanitizer complains", "\n".join(bad) + "\n" + log[max(0, log.find("Sanitizer") - 100):][:1200])
    if os.environ.get("LOAD_LOG"):
        with open(os.environ["LOAD_LOG"], "w") as f:
            f.write(log)
    print("1..%d" % t.count)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
