"""The two loops of the course as pictures: training, and writing."""

from .marks import EDGE, TONES, Sketch


def _loop(parts, again, alt, lit=()):
    """Draw ``parts``, (name, what it gives), from left to right, and an arrow from the last back to the first."""
    wide, gap, y = 138, 30, 48
    d = Sketch(40 + len(parts) * (wide + gap) - gap, 142, alt)
    for n, (name, gives) in enumerate(parts):
        x = 20 + n * (wide + gap) + wide / 2
        d.part(x, y, wide, name, gives, n in lit, 54)
        if n + 1 < len(parts):
            d.path([(x + wide / 2, y), (x + wide / 2 + gap - 1, y)], arrow=True)
    first, last = 20 + wide / 2, d.width - 20 - wide / 2
    d.path([(last, y + 27), (last, y + 66), (first, y + 66), (first, y + 29)], EDGE, 2.4, arrow=True)
    d.shape(d.width / 2 - 4.2 * len(again), y + 53, 8.4 * len(again), 26, "#fbfaf6", "none", 0, 3)
    d.label(d.width / 2, y + 70.5, again, 13, TONES["orange"][1], "bold")
    return d


def draw_training_loop():
    """Draw a training step: a batch, the forward pass, the loss, the backward pass, the step of the optimiser."""
    parts = [
        ("batch", "ids and targets"),
        ("forward pass", "logits"),
        ("loss", "one number"),
        ("backward pass", "all gradients"),
        ("step", "new parameters"),
    ]
    told = ", ".join(f"{name} ({gives})" for name, gives in parts)
    return _loop(
        parts, "again, with the next batch", f"The training loop, once per step: {told}; then again.", lit=(4,)
    )


def draw_writing_loop():
    """Draw how a GPT writes: the text so far, its logits, probabilities, one token drawn, which is appended."""
    parts = [
        ("text so far", "ids (1, T)"),
        ("GPT", "logits (1, T, V)"),
        ("last position", "V logits"),
        ("softmax", "V probabilities"),
        ("draw one", "the next token"),
    ]
    told = ", ".join(f"{name} ({gives})" for name, gives in parts)
    return _loop(parts, "append it, and again", f"How a GPT writes, once per token: {told}; it is appended, and again.",
                 lit=(4,))  # fmt: skip
