"""Small questions in the middle of a page: one value, compared with the right one. Nothing here ever raises."""

import math

import numpy as np

from .watch import Guard
from .words import kind


def check_value(name, answer, right, hint="", digits=3):
    """Compare ``answer`` with ``right`` (a number or an array, equal to ``digits`` decimals) and print the verdict.

    ``...`` means "not attempted yet". A wrong answer is printed with the ``hint``. Returns True, False, or None
    when not attempted.

    >>> check_value("sum", ..., 3)
    sum: not attempted yet
    >>> check_value("sum", 4, 3, hint="add, do not multiply")
    sum: not yet. You say 4. Hint: add, do not multiply
    False
    >>> check_value("sum", 3, 3)
    sum: right!
    True
    """
    if answer is ... or answer is NotImplemented:
        print(f"{name}: not attempted yet")
        return None
    with Guard() as guard:  # whatever an answer may be, a learner should meet a verdict and not a traceback
        problem = wrong_value(answer, right, digits)
    if guard.error:
        problem = f"This {type(answer).__name__} cannot be compared ({type(guard.error).__name__})."
    print(f"{name}: not yet. {problem} Hint: {hint}" if problem else f"{name}: right!")
    return not problem


def wrong_value(answer, right, digits):
    """Return what is wrong with the answer, as a sentence; None if it is right."""
    if sentence := not_numbers(answer, right):
        return sentence
    try:
        mine, wanted = (np.asarray(_numbers(value)) for value in (answer, right))
        if mine.dtype.kind in "cMm":
            raise TypeError("complex numbers, dates and times are no numbers here")
        mine, wanted = mine.astype(float), wanted.astype(float)
    except (TypeError, ValueError):
        if isinstance(answer, (list, tuple)):
            return f"You say {answer}."  # rows of different lengths
        return f"You gave {kind(answer)}, but {_expected(right)} is expected."
    if mine.shape != wanted.shape:
        return _other_shape(answer, mine, right, wanted)
    if np.allclose(mine, wanted, rtol=0, atol=0.5 * 10.0**-digits, equal_nan=True):
        return None
    nearly = any(
        np.allclose(mine, wanted, rtol=0, atol=0.5001 * 10.0**-d)
        and np.allclose(mine, mine.round(d), rtol=0, atol=1e-9)
        for d in range(1, digits)
    )
    return f"You say {answer}." + (f" Nearly: rounded too far, {digits} decimals count." if nearly else "")


def _other_shape(answer, mine, right, wanted):
    """Return a sentence about an answer of another shape. The length of the right list is part of the question."""
    if mine.ndim and wanted.ndim:
        if hasattr(answer, "shape") and hasattr(right, "shape"):
            return f"Your array has shape {mine.shape}, but {wanted.shape} is expected."
        return f"You say {answer}."
    return f"You say {answer}, but {_expected(right)} is expected."


def _expected(right):
    """Return the kind of the right answer: a list, an array or one number."""
    return "a list" if isinstance(right, (list, tuple)) else "an array" if np.ndim(_plain(right)) else "one number"


def not_numbers(answer, right=0):
    """Return a sentence about words in quotes, None or ``...`` where numbers belong; None if there are none.

    Where the ``right`` answer is of truth values, so is what it says.
    """
    parts = _parts(answer)
    words = [part for part in parts if isinstance(part, (str, bytes))]
    if words:
        if all(word.strip().lower() in ("true", "false") for word in words):
            return "Write True and False without quotes."
        what = "True or False" if all(isinstance(part, bool) for part in _parts(right)) else "numbers"
        return f"Write {what} without quotes: “{words[0]}” is a word."
    if any(part is None or part is ... or part is np.ma.masked for part in parts):
        if parts == [None]:
            return "The answer is None: nothing is filled in yet."
        return "Not every element of your list is filled in."
    return None


def _parts(answer):
    if isinstance(answer, (list, tuple, set)):
        return [part for inner in answer for part in _parts(inner)]
    if answer is np.ma.masked:  # an array that holds itself
        return [answer]
    if isinstance(answer, np.ma.MaskedArray) or (isinstance(answer, np.ndarray) and answer.dtype.kind in "OSU"):
        return [part for inner in answer.ravel() for part in _parts(inner)]
    return [answer.item()] if isinstance(answer, (np.str_, np.bool_)) else [answer]


def _numbers(value):
    """Return ``value`` as ``np.asarray`` takes it: in a list an array of one number is that number."""
    if isinstance(value, (list, tuple)):
        return [v.item() if math.prod(getattr(v, "shape", (0,))) == 1 else _numbers(v) for v in map(_plain, value)]
    return _plain(value)


def _plain(value):
    """Return a tensor of either track without its gradient; anything else as it is."""
    return value.detach() if hasattr(value, "detach") else value
