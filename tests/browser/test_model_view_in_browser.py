"""The model view in JupyterLab: mouse, keyboard, themes, sizes, hostile tokens, two copies, saved, as a page."""

import json
import statistics

import nbformat
import pytest
from lab import (
    choose_theme,
    offline_page,
    open_notebook,
    run_all,
    run_cell,
    save,
    smallest_contrast,
    troubles,
    write_notebook,
)

TEXT = "ROMEO: But soft, what light through yonder window breaks? It is"
CELLS = (
    (
        "import types\nfrom course_lib.numpy_track import GPT, GPTConfig\nfrom course_lib.text import WordTokenizer\n"
        "from course_lib.training import load_checkpoint\nfrom course_lib.views import ModelView\n"
        "poet = load_checkpoint('shakespeare-gpt')\n"
        "words = WordTokenizer(['<b>bold</b>', '<img/src=x/onerror=console.error(1)>', 'a', 'b', '$x^2$'])\n"
        "words.pieces = lambda text: text.split(' ')\n"
        "other = types.SimpleNamespace(model=GPT(GPTConfig(5, norm='post', layers=2), seed=1), tokenizer=words)"
    ),
    f"view = ModelView(poet, {TEXT!r})\nview",
    "view",
    "hostile = ModelView(other, 'a <b>bold</b> <img/src=x/onerror=console.error(1)> $x^2$ b')\nhostile",
    "view.part, view.head, view.focus, view.off, view.temperature, view.text[-3:]",
    "len(view.to_html('page.html'))",
    (
        "from course_lib.views.model_widget.view import _bytes_in\n"
        "sum(map(len, (view._esm, view._css, *_bytes_in(view.content))))"
    ),
)
STATE, PAGE, SENT = 4, 5, 6
LIMITS = {"key to picture": 50, "drawing": 16, "sent": 1e6, "page": 1.5e6}


@pytest.fixture(scope="module")
def page(server, browser):
    name = write_notebook(server.folder, "model.ipynb", CELLS)
    page = open_notebook(browser, server, name, width=1366, height=768)
    run_all(page)
    for n in range(3):
        page.locator(".model-view[data-ready='1']").nth(n).wait_for()
    yield page
    page.context.close()


@pytest.fixture(autouse=True)
def no_trouble(page):
    yield
    assert troubles(page) == [] and page.outside == [] and page.errors == []


@pytest.fixture
def start(page):
    """The page, reset to the same choices however the test before ended."""
    kernel(
        page,
        f"view.off = (); view.text = {TEXT!r}; view.focus = None; view.part = ''; view.temperature = 1; view.head = 0",
    )
    until(page, part="", focus=len(TEXT) - 1, tokens=len(TEXT), off=[], head=0)
    view(page).evaluate("e => e.scrollIntoView()")
    return page


def view(page, n=0):
    return page.locator(".model-view").nth(n)


def state(page, n=0):
    return json.loads(view(page, n).get_attribute("data-state"))


def until(page, n=0, **wanted):
    page.wait_for_function(
        """([n, wanted]) => { const state = JSON.parse(document.querySelectorAll('.model-view')[n].dataset.state);
        const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
        return Object.entries(wanted).every(([name, value]) => same(state[name], value)); }""",
        arg=[n, wanted],
        timeout=10_000,
    )


def kernel(page, code):
    page.evaluate(
        """async code => { const panel = window.jupyterapp.shell.currentWidget;
        await panel.sessionContext.session.kernel.requestExecute({code}).done; }""",
        code,
    )


def part(page, name, n=0):
    return view(page, n).locator(f"[data-part='{name}']")


def stops(page, n=0):
    """[[token, percentage], ...] of what would come first next, place by place."""
    return (
        view(page, n)
        .locator(".model-stops")
        .evaluate_all("lists => lists.map(list => ['bdi', 'span'].map(tag => list.querySelector(tag).textContent))")
    )


def test_the_picture_says_what_the_kernel_knows(start):
    page = start
    kernel(page, "print()")
    shown = stops(page)
    assert len(shown) == 9
    first = view(page).locator(".attention-next li").first
    token, chance = (first.locator(tag).inner_text() for tag in ("bdi", "span"))
    assert shown[-1] == [token, f"{round(100 * float(chance))}%"], "the last place is the prediction of the model"
    assert state(page)["next"] == token
    kernel(page, f"assert view.lens(1)['blocks.3.mlp'][0][1] - {chance} < 0.001, view.lens()")
    kernel(page, "view.focus = 3")
    until(page, focus=3)
    assert stops(page) != shown and "“E”" in view(page).locator(".model-coming h4").inner_text()


def test_parts_open_by_mouse_and_say_what_they_are(start):
    page = start
    for name, words in (
        ("token", ("Token table", "(63) → (63, 96)", "6,240: weight (65, 96)", "Embedding.forward")),
        ("position", ("Positions", "position (64, 96)", "GPT.forward")),
        (
            "blocks.1.attention",
            ("Block 1, attention", "query, key, value, output (96, 96) each", "SelfAttention.forward"),
        ),
        ("blocks.1.mlp", ("Block 1, MLP", "up.weight (96, 384)", "of 384 are above 0", "unit ")),
        ("norm", ("Final norm", "divided by", "LayerNorm.forward")),
        ("head", ("Head", "(63, 96) → (63, 65)", "The largest of 65 logits")),
    ):
        part(page, name).click()
        until(page, part=name)
        text = view(page).locator(".model-opened").inner_text()
        for word in words:
            assert word in text, (name, word, text)
        assert part(page, name).get_attribute("aria-expanded") == "true"
    part(page, "head").click()
    until(page, part="")


def test_a_small_head_opens_its_attention_and_the_attention_view(start):
    page = start
    canvas = part(page, "blocks.2.attention").locator("canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.75, "y": box["height"] * 0.75})
    until(page, part="blocks.2.attention", head=3)
    view(page).get_by_role("button", name="Attention view").click()
    inner = view(page).locator(".attention-view")
    inner.locator("xpath=self::*[@data-ready='1']").wait_for()
    found = json.loads(inner.get_attribute("data-state"))
    assert (found["layer"], found["head"], found["query"]) == (2, 3, len(TEXT) - 1)
    inner.get_by_role("radio", name="layer 2, head 1").click()
    until(page, head=1)
    inner.get_by_role("radio", name="scaled, masked", exact=True).click()
    view(page).get_by_role("textbox", name="Text").fill("ROMEO")
    until(page, tokens=5)
    page.wait_for_function(
        "() => JSON.parse(document.querySelector('.model-view .attention-view').dataset.state).stage === 'scaled'"
    )
    assert "5 queries by 5 keys" in inner.get_by_role("grid").get_attribute("aria-label")
    view(page).get_by_role("button", name="Close the view").click()
    assert view(page).locator(".attention-view").count() == 0


def test_switching_off_changes_the_prediction(start):
    page = start
    before = stops(page)
    part(page, "blocks.0.mlp").click()
    view(page).get_by_label("Switch this MLP off").check()
    until(page, off=["blocks.0.mlp"])
    assert stops(page)[:2] == before[:2] and stops(page)[2:] != before[2:]
    assert "switched off" in part(page, "blocks.0.mlp").get_attribute("aria-label")
    part(page, "blocks.3.attention").click()
    view(page).get_by_label("Head", exact=True).select_option("2")
    view(page).get_by_label("head 2 off").check()
    until(page, off=["blocks.0.mlp", "blocks.3.attention.head.2"], head=2)
    assert "1 head switched off" in part(page, "blocks.3.attention").get_attribute("aria-label")
    part(page, "norm").click()
    view(page).get_by_label("Switch its gain off").check()
    until(page, off=["blocks.0.mlp", "blocks.3.attention.head.2", "norm"])
    assert "'norm')" in run_cell(page, STATE)
    view(page).get_by_role("button", name="As trained", exact=True).click()
    until(page, off=[])
    page.wait_for_function(
        "first => document.querySelectorAll('.model-view .model-stops')[8].dataset.best === first", arg=before[8][0]
    )
    assert stops(page) == before


def test_generation_and_temperature(start):
    page = start
    slider = view(page).get_by_role("slider", name="Temperature")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('.model-view .attention-next span').textContent === '1.000'")
    first = view(page).locator(".attention-next bdi").first.inner_text()
    view(page).get_by_role("button", name="Next token").click()
    until(page, tokens=64)
    assert view(page).locator(".model-chip").last.inner_text() == first
    view(page).get_by_role("button", name="Back").click()
    until(page, tokens=63)
    second = view(page).locator(".attention-next button").nth(1)
    token = second.locator("bdi").inner_text()
    second.click()
    until(page, tokens=64)
    assert view(page).locator(".model-chip").last.inner_text() == token
    assert run_cell(page, STATE).endswith(", 0.0, 'is" + token.replace("␣", " ").replace("↵", "\\n") + "')")


def test_a_walk_by_keyboard_alone(start):
    page = start
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    view(page).locator("summary").focus()
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? e.textContent; }"
            )
        )
    assert seen == ["Text", "Next token", "Back", "Temperature", f"s, token {len(TEXT) - 1}", "token table", *seen[6:]]
    assert seen[6].endswith("append it")
    view(page).get_by_role("radio", name=f"s, token {len(TEXT) - 1}").focus()
    page.keyboard.press("Home")
    until(page, focus=0)
    page.keyboard.press("ArrowRight")
    until(page, focus=1)
    page.keyboard.press("Tab")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    until(page, part="blocks.0.attention")
    page.keyboard.press("x")
    until(page, off=[f"blocks.0.attention.head.{h}" for h in range(4)])
    page.keyboard.press("x")
    until(page, off=[])
    page.keyboard.press("]")
    until(page, focus=2)
    for key in "abddz":  # must not trigger JupyterLab's commands for cells; b takes a token away
        page.keyboard.press(key)
    until(page, tokens=len(TEXT) - 1)
    page.keyboard.press("n")
    until(page, tokens=len(TEXT))
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    until(page, part="head")
    outlined = "() => { const e = document.activeElement; return [e.dataset.part, getComputedStyle(e).outlineStyle]; }"
    assert page.evaluate(outlined) == ["head", "solid"]
    page.keyboard.press("Escape")
    until(page, part="")
    assert page.evaluate(outlined)[0] == "head", "the focus stays where the part was opened"
    assert "closed" in view(page).locator("[role=status]").last.text_content()


def test_two_copies_share_their_choices_and_a_cell_runs_again(start):
    page = start
    part(page, "blocks.1.mlp").click()
    until(page, 1, part="blocks.1.mlp")
    run_cell(page, 2)
    page.locator(".model-view[data-ready='1']").nth(2).wait_for()
    until(page, 1, part="blocks.1.mlp")
    part(page, "blocks.1.mlp", 1).click()
    until(page, 0, part="")


def test_hostile_tokens_are_text(page):
    shown = view(page, 2)
    text = shown.inner_text()
    for token in ("<b>bold</b>", "<img/src=x/o"):
        assert token in text
    assert shown.locator(":is(img, strong)").count() == 0 and shown.locator("b", has_text="bold").count() == 0
    part(page, "head", 2).click()
    part(page, "blocks.0.attention", 2).click()
    until(page, 2, part="blocks.0.attention")
    assert shown.locator("img").count() == 0
    assert len(stops(page, 2)) == 5


def test_the_accessibility_tree_names_everything(start):
    page = start
    kernel(page, "view.part = 'blocks.0.attention'; view.focus = 1")
    until(page, part="blocks.0.attention", focus=1)
    tree = view(page).aria_snapshot()
    for words in (
        *('group "A GPT at work"', 'textbox "Text"', 'slider "Temperature"', 'radiogroup "Token to follow"'),
        *(
            'radio "O, token 1" [checked]',
            'group "The model, from left to right"',
            'button "block 0, attention" [expanded]',
        ),
        *(
            'button "block 3, norm of the MLP"',
            'button "final norm"',
            'list "If the model stopped after the embedding"',
        ),
        *(
            'list "If the model stopped after block 3, MLP"',
            'region "The open part"',
            'img "Attention weights of head 0',
        ),
        *('combobox "Head"', 'checkbox "head 0 off"', 'heading "What “O” reads in head 0"', 'img "added: 96 numbers'),
        *('list "Next token: probabilities"', "append it"),
    ):
        assert words in tree, f"{words} is not in\n{tree}"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_both_themes_are_readable(start, theme):
    page = start
    choose_theme(page, theme)
    kernel(page, "view.part = 'blocks.0.mlp'")
    until(page, part="blocks.0.mlp")
    page.wait_for_timeout(400)
    names = (".model-chip bdi", ".model-part span", ".model-norm span", ".model-size", ".model-stops li bdi")
    names += (".model-stops li span", ".model-block", ".model-facts dt", ".model-facts dd", ".model-about p")
    names += (".model-bars li span", ".model-coming h4", ".attention-next span", ".attention-hint", ".attention-choice")
    assert smallest_contrast(page, [f".model-view {name}" for name in names]) >= 4.5
    worst = page.evaluate(
        """() => { const root = document.querySelector('.model-view');
        const ink = document.createElement('canvas').getContext('2d');
        const light = colour => { const [r, g, b] = colour.map(v => { v /= 255;
            return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const item = root.querySelector('.model-stops li'), soft = getComputedStyle(item).backgroundColor;
        ink.fillStyle = soft; ink.fillRect(0, 0, 1, 1);
        ink.fillStyle = getComputedStyle(item.querySelector('i')).backgroundColor; ink.fillRect(0, 0, 1, 1);
        const bar = [...ink.getImageData(0, 0, 1, 1).data].slice(0, 3);
        const text = getComputedStyle(item).color.match(/\\d+/g).slice(0, 3).map(Number);
        const [a, b] = [light(text), light(bar)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); }"""
    )
    assert worst >= 4.5, "text over the bar of a percentage"
    strip = page.evaluate(
        """() => { const canvas = document.querySelector('.model-lines'), dense = devicePixelRatio;
        return [...canvas.getContext('2d').getImageData(50 * dense, 168 * dense, 1, 1).data]; }"""
    )
    assert strip[3] == 255 and (sum(strip[:3]) < 330) == (theme == "dark"), "the road follows the theme"


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1024, 768), (700, 900)])
@pytest.mark.parametrize("opened", ["", "blocks.1.attention", "blocks.1.mlp"])
def test_it_fits_the_window(start, width, height, opened):
    page = start
    before = page.viewport_size
    try:
        page.set_viewport_size({"width": width, "height": height})
        kernel(page, f"view.part = {opened!r}")
        until(page, part=opened)
        page.wait_for_timeout(300)
        pane = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
        outer = view(page).bounding_box()
        if width > 1300:
            assert outer["height"] <= pane["height"], "text, picture, prediction and the open part are seen together"
            road = view(page).locator(".model-road").evaluate("e => [e.scrollWidth, e.clientWidth]")
            assert road[0] <= road[1], "nothing to scroll"
        assert view(page).get_attribute("data-columns") == ("2" if width > 1300 else "1")
        for name in (".model-typing", ".model-tokens", ".model-road", ".model-coming", ".model-opened"):
            inner = view(page).locator(name).bounding_box()
            assert inner["x"] >= outer["x"], name
            assert inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1, name
        spilled = view(page).evaluate(
            """e => [...e.querySelectorAll('.model-opened *, .model-typing *')]
            .filter(x => x.getBoundingClientRect().right > e.getBoundingClientRect().right).map(x => x.className)"""
        )
        assert spilled == []
    finally:
        page.set_viewport_size(before)


def test_it_is_quick_and_small(start):
    page = start
    area = view(page).get_by_role("textbox", name="Text")
    area.focus()
    page.keyboard.press("Control+End")
    times = []
    for key in " the east":
        view(page).evaluate("e => { delete e.dataset.latency; }")
        page.keyboard.press(key)
        page.wait_for_function("() => document.querySelector('.model-view').dataset.latency")
        times.append(float(view(page).get_attribute("data-latency")))
    drawn = view(page).evaluate("e => e.timings.filter(([name]) => name === 'draw').map(([, t]) => t).slice(-8)")
    measured = {"key to picture": statistics.median(times), "drawing": statistics.median(drawn)}
    measured |= {"sent": int(run_cell(page, SENT)), "page": int(run_cell(page, PAGE))}
    for name, value in measured.items():
        print(f"model view: {name} {value:,.1f} (limit {LIMITS[name]:,.0f})")
    assert measured["sent"] <= LIMITS["sent"] and measured["page"] <= LIMITS["page"]
    assert measured["key to picture"] <= 5 * LIMITS["key to picture"] and measured["drawing"] <= 5 * LIMITS["drawing"]


def test_the_page_works_without_kernel_and_network(start, server, browser):
    run_cell(start, PAGE)
    with offline_page(browser, server.folder / "page.html") as alone:
        alone.locator(".model-view[data-ready='1']").wait_for()
        assert state(alone)["tokens"] == 63
        alone.get_by_role("button", name="Next token").click()
        until(alone, tokens=64)
        alone.get_by_role("combobox", name="Recorded text").select_option("0")
        until(alone, tokens=63)
        part(alone, "blocks.3.mlp").click()
        until(alone, part="blocks.3.mlp")
        assert alone.get_by_label("Switch this MLP off").is_disabled()
        part(alone, "blocks.3.attention").click()
        alone.get_by_role("button", name="Attention view").click()
        alone.locator(".model-view .attention-view[data-ready='1']").wait_for()
        alone.get_by_role("slider", name="Temperature").fill("0")
        alone.wait_for_function("() => document.querySelector('.attention-next span').textContent === '1.000'")
    text = (server.folder / "page.html").read_text(encoding="utf-8")
    again = browser.new_context(java_script_enabled=False).new_page()
    again.goto((server.folder / "page.html").as_uri())
    assert again.locator("img").is_visible() and "A GPT of 4 blocks" in again.locator("img").get_attribute("alt")
    again.context.close()
    assert len(text) < 1.5e6


def test_a_saved_notebook_keeps_the_picture_and_opens_again(start, server, browser):
    page = start
    save(page)
    book = nbformat.read(server.folder / "model.ipynb", as_version=4)
    outputs = [
        output.data
        for cell in book.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert len(outputs) == 3 and all("widget" not in kind for data in outputs for kind in data)
    again = open_notebook(browser, server, "model.ipynb", width=1366, height=768)
    try:
        images = again.locator(".jp-OutputArea img")
        images.first.wait_for()
        assert images.count() == 3
        run_all(again)
        again.locator(".model-view[data-ready='1']").nth(2).wait_for()
        assert troubles(again) == [] and again.outside == [] and again.errors == []
    finally:
        again.context.close()
