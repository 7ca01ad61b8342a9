"""A look inside a GPT while it reads: what the stream holds after every part, and what would come next if it stopped.

The model's own forward pass runs, as in ``interventions``. The logit lens (nostalgebraist 2020) puts the final norm and
the head behind every part; the norm takes the mean and variance of that very place.
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from .. import get_track
from ..common.summary import replaced
from . import interventions

EMBEDDING = "embedding"  # the first place: token vectors, plus positions where they are learned


@dataclass
class Inside:
    """The record of one run, as NumPy arrays. Letters: S places, T time, C channels, V vocabulary, P positions."""

    trace: interventions.Trace
    places: tuple  # S names: "embedding", then "blocks.0.attention", "blocks.0.mlp" and so on
    stream: np.ndarray  # (S, T, C), what each place leaves behind
    hidden: tuple  # per block the hidden units of its MLP (T, d_ff); none in a model without MLPs
    positions: np.ndarray  # (P,), where the lens looked
    lens: np.ndarray  # (S, P, V), logits of the next token if the model stopped there


def switches(model):
    """Return the names of what can be switched off in a GPT: each head, each MLP, the gain of each norm.

    >>> from course_lib.common.config import GPTConfig
    >>> from course_lib.numpy_track.models import GPT
    >>> switches(GPT(GPTConfig(17, heads=1, layers=1)))[:3]
    ('blocks.0.attention.norm', 'blocks.0.attention.head.0', 'blocks.0.mlp.norm')
    """
    names = []
    for i, block in enumerate(model.blocks):
        for part in ("attention", "mlp"):
            sublayer, name = getattr(block, part), f"blocks.{i}.{part}"
            if sublayer is None:
                continue
            names += [f"{name}.norm"] if sublayer.norm is not None else []
            names += [f"{name}.head.{h}" for h in range(model.config.heads)] if part == "attention" else [name]
    return (*names, *(["norm"] if model.norm is not None else []))


def look_inside(model, ids, off=(), positions=None):
    """Run a GPT on ``ids`` (T,) and return an Inside; ``positions`` of the lens: all when None.

    ``off`` holds names of ``switches``: a head's context becomes 0, an MLP adds 0, a norm's gain becomes 1. Hidden
    units are still recorded. Raises TypeError for a model that is not a GPT, ValueError for an unknown name.

    >>> from course_lib.common.config import GPTConfig
    >>> from course_lib.numpy_track.models import GPT
    >>> look_inside(GPT(GPTConfig(17)), [7, 4, 8], off=["blocks.1.mlp"]).lens.shape
    (7, 3, 17)
    """
    if type(model).__name__ != "GPT":
        raise TypeError(f"only a GPT can be looked into, not a {type(model).__name__}")
    known = switches(model)
    for name in off:
        if name not in known:
            raise ValueError(f"{name!r} cannot be switched off in this model: choose from {', '.join(known)}")
    track = get_track(type(model).__module__.split(".")[-2].removesuffix("_track"))
    heads = [(int(n[1]), int(n[4])) for n in (name.split(".") for name in off) if "head" in n]
    places, stream, hidden = [], [], []

    def recorded(place, module):
        """Keep what the module returns; dropout is shared by all layers, and only its first call is the embedding."""
        forward = module.forward

        def call(x, *rest):
            out = forward(x, *rest)
            if place not in places:
                places.append(place)
                stream.append(_array(out)[0])
            return out

        return replaced(module, call)

    with ExitStack() as stack:
        stack.enter_context(recorded(EMBEDDING, model.dropout))
        for name, norm in _norms(model):
            if name in off:
                stack.enter_context(replaced(norm, _without_gain(norm, track.functional)))
        for i, block in enumerate(model.blocks):
            if block.mlp is not None:
                _watch_mlp(stack, block.mlp.layer, hidden, silent=f"blocks.{i}.mlp" in off)
            for part in ("attention", "mlp"):
                if getattr(block, part) is not None:
                    stack.enter_context(recorded(f"blocks.{i}.{part}", getattr(block, part)))
        trace = interventions.run(model, np.asarray(ids), off=heads)
        stream = np.stack(stream)
        positions = np.arange(stream.shape[1]) if positions is None else np.asarray(positions)
        with model.no_grad():
            lens = _predictions(model, track, stream[:, positions])
    return Inside(trace, tuple(places), stream, tuple(hidden), positions, lens)


def _predictions(model, track, x):
    """Return what the end of the model makes of a stream (..., C): logits (..., V)."""
    x = track.tensor.from_numpy(np.ascontiguousarray(x))
    if model.norm is not None:
        x = model.norm(x)
    return _array(track.functional.linear(x, model.token.weight.T) if model.head is None else model.head(x))


def _norms(model):
    """Yield (name, norm) of every norm over the C channels."""
    for i, block in enumerate(model.blocks):
        for part in ("attention", "mlp"):
            sublayer = getattr(block, part)
            if sublayer is not None and sublayer.norm is not None:
                yield f"blocks.{i}.{part}.norm", sublayer.norm
    if model.norm is not None:
        yield "norm", model.norm


def _without_gain(norm, functional):
    """Return the forward pass of a LayerNorm or RMSNorm whose gain is 1; its bias stays."""

    def forward(x):
        ones = norm.weight * 0 + 1
        if hasattr(norm, "bias"):
            return functional.layer_norm(x, norm.weight.shape, ones, norm.bias, norm.eps)
        return functional.rms_norm(x, norm.weight.shape, ones, norm.eps)

    return forward


def _watch_mlp(stack, layer, hidden, silent):
    """Record the hidden units of an MLP, which are the input of its last matrix; ``silent``: let it return zeros."""
    down, whole = layer.down.forward, layer.forward

    def last(x):
        hidden.append(_array(x)[0])
        return down(x)

    stack.enter_context(replaced(layer.down, last))
    if silent:
        stack.enter_context(replaced(layer, lambda x: whole(x) * 0))


def _array(tensor):
    """Return the array in a tensor of either track, without a graph."""
    return np.asarray(tensor.detach())
