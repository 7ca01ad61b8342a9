"""How fast text is generated with and without the key/value cache, in both tracks, for three context lengths.

    python -m course_lib.experiments.bench.generation [--contexts 32 256 1024] [--threads 1]

The text starts with one token, and the model (width 128, 4 layers, 4 heads, random weights) fills its context. Without
a cache each step computes all positions so far; of many steps an evenly spaced sample is timed.
"""

import statistics
import time

import numpy as np
import torch

from ... import get_track
from ...common.config import GPTConfig
from .command import at_least_one, new_parser, run

VOCABULARY, WIDTH, LAYERS, HEADS = 65, 128, 4, 4
STEPS = 48  # timed without a cache, evenly spaced over the lengths 1 to T


def seconds_cached(model, ids):
    """Return the seconds to compute the next logits after each of the tokens ``ids`` in turn, with a cache."""
    cache = model.new_cache()
    start = time.perf_counter()
    for token in ids:
        with model.evaluating():
            model(np.array([[token]]), cache=cache)
    return time.perf_counter() - start


def seconds_uncached(model, ids):
    """Return the same without a cache: the mean of at most STEPS steps, times the number of ids."""
    lengths = np.unique(np.linspace(1, len(ids), min(STEPS, len(ids))).round().astype(int))
    start = time.perf_counter()
    for length in lengths:
        with model.evaluating():
            model(np.array([ids[:length]]))
    return (time.perf_counter() - start) * len(ids) / len(lengths)


def measure(track, context, rounds):
    """Return (tokens per second with a cache, without): medians over interleaved rounds."""
    model, times = get_track(track).GPT(GPTConfig(VOCABULARY, context, WIDTH, HEADS, LAYERS)), ([], [])
    rng = np.random.default_rng(0)
    for n in range(rounds + 1):
        ids = rng.integers(VOCABULARY, size=context).tolist()
        pair = seconds_cached(model, ids), seconds_uncached(model, ids)
        if n:  # the first round only warms up
            times[0].append(pair[0])
            times[1].append(pair[1])
    return tuple(context / statistics.median(seconds) for seconds in times)


def report(contexts, rounds, threads):
    """Print the table for this process, which must already run with ``threads`` threads."""
    torch.set_num_threads(threads)
    print(f"{threads} thread{'s' * (threads > 1)}, median of {rounds} rounds, tokens per second")
    print("context   track   with cache   without   ratio")
    for context in contexts:
        for track in ("numpy", "torch"):
            cached, plain = measure(track, context, rounds)
            print(f"{context:7}   {track:5}   {cached:10.0f}   {plain:7.0f}   {cached / plain:5.1f}", flush=True)


def main():
    parser = new_parser(__doc__, threads=[1], rounds=5)
    parser.add_argument("--contexts", type=at_least_one, nargs="+", default=[32, 256, 1024], metavar="T")
    run(__spec__.name, parser, lambda options, threads: report(options.contexts, options.rounds, threads))


if __name__ == "__main__":
    main()
