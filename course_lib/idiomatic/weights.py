"""The same weights in both forms, raw and nn.Module.

model = load_raw(GPT(config), raw.state_dict())
raw.load_state_dict(raw_state(model))
"""

import torch
from torch import nn

_BARE = {"position.weight": "position"}  # a bare parameter in the raw GPT


def pairs(model):
    """Yield (name here, name in the raw track, is it stored transposed?) of every parameter, in order."""
    for path, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            full = f"{path}.{name}"
            # nn.Linear keeps (fan_out, fan_in) and computes x Wᵀ
            yield full, _BARE.get(full, full), isinstance(module, nn.Linear) and name == "weight"


def load_raw(model, state):
    """Copy the weights of a raw model of either track, ``raw.state_dict()``, into ``model`` and return it.

    Raises ValueError that names what is missing, unknown or of a different shape.
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
    """Return the weights of ``model`` under the raw track's names and shapes: a dict for ``load_state_dict``."""
    values = model.state_dict()
    return {
        raw: (values[name].T if turned else values[name]).cpu().numpy().copy() for name, raw, turned in pairs(model)
    }
