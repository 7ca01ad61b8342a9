"""Exercises of notebook 11: padding, teacher forcing, and the shapes of weights."""

import numpy as np

from ..numpy_track import encoder_decoder
from ..text.pairs import shift as library_shift
from .exercise import Mistake, exercise, question

_SOURCE = np.array([[7, 0, 0], [4, 2, 0]])


def _mask(source, padding):
    return encoder_decoder.on_key_axis(source != padding, source.shape, "source")


@exercise(
    "11.3",
    "The padding mask",
    minutes=8,
    difficulty="middle",
    task="""
Short sources are filled up with the id `padding`. Make the mask that hides these places from *whoever asks*: from
`source` (B, S) to booleans (B, 1, 1, S), True = may be looked at. It will be broadcast to weights (B, H, T, S).
""",
    hints=(
        "source != padding is True at the real tokens, in the shape (B, S).",
        "Rows are queries, columns are keys. Padding must not be *looked at*, so it is the key axis, the last.",
        "mask[:, None, None, :] puts in two axes of size 1, for the heads and the queries.",
    ),
    next_thought="What do the rows of padded *queries* hold with this mask? Why does it not matter?",
    cases=lambda: [(_SOURCE, 0), (np.array([[3, 3, 1, 1], [3, 0, 5, 1]]), 1), (np.array([[2, 9]]), 0)],
    right=_mask,
    forbids=("on_key_axis",),
    mistakes=(
        Mistake(
            "the mask sits on the query axis: it is the keys that must not be looked at",
            lambda s, p: (s != p)[:, None, :, None],
        ),
        Mistake("True and False are exchanged: True means “may be looked at”", lambda s, p: ~_mask(s, p)),
        Mistake("two axes are missing: (B, S) would be broadcast along queries and keys", lambda s, p: s != p),
        Mistake("the axis of the heads is missing: [:, None, None, :]", lambda s, p: (s != p)[:, None, :]),
        Mistake(
            "the axes of size 1 stand behind: the keys are the *last* axis", lambda s, p: (s != p)[..., None, None]
        ),
        Mistake("the id that fills up is `padding`, and not always 0", lambda s, p: (s != 0)[:, None, None, :]),
        Mistake(
            "numbers to be added to the scores: this course's masks are booleans",
            lambda s, p: np.where(_mask(s, p), 0.0, -np.inf),
        ),
    ),
)
def padding_mask(source, padding):
    """True where a source place may be looked at: (B, S) → booleans (B, 1, 1, S)."""
    return (source != padding)[:, None, None, :]  # keys are the last axis


@exercise(
    "11.4",
    "Teacher forcing",
    minutes=5,
    difficulty="easy",
    task="""
A row of `target` (B, T + 1) is: begin, words, end. Make the decoder's inputs and its labels (B, T) of it: at each place
the label is the *next* word.
""",
    hints=(
        "The inputs leave out the last id of each row: the end is never an input.",
        "The labels leave out the first: nobody has to guess the begin.",
    ),
    next_thought="What would the loss be without this shift, and what would the model write?",
    cases=lambda: [
        (np.array([[1, 8, 9, 2], [1, 7, 2, 0]]),),
        (np.array([[1, 5, 6, 7, 2]]),),
        (np.array([[1, 2], [1, 3], [1, 4]]),),
    ],
    right=library_shift,
    forbids=("shift",),
    mistakes=(
        Mistake("the labels are the inputs: the decoder would only copy", lambda t: (t[:, :-1], t[:, :-1])),
        Mistake("inputs and labels are exchanged", lambda t: (t[:, 1:], t[:, :-1])),
        Mistake("the first axis was cut, that of the batch: cut the words, [:, …]", lambda t: (t[:-1], t[1:])),
        Mistake("rolled round: the begin came back at the end", lambda t: (t, np.roll(t, -1, axis=1))),
        Mistake("the inputs are one too long: nothing follows the end", lambda t: (t, t[:, 1:])),
        Mistake("moved on by two: the label is the next word", lambda t: (t[:, :-2], t[:, 2:])),
    ),
)
def shift(target):
    """(B, T + 1) → inputs and labels, a pair of arrays (B, T)."""
    return target[:, :-1], target[:, 1:]


shapes_of_weights = question(
    "11.5",
    "Shapes of weights",
    minutes=4,
    difficulty="easy",
    task="""
Eight heads, width 512, a source of 10 tokens, a target of 7, a batch of 2. Which shape have the weights of
cross-attention, and which those of the decoder's self-attention? Give a list of two lists of four numbers.
""",
    hints=(
        "Rows are queries, columns are keys: (B, H, queries, keys).",
        "In cross-attention the target asks and the source is looked at.",
    ),
    next_thought="Which of the two grows with the square of the target's length?",
    value=[[2, 8, 7, 10], [2, 8, 7, 7]],
    answer="[[2, 8, 7, 10], [2, 8, 7, 7]]: the target asks in both; it looks at the source, and at itself.",
    mistakes=(
        Mistake(
            "rows are queries: the target asks, the source is looked at",
            when=lambda got, want, case: list(got[0]) == [2, 8, 10, 7],
        ),
        Mistake(
            "in cross-attention keys are the source: 10 columns",
            when=lambda got, want, case: list(got[0]) == [2, 8, 7, 7],
        ),
        Mistake(
            "in cross-attention queries are the target: 7 rows",
            when=lambda got, want, case: list(got[0]) == [2, 8, 10, 10],
        ),
        Mistake(
            "in the decoder's self-attention the target looks at itself: the source plays no part",
            when=lambda got, want, case: 10 in list(got[1]),
        ),
        Mistake(
            "each head has weights of its own; the width plays no part in their shape",
            when=lambda got, want, case: any(n in list(got[0]) for n in (64, 512)) or len(got[0]) == 3,
        ),
    ),
)
