"""One JupyterLab for all browser tests, on copies of the notebooks; everything is skipped where there is no browser."""

import shutil

import lab
import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if reason := lab.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(lab.ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    with lab.running_lab(folder) as running:
        yield running


@pytest.fixture(scope="module")  # closed before other tests start kernels: Playwright keeps an event loop running
def browser():
    if reason := lab.why_not():
        pytest.skip(reason)
    with lab.chromium() as running:
        yield running
