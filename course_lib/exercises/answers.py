"""Small questions asked in the middle of a page: one value, compared with the right one. Nothing here ever raises."""

import numpy as np


def check_value(name, answer, right, hint="", digits=3):
    """Compare ``answer`` with ``right`` (a number or an array, equal to ``digits`` decimals) and print the verdict.

    ``...`` means "not attempted yet". A wrong answer prints what came, of which shape, and the ``hint``. Returns True,
    False, or None when not attempted.

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
    try:
        mine, wanted = (np.asarray(_plain(value), float) for value in (answer, right))
    except (TypeError, ValueError):
        return f"This is {type(answer).__name__}, and a number or an array is wanted."
    if mine.shape != wanted.shape:
        return f"Your shape is {mine.shape}, wanted is {wanted.shape}."
    if not np.allclose(mine, wanted, rtol=0, atol=0.5 * 10.0**-digits, equal_nan=True):
        return f"You say {answer}."
    return None


def _plain(value):
    """A tensor of either track without its gradient; anything else as it is."""
    return value.detach() if hasattr(value, "detach") else value
