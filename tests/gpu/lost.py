#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hearthd whose GPU's context is lost while it serves, on the emulation: the client
is told, and the daemon ends so that systemd starts it anew. Prints TAP."""
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
MODEL = os.path.join(ROOT, "models", "home-q4_k_m.gguf")
SENTENCE = "the GPU's context is lost: the process must start anew"
count = failed = 0


def check(ok, name, detail=""):
    global count, failed
    count += 1
    print("ok" if ok else "not ok", count, "-", name, flush=True)
    if not ok:
        failed += 1
        print("# " + str(detail).replace("\n", "\n# ")[:1500], flush=True)


def ask(port, tokens):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    c.request("POST", "/v1/completions", json.dumps({"prompt": "one two", "max_tokens": tokens, "temperature": 0}),
              {"Content-Type": "application/json"})
    r = c.getresponse()
    out = r.status, json.loads(r.read())
    c.close()
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        lose, log = os.path.join(folder, "lose"), os.path.join(folder, "log")
        conf = os.path.join(folder, "hearthd.yaml")
        with open(conf, "w") as f:
            f.write(f"model: {{path: {MODEL}, context: 256, sessions: 1, chunk: 8, threads: 1, backend: cuda}}\nhttp: {{port: 0}}\n")

        def text():
            with open(log) as f:
                return f.read()

        with open(log, "w") as f:
            d = subprocess.Popen([os.path.join(BUILD, "tests/emu_hearthd"), "-c", conf], stderr=f, stdin=subprocess.DEVNULL,
                                 env={**os.environ, "EMU_LOSE": lose})
        try:
            end = time.time() + 300
            while "hearthd: ready" not in text() and d.poll() is None and time.time() < end:
                time.sleep(0.1)
            if "hearthd: ready" not in text():
                check(False, "hearthd starts on the emulation", text())
                return
            port = int(text().split("on http://")[1].split()[0].rsplit(":", 1)[1])
            status, body = ask(port, 1)
            check(status == 200, "hearthd answers on the emulation", body)
            answer = []
            t = threading.Thread(target=lambda: answer.append(ask(port, 200)))
            t.start()
            time.sleep(0.5)
            open(lose, "w").close()
            t.join(120)
            check(answer and answer[0][0] == 503 and answer[0][1]["error"]["code"] == "backend_lost" and SENTENCE in answer[0][1]["error"]["message"],
                  "the answer that is being made ends with 503 and says that the context is lost", answer)
            try:
                code = d.wait(60)
            except subprocess.TimeoutExpired:
                code = None
            check(code == 5, "and hearthd ends with exit code 5", f"{code}: {text()}")
            check("hearthd: stopping: " in text() and SENTENCE in text(), "and that sentence", text())
        finally:
            if d.poll() is None:
                d.send_signal(signal.SIGKILL)
                d.wait()
    with open(os.path.join(ROOT, "debian/hearthd.service.in")) as f:
        check("\nRestart=on-failure\n" in f.read(), "which the unit takes for a failure, and starts it anew")


main()
print(f"1..{count}")
sys.exit(1 if failed else 0)
