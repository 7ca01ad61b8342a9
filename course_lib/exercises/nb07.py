"""Exercises of notebook 07: normalisation, forward and backward."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import layer_norm as library_layer_norm
from . import mending
from .exercise import (
    BACKWARD,
    FLOAT_SIZE,
    LAYER_NORM,
    Mistake,
    a_float_size,
    arrays,
    drawn,
    draws,
    exercise,
    question,
    varied,
)


def _right_groups(x, groups, gain, bias, eps):
    def normed(piece):  # (..., C / groups)
        size = piece.shape[-1]
        one, zero = (Tensor(np.full(size, value, x.dtype)) for value in (1, 0))
        return library_layer_norm(Tensor(piece), (size,), one, zero, eps).data

    return np.concatenate([normed(piece) for piece in np.split(x, groups, axis=-1)], axis=-1) * gain + bias


def _in_groups(rng):
    """Return cases: x (..., C), groups, gain (C,), bias (C,), eps. In float32 ε hides what rounding leaves of 0."""
    cases = []
    for turn in range(6):
        x, gain, bias = drawn(rng, "...gs gs gs", turn, (30, 1)[turn % 2])
        eps = 10.0 ** rng.uniform(-3 if turn % 2 else -6, 0)
        cases.append((x.reshape(*x.shape[:-2], -1), len(gain), gain.ravel(), bias.ravel(), eps))
    return cases


def _case(seed, shape, groups, eps, dtype="float64", scale=1.0):
    x, gain, bias = arrays(seed, shape, shape[-1:], shape[-1:], dtype=dtype)
    return x * scale, groups, gain, bias, eps


_STATISTICS = """pieces.mean(axis=-1, keepdims=True)  # (..., groups, 1)
    variance = pieces.var(axis=-1, keepdims=True)"""
_CUT = "  # (..., C) -> (..., groups, C / groups)\n    mean = "
_INTERLEAVED = "the groups are interleaved: each should get adjacent numbers, so cut into (..., groups, C // groups)"
_NOT_JOINED = "the pieces are not yet put together again: reshape to x.shape"
_AXIS = "mean and variance are over another axis: the numbers of a piece are the last one of the cut, axis=-1"


def _over(axis):
    return _STATISTICS.replace("axis=-1", f"axis={axis}")


@exercise(
    "07.1",
    "A norm per group",
    minutes=15,
    difficulty="medium",
    hints=(
        "Which shape has the C numbers of each position as `groups` rows? (Think of the cut into heads, notebook 06.)",
        "In (..., groups, C // groups), mean and variance of a piece are over the last axis, with keepdims=True.",
        "pieces = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups). After the norm: back to x.shape, then gain"
        " and bias.",
    ),
    next_thought="With one number in each group, what is left of x? And with two?",
    cases=lambda: [
        _case(0, (2, 12), 3, 1e-5),
        _case(1, (2, 3, 8), 2, 1e-5),
        _case(2, (2, 6), 1, 0.5),
        _case(3, (2, 3, 6), 2, 1e-5, "float32"),
        *varied(*_case(4, (6,), 2, 1e-3), by=[0.7]),
        _case(4, (6,), 3, 1e-3),  # as before, but for the number of groups
        _case(5, (6,), 6, 1e-5),
        _case(6, (2, 6), 2, 1e-8, scale=1e-3),
        _case(7, (2, 6), 3, 1e-5, scale=1e4),
    ],
    more=_in_groups,
    right=_right_groups,
    forbids=(
        *LAYER_NORM,
        "*group_norm*",
        "GroupNorm",
        "*batch_norm*",
        "BatchNorm*",
        "*instance_norm*",
        "InstanceNorm*",
    ),
    mistakes=(
        Mistake(
            "that is LayerNorm, one group: first cut the C numbers of each position into `groups` pieces",
            "groups, x.shape[-1] // groups)",
            "1, x.shape[-1])",
        ),
        Mistake(_INTERLEAVED, "groups, x.shape[-1] // groups)", "x.shape[-1] // groups, groups).swapaxes(-1, -2)"),
        Mistake(
            _INTERLEAVED,
            f"groups, x.shape[-1] // groups){_CUT}{_STATISTICS}",
            f"x.shape[-1] // groups, groups){_CUT}{_over(-2)}",
        ),
        *(
            Mistake(
                "mean and variance are over all positions: each piece of each position is on its own, axis=-1",
                _STATISTICS,
                _over(axis),
            )
            for axis in (None, "(*range(pieces.ndim - 2), -1)")
        ),
        *(Mistake(_AXIS, _STATISTICS, _over(axis)) for axis in (-2, 0, 1, 2, 3)),
        Mistake(
            "the axes of the cut are swapped: the groups first, (..., groups, C // groups)",
            "groups, x.shape[-1] // groups)",
            "x.shape[-1] // groups, groups)",
        ),
        Mistake(
            "the variance is divided by the size of a piece minus 1; here it is by the size",
            "pieces.var(axis=-1,",
            "pieces.var(axis=-1, ddof=1,",
        ),
        *(
            Mistake(
                "the variance of a piece is divided by its own size, C // groups, not by C",
                "pieces.var(axis=-1, keepdims=True)",
                f"((pieces - mean) ** 2).sum(axis=-1, keepdims=True) / {by}",
            )
            for by in ("x.shape[-1]", "(x.shape[-1] - 1)")
        ),
        Mistake("the ε is missing: it is added to the variance, under the root", "variance + eps", "variance"),
        Mistake(
            "the ε belongs under the root, added to the variance",
            "np.sqrt(variance + eps)",
            "(np.sqrt(variance) + eps)",
        ),
        Mistake(
            "the ε is a fixed number in your function: use the argument `eps`", "variance + eps", "variance + 1e-5"
        ),
        Mistake("divided by the variance, not by its root", "np.sqrt(variance + eps)", "(variance + eps)"),
        Mistake(
            "mean and variance need keepdims=True: without it they lie down as a row",
            "axis=-1, keepdims=True",
            "axis=-1",
        ),
        Mistake(
            "gain and bias come too early: first the norm, then times gain plus bias",
            "pieces = x.reshape",
            "x, gain, bias = x * gain + bias, 1, 0\n    pieces = x.reshape",
        ),
        Mistake(
            "the bias comes last: times gain first, then plus bias",
            "n.reshape(x.shape) * gain + bias",
            "(n.reshape(x.shape) + bias) * gain",
        ),
        Mistake(_NOT_JOINED, "n.reshape(x.shape) * gain + bias", "n * gain + bias"),
        Mistake(
            _NOT_JOINED,
            "n.reshape(x.shape) * gain + bias",
            "n * gain.reshape(groups, -1) + bias.reshape(groups, -1)",
        ),
        Mistake(FLOAT_SIZE, when=a_float_size),
    ),
)
def group_layer_norm(x, groups, gain, bias, eps):
    """Normalise x (..., C) in `groups` pieces, each by itself, then · gain + bias, both (C,): (..., C)."""
    pieces = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)  # (..., C) -> (..., groups, C / groups)
    mean = pieces.mean(axis=-1, keepdims=True)  # (..., groups, 1)
    variance = pieces.var(axis=-1, keepdims=True)
    n = (pieces - mean) / np.sqrt(variance + eps)
    return n.reshape(x.shape) * gain + bias


def _right_norm_backward(x, gain, grad):
    leaves = [Tensor(a, requires_grad=True) for a in (x, gain, np.zeros_like(gain))]
    library_layer_norm(leaves[0], gain.shape, *leaves[1:], 1e-5).backward(grad)
    return tuple(leaf.grad for leaf in leaves)


def _in_halves(x, gain, grad):
    """Return the case; in float32 with x in steps of a half: what is left of a small variance would be rounding.

    So it is in rows of two numbers, where nearly all of dx cancels: none has fewer than three.
    """
    return (np.round(2 * x) / 2 if x.dtype == np.float32 else x), gain, grad


_N = "(x - x.mean(axis=-1, keepdims=True)) * s"
_MEANS = """g.mean(axis=-1, keepdims=True)
    by_variance = n * (g * n).mean(axis=-1, keepdims=True)"""
_VAR = "x.var(axis=-1, keepdims=True) + 1e-5)"
_ROWS = "tuple(range(x.ndim - 1))"
_SUMS = "(grad * n).sum(axis=rows), grad.sum(axis=rows)"
_EXCHANGED = "grad.sum(axis=rows), (grad * n).sum(axis=rows)"
_A_SUM = "this is a sum instead of the mean: mean(g), mean(g · n)"
_SIGN = "the sign: mean(g) and n · mean(g · n) are both taken off"
_EVERYTHING = "the means are over everything: each position has its own, axis=-1, keepdims=True"
_NOT_SUMMED = "gain and bias are shared by all positions: their gradients are sums over all axes but the last"
_OTHER_SUM = "the sums are over other axes: the gradients of gain and bias keep the last axis, and only that, (C,)"
_NORMED = "`x` is used where its normalised form n belongs: n = (x - μ) · s"
_TWICE = "gain and bias come after n: their gradients take `grad` itself, without the gain"


@exercise(
    "07.2",
    "LayerNorm backward, all three",
    minutes=20,
    difficulty="harder",
    hints=(
        "Write n = (x - μ) · s with s = 1 / √(σ² + ε), as the page does. The result is n · gain + bias: what arrives at"
        " n, at gain and at bias?",
        "At n arrives g = grad · gain. If μ and s were constants, the gradient of x would be s · g. Two terms are"
        " missing: one for μ, one for s.",
        "dx = s · (g - mean(g) - n · mean(g · n)), both means over the last axis. Every position uses gain and bias:"
        " their gradients, grad · n and grad, are summed over all axes but the last.",
    ),
    next_thought="Add up dx of one position: what comes out, and why must it? (Move all of x by the same number.)",
    more=lambda rng: [_in_halves(*drawn(rng, "...c c ...c", turn, low=3)) for turn in range(6)],
    right=_right_norm_backward,
    forbids=LAYER_NORM + BACKWARD,
    mistakes=(
        Mistake("mean and variance are treated as constants: x moves them, too", "(g - by_mean - by_variance)", "g"),
        Mistake("the term of the variance is missing: n · mean(g · n)", " - by_variance", ""),
        Mistake("the term of the mean is missing: mean(g)", " - by_mean", ""),
        Mistake("the n before mean(g · n) is missing: each element gets its own share", "n * (g * n)", "(g * n)"),
        Mistake("the factor s is missing: s = 1 / √(σ² + ε)", "return s * (", "return ("),
        Mistake(_A_SUM, _MEANS, _MEANS.replace("mean", "sum")),
        Mistake(_A_SUM, "(g * n).mean(", "(g * n).sum("),
        Mistake(_A_SUM, "g.mean(", "g.sum("),
        Mistake(_SIGN, "by_mean - by_variance)", "by_mean + by_variance)"),
        Mistake(_SIGN, "g - by_mean -", "g + by_mean -"),
        Mistake(_SIGN, "g - by_mean - by", "g + by_mean + by"),
        Mistake(_NORMED, _N, "x"),
        Mistake(_NORMED, _N, "x * s"),
        Mistake(_NORMED, _N, _N.removesuffix(" * s")),
        Mistake(_NORMED, "n * (g * n)", "x * (g * x)"),
        Mistake(_NORMED, "(g * n)", "(g * x)"),
        Mistake(_NORMED, "n * (g * n)", "x * (g * n)"),
        Mistake(_NORMED, "(grad * n)", "(grad * x)"),
        Mistake("`gain` is missing: g, the gradient of n, is grad · gain", "grad * gain", "grad"),
        Mistake(
            "`gain` comes too late: it belongs in g = grad · gain, before the means are taken",
            "s * (g - by_mean - by_variance)",
            "s * gain * (grad - grad.mean(axis=-1, keepdims=True) - n * (grad * n).mean(axis=-1, keepdims=True))",
        ),
        Mistake(_EVERYTHING, _MEANS, _MEANS.replace("axis=-1, keepdims=True", "")),
        Mistake(_EVERYTHING, "axis=-1, keepdims=True", ""),
        Mistake(_EVERYTHING, "(g * n).mean(axis=-1, keepdims=True)", "(g * n).mean()"),
        Mistake(_EVERYTHING, "g.mean(axis=-1, keepdims=True)", "g.mean()"),
        Mistake(_EVERYTHING, _VAR, "x.var() + 1e-5)"),
        Mistake(_NOT_SUMMED, _SUMS, "grad * n, grad"),
        Mistake(_NOT_SUMMED, "(grad * n).sum(axis=rows)", "grad * n"),
        Mistake(_NOT_SUMMED, "grad.sum(axis=rows)", "grad"),
        Mistake(_NOT_SUMMED, _SUMS, _SUMS.replace("sum", "mean")),
        *(Mistake(_OTHER_SUM, _ROWS, axis) for axis in ("-1", "0", "1", "None", "(0, 1)")),
        Mistake(_OTHER_SUM, _SUMS, "(grad * n).sum(axis=rows, keepdims=True), grad.sum(axis=rows, keepdims=True)"),
        Mistake(_TWICE, _SUMS, _SUMS.replace("grad", "g")),
        Mistake(_TWICE, "(grad * n).sum", "(g * n).sum"),
        Mistake(_TWICE, "grad.sum", "g.sum"),
        Mistake("the ε is missing: s = 1 / √(σ² + 1e-5)", " + 1e-5", ""),
        Mistake("the order is another: first the gradient of x, then of gain, then of bias", _SUMS, _EXCHANGED),
    ),
)
def layer_norm_backward(x, gain, grad):
    """Return the gradients of x (..., C), gain and bias (C,), given that of (x - μ) / √(σ² + 1e-5) · gain + bias."""
    s = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)  # (..., 1)
    n = (x - x.mean(axis=-1, keepdims=True)) * s
    g = grad * gain  # the gradient of n
    by_mean = g.mean(axis=-1, keepdims=True)
    by_variance = n * (g * n).mean(axis=-1, keepdims=True)
    rows = tuple(range(x.ndim - 1))  # all axes but the last: all positions share gain and bias
    return s * (g - by_mean - by_variance), (grad * n).sum(axis=rows), grad.sum(axis=rows)


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
        Mistake(_EVERYTHING, "(grad * n).mean(axis=-1, keepdims=True)", "(grad * n).mean()"),
        Mistake(_EVERYTHING, "(x * x).mean(axis=-1, keepdims=True)", "(x * x).mean()"),
        Mistake(_EVERYTHING, "axis=-1, keepdims=True", ""),
        Mistake("the sign: n · mean(g · n) is taken off", "(grad - n", "(grad + n"),
        Mistake(
            "the wrong one is kept: RMSNorm has no mean, so mean(g) goes and n · mean(g · n) stays",
            "n * (grad * n).mean(axis=-1, keepdims=True)",
            "grad.mean(axis=-1, keepdims=True)",
        ),
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
