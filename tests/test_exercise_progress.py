"""The progress file: whole at every moment, whatever kills the kernel; a damaged one is set aside."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_lib.exercises import store

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    return tmp_path / ".course_progress.json"


def test_it_lies_in_the_current_folder_and_once_done_stays_done(file):
    assert store.load() == ({}, "")
    store.note("06.1", False)
    store.note("06.2", True)
    store.note("06.2", False)
    assert store.load() == ({"06.1": "tried", "06.2": "done"}, "")
    assert json.loads(file.read_text(encoding="utf-8"))["exercises"]["06.2"] == "done"
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_what_another_notebook_wrote_is_kept(file):
    store.note("06.1", True)
    file.write_text(json.dumps({"exercises": {"06.1": "done", "08.1": "done"}}), encoding="utf-8")
    store.note("06.2", True)
    assert set(store.load()[0]) == {"06.1", "06.2", "08.1"}


DAMAGED = [
    b"",
    b"{",
    b"[]",
    b'{"exercises": 3}',
    b'{"exercises": ' + b"[" * 10**5,
    b"\xff\xfe",
    b'"x"',
    b'{"other": {}}',
]


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte-order mark"])
def test_entries_of_a_later_version_are_kept_and_not_shown(file, mark):
    later = {"01.1": "done", "01.2": "started", "01.3": {"at": 3}}
    file.write_text(mark + json.dumps({"exercises": later}), encoding="utf-8")
    assert store.load() == ({"01.1": "done"}, "")
    assert store.note("06.1", True) == ""
    assert json.loads(file.read_text(encoding="utf-8"))["exercises"] == later | {"06.1": "done"}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_set_aside_and_the_course_goes_on(file, content):
    for n in range(2):
        file.write_bytes(content)
        said = store.note("06.1", True)
        aside = ".course_progress.json.damaged" + ("" if n == 0 else "-2")
        assert "was damaged" in said and f"kept as {aside}," in said
        assert (file.parent / aside).read_bytes() == content
        assert store.load() == ({"06.1": "done"}, "")


def test_where_nothing_can_be_written_the_course_goes_on(file, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "could not be saved (No space left on device)" in store.note("06.1", True)
    assert not list(file.parent.iterdir())
    file.mkdir()  # and where it cannot be read
    assert "could not be saved" in store.note("06.1", True)
    assert "cannot be read" in store.load()[1]


WRITER = """
import sys
from course_lib.exercises import store
n = 0
while True:
    n += 1
    store.save({f"05.{i}": "done" for i in range(1, n % 400 + 1)})
    print(n % 400, flush=True)
"""


def writer(folder, code):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_killing_the_kernel_while_it_writes_loses_nothing(file):
    for delay in (0.002, 0.005, 0.011, 0.017, 0.003, 0.029):
        process = writer(file.parent, WRITER)
        process.stdout.readline()  # it writes
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        last = process.communicate()[0].split()
        states = json.loads(file.read_text(encoding="utf-8"))["exercises"]
        said = int(last[-1]) if last else 1
        assert len(states) in (said, (said + 1) % 400)  # what was confirmed, or the write that had just been renamed
    assert not list(file.parent.glob("*.damaged*"))


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.parametrize("moment", ["json.dump", "os.fsync", "os.replace"])
def test_killed_at_the_worst_moments(file, moment):
    """With half of the new file written, with all of it written, and just before it is renamed."""
    store.note("06.1", True)
    module, name = moment.split(".")
    code = (
        f"import {module}, os, signal\nfrom course_lib.exercises import store\n"
        "def kill(data, f=None, **options):\n"
        "    if hasattr(f, 'write'):\n        f.write('{\"exer')\n        f.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{module}.{name} = kill\nstore.note('06.2', True)\n"
    )
    process = writer(file.parent, code)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (left,) = file.parent.glob("*.part")
    assert store.load() == ({"06.1": "done"}, "")
    os.utime(left, (0, 0))  # an hour later
    os.utime(file.with_name(f"{file.name}.lock"), (0, 0))
    store.note("06.3", True)
    assert store.load() == ({"06.1": "done", "06.3": "done"}, "") and not left.exists()


SLOW = """
import sys, time
from course_lib.exercises import store
load = store.load
def slow(everything):
    states = load(everything)
    time.sleep(0.03)  # here the other kernels write, if they can
    return states
store.load = slow
print("ready", flush=True)
sys.stdin.readline()
for i in range(8):
    store.note(f"{sys.argv[1]}.{i}", True)
"""


def test_kernels_that_save_in_the_same_instant_lose_nothing(file):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", SLOW, name],
            cwd=file.parent,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for name in ("01", "02", "03")
    ]
    for kernel in kernels:
        assert kernel.stdout.readline() == "ready\n"
    for kernel in kernels:
        kernel.stdin.write("go\n")
        kernel.stdin.flush()
    for kernel in kernels:
        assert kernel.communicate()[0] == "" and kernel.returncode == 0
    assert set(store.load()[0]) == {f"{name}.{i}" for name in ("01", "02", "03") for i in range(8)}
    assert [p.name for p in file.parent.iterdir()] == [file.name]  # no lock is left


def test_a_lock_that_a_killed_kernel_left_is_taken_away(file, monkeypatch):
    held = file.with_name(f"{file.name}.lock")
    held.touch()
    os.utime(held, (0, 0))
    monkeypatch.setattr(store, "WAIT", 0)  # it is not waited for
    store.note("06.1", True)
    store.note("06.2", True)
    assert store.load() == ({"06.1": "done", "06.2": "done"}, "") and not held.exists()


def test_a_lock_that_is_held_is_left_alone_and_saving_goes_on(file, monkeypatch):
    held = file.with_name(f"{file.name}.lock")
    held.touch()
    monkeypatch.setattr(store, "WAIT", 0.1)
    store.note("06.1", True)
    assert store.load() == ({"06.1": "done"}, "") and held.exists()


def test_git_never_sees_it():
    names = [".course_progress.json", "notebooks/.course_progress.json", "notebooks/.course_progress.json.damaged"]
    names += ["my_course/06_multi_head.ipynb", "notebooks/.course_progress.json.77.part"]
    names += ["notebooks/.course_progress.json.lock"]
    done = subprocess.run(["git", "check-ignore", *names], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if "not a git repository" in done.stderr:
        pytest.skip("this copy of the course is no git repository")
    assert done.stdout.split() == names
