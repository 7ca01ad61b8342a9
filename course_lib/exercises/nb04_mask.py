"""Exercises of notebook 04: the causal mask."""

import numpy as np

from ..numpy_track import functional as F
from .exercise import Mistake, exercise


def _lower(size, diagonal=0):
    return np.tril(np.ones((size, size), dtype=bool), diagonal)


@exercise(
    "04.1",
    "The causal mask",
    minutes=8,
    difficulty="easy",
    task="""
Who may look at whom? Write the mask for `size` positions: True where query i (row) may look at key j (column), which is
itself and everything before it.
""",
    hints=(
        "In row 0 only the first cell is True; in the last row all are.",
        "Compare the number of the column with the number of the row: key j ≤ query i.",
        "np.tril keeps the lower left triangle with the diagonal; or compare np.arange(size) as a row with itself as a"
        " column. The result must be boolean.",
    ),
    next_thought="How many cells are True for T positions? What share of all cells is that when T is large?",
    cases=lambda: [(3,), (1,), (5,)],
    right=lambda size: F.causal_mask(size),
    forbids=("causal_mask",),
    mistakes=(
        Mistake("rows and columns are exchanged: this mask shows the future and hides the past", lambda n: _lower(n).T),
        Mistake("the diagonal is hidden: a position may look at itself", lambda n: _lower(n, -1)),
        Mistake(
            "the diagonal is off by one: each position sees the next one, and there stands its answer",
            lambda n: _lower(n, 1),
        ),
        Mistake("True and False are exchanged: True means “may look”", lambda n: ~_lower(n)),
        Mistake(
            "numbers to be added to the scores, and not booleans: this course's masks say who may look",
            lambda n: np.where(_lower(n), 0.0, -np.inf),
        ),
        Mistake("0 and 1 are numbers: ask for dtype=bool, or compare", lambda n: np.tril(np.ones((n, n)))),
        Mistake("the size is fixed: use the argument", lambda n: _lower(3)),
    ),
)
def causal_mask(size):
    """True where key j ≤ query i: booleans (size, size), rows are queries, columns are keys."""
    position = np.arange(size)
    return position[None, :] <= position[:, None]  # (1, T) and (T, 1) → (T, T)
