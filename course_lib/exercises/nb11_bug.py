"""Exercise of notebook 11: a decoder that reads the padding of the source."""

import numpy as np

from ..numpy_track import Tensor
from ..numpy_track import functional as F
from ..text.pairs import PADDING
from . import compare, translator, words
from .exercise import Mistake, exercise
from .mended import CUT


def _right(model, source, inputs, padding):
    return model(source, inputs, source != padding, inputs != padding)


def _with(encoder=lambda s, p: s != p, decoder=lambda s, p: s != p, last=lambda logits: logits):
    """The solution with another mask of the source in one place, or something done to the logits."""

    def logits(model, source, inputs, padding):
        memory = model.encode(source, encoder(source, padding))
        return last(model.decode(inputs, memory, decoder(source, padding), inputs != padding))

    return logits


def _no(source, padding):
    return None


def _zero(source, padding):
    return source != 0


def _other_way(source, padding):
    return source == padding


_MISTAKES = (
    Mistake(
        "the decoder's cross-attention looks at the source, and nobody hides the padding there: hand it the mask, too",
        _with(decoder=_no),
    ),
    Mistake("the encoder has lost its mask: both read the source", _with(encoder=_no)),
    Mistake("neither of the two has the source's mask", _with(_no, _no)),
    Mistake("the id that fills up is `padding`, and not always 0", _with(_zero, _zero)),
    Mistake("True means “may be looked at”: real tokens, source != padding", _with(_other_way, _other_way)),
    Mistake("these are probabilities: the logits are asked for", _with(last=lambda x: F.softmax(x, axis=-1))),
)


def _examine(function):
    for padding in (PADDING, 3):
        case = translator.case(padding)
        out, want = function(*case), _right(*case)
        if out is None or out is ... or out is NotImplemented:
            return ("None came back", "the `return` is missing") if out is None else ...
        if not isinstance(out, Tensor):
            return f"{words.kind(out)} came, and a Tensor is expected: the gradient does not come through", CUT
        if out.shape != want.shape:
            return f"the logits have shape {out.shape}, expected is {want.shape}"
        got, right = (translator.at_words(x, *case[2:]) for x in (out, want))
        if not np.allclose(got, right, rtol=0, atol=1e-9):
            return _other_logits(function, got, case)
    return _gradient_problem(function)


def _other_logits(function, got, case):
    theirs = (translator.at_words(mistake.wrong(*case), *case[2:]) for mistake in _MISTAKES)
    likely = next((m.message for m, values in zip(_MISTAKES, theirs) if compare.same(got, values)), "")
    if translator.padding_moves(function) < 1e-9 or not function(*case).requires_grad:
        return f"with the padding id {case[3]} the logits are not those of the model with all its masks", likely
    fallen = translator.losses(function, case[0])
    moved = translator.padding_moves(function, case[0])
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: two more places of padding behind each"
        f" source move the logits by {moved:.2g}",
        likely,
    )


def _gradient_problem(function):
    if not function(*translator.case()).requires_grad:
        return "the logits are right, but the gradient does not come through", CUT
    mine = translator.gradients(function)
    for name, want in translator.gradients(_right).items():
        if mine[name] is None or not np.allclose(mine[name], want, rtol=0, atol=1e-9):
            return f"the logits are right, but the gradient does not come through to {name}", CUT
    return None


def _broken(model, source, inputs, padding):
    """Logits (B, T, V) for padded ids (B, S) and (B, T). Somebody still reads the padding."""
    allow, target_allow = source != padding, inputs != padding
    memory = model.encode(source, allow)  # (B, S, C)
    return model.decode(inputs, memory, target_allow=target_allow)


@exercise(
    "11.6",
    "Find the bug: who still reads the padding?",
    minutes=10,
    difficulty="middle",
    task="""
This translator trains well: its loss falls. But what it says about a number changes with the longest number of the
batch, because somebody reads the filling. `model` is the Transformer of this notebook, `padding` the id that fills up.
Mend it. (The decoder is called as model.decode(target, memory, source_allow, target_allow).)
""",
    hints=(
        "Put two more places of padding behind a source. The logits should not move at all.",
        "Two parts of the model look at the source: the encoder's self-attention is one of them.",
        "Cross-attention is the other. It needs the mask of the source, `allow`, which model.decode takes third.",
    ),
    next_thought="Without `target_allow` no logits at real words move. Which other mask hides the padding there?",
    broken=_broken,
    examine=_examine,
    mistakes=_MISTAKES,
)
def padded_logits(model, source, inputs, padding):
    """Logits (B, T, V) for padded ids (B, S) and (B, T): nobody reads the padding."""
    allow, target_allow = source != padding, inputs != padding
    memory = model.encode(source, allow)  # (B, S, C)
    return model.decode(inputs, memory, allow, target_allow)
