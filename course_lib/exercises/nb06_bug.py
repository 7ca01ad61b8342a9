"""Exercise of notebook 06: a LayerNorm over the wrong axis."""

from . import mended
from .bugs import falls_sentence, in_all_blocks, leak_sentence, losses, small_model
from .exercise import Mistake, exercise

_AXIS = "mean and variance are over the channels, the last axis"


def _with(axis=-1, centre=True, less=0, root=lambda variance, e: (variance + e) ** 0.5, last=None):
    """The solution with one thing changed; ``last`` (n, gain, bias) is what happens to the normalised n."""

    def forward(self, x):
        centred = x - x.mean(axis=axis, keepdims=True)
        squares = (centred * centred).mean(axis=axis, keepdims=True)
        variance = squares * (x.shape[-1] / (x.shape[-1] - less))
        n = (centred if centre else x) / root(variance, self.epsilon)
        return last(n, self.gain, self.bias) if last else n * self.gain + self.bias

    return forward


_MISTAKES = (
    *(Mistake(_AXIS, _with(axis=axis)) for axis in (0, 1, (0, 1), (1, 2), None)),
    Mistake("the root is missing: divide by the root of the variance", _with(root=lambda variance, e: variance + e)),
    Mistake("the ε is missing: self.epsilon is added to the variance", _with(root=lambda variance, e: variance**0.5)),
    Mistake("the ε belongs under the root, added to the variance", _with(root=lambda variance, e: variance**0.5 + e)),
    Mistake("the division is missing: divide by √(σ² + ε)", _with(root=lambda variance, e: 1)),
    Mistake("the mean is not taken off", _with(centre=False)),
    Mistake("the variance is divided by C - 1; here it is by C", _with(less=1)),
    Mistake("the gain is missing: times self.gain", _with(last=lambda n, gain, bias: n + bias)),
    Mistake("the bias is missing: plus self.bias", _with(last=lambda n, gain, bias: n * gain)),
    Mistake("the gain and the bias are missing", _with(last=lambda n, gain, bias: n)),
    Mistake("the order: first times the gain, then plus the bias", _with(last=lambda n, gain, bias: (n + bias) * gain)),
)


def _examine_norm(function):
    if problem := mended.first_problem("norm", 4, function):
        return problem
    different = mended.value_problem("norm", 4, function)
    model = in_all_blocks(small_model(heads=4), "norm", function)
    if not different:
        return mended.gradient_problem("norm", 4, function) or falls_sentence(losses(model))
    likely = mended.slip("norm", 4, function, _MISTAKES)
    fallen = losses(model)
    if sentence := leak_sentence(model):
        started = f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}"
        return started, likely or "whose mean is it, and whose variance? Each position has its own"
    return f"nothing leaks, but this is not LayerNorm: {different}", likely


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
    mistakes=_MISTAKES,
)
def norm_forward(self, x):
    """LayerNorm: (B, T, C) → (B, T, C), each position on its own."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + self.epsilon).sqrt() * self.gain + self.bias
