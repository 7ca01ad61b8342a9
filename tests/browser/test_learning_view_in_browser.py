"""The view of a model that learns, in JupyterLab: while it trains, afterwards with its slider, and as a page."""

import json

import pytest
from lab import offline_page, open_notebook, run_all, run_cell, troubles, write_notebook

CELLS = (
    (
        "import numpy as np\nfrom course_lib import numpy_track\nfrom course_lib.numpy_track import GPT, GPTConfig\n"
        "from course_lib.text import Batches\nfrom course_lib.training import train\n"
        "from course_lib.views import LearningView\n"
        "model = GPT(GPTConfig(8, context_length=6, width=8, heads=2, layers=2), seed=1)\n"
        "batches = Batches(np.tile(np.arange(8), 20), 6, 4, seed=0)"
    ),
    (
        "watch = LearningView(model, np.arange(6), ['<b>x</b>', 'b', 'c', 'd', 'e', 'f'], every=5)\n"
        "adam = numpy_track.AdamW(model.parameters(), lr=0.05)\n"
        "history = train(model, adam, batches, 40, progress=False, plot=watch.plot)"
    ),
    "watch.frame, watch.saved[-1], len(watch.to_html('learning.html')) < 1_500_000",
)


@pytest.fixture(scope="module")
def page(server, browser):
    name = write_notebook(server.folder, "learning.ipynb", CELLS)
    page = open_notebook(browser, server, name, width=1366, height=768)
    run_all(page)
    wait_for_step(page, "40:")
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


def wait_for_step(page, start):
    page.wait_for_function(
        """start => { const view = document.querySelector(".attention-view[data-ready='1']");
        return view?.querySelector('.attention-lab output')?.textContent.startsWith(start); }""",
        arg=start,
        timeout=10_000,
    )


def test_one_view_and_a_slider_over_the_saved_steps(page):
    views = page.locator(".attention-view")
    assert views.count() == 1
    views.evaluate("e => e.scrollIntoView()")
    pane = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
    assert views.bounding_box()["height"] <= pane["height"]
    pixels = """() => { const {cell, left, top} = document.querySelector('.attention-view').layout;
        const ink = document.querySelector('.attention-figure canvas').getContext('2d'), dense = devicePixelRatio;
        return [0, 1, 2, 3, 4, 5].map(key => [left + (key + 0.5) * cell, top + 5.2 * cell])
            .map(([x, y]) => [...ink.getImageData(x * dense, y * dense, 1, 1).data].join()); }"""
    last = page.evaluate(pixels)
    slider = views.get_by_role("slider", name="Training step")
    slider.focus()
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    page.keyboard.press("Home")
    wait_for_step(page, "0: before training")
    first = page.evaluate(pixels)
    assert first != last, "the picture is that of the step"
    page.keyboard.press("ArrowRight")
    wait_for_step(page, "5: loss ")
    page.keyboard.press("x")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert run_cell(page, 2) == "(1, 40, True)"
    tree = views.aria_snapshot()
    assert 'slider "Training step"' in tree and 'img "Training loss from' in tree
    assert slider.get_attribute("aria-valuetext") == "step 5"
    page.keyboard.press("Escape")
    slider.focus()
    page.keyboard.press("End")
    wait_for_step(page, "40:")
    assert page.evaluate(pixels) == last and views.locator("b", has_text="x").count() == 0
    assert run_cell(page, 2).startswith("(None, 40")


def test_it_plays_and_stops_at_the_end(page):
    page.get_by_role("button", name="Play", exact=True).click()
    wait_for_step(page, "10:")
    wait_for_step(page, "40:")
    page.get_by_role("button", name="Play", exact=True).wait_for()


def test_the_page_has_all_steps(page, server, browser):
    run_cell(page, 2)
    with offline_page(browser, server.folder / "learning.html") as alone:
        wait_for_step(alone, "40:")
        alone.get_by_role("slider", name="Training step").focus()
        alone.keyboard.press("Home")
        wait_for_step(alone, "0:")
        assert json.loads(alone.locator(".attention-view").get_attribute("data-state"))["layer"] == 0
