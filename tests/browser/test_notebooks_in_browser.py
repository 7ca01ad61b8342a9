"""Every notebook opens in JupyterLab in a real browser and runs to its last cell without a network.

The stop button is pressed in every cell that trains, after one step: each says so, shows what there is, and the page
goes on. Whole runs are compared cell by cell, without a browser; here notebook 02 alone trains to its end.
"""

import platform

import nbformat
import pytest
from lab import ROOT, open_notebook, run_all, running_lab, troubles, why_not, write_notebook

from tools import working_copies

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
WHOLE = "02_autograd.ipynb"
PRESSED = """
import course_lib.training.trainer as trainer

class Pressed(trainer.StopButton):
    pressed = property(lambda self: True, lambda self, value: None)

trainer.StopButton = Pressed
del trainer, Pressed
"""


@pytest.fixture(scope="module")
def stopping_server(tmp_path_factory):
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("stopping")
    working_copies.update(ROOT / "notebooks", folder / "notebooks", platform.python_version())
    with running_lab(folder, startup=PRESSED) as running:
        yield running


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_in_the_browser(name, server, stopping_server, browser):
    book = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    meant = {n for n, cell in enumerate(book.cells) if "raises-exception" in cell.metadata.get("tags", [])}
    stops = name != WHOLE and any(" train(" in cell.source for cell in book.cells if cell.cell_type == "code")
    page = open_notebook(browser, stopping_server if stops else server, f"notebooks/{name}")
    try:
        page.wait_for_timeout(500)  # the kernel has said what it is; a notebook that says less is changed now
        assert page.locator(".jp-mod-dirty").count() == 0, "opening the notebook has changed it"
        run_all(page, timeout=600_000)
        seen = troubles(page)
        assert [trouble for trouble in seen if trouble[0] not in meant] == []
        assert meant <= {n for n, _ in seen}, "a cell that promises an error shows none"
        assert page.outside == [], "the notebook contacted another machine"
        assert page.errors == []
        assert ("Training was stopped after 1 of " in page.locator(".jp-Notebook").inner_text()) == stops
        sizes = page.evaluate(
            "() => [...document.querySelectorAll('.jp-Notebook img')].map(i => [i.complete, i.naturalWidth])"
        )
        assert all(complete and width > 0 for complete, width in sizes), "a picture does not load"
    finally:
        page.context.close()


def test_the_harness_notices_what_goes_wrong(server, browser):
    """An exception, a warning, a request beyond this machine and a script error are all seen: the tests can fail."""
    cells = (
        "from IPython.display import HTML, display",
        'display(HTML(\'<img alt="" src="https://example.org/a.png">\'))',
        "display(HTML('<script>console.error(\"on purpose\")</script>'))",
        "import sys; print('a warning', file=sys.stderr)",
        "1 / 0",
        "print('never reached')",
    )
    page = open_notebook(browser, server, write_notebook(server.folder, "broken.ipynb", cells))
    try:
        run_all(page)
        assert troubles(page) == [(3, "a warning"), (4, "ZeroDivisionError: division by zero"), (5, "was not run")]
        assert set(page.outside) == {"https://example.org/a.png"}
        assert any("on purpose" in error for error in page.errors)
    finally:
        page.context.close()
