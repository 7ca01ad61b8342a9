"""Exercise of notebook 06: a LayerNorm over the wrong axis."""

from .bugs import falls_sentence, in_all_blocks, leak_sentence, losses, same_logits, small_model
from .exercise import exercise


def _examine_norm(function):
    model = in_all_blocks(small_model(heads=4), "norm", function)
    fallen = losses(model)
    if sentence := leak_sentence(model):
        return f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}", "whose mean is it?"
    if not same_logits(model, "norm", function):
        return "nothing leaks, but this is not LayerNorm", "mean and variance are over the channels, the last axis"
    return falls_sentence(fallen)


def _norm_broken(self, x):
    """LayerNorm: (B, T, C) → (B, T, C). Somewhere positions meet that should not."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / (variance + self.epsilon).sqrt() * self.gain + self.bias


@exercise(
    "06.3",
    "Find the bug: LayerNorm that looks ahead",
    minutes=10,
    difficulty="middle",
    task="""
The attention of this model is causal, and still a later token changes earlier predictions. The loss falls faster than
it should. Mend this LayerNorm.
""",
    hints=(
        "x is (B, T, C). Which axis do mean and variance go over?",
        "A mean over time contains the future. Each position has its own mean, over its C numbers.",
    ),
    next_thought="What does this say about batch norm in a language model?",
    broken=_norm_broken,
    examine=_examine_norm,
)
def norm_forward(self, x):
    """LayerNorm: (B, T, C) → (B, T, C), each position on its own."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + self.epsilon).sqrt() * self.gain + self.bias
