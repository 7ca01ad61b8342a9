"""Drawings of the models: right in their parts and numbers, well-formed, legible, and with words for who cannot see."""

import dataclasses
import io
import re
import xml.etree.ElementTree as ET

import pytest
from PIL import Image

from course_lib import get_track
from course_lib.common.config import GPTConfig, TransformerConfig
from course_lib.views import draw_encoder_decoder, draw_gpt
from course_lib.views.drawing import LIT, PARTS, ROAD, Drawing, part_counts
from course_lib.views.raster import png_of
from course_lib.views.style import CARD, INK, MUTED
from tools.pictures import drawings

GPTS = {
    "as in notebook 09": {}, "post-norm": {"norm": "post"}, "bare": {"norm": None, "residual": False},
    "no MLP": {"activation": "none", "layers": 2}, "tied": {"tied": True, "width": 64, "heads": 2},
    "no positions": {"positions": False}, "today's": {"positions": "rotary", "norm_layer": "rms_norm",
                                                      "activation": "swiglu", "kv_heads": 2, "bias": False},
}  # fmt: skip
every_gpt = pytest.mark.parametrize("options", GPTS.values(), ids=GPTS)


def texts(drawing):
    return ["".join(e.itertext()) for e in ET.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}text")]


@every_gpt
def test_parts_and_counts_are_the_models(options):
    config = GPTConfig(17, **options)
    model, counts, drawn = get_track("numpy").GPT(config), part_counts(config), texts(draw_gpt(config, counts=True))
    final = 0 if model.norm is None else model.norm.num_parameters()
    inside = config.layers * (counts["attention"] + counts["mlp"] + counts["norm"])
    assert counts["tokens"] + counts["positions"] + inside + final + counts["head"] == model.num_parameters()
    assert f"block, × {config.layers}" in drawn and ("MLP" in drawn) is (config.activation != "none")
    for part in ("tokens", "positions", "attention", "mlp"):
        assert (f"{counts[part]:,}" in drawn) is (counts[part] > 0), part
    norm = "RMSNorm" if config.norm_layer == "rms_norm" else "LayerNorm"
    per_block = 2 if config.activation != "none" else 1
    assert drawn.count(norm) == {"pre": per_block + 1, "post": per_block, None: 0}[config.norm]
    assert ("residual stream (B, T, C)" in drawn) is config.residual
    assert draw_gpt(config).svg.count("<circle") == per_block * config.residual + (config.positions is True)


@every_gpt
def test_nothing_leaves_the_card(options):
    for drawing in (draw_gpt(GPTConfig(17, **options), lit=PARTS, counts=True), two_towers()):
        root = ET.fromstring(drawing.svg)
        for e in root.iter():
            if e.tag.endswith("rect"):
                assert 0 <= float(e.get("x", 0)) and float(e.get("x", 0)) + float(e.get("width")) <= drawing.width
                assert 0 <= float(e.get("y", 0)) and float(e.get("y", 0)) + float(e.get("height")) <= drawing.height
            if e.tag.endswith("text"):
                half = 0.34 * float(e.get("font-size")) * len(e.text or "")
                assert 0 <= float(e.get("x")) - half and float(e.get("x")) + half <= drawing.width, e.text
                assert 10 <= float(e.get("y")) <= drawing.height - 3


def two_towers(**options):
    return draw_encoder_decoder(TransformerConfig(11, 33, layers=2, width=16, heads=2, d_ff=32), **options)


def test_the_towers_have_their_parts():
    drawn = texts(two_towers(lit=("cross",)))
    assert drawn.count("LayerNorm") == 5 and drawn.count("layer, × 2") == 2 and drawn.count("MLP") == 2
    assert {"self-attention", "masked attention", "cross-attention", "memory", "keys and values"} <= set(drawn)


def test_a_lit_part_is_in_colour_and_an_unknown_one_is_refused():
    config = GPTConfig(17)
    for part in PARTS:
        assert LIT in draw_gpt(config, lit=(part,)).svg and LIT not in draw_gpt(config).svg
    for wrong in (lambda: draw_gpt(config, lit=("heads",)), lambda: two_towers(lit=("mlp",))):
        with pytest.raises(ValueError, match="is not a part of the drawing: choose from"):
            wrong()


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("ink", "ground"), [(INK, CARD), (INK, "#ffffff"), (MUTED, CARD), (ROAD, CARD), ("#ffffff", LIT)]
)
def test_words_stand_out(ink, ground):
    light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= (3 if ground == LIT else 4.5)  # on a lit part the words are bold


def test_a_drawing_shows_itself_and_lies_in_a_file(tmp_path):
    drawing = draw_gpt(dataclasses.replace(GPTConfig(17), layers=5))
    bundle, metadata = drawing._repr_mimebundle_()
    assert metadata["image/png"] == {"alt": drawing.alt, "width": drawing.width}
    assert (
        bundle["text/plain"].startswith("Figure: A GPT as a road")
        and "5 blocks of attention, then an MLP" in drawing.alt
    )
    assert ET.fromstring(bundle["image/svg+xml"]).get("aria-label") == drawing.alt
    assert not re.search(r"<script|href|http(?!://www.w3.org/2000/svg)", drawing.svg)
    drawing.save(tmp_path / "gpt.svg")
    assert (tmp_path / "gpt.svg").read_text(encoding="utf-8") == drawing.svg + "\n"


def test_the_stored_drawings_are_those_of_these_models():
    stored = {path.name: path.read_text(encoding="utf-8") for path in drawings.FOLDER.glob("*.svg")}
    assert stored == {name: drawing.svg + "\n" for name, drawing in drawings.drawings().items()}


def test_a_png_has_the_marks_where_the_drawing_has_them():
    d = Drawing(200, 100, "marks")
    d.marks += [
        '<rect x="10" y="10" width="40" height="20" rx="4" fill="#ff0000" stroke="none"/>',
        '<circle cx="100" cy="50" r="10" fill="#00ff00" stroke="none"/>',
        '<polygon points="150,80 190,80 170,95" fill="#0000ff"/>',
        '<path d="M 60 90 A 20 30 0 0 1 100 90" fill="none" stroke="#ff00ff" stroke-width="4"/>',
    ]
    image = Image.open(io.BytesIO(png_of(d))).convert("RGB")
    assert image.size == (400, 200)
    at = lambda x, y: image.getpixel((2 * x, 2 * y))  # noqa: E731
    assert at(30, 20) == (255, 0, 0) and at(100, 50) == (0, 255, 0) and at(170, 85) == (0, 0, 255)
    assert at(80, 60) == (255, 0, 255)  # the top of the arc
    assert at(5, 50) == at(60, 20) == tuple(int(CARD[n : n + 2], 16) for n in (1, 3, 5))
    d.marks.append("<image/>")
    with pytest.raises(ValueError, match="a PNG of <image> is not possible"):
        png_of(d)


@pytest.mark.parametrize("name", drawings.drawings())
def test_every_drawing_can_be_a_png(name):
    d = drawings.drawings()[name]
    assert Image.open(io.BytesIO(png_of(d))).size == (2 * d.width, 2 * d.height)
