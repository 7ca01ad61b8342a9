"""Exercises of notebook 04: two models that train although their mask or their softmax is wrong."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from . import mended
from .bugs import falls_sentence, in_all_blocks, leak_sentence, losses, row_sums_sentence, small_data, small_model
from .exercise import exercise


def _form(function):
    """What is wrong with the form of the result or with `self.weights`; None when nothing is."""
    if problem := mended.first_problem("attention", 1, function):
        return problem
    layer = mended.layer("attention", 1, function)
    layer.forward(Tensor(np.zeros((1, 2, small_model().config.width))))
    return "self.weights is None behind the call, and the check looks at it" if layer.weights is None else None


def _rest(function):
    """What is wrong although the property holds: other numbers than the course's attention, or a gradient cut."""
    if different := mended.value_problem("attention", 1, function):
        return f"nothing leaks, but the attention is not that of the course's model: {different}", _UNCHANGED
    return mended.gradient_problem("attention", 1, function)


_UNCHANGED = "mend the one thing, and leave the other lines as they are"


def _examine_mask(function):
    if problem := _form(function):
        return problem
    model = in_all_blocks(small_model(heads=1), "attention", function)
    fallen = losses(model)
    if sentence := leak_sentence(model):
        return (
            f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}",
            "which axis is the query?",
        )
    weights = np.asarray(model.blocks[0].attention.layer.weights)  # (1, T, T), of the last call
    hidden = np.argwhere((weights[0] == 0) & np.tril(np.ones_like(weights[0], dtype=bool)))
    if len(hidden):
        i, j = hidden[0]
        return f"nothing leaks, but query {i} cannot look at key {j}, which it may", "look at the diagonal, too"
    return _rest(function) or falls_sentence(fallen)


def _mask_broken(self, x):
    """Attention with one head: (B, T, C) → (B, T, C). Somewhere it looks the wrong way."""
    position = np.arange(x.shape[1])
    allow = position[:, None] <= position[None, :]  # (T, T)
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    context, self.weights = F.attention(q, k, v, allow)
    return self.output(context)


@exercise(
    "04.2",
    "Find the bug: a mask on the wrong axis",
    minutes=10,
    difficulty="middle",
    task="""
This attention trains, its loss falls, and it sees the future. Mend it. (Which test of this notebook finds it, although
the loss looks fine?)
""",
    hints=(
        "Rows are queries, columns are keys. Which index of `allow` is the query?",
        "Print `allow` for three positions: row 0 should have one True.",
    ),
    next_thought="Only the last position sees nothing but itself here. Why does the loss fall all the same?",
    broken=_mask_broken,
    examine=_examine_mask,
)
def masked_forward(self, x):
    """Attention with one head: (B, T, C) → (B, T, C). A position sees itself and the past."""
    position = np.arange(x.shape[1])
    allow = position[None, :] <= position[:, None]  # (T, T): key j ≤ query i
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    context, self.weights = F.attention(q, k, v, allow)
    return self.output(context)


def _examine_weights(function):
    if problem := _form(function):
        return problem
    model = in_all_blocks(small_model(heads=1), "attention", function)
    fallen = losses(model)
    model(small_data()[0][:1])
    weights = model.blocks[0].attention.layer.weights
    if sentence := row_sums_sentence(getattr(weights, "data", weights)):
        started = f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}"
        return started, "a query shares out its attention over the keys: which axis is that?"
    return leak_sentence(model) or _rest(function) or falls_sentence(fallen)


def _weights_broken(self, x):
    """Attention with one head: (B, T, C) → (B, T, C). Somewhere the shares are of the wrong whole."""
    T = x.shape[1]
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(x.shape[-1])  # (B, T, T)
    hidden = np.where(F.causal_mask(T), 0, -1e9)
    self.weights = F.softmax(scores + hidden, axis=-2)  # (B, T, T)
    return self.output(self.weights @ v)


@exercise(
    "04.3",
    "Find the bug: softmax over the wrong axis",
    minutes=10,
    difficulty="middle",
    task="""
This attention trains and its loss falls, but its weights mean something else. Mend it. (What should be true of every
row of the weights?)
""",
    hints=(
        "Sum the weights over each axis: which of the sums are 1?",
        "Each query shares out its attention over the keys, and the keys are the columns: the last axis.",
    ),
    next_thought="With the wrong axis a later *query* changes an earlier one's weights. Which test sees that leak?",
    broken=_weights_broken,
    examine=_examine_weights,
)
def weights_forward(self, x):
    """Attention with one head: (B, T, C) → (B, T, C). Every row of the weights sums to 1."""
    T = x.shape[1]
    q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, C) each
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(x.shape[-1])  # (B, T, T)
    hidden = np.where(F.causal_mask(T), 0, -1e9)
    self.weights = F.softmax(scores + hidden, axis=-1)  # (B, T, T)
    return self.output(self.weights @ v)
