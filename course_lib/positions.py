"""Positions as waves: a table that is computed, not learned, and the same for both tracks."""

import numpy as np


def sinusoidal_positions(rows, width, dtype="float32"):
    """A vector for each position: (rows, width), sine and cosine in turn (Vaswani et al. 2017, section 3.5).

    ``table[p, 2i] = sin(p / 10000^(2i / width))``, ``table[p, 2i + 1] = cos(p / 10000^(2i / width))``: each pair of
    columns is a clock hand that turns slower than the one before. An odd width ends with a sine.
    Raises ValueError for less than 1 row or column.

    >>> sinusoidal_positions(2, 5).round(4).tolist()[1]
    [0.8415, 0.5403, 0.0251, 0.9997, 0.0006]
    """
    if rows < 1 or width < 1:
        raise ValueError(f"a table of positions has at least 1 row and 1 column, not {rows} and {width}")
    table = np.empty((rows, width))  # float64 until the end: sin(4999) needs the digits
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(0, width, 2) / width)  # (rows, ⌈width / 2⌉)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : width // 2])
    return table.astype(dtype)
