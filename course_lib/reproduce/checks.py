"""What the systems share: runs side by side, each with one thread, and a line for each thing that must hold."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed


def side_by_side(function, calls, jobs):
    """Yield (arguments, ``function(*arguments)``) for each of ``calls`` as they end, ``jobs`` processes at a time."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before the workers start: one thread each
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = {pool.submit(function, *arguments): arguments for arguments in calls}
        for run in as_completed(runs):
            yield runs[run], run.result()


def check(what, expected, measured, holds):
    """Print one line, expected beside measured; returns ``holds``."""
    print(f"  {what:43} expected {expected:28} measured {measured:28} {'ok' if holds else 'NO'}", flush=True)
    return bool(holds)
