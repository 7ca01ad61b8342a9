"""How long one training step takes: NumPy track, raw PyTorch track, and a referee in idiomatic PyTorch.

    python -m course_lib.bench [--threads 1 2] [--rounds 15]

The three run the same model on the same batch in interleaved rounds of one process; the table shows medians and ratios.
The referee is what a PyTorch user would write: nn.Module, fused layers, scaled_dot_product_attention, torch.optim.
It stands here and not in a track, which uses none of these.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

SYSTEMS = ("A", "C")
GOALS = {"numpy / raw": 1.0, "raw / idiomatic": 1.4}


def build(system, kind):
    """A function that makes one training step of ``system`` in one of three kinds: numpy, raw, idiomatic."""
    import numpy as np

    from .config import FirstGPTConfig, GPTConfig

    if system == "A":
        config, batch = FirstGPTConfig(65, causal=True), 4
    else:
        config, batch = GPTConfig(17), 4
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, config.vocabulary_size, (batch, config.context)) for _ in "xy")
    if kind == "idiomatic":
        return _idiomatic_step(system, config, x, y)
    if kind == "numpy":
        from .numpy_track import models, optim
    else:
        from .torch_track import models, optim
    model = models.FirstGPT(config) if system == "A" else models.GPT(config)
    if system == "A":
        optimizer = optim.AdamW(model.parameters(), 1e-3, decay_all=True)
    else:
        optimizer = optim.SGD(model.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        loss = model(x, y)[1]
        loss.backward()
        if system == "A":
            optimizer.clip_grad_norm(1.0)
        optimizer.step()
        return loss.item()

    return step


def _idiomatic_step(system, config, x, y):
    import torch
    from torch import nn
    from torch.nn import functional as F

    C, V, T = config.width, config.vocabulary_size, config.context

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = (t.view(B, T, config.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(B, T, C))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2, self.attention = nn.LayerNorm(C), nn.LayerNorm(C), Attention()
            self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.ReLU(), nn.Linear(4 * C, C))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class FirstBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(C, C)
            self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(approximate="tanh"), nn.Linear(4 * C, C))

        def forward(self, x):
            x = x[:, None]  # one head
            return self.mlp(self.out(F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(V, C), nn.Embedding(T, C)
            self.blocks = nn.Sequential(*(FirstBlock() if system == "A" else Block() for _ in range(config.layers)))
            self.norm = nn.Identity() if system == "A" else nn.LayerNorm(C)
            self.head = nn.Linear(C, V)
            self.register_buffer("places", torch.arange(T))

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.token(ids) + self.position(self.places))))

    model, x, y = Model(), torch.from_numpy(x), torch.from_numpy(y)
    optimizer = (
        torch.optim.AdamW(model.parameters(), 1e-3) if system == "A" else torch.optim.SGD(model.parameters(), 0.1)
    )

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        if system == "A":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def measure(system, rounds=15, seconds=0.15):
    """Median milliseconds per step of each kind, the kinds taking turns."""
    steps = {kind: build(system, kind) for kind in ("numpy", "raw", "idiomatic")}
    times = {kind: [] for kind in steps}
    for step in steps.values():
        for _ in range(30):
            step()
    for _ in range(rounds):
        for kind, step in steps.items():
            start, count = time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                step()
                count += 1
            times[kind].append(1000 * (time.perf_counter() - start) / count)
    return {kind: statistics.median(values) for kind, values in times.items()}


def report(threads, rounds):
    """Print one table for this process, which must already run with ``threads`` threads."""
    import torch

    torch.set_num_threads(threads)
    print(f"\n{threads} thread{'s' * (threads > 1)}: median of {rounds} rounds, ms per step")
    print("system   numpy     raw   idiomatic   numpy/raw   raw/idiomatic")
    for system in SYSTEMS:
        ms = measure(system, rounds)
        print(
            f"{system:6} {ms['numpy']:7.3f} {ms['raw']:7.3f} {ms['idiomatic']:11.3f}"
            f" {ms['numpy'] / ms['raw']:11.2f} {ms['raw'] / ms['idiomatic']:15.2f}"
        )


def _at_least_one(text):
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number from 1 on")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=_at_least_one, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=_at_least_one, default=15, metavar="N")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return report(options.threads[0], options.rounds)
    print("goals: " + ", ".join(f"{name} <= {limit}" for name, limit in GOALS.items()))
    for threads in options.threads:  # the number of threads must be known before NumPy is loaded: one process each
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        command = [sys.executable, "-m", "course_lib.bench", "--inside", "--threads", str(threads)]
        subprocess.run(
            [*command, "--rounds", str(options.rounds)],
            check=True,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
        )


if __name__ == "__main__":
    main()
