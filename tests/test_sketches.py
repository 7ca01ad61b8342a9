"""Sketches: every number in them is a model's, every word can be read, and nothing covers anything else."""

import dataclasses
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from course_lib import get_track
from course_lib.common.config import GPTConfig, TransformerConfig
from course_lib.inference import beam_search
from course_lib.inference.gpt2 import gpt2_config
from course_lib.training import load_checkpoint
from course_lib.views import sketches
from course_lib.views.sketches import attention, blocks, generation, learning, positions, today
from course_lib.views.sketches import text as of_text
from course_lib.views.sketches.marks import LIT_FILL, TONES, Sketch, shade
from course_lib.views.style import CARD, INK, MUTED, PALETTE, advance
from tools.pictures import drawings

SVG = "{http://www.w3.org/2000/svg}"
STORED = {name: d for name, d in drawings.drawings().items() if isinstance(d, Sketch)}
stored = pytest.mark.parametrize("name", STORED)


def texts(drawing):
    return ["".join(e.itertext()) for e in ET.fromstring(drawing.svg).iter(f"{SVG}text")]


def text_boxes(drawing):
    """(text, left, top, right, bottom) of every line of text, as wide as the first font of the list makes it."""
    for e in ET.fromstring(drawing.svg).iter(f"{SVG}text"):
        size, x, y = (float(e.get(k)) for k in ("font-size", "x", "y"))
        wide = size * sum(advance(c, e.get("font-weight", "normal")) for c in e.text)
        left = {"middle": -wide / 2, "start": 0, "end": -wide}[e.get("text-anchor", "middle")]
        box = (left, -0.75 * size, left + wide, 0.22 * size)
        if e.get("transform"):  # turned by -90 degrees: what was right is up
            box = (box[1], -box[2], box[3], -box[0])
        yield e.text, x + box[0], y + box[1], x + box[2], y + box[3]


def check_legible(drawing):
    """No text leaves the card, covers another or is small; the picture is no wider than a page; its words say it."""
    boxes = list(text_boxes(drawing))
    assert drawing.width <= 960 and len(drawing.alt) > 60
    for text, left, top, right, bottom in boxes:
        assert left >= 4 and top >= 4 and right <= drawing.width - 4 and bottom <= drawing.height - 4, text
    for n, (a, left, top, right, bottom) in enumerate(boxes):
        for b, left2, top2, right2, bottom2 in boxes[n + 1 :]:
            assert min(right, right2) - max(left, left2) <= 0.5 or min(bottom, bottom2) - max(top, top2) <= 0.5, (a, b)
    for e in ET.fromstring(drawing.svg).iter(f"{SVG}text"):
        assert float(e.get("font-size")) >= 12 * max(1, drawing.width / 960), e.text
    assert not re.search(r"\b(nan|inf|None)\b|\de-\d", "".join(drawing.marks))


@stored
def test_stored_sketches_are_legible(name):
    check_legible(STORED[name])


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_words_and_numbers_stand_out():
    pairs = [(ink, CARD) for ink in (INK, MUTED, PALETTE[0])] + [(INK, LIT_FILL)]
    pairs += [(ink, ground) for pale, ink in TONES.values() for ground in (pale, CARD)]
    pairs += [shade(n / 50)[::-1] for n in range(-50, 51)]
    for pair in pairs:
        light, dark = sorted(map(luminance, pair), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, pair


# ---- blocks ---------------------------------------------------------------------------------------------------------

TODAY = {"norm_layer": "rms_norm", "positions": "rotary", "activation": "swiglu", "kv_heads": 2, "qk_norm": True,
         "bias": False, "attention_bias": False}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"attention_bias": True, "tied": True, "activation": "gelu"}, TODAY])
def test_the_counts_of_a_block_are_the_models(options):
    config = dataclasses.replace(GPTConfig(17, 8, 32, 4, 3), **options)
    model, counts = get_track("numpy").GPT(config), blocks.block_counts(config)
    assert counts["model"] == model.num_parameters()
    assert counts["block"] == model.blocks[0].num_parameters()
    for part, number in counts.items():
        if part.startswith(("attention", "mlp")):
            layer = model.blocks[0]
            for name in part.split("."):
                layer = getattr(layer, name)
            assert layer.num_parameters() == number
            assert f"{number:,}" in texts(blocks.draw_blocks(config, names=["one"])), part
    assert blocks.draw_blocks(config, names=["one"]).svg.count(LIT_FILL) == 0


def test_the_two_blocks_have_their_parts_and_only_what_changed_is_lit():
    then = gpt2_config(4, 4, 64, 32, 65)
    now = dataclasses.replace(then, **TODAY)
    d = sketches.draw_blocks(then, now, names=["then", "now"])
    drawn = texts(d)
    check_legible(d)
    assert drawn.count("LayerNorm") == 3 and drawn.count("RMSNorm") == 5 and drawn.count("rotary ↻") == 2
    assert drawn.count("positions") == 1 and "no table of positions" in drawn and "no biases anywhere" in drawn
    assert {"GELU", "SiLU", "gate"} <= set(drawn) and drawn.count("up") == 2
    assert f"one block: {blocks.block_counts(now)['block']:,} parameters" in drawn
    lit = d.svg.count(f'fill="{LIT_FILL}"')
    assert lit == 5 + 2 + 2 + 1 + 3  # norms, rotary, key and value, attention, gate with SiLU and ×
    for what, gone in (("kv_heads", 3), ("activation", 3), ("norm_layer", 3), ("qk_norm", 2), ("positions", 2)):
        fewer = dataclasses.replace(now, **{what: getattr(then, what)})
        assert sketches.draw_blocks(then, fewer, names="ab").svg.count(f'fill="{LIT_FILL}"') == lit - gone, what


def test_gpt2_has_its_published_size():
    assert "the whole model: 124,439,808 parameters" in texts(STORED["gpt2-block.svg"])
    with pytest.raises(ValueError, match="1 names for 2 configs"):
        sketches.draw_blocks(gpt2_config(), gpt2_config(), names=["one"])
    with pytest.raises(ValueError, match='needs norm="pre"'):
        sketches.draw_blocks(GPTConfig(9, norm="post"), names=["one"])


# ---- today ----------------------------------------------------------------------------------------------------------


def test_rotary_scores_depend_on_the_distance_only():
    near, same, far = positions.rotary_scores(positions.DISTANCES)
    assert near == pytest.approx(same) == pytest.approx(sum(np.cos(10.0**-i) for i in range(4)))
    assert far == pytest.approx(sum(np.cos(3 * 10.0**-i) for i in range(4)))
    drawn = texts(sketches.draw_rotary())
    assert drawn.count(f"q · k = {near:.2f}") == 2 and f"q · k = {far:.2f}" in drawn
    assert sketches.draw_rotary(positions=5).svg.count("<circle") < sketches.draw_rotary().svg.count("<circle")


def test_grouped_queries_count_what_a_cache_holds():
    config = dataclasses.replace(gpt2_config(4, 4, 64, 32, 65), kv_heads=2, positions="rotary")
    drawn = texts(sketches.draw_grouped_queries(config))
    for kv_heads in (None, 2):
        cache = get_track("numpy").GPT(dataclasses.replace(config, kv_heads=kv_heads)).new_cache()
        numbers = (cache.keys.size + cache.values.size) // (config.layers * config.context_length)
        assert any(text.endswith(f"= {numbers} numbers") for text in drawn)
    assert drawn.count("key 0") == 2 and drawn.count("key 1") == 2 and drawn.count("key 3") == 1


def test_swiglu_shows_what_the_layer_computes():
    v = today.swiglu_numbers()
    assert np.allclose(v["silu"], v["gate"] / (1 + np.exp(-v["gate"])))
    assert np.allclose(v["product"], v["silu"] * v["up"])
    drawn = " ".join(texts(sketches.draw_swiglu())).replace("−", "-")
    assert all(f"{round(number, 2) + 0.0:.2f}" in drawn for values in v.values() for number in values)


def test_the_rolling_cache_holds_what_the_window_reads():
    for position, held in positions.cache_rows(8, 4, 30):
        assert held[-1] == position and held[0] <= max(0, position - 3) and len(held) <= 8
        assert held == list(range(held[0], position + 1))
    drawn = texts(sketches.draw_window())
    assert drawn.count("full: it rolls") == 2 and "token 13" in drawn


def test_norms_are_those_of_the_formulas():
    drawn = texts(sketches.draw_norms((1.0, 2.0, 3.0)))
    assert {"(x − 2.00) / 0.82", "x / 2.16", "−1.2", "1.4"} <= set(drawn)
    check_legible(sketches.draw_norms((-1.0, 2.0, 3.0)))


# ---- attention, the stream, text ------------------------------------------------------------------------------------


def test_the_matrices_of_attention_follow_from_one_another():
    m = attention.attention_numbers()
    assert np.allclose(m["scores"], m["Q"] @ m["K"].T)
    e = np.exp(np.where(np.tri(4) > 0, m["scores"] / np.sqrt(3), -np.inf))
    assert np.allclose(m["weights"], e / e.sum(axis=1, keepdims=True))
    assert np.allclose(m["context"], m["weights"] @ m["V"])
    assert np.linalg.matrix_rank(np.hstack([m["X"], m["Q"], m["K"], m["V"]])) == 4  # Q, K, V are products of X
    drawn = texts(STORED["attention-matrices.svg"])
    assert drawn.count("−∞") == 6 and {"X (4, 4)", "Kᵀ (3, 4)", "V (4, 3)", "scores (4, 4)"} <= set(drawn)
    best = m["weights"][3].argmax()
    assert (
        f"“{attention.WORDS[best]}” have the score {m['scores'][3, best]:.1f}" in STORED["attention-matrices.svg"].alt
    )
    assert f"weight {m['weights'][3, best]:.2f}" in STORED["attention-matrices.svg"].alt


def test_the_cut_into_heads_keeps_positions_and_the_reshape_does_not():
    found = attention.split_and_reshaped(4, 8, 2)
    for h in range(2):
        positions, channels = found["right"][:, h]
        assert (positions == np.arange(4)[:, None]).all() and (channels == np.arange(4 * h, 4 * h + 4)).all()
    assert set(found["wrong"][0, 0].ravel()) == {0, 1} and set(found["wrong"][0, 1].ravel()) == {2, 3}
    assert "head 0 holds positions 0 and 1 only," in texts(STORED["split-heads.svg"])


def test_the_norm_is_on_the_side_road_or_on_the_road():
    d = STORED["norm-places.svg"]
    assert texts(d).count("LayerNorm") == 4 and texts(d).count("× slope") == 2
    places = [float(e.get("y")) for e in ET.fromstring(d.svg).iter(f"{SVG}text") if e.text == "LayerNorm"]
    pluses = [float(e.get("cy")) for e in ET.fromstring(d.svg).iter(f"{SVG}circle")]
    above, on_it = [y - p for y, p in zip(places, pluses)][:2], [y - p for y, p in zip(places, pluses)][2:]
    assert max(above) < -30 and max(map(abs, on_it)) < 10


def test_a_window_has_an_example_for_each_target():
    d = sketches.draw_window_examples("to be or not", 5)
    check_legible(d)
    drawn = texts(d)
    assert "5 examples" in drawn and [f"{n} token{'s' * (n > 1)} read" in drawn for n in range(1, 6)] == [True] * 5
    assert "after “to␣b” comes “e”; after “to␣be” comes “␣”." in d.alt
    with pytest.raises(ValueError):
        sketches.draw_window_examples("hello", 5)


def test_a_look_up_is_a_product_with_a_one_hot_row():
    tokens, table, one_hot, positions, total = of_text.lookup_numbers()
    assert np.allclose(one_hot @ table + positions[2], total) and tokens[one_hot.argmax()] == "l"
    drawn = " ".join(texts(STORED["lookup.svg"])).replace("−", "-")
    assert " ".join(f"{v:.1f}" for v in total + 0.0) in drawn


def test_the_map_shows_where_vectors_differ_most(monkeypatch):
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(40, 2)) * (5, 2)
    turned, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    places, share = of_text.map_of_vectors(np.hstack([plane, np.zeros((40, 4))]) @ turned + 3)
    assert share == pytest.approx(1)
    for one in (plane - plane.mean(axis=0), places):
        assert np.linalg.norm(one[3] - one[7]) == pytest.approx(np.linalg.norm(plane[3] - plane[7]))
    moved = of_text.apart(rng.normal(size=(30, 2)), 0.3)
    far = np.hypot(*(moved[:, None] - moved[None]).T) + 9 * np.eye(30)
    assert far.min() > 0.29
    shown = []
    monkeypatch.setattr("course_lib.views.figures.display", shown.append)
    poet = load_checkpoint("shakespeare-gpt")
    sketches.plot_embedding_map(poet.model, poet.tokenizer)
    assert "5 vowels, 21 consonants, 26 capitals, 13 other signs" in shown[0].alt
    market = load_checkpoint("market-gpt")
    with pytest.raises(ValueError, match="single characters"):
        sketches.plot_embedding_map(market.model, market.tokenizer)


# ---- generation, what a model does inside, training -----------------------------------------------------------------


def test_the_cache_counts_what_is_computed():
    d = sketches.draw_cache("to be")
    check_legible(d)
    drawn = texts(d)
    assert "1 + 2 + … + 5 = 15 computed" in drawn and "5 computed, the rest is kept" in drawn
    cells = {kind: d.svg.count(f'fill="{TONES[kind][0]}"') - 1 for kind in ("blue", "orange", "grey")}  # 1: the legend
    assert cells == {"blue": 10, "orange": 10, "grey": 10}  # new, computed again, kept: 2 · 5, and 1 + 2 + 3 + 4 twice


def test_a_beam_is_a_tree_of_what_beam_search_held():
    model = get_track("numpy").Transformer(TransformerConfig(9, 9, 16, 2, 1, 32, 0.0, 12, init="uniform"), 4)
    source, name = np.array([4, 5, 6]), "abcdefghi".__getitem__
    steps = generation.beam_steps(model, source, 1, 2, 5, 3)
    assert steps[-1] == beam_search(model, source, 1, 2, 5, 3) and [len(step) for step in steps] == [3] * len(steps)
    for before, after in zip(steps, steps[1:]):
        held = {h.ids for h in before}
        assert all(h.ids[:-1] in held or h.ids in held for h in after)
    d = sketches.draw_beam(model, source, 1, 2, 5, 3, name=name)
    check_legible(d)
    drawn, best = texts(d), steps[-1][0]
    for h in (h for step in steps for h in step):
        assert f"{h.score(True):.2f}".replace("-", "−") in drawn
    assert " ".join(map(name, best.ids)) in d.alt
    assert d.svg.count(f'fill="{LIT_FILL}"') == len(best.ids) + (best.ended and best.length <= len(steps))


def test_arcs_are_the_weights():
    tokens, weights = ["Ming", "bought", "pears", "the"], np.array([0.04, 0.25, 0.7, 0.01])
    d = sketches.draw_arcs((tokens, weights))
    check_legible(d)
    widths = [float(e.get("stroke-width")) for e in ET.fromstring(d.svg).iter(f"{SVG}path")]
    assert sorted(widths) == pytest.approx([1 + 8 * 0.25, 1 + 8 * 0.7], abs=0.06)
    assert "“bought” 0.25, “pears” 0.70." in d.alt and "0.04" not in d.svg
    with pytest.raises(ValueError, match="one per token"):
        sketches.draw_arcs((tokens, weights[:2]))
    for quality, fruit in (("fresh", "apples"), ("stale", "bananas")):
        told = f"{quality} . She had tasted the: (“Ming” 0.0., )?“{fruit}” 0.9"
        assert re.search(told, STORED["attention-arcs.svg"].alt)


def test_the_story_of_an_induction_head_and_of_a_note():
    d = sketches.draw_induction("k", "q")
    check_legible(d)
    assert texts(d).count("after k") == 1 and "after k?" in texts(d) and "prediction: q" in texts(d)
    note = sketches.draw_note_and_look(("a", "b", "c"), kept=0.5)
    check_legible(note)
    assert {"1.00", "0.50", "0.25"} <= set(texts(note)) and "2 times rewritten" in " ".join(texts(note))


def test_one_hidden_unit_is_a_column_and_a_row():
    d = sketches.draw_mlp(3, 5)
    check_legible(d)
    lit = [e for e in ET.fromstring(d.svg).iter(f"{SVG}rect") if e.get("fill") == LIT_FILL]
    sizes = [(float(e.get("width")), float(e.get("height"))) for e in lit]
    assert sizes == [(20, 60), (20, 20), (60, 20)] and "W down (12, 3)" in texts(d)
    with pytest.raises(ValueError, match="unit 12 is not one of the 12"):
        sketches.draw_mlp(3, 12)


def test_the_paths_in_the_valley_are_the_optimisers(monkeypatch):
    track, shown = get_track("numpy"), []
    path = learning.valley_path(lambda p: track.SGD(p, 0.01), 3)
    assert np.allclose(path, [(0.99**n, 0.5**n) for n in range(4)])
    monkeypatch.setattr("course_lib.views.figures.display", shown.append)
    sketches.plot_valley({"SGD 0.01": lambda p: track.SGD(p, 0.01)}, 3)
    assert f"SGD 0.01 ends at ({0.99**3:.2f}, 0.12)" in shown[0].alt


def test_a_batch_is_dealt_out_as_train_ddp_does():
    for world, batch in ((2, 8), (4, 8), (3, 12)):
        d = sketches.draw_data_parallel(world, batch)
        check_legible(d)
        drawn = texts(d)
        for rank in range(world):
            start = drawn.index(f"process {rank}") + 1
            dealt = [str(n) for n in range(batch)[rank::world]]
            assert drawn[start : start + len(dealt)] == dealt
    with pytest.raises(ValueError, match="dealt equally"):
        sketches.draw_data_parallel(3, 8)


def test_the_loops_show_what_goes_from_part_to_part():
    poet = load_checkpoint("shakespeare-gpt")
    ids, V = poet.tokenizer.encode("ROMEO:"), len(poet.tokenizer)
    assert poet.model(ids[None])[0].shape == (1, len(ids), V)  # what the boxes say
    for draw, count, back in ((sketches.draw_training_loop, 5, "again"), (sketches.draw_writing_loop, 5, "append it")):
        d = draw()
        check_legible(d)
        drawn = texts(d)
        assert len(drawn) == 2 * count + 1 and drawn[-1].startswith(back)
        assert all(text in d.alt for text in drawn[:-1])
    assert drawn[1:4:2] == ["ids (1, T)", "logits (1, T, V)"]


def test_the_steps_end_with_the_gradients_of_backward():
    Tensor = get_track("numpy").Tensor
    x, b = Tensor([2.0], requires_grad=True), Tensor([0.5], requires_grad=True)
    y = x * 3.0
    c = (y * 2.0 + y * 5.0 + b - 8.0) ** 2  # y is used twice
    steps = sketches.draw_backward_steps(c, {"x": x, "b": b})
    assert x.grad is None  # the graph is as it was
    c.backward()
    last = texts(steps[-1])
    for name, leaf in (("x", x), ("b", b)):
        at = last.index(name)
        assert last[at + 2] == f"grad {leaf.grad[0]:g}"
    assert [d.alt.split(":")[0] for d in steps[1:]] == ["Forward"] * 7 + ["Backward"] * 8
    assert "added to" in "".join(d.alt for d in steps)
    for d in steps:
        boxes = list(text_boxes(d))
        assert all(left >= 4 and right <= d.width - 4 and low <= d.height - 4 for _, left, _, right, low in boxes)
    assert texts(steps[0]).count("?") == 7 and "?" not in last
    with pytest.raises(ValueError, match="single number"):
        sketches.draw_backward_steps(Tensor([1.0, 2.0], requires_grad=True) * x, {})


def test_each_word_asks_all_words():
    words, x = ["Ming", "apples", "bananas", "they"], np.array([[0.0, 0, 2], [2, 1, 0], [2, -1, 0], [1, 1, 0]])
    F, Tensor = get_track("numpy").functional, get_track("numpy").Tensor
    weights = F.softmax(Tensor(x @ x.T)).numpy()
    steps = sketches.draw_attention_steps(words, x)
    for i, d in enumerate(steps):
        check_legible(d)
        drawn = texts(d)
        assert all(f"{w:.2f}" in drawn for w in weights[i])
        assert all(f"{v:.2f}".replace("-", "−") in drawn for v in weights[i] @ x)
        assert d.alt.startswith(f"“{words[i]}” asks") and f"most for “{words[weights[i].argmax()]}”" in d.alt
    with pytest.raises(ValueError, match="4 words need as many vectors"):
        sketches.draw_attention_steps(words, x[:3])
