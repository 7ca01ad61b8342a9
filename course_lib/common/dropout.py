"""Dropout masks, drawn by NumPy for both tracks: equal Generators drop equal elements."""

import numpy as np


def draw_dropout_mask(shape, p, rng):
    """Draw a dropout mask from the NumPy Generator ``rng``: 0 with probability ``p``, else 1 / (1 - p).

    Raises ValueError unless 0 ≤ p ≤ 1, TypeError without a Generator.

    >>> draw_dropout_mask((2, 4), 0.5, np.random.default_rng(0))
    array([[2., 0., 0., 0.],
           [2., 2., 2., 2.]])
    """
    check_probability(p)
    if not isinstance(rng, np.random.Generator):
        raise TypeError("dropout draws from a NumPy Generator: pass rng=np.random.default_rng(0)")
    return np.zeros(shape) if p == 1 else (rng.random(shape) >= p) / (1 - p)


def check_probability(p):
    """Raise ValueError unless 0 ≤ p ≤ 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"the dropout probability must be between 0 and 1, not {p}")
