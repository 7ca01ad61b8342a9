"""How long one training step takes: NumPy track, raw PyTorch track, a baseline in idiomatic PyTorch, a lower bound.

    python -m course_lib.experiments.bench.training [--threads 1 2] [--rounds 15] [--systems A C small translation]

All run the same step in interleaved rounds of one process: every round times each of them, and the table shows the
medians over the rounds, their ratios to the baseline and to the floor, and OK or NO for each goal. Compared are:

- ``numpy`` and ``raw``: the two tracks, from equal weights on equal batches: zero the gradients, forward, backward,
  clip (with AdamW), optimiser step.
- ``baseline``: what a PyTorch user would write (``baseline.py``): nn.Module, fused layer norm, GELU and cross-entropy,
  scaled_dot_product_attention, fused AdamW.
- ``floor``: only the matrix products of that step, forward and backward, in NumPy. No step in NumPy can be faster; the
  rest is elementwise work, memory traffic and bookkeeping.
- ``hips``: HIPS autograd, another autograd for NumPy, with the optimiser of the NumPy track; only where the package
  ``autograd`` is installed, and not for the encoder–decoder.

Every step has a fresh batch: a model that has learned one batch by heart has gradients so small that the processor
computes with subnormal numbers, many times slower, and in some kinds only.

Systems: A, the first GPT (V 65, T 32, C 64, batch 4, AdamW and clipping); C, the GPT of notebook 09 (V 17, T 8, C 32,
batch 4, plain gradient descent); small, a GPT of 0.8 million parameters (V 65, T 64, C 128, batch 12, AdamW with decay
on matrices only, clipping); translation, an encoder–decoder (V 40 and 40, S and T 16, C 64, 2 + 2 layers, batch 16,
AdamW, clipping). Other programs on the machine disturb the times more than the ratios.

The goals are in the table SYSTEMS: at most this ratio of medians over at least 9 rounds, with one thread and with two;
a second number is one to chase.
"""

import math
import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch

from ... import get_track
from ...common.config import FirstGPTConfig, GPTConfig, TransformerConfig
from ...training.memory import keep_freed_memory
from . import hips
from .baseline import baseline_step
from .command import new_parser, run


@dataclass(frozen=True)
class System:
    """One model with its optimiser; ``adamw`` holds the settings of AdamW, None means plain gradient descent."""

    config: FirstGPTConfig | GPTConfig | TransformerConfig
    batch: int
    lr: float
    adamw: dict | None
    goals: dict  # (one kind, another): {threads: the largest acceptable ratio of their times, and one to chase}

    @property
    def first(self):
        """True for the first GPT, of notebook 04."""
        return isinstance(self.config, FirstGPTConfig)

    @property
    def translates(self):
        """True for the encoder–decoder, of notebook 14."""
        return isinstance(self.config, TransformerConfig)


KINDS = ("numpy", "raw", "baseline", "floor", *(["hips"] if hips.value_and_grad else []))
SYSTEMS = {
    "A": System(
        FirstGPTConfig(65, causal=True),
        batch=4,
        lr=1e-3,
        adamw={"betas": (0.9, 0.999), "weight_decay": 0.01, "decay_all": True},
        goals={("numpy", "baseline"): {1: (0.78,), 2: (0.78,)}},
    ),
    "C": System(
        GPTConfig(17),
        batch=4,
        lr=0.1,
        adamw=None,
        goals={("numpy", "baseline"): {1: (0.72,), 2: (0.72,)}},
    ),
    "small": System(
        GPTConfig(65, context_length=64, width=128, layers=4, activation="gelu", residual_scaled=True),
        batch=12,
        lr=1e-3,
        adamw={"betas": (0.9, 0.99), "weight_decay": 0.1, "decay_all": False},
        goals={("numpy", "baseline"): {1: (1.22, 1.10), 2: (1.65, 1.45)}, ("numpy", "raw"): {1: (0.95,)}},
    ),
    "translation": System(
        TransformerConfig(40, 40, width=64, heads=4, layers=2, d_ff=256, dropout=0.0, context_length=16),
        batch=16,
        lr=1e-3,
        adamw={"betas": (0.9, 0.98), "weight_decay": 0.01, "decay_all": True},
        goals={},
    ),
}


def batches(system, seed=0):
    """Yield fresh batches (x, y), arrays (B, T): random ids, low ones more often, so that there is something to learn.

    What comes next stays uncertain, so the gradients never vanish. The encoder–decoder's are ((source, inputs), y),
    without padding.
    """
    config, rng = system.config, np.random.default_rng(seed)
    T, first = config.context_length, int(system.translates)  # id 0 of the encoder–decoder is padding
    V = config.target_vocab_size if system.translates else config.vocab_size
    while True:
        ids = first + ((V - first) * rng.random((system.batch, T + 1)) ** 3).astype(int)
        x, y = ids[:, :-1], ids[:, 1:]
        yield ((rng.permuted(x, axis=1), x) if system.translates else x), y


def new_model(track, system):
    """Return the model of a System in one of the two tracks."""
    if system.translates:
        return track.TeacherForcing(track.Transformer(system.config))
    return (track.FirstGPT if system.first else track.GPT)(system.config)


def build(system, kind):
    """Return a function that makes one training step of a System in one of the KINDS."""
    if kind == "floor":
        return floor_step(system)
    batch = batches(system)
    if kind == "baseline":
        return baseline_step(system, batch)
    track = get_track("torch" if kind == "raw" else "numpy")
    model = new_model(track, system)
    if system.adamw is None:
        optimizer = track.SGD(model.parameters(), system.lr)
    else:
        optimizer = track.AdamW(model.parameters(), system.lr, **system.adamw)

    def step():
        optimizer.zero_grad()
        if kind == "hips":
            loss, grads = hips.loss_and_grads(model, system, *next(batch))
            for name, p in model.named_parameters():
                p.grad[...] = grads[name]
        else:
            loss = model(*next(batch))[1]
            loss.backward()
        if system.adamw is not None:
            optimizer.clip_grad_norm_(1.0)
        optimizer.step()
        return loss.item()

    return step


def products(system):
    """Return the matrix products of a forward pass: (count, rows, inner, columns) of (rows, inner) @ (inner, columns).

    >>> products(SYSTEMS["C"])[:3]  # query, key and value; query keyᵀ and weights value, of 4 windows with 4 heads
    [(3, 32, 32, 32), (16, 8, 8, 8), (16, 8, 8, 8)]
    """
    config = system.config
    T, C, rows = config.context_length, config.width, system.batch * config.context_length
    heads = 1 if system.first else config.heads
    D, windows = C // heads, system.batch * heads
    attention = [(windows, T, D, T), (windows, T, T, D)]
    if system.translates:
        attention = [(3, rows, C, C), *attention, (1, rows, C, C)]
        mlp = [(1, rows, C, config.d_ff), (1, rows, config.d_ff, C)]
        layers = config.layers * (3 * attention + 2 * mlp)  # of the encoder, and of the decoder with cross-attention
        return [*layers, (1, rows, C, config.target_vocab_size)]
    if not system.first:
        attention = [(3, rows, C, C), *attention]
    block = [*attention, (1, rows, C, C), (1, rows, C, 4 * C), (1, rows, 4 * C, C)]
    return [*(config.layers * block), (1, rows, C, config.vocab_size)]


def floor_step(system):
    """Return a function that makes the matrix products of one step: each of the forward pass with its two gradients."""
    rng = np.random.default_rng(0)
    operands = []
    for count, rows, inner, columns in products(system):
        shapes = (count, rows, inner), (count, inner, columns), (count, rows, columns)
        operands.append([rng.standard_normal(shape, np.float32) for shape in shapes])

    def step():
        for left, right, grad in operands:
            yield left @ right
            yield grad @ right.swapaxes(1, 2)
            yield left.swapaxes(1, 2) @ grad

    return lambda: sum(1 for _ in step())  # the number of products


def measure(system, rounds=15, seconds=0.15, settle=0.1):
    """Return the median milliseconds per step of each kind, as a dict; the kinds take turns of at least ``seconds``.

    A turn begins with ``settle`` seconds of steps that are not timed: the threads of the library whose turn has ended
    keep a core busy for a while, waiting for more work, and the next kind would pay for it.
    """
    keep_freed_memory()
    steps = {kind: build(system, kind) for kind in KINDS if not (kind == "hips" and system.translates)}
    times = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            _milliseconds(step, settle)
            times[kind].append(_milliseconds(step, seconds))
    return {kind: statistics.median(values) for kind, values in times.items()}


def _milliseconds(step, seconds):
    """Return milliseconds per step, over at least one step and ``seconds``."""
    start, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - start < seconds:
        step()
        count += 1
    return 1000 * (time.perf_counter() - start) / count


def report(threads, rounds, names):
    """Print one table for this process, which must already run with ``threads`` threads."""
    torch.set_num_threads(threads)
    print(f"\n{threads} thread{'s' * (threads > 1)}: median of {rounds} rounds, ms per step")
    print(
        "system     " + "".join(f"{kind:>9}" for kind in KINDS) + "   numpy/baseline  numpy/floor   goals", flush=True
    )
    for name in names:
        ms = measure(SYSTEMS[name], rounds)
        verdicts = []
        for (one, other), limits in SYSTEMS[name].goals.items():
            if threads in limits:
                ratio, (limit, *chased) = ms[one] / ms[other], limits[threads]
                verdict = f"{one}/{other} {ratio:.2f} <= {limit} {'OK' if ratio <= limit else 'NO'}"
                verdicts.append(verdict + "".join(f" (to chase: {number})" for number in chased))
        row = f"{name:11}" + "".join(f"{ms.get(kind, math.nan):9.3f}" for kind in KINDS)
        row += f"{ms['numpy'] / ms['baseline']:17.2f}{ms['numpy'] / ms['floor']:13.2f}   "
        print(row + ", ".join(verdicts), flush=True)


def main():
    parser = new_parser(__doc__, threads=[1, 2], rounds=15)
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    run(__spec__.name, parser, lambda options, threads: report(threads, options.rounds, options.systems))


if __name__ == "__main__":
    main()
