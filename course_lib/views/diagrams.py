"""Drawings of single ideas: attention as matrices, where a norm sits, heads, windows, the cache, induction.

What they show is computed by the library's own functions, as plain SVG on a card: see ``drawing.py``.
"""

import numpy as np

from .. import get_track
from .drawing import LIT, ROAD, Drawing
from .style import INK, MUTED, PALETTE, SEQUENTIAL

PALE, PAPER = "#cdddea", "#ffffff"
WORDS = ("Ming", "apples", "bananas", "they")


def _start(d, x, y, text, size=13, colour=INK, weight="normal"):
    d.marks.append(
        f'<text x="{x}" y="{y}" text-anchor="start" font-size="{size}" fill="{colour}" font-weight="{weight}">'
        f"{text}</text>"
    )


def _cell(d, x, y, size, fill, label="", colour=INK):
    d.marks.append(
        f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}" rx="3" fill="{fill}" stroke="{MUTED}" '
        'stroke-width="0.7"/>'
    )
    if label != "":
        d.words(x + size / 2 - 1, y + size / 2 + 3, label, 11, colour)


def _grid(d, x, y, values, size=34, shade=None, allow=None, title=""):
    """Draw a matrix with its numbers; ``shade`` is the value of the darkest cell, None for no shading."""
    for (i, j), value in np.ndenumerate(np.round(values, 1) + 0.0):  # + 0.0: no minus before a zero
        dark = 0 if shade is None else min(1.0, max(0.0, value / shade))
        red, green, blue, _ = SEQUENTIAL(dark * 0.8, bytes=True)
        fill, ink = f"#{red:02x}{green:02x}{blue:02x}", PAPER if dark > 0.55 else INK
        hidden = allow is not None and not allow[i, j]
        _cell(d, x + size * j, y + size * i, size, PAPER if hidden else fill, "–" if hidden else f"{value:.1f}", ink)
    if title:
        d.words(x + size * values.shape[1] / 2, y + size * values.shape[0] + 17, title, 12, MUTED)


def example(seed=4):
    """Return (query, key, value, scores, weights, context) of four words: what ``draw_attention`` shows."""
    F = get_track("numpy").functional
    tensor = get_track("numpy").tensor.from_numpy
    query, key, value = np.random.default_rng(seed).standard_normal((3, 4, 3)).round(1)
    scores = query @ key.T / np.sqrt(3)
    context, weights = F.attention(*map(tensor, (query, key, value)), F.causal_mask(4))
    return query, key, value, scores, np.asarray(weights), context.numpy()


def draw_attention():
    """Draw attention as matrices: queries down the side, keys across the top, their products, weights, context."""
    query, key, value, scores, weights, context = example()
    allow = get_track("numpy").functional.causal_mask(4)
    alt = (
        "Attention as matrices, with numbers for four words. Queries (4, 3) down the left side and keys across the top"
        " of a grid (4, 4): each cell is their dot product, divided by the root of 3; what comes later is hidden."
        " Softmax makes weights of each row. Weights (4, 4) times values (4, 3) give the context (4, 3)."
    )
    d, s, y = Drawing(944, 330, alt), 34, 136
    for i, word in enumerate(WORDS):
        d.words(42, y + s * i + 21, word, 12, INK, "bold")
    _grid(d, 84, y, query, s, title="queries (T, D)")
    _grid(d, 206, y - 3 * s - 8, key.T, s)
    d.words(206 + 2 * s, 16, "keys, on end: (D, T)", 12, MUTED)
    _grid(d, 206, y, scores, s, 1.5, allow, "scores: q·k / √D")
    d.line([(350, y + 2 * s), (404, y + 2 * s)], arrow=True)
    d.words(377, y + 2 * s - 10, "softmax", 12, MUTED)
    _grid(d, 416, y, weights, s, 1.0, allow, "weights (T, T)")
    d.words(574, y + 2 * s + 5, "@", 18, INK, "bold")
    _grid(d, 598, y, value, s, title="values (T, D)")
    d.line([(706, y + 2 * s), (752, y + 2 * s)], arrow=True)
    _grid(d, 764, y, context, s, title="context (T, D)")
    for i, word in enumerate(WORDS):
        d.words(904, y + s * i + 21, word, 12, INK, "bold")
    return d


def draw_norms():
    """Draw pre-norm and post-norm as roads: where the LayerNorm sits."""
    alt = (
        "Two roads. Pre-norm: each side road leads through a LayerNorm to its layer and back to a plus sign; nothing is"
        " on the road. Post-norm: each side road leads to its layer and back; a LayerNorm is on the road after each"
        " plus sign."
    )
    d, up = Drawing(740, 292, alt), 66
    for y, title, pre in ((118, "pre-norm: x + f(norm(x))", True), (252, "post-norm: norm(x + f(x))", False)):
        _start(d, 24, y - 94, title, 14, INK, "bold")
        x, later = 60, []
        for label, wide in (("attention", 96), ("MLP", 60)):
            points = [(x, y), (x, y - up), (x + 22, y - up)]
            d.line(points, arrow=True)
            at = x + 22
            if pre:
                at = d.box(at, y - up, 92, "LayerNorm", True)
                d.line([(at, y - up), (at + 22, y - up)], arrow=True)
                at += 22
            at = d.box(at, y - up, wide, label)
            d.line([(at, y - up), (at + 20, y - up), (at + 20, y - 10)], arrow=True)
            later.append(at + 20)
            x = at + (60 if pre else 166)
        d.line([(24, y), (x + 20, y)], ROAD, 5)
        d.words(x + 62, y + 5, "stream", 12, ROAD, "bold")
        for plus in later:
            d.plus(plus, y)
            if not pre:
                d.box(plus + 24, y, 92, "LayerNorm", True)
    return d


def draw_split(words=3, heads=2, head_size=2):
    """Draw how heads are cut, by split_heads and by a bare reshape: the numbers of each word have one colour."""
    F = get_track("numpy").functional
    C = heads * head_size
    x = np.arange(words * C).reshape(1, words, C)
    right, bare = np.asarray(F.split_heads(x, heads)), x.reshape(1, heads, words, head_size)
    alt = (
        f"{words} words of {C} numbers each, a colour per word. Cut and exchanged, each of {heads} heads holds a part"
        " of every word. A bare reshape has the same shape, but each head holds whole words and cuts them in pieces."
    )
    d, s = Drawing(820, 62 + 30 * words + 34, alt), 30

    def strip(left, top, rows, title):
        d.words(left + s * rows.shape[1] / 2, top - 10, title, 12, INK, "bold")
        for (i, j), n in np.ndenumerate(rows):
            _cell(d, left + s * j, top + s * i, s, PALETTE[n // C], str(n), PAPER)

    strip(30, 54, x[0], "x: (T, C)")
    left = 230
    for name, cut in (("split_heads", right), ("bare reshape", bare)):
        d.words(left + 120, 20, name, 14, INK if name == "split_heads" else LIT, "bold")
        for h in range(heads):
            strip(left + 40 + 120 * h, 54, cut[0, h], f"head {h}")
        left += 310
    d.words(90, 62 + s * words + 16, "a colour per word", 12, MUTED)
    return d


def draw_window(text="hello w"):
    """Draw one window as T training examples: every beginning of it, and the character that comes next."""
    size, s = len(text) - 1, 34
    shown = [{" ": "␣", "\n": "↵"}.get(c, c) for c in text]
    examples = "; ".join(f"{text[: i + 1]!r} then {text[i + 1]!r}" for i in range(size))
    d = Drawing(
        90 + s * (size + 4), 30 + s * size + 16, f"One window of {size} characters is {size} examples: {examples}."
    )
    for i in range(size):
        y = 24 + s * i
        d.words(34, y + 20, f"{i + 1}", 12, MUTED)
        for j in range(i + 1):
            _cell(d, 60 + s * j, y, s, PALE, shown[j])
        d.line([(60 + s * (i + 1) + 4, y + 16), (60 + s * (i + 1) + 30, y + 16)], arrow=True)
        _cell(d, 60 + s * (i + 1) + 36, y, s, LIT, shown[i + 1], PAPER)
    return d


def draw_cache(steps=6):
    """Draw what each step of writing computes, without and with a key/value cache."""
    alone, kept = steps * (steps + 1) // 2, steps
    alt = (
        f"{steps} steps of writing as two triangles. Without a cache every step computes all positions again, {alone}"
        f" in all. With a cache it computes one and reads the others: {kept}."
    )
    d, s = Drawing(700, 76 + 28 * steps, alt), 28
    for left, title, cached in ((40, f"without a cache: {alone}", False), (290, f"with a cache: {kept}", True)):
        d.words(left + s * steps / 2, 24, title, 13, INK, "bold")
        for i in range(steps):
            for j in range(i + 1):
                fresh = j == i or not cached
                _cell(d, left + s * j, 40 + s * i, s, ROAD if fresh else PALE)
    for n, (fill, text) in enumerate(((ROAD, "computed"), (PALE, "kept"))):
        _cell(d, 540, 84 + 40 * n, s, fill)
        _start(d, 576, 102 + 40 * n, text)
    d.words(40 + s * steps / 2, 60 + s * steps, "rows: steps, columns: positions", 12, MUTED)
    return d


def draw_induction(symbols="ABCDA"):
    """Draw the induction circuit: a head notes the token before, another looks for its own token in those notes."""
    last = len(symbols) - 1
    found = symbols.index(symbols[last]) + 1
    alt = (
        f"The sequence {' '.join(symbols)}. In layer 0 a previous-token head notes at each position which token came"
        f" before. In layer 1 the last {symbols[last]} looks for the note {symbols[last]}, finds it at the"
        f" {symbols[found]} and copies that: {symbols[found]} comes next."
    )
    d, s, y = Drawing(760, 236, alt), 110, 118
    place = [70 + s * i for i in range(last + 1)]
    for i, (x, symbol) in enumerate(zip(place, symbols)):
        d.box(x - 22, y, 44, symbol, i in (found, last))
        if i:
            before = place[i - 1] + 12
            d.line([(x - 12, y + 18), (x - 12, y + 44), (before, y + 44), (before, y + 20)], ROAD, 1.8, True)
            d.words(x, y + 68, f"after {symbols[i - 1]}", 12, ROAD, "bold" if i == found else "normal")
    d.words(place[1], y + 94, "layer 0: each notes the token before it", 12, MUTED)
    d.line(
        [(place[last], y - 18), (place[last], y - 58), (place[found], y - 58), (place[found], y - 20)], LIT, 2.4, True
    )
    middle = (place[last] + place[found]) / 2
    d.words(middle, y - 68, f"layer 1: which note says {symbols[last]}?", 13, LIT, "bold")
    d.line([(place[last] + 24, y), (place[last] + 60, y)], LIT, 2, arrow=True)
    d.box(place[last] + 64, y, 44, symbols[found])
    d.words(place[last] + 86, y + 36, "next", 12, MUTED)
    return d
