"""How today's blocks deal with positions: rotary angles, and the window with the cache that rolls along."""

import math

import numpy as np

from ... import get_track
from ...common.config import GPTConfig
from ...common.positions import rotary_angles
from ...numpy_track import functional as F
from ...numpy_track.tensor import from_numpy
from ..style import GRID, INK, MUTED
from .marks import BLUE, LIT_INK, ORANGE, TONES, Sketch, signed

DISTANCES = ((4, 3), (9, 8), (9, 6))  # (position of the query, of the key): the first two are equally far apart


def rotary_scores(pairs, head_size=8):
    """Return the dot product of a query and a key, both (1, 0, 1, 0, ...) in pairs, at each (query, key) position."""
    ones = from_numpy(np.repeat([1.0, 0.0], head_size // 2)[None])  # (1, D), a hand to the right in every pair

    def at(position):
        return F.rotary(ones, *rotary_angles(position, 1, head_size)).numpy()[0]

    return [float(at(q) @ at(k)) for q, k in pairs]


def draw_rotary(head_size=8, positions=7):
    """Draw rotary positions: each pair of channels as a clock hand, and dot products that see the distance only."""
    cos, sin = rotary_angles(0, positions, head_size)
    scores = rotary_scores(DISTANCES, head_size)
    told = "; ".join(f"query at {q}, key at {k}: {signed(s, 2)}" for (q, k), s in zip(DISTANCES, scores))
    pairs, step, radius = head_size // 2, 52, 20
    d = Sketch(
        940, 76 + 54 * pairs + 56,
        f"Rotary positions. Left, the {head_size} channels of a query or key as {pairs} pairs, each a clock hand, at "
        f"positions 0 to {positions - 1}: the first hand turns by one radian a position, each next one by a tenth of "
        "the one above, so that the last hardly moves. Right, the first hand of a query and of a key at three places, "
        f"and the dot product of all {pairs} pairs, {told}. Where the distance is the same, so is the dot product.",
    )  # fmt: skip
    d.label(24, 34, "Each pair of channels turns with the position", 14, weight="bold", anchor="start")
    for p in range(positions):
        d.label(150 + p * step, 66, str(p), 12, MUTED)
    d.label(24, 66, "position", 12, MUTED, anchor="start")
    for i in range(pairs):
        y = 98 + 54 * i
        d.label(24, y - 3, f"pair {i}", 13, anchor="start")
        d.label(24, y + 13, f"{10000 ** (-2 * i / head_size):g} rad", 12, MUTED, anchor="start")
        for p in range(positions):
            _clock(d, 150 + p * step, y, radius, [((cos[p, i], sin[p, i]), BLUE)])
    d.label(24, d.height - 22, f"pair i: channels i and i + {pairs} of the head", 12, MUTED, anchor="start")
    left = 150 + positions * step + 14
    d.path([(left - 12, 24), (left - 12, d.height - 24)], GRID, 1.2)
    d.label(left + 10, 34, "Only the distance is left in q · k", 14, weight="bold", anchor="start")
    d.label(left + 10, 57, f"drawn: pair 0; q · k adds all {pairs} pairs", 12, MUTED, anchor="start")
    room = (940 - left - 10) / len(DISTANCES)
    for n, ((q, k), score) in enumerate(zip(DISTANCES, scores)):
        x, y = left + room * (n + 0.5), 136
        (cq, ck), (sq, sk) = ((f([q, k])) for f in (np.cos, np.sin))
        _clock(d, x, y, 44, [((ck, sk), ORANGE), ((cq, sq), BLUE)])
        turn = [k + t / 12 * (q - k) for t in range(13)]
        d.path([(x + 20 * math.cos(a), y - 20 * math.sin(a)) for a in turn], INK, 1.4)
        d.label(x, y + 72, f"query at {q}", 13, TONES["blue"][1], "bold")
        d.label(x, y + 91, f"key at {k}", 13, TONES["orange"][1], "bold")
        d.label(x, y + 117, f"distance {q - k}")
        d.label(x, y + 139, f"q · k = {signed(score, 2)}", 14, weight="bold")
    return d


def _clock(d, x, y, radius, hands):
    d.dot(x, y, radius, "#ffffff", "#a9a69b", 1.2)
    for (cos, sin), colour in hands:
        end = (x + (radius - 1) * cos, y - (radius - 1) * sin)
        d.path([(x, y), end], colour, 2.4, arrow=radius > 30)
        if radius <= 30:
            d.dot(*end, 3.4, colour)
    d.dot(x, y, 2.6, INK)


def cache_rows(context_length=8, window=4, tokens=14):
    """Return for each token in turn (its position, the positions in the cache), from a real rolling cache."""
    config = GPTConfig(3, context_length, 4, 1, 1, positions="rotary", window=window)
    model, rows = get_track("numpy").GPT(config), []
    with model.evaluating():
        cache = model.new_cache()
        for p in range(tokens):
            model(np.array([[p % 3]]), cache=cache)
            rows.append((p, list(range(cache.dropped, cache.position))))
    return rows


def draw_window(context_length=8, window=4, tokens=14):
    """Draw the band of a sliding window on the causal triangle, beside the cache that rolls along with it."""
    mask, rows, side = F.window_mask(tokens, window), cache_rows(context_length, window, tokens), 24
    rolls = [p for (p, held), (_, before) in zip(rows[1:], rows) if held[0] != before[0]]
    d = Sketch(
        900, 122 + side * tokens,
        f"A sliding window of {window}. Left, the mask for {tokens} tokens: each row, a query, reads itself and the "
        f"{window - 1} positions before it, a band on the diagonal, where the causal triangle would let it read all. "
        f"Right, the cache after each token, {context_length} slots with the position that each holds: it fills up, "
        f"and when there is no room, before position {' and '.join(map(str, rolls))}, the last {window - 1} move to "
        "the front and the others are forgotten. What the query reads is blue.",
    )  # fmt: skip
    x, y, right = 70, 76, 480
    d.label(24, 34, f"The mask: a band of {window} on the triangle", 14, weight="bold", anchor="start")
    d.label(right - 50, 34, f"The cache: {context_length} slots that roll", 14, weight="bold", anchor="start")
    for n in range(tokens):
        d.label(x - 9, y + side * n + 16.5, str(n), 12, MUTED, anchor="end")
        d.label(x + side * (n + 0.5), y - 7, str(n), 12, MUTED)
        for k in range(tokens):
            fill = TONES["blue"][1] if mask[n, k] else "#e4e2da" if k <= n else "#ffffff"
            d.shape(x + side * k, y + side * n, side, side, fill, GRID, 1, 0)
    d.label(34, y + side * tokens / 2, "query", 12, MUTED, turned=True)
    d.label(
        x + side * tokens / 2, y + side * tokens + 20, "key (grey: allowed by causality, but too far back)", 12, MUTED
    )
    for p, held in rows:
        top = y + side * p
        d.label(right - 9, top + 16.5, f"token {p}", 12, MUTED, anchor="end")
        for slot in range(context_length):
            left = right + 34 * slot
            seen = slot < len(held) and held[slot] > p - window
            fill = TONES["blue"][1] if seen else "#e4e2da" if slot < len(held) else "#ffffff"
            d.shape(left, top, 34, side, fill, GRID, 1, 0)
            if slot < len(held):
                d.label(left + 17, top + 16.5, str(held[slot]), 12, "#ffffff" if seen else INK)
        if p in rolls:
            d.label(right + 34 * context_length + 10, top + 16.5, "full: it rolls", 12, LIT_INK, "bold", "start")
    d.label(right + 17 * context_length, y + side * tokens + 20, "slots, each with its position", 12, MUTED)
    return d
