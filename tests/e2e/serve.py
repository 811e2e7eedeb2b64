#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where hearthd meets the engine: what is cached, foreseen or batched changes
no answer; caches outlive a restart; who leaves ends the work; everything too
large is refused and harms nobody. Prints TAP."""
import base64
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
MODEL = os.environ.get("HEARTH_MODEL", os.path.join(ROOT, "models", "home-q8_0.gguf"))
OTHER = os.path.join(ROOT, "models", "home-q4_k_m.gguf")
# Another backend than the CPU's: rows beside a row may change its last bits there, so
# only what is not drawn is compared, up to where two tokens were nearly tied.
COMPUTE = os.environ.get("HEARTH_COMPUTE", "")
TIED = 0.15   # of a logit: twice what a step of one row was seen to move a token by, for either of two can move
count = failed = 0


def check(ok, name, detail=""):
    global count, failed
    count += 1
    print(("ok" if ok else "not ok"), count, "-", name, flush=True)
    if not ok:
        failed += 1
        print("# " + str(detail).replace("\n", "\n# ")[:1500], flush=True)
    return ok


class Daemon:
    def __init__(self, dir, model="", http="", more="", path=MODEL):
        self.log = tempfile.NamedTemporaryFile("w+", dir=dir, delete=False)
        conf = tempfile.NamedTemporaryFile("w", dir=dir, suffix=".yaml", delete=False)
        conf.write(f"model: {{path: {path}, id: home, context: 2048, sessions: 4, threads: 2{', backend: ' + COMPUTE if COMPUTE else ''}{model}}}\nhttp: {{port: 0, max_body: 32M{http}}}\n{more}\n")
        conf.close()
        self.proc = subprocess.Popen([os.path.join(BUILD, "bin/hearthd"), "-c", conf.name], stderr=self.log, stdin=subprocess.DEVNULL)
        self.port = None
        end = time.time() + 120
        while time.time() < end and self.proc.poll() is None:
            if "serving" in self.text():
                self.port = int(self.text().split("on http://")[1].split()[0].rsplit(":", 1)[1])
                return
            time.sleep(0.05)
        raise RuntimeError(self.text())

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def stop(self, sig=signal.SIGTERM):
        self.proc.send_signal(sig)
        return self.proc.wait(60)

    def call(self, method, path, body=None, key=None, raw=None, timeout=120):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        h = {"Content-Type": "application/json", **({"Authorization": "Bearer " + key} if key else {})}
        c.request(method, path, raw if raw is not None else json.dumps(body).encode() if body is not None else None, h)
        r = c.getresponse()
        out = r.read()
        c.close()
        try:
            return r.status, json.loads(out), r
        except ValueError:
            return r.status, out, r

    def chat(self, body, **k):
        return self.call("POST", "/v1/chat/completions", body, **k)

    def metric(self, name):
        s, text, _ = self.call("GET", "/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines() if line.split("{")[0].split(" ")[0] == "hearth_" + name)


NAMES = ["kitchen light", "bedroom lamp", "hall fan", "garden gate", "office heater", "cellar pump"]
SYSTEM = "You are a voice assistant for a home. Answer in one short sentence.\n" + "\n".join(f"- name: {n} {i}" for i in range(7) for n in NAMES[:3])


def ask(text, **more):
    return {"model": "home", "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}], "temperature": 0, "max_tokens": 40, **more}


def tool(name, props, required):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": props, "required": required, "additionalProperties": False}}}


TOOLS = [tool("HassTurnOn", {"name": {"type": "string", "maxLength": 30}}, ["name"]),
         tool("HassTurnOff", {"name": {"type": "string", "maxLength": 30}}, ["name"]),
         tool("HassLightSet", {"name": {"type": "string", "maxLength": 30}, "brightness": {"type": "integer", "minimum": 0, "maximum": 100}}, ["name", "brightness"])]
FORMAT = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "required": ["action", "device", "certain"], "properties": {
    "action": {"enum": ["turn_on", "turn_off", "set"]}, "device": {"type": "string", "maxLength": 24}, "certain": {"type": "boolean"}}}}}


def said(j):
    m = j["choices"][0]["message"]
    return m["content"], [c["function"] for c in m.get("tool_calls") or []], j["choices"][0]["finish_reason"]


def written(j):
    """The text that the model wrote, in Qwen's form."""
    text, calls, finish = said(j)
    calls = [f'<tool_call>\n{{"name": "{c["name"]}", "arguments": {c["arguments"]}}}\n</tool_call>' for c in calls]
    return ((text or "") + "\n".join(calls) + ("" if finish == "length" else "<|im_end|>")).encode()


def same(d, body, a, b):
    """Whether @b says what @d said, @a; on another backend than the CPU's also where it leaves @a at a token
    that was less than TIED behind @d's. And what to say of it."""
    if said(a) == said(b):
        return True, ""
    if not COMPUTE:
        return False, (said(a), said(b))
    rest = written(b)
    for e in d.chat({**body, "logprobs": True, "top_logprobs": 20})[1]["choices"][0]["logprobs"]["content"]:
        token = bytes(e["bytes"])
        if rest.startswith(token):
            rest = rest[len(token):]
            continue
        gap = min((e["logprob"] - o["logprob"] for o in e["top_logprobs"] if o["bytes"] and rest.startswith(bytes(o["bytes"]))), default=100)
        print(f"# {written(b)} leaves {written(a)} at {e['token']!r}: behind by {gap:.3f}")
        return gap < TIED, (said(a), said(b), gap)
    return False, (said(a), said(b), "not so when asked again")


def test_same(tmp):
    """Caches, jump-forward, chunks and company: each off, alone, and the answer is the same."""
    plain = Daemon(tmp, model=", jump_forward: false, chunk: 32", more="cache: {enabled: false}")
    full = Daemon(tmp)
    if COMPUTE:
        said = [l for l in full.text().splitlines() if "computing on " in l]
        check(len(said) == 1 and said[0].startswith("hearthd: computing on ") and COMPUTE in said[0].split(": ")[1], f"it computes on {COMPUTE}, and says so", said)
    kept = forced = 0
    for i, temp in enumerate((0,) if COMPUTE else (0, 2)):
        for what, more in (("text", {}), ("a call by choice", {"tools": TOOLS}), ("a forced call", {"tools": TOOLS, "tool_choice": "required"}), ("JSON", {"response_format": FORMAT})):
            right, detail, cached = True, "", 0
            for turn, q in enumerate(("turn on the kitchen light", "turn on the hall fan", "turn on the kitchen light")):
                body = ask(q, temperature=temp, seed=7 + turn, **more)
                a, b = plain.chat(body)[1], full.chat(body)[1]
                ok, why = same(plain, body, a, b)
                right, detail = right and ok, detail or why
                cached += b["usage"]["prompt_tokens_details"]["cached_tokens"]
                forced += b["timings"].get("draft_n", 0)
                kept += b["timings"].get("draft_n_accepted", 0)
                right = right and a["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
            check(right, f"with caches and jump-forward the same, temperature {temp}: {what}", detail)
            if i == 0:
                check(cached > 0.6 * 3 * b["usage"]["prompt_tokens"], "and most of the prompt was found: " + what, cached)
    check(0 < kept <= forced, f"jump-forward computed ahead ({kept} of {forced} tokens came true)")
    check(full.metric("forced_tokens_kept_total") == kept, "and the metrics say so")
    # six at once, of which four run together
    bodies = [ask(f"turn on the {n}") for n in NAMES]
    want, got = [plain.chat(b)[1] for b in bodies], [None] * 6

    def one(i):
        got[i] = full.chat(bodies[i])[1]

    ts = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    each = [same(plain, *x) for x in zip(bodies, want, got)]
    check(all(ok for ok, _ in each), "six clients at once get what each gets alone", [why for ok, why in each if not ok])
    check(plain.stop() == 0 and full.stop() == 0, "both end cleanly")


def test_restart(tmp):
    cache = os.path.join(tmp, "prefix.kv")
    more = f"cache: {{file: {cache}, seconds: 1}}"
    d = Daemon(tmp, more=more)
    first = d.chat(ask("turn on the hall fan"))[1]
    check(first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, "a prompt that nobody sent before is not cached")
    if "own memory and is not kept" in d.text():
        time.sleep(1.2)
        failed = d.metric("cache_saves_failed_total")
        check(d.stop() == 0 and failed == 0 and not os.path.exists(cache), "a cache in a GPU's own memory is not kept, it is said, and nobody tries")
        return
    check(d.stop() == 0 and os.stat(cache).st_mode & 0o777 == 0o600, "a stop writes the cache, for its owner alone")
    d = Daemon(tmp, more=more)
    again = d.chat(ask("turn on the hall fan"))[1]
    hit = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    check(hit > again["usage"]["prompt_tokens"] - 33 and said(again) == said(first), "after a restart it is found, and the answer is the same", again)
    # killed: what was written while nobody was served is there
    d.chat(ask("another question"))
    for _ in range(600):
        if d.metric("cache_saves_total") >= 1:
            break
        time.sleep(0.1)
    check(d.stop(signal.SIGKILL) == -signal.SIGKILL and not os.path.exists(cache + ".new"), "it is written while the daemon runs")
    d = Daemon(tmp, more=more)
    again = d.chat(ask("another question"))[1]
    check(again["usage"]["prompt_tokens_details"]["cached_tokens"] > hit - 64, "a kill loses nothing that was written", again)
    d.stop()
    good = open(cache, "rb").read()
    for name, data in (("cut", good[:len(good) // 3]), ("one bit wrong", good[:700] + bytes([good[700] ^ 4]) + good[701:]), ("empty", b""), ("something else", b"x" * 5000)):
        open(cache, "wb").write(data)
        d = Daemon(tmp, more=more)
        j = d.chat(ask("turn on the hall fan"))[1]
        check(said(j) == said(first), "a cache file that is " + name + " changes no answer", (d.text(), j))
        check(d.stop() == 0, "and the daemon lives on")
    open(cache, "wb").write(good)
    d = Daemon(tmp, more=more.replace("{", "{enabled: false, "))
    d.chat(ask("turn on the hall fan"))
    time.sleep(1.2)
    failed = d.metric("cache_saves_failed_total")
    check(d.stop() == 0 and failed == 0 and "switched off" in d.text(), "a cache that is switched off is not kept, it is said, and nobody tries", d.text())
    if os.path.exists(OTHER):
        d = Daemon(tmp, more=more, path=OTHER)
        j = d.chat(ask("turn on the hall fan"))[1]
        check("begins empty" in d.text() and j["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, "another model's cache is refused, and it is said", d.text())
        d.stop()
    d = Daemon(tmp, model=", kv: f16", more=more)
    check("begins empty" in d.text() and "int8" in d.text(), "so is one of another format", d.text())
    d.stop()


def test_hints(d):
    for name, more in (("prompt_cache_key that is a number", {"prompt_cache_key": 3}), ("prompt_cache_key too long", {"prompt_cache_key": "x" * 513}), ("conversation_id that is a list", {"conversation_id": []}),
                       ("nvext that is a text", {"nvext": "x"}), ("agent_hints that are a list", {"nvext": {"agent_hints": []}}), ("cache_control that is true", {"nvext": {"cache_control": True}}),
                       ("ttl without sense", {"nvext": {"cache_control": {"ttl": "soon"}}}), ("ttl below nought", {"nvext": {"cache_control": {"ttl": -1}}}), ("prefix_bytes below nought", {"nvext": {"cache_control": {"prefix_bytes": -5}}})):
        s, j, _ = d.chat(ask("hi", **more))
        check(s == 400 and j["error"]["param"], "refused: " + name, (s, j))
    # genie-claw as it calls
    genie = {"conversation_id": "c1", "nvext": {"agent_hints": {"session_id": "s1", "priority": 5, "osl": 64, "speculative_prefill": True},
                                                "cache_control": {"type": "ephemeral", "ttl": "1h", "scope": "tenant", "cache_key": "household", "prefix_bytes": len(SYSTEM)}}}
    s, j, _ = d.chat(ask("turn on the hall fan", **genie))
    check(s == 200, "genie-claw's request as it sends it", (s, j))
    # what it pinned outlives a flood that fills the cache twice
    for i in range(12):
        d.chat({"messages": [{"role": "user", "content": f"{i} " + "all sorts of other things are said here " * 100}], "max_tokens": 1})
    j = d.chat(ask("turn off the hall fan", **genie))[1]
    check(j["usage"]["prompt_tokens_details"]["cached_tokens"] > 0.6 * j["usage"]["prompt_tokens"], "the boundary that it named is still there after a flood", j["usage"])


def test_embeddings(tmp, d):
    s, j, _ = d.call("POST", "/v1/embeddings", {"model": "home", "input": "turn on the light"})
    check(s == 400 and "not made for embeddings" in j["error"]["message"], "a model that only writes gives no embeddings, and says why", j)
    e = Daemon(tmp, model=", embeddings: mean")
    s, j, _ = e.call("POST", "/v1/embeddings", {"model": "home", "input": ["turn on the light", "switch the lamp on", "the stock market fell"], "encoding_format": "float"})
    if COMPUTE and s == 400:
        check("gives no embeddings" in j["error"]["message"] and e.stop() == 0, "a backend without embeddings says so", j)
        return
    v = [x["embedding"] for x in j["data"]]
    check(s == 200 and [x["index"] for x in j["data"]] == [0, 1, 2] and j["usage"]["prompt_tokens"] > 8 and all(abs(sum(a * a for a in x) - 1) < 1e-4 for x in v), "three texts, three unit vectors", j["usage"])
    s, k, _ = e.call("POST", "/v1/embeddings", {"input": "switch the lamp on", "encoding_format": "base64"})
    raw = struct.unpack("<%df" % len(v[1]), base64.b64decode(k["data"][0]["embedding"]))
    check(s == 200 and max(abs(a - b) for a, b in zip(raw, v[1])) < 1e-6, "alone and as base64 the same numbers")
    ids = e.call("POST", "/tokenize", {"content": "switch the lamp on"})[1]["tokens"]
    s, k, _ = e.call("POST", "/v1/embeddings", {"input": [ids, ids]})
    check(s == 200 and max(abs(a - b) for a, b in zip(k["data"][1]["embedding"], v[1])) < 1e-6, "token ids instead of texts")
    for name, body in (("nothing", {}), ("an empty list", {"input": []}), ("an empty text", {"input": ""}), ("a number", {"input": 3}), ("an id that is none", {"input": [10**7]}), ("mixed", {"input": ["a", 3]}),
                       ("other dimensions", {"input": "a", "dimensions": 8}), ("another format", {"input": "a", "encoding_format": "hex"}), ("too long", {"input": "word " * 5000}), ("too many", {"input": ["a"] * 2049}), ("another model", {"input": "a", "model": "nope"})):
        s, k, _ = e.call("POST", "/v1/embeddings", body)
        check(s in (400, 404) and k["error"]["message"], "embeddings refused: " + name, (s, k))
    e.stop()


def test_leaving(d):
    """A client that leaves ends the work at the next token; what was computed stays."""
    ends = {str(t): -100 for t in d.call("POST", "/tokenize", {"content": "<|im_end|><|endoftext|>"})[1]["tokens"]}
    for how in ("streamed", "whole", "in its prompt"):
        body = {"prompt": SYSTEM if how != "in its prompt" else "never said before " * 300, "temperature": 0, "max_tokens": 1200, "logit_bias": ends}
        raw = json.dumps({**body, "stream": how == "streamed"}).encode()
        s = socket.create_connection(("127.0.0.1", d.port), timeout=60)
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
        if how == "streamed":
            got = b""
            while got.count(b"data: ") < 5:
                more = s.recv(4096)
                assert more, got
                got += more
        else:
            time.sleep(0.05)
        s.close()
        for _ in range(600):
            if d.metric("sessions_active") == 0:
                break
            time.sleep(0.02)
        steps = d.metric("engine_steps_total")
        time.sleep(0.2)
        check(d.metric("sessions_active") == 0 and d.metric("engine_steps_total") == steps, "nobody works for a client that left: " + how)
        check(d.metric("requests_waiting") == 0, "nor waits for it")
    want = d.chat(ask("turn on the hall fan"))[1]
    j = d.chat(ask("turn on the hall fan"))[1]
    check(said(want) == said(j) and j["usage"]["prompt_tokens_details"]["cached_tokens"] > 0.6 * j["usage"]["prompt_tokens"], "the cache is right afterwards", (said(want), said(j)))


def test_queue(tmp):
    keys = "keys:\n  - {name: v, key: voice-voice-voice-1, priority: voice}\n  - {name: b, key: back-back-back-back, priority: background}\n"
    d = Daemon(tmp, http=", queue: 2, request_seconds: 2", more=keys)
    ends = {str(t): -100 for t in d.call("POST", "/tokenize", {"content": "<|im_end|><|endoftext|>"}, key="voice-voice-voice-1")[1]["tokens"]}
    long = ask("tell me everything", max_tokens=700, logit_bias=ends)
    order, codes = [], []

    def one(name, key, body):
        s, j, r = d.chat(body, key=key)
        order.append(name)
        codes.append((s, r.getheader("Retry-After"), j.get("error", {}).get("code")))

    ts = [threading.Thread(target=one, args=(f"b{i}", "back-back-back-back", long)) for i in range(9)]
    [t.start() for t in ts]
    time.sleep(0.1)
    t0 = time.time()
    s, j, _ = d.chat(ask("turn on the hall fan"), key="voice-voice-voice-1")
    fast = time.time() - t0
    [t.join() for t in ts]
    refused = [c for c in codes if c[0] in (429, 503)]
    check(all(c[0] in (200, 429, 503) for c in codes) and (not refused or all(c[1] and c[2] for c in refused)), "a full queue is 429 or 503 with Retry-After, nothing else", codes)
    check(any(c[0] == 429 for c in codes), "and more than the queue holds were refused", codes)
    check(s in (200, 429), "voice is served beside them or told at once", (s, fast))
    check(d.stop() == 0, "it ends cleanly")


def test_oversize(d):
    """Each is refused with a status and a sentence, or answered; then the next one is served as ever."""
    many = lambda n: {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}] * (n // 2) + [{"role": "user", "content": "turn on the lamp"}], "max_tokens": 4}
    deep = lambda n: b'{"messages":' + b"[" * n + b"]" * n + b"}"
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": 20} for i in range(3000)}}
    cases = [
        ("a chat of 100,000 messages", many(100000), None, 400, "context_length_exceeded"),
        ("a chat of 200,003 messages", many(200002), None, 400, "invalid_value"),
        ("a body over the limit", None, b"x" * (33 << 20), 413, "too_large"),
        ("one text of 10 MB", ask("word " * 2_000_000), None, 400, "context_length_exceeded"),
        ("JSON nested 100,000 deep", None, deep(100000), 400, "invalid_json"),
        ("5,000 tools", ask("hi", tools=[tool(f"t{i}", {"a": {"type": "string"}}, []) for i in range(5000)]), None, 400, None),
        ("a schema of 3,000 properties", ask("hi", response_format={"type": "json_schema", "json_schema": {"schema": wide}}), None, 400, "unsupported_schema"),
        ("an enum of 100,000", ask("hi", response_format={"type": "json_schema", "json_schema": {"schema": {"enum": [f"v{i}" for i in range(100000)]}}}), None, (200, 400), None),
        ("a pattern that multiplies", ask("hi", response_format={"type": "json_schema", "json_schema": {"schema": {"type": "string", "pattern": "^((((a{50}){50}){50}){50})$"}}}), None, (200, 400), None),
        ("300 optional properties", ask("hi", response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(300)}}}}), None, 200, None),
        ("301 optional properties", ask("hi", response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(301)}}}}), None, 400, "unsupported_schema"),
        ("a schema whose shortest text does not fit", ask("hi", max_tokens=20, response_format={"type": "json_schema", "json_schema": {"schema": {"enum": ["word " * 30]}}}), None, 400, "invalid_value"),
        ("a grammar of a megabyte", ask("hi", grammar="root ::= " + " | ".join(f'"v{i}"' for i in range(100000))), None, (200, 400), None),
        ("17 stop texts", ask("hi", stop=["x"] * 17), None, 400, None),
        ("a stop text of 257 bytes", ask("hi", stop="x" * 257), None, 400, None),
        ("1,025 biases", ask("hi", logit_bias={str(i): 1 for i in range(1025)}), None, 400, None),
        ("n = 9", ask("hi", n=9), None, 400, None),
        ("max_tokens beyond 64 bits", ask("hi", max_tokens=2**70), None, 400, None),
        ("temperature of 1e308", ask("hi", temperature=1e308), None, 400, None),
        ("a model's name of a megabyte", {**ask("hi"), "model": "x" * 1000000}, None, 404, None),
        ("a role of a megabyte", {"messages": [{"role": "x" * 1000000, "content": "hi"}]}, None, 400, None),
        ("a tool's name of a megabyte", ask("hi", tools=[tool("x" * 1000000, {}, [])]), None, 400, None),
    ]
    rss = lambda: int(next(line for line in open(f"/proc/{d.proc.pid}/status") if line.startswith("VmRSS")).split()[1])
    for name, body, raw, status, code in cases:
        try:
            s, j, _ = d.call("POST", "/v1/chat/completions", body, raw=raw)
        except (ConnectionError, BrokenPipeError):
            s, j = 413 if raw and len(raw) > 32 << 20 else 0, {"error": {"message": "closed", "code": code}}
        ok = s in (status if isinstance(status, tuple) else (status,)) and (s == 200 or (j["error"]["message"] and (not code or j["error"]["code"] == code)))
        check(ok, f"oversize: {name} is {s}", str(j)[:300])
        s, j, _ = d.chat(ask("turn on the hall fan", max_tokens=2))
        check(s == 200, "and the next is served", j)
    a = rss()
    for _ in range(2):
        d.call("POST", "/v1/chat/completions", many(100000))
    for _ in range(200):   # the answer comes before its request's memory goes
        b = rss()
        if b - a < 30000:
            break
        time.sleep(0.05)
    check(b - a < 30000, "long chats leave no memory behind", (a, b))
    for name, line in (("a request line of 100 kB", b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n"), ("10,000 headers", b"GET /health HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(10000)) + b"\r\n"),
                       ("a header of a megabyte", b"GET /health HTTP/1.1\r\nX: " + b"y" * 1000000 + b"\r\n\r\n"), ("a length below nought", b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n")):
        with socket.create_connection(("127.0.0.1", d.port), timeout=60) as c:
            try:
                c.sendall(line)
                c.shutdown(socket.SHUT_WR)
                first = c.recv(64).split(b"\r\n")[0]
            except OSError:
                first = b""
        check(b" 200 " not in first and d.call("GET", "/health")[0] == 200, f"oversize: {name}: {first.decode(errors='replace') or 'closed'}")


def main():
    if not os.path.exists(MODEL):
        print("1..1\nok 1 - serving # SKIP there is no model at " + os.path.relpath(MODEL, ROOT))
        return 0
    with tempfile.TemporaryDirectory() as tmp:
        d = None
        groups = sys.argv[1:]
        for t in (lambda: test_same(tmp), lambda: test_restart(tmp), lambda: test_queue(tmp), lambda: test_embeddings(tmp, d), lambda: test_hints(d), lambda: test_leaving(d), lambda: test_oversize(d)):
            if groups and not any(g in t.__code__.co_names for g in groups):
                continue
            try:
                d = d or Daemon(tmp)
                t()
            except Exception:
                import traceback
                check(False, "a group of tests", traceback.format_exc() + (d.text()[-1000:] if d else ""))
        check(d.stop() == 0, "SIGTERM ends it cleanly", d.text()[-500:])
    print("1..%d" % count)
    return 1 if failed else 0


sys.exit(main())
