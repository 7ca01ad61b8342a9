"""Both tracks side by side in float64: the same weights, the same batches, and at each step the same loss."""

import dataclasses

import numpy as np

from ... import get_track
from ...common.config import FirstGPTConfig, GPTConfig
from ...text import Batches, CharTokenizer, load_corpus
from ...training import WarmupCosine, train
from .checks import check, side_by_side

TOLERANCE = 1e-8  # of the loss, relative: rounding differs from the first step on and grows with every step
_SIZE = {"context_length": 8, "width": 16, "layers": 2, "dtype": "float64"}
_MODELS = {
    "first GPT, AdamW, clipped": ("FirstGPT", FirstGPTConfig(17, causal=True, **_SIZE)),
    "GPT, gradient descent": ("GPT", GPTConfig(17, **_SIZE)),
    "GPT, gradient descent, dropout": ("GPT", GPTConfig(17, dropout=0.1, **_SIZE)),
    "tied GPT, AdamW, dropout": ("GPT", GPTConfig(17, activation="gelu", tied=True, dropout=0.1, **_SIZE)),
}
KINDS = tuple(_MODELS)


def trajectory(track, kind, steps=200):
    """Train a model of one of ``KINDS`` on the text hello; return (history, model, batches)."""
    track = get_track(track)
    name, config = _MODELS[kind]
    text = load_corpus("hello").text
    tokenizer = CharTokenizer.from_text(text)
    config = dataclasses.replace(config, vocab_size=len(tokenizer))
    model = getattr(track, name)(config, seed=2)
    batches = Batches(tokenizer.encode(text), config.context_length, batch_size=4, seed=1)
    if "AdamW" in kind:
        optimizer, clip = track.AdamW(model.parameters(), 1.0), 0.5
        schedule = WarmupCosine(lr=3e-3, warmup_steps=20, total_steps=200, min_lr=3e-4)
    else:
        optimizer, clip, schedule = track.SGD(model.parameters(), 0.1), None, None
    history = train(model, optimizer, batches, steps, schedule=schedule, clip=clip, progress=False)
    return history, model, batches


def largest_difference(mine, other):
    """Return the largest ``|a - b| / |b|`` of two rows of losses. Raises ValueError if their lengths differ."""
    mine, other = np.asarray(mine, np.float64), np.asarray(other, np.float64)
    if mine.shape != other.shape:
        raise ValueError(f"{mine.shape} losses cannot be compared with {other.shape}")
    return float(np.abs((mine - other) / other).max())


def _run(kind, steps):
    losses = [trajectory(track, kind, steps)[0].losses for track in ("numpy", "torch")]
    return largest_difference(*losses), losses[0][0], losses[0][-1]


def trajectories(jobs, steps=200):
    """Train all kinds, print the largest relative difference of their losses, and return True if everything holds."""
    print(f"trajectories: {steps} steps in float64, both tracks, the same weights and batches")
    held = []
    for (kind, _), (difference, first, last) in side_by_side(_run, [(kind, steps) for kind in KINDS], jobs):
        measured = f"{difference:.1e} ({first:.2f} to {last:.2f})"
        held.append(check(f"losses of {kind}", f"equal to {TOLERANCE:g}, relative", measured, difference <= TOLERANCE))
    return all(held)
