"""The small GPT: 0.8 million parameters, 1.5 million characters of training, a respectable loss."""

import time

from ...text import load_corpus
from ...training import evaluate
from ..recipes import SMALL_RECIPE
from .checks import check, side_by_side

LOSS, PARAMETERS = 1.70, (788_000, 820_000)


def _run(track):
    start = time.perf_counter()
    data = SMALL_RECIPE.data()
    model = SMALL_RECIPE.model(track, data, seed=0)
    history = SMALL_RECIPE.train(track, model, data, seed=0, progress=False)
    loss, seconds = evaluate(model, data.x, data.y), time.perf_counter() - start
    return model.num_parameters(), history.steps, loss, data.y.size, seconds


def small(jobs):
    """Train in both tracks with seed 0, print expected beside measured, and return True if everything holds."""
    load_corpus(SMALL_RECIPE.corpus)  # fetch the text, or fail, before any work starts
    context_length = SMALL_RECIPE.model_settings["context_length"]
    print(f"small: {SMALL_RECIPE.steps:,} steps of {SMALL_RECIPE.batch_size} x {context_length}")
    held, (least, most) = [], PARAMETERS
    for (track,), (parameters, steps, loss, tokens, seconds) in side_by_side(_run, [("numpy",), ("torch",)], jobs):
        print(f" {track} track, {steps:,} steps, {seconds:.0f} s; {tokens:,} characters of the validation part")
        held += [
            check("parameters", f"{least:,} to {most:,}", f"{parameters:,}", least <= parameters <= most),
            check("validation loss, nats per character", f"at most {LOSS}", f"{loss:.4f}", loss <= LOSS),
        ]
    return all(held)
