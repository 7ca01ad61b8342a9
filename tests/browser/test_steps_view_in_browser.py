"""The view of pictures in steps in JupyterLab: by keyboard, by mouse, twice, in both themes, saved."""

import nbformat
import pytest
from lab import choose_theme, open_notebook, run_all, save, smallest_contrast, troubles, write_notebook

CELLS = (
    (
        "from course_lib.numpy_track import Tensor\nfrom course_lib.views import StepsView, sketches\n"
        "x = Tensor([2.0], requires_grad=True)\n"
        "view = StepsView(sketches.draw_backward_steps(x * x, {'<b>x</b>': x}))\n"
        "view"
    ),
    "StepsView(sketches.draw_attention_steps(['a', 'b'], [[1, 0], [0, 1]]), label='Word')",
    "print('step', view.step)",
)


@pytest.fixture(scope="module")
def page(server, browser):
    page = open_notebook(browser, server, write_notebook(server.folder, "steps.ipynb", CELLS), width=1366)
    run_all(page)
    page.locator(".gpt-steps img").nth(1).wait_for()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


def words(page, n=0):
    return page.locator(".gpt-steps-words").nth(n).text_content()


def test_keyboard_and_buttons(page):
    first = page.locator(".gpt-steps").first
    assert words(page).startswith("The leaves") and words(page, 1).startswith("“a” asks")
    first.focus()
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    page.keyboard.press("ArrowRight")
    assert words(page) == "Forward: 2 × 2 = 4."
    page.keyboard.press("End")
    assert "sends 2 to <b>x</b> (2) and 2 to <b>x</b> (2), added to 2: 4" in words(page)
    assert first.get_by_role("button", name="Next").is_disabled()
    first.get_by_role("button", name="Back").click()
    assert words(page).startswith("Backward: the result grows by 1")
    first.get_by_role("slider").focus()
    page.keyboard.press("Home")  # one step of the view, not two
    page.keyboard.press("ArrowRight")
    assert words(page) == "Forward: 2 × 2 = 4."
    for key in "abxdd":  # must not trigger JupyterLab's commands for cells
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert words(page, 1).startswith("“a” asks")  # the other one stays
    assert page.locator(".gpt-steps b").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_in_both_themes(page, theme):
    choose_theme(page, theme)
    parts = [".gpt-steps-words", ".gpt-steps-count", ".gpt-steps button:not([disabled])"]
    assert smallest_contrast(page, parts) >= 4.5
    choose_theme(page, "light")


def test_a_saved_notebook_holds_a_picture(page, server):
    save(page)
    book = nbformat.read(server.folder / "steps.ipynb", 4)
    data = book.cells[0].outputs[0].data
    assert data["image/png"] and "StepsView(4 steps; the last: Back" in data["text/plain"]
