"""Exercises of notebook 02: gradients by hand."""

from ..numpy_track import Tensor
from .cases import arrays
from .exercise import Mistake, exercise


def _right(a, b, grad):
    a, b = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    (a @ b).backward(grad)
    return a.grad, b.grad


@exercise(
    "02.1",
    "The backward of a matrix product",
    minutes=15,
    difficulty="middle",
    task="""
Somebody computed `a @ b` and got the gradient `grad` of the result. Send it on: write the gradients of `a` and of `b`.
`a` may be a batch of matrices; `b` is one matrix, used for all of them.
""",
    hints=(
        "The gradient of `a` has the shape of `a`. Which product of `grad` (..., n, m) with `b` (k, m) has that shape?",
        "For two matrices: by_a = grad bᵀ and by_b = aᵀ grad.",
        "`b` is used once for each matrix of the batch, so its gradients add up: sum over the batch, or put all rows of"
        " the batch below each other with reshape(-1, k) first.",
    ),
    next_thought="Why does each of the two gradients need the *other* operand? What must the forward pass keep for it?",
    cases=lambda: (
        [arrays(0, (3, 3), (3, 3), (3, 3)), arrays(1, (2, 4), (4, 3), (2, 3)), arrays(2, (2, 5, 4), (4, 3), (2, 5, 3))]
        + [arrays(3, (2, 4), (4, 3), (2, 3), dtype="float32")]
    ),
    right=_right,
    forbids=("backward", "autograd"),
    mistakes=(
        Mistake(
            "the two gradients are in the wrong order: first that of `a`, then that of `b`",
            lambda a, b, grad: _right(a, b, grad)[::-1],
        ),
        Mistake(
            "`b` must be transposed: by_a[i, j] adds grad[i, :] times row j of `b`",
            lambda a, b, grad: (grad @ b, _right(a, b, grad)[1]),
        ),
        Mistake(
            "`a` must be transposed: by_b[i, j] adds column i of `a` times column j of `grad`",
            lambda a, b, grad: (_right(a, b, grad)[0], a @ grad),
        ),
        Mistake(
            "the order of the factors: by_b is aᵀ grad, and not grad aᵀ",
            lambda a, b, grad: (_right(a, b, grad)[0], grad @ a.swapaxes(-1, -2)),
        ),
        Mistake(
            "`b` is used once for every matrix of the batch, so its gradients must be added up over the batch",
            lambda a, b, grad: (grad @ b.T, a.swapaxes(-1, -2) @ grad),
        ),
        Mistake(
            "the gradients of the batch add up; this is their mean",
            lambda a, b, grad: (grad @ b.T, (a.swapaxes(-1, -2) @ grad).mean(axis=0)),
        ),
    ),
)
def matmul_backward(a, b, grad):
    """Gradients of a (..., n, k) and b (k, m), given that of a @ b (..., n, m): a pair of arrays."""
    by_a = grad @ b.T  # (..., n, m) @ (m, k) → (..., n, k)
    rows = a.reshape(-1, a.shape[-1])  # every row of the batch: (..., n, k) → (rows, k)
    by_b = rows.T @ grad.reshape(-1, grad.shape[-1])  # (k, rows) @ (rows, m) → (k, m)
    return by_a, by_b
