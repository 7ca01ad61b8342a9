"""JupyterLab on the loopback address and a headless Chromium that runs notebooks in it, and contacts nothing else.

with running_lab(folder) as server, chromium() as browser:
    page = open_notebook(browser, server, "03.ipynb")
    run_all(page)
    assert page.outside == [] and page.errors == []
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},  # else cells out of sight are not in the page
    "@jupyterlab/completer-extension:manager": {"autoCompletion": False},
    "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
    "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Light"},
}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


@dataclass
class Server:
    url: str
    token: str
    folder: Path


def chromium_path():
    """Return the path of the system's Chromium or Chrome, or None. Playwright's own download is not used."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
    apps = (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
    )
    found = [shutil.which(name) for name in names] + [app for app in apps if Path(app).exists()]
    return os.environ.get("COURSE_CHROMIUM") or next((path for path in found if path), None)


def why_not():
    """Return why browser tests cannot run here, or None if they can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright's Python package is not installed: pip install playwright"
    try:
        import jupyterlab  # noqa: F401
    except ImportError:
        return "JupyterLab is not installed"
    return None if chromium_path() else "no Chromium or Chrome found on this machine (Debian: apt-get install chromium)"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running_lab(folder, settings=None, startup="", timeout=60):
    """Run a JupyterLab with a token on a free port, rooted in ``folder``, without the user's configuration.

    ``startup``: Python that every kernel runs before its first cell.
    """
    home = Path(tempfile.mkdtemp(prefix="course-lab-"))
    process = None
    try:
        server = Server(f"http://127.0.0.1:{free_port()}", secrets.token_hex(16), Path(folder).resolve())
        profile = home / "ipython" / "profile_default" / "startup"
        profile.mkdir(parents=True)
        (profile / "first.py").write_text(startup, encoding="utf-8")
        process = _start(server, home, {**SETTINGS, **(settings or {})})
        _wait_for(server, process, home / "lab.log", timeout)
        yield server
    finally:
        if process is not None:
            _stop(server, process)
        shutil.rmtree(home, ignore_errors=True)


def _start(server, home, settings):
    for name, values in settings.items():
        package, plugin = name.split(":")
        file = home / "settings" / package / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    (home / "config" / "labconfig").mkdir(parents=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {
        **threads,
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={server.url.rsplit(':', 1)[1]}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={server.token}",
        f"--ServerApp.root_dir={server.folder}",
        "--ServerApp.allow_root=True",
        "--ServerApp.terminals_enabled=False",
        "--ContentsManager.pre_save_hook=course_lib.jupyter.pictures_only",  # as run.py sets it
        "--LabApp.news_url=None",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    with contextlib.suppress(ValueError):  # SIGTERM would skip ``finally`` and leave the server running
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(home / "lab.log", "w", encoding="utf-8") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=server.folder)


def _wait_for(server, process, log, timeout):
    end = time.monotonic() + timeout
    while True:
        if process.poll() is not None:
            raise RuntimeError("JupyterLab stopped:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:])
        try:
            with urllib.request.urlopen(f"{server.url}/api/status?token={server.token}", timeout=2) as answer:
                answer.read()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _stop(server, process):
    """Ask the server to stop, kernels included; after ten seconds end the process."""
    with contextlib.suppress(OSError):
        request = urllib.request.Request(f"{server.url}/api/shutdown?token={server.token}", method="POST")
        urllib.request.urlopen(request, timeout=5).close()
    for end in (lambda: None, process.terminate, process.kill):
        end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return


@contextlib.contextmanager
def chromium():
    """Run the system's Chromium without a window, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=BROWSER_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def guarded_page(browser, width=1280, height=1600, script="", **options):
    """Return a page that blocks and records requests beyond the loopback address, and collects script errors.

    ``script``: JavaScript that runs in the page before anything else.
    """
    page = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce", **options
    ).new_page()
    if script:
        page.add_init_script(script)
    page.outside, page.errors = [], []

    def judge(route):
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "blob:", "data:")):
            route.continue_()
        else:
            page.outside.append(url)
            route.abort()

    page.route("**/*", judge)
    page.on(
        "pageerror", lambda error: None if own_splash(error) else page.errors.append(f"script: {error.stack or error}")
    )
    page.on(
        "console", lambda message: page.errors.append(f"console: {message.text}") if message.type == "error" else None
    )
    return page


def own_splash(error):
    """Return True for an error of JupyterLab's own, which has a one-line stack in its core.

    When two changes of theme end within 0.2 s, two timers remove the splash screen, and the second finds it gone.
    """
    lines = [line for line in (error.stack or "").splitlines() if line.strip().startswith("at ")]
    return "'removeChild'" in str(error) and len(lines) == 1 and "jlab_core" in lines[0]


@contextlib.contextmanager
def offline_page(browser, path):
    """Open a file in a page without a network; at the end there must be no error, and no request beyond the file."""
    page = guarded_page(browser, width=1000)
    page.unroute("**/*")
    page.context.set_offline(True)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page
        assert page.errors == [] and all(url.startswith(("file:", "blob:", "data:")) for url in asked), asked
    finally:
        page.context.close()


def write_notebook(folder, name, cells):
    """Write a notebook of code cells; return its name."""
    book = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    book.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(book, folder / name)
    return name


def open_notebook(browser, server, path, **options):
    """Open the notebook in a new workspace and wait until its kernel is ready."""
    page = guarded_page(browser, **options)
    page.goto(f"{server.url}/lab/workspaces/w{secrets.token_hex(4)}/tree/{path}?reset&token={server.token}")
    page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=60_000)
    page.locator(".jp-NotebookPanel:visible .jp-Notebook").wait_for(timeout=60_000)
    wait_until_idle(page)
    return page


def wait_until_idle(page, timeout=60_000):
    """Wait until the kernel exists and is idle; the indicator alone says "idle" for a second before there is one."""
    page.wait_for_function(
        """() => {
        const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
        const dot = panel?.querySelector('.jp-Notebook-ExecutionIndicator');
        const name = panel?.querySelector('.jp-KernelName');
        return dot && dot.dataset.status === 'idle' && name && name.textContent !== 'No Kernel'; }""",
        timeout=timeout,
    )


def command(page, name, **arguments):
    """Run one of JupyterLab's commands."""
    page.evaluate("([name, values]) => window.jupyterapp.commands.execute(name, values)", [name, arguments])


_TROUBLE = "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr']"
# In the page: the code cells with text that are waiting, running or were never run ("[ ]:", "[*]:").
_UNFINISHED = r"""[...document.querySelectorAll('.jp-Notebook .jp-Cell')].map((cell, n) => [cell, n]).filter(([cell]) =>
    cell.classList.contains('jp-CodeCell') && cell.querySelector('.cm-content')?.textContent.trim() &&
    !/^\[\d+\]:?$/.test(cell.querySelector('.jp-InputPrompt').textContent.trim()))"""


def run_all(page, timeout=300_000):
    """Run all cells from the menu; return when all have run, or one failed and JupyterLab gave up on the rest."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(
        f"""() => {{ const cells = {_UNFINISHED};
        const failed = document.querySelector({_TROUBLE!r});
        return !cells.length || (failed && !cells.some(([cell]) => cell.innerText.includes('[*]'))); }}""",
        timeout=timeout,
    )
    wait_until_idle(page, timeout)


def troubles(page):
    """Return [(cell, text)]: the last line of every traceback and of every output on stderr, and the cells not run."""
    found = page.evaluate(
        """trouble => [...document.querySelectorAll('.jp-Notebook .jp-Cell')].flatMap((cell, n) =>
        [...cell.querySelectorAll(trouble)].map(output => [n, output.textContent.trim().split('\\n').at(-1)]))""",
        _TROUBLE,
    )
    unrun = page.evaluate(f"() => {_UNFINISHED}.map(([cell, n]) => [n, 'was not run'])")
    return [tuple(pair) for pair in found + unrun]


def run_cell(page, n, timeout=60_000):
    """Run the n-th code cell with the keyboard, wait until it has run, and return its output as text."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(n)
    cell.locator(".cm-content").click()
    count = cell.locator(".jp-InputPrompt").first.inner_text()
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        """([n, old]) => { const t = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[n]
        .querySelector('.jp-InputPrompt').innerText; return t !== old && /\\d/.test(t); }""",
        arg=[n, count],
        timeout=timeout,
    )
    shown = cell.locator(".jp-OutputArea-output")
    return shown.first.inner_text().strip() if shown.count() else ""


def save(page):
    """Save the notebook and wait until it is no longer marked as changed."""
    command(page, "docmanager:save")
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")


def choose_theme(page, name):
    """Switch to the "light" or the "dark" theme and wait for it."""
    command(page, "apputils:change-theme", theme=THEMES[name])
    page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(name == "light").lower())


def smallest_contrast(page, selectors):
    """Return the smallest contrast (WCAG: 4.5 is legible) of text and background, over the first of each selector."""
    return page.evaluate(
        """selectors => {
        const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(v => { v /= 255;
            return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const back = element => { const c = getComputedStyle(element).backgroundColor;
            return /, 0\\)$/.test(c) || c === 'transparent' ? back(element.parentElement) : c; };
        return Math.min(...selectors.map(name => {
            const element = document.querySelector(name);
            const [a, b] = [light(getComputedStyle(element).color), light(back(element))].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05); })); }""",
        selectors,
    )
