"""Checks of a learner's answers. An untouched answer is told apart from a wrong one, and nothing here ever raises."""

import numpy as np


def check(name, answer, right, hint="", digits=3):
    """Compare ``answer`` with ``right`` (a number or an array, equal to ``digits`` decimals) and print the verdict.

    ``...`` means "not attempted yet". A wrong answer prints what came, of which shape, and the ``hint``. Returns True,
    False, or None when not attempted.

    >>> check("sum", ..., 3)
    sum: not attempted yet
    >>> check("sum", 4, 3, hint="add, do not multiply")
    sum: not yet. You say 4. Hint: add, do not multiply
    False
    >>> check("sum", 3, 3)
    sum: right!
    True
    """
    if answer is ... or answer is NotImplemented:
        print(f"{name}: not attempted yet")
        return None
    try:
        mine, wanted = np.asarray(answer, float), np.asarray(right, float)
    except (TypeError, ValueError):
        print(f"{name}: not yet. This is {type(answer).__name__}, and a number or an array is wanted. Hint: {hint}")
        return False
    if mine.shape != wanted.shape:
        print(f"{name}: not yet. Your shape is {mine.shape}, wanted is {wanted.shape}. Hint: {hint}")
        return False
    if not np.all(np.abs(mine - wanted) <= 0.5 * 10.0**-digits):
        print(f"{name}: not yet. You say {answer}. Hint: {hint}")
        return False
    print(f"{name}: right!")
    return True
