"""Attention as the matrices that it is, and the cut into heads, with numbers that the course's functions computed."""

import numpy as np

from ...numpy_track import functional as F
from ...numpy_track.tensor import from_numpy
from ..style import INK, MUTED
from .marks import LIT_INK, TONES, Sketch, signed

WORDS = ("Ming", "bought", "fresh", "apples")
POSITION_TONES = ("blue", "green", "pink", "grey")  # a colour for each position


def attention_numbers(width=4, head_size=3, seed=31):
    """Return {name: matrix} of one causal head over ``WORDS``: X, Q, K, V, scores, scaled, weights, context."""
    rng, T = np.random.default_rng(seed), len(WORDS)
    X = rng.normal(0, 1, (T, width)).round(1)
    Q, K, V = (X @ rng.normal(0, 0.5, (width, head_size)) for _ in range(3))
    allow = F.causal_mask(T)
    context, weights = F.attention(*map(from_numpy, (Q, K, V)), allow)
    scaled = np.where(allow, Q @ K.T / np.sqrt(head_size), -np.inf)
    return {"X": X, "Q": Q, "K": K, "V": V, "scores": Q @ K.T, "scaled": scaled, "weights": weights,
            "context": context.numpy()}  # fmt: skip


def draw_attention_matrices():
    """Draw one causal head as matrices: X to Q, K, V, to the grid of scores, to weights, to the context."""
    m, side, high = attention_numbers(), 33, 30
    T, C, D = len(WORDS), m["X"].shape[1], m["Q"].shape[1]
    row, column = T - 1, int(np.argmax(m["weights"][T - 1]))
    score, weight = m["scores"][row, column], m["weights"][row, column]
    d = Sketch(
        958, 344,
        f"Attention as matrices, for the {T} tokens {', '.join(WORDS)}. X ({T}, {C}) times three matrices gives "
        f"Q, K and V ({T}, {D} each). The scores Q times K transposed are a grid ({T}, {T}) with the queries along its "
        "left edge and the keys along its top. They are divided by √D, and what is to the right of the diagonal is "
        "masked; softmax turns each row into weights; the weights mix the rows of V into the context "
        f"({T}, {D}). Framed: query “{WORDS[row]}” and key “{WORDS[column]}” have the score {signed(score)}, which "
        f"becomes the weight {weight:.2f}.",
    )  # fmt: skip
    low, gap = 162, 9
    x = {"X": 66, "Q": 240, "scores": 348, "scaled": 516, "weights": 684, "context": 825}
    names = {
        "X": (f"X ({T}, {C})", "a row per token"), "Q": (f"Q ({T}, {D})", "X · W query"),
        "scores": (f"scores ({T}, {T})", "Q · Kᵀ"), "scaled": (f"masked ({T}, {T})", f"scores / √{D}, causal"),
        "weights": (f"weights ({T}, {T})", "softmax of each row"), "context": (f"context ({T}, {D})", "weights · V"),
    }  # fmt: skip
    allow = F.causal_mask(T)
    for name, (title, how) in names.items():
        matrix, digits = m[name], 2 if name == "weights" else 1
        wide, _ = d.grid(x[name], low, matrix, side, None if name != "weights" else 1.0, digits,
                         allow if name in ("scaled", "weights") else None, high)  # fmt: skip
        d.label(x[name] + wide / 2, low + T * high + 24, title, 13, weight="bold")
        d.label(x[name] + wide / 2, low + T * high + 42, how, 12, MUTED)
        if name == "scaled":
            for i, j in np.argwhere(~allow):
                d.label(x[name] + side * (j + 0.5), low + high * (i + 0.5) + 4.3, "−∞", 12, MUTED)
    for t, word in enumerate(WORDS):
        d.label(x["X"] - 8, low + high * (t + 0.5) + 4.3, word, 12, anchor="end")
    # keys and values stand above the grids that they meet
    top_k, top_v = low - gap - D * high, low - gap - T * high
    d.grid(x["scores"], top_k, m["K"].T, side, high=high)
    d.grid(x["context"], top_v, m["V"], side, high=high)
    d.label(x["scores"] + T * side + 10, top_k + 40, f"Kᵀ ({D}, {T})", 13, weight="bold", anchor="start")
    d.label(x["scores"] + T * side + 10, top_k + 58, "X · W key, turned", 12, MUTED, anchor="start")
    d.label(x["context"] - 10, top_v + 62, f"V ({T}, {D})", 13, weight="bold", anchor="end")
    d.label(x["context"] - 10, top_v + 80, "X · W value", 12, MUTED, anchor="end")
    middle, start = low + T * high / 2, x["X"] + C * side / 2
    d.path([(x["X"] + C * side + 6, middle), (x["Q"] - 6, middle)], arrow=True)
    level = top_k + D * high / 2
    d.path([(start + 20, low - 6), (start + 20, level), (x["scores"] - 6, level)], arrow=True)
    level = top_v + high / 2
    d.path([(start - 20, low - 6), (start - 20, level), (x["context"] - 6, level)], arrow=True)
    for a, b in (("scores", "scaled"), ("scaled", "weights")):
        d.path([(x[a] + T * side + 6, middle), (x[b] - 6, middle)], arrow=True)
    # the path of one query and one key
    d.around(x["Q"], low + row * high, D * side, high)
    d.around(x["scores"] + column * side, top_k, side, D * high)
    for name in ("scores", "scaled", "weights"):
        d.around(x[name] + column * side, low + row * high, side, high)
    d.around(x["context"], top_v + column * high, D * side, high)
    return d


def split_and_reshaped(T=4, C=8, heads=2):
    """Return {name: (H, T, D) pairs (position, channel)} after ``split_heads``, and after a bare reshape."""
    D = C // heads
    x = np.stack(np.meshgrid(np.arange(T), np.arange(C), indexing="ij"))  # the position and the channel of each cell
    right = np.stack([F.split_heads(from_numpy(part[None].astype(float)), heads).numpy()[0] for part in x])
    wrong = x.reshape(2, heads, T, D)
    return {"right": right.astype(int), "wrong": wrong}


def draw_split_heads(T=4, C=8, heads=2):
    """Draw the cut of (T, C) into heads and back, and the bare reshape that mixes positions, as coloured strips."""
    found, side, D = split_and_reshaped(T, C, heads), 25, C // heads
    merged = (
        F.merge_heads(from_numpy(found["right"].astype(float))).numpy().astype(int)
    )  # positions and channels: B = 2
    first = sorted(set(found["wrong"][0, 0].ravel().tolist()))
    wide, high = C * side, T * side
    d = Sketch(
        958, 2 * high + 200,
        f"The cut into heads. A sheet of {T} rows, one colour for each position, with {C} channels. Above, split_heads "
        f"gives {heads} heads of {D} channels, each with all {T} positions in order; merge_heads puts them back side "
        f"by side. Below, a bare reshape to ({heads}, {T}, {D}): head 0 holds all channels of positions "
        f"{' and '.join(map(str, first))} and nothing of the others, and its rows are no longer positions.",
    )  # fmt: skip
    left, xs = 86, [86 + wide + 116 + h * (D * side + 20) for h in range(heads)]
    end, top, low = xs[-1] + D * side, 66, 66 + high + 92

    def sheet(x, y, positions, channels):
        fills = [[TONES[POSITION_TONES[p % 4]][0] for p in row] for row in positions]
        d.grid(x, y, [[str(c) for c in row] for row in channels], side, fills=fills)

    def step(x, y, name, colour):
        d.path([(x, y), (x + 90, y)], arrow=True)
        d.label(x + 43, y - 10, name, 12, colour, "bold")

    d.label(24, 34, "Right: cut the channels", 14, weight="bold", anchor="start")
    d.label(24, low - 32, "Wrong: the same numbers, only read in another shape", 14, LIT_INK, "bold", "start")
    position, channel = np.meshgrid(np.arange(T), np.arange(C), indexing="ij")
    for y, name, code in ((top, "right", "split_heads"), (low, "wrong", "reshape")):
        sheet(left, y, position, channel)
        for t in range(T):
            tone = TONES[POSITION_TONES[t % 4]][1]
            d.label(left - 8, y + side * (t + 0.5) + 4.3, f"position {t}", 12, tone, anchor="end")
        d.label(left + wide / 2, y + high + 20, f"x ({T}, {C})", 13)
        step(left + wide + 12, y + high / 2, code, INK if name == "right" else LIT_INK)
        for h, x in enumerate(xs):
            sheet(x, y, *found[name][:, h])
            d.label(x + D * side / 2, y + high + 20, f"head {h} ({T}, {D})", 13)
    step(end + 12, top + high / 2, "merge_heads", INK)
    sheet(end + 116, top, *merged)
    d.label(end + 116 + wide / 2, top + high + 20, f"x ({T}, {C}) again", 13)
    d.label(end + 30, low + 36, f"head 0 holds positions {' and '.join(map(str, first))} only,", 13, anchor="start")
    d.label(end + 30, low + 56, "and a row is not a position any more", 13, anchor="start")
    return d
