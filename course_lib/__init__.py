"""The library of the course *GPT, twice*: one GPT on a NumPy autograd, the same GPT in raw PyTorch."""

import importlib

__version__ = "0.1.0"
TRACKS = ("numpy", "torch")


def get_track(name):
    """Return the package of a track, "numpy" or "torch": its models are ``get_track(name).GPT`` and so on.

    Nothing of the other track is imported. Raises ValueError for another name.

    >>> get_track("numpy").__name__
    'course_lib.numpy_track'
    """
    if name not in TRACKS:
        raise ValueError(f"track must be 'numpy' or 'torch', not {name!r}")
    return importlib.import_module(f"{__name__}.{name}_track")
