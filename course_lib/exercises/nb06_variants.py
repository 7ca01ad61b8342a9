"""Exercises of notebook 06: RMSNorm backward, and which deep model learns."""

import numpy as np

from ..numpy_track import Tensor
from .cases import arrays
from .exercise import Mistake, exercise, question


def _right(x, grad):
    x = Tensor(x, requires_grad=True)
    (x / ((x * x).mean(axis=-1, keepdims=True) + 1e-5).sqrt()).backward(grad)
    return x.grad


def _with(formula=lambda g, n, s, by_n: s * (g - n * by_n), axis=-1, along=-1, e=1e-5):
    """A wrong answer: another ``formula`` of g, n = x · s, s = 1 / √(mean(x²) + ε), mean(g · n); or other axes."""

    def answer(x, grad):
        s = 1 / np.sqrt((x * x).mean(axis=axis, keepdims=True) + e)
        return formula(grad, x * s, s, (grad * x * s).mean(axis=along, keepdims=True))

    return answer


_EVERYTHING = "the mean goes over everything: each position is on its own, axis=-1"
_TIME = "the axis of the means: in (B, T, C) axis=1 is time, and the channels are the last, axis=-1"
_BATCH = "the means are over the wrong axis: each position is on its own, axis=-1"


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
        "LayerNorm's dx is s · (g - mean(g) - n · mean(g · n)). Which of the terms came from the mean?",
        "dx = s · (g - n · mean(g · n)), the mean over the last axis with keepdims=True. There is no gain here, so g is"
        " `grad` itself.",
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
        Mistake(
            "the length is treated as a constant: it changes with x, too",
            _with(lambda g, n, s, by_n: s * g),
        ),
        Mistake(
            "that is LayerNorm's: without a mean in the forward there is no mean(g) in the backward",
            _with(lambda g, n, s, by_n: s * (g - g.mean(axis=-1, keepdims=True) - n * by_n)),
        ),
        Mistake("the factor s is missing: s = 1 / √(mean(x²) + ε)", _with(lambda g, n, s, by_n: g - n * by_n)),
        Mistake(
            "divided by s, which is 1 / √(mean(x²) + ε) already: times s",
            _with(lambda g, n, s, by_n: (g - n * by_n) / s),
        ),
        Mistake(
            "a sum in place of the mean: mean(g · n)",
            _with(lambda g, n, s, by_n: s * (g - n * by_n * n.shape[-1])),
        ),
        Mistake(
            "the n in front of mean(g · n) is missing: each number gets its own share",
            _with(lambda g, n, s, by_n: s * (g - by_n)),
        ),
        Mistake(
            "`x` stands where its normalised form n belongs: n = x · s",
            _with(lambda g, n, s, by_n: s * (g - n / s * by_n / s)),
        ),
        Mistake(
            "the sign: the way through the length makes the gradient smaller",
            _with(lambda g, n, s, by_n: s * (g + n * by_n)),
        ),
        Mistake(
            "the ε is missing: s = 1 / √(mean(x²) + ε), ε = 1e-5",
            _with(e=0),
        ),
        Mistake(_EVERYTHING, _with(along=None)),
        Mistake(_EVERYTHING, _with(axis=None, along=None)),
        Mistake(_BATCH, _with(axis=0, along=0)),
        Mistake(_BATCH, _with(along=0)),
        Mistake(_TIME, _with(axis=1, along=1)),
        Mistake(_TIME, _with(along=1)),
        Mistake(_TIME, _with(axis=1)),
    ),
)
def rms_norm_backward(x, grad):
    """The gradient of x, given that of x / √(mean(x²) + 1e-5) over the last axis: an array of the shape of x."""
    s = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    n = x * s
    return s * (grad - n * (grad * n).mean(axis=-1, keepdims=True))


which_learns = question(
    "06.5",
    "Twelve layers without warm-up",
    minutes=6,
    difficulty="middle",
    task="""
Without looking back at the experiment: twelve layers, the high rate 0.012, 250 steps. Which of these three learn more
than how frequent each word is: post-norm without warm-up, post-norm with warm-up, pre-norm without warm-up? Give a list
of three truth values, and say to yourself why.
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
            "a warm-up is what post-norm needs: it learns with one, and does not without",
            when=lambda got, want, case: got[0] and not got[1] and got[2],
        ),
        Mistake(
            "the other way round: which of the two leaves the road free?",
            when=lambda got, want, case: got[0] and not got[2],
        ),
    ),
)
