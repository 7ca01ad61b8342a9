"""The same weights in both forms: from a raw track's names and shapes to those of torch.nn, and back."""

import torch
from torch import nn

_NAMES = {nn.Embedding: {"weight": "table"}, nn.LayerNorm: {"weight": "gain"}}
_BARE = {"position.table": "position"}  # in the raw GPT this table is a parameter of the model itself


def pairs(model):
    """(name here, name in the raw track, whether the matrix is stored transposed) of every parameter, in order."""
    for path, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            raw = f"{path}.{_NAMES.get(type(module), {}).get(name, name)}"
            # nn.Linear keeps (fan_out, fan_in) and computes x Wᵀ
            yield f"{path}.{name}", _BARE.get(raw, raw), isinstance(module, nn.Linear) and name == "weight"


def load_raw(model, state):
    """Copy the weights of the raw model of either track, ``raw.state()``, into ``model``, and return it.

    Raises ValueError that names what is missing, unknown or of another shape.
    """
    mine = {name: (raw, turned) for name, raw, turned in pairs(model)}
    missing = [raw for raw, _ in mine.values() if raw not in state]
    unknown = sorted(set(state) - {raw for raw, _ in mine.values()})
    if missing or unknown:
        raise ValueError(f"these weights do not fit this model: missing {missing}, unknown {unknown}")
    ready = {name: torch.tensor(state[raw].T if turned else state[raw]) for name, (raw, turned) in mine.items()}
    try:
        model.load_state_dict(ready)
    except RuntimeError as error:  # shapes
        raise ValueError(f"these weights do not fit this model: {error}") from error
    return model


def raw_state(model):
    """The weights of ``model`` under the raw track's names and shapes: a dict of NumPy arrays for ``load_state``."""
    values = model.state_dict()
    return {
        raw: (values[name].T if turned else values[name]).cpu().numpy().copy() for name, raw, turned in pairs(model)
    }
