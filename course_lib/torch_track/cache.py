"""The key/value cache of a GPT: what attention has computed for earlier positions, kept for the next token.

No position of a causal model attends to a later one, so a new token changes nothing before it, and the keys and values
of earlier positions stay as they are. This file reads the same in both tracks.
Letters: B batch, T context, t new tokens, S tokens so far, H heads, D head size, L layers.
"""

import numpy as np

from .tensor import from_numpy

_HOW = "call the model inside `with model.evaluating():`"


class KeyValueCache:
    """Keys and values of the last ``length`` positions in each layer: two arrays (L, B, H, T, D).

    They have the size of the whole context from the start, 2 L B T C elements, so that a step writes its own rows and
    copies nothing else. ``model.new_cache()`` makes one, ``model(ids, cache=cache)`` fills it.
    With grouped queries H counts the heads of key and value. With rotary positions and a window the cache ``rolls``:
    full, it drops all but the last window - 1 positions, which are the only ones that the next token sees, and goes on
    as if the context had no end. ``position`` counts all tokens so far, ``length`` those that are kept. With a
    convolution the cache also keeps the ``inputs`` of each MLP.
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
        shape = (config.layers, batch, config.key_value_heads, config.context_length, config.head_size)
        self.config, self.batch, self.length, self.dropped = config, batch, 0, 0
        self.rolls = config.rotary and config.window is not None and config.window <= config.context_length
        self.keys, self.values = np.zeros(shape, config.dtype), np.zeros(shape, config.dtype)
        kept = config.context_length if config.conv_kernel else 0
        self.inputs = np.zeros((config.layers, batch, 1, kept, config.width), config.dtype)

    def __repr__(self):
        of = f"{self.length} of {self.config.context_length} positions"
        return f"KeyValueCache: {of}, {self.config.layers} layers, batch of {self.batch}"

    @property
    def position(self):
        """Return the number of tokens so far: the position of the next one."""
        return self.dropped + self.length

    @property
    def room(self):
        """Return how many tokens may come next."""
        free = self.config.context_length - self.length
        return self.config.context_length - self.config.window + 1 if self.rolls and not free else free

    def admit(self, model, ids, targets=None):
        """Return the number of tokens kept before ``ids`` (B, t); raise ValueError if ``ids`` cannot follow them."""
        (batch, new), dropout = ids.shape, model.dropout.p if model.training else 0
        if model.config != self.config:
            raise ValueError(f"this cache is for another model: {self.config}, not {model.config}")
        if targets is not None:
            raise ValueError("a cache is for generation: it takes no targets")
        if dropout:
            raise ValueError(f"a cache would keep the random changes of dropout {dropout}: {_HOW}")
        if batch != self.batch:
            raise ValueError(f"this cache is for a batch of {self.batch}; these ids are a batch of {batch}")
        if self.rolls and self.length + new > self.config.context_length:
            self._drop()
        if self.length + new > self.config.context_length:
            raise ValueError(
                f"the cache holds {self.length} tokens, and {new} more do not fit in the context of"
                f" {self.config.context_length}"
            )
        return self.length

    def _drop(self):
        """Forget the positions that no new token sees: its window holds itself and window - 1 more."""
        kept = min(self.length, self.config.window - 1)
        for array in (self.keys, self.values, self.inputs):
            array[:, :, :, :kept] = array[:, :, :, self.length - kept : self.length].copy()
        self.dropped, self.length = self.position - kept, kept

    def inputs_before(self, layer, x):
        """Keep what an MLP reads at new positions, x (B, t, C); return its K - 1 inputs before them, (B, K - 1, C)."""
        inputs, missing = self.inputs[layer, :, 0], max(0, self.config.conv_kernel - 1 - self.length)
        inputs[:, self.length : self.length + x.shape[1]] = x.detach().numpy()
        before = inputs[:, max(0, self.length - self.config.conv_kernel + 1) : self.length]
        return np.pad(before, ((0, 0), (missing, 0), (0, 0)))  # nothing came before the first

    def extend(self, layer, keys, values):
        """Append the keys and values (B, H, t, D) of new positions; return those of all positions (B, H, S, D).

        The model counts the new positions once they have passed all layers, so a call that fails halfway leaves no
        trace. Raises ValueError if a graph is being recorded: it would end here.
        """
        if keys.requires_grad or values.requires_grad:
            raise ValueError(f"a cache keeps arrays without a graph, but one is being recorded: {_HOW}")
        end = self.length + keys.shape[2]
        self.keys[layer, :, :, self.length : end] = keys.numpy()
        self.values[layer, :, :, self.length : end] = values.numpy()
        return from_numpy(self.keys[layer, :, :, :end]), from_numpy(self.values[layer, :, :, :end])
