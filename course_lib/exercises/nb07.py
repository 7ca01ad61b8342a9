"""Exercises of notebook 07: the gradients of the bends."""

import math

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from .cases import arrays
from .exercise import Mistake, exercise

_A, _B = math.sqrt(2 / math.pi), 0.044715


def _backward_of(function):
    def right(x, grad):
        x = Tensor(x, requires_grad=True)
        function(x).backward(grad)
        return x.grad

    return right


def _bent(x):
    return np.tanh(_A * (x + _B * x**3))


@exercise(
    "07.1",
    "ReLU backward",
    minutes=5,
    difficulty="easy",
    task="""
`relu(x)` is max(x, 0). Given the gradient `grad` of its result, write the gradient of `x`. At x = 0 it is 0.
""",
    hints=(
        "Where x is negative the result does not move, whatever x does.",
        "Where x is positive the gradient passes through unchanged.",
    ),
    next_thought="A unit that is negative for every input gets gradient 0 for ever. How could that happen?",
    cases=lambda: (
        [arrays(0, (3, 4), (3, 4)), (np.array([-1.0, 0.0, 2.0]), np.array([5.0, 5.0, -5.0]))]
        + [arrays(1, (2, 3), (2, 3), dtype="float32")]
    ),
    right=_backward_of(F.relu),
    forbids=("relu", "backward", "autograd"),
    mistakes=(
        Mistake(
            "this is ReLU of the gradient: the sign of x decides, not that of grad", lambda x, grad: np.maximum(grad, 0)
        ),
        Mistake("this is ReLU itself, not its gradient", lambda x, grad: np.maximum(x, 0)),
        Mistake("the slope without grad: multiply by what arrives", lambda x, grad: (x > 0).astype(x.dtype)),
        Mistake("the gradient passes where x < 0: it should be where x > 0", lambda x, grad: grad * (x < 0)),
        Mistake("at x = 0 the gradient is 0", lambda x, grad: grad * (x >= 0)),
        Mistake("this is `grad` times relu(x): the slope is 1 or 0", lambda x, grad: grad * np.maximum(x, 0)),
    ),
)
def relu_backward(x, grad):
    """The gradient of x, given that of max(x, 0): an array of the shape of x."""
    return grad * (x > 0)


@exercise(
    "07.2",
    "GELU backward",
    minutes=20,
    difficulty="harder",
    task="""
GPT-2's GELU is x/2 · (1 + tanh(u)) with u = √(2/π) · (x + 0.044715 x³). Given the gradient `grad` of its result, write
the gradient of `x`.
""",
    hints=(
        "It is a product of two functions of x: the product rule gives two terms.",
        "The slope of tanh(u) by u is 1 - tanh(u)²; by x it is that times du/dx.",
        "du/dx = √(2/π) · (1 + 3 · 0.044715 x²).",
    ),
    next_thought="Where is this slope negative, and where is it above 1? ReLU's never is.",
    cases=lambda: (
        [arrays(0, (3, 4), (3, 4)), (np.linspace(-4, 4, 9), np.ones(9))] + [arrays(1, (2, 3), (2, 3), dtype="float32")]
    ),
    right=_backward_of(F.gelu),
    forbids=("gelu", "_gelu_tanh", "backward", "autograd"),
    mistakes=(
        Mistake(
            "the second term of the product rule is missing: tanh(u) moves with x, too",
            lambda x, grad: grad * 0.5 * (1 + _bent(x)),
        ),
        Mistake(
            "the first term of the product rule is missing: 1/2 (1 + tanh(u))",
            lambda x, grad: grad * 0.5 * x * (1 - _bent(x) ** 2) * _A * (1 + 3 * _B * x**2),
        ),
        Mistake(
            "the slope without grad: multiply by what arrives", lambda x, grad: _backward_of(F.gelu)(x, np.ones_like(x))
        ),
        Mistake(
            "the slope du/dx is missing: the chain rule goes on inside tanh",
            lambda x, grad: grad * (0.5 * (1 + _bent(x)) + 0.5 * x * (1 - _bent(x) ** 2)),
        ),
        Mistake(
            "the slope of x³ is 3x²: the 3 is missing",
            lambda x, grad: grad * (0.5 * (1 + _bent(x)) + 0.5 * x * (1 - _bent(x) ** 2) * _A * (1 + _B * x**2)),
        ),
        Mistake(
            "the slope of tanh is 1 - tanh², not 1 - tanh",
            lambda x, grad: grad * (0.5 * (1 + _bent(x)) + 0.5 * x * (1 - _bent(x)) * _A * (1 + 3 * _B * x**2)),
        ),
    ),
)
def gelu_backward(x, grad):
    """The gradient of x, given that of GELU in its tanh form: an array of the shape of x."""
    slope, cubic = math.sqrt(2 / math.pi), 0.044715
    bent = np.tanh(slope * (x + cubic * x**3))
    inner = slope * (1 + 3 * cubic * x**2)  # du/dx
    return grad * (0.5 * (1 + bent) + 0.5 * x * (1 - bent**2) * inner)
