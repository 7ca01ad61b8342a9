"""The attention view in JupyterLab: mouse, keyboard, pixels, themes, screen readers, several views, saved, reopened."""

import json

import nbformat
import pytest
from lab import choose_theme, command, open_notebook, run_all, run_cell, save, smallest_contrast, troubles

CELLS = (
    "import numpy as np\nfrom course_lib.views import LivePlot, attention_view, plot_lines",
    (
        "rng = np.random.default_rng(0)\n"
        "queries, keys = rng.normal(size=(2, 2, 3, 5, 4)).astype(np.float32)\n"
        "allow = np.tril(np.ones((5, 5), dtype=bool))\n"
        "e = np.where(allow, np.exp(queries @ keys.swapaxes(-1, -2) / 2), 0)\n"
        "weights = e / e.sum(-1, keepdims=True)\n"
        "tokens = ['<b>bold</b>', 'a\"b', '$a^$', '\\n', '<img src=x onerror=console.error(1)>']\n"
        "view = attention_view(weights, tokens, allow=allow, queries=queries, keys=keys, title='First')\n"
        "view"
    ),
    "other = attention_view(weights[0, 0, :2, :3].round(6), ['k', 'l', 'm'], query_tokens=['q', 'r'], title='Second')",
    "other",
    "plot_lines({'square': np.arange(5.0) ** 2}, alt='A parabola: <i>0</i> to 16')",
    (
        "class History:\n    losses = []\n\n"
        "plot = LivePlot(every_seconds=0, alt='The loss falls')\nfor step in range(5):\n"
        "    History.losses.append(1 / (1 + step))\n    plot.update(History)\nplot.close()"
    ),
    "view.layer, view.head, view.query, view.key, view.mode, view.stage, view.solo, view.weight",
    "other.layer, other.head, other.query, other.key",
)
STATE, OTHER = len(CELLS) - 2, len(CELLS) - 1


def notebook(folder, name, cells):
    book = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    book.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(book, folder / name)
    return name


@pytest.fixture(scope="module")
def page(server, browser):
    cells = list(CELLS)
    cells[2] = "import warnings; warnings.simplefilter('ignore')  # rows cut off do not sum to 1\n" + cells[2]
    page = open_notebook(
        browser, server, notebook(server.folder, "view.ipynb", cells), width=1300, accept_downloads=True
    )
    run_all(page)
    page.locator(".attention-view[data-ready='1']").nth(1).wait_for()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


def view(page, n=0):
    return page.locator(".attention-view").nth(n)


def state(page, n=0):
    return json.loads(view(page, n).get_attribute("data-state"))


def until(page, n=0, **wanted):
    """Wait until the view shows these choices."""
    page.wait_for_function(
        """([n, wanted]) => { const state = JSON.parse(document.querySelectorAll('.attention-view')[n].dataset.state);
        return Object.entries(wanted).every(([name, value]) => state[name] === value); }""",
        arg=[n, wanted],
        timeout=5000,
    )


def figure(page, n=0):
    found = view(page, n).get_by_role("grid")
    found.scroll_into_view_if_needed()
    return found


def line(page, n=0):
    return view(page, n).locator(".attention-line")


@pytest.fixture
def start(page):
    """Every test starts from the same choices, however the one before it ended."""
    code = "view.layer = view.head = 0; view.query = view.key = None; view.mode = 'heatmap'; view.stage = 'weights'"
    code += "; view.solo = view.hide_first = view.log_scale = view.per_head = False"
    kernel(page, code)
    page.mouse.move(2, 2)
    until(page, layer=0, head=0, query=None, key=None, mode="heatmap", stage="weights")
    return page


def kernel(page, code):
    """Run code in the kernel, as a cell would."""
    page.evaluate(
        """async code => { const panel = window.jupyterapp.shell.currentWidget;
        await panel.sessionContext.session.kernel.requestExecute({code}).done; }""",
        code,
    )


def says(page, n=STATE):
    return run_cell(page, n)


def cell_centre(page, query, key, n=0):
    """Where a cell is in the window: the grid of cells is found by its colours' edges, known from the layout."""
    box = figure(page, n).bounding_box()
    layout = page.evaluate("n => document.querySelectorAll('.attention-view')[n].layout", n)
    cell = layout["cell"]
    return box["x"] + layout["left"] + (key + 0.5) * cell, box["y"] + layout["top"] + (query + 0.5) * cell


def pixel(page, query, key, n=0, dx=0.0):
    """[r, g, b, a] of the drawn head at a cell; dx: part of a cell to the right of its middle."""
    return page.evaluate(
        """([n, query, key, dx]) => { const root = document.querySelectorAll('.attention-view')[n];
        const {cell, left, top} = root.layout, dense = devicePixelRatio;
        const canvas = root.querySelector('.attention-figure canvas');
        const [x, y] = [left + (key + 0.5 + dx) * cell, top + (query + 0.2) * cell];
        return [...canvas.getContext('2d').getImageData(x * dense, y * dense, 1, 1).data]; }""",
        [n, query, key, dx],
    )


# ---- mouse ----------------------------------------------------------------------------------------------------------


def test_hover_reads_the_exact_weight_and_click_locks(start):
    page = start
    assert says(page).endswith(", None)"), "nothing is chosen yet"
    page.mouse.move(*cell_centre(page, 3, 1))
    until(page, query=3, key=1)
    page.wait_for_function("() => /: 0\\.\\d{6,}$/.test(document.querySelector('.attention-line').textContent)")
    shown = float(line(page).inner_text().split(": ")[-1])
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    until(page, query=3, key=1)
    answer = says(page)
    assert answer.startswith("(0, 0, 3, 1, 'heatmap', 'weights', False, ")
    import numpy as np

    assert np.float32(shown) == np.float32(float(answer.rstrip(")").split(", ")[-1])), "not the float32 of the kernel"
    page.mouse.click(*cell_centre(page, 3, 1))
    page.mouse.move(2, 2)
    until(page, query=None, key=None)


def test_a_locked_query_keeps_its_row(start):
    page = start
    x, y = cell_centre(page, 4, 0)
    layout = page.evaluate("() => document.querySelector('.attention-view').layout")
    page.mouse.click(x - layout["cell"] / 2 - 12, y)  # on the label
    until(page, query=4, key=None)
    page.mouse.move(*cell_centre(page, 1, 2))
    until(page, query=4, key=2)
    assert says(page).startswith("(0, 0, 4, None")


def test_heads_hover_click_and_double_click(start):
    page = start
    heads = view(page).get_by_role("radiogroup", name="Heads, layers as rows").get_by_role("radio")
    assert heads.count() == 6
    page.wait_for_function("() => document.querySelector('.attention-view').dataset.heads === 'drawn'")
    empty = """() => [...document.querySelectorAll('.attention-view')[0].querySelectorAll('.attention-thumb canvas')]
        .filter(c => !c.width || !c.getContext('2d').getImageData(c.width / 2, c.height / 2, 1, 1).data[3]).length"""
    assert page.evaluate(empty) == 0, "every head is drawn small"
    heads.nth(4).hover()
    until(page, layer=1, head=1)
    assert says(page).startswith("(0, 0,"), "to look is not to choose"
    page.mouse.move(2, 2)
    until(page, layer=0, head=0)
    heads.nth(4).click()
    until(page, layer=1, head=1)
    assert says(page).startswith("(1, 1,")
    heads.nth(2).dblclick()
    page.wait_for_function("() => document.querySelector('.attention-panel').hidden")
    assert "True" in says(page)
    view(page).get_by_role("button", name="All heads").click()
    heads.nth(2).wait_for()
    until(page, layer=0, head=2)


def test_controls_stages_and_arcs(start):
    page = start
    view(page).get_by_label("Layer", exact=True).select_option("1")
    until(page, layer=1)
    for name, value in (("q·k", "dot"), ("scaled, masked", "scaled"), ("softmax", "weights")):
        view(page).get_by_role("radio", name=name, exact=True).click()
        until(page, stage=value)
    view(page).get_by_role("radio", name="Arcs").click()
    until(page, mode="arcs")
    for name in ("Log colours", "Hide first key", "Colours per head"):
        view(page).get_by_label(name).check()
    assert says(page) == "(1, 0, None, None, 'arcs', 'weights', False, None)"


def test_products_sum_to_the_score(start):
    page = start
    kernel(page, "view.query, view.key = 2, 1")
    until(page, query=2, key=1)
    text = view(page).locator(".attention-products p").inner_text().replace("−", "-")
    kernel(page, "print(float(queries[0, 0, 2] @ keys[0, 0, 1]))")
    total = float(text.split("sum to ")[1].split()[0])
    scaled = float(text.split("= ")[1].split()[0])
    assert scaled == pytest.approx(total / 2, abs=1e-4)
    assert "dimension" in view(page).locator(".attention-products canvas").get_attribute("aria-label")


# ---- keyboard -------------------------------------------------------------------------------------------------------


def test_a_walk_by_keyboard_alone(start):
    page = start
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    view(page).get_by_role("button", name="One head").focus()
    seen = []
    for _ in range(20):
        seen.append(
            page.evaluate(
                """() => { const e = document.activeElement; return [e.getAttribute('role') ?? e.tagName.toLowerCase(),
                e.matches(':focus-visible'), getComputedStyle(e).outlineStyle !== 'none' || e.type === 'radio']; }"""
            )
        )
        if seen[-1][0] == "grid":
            break
        page.keyboard.press("Tab")
    names = [name for name, _, _ in seen]
    assert names == [
        *("button", "button", "button", "summary", "select", "select", "input", "input"),
        *("input", "input", "input", "radio", "grid"),
    ]
    assert all(visible and outlined for _, visible, outlined in seen[1:])
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    until(page, layer=1, head=0)
    page.keyboard.press("ArrowRight")
    until(page, layer=1, head=1)
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    until(page, query=2, key=1)
    page.keyboard.press("Enter")
    assert "locked: " in view(page).get_by_role("status").last.inner_text()
    for key, wanted in (
        *(("End", {"key": 4}), ("Home", {"key": 0}), ("Control+End", {"query": 4, "key": 4}), ("]", {"head": 2})),
        *(("[", {"head": 1}), ("{", {"layer": 0}), ("s", {"stage": "dot"}), ("s", {"stage": "scaled"})),
        *(("s", {"stage": "weights"}), ("m", {"mode": "arcs"}), ("m", {"mode": "heatmap"})),
    ):
        page.keyboard.press(key)
        until(page, **wanted)
    for key in "abxddz":  # JupyterLab's commands for cells must not be triggered from inside the view
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("Escape")
    until(page, query=None, key=None)
    page.keyboard.press("r")
    until(page, query=0)
    page.keyboard.press("o")
    page.wait_for_function("() => document.querySelector('.attention-panel').hidden")
    assert says(page) == "(0, 1, 0, None, 'heatmap', 'weights', True, None)"


# ---- pixels and words -----------------------------------------------------------------------------------------------


def test_not_allowed_is_hatched_and_not_zero(start):
    page = start
    assert pixel(page, 0, 0) == pytest.approx([254, 232, 56, 255], abs=2), "weight 1 is the end of cividis"
    stripes = {tuple(pixel(page, 0, 3, dx=dx / 30)) for dx in range(-8, 9)}
    zero = (0, 34, 78, 255)
    assert len(stripes) > 1 and zero not in stripes
    kernel(page, "view.stage = 'dot'")
    until(page, stage="dot")
    assert tuple(pixel(page, 0, 3)) not in stripes, "q·k is there before the mask"


def test_tokens_are_text(start):
    page = start
    for n, token in enumerate(("<b>bold</b>", 'a"b', "$a^$", "↵", "<img␣src=x␣onerror=console.error(1)>")):
        kernel(page, f"view.query, view.key = {n}, 0")
        until(page, query=n, key=0)
        assert f"“{token}” ({n})" in line(page).inner_text()
    assert view(page).locator(":is(img, strong)").count() == 0
    assert view(page).locator("b", has_text="bold").count() == 0


def test_the_accessibility_tree_names_everything(start):
    page = start
    kernel(page, "view.query, view.key = 2, 1")
    until(page, query=2, key=1)
    tree = view(page).aria_snapshot()
    for words in (
        *('group "First"', 'group "Choices"', 'combobox "Layer"', 'combobox "Head"', 'radiogroup "Picture"'),
        *('radiogroup "Stage"', 'radio "Heat map" [checked]', 'checkbox "Log colours"', 'button "PNG"'),
        *('radiogroup "Heads, layers as rows"', 'radio "layer 0, head 0" [checked]', 'radio "layer 1, head 2"'),
        *('grid "First, layer 0 · head 0 · attention weights: 5 queries by 5 keys"', "gridcell", "reads"),
        *('heading "What “$a^$” reads"', "status", 'img "The products, one bar each.'),
    ):
        assert words in tree, f"{words} is not in\n{tree}"
    active = page.evaluate(
        """() => { const grid = document.querySelector('[role=grid]');
        const cell = document.getElementById(grid.getAttribute('aria-activedescendant'));
        return [cell.textContent, cell.getAttribute('aria-colindex'), cell.parentElement.getAttribute('aria-rowindex'),
        cell.getAttribute('aria-selected'), grid.getAttribute('aria-rowcount')]; }"""
    )
    assert active[0].startswith('“$a^$” (2) reads “a"b” (1): 0.') and active[1:] == ["2", "3", "true", "5"]
    words = page.locator(".jp-OutputArea em.jp-sr-only").all_text_contents()
    assert words == ["Figure: A parabola: <i>0</i> to 16", "Figure: The loss falls"]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_both_themes_are_readable_and_the_canvas_follows(start, theme):
    page = start
    choose_theme(page, theme)
    page.wait_for_timeout(500)
    names = ("title", "choice", "radios span", "choice select", "line", "hint", "button", "caption", "lists li span")
    ratio = smallest_contrast(page, [f".attention-view .attention-{name}" for name in names])
    assert ratio >= 4.5, ratio
    drawn = page.evaluate("""() => { const root = document.querySelector('.attention-view');
        const {left, top, cell} = root.layout, dense = devicePixelRatio;
        const canvas = root.querySelector('.attention-figure canvas');
        const label = canvas.getContext('2d').getImageData(20 * dense, top * dense, (left - 24) * dense, cell * dense);
        const sums = [];
        for (let n = 0; n < label.data.length; n += 4)
            if (label.data[n + 3] > 200) sums.push(label.data[n] + label.data[n + 1] + label.data[n + 2]);
        return [Math.min(...sums), Math.max(...sums)]; }""")
    assert drawn[0] < 100 if theme == "light" else drawn[1] > 600, f"the labels on the canvas: {drawn}"


# ---- several views, files, saving -----------------------------------------------------------------------------------


def test_two_views_are_independent(start):
    page = start
    kernel(page, "other.query, other.key = 1, 2")
    until(page, 1, query=1, key=2)
    assert state(page)["query"] is None
    page.mouse.click(*cell_centre(page, 4, 3))
    until(page, query=4, key=3)
    assert state(page, 1)["query"] == 1
    assert run_cell(page, OTHER) == "(0, 0, 1, 2)"
    assert "“r” (1) reads “m” (2)" in line(page, 1).inner_text()
    names = page.evaluate("() => [...document.querySelectorAll('.attention-view [id]')].map(e => e.id)")
    assert len(names) == len(set(names))


def test_png_and_svg_are_saved(start, tmp_path):
    page = start
    for ending in ("PNG", "SVG"):
        with page.expect_download() as download:
            view(page).get_by_role("button", name=ending).click()
        download.value.save_as(tmp_path / ending)
        assert download.value.suggested_filename == f"First-layer-0-head-0.{ending.lower()}"
    from PIL import Image

    with Image.open(tmp_path / "PNG") as image:
        assert image.width > 600 and len(image.convert("RGB").getcolors(1 << 24)) > 20
    import xml.etree.ElementTree as tree

    svg = tree.parse(tmp_path / "SVG").getroot()
    texts = [e.text for e in svg.iter() if e.tag.endswith("}text")]
    assert svg.tag.endswith("2000/svg}svg") and "<b>bold</b>" in texts and "not allowed" in texts
    assert any(e.tag.endswith("}pattern") for e in svg.iter())


def test_saved_notebook_holds_pictures_and_opens_without_an_error(start, server, browser):
    page = start
    save(page)
    assert view(page).is_visible(), "the live view stays"
    book = nbformat.read(server.folder / "view.ipynb", as_version=4)
    output = book.cells[1].outputs[0]
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.data["text/plain"].startswith("AttentionView(2 layers, 3 heads, 5 queries, 5 keys;")
    assert "5 queries (rows)" in output.metadata["image/png"]["alt"]
    assert book.cells[5].outputs[0].data["text/plain"] == "Figure: The loss falls"
    assert "widgets" not in book.metadata
    nbformat.write(book, server.folder / "again.ipynb")
    again = open_notebook(browser, server, "again.ipynb")
    try:
        again.locator(".jp-OutputArea-output img").first.wait_for()
        assert again.get_by_text("Error displaying widget").count() == 0
        assert again.locator(".attention-view").count() == 0
        assert again.errors == []
    finally:
        command(again, "kernelmenu:shutdown")
        again.context.close()
