"""A learner's own copies of the notebooks, so that an update of the course never meets what a learner wrote.

`run.py lab` calls `update` with the folder of the notebooks and the learner's folder. What a learner has changed is
never overwritten; a notebook that the course has changed since is put beside it, as `06_multi_head.new.ipynb`. Needs
nothing but Python: it runs before anything is installed.
"""

import hashlib
import json
import os
import uuid
from pathlib import Path

# what was handed out: {name: {"given": hash of the copy, "content": of its lesson, "work": of its cells with outputs}}
STATE = ".course_copies.json"
SKIP = {".ipynb_checkpoints", "__pycache__", "manifest.json"}


def update(source, target, python=None):
    """Bring ``target`` up to date with ``source``; return sentences for the learner.

    For each file of the course: a copy that is not there is made; one whose cells and outputs are as they were handed
    out is replaced by the new version (JupyterLab rewrites the rest of a file that was only opened); one that the
    learner has changed, by writing or by running it with another outcome, stays, and a new version of the lesson is put
    beside it, once. Files that the course does not have are the learner's, and are not looked at. ``python``: the
    version of the Python that will run the copies, such as "3.12.1", which JupyterLab writes into a notebook that says
    another: opening a copy would mark it as changed.
    """
    source, target = Path(source), Path(target)
    target.mkdir(parents=True, exist_ok=True)
    state, said = _read_state(target), []
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        data = _for_python(path.name, path.read_bytes(), python)
        said += _hand_out(target / name, data, state.setdefault(name, {}), state)
        _write(target / STATE, json.dumps(state, indent=1, sort_keys=True).encode("utf-8"))
    return said


def _hand_out(copy, data, known, state):
    """Copy one file of the course, or leave the learner's and put the new one beside it.

    Brings ``known`` up to date and returns sentences.
    """
    new = {"given": _hash(data), "content": _content(copy.name, data), "work": _work(copy.name, data)}
    if not copy.exists():
        _write(copy, data)
        known.clear()
        known.update(new)
        return []
    there = copy.read_bytes()
    mine, work = _hash(there), _work(copy.name, there)
    if mine == new["given"]:  # the same already; perhaps the learner took the new version over
        known.clear()
        known.update(new)
        return []
    if mine == known.get("given") or work is not None and work == known.get("work"):  # untouched since
        _write(copy, data)
        known.update(new)
        return []
    if new["content"] in (known.get("content"), known.get("offered")):
        return []
    beside = _beside(copy, state)
    _write(beside, data)
    known["offered"] = new["content"]
    state["beside " + beside.name] = {"given": new["given"]}
    return [
        f"{copy.name} has changed in the course, and you have worked in your copy: the new version is beside it as"
        f" {beside.name}."
    ]


def _beside(copy, state):
    """Return 06_multi_head.new.ipynb, with a number if the learner has worked in an earlier one."""
    for n in range(1, 1000):
        name = copy.stem + (".new" if n == 1 else f".new-{n}") + copy.suffix
        beside = copy.with_name(name)
        if not beside.exists() or _hash(beside.read_bytes()) == state.get("beside " + name, {}).get("given"):
            return beside
    raise OSError(17, "a thousand new versions are there already", str(copy))


def _files(source):
    """Yield the files of the course's folder, without caches and what only authors need."""
    for folder, folders, names in os.walk(str(source)):
        folders[:] = sorted(f for f in folders if f not in SKIP and not f.startswith("."))
        for name in sorted(names):
            if name not in SKIP and not name.startswith("."):
                yield Path(folder) / name


def _content(name, data):
    """Hash what a learner reads: the cells of a notebook without outputs, so that a new run is not a new lesson."""
    if name.endswith(".ipynb"):
        try:
            cells = json.loads(data.decode("utf-8"))["cells"]
            data = json.dumps([[c["cell_type"], "".join(c["source"])] for c in cells]).encode("utf-8")
        except (ValueError, KeyError, TypeError):
            pass
    return _hash(data)


def _for_python(name, data, python):
    """Return the file of the course with the version of the Python that will run it."""
    if python and name.endswith(".ipynb"):
        book = json.loads(data)
        if "version" in book["metadata"].get("language_info", {}):
            book["metadata"]["language_info"]["version"] = python
            data = (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    return data


def _work(name, data):
    """Hash what a learner can have added to a notebook: its cells and outputs, in whatever form they were saved."""
    if not name.endswith(".ipynb"):
        return None
    try:
        cells = json.loads(data.decode("utf-8"))["cells"]
        kept = [{key: c.get(key) for key in ("cell_type", "source", "outputs", "attachments")} for c in cells]
        return _hash(json.dumps(_plain(kept), sort_keys=True).encode("utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _plain(value):
    """Return the parts of a notebook with lines joined, without metadata and counts, which a mere save may change."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k not in ("metadata", "execution_count", "transient")}
    if isinstance(value, list):
        return "".join(value) if all(isinstance(v, str) for v in value) else [_plain(v) for v in value]
    return value


def _hash(data):
    return hashlib.sha256(data).hexdigest()


def _read_state(target):
    """Return what was handed out; if that is unreadable, every copy that differs counts as the learner's."""
    try:
        state = json.loads((target / STATE).read_bytes())  # in any encoding of JSON
        return {name: known for name, known in state.items() if isinstance(known, dict)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _write(path, data):
    """Write to a temporary file, then rename: an interrupted copy is never taken for a learner's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")  # another process may be handing out, too
    try:
        part.write_bytes(data)
        os.replace(str(part), str(path))
    finally:
        if part.exists():
            part.unlink()
