"""The lowest loss that a text allows, by counting."""

from collections import Counter

import numpy as np

from .windows import windows


def loss_floor(ids, context_length):
    """Return the lowest mean loss, in nats per token, of any model that sees only the past inside its window.

    All N − T windows of ``ids`` (N,) are equally likely; T is ``context_length``. What follows the first t tokens of a
    window is ambiguous where windows that begin alike continue differently; the best a model can do is to predict how
    often each continuation occurs. The floor is the mean over all windows and positions of
    −ln(count of the beginning with its next token / count of the beginning).

    Raises ValueError for fewer than T + 1 ids.

    >>> round(loss_floor(np.array([0, 1, 0, 2, 0, 1]), context_length=1), 4)  # after 0: 1, 2, 1; after 1 and 2 always 0
    0.3819
    """
    x, y = windows(ids, context_length)
    total = 0.0
    for t in range(1, context_length + 1):
        beginnings = [row.tobytes() for row in x[:, :t]]
        known, seen = Counter(beginnings), Counter(zip(beginnings, y[:, t - 1].tolist()))
        total -= sum(count * np.log(count / known[beginning]) for (beginning, _), count in seen.items())
    return float(total / x.size)
