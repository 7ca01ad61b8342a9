"""Drawings of the block of today: what changed in it, rotary positions, SwiGLU, grouped queries, a sliding window.

Like those of ``drawing.py`` they are plain SVG on a card of their own, made from configurations and from what the
library computes.
"""

import numpy as np

from .. import get_track
from ..common.positions import rotary_angles
from .drawing import LIT, ROAD, Drawing, part_counts
from .style import INK, MUTED

PALE = "#cdddea"  # a cell that is there but not lit


def draw_blocks(old, new):
    """Draw a block of two GPTConfigs, one above the other; what is different in the second is lit."""
    changed = _differences(old, new)
    alt = (
        "Two blocks as roads. Above, that of GPT-2: LayerNorm, query, key and value, attention, added to the stream;"
        f" LayerNorm, an MLP with GELU, added. Below, that of today, with {', '.join(changed.values())}."
    )
    d = Drawing(956, 436, alt)
    for y, config, title, lit in ((176, old, "GPT-2 (2019)", {}), (386, new, "today", changed)):
        d.words(30 + 4.6 * len(title), y - 144, title, 15, weight="bold")
        _road(d, y, config, lit)
    return d


def _differences(old, new):
    """Return {part: words} for what ``new`` does otherwise than ``old``."""
    words = {
        "norm": ("RMSNorm", old.norm_layer != new.norm_layer),
        "qkv": (f"{new.key_value_heads} heads of keys and values for {new.heads}", new.kv_heads != old.kv_heads),
        "qk_norm": ("QK-norm", new.qk_norm and not old.qk_norm),
        "rotary": ("rotary positions", new.rotary and not old.rotary),
        "mlp": ("an MLP with a gate", new.activation != old.activation),
        "bias": ("no biases", old.bias and not new.bias),
    }
    return {part: text for part, (text, differs) in words.items() if differs}


def _road(d, y, config, lit):
    """Draw one block on a road at height y, its parts above it."""
    counts, level, x = part_counts(config), y - 84, 40
    norm = "RMSNorm" if config.norm_layer == "rms_norm" else "LayerNorm"
    H, G = config.heads, config.key_value_heads
    inner = [("query, key, value", 132, "qkv" in lit, f"{H} heads, {G} + {G}")]
    inner += [("QK-norm", 72, "qk_norm" in lit, "q and k")] if config.qk_norm else []
    inner += [("rotate", 62, "rotary" in lit, "q and k")] if config.rotary else []
    inner += [("attention", 84, False, f"{counts['attention']:,}")]
    gated = config.activation == "swiglu"
    mlp = [("gate, up" if gated else "up", 72 if gated else 44, "mlp" in lit, f"{config.hidden_units} units")]
    mlp += [("SiLU ×" if gated else "GELU", 62, "mlp" in lit, ""), ("down", 54, False, f"{counts['mlp']:,}")]
    pluses = []
    for parts in (inner, mlp):
        d.line([(x, y), (x, level), (x + 12, level)], arrow=True)
        at = d.box(x + 12, level, 84, norm, "norm" in lit)
        for label, width, bright, under in parts:
            d.line([(at, level), (at + 13, level)], arrow=True)
            at = d.box(at + 13, level, width, label, bright, under)
        d.line([(at, level), (at + 16, level), (at + 16, y - 10)], arrow=True)
        pluses.append(at + 16)
        x = at + 40
    d.line([(20, y), (pluses[-1] + 50, y)], ROAD, 5)
    for plus in pluses:
        d.plus(plus, y)
    note = " · no biases" if "bias" in lit else ""
    d.words(230, y + 26, f"residual stream, {config.width} channels{note}", 12, ROAD, "bold")


def draw_rotary(positions=((3, 1), (5, 3)), theta=0.4):
    """Draw a query and a key as clock hands, turned by their positions: the angle between them depends on p - q."""
    pairs = " and ".join(f"{p} and {q}" for p, q in positions)
    d = Drawing(760, 236, f"Clock hands of a query and a key at positions {pairs}: the angle between them is the same.")
    query, key = 0.2, 2.0  # their angles before they turn
    for n, (p, q) in enumerate(positions):
        x, y, radius = 130 + 250 * n, 106, 72
        _clock(d, x, y, radius, [(query + p * theta, LIT, "query"), (key + q * theta, ROAD, "key")])
        d.words(x, y + radius + 28, f"query at {p}, key at {q}", 14)
        d.words(x, y + radius + 46, f"distance {p - q}", 12, MUTED)
    cos, sin = rotary_angles(1, 1, 8)
    angles = np.arctan2(sin[0], cos[0])
    for n, angle in enumerate(angles):
        x, y = 560 + 100 * (n % 2), 66 + 100 * (n // 2)
        _clock(d, x, y, 34, [(0.0, PALE, ""), (float(angle), INK, "")])
        d.words(x, y + 52, f"pair {n}: {angle:.3g}", 12, MUTED)
    d.words(610, 20, "one position further, D = 8", 13, weight="bold")
    return d


def _clock(d, x, y, radius, hands):
    d.marks.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="#ffffff" stroke="{MUTED}" stroke-width="1.2"/>')
    for angle, colour, label in hands:
        tip = x + 0.86 * radius * np.cos(angle), y - 0.86 * radius * np.sin(angle)
        d.marks.append(
            f'<line x1="{x}" y1="{y}" x2="{tip[0]:.1f}" y2="{tip[1]:.1f}" stroke="{colour}" stroke-width="4" '
            'stroke-linecap="round"/>'
        )
        if label:
            out = x + (radius + 26) * np.cos(angle), y - (radius + 14) * np.sin(angle) + 4
            d.words(f"{out[0]:.1f}", f"{out[1]:.1f}", label, 13, colour, "bold")


def draw_swiglu():
    """Draw the MLP with a gate: two matrices side by side, their product, and the matrix back."""
    d = Drawing(700, 156, "SwiGLU: x goes through the matrices gate and up; SiLU of gate times up goes through down.")
    y, top, low = 78, 42, 114
    x = d.box(20, y, 44, "x", under="(C)")
    for level in (top, low):
        d.line([(x, y), (x + 26, y), (x + 26, level), (x + 48, level)], arrow=True)
    x += 48
    gate, up = d.box(x, top, 74, "gate", True), d.box(x, low, 74, "up")
    silu = d.box(gate + 30, top, 74, "SiLU", True)
    d.line([(gate, top), (gate + 30, top)], arrow=True)
    times = silu + 52
    d.line([(silu, top), (times, top), (times, y - 12)], arrow=True)
    d.line([(up, low), (times, low), (times, y + 12)], arrow=True)
    d.marks.append(f'<circle cx="{times}" cy="{y}" r="12" fill="#ffffff" stroke="{LIT}" stroke-width="1.8"/>')
    d.words(times, y + 5, "×", 16, LIT, "bold")
    d.line([(times + 12, y), (times + 44, y)], arrow=True)
    end = d.box(times + 44, y, 74, "down")
    d.words(times - 60, y + 5, "8/3 C units", 12, MUTED)
    d.line([(end, y), (end + 30, y)], arrow=True)
    d.box(end + 30, y, 44, "(C)")
    d.width = int(end + 96)
    return d


def draw_groups(heads=4, groups=(4, 2, 1)):
    """Draw which head of keys and values each query head reads, for several numbers of those heads."""
    counts = ", ".join(map(str, groups))
    d = Drawing(
        300 * len(groups), 176, f"{heads} query heads and {counts} heads of keys and values, with who reads whom."
    )
    for n, kv in enumerate(groups):
        left, reads = 300 * n + 20, np.repeat(np.arange(kv), heads // kv)
        centres = [left + 32 + 65 * h for h in range(heads)]
        for h, g in enumerate(reads):
            at = np.mean([centres[i] for i in np.flatnonzero(reads == g)])
            d.line([(centres[h], 62), (round(float(at), 1), 104)], ROAD, 2)
        for h, x in enumerate(centres):
            d.box(x - 26, 44, 52, f"q {h}")
        for g in range(kv):
            at = float(np.mean([centres[i] for i in np.flatnonzero(reads == g)]))
            d.box(round(at - 28, 1), 122, 56, f"k v {g}", kv < heads)
        name = {heads: "as many", 1: "multi-query"}.get(kv, "grouped queries")
        d.words(left + 130, 20, f"{name}: {kv} for {heads}", 13, weight="bold")
        d.words(left + 130, 164, f"cache: {kv}/{heads}" if kv < heads else "cache: whole", 12, MUTED)
    return d


def draw_window(size=8, window=3):
    """Draw the mask of a sliding window: who attends to whom, beside what a rolling cache holds."""
    mask = get_track("numpy").functional.window_mask(size, window)
    alt = (
        f"A causal mask of {size} positions, each of which attends to itself and the {window - 1} before it: a band"
        " along the diagonal. What is left of the band has left the cache."
    )
    d = Drawing(560, 44 + 26 * size, alt)
    for i in range(size):
        d.words(26, 46 + 26 * i, str(i), 12, MUTED)
        d.words(56 + 26 * i, 22, str(i), 12, MUTED)
        for j in range(size):
            fill = ROAD if mask[i, j] else PALE if j < i else "#ffffff"
            d.marks.append(
                f'<rect x="{44 + 26 * j}" y="{30 + 26 * i}" width="24" height="24" rx="4" fill="{fill}" '
                f'stroke="{MUTED}" stroke-width="0.6"/>'
            )
    for n, (fill, text) in enumerate(
        ((ROAD, "attended to"), (PALE, "dropped from the cache"), ("#ffffff", "the future"))
    ):
        y = 66 + 34 * n
        d.marks.append(f'<rect x="300" y="{y}" width="24" height="24" rx="4" fill="{fill}" stroke="{MUTED}"/>')
        d.marks.append(f'<text x="336" y="{y + 17}" text-anchor="start" font-size="13" fill="{INK}">{text}</text>')
    d.words(400, 200, "rows: queries, columns: keys", 12, MUTED)
    return d
