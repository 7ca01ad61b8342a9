"""The small GPT: 0.8 million parameters, 1.5 million characters of training; a respectable loss, then a good one."""

import time

from ...text import load_corpus
from ...training import evaluate
from ..recipes import BEST_RECIPE, SMALL_RECIPE
from .checks import check, side_by_side

RECIPES = {"with Muon": SMALL_RECIPE, "as good as it gets": BEST_RECIPE}
LOSSES = {"with Muon": 1.70, "as good as it gets": 1.56}  # at most
PARAMETERS = (788_000, 820_000)


def _run(name, track):
    start, recipe = time.perf_counter(), RECIPES[name]
    data = recipe.data()
    model = recipe.model(track, data, seed=0)
    history = recipe.train(track, model, data, seed=0, progress=False)
    loss, seconds = evaluate(model, data.x, data.y), time.perf_counter() - start
    return model.num_parameters(), history.steps, loss, data.y.size, seconds


def small(jobs):
    """Train both recipes in both tracks, print expected beside measured, and return True if everything holds."""
    load_corpus(SMALL_RECIPE.corpus)  # fetch the text, or fail, before any work starts
    held, (least, most) = [], PARAMETERS
    calls = [(name, track) for name in RECIPES for track in ("numpy", "torch")]
    for (name, track), (parameters, steps, loss, tokens, seconds) in side_by_side(_run, calls, jobs):
        size = f"{steps:,} steps of {RECIPES[name].batch_size} x {RECIPES[name].model_settings['context_length']}"
        print(f"small, {name}: {track} track, {size}, {seconds:.0f} s; {tokens:,} characters of the validation part")
        held += [
            check("parameters", f"{least:,} to {most:,}", f"{parameters:,}", least <= parameters <= most),
            check(
                "validation loss, nats per character", f"at most {LOSSES[name]}", f"{loss:.4f}", loss <= LOSSES[name]
            ),
        ]
    return all(held)
