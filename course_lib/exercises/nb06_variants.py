"""Exercises of notebook 06: RMSNorm backward, and which deep model learns."""

import numpy as np

from ..numpy_track import Tensor
from .cases import arrays
from .exercise import Mistake, exercise, question


def _right(x, grad):
    x = Tensor(x, requires_grad=True)
    (x / ((x * x).mean(axis=-1, keepdims=True) + 1e-5).sqrt()).backward(grad)
    return x.grad


def _pieces(x):
    """n = x · s and s = 1 / √(mean(x²) + ε)."""
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    return x * scale, scale


def _mean(x):
    return x.mean(axis=-1, keepdims=True)


@exercise(
    "06.4",
    "RMSNorm backward",
    minutes=20,
    difficulty="harder",
    task="""
RMSNorm is LayerNorm without the mean: n = x · s with s = 1 / √(mean(x²) + ε), over the last axis, ε = 1e-5. Given the
gradient `grad` of n, write the gradient of `x`. Which of LayerNorm's three ways is left?
""",
    hints=(
        "Directly: x is multiplied by s. And through the length: when x changes, s changes, too.",
        "LayerNorm's dx is s · (h - mean(h) - n · mean(h n)). Which of the terms came from the mean?",
        "dx = s · (grad - n · mean(grad · n)), the mean over the last axis with keepdims=True.",
    ),
    next_thought="Which gradient gives a `grad` that points in the direction of n itself? Why must it be (nearly) 0?",
    cases=lambda: [
        arrays(0, (3, 4), (3, 4)),
        arrays(1, (2, 3, 5), (2, 3, 5)),
        (np.array([1e-3, -2e-3, 3e-3]), np.array([0.5, 1.0, -1.0])),
        arrays(2, (2, 3), (2, 3), dtype="float32"),
    ],
    right=_right,
    forbids=("backward", "autograd"),
    mistakes=(
        Mistake("the length is treated as a constant: it changes with x, too", lambda x, grad: grad * _pieces(x)[1]),
        Mistake(
            "that is LayerNorm's: without a mean in the forward there is no mean(grad) in the backward",
            lambda x, grad: _right(x, grad) - _mean(grad) * _pieces(x)[1],
        ),
        Mistake("the factor s is missing: 1 / √(mean(x²) + ε)", lambda x, grad: _right(x, grad) / _pieces(x)[1]),
        Mistake(
            "a sum in place of the mean: mean(grad · n)",
            lambda x, grad: _pieces(x)[1] * (grad - _pieces(x)[0] * _mean(grad * _pieces(x)[0]) * x.shape[-1]),
        ),
        Mistake(
            "`x` stands where its normalised form n belongs: n = x · s",
            lambda x, grad: _pieces(x)[1] * (grad - x * _mean(grad * x)),
        ),
        Mistake(
            "the sign: the way through the length makes the gradient smaller",
            lambda x, grad: 2 * grad * _pieces(x)[1] - _right(x, grad),
        ),
        Mistake(
            "the mean goes over everything: each position is on its own",
            lambda x, grad: _pieces(x)[1] * (grad - _pieces(x)[0] * (grad * _pieces(x)[0]).mean()),
        ),
    ),
)
def rms_norm_backward(x, grad):
    """The gradient of x, given that of x / √(mean(x²) + 1e-5) over the last axis: an array of the shape of x."""
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    normed = x * scale
    return scale * (grad - normed * (grad * normed).mean(axis=-1, keepdims=True))


which_learns = question(
    "06.5",
    "Twelve layers without warm-up",
    minutes=6,
    difficulty="middle",
    task="""
Predict, before you look at the experiment: twelve layers, the high rate 0.012, 250 steps. Which of these three learn
more than how frequent each word is: post-norm without warm-up, post-norm with warm-up, pre-norm without warm-up? Give a
list of three truth values.
""",
    hints=(
        "Where does the LayerNorm stand on the road of the residual stream, and where does nothing stand on it?",
        "A warm-up makes the first steps small, as long as the layers know nothing.",
    ),
    next_thought="At a rate of 0.007 all three learned. What does “needs warm-up” mean, then?",
    value=[False, True, True],
    answer="[False, True, True]: post-norm needs the warm-up here; the free road of pre-norm does without it.",
    mistakes=(
        Mistake(
            "post-norm without warm-up is the one that stays: every step shakes all layers behind it",
            when=lambda got, want, case: got[0] and got[1] and got[2],
        ),
        Mistake(
            "a warm-up helps: with small first steps post-norm finds its way, too",
            when=lambda got, want, case: not got[0] and not got[1] and got[2],
        ),
        Mistake(
            "nothing stands on the road of pre-norm: it learns from the first step on",
            when=lambda got, want, case: not got[0] and got[1] and not got[2],
        ),
        Mistake(
            "the other way round: which of the two leaves the road free?",
            when=lambda got, want, case: got[0] and not got[2],
        ),
    ),
)
