#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the home model and writes its GGUF files.

usage: train.py --out DIR [--minutes M | --steps N] [--seed S] [shape and recipe options]
       torchrun --nproc-per-node N train.py ... --parts P     on several GPUs

Conversations are made while training, by worker processes, and are never seen
twice. The same options and the same number of steps give the same batches in
the same steps, on any number of GPUs that divides --parts, and also when a run
is broken off and the same command is given again: it goes on from DIR. Ends
with 0 when everything is done, with 3 when there is more to do (--limit).
"""
import argparse
import json
import multiprocessing as mp
import os
import sys
import time

import bpe
import cases
import corpus
import feed
import keep


def vocab_part(a):
    return bpe.count(corpus.text_of(corpus.conversation("vocab %s/%d" % (a[0], i))) for i in range(a[1], a[2]))


def make_tokenizer(path, seed, n_vocab, procs, n=6000):
    step = (n + procs - 1) // procs
    with mp.get_context("fork").Pool(procs) as pool:
        counts = {}
        for part in pool.map(vocab_part, [(seed, i, min(n, i + step)) for i in range(0, n, step)]):
            for w, c in part.items():
                counts[w] = counts.get(w, 0) + c
    bpe.Tokenizer(*bpe.merge(counts, n_vocab)).save(path + ".new")
    os.replace(path + ".new", path)


def pack(torch, seqs, dev):
    """Sequences of ids as one flat run: ids, positions, ends, longest."""
    ids = torch.tensor([i for s in seqs for i in s], dtype=torch.long)
    pos = torch.cat([torch.arange(len(s)) for s in seqs])
    ends = torch.cumsum(torch.tensor([0] + [len(s) for s in seqs]), 0).int()
    return ids.to(dev), pos.to(dev), ends.to(dev), max(len(s) for s in seqs)


def generate(torch, model, tok, prompts, dev, limit=96, group=48):
    """Greedy answers; no cache, everything is read again for each token: simple, and fast enough on a GPU."""
    import model as M
    out = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for g in range(0, len(order), group):
        live = order[g:g + group]
        for _ in range(limit):
            seqs = [prompts[i] + out[i] for i in live]
            ids, pos, ends, longest = pack(torch, seqs, dev)
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=dev != "cpu"):
                h = model.hidden(ids, pos, M.plain(ends, longest))[ends[1:].long() - 1]
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


def options():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    A = ap.add_argument
    A("--out", required=True, help="files, and what is needed to go on")
    A("--minutes", type=float, default=6.0, help="time for everything but the evaluation; only used when --steps is 0")
    A("--steps", type=int, default=0)
    A("--seed", type=int, default=1)
    A("--vocab", type=int, default=4096)
    A("--d", type=int, default=512)
    A("--layers", type=int, default=8)
    A("--ff", type=int, default=1024)
    A("--heads", type=int, default=8)
    A("--kv", type=int, default=2)
    A("--tokens", type=int, default=65536, help="tokens in a batch")
    A("--branches", type=int, default=8, help="conversations that share one reading of their home; 1: each reads its own")
    A("--lr", type=float, default=0.02, help="for the matrices (Muon)")
    A("--lr-embd", type=float, default=0.004, help="for embeddings and norms (Adam)")
    A("--decay", type=float, default=0.02)
    A("--parts", type=int, default=1, help="batches in a step")
    A("--aux", type=float, default=0.3, help="weight of what is told and said, at the start; none from half way on")
    A("--eval", type=int, default=300, help="cases of each generated set; 0: no evaluation")
    A("--name", default="home")
    A("--tokenizer", help="use this one instead of training one")
    A("--init", help="go on from this Q8_0 file (of the same shape) and with its tokenizer, instead of from nothing")
    A("--flat", type=float, default=0.1, help="up to this part of the steps the learning rates stay; then they fall to zero")
    # what changes nothing in the result:
    A("--workers", type=int, default=max(1, min(15, (os.cpu_count() or 2) - 1)))
    A("--limit", type=float, default=0, help="seconds that this call may take: it saves in time and ends with 3")
    A("--save", type=float, default=60, help="seconds between two savings")
    A("--detach", action="store_true", help="run in the background, show its log until --limit; given again: show on, or go on")
    A("--every", type=int, default=200, help="steps between two lines")
    A("--profile", type=int, default=0, metavar="N", help="when all is done, say what N more steps spend their time on (with --steps 6: that alone)")
    A("--no-compile", action="store_true")
    return ap.parse_args()


MEASURED = 203           # after so many steps --minutes become a number of steps
EXPORT = 8               # seconds that are left for the files
QUICKER = 1.012          # steps are a little quicker when only what the model says is trained, in the second half
FREE = {"out", "workers", "limit", "save", "detach", "every", "profile", "no_compile", "eval"}     # may differ when a run goes on


def main():
    a = options()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if a.detach:
        sys.exit(keep.background(a.out, a.limit))
    t_start = time.time()
    say = (lambda *x: print(*x, flush=True)) if rank == 0 else (lambda *x: None)
    run = keep.Run(a.out, {k: v for k, v in vars(a).items() if k not in FREE}, rank)
    tok_path = a.tokenizer or os.path.join(a.out, "tokenizer-%d.json" % rank)
    start = maker = None
    if a.init:
        import gguf_in
        meta, start = gguf_in.read(a.init)
        gguf_in.tokenizer(meta).save(tok_path)
    elif not a.tokenizer and not os.path.exists(tok_path):      # while PyTorch is loaded and compiles
        maker = mp.get_context("fork").Process(target=make_tokenizer, args=(tok_path, a.seed, a.vocab, a.workers))
        maker.start()
    n_vocab = a.vocab if maker else len(bpe.Tokenizer.load(tok_path).tokens)
    step = run.peek()                            # steps that an earlier call has done
    per = a.parts // world
    feeder = feed.Feed(a, tok_path, step * per, rank, world)

    import torch

    import gguf_out
    import model as M
    from optim import Muon, schedule
    cuda = torch.cuda.is_available()
    dev = "cuda:%d" % int(os.environ.get("LOCAL_RANK", 0)) if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(dev)
    wait = torch.cuda.synchronize if cuda else lambda: None
    if world > 1:
        import torch.distributed as dist
        dist.init_process_group("nccl", device_id=torch.device(dev))
    torch.manual_seed(a.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    s = M.Shape(vocab=n_vocab, d=a.d, layers=a.layers, ff=a.ff, heads=a.heads, kv=a.kv, ctx=corpus.CTX)
    net = M.Qwen3(s)
    if start:
        gguf_in.load(net, start)
    net.to(dev)
    say("shape: %s, %.2f M parameters, PyTorch %s on %s" % (s, s.params() / 1e6, torch.__version__, torch.cuda.get_device_name() if cuda else "the CPU"))
    if cuda:
        why = M.choose_attention(s, dev, a.branches > 1)
        if why:
            sys.exit("attention: " + why)
        say("attention: %s" % M.attention)
    mats = [p for n, p in net.named_parameters() if p.dim() == 2 and "embd" not in n]
    rest = [p for n, p in net.named_parameters() if not (p.dim() == 2 and "embd" not in n)]
    every = mats + rest
    muon = Muon(torch, mats, a.lr, decay=a.decay)
    adam = torch.optim.AdamW(rest, lr=a.lr_embd, betas=(0.9, 0.98), weight_decay=0.0, fused=cuda)
    compiled = cuda and not a.no_compile
    body = torch.compile(net.body, dynamic=False) if compiled else net.body
    losses = torch.compile(M.losses, dynamic=True) if compiled else M.losses
    total, before = a.steps, 0.0                 # steps in all; seconds that earlier calls took for their steps
    loss_sum = torch.zeros(2, device=dev)
    spent, calls = 0.0, 1
    if step:
        st = run.load(torch, dev)
        assert st["step"] == step
        with torch.no_grad():
            for n, p in net.named_parameters():
                p.copy_(st["net"][n])
        muon.restore(st["muon"])
        adam.load_state_dict(st["adam"])
        loss_sum.copy_(st["loss_sum"])
        total, before, spent, calls = st["total"], st["trained_s"], st["spent_s"], st["calls"] + 1
        say("goes on after step %d of %s, call %d, %.0f s were spent" % (step, total or "?", calls, spent))
    first = step
    unit = a.tokens * 0.1 * a.parts              # about as many trained tokens as a step has; the same on any number of GPUs
    left = lambda: a.limit - (time.time() - t_start) if a.limit else 1e9

    def save():
        if rank == 0:
            run.save(torch, {"step": step, "total": total, "net": dict(net.named_parameters()), "muon": muon.state(), "adam": adam.state_dict(), "loss_sum": loss_sum,
                             "trained_s": before + (time.time() - t0 if t0 else 0), "spent_s": spent + time.time() - t_start, "calls": calls})

    def leave():
        feeder.stop()
        save()
        say("step %d of %s is saved in %s; the same command goes on" % (step, total or "?", a.out))
        if world > 1:
            dist.barrier()
        sys.stdout.flush()
        os._exit(3)                              # worker queues may still hold batches

    def forward(b, which, weight):
        lay = M.Layout(b["q"], b["k"], b.get("rows"), b.get("live"), corpus.CTX)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            h = M.Take.apply(body(M.Embed.apply(b["ids"], net.token_embd.weight), b["pos"], lay), b[which])
            return losses(h, net.token_embd.weight, b[which + "-goal"], b[which + "-mine"], weight)

    feeder.pin(torch, dev)
    if compiled:
        try:
            loss, _, _ = forward({n: x.to(dev) for n, x in feeder.blank().items()}, "all", torch.full((), a.aux, device=dev))
            (loss / unit).backward()
        except Exception as e:
            say("not compiled: %s" % str(e).strip().splitlines()[0][:300])
            compiled, body, losses = False, net.body, M.losses
        net.zero_grad(set_to_none=True)
        wait()
        say("compiled, %.1f s" % (time.time() - t_start))
    if maker:
        maker.join()
        if maker.exitcode:
            sys.exit("the tokenizer was not made")
    tok = bpe.Tokenizer.load(tok_path)
    if len(tok.tokens) != n_vocab:
        sys.exit("%s has %d tokens instead of %d" % (tok_path, len(tok.tokens), n_vocab))
    say("tokenizer: %d tokens, %.1f s" % (len(tok.tokens), time.time() - t_start))

    def profiler():
        from torch.profiler import ProfilerActivity, profile
        return profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU])

    def finish():
        """After the last step: the files."""
        wait()
        trained = before + (time.time() - t0 if t0 else 0)
        if step > first:
            save()
        say("steps %d, %.0f M tokens, %.1f s of steps, %.1f s since start" % (step, step * a.tokens * a.parts / 1e6, trained, spent + time.time() - t_start))
        if step > first and left() < (90 if a.eval and cuda else 15):
            leave()
        state = {n: p.detach().float().cpu().numpy() for n, p in net.named_parameters()}
        if rank == 0:
            files = gguf_out.write_all(a.out, a.name, s, tok, state)
            say("wrote", " ".join("%s %d" % (os.path.basename(f), os.path.getsize(f)) for f in files), "%.1f s" % (spent + time.time() - t_start))

    t0 = None
    prof = None
    saved = time.time()
    if step and step == total:
        finish()
    while not total or step < total + a.profile:
        if step == first + 3:                    # what compiles, compiles before the clock starts
            wait()
            t0 = time.time()
            feeder.waited = 0.0
            say("first steps done after %.1f s" % (t0 - t_start))
        if not total and step == MEASURED:       # how many steps the time will hold
            wait()
            more = a.minutes * 60 - EXPORT - (spent + time.time() - t_start)
            t = torch.tensor([step + QUICKER * more * (step - first - 3) / (time.time() - t0)], device=dev)
            if world > 1:
                dist.broadcast(t, 0)
            total = max(step + 1, int(t.item()))
            say("--steps %d" % total)
        if a.profile and step == total and not prof:
            wait()
            prof = profiler()
            prof.__enter__()
        done = min(1.0, step / total) if total and (step >= MEASURED or total < 10 * MEASURED) else 0.0    # so that --steps repeats --minutes
        k = schedule(done, step, flat=a.flat)
        aux = a.aux * max(0.0, 1 - 2 * done)
        for _ in range(per):
            b = {n: x.to(dev, non_blocking=True) for n, x in feeder.get().items()}
            which = "all" if aux else "own"
            loss, own, n = forward(b, which, torch.full((), aux, device=dev))      # filled there: a copy would wait for all that goes before
            (loss / unit).backward()
            loss_sum += torch.stack((own, n))
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
        if step % a.every == 0 and t0:
            ls = loss_sum.tolist()               # the one place where the GPU is waited for
            now = time.time()
            each = (now - t0) / (step - first - 3) if step > first + 3 else 0
            say("step %5d of %s  loss %.4f  %.2f M tokens/s  %.0f M tokens, %.1f M said in this stretch  waited %.0f of %.0f s  %s" % (
                step, total or "?", ls[0] / max(ls[1], 1), a.tokens * a.parts / each / 1e6 if each else 0, step * a.tokens * a.parts / 1e6, ls[1] * world / 1e6, feeder.waited, now - t0,
                "%.0f s to go" % ((total - step) * each) if total else ""))
            loss_sum.zero_()
        if world == 1 and step < (total or step + 1):
            if left() < 5 + 3 * (time.time() - t0) / max(1, step - first - 3) if t0 else left() < 5:
                wait()
                leave()
            if t0 and time.time() - saved > a.save and step > MEASURED:
                save()
                saved = time.time()
        if step == total:
            finish()
    feeder.stop()
    if prof:
        wait()
        prof.__exit__(None, None, None)
        for by in ("self_device_time_total", "self_cuda_time_total", "self_cpu_time_total") if cuda else ("self_cpu_time_total",):     # names differ from version to version
            try:
                print(prof.key_averages().table(sort_by=by, row_limit=40, max_name_column_width=90), flush=True)
                break
            except (AttributeError, KeyError, ValueError):
                pass
    if a.eval:
        sets = {"hand": cases.hand()} if rank == 0 else {}
        for i, (kind, noisy) in enumerate((("homes", False), ("templates", False), ("homes", True), ("templates", True), ("which", False))):
            if (i + 1) % world == rank:
                sets[kind + ("-noisy" if noisy else "")] = cases.generated(kind, a.eval, noisy)
        evaluate(torch, net, tok, sets, dev, a.out, rank)
    if world > 1:
        dist.barrier()
    run.done()
    print("done, %.1f s in %d call%s" % (spent + time.time() - t_start, calls, "s" if calls > 1 else ""), flush=True)
    sys.stdout.flush()
    os._exit(0)                                  # worker queues may still hold batches


if __name__ == "__main__":
    main()
