#!/usr/bin/env python3
"""One command opens the course, one tests it.  Needs nothing but Python 3.11 or newer.

  python3 run.py lab        open your copies of the notebooks in JupyterLab (sets everything up the first time)
  python3 run.py edit       open the notebooks themselves, to change the course
  python3 run.py test       run every test and every notebook
  python3 run.py notebooks  run every notebook again and save its outputs
  python3 run.py bench      print the time of each part beside its budget
  python3 run.py setup      only set up: make .venv and install everything into it
  python3 run.py clean      remove caches and build folders (clean-all: .venv too)

Settings, after the command or in the environment:
  PORT=8890         the port of lab (default 8888; the next free one if it is taken)
  ARGS="-x -k mask" more arguments for pytest, JupyterLab, tools/nb.py or the bench
  TORCH_INDEX=URL   where Linux finds PyTorch's small CPU build; TORCH_INDEX= (empty) means PyPI's own
On Windows: py run.py lab.  With make: make lab, make test, make lab PORT=8890.
"""

# This file must be readable for old Pythons, so that they can say that they are too old: no newer syntax here.
import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST and __name__ == "__main__":
    import shutil
    import subprocess

    message = "This is Python %d.%d, and the course needs Python 3.11 or newer." % sys.version_info[:2]
    find = getattr(shutil, "which", lambda name: None)  # not in Python 2
    for minor in range(19, 10, -1):
        name = "python3.%d" % minor
        if find(name) and not subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL):
            sys.exit("%s Use the one that is here: make lab PYTHON=%s (or: %s run.py lab)" % (message, name, name))
    sys.exit(message + " Get one from https://www.python.org/downloads/ and run this command with it.")

import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
COPIES = "my_course"  # the learner's own copies of the notebooks; git does not look at it
STAMP = VENV / "course-setup.json"  # says whose .venv this is, and whether it is complete
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDED_GB = 3.0  # .venv 1.6 GB, and the downloads on their way
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Stop(Exception):
    """A sentence for the user: what is wrong and what to do."""


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# ---------------------------------------------------------------- set-up


def venv_python(venv):
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def works(python, code):
    """Whether this interpreter starts and runs the code."""
    try:
        return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def fingerprint():
    """Changes when .venv has to be brought up to date: other requirements, or the folder was moved."""
    parts = [str(ROOT).encode("utf-8")] + [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp():
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(**state):
    STAMP.write_text(json.dumps(state), encoding="utf-8")


def set_up(extra=""):
    """Make .venv complete with the course (extra "test": and the test tools); returns its Python."""
    python, stamp, wanted = venv_python(VENV), read_stamp(), fingerprint()
    if stamp.get("done") == wanted and extra in stamp.get("extras", []) and works(python, ""):
        return python
    extra = extra or max(stamp.get("extras", [""]))  # an update keeps the test tools
    start = time.monotonic()
    ours = stamp.get("ours", not VENV.exists())  # one that somebody else made is used, and never deleted
    try:
        make_venv(python, ours, bool(stamp.get("done")))
        write_stamp(ours=ours)  # without "done": not complete
        pip_install(python, ".[%s]" % extra if extra else ".")
        quiet_lab()
        write_stamp(ours=ours, done=wanted, extras=["", extra])
    except OSError as error:
        raise Stop(explain_os_error(error))  # noqa: B904  ("from" is a syntax error in Python 2)
    say("Set up in %.0f s." % (time.monotonic() - start))
    return python


def make_venv(python, ours, complete):
    if ours and VENV.exists() and not (complete and works(python, "import pip")):
        say("The .venv here is not complete or no longer works: making it again.")
        shutil.rmtree(str(VENV))
    if not ours and not works(python, "import pip, sys; sys.exit(sys.version_info < (3, 11))"):
        raise Stop(
            "There is a .venv here that this command did not make and that has no working Python >= 3.11 "
            "with pip. Rename or delete the folder .venv and run the command again."
        )
    if VENV.exists():
        return
    check_space()
    say("Setting up in .venv: a few minutes, once ...")
    if not has_venv():
        raise Stop(
            "This Python has no venv module. On Debian or Ubuntu: sudo apt install python3-venv "
            "(or python%d.%d-venv); then run the command again." % sys.version_info[:2]
        )
    VENV.mkdir()
    write_stamp(ours=True)  # before the rest, so that an interrupted set-up is known as ours
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if made.returncode:
        last = (made.stdout.strip().splitlines() or ["no message"])[-1]
        raise Stop(
            "The virtual environment could not be made (%s). Mend that, or use another Python, "
            "and run the command again." % last
        )


def has_venv():
    """Debian ships Python without ensurepip unless python3-venv is installed: venv alone is not enough."""
    return works(sys.executable, "import venv, ensurepip")


def check_space():
    free = shutil.disk_usage(str(ROOT)).free / 1e9
    if free < NEEDED_GB:
        raise Stop(
            "Set-up needs about %.0f GB of disk space, and %.1f GB are free where the course lies (%s). "
            "Make room and run the command again." % (NEEDED_GB, free, ROOT)
        )


def explain_os_error(error):
    where = error.filename or VENV
    if isinstance(error, PermissionError):
        return (
            "No permission for %s. The course works in its own folder: "
            "move the course to a folder of yours, or mend the permissions." % where
        )
    return "This could not go on: %s (%s). Mend that and run the command again." % (error.strerror or error, where)


def torch_index():
    """Pip's arguments that let Linux find PyTorch without CUDA (elsewhere PyPI's build is the CPU one)."""
    url = os.environ.get("TORCH_INDEX", CPU_INDEX if sys.platform == "linux" else "")
    if not url:
        return []
    if url.startswith("http") and not reachable(url):
        say(
            "PyTorch's CPU index %s cannot be reached; taking PyTorch from pip's other sources.\n"
            "(If that is PyPI, the Linux build comes with CUDA: several GB. Ctrl-C stops, and the "
            "command can be run again.)" % url
        )
        return []
    return ["--extra-index-url", url]


def reachable(url):
    try:
        with urllib.request.urlopen(url.rstrip("/") + "/torch/", timeout=5):
            return True
    except (OSError, ValueError):
        return False


def pip_install(python, what):
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check"] + torch_index()
    command += ["-c", "constraints.txt", "-e", what]
    env = {k: v for k, v in os.environ.items() if k not in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONHOME")}
    pip = subprocess.Popen(command, cwd=str(ROOT), env=env, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    errors = []
    for line in pip.stderr:  # shown as it comes, and kept to tell what went wrong
        sys.stderr.write(line)
        errors.append(line)
    if pip.wait():
        raise Stop(explain_pip("".join(errors)))


def quiet_lab():
    """Switch off the plug-in that asks about news and looks for updates: a lesson starts without a question.

    And have views saved as pictures (see course_lib/on_save.py): a notebook that is opened again shows no error.
    """
    off = {"@jupyterlab/apputils-extension:announcements": True}
    pictures = {"ContentsManager": {"pre_save_hook": "course_lib.on_save.pictures_only"}}
    for place, content in (
        ("labconfig/page_config.json", {"disabledExtensions": off}),
        ("jupyter_server_config.d/gpt-twice.json", pictures),
    ):
        config = VENV / "etc" / "jupyter" / place
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(content), encoding="utf-8")


def explain_pip(errors):
    """One sentence for pip's last words."""
    if "No space left on device" in errors or "Errno 28" in errors:
        return "The disk is full: the set-up needs about %.0f GB. Make room and run the command again." % NEEDED_GB
    lost = (
        "NewConnectionError",
        "Failed to establish",
        "NameResolutionError",
        "Max retries",
        "timed out",
        "ConnectTimeout",
        "ProxyError",
        "SSLError",
        "CERTIFICATE_VERIFY",
        "Connection broken",
    )
    if any(word in errors for word in lost):
        return (
            "The packages could not be downloaded: no way to the package index. Check the network (or set pip's "
            "proxy or index) and run the command again; what was downloaded is kept."
        )
    if "No matching distribution" in errors:
        return (
            "A package has no build for Python %d.%d on this machine (see above). Use another Python, e.g. "
            "make clean-all, then make lab PYTHON=python3.11." % sys.version_info[:2]
        )
    last = [line.strip() for line in errors.splitlines() if line.startswith("ERROR")]
    return "pip failed: %s Mend that and run the command again." % (last[-1] if last else "see above.")


# ---------------------------------------------------------------- commands


def course_environment(**more):
    """The environment of what runs in .venv: its own kernel wins over one that the user has registered."""
    env = dict(os.environ, JUPYTER_PREFER_ENV_PATH="1", **more)
    env.pop("PYTHONHOME", None)
    return env


def call(command, **options):
    """Run to the end, whatever Ctrl-C does: the program itself knows how to stop."""
    process = subprocess.Popen([str(word) for word in command], **options)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def port_number(text):
    if not text or set(text) - set("0123456789") or not 1 <= int(text) <= 65535:  # isdigit() is true of a small 2, too
        raise Stop("PORT=%s is not a port number: give one from 1024 to 65535, e.g. PORT=8890." % text)
    return int(text)


def running_lab(python, folder):
    """The JupyterLab that already serves this folder of the course, or None."""
    found = subprocess.run(
        [str(python), "-m", "jupyter_server", "list", "--jsonlist"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=course_environment(),
        encoding="utf-8",
        errors="replace",
    )
    try:
        servers = json.loads(found.stdout)
    except ValueError:
        return None
    for server in servers:
        same = os.path.normcase(server["root_dir"]) == os.path.normcase(str(folder))
        if same and answers(server["port"]):
            return server
    return None


def answers(port):
    with socket.socket() as s:
        s.settimeout(2)
        return s.connect_ex(("127.0.0.1", port)) == 0


def no_desktop():
    """Linux without a display: a text browser would take the terminal over."""
    return sys.platform == "linux" and not any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def copies():
    """Bring the learner's copies of the notebooks up to date; returns their folder."""
    from tools import working_copies

    folder = ROOT / COPIES
    for sentence in working_copies.update(ROOT / "notebooks", folder):
        say(sentence)
    say("You work in your own copies of the notebooks, in %s: updates of the course never touch them." % COPIES)
    return folder


def lab(args):
    port_number(os.environ.get("PORT", "") or "8888")
    python = set_up()
    return open_lab(python, copies(), args)


def edit(args):
    port_number(os.environ.get("PORT", "") or "8888")
    return open_lab(set_up(), ROOT / "notebooks", args)


def open_lab(python, folder, args):
    """JupyterLab on one folder of notebooks; the one that shows it already, if there is one."""
    port = os.environ.get("PORT", "")
    server = running_lab(python, folder)
    start = folder / "00_start_here.ipynb"
    if server and port in ("", str(server["port"])):  # another PORT opens a second one
        address = "%slab/tree/%s?token=%s" % (server["url"], start.name, server.get("token", ""))
        say("The course is open already, at this address:\n    " + address)
        if not no_desktop():
            webbrowser.open(address)
        return 0
    command = [
        python,
        "-m",
        "jupyterlab",
        "--ServerApp.port=%s" % (port or "8888"),
        "--ServerApp.log_level=WARN",
        "--LabApp.log_level=WARN",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # a container; the server listens on this machine only and asks for its token
    if no_desktop():
        command.append("--no-browser")
    if start.exists():
        command.append("--LabApp.default_url=/lab/tree/" + start.name)
    command += args
    say("Opening JupyterLab. If no browser window appears, open the address that is printed below. Ctrl-C ends it.")
    return call(command, cwd=str(start.parent), env=course_environment())


def test(args):
    python = set_up("test")
    start = time.monotonic()
    env = course_environment(**THREADS)
    style = call([python, "-m", "ruff", "check", "--output-format=concise", "."], cwd=str(ROOT), env=env)
    style = call([python, "-m", "ruff", "format", "--check", "."], cwd=str(ROOT), env=env) or style
    # Two processes where there are two cores. Each uses one thread; the cells of a notebook stay together.
    workers = ["-n", "2"] if (os.cpu_count() or 1) > 1 and not any(arg.startswith("-n") for arg in args) else []
    tests = call([python, "-m", "pytest"] + workers + args, cwd=str(ROOT), env=env)
    seconds = time.monotonic() - start
    verdict = "failed (pytest)" if tests else "failed (ruff)" if style else "passed"
    say("make test: %s in %d min %02d s" % (verdict, seconds // 60, seconds % 60))
    return tests or style


def notebooks(args):
    return call([set_up("test"), "tools/nb.py", "run"] + args, cwd=str(ROOT), env=course_environment(**THREADS))


def bench(args):
    python, environment = set_up("test"), course_environment()
    code = call([python, "-m", "course_lib.bench"] + args, cwd=str(ROOT), env=environment)
    # the summary of the notebooks' tests prints the seconds of each beside its budget
    environment = course_environment(**THREADS)
    return code or call([python, "-m", "pytest", "-q", "notebooks"], cwd=str(ROOT), env=environment)


def setup(args):
    set_up("test")
    say("Everything is set up. Open the course with: make lab (or: python3 run.py lab)")
    return 0


def clean(args):
    names = {"__pycache__", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
    for folder, inside, _ in os.walk(str(ROOT)):
        for name in list(inside):
            top = folder == str(ROOT)
            if top and name == COPIES:  # a learner's work, checkpoints included
                inside.remove(name)
                continue
            if name in names or top and (name in ("build", "dist") or name.endswith(".egg-info")):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
                inside.remove(name)
            elif name in (".git", ".venv"):
                inside.remove(name)
    return 0


def clean_all(args):
    clean(args)
    if VENV.exists() and not read_stamp().get("ours"):
        raise Stop("There is a .venv here that this command did not make: it was left as it is.")
    shutil.rmtree(str(VENV), ignore_errors=True)
    return 0


COMMANDS = {
    "lab": lab,
    "edit": edit,
    "test": test,
    "notebooks": notebooks,
    "bench": bench,
    "setup": setup,
    "clean": clean,
    "clean-all": clean_all,
}


def main(words):
    name, rest = (words[0], words[1:]) if words else ("help", [])
    if name in ("help", "-h", "--help"):
        print(__doc__.strip())
        return 0
    if name not in COMMANDS:
        raise Stop("There is no command %s. The commands: %s." % (name, ", ".join(COMMANDS)))
    args = []
    for word in rest:  # PORT=8890 means the same here as in the environment
        setting, equals, value = word.partition("=")
        if equals and setting in ("PORT", "ARGS", "TORCH_INDEX"):
            os.environ[setting] = value
        else:
            args.append(word)
    try:
        args = shlex.split(os.environ.get("ARGS", ""), posix=os.name != "nt") + args
    except ValueError:
        raise Stop(  # noqa: B904  ("from" is a syntax error in Python 2)
            "ARGS=%s has a quotation mark without its partner: close it, or leave it out." % os.environ["ARGS"]
        )
    return COMMANDS[name](args)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Stop as stop:
        sys.exit("\n" + str(stop))
    except OSError as error:
        sys.exit("\n" + explain_os_error(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again to go on.")
