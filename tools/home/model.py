# SPDX-License-Identifier: MIT
"""The Qwen3 graph in PyTorch, for training: flat runs of packed conversations.

Shapes: T tokens in one run, H query heads, K key/value heads, D head size.
Embeddings are tied. Names follow GGUF's tensors.
"""
import dataclasses
import inspect

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass
class Shape:
    vocab: int = 4096
    d: int = 512
    layers: int = 8
    ff: int = 1024
    heads: int = 8
    kv: int = 2
    head: int = 64
    theta: float = 10000.0
    eps: float = 1e-6
    ctx: int = 4096

    def params(self):
        per = self.d * self.head * (2 * self.heads + 2 * self.kv) + 3 * self.d * self.ff + 2 * self.d + 2 * self.head
        return self.vocab * self.d + self.layers * per + self.d


try:
    from torch.nn.attention.varlen import varlen_attn
    _CAUSAL = {"is_causal": True} if "is_causal" in inspect.signature(varlen_attn).parameters else {"window_size": (-1, 0)}
except ImportError:      # older PyTorch, and the CPU
    varlen_attn = None


def attend(q, k, v, ends, longest):
    """[T, H, D], [T, K, D] x2 -> [T, H, D], causal inside each conversation."""
    if varlen_attn is not None and q.is_cuda:
        return varlen_attn(q, k, v, ends, ends, longest, longest, **_CAUSAL)
    out = torch.empty_like(q)
    e = ends.tolist()
    for a, b in zip(e, e[1:]):
        if b > a:
            r = q.shape[1] // k.shape[1]
            o = F.scaled_dot_product_attention(q[a:b].transpose(0, 1), k[a:b].transpose(0, 1).repeat_interleave(r, 0), v[a:b].transpose(0, 1).repeat_interleave(r, 0), is_causal=True)
            out[a:b] = o.transpose(0, 1)
    return out


def rms(x, w, eps):
    return F.rms_norm(x.float(), (x.shape[-1],), w.float(), eps).to(x.dtype)


def rope(x, cos, sin):
    """Rotates the two halves of each head (NEOX order)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Embed(torch.autograd.Function):
    """A table lookup whose gradient is one matrix product: scattering would queue on the frequent tokens."""

    @staticmethod
    def forward(ctx, ids, table):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return F.embedding(ids, table).bfloat16() if table.is_cuda else F.embedding(ids, table)

    @staticmethod
    def backward(ctx, g):
        ids, = ctx.saved_tensors
        one = torch.zeros(ids.shape[0], ctx.rows, dtype=g.dtype, device=g.device).scatter_(1, ids[:, None], 1)
        return None, (one.t() @ g).float()


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.attn_norm = nn.Parameter(torch.ones(s.d))
        self.attn_q, self.attn_k, self.attn_v = lin(s.d, s.heads * s.head), lin(s.d, s.kv * s.head), lin(s.d, s.kv * s.head)
        self.attn_q_norm, self.attn_k_norm = nn.Parameter(torch.ones(s.head)), nn.Parameter(torch.ones(s.head))
        self.attn_output = lin(s.heads * s.head, s.d)
        self.ffn_norm = nn.Parameter(torch.ones(s.d))
        self.ffn_gate, self.ffn_up, self.ffn_down = lin(s.d, s.ff), lin(s.d, s.ff), lin(s.ff, s.d)

    def forward(self, x, cos, sin, ends, longest):
        s, t = self.s, x.shape[0]
        h = rms(x, self.attn_norm, s.eps)
        q = rope(rms(self.attn_q(h).view(t, s.heads, s.head), self.attn_q_norm, s.eps), cos, sin)
        k = rope(rms(self.attn_k(h).view(t, s.kv, s.head), self.attn_k_norm, s.eps), cos, sin)
        v = self.attn_v(h).view(t, s.kv, s.head)
        x = x + self.attn_output(attend(q, k, v, ends, longest).reshape(t, -1))
        h = rms(x, self.ffn_norm, s.eps)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Qwen3(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
        self.token_embd = nn.Embedding(s.vocab, s.d)
        self.blk = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.output_norm = nn.Parameter(torch.ones(s.d))
        inv = s.theta ** (-torch.arange(0, s.head, 2).float() / s.head)
        a = torch.outer(torch.arange(s.ctx).float(), inv)
        self.register_buffer("cos", a.cos(), persistent=False)
        self.register_buffer("sin", a.sin(), persistent=False)
        for n, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 if "embd" in n else (0.7 / p.shape[1]) ** 0.5)
            if n.endswith(("attn_output.weight", "ffn_down.weight")):
                with torch.no_grad():
                    p.mul_((2 * s.layers) ** -0.5)

    def hidden(self, ids, pos, ends, longest):
        """[T] -> [T, d], normed: what the output head reads."""
        return self.body(Embed.apply(ids, self.token_embd.weight), pos, ends, longest)

    def body(self, x, pos, ends, longest):
        cos, sin = self.cos[pos][:, None], self.sin[pos][:, None]
        for b in self.blk:
            x = b(x, cos, sin, ends, longest)
        return rms(x, self.output_norm, self.s.eps)

    def logits(self, h):
        return F.linear(h, self.token_embd.weight)
