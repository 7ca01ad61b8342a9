"""Exercises of notebook 02: gradients through broadcasting."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import tensor as library
from .cases import arrays
from .exercise import Mistake, exercise


def _summed(grad, shape, how=np.sum, **keywords):
    """``how`` over the axes along which an array of this shape was repeated."""
    front = grad.ndim - len(shape)
    repeated = tuple(i for i in range(grad.ndim) if i < front or shape[i - front] == 1)
    return how(grad, axis=repeated, **keywords)


@exercise(
    "02.2",
    "Undo broadcasting",
    minutes=15,
    difficulty="harder",
    task="""
An array of `shape` was broadcast to the larger shape of `grad`. So each of its numbers was used several times, and the
gradients of all uses add up: bring `grad` back to `shape`.
""",
    hints=(
        "Broadcasting does two things: it puts new axes in front, and it repeats axes of size 1.",
        "First sum over the axes in front: there are grad.ndim - len(shape) of them.",
        "Then sum over each axis where shape has 1, with keepdims=True, so that the 1 stays.",
    ),
    next_thought="Why a sum, and not the mean? Think of x + x: two uses of one number.",
    cases=lambda: [
        (*arrays(0, (3, 4)), (4,)),
        (*arrays(1, (3, 3)), (3,)),
        (*arrays(2, (2, 3, 4)), (3, 1)),
        (*arrays(3, (3, 4)), (3, 1)),
        (*arrays(4, (2, 3)), (2, 3)),
        (*arrays(5, (2, 3), dtype="float32"), (1, 3)),
    ],
    right=library.unbroadcast,
    forbids=("unbroadcast", "sum_to_size"),
    mistakes=(
        Mistake(
            "the mean was taken: the gradients of all uses add up",
            lambda grad, shape: _summed(grad, shape, np.mean).reshape(shape),
        ),
        Mistake(
            "one use only: the gradients of all uses add up",
            lambda grad, shape: _summed(
                grad, shape, lambda g, axis: g[tuple(0 if i in axis else slice(None) for i in range(g.ndim))]
            ).reshape(shape),
        ),
        Mistake("nothing was summed: the result must have the shape `shape`", lambda grad, shape: grad),
        Mistake("the axis of size 1 is lost: keepdims=True", _summed),
        Mistake(
            "summed over the wrong axis: new axes are put in *front*",
            lambda grad, shape: grad.sum(axis=-1),
        ),
        Mistake(
            "the axes in front are gone, and those of size 1 are still repeated: sum over these, too",
            lambda grad, shape: grad.sum(axis=tuple(range(grad.ndim - len(shape)))),
        ),
    ),
)
def unbroadcast(grad, shape):
    """Sum grad over every axis along which an array of this shape was repeated: an array of that shape."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))  # axes that were put in front
    repeated = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return grad.sum(axis=repeated, keepdims=True)


def _right_product(a, b, grad):
    a, b = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (a * b).backward(grad)
    return a.grad, b.grad


@exercise(
    "02.3",
    "The backward of a product",
    minutes=10,
    difficulty="easy",
    task="""
Somebody computed `a * b`, number by number: `a` is (n, m), and `b` (m,) was used for each row. Given the gradient
`grad` of the result, write the gradients of `a` and of `b`.
""",
    hints=(
        "The slope of a · b by a is b. What arrives is multiplied by it.",
        "For b it is the other way round, and b was used once in each row: sum over the rows.",
    ),
    next_thought="What are the two gradients of a + b with the same shapes?",
    cases=lambda: [
        arrays(0, (3, 3), (3,), (3, 3)),
        arrays(1, (2, 4), (4,), (2, 4)),
        arrays(2, (3, 2), (2,), (3, 2), dtype="float32"),
    ],
    right=_right_product,
    forbids=("backward", "autograd"),
    mistakes=(
        Mistake("the two gradients are in the wrong order", lambda a, b, grad: _right_product(a, b, grad)[::-1]),
        Mistake(
            "each gradient needs the *other* factor: that of `a` is grad · b",
            lambda a, b, grad: (grad * a, (grad * b).sum(axis=0)),
        ),
        Mistake("`b` was used for every row: sum its gradients over the rows", lambda a, b, grad: (grad * b, grad * a)),
        Mistake(
            "the gradients of the rows add up; this is their mean",
            lambda a, b, grad: (grad * b, (grad * a).mean(axis=0)),
        ),
        Mistake(
            "summed over the columns: `b` was repeated along the rows, axis 0",
            lambda a, b, grad: (grad * b, (grad * a).sum(axis=1)),
        ),
        Mistake(
            "the slopes without grad: multiply by what arrives",
            lambda a, b, grad: _right_product(a, b, np.ones_like(grad)),
        ),
    ),
)
def multiply_backward(a, b, grad):
    """Gradients of a (n, m) and b (m,), given that of a * b (n, m): a pair of arrays."""
    return grad * b, (grad * a).sum(axis=0)
