"""A trained GPT with one thing changed: no causal mask, no scale, a head switched off. Works in both tracks.

The forward pass is put together here from the model's own layers, so that the models need no hooks for it. With no
change it gives what the model gives (a test compares them).
"""

import importlib
from dataclasses import dataclass

import numpy as np

from .inputs import check_batch


@dataclass
class Trace:
    """What a run through the model leaves, as NumPy arrays. allow is None where all may look at all."""

    logits: np.ndarray  # (T, V)
    weights: np.ndarray  # (L, H, T, T)
    queries: np.ndarray  # (L, H, T, D)
    keys: np.ndarray  # (L, H, T, D)
    allow: np.ndarray | None  # (T, T), True = may look
    scale: float  # what q · k was multiplied with


def run(model, ids, causal=True, scaled=True, off=()):
    """Run a GPT on ``ids`` (T,) with switches; returns a Trace.

    ``causal`` False: every token may look at every token. ``scaled`` False: the scores are not divided by √D.
    ``off``: pairs (layer, head) whose context becomes 0, so that the head says nothing; its weights are still returned.
    Raises TypeError for a model that is not a GPT, ValueError for a head that does not exist, and what the model
    raises for ids that do not fit.

    >>> from course_lib.config import GPTConfig
    >>> from course_lib.numpy_track.models import GPT
    >>> run(GPT(GPTConfig(17)), np.array([7, 4, 8]), off=[(0, 1)]).weights.shape
    (3, 4, 3, 3)
    """
    if type(model).__name__ != "GPT":
        raise TypeError(f"switches are for a GPT, not for a {type(model).__name__}")
    config = model.config
    keep = np.ones((config.layers, config.heads))
    for layer, head in off:
        if not (0 <= layer < config.layers and 0 <= head < config.heads):
            raise ValueError(
                f"layer {layer}, head {head} does not exist: there are {config.layers} layers of {config.heads} heads"
            )
        keep[layer, head] = 0
    F = importlib.import_module(type(model).__module__.rsplit(".", 1)[0] + ".functional")
    ids = np.asarray(ids)[None]  # (1, T)
    T = ids.shape[1]
    allow = F.causal_mask(T) if config.causal and causal else None
    scale = (config.width // config.heads) ** -0.5 if scaled else 1.0
    seen = []

    def attention(layer, x, silent):
        q, k, v = (F.split_heads(f(x), layer.heads) for f in (layer.query, layer.key, layer.value))  # (1, H, T, D)
        context, weights = F.attention(q, k, v, allow, scale, silent)
        seen.append([_array(a)[0] for a in (weights, q, k)])
        return layer.output(F.merge_heads(context))

    with model.evaluating():
        x = _embedded(model, ids)
        for block, heads in zip(model.blocks, keep):
            silent = None if heads.all() else np.broadcast_to(heads[:, None, None], (1, config.heads, T, T)).copy()
            x = _around(block.attention, x, lambda layer, x, silent=silent: attention(layer, x, silent))
            x = x if block.mlp is None else _around(block.mlp, x, lambda layer, x: layer(x))
        x = x if model.norm is None else model.norm(x)
        logits = F.linear(x, model.token.table.T) if model.head is None else model.head(x)  # (1, T, V)
    weights, queries, keys = (np.stack(a) for a in zip(*seen)) if seen else 3 * [np.empty((0, config.heads, T, T))]
    return Trace(_array(logits)[0], weights, queries, keys, None if allow is None else np.asarray(allow), scale)


def _array(tensor):
    """The numbers of a tensor of either track, or of an array, without history."""
    return np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor)


def _embedded(model, ids):
    """Token and position vectors: (1, T) -> (1, T, C). Checks the ids as the model does."""
    ids = check_batch(ids, model.context)
    x = model.token(ids)
    return x if model.position is None else x + model.position[: ids.shape[1]]


def _around(sublayer, x, step):
    """One step of a block with the residual path and the LayerNorm where the model has them."""
    change = step(sublayer.layer, sublayer.norm(x) if sublayer.wiring == "pre" else x)
    if sublayer.wiring == "plain":
        return change
    return sublayer.norm(x + change) if sublayer.wiring == "post" else x + change
