"""What today's blocks changed inside, one sketch each: grouped queries, SwiGLU, RMSNorm."""

import math

import numpy as np

from ... import get_track
from ...common.initializer import Initializer
from ...numpy_track import functional as F
from ...numpy_track.tensor import from_numpy
from ..style import GRID, INK, MUTED
from .marks import BLUE, EDGE, TONES, Sketch, signed


def draw_grouped_queries(config):
    """Draw the heads of a GPTConfig's attention with and without the sharing of keys and values, and their caches."""
    H, G, D = config.heads, config.key_value_heads, config.head_size
    d = Sketch(
        900, 316,
        f"Grouped queries. Left, {H} query heads, each reading a key and value head of its own: a token adds 2 · {H} · "
        f"{D} = {2 * H * D} numbers to the cache of a layer. Right, {H} query heads reading {G} key and value heads, "
        f"{H // G} heads each: a token adds 2 · {G} · {D} = {2 * G * D} numbers.",
    )  # fmt: skip
    for x, groups, title in (
        (24, H, "a key and value head for each"),
        (474, G, f"a key and value head for every {H // G}"),
    ):
        wide = 402
        d.label(x, 34, f"{H} query heads, {title}", 14, weight="bold", anchor="start")
        at = [x + wide * (h + 0.5) / H for h in range(H)]
        shared = [x + wide * (g + 0.5) / groups for g in range(groups)]
        for h in range(H):
            to = shared[h * groups // H]
            d.path([(to + (at[h] - to) * 0.45, 136), (at[h], 95)], MUTED, 1.6, arrow=True)
            d.part(at[h], 76, 78, f"query {h}", fill=TONES["blue"][0], edge=TONES["blue"][1])
        for g, to in enumerate(shared):
            for n, what in enumerate(("key", "value")):
                d.part(to, 155 + 40 * n, 78, f"{what} {g}", fill=TONES["green"][0], edge=TONES["green"][1])
        d.label(x, 244, "one token in the cache of one layer:", 13, anchor="start")
        cell = wide / (2 * H)
        for n in range(2 * groups):
            tone = TONES["green"]
            d.shape(x + n * cell, 254, cell - 3, 22, tone[0], tone[1], 1.3, 2)
            d.label(x + (n + 0.5) * cell - 1.5, 269.5, f"{'kv'[n % 2]} {n // 2}", 12)
        d.label(x, 300, f"2 · {groups} · {D} = {2 * groups * D} numbers", 13, MUTED, anchor="start")
    d.path([(450, 22), (450, 294)], GRID, 1.2)
    return d


def swiglu_numbers(width=4, d_ff=6, seed=22):
    """Return {name: vector} of what a SwiGLU of the course computes for one random x: x, gate, silu, up, product, y."""
    today, rng = get_track("numpy").today, np.random.default_rng(seed)
    layer = today.SwiGLU(width, d_ff, bias=False, init=Initializer(seed, "scaled", "float64"), gain=1.5)
    x = from_numpy(rng.standard_normal((1, width)).round(1))
    gate, up = layer.gate(x), layer.up(x)
    found = {"x": x, "gate": gate, "silu": F.silu(gate), "up": up, "product": F.silu(gate) * up, "y": layer(x)}
    return {name: value.detach().numpy()[0] for name, value in found.items()}


def draw_swiglu():
    """Draw the gated MLP with the numbers of one vector: gate and up, SiLU, the product, down."""
    v = swiglu_numbers()
    shut = int(np.argmin(abs(v["silu"])))
    d = Sketch(
        900, 408,
        f"SwiGLU: x, {len(v['x'])} numbers, goes through two matrices side by side, gate and up, to {len(v['up'])} "
        "hidden units each. SiLU bends the gate's; then the two are multiplied, number by number, and the matrix down "
        f"leads back to {len(v['y'])}. In the framed row the gate is {signed(v['gate'][shut], 2)}, SiLU of it "
        f"{signed(v['silu'][shut], 2)}: of up's {signed(v['up'][shut], 2)} only {signed(v['product'][shut], 2)} is "
        "left.",
    )  # fmt: skip
    side, wide, most = 26, 58, 3.0
    ys = {"x": 148, "gate": 40, "silu": 40, "up": 224, "product": 122, "y": 148}
    xs = {"x": 30, "gate": 250, "silu": 420, "up": 335, "product": 590, "y": 800}
    for name, values in v.items():
        d.grid(xs[name], ys[name] + 14, values[:, None], wide, most, 2, high=side)
        title = {"silu": "SiLU(gate)", "product": "SiLU(gate) · up", "y": "out"}.get(name, name)
        d.label(xs[name] + wide / 2, ys[name] + 5, title, 13, weight="bold")
        if len(values) > len(v["x"]):
            d.around(xs[name], ys[name] + 14 + shut * side, wide, side)
    x, gate, silu, up, product, y = (
        (xs[n], ys[n] + 14 + side * len(v[n]) / 2) for n in ("x", "gate", "silu", "up", "product", "y")
    )
    for to, word in ((gate, "gate"), (up, "up")):
        level = to[1]
        d.path([(x[0] + wide + 6, x[1]), (122, x[1]), (122, level), (to[0] - 8, level)], arrow=True)
        d.part(180, level, 86, f"W {word}", "C → d_ff", height=40)
    d.path([(gate[0] + wide + 8, gate[1]), (silu[0] - 8, gate[1])], arrow=True)
    d.path([(silu[0] + wide + 8, silu[1]), (536, silu[1]), (536, product[1] - 10)], arrow=True)
    d.path([(up[0] + wide + 8, up[1]), (536, up[1]), (536, product[1] + 10)], arrow=True)
    d.path([(546, product[1]), (product[0] - 8, product[1])], arrow=True)
    d.sign(536, product[1], "×")
    d.path([(product[0] + wide + 8, product[1]), (y[0] - 8, y[1])], arrow=True)
    d.part(726, product[1], 86, "W down", "d_ff → C", height=40)
    d.label(silu[0] - 28, gate[1] - 8, "bend", 12, MUTED)
    d.label(product[0] + wide / 2, 336, "a gate near 0", 12, weight="bold")
    d.label(product[0] + wide / 2, 352, "lets little pass", 12, weight="bold")
    return d


def draw_norms(values=(3.0, 1.0, 4.0, 1.5, 5.5, 2.0)):
    """Draw what LayerNorm and RMSNorm do to one vector: bars before and after, with what is subtracted and divided."""
    x = np.array(values, float)
    C = len(x)
    ones, zeros = from_numpy(np.ones(C)), from_numpy(np.zeros(C))
    layer = F.layer_norm(from_numpy(x), (C,), ones, zeros).numpy()
    rms = F.rms_norm(from_numpy(x), (C,), ones, 1e-5).numpy()
    mean, std, root = x.mean(), x.std(), math.sqrt((x**2).mean())
    d = Sketch(
        900, 296,
        f"One vector of {C} numbers, {', '.join(f'{v:g}' for v in x)}, and two norms as bars. LayerNorm subtracts the "
        f"mean, {mean:.2f}, and divides by the standard deviation, {std:.2f}: bars on both sides of zero. RMSNorm only "
        f"divides, by the root of the mean square, {root:.2f}: every bar keeps its sign and its share.",
    )  # fmt: skip
    panels = [
        ("x", x / x.max() * 2.2, x, f"mean {mean:.2f}, deviation {std:.2f}, RMS {root:.2f}", INK),
        ("LayerNorm", layer, layer, f"(x − {mean:.2f}) / {std:.2f}", BLUE),
        ("RMSNorm", rms, rms, f"x / {root:.2f}", EDGE),
    ]
    for n, (title, heights, shown, under, colour) in enumerate(panels):
        left, zero, unit = 24 + n * 296, 204, 50
        d.label(left, 34, title, 14, weight="bold", anchor="start")
        for i, (height, value) in enumerate(zip(heights, shown)):
            top = zero - max(height, 0) * unit
            d.shape(left + i * 43 + 4, top, 34, abs(height) * unit, MUTED if colour == INK else colour, "none", 0, 2)
            d.label(left + i * 43 + 21, top - 6 if height > 0 else zero + unit * -height + 16, signed(value, 1), 12)
        d.path([(left, zero), (left + 43 * C, zero)], INK, 1.2)
        d.label(left, 56, under, 12, MUTED, anchor="start")
    return d
