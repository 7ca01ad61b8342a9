"""The built web edition: links, HTML, weight, and in a browser its views, search, keyboard, print and accessibility.

It is built once, without the views that a training run comes before.
"""

import functools
import http.server
import re
import threading
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from lab import guarded_page

from tools import notebook
from tools.site import build

html5lib = pytest.importorskip("html5lib", reason="make test installs it")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make test installs it")
for package in ("latex2mathml", "myst_nb", "sphinx_book_theme", "sphinx_copybutton"):
    pytest.importorskip(package, reason="the extra site is not installed (make test installs it)")

HEAVIEST = 3_000_000  # bytes of a page with all that it loads, before its views are opened
HOSTS = {"huggingface.co", "nbgitpuller.readthedocs.io", "numpy.org"}  # where the site links to
STEMS = [path.stem for path in notebook.books()]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that does not log."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build.write_sources(folder / "source", quick=True)
    assert build.run_sphinx(folder / "source", folder / "html") == 0
    build.trim(folder / "html")
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    """Return {path below the site: parsed page}; the pages of live views are apart."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith(("live/", "_static/")):
            found[name] = html5lib.parse(path.read_text(encoding="utf-8"), namespaceHTMLElements=False)
    assert set(STEMS) | {"index", "reference", "teachers", "search"} <= {name.removesuffix(".html") for name in found}
    return found


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def opened(browser, address):
    """Return a function that opens a page; at the end none of them may have asked outside, nor met an error."""
    made = []

    def open_page(name, width=1366, height=768, **options):
        page = guarded_page(browser, width, height, **options)
        made.append(page)
        page.goto(address + name)
        return page

    yield open_page
    for page in made:
        assert page.outside == [] and page.errors == [], page.url
        page.context.close()


# ---------------------------------------------------------------- the files


def links(tree):
    """Yield what a page links to or loads, and whether it loads it."""
    for element in tree.iter():
        for name in ("href", "src"):
            if (target := element.get(name)) is not None:
                yield target, element.tag not in ("a", "area")


def test_every_link_inside_the_site_leads_somewhere(site, pages):
    places = {name: {e.get("id") for e in tree.iter()} for name, tree in pages.items()}
    broken = []
    for name, tree in pages.items():
        for target, _ in links(tree):
            if urlparse(target).scheme or target.startswith("//"):
                continue
            address, place = urldefrag(target)
            path = ((site / name).parent / unquote(address.partition("?")[0])).resolve() if address else site / name
            below = path.relative_to(site.resolve()).as_posix() if path.is_relative_to(site.resolve()) else ""
            if not path.is_file() or (place and below in places and unquote(place) not in places[below]):
                broken.append((name, target))
    assert not broken


def test_links_to_other_sites_are_those_we_know_and_nothing_is_loaded_from_there(site, pages):
    loaded, hosts = [], set()
    for name, tree in pages.items():
        for target, loads in links(tree):
            if urlparse(target).netloc:
                hosts.add(urlparse(target).netloc)
                if loads:
                    loaded.append((name, target))
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(['\"]?(https?:)?//", path.read_text("utf-8"))]
    assert not loaded and not styles and hosts == HOSTS


def test_the_html_is_valid(site, pages):
    for name, tree in pages.items():
        parser = html5lib.HTMLParser()
        parser.parse((site / name).read_text(encoding="utf-8"))
        assert not parser.errors, (name, parser.errors[:3])
        ids = [e.get("id") for e in tree.iter() if e.get("id")]
        assert len(ids) == len(set(ids)), (name, {i for i in ids if ids.count(i) > 1})


def test_the_pages_follow_one_another(pages):
    names = ["index", *STEMS, "twins/index"]
    for before, after in zip(names, names[1:]):
        following = [e.get("href") for e in pages[f"{before}.html"].iter("a") if "right-next" in (e.get("class") or "")]
        assert following == [f"{after}.html"]


def test_every_picture_of_a_notebook_is_on_its_page_and_has_alt_text(pages):
    for path in notebook.books():
        outputs = [out for cell in notebook.read(path).cells for out in cell.get("outputs", [])]
        stored = sum("image/png" in out.get("data", {}) for out in outputs)
        shown = [e for e in pages[f"{path.stem}.html"].iter("img") if "still" in (e.get("class") or "")]
        assert len(shown) == stored and all(e.get("alt") for e in shown)


# ---------------------------------------------------------------- in a browser


def test_every_page_is_light_asks_nowhere_and_meets_no_error(site, pages, browser, address):
    page = guarded_page(browser, 1366, 768)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name in pages:
        asked.clear()
        page.goto(address + name)
        files = {site / unquote(urlparse(url).path.lstrip("/")) for url in asked if "/live/" not in url}
        weight = sum(path.stat().st_size for path in files if path.is_file())
        assert 100_000 < weight <= HEAVIEST, (name, weight)
        assert page.errors == [] and page.outside == [], name
    page.context.close()


def test_every_view_comes_alive_and_follows_the_theme(pages, opened):
    awake = 0
    for name in [n for n, tree in pages.items() if any(e.get("class") == "live" for e in tree.iter("div"))]:
        page = opened(name, color_scheme="dark")
        boxes = page.locator(".live")
        for n in range(boxes.count()):
            boxes.nth(n).scroll_into_view_if_needed()
            view = boxes.nth(n).frame_locator("iframe").locator("[data-ready='1']")
            view.wait_for(timeout=10_000)
            page.locator(".live.alive").nth(n).wait_for(timeout=10_000)
            assert boxes.nth(n).locator("> img").is_hidden()
            body = boxes.nth(n).frame_locator("iframe").locator("body")
            assert body.get_attribute("data-jp-theme-light") == "false"
            awake += 1
        if name == "13_reading_attention.html":
            page.get_by_role("button", name="“stale”").click()
            text = page.locator(".live").first.frame_locator("iframe").locator("textarea")
            text.wait_for()
            page.wait_for_function(
                "() => document.querySelector('.live-choices [aria-pressed=true]').textContent.includes('stale')"
            )
            from playwright.sync_api import expect

            expect(text).to_have_value(re.compile("stale"))  # the frame has gone to the other page
    assert awake >= 6


def test_without_scripts_a_view_is_a_picture(opened):
    page = opened("03_attention.html", java_script_enabled=False)
    assert page.locator(".live > img").first.is_visible() and page.locator("iframe").count() == 0


def test_the_search_finds_the_causal_mask(opened):
    page = opened("search.html?q=causal+mask")
    found = page.locator("#search-results li a")
    found.first.wait_for()
    page.wait_for_function("() => /found \\d+ page/.test(document.getElementById('search-results').innerText)")
    assert any("05_causal_mask" in a for a in found.evaluate_all("all => all.map(a => a.href)")[:3])


def test_the_keyboard_reaches_everything(opened):
    page = opened("03_attention.html")
    page.locator(".live").first.scroll_into_view_if_needed()
    page.locator(".live.alive").first.wait_for()
    missed = page.evaluate(
        """() => { window.reached = new Set();
        addEventListener('focusin', event => window.reached.add(event.target));
        window.wanted = () => [...document.querySelectorAll('a[href], button, summary, iframe, input, select')]
            .filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: false}) && !e.disabled
                && e.tabIndex >= 0 && !e.closest('dialog') && !e.closest('[inert]'));
        scrollTo(0, 0); return wanted().length; }"""
    )
    assert missed > 40
    for _ in range(missed + 120):  # the frame of the view has controls of its own
        page.keyboard.press("Tab")
        page.evaluate("() => window.reached.add(document.activeElement)")
    left = page.evaluate("() => wanted().filter(e => !window.reached.has(e)).map(e => e.outerHTML.slice(0, 120))")
    assert left == []


@pytest.mark.parametrize("name", ["index", "13_reading_attention", "twins/muon", "search"])
def test_axe_finds_nothing_serious_in_either_theme(browser, address, name):
    for theme in ("light", "dark"):
        page = guarded_page(browser, 1366, 768, color_scheme=theme)
        page.goto(f"{address}{name}.html")
        found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        grave = [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
        assert not grave, theme
        page.context.close()


def test_a_phone_scrolls_in_one_direction_only(opened):
    for name in ("index.html", "03_attention.html", "twins/muon.html", "reference.html"):
        page = opened(name, 390, 844)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), name


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_page_prints_with_pictures_in_place_of_views(opened, paper):
    page = opened("03_attention.html", color_scheme="dark")
    page.locator(".live").first.scroll_into_view_if_needed()
    page.locator(".live.alive").first.wait_for()
    page.emulate_media(media="print")
    assert page.locator(".live > img").first.is_visible() and page.locator("iframe").first.is_hidden()
    assert page.pdf(format=paper).count(b"/Type /Page\n") > 5
