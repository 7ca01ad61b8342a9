"""Exercises of notebook 07: normalisation, forward and backward."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import layer_norm as library_layer_norm
from . import mending
from .exercise import BACKWARD, LAYER_NORM, Mistake, arrays, drawn, draws, exercise, question, varied


def _right(x, gain, bias, eps):
    return library_layer_norm(Tensor(x), gain.shape, Tensor(gain), Tensor(bias), eps).data


@exercise(
    "07.1",
    "LayerNorm forward",
    minutes=12,
    difficulty="medium",
    hints=(
        "x.mean(axis=-1, keepdims=True) is one mean for each position, ready to be subtracted.",
        "The variance is the mean of the squared distances from the mean: x.var(axis=-1, keepdims=True).",
        "ε is added to the variance, under the root.",
    ),
    next_thought="What does LayerNorm give when all features of a position are equal? What is ε for?",
    cases=lambda: [
        (*arrays(0, (4, 4), (4,), (4,)), 1e-5),
        (*arrays(1, (2, 3, 5), (5,), (5,)), 1e-5),
        (*arrays(2, (2, 6), (6,), (6,)), 0.5),
        (*arrays(3, (2, 3, 4), (4,), (4,), dtype="float32"), 1e-5),
        *varied(*arrays(4, (2, 4), (4,), (4,)), 1e-3, by=[0.7]),
    ],
    more=lambda rng: [(*drawn(rng, "...c c c", n, (30, 1)[n % 2], 3), 10.0 ** rng.uniform(-6, 0)) for n in range(6)],
    right=_right,
    forbids=LAYER_NORM,
    mistakes=(
        Mistake("the variance is divided by C - 1; here it is by C", "x.var(axis=-1,", "x.var(axis=-1, ddof=1,"),
        Mistake("mean and variance are over everything: each position is on its own, axis=-1", "axis=-1", "axis=None"),
        Mistake("divided by the variance, not by its root", "np.sqrt(variance + eps)", "(variance + eps)"),
        Mistake(
            "the ε belongs under the root, added to the variance",
            "np.sqrt(variance + eps)",
            "(np.sqrt(variance) + eps)",
        ),
        Mistake(
            "the ε is a fixed number in your function: use the argument `eps`",
            "variance + eps",
            "variance + 1e-5",
        ),
        Mistake(
            "mean and variance need keepdims=True: without it they lie down as a row",
            "axis=-1, keepdims=True",
            "axis=-1",
        ),
    ),
)
def layer_norm(x, gain, bias, eps):
    """Return (x - μ) / √(σ² + ε) · gain + bias over the last axis: (..., C) -> (..., C)."""
    mean = x.mean(axis=-1, keepdims=True)  # (..., C) -> (..., 1)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gain + bias


def _right_norm_backward(x, gain, grad):
    x = Tensor(x, requires_grad=True)
    library_layer_norm(x, gain.shape, Tensor(gain), Tensor(np.zeros_like(gain)), 1e-5).backward(grad)
    return x.grad


@exercise(
    "07.2",
    "LayerNorm backward",
    minutes=25,
    difficulty="harder",
    hints=(
        "Write n = (x - μ) · s with s = 1 / √(σ² + ε), as the page does. The page's g arrives at n, and here the gain"
        " comes in between: g = grad · gain.",
        "If μ and s were constants, the gradient of x would be s · g. Two terms are missing: one for μ, one for s.",
        "dx = s · (g - mean(g) - n · mean(g · n)), both means over the last axis, with g = grad · gain.",
    ),
    next_thought="Add up dx of one position: what comes out, and why must it? (Move all of x by the same number.)",
    more=draws("...c c ...c", low=3),  # with fewer, what is left of the cancellation is rounding
    right=_right_norm_backward,
    forbids=LAYER_NORM + BACKWARD,
    mistakes=(
        Mistake("mean and variance are treated as constants: x moves them, too", "(g - by_mean - by_variance)", "g"),
        Mistake("the term of the variance is missing: n · mean(g · n)", " - by_variance", ""),
        Mistake("the term of the mean is missing: mean(g)", " - by_mean", ""),
        Mistake("the n before mean(g · n) is missing: each element gets its own share", "n * (g * n)", "(g * n)"),
        Mistake("`gain` is missing: g, the gradient of n, is grad · gain", "grad * gain", "grad"),
        Mistake(
            "`gain` comes too late: it belongs in g = grad · gain, before the means are taken",
            "g = grad * gain",
            "s, g = s * gain, grad",
        ),
    ),
)
def layer_norm_backward(x, gain, grad):
    """Return the gradient of x (..., C), given that of (x - μ) / √(σ² + 1e-5) · gain + bias: (..., C)."""
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    n = (x - x.mean(axis=-1, keepdims=True)) * s
    g = grad * gain  # the gradient of n
    by_mean = g.mean(axis=-1, keepdims=True)
    by_variance = n * (g * n).mean(axis=-1, keepdims=True)
    return s * (g - by_mean - by_variance)


def _examine_norm(function):
    if problem := mending.first_problem("norm", 4, function):
        return problem
    different = mending.value_problem("norm", 4, function)
    model = mending.in_all_blocks(mending.small_model(heads=4), "norm", function)
    if not different:
        return mending.other_problem("norm", 4, function)
    likely = mending.likely_mistake("norm", 4, function, norm_forward)
    fallen = mending.losses(model)
    if sentence := mending.leak_sentence(model):
        started = f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}"
        return started, likely
    return f"nothing leaks, but this is not LayerNorm: {different}", likely


def _norm_broken(self, x):
    """Apply LayerNorm: (B, T, C) -> (B, T, C). Somewhere positions mix that should not."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / (variance + self.eps).sqrt() * self.weight + self.bias


_WHOSE = "whose mean is it, and whose variance? Each position has its own"


@exercise(
    "07.3",
    "Find the bug: LayerNorm that looks ahead",
    minutes=10,
    difficulty="medium",
    hints=(
        "x is (B, T, C). Which axis do mean and variance go over?",
        "A mean over time contains the future. Each position has its own mean, over its C numbers.",
    ),
    next_thought="What does this say about batch norm in a language model?",
    broken=_norm_broken,
    examine=_examine_norm,
    forbids=LAYER_NORM,
    mistakes=(
        Mistake(_WHOSE, "axis=-1", "axis=1"),
        Mistake(_WHOSE, "* centred).mean(axis=-1", "* centred).mean(axis=1"),
        Mistake(_WHOSE, "x - x.mean(axis=-1", "x - x.mean(axis=1"),
        Mistake("mean and variance are over the channels, the last axis", "axis=-1", "axis=0"),
        Mistake("the root is missing: divide by the root of the variance", ".sqrt()", ""),
        Mistake("the ε is missing: self.eps is added to the variance", " + self.eps", ""),
        Mistake("the mean is not subtracted", "return centred", "return x"),
        Mistake("the gain is missing: times self.weight", " * self.weight", ""),
        Mistake("the bias is missing: plus self.bias", " + self.bias", ""),
    ),
)
def norm_forward(self, x):
    """Apply LayerNorm: (B, T, C) -> (B, T, C), each position on its own."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + self.eps).sqrt() * self.weight + self.bias


def _right_rms_backward(x, grad):
    x = Tensor(x, requires_grad=True)
    (x / ((x * x).mean(axis=-1, keepdims=True) + 1e-5).sqrt()).backward(grad)
    return x.grad


@exercise(
    "07.4",
    "RMSNorm backward",
    minutes=20,
    difficulty="harder",
    hints=(
        "Directly: x is multiplied by s. And through the length: when x changes, s changes, too.",
        "LayerNorm's dx is s · (g - mean(g) - n · mean(g · n)). Which of the terms came from the mean?",
        "dx = s · (g - n · mean(g · n)), the mean over the last axis with keepdims=True. There is no gain here, so g is"
        " `grad` itself.",
    ),
    next_thought="What does a `grad` in the direction of n itself give? Why must it be (nearly) 0?",
    cases=lambda: [
        arrays(0, (3, 4), (3, 4)),
        arrays(1, (2, 3, 5), (2, 3, 5)),
        (np.array([1e-3, -2e-3, 3e-3]), np.array([0.5, 1.0, -1.0])),
        arrays(2, (2, 3), (2, 3), dtype="float32"),
    ],
    more=draws("...c ...c", low=3),
    right=_right_rms_backward,
    forbids=BACKWARD,
    mistakes=(
        Mistake(
            "the length is treated as a constant: it changes with x, too",
            "(grad - n * (grad * n).mean(axis=-1, keepdims=True))",
            "grad",
        ),
        Mistake(
            "that is LayerNorm's: without a mean in the forward there is no mean(g) in the backward",
            "(grad - n",
            "(grad - grad.mean(axis=-1, keepdims=True) - n",
        ),
        Mistake(
            "that is LayerNorm's: RMSNorm takes no mean off, neither here nor there",
            "s = 1 /",
            "x, grad = x - x.mean(axis=-1, keepdims=True), grad - grad.mean(axis=-1, keepdims=True)\n    s = 1 /",
        ),
        Mistake("the factor s is missing: s = 1 / √(mean(x²) + ε)", "return s * (", "return ("),
        Mistake("this is a sum instead of the mean: mean(g · n)", "(grad * n).mean(", "(grad * n).sum("),
        Mistake("the n before mean(g · n) is missing: each element gets its own share", "n * (grad * n)", "(grad * n)"),
        Mistake("`x` is used where its normalised form n belongs: n = x · s", "n = x * s", "n = x"),
    ),
)
def rms_norm_backward(x, grad):
    """Return the gradient of x, given that of x / √(mean(x²) + 1e-5) over the last axis: an array of the shape of x."""
    s = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    n = x * s
    return s * (grad - n * (grad * n).mean(axis=-1, keepdims=True))


which_learns = question(
    "07.5",
    "Twelve layers without warm-up",
    minutes=6,
    difficulty="medium",
    hints=(
        "Where is the LayerNorm on the path of the residual stream, and where is that path free?",
        "A warm-up makes the first steps small, while the layers know nothing yet.",
    ),
    next_thought="At a rate of 0.007 all three learned. What does “needs warm-up” mean, then?",
    value=[False, True, True],
    answer="[False, True, True]: post-norm needs the warm-up here; the free path of pre-norm works without it.",
    mistakes=(
        Mistake(
            "post-norm without warm-up is the one that does not learn: every step shakes all layers above it",
            value=[True, True, True],
        ),
        Mistake(
            "a warm-up helps: with small first steps post-norm finds its way, too",
            value=[False, False, True],
        ),
        Mistake(
            "nothing blocks the residual path of pre-norm: it learns from the first step on",
            value=[False, True, False],
        ),
        Mistake(
            "a warm-up is what post-norm needs: it learns with one, and does not without",
            value=[True, False, True],
        ),
        *(
            Mistake("the other way round: which of the two leaves the path free?", value=[True, warm, False])
            for warm in (True, False)
        ),
    ),
)
