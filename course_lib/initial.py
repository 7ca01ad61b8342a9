"""Initial weights, drawn once by NumPy's Generator for both tracks: equal seeds give equal weights."""

import math

import numpy as np

SCHEMES = ("small", "scaled", "uniform")


class Initial:
    """Draws the weights of one model, in the order in which the model asks for them.

    ``scheme``: "small", every matrix and table normal with deviation 0.02; "scaled", matrices normal with deviation
    √(2 / fan_in) and tables 0.1 (He et al. 2015); "uniform", matrices and biases uniform within ±1/√fan_in and tables
    normal with deviation 1 (what PyTorch's own layers start from). Biases are 0 except in "uniform".
    """

    def __init__(self, seed, scheme="small", dtype="float32"):
        if scheme not in SCHEMES:
            raise ValueError(f"no initial scheme {scheme!r}: choose one of {', '.join(SCHEMES)}")
        self.rng, self.scheme, self.dtype = np.random.default_rng(seed), scheme, np.dtype(dtype)

    def matrix(self, fan_in, fan_out, gain=1.0):
        """(fan_in, fan_out) weights, multiplied by ``gain``."""
        if self.scheme == "uniform":
            weights = self.rng.uniform(-1, 1, (fan_in, fan_out)) / math.sqrt(fan_in)
        else:
            weights = self.rng.standard_normal((fan_in, fan_out))
            weights *= 0.02 if self.scheme == "small" else math.sqrt(2 / fan_in)
        return (gain * weights).astype(self.dtype)

    def bias(self, fan_in, fan_out):
        """(fan_out,) numbers that are added after a matrix."""
        if self.scheme == "uniform":
            return (self.rng.uniform(-1, 1, fan_out) / math.sqrt(fan_in)).astype(self.dtype)
        return self.constant(0, fan_out)

    def table(self, rows, width):
        """(rows, width) numbers of an embedding table."""
        deviation = {"small": 0.02, "scaled": 0.1, "uniform": 1.0}[self.scheme]
        return (deviation * self.rng.standard_normal((rows, width))).astype(self.dtype)

    def constant(self, value, *shape):
        """An array full of ``value``."""
        return np.full(shape, value, self.dtype)
