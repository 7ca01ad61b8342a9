"""Positions as waves: tables that are computed, not learned, the same for both tracks."""

import functools

import numpy as np


def sinusoidal_positions(rows, width, dtype="float32"):
    """Return a vector for each position, (rows, width), sine and cosine in turn (Vaswani et al. 2017, section 3.5).

    ``table[p, 2i] = sin(p / 10000^(2i / width))``, ``table[p, 2i + 1] = cos(p / 10000^(2i / width))``: each pair of
    columns is a clock hand that turns more slowly than the one before. An odd width ends with a sine.
    Raises ValueError for fewer than 1 row or column.

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


@functools.lru_cache(maxsize=64)  # every layer asks for the same
def rotary_angles(start, rows, head_dim, theta=10000.0, scaling=None):
    """Return (cos, sin) of the angles by which positions ``start``, start + 1, ... turn: float64 (rows, D/2).

    Pair i turns by ``p · theta^(-2i / D)`` at position p (Su et al. 2021, section 3.2.2): the first pair by one radian
    a position, the last hardly at all. In float32 a large angle would lose digits, so these are float64.

    ``scaling`` (factor, low, high, original) is what Llama 3 does for a context longer than the ``original`` one that
    it was first trained on: pairs that turn fewer than ``low`` times in it turn slower by ``factor``, those that turn
    more than ``high`` times keep their pace, and between them the change is gradual.

    >>> rotary_angles(3, 1, 4)[0].round(4).tolist()
    [[-0.99, 0.9996]]
    """
    frequencies = theta ** (-np.arange(0, head_dim, 2) / head_dim)  # (D/2,)
    if scaling is not None:
        factor, low, high, original = scaling
        turns = original * frequencies / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)  # 1: at its old pace, 0: slower by the factor
        frequencies = frequencies * (kept + (1 - kept) / factor)
    angles = np.arange(start, start + rows)[:, None] * frequencies  # (rows, D/2)
    tables = np.cos(angles), np.sin(angles)
    for table in tables:
        table.flags.writeable = False  # all callers share it
    return tables
