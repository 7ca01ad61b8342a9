"""The models of the bench as a PyTorch user would write them: nn.Module, fused layers, fused optimiser.

It stands here and not in a track, which uses none of these. Letters: B batch, T time, C channels, H heads, D head size.
"""

import torch
from torch import nn
from torch.nn import functional as F


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


def _mlp(C, activation):
    bend = nn.ReLU() if activation == "relu" else nn.GELU(approximate="tanh")
    return nn.Sequential(nn.Linear(C, 4 * C), bend, nn.Linear(4 * C, C))


class _Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.width
        self.norm1, self.norm2, self.attention = nn.LayerNorm(C), nn.LayerNorm(C), _Attention(config)
        self.mlp = _mlp(C, config.activation)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _FirstBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.width
        self.out, self.mlp = nn.Linear(C, C), _mlp(C, "gelu")

    def forward(self, x):
        x = x[:, None]  # one head
        return self.mlp(self.out(F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]))


class Referee(nn.Module):
    """Ids (B, T) -> logits (B, T, V): causal, no dropout. ``first``: system A, without norms and residual paths."""

    def __init__(self, config, first=False):
        super().__init__()
        C, V, T = config.width, config.vocabulary_size, config.context
        self.token, self.position = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.Sequential(*((_FirstBlock if first else _Block)(config) for _ in range(config.layers)))
        self.norm = nn.Identity() if first else nn.LayerNorm(C)
        self.head = nn.Linear(C, V)
        self.register_buffer("places", torch.arange(T), persistent=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.position(self.places))))


def referee_step(system, x, y):
    """A function that makes one training step of a System of the bench and returns the loss; x, y (B, T) arrays."""
    model, x, y = Referee(system.config, system.first), torch.from_numpy(x), torch.from_numpy(y)
    if system.adamw is None:
        optimizer = torch.optim.SGD(model.parameters(), system.rate)
    else:
        optimizer = torch.optim.AdamW(_groups(model, **system.adamw), system.rate, fused=True)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
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
