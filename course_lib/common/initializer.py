"""Initial weights, drawn once by NumPy's Generator for both tracks: equal seeds give equal weights."""

import math

import numpy as np

from .checks import check_choice

SCHEMES = ("small", "scaled", "uniform")


class Initializer:
    """A source of initial weights for one model, drawn in the order in which the model asks for them.

    ``scheme``: "small", every matrix and table normal with deviation 0.02; "scaled", matrices normal with deviation
    √(2 / fan_in) and tables 0.1 (He et al. 2015); "uniform", matrices and biases uniform within ±1/√fan_in and tables
    normal with deviation 1 (what PyTorch's own layers start from). Biases are 0 except in "uniform". With ``seed`` None
    each Initializer draws different weights. Raises ValueError for an unknown scheme.
    """

    def __init__(self, seed=None, scheme="uniform", dtype="float32"):
        check_choice("scheme", scheme, SCHEMES)
        self.rng, self.scheme, self.dtype = np.random.default_rng(seed), scheme, np.dtype(dtype)

    def matrix(self, fan_in, fan_out, gain=1.0):
        """Draw the weight of a linear layer, (fan_in, fan_out), multiplied by ``gain``."""
        if self.scheme == "uniform":
            weights = self.rng.uniform(-1, 1, (fan_in, fan_out)) / math.sqrt(fan_in)
        else:
            weights = self.rng.standard_normal((fan_in, fan_out))
            weights *= 0.02 if self.scheme == "small" else math.sqrt(2 / fan_in)
        return (gain * weights).astype(self.dtype)

    def bias(self, fan_in, fan_out):
        """Draw the bias of a linear layer, (fan_out,)."""
        if self.scheme == "uniform":
            return (self.rng.uniform(-1, 1, fan_out) / math.sqrt(fan_in)).astype(self.dtype)
        return self.constant(0, fan_out)

    def table(self, rows, width, deviation=None):
        """Draw an embedding table, (rows, width), with this standard deviation; None: the scheme's."""
        if deviation is None:
            deviation = {"small": 0.02, "scaled": 0.1, "uniform": 1.0}[self.scheme]
        return (deviation * self.rng.standard_normal((rows, width))).astype(self.dtype)

    def constant(self, value, *shape):
        """Return an array of ``shape`` filled with ``value``."""
        return np.full(shape, value, self.dtype)


def as_initializer(init):
    """Return ``init`` if it is an Initializer, one with this seed if it is a number, one with a fresh seed if None."""
    return init if isinstance(init, Initializer) else Initializer(init)
