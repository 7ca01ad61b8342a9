"""A learner's own copies of the notebooks, so that an update of the course never meets what a learner wrote.

`run.py lab` calls `update` with the folder of the notebooks and the learner's folder. What a learner has changed is
never overwritten; a notebook that the course has changed since comes beside it, as `05_multi_head.new.ipynb`. Needs
nothing but Python: it runs before anything is installed.
"""

import hashlib
import json
import os
from pathlib import Path

STATE = ".course_copies.json"  # what was handed out: {name: {"given": hash of the copy, "content": hash of its lesson}}
SKIP = {".ipynb_checkpoints", "__pycache__", "manifest.json"}


def update(source, target):
    """Bring ``target`` up to date with ``source``; returns sentences for the learner.

    For each file of the course: a copy that is not there is made; one that is exactly as it was handed out is replaced
    by the new version; one that the learner has changed, by writing or only by running it, stays, and a new version of
    the lesson is put beside it, once. Files that the course does not have are the learner's, and are not looked at.
    """
    source, target = Path(source), Path(target)
    target.mkdir(parents=True, exist_ok=True)
    state, said = _read_state(target), []
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        data = path.read_bytes()
        said += _hand_out(target / name, data, state.setdefault(name, {}), state)
        _write(target / STATE, json.dumps(state, indent=1, sort_keys=True).encode("utf-8"))
    return said


def _hand_out(copy, data, known, state):
    """Copy one file of the course, or leave the learner's and put the new one beside it. ``known`` is brought up to
    date. Returns sentences."""
    new = {"given": _hash(data), "content": _content(copy.name, data)}
    if not copy.exists():
        _write(copy, data)
        known.clear()
        known.update(new)
        return []
    mine = _hash(copy.read_bytes())
    if mine == new["given"]:  # the same already; perhaps the learner took the new version over
        known.clear()
        known.update(new)
        return []
    if mine == known.get("given"):  # untouched since it was handed out
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
        f"{copy.name} has changed in the course, and you have worked in your copy: the new version lies beside it as"
        f" {beside.name}."
    ]


def _beside(copy, state):
    """05_multi_head.new.ipynb; with a number if the learner has worked in an earlier one of that name."""
    for n in range(1, 1000):
        name = copy.stem + (".new" if n == 1 else f".new-{n}") + copy.suffix
        beside = copy.with_name(name)
        if not beside.exists() or _hash(beside.read_bytes()) == state.get("beside " + name, {}).get("given"):
            return beside
    raise OSError(17, "a thousand new versions lie there already", str(copy))


def _files(source):
    """The files of the course's folder, without caches and what is for its authors only."""
    for folder, folders, names in os.walk(str(source)):
        folders[:] = sorted(f for f in folders if f not in SKIP and not f.startswith("."))
        for name in sorted(names):
            if name not in SKIP and not name.startswith("."):
                yield Path(folder) / name


def _content(name, data):
    """Hash of what a learner reads: the cells of a notebook without outputs, so that a new run is no new lesson."""
    if name.endswith(".ipynb"):
        try:
            cells = json.loads(data.decode("utf-8"))["cells"]
            data = json.dumps([[c["cell_type"], "".join(c["source"])] for c in cells]).encode("utf-8")
        except (ValueError, KeyError, TypeError):
            pass
    return _hash(data)


def _hash(data):
    return hashlib.sha256(data).hexdigest()


def _read_state(target):
    """What was handed out. If that cannot be read, every copy that differs counts as the learner's."""
    try:
        state = json.loads((target / STATE).read_text(encoding="utf-8"))
        return {name: known for name, known in state.items() if isinstance(known, dict)}
    except (OSError, ValueError, AttributeError):
        return {}


def _write(path, data):
    """Write beside and rename: an interrupted copy is never taken for a learner's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        os.replace(str(part), str(path))
    finally:
        if part.exists():
            part.unlink()
