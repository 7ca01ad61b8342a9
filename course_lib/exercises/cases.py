"""Arguments that checks try a function with: drawn once, the same every time."""

import numpy as np


def arrays(seed, *shapes, dtype="float64"):
    """One array of normal numbers for each shape, as a tuple of arguments."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def numbered(*shape, dtype="float64"):
    """0, 1, 2, … in this shape: it shows at once where each number went."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)
