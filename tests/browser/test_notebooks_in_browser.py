"""Every notebook opens in JupyterLab in a real browser and runs to its last cell without a network."""

import nbformat
import pytest
from lab import ROOT, open_notebook, run_all, troubles, write_notebook

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_in_the_browser(name, server, browser):
    book = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    meant = {n for n, cell in enumerate(book.cells) if "raises-exception" in cell.metadata.get("tags", [])}
    page = open_notebook(browser, server, f"notebooks/{name}")
    try:
        page.wait_for_timeout(500)  # the kernel has said what it is; a notebook that says less is changed now
        assert page.locator(".jp-mod-dirty").count() == 0, "opening the notebook has changed it"
        run_all(page, timeout=600_000)
        seen = troubles(page)
        assert [trouble for trouble in seen if trouble[0] not in meant] == []
        assert meant <= {n for n, _ in seen}, "a cell that promises an error shows none"
        assert page.outside == [], "the notebook contacted another machine"
        assert page.errors == []
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
