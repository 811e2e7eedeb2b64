# SPDX-License-Identifier: MIT
"""From seeds to training batches: conversations, tokens, packed rows.

A batch is one flat run of tokens that holds whole conversations back to back;
`ends` says where each one stops, so that attention stays inside. The kind of a
token is 2 where the model speaks, 1 in what is told, said or returned after the
first message, and 0 in the first message. Batch b of seed s is always the same.
"""
import random

import asks
import prompt
from talk import Talk

CTX = 4096


def conversation(seed, **kw):
    rng = random.Random(seed)
    k = Talk(rng, hard=rng.random() < 0.6, **kw)
    asks.converse(k, rng.choice((5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)), asks.TRAINING)
    return k


def tokens(tok, k):
    """(ids, kinds): every answer is trained; the empty think block comes and goes in earlier turns."""
    rng = k.rng
    mode = rng.random()
    think = (lambda last: True) if mode < 0.4 else (lambda last: last) if mode < 0.75 else (lambda last: last or rng.random() < 0.5)
    ids, w = [], []
    for n, (text, mine) in enumerate(prompt.segments(k.messages, k.tools, think)):
        t = tok.encode(text)
        ids += t
        w += [2 if mine else 1 if n else 0] * len(t)
    return ids, w


def batch(tok, seed, b, size, max_docs):
    """(ids[size], kinds[size], ends[n]) as lists; the tail is padding that nobody looks at."""
    ids, w, ends = [], [], []
    i = misses = 0
    while misses < 4 and len(ends) < max_docs - 1:
        k = conversation("%s/%d/%d" % (seed, b, i))
        i += 1
        t, x = tokens(tok, k)
        if len(t) > CTX or len(ids) + len(t) > size:
            misses += 1
            continue
        ids += t
        w += x
        ends.append(len(ids))
    pad = size - len(ids)
    return ids + [0] * pad, w + [0] * pad, ends


def text_of(k):
    return "".join(t for t, _ in prompt.segments(k.messages, k.tools))


def vocabulary_texts(seed, n):
    for i in range(n):
        yield text_of(conversation("vocab %s/%d" % (seed, i)))
