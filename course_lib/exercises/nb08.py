"""Exercises of notebook 08: activations and the MLP."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from .exercise import BACKWARD, Mistake, arrays, drawn, draws, exercise, question


def _backward_of(function):
    def right(x, grad):
        x = Tensor(x, requires_grad=True)
        function(x).backward(grad)
        return x.grad

    return right


@exercise(
    "08.1",
    "ReLU backward",
    minutes=5,
    difficulty="easy",
    hints=(
        "Where x is negative the result does not move, whatever x does.",
        "Where x is positive the gradient passes through unchanged.",
    ),
    next_thought="A unit that is negative for every input gets gradient 0 forever. How could that happen?",
    cases=lambda: (
        [arrays(0, (3, 4), (3, 4)), (np.array([-1.0, 0.0, 2.0]), np.array([5.0, 5.0, -5.0]))]
        + [arrays(1, (2, 3), (2, 3), dtype="float32"), (np.array([1e-30, -1e-30, 0.0, 1e30]), np.full(4, 5.0))]
    ),
    more=draws("...c ...c", scales=(1, 1e-6, 1e3)),
    right=_backward_of(F.relu),
    forbids=("relu", *BACKWARD),
    mistakes=(
        Mistake(
            "this is ReLU of the gradient: the sign of x decides, not that of grad",
            "grad * (x > 0)",
            "np.maximum(grad, 0)",
        ),
        Mistake("this is ReLU itself, not its gradient", "grad * (x > 0)", "np.maximum(x, 0)"),
        Mistake(
            "this is the slope without grad: multiply by the incoming gradient",
            "grad * (x > 0)",
            "(x > 0).astype(x.dtype)",
        ),
        Mistake("the gradient passes where x < 0: it should pass where x > 0", "x > 0", "x < 0"),
        Mistake("at x = 0 the gradient is 0", "x > 0", "x >= 0"),
        Mistake("this is `grad` times relu(x): the slope is 1 or 0", "(x > 0)", "np.maximum(x, 0)"),
    ),
)
def relu_backward(x, grad):
    """Return the gradient of x, given that of max(x, 0): an array of the shape of x."""
    return grad * (x > 0)


@exercise(
    "08.2",
    "GELU backward",
    minutes=20,
    difficulty="harder",
    hints=(
        "It is a product of two functions of x: the product rule gives two terms.",
        "The derivative of tanh(u) with respect to u is 1 - tanh(u)²; with respect to x it is that times du/dx.",
        "du/dx = √(2/π) · (1 + 3 · 0.044715 x²).",
    ),
    next_thought="Where is this slope negative, and where is it above 1? ReLU's never is.",
    cases=lambda: (
        [arrays(0, (3, 4), (3, 4)), (np.linspace(-4, 4, 9), np.ones(9))] + [arrays(1, (2, 3), (2, 3), dtype="float32")]
    ),
    more=draws("...c ...c", scales=(1, 10, 3)),
    right=_backward_of(F.ACTIVATIONS["gelu"]),
    forbids=("*gelu*", *BACKWARD),
    mistakes=(
        Mistake(
            "the second term of the product rule is missing: tanh(u) moves with x, too",
            " + 0.5 * x * (1 - tanh**2) * inner",
            "",
        ),
        Mistake("the first term of the product rule is missing: 1/2 (1 + tanh(u))", "0.5 * (1 + tanh) + ", ""),
        Mistake("this is the slope without grad: multiply by the incoming gradient", "grad * (", "("),
        Mistake("the slope du/dx is missing: the chain rule continues inside tanh", " * inner)", ")"),
        Mistake("the slope of x³ is 3x²: the 3 is missing", "1 + 3 * cubic", "1 + cubic"),
        Mistake("the slope of tanh is 1 - tanh², not 1 - tanh", "1 - tanh**2", "1 - tanh"),
    ),
)
def gelu_backward(x, grad):
    """Return the gradient of x, given that of GELU in its tanh form: an array of the shape of x."""
    slope, cubic = math.sqrt(2 / math.pi), 0.044715
    tanh = np.tanh(slope * (x + cubic * x**3))
    inner = slope * (1 + 3 * cubic * x**2)  # du/dx
    return grad * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * inner)


def _drawn_mlps(rng):
    """Return inputs and weights of MLPs whose hidden numbers are near 1, tiny or large; the results are near 1."""
    cases = []
    for turn, size in enumerate((1, 1e-6, 1, 1e3, 1e-3, 1)):
        x, b_out = drawn(rng, "...c c", turn)
        C = len(b_out)
        W_in, b_in, W_out = (rng.standard_normal(shape) for shape in ((C, 4 * C), 4 * C, (4 * C, C)))
        cases.append((x, *(w.astype(x.dtype) for w in (W_in * size, b_in * size, W_out / size)), b_out))
    return cases


def _right_mlp(x, W_in, b_in, W_out, b_out):
    x, W_in, b_in, W_out, b_out = map(Tensor, (x, W_in, b_in, W_out, b_out))
    return F.linear(F.relu(F.linear(x, W_in, b_in)), W_out, b_out).data


@exercise(
    "08.3",
    "MLP forward",
    minutes=8,
    difficulty="easy",
    hints=(
        "x @ W_in works on the last axis, whatever comes before it.",
        "ReLU is np.maximum(..., 0), and it goes between the two matrices.",
    ),
    next_thought="Without ReLU the two layers would be one. How wide would that one be?",
    more=_drawn_mlps,
    right=_right_mlp,
    forbids=("MLP", "FeedForward"),
    mistakes=(
        Mistake(
            "the ReLU is missing: two linear layers in a row would be one",
            "np.maximum(x @ W_in + b_in, 0)",
            "x @ W_in + b_in",
        ),
        Mistake(
            "there is a second ReLU at the end: the result may be negative",
            "return inner @ W_out + b_out",
            "return np.maximum(inner @ W_out + b_out, 0)",
        ),
        Mistake(
            "the ReLU comes at the end: it belongs between the two matrices",
            "np.maximum(x @ W_in + b_in, 0)  # (..., C) -> (..., 4C)\n    return inner @ W_out + b_out",
            "x @ W_in + b_in\n    return np.maximum(inner @ W_out + b_out, 0)",
        ),
        Mistake(
            "the ReLU comes first: the wide layer comes before it",
            "np.maximum(x @ W_in + b_in, 0)",
            "np.maximum(x, 0) @ W_in + b_in",
        ),
        Mistake("`b_in` is added before the ReLU", "x @ W_in + b_in, 0)", "x @ W_in, 0) + b_in"),
        Mistake("the residual path is added by the block, not by the MLP", "return inner", "return x + inner"),
    ),
)
def mlp(x, W_in, b_in, W_out, b_out):
    """Return relu(x W_in + b_in) W_out + b_out: (..., C) -> (..., 4C) -> (..., C)."""
    inner = np.maximum(x @ W_in + b_in, 0)  # (..., C) -> (..., 4C)
    return inner @ W_out + b_out


detector = question(
    "08.4",
    "One detector",
    minutes=5,
    difficulty="easy",
    hints=(
        "The dot product of pattern and word, plus the bias: for the first word 3 - 1 + 0 - 1.",
        "What is below zero becomes zero.",
    ),
    next_thought="Which words activate this unit? What does the minus in its pattern do, and what does the bias do?",
    value=[1, 0, 0],
    answer="[1, 0, 0]: the sums are 1, -3 and 0, and ReLU turns the -3 into 0.",
    mistakes=(
        Mistake("what is below zero becomes zero: the ReLU is missing", value=[1, -3, 0]),
        Mistake("the bias is missing: subtract 1 before the ReLU", value=[2, 0, 1]),
        Mistake("the bias is -1: subtract 1, do not add it", value=[3, 0, 2]),
        Mistake("the minus of the pattern is missing: the second number is subtracted", value=[3, 3, 2]),
        Mistake("the bias comes before the ReLU: 2 - 1 = 1, and -2 - 1 becomes 0", value=[1, -1, 0]),
    ),
)
