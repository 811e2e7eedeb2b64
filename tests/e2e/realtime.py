#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Realtime API: the openai client's own class over TLS with a certificate
made here, and by hand what no well-behaved client sends. Prints TAP."""
import base64
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hearthd as t
import npm
from hearthd import KEY, ROOT, Daemon, WebSocket, call, check

HOME = os.path.join(ROOT, "docs/examples/home.yaml")
CONF = f"""model: {{path: {{model}}, id: home, context: 4096, sessions: 4, threads: 2}}
http: {{host: 127.0.0.1, port: 0TLS}}
speech: {{stt: true, tts: true, cache: {{dir}}, home: {HOME}}}
keys:
  - {{name: ha, key: {KEY}, priority: voice}}
"""


def certificate(where):
    """A CA-less certificate for 127.0.0.1, or None without openssl."""
    cert, key = os.path.join(where, "cert.pem"), os.path.join(where, "key.pem")
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=hearth test",
                        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return None, None
    return cert, key


def command(d_call):
    """'Turn on the kitchen light.' of hearthd's own voice, at 24 kHz."""
    s, pcm, _ = d_call("POST", "/v1/audio/speech", {"input": "Turn on the kitchen light.", "response_format": "pcm"})
    assert s == 200
    return pcm


def test_openai(_):
    where, why = npm.install("openai", "ws")
    import tempfile
    with tempfile.TemporaryDirectory() as tmp:
        cert, key = certificate(tmp)
        if not where or not cert:
            return check(True, "openai realtime # SKIP " + (why or "openssl is not there to make a certificate"))
        d = Daemon(text=CONF.replace("TLS", f", tls_cert: {cert}, tls_key: {key}"))
        import http.client
        ctx = ssl.create_default_context(cafile=cert)

        def over_tls(method, path, body):
            import json
            c = http.client.HTTPSConnection("127.0.0.1", d.port, context=ctx, timeout=60)
            c.request(method, path, json.dumps(body), {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"})
            r = c.getresponse()
            return r.status, r.read(), r

        pcm = command(over_tls)
        check(len(pcm) > 40000, "HTTPS with a certificate of one's own")
        path = os.path.join(tmp, "say.pcm")
        with open(path, "wb") as f:
            f.write(pcm)
        # a client that speaks plain HTTP to TLS, or stalls in its handshake, is nobody's trouble
        plain = socket.create_connection(("127.0.0.1", d.port))
        plain.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        stalled = socket.create_connection(("127.0.0.1", d.port))
        stalled.sendall(b"\x16\x03\x01")
        try:
            ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", d.port)), server_hostname="127.0.0.1")
            check(False, "a client that does not know the certificate refuses it")
        except ssl.SSLError:
            check(True, "a client that does not know the certificate refuses it")
        r = subprocess.run(["node", os.path.join(ROOT, "tests/e2e/openai_realtime.mjs"), f"https://127.0.0.1:{d.port}/v1", KEY, cert, path],
                           env=dict(os.environ, OPENAI_FROM=where, NODE_EXTRA_CA_CERTS=cert), capture_output=True, text=True, timeout=400)
        for line in r.stdout.splitlines():
            if line.startswith(("ok ", "not ok ")):
                check(line.startswith("ok "), line.split(" - ", 1)[1], r.stdout + r.stderr)
        if r.returncode and "not ok" not in r.stdout:
            check(False, "openai realtime", r.stdout + r.stderr)
        plain.close()
        stalled.close()
        check(d.stop() == 0, "the TLS server stops cleanly", d.text()[-500:])


def frame(data, opcode=1, fin=True, mask=True, rsv=0, length=None):
    n = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode, (0x80 if mask else 0) | (n if n < 126 else 126 if n < 65536 else 127)])
    head += b"" if n < 126 else struct.pack(">H", n) if n < 65536 else struct.pack(">Q", n)
    return head + (b"\0\0\0\0" if mask else b"") + data


def close_code(w):
    """Reads to the end; the code of the close frame (1005: it gives none), or None."""
    code = None
    try:
        while (e := w.read()) is not None:
            if isinstance(e, tuple) and e[0] == 8:
                code = struct.unpack(">H", e[1][:2])[0] if len(e[1]) >= 2 else 1005
    except (OSError, ValueError, struct.error):
        pass
    return code


def test_frames(d):
    """RFC 6455's own table of what fails a connection, and with which code."""
    for name, raw, code in (
            ("not masked", frame(b"{}", mask=False), 1002), ("a reserved bit", frame(b"{}", rsv=4), 1002), ("a reserved opcode", frame(b"", opcode=3), 1002),
            ("a fragmented ping", frame(b"", opcode=9, fin=False), 1002), ("a ping of 126 bytes", frame(b"x" * 126, opcode=9), 1002),
            ("a continuation of nothing", frame(b"", opcode=0), 1002), ("text inside text", frame(b"{", fin=False) + frame(b"}"), 1002),
            ("invalid UTF-8", frame(b"\xff\xfe"), 1007), ("UTF-8 cut off", frame(b"\xe2\x82"), 1007), ("a message of 100 MB", frame(b"x" * 4096, length=100 << 20), 1009),
            ("a length of 2^63", b"\x81\xff" + b"\xff" * 8 + b"\0\0\0\0", 1002), ("a close of one byte", frame(b"x", opcode=8), 1002),
            ("a close with code 1005", frame(struct.pack(">H", 1005), opcode=8), 1002)):
        w = WebSocket(d.port, "/v1/realtime")
        w.s.settimeout(20)
        w.read()
        w.s.sendall(raw)
        got = close_code(w)
        # a close without a code is as good a refusal of what breaks the protocol
        check(got == code or (got, code) == (1005, 1002), f"frame refused with {code}: {name}", got)
    w = WebSocket(d.port, "/v1/realtime")
    w.read()
    body = b'{"type":"session.update","session":{"instructions":"x"}}'
    w.s.sendall(b"".join(frame(body[i:i + 1], opcode=1 if i == 0 else 0, fin=i == len(body) - 1) + frame(b"p", opcode=9) for i in range(len(body))))
    ev = w.until("session.updated", "error")
    check(ev[-1]["type"] == "session.updated" and sum(e == (10, b"p") for e in ev) >= len(body) - 1, "a message in 1-byte fragments with pings between")
    w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(2)).decode()}, opcode=2)
    w.send(struct.pack(">H", 1000), opcode=8)
    check(close_code(w) == 1000, "a close is answered with a close")
    for name, headers, status in (("no key", {"Sec-WebSocket-Version": "13"}, 426), ("version 8", {"Sec-WebSocket-Version": "8", "Sec-WebSocket-Key": "x"}, 426),
                                  ("a key of 200 bytes", {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x" * 200}, 426)):
        s, j, _ = call(d, "GET", "/v1/realtime", headers={"Upgrade": "websocket", "Connection": "Upgrade", **headers})
        check(s == status, f"handshake refused: {name}", (s, j))
    s, j, _ = call(d, "GET", "/v1/realtime?model=gpt-99", headers={"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"})
    check(s == 404 and "gpt-99" in j["error"]["message"], "handshake refused: an unknown model", j)


def test_refusals(d):
    w = WebSocket(d.port, "/v1/realtime")
    w.read()
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    for name, msg, param in (
            ("an array", b"[]", None), ("a number", b"7", None), ("no type", {}, None), ("deep nesting", b"[" * 5000, None), ("invalid escape", b'"\\q"', None),
            ("session is a text", {"type": "session.update", "session": "x"}, "session"),
            ("G.711", {"type": "session.update", "session": {"audio": {"input": {"format": {"type": "audio/pcmu"}}}}}, "session.audio.input.format"),
            ("16 kHz", {"type": "session.update", "session": {"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}}}, "session.audio.output.format"),
            ("the older G.711", {"type": "session.update", "session": {"input_audio_format": "g711_ulaw"}}, "session.input_audio_format"),
            ("temperature", {"type": "session.update", "session": {"temperature": 9}}, "session.temperature"),
            ("tokens", {"type": "session.update", "session": {"max_output_tokens": -4}}, "session.max_output_tokens"),
            ("tool_choice", {"type": "session.update", "session": {"tool_choice": "maybe"}}, "session.tool_choice"),
            ("tool_choice of a function without a name", {"type": "session.update", "session": {"tool_choice": {"type": "function"}}}, "session.tool_choice"),
            ("tool_choice of another type", {"type": "session.update", "session": {"tool_choice": {"type": "mcp", "server_label": "x", "name": "f"}}}, "session.tool_choice"),
            ("tools", {"type": "session.update", "session": {"tools": {}}}, "session.tools"),
            ("a tool that is none", {"type": "session.update", "session": {"tools": [{"type": "mcp"}]}}, "session.tools"),
            ("VAD type", {"type": "session.update", "session": {"turn_detection": {"type": "psychic"}}}, "session.turn_detection"),
            ("VAD silence", {"type": "session.update", "session": {"turn_detection": {"type": "server_vad", "silence_duration_ms": -1}}}, "session.turn_detection"),
            ("VAD threshold", {"type": "session.update", "session": {"turn_detection": {"type": "server_vad", "threshold": "loud"}}}, "session.turn_detection"),
            ("item without text", {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": []}}, "item"),
            ("item of a role", {"type": "conversation.item.create", "item": {**user, "role": "king"}}, "item"),
            ("an image", {"type": "conversation.item.create", "item": {**user, "content": [{"type": "input_image", "image_url": "x"}]}}, "item"),
            ("item id too long", {"type": "conversation.item.create", "item": {**user, "id": "x" * 33}}, "item.id"),
            ("after no item", {"type": "conversation.item.create", "previous_item_id": "nope", "item": user}, "previous_item_id"),
            ("delete of nothing", {"type": "conversation.item.delete", "item_id": "nope"}, "item_id"),
            ("retrieve of nothing", {"type": "conversation.item.retrieve"}, "item_id"),
            ("response outside", {"type": "response.create", "response": {"conversation": "none"}}, "response.conversation"),
            ("response forced without tools", {"type": "response.create", "response": {"tool_choice": "required"}}, "response.tool_choice"),
            ("temperature of a response", {"type": "response.create", "response": {"temperature": -1}}, "response.temperature"),
            ("tokens of a response", {"type": "response.create", "response": {"max_output_tokens": -4}}, "response.max_output_tokens"),
            ("tool_choice of a response", {"type": "response.create", "response": {"tool_choice": "maybe"}}, "response.tool_choice"),
            ("tool_choice of a response without a name", {"type": "response.create", "response": {"tools": [tool], "tool_choice": {"type": "function"}}}, "response.tool_choice"),
            ("tool_choice of no tool", {"type": "response.create", "response": {"tools": [tool], "tool_choice": {"type": "function", "name": "g"}}}, "response.tool_choice"),
            ("response with a bad tool", {"type": "response.create", "response": {"tools": [{"type": "function", "name": "f", "parameters": {"not": {}}}]}}, "response.tools"),
            ("audio missing", {"type": "input_audio_buffer.append"}, "audio")):
        w.send(msg if isinstance(msg, bytes) else {**msg, "event_id": "e7"})
        e = w.until("error", "session.updated", "response.created", "conversation.item.added")[-1]
        check(e["type"] == "error" and e["error"]["message"] and (param is None or (e["error"]["param"] == param and e["error"]["event_id"] == "e7")), "refused: " + name, e)
    w.send({"type": "conversation.item.create", "item": {**user, "id": "one"}})
    w.until("conversation.item.done")
    w.send({"type": "conversation.item.create", "item": {**user, "id": "one"}})
    check(w.until("error")[-1]["error"]["param"] == "item.id", "refused: an id twice")
    w.send({"type": "conversation.item.create", "previous_item_id": "root", "item": {**user, "id": "zero"}})
    check(w.until("conversation.item.done", "error")[-1]["type"] == "conversation.item.done", "an item at the root")
    # an item may have that very name: the place before the first is meant all the same
    w.send({"type": "conversation.item.create", "item": {**user, "id": "root"}})
    w.until("conversation.item.done")
    for name in ("last", "first"):
        w.send({"type": "conversation.item.create", "item": {**user, "id": name}, **({"previous_item_id": "root"} if name == "first" else {})})
        added = w.until("conversation.item.added")[-1]
        w.until("conversation.item.done")
        check(added["previous_item_id"] == (None if name == "first" else "root"), "an item called root changes no place: " + name, added)
    for name in ("root", "last", "first"):
        w.send({"type": "conversation.item.delete", "item_id": name})
        check(w.until("conversation.item.deleted", "error")[-1]["type"] == "conversation.item.deleted", "and each is there once: " + name)
        w.send({"type": "conversation.item.delete", "item_id": name})
        w.until("error")
    w.send({"type": "conversation.item.truncate", "item_id": "one", "content_index": 0, "audio_end_ms": 0})
    check(w.until("error")[-1]["error"]["param"] == "item_id", "refused: truncate of what was not spoken")
    # two answers at once; a cancel between
    w.send({"type": "session.update", "session": {"temperature": 2, "output_modalities": ["text"]}})
    w.until("session.updated")
    w.send({"type": "response.create"})
    w.send({"type": "response.create"})
    ev = w.until("error", "response.done")
    if ev[-1]["type"] == "error":
        check(ev[-1]["error"]["code"] == "conversation_already_has_active_response", "refused: a second answer at once", ev[-1])
        w.send({"type": "response.cancel", "response_id": "another"})
        w.send({"type": "response.cancel"})
        ev = w.until("response.done")
        check(ev[-1]["response"]["status"] in ("cancelled", "completed", "incomplete"), "cancel ends it", ev[-1])
    w.send({"type": "response.create", "response": {"max_output_tokens": 3}})
    ev = w.until("response.done")
    check(ev[-1]["response"]["status"] in ("incomplete", "completed"), "and the next answer is given", ev[-1])
    # too much: items, audio that is never committed
    w.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}})
    w.until("session.updated")
    lump = base64.b64encode(bytes(24000 * 2 * 30)).decode()
    for _ in range(5):
        w.send({"type": "input_audio_buffer.append", "audio": lump})
    check("two minutes" in w.until("error")[-1]["error"]["message"], "refused: two minutes without a commit")
    w.send({"type": "input_audio_buffer.clear"})
    w.until("input_audio_buffer.cleared")
    for i in range(2050):
        w.send({"type": "conversation.item.create", "item": user})
    e = w.until("error")[-1]
    check(e["error"]["code"] == "conversation_full", "refused: a conversation of over 2,048 items", e)
    w.send({"type": "response.create"})
    ev = w.until("response.done")
    check(ev[-1]["response"]["status"] == "failed", "an answer to more than the context holds fails with a sentence", ev[-1]["response"])
    w.s.close()


def test_beta(d):
    """The names that clients of the first form know."""
    w = WebSocket(d.port, "/v1/realtime?model=home", headers="OpenAI-Beta: realtime=v1\r\n")
    e = w.read()
    check(e["type"] == "session.created" and e["session"]["modalities"] == ["text", "audio"] and e["session"]["turn_detection"]["type"] == "server_vad" and
          e["session"]["input_audio_format"] == "pcm16", "the older session", e)
    w.send({"type": "session.update", "session": {"modalities": ["text"], "turn_detection": None, "max_response_output_tokens": 20, "input_audio_format": "pcm16"}})
    e = w.until("session.updated", "error")[-1]
    check(e["type"] == "session.updated" and e["session"]["turn_detection"] is None and e["session"]["max_response_output_tokens"] == 20, "the older update", e)
    w.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thank you"}]}})
    check(w.until("conversation.item.created", "conversation.item.added")[-1]["type"] == "conversation.item.created", "the older item event")
    w.send({"type": "response.create"})
    ev = w.until("response.done")
    kinds = {e["type"] for e in ev}
    check(not [k for k in kinds if "output_text" in k or "output_audio" in k or k in ("conversation.item.added", "conversation.item.done")] and "response.text.delta" in kinds, "and the older deltas", kinds)
    w.send({"type": "session.update", "session": {"modalities": ["text", "audio"], "temperature": 0}})
    w.until("session.updated")
    w.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thank you"}]}})
    w.until("conversation.item.created")
    w.send({"type": "response.create"})
    kinds = {e["type"] for e in w.until("response.done")}
    check({"response.audio.done", "response.audio_transcript.delta"} <= kinds, "and the older sound", kinds)


def test_limits(d):
    open_ = [WebSocket(d.port, "/v1/realtime") for _ in range(32)]
    [w.read() for w in open_]
    s, j, _ = call(d, "GET", "/v1/realtime", headers={"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"})
    check(s == 503 and "32" in j["error"]["message"], "a session over the limit is 503", (s, j))
    [w.s.shutdown(socket.SHUT_RDWR) for w in open_]
    deadline = time.time() + 20
    while time.time() < deadline:
        w = WebSocket(d.port, "/v1/realtime")
        if w.status == 101:
            break
        time.sleep(0.1)
    check(w.status == 101, "and is taken when others left")
    # a client that takes nothing while it is spoken to
    w.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    w.send({"type": "session.update", "session": {"temperature": 2}})
    w.send({"type": "response.create"})
    time.sleep(1)
    t0 = time.monotonic()
    s, pcm, _ = call(d, "POST", "/v1/audio/speech", {"input": "Quick.", "response_format": "pcm"})
    check(s == 200 and pcm and time.monotonic() - t0 < 25, "a realtime client that reads nothing keeps nobody from the voice", time.monotonic() - t0)
    # the recogniser taken for longer than anybody waits: the turn ends all the same
    if os.environ.get("HEARTH_SLOW_TESTS"):
        holder, late = WebSocket(d.port, "/v1/realtime"), WebSocket(d.port, "/v1/realtime")
        holder.read(), late.read()
        pcm = command(lambda *a: call(d, *a))
        loud = b"".join(pcm[20000:40000] for _ in range(20))
        for x, sound in ((holder, loud), (late, bytes(24000) + pcm + bytes(96000))):
            for i in range(0, len(sound), 9600):
                x.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(sound[i:i + 9600]).decode()})
        e = late.until("conversation.item.input_audio_transcription.failed", "conversation.item.input_audio_transcription.completed")[-1]
        check(e is not None, "a turn that finds the recogniser busy ends", e)
    # who stops sending in the middle of a word lets go of the recogniser
    pcm = command(lambda *a: call(d, *a))
    v = WebSocket(d.port, "/v1/realtime")
    v.read()
    for i in range(0, len(pcm) * 2 // 3, 9600):
        v.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm[i:i + 9600]).decode()})
    v.until("input_audio_buffer.speech_started")
    e = v.until("error")[-1]
    check(e["error"]["code"] == "audio_timeout", "a turn without audio is dropped after a time", e)


def test_commit(d):
    """Without server VAD the client says what a turn is: the room in it is not what was said."""
    pcm = command(lambda *a: call(d, *a))
    r = random.Random(3)

    def room(seconds):
        return struct.pack("<%dh" % (24000 * seconds), *(int(r.gauss(0, 100)) for _ in range(24000 * seconds)))

    w = WebSocket(d.port, "/v1/realtime")
    w.read()
    w.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}})
    w.until("session.updated")
    for name, sound, times in (("a command after 5 s of a room that is not silent", room(5) + pcm + room(1), 1), ("two commands with a pause between them", room(1) + pcm + room(3) + pcm + room(1), 2)):
        for i in range(0, len(sound), 96000):
            w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(sound[i:i + 96000]).decode()})
        w.send({"type": "input_audio_buffer.commit"})
        ev = w.until("conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed", "error")
        check(ev[-1].get("transcript", "").count("turn on the kitchen light") == times, "committed: " + name, ev)
        check([e["type"] for e in ev].count("input_audio_buffer.committed") == 1 and not [e for e in ev if "speech_st" in e["type"]], "committed: one turn, and no events of a detector that was switched off", ev)
    sound = room(5)
    w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(sound).decode()})
    w.send({"type": "input_audio_buffer.commit"})
    e = w.until("conversation.item.input_audio_transcription.completed", "conversation.item.input_audio_transcription.failed", "error")[-1]
    check(e["type"].endswith("failed") and e["error"]["message"] == "heard nothing", "committed: a room without a word is no turn", e)
    # a commit in the middle of speech, with server VAD, ends that turn once
    w.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}}})
    w.until("session.updated")
    sound = bytes(24000) + pcm
    for i in range(0, len(sound), 9600):
        w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(sound[i:i + 9600]).decode()})
    w.send({"type": "input_audio_buffer.commit"})
    w.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(96000)).decode()})
    ev = w.until("input_audio_buffer.speech_stopped", "error")
    w.send({"type": "response.cancel", "event_id": "mark"})
    ev += w.until("error")
    kinds = [e["type"].rsplit(".", 1)[-1] for e in ev if "transcription." in e["type"] and not e["type"].endswith("delta")]
    check(kinds == ["completed"], "committed: the turn ends once, not again with the pause", ev)


def main():
    if not os.path.exists(t.MODEL):
        print("1..1\nok 1 - realtime # SKIP there is no model at " + os.path.relpath(t.MODEL, ROOT))
        return 0
    only = sys.argv[1:]
    d = Daemon(text=CONF.replace("TLS", ""))
    for fn in (test_openai, test_frames, test_refusals, test_beta, test_commit, test_limits):
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
    check(d.stop() == 0, "SIGTERM ends it cleanly", d.text()[-500:])
    print("1..%d" % t.count)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
