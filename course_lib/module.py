"""What every layer and model of both tracks can do: find its parameters, switch modes, save and load its weights.

A parameter is any attribute that is a leaf tensor with ``requires_grad``; it may sit in lists, tuples or dicts.
Tensors of both tracks answer to the same names, so this file needs neither of them.
"""

from contextlib import contextmanager

import numpy as np

from .memory import keep_freed_memory
from .summary import summarize

keep_freed_memory()


class Module:
    """Base of all layers. Subclasses set attributes in ``__init__`` and define ``forward``."""

    training = True
    no_grad = None  # each track puts its own here

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    # ---------------------------------------------------------------- parameters
    def named_parameters(self):
        """Dict of name -> parameter in order of definition; one that is used twice (tied) appears once."""
        found, seen = {}, set()
        for name, value in _walk(self, ""):
            if not isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                found[name] = value
        return found

    def parameters(self):
        """The parameters as a list."""
        return list(self.named_parameters().values())

    def number_of_parameters(self):
        """How many numbers are trained."""
        return sum(int(np.prod(p.shape)) for p in self.parameters())

    def summary(self, ids=None):
        """Parts, shapes and numbers of parameters as a table; with ``ids`` (B, T) also what shape each part returns.

        A shared (tied) parameter counts once. Equal blocks share a row: ``blocks.*`` stands for all of them.
        """
        return summarize(self, list(_walk(self, "")), None if ids is None else np.asarray(ids))

    def state(self):
        """Dict of name -> copy of the parameter as a NumPy array."""
        return {name: p.detach().numpy().copy() for name, p in self.named_parameters().items()}

    def load_state(self, state):
        """Copy arrays into the parameters. ValueError names what is missing, unknown or of another shape."""
        mine = self.named_parameters()
        wrong = [f"{name} is missing" for name in mine if name not in state]
        wrong += [f"{name} is unknown here" for name in state if name not in mine]
        wrong += [
            f"{name} has shape {np.shape(state[name])}, here {tuple(p.shape)}"
            for name, p in mine.items()
            if name in state and np.shape(state[name]) != tuple(p.shape)
        ]
        if wrong:
            raise ValueError("these weights do not fit this model: " + "; ".join(wrong))
        for name, p in mine.items():
            p.detach().numpy()[...] = state[name]  # in place: an optimiser may hold the same memory

    # ---------------------------------------------------------------- modes
    def modules(self):
        """This module and all modules inside it, each once."""
        inside = {id(m): m for _, m in _walk(self, "") if isinstance(m, Module)}
        return [self, *(m for m in inside.values() if m is not self)]

    def train(self, mode=True):
        """Training mode (dropout on), here and in every module inside. Returns the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Evaluation mode (dropout off), here and in every module inside. Returns the module."""
        return self.train(False)

    @contextmanager
    def evaluating(self):
        """``with model.evaluating():`` dropout off, no graph; afterwards each mode is as it was, also on an error."""
        modes = [(module, module.training) for module in self.modules()]
        try:
            for module, _ in modes:  # what eval() does, without looking for the modules again
                module.training = False
            with self.no_grad():
                yield self
        finally:
            for module, mode in modes:
                module.training = mode


def _walk(value, name):
    """Every (name, module or parameter) inside ``value``, in order of definition."""
    if isinstance(value, Module):
        yield name, value
        inside = vars(value).items()
    elif isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, (list, tuple)):
        inside = enumerate(value)
    else:
        if getattr(value, "requires_grad", False) and value.is_leaf:
            yield name, value
        return
    for key, item in inside:
        yield from _walk(item, f"{name}.{key}" if name else str(key))
