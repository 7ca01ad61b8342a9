"""Text as a model meets it: a window and its targets, the look-up of a row, the learned vectors on a map."""

import numpy as np

from ...common.initializer import Initializer
from ...numpy_track import functional as F
from ...numpy_track.modules import Embedding
from ...text import CharTokenizer, windows
from .. import style
from ..figures import figure
from ..labels import quoted, visible
from ..style import GRID, MUTED
from .marks import TONES, Sketch

HELLO = "hello world"


def draw_window_examples(text=HELLO, context_length=8):
    """Draw the first window of a text, its targets, and the examples that they are: each prefix with what comes next.

    Raises ValueError, as ``windows`` does, for a text without room for the window and one target.
    """
    tokenizer = CharTokenizer.from_text(text)
    x, y = windows(np.array(tokenizer.encode(text)), context_length)
    read, targets = ([visible(tokenizer.decode([i])) for i in ids] for ids in (x[0], y[0]))
    T, side, high, left = context_length, 32, 28, 452
    d = Sketch(
        left + (T + 1) * side + 150, max(92 + T * high, 240),
        f"One window is {T} training examples. Left, the window x, {' '.join(read)}, and the targets y, "
        f"{' '.join(targets)}: the same text, one token later. Right, a triangle, one row per example: "
        + "; ".join(f"after {quoted(''.join(read[: n + 1]))} comes {quoted(targets[n])}" for n in range(T)) + ".",
    )  # fmt: skip
    blue, green = TONES["blue"], TONES["green"]

    def cell(x, y, letter, tone, thick=1.0):
        d.shape(x, y, side, high, tone[0], tone[1], thick, 0)
        d.label(x + side / 2, y + high / 2 + 4.6, letter)

    d.label(24, 34, "One window", 14, weight="bold", anchor="start")
    d.label(left, 34, f"{T} examples", 14, weight="bold", anchor="start")
    top, start = max(80, d.height // 2 - 62), 70
    low = top + 80
    d.label(start - 12, top + 19, "x", 14, weight="bold", anchor="end")
    d.label(start - 12, low + 19, "y", 14, weight="bold", anchor="end")
    for n in range(T):
        at = start + n * side
        cell(at, top, read[n], blue)
        cell(at, low, targets[n], green)
        d.path([(at + side / 2, top + high + 6), (at + side / 2, low - 6)], MUTED, arrow=True)
    d.label(start + T * side / 2, top - 14, f"read: {T} tokens", 12, blue[1])
    d.label(start + T * side / 2, low + high + 22, "wanted: the same, one token later", 12, green[1])
    d.path([(left - 30, 24), (left - 30, d.height - 24)], GRID, 1.2)
    for n in range(T):
        level = 58 + n * high
        for k in range(n + 1):
            cell(left + k * side, level, read[k], blue)
        cell(left + (n + 1) * side + 8, level, targets[n], green, 2)
        words = f"{n + 1} token{'s' * (n > 0)} read"
        d.label(left + (n + 2) * side + 22, level + 18, words, 12, MUTED, anchor="start")
    return d


def lookup_numbers(text=HELLO, letter="l", position=2, width=4, rows=4, seed=5):
    """Return (tokens, table (V, C), one-hot (V,), the position's table (T, C), the sum (C,)) of one look-up."""
    tokenizer, init = CharTokenizer.from_text(text), Initializer(seed, "uniform", "float64")
    token = tokenizer.encode(letter)[0]
    table = Embedding(len(tokenizer), width, init)
    positions = init.table(rows, width).round(1)
    table.weight.data[...] = table.weight.data.round(1)
    found = F.embedding(np.array([token]), table.weight).detach().numpy()[0]
    one_hot = np.eye(len(tokenizer))[token]
    tokens = [visible(tokenizer.decode([n])) for n in range(len(tokenizer))]
    return tokens, table.weight.detach().numpy(), one_hot, positions, found + positions[position]


def draw_lookup(position=2):
    """Draw the embedding of one token: a one-hot row times the table is one row of it; the position's is added."""
    tokens, table, one_hot, positions, total = lookup_numbers(position=position)
    token, (V, C), T, side = int(one_hot.argmax()), table.shape, len(positions), 27
    wide = 36
    d = Sketch(
        890, 88 + (V + T) * side + 62,
        f"The embedding of one token. A row of {V} numbers, all 0 but a 1 at {quoted(tokens[token])}, times the table "
        f"({V}, {C}) is row {token} of the table: a look-up. Row {position} of the table of positions ({T}, {C}) is "
        f"added, and the sum, {C} numbers, goes into the model.",
    )  # fmt: skip
    left, middle, right, top, one = 30, 352, 620, 66, 28
    row = top + token * side
    d.label(left, 34, f"one-hot: the token {quoted(tokens[token])}", 14, weight="bold", anchor="start")
    d.grid(left, row, [one_hot], one, digits=0, high=side)
    for n, name in enumerate(tokens):
        d.label(left + one * (n + 0.5), row - 8, name, 12, weight="bold" if n == token else "normal")
        d.label(
            middle - 10, top + (n + 0.5) * side + 4.3, name, 12, weight="bold" if n == token else "normal", anchor="end"
        )
    d.label(left + one * V / 2, row + side + 18, f"(1, {V})", 12, MUTED)
    d.label(left + one * V + 32, row + side / 2 + 6, "×", 18)
    d.label(middle, 34, "token embedding", 14, weight="bold", anchor="start")
    d.grid(middle, top, table, wide, high=side)
    d.label(middle + wide * C + 12, top + 17, f"({V}, {C})", 12, MUTED, anchor="start")
    low = top + V * side + 60
    d.label(middle, low - 14, "positions", 14, weight="bold", anchor="start")
    d.grid(middle, low, positions, wide, high=side)
    for n in range(T):
        d.label(middle - 10, low + (n + 0.5) * side + 4.3, str(n), 12, weight="bold" if n == position else "normal",
                anchor="end")  # fmt: skip
    d.label(middle + wide * C + 12, low + T * side - 8, f"({T}, {C})", 12, MUTED, anchor="start")
    there = low + position * side
    for y, values, name in ((row, table[token], f"row {token}"), (there, positions[position], f"row {position}")):
        d.around(middle, y, wide * C, side)
        d.path([(middle + wide * C + 8, y + side / 2), (right - 8, y + side / 2)], arrow=True)
        d.grid(right, y, [values], wide, high=side)
        d.label(right + wide * C + 12, y + 18, name, 12, MUTED, anchor="start")
    plus = (right + wide / 2, (row + there + side) / 2)
    for y, way in ((row + side, -1), (there, 1)):
        d.path([(plus[0], y - 6 * way), (plus[0], plus[1] + 11 * way)], arrow=True)
    d.sign(*plus, "+")
    d.path([(plus[0] + 11, plus[1]), (right + 92, plus[1])], arrow=True)
    d.grid(right + 100, plus[1] - side / 2, [total], wide, high=side)
    d.label(right + 100 + wide * C / 2, plus[1] + side / 2 + 20, "into the model", 13, weight="bold")
    return d


KINDS = (
    ("vowel", "o", style.PALETTE[1]), ("consonant", "h", style.PALETTE[0]), ("capital", "s", style.PALETTE[2]),
    ("other sign", "D", style.PALETTE[6]),
)  # fmt: skip


def kind_of(token):
    """Return the kind of a character in the map of vectors: vowel, consonant, capital or other sign.

    >>> [kind_of(c) for c in "aBc,"]
    ['vowel', 'capital', 'consonant', 'other sign']
    """
    if not token.isalpha():
        return "other sign"
    return "capital" if token.isupper() else "vowel" if token in "aeiou" else "consonant"


def map_of_vectors(vectors):
    """Return the places (V, 2) of vectors (V, C) on the plane along which they differ most, and its share of variance.

    The principal components (Pearson 1901) by the singular value decomposition of the centred vectors; of the two
    possible directions of each axis the one in which the largest place is positive.
    """
    centred = np.asarray(vectors, float)
    centred = centred - centred.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * sizes[:2]
    places *= np.sign(places[abs(places).argmax(axis=0), [0, 1]])
    return places, float((sizes[:2] ** 2).sum() / (sizes**2).sum())


def apart(places, gap):
    """Return the places (V, 2), those closer than ``gap`` moved just so far that the marks there do not cover.

    >>> apart([[0, 0], [0.5, 0], [5, 5]], 1.0).round(2).tolist()
    [[-0.25, 0.0], [0.75, 0.0], [5.0, 5.0]]
    """
    places = np.array(places, float)
    for _ in range(50):
        between = places[:, None] - places[None]  # (V, V, 2)
        far = np.hypot(*between.T).T + np.eye(len(places))
        push = np.where((far < gap) & ~np.eye(len(places), dtype=bool), (gap - far) / 2 / np.maximum(far, 1e-9), 0)
        if not push.any():
            break
        places += (push[..., None] * between).sum(axis=1)
    return places


def plot_embedding_map(model, tokenizer, height=5.2):
    """Show the learned vectors of a character model's tokens on a map, each as its character, by kind of character.

    The map is the plane along which the vectors differ most; marks that would cover one another are moved
    apart. Raises ValueError for tokens of several characters.
    """
    tokens = [tokenizer.decode([n]) for n in range(len(tokenizer))]
    if any(len(token) != 1 for token in tokens):
        raise ValueError("the map is for a tokenizer of single characters")
    places, share = map_of_vectors(model.token.weight.detach().numpy())
    inches = np.ptp(places, axis=0) / (6.9, height - 1.3)  # how much of the map one inch shows
    places = apart(places / inches, 0.19) * inches
    kinds = [kind_of(token) for token in tokens]
    alt = (
        f"A map of the {len(tokens)} token vectors, {share:.0%} of their variance in two axes. Each character is "
        "written at its place, with a mark and a colour for its kind: "
        + ", ".join(f"{kinds.count(kind)} {kind}s" for kind, _, _ in KINDS)
        + "."
    )
    with figure(8.2, height, alt=alt) as ax:
        for kind, marker, colour in KINDS:
            at = places[[k == kind for k in kinds]]
            ax.scatter(*at.T, s=185 if marker != "D" else 130, marker=marker, facecolors=colour + "2e",
                       edgecolors=colour, linewidths=0.9, label=kind)  # fmt: skip
        for (x, y), token in zip(places, tokens):
            ax.text(x, y, visible(token), ha="center", va="center_baseline", fontsize=9, parse_math=False)
        ax.set(xlabel="first axis", ylabel="second axis")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=4, markerscale=0.7)
