"""How long one training step takes: NumPy track, raw PyTorch track, a referee in idiomatic PyTorch, and the floor.

    python -m course_lib.bench [--threads 1 2] [--rounds 15] [--systems A C small]

All run the same step in interleaved rounds of one process: every round times each of them, and the table shows the
medians over the rounds, their ratios, and OK or NO for each goal. What is compared:

- ``numpy`` and ``raw``: the two tracks, from equal weights on the same batch: zero the gradients, forward, backward,
  clip (with AdamW), optimiser step.
- ``referee``: what a PyTorch user would write (``course_lib/referee.py``): nn.Module, fused layer norm, GELU and
  cross-entropy, scaled_dot_product_attention, fused AdamW.
- ``floor``: nothing but the matrix products of that step, forward and backward, in NumPy. No step on NumPy can be
  faster; what lies above it is elementwise work, memory traffic and bookkeeping.

Systems: A, the first GPT (V 65, T 32, C 64, batch 4, AdamW and clipping); C, the GPT of notebook 08 (V 17, T 8, C 32,
batch 4, plain gradient descent); small, a GPT of 0.8 million parameters (V 65, T 64, C 128, batch 12, AdamW with decay
on matrices only, clipping). Other programs on the machine disturb the times more than the ratios.

Goals that say NO on the computer where this was written, and why:

- A, numpy/raw (0.63; 0.65 with two threads): raw PyTorch is nearly as fast as the referee here. The products alone are
  a third of its time, and GELU, AdamW, softmax and loss, each in NumPy's fastest form, bring NumPy past one half before
  any bookkeeping.
- C, raw/referee (1.66; 1.65): the arrays are so small that a step is the price of calling functions. A LayerNorm
  written by hand is nine of them, and more on the way back; the seven of this model cost 0.5 ms more than fused ones.
- small, numpy/raw with two threads (1.07): NumPy uses the second thread for matrix products only.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from .config import FirstGPTConfig, GPTConfig


@dataclass(frozen=True)
class System:
    """One model with its optimiser; ``adamw`` holds the settings of AdamW, None means plain gradient descent."""

    config: FirstGPTConfig | GPTConfig
    batch: int
    rate: float
    adamw: dict | None
    goals: dict  # (one kind, another): the largest ratio of their times that is wanted

    @property
    def first(self):
        """Is it the first GPT, of notebook 03?"""
        return isinstance(self.config, FirstGPTConfig)


KINDS = ("numpy", "raw", "referee", "floor")
SYSTEMS = {
    "A": System(
        FirstGPTConfig(65, causal=True),
        batch=4,
        rate=1e-3,
        adamw={"betas": (0.9, 0.999), "weight_decay": 0.01, "decay_all": True},
        goals={("numpy", "raw"): 0.5, ("raw", "referee"): 1.4},
    ),
    "C": System(
        GPTConfig(17),
        batch=4,
        rate=0.1,
        adamw=None,
        goals={("numpy", "raw"): 0.5, ("raw", "referee"): 1.4},
    ),
    "small": System(
        GPTConfig(65, context=64, width=128, layers=4, activation="gelu", residual_scaled=True),
        batch=12,
        rate=1e-3,
        adamw={"betas": (0.9, 0.99), "weight_decay": 0.1, "decay_all": False},
        goals={("numpy", "raw"): 1.0, ("raw", "referee"): 1.4},
    ),
}


def build(system, kind):
    """A function that makes one training step of a System in one of the four KINDS."""
    import numpy as np

    if kind == "floor":
        return floor_step(system)
    config = system.config
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, config.vocabulary_size, (system.batch, config.context)) for _ in "xy")
    if kind == "referee":
        from .referee import referee_step

        return referee_step(system, x, y)
    if kind == "numpy":
        from .numpy_track import models, optim
    else:
        from .torch_track import models, optim
    model = models.FirstGPT(config) if system.first else models.GPT(config)
    if system.adamw is None:
        optimizer = optim.SGD(model.parameters(), system.rate)
    else:
        optimizer = optim.AdamW(model.parameters(), system.rate, **system.adamw)

    def step():
        optimizer.zero_grad()
        loss = model(x, y)[1]
        loss.backward()
        if system.adamw is not None:
            optimizer.clip_grad_norm(1.0)
        optimizer.step()
        return loss.item()

    return step


def products(system):
    """The matrix products of one forward pass: (how many, rows, inner, columns) for (rows, inner) @ (inner, columns).

    >>> products(SYSTEMS["C"])[:3]  # query, key and value; query keyᵀ and weights value, of 4 windows with 4 heads
    [(3, 32, 32, 32), (16, 8, 8, 8), (16, 8, 8, 8)]
    """
    config = system.config
    T, C, V, rows = config.context, config.width, config.vocabulary_size, system.batch * config.context
    heads = 1 if system.first else config.heads
    D, windows = C // heads, system.batch * heads
    attention = [(windows, T, D, T), (windows, T, T, D)]
    if not system.first:
        attention = [(3, rows, C, C), *attention]
    block = [*attention, (1, rows, C, C), (1, rows, C, 4 * C), (1, rows, 4 * C, C)]
    return [*(config.layers * block), (1, rows, C, V)]


def floor_step(system):
    """A function that makes the matrix products of one step: those of the forward pass, each with its two gradients."""
    import numpy as np

    rng = np.random.default_rng(0)
    operands = []
    for many, rows, inner, columns in products(system):
        shapes = (many, rows, inner), (many, inner, columns), (many, rows, columns)
        operands.append([rng.standard_normal(shape, np.float32) for shape in shapes])

    def step():
        for left, right, grad in operands:
            yield left @ right
            yield grad @ right.swapaxes(1, 2)
            yield left.swapaxes(1, 2) @ grad

    return lambda: sum(1 for _ in step())  # how many products


def measure(system, rounds=15, seconds=0.15, settle=0.1):
    """Median milliseconds per step of each kind, the kinds taking turns of at least ``seconds``.

    A turn begins with steps that are not timed, for ``settle`` seconds: the threads of the library whose turn ends keep
    a core busy for a while, waiting for more work, and whoever comes next would pay for it.
    """
    steps = {kind: build(system, kind) for kind in KINDS}
    times = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            _run(step, settle)
            times[kind].append(_run(step, seconds))
    return {kind: statistics.median(values) for kind, values in times.items()}


def _run(step, seconds):
    """Milliseconds per step, over at least one step and ``seconds``."""
    start, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - start < seconds:
        step()
        count += 1
    return 1000 * (time.perf_counter() - start) / count


def report(threads, rounds, names):
    """Print one table for this process, which must already run with ``threads`` threads."""
    import torch

    torch.set_num_threads(threads)
    print(f"\n{threads} thread{'s' * (threads > 1)}: median of {rounds} rounds, ms per step")
    print("system" + "".join(f"{kind:>9}" for kind in KINDS) + "   goals", flush=True)
    for name in names:
        ms = measure(SYSTEMS[name], rounds)
        verdicts = []
        for (one, other), limit in SYSTEMS[name].goals.items():
            ratio = ms[one] / ms[other]
            verdicts.append(f"{one}/{other} {ratio:.2f} <= {limit} {'OK' if ratio <= limit else 'NO'}")
        print(f"{name:6}" + "".join(f"{ms[kind]:9.3f}" for kind in KINDS) + "   " + ", ".join(verdicts), flush=True)


def _at_least_one(text):
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number from 1 on")
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=_at_least_one, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=_at_least_one, default=15, metavar="N")
    parser.add_argument("--systems", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return report(options.threads[0], options.rounds, options.systems)
    for threads in options.threads:  # the number of threads must be known before NumPy is loaded: one process each
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        command = [sys.executable, "-m", "course_lib.bench", "--inside", "--threads", str(threads)]
        subprocess.run(
            [*command, "--rounds", str(options.rounds), "--systems", *options.systems],
            check=True,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
        )


if __name__ == "__main__":
    main()
