"""Exercises of notebook 01: windows."""

import numpy as np

from ..text.windows import windows
from .exercise import Mistake, exercise, question


def _cut(ids, T, count, shift=1, stride=1):
    """``count`` windows of T ids, and the same moved on by ``shift``."""
    starts = range(0, count * stride, stride)
    return np.array([ids[i : i + T] for i in starts]), np.array([ids[i + shift : i + shift + T] for i in starts])


@exercise(
    "01.2",
    "Windows by hand",
    minutes=10,
    difficulty="easy",
    task="""
Cut the ids (N,) into all windows of T tokens, with a plain loop: `x` holds the windows, `y` the same moved on by one.
Both have the shape (N - T, T).
""",
    hints=(
        "Window i of x is ids[i : i + T]. Where does the one of y begin?",
        "y needs one more token than x, so the last window starts at N - T - 1: range(N - T).",
        "np.array of a list of slices makes a matrix of them.",
    ),
    next_thought="How often does each token stand in x? Which ones stand there less often than the others?",
    cases=lambda: [
        (np.arange(8), 4),
        (np.array([3, 1, 4, 1, 5, 9, 2, 6]), 3),
        (np.array([2, 7, 1]), 1),
        (np.arange(5), 4),
    ],
    right=lambda ids, T: tuple(map(np.array, windows(ids, T))),
    forbids=("windows", "sliding_window_view", "Batches"),
    mistakes=(
        Mistake(
            "the last window is missing: there are N - T, so the loop is range(N - T)",
            lambda ids, T: _cut(ids, T, len(ids) - T - 1),
        ),
        Mistake(
            "one window too many: the last y has no token left at its end",
            lambda ids, T: _cut(ids, T, len(ids) - T + 1),
        ),
        Mistake("`y` is not moved on: it must be x one place later", lambda ids, T: _cut(ids, T, len(ids) - T, 0)),
        Mistake("`x` and `y` are exchanged", lambda ids, T: _cut(ids, T, len(ids) - T)[::-1]),
        Mistake(
            "`y` begins a whole window later: it is moved on by one, not by T",
            lambda ids, T: _cut(ids, T, len(ids) - T, T),
        ),
        Mistake(
            "the windows lie side by side: here one starts at every place",
            lambda ids, T: _cut(ids, T, (len(ids) - T - 1) // T + 1, stride=T),
        ),
    ),
)
def my_windows(ids, T):
    """All windows of T tokens and their targets: ids (N,) → x and y, a pair of arrays (N - T, T)."""
    starts = range(len(ids) - T)
    x = np.array([ids[i : i + T] for i in starts])
    y = np.array([ids[i + 1 : i + T + 1] for i in starts])
    return x, y


windows_counted = question(
    "01.4",
    "How many windows?",
    minutes=4,
    difficulty="easy",
    task="""
Before you run it: a text has 1,000 tokens, the context is 32. How many windows are there with stride 1? How many with
stride 32? Give a list of two numbers.
""",
    hints=(
        "A window needs T + 1 tokens: its last target is one further.",
        "With stride 1 the last start is N - T - 1, so there are N - T. With stride T they stand at 0, T, 2T, …",
    ),
    next_thought="How many of the 1,000 tokens are never a target with stride 32?",
    value=[968, 31],
    answer="[968, 31]: 1000 - 32 = 968, and (1000 - 32 - 1) // 32 + 1 = 31. The last 7 tokens do not fill a window.",
    mistakes=(
        Mistake(
            "a window needs one more token for its last target: N - T, and not N - T + 1",
            when=lambda got, want, case: got[0] == 969,
        ),
        Mistake(
            "the last window was lost: starts count from 0, so there are N - T",
            when=lambda got, want, case: got[0] == 967,
        ),
        Mistake("the windows overlap: with stride 1 nearly every token is a start", [31, 31]),
        Mistake("count the first start, too: 0, 32, … 960 are 31 numbers", when=lambda got, want, case: got[1] == 30),
        Mistake(
            "with stride 32 the starts are 0, 32, … 960: a window at 992 is not full",
            when=lambda got, want, case: got[1] == 32,
        ),
    ),
)
