"""Values in a few words, for the sentences of a verdict."""

import numpy as np


def plain(value):
    """Return a tensor of either track as its array; anything else as it is."""
    return value.detach().numpy() if hasattr(value, "detach") else value


def kind(value):
    """Return the kind of a value, with its article."""
    if value is None:
        return "None"
    module = type(value).__module__.split(".")[0]
    name = "torch.Tensor" if module == "torch" else "NumPy array" if type(value) is np.ndarray else type(value).__name__
    return ("an " if name[0] in "aeioAEIO" else "a ") + name


def not_a_tensor(value):
    """Return a sentence about a result where a Tensor is expected."""
    cut = ": the gradient is cut" if isinstance(value, np.ndarray) else ""
    return f"got {kind(value)}, expected a Tensor{cut}"


def number(value, digits=4):
    """Format a number, short enough to read: True, 3, 0.25, 1.234e-05."""
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def two_numbers(one, other):
    """Format two different numbers with enough digits to tell them apart."""
    pairs = ((number(one, digits), number(other, digits)) for digits in (4, 6, 8, 10, 12, 17))
    return next((pair for pair in pairs if pair[0] != pair[1]), (number(one), number(other)))


def brief(name, value):
    """Describe an argument of a case in a few words: its value if small, else its shape."""
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "shape"):
        return f"{name} of shapes {', '.join(str(tuple(v.shape)) for v in value)}"
    if getattr(value, "ndim", 0) == 0:
        return f"{name} = {value!r}" if isinstance(value, str) else f"{name} = {number(value)}"
    array = np.asarray(plain(value))
    if array.size <= 8 and array.ndim == 1:
        return f"{name} = [{', '.join(map(number, array))}]"
    return f"{name} of shape {array.shape}" + (", float32" if array.dtype == np.float32 else "")


def float_input(names, case):
    """Return what a learner writes for the first input with floats: its name, or ``name[0]`` for a list of arrays."""
    for name, value in zip(names, case):
        several = isinstance(value, (list, tuple)) and len(value) > 0
        if getattr(value[0] if several else value, "dtype", np.dtype(int)).kind == "f":
            return f"{name}[0]" if several else name
    return ""
