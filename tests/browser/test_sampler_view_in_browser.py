"""The sampler view in JupyterLab: by keyboard and by mouse, for a screen reader, in both themes, saved."""

import nbformat
import pytest
from lab import choose_theme, open_notebook, run_all, save, smallest_contrast, troubles, write_notebook

CELLS = (
    (
        "from course_lib.training import load_checkpoint\nfrom course_lib.views import sampler_view\n"
        "poet = load_checkpoint('shakespeare-gpt', track='numpy')\n"
        "view = sampler_view(poet.model, poet.tokenizer, 'ROMEO:', max_new_tokens=60)\n"
        "view"
    ),
    "print(view.temperature, view.top_k, repr(view.prompt))",
)


@pytest.fixture(scope="module")
def page(server, browser):
    page = open_notebook(browser, server, write_notebook(server.folder, "sampler.ipynb", CELLS), width=1300)
    run_all(page)
    page.locator(".sampler-view img").wait_for()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


def words(page):
    return page.locator(".sampler-view img").get_attribute("alt")


def wait_for_words(page, part):
    page.wait_for_function(
        "part => document.querySelector('.sampler-view img')?.alt.includes(part)", arg=part, timeout=10_000
    )


def wait_for_line(page, part):
    page.wait_for_function(
        "part => document.querySelector('.sampler-view [role=status]').textContent.includes(part)",
        arg=part,
        timeout=10_000,
    )


def slider(page, name):
    return page.locator(".sampler-view").get_by_role("slider", name=name, exact=True)


def write_prompt(page, text):
    page.locator(".sampler-view").get_by_label("Prompt", exact=True).fill(text)


def test_keyboard_moves_the_sliders(page):
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    slider(page, "Temperature").focus()
    page.keyboard.press("Home")
    wait_for_words(page, "temperature 0 (greedy)")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    wait_for_words(page, "temperature 0.1,")
    slider(page, "Top-k").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    wait_for_words(page, "temperature 0.1, top-k 2,")
    for key in "abxdd":  # must not trigger JupyterLab's commands for cells
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    wait_for_line(page, "2 of 65 tokens are possible")


def test_a_prompt_and_the_button(page):
    write_prompt(page, "JULIET:")
    wait_for_words(page, "after “JULIET:”")
    button = page.locator(".sampler-view").get_by_role("button", name="Write")
    button.focus()
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    text = page.locator(".sampler-view pre[role=status]")
    text.wait_for()
    assert text.inner_text().startswith("JULIET:") and len(text.text_content()) == len("JULIET:") + 60
    assert text.get_attribute("aria-live") == "polite"
    assert page.locator(".jp-Notebook .jp-Cell").count() == len(CELLS)


def test_an_unknown_character_gets_a_sentence(page):
    write_prompt(page, "ROMEO <b>@")
    wait_for_line(page, "Unknown characters")
    assert "'@' (U+0040) at 9" in page.locator(".sampler-view [role=status]").first.inner_text()
    assert page.locator(".sampler-view img").count() == 0
    assert page.locator(".sampler-view").get_by_role("button", name="Write").is_disabled()
    write_prompt(page, "ROMEO:")
    wait_for_words(page, "after “ROMEO:”")
    assert page.locator(".sampler-view").get_by_role("button", name="Write").is_enabled()


def test_accessibility_tree_names_everything(page):
    wait_for_words(page, "after")
    tree = page.locator(".sampler-view").aria_snapshot()
    for line in (
        'textbox "Prompt"', 'slider "Temperature"', 'slider "Top-k"', 'slider "Length"', 'spinbutton "Seed"',
        'button "Write"', 'img "Bars of the next-token probabilities', "status",
    ):  # fmt: skip
        assert line in tree, tree


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_is_readable_in_both_themes(page, theme):
    choose_theme(page, theme)
    assert (
        smallest_contrast(
            page, [f".sampler-view {name}" for name in ("[role=status]", "textarea", "label", "pre", "button")]
        )
        >= 4.5
    )


def test_the_bars_are_beside_the_controls(page):
    wait_for_words(page, "after")
    box, bars = (page.locator(f".sampler-view {name}").bounding_box() for name in ("textarea", "img"))
    assert bars["x"] > box["x"] + box["width"] and abs(bars["y"] - box["y"]) < 40


def test_saved_output_keeps_a_picture_and_words(page, server):
    save(page)
    output = nbformat.read(server.folder / "sampler.ipynb", as_version=4).cells[0].outputs[0]
    assert {"image/png", "text/plain"} == set(output.data), "the live view would be an error when opened again"
    assert output.data["text/plain"] == "SamplerView(prompt “ROMEO:”, temperature 1)"
    assert "after “ROMEO:”" in output.metadata["image/png"]["alt"]
