"""Log-probabilities of plain arrays, for measuring and searching, not for training."""

import numpy as np


def log_softmax(logits):
    """Return ``x - log Σ exp(x)`` along the last axis as float64: the log-probabilities of logits (..., V), in nats.

    >>> log_softmax(np.zeros(4)).round(3).tolist()
    [-1.386, -1.386, -1.386, -1.386]
    """
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
