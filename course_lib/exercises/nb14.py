"""Exercises of notebook 14: the encoder-decoder."""

import numpy as np

from ..common.config import TransformerConfig
from ..common.positions import sinusoidal_positions
from ..numpy_track import AdamW, Tensor, Transformer, encoder_decoder
from ..numpy_track import attention as library_attention
from ..numpy_track import functional as F
from ..text.numbers import DIGITS, WORDS, encode_numbers
from ..text.pairs import PADDING, ignore_padding
from ..text.pairs import shift as library_shift
from . import compare, mending, watch, words
from .exercise import ATTENTION, SOFTMAX, Mistake, arrays, draws, exercise, question, varied
from .mending import CUT


def _right_table(rows, width):
    return sinusoidal_positions(rows, width, "float64")


@exercise(
    "14.1",
    "Positions as waves",
    minutes=15,
    difficulty="medium",
    hints=(
        "The angles first: a column of positions divided by a row of 10000 ** (np.arange(0, width, 2) / width).",
        "table[:, 0::2] are the even columns, table[:, 1::2] the odd ones.",
        "An odd width has one odd column fewer: use angles[:, : width // 2] for the cosines.",
    ),
    next_thought="Which column oscillates fastest, and which slowest? How far apart are two positions in the last?",
    cases=lambda: [(6, 4), (3, 8), (4, 5), (2, 1), (1, 4), (5001, 6)] + varied(5, 6, by=[7, 8]),
    more=lambda rng: [tuple(map(int, rng.integers(1, 40, 2))) for _ in range(4)],
    right=_right_table,
    forbids=("sinusoidal_positions",),
    mistakes=(
        Mistake(
            "all sines come first, then all cosines: they should alternate",
            "table[:, 0::2] = np.sin(angles)\n    table[:, 1::2]",
            "table[:, : angles.shape[1]] = np.sin(angles)\n    table[:, angles.shape[1] :]",
        ),
        Mistake(
            "sine and cosine are swapped: row 0 begins 0, 1, 0, 1",
            "np.sin(angles)\n    table[:, 1::2] = np.cos(",
            "np.cos(angles)\n    table[:, 1::2] = np.sin(",
        ),
        Mistake("positions count from 0", "np.arange(rows)", "np.arange(1, rows + 1)"),
        Mistake(
            "the exponent is 2i / width: with i / width the waves slow down half as fast",
            "np.arange(0, width, 2)",
            "np.arange((width + 1) // 2)",
        ),
        Mistake("10000 is raised to the *power* 2i / width", "10000 ** (", "(10000 * "),
        Mistake("an odd width has one cosine less: angles[:, : width // 2]", "angles[:, : width // 2]", "angles"),
    ),
)
def sinusoids(rows, width):
    """Return sine and cosine in turn, slower and slower: (rows, width), float64."""
    table = np.zeros((rows, width))
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(0, width, 2) / width)  # (rows, half the width)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : width // 2])
    return table


def _right_cross(x, memory, W_query, W_key, W_value):
    context, weights = library_attention(Tensor(x @ W_query), Tensor(memory @ W_key), Tensor(memory @ W_value))
    return context.data, np.asarray(weights)


@exercise(
    "14.2",
    "Cross-attention",
    minutes=15,
    difficulty="medium",
    hints=(
        "Which one asks? The decoder. Which one is looked at? The memory.",
        "query = x @ W_query; key = memory @ W_key; value = memory @ W_value.",
        "The rest is attention as in notebook 03. The weights are (T, S): a row for each word that is written.",
    ),
    next_thought="What must be computed again for each new word of the decoder, and what only once?",
    cases=lambda: [  # C and D are not 1, where mistakes look alike; and scores whose exp overflows
        *(tuple(scale * x for x in arrays(142, (4, 6), (5, 6), *[(6, 3)] * 3)) for scale in (1, 10)),
        arrays(143, (3, 4), (3, 4), *[(4, 5)] * 3),  # T = S, so that all mistakes have a result; and D is the largest
    ],
    more=draws("tc sc cd cd cd", scales=(1, 3)),
    right=_right_cross,
    forbids=ATTENTION + SOFTMAX,
    mistakes=(
        Mistake("keys come from the memory", "memory @ W_key", "x @ W_key"),
        Mistake("values come from the memory", "memory @ W_value", "x @ W_value"),
        Mistake(
            "that is self-attention: keys and values come from the memory",
            "memory @ W_key, memory @ W_value",
            "x @ W_key, x @ W_value",
        ),
        Mistake(
            "the two texts are swapped: `x` asks, and looks at the memory",
            "x @ W_query, memory @ W_key, memory @ W_value",
            "memory @ W_query, x @ W_key, x @ W_value",
        ),
        Mistake("the scale is missing: divide the scores by √D", " / query.shape[1] ** 0.5", ""),
        Mistake("divided by √C: the scale is the root of D, the size of a query", "query.shape[1]", "x.shape[1]"),
        Mistake(
            "`exp` overflows: subtract the largest score of each row first", " - scores.max(axis=-1, keepdims=True)", ""
        ),
    ),
)
def cross_attention(x, memory, W_query, W_key, W_value):
    """Let x (T, C) look at memory (S, C). Returns context (T, D) and weights (T, S)."""
    query, key, value = x @ W_query, memory @ W_key, memory @ W_value  # (T, D), (S, D), (S, D)
    scores = query @ key.T / query.shape[1] ** 0.5  # (T, S)
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ value, weights


_SOURCE = np.array([[7, 0, 0], [4, 2, 0]])


def _mask(source, padding):
    return encoder_decoder.on_key_axis(source != padding, source.shape, "source")


@exercise(
    "14.3",
    "The padding mask",
    minutes=8,
    difficulty="medium",
    hints=(
        "source != padding is True at the real tokens, in the shape (B, S).",
        "Rows are queries, columns are keys. Padding must not be *looked at*, so it is the key axis, the last.",
        "mask[:, None, None, :] inserts two axes of size 1, for the heads and the queries.",
    ),
    next_thought="What do the rows of padded *queries* hold with this mask? Why does it not matter?",
    cases=lambda: [
        *varied(_SOURCE, 0, by=[7]),
        (np.array([[3, 3, 1, 1], [3, 0, 5, 1]]), 1),
        (np.array([[2, 9]]), 0),
    ],
    more=lambda rng: [(rng.integers(0, 4, rng.integers(1, 9, 2)), int(rng.integers(0, 5))) for _ in range(6)],
    right=_mask,
    forbids=("on_key_axis",),
    mistakes=(
        Mistake(
            "the mask is on the query axis: it is the keys that must not be looked at",
            "[:, None, None, :]",
            "[:, None, :, None]",
        ),
        Mistake("True and False are swapped: True means “may be looked at”", "source != padding", "source == padding"),
        Mistake("two axes are missing: (B, S) would be broadcast along queries and keys", "[:, None, None, :]", ""),
        Mistake("the axis of the heads is missing: [:, None, None, :]", "[:, None, None, :]", "[:, None, :]"),
        Mistake(
            "the axes of size 1 come last: the keys are the *last* axis", "[:, None, None, :]", "[..., None, None]"
        ),
        Mistake("the padding id is `padding`, not always 0", "source != padding", "source != 0"),
    ),
)
def padding_mask(source, padding):
    """Return True where a source position may be looked at: (B, S) -> booleans (B, 1, 1, S)."""
    return (source != padding)[:, None, None, :]  # keys are the last axis


@exercise(
    "14.4",
    "Teacher forcing",
    minutes=5,
    difficulty="easy",
    hints=(
        "The inputs leave out the last column. (In a shorter row the end stays in; its label is padding.)",
        "The labels leave out the first: the begin never has to be guessed.",
    ),
    next_thought="What would the loss be without this shift, and what would the model write?",
    cases=lambda: [
        (np.array([[1, 8, 9, 2], [1, 7, 2, 0]]),),
        (np.array([[1, 5, 6, 7, 2]]),),
        (np.array([[1, 2], [1, 3], [1, 4]]),),
    ],
    more=lambda rng: [(rng.integers(0, 9, rng.integers(2, 7, 2)),) for _ in range(4)],
    right=library_shift,
    forbids=("shift",),
    mistakes=(
        Mistake("the labels are the inputs: the decoder would only copy", "target[:, 1:]", "target[:, :-1]"),
        Mistake("inputs and labels are swapped", "target[:, :-1], target[:, 1:]", "target[:, 1:], target[:, :-1]"),
        Mistake(
            "the first axis was cut, that of the batch: cut the words, [:, …]",
            "target[:, :-1], target[:, 1:]",
            "target[:-1], target[1:]",
        ),
        Mistake(
            "rolled round: the begin came back at the end",
            "target[:, :-1], target[:, 1:]",
            "target, np.roll(target, -1, axis=1)",
        ),
        Mistake("the inputs are one too long: nothing follows the end", "target[:, :-1]", "target"),
        Mistake(
            "shifted by two: the label is the next word",
            "target[:, :-1], target[:, 1:]",
            "target[:, :-2], target[:, 2:]",
        ),
    ),
)
def shift(target):
    """Split (B, T + 1) -> inputs and labels, a pair of arrays (B, T)."""
    return target[:, :-1], target[:, 1:]


shapes_of_weights = question(
    "14.5",
    "Shapes of weights",
    minutes=4,
    difficulty="easy",
    hints=(
        "Rows are queries, columns are keys: (B, H, queries, keys).",
        "In cross-attention the target asks and the source is looked at.",
    ),
    next_thought="Which of the two grows with the square of the target's length?",
    value=[[2, 8, 7, 10], [2, 8, 7, 7]],
    answer="[[2, 8, 7, 10], [2, 8, 7, 7]]: the target asks in both; it looks at the source, and at itself.",
    mistakes=(
        Mistake(
            "rows are queries: the target asks, and looks at the source",
            value=[[2, 8, 10, 7], None],
        ),
        Mistake(
            "in cross-attention keys are the source: 10 columns",
            value=[[2, 8, 7, 7], None],
        ),
        Mistake(
            "in cross-attention queries are the target: 7 rows",
            value=[[2, 8, 10, 10], None],
        ),
        Mistake(
            "in the decoder's self-attention the target looks at itself: the source plays no part",
            when=lambda got, want, case: list(got[0]) == want[0] and sorted(got[1])[2:] in ([8, 10], [10, 10]),
        ),
        Mistake(
            "each head has weights of its own; the width plays no part in their shape",
            when=lambda got, want, case: any(n in list(got[0]) for n in (64, 512)),
        ),
    ),
)


def _translator():
    sizes = {"width": 16, "heads": 2, "layers": 1, "d_ff": 32, "context_length": 12}
    return Transformer(TransformerConfig(len(DIGITS), len(WORDS), **sizes, dropout=0.0, dtype="float64"), seed=0)


def _batch():
    """Return (source (B, S), inputs (B, T), labels (B, T)) of numbers with one to four digits."""
    source, target = encode_numbers([7, 12, 40, 305, 860, 3407, 4, 19])
    inputs, labels = library_shift(target)
    return source, inputs, ignore_padding(labels)


def _padded_case(padding=PADDING):
    """Return (model, source, inputs, padding): a model and a batch with this padding id, swapped with 0."""
    source, inputs, _ = _batch()
    exchange = {PADDING: padding, padding: PADDING}
    return _translator(), *(np.vectorize(lambda i: exchange.get(i, i))(ids) for ids in (source, inputs)), padding


def _at_words(logits, inputs, padding):
    """Return the logits at real words, (positions, V): those at padded positions do not matter."""
    return logits.detach().numpy()[inputs != padding]


def _losses(function, model, steps=60):
    """Return the losses of ``steps`` training steps with these logits."""
    source, inputs, labels = _batch()
    optimizer, values = AdamW(model.parameters(), 1e-2), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(function(model, source, inputs, PADDING), labels)
        loss.backward()
        optimizer.step()
        values.append(float(loss.item()))
    return values


def _padding_moves(function, model=None):
    """Return how far the logits move when every source gets two more positions of padding."""
    fresh, source, inputs, padding = _padded_case()
    longer = np.pad(source, ((0, 0), (0, 2)), constant_values=padding)
    one, other = (
        _at_words(function(model or fresh, ids, inputs, padding), inputs, padding) for ids in (source, longer)
    )
    return float(np.abs(one - other).max())


def _gradients(function):
    """Return {name: gradient} of all parameters, for a random gradient of the logits at real words."""
    model, source, inputs, padding = _padded_case()
    out = function(model, source, inputs, padding)
    out.backward(np.random.default_rng(0).standard_normal(out.shape) * (inputs != padding)[..., None])
    return {name: p.grad for name, p in model.named_parameters()}


def _right_logits(model, source, inputs, padding):
    return model(source, inputs, source != padding, inputs != padding)


def _examine_padding(function):
    for padding in (PADDING, 3):
        case, (_, *before, _) = _padded_case(padding), _padded_case(padding)
        weights = case[0].state_dict()
        out = function(*case)
        if not watch.unchanged(before, list(case[1:3])) or mending.furthest(case[0].state_dict(), weights):
            return "The function changes its input in place: model, source or inputs", "make new arrays"
        want = _right_logits(*case)
        if out is None or out is ... or out is NotImplemented:
            return ("it returned None", "the `return` is missing") if out is None else ...
        if isinstance(out, (tuple, list)):
            return f"got {words.kind(out)}, expected one Tensor", "return the logits alone"
        if not isinstance(out, Tensor):
            return words.not_a_tensor(out), CUT if compare.same(out, want) else ""
        if out.shape != want.shape:
            return f"the logits have shape {out.shape}, expected {want.shape}"
        got, right = (_at_words(x, *case[2:]) for x in (out, want))
        if not np.allclose(got, right, rtol=0, atol=1e-9):
            return _other_logits(function, got, case)
    if problem := _gradient_problem(function):
        return problem
    mine, right = (_losses(f, _translator(), steps=5) for f in (function, _right_logits))
    if not np.allclose(mine, right, rtol=0, atol=1e-9):
        return "in training the losses are not those of the model with all its masks", "something is left over"
    return None


def _other_logits(function, got, case):
    wrong = padded_logits.wrong_functions()
    likely = next((message for message, f in wrong if compare.same(got, _at_words(f(*case), *case[2:]))), "")
    if _padding_moves(function) < 1e-9 or not function(*case).requires_grad:
        return f"with the padding id {case[3]} the logits are not those of the model with all its masks", likely
    fallen = _losses(function, case[0])
    moved = _padding_moves(function, case[0])
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: two more positions of padding after each"
        f" source move the logits by {moved:.2g}",
        likely,
    )


def _gradient_problem(function):
    if not function(*_padded_case()).requires_grad:
        return "the logits are right, but the gradient is cut", CUT
    mine = _gradients(function)
    for name, want in _gradients(_right_logits).items():
        if mine[name] is None or not np.allclose(mine[name], want, rtol=0, atol=1e-9):
            return f"the logits are right, but the gradient that reaches {name} is not", CUT
    return None


def _padded_broken(model, source, inputs, padding):
    """Return logits (B, T, V) for padded ids (B, S) and (B, T). Something still reads the padding."""
    allow, target_allow = source != padding, inputs != padding
    memory = model.encode(source, allow)  # (B, S, C)
    return model.decode(inputs, memory, target_allow=target_allow)


@exercise(
    "14.6",
    "Find the bug: who still reads the padding?",
    minutes=10,
    difficulty="medium",
    hints=(
        "Put two more positions of padding after a source. The logits should not move at all.",
        "Two parts of the model look at the source: the encoder's self-attention is one of them.",
        "Cross-attention is the other. It needs the mask of the source, `allow`, which model.decode takes third.",
    ),
    next_thought="Without `target_allow` no logits at real words move. Which other mask hides the padding there?",
    broken=_padded_broken,
    examine=_examine_padding,
    mistakes=(
        Mistake(
            "the decoder's cross-attention looks at the source, and its padding is not hidden there: pass it the mask",
            "memory, allow,",
            "memory, None,",
        ),
        Mistake(
            "the encoder has lost its mask: both read the source", "model.encode(source, allow)", "model.encode(source)"
        ),
        Mistake(
            "neither of the two has the source's mask",
            "allow, target_allow = source != padding",
            "allow, target_allow = None",
        ),
        Mistake("the padding id is `padding`, not always 0", "source != padding", "source != 0"),
        Mistake(
            "True means “may be looked at”: real tokens, source != padding", "source != padding", "source == padding"
        ),
        Mistake(
            "these are probabilities: return the logits",
            "model.decode(inputs, memory, allow, target_allow)",
            "F.softmax(model.decode(inputs, memory, allow, target_allow))",
        ),
    ),
)
def padded_logits(model, source, inputs, padding):
    """Return logits (B, T, V) for padded ids (B, S) and (B, T): nothing reads the padding."""
    allow, target_allow = source != padding, inputs != padding
    memory = model.encode(source, allow)  # (B, S, C)
    return model.decode(inputs, memory, allow, target_allow)
