# SPDX-License-Identifier: MIT
"""From seeds to training batches: conversations, tokens, packed runs.

A batch is one flat run of tokens. It holds families: the first message of a
home (its catalogue and tools, which nobody learns to say), and after it some
conversations in that home, each of which reads the first message and itself
but not the others. So the first message, which is nearly half of a
conversation, is read once for all of them. The kind of a token is 2 where the
model speaks, 1 in what is told, said or returned after the first message, and
0 in the first message. Batch b of seed s is always the same.
"""
import array
import random
import sys
import traceback

import asks
import bare
import homes
import prompt
from talk import Talk

CTX = 4096
ROWS = 2        # keys and values that a batch may read again, as a multiple of its tokens
LENGTHS = (5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)


BARE = 0.02     # conversations in which nobody has told of a home


def conversation(seed, **kw):
    rng = random.Random(seed)
    if random.Random("bare %s" % seed).random() < BARE:
        return bare.Bare(rng)
    k = Talk(rng, hard=rng.random() < 0.6, **kw)
    asks.converse(k, rng.choice(LENGTHS), asks.TRAINING)
    return k


def family(seed, n):
    """@n conversations with one first message: the same home, in other rooms, states and moments."""
    k = conversation(seed)
    yield k
    for i in range(1, n if k.tools else 1):
        rng = random.Random("%s+%d" % (seed, i))
        home = k.home.clone()
        home.timers = []
        homes.awake(rng, home)
        t = Talk(rng, home=home, tools=k.tools, hard=k.hard)
        asks.converse(t, rng.choice(LENGTHS), asks.TRAINING)
        yield t


def tokens(tok, k):
    """(ids, kinds, how many of them are the first message); the empty think block comes and goes in earlier turns."""
    rng = k.rng
    mode = rng.random()
    think = (lambda last: True) if mode < 0.4 else (lambda last: last) if mode < 0.75 else (lambda last: last or rng.random() < 0.5)
    ids, w, first = [], [], 0
    for n, (text, mine) in enumerate(prompt.segments(k.messages, k.tools, think)):
        t = tok.encode(text)
        ids += t
        w += [2 if mine else 1 if n else 0] * len(t)
        if not n:
            first = len(ids)
    return ids, w, first


class Batch:
    """ids and kinds of @size tokens; pos: where each stands in its conversation. Sequence s of the attention asks from
    the tokens q[s] to q[s + 1] and reads the keys k[s] to k[s + 1] of the list rows, which names tokens; it sees them
    up to itself, both ends being the same token. What comes after the last conversation is padding that nobody looks at."""
    __slots__ = ("ids", "kinds", "pos", "q", "k", "rows")

    def __init__(self):
        self.ids, self.kinds, self.pos, self.rows = (array.array(c) for c in "HBHi")
        self.q, self.k = array.array("i", [0]), array.array("i", [0])

    def sequence(self, rows):
        self.q.append(len(self.ids))
        for a, b in rows:
            self.rows.extend(range(a, b))
        self.k.append(len(self.rows))

    def add(self, size, seqs, most, talks):
        """Conversations [(ids, kinds, first)] of one home; those that do not fit stay out. How many came in."""
        start = None
        done = 0
        for ids, kinds, first in talks:
            keep = 0 if start is None else first
            at, end = len(self.ids), len(self.ids) + len(ids) - keep
            if len(ids) > CTX or len(self.q) > seqs or end > size or len(self.rows) + len(ids) + size - end > most:     # padding has rows too
                continue
            self.ids.extend(ids[keep:])
            self.kinds.extend(kinds[keep:])
            self.pos.extend(range(keep, len(ids)))
            self.sequence([(at, len(self.ids))] if start is None else [(start, start + first), (at, len(self.ids))])
            start = at if start is None else start
            done += 1
        return done


def fill(out, size):
    """Padding, up to @size tokens."""
    while len(out.ids) < size:
        at = len(out.ids)
        n = min(size - at, CTX)
        out.ids.extend([0] * n)
        out.kinds.extend([0] * n)
        out.pos.extend(range(n))
        out.sequence([(at, at + n)])


def batch(tok, seed, b, size, seqs, branches=1):
    """A Batch of @size tokens, families of @branches conversations, at most @seqs of these in all."""
    out = Batch()
    most = size if branches == 1 else ROWS * size
    i = misses = 0
    while misses < 4 and len(out.q) <= seqs:
        try:
            got = [tokens(tok, k) for k in family("%s/%d/%d" % (seed, b, i), branches)]
        except Exception:        # a defect of the generator ends no run; which one it was is said, and it is the same in every run
            print("conversation %s/%d/%d is left out:" % (seed, b, i), file=sys.stderr)
            traceback.print_exc()
            got = None
        i += 1
        if got is None:
            continue
        misses += not out.add(size, seqs, most, got)
    fill(out, size)
    return out


def text_of(k):
    return "".join(t for t, _ in prompt.segments(k.messages, k.tools))
