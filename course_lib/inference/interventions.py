"""A trained GPT with one thing changed: no causal mask, no scale, a head switched off. Works in both tracks.

The model's own forward pass runs, with the attention of each block replaced, so that the models need no hooks. With
nothing changed, the result is the model's (a test compares them).
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from .. import get_track
from ..common.summary import replaced


@dataclass
class Trace:
    """The record of one run through the model, as NumPy arrays; allow is None without a mask."""

    logits: np.ndarray  # (T, V)
    weights: np.ndarray  # (L, H, T, T)
    queries: np.ndarray  # (L, H, T, D)
    keys: np.ndarray  # (L, H, T, D)
    allow: np.ndarray | None  # (T, T), True = may attend
    scale: float  # the factor of q · k


def run(model, ids, causal=True, scaled=True, off=()):
    """Run a GPT on ``ids`` (T,) with switches and return a Trace.

    ``causal`` False: every token may attend to every token. ``scaled`` False: the scores are not divided by √D.
    ``off``: pairs (layer, head) whose context becomes 0, so that the head contributes nothing, or (layer, head,
    positions) for these positions alone (one, or an array); the weights are still returned. Raises TypeError for a
    model that is not a GPT, ValueError for a head that does not exist, IndexError for such a position.

    >>> from course_lib.common.config import GPTConfig
    >>> from course_lib.numpy_track.models import GPT
    >>> run(GPT(GPTConfig(17)), np.array([7, 4, 8]), off=[(0, 1)]).weights.shape
    (3, 4, 3, 3)
    """
    if type(model).__name__ != "GPT":
        raise TypeError(f"switches are for a GPT, not for a {type(model).__name__}")
    config = model.config
    speaking = np.ones((config.layers, config.heads, np.size(ids)))  # (L, H, T)
    for layer, head, *positions in off:
        if not (0 <= layer < config.layers and 0 <= head < config.heads):
            raise ValueError(
                f"layer {layer}, head {head} does not exist: there are {config.layers} layers of {config.heads} heads"
            )
        speaking[layer, head, positions[0] if positions else slice(None)] = 0
    F = get_track(type(model).__module__.split(".")[-2].removesuffix("_track")).functional
    ids = np.asarray(ids)[None]  # (1, T)
    T = ids.shape[1]
    allow = F.window_mask(T, config.window or T) if config.causal and causal else None
    scale = config.head_size**-0.5 if scaled else 1.0
    seen = []

    def attention(layer, heads):
        silent = None if heads.all() else np.broadcast_to(heads[:, :, None], (1, config.heads, T, T)).copy()

        def forward(x):
            if hasattr(layer, "project"):
                q, k, v = layer.project(x)
                k, v = layer.share(k), layer.share(v)  # (1, G, T, D) -> (1, H, T, D)
            else:
                q, k, v = (F.split_heads(f(x), layer.heads) for f in (layer.query, layer.key, layer.value))
            context, weights = F.attention(q, k, v, allow, scale, silent)
            seen.append([_array(a)[0] for a in (weights, q, k)])
            return layer.output(F.merge_heads(context))

        return forward

    with ExitStack() as stack:
        for block, heads in zip(model.blocks, speaking):
            stack.enter_context(replaced(block.attention.layer, attention(block.attention.layer, heads)))
        stack.enter_context(model.evaluating())
        logits, _ = model(ids)  # (1, T, V)
    weights, queries, keys = (np.stack(a) for a in zip(*seen)) if seen else 3 * [np.empty((0, config.heads, T, T))]
    return Trace(_array(logits)[0], weights, queries, keys, None if allow is None else np.asarray(allow), scale)


def _array(tensor):
    """Return the array in a tensor of either track, or an array as it is, without a graph."""
    return np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor)
