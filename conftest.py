"""pytest set-up: notebooks as tests (strict nbval, one thread, no network), and what the summary says about them."""

from collections import Counter

import pytest
from nbval.plugin import IPyNbCell

from tools import nbval_strict, no_network, notebook

notebook.kernel_environment()
nbval_strict.install()


def pytest_configure(config):
    if config.option.nbval_sanitize_with is None:  # in addopts it would be relative to the caller's folder
        config.option.nbval_sanitize_with = str(notebook.ROOT / "nbval_sanitize.cfg")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items):
    """Mark notebooks and browser tests as slow, and put them first; other tests say themselves that they are slow.

    Two processes share the files in this order: what takes a minute must not be what is left at the end.
    """
    for item in items:
        if item.path.suffix == ".ipynb" or item.path.parent.name == "browser":
            item.add_marker("slow")
    items.sort(key=lambda item: (item.path.parent.name != "browser", item.path.suffix != ".ipynb"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let no test of this process leave the machine. (Kernels have their own guard: see tools/notebook.py.)"""
    no_network.forbid(not isinstance(item, IPyNbCell))
    try:
        return (yield)
    finally:
        no_network.forbid(False)


def pytest_terminal_summary(terminalreporter):
    """Print how many cells were compared, why others were not, and the seconds of each notebook."""
    reports = [r for group in terminalreporter.stats.values() for r in group if getattr(r, "when", "") == "call"]
    properties = [p for r in reports for p in r.user_properties]
    reasons = Counter(why for name, why in properties if name == "notebook cell")
    times = sorted(tuple(value) for name, value in properties if name == "notebook seconds")
    if not reasons:
        return
    terminalreporter.section("notebooks")
    compared = reasons.pop("", 0)
    terminalreporter.write_line(f"{compared + reasons.total()} cells run, outputs of {compared} compared")
    for why, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} run but not compared: {why}")
    for name, seconds, allowed in times:
        over = "   OVER BUDGET" if seconds > allowed else ""
        terminalreporter.write_line(f"{name:32} {seconds:6.1f} s of {allowed:3.0f} s{over}")
