"""Attention weights as the browser gets them: 16 bits per weight, allowed cells only, one block of bytes per layer."""

import numpy as np

STEPS = 65_535  # of a 16-bit number: a weight from 0 to 1 is off by at most 7.6e-6


def pack_mask(allow):
    """Pack a mask (L, H, Q, K) -> {"shared": one mask for all heads?, "bits": bytes}, or None if all is allowed.

    Eight cells per byte, the first in the highest bit; a mask that all heads share is sent once.
    """
    if allow is None or allow.all():
        return None
    first = allow[0, 0]
    shared = not any(allow.strides[:2]) or bool((allow == first).all())
    heads = first[None] if shared else allow.reshape(-1, *first.shape)
    return {"shared": shared, "bits": np.packbits(heads.reshape(len(heads), -1), axis=1).tobytes()}


def pack_layer(weights, allow, code):
    """Pack weights (H, Q, K) -> bytes: each allowed cell as a little-endian 16-bit step from code[0] to code[1].

    >>> pack_layer(np.array([[[0.0, 1.0]]]), None, (0, 1))
    b'\\x00\\x00\\xff\\xff'
    """
    low, high = code
    cells = weights.reshape(-1) if allow is None else weights[allow]
    cells = (cells - low) * (STEPS / (high - low))
    return np.rint(np.clip(cells, 0, STEPS)).astype("<u2").tobytes()
