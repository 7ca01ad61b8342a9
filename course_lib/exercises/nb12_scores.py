"""Exercises of notebook 12: scores for heads."""

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise


def _cells(maps, place, first=1, how=np.mean):
    """A number for each head (L, H): of the cells (row, place(row)), the rows from ``first`` on."""
    rows = range(first, maps.shape[-1])
    return how(np.stack([maps[:, :, row, place(row)] for row in rows], axis=-1), axis=-1).astype(maps.dtype)


@exercise(
    "12.1",
    "The previous-token score",
    minutes=10,
    difficulty="middle",
    task="""
How much does a head look at the token just before? Take the mean, over all rows that have one, of the weight on the
place one to the left. `maps` are the weights (L, H, T, T); the result is a number for each head, (L, H).
""",
    hints=(
        "Row 1 looks at column 0, row 2 at column 1, …: these cells lie on the diagonal below the main one.",
        "maps.diagonal(-1, axis1=2, axis2=3) takes it out of the last two axes: (L, H, T - 1).",
    ),
    next_thought="Which score has a head that looks equally at everything it may, with T tokens?",
    cases=lambda: [arrays(0, (2, 3, 4, 4)), arrays(1, (1, 2, 5, 5)), arrays(2, (2, 2, 3, 3), dtype="float32")],
    right=lambda maps: _cells(maps, lambda row: row - 1),
    mistakes=(
        Mistake(
            "that is how much a head looks at *itself*: one diagonal lower",
            lambda maps: _cells(maps, lambda row: row, 0),
        ),
        Mistake(
            "that diagonal lies above the main one: a row would look at the *next* token",
            lambda maps: _cells(maps.swapaxes(2, 3), lambda row: row - 1),
        ),
        Mistake(
            "divided by T: only T - 1 rows have a token before them",
            lambda maps: _cells(maps, lambda row: row - 1) * (maps.shape[-1] - 1) / maps.shape[-1],
        ),
        Mistake(
            "a sum: the mean over the rows is asked for", lambda maps: _cells(maps, lambda row: row - 1, how=np.sum)
        ),
        Mistake(
            "the largest weight of all rows: the mean is asked for",
            lambda maps: _cells(maps, lambda row: row - 1, how=np.max),
        ),
        Mistake(
            "one number for everything: each head has its own, (L, H)",
            lambda maps: _cells(maps, lambda row: row - 1).mean(),
        ),
        Mistake(
            "the diagonal of the wrong axes: rows and columns are the last two, axis1=2 and axis2=3",
            lambda maps: maps.diagonal(-1).mean(axis=-1),
        ),
        Mistake(
            "that is two places back: the token just before is one", lambda maps: _cells(maps, lambda row: row - 2, 2)
        ),
    ),
)
def previous_token_score(maps):
    """The mean weight on the token just before, for each head: (L, H, T, T) → (L, H)."""
    return maps.diagonal(-1, axis1=2, axis2=3).mean(axis=2)  # (L, H, T - 1) → (L, H)


@exercise(
    "12.2",
    "The induction score",
    minutes=15,
    difficulty="harder",
    task="""
The text repeats itself after `period` tokens. How much does a head look at the place *after* the last time that the
same token stood there? Take the mean of these weights over all rows from `period` on: maps (L, H, T, T) → (L, H).
""",
    hints=(
        "At row q the same token stood at q - period. Which place comes after that?",
        "queries = np.arange(period, T), and the columns are queries - period + 1.",
        "maps[:, :, queries, columns] takes one cell from each row: (L, H, number of rows).",
    ),
    next_thought="Why can a head in the *lowest* layer hardly have a high induction score?",
    cases=lambda: [
        (*arrays(0, (2, 3, 6, 6)), 3),
        (*arrays(1, (1, 2, 8, 8)), 5),
        (*arrays(2, (2, 2, 4, 4), dtype="float32"), 2),
    ],
    right=lambda maps, period: _cells(maps, lambda row: row - period + 1, period),
    mistakes=(
        Mistake(
            "that is the same token itself: its *successor* is one place further",
            lambda maps, period: _cells(maps, lambda row: row - period, period),
        ),
        Mistake(
            "that is the place before the same token: go one to the right, not to the left",
            lambda maps, period: _cells(maps, lambda row: row - period - 1, period),
        ),
        Mistake(
            "the rows before `period` have met nothing yet: begin at row `period`",
            lambda maps, period: _cells(maps, lambda row: row - period + 1, 0),
        ),
        Mistake(
            "rows and columns are exchanged: rows are queries, and they stand further right in the text",
            lambda maps, period: _cells(maps.swapaxes(2, 3), lambda row: row - period + 1, period),
        ),
        Mistake(
            "one number for everything: each head has its own, (L, H)",
            lambda maps, period: _cells(maps, lambda row: row - period + 1, period).mean(),
        ),
        Mistake(
            "a sum: the mean over the rows is asked for",
            lambda maps, period: _cells(maps, lambda row: row - period + 1, period, np.sum),
        ),
    ),
)
def induction_score(maps, period):
    """The mean weight on the successor of the same token, one period earlier: (L, H, T, T) → (L, H)."""
    queries = np.arange(period, maps.shape[3])
    return maps[:, :, queries, queries - period + 1].mean(axis=2)  # (L, H, rows) → (L, H)
