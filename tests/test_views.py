"""The attention view, the figures and the live plot, tested on their data: pixels change with matplotlib's version."""

import io
import itertools
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import traitlets
from PIL import Image

from course_lib import views
from course_lib.views import attention_view, cells, figures, labels, live, matrices, plots, style
from course_lib.views.mosaic import Mosaic

CAUSAL = np.tril(np.ones((3, 3), dtype=bool))
HOSTILE = [
    "<b>",
    "&",
    "\n",
    " ",
    "$a^$",
    "",
    "\t",
    "你好",
    "🙂",
    "שלום",
    "a\u200bb",
    "</script><img src=x onerror=alert(1)>",
    "x" * 40,
]


def softmax_rows(*shape, allow=None, seed=0):
    scores = np.random.default_rng(seed).normal(size=shape)
    e = np.exp(scores) * (1 if allow is None else allow)
    return e / e.sum(axis=-1, keepdims=True)


def decoded(png):
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


# ---- what may be shown, and what is refused -------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"\(5, 1, 2, 3, 3\).*batch of 5.*weights\[0\]"):
        attention_view(softmax_rows(5, 1, 2, 3, 3), list("abc"))
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
def test_values_that_are_not_finite_are_named_by_place(bad):
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
    with pytest.raises(ValueError, match="nan"):
        attention_view(np.where(CAUSAL, scores, np.nan), list("abc"), allow=CAUSAL, value_limits=None)


def test_weights_taken_after_dropout_are_noticed():
    with pytest.raises(ValueError, match="row 0, column 0 holds 2: outside 0 to 1.*before dropout"):
        attention_view([[2.0, 0, 0], [0.5, 0.5, 0], [1, 0, 0]], list("abc"))


def test_mask_of_the_wrong_polarity_or_kind_is_noticed():
    weights = softmax_rows(3, 3, allow=CAUSAL)
    with pytest.raises(ValueError, match=r"row 0, column 0 holds 1 .*True = may look"):
        attention_view(weights, list("abc"), allow=~CAUSAL)
    with pytest.raises(ValueError, match="dtype float64.*booleans"):
        attention_view(weights, list("abc"), allow=np.where(CAUSAL, 0, -np.inf))
    with pytest.raises(ValueError, match=r"\(4, 4\).*\(1, 1, 3, 3\)"):
        attention_view(weights, list("abc"), allow=np.ones((4, 4), dtype=bool))
    with pytest.raises(ValueError, match=r"value_limits \(1, 0\)"):
        attention_view(weights, list("abc"), value_limits=(1, 0))


# ---- choices, numbers and words -------------------------------------------------------------------------------------


def test_every_choice_changes_the_words_and_the_picture():
    view = attention_view(softmax_rows(2, 3, 4, 4), list("abcd"))
    pictures = set()
    for layer, head, query in itertools.product(range(2), range(3), [0, 1, 2, 3]):
        view.layer, view.head, view.query = layer, head, query
        assert f"layer {layer}, head {head}" in view.alternative_text()
        pictures.add(view.static_png()[0])
    assert len(pictures) == 2 * 3 * 4


def test_a_choice_that_does_not_exist_is_refused():
    view = attention_view(softmax_rows(2, 3, 3), list("abc"), head=1)
    for name, value in (("head", 2), ("head", -1), ("layer", 1), ("query", 3)):
        with pytest.raises(traitlets.TraitError, match=f"{name} {value} does not exist"):
            setattr(view, name, value)
    assert (view.layer, view.head, view.query) == (0, 1, None)
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


def test_visible_forms():
    assert [labels.visible(t) for t in ["<b>", "&", "\n", " ", "$a^$"]] == ["<b>", "&", "↵", "␣", "$a^$"]
    assert labels.escaped("<b>") == "&lt;b&gt;"
    assert labels.escaped("&") == "&amp;"
    assert labels.visible("a b\t\u202e") == "a␣b⇥\\u202e"
    assert labels.drawn("x" * 40) == "x" * 13 + "…"
    assert labels.drawn("\U000e0000") != "\U000e0000"


# ---- pictures -------------------------------------------------------------------------------------------------------


def hatched_cells(patch, shape):
    centres = [(j, i) for i in range(shape[0]) for j in range(shape[1])]
    return patch.get_path().contains_points(centres).reshape(shape)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (6, 4)])
def test_hatching_covers_exactly_what_is_not_allowed(shape):
    allowed = np.random.default_rng(1).random(shape) < 0.5
    np.testing.assert_array_equal(hatched_cells(cells.hatching(allowed), shape), ~allowed)
    assert cells.hatching(np.ones(shape, dtype=bool)) is None


def test_cells_that_are_not_allowed_carry_no_number_and_no_zero():
    view = attention_view(softmax_rows(3, 3, allow=CAUSAL), list("abc"), allow=CAUSAL)
    view.static_png()
    texts = [[t.get_text() for t in row] for row in view._picture.numbers]
    assert texts[0] == ["1.00", "", ""]
    assert all(text for text, may in zip(np.ravel(texts), CAUSAL.ravel(), strict=True) if may)
    np.testing.assert_array_equal(hatched_cells(view._picture.hatched, (3, 3)), ~CAUSAL)


def test_rows_are_queries_and_columns_are_keys():
    weights = np.array([[0.0, 1.0], [0.25, 0.75]])
    view = attention_view(weights, ["k0", "k1"], query_tokens=["q0", "q1"])
    view.static_png()
    ax = view._picture.ax
    assert [t.get_text() for t in ax.get_yticklabels()] == ["q0", "q1"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["k0", "k1"]
    np.testing.assert_allclose(view._picture.image.get_array(), style.SEQUENTIAL(weights))
    assert {"query: the token that looks", "key: the token it looks at"} <= {t.get_text() for t in ax.texts}


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
        assert decoded(view.static_png()[0]).width >= metadata["image/png"]["width"]
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
    assert decoded(png).width == pytest.approx(width * 1.5, abs=2)
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


# ---- figures --------------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """What the cells of a notebook would display."""
    outputs = []

    class Handle:
        def update(self, thing):
            outputs.append(thing)

    def display(thing, display_id=None):
        outputs.append(thing)
        return Handle() if display_id else None

    monkeypatch.setattr(figures, "display", display)
    monkeypatch.setattr(live, "display", display)
    return outputs


MAKERS = {
    "losses": lambda alt: views.plot_losses(
        {"a": [3.0, 2, 1], "b": [2.0, 1, 1]}, floor=("floor", 0.5), alt=alt, title="T $x^$"
    ),
    "lines": lambda alt: views.plot_lines({"a": [1.0, 2], "b": [1.0, 0.1]}, x=[1, 10], log_x=True, log_y=True, alt=alt),
    "bars": lambda alt: views.plot_bars(
        ["a", "\n", "$a^$", "a rather long label"], [1, 2, 3, 4], highlight=[1], floor=2, alt=alt
    ),
    "flat bars": lambda alt: views.plot_bars(["a", "b"], [0.1, 0.9], horizontal=True, alt=alt),
    "heat map": lambda alt: views.plot_heatmap([[1, -2], [np.nan, 3]], ["$a^$", "<b>"], ["x", "y"], alt=alt, title="T"),
    "large heat map": lambda alt: views.plot_heatmap(np.eye(40), alt=alt, allow=np.tril(np.ones((40, 40), dtype=bool))),
}


@pytest.mark.parametrize("name", MAKERS)
def test_each_figure_shows_a_picture_and_its_words(name, shown):
    MAKERS[name]("Two <b>lines</b>,\n falling")
    picture, words = shown
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == "Figure: Two <b>lines</b>, falling"
    assert metadata["image/png"]["alt"] == "Two <b>lines</b>, falling"
    assert decoded(picture.png).width == pytest.approx(metadata["image/png"]["width"] * 1.5, abs=2)
    html = words._repr_mimebundle_()["text/html"]
    assert "Figure: Two &lt;b&gt;lines&lt;/b&gt;, falling" in html
    assert "jp-sr-only" in html
    shown.clear()
    MAKERS[name]("Two <b>lines</b>,\n falling")
    assert shown[0].png == picture.png, "the bytes are the same each time"


def test_a_figure_without_words_is_refused_before_anything_is_shown(shown):
    with pytest.raises(ValueError, match="alt="):
        views.plot_lines({"a": [1.0]}, alt=" ")
    with pytest.raises(TypeError, match="alt"), views.figure():
        pass
    assert shown == []


def test_figure_gives_axes_in_the_courses_style(shown):
    with views.figure(6, 3, alt="Three panels", columns=3) as axes:
        for ax in axes:
            ax.plot([1, 2])
    assert len(axes) == 3
    assert axes[0].lines == [] or len(shown) == 2, "shown, then cleared"
    with pytest.raises(ZeroDivisionError), views.figure(alt="never shown"):
        1 / 0  # noqa: B018
    assert len(shown) == 2


def axes():
    return style.card_figure(4, 3).subplots()


def test_losses_are_drawn_as_they_are():
    losses = np.linspace(3, 1, 400)
    ax = axes()
    plots.draw_losses(ax, {"run": losses}, floor=0.5)
    pale, strong, floor = ax.lines
    np.testing.assert_array_equal(pale.get_ydata(), losses)
    np.testing.assert_array_equal(pale.get_xdata(), np.arange(1, 401))
    np.testing.assert_allclose(strong.get_ydata(), [losses[max(0, n - 5) : n + 6].mean() for n in range(400)])
    assert floor.get_ydata()[0] == 0.5
    ax = axes()
    plots.draw_losses(ax, {"run": losses}, smooth=1)
    assert len(ax.lines) == 1


def test_long_curves_are_thinned_and_keep_their_last_point():
    x, y = plots.thinned(np.arange(100_001), np.arange(100_001) * 2)
    assert len(x) <= 2001
    assert (x[0], x[-1], y[-1]) == (0, 100_000, 200_000)


def test_heat_map_colours_follow_the_values():
    ax = axes()
    image = matrices.draw_heatmap(ax, [[-1.0, 2.0], [0.0, 1.0]])
    assert (image.norm.vmin, image.norm.vmax) == (-2, 2)
    assert image.cmap.name == "blue_orange"
    assert [t.get_text() for t in ax.texts] == ["-1.00", "2.00", "0.00", "1.00"]
    assert matrices.draw_heatmap(axes(), [[1.0, 2.0]]).cmap.name == "cividis"
    ax = axes()
    matrices.draw_heatmap(ax, np.ones((3, 3)), allow=CAUSAL)
    np.testing.assert_array_equal(hatched_cells(ax.patches[0], (3, 3)), ~CAUSAL)


@pytest.mark.parametrize(
    ("matrix", "options", "words"),
    [
        (np.ones((2, 3)), {"row_labels": "abc"}, r"3 row labels for the 2 rows of a matrix \(2, 3\)"),
        (np.ones((2, 3)), {"column_labels": ["a"]}, r"1 column labels for the 3 columns"),
        (np.ones((2, 3)), {"limits": (1, 1)}, r"limits \(1.0, 1.0\)"),
        (np.ones((2, 3)), {"limits": (0, np.nan)}, "limits"),
        (np.ones((2, 3)), {"limits": (2, 1)}, "the smaller first"),
        (np.ones((2, 3)), {"allow": np.ones((3, 2), dtype=bool)}, r"allow has shape \(3, 2\), the matrix \(2, 3\)"),
        (np.ones((2, 3)), {"allow": np.ones((2, 3))}, "dtype float64: expected booleans"),
        (np.ones(3), {}, r"matrix of shape \(3,\).*2 axes"),
        (np.ones((0, 3)), {}, r"shape \(0, 3\)"),
    ],
)
def test_a_heat_map_that_does_not_fit_is_refused_with_numbers(matrix, options, words, shown):
    with pytest.raises(ValueError, match=words):
        views.plot_heatmap(matrix, alt="A matrix", **options)
    with pytest.raises(ValueError, match=words):
        matrices.draw_heatmap(axes(), matrix, **options)
    assert shown == []


def test_figures_take_tensors_of_both_tracks(shown):
    torch = pytest.importorskip("torch")
    from course_lib.numpy_track.tensor import Tensor

    for make in (Tensor, torch.tensor):
        matrix, row = make([[1.0, 2.0]], requires_grad=True), make([3.0, 2.0], requires_grad=True)
        image = matrices.draw_heatmap(axes(), matrix, allow=torch.tensor([[True, True]]))
        np.testing.assert_array_equal(image.get_array(), [[1, 2]])
        views.plot_heatmap(matrix, alt="Two numbers")
        views.plot_bars(["a", "b"], row, alt="Two bars")
        views.plot_bars(["a", "b"], [row[0], row[1]], alt="Two bars")
        views.plot_lines({"a": row}, alt="A line")


def test_bars_that_do_not_fit_are_refused(shown):
    with pytest.raises(ValueError, match="3 labels for 2 values"):
        views.plot_bars("abc", [1, 2], alt="Bars")
    with pytest.raises(ValueError, match=r"values of shape \(0,\)"):
        views.plot_bars([], [], alt="Bars")
    assert shown == []


def test_one_value_that_is_not_finite_does_not_erase_the_smoothed_curve():
    values = np.array([1.0, np.nan, 3.0, np.inf, 5.0, 7.0, 9.0])
    np.testing.assert_allclose(plots.smoothed(values, 3), [1, 2, 3, 4, 6, 7, 8])
    np.testing.assert_array_equal(plots.smoothed([np.nan, np.nan, np.nan, 4.0], 3), [np.nan, np.nan, 4, 4])


def test_dollars_in_legends_and_boxes_are_dollars(shown):
    from course_lib.numpy_track.tensor import Tensor

    views.plot_lines({"$a^$": [1.0, 2.0], "b": [2.0, 1.0]}, alt="Two lines")
    views.plot_losses({"a": [1.0, 2.0]}, floor=("$a^$", 0.5), alt="A loss")
    plot = views.LivePlot(label="$a^$")
    plot.update(types.SimpleNamespace(losses=[1.0]))
    price = Tensor(2.0, requires_grad=True)
    views.plot_graph(price * price, {"$a^$": price}, alt="A square")
    assert len(shown) == 8


@pytest.mark.parametrize("many", [False, True])
def test_a_legend_that_would_lie_on_the_lines_stands_above_the_axes(many):
    fig = style.card_figure(7.0, 3.2, layout="constrained")
    ax = fig.subplots()
    plots.draw_lines(ax, {f"line {n}": [n, n + 1.0] for n in range(4 if many else 3)})
    assert len(fig.legends) == many and (ax.get_legend() is None) == many


def test_a_graph_with_shared_nodes_is_drawn_in_no_time(shown):
    from course_lib.numpy_track.tensor import Tensor
    from course_lib.views import graphs

    class Node:
        pass

    nodes = [Node() for _ in range(41)]
    parents = {id(later): (node, node) for node, later in itertools.pairwise(nodes)} | {id(nodes[0]): ()}
    reversed_order = graphs._columns(nodes[-1], parents)  # 2 ** 40 steps, were each way counted
    assert [column[0] for column in reversed_order] == nodes
    k = Tensor(1.0, requires_grad=True)
    total = k
    for _ in range(8):
        total = total + total
    views.plot_graph(total, {"k": k}, alt="A number doubled eight times")
    assert k.grad == 256


def test_a_graph_that_cannot_be_drawn_is_refused_before_backward_runs(shown):
    from course_lib.numpy_track.tensor import Tensor

    x = Tensor([1.0, 2.0], requires_grad=True)
    total = (x * x).sum()
    with pytest.raises(ValueError, match="alt="):
        views.plot_graph(total, {}, alt=" ")
    with pytest.raises(TypeError, match=r"NumPy track; this is float"):
        views.plot_graph(1.0, {}, alt="A number")
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        views.plot_graph(x * x, {}, alt="Two numbers")
    assert x.grad is None
    total.backward()  # not used up


def test_a_title_may_be_a_number():
    assert attention_view([[1.0]], ["a"], title=5).alternative_text().startswith("5: attention weights")


# ---- the live plot --------------------------------------------------------------------------------------------------


def test_live_plot_replaces_one_output_and_its_text_never_changes(shown):
    history = types.SimpleNamespace(losses=[])
    plot = views.LivePlot(every_seconds=0, alt="The loss falls")
    plot._due = 0
    for step in range(3):
        history.losses.append(3.0 - step)
        plot._due = 0  # as if enough time had passed
        plot.update(history)
    plot.close()
    assert plot.redraws == 3, "close has nothing to add when the last state is shown"
    assert {repr(output) for output in shown} == {"Figure: The loss falls", "The loss falls"}
    assert len({output.png for output in shown if isinstance(output, figures.Picture)}) == 3


@pytest.mark.parametrize("wrong", [{"alt": ""}, {"alt": None}, {"every_seconds": float("nan")}, {"every_seconds": -1}])
def test_live_plot_complains_before_the_training(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        views.LivePlot(**wrong)


def test_live_plot_waits_between_redraws_and_draws_the_end(shown):
    history = types.SimpleNamespace(losses=[])
    with views.LivePlot(every_seconds=60) as plot:
        for step in range(1000):
            history.losses.append(float(step))
            plot.update(history)
        assert plot.redraws == 1
    assert plot.redraws == 2
    assert plot._drawn == 1000
    views.LivePlot().close()  # nothing was trained: nothing to draw, no error


# ---- the package ----------------------------------------------------------------------------------------------------


TEXTS = (".py", ".js", ".css", ".html", ".json", ".svg")


def test_nothing_comes_from_the_network_and_nothing_needs_require():
    files = [path for path in Path(views.__file__).parent.rglob("*.*") if path.suffix in TEXTS]
    assert {".py", ".js", ".css"} <= {path.suffix for path in files}
    for path in files:
        text = path.read_text(encoding="utf-8")
        for word in ("http" + "://", "https" + "://", "require(", "requirejs", "cdn."):
            assert word not in text, f"{word} in {path.name}"


def in_a_new_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)


def test_views_import_neither_torch_nor_pyplot():
    done = in_a_new_python(
        "import sys, course_lib.views; print([m for m in ('torch', 'matplotlib.pyplot') if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ["anywidget", "ipywidgets"])
def test_a_missing_package_says_how_to_install_it_where(name):
    done = in_a_new_python(f"import sys; sys.modules['{name}'] = None\nimport course_lib.views")
    assert f'"{sys.executable}" -m pip install {name}' in done.stderr


def test_a_strictly_cleaned_page_still_has_picture_and_words(shown):
    """nbconvert's sanitize_html, as on GitHub: no script, no style; the words become a caption."""
    exporters = pytest.importorskip("nbconvert.exporters")
    nbformat = pytest.importorskip("nbformat")
    MAKERS["bars"]("Four bars & a <b>")
    view = attention_view(softmax_rows(2, 3, 3), ["a", "<b>", "c"])
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell("", execution_count=1, outputs=[])]
    for thing in (*shown, view):
        bundle = thing._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data.pop("application/vnd.jupyter.widget-view+json", None)  # committed notebooks carry no live widget
        book.cells[0].outputs.append(nbformat.v4.new_output("display_data", data=data, metadata=metadata))
    page, _ = exporters.HTMLExporter(sanitize_html=True, exclude_input=True).from_notebook_node(book)
    page = page[page.index("<body") :]
    assert page.count("data:image/png;base64,") == 2
    assert re.search("<em[^>]*>Figure: Four bars &amp; a &lt;b&gt;</em>", page)
    assert "&lt;em" not in page, "the markup itself would be shown"
