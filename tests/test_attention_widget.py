"""The attention view on the kernel's side: what is packed, sent, answered, refused, saved. (The browser's: browser/)"""

import ast
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import traitlets

from course_lib import on_save, views
from course_lib.training import load_checkpoint
from course_lib.views import AttentionLab, attention_view
from course_lib.views.attention_widget import assets, codec, page

TEXT = "Ming bought apples, not bananas, because they were fresh. She had tasted the"


def softmax_rows(*shape, allow=None, seed=0):
    e = np.exp(2 * np.random.default_rng(seed).normal(size=shape)) * (1 if allow is None else allow)
    return (e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)).astype(np.float32)


def causal(size):
    return np.tril(np.ones((size, size), dtype=bool))


# ---- packing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masks", ["none", "causal", "one a head"])
def test_packed_weights_come_back_within_1e_4(masks):
    rng = np.random.default_rng(1)
    allow = {"none": None, "causal": causal(9), "one a head": rng.random((2, 3, 9, 9)) < 0.6}[masks]
    weights = softmax_rows(2, 3, 9, 9, allow=allow)
    view = attention_view(weights, list("abcdefghi"), allow=allow)
    mask = np.broadcast_to(True if allow is None else allow, weights.shape)
    for layer, data in enumerate(view.content["layers"]):
        assert len(data) == 2 * mask[layer].sum(), "two bytes for each allowed cell, none for others"
        back = codec.unpack_layer(data, mask[layer], view.content["code"])
        np.testing.assert_array_equal(np.isnan(back), ~mask[layer])
        assert np.abs(back - weights[layer])[mask[layer]].max() <= 0.5 / 65535 + 1e-9
    sent = view.content["mask"]
    if masks == "none":
        assert sent is None
    else:
        heads = 1 if masks == "causal" else 6
        assert sent["shared"] == (heads == 1)
        bits = np.unpackbits(np.frombuffer(sent["bits"], np.uint8).reshape(heads, -1), axis=1)[:, :81]
        np.testing.assert_array_equal(bits.reshape(-1, 9, 9)[0], mask[0, 0])
        np.testing.assert_array_equal(bits.reshape(-1, 9, 9)[-1], mask[1, 2])


def test_12_x_12_x_64_x_64_is_small():
    view = attention_view(softmax_rows(12, 12, 64, 64, allow=causal(64)), ["t"] * 64, allow=causal(64))
    assert sum(map(len, view.content["layers"])) == 2 * 144 * 64 * 65 // 2 < 1.2e6
    assert len(view.to_html()) < 2e6


def test_scores_span_their_own_range():
    view = attention_view([[-4.0, 9.0], [1.0, 2.0]], ["a", "b"], value_limits=None)
    back = codec.unpack_layer(view.content["layers"][0], np.ones((1, 2, 2), dtype=bool), view.content["code"])
    np.testing.assert_allclose(back[0], [[-4, 9], [1, 2]], atol=1e-3)


def test_a_large_model_is_sent_layer_by_layer():
    view = attention_view(softmax_rows(4, 12, 300, 300, allow=causal(300)), ["t"] * 300, allow=causal(300), layer=2)
    assert [data is None for data in view.content["layers"]] == [True, True, False, True], "the layer that is shown"
    sent = []
    view.send = lambda message, buffers=None: sent.append((message, buffers))
    ask = {"kind": "layer", "version": view.content["version"], "layer": 3}
    view._answer(view, ask, [])
    assert sent[0][0] == ask and len(sent[0][1][0]) == 2 * 12 * 300 * 301 // 2
    view._answer(view, {**ask, "version": 0}, [])
    view._answer(view, {**ask, "layer": 4}, [])
    assert len(sent) == 1, "what is not shown is not answered"
    assert None not in json.loads(view.to_html().split('id="state">')[1].split("</script>")[0])["content"]["layers"]


def test_exact_rows_and_columns_come_from_the_kernel():
    weights = softmax_rows(2, 3, 5, 5)
    view = attention_view(weights, list("abcde"))
    sent = []
    view.send = lambda message, buffers: sent.append((message, buffers))
    view._answer(
        view, {"kind": "exact", "version": view.content["version"], "layer": 1, "head": 2, "query": 3, "key": 4}, []
    )
    row, column = (np.frombuffer(buffer, "<f4") for buffer in sent[0][1])
    np.testing.assert_array_equal(row, weights[1, 2, 3])
    np.testing.assert_array_equal(column, weights[1, 2, :, 4])


# ---- choices --------------------------------------------------------------------------------------------------------


def test_every_choice_is_a_trait_that_is_synced_and_checked():
    view = attention_view(softmax_rows(2, 3, 4, 4), list("abcd"), query=1, key=2, mode="arcs", per_head=True)
    for name in view.choices:
        assert view.trait_metadata(name, "sync"), name
    assert view.weight == pytest.approx(float(view.weights[0, 0, 1, 2]))
    for name, value in (("key", 4), ("query", -1), ("mode", "lines"), ("stage", "softmax"), ("stage", "dot")):
        with pytest.raises(traitlets.TraitError):
            setattr(view, name, value)
    view.key = None
    assert view.weight is None
    with pytest.raises(TypeError, match="colour is not a choice.*hide_first"):
        attention_view([[1.0]], ["a"], colour="red")


def test_rows_that_do_not_sum_to_1_are_named():
    weights = softmax_rows(2, 2, 3, 3)
    weights[1, 0, 2] *= 0.5
    with pytest.warns(UserWarning, match="1 of 12 rows .* layer 1, head 0, query 2: 0.5"):
        view = attention_view(weights, list("abc"))
    assert view.content["notes"]
    allow = causal(3).copy()
    allow[0] = False  # a row that may look at nothing has weights 0: that is right
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not attention_view(softmax_rows(3, 3, allow=allow), list("abc"), allow=allow).content["notes"]
        attention_view([[3.0, -1.0]], ["a", "b"], query_tokens=["q"], value_limits=None)


# ---- the three stages -----------------------------------------------------------------------------------------------


def projections(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(2, *shape)).astype(np.float32)


def attend(q, k, allow, scale):
    scores = np.where(allow, q @ k.swapaxes(-1, -2) * scale, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_queries_and_keys_give_the_stages():
    q, k = projections(2, 3, 5, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = attention_view(attend(q, k, causal(5), 0.5), list("abcde"), allow=causal(5), queries=q, keys=k)
    stages = view.content["stages"]
    np.testing.assert_array_equal(np.frombuffer(stages["q"], "<f4").reshape(q.shape), q)
    assert (stages["size"], stages["scale"]) == (4, 0.5)
    dot = q @ k.swapaxes(-1, -2)
    np.testing.assert_allclose(stages["limits"]["dot"], [dot.min(), dot.max()], rtol=1e-6)
    scaled = (dot / 2)[:, :, causal(5)]
    np.testing.assert_allclose(stages["limits"]["scaled"], [scaled.min(), scaled.max()], rtol=1e-6)
    view.stage = "dot"


def test_stages_that_do_not_fit_are_refused_or_noticed():
    q, k = projections(1, 2, 3, 4)
    weights = attend(q, k, True, 0.5)
    with pytest.raises(ValueError, match="keys= is missing"):
        attention_view(weights, list("abc"), queries=q)
    with pytest.raises(ValueError, match=r"queries of shape \(1, 2, 2, 4\).*\(1, 2, 3\) and the head size"):
        attention_view(weights, list("abc"), queries=q[:, :, :2], keys=k)
    with pytest.raises(ValueError, match="head size 3, keys 4"):
        attention_view(weights, list("abc"), queries=q[..., :3], keys=k)
    with pytest.raises(ValueError, match="2 values that are not finite"):
        attention_view(weights, list("abc"), queries=_broken(q), keys=k)
    with pytest.raises(ValueError, match="scale is 0"):
        attention_view(weights, list("abc"), queries=q, keys=k, scale=0)
    with pytest.warns(UserWarning, match="gives other weights"):
        attention_view(weights, list("abc"), queries=q, keys=k, scale=1.0)


def _broken(array):
    array = array.copy()
    array.flat[:2] = np.nan
    return array


# ---- pages and files ------------------------------------------------------------------------------------------------


def test_W02_a_page_carries_tokens_as_text(tmp_path):
    tokens = ["</script><img src=x onerror=alert(1)>", "\n", " ", "$a^$", "你", "שלום"]
    view = attention_view(softmax_rows(6, 6), tokens, title="<i>title</i>")
    text = view.to_html(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == text
    assert "<img" not in text and "<i>" not in text and text.count("</script>") == 3
    state = json.loads(text.split('id="state">')[1].split("</script>")[0])
    assert state["content"]["keys"] == ["</script><img␣src=x␣onerror=alert(1)>", "↵", "␣", "$a^$", "你", "שלום"]
    assert "http" + "://" not in text and "https" + "://" not in text


def test_W04_what_is_sent_is_finite():
    scores = np.where(causal(3), 1.5, -np.inf)
    view = attention_view(scores, list("abc"), allow=causal(3), value_limits=None)
    json.loads(page.embedded(view.content))  # allow_nan=False inside


def test_W06_W07_a_save_keeps_the_picture_and_drops_the_live_view():
    view = attention_view([[1.0]], ["a"])
    data, metadata = view._repr_mimebundle_()
    live = "application/vnd.jupyter.widget-view+json"
    data = {**data, live: {"model_id": "0"}}
    slider = {live: {"model_id": "1"}, "text/plain": "IntSlider"}
    outputs = [
        {"output_type": "execute_result", "data": dict(data), "metadata": metadata},
        {"output_type": "display_data", "data": dict(slider), "metadata": {}},
        {"output_type": "stream", "name": "stdout", "text": "x"},
    ]
    model = {
        "type": "notebook",
        "content": {
            "metadata": {"widgets": {}, "kernelspec": {}},
            "cells": [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}],
        },
    }
    on_save.pictures_only(model=model, path="x.ipynb", contents_manager=None)
    assert set(outputs[0]["data"]) == {"image/png", "text/plain"}
    assert outputs[1]["data"] == slider, "what has no picture keeps what it has"
    assert model["content"]["metadata"] == {"kernelspec": {}}
    for other in ({"type": "file", "content": "text"}, {"type": "notebook", "content": None}):
        on_save.pictures_only(model=dict(other))


def test_W08_W13_the_browsers_part_is_complete_and_in_the_package():
    folder = Path(assets.__file__).parent
    names = {path.stem for path in (folder / "js").glob("*.js")}
    assert names == set(assets.PARTS), "a file that is not joined, or none for a name"
    source = assets.script()
    assert source.count("export ") == 1 and source.rstrip().endswith("export default { render };")
    assert "import(" not in source and "innerHTML" not in source and "insertAdjacent" not in source
    patterns = (Path(views.__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    patterns = ast.literal_eval(next(s for s in patterns.splitlines() if s.startswith("course_lib = ")).split(" = ")[1])
    for path in folder.rglob("*.*"):
        if path.suffix not in (".py", ".pyc"):
            assert "**/*" + path.suffix in patterns, f"{path.name} would not be in the wheel"


# ---- the laboratory -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["numpy", "torch"])
def lab(request):
    return AttentionLab(load_checkpoint("market-gpt", request.param), TEXT)


def test_the_laboratory_shows_what_the_model_does(lab):
    lab.text, lab.off, lab.causal, lab.scaled, lab.temperature = TEXT, [], True, True, 1.0
    reader = lab.reader
    ids = reader.tokenizer.encode(TEXT)
    np.testing.assert_allclose(lab.weights, reader.model.attention_maps(ids), atol=1e-6)
    assert lab.keys_shown == reader.tokenizer.tokens(ids)
    logits = np.asarray(reader.model(ids[None])[0].detach())[0, -1].astype(float)
    e = np.exp(logits - logits.max())
    assert lab.probabilities["apples"] == pytest.approx((e / e.sum())[reader.tokenizer.vocabulary.index("apples")])
    assert lab.probabilities == lab.trained
    assert lab.content["lab"]["next"][0]["longer"] == TEXT + " apples"


def test_switches_move_the_probabilities(lab):
    lab.text = TEXT
    for name, value, back in (("off", [[1, 1]], []), ("causal", False, True), ("scaled", False, True)):
        before = lab.content["version"]
        setattr(lab, name, value)
        assert lab.content["version"] == before + 1
        assert max(abs(lab.probabilities[t] - lab.trained[t]) for t in lab.trained) > 0.01, name
        setattr(lab, name, back)
        assert lab.probabilities == lab.trained
    lab.off = [(1, 0)]
    assert lab.content["off"] == [[1, 0]], "the view marks the head"
    lab.off = []
    lab.temperature = 0.0
    assert sorted(lab.probabilities.values())[-2:] == [0.0, 1.0]
    lab.temperature = 1.0
    lab.causal = False
    assert lab.allow is None and lab.weights[0, 0, 0, 1:].sum() > 0
    lab.causal = True
    for name, value in (("off", [[2, 0]]), ("off", [[0]]), ("temperature", -1.0), ("temperature", float("nan"))):
        with pytest.raises(traitlets.TraitError):
            setattr(lab, name, value)


def test_what_the_model_does_not_know_is_said(lab):
    lab.text = "Ming bought app"
    assert lab.keys_shown == ["Ming", "bought"]
    assert lab.content["lab"]["note"] == "“app” … apples?"
    lab.text = "Ming bought <b> kiwis, not  pears "
    assert lab.keys_shown == ["Ming", "bought", ",", "not", "pears"]
    assert "“<”, “b”, “>”, “kiwis”" in lab.content["lab"]["note"]
    lab.text = "zzz"
    assert lab.keys_shown[-1] == "pears" and "type something" in lab.content["lab"]["note"], "the last picture stays"
    lab.text = "apples " * 60
    assert len(lab.keys_shown) == 38 and "the last 38 of 60" in lab.content["lab"]["note"]
    lab.query = 37
    lab.text = "apples"
    assert lab.query is None, "what is locked beyond the sentence is let go"
    with pytest.raises(ValueError, match="holds no token that the model knows"):
        AttentionLab(lab.reader, "zzz")


def test_T04_weights_shown_are_before_dropout_in_any_mode():
    from course_lib.config import GPTConfig
    from course_lib.numpy_track.models import GPT
    from course_lib.text import CharTokenizer

    class Reader:
        tokenizer = CharTokenizer("abcdefgh")
        model = GPT(GPTConfig(8, dropout=0.5)).train()

    shown = AttentionLab(Reader, "abcabc")
    assert Reader.model.training, "the mode is restored"
    np.testing.assert_allclose(shown.weights.sum(-1), 1, atol=1e-6)
    assert shown.weights.max() <= 1


def test_a_view_of_weights_that_differ_between_machines_says_no_number():
    texts = {
        repr(attention_view([[1, 0], [weight, 1 - weight]], ["a", "b"], head=0, trained_here=True))
        for weight in (0.25, 0.5)
    }
    assert texts == {"AttentionView(1 layer, 1 head, 2 queries, 2 keys; of a model trained in this run)"}
