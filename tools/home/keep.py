# SPDX-License-Identifier: MIT
"""A run that may take several calls: what it has done lies in its folder.

options.json says what was asked for and by which generator, state.pt holds
everything that the next step depends on, lock is held while a process runs,
done is there when there is nothing left to do.
"""
import fcntl
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def sources():
    """A digest of everything here that decides what a run gives."""
    h = hashlib.sha256()
    for p in sorted(glob.glob(os.path.join(HERE, "*.py")) + glob.glob(os.path.join(HERE, "lines", "*.txt")) + glob.glob(os.path.join(HERE, "*.json")) + glob.glob(os.path.join(HERE, "*.jinja"))):
        with open(p, "rb") as f:
            h.update(os.path.relpath(p, HERE).encode() + b"\0" + f.read() + b"\0")
    return h.hexdigest()


class Run:
    def __init__(self, out, options, rank=0):
        self.out = out
        os.makedirs(out, exist_ok=True)
        if rank:
            return
        self.lock = open(self.path("lock"), "a")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("%s: a run goes on there already" % out)
        want = {**options, "sources": sources()}
        if os.path.exists(self.path("options.json")):
            with open(self.path("options.json")) as f:
                have = json.load(f)
            other = sorted(k for k in {*want, *have} if want.get(k) != have.get(k))
            if other:
                sys.exit("%s holds another run (%s); take an empty folder" % (out, ", ".join("%s was %s" % (k, have.get(k)) if k != "sources" else "of other sources" for k in other)))
        else:
            with open(self.path("options.json"), "w") as f:
                json.dump(want, f, indent=1)

    def path(self, name):
        return os.path.join(self.out, name)

    def peek(self):
        """How many steps are saved."""
        try:
            with open(self.path("step")) as f:
                return int(f.read())
        except FileNotFoundError:
            return 0

    def save(self, torch, state):
        """All or nothing: a file that is broken off is not taken for a state."""
        name = "state-%d.pt" % state["step"]
        torch.save(state, self.path(name + ".new"))
        os.replace(self.path(name + ".new"), self.path(name))
        with open(self.path("step.new"), "w") as f:
            f.write("%d\n" % state["step"])
        os.replace(self.path("step.new"), self.path("step"))
        for p in glob.glob(self.path("state-*.pt*")):
            if os.path.basename(p) != name:
                os.remove(p)

    def load(self, torch, dev):
        return torch.load(self.path("state-%d.pt" % self.peek()), map_location=dev, weights_only=False)

    def done(self):
        open(self.path("done"), "w").close()


def busy(out):
    with open(os.path.join(out, "lock"), "a") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def background(out, limit):
    """Starts the same command in the background, or finds it there, and shows its log; 0 when all is done, 3 when it goes on."""
    os.makedirs(out, exist_ok=True)
    end = time.time() + limit if limit else None
    path, child, at = os.path.join(out, "log.txt"), None, 0
    if os.path.exists(os.path.join(out, "done")):
        print("%s: done already" % out)
        return 0
    if os.path.exists(path):
        at = os.path.getsize(path)
    if not busy(out):
        args = [x for i, x in enumerate(sys.argv[1:]) if x != "--detach" and not x.startswith("--limit") and (not i or sys.argv[i] != "--limit")]
        with open(path, "ab") as log:
            child = subprocess.Popen([sys.executable, os.path.join(HERE, "train.py"), *args], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    while True:
        over = child.poll() is not None if child else not busy(out)
        with open(path, "rb") as f:
            f.seek(at)
            new = f.read()
        at += len(new)
        sys.stdout.write(new.decode("utf-8", "replace"))
        sys.stdout.flush()
        if over:
            return 0 if os.path.exists(os.path.join(out, "done")) else child.returncode or 1 if child else 1
        if end and time.time() > end:
            return 3
        time.sleep(0.5)
