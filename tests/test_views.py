"""The figures and the live plot, tested on their data: pixels change with matplotlib's version."""

import io
import itertools
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from course_lib import views
from course_lib.numpy_track.tensor import Tensor
from course_lib.views import attention_view, cells, figures, graphs, labels, live, matrices, plots, style


def decoded(png):
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


def hatched_cells(patch, shape):
    centres = [(j, i) for i in range(shape[0]) for j in range(shape[1])]
    return patch.get_path().contains_points(centres).reshape(shape)


# ---- figures --------------------------------------------------------------------------------------------------------


def test_labels_show_what_cannot_be_seen_or_drawn():
    assert labels.visible("a b\t\u202e") == "a␣b⇥\\u202e"
    assert labels.drawn("x" * 40) == "x" * 13 + "…"
    assert labels.drawn("\U000e0000") != "\U000e0000"


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (6, 4)])
def test_hatching_covers_exactly_what_is_not_allowed(shape):
    allowed = np.random.default_rng(1).random(shape) < 0.5
    np.testing.assert_array_equal(hatched_cells(cells.hatching(allowed), shape), ~allowed)
    assert cells.hatching(np.ones(shape, dtype=bool)) is None


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
    "losses": lambda alt: views.plot_losses({"a": [3.0, 2, 1], "b": [2.0, 1, 1]}, floor=("floor", 0.5), alt=alt),
    "lines": lambda alt: views.plot_lines({"a": [1.0, 2], "b": [1.0, 0.1]}, x=[1, 10], log_x=True, log_y=True, alt=alt),
    "bars": lambda alt: views.plot_bars(
        ["a", "\n", "$a^$", "a rather long label"], [1, 2, 3, 4], highlight=[1], alt=alt, title="T $x^$"
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
    for nothing in ("", None):
        with pytest.raises(ValueError, match="alt="):
            views.LivePlot(nothing)
    assert shown == []


def test_a_figure_is_shown_when_its_block_ends_without_an_error(shown):
    with views.figure(6, 3, alt="Three panels", columns=3) as axes:
        assert len(axes) == 3 and shown == []
    assert len(shown) == 2
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


def test_a_line_that_a_later_one_covers_is_wide_enough_to_be_seen():
    x = np.linspace(0, 1, 50)
    for draw in (plots.draw_lines, plots.draw_losses):
        ax = axes()
        draw(ax, {"NumPy": x, "raw PyTorch": x + 1e-9, "other": 1 - x})
        assert [line.get_linewidth() for line in ax.lines][:3] == [5, 1.8, 1.8]
    plots.draw_lines(
        axes(), {"all": [np.nan, np.nan], "nothing": [], "one": [1.0], "inf": [1, np.inf], "more": [1, np.inf]}
    )


def test_the_colour_bar_is_as_high_as_a_flat_map(shown, monkeypatch):
    figures_seen = []
    monkeypatch.setattr(figures, "show", lambda fig, alt: (style.png_bytes(fig), figures_seen.append(fig)))
    for shape in ((4, 90), (20, 3), (6, 6)):
        views.plot_heatmap(np.ones(shape), alt="Cells", width=9, height=3)
        (ax,) = figures_seen[-1].axes
        heat, bar = ax.get_window_extent(), ax.child_axes[0].get_window_extent()
        assert bar.height == pytest.approx(heat.height, abs=2) and heat.x1 < bar.x0 < bar.x1 < figures_seen[-1].bbox.x1


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
    assert matrices.draw_heatmap(axes(), [[1.0, 2.0]]).cmap.name == "paper_blue"
    ax = axes()
    matrices.draw_heatmap(ax, np.ones((3, 3)), allow=np.tri(3, dtype=bool))
    np.testing.assert_array_equal(hatched_cells(ax.patches[0], (3, 3)), ~np.tri(3, dtype=bool))


@pytest.mark.parametrize(
    ("matrix", "options", "words"),
    [
        (np.ones((2, 3)), {"row_labels": "abc"}, r"3 row labels for the 2 rows of a matrix \(2, 3\)"),
        (np.ones((2, 3)), {"column_labels": ["a"]}, r"1 column labels for the 3 columns"),
        (np.ones((2, 3)), {"limits": (1, 1)}, r"limits \(1.0, 1.0\)"),
        (np.ones((2, 3)), {"limits": (0, np.nan)}, "limits"),
        (np.ones((2, 3)), {"limits": (2, 1)}, "the smaller first"),
        (
            np.ones((2, 3)),
            {"allow": np.ones((3, 2), dtype=bool)},
            r"allow has shape \(3, 2\), but the matrix has \(2, 3\)",
        ),
        (np.ones((2, 3)), {"allow": np.ones((2, 3))}, "dtype float64: expected booleans"),
        (np.ones(3), {}, r"matrix of shape \(3,\).*2 axes"),
        (np.ones((0, 3)), {}, r"shape \(0, 3\)"),
    ],
)
def test_a_heat_map_that_does_not_fit_is_refused_with_numbers(matrix, options, words, shown):
    with pytest.raises(ValueError, match=words):
        views.plot_heatmap(matrix, alt="A matrix", **options)
    assert shown == []


def test_figures_take_tensors_of_both_tracks(shown):
    torch = pytest.importorskip("torch")
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
    views.plot_lines({"$a^$": [1.0, 2.0], "b": [2.0, 1.0]}, alt="Two lines")
    views.plot_losses({"a": [1.0, 2.0]}, floor=("$a^$", 0.5), alt="A loss")
    price = Tensor(2.0, requires_grad=True)
    views.plot_graph(price * price, {"$a^$": price}, alt="A square")
    assert len(shown) == 6


@pytest.mark.parametrize("many", [False, True])
def test_a_legend_with_many_entries_is_drawn_above_the_axes(many):
    fig = style.card_figure(7.0, 3.2, layout="constrained")
    ax = fig.subplots()
    plots.draw_lines(ax, {f"line {n}": [n, n + 1.0] for n in range(4 if many else 3)})
    assert len(fig.legends) == many and (ax.get_legend() is None) == many


def test_a_graph_with_shared_nodes_is_drawn_quickly(shown):
    class Node:
        pass

    nodes = [Node() for _ in range(41)]
    parents = {id(later): (node, node) for node, later in itertools.pairwise(nodes)} | {id(nodes[0]): ()}
    reversed_order = graphs.columns_of(nodes[-1], parents)  # 2 ** 40 steps if each path were followed
    assert [column[0] for column in reversed_order] == nodes
    k = Tensor(1.0, requires_grad=True)
    total = k
    for _ in range(8):
        total = total + total
    views.plot_graph(total, {"k": k}, alt="A number doubled eight times")
    assert k.grad == 256


def test_a_graph_that_cannot_be_drawn_is_refused_before_backward_runs(shown):
    x = Tensor([1.0, 2.0], requires_grad=True)
    total = (x * x).sum()
    with pytest.raises(ValueError, match="alt="):
        views.plot_graph(total, {}, alt=" ")
    with pytest.raises(TypeError, match=r"NumPy track; got a float"):
        views.plot_graph(1.0, {}, alt="A number")
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        views.plot_graph(x * x, {}, alt="Two numbers")
    assert x.grad is None
    total.backward()  # not used up


# ---- the live plot --------------------------------------------------------------------------------------------------


def test_live_plot_replaces_one_output_and_its_text_never_changes(shown):
    history = types.SimpleNamespace(losses=[])
    plot = views.LivePlot(alt="The loss falls")
    for step in range(3):
        history.losses.append(3.0 - step)
        plot._due = 0  # as if enough time had passed
        plot.update(history)
    plot.close()
    assert plot.redraws == 3, "close has nothing to add when the last state is shown"
    assert {repr(output) for output in shown} == {"Figure: The loss falls", "The loss falls"}
    assert len({output.png for output in shown if isinstance(output, figures.Picture)}) == 3


def test_live_plot_waits_between_redraws_and_draws_the_end(shown, monkeypatch):
    monkeypatch.setattr(live, "EVERY_SECONDS", 60)
    history, plot = types.SimpleNamespace(losses=[]), views.LivePlot()
    for step in range(1000):
        history.losses.append(float(step))
        plot.update(history)
    assert plot.redraws == 1
    plot.close()
    assert plot.redraws == 2
    assert plot._drawn == 1000
    views.LivePlot().close()  # nothing was trained: nothing to draw, no error


# ---- the package ----------------------------------------------------------------------------------------------------


TEXTS = (".py", ".js", ".css", ".html", ".json", ".svg")


def test_nothing_comes_from_the_network_and_nothing_needs_require():
    files = [path for path in Path(views.__file__).parent.rglob("*.*") if path.suffix in TEXTS]
    assert {".py", ".js", ".css"} <= {path.suffix for path in files}
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http" + "://www.w3.org/2000/svg", "")  # a name, not a request
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


def test_a_sanitized_page_still_has_picture_and_words(shown):
    """With nbconvert's sanitize_html there is no script and no style, as on GitHub: the words become a caption."""
    exporters = pytest.importorskip("nbconvert.exporters")
    nbformat = pytest.importorskip("nbformat")
    MAKERS["bars"]("Four bars & a <b>")
    view = attention_view(np.full((2, 3, 3), 1 / 3), ["a", "<b>", "c"])
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
