"""Call a learner's function and watch it: an exception becomes a sentence, and so does a change of its input or a call
of the library function that does the whole task.
"""

import copy
import linecache
import sys
import traceback
from dataclasses import dataclass

import numpy as np

from .remedies import remedy
from .words import plain

LIBRARIES = {"course_lib", "numpy", "scipy", "torch"}
# Instructions of a body with nothing in it: `pass`, a docstring, `...`, or a lone `return`.
_NOTHING = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP", "CACHE"}


@dataclass
class Outcome:
    """What came of one call: a ``value`` or an ``error``, which arguments it ``changed``, what it ``called``."""

    value: object = None
    error: Exception | None = None
    changed: tuple[int, ...] = ()
    called: tuple[str, ...] = ()

    def __repr__(self):
        return type(self.error).__name__ if self.error else repr(self.value)


def call(function, arguments, forbids=()):
    """The Outcome of ``function(*arguments)``; the caller's arguments stay as they are."""
    mine = copy.deepcopy(arguments)
    calls = Calls(forbids)
    outcome = Outcome()
    try:
        with calls:
            outcome.value = function(*mine)
    except Exception as error:
        outcome.error = error
    pairs = enumerate(zip(arguments, mine, strict=True))
    outcome.changed = tuple(i for i, (before, after) in pairs if not unchanged(before, after))
    outcome.called = tuple(sorted(calls.seen))
    return outcome


class Calls:
    """Notes which of the forbidden names are called while it is on.

    It asks Python's profiling hook, which sees every call of a Python function and of a built-in one: an import under
    another name, a method, or a call three levels down is seen too. Only functions of the LIBRARIES count: a helper of
    the learner's own may have any name. A name counts as a whole or as part of a dotted one, so
    "AdamW" forbids making one and stepping it. NumPy's ufuncs (np.exp) are not seen; no exercise forbids one.
    """

    def __init__(self, forbids):
        self.forbids, self.seen = set(forbids), set()

    def __enter__(self):
        self.before = sys.getprofile()
        if self.forbids:
            sys.setprofile(self._see)

    def __exit__(self, *exception):
        sys.setprofile(self.before)

    def _see(self, frame, event, argument):
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            if module.split(".")[0] in LIBRARIES and not module.startswith(__package__):
                self.seen |= self.forbids & set(frame.f_code.co_qualname.split("."))
        elif event == "c_call":
            name = getattr(argument, "__qualname__", None) or getattr(argument, "__name__", "")
            self.seen |= self.forbids & set(str(name).split("."))


def unchanged(before, after):
    """Whether an argument is what it was, bit by bit."""
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(unchanged, before, after))
    a, b = np.asarray(plain(before)), np.asarray(plain(after))
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def untouched(value):
    """Whether this is what a stub gives back: ``...``, or a tuple of nothing else."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and all(untouched(part) for part in value)
    return value is ... or value is NotImplemented


def empty(function):
    """Whether the body has nothing in it that could compute something."""
    import dis

    code = getattr(function, "__code__", None)
    return code is not None and {i.opname for i in dis.get_instructions(code)} <= _NOTHING


def same_code(function, text):
    """Whether a function does what this text defines, step by step; comments and layout aside."""
    unit = compile(text, "stub", "exec")  # alone, as a notebook's cell is: with imports beside it the steps differ
    code = getattr(function, "__code__", None)
    return code is not None and _steps(code) == _steps(next(c for c in unit.co_consts if hasattr(c, "co_code")))


def _steps(code):
    docstring = code.co_consts[:1] if code.co_consts and isinstance(code.co_consts[0], str) else ()
    constants = code.co_consts[len(docstring) :]
    inner = tuple(_steps(c) if hasattr(c, "co_code") else c for c in constants)
    return code.co_code, code.co_names, code.co_varnames, inner


def describe(error, function):
    """A sentence about an exception in the learner's function, with the line of the cell where it happened."""
    message = str(error).strip().splitlines()
    sentence = f"Your function stopped with {type(error).__name__}" + (f": {message[0].rstrip('.')}" if message else "")
    sentence += remedy(str(error))
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not lines:
        return sentence
    text = linecache.getline(file, lines[-1].lineno).strip()
    stop = "" if sentence.endswith(("?", "!")) else "."
    return f"{sentence}{stop} That was line {lines[-1].lineno} of the cell" + (f": {text}" if text else "")
