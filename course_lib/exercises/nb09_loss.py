"""Exercise of notebook 09: the gradient of the loss."""

import numpy as np

from ..numpy_track import Tensor, cross_entropy
from .cases import arrays
from .exercise import Mistake, exercise


def _right_gradient(logits, targets):
    logits = Tensor(logits, requires_grad=True)
    cross_entropy(logits, targets).backward()
    return logits.grad


def _onehot(logits, targets):
    return np.eye(logits.shape[-1], dtype=logits.dtype)[targets]


@exercise(
    "09.1",
    "The gradient of cross-entropy",
    minutes=12,
    difficulty="middle",
    task="""
The loss is the mean of -log softmax(logits)[target] over n rows. Write its gradient by the logits (n, V): in
words, what the model said minus what was right. And do not forget the mean.
""",
    hints=(
        "Softmax of each row first; take off the largest logit of the row, so that nothing overflows.",
        "It is (softmax - onehot) / n. onehot is 1 at the target of each row and 0 elsewhere: subtract 1 there.",
        "probabilities[np.arange(n), targets] -= 1 reaches one number in each row. Divide by n at the end.",
    ),
    next_thought="Each row of this gradient sums to 0. What does that say about adding the same number to all logits?",
    cases=lambda: [
        (*arrays(0, (3, 5)), np.array([1, 0, 4])),
        (*arrays(1, (4, 4)), np.array([2, 2, 0, 3])),
        (*arrays(2, (2, 3), dtype="float32"), np.array([0, 2])),
        (np.array([[1000.0, 0.0], [0.0, 1.0]]), np.array([1, 0])),
    ],
    right=_right_gradient,
    forbids=("cross_entropy", "softmax", "log_softmax", "logsumexp", "backward", "autograd"),
    mistakes=(
        Mistake("the loss is a mean, so the gradient is divided by n", lambda x, t: _right_gradient(x, t) * len(t)),
        Mistake("the sign: softmax - onehot, not onehot - softmax", lambda x, t: -_right_gradient(x, t)),
        Mistake(
            "the target is missing: subtract 1 at the target of each row",
            lambda x, t: _right_gradient(x, t) + _onehot(x, t) / len(t),
        ),
        Mistake(
            "divided by all n · V numbers; the mean is over the n rows",
            lambda x, t: _right_gradient(x, t) / x.shape[-1],
        ),
        Mistake(
            "`[:, targets] -= 1` reaches whole columns: one number in each row is `[np.arange(n), targets]`",
            lambda x, t: _right_gradient(x, t) + (_onehot(x, t) - np.isin(np.arange(x.shape[-1]), t)) / len(t),
        ),
        Mistake(
            "the probabilities of each row sum to 1: the sum of exp goes over the row, axis=-1",
            lambda x, t: (np.exp(x) / np.exp(x).sum() - _onehot(x, t)) / len(t),
            lambda got, want, case: np.isclose((got * len(got) + _onehot(*case)).sum(), 1),
        ),
        Mistake("the logits are not turned into probabilities", lambda x, t: (x - _onehot(x, t)) / len(t)),
        Mistake(
            "`exp` overflows: take off the largest logit of each row first",
            lambda x, t: (np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True) - _onehot(x, t)) / len(t),
        ),
    ),
)
def cross_entropy_gradient(logits, targets):
    """The gradient of the mean cross-entropy by the logits: (n, V), targets (n,) → (n, V)."""
    n = len(targets)
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    gradient = exps / exps.sum(axis=-1, keepdims=True)  # (n, V): softmax
    gradient[np.arange(n), targets] -= 1
    return gradient / n
