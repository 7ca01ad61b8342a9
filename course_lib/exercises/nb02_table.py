"""Exercises of notebook 02: gradients of a table and of a mean, and a number that is used twice."""

import numpy as np

from ..numpy_track import Tensor, embedding
from .cases import arrays
from .exercise import Mistake, exercise, question


def _right_table(ids, grad, V):
    table = Tensor(np.zeros((V, grad.shape[-1]), grad.dtype), requires_grad=True)
    embedding(table, ids).backward(grad)
    return table.grad


def _counted(ids, V):
    return np.bincount(ids.ravel(), minlength=V)[:, None]


def _written_once(ids, grad, V):
    full = np.zeros((V, grad.shape[-1]), grad.dtype)
    full[ids] += grad
    return full


@exercise(
    "02.4",
    "The backward of a table",
    minutes=12,
    difficulty="middle",
    task="""
An embedding took the rows `ids` out of a table with V rows. Given the gradient `grad` of what came out, of shape
(..., C), write the gradient of the table (V, C). An id may stand there several times, and some not at all.
""",
    hints=(
        "Start from zeros (V, C), of the dtype of `grad`. A row that was not used keeps gradient 0.",
        "A row that was used three times gets the sum of three gradients.",
        "full[ids] += grad writes a repeated id once. np.add.at(full, ids, grad) adds each time.",
    ),
    next_thought="Why does the loss still fall when a repeated id is written once? Who learns too slowly then?",
    cases=lambda: [
        (np.array([1, 1, 0, 1]), *arrays(0, (4, 3)), 5),
        (np.array([[2, 0], [2, 2]]), *arrays(1, (2, 2, 3)), 3),
        (np.array([3, 2, 3]), *arrays(2, (3, 2), dtype="float32"), 4),
    ],
    right=_right_table,
    forbids=("embedding", "Embedding", "backward", "autograd"),
    mistakes=(
        Mistake("a repeated id is written once: the gradients of all its places add up", _written_once),
        Mistake(
            "the mean over the places of an id: they add up",
            lambda ids, grad, V: _right_table(ids, grad, V) / np.maximum(_counted(ids, V), 1),
        ),
        Mistake(
            "rows that nobody used are missing: the gradient has the shape of the table, V rows",
            lambda ids, grad, V: _right_table(ids, grad, V)[: ids.max() + 1],
        ),
        Mistake(
            "this only counts how often each id stands there: add up its gradients",
            lambda ids, grad, V: np.repeat(_counted(ids, V), grad.shape[-1], 1).astype(grad.dtype),
        ),
        Mistake("these are the rows of `grad` that belong to `ids`, not a table", lambda ids, grad, V: grad[ids]),
    ),
)
def embedding_backward(ids, grad, V):
    """The gradient of a table (V, C) of which the rows ids (...) were taken, given grad (..., C)."""
    full = np.zeros((V, grad.shape[-1]), grad.dtype)
    np.add.at(full, ids, grad)  # a repeated id adds each time
    return full


def _right_mean(x, grad):
    x = Tensor(x, requires_grad=True)
    x.mean(axis=-1).backward(grad)
    return x.grad


@exercise(
    "02.5",
    "The backward of a mean",
    minutes=8,
    difficulty="easy",
    task="""
Somebody took the mean of `x` (..., n) over its last axis. Given the gradient `grad` (...) of the result, write the
gradient of `x`.
""",
    hints=(
        "If one of n numbers grows by 1, their mean grows by 1/n.",
        "All n numbers of a row get the same: the gradient of the row, divided by n. The result has the shape of `x`.",
        "grad[..., None] has an axis at the end; np.ones_like(x) * that repeats it n times.",
    ),
    next_thought="What is the gradient of x in x - mean(x)? LayerNorm needs it.",
    cases=lambda: [
        arrays(0, (3, 3), (3,)),
        arrays(1, (2, 3, 4), (2, 3)),
        arrays(2, (2, 5), (2,), dtype="float32"),
    ],
    right=_right_mean,
    forbids=("backward", "autograd"),
    mistakes=(
        Mistake("not divided by n: a mean hands each number 1/n", lambda x, grad: _right_mean(x, grad) * x.shape[-1]),
        Mistake(
            "divided by all numbers of `x`: the mean of a row is over its n numbers",
            lambda x, grad: _right_mean(x, grad) * x.shape[-1] / x.size,
        ),
        Mistake(
            "one gradient a row: each of its n numbers gets it, so the result has the shape of `x`",
            lambda x, grad: grad[..., None] / x.shape[-1],
        ),
        Mistake(
            "the gradients lie along the wrong axis: one for each row, grad[..., None]",
            lambda x, grad: np.ones_like(x) * grad / x.shape[-1],
        ),
        Mistake(
            "the values of `x` play no part in the slope of a mean", lambda x, grad: x * grad[..., None] / x.shape[-1]
        ),
    ),
)
def mean_backward(x, grad):
    """The gradient of x (..., n), given that of its mean over the last axis, grad (...): an array of the shape of x."""
    return np.ones_like(x) * grad[..., None] / x.shape[-1]


same_number_twice = question(
    "02.6",
    "One number, used twice",
    minutes=4,
    difficulty="easy",
    task="""
Before you run it: what is the gradient of x at x = 3 in `x - x`, in `x / x` and in `x * x`? Give a list of three
numbers.
""",
    hints=(
        "Each use of x sends a gradient back, and they add up.",
        "x - x is 0 and x / x is 1, whatever x is: how does a constant move?",
    ),
    next_thought="Where in a GPT is one number used many times? (Think of the token table, and of shared weights.)",
    value=[0, 0, 6],
    answer="[0, 0, 6]: +1 and -1, then +1/3 and -1/3, then 3 and 3. The gradients of all uses add up.",
    mistakes=(
        Mistake(
            "in x - x both uses count: +1 from the first and -1 from the second",
            when=lambda got, want, case: abs(got[0]) == 1,
        ),
        Mistake(
            "in x / x both uses count: it is always 1 and does not move; 1/3 and -3/9 add up to 0",
            when=lambda got, want, case: got[1] != 0 and got[1] != 1,
        ),
        Mistake("in x * x both uses count: 3 from each", when=lambda got, want, case: got[2] == 3),
        Mistake("these are the values; the gradient says how they move", [0, 1, 9]),
    ),
)
