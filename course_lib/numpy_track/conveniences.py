"""The Tensor methods that need no backward of their own: PyTorch's names for what its operations can already do.

They are kept apart so that ``tensor.py`` holds only what autograd is made of.
"""

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

INSTEAD = {
    "chunk": "write split(size, dim)",
    "clone": "write detach(), or x * 1 to keep the graph",
    "relu": "write F.relu(x)",
    "softmax": "write F.softmax(x, dim)",
    "to": "a Tensor keeps its precision and lives in memory",
}


class Conveniences:
    """Base class of Tensor: Python numbers, sizes, other names and shapes, and errors that say what to write."""

    __slots__ = ()

    # ---------------------------------------------------------------- looking inside
    def dim(self):
        """Return the number of axes."""
        return self.data.ndim

    def numel(self):
        """Return the number of elements."""
        return self.data.size

    def size(self, axis=None):
        """Return the shape, or the length of one ``axis``."""
        return self.shape if axis is None else self.shape[axis]

    def item(self):
        """Return the only element as a Python float or int. Raises RuntimeError unless there is exactly one."""
        if self.data.size != 1:
            raise RuntimeError(f"only a single element becomes a Python number; this shape is {self.shape}")
        return self.data.item()

    def tolist(self):
        """Return the elements as Python floats or ints, in lists of lists."""
        return self.data.tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item())

    def __format__(self, spec):
        return format(self.item(), spec) if self.ndim == 0 else super().__format__(spec)

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # ---------------------------------------------------------------- a number or an array on the left
    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self.operand(other) + self

    def __rmul__(self, other):
        return self.operand(other) * self

    def __rsub__(self, other):
        return self.operand(other) - self

    def __rtruediv__(self, other):
        return self.operand(other) / self

    def __rmatmul__(self, other):
        return self.operand(other) @ self

    # ---------------------------------------------------------------- other shapes
    def view(self, *shape):
        """Reshape without a copy. Raises RuntimeError if the elements are in another order in memory."""
        out = self.reshape(*shape)
        if self.numel() and not np.may_share_memory(out.data, self.data):
            raise RuntimeError(f"view copies nothing, but {self.shape} to {out.shape} needs a copy: write reshape")
        return out

    def flatten(self, start_dim=0, end_dim=-1):
        """Merge the axes from ``start_dim`` to ``end_dim`` into one."""
        start, end = normalize_axis_tuple((start_dim, end_dim), max(self.ndim, 1), allow_duplicate=True)
        if start > end:
            raise ValueError(f"flatten runs from one axis to a later one, not from {start_dim} to {end_dim}")
        return self.reshape(*self.shape[:start], math.prod(self.shape[start : end + 1]), *self.shape[end + 1 :])

    def unsqueeze(self, axis):
        """Insert an axis of size 1, at ``axis`` of the result."""
        return self.reshape(np.expand_dims(self.data, axis).shape)

    def squeeze(self, axis=None):
        """Drop all axes of size 1, or only those in ``axis`` (one or several); other sizes stay."""
        axes = range(self.ndim) if axis is None else normalize_axis_tuple(axis, self.ndim)
        return self.reshape(tuple(size for i, size in enumerate(self.shape) if size != 1 or i not in axes))

    def transpose(self, a, b):
        """Exchange two axes."""
        return self.swapaxes(a, b)

    def split(self, size, dim=0):
        """Cut the axis ``dim`` into pieces of ``size``, the last one with what is left: a tuple of Tensors."""
        before = (slice(None),) * (dim % self.ndim)
        return tuple(self[(*before, slice(i, i + size))] for i in range(0, self.shape[dim], size))

    def contiguous(self):
        """Return this Tensor: NumPy needs no copy for a ``view``, or refuses it."""
        return self

    mT = property(lambda self: self.swapaxes(-1, -2))

    @property
    def T(self):
        """Exchange the two axes of a matrix. Raises RuntimeError for any other number of axes."""
        if self.ndim != 2:
            raise RuntimeError(f"T is for two axes, but this shape is {self.shape}: write mT for the last two")
        return self.mT

    # ---------------------------------------------------------------- what would differ from PyTorch is refused
    def max(self, *axis, **options):
        """Return the largest of all elements. Raises TypeError for an axis: PyTorch's ``max`` then returns a pair."""
        if axis or options:
            raise TypeError("max along an axis returns values and indices in PyTorch: for the values write amax(axis)")
        return self.amax()

    def __getattr__(self, name):
        instead = INSTEAD.get(name, "see dir(Tensor) for what there is")
        raise AttributeError(f"'Tensor' object has no attribute '{name}': {instead}")

    def _in_place(self, other):
        raise RuntimeError("x += y would change a Tensor that a graph may need: write x = x + y, or x.data += y")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __imatmul__ = __ipow__ = _in_place

    def __reduce_ex__(self, protocol):
        if not self.is_leaf:
            raise RuntimeError("a Tensor made by an operation cannot be copied with its graph: detach() it first")
        return super().__reduce_ex__(protocol)
