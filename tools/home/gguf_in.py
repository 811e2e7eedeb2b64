# SPDX-License-Identifier: MIT
"""Reads a GGUF file that gguf_out.py wrote (Q8_0 and F32 only), to go on training it."""
import struct

import numpy as np

import bpe

_FIXED = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, fmt):
        v = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return v[0] if len(v) == 1 else v

    def text(self):
        n = self.take("<Q")
        s = bytes(self.data[self.at:self.at + n]).decode("utf-8")
        self.at += n
        return s

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, n = self.take("<I"), self.take("<Q")
            return [self.value(inner) for _ in range(n)]
        return self.take(_FIXED[kind])


def read(path):
    """({key: value}, {tensor name: float32 array})"""
    try:
        return _read(path)
    except (struct.error, UnicodeDecodeError, KeyError, IndexError):
        raise ValueError("%s: damaged, or cut off" % path) from None


def _read(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    magic, version, n_tensors, n_kv = r.take("<IIQQ")
    if magic != 0x46554747 or version != 3:
        raise ValueError("%s: not a GGUF file of version 3" % path)
    meta = {}
    for _ in range(n_kv):
        k = r.text()
        meta[k] = r.value(r.take("<I"))
    infos = []
    for _ in range(n_tensors):
        name, nd = r.text(), r.take("<I")
        dims = [r.take("<Q") for _ in range(nd)]
        infos.append((name, dims[::-1], r.take("<I"), r.take("<Q")))
    base = r.at + -r.at % 32
    out = {}
    for name, shape, kind, off in infos:
        n = int(np.prod(shape))
        if base + off + (n * 4 if kind == 0 else n // 32 * 34) > len(r.data):
            raise ValueError("%s: ends before %s does" % (path, name))
        if kind == 0:
            w = np.frombuffer(r.data, "<f4", n, base + off)
        elif kind == 8:
            b = np.frombuffer(r.data, np.uint8, n // 32 * 34, base + off).reshape(-1, 34)
            w = b[:, :2].copy().view("<f2").astype(np.float32) * b[:, 2:].copy().view(np.int8).astype(np.float32)
        else:
            raise ValueError("%s: %s has type %d; only F32 and Q8_0 can be read" % (path, name, kind))
        out[name] = w.reshape(shape).astype(np.float32)
    return meta, out


def tokenizer(meta):
    return bpe.Tokenizer(meta["tokenizer.ggml.tokens"], [m.split(" ") for m in meta["tokenizer.ggml.merges"]])


def load(net, tensors):
    """Copies the tensors into a model of model.py, name by name."""
    import torch
    want = dict(net.named_parameters())
    for name, w in tensors.items():
        base = name[:-len(".weight")]
        p = want.pop(name, None)
        if p is None:
            p = want.pop(base)
        if tuple(p.shape) != w.shape:
            raise ValueError("%s has shape %s, the model %s" % (name, w.shape, tuple(p.shape)))
        with torch.no_grad():
            p.copy_(torch.from_numpy(w))
    if want:
        raise ValueError("missing: " + ", ".join(want))
