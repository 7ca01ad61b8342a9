"""The loss on a whole part of the text."""

import numpy as np

from ..common.checks import IGNORED, check_whole
from ..common.probabilities import log_softmax


def evaluate(model, x, y, batch_size=64):
    """Return the mean loss in nats per token over all windows ``x`` (N, T) with targets ``y``, each token counted once.

    Every batch is weighted by its number of targets that count (are not -100), so the result does not depend on
    ``batch_size``. For an encoder–decoder, ``TeacherForcing``, x is a tuple (source (N, S), inputs (N, T)). The model's
    mode and every Generator are left as they were.
    Raises ValueError if no target counts, if x and y differ in shape, or for a batch_size below 1.
    """
    x, y = check_windows(x, y, batch_size)
    total, count = 0.0, int((y != IGNORED).sum())
    if count == 0:
        raise ValueError(f"nothing to evaluate: {len(y)} windows, and 0 targets that count")
    with model.evaluating():
        for start in range(0, len(y), batch_size):
            targets = y[start : start + batch_size]
            kept = int((targets != IGNORED).sum())
            if kept:
                total += model(_rows(x, start, batch_size), targets)[1].item() * kept
    return total / count


def check_windows(x, y, batch_size):
    """Return ``x`` and ``y`` as arrays; raise ValueError for different shapes or a ``batch_size`` below 1.

    ``x`` may be a tuple of (source (N, S), inputs (N, T)).
    """
    source, inputs = map(np.asarray, x) if isinstance(x, tuple) else (None, np.asarray(x))
    y = np.asarray(y)
    if inputs.shape != y.shape or source is not None and len(source) != len(y):
        raise ValueError(f"windows of shape {inputs.shape} do not go with targets of shape {y.shape}")
    check_whole("batch_size", batch_size, 1)
    return inputs if source is None else (source, inputs), y


def _rows(x, start, size):
    return tuple(part[start : start + size] for part in x) if isinstance(x, tuple) else x[start : start + size]


def token_losses(model, x, y, batch_size=64):
    """Return the loss of each token of the windows x, y (N, T), in nats: float64 of shape (N, T).

    It is nan where a target does not count (is -100). ``x`` may be a tuple, as for ``evaluate``.
    Raises ValueError if x and y differ in shape, or for a batch_size below 1.
    """
    x, y = check_windows(x, y, batch_size)
    losses = np.empty(y.shape)
    with model.evaluating():
        for start in range(0, len(y), batch_size):
            targets = y[start : start + batch_size, :, None]
            logits = model(_rows(x, start, batch_size))[0].detach().numpy()  # (B, T, V)
            found = -np.take_along_axis(log_softmax(logits), np.where(targets == IGNORED, 0, targets), axis=-1)
            losses[start : start + batch_size] = np.where(targets == IGNORED, np.nan, found)[..., 0]
    return losses
