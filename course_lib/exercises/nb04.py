"""Exercises of notebook 04: the first GPT."""

import numpy as np

from .exercise import Mistake, draws, exercise, question


def _right_fold(W1, b1, W2, b2):
    """Return W and b, read off from where both layers send 0 and each unit vector, in float64."""
    bias, moved = ((x @ W1.astype(float) + b1) @ W2 + b2 for x in (np.zeros(len(W1)), np.eye(len(W1))))
    return (moved - bias).astype(W1.dtype), bias.astype(W1.dtype)


@exercise(
    "04.1",
    "Fold the projection away",
    minutes=12,
    difficulty="medium",
    hints=(
        "Multiply out: x W1 W2 + b1 W2 + b2.",
        "What multiplies x is W. Everything without x is b.",
    ),
    next_thought="Train the first GPT without the projection: does the loss change? What could a nonlinearity do?",
    more=draws("nk k km m"),
    right=_right_fold,
    mistakes=(
        Mistake("the order of the factors: x meets W1 first, so W is W1 W2", "W1 @ W2, b1", "W2 @ W1, b1"),
        Mistake("`b1` goes through W2, too: b is b1 W2 + b2", "b1 @ W2 + b2", "b1 + b2"),
        Mistake("`b1` is missing: it goes through W2", "b1 @ W2 + b2", "b2"),
        Mistake("`b2` is missing", " + b2", ""),
        Mistake(
            "elementwise, but two layers in a row are a matrix product", "W1 @ W2, b1 @ W2 + b2", "W1 * W2, b1 * b2"
        ),
        Mistake("added, but two layers in a row are a matrix product", "W1 @ W2, b1 @ W2 + b2", "W1 + W2, b1 + b2"),
    ),
)
def fold(W1, b1, W2, b2):
    """Return one layer for two: W1 (n, k), b1 (k,), W2 (k, m), b2 (m,) -> W (n, m) and b (m,)."""
    return W1 @ W2, b1 @ W2 + b2


parameters_of_a_block = question(
    "04.2",
    "Where the parameters are",
    minutes=6,
    difficulty="medium",
    hints=(
        "Three layers: the projection (C to C), up (C to 4C) and down (4C to C). Attention has none here.",
        "A layer from n to m has n · m weights and m biases.",
    ),
    next_thought="What share of it is the MLP? And how does it grow when the width doubles?",
    value=148_224,
    answer="148224: 128 · 128 + 128 for the projection, 128 · 512 + 512 up, 512 · 128 + 128 down.",
    mistakes=(
        Mistake("the biases are missing: one for each output of a layer", value=128 * 128 + 2 * 128 * 512),
        Mistake("a bias of the projection or of the way down is missing", value=148_224 - 128),
        Mistake("the bias of the way up is missing: 4C of them", value=148_224 - 512),
        Mistake("the projection counts, too: C · C weights and C biases", value=128 * 512 + 512 + 512 * 128 + 128),
        Mistake("the MLP has two matrices: up to 4C, and down again", value=128 * 128 + 128 + 128 * 512 + 512),
        Mistake("these are two blocks, or all of them: asked is one", value=2 * 148_224),
        Mistake("this is a block of the page's model, of width 64: here C is 128", value=37_248),
    ),
)

loss_of_a_leak = question(
    "04.3",
    "A loss too good to be true",
    minutes=4,
    difficulty="easy",
    hints=(
        "The answer at position i is the token at position i + 1. At which position is that outside the window?",
        "31 positions cost 0 nats and one costs 2.5. The mean is over all 32.",
    ),
    next_thought="The loss ladder in notebook 11 marks a rung with 0.09. What does this number tell you?",
    value=2.5 / 32,
    answer="0.078: only the last position cannot see its answer, so the mean is 2.5 / 32.",
    mistakes=(
        Mistake("the answer of the last position is not in the window: it still costs 2.5", value=0),
        Mistake("this is the loss of one position; the mean is over all 32", value=2.5),
        Mistake("the mean is over all 32 positions, those that cost nothing, too", value=2.5 / 31),
        Mistake("it is the other way round: 31 positions see their answer, one does not", value=31 * 2.5 / 32),
    ),
)
