"""Calling a learner's function and watching it.

An exception becomes a sentence, and so does a change of its input or a call of the library function that does the
whole task.
"""

import contextlib
import copy
import dis
import fnmatch
import linecache
import re
import signal
import sys
import threading
import traceback
import types
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .words import plain

LIBRARIES = {"course_lib", "numpy", "scipy", "torch"}
LEFT_OVER = "nothing may be left over from an earlier call"
ONE_ARRAY = "all calls write into one and the same array: make a new one each time"
# Instructions of a body with nothing in it: `pass`, a docstring, `...`, or a lone `return`.
_NOTHING = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP", "CACHE", "LOAD_GLOBAL", "BUILD_TUPLE"}
# Error messages that users of another library run into: (words of the message, what to write instead).
_REMEDIES = (
    ("unexpected keyword argument 'keepdim'", "NumPy calls it keepdims=True"),
    ("Tensor.var() got an unexpected keyword argument", "write x.var(axis=-1, correction=0, keepdims=True)"),
    ("'Tensor' object has no attribute 'std'", "take the root of the variance: x.var(...).sqrt()"),
    ("'Tensor' object has no attribute 'rsqrt'", "write 1 / x.sqrt(), or x ** -0.5"),
    ("'Tensor' object has no attribute 'square'", "write x * x"),
    (
        "'Tensor' does not support ufuncs",
        "NumPy's functions take no Tensor; write x.sqrt() or x ** 0.5, x.exp(), x.log()",
    ),
    ("this Tensor has a gradient", "a detached array cuts the gradient; stay with the Tensor and its own methods"),
    ("Tensor.mean() got an unexpected keyword argument 'dtype'", "write x.mean(axis=-1, keepdims=True), not np.mean"),
    ("Tensor.sum() got an unexpected keyword argument 'out'", "write x.sum(axis=-1, keepdims=True), not np.sum"),
    (
        "Conveniences.transpose() takes",
        "a Tensor's transpose swaps two axes, as in x.transpose(1, 2); x.permute(0, 2, 1, 3) takes all",
    ),
    ("axes don't match array", "an array's transpose takes all axes; x.swapaxes(1, 2) swaps two"),
    ("'numpy.ndarray' object has no attribute 'permute'", "an array has x.transpose(...) and x.swapaxes(1, 2)"),
    ("'memoryview' object has no attribute", "here x is a NumPy array, not a Tensor: leave out .data"),
    ("'numpy.ndarray' object has no attribute 'sqrt'", "write np.sqrt(x)"),
    ("'numpy.ndarray' object has no attribute 'exp'", "write np.exp(x)"),
)


@dataclass
class Outcome:
    """The outcome of one call: a ``value`` or an ``error``, which arguments it ``changed``, what it ``called``."""

    value: object = None
    error: BaseException | None = None
    changed: tuple[int, ...] = ()
    called: tuple[str, ...] = ()

    def __repr__(self):
        return type(self.error).__name__ if self.error else repr(self.value)


def call(function, arguments, forbids=()):
    """Return the Outcome of ``function(*arguments)``; the caller's arguments stay as they are."""
    mine = copy.deepcopy(arguments)
    calls = Calls(forbids)
    outcome = Outcome()
    with Guard() as guard, calls:
        outcome.value = function(*mine)
    outcome.error = guard.error
    pairs = enumerate(zip(arguments, mine, strict=True))
    outcome.changed = tuple(i for i, (before, after) in pairs if not unchanged(before, after))
    outcome.called = tuple(sorted(calls.seen))
    return outcome


class Guard:
    """A context manager that keeps in ``error`` whatever is raised inside, even SystemExit.

    Only a stop by the learner (Ctrl-C, the stop button) goes through, also when the answer has caught it. It is known
    by its signal, since an answer may raise KeyboardInterrupt, too.
    """

    def __enter__(self):
        self.error, self.stopped, self.handler = None, False, None
        self.deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # in a job in the background: no stop can come
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self.handler = signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, number, frame):
        self.stopped = True
        self.handler(number, frame)

    def __exit__(self, kind, error, trace):
        if self.handler:
            signal.signal(signal.SIGINT, self.handler)
        if self.stopped and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt
        self.error = error
        return not (self.stopped or (isinstance(error, KeyboardInterrupt) and not (self.handler or self.deaf)))


class Calls:
    """A context manager that notes which of the forbidden names are called.

    It asks Python's profiling hook, which sees every call of a Python function and of a built-in one: an import under
    another name, a method, or a call three levels down is seen too, in other threads as well. Only functions of the
    LIBRARIES count: Python's, and helpers of the learner's own, may have any name. A name counts as a whole or as part
    of a dotted one, underscores around it aside, so "AdamW" forbids making one and stepping it; with a * it is a
    pattern, in which capitals do not count ("*softmax*"). NumPy's ufuncs (np.exp) are not seen; no exercise forbids
    one. Nor are the nodes of PyTorch's graph, which compute gradients: where "*backward*" is forbidden, no graph is
    made.
    """

    def __init__(self, forbids):
        self.forbids, self.seen = {name.strip("_") for name in forbids if "*" not in name}, set()
        self.patterns = [re.compile(fnmatch.translate(name), re.IGNORECASE) for name in forbids if "*" in name]
        self.active = bool(forbids)
        torch = sys.modules.get("torch")
        self.graph = torch.no_grad() if torch and "*backward*" in forbids else contextlib.nullcontext()

    def __enter__(self):
        self.before = sys.getprofile()
        self.graph.__enter__()
        if self.active:
            threading.setprofile(self._see)
            sys.setprofile(self._see)

    def __exit__(self, *exception):
        if self.active:
            threading.setprofile(None)
        sys.setprofile(self.before)
        self.graph.__exit__(None, None, None)

    def during(self, function):
        """Return a function that does what this one does, with its calls noted."""

        def noted(*arguments):
            with self:
                return function(*arguments)

        return noted if self.active else function

    def _see(self, frame, event, argument):
        if event == "call":
            module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_qualname
        elif event == "c_call":
            owner = getattr(argument, "__self__", None)
            home = owner if isinstance(owner, (type, types.ModuleType)) else type(owner)
            module = getattr(argument, "__module__", None) or getattr(home, "__module__", None) or home.__name__
            name = getattr(argument, "__qualname__", None) or getattr(argument, "__name__", "")
            if name == "setprofile" and frame.f_globals is not globals():
                self.seen.add("sys.setprofile")  # somebody does not want to be seen
        else:
            return
        if str(module).split(".")[0] in LIBRARIES and not str(module).startswith(__package__):
            parts = {part.strip("_") for part in str(name).split(".")}
            self.seen |= self.forbids & parts
            self.seen |= {part for part in parts if any(pattern.match(part) for pattern in self.patterns)}


def unchanged(before, after):
    """Return True if an argument is what it was, bit by bit."""
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(unchanged, before, after))
    a, b = np.asarray(plain(before)), np.asarray(plain(after))
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def untouched(value):
    """Return True if this is what a stub returns: ``...``, or a tuple of nothing else."""
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and all(untouched(part) for part in value)
    return value is ... or value is NotImplemented


def empty(function):
    """Return True if the body has nothing in it that could compute something."""
    code = getattr(function, "__code__", None)
    if code is None or not set(code.co_names) <= {"NotImplemented", "Ellipsis"}:
        return False
    return {i.opname for i in dis.get_instructions(code)} <= _NOTHING


def returns(function):
    """Return True if the body has a `return` with something behind it."""
    code = getattr(function, "__code__", None)
    steps = [] if code is None else list(dis.get_instructions(code))
    return any(
        b.opname == "RETURN_VALUE" and not (a.opname == "LOAD_CONST" and a.argval is None) for a, b in pairwise(steps)
    )


def numpy_names(function):
    """Return which names of NumPy a function uses, as in np.zeros, and "astype", also in its inner functions."""
    code = function if hasattr(function, "co_names") else getattr(function, "__code__", None)
    if code is None:
        return set()
    steps = pairwise(dis.get_instructions(code))
    names = {b.argval for a, b in steps if a.argval in ("np", "numpy") or b.argval == "astype"}
    return names.union(*(numpy_names(c) for c in code.co_consts if hasattr(c, "co_names")))


def same_code(function, text):
    """Return True if a function does what this text defines, step by step; comments and layout aside."""
    unit = compile(text, "stub", "exec")  # on its own, like a notebook's cell: with imports around it the steps differ
    code = getattr(function, "__code__", None)
    return code is not None and _steps(code) == _steps(next(c for c in unit.co_consts if hasattr(c, "co_code")))


def _steps(code):
    docstring = code.co_consts[:1] if code.co_consts and isinstance(code.co_consts[0], str) else ()
    constants = code.co_consts[len(docstring) :]
    inner = tuple(_steps(c) if hasattr(c, "co_code") else c for c in constants)
    return code.co_code, code.co_names, code.co_varnames, inner


def describe(error, function):
    """Return a sentence about an exception in the learner's function, with the line of the cell where it happened."""
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


def remedy(message):
    """Return what to write instead, in brackets after a space; empty where nothing is known."""
    return next((f" ({words})" for known, words in _REMEDIES if known in message), "")
