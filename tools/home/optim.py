# SPDX-License-Identifier: MIT
"""What moves the weights: Muon for the matrices, and how fast."""


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
            with torch.no_grad():
                if self.decay:
                    torch._foreach_mul_(ps, 1 - self.lr * scale * self.decay)
                torch._foreach_add_(ps, list(x.float()), alpha=-k)

    def state(self):
        return [buf for _, buf in self.groups]

    def restore(self, bufs):
        for (_, buf), b in zip(self.groups, bufs, strict=True):
            buf.copy_(b)


def schedule(done, step, warm=80, flat=0.1):
    """done: 0..1, and the step. Warm up, stay, then fall to zero in a straight line."""
    return min(1.0, (step + 1) / warm) * (1.0 if done < flat else max(0.0, (1 - done) / (1 - flat)))
