"""Whether a result is right: first its type, then its shape, then its dtype, then its values, each in a sentence."""

import numbers
from decimal import Decimal

import numpy as np

from .words import kind, number, plain, two_numbers

NAMES = {"array": "a NumPy array", "numpy": "a Tensor", "torch": "a torch.Tensor"}


def convert(arguments, track):
    """Return the arguments of a case, with arrays of floats as tensors of the ``track`` ("array": as they are)."""
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(convert(argument, track) for argument in arguments)
    if not isinstance(arguments, np.ndarray) or arguments.dtype.kind not in "fb" or track == "array":
        return arguments
    if track == "numpy":
        from ..numpy_track import Tensor

        return Tensor(arguments) if arguments.dtype.kind == "f" else arguments
    import torch

    return torch.from_numpy(arguments.copy())


def dtype_name(value):
    """Return the name of the dtype, the same for NumPy and PyTorch."""
    return str(value.dtype).removeprefix("torch.")


def difference(got, want, track="array", what="the result", like="", by=frozenset()):
    """Return what is wrong with ``got``, as a sentence; None if it is like ``want`` in type, shape, dtype and values.

    ``like`` names the input whose dtype is expected, as in ``"x"`` or ``"grads[0]"``; empty if there is none. ``by``
    are the names of NumPy that were used: among them may be what made another dtype. Any whole numbers are as good as
    others.
    """
    if isinstance(want, list) and all(isinstance(word, str) for word in want):
        return _difference_of_words(got, want, what)
    if isinstance(want, (tuple, list)):
        return _difference_of_several(got, want, track, what, like, by)
    if not isinstance(want, np.ndarray):
        return _difference_of_numbers(got, want, what)
    if not _is_of_track(got, track):
        sentence = f"got {kind(got)} for {what}, expected {NAMES[track]}"
        return sentence + (": wrap it in np.array(...)" if isinstance(got, list) and track == "array" else "")
    if tuple(got.shape) != want.shape:
        return f"{what} has shape {tuple(got.shape)}, expected {want.shape}"
    mine = np.asarray(plain(got))
    if dtype_name(got) != dtype_name(want) and not (want.dtype.kind in "iu" and mine.dtype.kind in "iu"):
        return f"{what} is {dtype_name(got)}, expected {dtype_name(want)}{_why_dtype(got, want, like, by)}"
    return _difference_of_values(mine, want, what)


# NumPy's functions that make float64 unless they are told otherwise, and those that do so of a plain number.
_MAKERS = ("zeros", "ones", "eye", "identity", "empty", "full", "tri", "linspace", "array", "asarray")
_OF_NUMBERS = ("sqrt", "log", "power")


def _why_dtype(got, want, like, by):
    """Return where the other dtype comes from, and what to write; it follows "expected float32"."""
    if want.dtype == bool:
        return " (True and False)"
    if want.dtype.kind != "f" or not like:
        return ""
    whose = f", like {like}"
    mine = dtype_name(got)
    library = "torch" if type(got).__module__.split(".")[0] == "torch" else "np"
    if (library, mine, dtype_name(want)) == ("torch", "float32", "float64"):
        return f"{whose}: torch.zeros, torch.ones and the like make float32. Write dtype={like}.dtype in them"
    if (library, mine, dtype_name(want)) != ("np", "float64", "float32"):
        return whose
    after = f", or .astype({like}.dtype) after the result" if isinstance(got, np.ndarray) else ""
    made, scalars = ([f"np.{name}" for name in names if name in by] for names in (_MAKERS, _OF_NUMBERS))
    if "astype" in by:
        what = " and ".join([*made, *(f"{name} of a plain number" for name in scalars), "astype(float) or astype(int)"])
        return f"{whose}: {what} can make float64. Write {like}.dtype there, as in .astype({like}.dtype)"
    if made and not scalars:
        return f"{whose}: {' and '.join(made)} can make float64. Write dtype={like}.dtype in them{after}"
    if not made and not scalars:
        return (
            f"{whose}: next to a NumPy number, like np.sqrt(8), or an array of whole numbers float32 becomes float64."
            f" Write float(...) around such a number{after}"
        )
    names = " and ".join([*made, *(f"{name} of a plain number" for name in scalars)])
    dtypes = f"dtype={like}.dtype in {' and '.join(made)}, and " if made else ""
    return f"{whose}: {names} can make float64. Write {dtypes}float(...) around such a number{after}"


def _difference_of_several(got, want, track, what, like, by):
    if not isinstance(got, (tuple, list)):
        return f"got {kind(got)}, expected {len(want)} results in a list or tuple"
    if len(got) != len(want):
        return f"got {len(got)} results, expected {len(want)}"
    for i, (mine, right) in enumerate(zip(got, want, strict=True), 1):
        name = f"result {i}" if what == "the result" else f"number {i} of {what}"
        if problem := difference(mine, right, track, name, like, by):
            return problem
    return None


def _difference_of_words(got, want, what):
    if not isinstance(got, (tuple, list)):
        return f"got {kind(got)} for {what}, expected a list"
    return None if list(got) == want else f"{what} is {list(got)}, expected {want}"


def _difference_of_numbers(got, want, what):
    if hasattr(got, "shape") and tuple(got.shape) == () and hasattr(got, "item"):
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (numbers.Real, Decimal)):
        return f"got {kind(got)} for {what}, expected a number"
    if isinstance(want, int) and not isinstance(got, numbers.Integral):
        return f"{what} is {number(got)}, a {type(got).__name__}: expected a whole number, here {want}"
    if not close(np.asarray(got, float), np.asarray(want if hasattr(want, "dtype") else float(want))):
        mine, right = two_numbers(got, want)
        return f"{what} is {mine}, expected {right}"
    return None


def _difference_of_values(got, want, what):
    wrong = np.argwhere(~close(got, want))
    if not len(wrong):
        return None
    index = tuple(int(i) for i in wrong[0])
    mine, right = two_numbers(got[index], want[index])
    return f"{what} is {mine} at {list(index)}, expected {right} ({len(wrong)} of {want.size} elements differ)"


def not_zero(got, want):
    """Return a sentence about the first number that should be 0 and is next to it; None if there is none."""
    wrong = np.argwhere((np.asarray(plain(got)) != 0) & (want == 0))
    if not len(wrong):
        return None
    index = tuple(int(i) for i in wrong[0])
    return f"the result is {number(plain(got)[index])} at {list(index)}, expected exactly 0"


def close(got, want):
    """Return, elementwise, what is equal up to rounding at the precision of ``want``; nan equals nan.

    In a large array small numbers are what is left of large ones, so the rounding is that of the largest.
    """
    relative, absolute = (1e-4, 1e-5) if want.dtype == np.float32 else (1e-8, 1e-10)
    if want.dtype.kind != "f":
        return got == want
    finite = np.abs(want)[np.isfinite(want)]
    absolute *= max(1, finite.max()) if finite.size else 1
    return np.isclose(got, want, rtol=relative, atol=absolute, equal_nan=True)


def same(one, other, like=None):
    """Return True if two results of a function are the same, whatever they are: it recognises a mistake.

    Where ``like``, the right result, is float32, they are so at its precision, even if they are plain numbers.
    """
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        several = isinstance(like, (tuple, list)) and len(like) == len(one)
        return len(one) == len(other) and all(map(same, one, other, like if several else [None] * len(one)))
    try:
        a, b = (np.asarray(plain(x)) for x in (one, other))
        kinds = {"f" if x.dtype.kind in "fiu" else x.dtype.kind for x in (a, b)}
        if a.shape != b.shape or len(kinds) > 1:
            return False
        if a.dtype.kind == b.dtype.kind == "f":
            return bool(np.all(close(a, b.astype("float32") if getattr(like, "dtype", None) == np.float32 else b)))
        return bool(np.all(a == b))
    except Exception:  # an answer may be anything
        return False


def is_array(value):
    """Return True for an array like any other: in a matrix ``*`` and ``[i]`` mean something else."""
    return isinstance(value, np.ndarray) and not isinstance(value, (np.ma.MaskedArray, np.matrix))


def _is_of_track(value, track):
    if track == "array":
        return is_array(value)
    if track == "numpy":
        from ..numpy_track import Tensor

        return isinstance(value, (Tensor, np.ndarray))
    import torch

    return isinstance(value, torch.Tensor)
