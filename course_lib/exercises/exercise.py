"""What an exercise is made of, and where it is found.

An exercise of notebook 06 is a function in ``nb06.py``: the *solution*, decorated with ``@exercise(...)``, which gives
the rest. The stub that the learner gets is made from the solution's first line and docstring, so that the two cannot
drift apart; an exercise that asks for a repair gives its ``broken`` function. Likely mistakes are made from the
solution, too. The task itself is in the notebook.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .words import plain

RIGHT, NOT_YET, NOT_ATTEMPTED = "right", "not yet", "not attempted yet"
STUB = "    return ...  # your code here"


@dataclass(frozen=True)
class Mistake:
    """A likely mistake, and the ``message`` for whoever makes it.

    It is recognised by its outcome. Either the answer gives in every case what the solution gives when ``old`` in its
    text is replaced by ``new``; or, for a question, it is ``value``, where None in a list is what is right; or
    ``when(got, want, arguments)`` is true for every case in which the answer is wrong (``got`` may be an exception; a
    question has no arguments).
    """

    message: str
    old: str = ""
    new: str = ""
    value: object = None
    when: Callable | None = None


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    ``cases`` and ``right`` check a function; ``examine`` checks one in its own way; ``value`` is the answer to a
    question. Exactly one of ``right``, ``examine`` and ``value`` is given.
    """

    id: str  # "06.2": the second exercise of notebook 06
    title: str
    minutes: int
    difficulty: str  # "easy", "medium" or "harder"
    hints: tuple[str, ...]
    next_thought: str  # shown after a right answer
    function: Callable | None = None  # the solution
    cases: Callable | None = None  # () -> list of tuples of arguments, arrays in NumPy
    more: Callable | None = None  # Generator -> more of them, drawn anew at each check
    right: Callable | None = None  # the expected result, from the library or by another way than the solution; where
    # an error is expected, an exception of that type whose arguments are the words that its message must contain
    mistakes: tuple[Mistake, ...] = ()
    forbids: tuple[str, ...] = ()  # names (or patterns with *) of functions and classes that would do the whole task
    zeros: bool = False  # what is 0 in the result must be so exactly, not up to rounding
    broken: Callable | None = None  # the function to be repaired
    examine: Callable | None = None  # function -> a sentence about what is wrong with it, None when it is right
    value: object = None  # the right answer of a question
    digits: int = 3  # to how many decimals
    answer: str = ""  # the solution of a question, in words

    @property
    def name(self):
        """The name of the learner's function (or value) in the notebook."""
        return self.function.__name__ if self.function else "answer"

    @cached_property
    def stub(self):
        """The text of the cell in which the learner works."""
        if not self.function:
            return "answer = ..."
        if self.broken:
            return source(self.broken).replace(f"def {self.broken.__name__}(", f"def {self.name}(", 1)
        text = source(self.function)
        body = ast.parse(text).body[0].body
        head = body[0] if ast.get_docstring(ast.parse(text).body[0]) else None
        lines = text.splitlines()
        return "\n".join([*lines[: head.end_lineno if head else body[0].lineno - 1], STUB])

    @cached_property
    def solution(self):
        """The solution as text: the source of a function, or the answer to a question in words."""
        return source(self.function) if self.function else self.answer

    @property
    def solved(self):
        """The text that replaces the stub in a solved copy of the notebook."""
        return self.solution if self.function else f"answer = {self.value!r}"

    def wrong(self, mistake):
        """Return the function of whoever makes this mistake: the solution, edited, in the namespace of its module."""
        namespace = dict(self.function.__globals__)
        exec(compile(self.solution.replace(mistake.old, mistake.new), "a likely mistake", "exec"), namespace)
        return namespace[self.name]

    def wrong_value(self, mistake, other=None):
        """Return the answer to a question of whoever makes this mistake, and the other one in the rest of a list."""
        if not isinstance(mistake.value, list):
            return mistake.value
        rest = getattr(other, "value", None)
        rest = rest if isinstance(rest, list) and None in rest else [None] * len(self.value)
        lists = zip(mistake.value, rest, self.value, strict=True)
        return [next(part for part in parts if part is not None) for parts in lists]

    def drawn_cases(self):
        """Return cases with random numbers, others at each call: an answer cannot be right by being used to them."""
        return self.more(np.random.default_rng()) if self.more else []

    def wrong_functions(self):
        """Yield (message, function) for each mistake that is an edit of the solution."""
        for mistake in self.mistakes:
            if mistake.old:
                yield mistake.message, self.wrong(mistake)


def exercise(id, title, **parts):
    """Return a decorator that makes the solution an exercise; ``parts`` are the other fields of ``Exercise``.

    Where no ``cases`` are given, the first are drawn, too, but the same ones each time.
    """
    if "more" in parts:
        parts = {"cases": lambda: parts["more"](np.random.default_rng(0)), **parts}
    return lambda function: Exercise(id, title, function=function, **parts)


def question(id, title, **parts):
    """Return an exercise whose answer is a value rather than a function, to be predicted before it is computed."""
    return Exercise(id, title, **parts)


def arrays(seed, *shapes, dtype="float64"):
    """Return a tuple of arguments: for each shape an array of normal numbers, the same ones every time."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def drawn(rng, shapes, turn=0, scale=1.0, low=1):
    """Return a tuple of arrays of normal numbers: "...nk km" are a (..., n, k) and b (k, m), of sizes low to 5.

    The turns 0, 1, 2, … have 0 to 3 axes in place of the dots, float64 and float32 in turn, and every third time whole
    numbers, which have ties and zeros (times ``scale``, which leaves both). Each size is ``low`` in one turn: what
    fails for an axis of length 1 does so at every check.
    """
    size = {letter: int(rng.integers(low, 6)) for letter in sorted(set(shapes) - set(". "))}
    size |= dict.fromkeys(list(size)[turn : turn + 1], low)
    batch = tuple(int(n) for n in rng.integers(1, 4, (0, 1, 2, 0, 1, 3)[turn % 6]))
    found = []
    for part in shapes.split(" "):
        shape = (batch if part.startswith("...") else ()) + tuple(size[letter] for letter in part.strip("."))
        x = np.asarray(rng.standard_normal(shape))
        x = np.round(x) if turn % 3 == 2 else x
        found.append(np.asarray(x * scale, "float32" if turn % 2 else "float64"))  # without axes an array, too
    return tuple(found)


def draws(shapes, turns=6, scales=(1.0,), low=1):
    """Return a function from a Generator to as many cases of arrays of these shapes (see ``drawn``)."""
    return lambda rng: [drawn(rng, shapes, turn, scales[turn % len(scales)], low) for turn in range(turns)]


def varied(*case, by):
    """Return the case, and it again with one of its last numbers another: each of those in ``by``, in turn.

    Without such a pair, what remembers a result by all arguments but one is not found.
    """
    first = len(case) - len(by)
    return [case, *((*case[:i], other, *case[i + 1 :]) for i, other in enumerate(by, first))]


def chosen(test):
    """Return a predicate for a question with several numbered statements: ``test(those that were chosen)``, a list.

    Of anything but different whole numbers from 1 on (a list of True and False, say) it knows nothing.
    """

    def holds(got, want, case):
        if not isinstance(got, (list, tuple, set, frozenset)) and not hasattr(got, "shape"):
            return False
        found = [n.item() if hasattr(n, "item") else n for n in plain(got)]
        if any(isinstance(n, bool) or n != int(n) or n < 1 for n in found) or len(set(found)) < len(found):
            return False
        return test(found)

    return holds


FLOAT_SIZE = "a size must be a whole number: / gives a float, // a whole number"


def a_float_size(got, want, case):
    """Return True if an answer stopped because of a float where a shape, count or slice needs a whole number."""
    words = "float.* object cannot be interpreted as an integer|slice indices must be integers|tuple of ints.*float"
    return isinstance(got, TypeError) and re.search(words, str(got)) is not None


# What computes gradients by itself, in either track; attention; softmax. A * stands for anything, capitals or not.
BACKWARD = ("*backward*", "grad", "vjp", "jvp", "make_dual")
ATTENTION = ("*attention*",)
SOFTMAX = ("*softmax*", "logsumexp")
LAYER_NORM = ("*layer_norm*", "LayerNorm")
COUNTS = ("num_parameters", "parameter_count", "matrix_numbers", "named_parameters", "GPT")  # the parameters of a GPT


def numbered(*shape, dtype="float64"):
    """Return 0, 1, 2, … in this shape, which shows at once where each number went."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def source(function):
    """Return the source of a function, without decorators and indentation."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    start = ast.parse("\n".join(lines)).body[0].lineno
    return "\n".join(lines[start - 1 :]).rstrip()


def notebooks():
    """Return the numbers of the notebooks that have exercises here, as in ``"05"``."""
    names = (module.name for module in pkgutil.iter_modules(importlib.import_module(__package__).__path__))
    return sorted(name[2:] for name in names if name[:2] == "nb" and name[2:].isdigit())


def every(notebook=None):
    """Return the exercises of one notebook (``"05"``), or of all, in order."""
    numbers = [number for number in notebooks() if notebook in (None, number)]
    modules = [importlib.import_module(f"{__package__}.nb{number}") for number in numbers]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Exercise)]
    return sorted(found, key=lambda e: (e.id.split(".")[0], int(e.id.split(".")[1])))


def find(id):
    """Return the exercise with this id.

    Raises LookupError if there is none: the message names the exercises of the same notebook, or the id probably meant.
    """
    number = str(id).split(".")[0]
    known = {e.id: e for e in every(number)} if number in notebooks() else {}
    if not isinstance(id, str) or id not in known:
        if likely := _likely_id(id):
            raise LookupError(f'there is no exercise {id!r}; did you mean "{likely}"?')
        there = (
            f"notebook {number} has {', '.join(known)}"
            if known
            else f"notebooks with exercises: {', '.join(notebooks())}"
        )
        raise LookupError(f"there is no exercise {id!r}; {there}")
    return known[id]


def _likely_id(id):
    """Return the exercise that "5.1", 5.1 or " 05.01" means; None if it means none."""
    parts = str(id).strip().split(".")
    if isinstance(id, bool) or len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    number, position = (int(part) for part in parts)
    wanted = f"{number:02}.{position}"
    return wanted if f"{number:02}" in notebooks() and wanted in {e.id for e in every(f"{number:02}")} else None
