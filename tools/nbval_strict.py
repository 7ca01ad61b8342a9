"""nbval 0.11.0 with its holes closed. It replaces methods of nbval, which must therefore stay pinned (nbval==0.11.0).

What nbval alone would let pass, and does not after `install()`:

1. a cell stored without having been run, of which nothing is compared (a stripped notebook is green);
2. an unknown magic, which IPython only prints about, so that the rest of the cell is never run;
3. `raises-exception` on a cell that raises nothing;
4. a kernel that died, noticed only when the time limit of the cell ends;
5. NameErrors in every cell after one that failed: they are skipped, with the reason;
6. cells run without history, where a last `;` and the names `_`, `In`, `Out` do not work as in Jupyter;
7. an alt text that says other numbers than the picture: it is compared, as text outputs are.

And what nbval would fail, and should not: `handle.update(...)` of a display, as live plots use it.

Progress bars are taken out on both sides before comparing. Items are named by cell id, and each notebook gets one more
item, `time budget`, which fails beyond FACTOR times the seconds of tools/notebook.py.
"""

import os
import time
from queue import Empty
from unittest import mock

import nbformat
import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from tools import notebook

FACTOR = 5  # other machines, and other work on this one

_setup, _collect = IPyNbFile.setup, IPyNbFile.collect
_runtest, _compare_outputs = IPyNbCell.runtest, IPyNbCell.compare_outputs


# ------------------------------------------------------------------ the kernel
def execute_cell_input(self, cell_input, allow_stdin=None):
    return self.kc.execute(cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


def await_reply(self, msg_id, timeout=None):
    """Wait for the reply and keep it; check every second that the kernel is still alive."""
    self.last_reply = None
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = 1.0 if end is None else min(1.0, max(0.0, end - time.monotonic()))
        try:
            message = self.get_message(stream="shell", timeout=left)
        except Empty:
            if not self.is_alive():
                raise RuntimeError("the kernel died while this cell ran (out of memory?)") from None
            if end is not None and time.monotonic() >= end:
                raise
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            self.last_reply = message["content"]
            return


# ------------------------------------------------------------------ the notebook
def get_kernel_message(self, timeout=None, stream="iopub"):
    """Return the next message; apply updates of a display to that display, as the page does, and skip them."""
    while True:
        message = self.kernel.get_message(stream, timeout=timeout)
        content = message["content"]
        name = content.get("transient", {}).get("display_id")
        if name is None:
            return message
        shown = self.__dict__.setdefault("displays", {}).setdefault(name, [])
        if message["msg_type"] in ("display_data", "execute_result"):
            for part in ("data", "metadata"):
                content[part] = nbformat.from_dict(content[part])  # of this type, nbval keeps the object itself
            shown.append(content)
        elif message["msg_type"] == "update_display_data":
            for old in shown:
                for part in ("data", "metadata"):
                    old[part].clear()
                    old[part].update(nbformat.from_dict(content[part]))
            continue
        return message


def setup(self):
    start = time.perf_counter()
    with mock.patch.dict(os.environ, COURSE_OFFLINE="1"):  # kernels find what is on this machine, and download nothing
        _setup(self)
    self.seconds = time.perf_counter() - start


def collect(self):
    for item in _collect(self):
        yield IPyNbCell.from_parent(
            self, name=item.cell.get("id", item.name), cell_num=item.cell_num, cell=item.cell, options=item.options
        )
    yield TimeBudget.from_parent(self, name="time budget")


class TimeBudget(pytest.Item):
    """The last item of each notebook: it fails if the cells together took too long."""

    def runtest(self):
        if broken := getattr(self.parent, "broken", None):
            pytest.skip(f"{broken} of this notebook failed to run")
        seconds, allowed = self.parent.seconds, notebook.budget(self.path)
        self.user_properties.append(("notebook seconds", (self.path.stem, seconds, allowed)))
        if seconds > FACTOR * allowed:
            pytest.fail(f"took {seconds:.0f} s; its budget is {allowed} s, the limit {FACTOR} times that", False)

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}: time budget"


# ------------------------------------------------------------------ the cell
def runtest(self):
    if broken := getattr(self.parent, "broken", None):
        pytest.skip(f"{broken} of this notebook failed to run")
    unrun = self.cell.execution_count is None and self.cell.source.strip()
    if self.options["check"] and unrun and not self.options["skip"]:
        self.raise_cell_error("stored without having been run: nbval would compare nothing")
    if "shakespeare" in notebook.tags(self.cell) and (missing := notebook.why_no_shakespeare()):
        self.options["check"] = False
        why = f"tagged shakespeare; {missing}"
    else:
        lax = "tagged nbval-ignore-output" if "nbval-ignore-output" in notebook.tags(self.cell) else "--nbval-lax"
        why = "" if self.options["check"] else lax
    self.user_properties.append(("notebook cell", why))
    start = time.perf_counter()
    try:
        _runtest(self)
    except NbCellError as error:
        if str(error) != "Cell outputs differ":
            self.parent.broken = self.name
        raise
    except RuntimeError:  # the kernel died
        self.parent.broken = self.name
        raise
    finally:
        self.parent.seconds += time.perf_counter() - start
    reply = self.parent.kernel.last_reply or {"status": "timed out"}
    if self.options["check_exception"]:
        if reply["status"] != "error":
            self.raise_cell_error(f"tagged raises-exception, but it raised nothing ({reply['status']})")
    elif reply["status"] == "error":
        self.parent.broken = self.name
        self.raise_cell_error(f"{reply['ename']}: {reply['evalue']}")


def comparable(outputs):
    """Return the outputs as they are compared: without progress bars, with alt texts as one more kind of data."""
    result = []
    for out in notebook.without_bars(outputs):
        alts = {
            f"alt text of {mime}": meta["alt"]
            for mime, meta in out.get("metadata", {}).items()
            if isinstance(meta, dict) and "alt" in meta
        }
        result.append(nbformat.from_dict({**out, "data": {**out.data, **alts}}) if alts else out)
    return result


def compare_outputs(self, test, ref, skip_compare=None):
    return _compare_outputs(self, comparable(test), comparable(ref), skip_compare)


def install():
    """Replace the methods of nbval."""
    RunningKernel.execute_cell_input = execute_cell_input
    RunningKernel.await_reply = await_reply
    IPyNbFile.setup, IPyNbFile.collect, IPyNbFile.get_kernel_message = setup, collect, get_kernel_message
    IPyNbCell.runtest, IPyNbCell.compare_outputs = runtest, compare_outputs
