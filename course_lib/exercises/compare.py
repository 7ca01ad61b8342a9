"""Is this the right result? First its type, then its shape, then its dtype, then its values: each with a sentence."""

import numbers

import numpy as np

from .words import kind, number, plain, two_numbers

NAMES = {"array": "a NumPy array", "numpy": "a Tensor", "torch": "a torch.Tensor"}


def convert(arguments, track):
    """The arguments of a case, NumPy arrays of floats, as tensors of the ``track`` ("array": as they are)."""
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
    return str(value.dtype).removeprefix("torch.")


def difference(got, want, track="array", what="the result", like=""):
    """What is wrong with ``got``, as a sentence; None when it is as ``want`` in type, shape, dtype and values.

    ``like`` names the input whose dtype is expected, as in ``"x"`` or ``"grads[0]"``; empty if there is none.
    """
    if isinstance(want, list) and all(isinstance(word, str) for word in want):
        return _difference_of_words(got, want, what)
    if isinstance(want, (tuple, list)):
        return _difference_of_several(got, want, track, what, like)
    if not isinstance(want, np.ndarray):
        return _difference_of_numbers(got, want, what)
    if not _is_of_track(got, track):
        came = f"{kind(got)} came for {what}, and {NAMES[track]} is expected"
        return came + (": wrap it in np.array(...)" if isinstance(got, (list, tuple)) and track == "array" else "")
    if tuple(got.shape) != want.shape:
        return f"{what} has shape {tuple(got.shape)}, expected is {want.shape}"
    if dtype_name(got) != dtype_name(want):
        return f"{what} is {dtype_name(got)}, expected is {dtype_name(want)}{_why_dtype(got, want, like)}"
    return _difference_of_values(np.asarray(plain(got)), want, what)


def _why_dtype(got, want, like):
    """What is behind another dtype, and what to write: behind "expected is float32"."""
    if want.dtype == bool:
        return " (True and False)"
    if want.dtype.kind != "f" or not like:
        return ""
    whose = f", as {like} has"
    came = dtype_name(got)
    library = "torch" if type(got).__module__.split(".")[0] == "torch" else "np"
    if (library, came, dtype_name(want)) == ("torch", "float32", "float64"):
        return f"{whose}: torch.zeros, torch.ones and the like make float32. Write dtype={like}.dtype in them"
    if (library, came, dtype_name(want)) != ("np", "float64", "float32"):
        return whose
    behind = f", or .astype({like}.dtype) behind the result" if isinstance(got, np.ndarray) else ""
    return (
        f"{whose}: np.zeros, np.array([...]) and the numbers that np.sum(...) and the like give make float64."
        f" Write dtype={like}.dtype in them{behind}"
    )


def _difference_of_several(got, want, track, what, like):
    if not isinstance(got, (tuple, list)):
        return f"{kind(got)} came, and {len(want)} results are expected"
    if len(got) != len(want):
        return f"{len(got)} results came, and {len(want)} are expected"
    for i, (mine, right) in enumerate(zip(got, want, strict=True), 1):
        name = f"result {i}" if what == "the result" else f"number {i} of {what}"
        if problem := difference(mine, right, track, name, like):
            return problem
    return None


def _difference_of_words(got, want, what):
    if not isinstance(got, (tuple, list)):
        return f"{kind(got)} came for {what}, and a list is expected"
    return None if list(got) == want else f"{what} is {list(got)}, expected is {want}"


def _difference_of_numbers(got, want, what):
    if hasattr(got, "shape") and tuple(got.shape) == () and hasattr(got, "item"):
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, numbers.Real):
        return f"{kind(got)} came for {what}, and a number is expected"
    if isinstance(want, int) and not isinstance(got, numbers.Integral):
        return f"{what} is {number(got)}, a {type(got).__name__}: a whole number is expected, here {want}"
    if not close(np.float64(got), np.float64(want)):
        mine, right = two_numbers(got, want)
        return f"{what} is {mine}, expected is {right}"
    return None


def _difference_of_values(got, want, what):
    wrong = np.argwhere(~close(got, want))
    if not len(wrong):
        return None
    place = tuple(int(i) for i in wrong[0])
    mine, right = two_numbers(got[place], want[place])
    return f"{what} is {mine} at {list(place)}, expected is {right} ({len(wrong)} of {want.size} numbers differ)"


def close(got, want):
    """Elementwise: equal up to rounding at the precision of ``want``; nan equals nan."""
    relative, absolute = (1e-4, 1e-6) if want.dtype == np.float32 else (1e-7, 1e-10)
    if want.dtype.kind != "f":
        return got == want
    return np.isclose(got, want, rtol=relative, atol=absolute, equal_nan=True)


def same(one, other):
    """Whether two results of a function are the same, whatever they are: for recognising a mistake."""
    if isinstance(one, (tuple, list)) or isinstance(other, (tuple, list)):
        sizes = [len(x) if isinstance(x, (tuple, list)) else None for x in (one, other)]
        return sizes[0] == sizes[1] and all(map(same, one, other))
    try:
        a, b = (np.asarray(plain(x)) for x in (one, other))
        kinds = {"f" if x.dtype.kind in "fiu" else x.dtype.kind for x in (a, b)}
        if a.shape != b.shape or len(kinds) > 1:
            return False
        return bool(np.all(close(a, b) if a.dtype.kind == b.dtype.kind == "f" else a == b))
    except Exception:  # an answer may be anything
        return False


def _is_of_track(value, track):
    if track == "array":
        return isinstance(value, np.ndarray)
    if track == "numpy":
        from ..numpy_track import Tensor

        return isinstance(value, (Tensor, np.ndarray))
    import torch

    return isinstance(value, torch.Tensor)
