"""Muon (Jordan et al. 2024), an optimiser of whole matrices, with AdamW for everything else."""

import math

import numpy as np

from .optim import AdamW, Optimizer, clip_grad_norm_, trained
from .tensor import mark_changed

_A, _B, _C = 3.4445, -4.7750, 2.0315  # of Jordan et al.: small singular values grow fast, large ones stay near 1


def orthogonal(matrix, steps=5):
    """Return nearly ``U Vᵀ`` for ``matrix = U S Vᵀ``: (rows, columns) -> the same, all singular values about 1.

    Newton and Schulz's iteration needs only matrix products: each step turns every singular value s into
    ``a s + b s³ + c s⁵``. They start at 1 or below, since the matrix is divided by its norm. After five steps those
    that were above 0.0015 of the norm lie between 0.68 and 1.21; smaller ones have grown up to 485 times. Zeros stay
    zeros.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix  # the products below are smaller this way round
    norm = float(np.linalg.norm(x.astype(np.float64)))  # in float32 the squares of small numbers would vanish
    x = x / max(norm, 1e-30)
    for _ in range(steps):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.T if tall else x


class Muon:
    """An optimiser whose steps are about equally long in every direction of a matrix.

    ``matrices`` are some of ``parameters``; AdamW, with ``adamw`` (betas, eps), moves the others. For a matrix p with
    gradient g a step does ``m ← μ m + (1 - μ) g``, looks ahead (Nesterov), ``u = μ m + (1 - μ) g``, then
    ``p ← p - lr · decay · p - lr · 0.2 √max(rows, columns) · orthogonal(u)``. The factor makes the elements of a step
    about as large as AdamW's (Liu et al. 2025), so that one rate serves both; with ``adamw_lr`` AdamW has its own, and
    whoever sets ``lr`` later, as a schedule does, changes both in proportion. Raises ValueError unless ``matrices`` are
    some of the parameters, not all, distinct and two-dimensional, and the momentum μ lies in [0, 1); and for an
    ``adamw_lr`` beside an ``lr`` of 0.
    """

    def __init__(self, parameters, lr, matrices, momentum=0.95, weight_decay=0.01, adamw_lr=None, **adamw):
        self.parameters, self.matrices = trained(parameters), trained(matrices)
        known, chosen = {id(p) for p in self.parameters}, {id(p) for p in self.matrices}
        different = len(chosen) == len(self.matrices) > 0
        if not different or not chosen < known or any(p.ndim != 2 for p in self.matrices):
            shapes = ", ".join(str(tuple(p.shape)) for p in self.matrices)
            raise ValueError(
                f"matrices must be some of the parameters, distinct and with two axes, not {shapes or 'none'}"
            )
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, not {momentum}")
        if adamw_lr is not None and not lr > 0:
            raise ValueError(f"adamw_lr is kept in proportion to lr, which must be above 0, not {lr}")
        others = [p for p in self.parameters if id(p) not in chosen]
        self.others = AdamW(others, lr if adamw_lr is None else adamw_lr, weight_decay=weight_decay, **adamw)
        self.ratio = 1.0 if adamw_lr is None else adamw_lr / lr
        self.parts = [Optimizer(self.matrices, lr), self.others]  # one vector each
        self.momentum, self.weight_decay = momentum, weight_decay
        self.means = [np.zeros_like(p.data) for p in self.matrices]

    def __repr__(self):
        return f"Muon: {len(self.matrices)} matrices of {len(self.parameters)} parameters, lr {self.lr:g}"

    @property
    def lr(self):
        """Return the learning rate of the matrices; AdamW's is ``ratio`` times as large."""
        return self.parts[0].lr

    @lr.setter
    def lr(self, value):
        self.parts[0].lr, self.others.lr = value, self.ratio * value

    def zero_grad(self, set_to_none=True):
        """Clear the gradients: they become None, or else 0."""
        for part in self.parts:
            part.zero_grad(set_to_none)

    def gather(self):
        """Collect the gradients in the vectors: see ``Optimizer``."""
        for part in self.parts:
            part.gather()

    def clip_grad_norm_(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; return the norm before."""
        self.gather()
        return clip_grad_norm_([part.flat for part in self.parts], max_norm)

    def step(self):
        """Move every parameter that a gradient has reached."""
        self.gather()
        self.others.step()
        for p, mean in zip(self.matrices, self.means):
            if p.grad is None:
                continue
            mean *= self.momentum
            mean += (1 - self.momentum) * p.grad
            ahead = self.momentum * mean + (1 - self.momentum) * p.grad
            p.data *= 1 - self.lr * self.weight_decay
            p.data -= self.lr * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)
        mark_changed(self.matrices)

    def state_dict(self):
        """Return everything needed to resume exactly: the means of the matrices, the rate, and the state of AdamW."""
        means = np.concatenate([mean.reshape(-1) for mean in self.means])
        return {**self.others.state_dict(), "matrices": means, "lr": float(self.lr)}

    def load_state_dict(self, state):
        """Resume from ``state``. Raises ValueError if it belongs to another model or another kind of optimiser."""
        if "matrices" not in state:
            raise ValueError(f"Muon cannot resume from this state: it holds no matrices, only {', '.join(state)}")
        sizes = [math.prod(mean.shape) for mean in self.means]
        if np.shape(state["matrices"]) != (sum(sizes),):
            raise ValueError(f"matrices has shape {np.shape(state['matrices'])} in this state, here {(sum(sizes),)}")
        self.others.load_state_dict({key: value for key, value in state.items() if key != "matrices"})
        self.lr = state["lr"]
        for mean, piece in zip(self.means, np.split(state["matrices"], np.cumsum(sizes)[:-1])):
            mean[...] = piece.reshape(mean.shape)
