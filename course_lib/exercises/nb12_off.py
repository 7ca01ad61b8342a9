"""Exercises of notebook 12: a head switched off, and where heads look."""

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise, question


def _zero(W, **where):
    W = W.copy()
    W[where.get("rows", slice(None)), where.get("columns", slice(None))] = 0
    return W


def _part(W, head, H):
    return slice(head * (len(W) // H), (head + 1) * (len(W) // H))


def _right_off(W, head, H):
    kept = [np.zeros_like(part) if i == head else part for i, part in enumerate(np.split(W, H))]
    return np.concatenate(kept)


@exercise(
    "12.3",
    "Switch a head off",
    minutes=10,
    difficulty="middle",
    task="""
The merged heads (T, C) go through the output matrix `W` (C, C): head 0 has the first D = C / H columns of what comes
in, head 1 the next, and so on. Return a new matrix in which `head` has no say, and all other heads have theirs.
""",
    hints=(
        "context @ W multiplies column i of the context with *row* i of W.",
        "Which rows belong to the head? Those from head · D up to (head + 1) · D.",
        "W.copy() first: the model must be able to have its head back.",
    ),
    next_thought="The head is off, but its weights in the heatmap look as before. Why?",
    cases=lambda: [(*arrays(0, (6, 6)), 1, 3), (*arrays(1, (8, 8)), 0, 2), (*arrays(2, (6, 6), dtype="float32"), 1, 2)],
    right=_right_off,
    mistakes=(
        Mistake(
            "these are the columns: they belong to what comes *out*. A head comes in at its rows",
            lambda W, head, H: _zero(W, columns=_part(W, head, H)),
        ),
        Mistake(
            "every H-th row: the rows of a head stand side by side",
            lambda W, head, H: _zero(W, rows=slice(head, None, H)),
        ),
        Mistake("that is one row: a head has D = C / H of them", lambda W, head, H: _zero(W, rows=head)),
        Mistake(
            "H rows: a head has D = C / H of them", lambda W, head, H: _zero(W, rows=slice(head * H, (head + 1) * H))
        ),
        Mistake(
            "only this head is left: it is the one to be switched off", lambda W, head, H: W - _right_off(W, head, H)
        ),
        Mistake("that is the next head: heads count from 0", lambda W, head, H: _zero(W, rows=_part(W, head + 1, H))),
        Mistake(
            "the rows are gone: the shape must stay, with zeros in their place",
            lambda W, head, H: np.delete(W, _part(W, head, H), axis=0),
        ),
    ),
)
def switch_off(W, head, H):
    """The output matrix without this head of H: (C, C) → (C, C)."""
    D = len(W) // H
    off = W.copy()
    off[head * D : (head + 1) * D] = 0
    return off


where_heads_look = question(
    "12.4",
    "Where does it look?",
    minutes=4,
    difficulty="easy",
    task="""
The symbols A B C D A B stand at the places 0 to 5. At place 5, the second B: where does a previous-token head look, and
where an induction head? Give a list of two places.
""",
    hints=(
        "A previous-token head looks one place to the left, whatever stands there.",
        "An induction head looks for the place whose *note* is “before me stood a B”.",
    ),
    next_thought="What does the induction head bring back from there, and what will the model say next?",
    value=[4, 2],
    answer="[4, 2]: just before place 5, and at the C, which came after the first B.",
    mistakes=(
        Mistake(
            "that is the earlier B itself: the head reads what came *after* it",
            when=lambda got, want, case: got[1] == 1,
        ),
        Mistake("places count from 0", [5, 3]),
        Mistake("the previous token stands one place to the left of place 5", when=lambda got, want, case: got[0] == 5),
        Mistake(
            "that is what stood before the earlier B: the head reads what came *after* it",
            when=lambda got, want, case: got[1] == 0,
        ),
        Mistake("the two are exchanged: the previous-token head comes first", [2, 4]),
    ),
)
