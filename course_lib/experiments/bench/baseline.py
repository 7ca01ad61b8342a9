"""The models of the bench as a PyTorch user would write them: nn.Module, fused layers, fused optimiser.

They are not ``course_lib/idiomatic/gpt.py``, whose query, key and value are three layers, as in the tracks. One fused
matrix for all three makes a step faster: with the idiomatic form as the baseline, a step would take 11 to 33 % longer
and the tracks would look better than they are. Letters: B batch, T time, C channels, V vocabulary.
"""

import torch
from torch import nn
from torch.nn import functional as F

from ...idiomatic.encoder_decoder import Transformer
from ...idiomatic.gpt import MLP


class _Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        C, self.heads = config.width, config.heads
        self.qkv, self.out = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))  # (B, H, T, D)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(context.transpose(1, 2).reshape(B, T, C))


class _Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.width
        self.norm1, self.norm2, self.attention = nn.LayerNorm(C), nn.LayerNorm(C), _Attention(config)
        self.mlp = MLP(C, config.activation)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _FirstBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.width
        self.out, self.mlp = nn.Linear(C, C), MLP(C, "gelu")

    def forward(self, x):
        x = x[:, None]  # one head
        return self.mlp(self.out(F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]))


class Baseline(nn.Module):
    """A causal model without dropout, ids (B, T) -> logits (B, T, V); with ``first`` that of system A.

    The model of system A has neither norms nor residual paths.
    """

    def __init__(self, config, first=False):
        super().__init__()
        C, V, T = config.width, config.vocab_size, config.context_length
        self.token, self.position = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.Sequential(*((_FirstBlock if first else _Block)(config) for _ in range(config.layers)))
        self.norm = nn.Identity() if first else nn.LayerNorm(C)
        self.head = nn.Linear(C, V)
        self.register_buffer("positions", torch.arange(T), persistent=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.position(self.positions))))


def new_baseline(system):
    """Return the model of a System; the encoder–decoder is the idiomatic one, with separate query, key and value."""
    return Transformer(system.config) if system.translates else Baseline(system.config, system.first)


def baseline_step(system, batches):
    """Return a function that makes one training step and returns the loss.

    ``batches`` yields x, y, arrays (B, T); for the encoder–decoder x is a pair of them.
    """
    model = new_baseline(system)
    if system.adamw is None:
        optimizer = torch.optim.SGD(model.parameters(), system.lr)
    else:
        optimizer = torch.optim.AdamW(_groups(model, **system.adamw), system.lr, fused=True)

    def step():
        x, y = next(batches)
        inputs, y = [torch.from_numpy(ids) for ids in (x if system.translates else (x,))], torch.from_numpy(y)
        masks = [ids != 0 for ids in inputs] if system.translates else []
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs, *masks).flatten(0, 1), y.flatten())
        loss.backward()
        if system.adamw is not None:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def _groups(model, weight_decay, betas, decay_all):
    decayed = [p for p in model.parameters() if p.ndim >= 2 or decay_all]
    others = [p for p in model.parameters() if not (p.ndim >= 2 or decay_all)]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [{**group, "betas": betas} for group in groups if group["params"]]
