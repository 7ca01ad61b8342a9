"""Exercises of notebook 16: from GPT-2 to today."""

import functools
import re
import types

import numpy as np

from ..common.positions import rotary_angles
from ..numpy_track import Tensor
from ..numpy_track import functional as F
from . import compare, mending, words
from .exercise import Mistake, arrays, chosen, exercise, numbered, question, varied


def _right_turn(x, start=0, theta=10000.0):
    half = x.shape[-1] // 2
    z = x[..., :half] + 1j * x[..., half:].astype(complex)  # a pair is one complex number, a turn a product
    speed = np.array([theta ** (-i / half) for i in range(half)])
    z = z * np.exp(1j * np.outer(np.arange(start, start + x.shape[-2]), speed))
    return np.concatenate([z.real, z.imag], axis=-1).astype(x.dtype)


def _drawn_rows(rng):
    """Return x (..., T, D) with an even D, and where they start, sometimes far away; float64 and float32 in turn."""
    cases = []
    for turn in range(8):
        batch = tuple(rng.integers(1, 4, (0, 1, 2, 3)[turn % 4]))
        x = rng.standard_normal((*batch, (1, 3)[turn % 2] + rng.integers(0, 4), 2 * rng.integers(1, 6)))
        start = int(rng.integers(0, 20) if turn < 6 else rng.integers(100_000, 200_000))
        theta = (10000.0, float(rng.integers(10, 1000)))[turn % 3 == 2]
        cases.append((x.astype(("float64", "float32")[turn // 2 % 2]), start, theta))
    return cases


def _too_coarse(got, want, case):
    """Return True if all could be right but for angles, or cos and sin, in float32; position 0 does not turn at all."""
    x, start = (*case, 0)[:2]
    off = np.abs(got - want)
    if x.dtype == np.float32 and start < 10_000 or start == 0 and off[..., 0, :].any():
        return False
    return off.max() < min(0.2, 1e-6 * (start + x.shape[-2])) * np.abs(x).max()


_TURN = "a * cos - b * sin, b * cos + a * sin"
_PAIRS = f"""    a, b = x[..., :half], x[..., half:]  # (..., T, D/2)
    return np.concatenate([{_TURN}], axis=-1)"""
_NEIGHBOURS = f"""    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([{_TURN}], axis=-1).reshape(x.shape)"""


@exercise(
    "16.1",
    "Turn queries and keys",
    minutes=12,
    difficulty="medium",
    hints=(
        "An angle for each position and pair: positions as a column (T, 1), frequencies as a row (D/2,).",
        "frequencies = theta ** (-2 * np.arange(D // 2) / D), angles = (start + np.arange(T))[:, None] * frequencies.",
        "With a and b the two halves of x: a cos - b sin is the new first half, b cos + a sin the new second. Bring"
        " cos and sin to x.dtype before.",
    ),
    next_thought="Turn a query at position 7 and a key at 4, then at 107 and 104. What becomes of their product?",
    cases=lambda: [
        (numbered(3, 4),),
        arrays(0, (4, 6)),
        (*arrays(1, (2, 3, 8)), 5),
        (*arrays(2, (1, 4)), 7),
        (*arrays(3, (2, 2, 3, 2), dtype="float32"), 1),
        (*arrays(4, (3, 6)), 2, 100.0),
        (*arrays(5, (2, 6), dtype="float32"), 1_000_003),
        (*arrays(6, (2, 2, 10), dtype="float32"), 3),
        *varied(*arrays(6, (2, 2, 10)), 3, 10000.0, by=[11, 500.0]),  # what was remembered in float32 is too coarse
        (*arrays(7, (2, 4)), 150_000, 50.0),
    ],
    more=_drawn_rows,
    right=_right_turn,
    forbids=("rotary", "rotary_angles"),
    mistakes=(
        Mistake(
            "neighbours were paired, channels 2i and 2i + 1: here channel i turns with channel i + D/2",
            _PAIRS,
            _NEIGHBOURS,
        ),
        Mistake(
            "the turn goes the wrong way round: a cos - b sin, and b cos + a sin",
            _TURN,
            "a * cos + b * sin, b * cos - a * sin",
        ),
        Mistake(
            "this is no rotation, it changes lengths: one of the two products with sin has a minus",
            _TURN,
            "a * cos + b * sin, b * cos + a * sin",
        ),
        Mistake("`start` is not used: the first row is at position start", "(start + np.arange(T))", "np.arange(T)"),
        Mistake(
            "every pair turns twice as far: by p · theta^(-2i/D), and only once",
            "(start + np.arange(T))",
            "2 * (start + np.arange(T))",
        ),
        Mistake("the exponent is -2i/D, and i counts the pairs: the 2 is missing", "-2 * np", "-1 * np"),
        Mistake(
            "pairs are counted from 0: the first turns by the position itself",
            "np.arange(half)",
            "np.arange(1, half + 1)",
        ),
        Mistake("the minus of the exponent is missing: later pairs turn more slowly", "-2 * np", "2 * np"),
        Mistake("`theta` is not always 10000: use the argument", "theta ** ", "10000.0 ** "),
        Mistake(
            "float32 is too coarse for angles, and for cos and sin of a float64 x: compute them in float64, and round"
            " only cos and sin, to x.dtype",
            when=_too_coarse,
        ),
    ),
)
def rotate(x, start=0, theta=10000.0):
    """Turn channels i and i + D/2 of each row by its position, from ``start`` on: (..., T, D) -> (..., T, D)."""
    T, D = x.shape[-2:]
    half = D // 2
    frequencies = theta ** (-2 * np.arange(half) / D)  # (D/2,)
    angles = (start + np.arange(T))[:, None] * frequencies  # (T, D/2)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = x[..., :half], x[..., half:]  # (..., T, D/2)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def _right_share(x, heads):
    group = heads // x.shape[1]
    return np.stack([x[:, h // group] for h in range(heads)], axis=1)


def _drawn_heads(rng):
    cases = []
    for turn in range(6):
        B, G, S, D, group = (int(n) for n in rng.integers(1, 5, 5))
        G, group = ((G, group), (3, 2), (1, 1 + group))[turn % 3]
        x = rng.standard_normal((B, G, S, D)).astype(("float64", "float32")[turn % 2])
        cases.append((x, G * group))
    return cases


_REPEAT = "np.repeat(x, group, axis=1)"


@exercise(
    "16.2",
    "One key head for several query heads",
    minutes=5,
    difficulty="easy",
    hints=(
        "Four query heads and two key heads: query heads 0 and 1 read key head 0, heads 2 and 3 read key head 1.",
        "Each head is repeated heads // G times in place: 0 0 1 1, not 0 1 0 1.",
        "np.repeat(x, times, axis=…) repeats in place; or index axis 1 with np.arange(heads) // times.",
    ),
    next_thought="The copies cost memory. Which arrays of a layer could stay small, and when must they be shared out?",
    cases=lambda: [
        (numbered(1, 2, 1, 2), 4),
        (*arrays(0, (2, 2, 3, 4)), 4),
        (*arrays(1, (1, 3, 2, 2), dtype="float32"), 6),
        (*arrays(2, (2, 1, 2, 3)), 4),
        (*arrays(3, (2, 3, 1, 2)), 3),
        (*arrays(4, (1, 2, 4, 2)), 6),
        *varied(*arrays(5, (1, 2, 3, 2)), 4, by=[6]),
        (*arrays(6, (1, 3, 1, 2)), 96),
    ],
    more=_drawn_heads,
    right=_right_share,
    forbids=("repeat_interleave",),
    mistakes=(
        Mistake(
            "the order is 0 1 0 1: neighbouring query heads read the same key head, 0 0 1 1",
            _REPEAT,
            "np.tile(x, (1, group, 1, 1))",
        ),
        Mistake("the batch was repeated: heads are axis 1", "axis=1", "axis=0"),
        Mistake("the positions were repeated: heads are axis 1", "axis=1", "axis=2"),
        Mistake("the channels were repeated: heads are axis 1", "axis=1", "axis=3"),
        Mistake("without `axis` np.repeat gives one long row: the heads are axis 1", ", axis=1", ""),
        Mistake("each head is repeated `heads` times: heads // G times makes `heads` of them", "group,", "heads,"),
        Mistake("nothing is repeated: the result has `heads` heads", _REPEAT, "x"),
        Mistake(
            "query head h reads key head h // (heads // G), not h // G", _REPEAT, "x[:, np.arange(heads) // x.shape[1]]"
        ),
        Mistake(
            "the last key head serves all query heads that are left: each should serve equally many",
            _REPEAT,
            "x[:, np.minimum(np.arange(heads), x.shape[1] - 1)]",
        ),
    ),
)
def share(x, heads):
    """Give each of ``heads`` query heads its key head: (B, G, S, D) -> (B, heads, S, D)."""
    group = heads // x.shape[1]  # so many query heads read the same key head
    return np.repeat(x, group, axis=1)


def _right_bytes(layers, kv_heads, head_dim, length, bytes_each=2):
    number = np.zeros((), f"V{bytes_each}")
    return int(np.broadcast_to(number, (2, layers, kv_heads, length, head_dim)).nbytes)


@exercise(
    "16.3",
    "What does the cache cost?",
    minutes=6,
    difficulty="easy",
    hints=(
        "For each position, each layer keeps one key and one value in each of its kv_heads.",
        "A key has head_dim numbers, and so has a value. A number takes bytes_each bytes.",
        "A product of six numbers, one of which is 2.",
    ),
    next_thought="So Llama 3 8B needs 1,073,741,824 bytes (1 GiB) for one text, and 4 GiB with all 32 heads."
    " Which of these sizes may be changed after training, without new weights?",
    cases=lambda: [
        (1, 1, 1, 1, 1),
        (2, 3, 4, 5),
        (32, 8, 128, 8192),
        (12, 12, 64, 1024, 4),
        (4, 2, 8, 0),
        (3, 1, 2, 7),
        *varied(3, 2, 4, 5, 2, by=[2, 3, 8, 7, 4]),
    ],
    more=lambda rng: [
        (*(int(n) for n in rng.integers(2, 50, 4)), *([], [1], [2], [4], [8])[turn]) for turn in range(5)
    ],
    right=_right_bytes,
    forbids=("KeyValueCache", "new_cache"),
    mistakes=(
        Mistake("keys *and* values are kept: twice as much", "2 * layers", "layers"),
        Mistake("queries are used once and not kept: only keys and values are", "2 * layers", "3 * layers"),
        Mistake("this is how many numbers are kept: each takes `bytes_each` bytes", " * bytes_each", ""),
        Mistake("a number does not always take two bytes: use `bytes_each`", "* bytes_each", "* 2"),
        Mistake("this is one layer: each has its own keys and values", "2 * layers", "2"),
        Mistake("this is one head: each layer has `kv_heads` of them", " * kv_heads", ""),
        Mistake("this is one position: all `length` of them are kept", " * length", ""),
        Mistake("`head_dim` is missing: a key is a vector of that many numbers", " * head_dim", ""),
        Mistake("these are bits: a byte has eight, and bytes are asked for", "2 * layers", "16 * layers"),
        Mistake(
            "the cache does not grow with the square of the length: weights are not kept", "* length", "* length**2"
        ),
    ),
)
def cache_bytes(layers, kv_heads, head_dim, length, bytes_each=2):
    """Return how many bytes the keys and values of one text of ``length`` tokens take: a whole number."""
    return 2 * layers * kv_heads * head_dim * length * bytes_each  # 2: a key and a value


_SEEN = "(back >= 0) & (back < window)"
_BLOCKS = "(position[:, None] // window == position[None, :] // window)"


def _blocks_both_ways(got, want, case):
    block = np.arange(case[0]) // case[1]
    return got.dtype == bool and np.array_equal(got, block[:, None] == block[None, :])


@exercise(
    "16.4",
    "A sliding window",
    minutes=5,
    difficulty="easy",
    hints=(
        "Write down the mask for four positions and a window of 2: each row has its last True on the diagonal.",
        "back = position[:, None] - position[None, :] says how far key j is behind query i.",
        "Two comparisons, joined with &, each in brackets: (back >= 0) & (back < window).",
    ),
    next_thought="Two layers with a window of 4: from how far back can something reach a position? And with L layers?",
    cases=lambda: [(4, 2), (3, 1), (5, 3), (3, 3), (2, 9), (1, 1), (200, 64), (600, 560)],
    more=lambda rng: [(int(size), int(window)) for size, window in rng.integers((4, 1), (40, 30), (5, 2))],
    right=lambda size, window: F.window_mask(size, window),
    forbids=("window_mask",),
    mistakes=(
        Mistake(
            "one key too many: a window of `window` keys includes the query's own", "back < window", "back <= window"
        ),
        Mistake(
            "one key too few: `window` keys, of which the query's own is one", "back < window", "back < window - 1"
        ),
        Mistake(
            "rows and columns are swapped: rows are queries, which look back",
            "position[:, None] - position[None, :]",
            "position[None, :] - position[:, None]",
        ),
        Mistake("the future is visible: j may not be larger than i", "(back >= 0) & ", ""),
        Mistake(
            "the window looks both ways: j may not be larger than i",
            _SEEN,
            "abs(back) < window",
        ),
        Mistake("the window is not used: this is the causal mask", " & (back < window)", ""),
        Mistake("True and False are swapped: True means “may look”", _SEEN, f"~({_SEEN})"),
        Mistake(
            "these are numbers to add to the scores: this course's masks are booleans that say what may be seen",
            _SEEN,
            f"np.where({_SEEN}, 0.0, -np.inf)",
        ),
        Mistake(
            "your own key belongs to the window: i - j = 0 is seen",
            _SEEN,
            "(back > 0) & (back <= window)",
            when=lambda got, want, case: got.dtype == bool and np.array_equal(got, want & ~np.eye(case[0], dtype=bool)),
        ),
        Mistake(
            "these are blocks: the window moves with the query, from which it reaches window - 1 keys back",
            _SEEN,
            f"(back >= 0) & {_BLOCKS}",
            when=_blocks_both_ways,
        ),
        Mistake(
            "arrays cannot be compared in a chain, nor joined with `and`: write (0 <= d) & (d < window), each in"
            " brackets",
            when=lambda got, want, case: isinstance(got, ValueError) and "truth value of an array" in str(got),
        ),
        Mistake("0 and 1 are numbers: the mask is boolean, as comparisons are", _SEEN, f"({_SEEN}) * 1"),
    ),
)
def window_mask(size, window):
    """Return True where query i sees key j, 0 ≤ i - j < window: booleans (size, size), rows are queries."""
    position = np.arange(size)
    back = position[:, None] - position[None, :]  # (size, size)
    return (back >= 0) & (back < window)


_TODAY = {"positions": "rotary", "qk_norm": True, "kv_heads": 2}
_OTHER = {"positions": "rotary", "qk_norm": True, "kv_heads": 1, "heads": 2, "head_dim": 6, "rope_theta": 100.0}


def _with_project(model, function):
    """Make ``function(self, x, position)`` the ``project`` of the one attention layer, if given; return the model."""
    if function is not None:
        layer = model.blocks[0].attention.layer
        layer.project = types.MethodType(function, layer)
    return model


def _layer(function=None, **changes):
    """Return an attention layer whose weights, the norms' too, are unlike the initial ones."""
    model = mending.small_model(**(changes or _TODAY))
    rng = np.random.default_rng(2)
    model.load_state_dict({n: v + 0.3 * rng.standard_normal(v.shape) for n, v in model.state_dict().items()})
    return _with_project(model, function).blocks[0].attention.layer


def _cache_off(model):
    """Return (t, how far): where the logits with a cache are furthest from those of one pass, over several parts."""
    ids, worst = mending.small_data()[0][:2], (0, 0.0)
    with model.evaluating():
        whole = model(ids)[0].data  # (B, T, V)
        for parts in ((1,) * 8, (3, 1, 2, 2)):
            cache, at = model.new_cache(2), 0
            for n in parts:
                off = np.abs(model(ids[:, at : at + n], cache=cache)[0].data - whole[:, at : at + n]).max(axis=(0, 2))
                if not off.max() <= worst[1]:
                    worst = (at + int(off.argmax()), float(off.max()))
                at += n
    return worst


_TRIES = ((2, 5, None), (2, 5, 3), (3, 2, 1), (1, 1, 7), (2, 8, 0), (2, 5, 3))  # B, T, position


def _projected(function, changes=None):
    """Return [(q, k, v) of one layer for each of the tries], arrays; with ``None`` those of the course's layer."""
    layer = _layer(function, **(changes or _TODAY))
    rng = np.random.default_rng(3)
    found, x = [], np.zeros(0)
    for B, T, position in _TRIES:
        if x.shape[:2] != (B, T):  # the second try is of the first one's x, at another position
            x = Tensor(rng.standard_normal((B, T, layer.config.width)))
        out = layer.project(x) if position is None else layer.project(x, position)
        found.append(tuple(words.plain(part) for part in out))
    return found


def _form_problem(function):
    """Return (problem, why) of the form of the results; ``...`` for an untouched stub, None if all is well."""
    layer = _layer(function)
    x = Tensor(np.random.default_rng(4).standard_normal((2, 3, layer.config.width)))
    before = layer.state_dict() | {"x": x.data.copy()}
    out, want = layer.project(x, 2), _layer().project(x, 2)
    if out is ... or out is NotImplemented:
        return ...
    if out is None:
        return "it returned None", "the `return` is missing"
    if not isinstance(out, (tuple, list)) or len(out) != 3:
        what = f"{len(out)} results" if isinstance(out, (tuple, list)) else words.kind(out)
        return f"got {what}, expected three Tensors: query, key and value", ""
    changed = [
        name for name, value in (layer.state_dict() | {"x": x.data}).items() if not np.array_equal(value, before[name])
    ]
    if changed:
        return f"The function changes its input in place: {changed[0]}", "make a new Tensor"
    for name, mine, right in zip(("query", "key", "value"), out, want, strict=True):
        if not isinstance(mine, Tensor):
            return f"{words.not_a_tensor(mine)} as {name}", mending.CUT if compare.same(mine, right) else ""
        if mine.shape != right.shape:
            return f"the {name} has shape {mine.shape}, expected {right.shape}", ""
    return None


def _likely_project(function):
    mine, right = _projected(function), _projected(None)
    for message, wrong in project.wrong_functions():
        theirs = _projected(wrong)
        if compare.same(mine, theirs) and not compare.same(theirs, right):
            return message
    return ""


def _value_problem(function):
    """Return (problem, why) if query, key or value are not those of the course's layer; None if they are."""
    for changes in (_TODAY, _OTHER):
        for mine, right, (_, T, position) in zip(_projected(function, changes), _projected(None, changes), _TRIES):
            for name, a, b in zip(("query", "key", "value"), mine, right, strict=True):
                if problem := compare.difference(a, b, what=f"the {name}"):
                    where = f"for {T} tokens from position {position or 0} on"
                    said = f"with a cache the logits are those without, and yet: {where}, {problem}"
                    return said, _likely_project(function)
    return None


def _gradients(function):
    """Return {name: gradient} of x and the parameters that a random gradient of query, key and value reaches."""
    layer, rng = _layer(function), np.random.default_rng(5)
    x = Tensor(rng.standard_normal((2, 4, layer.config.width)), requires_grad=True)
    sum((part * rng.standard_normal(part.shape)).sum() for part in layer.project(x, 2)).backward()
    return {"x": x.grad} | {name: p.grad for name, p in layer.named_parameters() if not name.startswith("output")}


def _gradient_problem(function):
    if not all(part.requires_grad for part in _layer(function).project(Tensor(np.ones((1, 2, 32))), 1)):
        return "the values are right, but the gradient is cut", mending.CUT
    mine, right = _gradients(function), _gradients(None)
    for name, want in right.items():
        if mine[name] is None or not np.allclose(mine[name], want, rtol=0, atol=1e-9):
            return f"the values are right, but the gradient that reaches {name} is not", mending.CUT
    return None


def _losses(function, steps=60):
    model = _with_project(mending.small_model(**_TODAY), function)
    return mending.losses(model, steps), model


@functools.cache
def _right_losses():
    return _losses(None, 20)[0]


def _examine_project(function):
    if problem := _form_problem(function):
        return problem
    if not _cache_off(_with_project(mending.small_model(**_TODAY), function))[1] <= 1e-9:
        fallen, model = _losses(function)
        t, off = _cache_off(model)
        return (
            f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: with a cache the logits at position {t}"
            f" are off by {off:.2g} from those of one pass over the text",
            _likely_project(function),
        )
    if problem := _value_problem(function) or _gradient_problem(function):
        return problem
    if not np.allclose(_losses(function, 20)[0], _right_losses(), rtol=0, atol=1e-7):
        return "in training the losses are not those of the course's layer", "is something left over from a call?"
    return None


def _project_broken(self, x, position=0):
    """Return query (B, H, T, D), key and value (B, G, T, D) of x (B, T, C). It is right for a whole text only."""
    T, of = x.shape[1], self.config
    q = F.split_heads(self.query(x), self.heads)
    k, v = (F.split_heads(f(x), self.kv_heads) for f in (self.key, self.value))
    cos, sin = rotary_angles(0, position + T, of.head_size, of.rope_theta)  # (position + T, D/2)
    cos, sin = cos[:T], sin[:T]  # a row for each of the T tokens
    q, k = self.query_norm(q), self.key_norm(k)
    q, k = F.rotary(q, cos, sin), F.rotary(k, cos, sin)
    return q, k, v


def _other_rows(got, want, case):
    """Return True if a table met another number of tokens than it has rows, and as many pairs as it has columns."""
    found = re.search(r"shapes \(\d+,\d+,(\d+),(\d+)\) \((\d+),(\d+)\)", str(got))  # (B, H, T, D/2) (rows, D/2)
    return isinstance(got, ValueError) and found and found[1] != found[3] and found[2] == found[4]


_ROWS = "cos[position:], sin[position:]"
_NORM = "    q, k = self.query_norm(q), self.key_norm(k)\n"
_ROTARY = "    q, k = F.rotary(q, cos, sin), F.rotary(k, cos, sin)\n"


@exercise(
    "16.5",
    "Find the bug: a cache that forgets where it is",
    minutes=12,
    difficulty="harder",
    hints=(
        "With a cache and one new token T is 1. By which angle is it turned, whatever its position?",
        "The table has a row for each position from 0 to position + T - 1. The T tokens are the last of them.",
        "cos[position:] and sin[position:] are the T rows that are needed.",
    ),
    next_thought="Keys are kept after the turn. Could they be kept before it, and what would a step cost then?",
    broken=_project_broken,
    examine=_examine_project,
    mistakes=(
        Mistake(
            "the T rows begin at position 0, whatever `position` is: where do the new tokens stand?",
            _ROWS,
            "cos[:T], sin[:T]",
        ),
        Mistake(
            "`position` counts twice: a table that begins there needs no rows left out",
            "rotary_angles(0, ",
            "rotary_angles(position, ",
        ),
        Mistake("all tokens turn by the angle of the last: each has its own row", _ROWS, "cos[-1:], sin[-1:]"),
        Mistake(
            "all tokens turn by the angle of the first: each has its own row",
            _ROWS,
            "cos[position : position + 1], sin[position : position + 1]",
        ),
        Mistake(
            "the query starts at 0 still: query and key turn by the same positions",
            _ROTARY,
            "    q, k = F.rotary(q, *rotary_angles(0, T, of.head_size, of.rope_theta)), F.rotary(k, cos, sin)\n",
        ),
        Mistake(
            "the key starts at 0 still: query and key turn by the same positions",
            _ROTARY,
            "    q, k = F.rotary(q, cos, sin), F.rotary(k, *rotary_angles(0, T, of.head_size, of.rope_theta))\n",
        ),
        Mistake(
            "QK-norm comes after the turn: its weights belong to channels, and a turn mixes two of them",
            _NORM + _ROTARY,
            _ROTARY + _NORM,
        ),
        Mistake("QK-norm is missing", _NORM, ""),
        Mistake(
            "values are turned, too: only queries and keys are compared",
            "return q, k, v",
            "return q, k, F.rotary(v, cos, sin)",
        ),
        Mistake("the keys are not turned: query and key turn, each by its position", "F.rotary(k, cos, sin)", "k"),
        Mistake(
            "positions are counted from 0, and all of these are one too high", "rotary_angles(0, ", "rotary_angles(1, "
        ),
        Mistake(
            "cos and sin need a row for each of the T tokens: rotary_angles(start, rows, …) makes `rows` of them, from"
            " `start` on",
            when=_other_rows,
        ),
    ),
)
def project(self, x, position=0):
    """Return query (B, H, T, D), key and value (B, G, T, D) of x (B, T, C), whose first row is at ``position``."""
    T, of = x.shape[1], self.config
    q = F.split_heads(self.query(x), self.heads)
    k, v = (F.split_heads(f(x), self.kv_heads) for f in (self.key, self.value))
    cos, sin = rotary_angles(0, position + T, of.head_size, of.rope_theta)  # (position + T, D/2)
    cos, sin = cos[position:], sin[position:]  # a row for each of the T tokens
    q, k = self.query_norm(q), self.key_norm(k)
    q, k = F.rotary(q, cos, sin), F.rotary(k, cos, sin)
    return q, k, v


past_the_length = question(
    "16.6",
    "Predict: what still works past the training length?",
    minutes=5,
    difficulty="easy",
    hints=(
        "Learned positions are a table of 64 rows. Which of these need a row that is not there?",
        "Angles are computed, not learned: no parameter of the other models has the length in its shape.",
        "A cache has room for context_length positions. It may drop old ones only if no new token can see them, and"
        " the position is not a row of a table.",
    ),
    next_thought="No error is not yet a good text. Which of the four ask only for distances that occurred in training?",
    value=[3, 4, 7, 8],
    answer="[3, 4, 7, 8]: angles need no table, nor do models without positions; a window lets the cache of a rotary"
    " model drop what no token sees; and the last 64 tokens are an ordinary text of 64.",
    mistakes=(
        Mistake(
            "these are the right ones, and the smallest should come first",
            when=chosen(lambda got: sorted(got) == [3, 4, 7, 8]),
        ),
        Mistake(
            "token 65 needs row 64 of the table of positions, and there are rows 0 to 63 only",
            when=chosen(lambda got: 1 in got),
        ),
        Mistake(
            "a table of 64 rows does not fit into a model that has one of 128",
            when=chosen(lambda got: 2 in got),
        ),
        Mistake(
            "a window limits what is seen; the new token still needs its row in the table of positions",
            when=chosen(lambda got: 5 in got),
        ),
        Mistake(
            "without a window the next token sees all earlier ones: a full cache can drop nothing. Only generate_ids"
            " would do without it",
            when=chosen(lambda got: 6 in got),
        ),
        Mistake(
            "what no parameter depends on may be changed: which shapes have the context length in them?",
            when=chosen(lambda got: not {3, 4} <= set(got)),
        ),
        Mistake(
            "with a window of 16 the next token sees 15 earlier ones: a full cache may drop the others",
            when=chosen(lambda got: 7 not in got),
        ),
        Mistake(
            "the last 64 tokens are a text of 64: the first of them is at position 0",
            when=chosen(lambda got: 8 not in got),
        ),
    ),
)
