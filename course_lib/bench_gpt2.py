"""How fast GPT-2 writes with the key/value cache, and how much memory that takes, in both tracks and in transformers.

    python -m course_lib.bench_gpt2 [--threads 1 2] [--tokens 64] [--rounds 5]

The whole 124M shape with random weights: speed and memory do not depend on what the weights are. Each model lives in a
process of its own, so that its peak memory is its own; the processes take turns, a round each, and the table shows the
median over the rounds. The library transformers is left out where it is not installed. The text starts with one token.
"""

import argparse
import contextlib
import importlib.util
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from .bench import _at_least_one
from .bench_generation import seconds_cached

try:
    import resource
except ImportError:  # Windows
    resource = None

KINDS = ("numpy", "torch", "transformers")
SMALL = {"layers": 1, "heads": 2, "width": 8, "context": 16, "vocabulary_size": 11}  # for the tests


def seconds_transformers(model, ids):
    """Seconds for as many greedy tokens by a GPT-2 of the library transformers, with its own loop and cache."""
    import torch

    prompt = torch.tensor([[int(ids[0])]])
    options = {"do_sample": False, "use_cache": True, "pad_token_id": 0, "eos_token_id": None}
    start = time.perf_counter()
    text = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=len(ids), **options)
    seconds = time.perf_counter() - start
    assert text.shape[1] == 1 + len(ids)
    return seconds


def build(kind, size):
    """A function from ids to seconds, for one of KINDS; ``size`` are options of ``gpt2_config``."""
    from .gpt2 import gpt2_config

    config = gpt2_config(**size)
    if kind == "transformers":
        from transformers import GPT2Config, GPT2LMHeadModel

        theirs = GPT2Config(
            vocab_size=config.vocabulary_size, n_positions=config.context, n_embd=config.width,
            n_layer=config.layers, n_head=config.heads, bos_token_id=0, eos_token_id=None,
        )  # fmt: skip
        model = GPT2LMHeadModel(theirs).eval()
        return lambda ids: seconds_transformers(model, ids)
    models = importlib.import_module(f"course_lib.{kind}_track.models")
    model = models.GPT(config)
    return lambda ids: seconds_cached(model, ids)


def peak_memory():
    """The most memory that this process has held so far, in MiB; nan on Windows, which does not tell."""
    if resource is None:
        return float("nan")
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="utf-8") as file:  # Linux
        # there getrusage would count what the process held that started this one, before it became this program
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def serve(kind, tokens, threads, size):
    """The inside of one process: for each line that comes, write ``tokens`` tokens; answer with seconds and MiB."""
    if kind != "numpy":  # which never loads PyTorch: that alone is 200 MiB
        import torch

        torch.set_num_threads(threads)
    ids = np.random.default_rng(0).integers(size.get("vocabulary_size", 50257), size=tokens).tolist()
    run = build(kind, size)
    for _ in sys.stdin:
        print("answer", run(ids), peak_memory(), flush=True)


def measure(kinds, tokens, rounds, threads, small=False):
    """kind -> (tokens per second, peak MiB), from processes that take turns; the first round only warms up."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(threads)), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "course_lib.bench_gpt2", "--tokens", str(tokens), "--threads", str(threads)]
    command += ["--small"] * small
    started = {
        kind: subprocess.Popen(
            [*command, "--inside", kind], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        for kind in kinds
    }
    times, memory = {kind: [] for kind in kinds}, {}
    try:
        for n in range(rounds + 1):
            for kind, process in started.items():
                seconds, memory[kind] = _ask(process, kind)
                if n:
                    times[kind].append(seconds)
    finally:
        for process in started.values():
            process.kill()
            process.wait()
            process.stdout.close()
    return {kind: (tokens / statistics.median(times[kind]), memory[kind]) for kind in kinds}


def _ask(process, kind):
    with contextlib.suppress(BrokenPipeError):  # it has ended; then so do its answers
        process.stdin.write("go\n")
        process.stdin.flush()
    for line in process.stdout:  # a library may print lines of its own
        if line.startswith("answer "):
            return map(float, line.split()[1:])
    raise RuntimeError(f"the process of {kind} has ended: its messages stand above")


def report(tokens, rounds, threads, small=False):
    """Print the table for one number of threads."""
    kinds = [kind for kind in KINDS if kind != "transformers" or importlib.util.find_spec(kind)]
    print(f"\n{threads} thread{'s' * (threads > 1)}, {tokens} tokens with the cache, median of {rounds} rounds")
    print("model          tokens per second   peak MiB")
    found = measure(kinds, tokens, rounds, threads, small)
    for kind, (speed, memory) in found.items():
        print(f"{kind:12}   {speed:17.2f}   {memory:8.0f}", flush=True)
    if "transformers" not in kinds:
        print("(the library transformers is not installed)")
    for other in kinds[1:]:
        ratio = found[other][0] / found["numpy"][0]
        print(f"seconds numpy/{other} {ratio:.2f} <= 2 {'OK' if ratio <= 2 else 'NO'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=_at_least_one, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--tokens", type=_at_least_one, default=64, metavar="N")
    parser.add_argument("--rounds", type=_at_least_one, default=5, metavar="N")
    parser.add_argument("--small", action="store_true", help="a tiny model, to try this program out")
    parser.add_argument("--inside", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return serve(options.inside, options.tokens, options.threads[0], SMALL if options.small else {})
    for threads in options.threads:
        report(options.tokens, options.rounds, threads, options.small)


if __name__ == "__main__":
    main()
