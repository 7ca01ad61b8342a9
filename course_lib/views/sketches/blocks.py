"""Blocks part by part, from their GPTConfig: GPT-2's, and today's beside it, row by row."""

from dataclasses import replace

from ... import get_track
from ..style import INK, MUTED, PALETTE
from .marks import EDGE, LIT_INK, Sketch

ROAD = PALETTE[0]
STREAM, SIDE, LEFT, RIGHT, COLUMN = 84, 284, 188, 380, 462  # x, from the left edge of a column


def block_counts(config):
    """Return {part: number of parameters} of a GPT of this config, with ``block``, one block, and ``model``, all.

    Parts have the library's names: ``token``, ``position``, ``attention.layer.query``, ``mlp.norm``, ``norm``, ...
    """
    small = get_track("numpy").GPT(replace(config, layers=1, vocab_size=1, context_length=1))
    times = {"token": config.vocab_size, "head": config.vocab_size, "position": config.context_length}
    counts = {}
    for name, p in small.named_parameters():
        part = name.removeprefix("blocks.0.").removesuffix(".weight").removesuffix(".bias")
        counts[part] = counts.get(part, 0) + p.numel() * times.get(part, 1)
    inside = sum(n for part, n in counts.items() if part.startswith(("attention", "mlp")))
    model = sum(counts.values()) + (config.layers - 1) * inside
    return counts | {"block": inside, "model": model}


def rows_of(config):
    """Return the rows of the block's parts, from top to bottom, that this config has."""
    rows = ["attention.norm", "project"]
    rows += ["qk_norm"] * config.qk_norm + ["rotary"] * config.rotary
    return [*rows, "attention", "attention.layer.output", "mlp.norm", "up", "activation", "mlp.layer.down"]


def draw_blocks(*configs, names):
    """Draw the block of each config, one column each, every part with its number of parameters.

    ``names``: a title for each. Parts of the same role stand in one row; what the last config changes is lit. Raises
    ValueError for a config without pre-norm, residual path or MLP, or when a name is missing.
    """
    if len(names) != len(configs):
        raise ValueError(f"{len(names)} names for {len(configs)} configs: expected one each")
    for config in configs:
        if config.norm != "pre" or not config.residual or config.activation == "none":
            raise ValueError('the drawing needs norm="pre", residual=True and an MLP')
    every = ["attention.norm", "project", "qk_norm", "rotary", *rows_of(configs[0])[-6:]]
    every = [row for row in every if any(row in rows_of(config) for config in configs)]
    heights, y = {}, 154
    for row in every:
        y += {"attention.norm": 30, "project": 64, "qk_norm": 60, "rotary": 48, "mlp.norm": 62}.get(row, 50)
        y += 14 * (row == "attention" and every[every.index(row) - 1] == "project")
        heights[row] = y
    bottom = y + 30
    d = Sketch(24 + COLUMN * len(configs), bottom + 82, _alt(configs, names))
    for n, (config, name) in enumerate(zip(configs, names)):
        before = configs[0] if n == len(configs) - 1 and n else config
        _column(d, 12 + n * COLUMN, heights, bottom, config, before, name)
    if len(configs) > 1:
        d.path([(12 + COLUMN, 20), (12 + COLUMN, d.height - 20)], "#d9d7cf", 1.2)
    return d


def _column(d, x, heights, bottom, config, before, name):
    counts = {part: f"{n:,}" for part, n in block_counts(config).items()}
    stream, side, left, right = x + STREAM, x + SIDE, x + LEFT, x + RIGHT
    norm = "RMSNorm" if config.norm_layer == "rms_norm" else "LayerNorm"
    new_norm, gated = config.norm_layer != before.norm_layer, config.activation == "swiglu"
    d.label(x + 16, 34, name, 15, weight="bold", anchor="start")
    d.label(x + COLUMN - 16, 34, f"one block: {counts['block']} parameters", 12, MUTED, anchor="end")
    # the stream, from the tables at the top to the head at the bottom
    d.path([(stream, 84), (stream, bottom + 20)], ROAD, 5)
    d.part(stream, 70, 132, "token embedding", counts["token"])
    if config.positions is True:
        d.part(side, 112, 132, "positions", counts["position"])
        d.path([(side - 66, 112), (stream + 10, 112)], arrow=True)
        d.sign(stream, 112, "+")
    elif before.positions is True:
        d.label(side, 116, "no table of positions", 13, LIT_INK, "bold")
    top = 144
    d.shape(x + 16, top, COLUMN - 36, bottom - top, "none", MUTED, 1.2, 10, "5 4")
    d.label(x + COLUMN - 32, top + 20, f"block, × {config.layers}", 12, MUTED, anchor="end")
    _attention(d, heights, config, before, counts, (stream, left, side, right), norm, new_norm)
    # the MLP's side road
    y = heights["mlp.norm"]
    d.path([(stream, y), (side - 52, y)], arrow=True)
    d.part(side, y, 104, norm, counts["mlp.norm"], new_norm)
    up, act, down = heights["up"], heights["activation"], heights["mlp.layer.down"]
    if gated:
        for at, part, lit in ((left, "gate", before.activation != "swiglu"), (right, "up", False)):
            d.path([(side + (at - side) * 0.3, y + 17), (side + (at - side) * 0.72, up - 17)], arrow=True)
            d.part(at, up, 104, part, counts[f"mlp.layer.{part}"], lit)
        lit = before.activation != "swiglu"
        d.path([(left, up + 17), (left, act - 17)], arrow=True)
        d.part(left, act, 104, "SiLU", lit=lit)
        d.path([(left + 52, act), (side - 11, act)], arrow=True)
        d.path([(right, up + 17), (right, act), (side + 11, act)], arrow=True)
        d.path([(side, act + 10), (side, down - 17)], arrow=True)
        d.sign(side, act, "×", lit)
    else:
        d.path([(side, y + 17), (side, up - 17)], arrow=True)
        d.part(side, up, 104, "up", counts["mlp.layer.up"])
        d.path([(side, up + 17), (side, act - 17)], arrow=True)
        d.part(side, act, 104, config.activation.upper() if config.activation == "gelu" else "ReLU")
        d.path([(side, act + 17), (side, down - 17)], arrow=True)
    d.path([(side - 52, down), (stream + 10, down)], arrow=True)
    d.part(side, down, 104, "down", counts["mlp.layer.down"])
    d.sign(stream, down, "+")
    d.label(right + 6, down + 4, f"C → {config.hidden_units:,} → C", 12, MUTED)
    # the end of the road
    d.part(stream, bottom + 30, 104, norm, counts["norm"], new_norm)
    d.path([(stream + 52, bottom + 30), (stream + 84, bottom + 30)], arrow=True)
    d.part(stream + 134, bottom + 30, 100, "head", "tied" if config.tied else counts["head"])
    d.path([(stream + 184, bottom + 30), (stream + 212, bottom + 30)], arrow=True)
    d.label(stream + 240, bottom + 34, "logits")
    d.label(x + COLUMN - 16, bottom + 66, f"the whole model: {counts['model']} parameters", 12, MUTED, anchor="end")
    if not config.bias and before.bias:
        d.label(x + 16, bottom + 66, "no biases anywhere", 13, LIT_INK, "bold", "start")


def _attention(d, heights, config, before, counts, xs, norm, new_norm):
    stream, left, side, right = xs
    y, q, attend = heights["attention.norm"], heights["project"], heights["attention"]
    shared, groups = config.key_value_heads < before.key_value_heads, config.key_value_heads
    d.path([(stream, y), (side - 52, y)], arrow=True)
    for at in (left, side, right):
        d.path([(side + (at - side) * 0.3, y + 17), (side + (at - side) * 0.86, q - 26)], arrow=True)
        d.path([(at, q + 26), (at, attend - 17)], arrow=True)
    d.part(side, y, 104, norm, counts["attention.norm"], new_norm)
    for at, part, heads in ((left, "query", config.heads), (side, "key", groups), (right, "value", groups)):
        lit = shared and part != "query"
        d.part(at, q - 1, 88, "", "", lit, 52)
        d.label(at, q - 11, part, weight="bold" if lit else "normal")
        d.label(at, q + 4, counts[f"attention.layer.{part}"], 12, INK if lit else MUTED)
        pitch = min(12.0, 80 / heads)
        for h in range(heads):
            d.shape(
                at + (h - heads / 2) * pitch + 1, q + 11, pitch - 2, 7, PALETTE[0] if not lit else EDGE, "none", 0, 1
            )
    if config.qk_norm:
        for at, part in ((left, "query_norm"), (side, "key_norm")):
            d.part(at, heights["qk_norm"], 88, "RMSNorm", counts[f"attention.layer.{part}"], not before.qk_norm)
    if config.rotary:
        for at in (left, side):
            d.part(at, heights["rotary"], 88, "rotary ↻", lit=not before.rotary, height=28)
    if groups < config.heads:
        under = f"a key and a value head for every {config.heads // groups}"
    else:
        under = "a key and a value head for each"
    words = f"attention, {config.heads} heads" + (f", window {config.window}" if config.window else "")
    d.part(side, attend, right - left + 88, words, under, shared or config.window != before.window)
    out = heights["attention.layer.output"]
    d.path([(side, attend + 17), (side, out - 17)], arrow=True)
    d.path([(side - 52, out), (stream + 10, out)], arrow=True)
    d.part(side, out, 104, "output", counts["attention.layer.output"])
    d.sign(stream, out, "+")


def _alt(configs, names):
    parts = []
    for config, name in zip(configs, names):
        counts = block_counts(config)
        heads = f"{config.heads} query heads"
        heads += (
            f" reading {config.key_value_heads} key and value heads"
            if config.kv_heads
            else ", each with a key and a value head of its own"
        )
        norm = "RMSNorm" if config.norm_layer == "rms_norm" else "LayerNorm"
        places = {True: "a table of learned positions is added to the token embedding", False: "there are no positions",
                  "rotary": "queries and keys are rotated by their position"}[config.positions]  # fmt: skip
        mlp = "gate and up side by side, SiLU of the gate times up, then down" if config.activation == "swiglu" else (
            f"up, {'GELU' if config.activation == 'gelu' else 'ReLU'}, down")  # fmt: skip
        normed = "; queries and keys pass an RMSNorm of their own" if config.qk_norm else ""
        bias = "biases" if config.bias else "no biases"
        parts.append(
            f"{name}: {config.layers} blocks of {counts['block']:,} parameters, {counts['model']:,} in all; {places}; "
            f"each block reads the residual stream through {norm} into attention, with {heads}{normed}, and through "
            f"{norm} into an MLP of {config.hidden_units:,} hidden units: {mlp}; {bias}."
        )
    start = "Two blocks side by side, part by part. " if len(configs) > 1 else "A block, part by part. "
    return start + " ".join(parts) + (" What changed is lit." if len(configs) > 1 else "")
