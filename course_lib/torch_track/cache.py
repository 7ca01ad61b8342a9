"""The key/value cache of a GPT: what attention has computed for earlier positions, kept for the next token.

Nobody looks forward in a causal model, so a new token changes nothing before it, and the keys and values of those
positions stay as they are. This file reads the same in both tracks.
Letters: B batch, T context, t new tokens, S tokens so far, H heads, D head size, L layers.
"""

import numpy as np

from .tensor import from_numpy

_HOW = "call the model inside `with model.evaluating():`"


class KeyValueCache:
    """Keys and values of the first ``length`` positions, of each layer: two arrays (L, B, H, T, D).

    They have the size of the whole context from the start, 2 L B T C numbers, so that a step writes its own rows and
    copies nothing else. A GPT makes it with ``model.new_cache()`` and fills it in ``model(ids, cache=cache)``.
    Raises ValueError for a model that is not causal, or a batch below 1.
    """

    def __init__(self, config, batch=1):
        if not config.causal:
            raise ValueError(
                "this model is not causal: each new token changes the keys and values of all earlier positions,"
                " so there is nothing to keep"
            )
        if batch < 1:
            raise ValueError(f"a cache is for a batch of 1 or more, not {batch}")
        shape = (config.layers, batch, config.heads, config.context, config.width // config.heads)
        self.config, self.batch, self.length = config, batch, 0
        self.keys, self.values = np.zeros(shape, config.dtype), np.zeros(shape, config.dtype)

    def admit(self, model, ids, targets=None):
        """How many tokens came before ``ids`` (B, t), if these may follow them; ValueError if not."""
        (batch, new), dropout = ids.shape, model.dropout.p if model.training else 0
        if model.config != self.config:
            raise ValueError(f"this cache is for another model: {self.config}, not {model.config}")
        if targets is not None:
            raise ValueError("a cache is for generating: it takes no targets")
        if dropout:
            raise ValueError(f"a cache keeps what dropout {dropout} has changed by chance: {_HOW}")
        if batch != self.batch:
            raise ValueError(f"this cache is for a batch of {self.batch}; these ids are a batch of {batch}")
        if self.length + new > self.config.context:
            raise ValueError(
                f"the cache holds {self.length} tokens, and {new} more do not fit in the context of"
                f" {self.config.context}"
            )
        return self.length

    def extend(self, layer, keys, values):
        """Write keys and values (B, H, t, D) of new positions behind the old ones; returns those of all (B, H, S, D).

        The model counts the new positions when they have been through all layers, so a call that fails half-way leaves
        no trace. Raises ValueError where a graph is recorded: it would end here.
        """
        if keys.requires_grad or values.requires_grad:
            raise ValueError(f"a cache keeps numbers without a graph, and one is recorded: {_HOW}")
        end = self.length + keys.shape[2]
        self.keys[layer, :, :, self.length : end] = keys.numpy()
        self.values[layer, :, :, self.length : end] = values.numpy()
        return from_numpy(self.keys[layer, :, :, :end]), from_numpy(self.values[layer, :, :, :end])
