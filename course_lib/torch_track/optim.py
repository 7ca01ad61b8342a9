"""How a gradient changes the weights: plain gradient descent, AdamW, and clipping.

An optimiser puts all parameters into one long vector; each parameter becomes a view of its piece. One update of the
vector then updates them all, and the norm of the whole gradient is the norm of one vector.
"""

import math

import numpy as np
import torch

from .tensor import Parameter


def flatten(parameters):
    """One Parameter that holds all of ``parameters`` end to end; their data and gradients become views of it.

    Raises ValueError for no parameters, the same one twice, or mixed precision.
    """
    if not parameters or len({id(p) for p in parameters}) != len(parameters):
        raise ValueError("an optimiser needs a list of different parameters")
    if len({p.dtype for p in parameters}) > 1:
        raise ValueError(f"parameters of one precision, please; these are {sorted({str(p.dtype) for p in parameters})}")
    flat = Parameter(np.concatenate([p.detach().numpy().reshape(-1) for p in parameters]))
    flat.grad = torch.zeros_like(flat)
    start = 0
    for p in parameters:
        end = start + p.numel()
        flat.grad[start:end] = 0 if p.grad is None else p.grad.reshape(-1)
        p.data = flat.data[start:end].view(p.shape)
        p.grad = flat.grad[start:end].view(p.shape)
        start = end
    return flat


class Optimizer:
    """What all optimisers share: the parameters, as one vector ``flat``, and the learning ``rate`` (0 or more)."""

    def __init__(self, parameters, rate):
        if not 0 <= rate < math.inf:
            raise ValueError(f"rate must be 0 or a positive number, not {rate}")
        self.parameters, self.rate = list(parameters), rate
        self.flat = flatten(self.parameters)

    def zero_grad(self):
        """Forget the gradients; without this, the next backward adds to the old ones."""
        self.flat.grad.zero_()

    def check_owner(self):
        """RuntimeError if the parameters live in the vector of another optimiser: a step here reaches nobody."""
        if self.parameters[0].data_ptr() != self.flat.data_ptr():
            raise RuntimeError("another optimiser was made for this model since: use that one, or make this one again")

    def clip_grad_norm(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; returns the norm before."""
        return clip_grad_norm([self.flat], max_norm)


class SGD(Optimizer):
    """Plain gradient descent: ``p ← p - rate · grad``."""

    def step(self):
        """Move every parameter once, against its gradient."""
        self.check_owner()
        self.flat.data.sub_(self.flat.grad, alpha=self.rate)

    def state(self):
        """What a later run needs to go on: nothing but the rate."""
        return {"rate": float(self.rate)}

    def load_state(self, state):
        """Go on from ``state``."""
        self.rate = float(state["rate"])


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).

    m and v are running means of the gradient and its square, ``m ← β₁ m + (1 - β₁) g``, ``v ← β₂ v + (1 - β₂) g²``,
    and the step is ``p ← p - rate · decay · p - rate · m̂ / (√v̂ + ε)`` with m̂ = m / (1 - β₁ᵗ), v̂ = v / (1 - β₂ᵗ).
    Only matrices decay (two axes or more); biases and LayerNorm gains do not, unless ``decay_all``.
    """

    def __init__(self, parameters, rate, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.01, decay_all=False):
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must be at least 0 and below 1, not {betas}")
        if not 0 <= weight_decay < math.inf:
            raise ValueError(f"weight_decay must be 0 or a positive number, not {weight_decay}")
        parameters = list(parameters)
        decayed = [p for p in parameters if p.ndim >= 2 or decay_all]
        super().__init__(decayed + [p for p in parameters if not (p.ndim >= 2 or decay_all)], rate)
        self.decayed = sum(math.prod(p.shape) for p in decayed)  # the first so many numbers of the vector decay
        self.betas, self.epsilon, self.weight_decay = betas, epsilon, weight_decay
        self.mean = torch.zeros_like(self.flat.data)
        self.square = torch.zeros_like(self.flat.data)
        self.scratch = torch.empty_like(self.flat.data)
        self.steps = 0  # one count for all parameters

    def step(self):
        """Move every parameter once."""
        self.check_owner()
        self.steps += 1
        (beta1, beta2), grad, scratch = self.betas, self.flat.grad, self.scratch
        self.mean.lerp_(grad, 1 - beta1)
        self.square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        # the two corrections 1 - β^t are folded into ε and the rate: fewer passes over the vector
        correction1, correction2 = 1 - beta1**self.steps, math.sqrt(1 - beta2**self.steps)
        torch.sqrt(self.square, out=scratch).add_(self.epsilon * correction2)
        self.flat.data[: self.decayed] *= 1 - self.rate * self.weight_decay
        self.flat.data.addcdiv_(self.mean, scratch, value=-self.rate * correction2 / correction1)

    def state(self):
        """What a later run needs to go on exactly: both means, the number of steps, the rate; and what decays."""
        means = {"mean": self.mean.numpy().copy(), "square": self.square.numpy().copy()}
        return {**means, "steps": self.steps, "rate": float(self.rate), "decayed": self.decayed}

    def load_state(self, state):
        """Go on from ``state``. Raises ValueError when it belongs to another model or another kind of optimiser."""
        if "mean" not in state:
            raise ValueError(f"AdamW cannot go on from this state: it holds no means, only {', '.join(state)}")
        if np.shape(state["mean"]) != tuple(self.mean.shape):
            raise ValueError(f"this state is for {np.size(state['mean'])} numbers, the model has {self.mean.numel()}")
        if state["decayed"] != self.decayed:  # then the vector is in another order
            raise ValueError(f"in this state {state['decayed']} numbers decay, here {self.decayed}")
        self.mean.numpy()[...], self.square.numpy()[...] = state["mean"], state["square"]
        self.steps, self.rate = int(state["steps"]), float(state["rate"])


def clip_grad_norm(parameters, max_norm):
    """Scale all gradients together so that their norm is at most ``max_norm``; returns the norm before (a float).

    The norm is that of all gradients as one vector. When it is not finite, nothing is changed: the caller decides.
    With ``max_norm`` infinite nothing is clipped. Raises ValueError unless it is positive.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be positive, not {max_norm}")
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(torch.linalg.vector_norm(g)) ** 2 for g in grads))
    if math.isfinite(norm) and norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm
