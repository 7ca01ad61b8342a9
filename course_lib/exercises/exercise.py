"""What an exercise is made of, and where it is found.

An exercise of notebook 05 is a function in ``nb05.py`` (or ``nb05_….py``): the *solution*, decorated with
``@exercise(...)``, which says the rest. The stub that the learner gets is made from the solution's first line and
docstring, so that they cannot drift apart; an exercise that asks to mend something gives its ``broken`` function.
"""

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

STUB = "    return ...  # your code here"


@dataclass(frozen=True)
class Mistake:
    """A likely mistake, and the ``message`` meant for whoever makes it.

    It is recognised by what comes out: the answer gives what ``wrong`` gives (a function of the same arguments; or the
    value itself, for a question), or ``when(got, want, arguments)`` is true (``got`` may be an exception; a question
    has no arguments).
    """

    message: str
    wrong: object = None
    when: Callable | None = None


@dataclass(frozen=True)
class Exercise:
    """One exercise. ``cases`` and ``right`` check a function; ``examine`` checks it in its own way; ``value`` is the
    answer of a question. Exactly one of ``right``, ``examine`` and ``value`` is there.
    """

    id: str  # "05.2": the second exercise of notebook 05
    title: str
    minutes: int
    difficulty: str  # "easy", "middle" or "harder"
    task: str  # Markdown
    hints: tuple[str, ...]
    next_thought: str  # said after a right answer
    function: Callable | None = None  # the solution
    cases: Callable | None = None  # () -> list of tuples of arguments, arrays in NumPy
    right: Callable | None = None  # what should come out, from the library or by another way than the solution; where
    # an error should come, an exception of that type whose arguments are the words that its message must have
    mistakes: tuple[Mistake, ...] = ()
    forbids: tuple[str, ...] = ()  # names of functions and classes whose call would be no answer
    broken: Callable | None = None  # the function that is to be mended
    examine: Callable | None = None  # function -> a sentence about what is wrong with it, None when it is right
    value: object = None  # the right answer of a question
    digits: int = 3  # to how many decimals
    answer: str = ""  # the solution of a question, in words

    @property
    def name(self):
        """What the learner's function (or value) is called in the notebook."""
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
        """The solution as text: of a function its source, of a question its answer in words."""
        return source(self.function) if self.function else self.answer

    @property
    def solved(self):
        """What a solved copy of the notebook has in place of the stub."""
        return self.solution if self.function else f"answer = {self.value!r}"


def exercise(id, title, **parts):
    """Decorator: this function is the solution of an exercise. ``parts`` are the other fields of Exercise."""
    return lambda function: Exercise(id, title, function=function, **parts)


def question(id, title, **parts):
    """An exercise whose answer is a value and not a function, to be predicted before it is computed."""
    return Exercise(id, title, **parts)


def source(function):
    """The source of a function, without decorators and at the left margin."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    start = ast.parse("\n".join(lines)).body[0].lineno
    return "\n".join(lines[start - 1 :]).rstrip()


def _modules():
    package = importlib.import_module(__package__)
    return sorted(
        m.name for m in pkgutil.iter_modules(package.__path__) if m.name[:2] == "nb" and m.name[2:4].isdigit()
    )


def notebooks():
    """Numbers of the notebooks that have exercises here, like "05"."""
    return sorted({name[2:4] for name in _modules()})


def every(notebook=None):
    """The exercises of one notebook ("05"), or of all, in their order."""
    names = [name for name in _modules() if notebook in (None, name[2:4])]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Exercise)]
    return sorted(found, key=lambda e: (e.id.split(".")[0], int(e.id.split(".")[1])))


def find(id):
    """The exercise with this id. LookupError names those of the same notebook, or the id that is probably meant."""
    number = str(id).split(".")[0]
    known = {e.id: e for e in every(number)} if number in notebooks() else {}
    if not isinstance(id, str) or id not in known:
        if likely := _likely_id(id):
            raise LookupError(f'there is no exercise {id!r}; did you mean "{likely}"?')
        there = (
            f"notebook {number} has {', '.join(known)}" if known else f"notebooks with some: {', '.join(notebooks())}"
        )
        raise LookupError(f"there is no exercise {id!r}; {there}")
    return known[id]


def _likely_id(id):
    """The exercise that "5.1", 5.1 or " 05.01" means; None when it means none."""
    parts = str(id).strip().split(".")
    if isinstance(id, bool) or len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    number, place = (int(part) for part in parts)
    wanted = f"{number:02}.{place}"
    return wanted if f"{number:02}" in notebooks() and wanted in {e.id for e in every(f"{number:02}")} else None
