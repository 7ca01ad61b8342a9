"""Exercises of notebook 05: the causal mask."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from . import mending, words
from .exercise import SOFTMAX, Mistake, arrays, drawn, exercise

_ALLOWED = "position[None, :] <= position[:, None]"


@exercise(
    "05.1",
    "The causal mask",
    minutes=8,
    difficulty="easy",
    hints=(
        "In row 0 only the first cell is True; in the last row all are.",
        "Compare the index of the column with that of the row: key j ≤ query i.",
        "np.tril keeps the lower left triangle with the diagonal; or compare np.arange(size) as a row with itself as a"
        " column. The result must be boolean.",
    ),
    next_thought="How many cells are True for T positions? What share of all cells is that when T is large?",
    cases=lambda: [(3,), (1,), (5,), (600,)],
    more=lambda rng: [(int(size),) for size in rng.integers(2, 70, 4)],
    right=lambda size: F.causal_mask(size),
    forbids=("causal_mask",),
    mistakes=(
        Mistake("rows and columns are swapped: this mask shows the future and hides the past", "<=", ">="),
        Mistake("the diagonal is hidden: a position may look at itself", "<=", "<"),
        Mistake(
            "the diagonal is off by one: each position sees the next one, which is its answer",
            "<= position[:, None]",
            "<= position[:, None] + 1",
        ),
        Mistake("True and False are swapped: True means “may look”", "<=", ">"),
        Mistake(
            "these are numbers to add to the scores: this course's masks are booleans that say what may be seen",
            _ALLOWED,
            f"np.where({_ALLOWED}, 0.0, -np.inf)",
        ),
        Mistake("0 and 1 are numbers: ask for dtype=bool, or compare", _ALLOWED, "np.tril(np.ones((size, size)))"),
    ),
)
def causal_mask(size):
    """Return True where key j ≤ query i: booleans (size, size), rows are queries, columns are keys."""
    position = np.arange(size)
    return position[None, :] <= position[:, None]  # (1, T) and (T, 1) -> (T, T)


def _form(function):
    """Return what is wrong with the form of the result or with ``self.weights``; None if nothing is."""
    if problem := mending.first_problem("attention", 1, function):
        return problem
    layer = mending.layer("attention", 1, function)
    layer.forward(Tensor(np.zeros((1, 2, mending.small_model().config.width))))
    return "self.weights is None after the call, and the check looks at it" if layer.weights is None else None


def _rest(function):
    """Return what is wrong although the property holds: other values than the course's, or a cut gradient."""
    if different := mending.value_problem("attention", 1, function):
        return f"nothing leaks, but this is not the attention of the course's model: {different}", _UNCHANGED
    return mending.weights_problem(function) or mending.other_problem("attention", 1, function)


_UNCHANGED = "fix the one thing, and leave the other lines as they are"


def _examine_mask(function):
    if problem := _form(function):
        return problem
    model = mending.in_all_blocks(mending.small_model(heads=1), "attention", function)
    fallen = mending.losses(model)
    if sentence := mending.leak_sentence(model):
        return (
            f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}",
            mending.likely_mistake("attention", 1, function, masked_forward),
        )
    weights = np.asarray(words.plain(model.blocks[0].attention.layer.weights))  # (1, T, T), of the last call
    hidden = np.argwhere((weights == 0) & np.tril(np.ones_like(weights, dtype=bool)))
    if len(hidden):
        *_, i, j = hidden[0]
        likely = mending.likely_mistake("attention", 1, function, masked_forward)
        return f"nothing leaks, but query {i} cannot look at key {j}, which it may", likely
    return _rest(function) or mending.falls_sentence(fallen)


def _mask_broken(self, x):
    """Apply attention with one head: (B, T, C) -> (B, T, C). Somewhere it looks the wrong way."""
    position = np.arange(x.shape[1])
    allow = position[:, None] <= position[None, :]  # (T, T)
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    context, self.weights = F.attention(q, k, v, allow)
    return self.output(context)


@exercise(
    "05.2",
    "Find the bug: a mask on the wrong axis",
    minutes=10,
    difficulty="medium",
    hints=(
        "Rows are queries, columns are keys. Which index of `allow` is the query?",
        "Print `allow` for three positions: row 0 should have one True.",
    ),
    next_thought="Only the last position sees nothing but itself here. Why does the loss fall all the same?",
    broken=_mask_broken,
    forbids=("SelfAttention",),
    examine=_examine_mask,
    mistakes=(
        Mistake("each position sees the future and not the past: rows are queries, columns are keys", "<=", ">="),
        Mistake(
            "nothing is hidden: F.attention takes the mask last, and it must be False for the future",
            "v, allow)",
            "v)",
        ),
        Mistake(
            "the diagonal is off by one: each position sees the next one, which is its answer",
            "<= position[:, None]",
            "<= position[:, None] + 1",
        ),
        Mistake("no position sees itself, and the first has nothing left: look at the diagonal, too", "<=", "<"),
        Mistake(
            "the mask comes after softmax: the future has been counted in the sum by then",
            "context, self.weights = F.attention(q, k, v, allow)",
            "self.weights = F.attention(q, k, v)[1] * allow\n    context = self.weights @ v",
        ),
    ),
)
def masked_forward(self, x):
    """Apply attention with one head: (B, T, C) -> (B, T, C). A position sees itself and the past."""
    position = np.arange(x.shape[1])
    allow = position[None, :] <= position[:, None]  # (T, T): key j ≤ query i
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    context, self.weights = F.attention(q, k, v, allow)
    return self.output(context)


def _examine_weights(function):
    if problem := _form(function):
        return problem
    model = mending.in_all_blocks(mending.small_model(heads=1), "attention", function)
    fallen = mending.losses(model)
    model(mending.small_data()[0][:1])
    weights = model.blocks[0].attention.layer.weights
    if sentence := mending.row_sums_sentence(getattr(weights, "data", weights)):
        started = f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}"
        return started, mending.likely_mistake("attention", 1, function, weights_forward)
    if sentence := mending.leak_sentence(model):
        return sentence, mending.likely_mistake("attention", 1, function, weights_forward)
    return _rest(function) or mending.falls_sentence(fallen)


def _weights_broken(self, x):
    """Apply attention with one head: (B, T, C) -> (B, T, C). Something is normalised wrongly."""
    T = x.shape[1]
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(x.shape[-1])  # (B, T, T)
    hidden = np.where(F.causal_mask(T), 0, -1e9)
    self.weights = F.softmax(scores + hidden, dim=-2)  # (B, T, T)
    return self.output(self.weights @ v)


@exercise(
    "05.3",
    "Find the bug: softmax over the wrong axis",
    minutes=10,
    difficulty="medium",
    hints=(
        "Sum the weights over each axis: which of the sums are 1?",
        "Each query distributes its attention over the keys, and the keys are the columns: the last axis.",
    ),
    next_thought="With the wrong axis a later *query* changes an earlier one's weights. Which test sees that leak?",
    broken=_weights_broken,
    forbids=("SelfAttention",),
    examine=_examine_weights,
    mistakes=(
        Mistake("a query distributes its attention over the keys: which axis is that?", "dim=-1", "dim=-2"),
        Mistake("nothing is hidden: add `hidden` to the scores, -1e9 for the future", " + hidden", ""),
        Mistake("softmax goes over everything: each query has its own row", "dim=-1", "dim=(-1, -2)"),
        Mistake(
            "the mask comes after softmax, and what it hides is missing from the sum: hide the scores first",
            "F.softmax(scores + hidden, dim=-1)",
            "F.softmax(scores, dim=-1) * F.causal_mask(T)",
        ),
    ),
)
def weights_forward(self, x):
    """Apply attention with one head: (B, T, C) -> (B, T, C). Every row of the weights sums to 1."""
    T = x.shape[1]
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(x.shape[-1])  # (B, T, T)
    hidden = np.where(F.causal_mask(T), 0, -1e9)
    self.weights = F.softmax(scores + hidden, dim=-1)  # (B, T, T)
    return self.output(self.weights @ v)


_LOWER = np.tril(np.ones((3, 3), dtype=bool))


def _drawn_masks(rng):
    """Return scores around 0, far below and far above it, with masks some of whose rows are empty."""
    cases = []
    for n, offset in enumerate((0, 0, -900, -200, 1e4, 200)):
        (scores,) = drawn(rng, "...ts", n, scale=1 + n % 3)
        cases.append((scores + scores.dtype.type(offset), rng.random(scores.shape[-2:]) < 0.6))
    return cases


_HIDE_FIRST = """    scores = np.where(allow, scores, -np.inf)
    top = np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)
    exps = np.exp(scores - top)  # 0 where hidden
    return exps / np.maximum(exps.sum(axis=-1, keepdims=True), 1)"""
_HIDE_LAST = """    exps = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allow
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(allow.any(axis=-1, keepdims=True), total, 1)"""
_EMPTY = np.array([[True, True, False], [False, False, False]])


@exercise(
    "05.4",
    "Softmax with a mask",
    minutes=15,
    difficulty="medium",
    hints=(
        "np.where(allow, scores, -np.inf) is a new array, in which exp makes 0 of every hidden cell.",
        "Subtract the largest *allowed* score of each row. In a row with nothing allowed it is -∞, and -∞ - (-∞) is"
        " nan: raise it to a number with np.maximum(top, np.finfo(scores.dtype).min).",
        "The largest exp of a row is 1, so its sum is at least 1: np.maximum(total, 1) changes only the empty rows.",
    ),
    next_thought="With -10⁹ in place of -∞, what would a row with nothing allowed look like?",
    cases=lambda: [
        (*arrays(0, (3, 3)), _LOWER),
        (*arrays(1, (2, 3, 3)), _LOWER),
        (*arrays(2, (2, 3)), _EMPTY),
        (np.array([[0.0, 900.0, 800.0], [-900.0, 3.0, 5.0], [800.0, 801.0, 3.0]]), _LOWER),
        (*arrays(3, (2, 3), dtype="float32"), _EMPTY),
        (np.array([[-900.0, -901.0, 3.0]]), np.array([[True, True, False]])),
    ],
    more=_drawn_masks,
    right=F.softmax_allowed,
    forbids=SOFTMAX,
    zeros=True,
    mistakes=(
        Mistake(
            "the mask comes after softmax: the rows no longer sum to 1. Hide the scores first",
            "scores = np.where(allow, scores, -np.inf)",
            "return F.softmax(Tensor(scores)).data * allow",
        ),
        Mistake(
            "True and False are swapped: True means “may look”", "allow, scores, -np.inf", "allow, -np.inf, scores"
        ),
        Mistake("hidden scores became 0, and exp(0) is 1: make them -∞", "-np.inf", "0.0"),
        Mistake(
            "a row with nothing allowed becomes 0 / 0: it should be zeros",
            "np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)",
            "scores.max(axis=-1, keepdims=True)",
        ),
        Mistake("a row with nothing allowed looks at everything: it should be zeros", "-np.inf", "-1e9"),
        Mistake(
            "a hidden score takes part in the maximum, and exp of the allowed ones becomes 0: hide first",
            _HIDE_FIRST,
            _HIDE_LAST,
        ),
    ),
)
def masked_softmax(scores, allow):
    """Return softmax over the last axis, over the allowed cells only: (..., T, S) -> (..., T, S)."""
    scores = np.where(allow, scores, -np.inf)
    top = np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)
    exps = np.exp(scores - top)  # 0 where hidden
    return exps / np.maximum(exps.sum(axis=-1, keepdims=True), 1)
