"""What lets ``course_lib.training.train`` train an nn.Module: the same loop, on any device, in mixed precision.

model = OnDevice(GPT(config), device="cuda", mixed=True)
train(model, AdamW(model, rate=1e-3), batches, steps=100)
"""

from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import nn

from ..torch_track import models, optim
from .weights import pairs, raw_state

DEVICES = ("cpu", "cuda", "mps")


def best_device():
    """The name of the fastest device here: "cuda" (a GPU of NVIDIA or AMD), "mps" (Apple's), or "cpu"."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


class OnDevice(nn.Module):
    """``model`` on ``device``; batches come as NumPy arrays (B, T) and follow it: -> (logits (B, T, V), loss or None).

    mixed: matrix products in bfloat16, half the memory and on GPUs several times the speed. Weights, their gradients
    and the loss stay float32 (torch.autocast), and bfloat16 has float32's range of exponents, so the loss needs no
    scaling as with float16 (Micikevicius et al. 2018). Raises ValueError for another device.
    """

    def __init__(self, model, device="cpu", mixed=False):
        super().__init__()
        if torch.device(device).type not in DEVICES:
            raise ValueError(f"device must be one of {', '.join(DEVICES)}, not {device!r}")
        self.model, self.device, self.mixed = model.to(device), torch.device(device), mixed

    def forward(self, ids, targets=None):
        ids, targets = (None if a is None else torch.from_numpy(np.array(a)).to(self.device) for a in (ids, targets))
        with torch.autocast(self.device.type, torch.bfloat16) if self.mixed else nullcontext():
            return self.model(ids, targets)

    @contextmanager
    def evaluating(self):
        """``with model.evaluating():`` dropout off, no graph; afterwards each mode is as it was."""
        modes = [(module, module.training) for module in self.modules()]
        try:
            with torch.no_grad():
                yield self.eval()
        finally:
            for module, mode in modes:
                module.training = mode


class AdamW:
    """torch.optim.AdamW with the face of the course's optimisers; only matrices decay. ``model`` is an nn.Module.

    ``state`` has the form of the course's AdamW: one vector in the raw track's order and orientation, the matrices
    first. So a checkpoint goes from one form to the other and training goes on.
    """

    def __init__(self, model, rate, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.01):
        named = dict(model.named_parameters())
        ordered = [(named[name], turned) for name, _, turned in pairs(model)]
        matrices, others = ([pair for pair in ordered if (pair[0].ndim >= 2) == yes] for yes in (True, False))
        self._ordered = matrices + others
        self.parameters = [p for p, _ in self._ordered]
        self.decayed = sum(p.numel() for p, _ in matrices)
        groups = [{"params": [p for p, _ in matrices]}, {"params": [p for p, _ in others], "weight_decay": 0.0}]
        self.inside = torch.optim.AdamW(groups, rate, betas, epsilon, weight_decay)

    @property
    def rate(self):
        """The learning rate."""
        return self.inside.param_groups[0]["lr"]

    @rate.setter
    def rate(self, value):
        for group in self.inside.param_groups:
            group["lr"] = value

    def zero_grad(self):
        """Forget the gradients."""
        self.inside.zero_grad()

    def step(self):
        """Move every parameter once."""
        self.inside.step()

    def clip_grad_norm(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; returns the norm before."""
        # nn.utils.clip_grad_norm_ does it too, but adds 1e-6 to the norm
        return optim.clip_grad_norm(self.parameters, max_norm)

    def state(self):
        """What a later run needs to go on, as the course's AdamW gives it."""
        kept = [self.inside.state.get(p) for p in self.parameters]
        means = {}
        for ours, theirs in (("mean", "exp_avg"), ("square", "exp_avg_sq")):
            pieces = (torch.zeros_like(p) if k is None else k[theirs] for p, k in zip(self.parameters, kept))
            turned = (piece.T if t else piece for piece, (_, t) in zip(pieces, self._ordered))
            means[ours] = np.concatenate([piece.detach().cpu().numpy().reshape(-1) for piece in turned])
        steps = 0 if kept[0] is None else int(kept[0]["step"])
        return {**means, "steps": steps, "rate": float(self.rate), "decayed": self.decayed}

    def load_state(self, state):
        """Go on from ``state``, of this class or of a raw track. Raises ValueError for one of another model."""
        size = sum(p.numel() for p in self.parameters)
        if np.size(state["mean"]) != size or state["decayed"] != self.decayed:
            raise ValueError(
                f"this state is for {np.size(state['mean'])} numbers of which {state['decayed']} decay,"
                f" the model has {size} and {self.decayed}"
            )
        start = 0
        for p, turned in self._ordered:
            end, kept = start + p.numel(), {"step": torch.tensor(float(state["steps"]))}
            for ours, theirs in (("mean", "exp_avg"), ("square", "exp_avg_sq")):
                piece = torch.tensor(state[ours][start:end], dtype=p.dtype).view(p.T.shape if turned else p.shape)
                kept[theirs] = (piece.T if turned else piece).contiguous().to(p.device)
            self.inside.state[p], start = kept, end
        self.rate = float(state["rate"])


def as_raw(model, optimizer=None):
    """A GPT of this package and its AdamW as those of the raw track: (model, optimizer or None), for a checkpoint."""
    raw = models.GPT(model.config)
    raw.load_state(raw_state(model))
    if optimizer is None:
        return raw, None
    copy = optim.AdamW(raw.parameters(), optimizer.rate)
    copy.load_state(optimizer.state())
    return raw, copy
