"""Drawings of the course's models as vector graphics, made from a configuration: the road of the residual stream.

The stream runs from left to right; attention and MLP are side roads that branch off, through a LayerNorm, and come back
with a plus sign. A drawing is plain SVG on a card of its own, legible on a light and on a dark page.
"""

from dataclasses import dataclass, field

from .. import get_track
from .labels import escaped
from .raster import png_of
from .style import CARD, HIGHLIGHT, INK, MUTED, PALETTE, png_text

ROAD, LIT = PALETTE[0], HIGHLIGHT
PARTS = ("tokens", "positions", "attention", "mlp", "norm", "residual", "head")


@dataclass
class Drawing:
    """An SVG of ``width`` × ``height`` pixels with its alternative text, for a cell to display or a file to hold."""

    width: int
    height: int
    alt: str
    marks: list = field(default_factory=list)

    @property
    def svg(self):
        """Return the SVG as text."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'role="img" aria-label="{escaped(self.alt)}" style="max-width: 100%; height: auto" '
            'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" text-anchor="middle">'
            f"<title>{escaped(self.alt)}</title>"
        )
        card = f'<rect width="{self.width}" height="{self.height}" rx="12" fill="{CARD}"/>'
        return head + card + "".join(self.marks) + "</svg>"

    def __repr__(self):
        return f"Figure: {self.alt}"

    def _repr_mimebundle_(self, **_keywords):
        data = {"image/svg+xml": self.svg, "image/png": png_text(png_of(self)), "text/plain": repr(self)}
        return data, {"image/png": {"alt": self.alt, "width": self.width}}

    def save(self, path):
        """Write the SVG to a file, as UTF-8."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self.svg + "\n")

    # ---------------------------------------------------------------- what a drawing is made of
    def words(self, x, y, text, size=13, colour=INK, weight="normal"):
        self.marks.append(
            f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" font-weight="{weight}">{escaped(text)}</text>'
        )

    def line(self, points, colour=INK, width=1.6, arrow=False):
        path = " ".join(f"{x},{y}" for x, y in points)
        self.marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'
        )
        if arrow:
            (x0, y0), (x, y) = points[-2:]
            dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
            tip = f"{x},{y} {x - 8 * dx - 4 * dy},{y - 8 * dy - 4 * dx} {x - 8 * dx + 4 * dy},{y - 8 * dy + 4 * dx}"
            self.marks.append(f'<polygon points="{tip}" fill="{colour}"/>')

    def box(self, x, y, width, label, lit=False, under="", height=36):
        """Draw a box with its left edge at x, centred on y; return its right edge."""
        fill, edge, ink = (LIT, LIT, "#ffffff") if lit else ("#ffffff", INK, INK)
        self.marks.append(
            f'<rect x="{x}" y="{y - height / 2}" width="{width}" height="{height}" rx="7" fill="{fill}" '
            f'stroke="{edge}" stroke-width="1.5"/>'
        )
        weight = "bold" if lit else "normal"
        self.words(x + width / 2, y + 4.5, label, colour=ink, weight=weight)
        if under:
            self.words(x + width / 2, y + height / 2 + 15, under, size=12, colour=MUTED)
        return x + width

    def plus(self, x, y, lit=False):
        colour = LIT if lit else INK
        self.marks.append(f'<circle cx="{x}" cy="{y}" r="10" fill="#ffffff" stroke="{colour}" stroke-width="1.8"/>')
        self.line([(x - 5, y), (x + 5, y)], colour)
        self.line([(x, y - 5), (x, y + 5)], colour)

    def frame(self, x, y, width, height, label):
        self.marks.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="none" stroke="{MUTED}" '
            'stroke-width="1.2" stroke-dasharray="5 4"/>'
        )
        self.words(x + 44, y - 7, label, size=12, colour=MUTED)


def part_counts(config):
    """Return {part: number of parameters} of a GPT; ``attention``, ``mlp`` and ``norm`` are those of one block."""
    model = get_track("numpy").GPT(config)
    counts = {"tokens": model.token.num_parameters(), "head": 0, "attention": 0, "mlp": 0, "norm": 0, "positions": 0}
    for name, p in model.named_parameters():
        first = name.split(".")[0]
        if first == "position":
            counts["positions"] += p.numel()
        elif first == "head":
            counts["head"] += p.numel()
        elif name.startswith("blocks.0.attention.layer"):
            counts["attention"] += p.numel()
        elif name.startswith("blocks.0.mlp.layer"):
            counts["mlp"] += p.numel()
        elif name.startswith("blocks.0."):
            counts["norm"] += p.numel()
    return counts


def draw_gpt(config, lit=(), counts=False):
    """Draw a GPT from its GPTConfig, as one block with the number of its repetitions.

    ``lit``: names of ``PARTS`` to show in colour. ``counts``: write the number of parameters under each part, for the
    block's parts those of one block. Raises ValueError for an unknown part.
    """
    for part in lit:
        if part not in PARTS:
            raise ValueError(f"{part!r} is not a part of the drawing: choose from {', '.join(PARTS)}")
    numbers = {k: f"{v:,}" for k, v in part_counts(config).items()} if counts else {}
    learned = config.positions is True
    up, y = 92, 172 if config.residual else 120
    d = Drawing(0, y + (118 if learned else 74), _gpt_alt(config))
    x = d.box(20, y, 44, "ids", under="(B, T)")
    d.line([(x, y), (x + 26, y)], arrow=True)
    x = d.box(x + 26, y, 132, "token embedding", "tokens" in lit, numbers.get("tokens", ""))
    start = x
    if learned:
        d.box(x - 132, y + 74, 132, "positions", "positions" in lit, numbers.get("positions", ""))
        d.line([(x, y + 74), (x + 34, y + 74), (x + 34, y + 10)], arrow=True)
        plus, x = x + 34, x + 44
    block, x = x + 26, x + 40
    later = []  # boxes and plus signs lie above the road
    for part, label in (("attention", _attention_name(config)), ("mlp", "MLP")):
        if part == "mlp" and config.activation == "none":
            continue
        x = _sublayer(d, later, config, x, y, up, part, label, lit, numbers)
    frame_end = x + 4
    top = y - up - 34 if config.residual else y - 44
    d.frame(block, top, frame_end - block, y - top + 48, f"block, × {config.layers}")
    x = frame_end + 18
    if config.norm == "pre":
        later.append(lambda at=x: d.box(at, y, 84, _norm_name(config), "norm" in lit))
        x += 84 + 22
    later.append(
        lambda at=x: d.box(at, y, 58, "head", "head" in lit, "tied" if config.tied else numbers.get("head", ""))
    )
    end = x + 58
    d.line([(start, y), (x, y)], ROAD, 5)
    for draw in later:
        draw()
    if learned:
        d.plus(plus, y)
    d.line([(end, y), (end + 24, y)], arrow=True)
    d.words(end + 60, y - 2, "logits")
    d.words(end + 60, y + 15, "(B, T, V)", 12, MUTED)
    stream = "residual stream (B, T, C)" if config.residual else "(B, T, C)"
    d.words((block + frame_end) / 2, y + 38, stream, 12, ROAD, "bold")
    d.width = int(end + 108)
    return d


def _norm_name(config):
    return "RMSNorm" if config.norm_layer == "rms_norm" else "LayerNorm"


def _attention_name(config):
    return "attention" if config.positions != "rotary" else "attention ↻"


def _gpt_alt(config):
    where = {"pre": "through a norm before it", "post": "with a norm after the sum", None: "without a norm"}[
        config.norm
    ]
    parts = "attention" if config.activation == "none" else "attention, then an MLP"
    back = "added back to the residual stream" if config.residual else "right on the road, with no path around it"
    return (
        f"A GPT as a road: ids become token embeddings{' plus positions' if config.positions is True else ''}; "
        f"{config.layers} blocks of {parts}, each {where} and {back}; then the head gives logits."
    )


def _sublayer(d, later, config, x, y, up, part, label, lit, numbers):
    """Draw one side road from x; return where it has come back."""
    norm, wide = _norm_name(config), 112 if part == "attention" else 64
    bright = part in lit
    if not config.residual:  # no road around: the boxes stand in the way
        if config.norm == "pre":
            later.append(lambda at=x + 8: d.box(at, y, 84, norm, "norm" in lit))
            x += 100
        later.append(lambda at=x + 8: d.box(at, y, wide, label, bright, numbers.get(part, "")))
        x += wide + 24
    else:
        level, here = y - up, x + 10
        at = here + 16
        points = [(here, y), (here, level), (at, level)]
        if config.norm == "pre":
            d.line(points, arrow=True)
            at = d.box(at, level, 84, norm, "norm" in lit)
            d.line([(at, level), (at + 18, level)], arrow=True)
            at += 18
        else:
            d.line(points, arrow=True)
        at = d.box(at, level, wide, label, bright, numbers.get(part, ""))
        d.line([(at, level), (at + 18, level), (at + 18, y - 10)], arrow=True)
        later.append(lambda at=at + 18: d.plus(at, y, "residual" in lit))
        x = at + 34
    if config.norm == "post":
        later.append(lambda at=x: d.box(at, y, 84, norm, "norm" in lit))
        x += 98
    return x


def draw_encoder_decoder(config, lit=()):
    """Draw the encoder–decoder from its TransformerConfig: the encoder above, the decoder below, the memory between.

    ``lit`` may hold "encoder", "decoder" and "cross". Raises ValueError for any other part.
    """
    for part in lit:
        if part not in ("encoder", "decoder", "cross"):
            raise ValueError(f"{part!r} is not a part of the drawing: choose from encoder, decoder, cross")
    alt = (
        f"Two towers. The encoder: source ids, embeddings plus positions, {config.layers} layers of self-attention and"
        " MLP, each added and normalised; its result is the memory. The decoder: target ids, embeddings plus positions,"
        f" {config.layers} layers of masked self-attention, cross-attention, which takes keys and values from the"
        " memory, and MLP; then the head gives logits."
    )
    d, top, low, up = Drawing(0, 400, alt), 132, 330, 66

    def tower(y, ids, shape, parts, bright):
        x = d.box(20, y, 70, ids, under=shape)
        d.line([(x, y), (x + 20, y)], arrow=True)
        start = d.box(x + 20, y, 150, "embedding + waves", bright)
        x, later = start + 34, []
        block = x - 14
        for label, wide, lit_part in parts:
            here, level = x + 8, y - up
            d.line([(here, y), (here, level), (here + 16, level)], arrow=True)
            at = d.box(here + 16, level, wide, label, lit_part)
            d.line([(at, level), (at + 16, level), (at + 16, y - 10)], arrow=True)
            later.append((at + 16, here + 16 + wide / 2))
            x = at + 124
        d.line([(start, y), (x + 6, y)], ROAD, 5)
        for plus, _ in later:
            d.plus(plus, y)
            d.box(plus + 14, y, 78, "LayerNorm")
        d.frame(block, y - up - 34, x - block - 8, up + 62, f"layer, × {config.layers}")
        return x, [middle for _, middle in later]

    end, _ = tower(top, "source", "(B, S)", [("self-attention", 122, "encoder" in lit), ("MLP", 60, "encoder" in lit)],
                   "encoder" in lit)  # fmt: skip
    parts = [("masked attention", 134, "decoder" in lit), ("cross-attention", 128, "cross" in lit or "decoder" in lit),
             ("MLP", 60, "decoder" in lit)]  # fmt: skip
    last, middles = tower(low, "target", "(B, T)", parts, "decoder" in lit)
    memory = d.box(end + 6, top, 84, "memory", "cross" in lit, "(B, S, C)")
    d.line([(memory - 42, top + 40), (memory - 42, top + 76), (middles[1], top + 76), (middles[1], low - up - 18)],
           LIT if "cross" in lit else ROAD, 2.4, arrow=True)  # fmt: skip
    d.words(memory + 20, top + 68, "keys and values", 12, MUTED)
    d.box(last + 6, low, 58, "head", "decoder" in lit)
    d.line([(last + 64, low), (last + 84, low)], arrow=True)
    d.words(last + 118, low - 2, "logits")
    d.words(last + 118, low + 15, "(B, T, V)", 12, MUTED)
    d.width = int(max(last + 160, memory + 120))
    return d
