"""The parts of the web edition, without building it. (tests/browser/test_site_in_browser.py has the built one.)"""

import importlib
import re

import pytest
import yaml

from course_lib import numpy_track, torch_track
from tools import definitions, notebook
from tools.site import pages, reference, twins, views


@pytest.mark.parametrize("name", twins.names())
def test_twins_show_every_line_of_both_files_and_light_those_that_differ(name):
    first, second = (twins.lines_of(track, name)[0] for track in twins.TRACKS)
    hunks = twins.hunks(name)
    assert [n for _, left, _ in hunks for n in left] == list(range(len(first)))
    assert [n for _, _, right in hunks for n in right] == list(range(len(second)))
    for equal, left, right in hunks:
        if equal:
            assert [first[n] for n in left] == [second[n] for n in right]
    page = twins.page(name)
    assert (page.count('class="lit') > 0) == (first != second)
    for track in twins.TRACKS:
        for place in definitions.defined_in(f"course_lib/{track}/{name}"):
            assert page.count(f'<span id="{place}">') == 1, place


def test_every_teaching_cell_of_a_twin_leads_to_it():
    cells = [c for path in notebook.books() for c in notebook.read(path).cells if "teaches" in notebook.tags(c)]
    led = [cell for cell in cells if pages.links_to_twins(cell)]
    assert len(led) > 20
    for cell in set(map(id, cells)) - set(map(id, led)):
        (cell,) = (c for c in cells if id(c) == cell)
        assert not any(taught.file.rpartition("/")[2] in twins.names() for taught in definitions.taught(cell))


def test_the_reference_has_every_public_name_once():
    text = reference.page()
    shown = re.findall(r"(?m)^### (\w+)$", text)
    elsewhere = {"Initializer", "TransformerConfig", "GPTConfig", "FirstGPTConfig"}  # of course_lib.common
    assert sorted(shown) == sorted(set(numpy_track.__all__) - elsewhere)
    assert set(numpy_track.__all__) == set(torch_track.__all__)
    assert "self" not in re.findall(r"<code>\w+\((\w+)", text)


def test_every_view_that_a_notebook_shows_has_a_way_to_become_a_page():
    for kind in views.PAGES:
        assert hasattr(importlib.import_module("course_lib.views"), kind)
    found = {path.stem: views.wanted(notebook.read(path)) for path in notebook.books()}
    assert found["00_start_here"] == ["attention", "model-view"] and "reader" in found["13_reading_attention"]
    assert sum(map(len, found.values())) >= 9
    quick = {path.stem: views.wanted(notebook.read(path), quick=True) for path in notebook.books()}
    assert 0 < sum(map(len, quick.values())) < sum(map(len, found.values()))


def test_the_pages_of_views_are_kept_until_the_cells_change():
    path = notebook.NOTEBOOKS / "13_reading_attention.ipynb"
    assert views.fingerprint(path, ["reader"]) == views.fingerprint(path, ["reader"])
    assert views.fingerprint(path, ["reader"]) != views.fingerprint(path, ["reader", "induction-view"])


def test_formulas_become_mathml_with_the_spaces_of_tex():
    mathml = pytest.importorskip("tools.site.mathml", reason="the extra site is not installed", exc_type=ImportError)
    assert "<mspace" in mathml.mathml(r"\ln 2", "inline") and "<mspace" not in mathml.mathml(r"\max(x, 0)", "inline")
    formulas = re.compile(r"(?s)\$\$(.+?)\$\$")
    for path in notebook.books():
        for cell in notebook.read(path).cells:
            for tex in formulas.findall(cell.source) if cell.cell_type == "markdown" else ():
                assert "<merror" not in mathml.mathml(tex, "block") and "\\" not in mathml.mathml(tex, "block"), tex


def test_buttons_lead_to_binder_and_colab_once_the_repository_has_an_address():
    assert pages.buttons("") == {}
    shown = pages.buttons("https://github.com/someone/gpt-twice")
    assert shown["path_to_docs"] == "notebooks" and {"binderhub_url", "colab_url"} <= set(shown["launch_buttons"])


def test_every_change_builds_the_site_and_only_main_publishes_it():
    jobs = yaml.safe_load((notebook.ROOT / ".github/workflows/site.yml").read_text(encoding="utf-8"))["jobs"]
    assert any("make site" in step.get("run", "") for step in jobs["build"]["steps"]) and "if" not in jobs["build"]
    assert jobs["publish"]["if"] == "github.ref == 'refs/heads/main'" and jobs["publish"]["needs"] == "build"
