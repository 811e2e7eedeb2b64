#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What llama-server writes on a file of random_gguf, the best token each time, and
whether hearth's best token is the same after each of them. Prints TAP.

usage: text.py --llama-server PATH --model FILE --name NAME [--backend cuda|cpu] [--tokens N]
FILE must have been written with a vocabulary."""
import argparse
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))


def prompt():
    with open(os.path.join(ROOT, "tests/vectors/llama_geometry.h")) as f:
        text = f.read()
    body = re.search(r"llama_geometry_token\[.*?\] = \{(.*?)\};", text, re.S).group(1)
    return [int(x) for x in re.findall(r"\d+", body)][:int(re.search(r"LLAMA_GEOMETRY_PROMPT = (\d+)", text).group(1))]


def write(port, n):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=500)
    c.request("POST", "/completion", json.dumps({"prompt": prompt(), "n_predict": n, "temperature": 0, "n_probs": 2, "ignore_eos": True,
                                                  "return_tokens": True, "cache_prompt": False, "samplers": ["temperature"]}),
              {"Content-Type": "application/json"})
    r = c.getresponse()
    body = json.loads(r.read())
    if r.status != 200:
        raise RuntimeError(body)
    out = []
    for p in body["completion_probabilities"]:
        top = p["top_logprobs"]
        out.append((p["id"], top[0]["logprob"] - top[1]["logprob"]))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--llama-server", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--name", required=True)
    ap.add_argument("--backend", default="cuda")
    ap.add_argument("--tokens", type=int, default=64)
    a = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as tmp, open(os.path.join(tmp, "log"), "w+") as log:
        p = subprocess.Popen([a.llama_server, "-m", a.model, "--host", "127.0.0.1", "--port", str(port), "-c", "1024", "--parallel", "1",
                              "-ngl", "99" if a.backend == "cuda" else "0", "-fa", "on", "--no-warmup"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            end = time.time() + 300
            while True:
                if p.poll() is not None or time.time() > end:
                    log.seek(0)
                    print(f"not ok 1 - {a.name}: llama-server serves\n# " + log.read()[-1500:].replace("\n", "\n# "))
                    return 1
                try:
                    c = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                    c.request("GET", "/health")
                    if c.getresponse().status == 200:
                        break
                except OSError:
                    pass
                time.sleep(0.2)
            text = write(port, a.tokens)
        finally:
            p.kill()
            p.wait()
        path = os.path.join(tmp, "text")
        with open(path, "w") as f:
            f.writelines(f"{t} {g:.5f}\n" for t, g in text)
        return subprocess.call([os.path.join(BUILD, "tests/gpu_geometry"), a.backend, a.model, a.name, path])


sys.exit(main())
