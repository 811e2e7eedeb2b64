#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hearthd beside llama-server: the same model, machine, client and run.

    serve.py --llama-server PATH [--model FILE] [--rounds N] [--threads N] [--json FILE]
    serve.py --overhead [--before HEARTHD] ...     what the server costs over its engine, and nothing else

Rounds of the two alternate, so that what else the machine does meets both.
Prints p50 and p95 of each and their ratio; without llama-server only ours.
Exits 1 when a bound that the project holds itself to is not met.

What the server costs over its engine is measured twice. By the clock: a token
as hearthd has it (the median of three answers) beside a token of the engine
alone in bench_engine (before and behind them), in the same round; what else the machine does is in it, and so is the client, which
therefore looks ten times a second and leaves the pieces unread in between. And
by CPU time, which others do not lengthen: what the kernel counts for all of
hearthd's threads but the engine's while it streams an answer of --tokens (512),
less the same for one of 1 token, by the time that the tokens between take. Where the
engine leaves no core free it is slowed by that much, and the switches."""
import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORDS = ("light lamp kitchen bedroom garden door window heating fan blind switch scene morning evening living hall "
         "office garage upper lower small large left right warm cold bright dim sensor plug meter pump").split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, name, argv, port):
        self.name, self.port = name, port
        self.log = tempfile.NamedTemporaryFile("w+", prefix=name)
        self.proc = subprocess.Popen(argv, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        for _ in range(1200):
            if self.proc.poll() is not None:
                break
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                c.request("GET", "/health")
                if c.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        with open(self.log.name) as f:
            sys.exit(f"{name} did not start:\n{f.read()[-2000:]}")

    def stop(self):
        self.proc.terminate()
        self.proc.wait(60)

    def takes(self, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        c.request("POST", "/v1/chat/completions", json.dumps({**body, "max_tokens": 1}).encode(), {"Content-Type": "application/json"})
        return c.getresponse().status == 200

    def post(self, path, body):
        """The whole answer, and the seconds it took."""
        data = json.dumps(body).encode()
        t0 = time.perf_counter()
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        c.request("POST", path, data, {"Content-Type": "application/json"})
        r = c.getresponse()
        out = r.read()
        t1 = time.perf_counter()
        c.close()
        if r.status != 200:
            sys.exit(f"{self.name} {path}: {r.status} {out[:500]!r}")
        return json.loads(out), t1 - t0

    def send(self, s, path, body):
        data = json.dumps(body).encode()
        s.sendall(b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data)

    def lazy(self, path, body):
        """
        A stream whose client costs next to nothing: it looks every 100 ms. The timings of the last chunk, and the
        seconds of CPU that each of the server's threads had, the most first.
        """
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.settimeout(600)
            time.sleep(0.02)       # its thread is there
            before = self.cpu()
            self.send(s, path, {**body, "stream": True})
            out = b""
            while b"[DONE]" not in out:
                time.sleep(0.1)
                more = s.recv(1 << 16)
                if not more:
                    sys.exit(f"{self.name}: broken off: {out[:500]!r}")
                out += more
            time.sleep(0.02)
            cpu = sorted((t - before.get(i, 0) for i, t in self.cpu().items()), reverse=True)
        at = out.rindex(b'"timings":') + 10
        return json.loads(out[at:out.index(b"}", at) + 1]), cpu

    def cpu(self):
        """Seconds of CPU that each thread had so far."""
        out = {}
        for t in os.listdir(f"/proc/{self.proc.pid}/task"):
            try:
                with open(f"/proc/{self.proc.pid}/task/{t}/schedstat") as f:
                    out[t] = int(f.read().split()[0]) / 1e9
            except OSError:
                pass               # it ended
        return out

    def stream(self, body, path="/v1/chat/completions"):
        """As streamed(), from a client that does not wait for the engine to give it a core."""
        how, rank = os.sched_getscheduler(0), os.sched_getparam(0)
        if how == os.SCHED_OTHER:
            return self.streamed(body, path)
        os.sched_setscheduler(0, how, os.sched_param(rank.sched_priority + 2))
        try:
            return self.streamed(body, path)
        finally:
            os.sched_setscheduler(0, how, rank)

    def streamed(self, body, path):
        """Seconds to the first piece of the answer, from there to the last, pieces, and the last chunk with timings."""
        data = json.dumps({**body, "stream": True}).encode()
        t0 = time.perf_counter()
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        c.request("POST", path, data, {"Content-Type": "application/json"})
        r = c.getresponse()
        if r.status != 200:
            sys.exit(f"{self.name}: {r.status} {r.read()[:500]!r}")
        first = last = None
        pieces, timings = 0, {}
        while True:
            line = r.readline()
            if not line:
                break
            if not line.startswith(b"data: {"):
                continue
            j = json.loads(line[6:])
            timings = j.get("timings") or timings
            if not j["choices"]:
                continue
            delta = j["choices"][0].get("delta", j["choices"][0])
            if j["choices"][0].get("finish_reason") or delta.get("text") or delta.get("content") or delta.get("tool_calls") or delta.get("reasoning_content"):
                now = time.perf_counter()
                first = first or now
                if not j["choices"][0].get("finish_reason"):
                    last = now
                    pieces += 1
        c.close()
        if first is None:
            first = last = time.perf_counter()
        return first - t0, (last or first) - first, pieces, timings


def names(rng, n):
    return "\n".join(f"- name: {rng.choice(WORDS)} {rng.choice(WORDS)} {i}; area: {rng.choice(WORDS)}" for i in range(n))


def system(rng, lines):
    return "You are a voice assistant for a home. Answer in one short sentence.\nThings:\n" + names(rng, lines)


def tool(name, props, required):
    return {"type": "function", "function": {"name": name, "description": "Does " + name, "parameters": {
        "type": "object", "properties": props, "required": required, "additionalProperties": False}}}


TOOLS = [
    tool("HassTurnOn", {"name": {"type": "string", "maxLength": 30}, "area": {"type": "string", "maxLength": 30}}, ["name"]),
    tool("HassTurnOff", {"name": {"type": "string", "maxLength": 30}, "area": {"type": "string", "maxLength": 30}}, ["name"]),
    tool("HassLightSet", {"name": {"type": "string", "maxLength": 30}, "brightness": {"type": "integer", "minimum": 0, "maximum": 100}}, ["name", "brightness"]),
    tool("HassClimateSetTemperature", {"temperature": {"type": "integer", "minimum": 5, "maximum": 30}}, ["temperature"]),
]
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": {
    "type": "object", "additionalProperties": False, "required": ["action", "device", "brightness", "certain"],
    "properties": {"action": {"type": "string", "enum": ["turn_on", "turn_off", "set"]}, "device": {"type": "string", "maxLength": 24},
                   "brightness": {"type": "integer", "minimum": 0, "maximum": 100}, "certain": {"type": "boolean"}}}}}


def ask(sys_text, text, **more):
    return {"messages": [{"role": "system", "content": sys_text}, {"role": "user", "content": text}],
            "temperature": 0, "max_tokens": 32, "chat_template_kwargs": {"enable_thinking": False}, **more}


def engine_ms(hearthd, o, depth, n):
    """Milliseconds a token of the engine without a server, after a prompt of @depth."""
    r = subprocess.run([os.path.join(os.path.dirname(hearthd), "bench_engine"), o.model, "--threads", str(o.threads), "--rounds", "3",
                        "--prompt", "8", "--gen", str(n), "--depth", str(depth), "--no-end", "--json"], capture_output=True, text=True, check=True)
    return 1e3 / json.loads(r.stdout)["figures"][-1]["hearth"]


def rest():
    """Whoever runs this at a real-time priority is stopped by the kernel for 50 ms once he had 0.95 of a second."""
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        time.sleep(1)


def overhead(o, servers, note, prompt, i):
    """The server over its own engine: the same text, answers of 128 tokens and of o.tokens."""
    for s in servers if i % 2 else servers[::-1]:
        body = {"prompt": prompt, "max_tokens": 128, "temperature": 0, "logit_bias": {str(t): -100 for t in s.ends}}
        t, d, n, tm = s.stream(body, "/v1/completions")
        note("server over engine, a request (ms)", s, 1e3 * t - tm["ttft_ms"])
        note("a token, streamed, as its client has it (ms)", s, 1e3 * d / (tm["predicted_n"] - 1))
        body["max_tokens"] = o.tokens
        # half as many tokens, from the middle of where those lie; before the server's answers and behind them
        depth = tm["cache_n"] + tm["prompt_n"] + o.tokens // 4
        rest()
        alone = [engine_ms(s.path, o, depth, o.tokens // 2)]
        streamed, whole, used = [], [], []
        for _ in range(3):
            rest()
            tm, cpu = s.lazy("/v1/completions", body)
            streamed.append(tm["predicted_ms"] / (tm["predicted_n"] - 1))
            one = s.lazy("/v1/completions", {**body, "max_tokens": 1})[1]
            used.append((1e6 * (sum(cpu[o.threads:]) - sum(one[o.threads:])) / (o.tokens - 1), 1e6 * sum(cpu[:o.threads]) / o.tokens))
            rest()
            tm = s.post("/v1/completions", body)[0]["timings"]
            whole.append(tm["predicted_ms"] / (tm["predicted_n"] - 1))
        rest()
        alone = (alone[0] + engine_ms(s.path, o, depth, o.tokens // 2)) / 2
        streamed, whole, own, engine = (statistics.median(v) for v in (streamed, whole, *zip(*used)))
        note("engine alone, a token (ms)", s, alone)
        note("a token, streamed (ms)", s, streamed)
        note("server over engine, a token, streamed (%)", s, 100 * (streamed / alone - 1))
        note("a token, whole answer (ms)", s, whole)
        note("server over engine, a token, whole answer (%)", s, 100 * (whole / alone - 1))
        note("server's own CPU, a streamed token (us)", s, own)
        note("server's own CPU, of a token's time (%)", s, own / alone / 10)
        note("server's own CPU, of the engine's CPU (%)", s, 100 * own / engine)


def quantile(v, q):
    v = sorted(v)
    return v[min(len(v) - 1, int(q * len(v)))]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--hearthd", default=os.path.join(ROOT, "build/bin/hearthd"))
    p.add_argument("--llama-server")
    p.add_argument("--llama-args", default="", help="more arguments for llama-server")
    p.add_argument("--model", default=os.path.join(ROOT, "models/home-q8_0.gguf"))
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--lines", type=int, default=140, help="things in the long system prompt")
    p.add_argument("--json")
    p.add_argument("--overhead", action="store_true", help="only what the server costs over its engine")
    p.add_argument("--tokens", type=int, default=512, help="length of the answers by which a token's overhead is measured")
    p.add_argument("--before", help="another build of hearthd, with its bench_engine, in the same rounds of --overhead")
    o = p.parse_args()
    o.model = os.path.abspath(o.model)   # hearthd looks for names beside its configuration, which lies elsewhere
    for f in filter(None, (o.hearthd, o.before, o.llama_server)):
        if not os.access(f, os.X_OK):
            sys.exit(f"{f} is no program that can be run")
    tmp = tempfile.TemporaryDirectory()

    def ours(name, path=o.hearthd, called="hearthd", **more):
        port = free_port()
        conf = os.path.join(tmp.name, name)
        with open(conf, "w") as f:
            extra = "".join(f", {k}: {v}" for k, v in more.items())
            f.write(f"model: {{path: {o.model}, context: 4096, sessions: 4, threads: {o.threads}{extra}}}\nhttp: {{port: {port}}}\n")
        server = Server(called, [path, "-c", conf], port)
        server.path = path
        server.ends = [t["id"] for t in server.post("/tokenize", {"content": "<|im_end|><|endoftext|>", "with_pieces": True})[0]["tokens"]]
        return server

    us = ours("a.yaml")
    servers = [us]
    if o.overhead:
        servers += [ours("before.yaml", o.before, "before")] if o.before else []
    elif o.llama_server:
        port = free_port()
        servers.append(Server("llama-server", [o.llama_server, "-m", o.model, "--port", str(port), "--host", "127.0.0.1", "-c", "16384", "-np", "4",
                                               "-t", str(o.threads), "-tb", str(o.threads), "--jinja", "--no-webui", *o.llama_args.split()], port))
    rng = random.Random(1)
    seen = {}

    def note(what, server, v):
        seen.setdefault(what, {}).setdefault(server.name, []).append(v)

    n_long = us.post("/v1/chat/completions/input_tokens", ask(system(random.Random(9), o.lines), "turn on the lamp"))[0]["input_tokens"]
    # both have run once before anything counts
    tools = not o.overhead and us.takes(ask(system(rng, 5), "turn on the light", tools=TOOLS))
    kinds = [("tool call", dict(tools=TOOLS, tool_choice="required"))] * tools + [("JSON", dict(response_format=FORMAT))] * (not o.overhead)
    for s in servers:
        s.stream(ask(system(rng, 5), "hello"))
        for what, body in kinds:
            s.post("/v1/chat/completions", ask(system(rng, 5), "turn on the light", **body))
    short, long = system(random.Random(2), 4), system(random.Random(3), o.lines)
    for i in range(o.rounds if o.overhead else 0):
        overhead(o, servers, note, f"{short}hello {rng.choice(WORDS)} {i}", i)
    for i in range(0 if o.overhead else o.rounds):
        order = servers if i % 2 else servers[::-1]
        cold_short, cold_long = system(random.Random(1000 + i), 4), system(random.Random(2000 + i), o.lines)
        # what stands first differs, so that nothing of it can be known
        cold_short, cold_long = f"{i} " + cold_short, f"{i} " + cold_long
        q = f"turn on the {rng.choice(WORDS)} {rng.choice(WORDS)} number {i}"
        hi = f"hello {rng.choice(WORDS)} {i}"
        for s in order:
            note("first token, cold, short prompt (ms)", s, 1e3 * s.stream(ask(cold_short, hi, max_tokens=1))[0])
        for s in order:
            note("first token, cold, long prompt (ms)", s, 1e3 * s.stream(ask(cold_long, hi, max_tokens=1))[0])
        for s in order:
            s.stream(ask(short, "hello"))
            note("first token, warm, short prompt (ms)", s, 1e3 * s.stream(ask(short, hi, max_tokens=1))[0])
        for s in order:
            if not i:
                s.stream(ask(long, "hello"))
            t, d, n, tm = s.stream(ask(long, hi, max_tokens=1))
            note("first token, warm, long prompt (ms)", s, 1e3 * t)
        for s in order if tools else ():
            j, t = s.post("/v1/chat/completions", ask(short, q, tools=TOOLS, tool_choice="required", max_tokens=96))
            note("tool call by schema, whole request (ms)", s, 1e3 * t)
        for s in order:
            j, t = s.post("/v1/chat/completions", ask(short, q, response_format=FORMAT, max_tokens=96))
            note("JSON by schema, whole request (ms)", s, 1e3 * t)
            if s is us:   # the other may run into max_tokens in white space
                json.loads(j["choices"][0]["message"]["content"])
        overhead(o, [us], note, short + hi, i)
        # a schema that nobody sent before: its automaton is made while it is followed
        new = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "required": ["word", "text"], "additionalProperties": False, "properties": {
            "word": {"enum": [f"{rng.choice(WORDS)} {rng.random()}" for _ in range(5)]}, "text": {"type": "string", "maxLength": 40 + i}}}}}
        tm = us.post("/v1/chat/completions", ask(short, q, max_tokens=96, response_format=new))[0]["timings"]
        note("mask, part of decode, schema never seen (%)", us, 100 * tm["mask_ms"] / (tm["predicted_ms"] or 1))
        for what, body in kinds:
            tm = us.post("/v1/chat/completions", ask(short, q, max_tokens=96, **body))[0]["timings"]
            note(f"mask, part of decode, {what} (%)", us, 100 * tm["mask_ms"] / (tm["predicted_ms"] or 1))
            note(f"tokens a step, {what}", us, tm["predicted_n"] / max(1, tm["predicted_n"] - tm.get("draft_n_accepted", 0)))
    # the same requests without jump-forward
    plain = us if o.overhead else ours("b.yaml", jump_forward="false")
    for i in range(o.rounds if kinds else 0):
        q = f"turn on the {rng.choice(WORDS)} {rng.choice(WORDS)} number {i}"
        for what, body in kinds:
            texts = {}
            for s, name in ((us, "with"), (plain, "without")):
                j, t = s.post("/v1/chat/completions", ask(short, q, max_tokens=96, **body))
                seen.setdefault(f"{what}, jump-forward (ms)", {}).setdefault(name, []).append(1e3 * t)
                m = j["choices"][0]["message"]
                texts[name] = [m["content"], [c["function"] for c in m.get("tool_calls") or []]]
            if texts["with"] != texts["without"]:
                print("jump-forward changed an answer:", texts)
                seen.setdefault("changed answers", {}).setdefault("hearthd", []).append(1)
    for s in {*servers, plain}:
        s.stop()

    print(f"{os.path.basename(o.model)}, {o.threads} threads, long prompt {n_long} tokens, {o.rounds} rounds; p50 (p95)")
    bad = []
    for what, by in seen.items():
        cells = [f"{name} {statistics.median(v):.3f} ({quantile(v, 0.95):.3f})" for name, v in by.items()]
        line = f"  {what:57} " + "  ".join(cells)
        for other in ("llama-server", "without"):
            if other in by:
                mine = by.get("hearthd") or by["with"]
                r50, r95 = statistics.median(mine) / statistics.median(by[other]), quantile(mine, 0.95) / quantile(by[other], 0.95)
                line += f"  ratio {r50:.2f} ({r95:.2f})"
                if other == "llama-server" and max(r50, r95) > 1:
                    bad.append(what)
        print(line)
    warm = o.overhead or statistics.median(seen["first token, cold, long prompt (ms)"]["hearthd"]) / statistics.median(seen["first token, warm, long prompt (ms)"]["hearthd"])
    if not o.overhead:
        print(f"  {'a warm long prompt is faster by':57} {warm:.1f}")
        bad += ["warm prompt"] if warm < 10 else []
    for what, bound in (("server over engine, a request (ms)", 2), ("server's own CPU, of a token's time (%)", 1),
                        ("server over engine, a token, streamed (%)", 1), ("server over engine, a token, whole answer (%)", 1),
                        ("mask, part of decode, schema never seen (%)", 5), ("mask, part of decode, tool call (%)", 5), ("mask, part of decode, JSON (%)", 5)):
        v = seen.get(what, {}).get("hearthd")
        if v and statistics.median(v) > bound:
            bad.append(what)
    if "changed answers" in seen:
        bad.append("jump-forward")
    print("bounds not met: " + ("; ".join(bad) if bad else "none"))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(seen, f)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
