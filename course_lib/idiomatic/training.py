"""Adapters that let ``course_lib.training.train`` train an nn.Module, on any device, also in mixed precision.

model = OnDevice(GPT(config), device="cuda", mixed=True)
train(model, AdamW(model, lr=1e-3), batches, steps=100)
"""

from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import nn

from ..torch_track import models, optim
from .weights import pairs, raw_state

DEVICES = ("cpu", "cuda", "mps")


class OnDevice(nn.Module):
    """A model on a device: ids and targets as NumPy arrays (B, T) -> (logits (B, T, V), loss or None).

    ``mixed`` computes matrix products in bfloat16: half the memory, and on GPUs several times the speed. Weights, their
    gradients and the loss stay float32 (torch.autocast). bfloat16 has float32's range of exponents, so the loss needs
    no scaling, unlike with float16 (Micikevicius et al. 2018). Raises ValueError for a device other than "cpu", "cuda"
    and "mps".
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
        """Turn dropout and the graph off inside ``with model.evaluating():``; every mode is restored on exit."""
        modes = [(module, module.training) for module in self.modules()]
        try:
            with torch.no_grad():
                yield self.eval()
        finally:
            for module, mode in modes:
                module.training = mode


class AdamW:
    """torch.optim.AdamW with the interface of the course's optimisers, for an nn.Module; only matrices decay.

    ``state_dict()`` has the form of the course's AdamW: vectors in the raw track's order and orientation, the matrices
    first. So a run can be saved in one form and resumed in the other.
    """

    def __init__(self, model, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        named = dict(model.named_parameters())
        ordered = [(named[name], turned) for name, _, turned in pairs(model)]
        matrices, others = ([pair for pair in ordered if (pair[0].ndim >= 2) == yes] for yes in (True, False))
        self._ordered = matrices + others
        self.parameters = [p for p, _ in self._ordered]
        self.decayed = sum(p.numel() for p, _ in matrices)
        groups = [{"params": [p for p, _ in matrices]}, {"params": [p for p, _ in others], "weight_decay": 0.0}]
        self.inside = torch.optim.AdamW(groups, lr, betas, eps, weight_decay)

    @property
    def lr(self):
        """The learning rate, the same for all parameters."""
        return self.inside.param_groups[0]["lr"]

    @lr.setter
    def lr(self, value):
        for group in self.inside.param_groups:
            group["lr"] = value

    def zero_grad(self):
        """Clear the gradients."""
        self.inside.zero_grad()

    def step(self):
        """Update every parameter once."""
        self.inside.step()

    def clip_grad_norm_(self, max_norm):
        """Scale the whole gradient down to ``max_norm`` if it is longer; return its norm before that."""
        # nn.utils.clip_grad_norm_ adds 1e-6 to the norm
        return optim.clip_grad_norm_(self.parameters, max_norm)

    def state_dict(self):
        """Return everything needed to resume training, in the form of the course's AdamW."""
        kept = [self.inside.state.get(p) for p in self.parameters]
        means = {}
        for ours, theirs in (("mean", "exp_avg"), ("square", "exp_avg_sq")):
            pieces = (torch.zeros_like(p) if k is None else k[theirs] for p, k in zip(self.parameters, kept))
            turned = (piece.T if t else piece for piece, (_, t) in zip(pieces, self._ordered))
            means[ours] = np.concatenate([piece.detach().cpu().numpy().reshape(-1) for piece in turned])
        steps = 0 if kept[0] is None else int(kept[0]["step"])
        return {**means, "steps": steps, "lr": float(self.lr), "decayed": self.decayed}

    def load_state_dict(self, state):
        """Continue from ``state``, of this class or a raw track's AdamW. Raises ValueError for another model's."""
        size = sum(p.numel() for p in self.parameters)
        if np.size(state["mean"]) != size or state["decayed"] != self.decayed:
            raise ValueError(
                f"this state is for {np.size(state['mean'])} parameters of which {state['decayed']} decay,"
                f" not for {size} and {self.decayed}"
            )
        start = 0
        for p, turned in self._ordered:
            end, kept = start + p.numel(), {"step": torch.tensor(float(state["steps"]))}
            for ours, theirs in (("mean", "exp_avg"), ("square", "exp_avg_sq")):
                piece = torch.tensor(state[ours][start:end], dtype=p.dtype).view(p.T.shape if turned else p.shape)
                kept[theirs] = (piece.T if turned else piece).contiguous().to(p.device)
            self.inside.state[p], start = kept, end
        self.lr = float(state["lr"])


def as_raw(model, optimizer=None):
    """Return a GPT of this package and its AdamW as the raw track's, for a checkpoint: (model, optimizer or None)."""
    raw = models.GPT(model.config)
    raw.load_state_dict(raw_state(model))
    if optimizer is None:
        return raw, None
    copy = optim.AdamW(raw.parameters(), optimizer.lr)
    copy.load_state_dict(optimizer.state_dict())
    return raw, copy
