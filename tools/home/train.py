#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the home model on one GPU and writes its GGUF files.

usage: train.py --out DIR [--minutes M | --steps N] [--seed S] [shape and recipe options]
       torchrun --nproc-per-node N train.py ... --parts P     on several GPUs

Conversations are made while training, by worker processes, and are never seen
twice. The same options and the same number of steps give the same batches in
the same steps, on any number of GPUs that divides --parts.
"""
import argparse
import gc
import json
import multiprocessing as mp
import os
import sys
import time

import array

import bpe
import cases
import corpus


def batch_number(j, rank, world, parts):
    """The j-th batch of a rank: every step takes @parts batches, dealt out to the ranks in turn."""
    per = parts // world
    return j // per * parts + j % per * world + rank


def worker(w, n, seed, size, docs, tok_path, q, rank, world, parts):
    tok = bpe.Tokenizer.load(tok_path)
    gc.freeze()
    gc.set_threshold(200000, 20, 20)
    j = w
    while True:
        b = batch_number(j, rank, world, parts)
        ids, kinds, ends = corpus.batch(tok, seed, b, size, docs)
        q.put((b, array.array("H", ids).tobytes(), bytes(kinds), ends))
        j += n


def vocab_part(a):
    return list(map(corpus.text_of, (corpus.conversation("vocab %s/%d" % (a[0], i)) for i in range(a[1], a[2]))))


def make_tokenizer(path, seed, n_vocab, procs, n=6000):
    step = (n + procs - 1) // procs
    with mp.get_context("fork").Pool(procs) as pool:
        texts = [t for part in pool.map(vocab_part, [(seed, i, min(n, i + step)) for i in range(0, n, step)]) for t in part]
    bpe.Tokenizer(*bpe.train(texts, n_vocab)).save(path)


class Muon:
    """Momentum, then the nearest orthogonal matrix (five Newton-Schulz steps), for the matrices; same shapes go together."""

    def __init__(self, torch, params, lr, momentum=0.95, decay=0.0):
        self.torch, self.lr, self.mom, self.decay = torch, lr, momentum, decay
        groups = {}
        for p in params:
            groups.setdefault(tuple(p.shape), []).append(p)
        self.groups = [(ps, torch.zeros(len(ps), *ps[0].shape, device=ps[0].device)) for ps in groups.values()]

    def step(self, scale):
        torch = self.torch
        for ps, buf in self.groups:
            g = torch.stack([p.grad for p in ps]).float()
            buf.lerp_(g, 1 - self.mom)
            g = g.lerp_(buf, self.mom).bfloat16()
            flip = g.shape[1] > g.shape[2]
            x = g.mT if flip else g
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                a = x @ x.mT
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            x = x.mT if flip else x
            k = self.lr * scale * max(1.0, ps[0].shape[0] / ps[0].shape[1]) ** 0.5
            for p, u in zip(ps, x):
                if self.decay:
                    p.data.mul_(1 - self.lr * scale * self.decay)
                p.data.add_(u.float(), alpha=-k)


def schedule(done, warm=0.01, flat=0.45):
    """done: 0..1. Warm up, stay, then fall to zero in a straight line."""
    if done < warm:
        return done / warm
    return 1.0 if done < flat else max(0.0, (1 - done) / (1 - flat))


def pack(torch, seqs, dev, tok_pad=0):
    """Sequences of ids as one flat run: ids, positions, ends, longest."""
    ids = torch.tensor([i for s in seqs for i in s], dtype=torch.long)
    pos = torch.cat([torch.arange(len(s)) for s in seqs])
    ends = torch.tensor([0] + list(__import__("itertools").accumulate(len(s) for s in seqs)), dtype=torch.int32)
    return ids.to(dev), pos.to(dev), ends.to(dev), max(len(s) for s in seqs)


def generate(torch, model, tok, prompts, dev, limit=96, group=48):
    """Greedy answers; no cache, everything is read again for each token: simple, and fast enough on a GPU."""
    out = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for g in range(0, len(order), group):
        live = order[g:g + group]
        for _ in range(limit):
            seqs = [prompts[i] + out[i] for i in live]
            ids, pos, ends, longest = pack(torch, seqs, dev)
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=dev != "cpu"):
                h = model.hidden(ids, pos, ends, longest)[ends[1:].long() - 1]
                nxt = model.logits(h).float().argmax(-1).tolist()
            still = []
            for i, t in zip(live, nxt):
                if t != tok.im_end:
                    out[i].append(t)
                    still.append(i)
            live = still
            if not live:
                break
    return [tok.decode(o) for o in out]


def evaluate(torch, model, tok, sets, dev, log, rank):
    table = {}
    model.eval()
    for name, cs in sets.items():
        t0 = time.time()
        ps = [tok.encode(c.prompt()) for c in cs]
        got = generate(torch, model, tok, ps, dev)
        by, wrong = cases.score(cs, got)
        with open(os.path.join(log, "got-%s.jsonl" % name), "w") as f:
            for c, g in zip(cs, got):
                f.write(json.dumps([c.id, g], ensure_ascii=False) + "\n")
        table[name] = by
        with open(os.path.join(log, "wrong-%s.jsonl" % name), "w") as f:
            for w in wrong:
                f.write(json.dumps(w, ensure_ascii=False) + "\n")
        print(cases.line(name, by) + "  (%.0f s)" % (time.time() - t0), flush=True)
    with open(os.path.join(log, "eval-%d.json" % rank), "w") as f:
        json.dump(table, f, indent=1)
    model.train()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    A = ap.add_argument
    A("--out", required=True)
    A("--minutes", type=float, default=6.0, help="time for the steps alone; only used when --steps is 0")
    A("--steps", type=int, default=0)
    A("--seed", type=int, default=1)
    A("--vocab", type=int, default=4096)
    A("--d", type=int, default=512)
    A("--layers", type=int, default=8)
    A("--ff", type=int, default=1024)
    A("--heads", type=int, default=8)
    A("--kv", type=int, default=2)
    A("--tokens", type=int, default=65536, help="tokens in a batch")
    A("--lr", type=float, default=0.02, help="for the matrices (Muon)")
    A("--lr-embd", type=float, default=0.004, help="for embeddings and norms (Adam)")
    A("--decay", type=float, default=0.02)
    A("--parts", type=int, default=1, help="batches in a step")
    A("--aux", type=float, default=0.3, help="weight of what is told and said, at the start; none from half way on")
    A("--workers", type=int, default=14)
    A("--eval", type=int, default=300, help="cases of each generated set")
    A("--name", default="home")
    A("--tokenizer", help="use this one instead of training one")
    A("--init", help="go on from this Q8_0 file (of the same shape) and with its tokenizer, instead of from nothing")
    A("--flat", type=float, default=0.45, help="up to this part of the steps the learning rates stay; then they fall to zero")
    A("--no-compile", action="store_true")
    a = ap.parse_args()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    os.makedirs(a.out, exist_ok=True)
    t_start = time.time()
    say = (lambda *x: print(*x, flush=True)) if rank == 0 else (lambda *x: None)
    tok_path = a.tokenizer or os.path.join(a.out, "tokenizer-%d.json" % rank)
    start = None
    if a.init:
        import gguf_in
        meta, start = gguf_in.read(a.init)
        gguf_in.tokenizer(meta).save(tok_path)
    elif not a.tokenizer:
        make_tokenizer(tok_path, a.seed, a.vocab, a.workers)
    tok = bpe.Tokenizer.load(tok_path)
    say("tokenizer: %d tokens, %.1f s" % (len(tok.tokens), time.time() - t_start))
    docs = 256
    qs, ws = [], []
    for w in range(a.workers):
        q = mp.get_context("fork").Queue(6)
        p = mp.get_context("fork").Process(target=worker, args=(w, a.workers, a.seed, a.tokens, docs, tok_path, q, rank, world, a.parts), daemon=True)
        p.start()
        qs.append(q)
        ws.append(p)

    import torch

    import gguf_out
    import model as M
    dev = "cuda:%d" % int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(dev)
    if world > 1:
        import torch.distributed as dist
        dist.init_process_group("nccl", device_id=torch.device(dev))
    torch.manual_seed(a.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    s = M.Shape(vocab=len(tok.tokens), d=a.d, layers=a.layers, ff=a.ff, heads=a.heads, kv=a.kv, ctx=corpus.CTX)
    net = M.Qwen3(s)
    if start:
        gguf_in.load(net, start)
    net.to(dev)
    say("shape: %s, %.2f M parameters" % (s, s.params() / 1e6))
    mats = [p for n, p in net.named_parameters() if p.dim() == 2 and "embd" not in n]
    rest = [p for n, p in net.named_parameters() if not (p.dim() == 2 and "embd" not in n)]
    every = mats + rest
    muon = Muon(torch, mats, a.lr, decay=a.decay)
    adam = torch.optim.AdamW(rest, lr=a.lr_embd, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    body = net.body if a.no_compile else torch.compile(net.body, dynamic=False)
    wait = [0.0]

    def fetch(j):
        t = time.time()
        got = qs[j % a.workers].get()
        wait[0] += time.time() - t
        assert got[0] == batch_number(j, rank, world, a.parts)
        ids = torch.frombuffer(bytearray(got[1]), dtype=torch.uint16).long()
        kinds = torch.frombuffer(bytearray(got[2]), dtype=torch.uint8)
        e = torch.tensor([0] + got[3], dtype=torch.int32)
        ends = torch.full((docs + 1,), a.tokens, dtype=torch.int32)
        ends[:len(e)] = e
        start = torch.repeat_interleave(torch.cat([e, ends[-1:]])[:-1].long(), torch.diff(torch.cat([e, ends[-1:]])).long())
        pos = (torch.arange(a.tokens) - start).clamp_(max=corpus.CTX - 1)
        at = torch.nonzero(kinds[1:] > (0 if aux else 1)).flatten()  # the positions that predict a trained token
        pin = lambda x: x.pin_memory().to(dev, non_blocking=True)
        return pin(ids), pin(pos), pin(ends), pin(at), pin(ids[at + 1]), pin(kinds[at + 1])

    t0 = None
    step = j = 0
    total = a.steps
    per = a.parts // world
    aux = a.aux
    nxt = fetch(0)
    loss_sum = torch.zeros(2, device=dev)
    unit = a.tokens * 0.1 * a.parts              # about as many trained tokens as a step has; the same on any number of GPUs
    while not total or step < total:
        if step == 3:                            # what compiles, compiles before the clock starts
            torch.cuda.synchronize()
            t0 = time.time()
            wait[0] = 0.0
            say("first steps done after %.1f s" % (t0 - t_start))
        if not total and step == 83:             # how many steps the time will hold
            torch.cuda.synchronize()
            t = torch.tensor([a.minutes * 60 * 80 / (time.time() - t0)], device=dev)
            if world > 1:
                dist.broadcast(t, 0)
            total = int(t.item())
            say("--steps %d" % total)
        done = step / total if total else 0.011
        k = schedule(done, flat=a.flat)
        aux = a.aux * max(0.0, 1 - 2 * done)
        for _ in range(per):
            ids, pos, ends, at, goal, kind = nxt
            with torch.autocast("cuda", torch.bfloat16):
                h = body(M.Embed.apply(ids, net.token_embd.weight), pos, ends, corpus.CTX)
                ce = torch.nn.functional.cross_entropy(net.logits(h[at]).float(), goal, reduction="none")
            mine = (kind == 2).float()
            sums = torch.stack([(ce * mine).sum(), mine.sum()])
            loss = (sums[0] + aux * (ce * (1 - mine)).sum()) / unit
            loss.backward()
            loss_sum += sums.detach()
            j += 1
            nxt = fetch(j)
        if world > 1:
            joined = torch._utils._flatten_dense_tensors([p.grad for p in every])
            dist.all_reduce(joined)
            for p, gr in zip(every, torch._utils._unflatten_dense_tensors(joined, [p.grad for p in every])):
                p.grad.copy_(gr)
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in adam.param_groups:
            g["lr"] = a.lr_embd * k
        adam.step()
        muon.step(k)
        net.zero_grad(set_to_none=True)
        step += 1
        if step % 200 == 0:
            now = time.time()
            ls = loss_sum.tolist()
            say("step %5d  %.2f  loss %.4f  %.2f M tokens/s  %.0f M tokens  waited %.0f of %.0f s" % (step, done, ls[0] / ls[1], (step - 3) * a.tokens * a.parts / (now - t0) / 1e6, step * a.tokens * a.parts / 1e6, wait[0], now - t0))
            loss_sum.zero_()
    torch.cuda.synchronize()
    say("steps %d, %.0f M tokens, %.1f s since start" % (step, step * a.tokens * a.parts / 1e6, time.time() - t_start))
    for p in ws:
        p.terminate()
    state = {n: p.detach().float().cpu().numpy() for n, p in net.named_parameters()}
    if rank == 0:
        files = gguf_out.write_all(a.out, a.name, s, tok, state)
        say("wrote", " ".join("%s %d" % (os.path.basename(f), os.path.getsize(f)) for f in files), "%.1f s" % (time.time() - t_start))
    if a.eval:
        sets = {"hand": cases.hand()} if rank == 0 else {}
        for i, (kind, noisy) in enumerate((("homes", False), ("templates", False), ("homes", True), ("templates", True))):
            if (i + 1) % world == rank:
                sets[kind + ("-noisy" if noisy else "")] = cases.generated(kind, a.eval, noisy)
        evaluate(torch, net, tok, sets, dev, a.out, rank)
    if world > 1:
        dist.barrier()
    print("done, %.1f s" % (time.time() - t_start), flush=True)
    sys.stdout.flush()
    os._exit(0)                                  # worker queues may still hold batches


if __name__ == "__main__":
    main()
