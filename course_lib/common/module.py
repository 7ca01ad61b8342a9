"""What every layer and model of both tracks can do: find its parameters, switch modes, save and load its weights.

A parameter is an attribute that is a ``Parameter``, trained or frozen; it may be inside lists, tuples or dicts. No
other tensor is one, with or without a gradient. Tensors of both tracks have the same methods, so this file imports
neither track.
"""

from contextlib import contextmanager

import numpy as np

from .checks import mismatches
from .summary import summarize


class Module:
    """Base class of all layers: subclasses set attributes in ``__init__`` and define ``forward``."""

    training = True
    no_grad = mark_changed = None  # each track sets its own

    def __call__(self, *args, **kwargs):
        try:
            return self.forward(*args, **kwargs)
        except AttributeError as error:
            if "memoryview" in str(error):  # an array's own ``data``
                raise TypeError(f"{type(self).__name__} takes a Tensor, not a NumPy array: from_numpy(x)") from error
            raise

    def __setattr__(self, name, value):
        before = vars(self).get(name)
        if hasattr(before, "is_parameter") and not (value is None or hasattr(value, "is_parameter")):
            kind = type(value).__name__
            raise TypeError(f"{name} is a parameter, and a {kind} in its place would never be trained: Parameter(...)")
        super().__setattr__(name, value)

    def __repr__(self):
        lines = repr(self.summary()).splitlines()
        if not self.parameters():
            return lines[0]
        if len(lines) > 20:
            lines[17:-2] = [f"... {len(lines) - 19} more rows: print(model.summary())"]
        return "\n".join(lines)

    # ---------------------------------------------------------------- parameters
    def named_parameters(self):
        """Return pairs (name, parameter) in order of definition; one that is used twice (tied) appears once.

        Raises ValueError if two parameters have one name, such as those under the keys 1 and "1" of a dict.
        """
        found, owners = {}, {}
        for name, value in _walk(self, ""):
            if not isinstance(value, Module):
                if owners.setdefault(name, value) is not value:
                    raise ValueError(f"two parameters are named {name!r}: give one of them another key or attribute")
                found.setdefault(id(value), (name, value))
        return list(found.values())

    def parameters(self):
        """Return the parameters as a list."""
        return [p for _, p in self.named_parameters()]

    def num_parameters(self, trained=False):
        """Return the number of elements of all parameters; with ``trained``, only of those that are not frozen."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not trained)

    def summary(self, ids=None):
        """Return a table of the parts, their shapes and parameter counts; with ``ids`` (B, T), also of output shapes.

        A shared (tied) parameter counts once. Equal blocks share a row: ``blocks.*`` is all of them.
        """
        return summarize(self, list(_walk(self, "")), None if ids is None else np.asarray(ids))

    def state_dict(self):
        """Return a dict of name -> copy of the parameter as a NumPy array."""
        return {name: p.detach().numpy().copy() for name, p in self.named_parameters()}

    def load_state_dict(self, state):
        """Copy arrays into the parameters. Raises ValueError, with every name that is missing, unknown or misshapen."""
        mine = dict(self.named_parameters())
        if wrong := mismatches(state, {name: tuple(p.shape) for name, p in mine.items()}):
            raise ValueError("these weights do not fit this model: " + "; ".join(wrong))
        for name, p in mine.items():
            p.detach().numpy()[...] = state[name]  # in place: an optimiser may hold the same memory
        self.mark_changed(mine.values())

    def zero_grad(self):
        """Clear the gradients of all parameters: they become None, as in PyTorch."""
        for p in self.parameters():
            p.grad = None

    # ---------------------------------------------------------------- modes
    def modules(self):
        """Return this module and all modules inside it, each once."""
        inside = {id(m): m for _, m in _walk(self, "") if isinstance(m, Module)}
        return [self, *(m for m in inside.values() if m is not self)]

    def train(self, mode=True):
        """Switch to training mode (dropout on), here and in every module inside; return the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Switch to evaluation mode (dropout off), here and in every module inside; return the module."""
        return self.train(False)

    @contextmanager
    def evaluating(self):
        """Turn off dropout and graph inside ``with``; restore each module's mode on exit, even after an error."""
        modes = [(module, module.training) for module in self.modules()]
        try:
            for module, _ in modes:  # as eval() does, without searching for the modules again
                module.training = False
            with self.no_grad():
                yield self
        finally:
            for module, mode in modes:
                module.training = mode


def _walk(value, name):
    """Yield every (name, module or parameter) inside ``value``, in order of definition."""
    if isinstance(value, Module):
        yield name, value
        inside = vars(value).items()
    elif isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = enumerate(value)
    else:
        if getattr(value, "is_parameter", False):
            yield name, value
        return
    for key, item in inside:
        yield from _walk(item, f"{name}.{key}" if name else str(key))
