"""An array that remembers how it was made, so that it can send gradients back.

A ``Tensor`` holds ``data`` (a NumPy array). Each operation returns a new Tensor that knows its parents and a
function ``backward(grad) -> one gradient per parent``: the chain rule of that one operation. ``Tensor.backward``
walks the graph from the result to the leaves and adds up what arrives.

The names follow PyTorch (``requires_grad``, ``grad``, ``detach``, ``item``, ``no_grad`` ...), so that the same
expression runs in both tracks.
"""

import functools

import numpy as np

_recording = True  # is a graph built at the moment? Changed only by no_grad


class no_grad:
    """Inside ``with no_grad():`` no graph is built. Nests; the old state comes back also after an exception."""

    def __enter__(self):
        global _recording
        self.before, _recording = _recording, False

    def __exit__(self, *exception):
        global _recording
        _recording = self.before


def unbroadcast(grad, shape):
    """Undo broadcasting: sum ``grad`` over every axis along which an array of ``shape`` was repeated.

    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    >>> unbroadcast(np.ones((4, 3)), (4, 1)).shape
    (4, 1)
    """
    if grad.shape == shape:
        return grad
    # first the axes that broadcasting put in front, then those that it stretched
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)
    return grad.sum(axis=stretched, keepdims=True) if stretched else grad


def tracked(data, parents, backward):
    """A Tensor made by an operation: it remembers ``parents`` and ``backward`` if any parent wants a gradient.

    Integers take the precision of the floats that they meet, and a float made from integers alone is float32.
    Raises TypeError when a parent has another precision than ``data``: NumPy mixes float32 and float64 in silence.
    """
    out = Tensor.__new__(Tensor)
    out.data = data if type(data) is np.ndarray else np.asarray(data)
    for parent in parents:
        if parent.data.dtype != out.data.dtype:
            out.data, backward = _one_precision(out.data, parents, backward)
            break
    out.grad, out._retain = None, False
    out.requires_grad = _recording and any(parent.requires_grad for parent in parents)
    out._parents, out._backward = (parents, backward) if out.requires_grad else ((), None)
    return out


def _one_precision(data, parents, backward):
    """``data`` and the gradients of ``backward`` in the one precision of the floats among ``parents``."""
    met = {p.data.dtype for p in parents if p.data.dtype.kind == "f"}
    if len(met) > 1 or met and all(p.data.dtype.kind == "f" for p in parents):
        met = " and ".join(sorted({str(p.data.dtype) for p in parents}))
        raise TypeError(f"two precisions meet: {met}; convert one of them first")
    if data.dtype.kind != "f":
        return data, backward
    precision = met.pop() if met else np.float32

    @functools.wraps(backward)  # it keeps its name
    def cast(grad):
        return tuple(contribution.astype(precision) for contribution in backward(grad))

    return data.astype(precision), cast


def _used_up(grad):
    raise RuntimeError("backward() was already called through this graph and has freed it: compute the result again")


class Tensor:
    """A NumPy array with a gradient.

    Floats keep their precision: float32 in, float32 out; float64 in, float64 out. Python floats become float32.
    A number or array that meets a Tensor in an operation is cast to the Tensor's precision.

    Raises TypeError when a gradient is asked of integers, or when two Tensors of different precision meet.

    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4., 6.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_backward", "_parents", "_retain", "data", "grad", "requires_grad")
    __array_ufunc__ = None  # NumPy on the left hands over: np.ones(3) * t calls t.__rmul__

    def __init__(self, data, requires_grad=False):
        if isinstance(data, Tensor):
            data = data.data
        array = np.asarray(data)
        if array.dtype == np.float64 and not isinstance(data, (np.ndarray, np.generic)):
            array = array.astype(np.float32)  # Python floats carry no precision of their own
        if array.dtype.kind not in "fiub":
            raise TypeError(f"a Tensor holds numbers, not {array.dtype}")
        if requires_grad and array.dtype.kind != "f":
            raise TypeError(f"only floats can have a gradient, and this data is {array.dtype}: write 1.0, not 1")
        self.data, self.grad, self.requires_grad = array, None, requires_grad
        self._parents, self._backward, self._retain = (), None, False

    # ---------------------------------------------------------------- gradients
    def backward(self, grad=None):
        """Send ``grad`` (same shape; 1.0 for a single number) from here to every leaf; gradients add up in ``.grad``.

        Each node is visited after everybody who used it, so it passes on its whole gradient at once.
        The graph is freed on the way. Raises RuntimeError without a graph, or through a graph already freed, ValueError
        where an operation broadcast its operands and its backward does not undo that.
        """
        if not self.requires_grad:
            raise RuntimeError("nothing to differentiate: no input of this Tensor has requires_grad=True")
        if grad is None:
            if self.data.size != 1:
                raise RuntimeError(
                    f"backward() starts from one number; this shape is {self.shape}: sum it, or pass grad"
                )
            grad = np.ones_like(self.data)
        grad = np.asarray(grad, self.dtype)
        if grad.shape != self.shape:
            raise ValueError(f"grad has shape {grad.shape}, the Tensor {self.shape}")
        arrived = {id(self): grad}  # gradients on their way, summed over all users of a node
        order = self.topological_order()
        if any(node._backward is _used_up for node in order):
            _used_up(grad)  # before any gradient is touched
        for node in reversed(order):
            grad = arrived.pop(id(node))
            if node._backward is None or node._retain:  # a leaf (or asked to): keep a copy that nobody else holds
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
        """Every Tensor that this one was made from, parents first. A stack, not recursion: graphs are deep."""
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
        """Keep the gradient of this Tensor too, although it is not a leaf."""
        self._retain = True

    def detach(self):
        """The same data, without history."""
        return Tensor(self.data)

    # ---------------------------------------------------------------- looking inside
    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    dtype = property(lambda self: self.data.dtype)
    is_leaf = property(lambda self: self._backward is None)
    T = property(lambda self: self.swapaxes(-1, -2))
    parents = property(lambda self: self._parents)

    @property
    def operation(self):
        """Name of the method or function that made this Tensor; empty for a leaf."""
        return "" if self._backward is None else self._backward.__qualname__.split(".<locals>")[0].split(".")[-1]

    def item(self):
        """The one number inside, as a Python float or int."""
        return self.data.item()

    def numpy(self):
        """The array inside. Not differentiable, so it must be asked of a detached Tensor (as in PyTorch)."""
        if self.requires_grad:
            raise RuntimeError("this Tensor has a gradient: write t.detach().numpy()")
        return self.data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        inside = np.array2string(self.data, separator=", ", precision=4, prefix="tensor(")
        return f"tensor({inside}{', requires_grad=True' if self.requires_grad else ''})"

    # Comparisons are not differentiable: they give plain boolean arrays.
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self.data == _array(other)

    def __ne__(self, other):
        return self.data != _array(other)

    def __lt__(self, other):
        return self.data < _array(other)

    def __le__(self, other):
        return self.data <= _array(other)

    def __gt__(self, other):
        return self.data > _array(other)

    def __ge__(self, other):
        return self.data >= _array(other)

    def __bool__(self):
        return bool(self.data)

    def argmax(self, axis=None):
        """Place of the largest value, a plain integer array: not differentiable."""
        return self.data.argmax(axis=axis)

    # ---------------------------------------------------------------- arithmetic
    def operand(self, other):
        """``other`` as a Tensor: numbers, arrays and integers take this one's precision, float Tensors keep theirs."""
        if isinstance(other, Tensor) and other.dtype.kind == "f" or self.dtype.kind != "f":
            return other if isinstance(other, Tensor) else Tensor(other)
        return Tensor(np.asarray(_array(other), self.dtype))

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
        if isinstance(power, np.generic):
            power = power.item()  # a NumPy number would bring its own precision along
        if not isinstance(power, (int, float)):
            raise TypeError(f"the exponent must be a plain number, not {type(power).__name__}")

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

    # ---------------------------------------------------------------- one array in, one array out
    def exp(self):
        """e to the power x, elementwise; d/dx = exp(x)."""
        out = np.exp(self.data)
        return tracked(out, (self,), lambda grad: (grad * out,))

    def log(self):
        """Natural logarithm, elementwise; d/dx = 1/x."""
        return tracked(np.log(self.data), (self,), lambda grad: (grad / self.data,))

    def tanh(self):
        """Hyperbolic tangent, elementwise; d/dx = 1 - tanh(x)^2."""
        out = np.tanh(self.data)
        return tracked(out, (self,), lambda grad: (grad * (1 - out * out),))

    def sqrt(self):
        """Square root, elementwise; d/dx = 1 / (2 sqrt(x))."""
        return self**0.5

    # ---------------------------------------------------------------- reductions
    def sum(self, axis=None, keepdims=False):
        """Sum over ``axis`` (all axes when None). Backward: every summand gets the gradient of its sum."""

        def backward(grad):
            return (np.broadcast_to(_with_axes(grad, axis, keepdims), self.shape),)

        return tracked(self.data.sum(axis=axis, keepdims=keepdims), (self,), backward)

    def mean(self, axis=None, keepdims=False):
        """Mean over ``axis`` (all axes when None)."""
        total = self.sum(axis=axis, keepdims=keepdims)
        return total * (total.data.size / self.data.size)

    def max(self, axis=None, keepdims=False):
        """Largest value over ``axis``; equal winners share the gradient (as PyTorch's amax does)."""
        out = self.data.max(axis=axis, keepdims=True)

        def backward(grad):
            winners = self.data == out
            share = winners / winners.sum(axis=axis, keepdims=True)
            return (_with_axes(grad, axis, keepdims) * share.astype(self.dtype),)

        kept = out if keepdims else out.reshape(self.data.max(axis=axis).shape)
        return tracked(kept, (self,), backward)

    # ---------------------------------------------------------------- moving numbers, not changing them
    def reshape(self, *shape):
        """The same numbers in another shape."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return tracked(self.data.reshape(shape), (self,), lambda grad: (grad.reshape(self.shape),))

    def swapaxes(self, a, b):
        """Exchange two axes."""
        return tracked(self.data.swapaxes(a, b), (self,), lambda grad: (grad.swapaxes(a, b),))

    def __getitem__(self, index):
        """Pick elements, slices or rows. Backward: a place that was picked twice gets both gradients."""
        index = (
            tuple(_array(i) if isinstance(i, Tensor) else i for i in index)
            if isinstance(index, tuple)
            else _array(index)
        )

        def backward(grad):
            full = np.zeros_like(self.data)
            if isinstance(index, slice):  # every place at most once: plain assignment is enough, and faster
                full[index] = grad
            else:
                np.add.at(full, index, grad)
            return (full,)

        return tracked(self.data[index], (self,), backward)


def _array(value):
    return value.data if isinstance(value, Tensor) else value


def _with_axes(grad, axis, keepdims):
    """Put back the axes that a reduction dropped, with size 1."""
    return grad if axis is None or keepdims else np.expand_dims(grad, axis)


def Parameter(array):
    """A leaf that is trained: a Tensor with a gradient, made from a copy of an array of floats.

    Raises ValueError for an array without numbers, as that of a model with an empty vocabulary.
    """
    if np.size(array) == 0:
        raise ValueError(f"nothing to train: this array has shape {np.shape(array)}")
    leaf = Tensor(array, requires_grad=True)
    leaf.data = leaf.data.copy()  # training must not change the array of the caller
    return leaf


def from_numpy(array):
    """A Tensor around an array, without a gradient."""
    return Tensor(array)


def concatenate(tensors, axis=0):
    """Join Tensors along ``axis``; backward cuts the gradient at the same places."""
    cuts = np.cumsum([t.shape[axis] for t in tensors])[:-1]
    return tracked(
        np.concatenate([t.data for t in tensors], axis=axis),
        tuple(tensors),
        lambda grad: np.split(grad, cuts, axis=axis),
    )
