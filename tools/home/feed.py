# SPDX-License-Identifier: MIT
"""Batches for training: made by worker processes while the GPU works, in an order that depends on nothing but the seed."""
import gc
import multiprocessing as mp
import os
import queue
import threading
import time

import bpe
import corpus


def seqs(tokens):
    """Conversations that a batch may hold: one and a half times what there are; attention pays for empty ones too."""
    return max(16, tokens // 1000)


def batch_number(j, rank, world, parts):
    """The j-th batch of a rank: every step takes @parts batches, dealt out to the ranks in turn."""
    per = parts // world
    return j // per * parts + j % per * world + rank


def worker(w, n, first, o, tok_path, q, rank, world):
    parent = os.getppid()
    while not os.path.exists(tok_path):          # it may still be in the making
        time.sleep(0.05)
        if os.getppid() != parent:
            os._exit(1)
    tok = bpe.Tokenizer.load(tok_path)
    gc.freeze()
    gc.set_threshold(200000, 20, 20)
    j = first + (w - first) % n
    while True:
        b = batch_number(j, rank, world, o.parts)
        x = corpus.batch(tok, o.seed, b, o.tokens, seqs(o.tokens), o.branches)
        got = (b, *(a.tobytes() for a in (x.ids, x.kinds, x.pos, x.q, x.k, x.rows)))
        while True:
            try:
                q.put(got, timeout=2)
                break
            except queue.Full:
                if os.getppid() != parent:       # nobody is left to take it
                    os._exit(1)
        j += n


class Feed:
    """Starts the workers (before PyTorch is loaded: they are forks) and hands out batch after batch from @first on."""

    def __init__(self, o, tok_path, first, rank=0, world=1):
        self.o, self.first, self.rank, self.world = o, first, rank, world
        fork = mp.get_context("fork")
        self.queues = [fork.Queue(6) for _ in range(o.workers)]
        self.workers = [fork.Process(target=worker, args=(w, o.workers, first, o, tok_path, q, rank, world), daemon=True) for w, q in enumerate(self.queues)]
        for p in self.workers:
            p.start()
        self.ready = queue.Queue(4)
        self.waited = 0.0

    def pin(self, torch, dev):
        """From now on get() returns tensors of pinned memory; a thread makes them ahead."""
        self.torch, self.cuda = torch, dev != "cpu"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            j = self.first
            while True:
                self.ready.put(self._tensors(self._take(j), j))
                j += 1
        except BaseException as e:      # get() raises it
            self.ready.put(e)

    def _take(self, j):
        q, p = self.queues[j % self.o.workers], self.workers[j % self.o.workers]
        while True:
            try:
                return q.get(timeout=5)
            except queue.Empty:
                if not p.is_alive():
                    raise RuntimeError("a worker that makes batches has ended with %s" % p.exitcode) from None

    def _tensors(self, got, j):
        torch, o = self.torch, self.o
        assert got[0] == batch_number(j, self.rank, self.world, o.parts)
        read = lambda i, t: torch.frombuffer(bytearray(got[i]), dtype=t)
        fill = lambda x, n, v: torch.cat((x, torch.full((n - len(x),), v, dtype=x.dtype)))
        ids, kinds, pos = read(1, torch.uint16).long(), read(2, torch.uint8), read(3, torch.uint16).long()
        q, k = read(4, torch.int32), read(5, torch.int32)
        n = seqs(o.tokens) + o.tokens // corpus.CTX + 3
        out = {"ids": ids, "pos": pos, "q": fill(q, n, q[-1].item()), "k": fill(k, n, k[-1].item())}
        if o.branches > 1:
            rows = read(6, torch.int32)
            out["rows"] = fill(rows, corpus.ROWS * o.tokens, 0)
            out["live"] = torch.arange(corpus.ROWS * o.tokens) < len(rows)
        for name, least in (("all", 1), ("own", 2)):    # the positions that predict a token that is told or said; that the model says
            at = torch.nonzero(kinds[1:] >= least).flatten()
            if o.branches > 1:                          # the last token of a conversation predicts none of the next one's
                at = at[pos[at + 1] == pos[at] + 1]
            out[name], out[name + "-goal"], out[name + "-mine"] = at, ids[at + 1], (kinds[at + 1] == 2).float()
        return {k: x.pin_memory() if self.cuda else x for k, x in out.items()}

    def blank(self):
        """A batch of nothing, of the shapes that all have: for what compiles when it is first run."""
        x = corpus.Batch()
        corpus.fill(x, self.o.tokens)
        quarter = self.o.tokens // 4
        kinds = bytes([2]) * quarter + bytes([1]) * quarter + bytes(self.o.tokens - 2 * quarter)
        j = self.first
        return self._tensors((batch_number(j, self.rank, self.world, self.o.parts), x.ids.tobytes(), kinds, *(a.tobytes() for a in (x.pos, x.q, x.k, x.rows))), j)

    def get(self):
        t = time.time()
        got = self.ready.get()
        self.waited += time.time() - t
        if isinstance(got, BaseException):
            raise got
        return got

    def stop(self):
        for p in self.workers:
            p.terminate()
