# SPDX-License-Identifier: MIT
"""Writes trained weights as GGUF files: Q8_0 and the Q4_K_M mix.

Quantising is done here, from the float weights. Block layouts are ggml's:
Q8_0 {half d; 32 int8}, Q4_K {half d, dmin; 12 bytes of 6-bit scales and
minima; 128 of nibbles}, Q6_K {128 low nibbles; 64 high bits; 16 int8 scales;
half d}, Q5_0 {half d; 4 bytes of high bits; 16 of nibbles}. Rows that 256 does not divide fall back as
llama.cpp's do: Q4_K to Q5_0, Q6_K to Q8_0.
"""
import os
import struct

import numpy as np

import bpe

F32, Q5_0, Q8_0, Q4_K, Q6_K = 0, 6, 8, 12, 14
HERE = os.path.dirname(os.path.abspath(__file__))


def f16(x):
    return x.astype(np.float16)


def near(x):
    """To the nearest integer, halves away from zero as C's round()."""
    return np.trunc(x + np.copysign(0.5, x))


def q8_0(w):
    b = w.reshape(-1, 32).astype(np.float32)
    d = np.abs(b).max(1) / np.float32(127)
    inv = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d > 0)
    out = np.empty((len(b), 34), np.uint8)
    out[:, :2] = f16(d)[:, None].view(np.uint8)
    out[:, 2:] = near(b * inv[:, None]).astype(np.int8).view(np.uint8)
    return out.tobytes()


def fit_scale(b, nmax, weight):
    """The scale s that makes s * round(b / s) nearest to b, over a few starts; [n, k] -> s[n], q[n, k] in -nmax..nmax-1."""
    m = np.take_along_axis(b, np.abs(b).argmax(1)[:, None], 1)[:, 0]
    best_s = np.zeros(len(b), np.float32)
    best_e = np.full(len(b), np.inf, np.float32)
    safe = np.where(m == 0, 1, m)
    for t in range(-9, 10):
        inv = -(nmax + 0.1 * t) / safe
        q = np.clip(near(b * inv[:, None]), -nmax, nmax - 1)
        num, den = (weight * b * q).sum(1), (weight * q * q).sum(1)
        s = np.divide(num, den, out=np.zeros_like(num), where=den > 0)
        e = (weight * (b - s[:, None] * q) ** 2).sum(1)
        better = e < best_e
        best_s, best_e = np.where(better, s, best_s), np.where(better, e, best_e)
    return np.where(m == 0, 0, best_s).astype(np.float32)


def q5_0(w):
    b = w.reshape(-1, 32).astype(np.float32)
    d = f16(fit_scale(b, 16, np.abs(b) + 1e-8))
    df = d.astype(np.float32)
    inv = np.divide(np.float32(1), df, out=np.zeros_like(df), where=df != 0)
    q = (np.clip(near(b * inv[:, None]), -16, 15) + 16).astype(np.uint32)
    out = np.empty((len(b), 22), np.uint8)
    out[:, :2] = d[:, None].view(np.uint8)
    out[:, 2:6] = (((q >> 4) << np.arange(32, dtype=np.uint32)).sum(1).astype(np.uint32))[:, None].view(np.uint8)
    out[:, 6:] = (q[:, :16] & 15 | (q[:, 16:] & 15) << 4).astype(np.uint8)
    return out.tobytes()


def fit_min(b, nmax, weight):
    """Scale and minimum of b ~ s * q - m, q in 0..nmax, m >= 0."""
    lo, hi = np.minimum(b.min(1), 0), b.max(1)
    span = np.where(hi > lo, hi - lo, 1)
    best = [np.where(hi > lo, span / nmax, 0), -lo]
    best_e = np.full(len(b), np.inf)
    sw = weight.sum(1)
    for t in range(-1, 21):
        inv = (nmax + 0.1 * t - 0.5) / span if t >= 0 else nmax / span
        q = np.clip(near((b - lo[:, None]) * inv[:, None]), 0, nmax)
        sx, sq, sqq, sqx = (weight * b).sum(1), (weight * q).sum(1), (weight * q * q).sum(1), (weight * q * b).sum(1)
        det = sw * sqq - sq * sq
        ok = det > 0
        s = np.where(ok, (sw * sqx - sx * sq) / np.where(ok, det, 1), best[0])
        m = np.where(ok, (sqq * sx - sq * sqx) / np.where(ok, det, 1), -best[1])
        pos = m > 0
        s = np.where(pos, np.where(sqq > 0, sqx / np.where(sqq > 0, sqq, 1), 0), s)
        m = np.where(pos, 0, m)
        e = (weight * (s[:, None] * q + m[:, None] - b) ** 2).sum(1)
        better = e < best_e
        best = [np.where(better, s, best[0]), np.where(better, -m, best[1])]
        best_e = np.where(better, e, best_e)
    return best[0].astype(np.float32), best[1].astype(np.float32)


def q4_k(w):
    b = w.reshape(-1, 256).astype(np.float32)
    n = len(b)
    sub = b.reshape(-1, 32)
    weight = np.abs(sub) + np.sqrt((sub * sub).mean(1, keepdims=True)) + 1e-8
    s, m = fit_min(sub, 15, weight)
    s, m = s.reshape(n, 8), m.reshape(n, 8)
    d, dm = f16(np.maximum(s.max(1), 0) / 63), f16(np.maximum(m.max(1), 0) / 63)
    df, dmf = d.astype(np.float32), dm.astype(np.float32)
    div = lambda a, c: np.divide(a, c[:, None], out=np.zeros_like(a), where=c[:, None] > 0)
    ls, lm = np.clip(near(div(s, df)), 0, 63).astype(np.uint8), np.clip(near(div(m, dmf)), 0, 63).astype(np.uint8)
    sc, mn = df[:, None] * ls, dmf[:, None] * lm
    x = b.reshape(n, 8, 32)
    q = np.where(sc[:, :, None] > 0, near((x + mn[:, :, None]) / np.where(sc > 0, sc, 1)[:, :, None]), 0)
    q = np.clip(q, 0, 15).astype(np.uint8)
    out = np.empty((n, 144), np.uint8)
    out[:, 0:2], out[:, 2:4] = d[:, None].view(np.uint8), dm[:, None].view(np.uint8)
    out[:, 4:8] = ls[:, :4] | (ls[:, 4:] >> 4) << 6
    out[:, 8:12] = lm[:, :4] | (lm[:, 4:] >> 4) << 6
    out[:, 12:16] = ls[:, 4:] & 15 | (lm[:, 4:] & 15) << 4
    pair = q.reshape(n, 4, 2, 32)
    out[:, 16:] = (pair[:, :, 0] | pair[:, :, 1] << 4).reshape(n, 128)
    return out.tobytes()


def q6_k(w):
    b = w.reshape(-1, 256).astype(np.float32)
    n = len(b)
    sub = b.reshape(-1, 16)
    s = fit_scale(sub, 32, sub * sub + 1e-8).reshape(n, 16)
    top = np.take_along_axis(s, np.abs(s).argmax(1)[:, None], 1)[:, 0]
    d = f16(top / -128)
    df = d.astype(np.float32)
    inv = np.divide(np.float32(1), df, out=np.zeros_like(df), where=df != 0)
    sc = np.clip(near(s * inv[:, None]), -128, 127)
    step = df[:, None] * sc
    x = b.reshape(n, 16, 16)
    q = np.clip(near(np.divide(x, step[:, :, None], out=np.zeros_like(x), where=step[:, :, None] != 0)), -32, 31).astype(np.int32) + 32
    q = q.reshape(n, 2, 4, 32).astype(np.uint8)      # half, quarter, weight
    out = np.empty((n, 210), np.uint8)
    low = np.stack([q[:, :, 0] & 15 | (q[:, :, 2] & 15) << 4, q[:, :, 1] & 15 | (q[:, :, 3] & 15) << 4], 2)
    out[:, :128] = low.reshape(n, 128)
    out[:, 128:192] = (q[:, :, 0] >> 4 | (q[:, :, 1] >> 4) << 2 | (q[:, :, 2] >> 4) << 4 | (q[:, :, 3] >> 4) << 6).reshape(n, 64)
    out[:, 192:208] = sc.astype(np.int8).view(np.uint8)
    out[:, 208:210] = d[:, None].view(np.uint8)
    return out.tobytes()


PACK = {F32: lambda w: w.astype(np.float32).tobytes(), Q5_0: q5_0, Q8_0: q8_0, Q4_K: q4_k, Q6_K: q6_k}
BLOCK = {F32: (1, 4), Q5_0: (32, 22), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}


def _str(s):
    b = s.encode("utf-8")
    return struct.pack("<Q", len(b)) + b


def _kv(key, kind, v):
    head = _str(key)
    if kind == "str":
        return head + struct.pack("<I", 8) + _str(v)
    if kind == "strs":
        return head + struct.pack("<IIQ", 9, 8, len(v)) + b"".join(_str(x) for x in v)
    if kind == "i32s":
        return head + struct.pack("<IIQ", 9, 5, len(v)) + struct.pack("<%di" % len(v), *v)
    code, fmt = {"u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<?")}[kind]
    return head + struct.pack("<I", code) + struct.pack(fmt, v)


def tensors(s, state):
    """GGUF names and arrays, in file order."""
    out = [("token_embd.weight", state["token_embd.weight"]), ("output_norm.weight", state["output_norm"])]
    for i in range(s.layers):
        for n in ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"):
            k = "blk.%d.%s" % (i, n)
            out.append((k + ".weight", state[k] if k in state else state[k + ".weight"]))
    return out


def q4_k_m(name, rows, layers):
    """The Q4_K_M mix: more bits for the embedding and, in some layers, for attn_v and ffn_down."""
    kind = Q4_K
    if name == "token_embd.weight":
        kind = Q6_K
    elif name.endswith(("attn_v.weight", "ffn_down.weight")):
        i = int(name.split(".")[1])
        if i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2:
            kind = Q6_K
    if rows % 256:
        kind = {Q4_K: Q5_0, Q6_K: Q8_0}[kind]
    return kind


def write(path, name, s, tok, state, mix):
    """mix: "q8_0" or "q4_k_m"."""
    with open(os.path.join(HERE, "chat.jinja"), encoding="utf-8") as f:
        template = f.read()
    kinds = [3 if t in bpe.CONTROL else 4 if t in bpe.USER else 1 for t in tok.tokens]
    meta = [
        _kv("general.architecture", "str", "qwen3"), _kv("general.type", "str", "model"), _kv("general.name", "str", name), _kv("general.license", "str", "mit"),
        _kv("general.description", "str", "Commands a home: Home Assistant's intents as Hermes tool calls. Trained by the hearth project on its own generated text."),
        _kv("general.file_type", "u32", 7 if mix == "q8_0" else 15), _kv("general.quantization_version", "u32", 2),
        _kv("qwen3.block_count", "u32", s.layers), _kv("qwen3.context_length", "u32", s.ctx), _kv("qwen3.embedding_length", "u32", s.d), _kv("qwen3.feed_forward_length", "u32", s.ff),
        _kv("qwen3.attention.head_count", "u32", s.heads), _kv("qwen3.attention.head_count_kv", "u32", s.kv), _kv("qwen3.attention.key_length", "u32", s.head), _kv("qwen3.attention.value_length", "u32", s.head),
        _kv("qwen3.attention.layer_norm_rms_epsilon", "f32", s.eps), _kv("qwen3.rope.freq_base", "f32", s.theta), _kv("qwen3.vocab_size", "u32", s.vocab),
        _kv("tokenizer.ggml.model", "str", "gpt2"), _kv("tokenizer.ggml.pre", "str", "qwen2"), _kv("tokenizer.ggml.tokens", "strs", tok.tokens), _kv("tokenizer.ggml.token_type", "i32s", kinds),
        _kv("tokenizer.ggml.merges", "strs", [" ".join(m) for m in tok.merges]), _kv("tokenizer.ggml.eos_token_id", "u32", tok.ids["<|im_end|>"]), _kv("tokenizer.ggml.padding_token_id", "u32", tok.ids["<|endoftext|>"]),
        _kv("tokenizer.ggml.bos_token_id", "u32", tok.ids["<|endoftext|>"]), _kv("tokenizer.ggml.add_bos_token", "bool", False), _kv("tokenizer.chat_template", "str", template),
    ]
    infos, data, off = b"", [], 0
    for n, w in tensors(s, state):
        kind = F32 if w.ndim == 1 else Q8_0 if mix == "q8_0" else q4_k_m(n, w.shape[1], s.layers)
        raw = PACK[kind](np.ascontiguousarray(w))
        assert len(raw) == w.size // BLOCK[kind][0] * BLOCK[kind][1], n
        dims = w.shape[::-1]
        infos += _str(n) + struct.pack("<I", len(dims)) + struct.pack("<%dQ" % len(dims), *dims) + struct.pack("<IQ", kind, off)
        pad = -len(raw) % 32
        data.append(raw + b"\0" * pad)
        off += len(raw) + pad
    head = struct.pack("<IIQQ", 0x46554747, 3, len(data), len(meta)) + b"".join(meta) + infos
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32))
        for d in data:
            f.write(d)
    return path


def write_all(out, name, s, tok, state):
    return [write(os.path.join(out, "%s-%s.gguf" % (name, mix)), name, s, tok, state, mix) for mix in ("q8_0", "q4_k_m")]
