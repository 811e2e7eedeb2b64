# SPDX-License-Identifier: MIT
"""Packages of npm that tests use as real clients: exact versions, checked
against the integrity that the registry published for them, kept in the cache."""
import json
import os
import subprocess

PINS = {
    "openai": ("7.59.0", "sha512-wPYKJkLPFEdNJ2tThSg4jE1Ptsv4X3u8g8LIvu0Qz/UIhsKeCzl73rl48PtQsDVrJL/ku0liXOsbyd2TsRsPJw=="),
    "ws": ("8.23.0", "sha512-wCkmX8QMOrKjgO8HW2WyDbTSGeqkocxgDzS9iR79rEAexty6/2qzilx3Ag8Tqf9ykop3irLKle0MtVn5qjVnoQ=="),
}


def cache():
    return os.environ.get("HEARTH_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hearth")


def install(*names):
    """The folder whose node_modules holds them, and why not (one of them is None)."""
    try:
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None, "node is not installed"
    # the clients' own wish is newer still; 20 is what they have been seen to run on
    if int(node.lstrip("v").split(".")[0] or 0) < 20:
        return None, f"node {node} is older than the clients run on"
    where = os.path.join(cache(), "npm-" + "-".join(f"{n}-{PINS[n][0]}" for n in names))
    lock = os.path.join(where, "node_modules", ".package-lock.json")
    if not os.path.exists(lock):
        os.makedirs(where, exist_ok=True)
        try:
            subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", where, *(f"{n}@{PINS[n][0]}" for n in names)],
                           check=True, timeout=180, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as e:
            return None, f"npm cannot install {', '.join(f'{n}@{PINS[n][0]}' for n in names)}: {type(e).__name__}"
    with open(lock) as f:
        have = json.load(f)["packages"]
    for n in names:
        got = have.get("node_modules/" + n, {}).get("integrity")
        if got != PINS[n][1]:
            raise RuntimeError(f"{n}: integrity {got}, not the pinned one")
    return where, None
