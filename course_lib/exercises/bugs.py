"""A small model to try mended functions in, and the properties that a broken one does not have.

A loss that falls proves little: each broken function of the exercises trains. What finds them is a property that must
hold for every model of its kind.
"""

import numpy as np

from ..config import GPTConfig
from ..numpy_track import GPT, AdamW
from ..text import load_corpus, windows
from ..text.tokenizers import CharTokenizer


def small_data():
    """(x, y) windows (N, T) of the text of three lines, T = 8."""
    text = load_corpus("hello").text
    return windows(CharTokenizer.from_text(text).encode(text), 8)


def small_model(**changes):
    """A one-layer GPT for that text, float64."""
    return GPT(GPTConfig(17, layers=1, dtype="float64", initial="scaled", **changes), seed=1)


def train_step(model, optimizer, x, y):
    """One step as it should be; returns the loss before it."""
    optimizer.zero_grad()
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return float(loss.item())


def losses(model, steps=60, step=train_step, optimizer=None):
    """The losses of ``steps`` training steps on all windows at once."""
    x, y = small_data()
    optimizer = optimizer or AdamW(model.parameters(), 1e-2)
    return [step(model, optimizer, x, y) for _ in range(steps)]


def leak(model, T=8):
    """(k, t, how far): the change of token k that moved the logits of an earlier position t most; None if none did."""
    ids = small_data()[0][:1].copy()
    worst = None
    with model.evaluating():
        before = model(ids)[0].data[0]
        for k in range(1, T):
            other = ids.copy()
            other[0, k] = (other[0, k] + 1) % 17
            moved = np.abs(model(other)[0].data[0, :k] - before[:k]).max(axis=-1)  # (k,)
            t = int(moved.argmax())
            if moved[t] > 1e-9 and (worst is None or moved[t] > worst[2]):
                worst = (k, t, float(moved[t]))
    return worst


def leak_sentence(model):
    """What is wrong when a later token moves an earlier position; None when the model is causal."""
    found = leak(model)
    return (
        found
        and f"token {found[0]} was changed, and the logits of the earlier position {found[1]} moved by {found[2]:.2g}"
    )


def row_sums_sentence(weights):
    """What is wrong when attention weights (..., T, T) do not sum to 1 along the keys; None when they do."""
    sums = np.asarray(weights).sum(axis=-1)
    worst = float(sums.flat[np.abs(sums - 1).argmax()])
    return None if abs(worst - 1) < 1e-9 else f"a row of the attention weights sums to {worst:.3g}, not to 1"


def in_all_blocks(model, part, function):
    """The model, with ``function(self, x)`` as the forward of this part ("attention" or "norm") in every block."""
    for block in model.blocks:
        for sublayer in (block.attention, block.mlp) if part == "norm" else (block.attention,):
            layer = sublayer.norm if part == "norm" else sublayer.layer
            layer.forward = function.__get__(layer)
    return model


def falls_sentence(values):
    """What is wrong when a loss does not fall by a third; None when it does."""
    if values[-1] < 2 / 3 * values[0]:
        return None
    return f"the loss does not fall: {values[0]:.2f} at first, {values[-1]:.2f} after {len(values)} steps"
