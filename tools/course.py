"""One command opens the course, one tests it. Needs nothing but Python 3.11 or newer.

  python3 run.py lab        open your copies of the notebooks in JupyterLab (sets everything up the first time)
  python3 run.py edit       open the notebooks themselves, to change the course
  python3 run.py test       run every test and every notebook
  python3 run.py check      run ruff and the fast tests only: about a minute
  python3 run.py notebooks  run every notebook again and save its outputs
  python3 run.py site       build the web edition in build/site
  python3 run.py bench      print the time of each part beside its budget
  python3 run.py sabotage   break the course in many ways, and see that the tests notice
  python3 run.py setup      only set up: make .venv and install everything into it
  python3 run.py clean      remove caches and build folders (clean-all: .venv too)

Settings, after the command or in the environment:
  PORT=8890         the port of lab (default 8888; the next free one if it is taken)
  ARGS="-x -k mask" more arguments for pytest, JupyterLab, tools/nb.py, the bench or the sabotages
  TORCH_INDEX=URL   where Linux finds PyTorch's small CPU build; TORCH_INDEX= (empty) means PyPI's own
On Windows: py run.py lab.  With make: make lab, make test, make lab PORT=8890.
"""

import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

from course_lib.jupyter import CONFIG as SAVING
from tools import working_copies

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
COPIES = "my_course"  # the learner's own copies of the notebooks; git does not look at it
EXTRAS = ["", "site", "test"]  # each has all that those before it have
STAMP = VENV / "course-setup.json"  # says whose .venv this is, and whether it is complete
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# JupyterLab's settings, by their path in .venv/etc/jupyter: a lesson starts without a question about news, and a saved
# notebook holds pictures in place of live views.
JUPYTER = {
    "labconfig/page_config.json": {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}},
    "jupyter_server_config.d/gpt-twice.json": SAVING,
}


class Stop(Exception):
    """A sentence for the user: what is wrong and what to do."""


def say(text):
    """Print at once, also into a pipe."""
    print(text, flush=True)


# ---------------------------------------------------------------- set-up


def venv_python(venv):
    """Return the path of the Python in a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def works(python, code):
    """Return True if this interpreter starts and runs the code."""
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def fingerprint():
    """Return a hash that changes when .venv is out of date.

    That is: other requirements, other settings for JupyterLab, or the folder was moved.
    """
    parts = [str(ROOT).encode(), json.dumps(JUPYTER).encode()]
    parts += [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp():
    """Return what an earlier set-up has written down, or {} if there is nothing to read."""
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(**state):
    """Write down how far the set-up is."""
    STAMP.write_text(json.dumps(state), encoding="utf-8")


def set_up(extra=""):
    """Make .venv complete with the course and return its Python; extra "site" adds Sphinx, "test" that and all else."""
    python, stamp, wanted = venv_python(VENV), read_stamp(), fingerprint()
    if stamp.get("done") == wanted and extra in stamp.get("extras", []) and works(python, ""):
        return python
    extra = max(extra, *stamp.get("extras", [""]))  # an update keeps the test tools
    start = time.monotonic()
    ours = stamp.get("ours", not VENV.exists())  # one that the user has made is used, and never deleted
    try:
        make_venv(python, ours, bool(stamp.get("done")))
        write_stamp(ours=ours)  # without "done": not complete
        pip_install(python, f".[{extra}]" if extra else ".")
        configure_jupyter()
        write_stamp(ours=ours, done=wanted, extras=EXTRAS[: EXTRAS.index(extra) + 1])
    except OSError as error:
        raise Stop(explain_os_error(error)) from error
    say(f"Set up in {time.monotonic() - start:.0f} s.")
    return python


def make_venv(python, ours, complete):
    """Make .venv if it is missing, and again if it is ours and broken.

    Raises Stop if that fails.
    """
    if ours and VENV.exists() and not (complete and works(python, "import pip")):
        say("The .venv here is not complete or no longer works: making it again.")
        shutil.rmtree(VENV)
    if not ours and not works(python, "import pip, sys; sys.exit(sys.version_info < (3, 11))"):
        raise Stop(
            "There is a .venv here that this command did not make and that has no working Python >= 3.11 "
            "with pip. Rename or delete the folder .venv and run the command again."
        )
    if VENV.exists():
        return
    say("Setting up in .venv: a few minutes, once ...")
    if not works(sys.executable, "import venv, ensurepip"):  # Debian's Python has venv without ensurepip
        raise Stop(
            "This Python has no venv module. On Debian or Ubuntu: sudo apt install python3-venv "
            f"(or python{sys.version_info[0]}.{sys.version_info[1]}-venv); then run the command again."
        )
    VENV.mkdir()
    write_stamp(ours=True)  # before the rest, so that an interrupted set-up is known as ours
    made = subprocess.run(
        [sys.executable, "-m", "venv", VENV],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if made.returncode:
        last = (made.stdout.strip().splitlines() or ["no message"])[-1]
        raise Stop(
            f"The virtual environment could not be made ({last}). Mend that, or use another Python, "
            "and run the command again."
        )


def explain_os_error(error):
    """Return one sentence for an error of the operating system."""
    where = error.filename or VENV
    if isinstance(error, PermissionError):
        return (
            f"No permission for {where}. The course works in its own folder: "
            "move the course to a folder of yours, or mend the permissions."
        )
    return f"This could not go on: {error.strerror or error} ({where}). Mend that and run the command again."


def pip_install(python, what):
    """Install the course into .venv.

    PyTorch comes first and without its requirements: it alone is looked for in another index, and pip would ask that
    index for every other package too, for minutes if it does not answer. Raises Stop if pip fails.
    """
    url = os.environ.get("TORCH_INDEX", CPU_INDEX if sys.platform == "linux" else "")  # elsewhere PyPI's is for the CPU
    if url:
        run_pip(python, "--extra-index-url", url, "--no-deps", "torch")
    run_pip(python, "-e", what)


def run_pip(python, *arguments):
    """Run pip with the exact versions of the course.

    Raises Stop if it fails.
    """
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "-c", "constraints.txt", *arguments]
    env = {k: v for k, v in os.environ.items() if k not in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONHOME")}
    pip = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    errors = []
    for line in pip.stderr:  # shown as it comes, and kept to tell what went wrong
        sys.stderr.write(line)
        errors.append(line)
    if pip.wait():
        raise Stop(explain_pip("".join(errors)))


def explain_pip(errors):
    """Return one sentence for pip's last words."""
    if "No space left on device" in errors or "Errno 28" in errors:
        return "The disk is full: the set-up needs about 3 GB. Make room and run the command again."
    if "connection broken" in errors.lower():  # in pip's warning before each new attempt
        return (
            "The packages could not be downloaded: no way to the package index. Check the network (or set pip's "
            "proxy or index) and run the command again; what was downloaded is kept."
        )
    if "No matching distribution" in errors:
        return (
            f"A package has no build for Python {sys.version_info[0]}.{sys.version_info[1]} on this machine (see "
            "above). Use another Python, e.g. make clean-all, then make lab PYTHON=python3.11."
        )
    last = [line.strip() for line in errors.splitlines() if line.startswith("ERROR")]
    return f"pip failed: {last[-1] if last else 'see above.'} Mend that and run the command again."


def configure_jupyter():
    """Write JupyterLab's settings into .venv."""
    for name, content in JUPYTER.items():
        config = VENV / "etc" / "jupyter" / name
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(content), encoding="utf-8")


# ---------------------------------------------------------------- commands


def course_environment(**more):
    """Return the environment of what runs in .venv: its own kernel wins over one that the user has registered."""
    env = dict(os.environ, JUPYTER_PREFER_ENV_PATH="1", **more)
    env.pop("PYTHONHOME", None)
    return env


def call(command, **options):
    """Run a command to its end, whatever Ctrl-C does (the program itself knows how to stop); return its exit code."""
    process = subprocess.Popen(command, **options)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def call_python(*arguments, threads=THREADS):
    """Run the Python of .venv, test tools included, in the course's folder; return its exit code."""
    return call([set_up("test"), *arguments], cwd=ROOT, env=course_environment(**threads))


def wanted_port():
    """Return the number that PORT names, or None if it names none.

    Raises Stop if it is not a port.
    """
    text = os.environ.get("PORT", "")
    if text and (set(text) - set("0123456789") or not 1 <= int(text) <= 65535):  # isdigit() is true of a small 2, too
        raise Stop(f"PORT={text} is not a port number: give one from 1024 to 65535, e.g. PORT=8890.")
    return int(text) if text else None


def running_lab(python, folder):
    """Return the JupyterLab that already serves this folder of the course, or None."""
    found = subprocess.run(
        [python, "-m", "jupyter_server", "list", "--jsonlist"],
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
        same = os.path.normcase(server["root_dir"]) == os.path.normcase(folder)
        if same and answers(server["port"]):
            return server
    return None


def answers(port):
    """Return True if something listens on this port."""
    with socket.socket() as s:
        s.settimeout(2)
        return s.connect_ex(("127.0.0.1", port)) == 0


def no_desktop():
    """Return True on Linux without a display, where a text browser would take the terminal over."""
    return sys.platform == "linux" and not any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def version_of(python):
    """Return the version of a Python as text, "3.12.1"; empty if it does not say."""
    asked = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(asked, stdout=subprocess.PIPE, encoding="utf-8", errors="replace").stdout.strip()


def lab(args):
    """Bring the learner's copies of the notebooks up to date and open them."""
    wanted_port()  # a wrong one is told before the set-up
    python, folder = set_up(), ROOT / COPIES
    for sentence in working_copies.update(ROOT / "notebooks", folder, version_of(python)):
        say(sentence)
    say(f"You work in your own copies of the notebooks, in {COPIES}: updates of the course never touch them.")
    return open_lab(python, folder, args)


def edit(args):
    """Open the notebooks themselves."""
    wanted_port()
    return open_lab(set_up(), ROOT / "notebooks", args)


def open_lab(python, folder, args):
    """Open JupyterLab on one folder of notebooks, or show the one that serves it already."""
    port, server = wanted_port(), running_lab(python, folder)
    start = folder / "00_start_here.ipynb"
    if server and port in (None, server["port"]):  # another PORT opens a second one
        address = f"{server['url']}lab/tree/{start.name}?token={server.get('token', '')}"
        say(f"The course is open already, at this address:\n    {address}")
        if not no_desktop():
            webbrowser.open(address)
        return 0
    command = [python, "-m", "jupyterlab", f"--ServerApp.port={port or 8888}"]
    command += ["--ServerApp.log_level=WARN", "--LabApp.log_level=WARN"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # a container; the server listens on this machine only and asks for its token
    if no_desktop():
        command.append("--no-browser")
    if start.exists():
        command.append(f"--LabApp.default_url=/lab/tree/{start.name}")
    say("Opening JupyterLab. If no browser window appears, open the address that is printed below. Ctrl-C ends it.")
    return call([*command, *args], cwd=folder, env=course_environment())


def test(args, name="test"):
    """Run ruff and pytest; return 0 if both pass."""
    set_up("test")
    start = time.monotonic()
    style = call_python("-m", "ruff", "check", "--output-format=concise", ".")
    style = call_python("-m", "ruff", "format", "--check", ".") or style
    # Two processes where there are two cores. Each uses one thread; the cells of a notebook stay together.
    workers = ["-n", "2"] if (os.cpu_count() or 1) > 1 and not any(arg.startswith("-n") for arg in args) else []
    tests = call_python("-m", "pytest", *workers, *args)
    minutes, seconds = divmod(int(time.monotonic() - start), 60)
    verdict = "failed (pytest)" if tests else "failed (ruff)" if style else "passed"
    say(f"make {name}: {verdict} in {minutes} min {seconds:02d} s")
    return tests or style


def check(args):
    """Run ruff and the tests that are not marked as slow."""
    return test(["-q", "-m", "not slow", *args], "check")


def notebooks(args):
    """Run every notebook, or those that are named, and save the outputs."""
    return call_python("tools/nb.py", "run", *args)


def site(args):
    """Build the web edition."""
    return call([set_up("site"), "tools/site/build.py", *args], cwd=ROOT, env=course_environment(**THREADS))


def bench(args):
    """Time the training steps, then the notebooks: the summary of their tests has the seconds of each."""
    return call_python("-m", "course_lib.experiments.bench.training", *args, threads={}) or call_python(
        "-m", "pytest", "-q", "notebooks"
    )


def sabotage(args):
    """Break the course in many ways, and see that the tests notice."""
    return call_python("tests/sabotage.py", *args)


def setup(args):
    """Only set up."""
    set_up("test")
    say("Everything is set up. Open the course with: make lab (or: python3 run.py lab)")
    return 0


def clean(args):
    """Remove caches and build folders, but nothing of the learner's."""
    names = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"}
    for folder, inside, _ in os.walk(ROOT):
        top = folder == str(ROOT)
        for name in list(inside):
            if top and name in (COPIES, ".git", ".venv"):
                inside.remove(name)
            elif name in names or top and (name in ("build", "dist") or name.endswith(".egg-info")):
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
                inside.remove(name)
    return 0


def clean_all(args):
    """Remove caches, build folders and .venv.

    Raises Stop if the user has made .venv.
    """
    clean(args)
    if VENV.exists() and not read_stamp().get("ours"):
        raise Stop("There is a .venv here that this command did not make: it was left as it is.")
    shutil.rmtree(VENV, ignore_errors=True)
    return 0


COMMANDS = {
    f.__name__.replace("_", "-"): f
    for f in (lab, edit, test, check, notebooks, site, bench, sabotage, setup, clean, clean_all)
}


def main(words):
    """Run the command that the words of a command line name; return its exit code.

    Raises Stop with a sentence if that is not possible.
    """
    name, rest = (words[0], words[1:]) if words else ("help", [])
    if name in ("help", "-h", "--help"):
        say(__doc__.strip())
        return 0
    if name not in COMMANDS:
        raise Stop(f"There is no command {name}. The commands: {', '.join(COMMANDS)}.")
    args = []
    for word in rest:  # PORT=8890 means the same here as in the environment
        setting, equals, value = word.partition("=")
        if equals and setting in ("PORT", "ARGS", "TORCH_INDEX"):
            os.environ[setting] = value
        else:
            args.append(word)
    try:
        args = shlex.split(os.environ.get("ARGS", ""), posix=os.name != "nt") + args
    except ValueError as error:
        raise Stop(
            f"ARGS={os.environ['ARGS']} has a quotation mark without its partner: close it, or leave it out."
        ) from error
    return COMMANDS[name](args)


def run(words):
    """Return the exit code of a command line, or the sentence with which it ends."""
    try:
        return main(words)
    except Stop as stop:
        return f"\n{stop}"
    except OSError as error:
        return f"\n{explain_os_error(error)}"
    except KeyboardInterrupt:
        return "\nStopped. Run the same command again to go on."
