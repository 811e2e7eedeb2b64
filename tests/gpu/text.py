#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What llama-server writes on a file of random_gguf, the best token each time, and
whether hearth's best token is the same after each of them. Prints TAP.

usage: text.py --llama-server PATH --model FILE --name NAME [--backend cuda|cpu] [--tokens N]
FILE must have been written with a vocabulary."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
from serve import Server, free_port


def prompt():
    with open(os.path.join(ROOT, "tests/vectors/llama_geometry.h")) as f:
        text = f.read()
    body = re.search(r"llama_geometry_token\[.*?\] = \{(.*?)\};", text, re.S).group(1)
    return [int(x) for x in re.findall(r"\d+", body)][:int(re.search(r"LLAMA_GEOMETRY_PROMPT = (\d+)", text).group(1))]


def written(server, n):
    """[(token, how far ahead of the second it was)]"""
    body, _ = server.post("/completion", {"prompt": prompt(), "n_predict": n, "temperature": 0, "n_probs": 2, "ignore_eos": True,
                                          "return_tokens": True, "cache_prompt": False, "samplers": ["temperature"]})
    return [(p["id"], p["top_logprobs"][0]["logprob"] - p["top_logprobs"][1]["logprob"]) for p in body["completion_probabilities"]]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--llama-server", required=True)
    ap.add_argument("--model", required=True)
    ap.add_argument("--name", required=True)
    ap.add_argument("--backend", default="cuda")
    ap.add_argument("--tokens", type=int, default=64)
    a = ap.parse_args()
    port, server = free_port(), None
    try:
        server = Server("llama-server", [a.llama_server, "-m", a.model, "--host", "127.0.0.1", "--port", str(port), "-c", "1024", "--parallel", "1",
                                         "-ngl", "99" if a.backend == "cuda" else "0", "-fa", "on", "--no-warmup"], port)
        text = written(server, a.tokens)
    except (OSError, SystemExit) as e:   # what Server says where one does not start, or refuses
        print(f"not ok 1 - {a.name}: llama-server writes\n# " + str(e).replace("\n", "\n# "))
        return 1
    finally:
        if server:
            server.stop()
    with tempfile.NamedTemporaryFile("w") as f:
        f.writelines(f"{t} {g:.5f}\n" for t, g in text)
        f.flush()
        return subprocess.call([os.path.join(BUILD, "tests/gpu_geometry"), a.backend, a.model, a.name, f.name])


sys.exit(main())
