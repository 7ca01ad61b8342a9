"""The attention view in JupyterLab: mouse, keyboard, pixels, themes, screen readers, several views, saved, reopened."""

import json

import nbformat
import pytest
from lab import (
    choose_theme,
    command,
    open_notebook,
    run_all,
    run_cell,
    save,
    smallest_contrast,
    troubles,
    write_notebook,
)

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
        "plot = LivePlot(alt='The loss falls')\nfor step in range(5):\n"
        "    History.losses.append(1 / (1 + step))\n    plot.update(History)\nplot.close()"
    ),
    "view.layer, view.head, view.query, view.key, view.mode, view.stage, view.solo, view.weight",
    "other.layer, other.head, other.query, other.key",
)
STATE, OTHER = len(CELLS) - 2, len(CELLS) - 1


@pytest.fixture(scope="module")
def page(server, browser):
    cells = list(CELLS)
    cells[2] = "import warnings; warnings.simplefilter('ignore')  # rows cut off do not sum to 1\n" + cells[2]
    page = open_notebook(
        browser, server, write_notebook(server.folder, "view.ipynb", cells), width=1300, accept_downloads=True
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
    """The page, reset to the same choices however the test before ended."""
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
    """Return where a cell is in the window, from the layout that the view publishes."""
    box = figure(page, n).bounding_box()
    layout = page.evaluate("n => document.querySelectorAll('.attention-view')[n].layout", n)
    cell = layout["cell"]
    return box["x"] + layout["left"] + (key + 0.5) * cell, box["y"] + layout["top"] + (query + 0.5) * cell


def pixel(page, query, key, n=0, dx=0.0):
    """Return [r, g, b, a] of the drawn head at a cell, ``dx`` of a cell to the right of its middle."""
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

    assert np.float32(shown) == np.float32(float(answer.rstrip(")").split(", ")[-1])), "not the kernel's float32"
    page.mouse.click(*cell_centre(page, 3, 1))
    page.mouse.move(2, 2)
    until(page, query=None, key=None)


def test_a_locked_row_says_so_yields_to_the_pointer_and_is_let_go(start):
    page = start
    x, y = cell_centre(page, 4, 0)
    layout = page.evaluate("() => document.querySelector('.attention-view').layout")
    free = view(page).get_by_role("button", name="Let go")
    assert not free.is_visible()
    page.mouse.click(x - layout["cell"] / 2 - 12, y)  # on the label
    until(page, query=4, key=None)
    assert "is locked." in view(page).locator(".attention-lock").inner_text()
    page.mouse.move(*cell_centre(page, 1, 0))
    until(page, query=1, key=0)
    page.mouse.move(2, 2)
    until(page, query=4, key=None)
    assert says(page).startswith("(0, 0, 4, None")
    free.click()
    until(page, query=None, key=None)
    assert says(page).startswith("(0, 0, None, None") and not free.is_visible()


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
    assert says(page).startswith("(0, 0,"), "a preview chooses nothing"
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
    text = view(page).locator(".attention-products p").first.inner_text().replace("−", "-")
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
    for key in "abxddz":  # must not trigger JupyterLab's commands for cells
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
    assert pixel(page, 0, 0) == pytest.approx([7, 47, 102, 255], abs=2), "weight 1 is the end of the blues"
    stripes = {tuple(pixel(page, 0, 3, dx=dx / 30)) for dx in range(-8, 9)}
    zero = (255, 255, 255, 255)
    assert len(stripes) > 1 and zero not in stripes
    assert min(min(stripe[:3]) for stripe in stripes) > 200, "faint"
    kernel(page, "view.stage = 'dot'")
    until(page, stage="dot")
    assert tuple(pixel(page, 0, 3)) not in stripes, "q·k is drawn before the mask"


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


CONTRAST = """pairs => Math.min(...pairs.map(colours => {
    const ink = document.createElement('canvas').getContext('2d');
    const [a, b] = colours.map(colour => { ink.fillStyle = colour; return ink.fillStyle.slice(1).match(/../g)
        .map(pair => parseInt(pair, 16) / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); })
        .map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b).sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); }))"""


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("stage", ["weights", "scaled", "dot"])
def test_every_number_is_legible_and_zero_looks_like_the_page(start, theme, stage):
    page = start
    choose_theme(page, theme)
    page.wait_for_timeout(500)
    kernel(page, f"view.stage = {stage!r}; view.query = None")
    until(page, stage=stage, query=None)
    numbers = page.evaluate("() => document.querySelector('.attention-view').numbers")
    assert len(numbers) > 8 and page.evaluate(CONTRAST, [pair for _, *pair in numbers]) >= 4.5
    if stage == "weights":
        assert all(float(text) >= 0.05 for text, *_ in numbers), "smaller ones say nothing"
    kernel(page, "view.query = 3")
    until(page, query=3)
    locked = page.evaluate("() => document.querySelector('.attention-view').numbers")
    assert len(locked) == (5 if stage == "dot" else 4), "the row in focus has all its numbers, faded ones have none"
    colours = page.evaluate(
        """() => { const root = document.querySelector('.attention-view');
        const {x, y, height} = root.layout.bar, dense = devicePixelRatio;
        const ink = root.querySelector('.attention-figure canvas').getContext('2d');
        const at = part => [...ink.getImageData((x + 5) * dense, (y + height * part - 2) * dense, 1, 1).data];
        return [at(1), at(0.5), getComputedStyle(root).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)]; }"""
    )
    lowest, middle, paper = colours
    zero = lowest if stage == "weights" else middle
    assert zero[:3] == pytest.approx(paper, abs=14), "zero has the colour of the page"


def test_negative_scores_are_drawn_as_negative(start):
    page = start
    kernel(page, "view.stage = 'dot'; view.query = 2")
    until(page, stage="dot", query=2)
    bars = page.evaluate(
        """() => [...document.querySelector('.attention-view').querySelectorAll('.attention-lists li:not([hidden])')]
        .map(row => { const bar = row.querySelector('i'), whole = bar.parentElement.getBoundingClientRect();
            const box = bar.getBoundingClientRect(), middle = whole.x + whole.width / 2;
            return [row.querySelector('span').textContent.replace('\u2212', '-'), box.left - middle, box.right - middle,
                getComputedStyle(bar).backgroundColor]; })"""
    )
    positive, negative = ([bar for bar in bars if (float(bar[0]) < 0) == below] for below in (False, True))
    assert positive and negative
    assert all(abs(left) < 1 and right > 0 for _, left, right, _ in positive)
    assert all(left < 0 and abs(right) < 1 for _, left, right, _ in negative)
    assert not {bar[3] for bar in positive} & {bar[3] for bar in negative}, "not in one colour"


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1440, 900), (1920, 1080), (700, 900)])
def test_the_picture_fits_the_window(start, width, height):
    page = start
    before = page.viewport_size
    try:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(500)
        pane = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
        box = view(page).bounding_box()
        assert box["height"] <= pane["height"] or width < 1000, (box, pane)
        columns = view(page).get_attribute("data-columns")
        assert (columns == "1") == (width < 1000)
        outer = view(page).bounding_box()
        for part in ("figure", "panel", "side", "controls"):
            inner = view(page).locator(f".attention-{part}").first.bounding_box()
            assert inner["x"] >= outer["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1, part
        layout = page.evaluate("() => document.querySelector('.attention-view').layout")
        assert layout["width"] >= (130 if width < 1000 else 200), "the map itself has room"
    finally:
        page.set_viewport_size(before)
        page.wait_for_timeout(500)


def test_the_laboratory_fits_a_small_laptop(server, browser):
    cells = [
        "from course_lib.training import load_checkpoint\nfrom course_lib.views import AttentionLab",
        "text = 'Ming bought apples, not bananas, because they were fresh. She had tasted the'\n"
        "lab = AttentionLab(load_checkpoint('market-gpt'), text, layer=1, head=1, query=15); lab",
    ]
    page = open_notebook(browser, server, write_notebook(server.folder, "fits.ipynb", cells), width=1366, height=768)
    try:
        run_all(page)
        page.locator(".attention-view[data-ready='1']").wait_for()
        pane = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
        assert view(page).bounding_box()["height"] <= pane["height"]
        area = view(page).get_by_label("Sentence")
        area.focus()
        page.keyboard.press("Control+End")
        page.keyboard.type(" apples")
        until(page, query=16)  # the last token is still in focus
        assert "“apples” (16)" in line(page).inner_text()
        area.fill("zzz")
        page.wait_for_function("() => /type something/.test(document.querySelector('.attention-note').textContent)")
        area.fill("Ming bought")
        until(page, query=1)
        assert page.errors == []
    finally:
        command(page, "kernelmenu:shutdown")
        page.context.close()


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
