# SPDX-License-Identifier: MIT
"""A byte-level BPE tokenizer as GGUF files name it: model gpt2, pre-tokenizer qwen2.

Trained on the generator's own text. Word counts are flattened before merging,
so that the many words people use get tokens, not only the few that every
prompt repeats.
"""
import json
import re

# qwen2's pattern; \p{L} and \p{N} in the terms of Python's re
_L, _P = r"[^\W\d_]", r"(?:[^\s\w]|_)"
SPLIT = re.compile(r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|(?:[^\r\n\w]|_)?" + _L + r"+|\d| ?" + _P + r"+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
SPECIAL = CONTROL + USER
_TOOL_LINE = re.compile(r'(\{"type": "function".*\}\n)')     # ends in a newline, which no token crosses
_SPECIAL_RE = re.compile("(" + "|".join(re.escape(s) for s in SPECIAL) + ")")


def byte_chars():
    """GPT-2's printable stand-ins for bytes."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out, n = {}, 0
    for b in range(256):
        if b in keep:
            out[b] = chr(b)
        else:
            out[b] = chr(256 + n)
            n += 1
    return out


BYTES = byte_chars()


def to_chars(s):
    return "".join(BYTES[b] for b in s.encode("utf-8"))


def count(texts):
    """{word: how often}"""
    counts = {}
    for t in texts:
        for part in _SPECIAL_RE.split(t):
            if part in SPECIAL:
                continue
            for w in SPLIT.findall(part):
                counts[w] = counts.get(w, 0) + 1
    return counts


def train(texts, n_vocab, power=0.6):
    """Returns (tokens, merges); specials come last."""
    return merge(count(texts), n_vocab, power)


def merge(counts, n_vocab, power=0.6):
    words = [(list(to_chars(w)), max(1, round(c ** power))) for w, c in sorted(counts.items())]
    vocab = [BYTES[b] for b in range(256)]
    seen = set(vocab)
    merges = []
    pairs, at = {}, {}
    for i, (w, c) in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] = pairs.get(p, 0) + c
            at.setdefault(p, set()).add(i)
    while len(vocab) < n_vocab - len(SPECIAL):
        if not pairs:
            break
        best = max(pairs.items(), key=lambda kv: (kv[1], kv[0]))[0]
        if pairs[best] < 2:
            break
        new = best[0] + best[1]
        merges.append(best)
        if new not in seen:
            seen.add(new)
            vocab.append(new)
        for i in sorted(at.get(best, ())):
            w, c = words[i]
            for p in zip(w, w[1:]):
                pairs[p] -= c
                if pairs[p] <= 0:
                    del pairs[p]
                at[p].discard(i)
            out, j = [], 0
            while j < len(w):
                if j + 1 < len(w) and w[j] == best[0] and w[j + 1] == best[1]:
                    out.append(new)
                    j += 2
                else:
                    out.append(w[j])
                    j += 1
            words[i] = (out, c)
            for p in zip(out, out[1:]):
                pairs[p] = pairs.get(p, 0) + c
                at.setdefault(p, set()).add(i)
    while len(vocab) < n_vocab - len(SPECIAL):      # never in practice: a tiny corpus
        vocab.append("<unused%d>" % len(vocab))
    return vocab + SPECIAL, merges


class Tokenizer:
    def __init__(self, tokens, merges):
        self.tokens, self.merges = tokens, [tuple(m) for m in merges]
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.cache = {s: [self.ids[s]] for s in SPECIAL}
        self.lines = {}
        self.back = {c: b for b, c in BYTES.items()}
        self.im_end = self.ids["<|im_end|>"]

    def word(self, w):
        got = self.cache.get(w)
        if got is not None:
            return got
        parts = list(to_chars(w))
        while len(parts) > 1:
            r, i = min((self.rank.get(p, 1 << 30), i) for i, p in enumerate(zip(parts, parts[1:])))
            if r == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        out = [self.ids[p] for p in parts]
        if len(self.cache) < 200000:
            self.cache[w] = out
        return out

    def encode(self, text):
        out = []
        for part in _SPECIAL_RE.split(text):
            if part in SPECIAL:
                out.append(self.ids[part])
            elif part:
                for line in _TOOL_LINE.split(part):     # tools are the same again and again
                    if line.startswith('{"type": "function"'):
                        got = self.lines.get(line)
                        if got is None:
                            got = self.lines[line] = [i for w in SPLIT.findall(line) for i in self.word(w)]
                        out += got
                    else:
                        for w in SPLIT.findall(line):
                            out += self.word(w)
        return out

    def decode(self, ids):
        out = b""
        for i in ids:
            t = self.tokens[i]
            out += t.encode() if t in SPECIAL else bytes(self.back[c] for c in t)
        return out.decode("utf-8", "replace")

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"tokens": self.tokens, "merges": [" ".join(m) for m in self.merges]}, f, ensure_ascii=False)

    @staticmethod
    def load(path):
        with open(path, encoding="utf-8") as f:
            d = json.load(f)
        return Tokenizer(d["tokens"], [m.split(" ") for m in d["merges"]])
