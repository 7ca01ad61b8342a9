"""An array that remembers how it was made, so that it can send gradients back.

A ``Tensor`` holds ``data`` (a NumPy array). Each operation returns a new Tensor that knows its parents and a
function ``backward(grad) -> one gradient per parent``: the chain rule of that one operation. ``Tensor.backward``
walks the graph from the result to the leaves and adds up what arrives.

The names are PyTorch's (``requires_grad``, ``grad``, ``detach``, ``item``, ``no_grad`` ...), so that the same
expression runs in both tracks, or is refused. ``axis`` and ``keepdims``, NumPy's words, may also be called ``dim`` and
``keepdim``, as in PyTorch. ``grad`` and what a comparison returns are plain NumPy arrays.
"""

import functools
import math
import threading

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .conveniences import Conveniences


class Tensor(Conveniences):
    """A NumPy array with a gradient; ``data`` is copied, as by torch.tensor.

    Floats keep their precision: float32 in, float32 out; float64 in, float64 out. Python floats become float32.
    A number or array that is combined with a Tensor is cast to the Tensor's precision.

    Raises TypeError if integers ask for a gradient, or if Tensors of different precision are combined.

    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4., 6.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_backward", "_clock", "_parents", "_retain", "data", "grad", "requires_grad")
    __array_ufunc__ = None  # NumPy on the left gives way: np.ones(3) * t calls t.__rmul__

    def __init__(self, data, requires_grad=False):
        array = np.array(_array(data), order="C")
        if array.dtype == np.float64 and not isinstance(data, (Tensor, np.ndarray, np.generic)):
            array = array.astype(np.float32)  # Python floats carry no precision of their own
        if array.dtype.kind not in "fiub":
            raise TypeError(f"a Tensor holds numbers, not {array.dtype}")
        if requires_grad and array.dtype.kind != "f":
            raise TypeError(f"only floats can have a gradient, but this data is {array.dtype}: write 1.0, not 1")
        self.data, self.grad, self.requires_grad = array, None, requires_grad
        self._parents, self._backward, self._retain, self._clock = (), None, False, 0

    # ---------------------------------------------------------------- gradients
    def backward(self, grad=None):
        """Send ``grad`` (same shape; 1.0 for a single number) from here to every leaf; gradients add up in ``.grad``.

        Each node is visited after all nodes that use it, so it passes on its whole gradient at once.
        The graph is freed on the way. Raises RuntimeError without a graph, for a graph already freed, or after a step
        that moved a leaf of it; ValueError if an operation broadcast its operands and its backward does not undo that.
        """
        if not self.requires_grad:
            raise RuntimeError("nothing to differentiate: no input of this Tensor has requires_grad=True")
        if grad is None:
            if self.data.size != 1:
                raise RuntimeError(
                    f"backward() starts from a single number, not from shape {self.shape}: sum it, or pass grad"
                )
            grad = np.ones_like(self.data)
        grad = np.asarray(grad, self.dtype)
        if grad.shape != self.shape:
            raise ValueError(f"grad has shape {grad.shape}, the Tensor {self.shape}")
        arrived = {id(self): grad}  # gradients on their way, summed over all uses of a node
        order = self.topological_order()
        if _used_up in [node._backward for node in order]:
            _used_up(grad)  # before any gradient is touched
        if max([node._clock for node in order if node._backward is None], default=0) > self._clock:
            raise RuntimeError(
                "a parameter was changed after this loss was computed from it (an optimiser's step, or new weights):"
                " the gradient would mix old and new values; compute the loss again"
            )
        for node in reversed(order):
            grad = arrived.pop(id(node))
            if node._backward is None or node._retain:  # a leaf (or asked to): keep a copy of its own
                node.grad = np.array(grad) if node.grad is None else node.grad.__iadd__(grad)
            if node._backward is None:
                continue
            for parent, contribution in zip(node._parents, node._backward(grad), strict=True):
                if parent.requires_grad:
                    if contribution.shape != parent.data.shape:
                        raise ValueError(
                            f"{node.operation} made a gradient of shape {contribution.shape} for an operand of shape"
                            f" {parent.shape}, which it cannot broadcast: give the operand its full shape"
                        )
                    key = id(parent)
                    arrived[key] = arrived[key] + contribution if key in arrived else contribution
            node._parents, node._backward = (), _used_up

    def topological_order(self):
        """Return every Tensor that this one was made from, parents first. A stack, not recursion: graphs are deep."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            node, parents_done = stack.pop()
            if parents_done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((parent, False) for parent in node._parents if parent.requires_grad)
        return order

    def retain_grad(self):
        """Keep the gradient of this Tensor, although it is not a leaf."""
        self._retain = True

    def detach(self):
        """Return the same data (not a copy) without a graph."""
        return from_numpy(self.data)

    # ---------------------------------------------------------------- looking inside
    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: self.data.dtype)
    is_leaf = property(lambda self: self._backward is None)
    parents = property(lambda self: self._parents)

    @property
    def operation(self):
        """Return the name of the method or function that made this Tensor; empty for a leaf."""
        return "" if self._backward is None else self._backward.__qualname__.split(".<locals>")[0].split(".")[-1]

    def numpy(self):
        """Return the array inside. Raises RuntimeError unless the Tensor is detached: this is not differentiable."""
        if self.requires_grad:
            raise RuntimeError("this Tensor has a gradient: write t.detach().numpy()")
        return self.data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __repr__(self):
        inside = np.array2string(self.data, separator=", ", precision=4, prefix="tensor(")
        return f"tensor({inside}{', requires_grad=True' if self.requires_grad else ''})"

    # Comparisons are not differentiable: they return plain boolean arrays.
    __hash__ = object.__hash__

    def __eq__(self, other):
        return NotImplemented if other is None else self.data == _array(other)

    def __ne__(self, other):
        return NotImplemented if other is None else self.data != _array(other)

    def __lt__(self, other):
        return self.data < _array(other)

    def __le__(self, other):
        return self.data <= _array(other)

    def __gt__(self, other):
        return self.data > _array(other)

    def __ge__(self, other):
        return self.data >= _array(other)

    def argmax(self, axis=None):
        """Return the index of the largest value, a plain integer array: not differentiable."""
        return self.data.argmax(axis=axis)

    # ---------------------------------------------------------------- arithmetic
    def operand(self, other):
        """Return ``other`` as a Tensor: a float Tensor keeps its precision, anything else takes this one's."""
        if isinstance(other, Tensor) and other.dtype.kind == "f" or self.dtype.kind != "f":
            return other if isinstance(other, Tensor) else Tensor(other)
        return from_numpy(np.asarray(_array(other), self.dtype))

    def __add__(self, other):
        other = self.operand(other)

        def backward(grad):
            return unbroadcast(grad, self.shape), unbroadcast(grad, other.shape)

        return tracked(self.data + other.data, (self, other), backward)

    def __mul__(self, other):
        other = self.operand(other)

        def backward(grad):
            return unbroadcast(grad * other.data, self.shape), unbroadcast(grad * self.data, other.shape)

        return tracked(self.data * other.data, (self, other), backward)

    def __sub__(self, other):
        other = self.operand(other)

        def backward(grad):
            return unbroadcast(grad, self.shape), unbroadcast(-grad, other.shape)

        return tracked(self.data - other.data, (self, other), backward)

    def __truediv__(self, other):
        other = self.operand(other)

        def backward(grad):
            by_self = grad / other.data
            return unbroadcast(by_self, self.shape), unbroadcast(-by_self * self.data / other.data, other.shape)

        return tracked(self.data / other.data, (self, other), backward)

    def __pow__(self, power):
        power = _plain(power, "the exponent")

        def backward(grad):
            slope = power * self.data ** (power - 1) if power else np.zeros_like(self.data)  # 0 also at x = 0
            return (grad * slope,)

        return tracked(self.data**power, (self,), backward)

    def __matmul__(self, other):
        other = self.operand(other)
        # A vector is a matrix with one row (left) or one column (right); matmul drops that axis again.
        left = self.data[None, :] if self.ndim == 1 else self.data
        right = other.data[:, None] if other.ndim == 1 else other.data

        def backward(grad):
            grad = grad[..., None] if other.ndim == 1 else grad
            grad = grad[..., None, :] if self.ndim == 1 else grad
            by_left = unbroadcast(grad @ right.swapaxes(-1, -2), left.shape)
            by_right = unbroadcast(left.swapaxes(-1, -2) @ grad, right.shape)
            return by_left.reshape(self.shape), by_right.reshape(other.shape)

        return tracked(self.data @ other.data, (self, other), backward)

    # ---------------------------------------------------------------- one array in, one array out
    def exp(self):
        """Return e to the power x, elementwise; d/dx = exp(x)."""
        out = np.exp(self.data)
        return tracked(out, (self,), lambda grad: (grad * out,))

    def log(self):
        """Return the natural logarithm, elementwise; d/dx = 1/x."""
        return tracked(np.log(self.data), (self,), lambda grad: (grad / self.data,))

    def tanh(self):
        """Return the hyperbolic tangent, elementwise; d/dx = 1 - tanh(x)²."""
        out = np.tanh(self.data)
        return tracked(out, (self,), lambda grad: (grad * (1 - out * out),))

    def sigmoid(self):
        """Return s = 1 / (1 + exp(-x)), elementwise; d/dx = s (1 - s)."""
        e = np.exp(-np.abs(self.data))  # at most 1: no overflow
        out = np.where(self.data < 0, e, 1) / (1 + e)
        return tracked(out, (self,), lambda grad: (grad * out * (1 - out),))

    def sqrt(self):
        """Return the square root, elementwise; d/dx = 1 / (2 √x)."""
        return self**0.5

    def abs(self):
        """Return the absolute value, elementwise; d/dx = sign(x), 0 at 0."""
        return tracked(np.abs(self.data), (self,), lambda grad: (grad * np.sign(self.data),))

    __abs__ = abs

    def clamp(self, min=None, max=None):
        """Replace elements below ``min`` by ``min`` and above ``max`` by ``max``; the others pass their gradient."""
        if min is None and max is None:
            raise ValueError("clamp needs min, max or both")
        low, high = (None if bound is None else _plain(bound, "a bound of clamp") for bound in (min, max))
        out = np.clip(self.data, low, high)
        return tracked(out, (self,), lambda grad: (grad * (self.data == out),))

    def masked_fill(self, mask, value):
        """Put the number ``value`` where ``mask`` (booleans) is True; no gradient passes there."""
        return where(mask, _plain(value, "the value"), self)

    # ---------------------------------------------------------------- reductions
    def sum(self, axis=None, keepdims=False):
        """Sum over ``axis`` (all axes when None). Backward: every summand gets the gradient of its sum."""

        def backward(grad):
            return (np.broadcast_to(_with_axes(grad, axis, keepdims), self.shape),)

        return tracked(self.data.sum(axis=axis, keepdims=keepdims), (self,), backward)

    def mean(self, axis=None, keepdims=False):
        """Return the mean over ``axis`` (all axes when None); of no elements it is nan."""
        total = self.sum(axis=axis, keepdims=keepdims)
        return total * (total.numel() / self.numel() if self.numel() else math.nan)

    def var(self, axis=None, *, correction=1, keepdims=False):
        """Return the variance over ``axis``, ``Σ (x - μ)² / (n - correction)``; d/dx = 2 (x - μ) / (n - correction)."""
        centred = self.data - self.data.mean(axis=axis, keepdims=True)
        out = self.data.var(axis=axis, ddof=correction, keepdims=keepdims)
        count = self.numel() // max(out.size, 1) - correction

        def backward(grad):
            return (_with_axes(grad, axis, keepdims) * 2 * centred / count,)

        return tracked(out, (self,), backward)

    def amax(self, axis=None, keepdims=False):
        """Return the largest value over ``axis``; equal maxima share the gradient."""
        out = self.data.max(axis=axis, keepdims=True)

        def backward(grad):
            winners = self.data == out
            share = winners / winners.sum(axis=axis, keepdims=True)
            return (_with_axes(grad, axis, keepdims) * share.astype(self.dtype),)

        kept = out if keepdims else out.reshape(self.data.max(axis=axis).shape)
        return tracked(kept, (self,), backward)

    # ---------------------------------------------------------------- the same elements, rearranged
    def reshape(self, *shape):
        """Return the same elements in another shape: ``reshape(2, -1)``, or one tuple or list."""
        return tracked(self.data.reshape(*shape), (self,), lambda grad: (grad.reshape(self.shape),))

    def swapaxes(self, a, b):
        """Exchange two axes."""
        return tracked(self.data.swapaxes(a, b), (self,), lambda grad: (grad.swapaxes(a, b),))

    def permute(self, *axes):
        """Put the axes in a new order: ``permute(2, 0, 1)``, or one tuple or list."""
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        back = np.argsort(normalize_axis_tuple(axes, self.ndim))
        return tracked(self.data.transpose(axes), (self,), lambda grad: (grad.transpose(back),))

    def __getitem__(self, index):
        """Pick elements, slices or rows. Backward: an element picked twice gets both gradients."""
        index = (
            tuple(_array(i) if isinstance(i, Tensor) else i for i in index)
            if isinstance(index, tuple)
            else _array(index)
        )

        def backward(grad):
            full = np.zeros_like(self.data)
            if isinstance(index, slice):  # every element at most once: plain assignment is enough, and faster
                full[index] = grad
            else:
                np.add.at(full, index, grad)
            return (full,)

        return tracked(self.data[index], (self,), backward)


class Parameter(Tensor):
    """A trained leaf: a Tensor with a gradient, made from a copy of an array of floats.

    Raises ValueError for an array without elements, such as the table of an empty vocabulary.
    """

    __slots__ = ()
    is_parameter = True  # how a Module recognises it; requires_grad only says whether it is trained or frozen

    def __init__(self, array, requires_grad=True):
        super().__init__(array, requires_grad)
        if self.numel() == 0:
            raise ValueError(f"nothing to train: this array has shape {self.shape}")


def from_numpy(array):
    """Wrap an array of numbers (not a copy of it) in a Tensor without a gradient."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise TypeError(f"from_numpy takes an array of numbers, not {getattr(array, 'dtype', type(array).__name__)}")
    return tracked(array, (), None)


def concatenate(tensors, dim=0):
    """Join Tensors along the axis ``dim``; backward splits the gradient at the same indices."""
    cuts = np.cumsum([t.shape[dim] for t in tensors])[:-1]
    return tracked(
        np.concatenate([t.data for t in tensors], axis=dim),
        tuple(tensors),
        lambda grad: np.split(grad, cuts, axis=dim),
    )


def where(condition, a, b):
    """Take ``a`` where ``condition`` (booleans) is True, else ``b``; each gets the gradient of its own elements."""
    condition = np.asarray(_array(condition))
    if condition.dtype != bool:
        raise TypeError(f"the condition must be boolean, not {condition.dtype}")
    if not isinstance(a, Tensor):
        a = b.operand(a) if isinstance(b, Tensor) else Tensor(a)
    b = a.operand(b)

    def backward(grad):
        by_a, by_b = np.where(condition, grad, 0), np.where(condition, 0, grad)
        return unbroadcast(by_a, a.shape), unbroadcast(by_b, b.shape)

    return tracked(np.where(condition, a.data, b.data), (a, b), backward)


# ------------------------------------------------------------------ how an operation joins the graph
class _Changes:
    count = 0  # how often parameters have been changed in place: when a Tensor was made, or a parameter last changed


_changes = _Changes()


def mark_changed(tensors):
    """Note that the data of these leaves has been changed in place; a loss computed before refuses its backward."""
    _changes.count += 1
    for tensor in tensors:
        tensor._clock = _changes.count


class _Recording(threading.local):
    on = True  # is a graph being built? One per thread; only no_grad changes it


_recording = _Recording()


class no_grad:
    """A context, ``with no_grad():``, or a decorator, ``@no_grad()``: no graph is built inside, in this thread.

    It nests, and restores the old state even after an exception.
    """

    def __enter__(self):
        self.before, _recording.on = _recording.on, False

    def __exit__(self, *exception):
        _recording.on = self.before

    def __call__(self, function):
        @functools.wraps(function)
        def without_graph(*args, **kwargs):
            with no_grad():
                return function(*args, **kwargs)

        return without_graph


def tracked(data, parents, backward):
    """Return a Tensor made by an operation: it remembers ``parents`` and ``backward`` if a parent needs a gradient.

    Integers take the precision of the floats they are combined with; a float made from integers alone is float32.
    Raises TypeError if the parents differ in precision: NumPy silently mixes float32 and float64.
    """
    out = Tensor.__new__(Tensor)
    out.data = data if type(data) is np.ndarray else np.asarray(data)
    for parent in parents:
        if parent.data.dtype != out.data.dtype:
            out.data, backward = _one_precision(out.data, parents, backward)
            break
    out.grad, out._retain, out._clock = None, False, _changes.count
    out.requires_grad, out._parents, out._backward = False, (), None
    if _recording.on:
        for parent in parents:  # a loop takes half the time of any()
            if parent.requires_grad:
                out.requires_grad, out._parents, out._backward = True, parents, backward
                break
    return out


def _one_precision(data, parents, backward):
    """Return ``data`` and ``backward``, both cast to the one precision of the floats among ``parents``."""
    met = {p.data.dtype for p in parents if p.data.dtype.kind == "f"}
    if len(met) > 1 or met and all(p.data.dtype.kind == "f" for p in parents):
        met = " and ".join(sorted({str(p.data.dtype) for p in parents}))
        raise TypeError(f"two precisions in one operation: {met}; convert one of them first")
    if data.dtype.kind != "f":
        return data, backward
    precision = met.pop() if met else np.float32

    @functools.wraps(backward)  # it keeps its name
    def cast(grad):
        return tuple(contribution.astype(precision) for contribution in backward(grad))

    return data.astype(precision), cast


def unbroadcast(grad, shape):
    """Undo broadcasting: sum ``grad`` over every axis along which an array of ``shape`` was repeated.

    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    >>> unbroadcast(np.ones((4, 3)), (4, 1)).shape
    (4, 1)
    """
    if grad.shape == shape:
        return grad
    # first the axes that broadcasting added in front, then those that it stretched
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)
    return grad.sum(axis=stretched, keepdims=True) if stretched else grad


def _array(value):
    return value.data if isinstance(value, Tensor) else value


def _with_axes(grad, axis, keepdims):
    """Restore the axes that a reduction dropped, with size 1."""
    return grad if axis is None or keepdims else np.expand_dims(grad, axis)


def _plain(number, name):
    """Return a Python number: one of NumPy's would bring its own precision along."""
    number = number.item() if isinstance(number, np.generic) else number
    if not isinstance(number, (int, float)):
        raise TypeError(f"{name} must be a plain number, not {type(number).__name__}")
    return number


def _used_up(grad):
    raise RuntimeError("backward() was already called through this graph and has freed it: compute the result again")


def _torch_words(method):
    """Let ``method`` take PyTorch's ``dim`` and ``keepdim`` for ``axis`` and ``keepdims``."""

    @functools.wraps(method)
    def call(self, *args, **options):
        for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
            if theirs in options:
                options[ours] = options.pop(theirs)
        return method(self, *args, **options)

    return call


for _name in ("sum", "mean", "var", "amax", "argmax", "squeeze", "unsqueeze"):
    setattr(Tensor, _name, _torch_words(getattr(Tensor, _name)))
