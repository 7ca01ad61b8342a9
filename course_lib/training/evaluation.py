"""The loss over a whole part of the text."""

import numpy as np

IGNORED = -100  # what cross_entropy leaves out unless told otherwise


def evaluate(model, x, y, batch_size=64):
    """Mean loss in nats per token over all windows ``x`` (N, T) with targets ``y``, each token counted once.

    Every batch is weighted by its targets that count (those that are not -100), so a short last batch changes nothing
    and the result does not depend on ``batch_size``. The model's mode and every Generator are left as they were.
    Raises ValueError when no target counts, when x and y differ in shape, or for a batch_size below 1.
    """
    x, y = check_windows(x, y, batch_size)
    total, count = 0.0, int((y != IGNORED).sum())
    if count == 0:
        raise ValueError(f"nothing to evaluate: {len(x)} windows, and 0 targets that count")
    with model.evaluating():
        for start in range(0, len(x), batch_size):
            targets = y[start : start + batch_size]
            kept = int((targets != IGNORED).sum())
            if kept:
                total += model(x[start : start + batch_size], targets)[1].item() * kept
    return total / count


def check_windows(x, y, batch_size):
    """``x`` and ``y`` as arrays; ValueError unless they have one shape and ``batch_size`` is at least 1."""
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        raise ValueError(f"windows of shape {x.shape} do not go with targets of shape {y.shape}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    return x, y
