#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hearthd as an administrator and an attacker meet it: --check, readiness and
watchdog, keys read again, a UNIX socket, a stop under load, clients that are
slow, endless, too large or broken. Standard library only; prints TAP."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hearthd as t
from hearthd import BUILD, KEY, MODEL, ROOT, Daemon, WebSocket, call, chat, check

EXE = os.path.join(BUILD, "bin/hearthd")
BASE = "model: {path: {model}, id: home, context: 2048, sessions: 2, threads: 2}\n"
AUTH = b"Authorization: Bearer " + KEY.encode() + b"\r\n"
KEYS = f"keys: [{{name: a, key: {KEY}, priority: voice}}]\n"


def rewrite(d, text):
    with open(d.conf, "w") as f:
        f.write(text.replace("{dir}", d.dir.name).replace("{model}", MODEL))


def reload(d):
    n = d.text().count("\nhearthd: read again") + d.text().count("kept the old")
    d.proc.send_signal(signal.SIGHUP)
    deadline = time.time() + 30
    while d.text().count("\nhearthd: read again") + d.text().count("kept the old") == n and time.time() < deadline:
        time.sleep(0.02)
    # what ran meanwhile may have been logged after it
    said = [l for l in d.text().splitlines() if "read again" in l or "kept the old" in l]
    return said[-1] if said else ""


def test_check():
    with tempfile.TemporaryDirectory() as tmp:
        conf = os.path.join(tmp, "c.yaml")

        def run(text, *args):
            with open(conf, "w") as f:
                f.write(text.replace("{model}", MODEL))
            return subprocess.run([EXE, "-c", conf, "--check", *args], capture_output=True, text=True, timeout=60)

        r = run(BASE + "http: {port: 1}\n")
        check(r.returncode == 0 and "fits" in r.stdout and not os.path.exists(tmp + "/stt"), "--check says what it would take, and starts nothing", r)
        for name, text, line, word in (("a key that is not known", BASE + "htpp: {}\n", 2, "htpp"), ("a port", BASE + "http:\n  host: 127.0.0.1\n  port: many\n", 4, "port"),
                                       ("broken YAML", BASE + "http: {port: 1\nlog: {\n", 3, ""), ("a short key", BASE + "keys:\n  - name: a\n    key: x\n", 3, "16"),
                                       ("two keys of one name", BASE + "keys:\n  - {name: a, key: 0123456789abcdef}\n  - {name: a, key: 0123456789abcdeF}\n", 4, "another"),
                                       ("a service of Wyoming", BASE + "wyoming:\n  services:\n    - asr\n    - telepathy\n", 5, "service"),
                                       ("the network without a key", BASE + "http:\n  host: 0.0.0.0\n", 3, "keys")):
            r = run(text)
            check(r.returncode == 2 and f"line {line}" in r.stderr and word in r.stderr and not r.stdout, "--check names the line: " + name, r)
        r = run("model: {path: /nonexistent.gguf}\n")
        check(r.returncode == 3 and "/nonexistent.gguf" in r.stderr, "--check of a model that is not there is 3", r)
        for name, text, word in (("a voice that is not there", BASE + "speech: {tts: true, voice: bob}\n", "bob"), ("a home that is not there", BASE + "speech: {home: none.yaml}\n", "none.yaml"),
                                 ("a detector that is not there", BASE + "speech: {stt: true, vad: none.weights}\n", "none.weights"),
                                 ("a backend that is none", "model: {path: {model}, backend: vulkan}\n", "vulkan"),
                                 ("less cache than is needed", BASE + "memory: {kv_max: 1M}\n", "of kv")):
            r = run(text)
            check(r.returncode == 3 and word in r.stderr and not r.stdout, "--check of " + name + " is 3", r)
        wake = BASE + "http: {port: 0}\nspeech: {wake: okay %s}\n"
        for name, text, rc, word in (("a certificate that is not there", BASE + "http: {port: 0, tls_cert: none.pem, tls_key: none.key}\n", 4, "none.pem: cannot be read"),
                                     ("a certificate that is none", BASE + "http: {port: 0, tls_cert: c.yaml, tls_key: c.yaml}\n", 4, "no certificate with its key"),
                                     ("an address that is none", BASE + "http: {host: here, port: 0}\nkeys: [{name: a, key: 0123456789abcdef}]\n", 4, "not an address"),
                                     ("an address of Wyoming that is none", BASE + "http: {port: 0}\nwyoming: {enabled: true, host: here, port: 0}\n", 4, "not an address"),
                                     ("a language model that is not there", BASE + "http: {port: 0}\nspeech: {stt: true, lm: none.lm}\n", 3, "none.lm"),
                                     ("a dictionary that is not there", BASE + "http: {port: 0}\nspeech: {stt: true, dict: none.dict}\n", 3, "none.dict"),
                                     ("a wake phrase without a word", BASE + "http: {port: 0}\nspeech: {wake: ' '}\n", 3, "wake phrase is empty"),
                                     ("one port for two", BASE + "http: {port: 8123}\nwyoming: {enabled: true, port: 8123}\n", 2, "http and wyoming are both to listen on port 8123"),
                                     ("one port of everywhere for two", BASE + "http: {port: 8123}\nwyoming: {enabled: true, host: 0.0.0.0, port: 8123}\n", 2, "both to listen on port 8123"),
                                     ("one port for two of Wyoming", BASE + "wyoming: {enabled: true, listen: [{port: 8123}, {host: localhost, port: 8123}]}\n", 2, "two addresses of wyoming"),
                                     ("a wake word of Wyoming without one", BASE + "wyoming: {enabled: true, services: [wake]}\n", 2, '"wake" needs speech: {wake: PHRASE}'),
                                     ("a recogniser of Wyoming without one", BASE + "wyoming: {enabled: true, services: [asr]}\n", 2, '"asr" needs'),
                                     ("a voice of Wyoming without one", BASE + "wyoming: {enabled: true, services: [tts]}\n", 2, '"tts" needs'),
                                     ("intents of Wyoming without a home", BASE + "wyoming: {enabled: true, services: [handle, intent]}\n", 2, '"intent" needs')):
            r = run(text)
            said = r.stderr
            check(r.returncode == rc and word in said and not r.stdout, f"--check of {name} is {rc}", r)
            r = subprocess.run([EXE, "-c", conf], capture_output=True, text=True, timeout=60)
            check(r.returncode == rc and r.stderr.endswith(said), "and so is the start, in the same words", (r, said))
        r = run(wake % "blorptang")
        check(r.returncode == 0 and '"blorptang" of the wake phrase "okay blorptang"' in r.stdout, "--check notes a wake word whose sound is guessed", r)
        check("guessed" not in run(wake % "computer").stdout, "and not one of the dictionary", run(wake % "computer"))
        d = Daemon(text=wake % "blorptang")
        check("is guessed" in d.text() and d.stop() == 0, "the start notes it too", d.text())
        ok = run(BASE + "http: {port: 8123}\nwyoming: {enabled: true, host: 127.0.0.2, port: 8123}\n")
        check(ok.returncode == 0, "one port of two addresses is fine", ok)
        size = lambda r: float(r.stdout.split(" MiB in all")[0].split()[-1]) if r.returncode == 0 else 0
        plain, f16, speech = size(run(BASE)), size(run("model: {path: {model}, kv: f16}\n")), size(run(BASE + "speech: {stt: true, tts: true}\n"))
        check(plain + 7 < f16 and plain + 15 < speech, "--check counts the kind of KV and the speech engines", (plain, f16, speech))
        whole = BASE + "speech: {stt: true, tts: true, home: " + os.path.join(ROOT, "docs/examples/home.yaml") + "}\nhttp: {port: 0}\n"
        said, d = size(run(whole)), Daemon(text=whole)
        s, j, _ = call(d, "GET", "/v1/memory")
        d.stop()
        held = sum(p["charged"] for p in j["pools"]) / (1 << 20)
        check(abs(said / held - 1) < 0.02, "and what it says is what is held, to 2 %", (said, held))
        for args in ([conf], ["--check", "foo"], ["-c", conf, "more"]):
            r = subprocess.run([EXE, *args], capture_output=True, text=True, timeout=60)
            check(r.returncode == 2 and r.stderr == f'hearthd: unexpected "{args[-1]}"; a configuration is given with -c\n', "a word that no option takes is 2: " + args[-1], r)
        r = subprocess.run([EXE, "-c", conf + ".no"], capture_output=True, text=True, timeout=60)
        check(r.returncode == 2 and ".no" in r.stderr, "a configuration that is not there is 2", r)
        r = subprocess.run([EXE, "-m", MODEL, "--host", "0.0.0.0", "--check"], capture_output=True, text=True, timeout=60)
        check(r.returncode == 2 and "keys" in r.stderr, "--host to the network without a key is refused too", r)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            r = subprocess.run([EXE, "-m", MODEL, "-p", str(s.getsockname()[1])], capture_output=True, text=True, timeout=60)
            check(r.returncode == 4 and "cannot listen" in r.stderr, "a port that is taken is 4, before the model is read", r)


def big_home(dir, rooms):
    """A home of four lamps a room; its path."""
    path = os.path.join(dir, "big.yaml")
    with open(path, "w") as f:
        f.write("areas:\n" + "".join(f"  - {{name: Room {i}}}\n" for i in range(rooms)) + "entities:\n" +
                "".join(f"  - {{name: Lamp {i} {k}, domain: light, area: Room {i}, state: \"off\"}}\n" for i in range(rooms) for k in range(4)))
    return path


def test_home_size():
    """A home that fills the context is refused before anybody asks in vain; what one takes is said."""
    home = os.path.join(ROOT, "docs/examples/home.yaml")
    with tempfile.TemporaryDirectory() as tmp:
        conf = os.path.join(tmp, "c.yaml")

        def run(text, *args):
            with open(conf, "w") as f:
                f.write(text.replace("{model}", MODEL))
            return subprocess.run([EXE, "-c", conf, *args], capture_output=True, text=True, timeout=60)

        big = big_home(tmp, 80)
        small = BASE.replace("context: 2048", "context: 1024") + f"http: {{port: 0}}\nspeech: {{home: {home}}}\n"
        full = BASE.replace("context: 2048", "context: 4096") + "http: {port: 0}\nspeech: {home: " + big + "}\nchat: {home: true}\n"
        for name, text, words in (("of Wyoming's text", small + "wyoming: {enabled: true, port: 0}\n", ("home.yaml", "context is 1024", "may take 896", "at least", "fewer devices")),
                                  ("of a chat, beyond the model's longest", full, ("big.yaml", "context is 4096", "may take 3968", "fewer devices")),
                                  ("the prompt of Wyoming", BASE + "http: {port: 0}\nwyoming: {enabled: true, port: 0, prompt: \"" + "word " * 3000 + "\"}\n", ("wyoming.prompt takes", "context is 2048")),
                                  ("the system message of a chat", BASE + "http: {port: 0}\nchat: {system: \"" + "word " * 3000 + "\"}\n", ("chat.system takes", "context is 2048"))):
            for args in (("--check",), ()):
                r = run(text, *args)
                check(r.returncode == 3 and all(w in r.stderr for w in words) and "ready" not in r.stderr and "fits" not in r.stdout, "too long: " + name + ", " + (args[0] if args else "start"), r)
        n = int(run(small + "wyoming: {enabled: true, port: 0}\n", "--check").stderr.split("at least ")[1].split()[0])
        enough = small.replace("context: 1024", f"context: {n}") + "wyoming: {enabled: true, port: 0, zeroconf: false}\n"
        r = run(enough, "--check")
        check(r.returncode == 0 and f"home: {n - 128} of {n} tokens over Wyoming" in r.stdout and "the page needs a context" in r.stdout, "the context that it names is enough, and the number is said", r)
        d = Daemon(text=enough)
        w = t.Wyoming(d.wyoming)
        w.send("transcript", {"text": "turn on the kitchen light"})
        ev = w.until("intent", "handled-stop", "not-handled")
        check(ev[-1][0] != "not-handled" and f"home: {n - 128} of {n} tokens" in d.text(), "a question is answered with it", (ev, d.text()))
        w.send("transcript", {"text": "word " * 900})
        ev = w.until("not-handled")
        spoken = ev[-1][1]["text"]
        check(ev[0][0] == "error" and str(n) in ev[0][1]["text"] and spoken == "That is too long for me.", "what is too long is said to people in words", ev)
        check("was not answered" in d.text() and f"holds {n}" in d.text(), "and the log has the numbers", d.text()[-500:])
        d.stop()


def test_readme():
    """What README has people type after make demo is built by make demo."""
    r = subprocess.run(["make", "-n", "-C", ROOT, "BUILD=/nonexistent", "demo"], capture_output=True, text=True, timeout=120)
    with open(os.path.join(ROOT, "README.md")) as f:
        typed = {w.split("build/bin/")[1] for w in f.read().split() if w.startswith("build/bin/")}
    check(r.returncode == 0 and typed >= {"hearth", "hearthd"}, "README has commands", (typed, r.stderr[-500:]))
    for name in sorted(typed):
        check(f"-o /nonexistent/bin/{name} " in r.stdout, "make demo builds what README starts: " + name, r.stdout[-300:])


def test_full():
    """What was printed and did not arrive is no success."""
    with tempfile.TemporaryDirectory() as tmp:
        conf = os.path.join(tmp, "c.yaml")
        with open(conf, "w") as f:
            f.write(BASE.replace("{model}", MODEL))
        for args in (["--help"], ["--version"], ["-c", conf, "--check"]):
            whole = subprocess.run([EXE, *args], capture_output=True, text=True, timeout=60)
            with open("/dev/full", "w") as full:
                r = subprocess.run([EXE, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            check(whole.returncode == 0 and r.returncode == 9 and "standard output" in r.stderr and "No space left" in r.stderr, "a full disk is said: " + args[-1], (whole.returncode, r))


def test_systemd():
    """Readiness, watchdog, reload and stop as systemd hears them."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "notify")
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(path)
        s.settimeout(60)
        d = Daemon(text=BASE + "http: {port: 0}\n", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "600000"}, wait=False)
        check(s.recv(1000) == b"READY=1" and "hearthd: ready" in d.text(), "READY comes when it serves", d.text())
        t0 = time.monotonic()
        dogs = [s.recv(1000) for _ in range(3)]
        check(dogs == [b"WATCHDOG=1"] * 3 and time.monotonic() - t0 < 30, "the watchdog is fed", dogs)
        d.proc.send_signal(signal.SIGHUP)
        got = []
        while not got or got[-1] != b"READY=1":
            got.append(s.recv(1000))
        got = [g for g in got if g != b"WATCHDOG=1"]
        check(got[0].startswith(b"RELOADING=1\nMONOTONIC_USEC=") and int(got[0].split(b"=")[-1]) > 0 and got[1] == b"READY=1", "a reload is told, with its time", got)
        d.proc.send_signal(signal.SIGTERM)
        while (g := s.recv(1000)) == b"WATCHDOG=1":
            pass
        check(g == b"STOPPING=1" and d.proc.wait(60) == 0, "a stop is told", g)
        # the abstract name space, and a watchdog that must not be fed by a server that hangs: its thread is the one that serves signals
        a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.bind("\0hearth-test-%d" % os.getpid())
        a.settimeout(60)
        d = Daemon(text=BASE + "http: {port: 0}\n", env={"NOTIFY_SOCKET": "@hearth-test-%d" % os.getpid()}, wait=False)
        check(a.recv(1000) == b"READY=1", "an abstract socket is told too")
        d.stop()


def test_loading():
    d = Daemon(text=BASE + "http: {unix: {dir}/sock}\n", wait=False)
    seen, path, deadline = set(), os.path.join(d.dir.name, "sock"), time.time() + 60

    def ask(p):
        c = http.client.HTTPConnection("localhost")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(path)
        c.request("GET", p)
        r = c.getresponse()
        return r.status, json.loads(r.read()), r

    while "ok" not in seen and time.time() < deadline:
        try:
            s, j, r = ask("/health")
            seen.add(j["status"])
            if j["status"] == "loading":
                s2, j2, r2 = ask("/v1/models")
                check(s == 503 and j["why"] and (s2 == 200 or (s2 == 503 and r2.getheader("Retry-After"))), "while it loads, every route says so", (s, j, s2, j2))
                time.sleep(0.02)
        except OSError:
            time.sleep(0.005)
    check("ok" in seen, "a UNIX socket serves; health goes from %s" % " to ".join(sorted(seen)))
    check(os.stat(path).st_mode & 0o777 == 0o660, "the socket is for owner and group")
    r = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/v1/models"], capture_output=True, text=True, timeout=30) if subprocess.run(["which", "curl"], capture_output=True).returncode == 0 else None
    check(r is None or json.loads(r.stdout)["data"][0]["id"] == "home", "curl speaks to the UNIX socket" + ("" if r else " # SKIP no curl"), r)
    d2 = subprocess.run([EXE, "-c", d.conf], capture_output=True, text=True, timeout=60)
    check(d2.returncode == 4 and "another program listens" in d2.stderr, "a second server does not take the socket away", d2)
    check(d.stop() == 0 and not os.path.exists(path), "a stop removes it")


def test_reload():
    two = "keys:\n  - {name: a, key: aaaaaaaaaaaaaaaa, priority: voice}\n  - {name: b, key: bbbbbbbbbbbbbbbb, priority: background, max_tokens: 4}\n"
    d = Daemon(text=BASE + "http: {port: 0}\n" + two)
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("tell me something", max_tokens=40, temperature=1), key="bbbbbbbbbbbbbbbb")
    check(s == 200 and j["usage"]["completion_tokens"] <= 4, "a key's own limit", j)
    # a stream that runs while its key is taken away is let finish
    c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
    c.request("POST", "/v1/chat/completions", json.dumps(chat("tell me a story", stream=True, max_tokens=600, temperature=1.5)), {"Authorization": "Bearer aaaaaaaaaaaaaaaa"})
    r = c.getresponse()
    ws = WebSocket(d.port, "/v1/realtime", key="aaaaaaaaaaaaaaaa")
    ws.read()
    rewrite(d, BASE + "http: {port: 0, max_body: 4K}\n" + two.replace("aaaaaaaaaaaaaaaa", "cccccccccccccccc").replace("name: a", "name: c").replace("max_tokens: 4", "requests_per_minute: 2"))
    check("read again" in reload(d), "SIGHUP reads the keys again", d.text()[-300:])
    body = r.read()
    check(body.endswith(b"data: [DONE]\n\n"), "what ran goes on", body[-200:])
    check(call(d, "GET", "/v1/models", key="aaaaaaaaaaaaaaaa")[0] == 401 and call(d, "GET", "/v1/models", key="cccccccccccccccc")[0] == 200, "the old key is gone, the new one is there")
    ws.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}})
    ws.send({"type": "response.create"})
    e = ws.until("response.done")[-1]
    check(e["response"]["status"] == "failed" and "no longer valid" in json.dumps(e), "a session that is open under a key that is gone gets no more answers", e)
    got = [call(d, "POST", "/v1/chat/completions", chat("hi", max_tokens=6), key="bbbbbbbbbbbbbbbb") for _ in range(3)]
    check([g[0] for g in got] == [200, 200, 429] and "2 requests a minute" in got[2][1]["error"]["message"] and got[2][2].getheader("Retry-After"), "requests a minute, changed by a reload", [g[:2] for g in got])
    check(got[0][1]["usage"]["completion_tokens"] > 4 or got[0][1]["choices"][0]["finish_reason"] == "stop", "and the limit that was taken away")
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("x" * 5000), key="cccccccccccccccc")
    check(s == 413 and "4096" in j["error"]["message"], "the size of a body, changed by a reload", (s, j))
    m = call(d, "GET", "/metrics", key="cccccccccccccccc")[1].decode()
    check('hearth_key_refused_total{key="b"} 1' in m and 'key="a"' not in m, "metrics by key", m[-1500:])
    rewrite(d, BASE + "keys: [{name: a}]\n")
    check("kept the old" in reload(d) and call(d, "GET", "/v1/models", key="cccccccccccccccc")[0] == 200, "a mistake in the file keeps the old keys", d.text()[-300:])
    log = [l for l in d.text().splitlines() if "/v1/chat/completions" in l]
    # each under its own name; the order is that of their ends
    check(any(" b POST " in l for l in log) and [" c POST " in l for l in log if " 413 " in l] == [True], "the log says whose request it was", log)
    d.stop()


def test_budget():
    """A key's budget of the cache, by the page size that /metrics tells."""
    probe = Daemon(text=BASE + "http: {port: 0}\n" + KEYS)
    m = [l for l in call(probe, "GET", "/metrics")[1].decode().splitlines() if l.startswith(("hearth_kv_pages ", 'hearth_tenant_current_bytes{tenant="llm",pool="kv"}'))]
    pages, kv = sorted(float(l.rsplit(" ", 1)[1]) for l in m)
    page = kv / pages
    probe.stop()
    d = Daemon(text=BASE + "http: {port: 0}\n" + f"keys: [{{name: small, key: {KEY}, kv_max: {int(page * 8)}}}]\n")
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("word " * 400))
    check(s == 400 and "budget" in j["error"]["message"], "a prompt over the key's budget of cache is refused with the numbers", (s, j))
    ends = call(d, "POST", "/tokenize", {"content": "<|im_end|><|endoftext|>"})[1]["tokens"]
    on = {"messages": [{"role": "user", "content": "write"}], "logit_bias": {str(i): -100 for i in ends}}     # it never ends by itself
    s, j, _ = call(d, "POST", "/v1/chat/completions", on)
    n = j.get("usage", {}).get("total_tokens", 0)
    check(s == 200 and j["choices"][0]["finish_reason"] == "length" and n <= 8 * 32, "an answer without a length ends at it, and says length", (s, n))
    w = WebSocket(d.port, "/v1/realtime")
    w.read()
    w.send({"type": "session.update", "session": {"output_modalities": ["text"], "temperature": 0}})
    w.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}})
    w.send({"type": "response.create"})
    e = w.until("response.done")[-1]
    check(e["response"]["status"] in ("completed", "incomplete"), "nor does one of the Realtime API ask for more than there is", e)
    w.s.close()
    got = []
    ts = [threading.Thread(target=lambda: got.append(call(d, "POST", "/v1/chat/completions", {**on, "max_tokens": 200})[:2]))
          for _ in range(6)]
    [x.start() for x in ts]
    [x.join() for x in ts]
    codes = sorted(g[0] for g in got)
    check(set(codes) <= {200, 429} and 200 in codes and all("budget" in g[1]["error"]["message"] for g in got if g[0] == 429), "several at once share it; who finds it full is told to come again", got)
    check('hearth_key_kv_bytes{key="small"} 0\n' in call(d, "GET", "/metrics")[1].decode(), "and all of it comes back")
    d.stop()


def test_tenants():
    """Keys under a tenant's budget: what passes its max is refused with the figures, and what another is promised."""
    probe = Daemon(text=BASE + "http: {port: 0}\n" + KEYS)
    m = [l for l in call(probe, "GET", "/metrics")[1].decode().splitlines() if l.startswith(("hearth_kv_pages ", 'hearth_tenant_current_bytes{tenant="llm",pool="kv"}'))]
    pages, kv = sorted(float(l.rsplit(" ", 1)[1]) for l in m)
    page = int(kv / pages)
    check('pool="sessions"' not in call(probe, "GET", "/metrics")[1].decode(), "without tenants there is no pool for them")
    probe.stop()
    kids, teen, own = "kidskidskidskids", "teenteenteenteen", "ownownownownown1"
    # two sessions of 64 pages: kids have 10 at most, guests 50 for certain, so others get 78
    conf = BASE.replace("id: home", "id: home, embeddings: mean") + "http: {port: 0}\n" + f"memory: {{tenants: [{{name: kids, kv_max: {page * 10}}}, {{name: guests, kv_min: {page * 50}}}]}}\n" \
        f"keys: [{{name: a, key: {kids}, tenant: kids}}, {{name: b, key: {teen}, tenant: kids}}, {{name: c, key: {own}}}, {{name: d, key: {KEY}, tenant: guests}}]\n"
    d = Daemon(text=conf)
    ends = call(d, "POST", "/tokenize", {"content": "<|im_end|><|endoftext|>"}, key=own)[1]["tokens"]
    on = {"messages": [{"role": "user", "content": "write"}], "logit_bias": {str(i): -100 for i in ends}}     # it never ends by itself
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("word " * 400), key=kids)
    check(s == 400 and "budget" in j["error"]["message"] and "320" in j["error"]["message"], "a prompt over the tenant's max never fits", (s, j))
    s, j, _ = call(d, "POST", "/v1/embeddings", {"input": "word " * 400}, key=kids)
    check(s == 400 and "320" in j["error"]["message"], "nor does a text to embed", (s, j))
    s, j, _ = call(d, "POST", "/v1/embeddings", {"input": "word " * 40}, key=kids)
    check(s == 200 and len(j["data"][0]["embedding"]) > 0, "a short one does", (s, str(j)[:200]))
    s, j, _ = call(d, "POST", "/v1/chat/completions", {**on}, key=kids)
    check(s == 200 and j["usage"]["total_tokens"] <= 320, "an answer without a length ends at it", (s, j.get("usage")))

    def together(asks, word):
        """All at once, again and again until one is refused: what each said, and that refusal."""
        for _ in range(200):
            got = []
            ts = [threading.Thread(target=lambda k, n: got.append(call(d, "POST", "/v1/chat/completions", {**on, "max_tokens": n}, key=k)), args=a) for a in asks]
            [x.start() for x in ts]
            [x.join() for x in ts]
            no = [g for g in got if g[0] != 200]
            if no:
                break
        return no and all(g[0] == 429 and g[1]["error"]["code"] == "budget_exceeded" and word in g[1]["error"]["message"] and g[2].getheader("Retry-After") for g in no) and len(no) < len(got), no

    ok, no = together([(kids, 200), (teen, 200)], "kids")
    check(ok, "two keys of one tenant share its max, which the refusal names", no)
    ok, no = together([(own, 1900), (own, 1900)], "guests")
    check(ok, "what is promised to one is not given to another", no)
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("hi"), key=KEY)
    check(s == 200, "and is there when it is asked for", (s, j))
    m = call(d, "GET", "/metrics", key=own)[1].decode()
    held = [l for l in m.splitlines() if l.startswith("hearth_tenant_current_bytes") and 'pool="sessions"' in l]
    check(len(held) >= 3 and all(l.endswith(" 0") for l in held), "all of it comes back", held)
    check(f'hearth_tenant_max_bytes{{tenant="kids",pool="sessions"}} {page * 10}\n' in m, "metrics say what they may have", m[-2500:])
    # a reload moves a key from tenant to tenant, and takes no new one
    rewrite(d, conf.replace(f"key: {kids}, tenant: kids", f"key: {kids}, tenant: guests"))
    check("read again" in reload(d) and call(d, "POST", "/v1/chat/completions", chat("word " * 400), key=kids)[0] == 200, "a reload moves a key to another tenant")
    rewrite(d, conf.replace("[{name: kids", "[{name: new}, {name: kids").replace("tenant: kids}, {name: c", "tenant: new}, {name: c"))
    check("kept the old" in reload(d) and "the tenant \"new\" is new" in d.text(), "a new tenant needs a restart", d.text()[-300:])
    check(d.stop() == 0, "it ends cleanly")
    for bad, word in ((f"[{{name: llm, kv_max: {page}}}]", "llm"), ("[{name: a, kv_min: 900G}]", "tenant \"a\"")):
        x = Daemon(text=BASE + "http: {port: 0}\nmemory: {tenants: " + bad + "}\n", wait=False)
        check(x.proc.wait(60) == 3 and word in x.text(), "refused: tenants " + bad[:20], x.text())


def test_no_tools():
    """A model that is told of tools in words alone, as some clients do it, answers in words."""
    d = Daemon(text=BASE.replace("context: 2048", "context: 4096") + f"http: {{port: 0}}\nspeech: {{home: {os.path.join(ROOT, 'docs/examples/home.yaml')}}}\n")
    home = call(d, "GET", "/v1/home", key=None)[1]
    tools = [{"type": "function", "function": {k: v for k, v in x.items() if k != "type"}} for x in home["tools"]]
    messages = [{"role": "system", "content": home["instructions"]}, {"role": "user", "content": "turn on the kitchen light"}]
    s, j, _ = call(d, "POST", "/v1/chat/completions", {"messages": messages, "tools": tools, "temperature": 0, "max_tokens": 100}, key=None)
    check(s == 200 and j["choices"][0]["finish_reason"] == "tool_calls", "the home's tools, offered: a call", j)
    prompt = call(d, "POST", "/apply-template", {"messages": messages, "tools": tools}, key=None)[1]["prompt"]
    messages[0]["content"] = prompt.split("<|im_start|>system\n", 1)[1].split("<|im_end|>", 1)[0]
    s, j, _ = call(d, "POST", "/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 100}, key=None)
    c = j["choices"][0]
    check(s == 200 and isinstance(c["message"]["content"], str) and "tool_calls" not in c["message"] and c["finish_reason"] != "tool_calls", "not offered: no call", j)
    print("# in words: " + c["message"]["content"].replace("\n", " ")[:120])
    s, j, _ = call(d, "POST", "/v1/home/call", {"name": "HassTurnOn", "arguments": {"name": "Kitchen Light"}}, key=None)
    check(s == 200 and j["result"]["success"] is True and [x for x in j["state"] if x["name"] == "Kitchen Light"][0]["state"]["state"] == "on", "the simulated home acts", j)
    for body, word in (({"name": "HassTurnOn"}, "arguments"), ({"arguments": {}}, "name"), ({"name": "HassTurnOn", "arguments": []}, "arguments")):
        s, j, _ = call(d, "POST", "/v1/home/call", body, key=None)
        check(s == 400 and word in j["error"]["message"], "a call of it is refused: " + word, j)
    d.stop()


def test_begin_with():
    """What a conversation begins with that brings no system message: as configured, and nothing by itself."""
    def prompt(d, *messages):
        return call(d, "POST", "/apply-template", {"messages": [{"role": r, "content": c} for r, c in messages]}, key=None)[1]["prompt"]

    base = BASE.replace("context: 2048", "context: 4096") + "http: {port: 0}\n"
    d = Daemon(text=base)
    plain = prompt(d, ("user", "hi"))
    check("<|im_start|>system" not in plain, "nothing is added by itself", plain)
    d.stop()
    d = Daemon(text=base + "chat: {system: 'Speak like a butler.'}\n")
    check(prompt(d, ("user", "hi")) == "<|im_start|>system\nSpeak like a butler.<|im_end|>\n" + plain, "a configured system message stands first")
    check("butler" not in prompt(d, ("system", "Be brief."), ("user", "hi")) and "butler" not in prompt(d, ("developer", "Be brief."), ("user", "hi")), "and not where the client brings one")
    a = call(d, "POST", "/v1/chat/completions", chat("hi", messages=[{"role": "user", "content": "hi"}]), key=None)[1]["usage"]["prompt_tokens"]
    b = call(d, "POST", "/v1/responses", {"input": "hi", "max_output_tokens": 4}, key=None)[1]["usage"]["input_tokens"]
    c = call(d, "POST", "/v1/responses", {"input": "hi", "instructions": "Be brief.", "max_output_tokens": 4}, key=None)[1]["usage"]["input_tokens"]
    check(a == b and b != c, "the same in a response without instructions", (a, b, c))
    d.stop()
    d = Daemon(text=base + f"chat: {{home: true}}\nspeech: {{home: {os.path.join(ROOT, 'docs/examples/home.yaml')}}}\n")
    home = call(d, "GET", "/v1/home", key=None)[1]
    p = prompt(d, ("user", "is the front door locked"))
    check(p.count("<|im_start|>system") == 2 and home["instructions"].split("\n")[0] in p, "a home is told, and what is true there", p)
    s, j, _ = call(d, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "is the front door locked"}], "temperature": 0, "max_tokens": 40}, key=None)
    check(s == 200 and "lock" in j["choices"][0]["message"]["content"].lower(), "a bare question about it is answered", j)
    print("# " + json.dumps(j["choices"][0]["message"]["content"]))
    check("<tools>" in p and '"name": "HassTurnOn"' in p, "the home's tools are in the prompt, as the model was taught", p)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    mine = call(d, "POST", "/apply-template", {"messages": [{"role": "user", "content": "hi"}], "tools": [tool]}, key=None)[1]["prompt"]
    check("HassTurnOn" not in mine and '"name": "f"' in mine.replace('":"', '": "') and home["instructions"] in mine, "unless the client brings its own", mine)

    def ask(text, path="/v1/chat/completions", **more):
        s, j, _ = call(d, "POST", path, dict({"messages": [{"role": "user", "content": text}]} if "chat" in path else {"input": text}, **more), key=None)
        if s != 200:
            return s, j
        c = j["choices"][0] if "chat" in path else None
        return (c["message"]["content"], c) if c else (j["output"][0]["content"][0]["text"], j)

    # No temperature and no limit given, as most clients ask: what is true in docs/examples/home.yaml.
    for text, words, never in (("is the front door locked", ("unlocked",), ()), ("which lights are on", ("Wall Lamp", "Hall Light", "Bedside Lamp"), ("Kitchen", "Floor Lamp", "Bathroom")),
                               ("how bright is the wall lamp", ("80",), ()), ("is the kitchen light on", ("off",), ()), ("what is on the shopping list", ("bread", "butter"), ())):
        first, c = ask(text)
        check(isinstance(first, str) and all(w.lower() in first.lower() for w in words) and not any(w in first for w in never), "asked without a temperature: " + text, c)
        check(ask(text)[0] == first, "and the same again: " + text)
    text, j = ask("which lights are on", "/v1/responses")
    check("Wall Lamp" in text and "Kitchen" not in text, "a response as well", j)
    for more in ({}, {"tool_choice": "none"}):
        text, c = ask("turn on the kitchen light", **more)
        check("nothing was changed" in text and "<tool_call>" not in text and "tool_calls" not in c["message"] and c["finish_reason"] == "stop", "a command is not carried out, and is said not to be", c)
    chunks = t.stream(d, "/v1/chat/completions", {"messages": [{"role": "user", "content": "turn on the kitchen light"}], "stream": True})
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    check("nothing was changed" in text and "<tool_call>" not in text, "nor in a stream", chunks)
    check(not [x for x in call(d, "GET", "/v1/home", key=None)[1]["state"] if x["name"] == "Kitchen Light" and x["state"]["state"] == "on"], "and nothing has changed")
    text, c = ask("which lights are on", temperature=2, seed=1)
    s, j, _ = call(d, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "which lights are on"}], "temperature": 2, "seed": 2}, key=None)
    check(s == 200 and j["usage"]["completion_tokens"] <= 256 and c["finish_reason"] in ("stop", "length"), "without a limit an answer has at most 256 tokens, however wild", j)
    check(d.stop() == 0, "it ends cleanly")


def send(d, data, wait=30):
    """What comes back for raw bytes; the time it took."""
    c = socket.create_connection(("127.0.0.1", d.port), timeout=wait)
    out = b""
    t0 = time.monotonic()
    try:
        c.sendall(data)
        while (b := c.recv(65536)):
            out += b
    except (TimeoutError, ConnectionError):
        pass
    c.close()
    return out, time.monotonic() - t0


def test_broken_http(d):
    ok = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + AUTH
    for name, raw, statuses in (
            ("no HTTP at all", b"hello\r\n\r\n", (400,)), ("binary", bytes(range(256)) + b"\r\n\r\n", (400,)), ("an empty line first", b"\r\n" + ok, (200, 400)),
            ("HTTP/9.9", ok.replace(b"HTTP/1.1", b"HTTP/9.9"), (400, 505)), ("no Host", b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", (200, 400)),
            ("a method that is none", b"DANCE /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (405, 501)),
            ("a path of 60 kB", b"GET /" + b"x" * 60000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (404, 414, 431, 400)), ("a path of 1 MB", b"GET /" + b"x" * 1000000 + b" HTTP/1.1\r\n\r\n", (414, 431, 400, 413)),
            ("a header of 200 kB", ok[:-2] + b"X: " + b"y" * 200000 + b"\r\n\r\n", (431, 400, 413)), ("20,000 headers", ok[:-2] + b"".join(b"X%d: y\r\n" % i for i in range(20000)) + b"\r\n", (431, 400, 413)),
            ("a header without a colon", ok[:-2] + b"nonsense\r\n\r\n", (400, 200)), ("a NUL in a header", ok[:-2] + b"X: a\0b\r\n\r\n", (400, 200)),
            ("a length that is no number", post + b"Content-Length: many\r\n\r\n{}", (400,)), ("a negative length", post + b"Content-Length: -1\r\n\r\n{}", (400,)),
            ("a length over 2^64", post + b"Content-Length: 99999999999999999999999\r\n\r\n", (400, 413)), ("a length over the limit", post + b"Content-Length: 9999999\r\n\r\n", (413,)),
            ("chunks of nonsense", post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", (400,)), ("a chunk of 2^64", post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n", (400, 413)),
            ("an unknown encoding", post + b"Transfer-Encoding: gzip\r\n\r\n{}", (400, 501)), ("a path that climbs", b"GET /web/../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404,)),
            ("a line's end in the path", b"GET /x%0aevil%20line HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404,)),
            ("a path with a NUL", b"GET /web/%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404, 400)), ("broken escapes", b"GET /web/%zz%1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404, 400)),
            ("invalid UTF-8 in the path", b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (404, 400))):
        out, took = send(d, raw, 20)
        status = int(out.split(b" ", 2)[1]) if out.startswith(b"HTTP/") else 0
        # the library may also just close what is no HTTP
        check(status in statuses or (not out and took < 15 and 400 in statuses), "broken HTTP: " + name, (out[:200], took))
        check(call(d, "GET", "/health", key=None)[0] == 200, "and it serves on: " + name)
    check(not [l for l in d.text().splitlines() if l.startswith("evil")] and "%0aevil" in d.text(), "what clients send does not forge lines of the log")


def test_slow(d):
    """@d drops who is slow for 2 s."""
    def drip(first, byte, seconds=30):
        c = socket.create_connection(("127.0.0.1", d.port), timeout=1)
        c.sendall(first)
        t0 = time.monotonic()
        try:
            while time.monotonic() - t0 < seconds:
                c.sendall(byte)
                time.sleep(0.25)
                c.setblocking(False)
                try:
                    if c.recv(4096) == b"":
                        break
                except BlockingIOError:
                    pass
                c.setblocking(True)
        except (ConnectionError, TimeoutError):
            pass
        c.close()
        return time.monotonic() - t0

    took = [0, 0, 0]

    def one(i, *args):
        took[i] = drip(*args)

    ts = [threading.Thread(target=one, args=a) for a in (
        (0, b"GET /health HTTP/1.1\r\nHost: x\r\nX: ", b"y"), (1, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Content-Length: 3000\r\n\r\n", b" "),
        (2, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"))]
    [x.start() for x in ts]
    [x.join() for x in ts]
    check(all(1 < x < 20 for x in took), "a head, a body, chunks a byte at a time are given two seconds, not two minutes", took)
    # a body without end
    c = socket.create_connection(("127.0.0.1", d.port), timeout=30)
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\n")
    sent = 0
    try:
        for _ in range(4000):
            c.sendall(b"4000\r\n" + b" " * 16384 + b"\r\n")
            sent += 16384
    except ConnectionError:
        pass
    try:
        head = c.recv(4096)
    except ConnectionError:
        head = b""
    check(sent < 32 << 20 and (b" 413 " in head.split(b"\r\n")[0] or not head), "a body without end is ended", (sent, head[:100]))


def test_slow_readers():
    """As many readers as sessions, that take nothing of long answers: the sessions work on for others."""
    d = Daemon(text=BASE + "http: {port: 0, idle_seconds: 16, request_seconds: 10}\n" + KEYS)
    body = json.dumps(chat("write", stream=True, max_tokens=1600, n=8, grammar="root ::= [a-z]{3000}", logprobs=True, top_logprobs=20)).encode()
    slow = []
    for _ in range(2):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.connect(("127.0.0.1", d.port))
        c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        slow.append(c)
    check(all(c.recv(12) == b"HTTP/1.1 200" for c in slow), "both are answered")
    # until both stand still: everything that the sockets take is written, and no more tokens are made
    steps, same = None, 0
    while same < 8:
        m = [l for l in call(d, "GET", "/metrics")[1].decode().splitlines() if l.startswith("hearth_engine_steps_total")][0]
        steps, same = m, same + 1 if m == steps else 0
        time.sleep(0.25)
    s, j, _ = call(d, "POST", "/v1/chat/completions", chat("hi", max_tokens=4))
    check(s == 200, "readers that take nothing do not keep the sessions", (s, j))
    deadline, log = time.time() + 90, 0
    while time.time() < deadline and log < 3:
        log = len([l for l in d.text().splitlines() if "/v1/chat/completions" in l])
        time.sleep(0.2)
    check(log == 3 and 'hearth_key_running{key="a"} 0\n' in call(d, "GET", "/metrics")[1].decode(), "and are dropped", d.text()[-500:])
    [c.close() for c in slow]
    check(d.stop() == 0, "and a stop does not wait for them")


def test_oversize(d):
    s, j, _ = call(d, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}] * 100000, "max_tokens": 4})
    check(s in (400, 413) and j["error"]["message"], "a chat of 100,000 messages is refused with a sentence", (s, j))
    for name, body, statuses in (
            ("messages of every kind of depth", b'{"messages":' + b"[" * 100000, (400,)), ("a number of 100,000 digits", b'{"max_tokens":' + b"9" * 100000 + b"}", (400,)),
            ("a key of 1 MB", json.dumps({"k" * 1000000: 1, "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}).encode(), (200, 400)),
            ("1,000 tools", json.dumps(chat("x", max_tokens=2, tools=[{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object", "properties": {}}}} for i in range(1000)])).encode(), (200, 400)),
            ("a lone surrogate", b'{"messages":[{"role":"user","content":"\\ud800"}]}', (400,)), ("an escaped NUL", b'{"messages":[{"role":"user","content":"a\\u0000b"}],"max_tokens":1}', (200, 400)),
            ("1e400", b'{"temperature":1e400,"messages":[]}', (400,)), ("NaN", b'{"temperature":NaN}', (400,)), ("two objects", b"{}{}", (400,)), ("a BOM", b"\xef\xbb\xbf{}", (400,)),
            ("UTF-16", '{"messages":[]}'.encode("utf-16"), (400,))):
        s, j, _ = call(d, "POST", "/v1/chat/completions", raw=body)
        check(s in statuses and (s == 200 or j["error"]["message"]), "oversize and odd: " + name, (s, str(j)[:300]))
    parts = "".join(f"--b\r\nContent-Disposition: form-data; name=\"f{i}\"\r\n\r\nx\r\n" for i in range(100)) + "--b--\r\n"
    s, j, _ = call(d, "POST", "/v1/audio/transcriptions", raw=parts.encode(), headers={"Content-Type": "multipart/form-data; boundary=b"})
    check(s in (400, 501), "a hundred parts", (s, j))
    for raw in (b"--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx", b"--b--", b"", b"--c\r\n\r\n--c--\r\n", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n", b"--b\r\n" * 1000):
        s, j, _ = call(d, "POST", "/v1/audio/transcriptions", raw=raw, headers={"Content-Type": "multipart/form-data; boundary=b"})
        check(s in (400, 501) and j["error"]["message"], "a multipart body that is broken: %r" % raw[:20], (s, j))


def test_stop_under_load():
    d = Daemon(text=BASE + "http: {port: 0}\nspeech: {stt: true, tts: true, cache: {dir}}\nwyoming: {enabled: true, port: 0}\n" + KEYS)
    stop, bad = threading.Event(), []

    def one(i):
        while not stop.is_set():
            try:
                if i % 3 == 0:
                    r = call(d, "POST", "/v1/chat/completions", chat("tell me a story", max_tokens=800, temperature=1.5))
                    if r[0] not in (200, 503, 499):
                        bad.append(r[:2])
                elif i % 3 == 1:
                    w = WebSocket(d.port, "/v1/realtime")
                    w.send({"type": "session.update", "session": {"temperature": 2}})
                    w.send({"type": "response.create"})
                    w.until("response.done")
                else:
                    w = t.Wyoming(d.wyoming)
                    w.send("synthesize", {"text": "A long text to speak. " * 30})
                    w.until("audio-stop")
            except (OSError, AssertionError, ValueError, http.client.HTTPException, AttributeError, IndexError, KeyError, TypeError):
                if not stop.is_set():
                    time.sleep(0.05)

    ts = [threading.Thread(target=one, args=(i,)) for i in range(9)]
    [x.start() for x in ts]
    time.sleep(2)
    t0 = time.monotonic()
    d.proc.send_signal(signal.SIGTERM)
    try:
        rc = d.proc.wait(60)
    except subprocess.TimeoutExpired:
        rc = "no end after 60 s"
        d.proc.kill()
    stop.set()
    [x.join() for x in ts]
    check(rc == 0, "a stop under load ends cleanly (%.1f s)" % (time.monotonic() - t0), (rc, d.text()[-800:]))
    check(not bad, "and nobody got another status than 200, 499 or 503", bad[:3])


def test_stop_says_why():
    """Who waits for an answer when the server is stopped is told so, in the words of what it speaks, and then it is over."""
    d = Daemon(text=BASE.replace("sessions: 2", "sessions: 9") + "http: {port: 0}\nspeech: {stt: true, tts: true, cache: {dir}, wake: okay hearth}\nwyoming: {enabled: true, port: 0}\n" + KEYS)

    def handle():
        w = t.Wyoming(d.wyoming)
        w.send("transcript", {"text": "is the front door locked", "context": {"conversation_id": None}})
        return w

    whole = handle().until("handled", "not-handled")[-1][:2]
    ends = {str(x): -100 for x in call(d, "POST", "/tokenize", {"content": "<|im_end|><|endoftext|>"})[1]["tokens"]}
    long = {"temperature": 0, "max_tokens": 1500, "logit_bias": ends}
    asks = [("/v1/chat/completions", {**chat("write"), **long, "stream": True}), ("/v1/chat/completions", {**chat("write"), **long, "stream": True, "n": 2}),
            ("/v1/completions", {"prompt": "once", **long, "stream": True}),
            ("/v1/responses", {"input": "write", "max_output_tokens": 1500, "text": {"format": {"type": "json_schema", "schema": {"type": "string", "minLength": 1200}}}, "stream": True}),
            ("/v1/chat/completions", {**chat("write"), **long}), ("/v1/responses", {"input": "write", "max_output_tokens": 1500, "text": {"format": {"type": "json_schema", "schema": {"type": "string", "minLength": 1200}}}})]
    got = [None] * len(asks)
    begun = [threading.Event() for _ in asks]

    def one(i, path, body):
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
        c.request("POST", path, json.dumps(body), {"Authorization": "Bearer " + KEY})
        try:
            r = c.getresponse()
            first = r.read(400) if body.get("stream") else b""
            begun[i].set()
            got[i] = (r.status, first + r.read())   # raises where the end of the last chunk is missing
        except (OSError, http.client.HTTPException) as e:
            got[i] = (0, repr(e).encode())
            begun[i].set()

    ts = [threading.Thread(target=one, args=(i, *a)) for i, a in enumerate(asks)]
    [x.start() for x in ts]
    [begun[i].wait(60) for i, a in enumerate(asks) if a[1].get("stream")]
    # one that takes nothing
    idle = socket.socket()
    idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    idle.connect(("127.0.0.1", d.port))
    body = json.dumps({**chat("write"), **long, "stream": True, "logprobs": True, "top_logprobs": 20}).encode()
    idle.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + AUTH + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    # Wyoming: spoken to, listening for its name, having a text spoken in one piece and in a stream, asking
    hears, wakes, speaks, streams = (t.Wyoming(d.wyoming) for _ in range(4))
    wakes.send("detect", {})
    for w in (hears, wakes):
        w.send("audio-start", {"rate": 16000, "width": 2, "channels": 1})
        w.send("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, bytes(3200))
    streams.send("synthesize-start", {})
    streams.send("ping")
    streams.until("pong")
    wakes.send("ping")
    wakes.until("pong")
    hears.send("ping")
    hears.until("pong")
    speaks.send("synthesize", {"text": "A long text to speak for quite some time. " * 1400})
    speaks.until("audio-chunk")
    talks = WebSocket(d.port, "/v1/realtime")
    talks.send({"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"], "tool_choice": "required", "tools": [
        {"type": "function", "name": "write", "parameters": {"type": "object", "properties": {"text": {"type": "string", "minLength": 1200}}, "required": ["text"]}}]}})
    talks.send({"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "write"}]}})
    talks.send({"type": "response.create"})
    talks.until("response.created")
    asked = handle()
    asked.until("handled-chunk", "handled", "error")
    d.proc.send_signal(signal.SIGTERM)
    for name, w in (("who is spoken to", hears), ("who listens for its name", wakes), ("who streams text to be spoken", streams)):
        ev = w.until("error", None)
        check(ev[-1][0] == "error" and ev[-1][1]["code"] == "stopping" and "stopping" in ev[-1][1]["text"] and w.read()[0] is None, "a stop is told over Wyoming to " + name, ev[-1][:2])
    ev = [e[:2] for e in speaks.until("audio-stop", None) if e[0] != "audio-chunk"]
    check([e[0] for e in ev] == ["error", "audio-stop"] and ev[0][1]["code"] == "stopping" and speaks.read()[0] is None, "and to who has a text spoken, before its end", ev)
    ev = [e[:2] for e in asked.until("handled", "not-handled", None)]
    check(ev[-1] == whole or [e[0] for e in ev[-2:]] == ["error", "not-handled"] and ev[-2][1]["code"] == "stopping", "an answer that it cut short is none", (ev, whole))
    j = talks.until("response.done")[-1]["response"]
    check(j["status"] == "failed" and j["status_details"]["error"]["code"] == "stopping", "and in a realtime session", j)
    [x.join() for x in ts]
    rc = d.proc.wait(60)
    for (path, body), (status, text) in zip(asks, got):
        name = path + (" in two choices" if body.get("n") else "")
        if not body.get("stream"):
            check(status == 503 and json.loads(text)["error"]["code"] == "stopping", "a stop is told with a status: " + name, (status, text[-300:]))
            continue
        last = [json.loads(b.split("data: ", 1)[1]) for b in text.decode().split("\n\n") if "data: {" in b][-1:]
        if path == "/v1/responses":
            ok = last and last[0]["type"] == "response.failed" and "stopping" in last[0]["response"]["error"]["message"] and last[0]["response"]["status"] == "failed"
        else:
            ok = last and "stopping" in last[0].get("error", {}).get("message", "") and last[0]["error"]["code"] == "stopping" and last[0]["error"]["type"]
        check(status == 200 and ok, "a stop is told in the stream, which then ends: " + name, (status, text[-300:]))
    check(rc == 0, "and who takes nothing does not hold it up", d.text()[-500:])
    idle.close()


def main():
    if not os.path.exists(MODEL):
        print("1..1\nok 1 - operations # SKIP there is no model at " + os.path.relpath(MODEL, ROOT))
        return 0
    only = sys.argv[1:]
    shared = None
    for fn in (test_check, test_home_size, test_readme, test_full, test_systemd, test_loading, test_reload, test_budget, test_tenants, test_no_tools, test_begin_with, test_broken_http, test_oversize, test_slow, test_slow_readers, test_stop_under_load, test_stop_says_why):
        if only and fn.__name__[5:] not in only:
            continue
        try:
            if fn.__code__.co_argcount:
                shared = shared or Daemon(text=BASE + "http: {port: 0, max_body: 4M, idle_seconds: 2}\n" + KEYS)
                fn(shared)
                check(shared.proc.poll() is None, "hearthd lives on after " + fn.__name__, shared.text()[-1500:])
            else:
                fn()
        except Exception:
            import traceback
            check(False, fn.__name__, traceback.format_exc())
    if shared:
        check(shared.stop() == 0, "SIGTERM ends it cleanly", shared.text()[-500:])
    print("1..%d" % t.count)
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
