"""A check of any backward: nudge one element of the input and measure how much the result changes."""

import inspect

import numpy as np

from .tensor import no_grad


def gradient_check(function, *tensors, step=1e-6, seed=0, tolerance=1e-6):
    """Compare the gradients of ``function(*tensors)`` with its slopes; return the largest relative error.

    The slope at each element x is the central difference ``(f(x + step) - f(x - step)) / (2 step)``. The function
    differentiated is ``f = Σ r · function(...)`` with random r: a plain sum would hide mistakes, since the elements of
    a softmax always sum to 1, so the gradient of their sum is 0 whatever backward says.

    Errors are relative to the slope, or to 1 where the slope is smaller. Raises AssertionError, with the tensor, the
    index and both gradients, if an error exceeds ``tolerance``; TypeError unless all tensors are float64 and have a
    gradient (in float32 the difference of two nearly equal numbers is mostly rounding).

    >>> from course_lib.numpy_track.tensor import Parameter
    >>> x = Parameter(np.array([1.0, 2.0]))
    >>> gradient_check(lambda x: x * x, x) < 1e-8
    True
    """
    names = list(inspect.signature(function).parameters)[: len(tensors)]
    names += range(len(names), len(tensors))  # *args have no names: count them
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.dtype != np.float64 or not tensor.requires_grad:
            found = f"{tensor.dtype}, requires_grad={tensor.requires_grad}"
            raise TypeError(f"{name} must be float64 with requires_grad=True, not {found}")
        tensor.grad = None

    out = function(*tensors)
    r = np.random.default_rng(seed).standard_normal(out.shape)
    (out * r).sum().backward()

    def slope(data, index):
        x, values = data[index], []
        for moved in (x + step, x - step):
            data[index] = moved
            with no_grad():
                values.append((function(*tensors).data * r).sum())
        data[index] = x
        return (values[0] - values[1]) / (2 * step)

    largest = 0.0
    for name, tensor in zip(names, tensors, strict=True):
        for index in np.ndindex(tensor.shape):
            numeric = slope(tensor.data, index)
            analytic = 0.0 if tensor.grad is None else tensor.grad[index]
            error = abs(analytic - numeric) / max(1.0, abs(numeric))
            if not error <= tolerance:  # in this form, nan is a mistake too
                raise AssertionError(
                    f"gradient of {name}, index {index}: backward says {analytic:.8g}, the slope is {numeric:.8g}"
                )
            largest = max(largest, float(error))
    return largest
