"""Exercise of notebook 13: the gradients of several processes, averaged."""

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise


def _weighted(weights):
    """Sum of the gradients with these weights, an array made of the tokens: what the right one does, or another."""
    return lambda gradients, tokens: np.tensordot(weights(np.array(tokens, float)), np.stack(gradients), axes=1).astype(
        gradients[0].dtype
    )


@exercise(
    "13.3",
    "Average the gradients of unequal parts",
    minutes=10,
    difficulty="middle",
    task="""
Several processes train together, and their parts of the batch are not equally large. Each has the gradient of its own
*mean* loss. `gradients` is a list of arrays of one shape, `tokens` a list of whole numbers: how many tokens each part
had. Return the gradient of the mean over *all* tokens, as a new array of the same dtype.
""",
    hints=(
        "Two parts, of 3 and of 1 tokens: the first counts three times as much as the second.",
        "The weight of a part is its share of all tokens: n / total. The weights sum to 1.",
        "Add up n / total * gradient over all parts, with zip(gradients, tokens).",
    ),
    next_thought="A mean of means counts wrong here as in exercise 09.8. When is it right?",
    cases=lambda: [
        (list(arrays(0, (2, 3), (2, 3))), [3, 1]),
        (list(arrays(1, (4,), (4,), (4,))), [5, 0, 2]),
        (list(arrays(2, (3, 2), (3, 2), dtype="float32")), [24, 8]),
        (list(arrays(3, (2,), (2,))), [4, 4]),
        (list(arrays(4, (2, 2))), [7]),
    ],
    right=_weighted(lambda n: n / n.sum()),
    forbids=("average",),
    mistakes=(
        Mistake(
            "a plain mean: the small part counts as much as the large one. Weigh each by its tokens",
            _weighted(lambda n: np.ones_like(n) / len(n)),
        ),
        Mistake("the weights are not normalised: divide by the number of all tokens", _weighted(lambda n: n)),
        Mistake(
            "divided by the number of processes: divide by the number of all tokens", _weighted(lambda n: n / len(n))
        ),
        Mistake("a plain sum: the weights should sum to 1", _weighted(np.ones_like)),
        Mistake(
            "each gradient belongs to a mean already: times its tokens first, then divide by all",
            _weighted(lambda n: np.ones_like(n) / n.sum()),
        ),
        Mistake(
            "the weights are turned over: a part with *more* tokens counts more",
            _weighted(lambda n: (1 / n) / sum(1 / n)),
        ),
        Mistake(
            "integer division makes 0 of each share: `//` cuts off what is behind the point. Use `/`",
            _weighted(lambda n: n // n.sum()),
        ),
        Mistake("only one part is left: add up all of them", _weighted(lambda n: (n / n.sum()) * _last(n))),
        Mistake(
            "one number came of everything: add up the parts, not the numbers in them",
            lambda gradients, tokens: np.float64(_weighted(lambda n: n / n.sum())(gradients, tokens).sum()),
        ),
    ),
)
def mean_gradient(gradients, tokens):
    """The gradient of the mean over all tokens: arrays of one shape → an array of this shape."""
    total = sum(tokens)
    return sum(n / total * gradient for gradient, n in zip(gradients, tokens))


def _last(n):
    return np.arange(len(n)) == len(n) - 1
