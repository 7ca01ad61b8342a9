"""The attention view on the kernel's side: what is refused, shown, packed, sent, answered and saved."""

import io
import itertools
import json
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import traitlets
from PIL import Image

from course_lib import jupyter
from course_lib.training import load_checkpoint
from course_lib.views import AttentionLab, attention_view, cells, labels, style
from course_lib.views.attention_widget import assets, codec, page
from course_lib.views.mosaic import Mosaic

HOSTILE = ["<b>", "&", "\n", " ", "$a^$", "", "\t", "你好", "🙂", "שלום", "a\u200bb", "x" * 40]
HOSTILE += ["</script><img src=x onerror=alert(1)>"]
TEXT = "Ming bought apples, not bananas, because they were fresh. She had tasted the"


def softmax_rows(*shape, allow=None, seed=0):
    e = np.exp(2 * np.random.default_rng(seed).normal(size=shape)) * (1 if allow is None else allow)
    return (e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-30)).astype(np.float32)


def causal(size):
    return np.tri(size, dtype=bool)


CAUSAL = causal(3)


def width_of(png):
    image = Image.open(io.BytesIO(png))
    image.load()
    return image.width


# ---- what may be shown, and what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 3), (4, 3, 3), (2, 4, 3, 3)])
def test_all_shapes_are_accepted_and_kept_exactly(shape):
    weights = softmax_rows(*shape)
    view = attention_view(weights, ["a", "b", "c"])
    np.testing.assert_array_equal(view.weights, weights.reshape((1,) * (4 - len(shape)) + shape))


def test_tensors_of_both_tracks_and_lists():
    torch = pytest.importorskip("torch")
    rows = [[1.0, 0.0], [0.25, 0.75]]

    class LikeNumpyTrack:
        def detach(self):
            return self

        def numpy(self):
            return np.array(rows, dtype=np.float32)

    kinds = [
        rows,
        LikeNumpyTrack(),
        np.array(rows, dtype=np.float16),
        torch.tensor(rows, requires_grad=True),
        torch.tensor(rows, dtype=torch.bfloat16),
        torch.tensor(rows, dtype=torch.float64),
    ]
    for weights in kinds:
        np.testing.assert_array_equal(attention_view(weights, ["a", "b"]).weights[0, 0], rows)


def test_shapes_that_do_not_fit_the_tokens_are_named():
    with pytest.raises(
        ValueError, match=r"\(1, 2, 3, 3\) have 3 rows \(queries\) and 3 columns \(keys\).* 4 key tokens"
    ):
        attention_view(softmax_rows(1, 2, 3, 3), list("abcd"))
    with pytest.raises(ValueError, match=r"\(5, 2, 2, 3, 3\) hold several sentences.*one sentence.*weights\[0\]"):
        attention_view(softmax_rows(5, 2, 2, 3, 3), list("abc"))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        attention_view(np.ones(3), list("abc"))
    with pytest.raises(ValueError, match="2 rows .* 3 columns .* 3 query tokens and 2 key tokens"):
        attention_view(softmax_rows(2, 3), ["k", "l"], query_tokens=["q", "r", "s"])
    with pytest.raises(ValueError, match="10000 tokens.*512"):
        attention_view(np.ones((2, 2)), ["a"] * 10_000)
    with pytest.raises(ValueError, match="0 tokens"):
        attention_view(np.ones((0, 0)), [])
    with pytest.raises(TypeError, match="one string, 'abc'"):
        attention_view(softmax_rows(3, 3), "abc")
    with pytest.raises(TypeError, match=r"tokens\[1\] is 7"):
        attention_view(softmax_rows(2, 2), ["a", 7])


def test_cross_attention_has_its_own_query_tokens():
    view = attention_view(softmax_rows(2, 3), ["k0", "k1", "k2"], query_tokens=["q0", "q1"])
    view.query = 1
    assert view.reading().startswith("Query 1 “q1” reads: “k")
    assert "2 queries (rows) on 3 keys (columns)" in view.alternative_text()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named_by_position(bad):
    weights = softmax_rows(2, 2, 3, 3)
    weights[1, 0, 2, 1] = bad
    with pytest.raises(ValueError, match=r"layer 1, head 0, row 2, column 1 holds -?(nan|inf)"):
        attention_view(weights, list("abc"))


def test_masked_scores_can_be_shown_with_allow():
    scores = np.where(CAUSAL, [[-4.0, 0, 0], [1, 2, 0], [0, 1, 9]], -np.inf)
    with pytest.raises(ValueError, match="row 0, column 1 holds -inf.*allow="):
        attention_view(scores, list("abc"), value_limits=None)
    view = attention_view(scores, list("abc"), allow=CAUSAL, value_limits=None)
    assert view.limits == (-4.0, 9.0)
    page.embedded(view.content)  # as JSON, where NaN and infinity are errors
    with pytest.raises(ValueError, match="nan"):
        attention_view(np.where(CAUSAL, scores, np.nan), list("abc"), allow=CAUSAL, value_limits=None)


def test_weights_taken_after_dropout_are_refused():
    with pytest.raises(ValueError, match="row 0, column 0 holds 2: outside 0 to 1.*before dropout"):
        attention_view([[2.0, 0, 0], [0.5, 0.5, 0], [1, 0, 0]], list("abc"))


def test_a_mask_of_the_wrong_polarity_dtype_or_shape_is_refused():
    weights = softmax_rows(3, 3, allow=CAUSAL)
    with pytest.raises(ValueError, match=r"row 0, column 0 holds 1 .*True = may attend"):
        attention_view(weights, list("abc"), allow=~CAUSAL)
    with pytest.raises(ValueError, match="dtype float64.*booleans"):
        attention_view(weights, list("abc"), allow=np.where(CAUSAL, 0, -np.inf))
    with pytest.raises(ValueError, match=r"\(4, 4\).*\(1, 1, 3, 3\)"):
        attention_view(weights, list("abc"), allow=np.ones((4, 4), dtype=bool))
    with pytest.raises(ValueError, match=r"value_limits \(1, 0\)"):
        attention_view(weights, list("abc"), value_limits=(1, 0))


# ---- choices and words -----------------------------------------------------------------------------------------------


def test_every_layer_head_and_query_changes_the_words_and_the_picture():
    view = attention_view(softmax_rows(2, 3, 4, 4), list("abcd"))
    pictures = set()
    for layer, head, query in itertools.product(range(2), range(3), [0, 1, 2, 3]):
        view.layer, view.head, view.query = layer, head, query
        assert f"layer {layer}, head {head}" in view.alternative_text()
        pictures.add(view.static_png()[0])
    assert len(pictures) == 2 * 3 * 4


def test_a_choice_that_does_not_exist_is_refused():
    view = attention_view(softmax_rows(2, 3, 3), list("abc"), head=1)
    for name, value in (("head", 2), ("head", -1), ("layer", 1), ("query", 3), ("query", -1), ("key", 3)):
        with pytest.raises(traitlets.TraitError, match=f"{name} {value} does not exist"):
            setattr(view, name, value)
    for name, value in (("mode", "lines"), ("stage", "softmax"), ("stage", "dot")):
        with pytest.raises(traitlets.TraitError):
            setattr(view, name, value)
    assert (view.layer, view.head, view.query) == (0, 1, None)
    with pytest.raises(TypeError, match="colour is not an option.*hide_first"):
        attention_view([[1.0]], ["a"], colour="red")
    with pytest.raises(traitlets.TraitError, match="head 5 does not exist: there are 2, numbered from 0 to 1"):
        attention_view(softmax_rows(2, 3, 3), list("abc"), head=5)


def test_the_status_line_gives_exact_weights_and_counts_what_is_not_allowed():
    weights = np.array([[1, 0, 0], [0.123456, 0.876544, 0], [0.25, 0.25, 0.5]])
    view = attention_view(weights, ["a", "b", "c"], allow=CAUSAL)
    view.query = 1
    assert view.reading() == "Query 1 “b” reads: “b” (1) 0.876544, “a” (0) 0.123456, 1 not allowed"
    assert view.top_keys(2) == [(2, 0.5), (0, 0.25), (1, 0.25)]
    assert view.top_keys(0) == [(0, 1.0)], "a key that is not allowed is not a key with weight 0"


def test_alternative_text_is_the_same_for_weights_that_differ_in_the_last_digit():
    """Notebooks store it, and another processor gives 0.00327398 where this one gives 0.00327399."""
    row = np.array([0.3, 0.3 + 1e-7, 0.2, 0.1, 0.06, 0.03, 0.004, 0.006 - 1e-7])
    words = []
    for nudge in (1e-8, -1e-8, 2e-7):
        weights = np.tile(row, (8, 1))
        weights[:, 0] += nudge
        weights[:, 6] += nudge
        view = attention_view(weights, list("abcdefgh"))
        view.query = 7
        words.append(view.static_text())
    assert len(set(words)) == 1
    assert words[0].endswith(
        "Query 7 “h” reads: “a” (0) 0.30, “b” (1) 0.30, “c” (2) 0.20, “d” (3) 0.10, “e” (4) 0.06, "
        "the other 3 together 0.04"
    )
    view = attention_view([[0.999, 0.001], [0.0, 1.0]], ["a", "b"], allow=[[True, True], [False, True]])
    view.query = 0
    assert view.alternative_text().endswith("Query 0 “a” reads: “a” (0) 1.00, the other 1 together 0.00")
    view.query = 1
    assert view.alternative_text().endswith("Query 1 “b” reads: “b” (1) 1.00, 1 not allowed")
    view = attention_view(np.full((300, 300), 1 / 300), ["t"] * 300)
    view.query = 0
    assert "“t” (4) 0.00, the other 295 together 0.98" in view.alternative_text()


def test_long_tokens_are_cut_in_the_alternative_text():
    view = attention_view([[1.0]], ["x" * 200])
    for view.query in (None, 0):
        assert "“" + "x" * 23 + "…”" in view.alternative_text()
        assert "x" * 24 not in view.alternative_text()


def test_repr_is_short_numeric_and_the_same_again():
    weights = softmax_rows(12, 12, 128, 128)
    texts = {repr(attention_view(weights, ["t"] * 128, layer=11, head=11)) for _ in range(2)}
    assert len(texts) == 1
    assert len(text := texts.pop()) <= 110
    assert text.startswith("AttentionView(12 layers, 12 heads, 128 queries, 128 keys; layer 11 head 11: row max 0.0")
    changed = weights.copy()
    changed[11, 11] = np.eye(128)
    assert repr(attention_view(changed, ["t"] * 128, layer=11, head=11)) != text


def test_hostile_tokens_are_visible_escaped_and_silent(capfd):
    n = len(HOSTILE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = attention_view(softmax_rows(2, n, n), HOSTILE, title="costs $5 or $6 <i>")
        assert view.content["queries"][:4] == ["<b>", "&", "↵", "␣"]
        for query in range(n):
            view.query = query
            assert labels.quoted(HOSTILE[query]) in view.reading()
        view._repr_mimebundle_()
    assert capfd.readouterr().err == ""


def test_a_title_may_be_a_number():
    assert attention_view([[1.0]], ["a"], title=5).alternative_text().startswith("5: attention weights")


# ---- still pictures --------------------------------------------------------------------------------------------------


def test_cells_that_are_not_allowed_carry_no_number_and_no_zero():
    view = attention_view(softmax_rows(3, 3, allow=CAUSAL), list("abc"), allow=CAUSAL)
    view.static_png()
    texts = [[t.get_text() for t in row] for row in view._picture.numbers]
    assert texts[0] == ["1.00", "", ""]
    wanted = CAUSAL & (view.weights[0, 0] >= 0.05)  # a smaller one says nothing
    np.testing.assert_array_equal(np.array(texts) != "", wanted)
    view.query = 2
    view.static_png()
    texts = np.array([[t.get_text() for t in row] for row in view._picture.numbers])
    assert all(texts[2]) and not any(texts[:2].ravel()), "the row in focus has all its numbers, faded rows none"
    hatched, expected = (patch.get_path().vertices for patch in (view._picture.hatched, cells.hatching(CAUSAL)))
    np.testing.assert_array_equal(hatched, expected)


def test_rows_are_queries_and_columns_are_keys():
    weights = np.array([[0.0, 1.0], [0.25, 0.75]])
    view = attention_view(weights, ["k0", "k1"], query_tokens=["q0", "q1"])
    view.static_png()
    ax = view._picture.ax
    assert [t.get_text() for t in ax.get_yticklabels()] == ["q0", "q1"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["k0", "k1"]
    np.testing.assert_allclose(view._picture.image.get_array(), style.SEQUENTIAL(np.sqrt(weights)))
    assert {"query", "key: the token it looks at"} <= {t.get_text() for t in ax.texts}


def test_numbers_and_labels_are_left_out_when_there_is_no_room():
    few, many = (attention_view(softmax_rows(n, n), ["token"] * n)._picture for n in (10, 11))
    assert few.numbers
    assert not many.numbers
    picture = attention_view(softmax_rows(512, 512), ["token"] * 512)._picture
    assert len(picture.ax.get_yticklabels()) < 60


def test_saved_output_has_picture_and_words_beside_the_widget():
    for weights in (softmax_rows(3, 3), softmax_rows(2, 2, 3, 3)):
        view = attention_view(weights, ["a", "<b>", "$c^$"], title="One")
        data, metadata = view._repr_mimebundle_()
        assert {"image/png", "text/plain"} <= set(data)
        assert data["text/plain"] == repr(view)
        assert metadata["image/png"]["alt"] == view.static_text()
        assert width_of(view.static_png()[0]) >= metadata["image/png"]["width"]
        assert view._repr_mimebundle_()[0]["image/png"] == data["image/png"], "the bytes are the same each time"


def test_a_mosaic_keeps_the_largest_of_the_cells_that_share_a_pixel_and_hatches_the_rest():
    matrix = np.zeros((100, 100))
    matrix[60, 20] = 1.0  # one cell of 10,000
    allow = np.tril(np.ones((100, 100), dtype=bool))
    mosaic = Mosaic(1.0, 1.0, (0, 1))
    mosaic.put(matrix, allow, 0.25, 0.25, 20 / 144, 20 / 144)
    panel = mosaic.pixels[36:56, 36:56]
    first, last = (tuple(np.rint(255 * np.array(style.SEQUENTIAL(v)))) for v in (0.0, 1.0))
    assert tuple(panel[12, 4]) == last
    assert tuple(panel[12, 5]) == first
    stripes = {tuple(pixel) for pixel in panel[0, 2:]}
    assert len(stripes) == 2 and first not in stripes
    assert not mosaic.pixels[:36].any(), "nothing outside the panel"


@pytest.mark.parametrize("shape", [(1, 2), (1, 9), (3, 2), (12, 12)])
def test_the_grid_shows_every_head(shape):
    allow = np.tril(np.ones((4, 4), dtype=bool))
    view = attention_view(softmax_rows(*shape, 4, 4, allow=allow), list("abcd"), allow=allow)
    png, width = view.static_png()
    assert width_of(png) == pytest.approx(width * 1.5, abs=2)
    assert width <= 720


def test_a_picture_looks_the_same_whatever_style_the_notebook_chose():
    def drawn():
        return attention_view(softmax_rows(2, 3, 3), list("abc")).static_png()[0]

    plain = drawn()
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context(
        {"font.size": 20, "axes.facecolor": "black", "text.parse_math": True, "lines.linewidth": 9}
    ):
        assert drawn() == plain
    assert dict(matplotlib.rcParams) == before


# ---- packing --------------------------------------------------------------------------------------------------------


def unpacked(data, allow, code):
    """Return what the browser makes of a packed layer: values where ``allow`` (H, Q, K) is True, NaN elsewhere."""
    low, high = code
    values = np.full(allow.shape, np.nan)
    values[allow] = low + np.frombuffer(data, "<u2") * ((high - low) / codec.STEPS)
    return values


@pytest.mark.parametrize("masks", ["none", "causal", "one per head"])
def test_packed_weights_come_back_within_1e_4(masks):
    rng = np.random.default_rng(1)
    allow = {"none": None, "causal": causal(9), "one per head": rng.random((2, 3, 9, 9)) < 0.6}[masks]
    weights = softmax_rows(2, 3, 9, 9, allow=allow)
    view = attention_view(weights, list("abcdefghi"), allow=allow)
    mask = np.broadcast_to(True if allow is None else allow, weights.shape)
    for layer, data in enumerate(view.content["layers"]):
        assert len(data) == 2 * mask[layer].sum(), "two bytes for each allowed cell, none for others"
        back = unpacked(data, mask[layer], view.content["code"])
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


def test_the_page_of_144_heads_of_64_tokens_is_small():
    view = attention_view(softmax_rows(12, 12, 64, 64, allow=causal(64)), ["t"] * 64, allow=causal(64))
    assert len(view.to_html()) < 2e6


def test_scores_span_their_own_range():
    view = attention_view([[-4.0, 9.0], [1.0, 2.0]], ["a", "b"], value_limits=None)
    back = unpacked(view.content["layers"][0], np.ones((1, 2, 2), dtype=bool), view.content["code"])
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
    assert len(sent) == 1, "questions about what is not shown are not answered"
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


def test_every_choice_is_a_synced_trait():
    view = attention_view(softmax_rows(2, 3, 4, 4), list("abcd"), query=1, key=2, mode="arcs", per_head=True)
    for name in view.choices:
        assert view.trait_metadata(name, "sync"), name
    assert view.weight == pytest.approx(float(view.weights[0, 0, 1, 2]))
    view.key = None
    assert view.weight is None


def test_rows_that_do_not_sum_to_1_are_named():
    weights = softmax_rows(2, 2, 3, 3)
    weights[1, 0, 2] *= 0.5
    with pytest.warns(UserWarning, match="1 of 12 rows .* layer 1, head 0, query 2: 0.5"):
        view = attention_view(weights, list("abc"))
    assert view.content["notes"]
    allow = causal(3).copy()
    allow[0] = False  # the weights of a row in which nothing is allowed are rightly 0
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
    with pytest.warns(UserWarning, match="differs from these weights"):
        attention_view(weights, list("abc"), queries=q, keys=k, scale=1.0)


def _broken(array):
    array = array.copy()
    array.flat[:2] = np.nan
    return array


# ---- pages and files ------------------------------------------------------------------------------------------------


def test_a_page_carries_tokens_as_text(tmp_path):
    tokens = ["</script><img src=x onerror=alert(1)>", "\n", " ", "$a^$", "你", "שלום"]
    view = attention_view(softmax_rows(6, 6), tokens, title="<i>title</i>")
    text = view.to_html(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == text
    assert "<img" not in text and "<i>" not in text and text.count("</script>") == 3
    state = json.loads(text.split('id="state">')[1].split("</script>")[0])
    assert state["content"]["keys"] == ["</script><img␣src=x␣onerror=alert(1)>", "↵", "␣", "$a^$", "你", "שלום"]


def test_a_save_keeps_the_picture_and_drops_the_live_view():
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
    jupyter.pictures_only(model=model, path="x.ipynb", contents_manager=None)
    assert set(outputs[0]["data"]) == {"image/png", "text/plain"}
    assert outputs[1]["data"] == slider, "an output without a picture stays as it is"
    assert model["content"]["metadata"] == {"kernelspec": {}}
    for other in ({"type": "file", "content": "text"}, {"type": "notebook", "content": None}):
        jupyter.pictures_only(model=dict(other))


def test_the_browsers_part_is_complete():
    folder = Path(assets.__file__).parent
    names = {path.stem for path in (folder / "js").glob("*.js")}
    assert names == set(assets.PARTS), "a file is not joined, or a name has no file"
    source = assets.script()
    assert source.count("export ") == 1 and source.rstrip().endswith("export default { render };")
    assert "import(" not in source and "innerHTML" not in source and "insertAdjacent" not in source


# ---- the laboratory -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["numpy", "torch"])
def lab(request):
    return AttentionLab(load_checkpoint("market-gpt", request.param), TEXT)


def test_the_laboratory_shows_what_the_model_does(lab):
    lab.text, lab.off, lab.causal, lab.scaled, lab.temperature = TEXT, [], True, True, 1.0
    reader = lab.reader
    ids = reader.tokenizer.encode(TEXT)
    np.testing.assert_allclose(lab.weights, reader.model.attention_maps(ids), atol=1e-6)
    assert lab.keys_shown == tuple(reader.tokenizer.tokens(ids))
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
    assert lab.keys_shown == ("Ming", "bought")
    assert lab.content["lab"]["note"] == "“app” … apples?"
    lab.text = "Ming bought <b> kiwis, not  pears "
    assert lab.keys_shown == ("Ming", "bought", ",", "not", "pears")
    assert "“<”, “b”, “>”, “kiwis”" in lab.content["lab"]["note"]
    lab.text = "zzz"
    assert lab.keys_shown[-1] == "pears" and "type something" in lab.content["lab"]["note"], "the last picture stays"
    lab.text = "apples " * 60
    assert len(lab.keys_shown) == 38 and "the last 38 of 60" in lab.content["lab"]["note"]
    lab.query = 37
    lab.text = "apples pears"
    assert lab.query == 1, "the last query stays the last"
    lab.text, lab.query = "apples pears plums", 1
    lab.text = "apples"
    assert lab.query is None, "another one beyond the end of the sentence is unlocked"
    with pytest.raises(ValueError, match="contains no token the model knows"):
        AttentionLab(lab.reader, "zzz")


def test_weights_shown_are_before_dropout_in_any_mode():
    from course_lib.common.config import GPTConfig
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
