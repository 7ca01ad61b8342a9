"""The tensor of track two is PyTorch's own: array, graph and ``backward()`` come with it.

Compare the twin file in ``course_lib/numpy_track``, which writes out what these imports do. In both tracks a tensor is
made with ``from_numpy(array)`` and a parameter with ``Parameter(array)``; ``Tensor`` is here for ``isinstance``, since
``torch.Tensor(array)`` would turn everything into float32.
"""

import torch
from torch import Tensor, no_grad

__all__ = ["Parameter", "Tensor", "concatenate", "from_numpy", "mark_changed", "no_grad", "where"]


class Parameter(torch.nn.Parameter):
    """A trained leaf: a Tensor with a gradient, made from a copy of an array of floats.

    Raises ValueError for an array without elements, such as the table of an empty vocabulary.
    """

    is_parameter = True  # how a Module recognises it; requires_grad only says whether it is trained or frozen

    def __new__(cls, array, requires_grad=True):
        copy = array.detach().clone() if isinstance(array, Tensor) else torch.tensor(array)
        if copy.numel() == 0:
            raise ValueError(f"nothing to train: this array has shape {tuple(copy.shape)}")
        return super().__new__(cls, copy, requires_grad)

    def __repr__(self):
        return repr(self.detach().requires_grad_(self.requires_grad))  # like any tensor

    def __reduce_ex__(self, protocol):
        return type(self), (self.detach().numpy(), self.requires_grad)


def from_numpy(array):
    """Wrap an array of numbers (not a copy of it) in a Tensor without a gradient."""
    return torch.from_numpy(array)


def concatenate(tensors, dim=0):
    """Join Tensors along the axis ``dim``; backward splits the gradient at the same indices."""
    return torch.cat(tuple(tensors), dim)


def where(condition, a, b):
    """Take ``a`` where ``condition`` (booleans) is True, else ``b``; each gets the gradient of its own elements."""
    return torch.where(torch.as_tensor(condition), a, b)


def mark_changed(tensors):
    """Note that the data of these leaves has been changed in place; a loss computed before refuses its backward."""
    for tensor in tensors:
        torch.autograd.graph.increment_version(tensor)
