"""Exercises of notebook 02: gradients by hand."""

import numpy as np

from ..numpy_track import Tensor, embedding
from ..numpy_track import tensor as library
from .exercise import BACKWARD, Mistake, arrays, draws, exercise, question, varied


def _right_matmul(a, b, grad):
    a, b = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (a @ b).backward(grad)
    return a.grad, b.grad


_BY_B = "rows.T @ grad.reshape(-1, grad.shape[-1])"


@exercise(
    "02.1",
    "The backward of a matrix product",
    minutes=15,
    difficulty="medium",
    hints=(
        "The gradient of `a` has the shape of `a`. Which product of `grad` (..., n, m) with `b` (k, m) has that shape?",
        "For two matrices: by_a = grad bᵀ and by_b = aᵀ grad.",
        "`b` is used once for each matrix of the batch, so its gradients add up: sum over the batch, or stack all rows"
        " of the batch with reshape(-1, k) first.",
    ),
    next_thought="Why does each of the two gradients need the *other* operand? What must the forward pass keep for it?",
    more=draws("...nk km ...nm", scales=(1, 1e3)),
    right=_right_matmul,
    forbids=BACKWARD,
    mistakes=(
        Mistake(
            "the two gradients are in the wrong order: first that of `a`, then that of `b`",
            "return by_a, by_b",
            "return by_b, by_a",
        ),
        Mistake(
            "`b` must be transposed: by_a[i, j] is the dot product of grad[i, :] and row j of `b`",
            "grad @ b.T",
            "grad @ b",
        ),
        Mistake(
            "`a` must be transposed: by_b[i, j] is the dot product of column i of `a` and column j of `grad`",
            "rows.T @",
            "rows @",
        ),
        Mistake("the order of the factors: by_b is aᵀ grad, not grad aᵀ", _BY_B, "grad @ a.swapaxes(-1, -2)"),
        Mistake(
            "`b` is used once for every matrix of the batch, so its gradients must be added up over the batch",
            _BY_B,
            "a.swapaxes(-1, -2) @ grad",
        ),
    ),
)
def matmul_backward(a, b, grad):
    """Return the gradients of a (..., n, k) and b (k, m), given that of a @ b (..., n, m): a pair of arrays."""
    by_a = grad @ b.T  # (..., n, m) @ (m, k) -> (..., n, k)
    rows = a.reshape(-1, a.shape[-1])  # every row of the batch: (..., n, k) -> (rows, k)
    by_b = rows.T @ grad.reshape(-1, grad.shape[-1])  # (k, rows) @ (rows, m) -> (k, m)
    return by_a, by_b


def _drawn_shapes(rng):
    """Return gradients of up to four axes, with shapes that lack some at the front and have 1 in place of others."""
    cases = []
    for n in range(6):
        full = tuple(rng.integers(1, 4, int(rng.integers(1, 5))).tolist())
        shape = tuple(size if rng.random() < 0.5 else 1 for size in full[int(rng.integers(len(full) + 1)) :])
        cases.append((rng.standard_normal(full).astype("float32" if n % 2 else "float64"), shape))
    return cases


_FRONT = "grad.sum(axis=tuple(range(grad.ndim - len(shape))))"


@exercise(
    "02.2",
    "Undo broadcasting",
    minutes=15,
    difficulty="harder",
    hints=(
        "Broadcasting does two things: it adds new axes at the front, and it repeats axes of size 1.",
        "First sum over the new axes: there are grad.ndim - len(shape) of them.",
        "Then sum over each axis where shape has 1, with keepdims=True, so that the 1 stays.",
    ),
    next_thought="Why a sum, and not the mean? Think of x + x: two uses of one number.",
    cases=lambda: [
        (*arrays(0, (3, 4)), (4,)),
        (*arrays(1, (3, 3)), (3,)),
        (*arrays(2, (2, 3, 4)), (3, 1)),
        (*arrays(3, (3, 4)), (3, 1)),
        *varied(*arrays(4, (2, 3)), (2, 3), by=[(3,)]),
        (*arrays(5, (2, 3), dtype="float32"), (1, 3)),
        (*arrays(6, (2, 3, 4)), (4,)),
        (*arrays(7, (2, 3, 4)), (1, 3, 1)),
        (*arrays(8, (2, 3)), ()),
    ],
    more=_drawn_shapes,
    right=library.unbroadcast,
    forbids=("unbroadcast", "*sum_to_size*"),
    mistakes=(
        Mistake("this is the mean: the gradients of all uses add up", ".sum(", ".mean("),
        Mistake("one use only: the gradients of all uses add up", _FRONT, "grad[(0,) * (grad.ndim - len(shape))]"),
        Mistake("nothing was summed: the result must have the shape `shape`", _FRONT, "grad.copy()\n    return grad"),
        Mistake("the axes that were added at the front are still there: sum over these, too", _FRONT, "grad.copy()"),
        Mistake("the axis of size 1 is lost: keepdims=True", "axis=repeated, keepdims=True", "axis=repeated"),
        Mistake(
            "summed over the wrong axis: new axes are added at the *front*",
            "range(grad.ndim - len(shape))",
            "range(len(shape), grad.ndim)",
        ),
        Mistake(
            "the axes at the front are gone, but those of size 1 are still repeated: sum over these, too",
            "return grad.sum(axis=repeated, keepdims=True)",
            "return grad",
        ),
    ),
)
def unbroadcast(grad, shape):
    """Sum grad over every axis along which an array of this shape was repeated: an array of that shape."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))  # axes that were added at the front
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
    hints=(
        "The derivative of a · b with respect to a is b. Multiply the incoming gradient by it.",
        "For b it is the other way round, and b was used once in each row: sum over the rows.",
    ),
    next_thought="What are the two gradients of a + b with the same shapes?",
    more=draws("nm m nm", scales=(1, 1e3)),
    right=_right_product,
    forbids=BACKWARD,
    mistakes=(
        Mistake(
            "the two gradients are in the wrong order",
            "grad * b, (grad * a).sum(axis=0)",
            "(grad * a).sum(axis=0), grad * b",
        ),
        Mistake(
            "each gradient needs the *other* factor: that of `a` is grad · b",
            "grad * b, (grad * a)",
            "grad * a, (grad * b)",
        ),
        Mistake("`b` was used for every row: sum its gradients over the rows", "(grad * a).sum(axis=0)", "grad * a"),
        Mistake("the gradients of the rows add up; this is their mean", "sum(axis=0)", "mean(axis=0)"),
        Mistake("summed over the columns: `b` was repeated along the rows, axis 0", "sum(axis=0)", "sum(axis=1)"),
        Mistake(
            "these are the slopes without grad: multiply by the incoming gradient",
            "grad * b, (grad * a).sum(axis=0)",
            "np.ones_like(grad) * b, a.sum(axis=0)",
        ),
    ),
)
def multiply_backward(a, b, grad):
    """Return the gradients of a (n, m) and b (m,), given that of a * b (n, m): a pair of arrays."""
    return grad * b, (grad * a).sum(axis=0)


def _right_table(ids, grad, V):
    table = Tensor(np.zeros((V, grad.shape[-1]), grad.dtype), requires_grad=True)
    embedding(ids, table).backward(grad)
    return table.grad


@exercise(
    "02.4",
    "The backward of a table",
    minutes=12,
    difficulty="medium",
    hints=(
        "Start from zeros (V, C), of the dtype of `grad`. A row that was not used keeps gradient 0.",
        "A row that was used three times gets the sum of three gradients.",
        "full[ids] += grad writes a repeated id once. np.add.at(full, ids, grad) adds each time.",
    ),
    next_thought="Why does the loss still fall when a repeated id is written once? Which rows learn too slowly then?",
    cases=lambda: [
        (np.array([1, 1, 0, 1]), *arrays(0, (4, 3)), 5),
        (np.array([[2, 0], [2, 2]]), *arrays(1, (2, 2, 3)), 3),
        (np.array([3, 2, 3]), *arrays(2, (3, 2), dtype="float32"), 4),
        *varied(np.array([1, 0, 1]), *arrays(3, (3, 1)), 3, by=[6]),
    ],
    more=lambda rng: [
        (np.asarray(rng.integers(0, 4, shape)), rng.standard_normal((*shape, 3)).astype(dtype), int(rng.integers(4, 9)))
        for shape in ((9,), (), (2, 5), (2, 1), (1, 3, 2))
        for dtype in ("float64", "float32")
    ],
    right=_right_table,
    forbids=("embedding", "Embedding", "autograd", *BACKWARD),
    mistakes=(
        Mistake(
            "a repeated id is written once: the gradients of all its positions add up",
            "np.add.at(full, ids, grad)",
            "full[ids] += grad",
        ),
        Mistake(
            "this is the mean over the positions of an id: they add up",
            "return full",
            "return full / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:, None]",
        ),
        Mistake(
            "rows that were not used are missing: the gradient has the shape of the table, V rows",
            "np.zeros((V,",
            "np.zeros((ids.max() + 1,",
        ),
        Mistake("this only counts how often each id occurs: add up its gradients", "ids, grad)", "ids, 1)"),
        Mistake("these are the rows of `grad` that belong to `ids`, not a table", "return full", "return grad[ids]"),
    ),
)
def embedding_backward(ids, grad, V):
    """Return the gradient of a table (V, C) from which the rows ids (...) were taken, given grad (..., C)."""
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
    hints=(
        "If one of n numbers grows by 1, their mean grows by 1/n.",
        "All n elements of a row get the same: the gradient of the row, divided by n. The result has the shape of `x`.",
        "grad[..., None] has an axis at the end; np.ones_like(x) * that repeats it n times.",
    ),
    next_thought="What is the gradient of x in x - mean(x)? LayerNorm needs it.",
    more=draws("...n ...", scales=(1, 1e3)),
    right=_right_mean,
    forbids=BACKWARD,
    mistakes=(
        Mistake("not divided by n: a mean gives each element 1/n", " / x.shape[-1]", ""),
        Mistake(
            "divided by the number of elements of `x`: the mean of a row is over its n elements",
            "/ x.shape[-1]",
            "/ x.size",
        ),
        Mistake(
            "one gradient a row: each of its n elements gets it, so the result has the shape of `x`",
            "np.ones_like(x) * ",
            "",
        ),
        Mistake("the gradients lie along the wrong axis: one for each row, grad[..., None]", "grad[..., None]", "grad"),
        Mistake("the values of `x` play no part in the slope of a mean", "np.ones_like(x)", "x"),
    ),
)
def mean_backward(x, grad):
    """Return the gradient of x (..., n), given that of its mean over the last axis, grad (...): an array like x."""
    return np.ones_like(x) * grad[..., None] / x.shape[-1]


same_number_twice = question(
    "02.6",
    "One number, used twice",
    minutes=4,
    difficulty="easy",
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
            value=[1, None, None],
        ),
        Mistake(
            "in x / x both uses count: it is always 1 and does not move; 1/3 and -3/9 add up to 0",
            value=[None, 1 / 3, None],
        ),
        Mistake("in x / x the second use counts with a minus: 1/3 - 3/9", value=[None, 2 / 3, None]),
        Mistake(
            "the value of x / x is 1, whatever x is: it does not move, and its gradient is 0", value=[None, 1, None]
        ),
        Mistake("in x * x both uses count: 3 from each", value=[None, None, 3]),
        Mistake("these are the values; the gradient says how they move", value=[0, 1, 9]),
    ),
)
