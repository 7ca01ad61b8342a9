"""Exercises that check themselves: ``check``, ``hint``, ``solution``, ``progress``, and those of each notebook.

The exercises of notebook NN live in ``nbNN.py``; ``exercise.py`` says what one is made of. Importing this package
loads none of them: a notebook loads its own with the first call. It imports the tracks and what lies below and beside
them; nothing imports it but notebooks.
"""

from .commands import check, hint, progress, solution
from .exercise import Exercise, Mistake, every, exercise, find, question

__all__ = ["Exercise", "Mistake", "check", "every", "exercise", "find", "hint", "progress", "question", "solution"]
