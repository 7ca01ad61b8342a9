"""Tools that the systems share: runs side by side, each with one thread, and a line for each figure that must hold."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed

from ...common.threads import thread_variables


def side_by_side(function, calls, jobs):
    """Yield (arguments, ``function(*arguments)``) for each of ``calls`` as it ends, ``jobs`` processes at a time."""
    os.environ.update(thread_variables(1))  # before the workers start
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = {pool.submit(function, *arguments): arguments for arguments in calls}
        for run in as_completed(runs):
            yield runs[run], run.result()


def check(what, expected, measured, holds):
    """Print one line, expected beside measured; return ``holds``."""
    print(f"  {what:43} expected {expected:28} measured {measured:28} {'ok' if holds else 'NO'}", flush=True)
    return bool(holds)
