"""The attention view in JupyterLab: by mouse and by keyboard, in both themes, for a screen reader, saved."""

import nbformat
import pytest
from lab import choose_theme, open_notebook, run_all, save, smallest_contrast, troubles

CELLS = (
    "import numpy as np\nfrom course_lib.views import LivePlot, attention_view, plot_lines",
    (
        "scores = np.random.default_rng(0).normal(size=(2, 3, 5, 5))\n"
        "allow = np.tril(np.ones((5, 5), dtype=bool))\n"
        "e = np.where(allow, np.exp(scores), 0)\n"
        "tokens = ['<b>bold</b>', 'a\"b', '$a^$', '\\n', '你']\n"
        "view = attention_view(e / e.sum(-1, keepdims=True), tokens, allow=allow)\n"
        "view"
    ),
    "plot_lines({'square': np.arange(5.0) ** 2}, alt='A parabola: <i>0</i> to 16')",
    (
        "class History:\n    losses = []\n\n"
        "plot = LivePlot(every_seconds=0, alt='The loss falls')\nfor step in range(5):\n"
        "    History.losses.append(1 / (1 + step))\n    plot.update(History)\nplot.close()"
    ),
)


@pytest.fixture(scope="module")
def page(server, browser):
    book = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    book.cells = [nbformat.v4.new_code_cell(source) for source in CELLS] + [
        nbformat.v4.new_code_cell("view.layer, view.head, view.query")
    ]
    nbformat.write(book, server.folder / "view.ipynb")
    page = open_notebook(browser, server, "view.ipynb", width=1300)
    run_all(page)
    page.locator(".jupyter-widgets img").first.wait_for()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


def picture(page):
    return page.locator(".jupyter-widgets img").first


def source_changes(page, act):
    """Do it and wait until the picture is another one; returns the new alternative text."""
    before = picture(page).get_attribute("src")
    act()
    page.wait_for_function("before => document.querySelector('.jupyter-widgets img').src !== before", arg=before)
    return picture(page).get_attribute("alt")


def kernel_says(page):
    """What the last cell prints: the choices as the kernel knows them."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(len(CELLS))
    cell.locator(".cm-content").click()
    count = cell.locator(".jp-InputPrompt").first.inner_text()
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        """([n, old]) => { const t = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[n]
        .querySelector('.jp-InputPrompt').innerText; return t !== old && /\\d/.test(t); }""",
        arg=[len(CELLS), count],
    )
    return cell.locator(".jp-OutputArea-output").inner_text().strip()


def choice(page, name):
    return page.locator(".attention-view").get_by_label(name, exact=True)


def start_from(page, **values):
    """Choose by script, so that no test depends on what another one chose."""
    for name, value in values.items():
        choice(page, name).select_option(value)
    page.wait_for_timeout(600)


def test_keyboard_chooses_layer_head_and_query(page):
    start_from(page, Layer="0", Head="0", Query="all rows")
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    choice(page, "Layer").focus()
    assert "layer 1, head 0" in source_changes(page, lambda: page.keyboard.press("ArrowDown"))
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.closest('.widget-dropdown').innerText").startswith("Head")
    for head in (1, 2):
        assert f"head {head}" in source_changes(page, lambda: page.keyboard.press("ArrowDown"))
    page.keyboard.press("Tab")
    source_changes(page, lambda: page.keyboard.press("ArrowDown"))
    for key in "abxdd":  # JupyterLab's commands for cells must not be triggered from inside the view
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("End")
    page.wait_for_function(
        "() => document.querySelector('.jupyter-widgets [role=status]').textContent.startsWith('Query 4')"
    )
    assert kernel_says(page) == "(1, 2, 4)"


def test_mouse_chooses_too(page):
    start_from(page, Head="2")
    head = choice(page, "Head")
    head.scroll_into_view_if_needed()
    head.click()  # opens the native list, which takes the keys that follow
    page.keyboard.press("Home")
    assert "head 0" in source_changes(page, lambda: page.keyboard.press("Enter"))
    assert "head 1" in source_changes(page, lambda: head.select_option("1"))
    assert kernel_says(page).split(", ")[1] == "1"


def test_focus_lists_exact_weights_and_shows_tokens_as_they_are(page):
    start_from(page, Query="all rows")
    source_changes(page, lambda: choice(page, "Query").select_option("4: 你"))
    status = page.locator(".jupyter-widgets [role=status]").first
    page.wait_for_function(
        "() => document.querySelector('.jupyter-widgets [role=status]').textContent.startsWith('Query 4')"
    )
    for token in ("“<b>bold</b>”", '“a"b”', "“$a^$”", "“↵”", "“你”"):
        assert token in status.inner_text() and token in picture(page).get_attribute("alt")
    assert page.locator(".jupyter-widgets :is(b, strong)").count() == 0
    assert status.get_attribute("aria-live") == "polite"


def test_accessibility_tree_names_everything(page):
    tree = page.locator(".jp-OutputArea-output").first.aria_snapshot()
    for line in ('combobox "Layer"', 'combobox "Head"', 'combobox "Query"', "img", "status"):
        assert line in tree, tree
    words = page.locator(".jp-OutputArea em.jp-sr-only").all_text_contents()
    assert words == ["Figure: A parabola: <i>0</i> to 16", "Figure: The loss falls"]
    box = page.locator(".jp-OutputArea em.jp-sr-only").first.bounding_box()
    assert box["width"] <= 1 and box["height"] <= 1, "the line for screen readers must not be seen"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_is_readable_in_both_themes(page, theme):
    choose_theme(page, theme)
    assert smallest_contrast(page, [f".jupyter-widgets {name}" for name in ("[role=status]", "select", "label")]) >= 4.5


def test_a_choice_shows_within_a_second(page):
    """From the key to the new picture; the median is printed, and only five times the aim of 0.2 s fails."""
    times = []
    start_from(page, Layer="1")
    choice(page, "Layer").focus()
    for key in ("ArrowUp", "ArrowDown") * 3:
        start = page.evaluate("() => performance.now()")
        source_changes(page, lambda key=key: page.keyboard.press(key))
        times.append(page.evaluate("() => performance.now()") - start)
    median = sorted(times)[len(times) // 2]
    print(f"attention view: key to picture {median:.0f} ms")
    assert median < 1000


def test_saved_output_keeps_a_picture_and_words(page, server):
    save(page)
    book = nbformat.read(server.folder / "view.ipynb", as_version=4)
    output = book.cells[1].outputs[0]
    assert {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"} == set(output.data)
    assert output.data["text/plain"].startswith("AttentionView(2 layers, 3 heads, 5 queries, 5 keys;")
    assert "5 queries (rows)" in output.metadata["image/png"]["alt"]
    assert book.cells[3].outputs[0].data["text/plain"] == "Figure: The loss falls"
