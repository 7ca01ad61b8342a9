"""Exercise of notebook 05: heads made by a bare reshape."""

from ..numpy_track import functional as F
from . import mended
from .bugs import falls_sentence, in_all_blocks, leak_sentence, losses, small_model
from .exercise import Mistake, exercise

RESHAPE = "a reshape moves numbers"


def _with(mask=F.causal_mask, roles="qkv", merged=True, output=True):
    """The solution with one thing changed: its mask, who is query, key and value, the merge, or the last matrix."""

    def forward(self, x):
        B, T, C = x.shape
        parts = {"q": self.query, "k": self.key, "v": self.value}
        q, k, v = (parts[r](x).reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2) for r in roles)
        context, _ = F.attention(q, k, v, mask and mask(T))
        context = (context.swapaxes(1, 2) if merged else context).reshape(B, T, C)
        return self.output(context) if output else context

    return forward


_SWAPPED = "query, key and value are exchanged: F.attention wants them in this order"
_MISTAKES = (
    Mistake("the causal mask is missing: hand F.causal_mask(T) to F.attention", _with(mask=None)),
    Mistake(
        "the causal mask is turned over: its rows are queries and its columns keys",
        _with(mask=lambda T: F.causal_mask(T).T),
    ),
    Mistake(
        "the causal mask is the wrong way round: True means that a query may look at a key",
        _with(mask=lambda T: ~F.causal_mask(T)),
    ),
    Mistake("the output matrix is missing: self.output(...) mixes the heads at the end", _with(output=False)),
    Mistake(f"the merge is a bare reshape, and {RESHAPE}: exchange axes 1 and 2 first", _with(merged=False)),
    *(Mistake(_SWAPPED, _with(roles=roles)) for roles in ("qvk", "kqv", "kvq", "vqk", "vkq")),
)


def _examine_heads(function):
    if problem := mended.first_problem("attention", 4, function):
        return problem
    different = mended.value_problem("attention", 4, function)
    likely = mended.slip("attention", 4, function, _MISTAKES) if different else ""
    model = in_all_blocks(small_model(heads=4), "attention", function)
    if not different:
        return mended.gradient_problem("attention", 4, function) or falls_sentence(losses(model))
    fallen = losses(model)
    if sentence := leak_sentence(model):
        return f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: {sentence}", likely or RESHAPE
    return (
        f"nothing leaks, but the attention is not that of the course's model: {different}",
        likely or "split, attend, and merge as before",
    )


def _heads_broken(self, x):
    """Attention with H heads: (B, T, C) → (B, T, C). Somewhere positions get mixed."""
    B, T, C = x.shape
    H = self.heads
    q, k, v = (f(x).reshape(B, H, T, C // H) for f in (self.query, self.key, self.value))  # (B, H, T, D)
    context, self.weights = F.attention(q, k, v, F.causal_mask(T))  # (B, H, T, D)
    return self.output(context.swapaxes(1, 2).reshape(B, T, C))


@exercise(
    "05.3",
    "Find the bug: heads made by a bare reshape",
    minutes=10,
    difficulty="middle",
    task="""
All shapes are right, the mask is right, the loss falls, and yet the future leaks. Where do the positions get mixed?
Mend it.
""",
    hints=(
        "Follow the numbers of position 1: in which place of (B, H, T, D) does each of them land?",
        "A reshape keeps the numbers in their order in memory. Cut into (B, T, H, D) first, then exchange axes.",
    ),
    next_thought="The mask was right all the time. Why could it not help?",
    broken=_heads_broken,
    examine=_examine_heads,
    mistakes=_MISTAKES,
)
def heads_forward(self, x):
    """Attention with H heads: (B, T, C) → (B, T, C)."""
    B, T, C = x.shape
    H = self.heads
    q, k, v = (f(x).reshape(B, T, H, C // H).swapaxes(1, 2) for f in (self.query, self.key, self.value))
    context, self.weights = F.attention(q, k, v, F.causal_mask(T))  # (B, H, T, D)
    return self.output(context.swapaxes(1, 2).reshape(B, T, C))
