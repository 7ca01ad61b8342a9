"""An optimiser that looks at whole matrices: Muon (Jordan et al. 2024), with AdamW for everything else."""

import math

import numpy as np
import torch

from .optim import AdamW, Optimizer, clip_grad_norm

_A, _B, _C = 3.4445, -4.7750, 2.0315  # of Jordan et al.: small singular values grow fast, large ones stay near 1


def orthogonal(matrix, steps=5):
    """Nearly ``U Vᵀ`` where ``matrix = U S Vᵀ``: the same directions, all singular values about 1.

    The way of Newton and Schulz, with matrix products alone: a step makes ``a s + b s³ + c s⁵`` of every singular value
    s. They begin at 1 or below, since the matrix is divided by its norm. After five steps those that
    were above 0.0015 of the norm lie between 0.68 and 1.21; smaller ones have grown up to 485 times. Zeros stay zeros.
    (rows, columns) -> (rows, columns)
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix  # the products below are smaller this way round
    norm = float(torch.linalg.vector_norm(x.double()))  # in float32 the squares of small numbers would vanish
    x = x / max(norm, 1e-30)
    for _ in range(steps):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.T if tall else x


class Muon:
    """Steps that are nearly equally long in every direction of a matrix.

    ``matrices`` are some of ``parameters``; the others move by AdamW, which gets ``adamw`` (betas, epsilon). For a
    matrix p with gradient g a step does ``m ← μ m + (1 - μ) g``, looks ahead (Nesterov), ``u = μ m + (1 - μ) g``, then
    ``p ← p - rate · decay · p - rate · 0.2 √max(rows, columns) · orthogonal(u)``. The factor makes the numbers of a
    step as large as AdamW's usually are (Liu et al. 2025), so that one rate serves both. Raises ValueError unless
    ``matrices`` are some of the parameters, not all, each once and with two axes, and the momentum μ lies in [0, 1).
    """

    def __init__(self, parameters, rate, matrices, momentum=0.95, weight_decay=0.01, **adamw):
        self.parameters, self.matrices = list(parameters), list(matrices)
        known, chosen = {id(p) for p in self.parameters}, {id(p) for p in self.matrices}
        different = len(chosen) == len(self.matrices) > 0
        if not different or not chosen < known or any(p.ndim != 2 for p in self.matrices):
            shapes = ", ".join(str(tuple(p.shape)) for p in self.matrices)
            raise ValueError(
                f"matrices must be some of the parameters, each once and with two axes, not {shapes or 'none'}"
            )
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {momentum}")
        others = [p for p in self.parameters if id(p) not in chosen]
        self.others = AdamW(others, rate, weight_decay=weight_decay, **adamw)  # it checks rate and decay
        self.parts = [Optimizer(self.matrices, rate), self.others]  # one vector each
        self.momentum, self.weight_decay = momentum, weight_decay
        self.means = [torch.zeros_like(p.data) for p in self.matrices]

    @property
    def rate(self):
        """The learning rate, one for all parameters."""
        return self.others.rate

    @rate.setter
    def rate(self, value):
        self.others.rate = value

    def zero_grad(self):
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad()

    def check_owner(self):
        """RuntimeError if one of the two vectors is no longer that of the parameters: see ``Optimizer``."""
        for part in self.parts:
            part.check_owner()

    def clip_grad_norm(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; returns the norm before."""
        return clip_grad_norm([part.flat for part in self.parts], max_norm)

    def step(self):
        """Move every parameter once."""
        self.check_owner()
        self.others.step()
        for p, mean in zip(self.matrices, self.means):
            mean *= self.momentum
            mean += (1 - self.momentum) * p.grad
            ahead = self.momentum * mean + (1 - self.momentum) * p.grad
            p.data *= 1 - self.rate * self.weight_decay
            p.data -= self.rate * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)

    def state(self):
        """What a later run needs to go on exactly: the means of the matrices, and the state of AdamW."""
        return {"matrices": torch.cat([mean.reshape(-1) for mean in self.means]).numpy(), **self.others.state()}

    def load_state(self, state):
        """Go on from ``state``. Raises ValueError when it belongs to another model or another kind of optimiser."""
        if "matrices" not in state:
            raise ValueError(f"Muon cannot go on from this state: it holds no matrices, only {', '.join(state)}")
        sizes = [math.prod(mean.shape) for mean in self.means]
        if np.shape(state["matrices"]) != (sum(sizes),):
            raise ValueError(
                f"matrices has the shape {np.shape(state['matrices'])} in this state, here {(sum(sizes),)}"
            )
        self.others.load_state({key: value for key, value in state.items() if key != "matrices"})
        for mean, piece in zip(self.means, np.split(state["matrices"], np.cumsum(sizes)[:-1])):
            mean.numpy()[...] = piece.reshape(mean.shape)
