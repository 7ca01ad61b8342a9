"""Exercises of notebook 10: temperature and top-p."""

import numpy as np

from ..generation import next_probabilities
from .cases import arrays
from .exercise import Mistake, exercise


def _softmax(x):
    exps = np.exp(x - x.max())
    return exps / exps.sum()


@exercise(
    "10.2",
    "Temperature",
    minutes=10,
    difficulty="middle",
    task="""
Turn the logits (V,) into probabilities at this `temperature`: softmax of logits / temperature. Temperature 0 is greedy:
probability 1 for the largest logit (of equal ones the first), 0 for all others. A tiny temperature must not overflow.
""",
    hints=(
        "Two cases: temperature 0 has no division. np.argmax finds the largest, and of equal ones the first.",
        "Otherwise take off the largest logit, *then* divide by the temperature, then softmax.",
    ),
    next_thought="What do the probabilities become when the temperature grows without limit?",
    cases=lambda: [
        (*arrays(0, (5,)), 1.0),
        (*arrays(1, (5,)), 0.5),
        (np.array([1.0, 3.0, 2.0]), 2.0),
        (np.array([1.0, 3.0, 3.0, 2.0]), 0),
        (np.array([1.0, 3.0, 2.0]), 1e-6),
    ],
    right=next_probabilities,
    forbids=("next_probabilities", "softmax"),
    mistakes=(
        Mistake("the temperature was not used", lambda x, t: _softmax(x)),
        Mistake("the logits are multiplied by the temperature: divide", lambda x, t: _softmax(x * t)),
        Mistake("the probabilities were divided, not the logits", lambda x, t: _softmax(x) / t),
        Mistake("not yet divided by the sum", lambda x, t: np.exp((x - x.max()) / t)),
        Mistake(
            "temperature 0 needs a case of its own: there is nothing to divide by",
            when=lambda got, want, case: case[1] == 0 and (isinstance(got, Exception) or np.isnan(got).any()),
        ),
        Mistake(
            "of equal logits only the first gets the 1",
            when=lambda got, want, case: case[1] == 0 and len(np.unique(got[case[0] == case[0].max()])) == 1,
        ),
        Mistake(
            "`exp` overflows at a tiny temperature: take off the largest logit before dividing",
            when=lambda got, want, case: 0 < case[1] < 0.1 and np.isnan(got).any(),
        ),
    ),
)
def probabilities_at(logits, temperature):
    """Probabilities of the next token: logits (V,) → (V,), which sum to 1."""
    if temperature == 0:
        return (np.arange(len(logits)) == logits.argmax()).astype(logits.dtype)
    exps = np.exp((logits - logits.max()) / temperature)
    return exps / exps.sum()


def _right_top_p(probabilities, p):
    order = sorted(range(len(probabilities)), key=lambda i: (-probabilities[i], i))  # slow and obvious
    kept, total = np.zeros_like(probabilities), 0.0
    for i in order:
        if total < p:
            kept[i] = probabilities[i]
        total += probabilities[i]
    return kept / kept.sum()


def _kept(probabilities, keep):
    kept = np.where(keep, probabilities, 0)
    return kept / kept.sum()


def _reached(probabilities, order):
    """How much each token and the likelier ones have together."""
    together = np.empty_like(probabilities)
    together[order] = np.cumsum(probabilities[order])
    return together


def _likeliest_first(probabilities):
    return np.argsort(-probabilities, kind="stable")


@exercise(
    "10.3",
    "Top-p",
    minutes=15,
    difficulty="harder",
    task="""
Keep the likeliest tokens until their probabilities together reach `p`; all others get 0. The token that reaches it
stays. What is left is shared out, so that it sums to 1, each token in its place. Of equally likely ones the earlier
stays.
""",
    hints=(
        "order = np.argsort(-probabilities, kind='stable') has the likeliest first.",
        "np.cumsum(probabilities[order]) is what the tokens up to each have together. Without the token itself it is"
        " what the likelier ones have: as long as that is below p, the token stays.",
        "Fill zeros at the places order[before < p], then divide by the sum.",
    ),
    next_thought="How many tokens does top-p keep when the model is sure, and how many when it is not? And top-k?",
    cases=lambda: [
        (np.array([0.1, 0.5, 0.15, 0.25]), 0.7),
        (np.array([0.25, 0.125, 0.5, 0.125]), 0.5),
        (np.array([0.125, 0.5, 0.125, 0.25]), 0.8),
        (np.array([0.25, 0.25, 0.5]), 1.0),
        (np.array([0.2, 0.7, 0.1]), 0.1),
    ],
    right=_right_top_p,
    forbids=("next_probabilities",),
    mistakes=(
        Mistake(
            "the token that crosses the limit was dropped: it stays, so that at least p is kept",
            lambda x, p: _kept(x, _reached(x, _likeliest_first(x)) <= p),
        ),
        Mistake(
            "one token too many: when the likelier ones have reached p, nothing more is kept",
            lambda x, p: _kept(x, _reached(x, _likeliest_first(x)) - x <= p),
        ),
        Mistake(
            "what is left does not sum to 1: divide by its sum", lambda x, p: np.where(_right_top_p(x, p) > 0, x, 0)
        ),
        Mistake(
            "the *least* likely were kept: sort by -probabilities",
            lambda x, p: _kept(x, _reached(x, np.argsort(x, kind="stable")) - x < p),
        ),
        Mistake("the tokens have moved: each must stay in its place", lambda x, p: np.sort(_right_top_p(x, p))[::-1]),
        Mistake(
            "not sorted: the likeliest come first, wherever they stand",
            lambda x, p: _kept(x, np.cumsum(x) - x < p),
        ),
        Mistake(
            "each probability is compared with p: what they have *together* counts",
            lambda x, p: _kept(x, x >= p),
            lambda got, want, case: np.isnan(got).all(),
        ),
        Mistake(
            "of equally likely tokens the earlier stays: a stable sort does it",
            when=lambda got, want, case: np.array_equal(np.sort(got), np.sort(want)),
        ),
    ),
)
def top_p(probabilities, p):
    """The likeliest tokens that together have at least p, in their places, 0 elsewhere: (V,) → (V,), sum 1."""
    order = np.argsort(-probabilities, kind="stable")  # places, the likeliest first
    before = np.cumsum(probabilities[order]) - probabilities[order]  # what the likelier ones have already
    kept = np.zeros_like(probabilities)
    places = order[before < p]
    kept[places] = probabilities[places]
    return kept / kept.sum()
