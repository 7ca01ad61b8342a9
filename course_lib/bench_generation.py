"""How fast text is written with and without the key/value cache, in both tracks, for three lengths of the context.

    python -m course_lib.bench_generation [--contexts 32 256 1024] [--threads 1]

One token starts the text, and the model (width 128, 4 layers, 4 heads, random weights) fills its context. Without a
cache each step computes all positions so far; where that takes too long, evenly spread steps stand for the others.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from .bench import _at_least_one

VOCABULARY, WIDTH, LAYERS, HEADS = 65, 128, 4, 4
STEPS = 48  # without a cache: so many steps are measured, evenly spread over the lengths 1 to T


def build(track, context):
    """The model of the track ``numpy`` or ``torch``."""
    from .config import GPTConfig

    if track == "numpy":
        from .numpy_track import GPT
    else:
        from .torch_track import GPT
    return GPT(GPTConfig(VOCABULARY, context, WIDTH, HEADS, LAYERS))


def seconds_cached(model, ids):
    """Seconds to compute the next logits after each of the tokens ``ids``, one after the other, with a cache."""
    cache = model.new_cache()
    start = time.perf_counter()
    for token in ids:
        with model.evaluating():
            model(np.array([[token]]), cache=cache)
    return time.perf_counter() - start


def seconds_uncached(model, ids):
    """The same without a cache: the mean of at most STEPS steps, times all."""
    lengths = np.unique(np.linspace(1, len(ids), min(STEPS, len(ids))).round().astype(int))
    start = time.perf_counter()
    for length in lengths:
        with model.evaluating():
            model(np.array([ids[:length]]))
    return (time.perf_counter() - start) * len(ids) / len(lengths)


def measure(track, context, rounds=5):
    """(tokens per second with a cache, without): medians of interleaved rounds."""
    model, times = build(track, context), ([], [])
    ids = np.random.default_rng(0).integers(VOCABULARY, size=context).tolist()
    for n in range(rounds + 1):
        pair = seconds_cached(model, ids), seconds_uncached(model, ids)
        if n:  # the first round only warms up
            times[0].append(pair[0])
            times[1].append(pair[1])
    return tuple(context / statistics.median(seconds) for seconds in times)


def report(contexts, rounds, threads):
    """Print the table for this process, which must already run with ``threads`` threads."""
    import torch

    torch.set_num_threads(threads)
    print(f"{threads} thread{'s' * (threads > 1)}, median of {rounds} rounds, tokens per second")
    print("context   track   with cache   without   ratio")
    for context in contexts:
        for track in ("numpy", "torch"):
            cached, plain = measure(track, context, rounds)
            print(f"{context:7}   {track:5}   {cached:10.0f}   {plain:7.0f}   {cached / plain:5.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contexts", type=_at_least_one, nargs="+", default=[32, 256, 1024], metavar="T")
    parser.add_argument("--threads", type=_at_least_one, default=1, metavar="N")
    parser.add_argument("--rounds", type=_at_least_one, default=5, metavar="N")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return report(options.contexts, options.rounds, options.threads)
    # the number of threads must be known before NumPy is loaded: a process of its own
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
    command = [sys.executable, "-m", "course_lib.bench_generation", "--inside", *sys.argv[1:]]
    subprocess.run(command, check=True, env={**os.environ, **threads})


if __name__ == "__main__":
    main()
