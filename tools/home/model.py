# SPDX-License-Identifier: MIT
"""The Qwen3 graph in PyTorch, for training: flat runs of packed conversations.

Shapes: T tokens in one run, H query heads, K key/value heads, D head size.
Embeddings are tied. Names follow GGUF's tensors.
"""
import dataclasses
import inspect
from typing import NamedTuple, Optional

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
    _KNOWS = inspect.signature(varlen_attn).parameters
    _CAUSAL = {**({"is_causal": True} if "is_causal" in _KNOWS else {"window_size": (-1, 0)}), **({"enable_gqa": True} if "enable_gqa" in _KNOWS else {})}
except ImportError:      # older PyTorch, and the CPU
    varlen_attn = None


class Layout(NamedTuple):
    """Who reads whom (corpus.Batch). rows: None when every sequence reads its own tokens; live: which of them are more than filling."""
    q: torch.Tensor
    k: torch.Tensor
    rows: Optional[torch.Tensor]
    live: Optional[torch.Tensor]
    longest: int


def plain(ends, longest):
    """Sequences that stand back to back and read themselves."""
    return Layout(ends, ends, None, None, longest)


def attend(q, k, v, lay):
    """[T, H, D], [T, K, D] x2 -> [T, H, D]. The last query of a sequence sees all its keys, each one before it a key less."""
    if lay.rows is not None:
        kv = torch.cat((k, v), 1).float()[lay.rows]      # float: what comes back to a token that many read is added up
        k, v = torch.where(lay.live[:, None, None], kv, 0.0).to(q.dtype).chunk(2, 1)
    if varlen_attn is None or not q.is_cuda:
        return attend_slowly(q, k, v, lay)
    if lay.rows is None or ENDS_MEET:
        return varlen_attn(q, k.contiguous(), v.contiguous(), lay.q, lay.k, lay.longest, lay.longest, **_CAUSAL)
    # a causal mask that is no good for fewer queries than keys: ask from all of them, and take each token's first answer
    own = torch.full((q.shape[0],), lay.rows.shape[0] - 1, dtype=torch.long, device=q.device)
    own = own.scatter_reduce(0, lay.rows.long(), torch.where(lay.live, torch.arange(lay.rows.shape[0], device=q.device), lay.rows.shape[0] - 1), "amin")
    qs = torch.where(lay.live[:, None, None], q.float()[lay.rows], 0.0).to(q.dtype)
    return varlen_attn(qs, k.contiguous(), v.contiguous(), lay.k, lay.k, lay.longest, lay.longest, **_CAUSAL)[own]


def attend_slowly(q, k, v, lay):
    """The same, one sequence after another: for the CPU, and to check the fast one by."""
    out = []
    r = q.shape[1] // k.shape[1]
    for (a, b), (c, d) in zip(zip(lay.q.tolist(), lay.q.tolist()[1:]), zip(lay.k.tolist(), lay.k.tolist()[1:])):
        if b > a:
            sees = torch.ones(b - a, d - c, dtype=torch.bool, device=q.device).tril(d - c - (b - a))
            one = lambda x, n: x.transpose(0, 1).repeat_interleave(n, 0)
            out.append(F.scaled_dot_product_attention(one(q[a:b], 1), one(k[c:d], r), one(v[c:d], r), attn_mask=sees).transpose(0, 1))
    return torch.cat(out)


ENDS_MEET = True         # the fast attention's causal mask ends at the last key, not the first
attention = "one sequence after another"


def choose_attention(s, dev, branches):
    """Takes the fastest attention that PyTorch has here and that gives what is meant; a sentence if there is none."""
    global ENDS_MEET, attention
    if varlen_attn is None:
        return "this PyTorch has no torch.nn.attention.varlen"
    try:
        import torch.nn.attention as A
        A.activate_flash_attention_impl("FA3")
        if not check_attention(s, dev, branches):
            attention = "FlashAttention 3"
            return None
        A.restore_flash_attention_impl()
    except Exception:        # not installed, or not known to this version
        pass
    attention = "varlen_attn"
    why = check_attention(s, dev, branches)
    if why and branches:
        ENDS_MEET, attention = False, "varlen_attn, queries again for each conversation (%s)" % why
        why = check_attention(s, dev, branches)
    return why


def check_attention(s, dev, branches):
    """Whether the fast attention of this PyTorch is the one meant: a sentence that says what differs, or nothing."""
    g = torch.Generator("cpu").manual_seed(0)
    t = lambda *n: torch.randn(*n, generator=g).to(dev, torch.bfloat16)
    q, k, v, w = t(700, s.heads, s.head), t(700, s.kv, s.head), t(700, s.kv, s.head), t(700, s.heads, s.head)
    i = lambda x: torch.tensor(x, dtype=torch.int32, device=dev)
    if branches:             # a first message of 300, conversations of 130, 170 and 40 in it, padding
        rows = [*range(430), *range(300), *range(430, 600), *range(300), *range(600, 640), *range(640, 700)]
        lay = Layout(i([0, 430, 600, 640, 700]), i([0, 430, 900, 1240, 1300]), i(rows + [0] * 100), i([1] * len(rows) + [0] * 100).bool(), 1024)
    else:
        lay = plain(i([0, 430, 600, 640, 700]), 1024)
    got = []
    for fast in (True, False):
        xs = [x.detach().requires_grad_() for x in (q, k, v)]
        if fast:
            o = attend(*xs, lay)
        else:
            a, b, c = xs
            if lay.rows is not None:
                b, c = b[lay.rows], c[lay.rows]
            o = attend_slowly(a.float(), b.float(), c.float(), lay)
        (o.float() * w.float()).sum().backward()
        got.append([o] + [x.grad for x in xs])
    for name, a, b in zip(("the output", "the gradient of q", "of k", "of v"), *got):
        off = ((a.float() - b.float()).norm() / b.float().norm()).item()
        if not off < 0.02:
            return "%s is off by %.3f" % (name, off)
    return None


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


class Take(torch.autograd.Function):
    """Some of the rows, none twice: the gradient is put back, not added up in the order of a sort."""

    @staticmethod
    def forward(ctx, x, at):
        ctx.save_for_backward(at)
        ctx.rows = x.shape[0]
        return x.index_select(0, at)

    @staticmethod
    def backward(ctx, g):
        at, = ctx.saved_tensors
        return torch.zeros(ctx.rows, g.shape[1], dtype=g.dtype, device=g.device).index_copy_(0, at, g), None


def losses(h, table, goal, mine, aux):
    """(what is trained on, the loss of what the model says, how many tokens that is)"""
    ce = F.cross_entropy(F.linear(h, table.to(h.dtype)).float(), goal, reduction="none")
    own = (ce * mine).sum()
    return own + aux * (ce * (1 - mine)).sum(), own.detach(), mine.sum()


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

    def forward(self, x, cos, sin, lay):
        s, t = self.s, x.shape[0]
        h = rms(x, self.attn_norm, s.eps)
        # one product instead of three, and of two: what is read, is read once
        h = F.linear(h, torch.cat((self.attn_q.weight, self.attn_k.weight, self.attn_v.weight))).view(t, s.heads + 2 * s.kv, s.head)
        q, k, v = h.split((s.heads, s.kv, s.kv), 1)
        q = rope(rms(q, self.attn_q_norm, s.eps), cos, sin)
        k = rope(rms(k, self.attn_k_norm, s.eps), cos, sin)
        x = x + self.attn_output(attend(q, k, v, lay).reshape(t, -1))
        h = rms(x, self.ffn_norm, s.eps)
        gate, up = F.linear(h, torch.cat((self.ffn_gate.weight, self.ffn_up.weight))).chunk(2, -1)
        return x + self.ffn_down(F.silu(gate) * up)


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

    def hidden(self, ids, pos, lay):
        """[T] -> [T, d], normed: what the output head reads."""
        return self.body(Embed.apply(ids, self.token_embd.weight), pos, lay)

    def body(self, x, pos, lay):
        cos, sin = self.cos[pos][:, None], self.sin[pos][:, None]
        for b in self.blk:
            x = b(x, cos, sin, lay)
        return rms(x, self.output_norm, self.s.eps)

    def logits(self, h):
        return F.linear(h, self.token_embd.weight)
