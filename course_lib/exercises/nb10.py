"""Exercises of notebook 10: choosing the next token."""

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise


def _right(logits, k):
    kept = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:k]  # slow and obvious
    return np.array([x if i in kept else -np.inf for i, x in enumerate(logits)], logits.dtype)


def _by_threshold(logits, k):
    return np.where(logits >= np.sort(logits)[-k], logits, -np.inf)


@exercise(
    "10.1",
    "The top-k filter",
    minutes=12,
    difficulty="middle",
    task="""
Keep the k largest logits where they are, and set all others to -∞, so that softmax gives them probability 0. Exactly k
stay: of equal ones the earlier. A k larger than V keeps all.
""",
    hints=(
        "You need the places of the k largest: np.argsort sorts places by value, smallest first.",
        "np.argsort(-logits, kind='stable') has the largest first, and of equal ones the earlier.",
        "Start from np.full_like(logits, -np.inf) and fill in the k places.",
    ),
    next_thought="What is top-k with k = 1? And what does top-k do when the model is sure, and when it is not?",
    cases=lambda: [
        (np.array([1.0, 4.0, 2.0, 3.0]), 2),
        (*arrays(0, (6,)), 1),
        (np.array([2.0, 5.0, 5.0, 5.0, 1.0]), 2),
        (np.array([3.0, 1.0, 2.0]), 3),
        (np.array([3.0, 1.0, 2.0]), 10),
        (*arrays(1, (5,), dtype="float32"), 3),
    ],
    right=_right,
    forbids=("next_probabilities", "topk"),
    mistakes=(
        Mistake("the k smallest were kept", lambda x, k: np.where(np.isinf(_right(-x, k)), -np.inf, x)),
        Mistake(
            "others are 0, which softmax still gives a share: -∞ is wanted",
            lambda x, k: np.where(np.isinf(_right(x, k)), 0, x),
        ),
        Mistake("the logits moved: each must stay in its place", lambda x, k: np.sort(x)[::-1][:k]),
        Mistake(
            "equal logits at the limit are all kept, so more than k stay",
            lambda x, k: _by_threshold(x, min(k, len(x))),
        ),
        Mistake(
            "of equal logits the later was kept: the earlier stays. A stable sort of -logits does it",
            when=lambda got, want, case: (
                (np.isfinite(got).sum() == np.isfinite(want).sum()) and np.array_equal(np.sort(got), np.sort(want))
            ),
        ),
        Mistake("one too few: > the k-th largest also drops that one", lambda x, k: _right(x, k - 1)),
        Mistake("one too many", lambda x, k: _right(x, k + 1)),
        Mistake(
            "`k` may be larger than V: use min(k, V)",
            when=lambda got, want, case: isinstance(got, Exception) and case[1] > len(case[0]),
        ),
    ),
)
def top_k_filter(logits, k):
    """The k largest logits in their places, -∞ elsewhere: (V,) → (V,)."""
    kept = np.argsort(-logits, kind="stable")[:k]  # places of the k largest
    filtered = np.full_like(logits, -np.inf)
    filtered[kept] = logits[kept]
    return filtered
