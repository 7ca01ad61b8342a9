"""Exercise of notebook 09: the learning rate."""

import math

from ..training import WarmupCosine
from .exercise import Mistake, exercise


def _right(step, peak, warmup, total, final):
    return WarmupCosine(peak, warmup, total, final)(step)


def _cosine(done, peak, final):
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * done))


@exercise(
    "09.3",
    "Warm-up and cosine",
    minutes=12,
    difficulty="middle",
    task="""
The learning rate of a step: up in a line for `warmup` steps, peak · (step + 1) / (warmup + 1), so that step 0 already
moves; then half a cosine from `peak` at step `warmup` down to `final` at step `total`; from there on `final`.
""",
    hints=(
        "Three cases: step < warmup, step >= total, and between.",
        "Between: how much is done, from 0 to 1? (step - warmup) / (total - warmup).",
        "0.5 · (1 + cos(π · done)) goes from 1 to 0; stretch it so that it goes from peak to final.",
    ),
    next_thought="What would the first steps of AdamW do at the full rate, when its means know one batch only?",
    cases=lambda: [(step, 1.0, 4, 10, 0.1) for step in (7, 5, 4, 0, 3, 10, 13)] + [(2, 0.5, 0, 8, 0.0)],
    right=_right,
    forbids=("WarmupCosine",),
    mistakes=(
        Mistake(
            "step 0 has rate 0 and moves nothing: the warm-up is (step + 1) / (warmup + 1)",
            lambda s, peak, w, total, final: peak * s / w if s < w else _right(s, peak, w, total, final),
        ),
        Mistake(
            "the warm-up reaches the peak one step early: divide by warmup + 1",
            lambda s, peak, w, total, final: peak * (s + 1) / w if s < w else _right(s, peak, w, total, final),
        ),
        Mistake(
            "the cosine ends at 0: it should end at `final`",
            lambda s, peak, w, total, final: _cosine((s - w) / (total - w), peak, 0.0),
        ),
        Mistake(
            "the cosine starts at step 0: what is done counts from the end of the warm-up",
            lambda s, peak, w, total, final: _cosine(s / total, peak, final),
        ),
        Mistake(
            "a straight line down: half a cosine is wanted",
            lambda s, peak, w, total, final: final + (peak - final) * (1 - (s - w) / (total - w)),
        ),
        Mistake(
            "after `total` the cosine rises again: from there on it is `final`",
            lambda s, peak, w, total, final: _cosine((s - w) / (total - w), peak, final),
        ),
        Mistake(
            "`final` is added on top: at the peak it should be `peak`",
            lambda s, peak, w, total, final: final + _cosine((s - w) / (total - w), peak, 0.0),
        ),
    ),
)
def warmup_cosine(step, peak, warmup, total, final):
    """The learning rate of this step (counted from 0): a number."""
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if step >= total:
        return final
    done = (step - warmup) / (total - warmup)
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * done))
