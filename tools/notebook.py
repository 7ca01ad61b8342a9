"""Notebooks of the course: where they are, the form in which they are committed, and how they are run."""

import atexit
import copy
import json
import os
import platform
import re
import tempfile
import uuid
from functools import cache
from pathlib import Path
from unittest import mock

import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
MANIFEST = NOTEBOOKS / "manifest.json"
WIDGET = "application/vnd.jupyter.widget-view+json"
IPYTHONDIR = tempfile.TemporaryDirectory(prefix="course-ipython-")
atexit.register(IPYTHONDIR.cleanup)  # goes when this process ends; left to itself it would warn

BUDGET = 60  # seconds a notebook may take on two cores
LONG_BUDGET = 120
LONG = ("03", "04", "10", "11", "13", "14")  # the notebooks that train at length


def books(folder=NOTEBOOKS):
    """Return the paths of the notebooks in a folder, sorted by name."""
    return sorted(p for p in Path(folder).rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def read(path):
    """Read a notebook."""
    return nbformat.read(path, as_version=4)


def text(book):
    """Return the notebook as it is stored: what nbformat writes, and one newline at the end."""
    return nbformat.writes(book) + "\n"


def write(path, book):
    """Store the notebook in place of the old one."""
    replace(path, text(book))


def replace(path, content):
    """Write to a temporary file, then rename: an interrupted run leaves the old file whole and nothing else."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        part.write_text(content, encoding="utf-8", newline="\n")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def cells_of(book):
    """Return what the manifest records of a notebook: the kind and id of each cell, in order."""
    return [f"{cell.cell_type}:{cell.id}" for cell in book.cells]


def tags(cell):
    """Return the set of tags of a cell."""
    return set(cell.metadata.get("tags", []))


def budget(path):
    """Return the seconds that a notebook may take."""
    return LONG_BUDGET if Path(path).name.startswith(LONG) else BUDGET


@cache
def why_no_shakespeare():
    """Return why cells tagged ``shakespeare`` run on the stand-in text; empty if the real one is on this machine."""
    from course_lib.text import CorpusUnavailable, load_corpus

    try:
        with mock.patch.dict(os.environ, COURSE_OFFLINE="1"):
            load_corpus("tinyshakespeare")
    except CorpusUnavailable as error:
        return str(error).splitlines()[0].split(", and")[0]  # not that we forbade the network
    return ""


# ------------------------------------------------------------------ progress bars
# "train:  40%|####      | 2/5 [00:00<00:01, 1.9it/s, loss=2.3]" and, when the end is not known, "7it [00:00, 19it/s]"
METER = re.compile(r"(.*: *)?\d+%\|.*\| *\S+/\S+ \[.*\]|(.*: *)?[\d.]+\w* ?\w* \[\d\d:\d\d.*\]")
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def without_bars(outputs):
    """Return the outputs without progress bars: tqdm's widget (its text is the bar at 0 %) and meters on stderr."""
    kept = []
    for out in outputs:
        if out.output_type == "stream" and out.name == "stderr":
            lines = [
                s
                for s in re.split(r"[\r\n]+", out.text)
                if (bare := ANSI.sub("", s).strip()) != "" and not METER.fullmatch(bare)
            ]
            if not lines:
                continue
            if METER.search(out.text):
                out = nbformat.from_dict({**out, "text": "\n".join(lines) + "\n"})
        elif "data" in out and set(out.data) <= {WIDGET, "text/plain"}:
            if METER.fullmatch(out.data.get("text/plain", "").strip()):
                continue
        kept.append(out)
    return kept


# ------------------------------------------------------------------ the committed form
# What a Python kernel says of itself. JupyterLab writes it into a notebook that says less, and marks it as changed.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}


def clean(book):
    """Return a copy of the notebook in the one form in which notebooks are committed."""
    book = copy.deepcopy(book)
    book.nbformat, book.nbformat_minor = 4, 5
    version = book.metadata.get("language_info", {}).get("version", platform.python_version())
    book.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": LANGUAGE | {"version": version},
        }
    )
    count = 0
    for i, cell in enumerate(book.cells):
        cell.setdefault("id", f"cell-{i:02d}")
        meta = {"tags": sorted(tags(cell))} if tags(cell) else {}
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            meta["jupyter"] = {"source_hidden": True}
        cell.metadata = nbformat.from_dict(meta)
        cell.source = cell.source.rstrip()
        if cell.cell_type == "code":
            if cell.execution_count is not None:
                count += 1
                cell.execution_count = count
            cell.outputs = [out for out in map(clean_output, without_bars(cell.outputs)) if out]
            for out in cell.outputs:
                if out.output_type == "execute_result":
                    out.execution_count = cell.execution_count
    return book


def clean_output(out):
    """Return one output in committed form, or None if nothing of it stays. The alt text of a picture is kept."""
    if "data" in out:
        out.data.pop(WIDGET, None)  # its model id is random, and points nowhere without the kernel
        keep = {*out.data, "needs_background"}
        out.metadata = nbformat.from_dict({k: v for k, v in out.metadata.items() if k in keep})
        return out if out.data else None
    if out.output_type == "error":  # no colours, and no folders of the machine it ran on
        out.traceback = [
            re.sub(r"File [^\n]*[/\\](course_lib|site-packages)[/\\]", r"File \1/", ANSI.sub("", line))
            for line in out.traceback
        ]
    return out


# ------------------------------------------------------------------ execution
def kernel_environment():
    """Set what kernels inherit: one thread (equal digits everywhere, fast small models), no personal files."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
    os.environ.pop("PYTHONHASHSEED", None)  # random: output that depends on the order of a set must be found
    os.environ["IPYTHONDIR"] = IPYTHONDIR.name
    os.environ["COURSE_PROGRESS"] = str(Path(IPYTHONDIR.name) / "progress.json")  # no exercise is done yet
    startup = Path(IPYTHONDIR.name) / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    (startup / "no_network.py").write_text(
        "from tools import no_network\nno_network.forbid()\ndel no_network\n", encoding="utf-8"
    )


def client(book, folder, timeout):
    """Return an nbclient on the interpreter that runs this, whatever kernelspecs are registered."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

    manager = AsyncKernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
    made = NotebookClient(
        book,
        km=manager,
        timeout=timeout,
        interrupt_on_timeout=True,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    made.owns_km = True  # or the kernel would outlive us
    return made


def execute(path, timeout=600):
    """Return the notebook executed in a fresh kernel, as a new object.

    The file is not touched. Raises FileNotFoundError if a cell needs tinyshakespeare and the text is not here.
    """
    kernel_environment()
    os.environ["COURSE_OFFLINE"] = "1"
    book = read(path)
    if any("shakespeare" in tags(cell) for cell in book.cells) and (why := why_no_shakespeare()):
        raise FileNotFoundError(f"{path.name}: outputs on tinyshakespeare cannot be saved: {why}")
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client(book, path.parent, timeout).execute()
    return book


def write_manifest():
    """Record the cells of every notebook of the course."""
    data = {path.name: cells_of(read(path)) for path in books()}
    replace(MANIFEST, json.dumps(data, indent=1) + "\n")
