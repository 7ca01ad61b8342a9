"""Small questions asked in the middle of a page: one value, compared with the right one. Nothing here ever raises."""

import numpy as np

from .words import kind


def check_value(name, answer, right, hint="", digits=3):
    """Compare ``answer`` with ``right`` (a number or an array, equal to ``digits`` decimals) and print the verdict.

    ``...`` means "not attempted yet". A wrong answer prints what came, and the ``hint``. Returns True, False, or None
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
    try:
        problem = _problem(answer, right, digits)
    except Exception as error:  # whatever an answer may be, a learner should meet a verdict and not a traceback
        problem = f"This {type(answer).__name__} cannot be compared ({type(error).__name__})."
    print(f"{name}: not yet. {problem} Hint: {hint}" if problem else f"{name}: right!")
    return not problem


def _problem(answer, right, digits):
    """What is wrong with the answer, as a sentence; None when it is right."""
    if sentence := not_numbers(answer):
        return sentence
    try:
        mine, wanted = (np.asarray(_plain(value), float) for value in (answer, right))
    except (TypeError, ValueError):
        if isinstance(answer, (list, tuple)):
            return f"You say {answer}."  # rows of different lengths
        return f"You gave {kind(answer)}, and {_expected(right)} is expected."
    if mine.shape != wanted.shape:
        return _other_shape(answer, mine, right, wanted)
    if not np.allclose(mine, wanted, rtol=0, atol=0.5 * 10.0**-digits, equal_nan=True):
        return f"You say {answer}."
    return None


def _other_shape(answer, mine, right, wanted):
    """A sentence about an answer of another shape. The length of the right list is part of the question."""
    if mine.ndim and wanted.ndim:
        if hasattr(answer, "shape") and hasattr(right, "shape"):
            return f"Your array has shape {mine.shape}, and {wanted.shape} is expected."
        return f"You say {answer}."
    return f"You say {answer}, and {_expected(right)} is expected."


def _expected(right):
    """The kind of the right answer: a list, an array or one number."""
    return "a list" if isinstance(right, (list, tuple)) else "an array" if np.ndim(_plain(right)) else "one number"


def not_numbers(answer):
    """A sentence about an answer that has words in quotes, None or `...` where numbers belong; None when it has not."""
    parts = _parts(answer)
    words = [part for part in parts if isinstance(part, str)]
    if words:
        if all(word.strip().lower() in ("true", "false") for word in words):
            return "Write True and False without quotes."
        return f"Write numbers without quotes: “{words[0]}” is a word."
    if any(part is None or part is ... for part in parts):
        if parts == [None]:
            return "None came: nothing is written down yet."
        return "Not every place of your list is filled."
    return None


def _parts(answer):
    if isinstance(answer, (list, tuple, set)):
        return [part for inner in answer for part in _parts(inner)]
    return [answer.item()] if isinstance(answer, (np.str_, np.bool_)) else [answer]


def _plain(value):
    """A tensor of either track without its gradient; anything else as it is."""
    return value.detach() if hasattr(value, "detach") else value
