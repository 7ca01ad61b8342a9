"""Optimisers, which turn gradients into new weights: plain gradient descent, AdamW, and clipping.

An optimiser puts all parameters into one long vector; each parameter becomes a view of its piece. One update of the
vector then updates them all, and the norm of the whole gradient is the norm of one vector.
"""

import math

import numpy as np
import torch

from .tensor import Parameter, Tensor, mark_changed


def trained(parameters):
    """Return a list of those ``parameters`` that are trained; frozen ones have ``requires_grad`` False.

    Raises TypeError for anything but parameters of this track.
    """
    parameters = list(parameters)
    for p in parameters:
        if not isinstance(p, Tensor):
            raise TypeError(
                f"an optimiser takes parameters of this track, model.parameters(), not a {type(p).__name__}"
            )
    return [p for p in parameters if p.requires_grad]


def flatten(parameters):
    """Return one Parameter that holds all ``parameters`` end to end, and for each its (slice, data, gradient) there.

    The data of the parameters become these views; gradients do so when they have arrived (``Optimizer.gather``).
    Raises ValueError for no parameters, the same one twice, or mixed precision.
    """
    if not parameters or len({id(p) for p in parameters}) != len(parameters):
        raise ValueError("an optimiser needs a list of different parameters, at least one of them trained")
    if len({p.dtype for p in parameters}) > 1:
        raise ValueError(f"parameters must share one precision; these are {sorted({str(p.dtype) for p in parameters})}")
    flat = Parameter(np.concatenate([p.detach().numpy().reshape(-1) for p in parameters]))
    flat.grad = torch.zeros_like(flat)
    views, start = [], 0
    for p in parameters:
        piece = slice(start, start + p.numel())
        p.data = flat.data[piece].view(p.shape)
        views.append((piece, p.data, flat.grad[piece].view(p.shape)))
        start = piece.stop
    return flat, views


class Optimizer:
    """Base class of optimisers: the parameters, as one vector ``flat``, and the learning rate ``lr``.

    Set ``optimizer.lr`` to change the rate (PyTorch keeps it in param_groups). Parameters that are frozen when the
    optimiser is made are left out; a second optimiser for the same parameters takes them away from the first. A step
    moves only parameters that a gradient has reached since ``zero_grad``. Raises ValueError unless lr is 0 or a
    positive number.
    """

    def __init__(self, parameters, lr):
        if not 0 <= lr < math.inf:
            raise ValueError(f"lr must be 0 or a positive number, not {lr}")
        self.parameters, self.lr = trained(parameters), lr
        self.flat, self.views = flatten(self.parameters)
        self.vectors = [self.flat.data]  # all that an update changes

    def __repr__(self):
        count = f"{self.flat.numel():,} elements in {len(self.parameters)} parameters"
        return f"{type(self).__name__}: {count}, lr {self.lr:g}"

    def zero_grad(self, set_to_none=True):
        """Clear the gradients: they become None, or else 0. Otherwise the next backward adds to the old ones."""
        for p in self.parameters:
            p.grad = None if set_to_none or p.grad is None else p.grad * 0

    def gather(self):
        """Collect the gradients in the vector; return the slices of parameters that no gradient has reached.

        Raises RuntimeError if a parameter is no longer a view of the vector: a step would not reach it.
        """
        unreached = []
        for p, (piece, data, grad) in zip(self.parameters, self.views):
            if p.data_ptr() != data.data_ptr():
                raise RuntimeError(
                    "a parameter has left this optimiser: another one was made for it since (use that one), or its data"
                    " was replaced (write p.data[...] = array)"
                )
            if p.grad is None:
                grad[...] = 0
                unreached.append(piece)
            elif p.grad.data_ptr() != grad.data_ptr():
                grad[...] = p.grad
                p.grad = grad
        return unreached

    def clip_grad_norm_(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; return the norm before."""
        self.gather()
        return clip_grad_norm_([self.flat], max_norm)

    def step(self):
        """Move every parameter that a gradient has reached."""
        kept = [(vector[piece], vector[piece].clone()) for piece in self.gather() for vector in self.vectors]
        self.update()
        for piece, before in kept:
            piece[...] = before
        mark_changed(self.parameters)

    def update(self):
        """Change the vectors by one step: what makes an optimiser, defined by each."""
        raise NotImplementedError


class SGD(Optimizer):
    """Plain gradient descent: ``p ← p - lr · grad``."""

    def update(self):
        """Take one step against the gradient."""
        self.flat.data.sub_(self.flat.grad, alpha=self.lr)

    def state_dict(self):
        """Return everything needed to resume training: the learning rate."""
        return {"lr": float(self.lr)}

    def load_state_dict(self, state):
        """Resume from ``state``."""
        self.lr = float(state["lr"])


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).

    m and v are running means of the gradient and its square, ``m ← β₁ m + (1 - β₁) g``, ``v ← β₂ v + (1 - β₂) g²``,
    and the step is ``p ← p - lr · decay · p - lr · m̂ / (√v̂ + ε)`` with m̂ = m / (1 - β₁ᵗ), v̂ = v / (1 - β₂ᵗ).
    Only matrices decay (two axes or more); biases and LayerNorm weights do not, unless ``decay_all``. (In PyTorch all
    do.) Raises ValueError for betas, weight_decay or lr out of range.
    """

    def __init__(self, parameters, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decay_all=False):
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be at least 0 and below 1, not {betas}")
        if not 0 <= weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or a positive number, not {weight_decay}")
        parameters = trained(parameters)
        decayed = [p for p in parameters if p.ndim >= 2 or decay_all]
        super().__init__(decayed + [p for p in parameters if not (p.ndim >= 2 or decay_all)], lr)
        self.decayed = sum(math.prod(p.shape) for p in decayed)  # the first ``decayed`` elements of the vector decay
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.mean = torch.zeros_like(self.flat.data)
        self.square = torch.zeros_like(self.flat.data)
        self.scratch = torch.empty_like(self.flat.data)
        self.vectors += [self.mean, self.square]
        self.steps = 0  # one counter for all parameters (PyTorch: one each)

    def update(self):
        """Take one step: the formulas above, on the vectors."""
        self.steps += 1
        (beta1, beta2), grad, scratch = self.betas, self.flat.grad, self.scratch
        self.mean.lerp_(grad, 1 - beta1)
        self.square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        # the two corrections 1 - β^t are folded into ε and the rate: fewer passes over the vector
        correction1, correction2 = 1 - beta1**self.steps, math.sqrt(1 - beta2**self.steps)
        torch.sqrt(self.square, out=scratch).add_(self.eps * correction2)
        self.flat.data[: self.decayed] *= 1 - self.lr * self.weight_decay
        self.flat.data.addcdiv_(self.mean, scratch, value=-self.lr * correction2 / correction1)

    def state_dict(self):
        """Return everything needed to resume exactly: both means, the number of steps, the rate; and what decays."""
        means = {"mean": self.mean.numpy().copy(), "square": self.square.numpy().copy()}
        return {**means, "steps": self.steps, "lr": float(self.lr), "decayed": self.decayed}

    def load_state_dict(self, state):
        """Resume from ``state``. Raises ValueError if it belongs to another model or another kind of optimiser."""
        missing = [name for name in ("mean", "square", "steps", "lr", "decayed") if name not in state]
        if missing:
            raise ValueError(f"AdamW cannot resume: {', '.join(missing)} not in this state, only {', '.join(state)}")
        for name in ("mean", "square"):
            if np.shape(state[name]) != tuple(self.mean.shape):
                raise ValueError(
                    f"{name} has shape {np.shape(state[name])} in this state, not {tuple(self.mean.shape)}"
                )
        if state["decayed"] != self.decayed:  # then the vector is in another order
            raise ValueError(f"in this state {state['decayed']} elements decay, here {self.decayed}")
        self.mean.numpy()[...], self.square.numpy()[...] = state["mean"], state["square"]
        self.steps, self.lr = int(state["steps"]), float(state["lr"])


def clip_grad_norm_(parameters, max_norm):
    """Scale all gradients together so that their norm is at most ``max_norm``; return the norm before, a float.

    The norm is that of all gradients as one vector. If it is not finite, nothing changes: the caller decides.
    With ``max_norm`` infinite nothing is clipped. Raises ValueError unless ``max_norm`` is positive.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be positive, not {max_norm}")
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(torch.linalg.vector_norm(g)) ** 2 for g in grads))
    if math.isfinite(norm) and norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm
