"""What a GPT is made of, part by part, in the order in which a token meets it: names, sentences, sizes, source."""

import inspect
from pathlib import Path

import numpy as np

from ...inference.inside import switches

LIBRARY = Path(__file__).parents[2]
SAYS = {
    "token": "The row of the token in a table: from here on it is a vector of C numbers.",
    "position": "A learned vector for each position, added to that of the token; otherwise order would not be known.",
    "attention": "Each token reads earlier ones and adds what it finds to its own vector.",
    "mlp": "Each token by itself: hidden units respond to its vector and add vectors of their own.",
    "norm": "Each vector is brought to one size before it is read; the stream itself stays as it is.",
    "head": "The vector is compared with each token of the vocabulary: a logit each; softmax makes them probabilities.",
}


def plan_of(model):
    """Return the plan of a GPT as a dict for the browser: its sizes, its wiring and its parts, each a dict.

    A part has ``name`` (its path in the model, which is also that of its parameters), ``kind`` (token, position,
    attention, mlp, norm, head), ``says``, ``shape`` (what goes in and comes out, "T" for the number of tokens),
    ``weights`` (name and shape of each parameter), ``count``, ``where`` (file, line and function) and ``block``.
    """
    of = model.config
    C, V = of.width, of.vocab_size
    parts = [_part("token", "token", model.token, [["T"], ["T", C]])]
    if model.position is not None:
        shape = [list(model.position.shape)]
        parts.append(_part("position", "position", model, [["T", C], ["T", C]], weights=[["position", *shape]]))
    for i, block in enumerate(model.blocks):
        for kind in ("attention", "mlp"):
            sublayer, name = getattr(block, kind), f"blocks.{i}.{kind}"
            if sublayer is None:
                continue
            own = _part(name, kind, sublayer.layer, [["T", C], ["T", C]], block=i)
            around = [] if sublayer.norm is None else [_norm(f"{name}.norm", sublayer.norm, C, i)]
            parts += [own, *around] if of.norm == "post" else [*around, own]
    if model.norm is not None:
        parts.append(_norm("norm", model.norm, C, None))
    if model.head is None:
        parts.append(_part("head", "head", model, [["T", C], ["T", V]], weights=[]))
        parts[-1]["note"] = "It shares the token table."
    else:
        parts.append(_part("head", "head", model.head, [["T", C], ["T", V]]))
    return {
        "parts": parts, "layers": of.layers, "heads": of.heads, "width": C, "vocabulary": V, "norm": of.norm or "",
        "residual": of.residual, "mlp": of.activation != "none", "parameters": model.num_parameters(),
        "switches": list(switches(model)), "units": of.hidden_units if of.activation != "none" else 0,
    }  # fmt: skip


def _norm(name, norm, C, block):
    part = _part(name, "norm", norm, [["T", C], ["T", C]], block=block)
    gain = np.asarray(norm.weight.detach(), np.float32)
    return part | {"gain": gain.tobytes(), "eps": norm.eps, "mean": hasattr(norm, "bias")}


def _part(name, kind, module, shape, block=None, weights=None):
    if weights is None:
        weights = [[n, list(p.shape)] for n, p in module.named_parameters()]
    return {
        "name": name, "kind": kind, "says": SAYS[kind], "shape": shape, "weights": weights, "block": block,
        "count": int(sum(np.prod(size) for _, size in weights)), "where": _where(module), "note": "",
    }  # fmt: skip


def _where(module):
    """Return [path of the file, line, function] of the code that computes this module."""
    function = type(module).forward
    file = Path(inspect.getsourcefile(function))
    path = file.relative_to(LIBRARY.parent) if file.is_relative_to(LIBRARY) else Path(file.name)
    return [path.as_posix(), inspect.getsourcelines(function)[1], f"{type(module).__name__}.forward"]
