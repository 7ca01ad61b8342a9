"""Attention weights as the browser gets them: 16 bits a weight, the allowed cells only, one block of bytes a layer."""

import numpy as np

STEPS = 65_535  # of a 16-bit number: over 0 … 1 a weight is off by 7.6e-6 at most


def pack_mask(allow):
    """allow (L, H, Q, K) or None → None if all is allowed, else {"shared": one mask for all heads?, "bits": bytes}.

    Eight cells a byte, the first in the highest bit; a mask that all heads share is sent once.
    """
    if allow is None or allow.all():
        return None
    first = allow[0, 0]
    shared = not any(allow.strides[:2]) or bool((allow == first).all())
    heads = first[None] if shared else allow.reshape(-1, *first.shape)
    return {"shared": shared, "bits": np.packbits(heads.reshape(len(heads), -1), axis=1).tobytes()}


def pack_layer(weights, allow, code):
    """weights (H, Q, K) → bytes: each allowed cell as a little-endian 16-bit step between the values code[0], code[1].

    >>> pack_layer(np.array([[[0.0, 1.0]]]), None, (0, 1))
    b'\\x00\\x00\\xff\\xff'
    """
    low, high = code
    cells = weights.reshape(-1) if allow is None else weights[allow]
    cells = (cells - low) * (STEPS / (high - low))
    return np.rint(np.clip(cells, 0, STEPS)).astype("<u2").tobytes()


def unpack_layer(data, allow, code):
    """What the browser makes of `pack_layer`: values where allow (H, Q, K) is True, NaN elsewhere."""
    low, high = code
    values = np.full(allow.shape, np.nan)
    values[allow] = low + np.frombuffer(data, "<u2") * ((high - low) / STEPS)
    return values
