"""One JupyterLab for all browser tests, on copies of the notebooks; without a browser every test is skipped."""

import platform

import lab
import pytest

from tools import working_copies


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if reason := lab.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    working_copies.update(lab.ROOT / "notebooks", folder / "notebooks", platform.python_version())  # as `make lab` does
    with lab.running_lab(folder) as running:
        yield running


@pytest.fixture(scope="module")  # closed before other tests start kernels: Playwright keeps an event loop running
def browser():
    if reason := lab.why_not():
        pytest.skip(reason)
    with lab.chromium() as running:
        yield running
