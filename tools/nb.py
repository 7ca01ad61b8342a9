#!/usr/bin/env python
"""Notebook housekeeping.

    python tools/nb.py run   [notebook ...]   execute in a fresh kernel and save, in committed form
    python tools/nb.py clean [notebook ...]   put in committed form without executing
    python tools/nb.py check [notebook ...]   list what breaks a rule of tools/hygiene.py; exit 1 if anything does
    python tools/nb.py manifest               record the cells of every notebook in notebooks/manifest.json

Without names, all notebooks. `run` saves a notebook only if every cell of it succeeded.
"""

import atexit
import copy
import json
import os
import re
import sys
import tempfile
import time
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
LONG = ("03", "09", "11", "12")  # the notebooks that train at length


def books(folder=NOTEBOOKS):
    """The notebooks of the course, in the order of their names."""
    return sorted(p for p in Path(folder).rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def read(path):
    return nbformat.read(path, as_version=4)


def text(book):
    """The notebook as it is stored: what `nbformat` writes, and one newline at the end."""
    return nbformat.writes(book) + "\n"


def write(path, book):
    """Store the notebook in place of the old one."""
    replace(path, text(book))


def replace(path, content):
    """Write beside and rename, so that an interrupted run leaves the old file whole, and nothing beside it."""
    part = path.with_suffix(".part")
    try:
        part.write_text(content, encoding="utf-8", newline="\n")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def cells_of(book):
    """What the manifest records of a notebook: kind and id of each cell, in order."""
    return [f"{cell.cell_type}:{cell.id}" for cell in book.cells]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def budget(path):
    """Seconds that a notebook may take."""
    return LONG_BUDGET if Path(path).name.startswith(LONG) else BUDGET


@cache
def why_no_shakespeare():
    """Why cells tagged `shakespeare` run on the stand-in text; empty if tinyshakespeare is on this machine."""
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
    """The outputs without progress bars: tqdm's widget, whose text is the bar at 0 %, and its meters on stderr."""
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
def clean(book):
    """A copy of the notebook in the one form in which notebooks are committed."""
    book = copy.deepcopy(book)
    book.nbformat, book.nbformat_minor = 4, 5
    book.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
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
    """One output in committed form, None if nothing of it stays. Alt text in the metadata of a picture stays."""
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
    os.environ["COURSE_PROGRESS"] = str(Path(IPYTHONDIR.name) / "progress.json")  # nobody has done anything yet
    startup = Path(IPYTHONDIR.name) / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    (startup / "no_network.py").write_text(
        "from tools import no_network\nno_network.forbid()\ndel no_network\n", encoding="utf-8"
    )


def client(book, folder, timeout):
    """An nbclient on the interpreter that runs this, whatever kernelspecs are registered."""
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
    """The notebook executed in a fresh kernel, as a new object; the file is not touched."""
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
    data = {path.name: cells_of(read(path)) for path in books()}
    replace(MANIFEST, json.dumps(data, indent=1) + "\n")


def main(argv):
    commands = {"run", "clean", "check", "manifest"}
    if not argv or argv[0] not in commands:
        sys.exit(__doc__)
    command, paths = argv[0], [Path(p).resolve() for p in argv[1:]] or books()
    if command == "manifest":
        if argv[1:]:
            sys.exit(f"manifest is of all notebooks: it takes no names, and got {' '.join(argv[1:])}")
        write_manifest()
        return 0
    for path in paths:
        if not path.is_file():
            sys.exit(f"there is no notebook {path}")
    bad = 0
    for path in paths:
        if command == "check":
            from tools import hygiene

            for problem in hygiene.problems(path):
                print(f"{path.name}: {problem}".encode("ascii", "backslashreplace").decode())
                bad = 1
            continue
        start = time.perf_counter()
        write(path, clean(execute(path) if command == "run" else read(path)))
        seconds = f"  {time.perf_counter() - start:.1f} s of {budget(path)} s"
        print(f"{command} {path.name}" + seconds * (command == "run"))
    return bad


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # for `tools`, when run as a script from any folder
    sys.exit(main(sys.argv[1:]))
