"""Tools for the host of a notebook: a check of the Python that runs it, and a hook for saving it.

A saved live view refers to a kernel that is gone when the notebook is opened again; JupyterLab then shows an error
instead of the picture. So the set-up writes ``CONFIG`` where the course's JupyterLab reads it, and saved notebooks keep
only the pictures beside live views. The view in the open page stays alive. The server imports this file, so it uses
only the standard library.
"""

import importlib.metadata
import os
import sys

PACKAGES = ("numpy", "torch", "matplotlib", "ipywidgets", "jupyterlab", "pooch", "tqdm", "safetensors")
OLDEST = (3, 11)


def check_environment():
    """Print which Python runs this notebook and its packages, and for missing ones the command that installs them.

    A notebook's kernel may be a different Python from the one in which JupyterLab, or the course, was installed; then
    sliders show as text, or imports fail. Return True if nothing is missing.
    """
    try:
        where = os.path.relpath(sys.executable)  # short, and the same for everyone who uses `make lab`
    except ValueError:  # on Windows, if it is on another drive
        where = sys.executable
    print(f"here: Python {sys.version.split()[0]} at {where}")
    missing = []
    for package in PACKAGES:
        try:
            print(f"here: {package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if sys.version_info < OLDEST:
        print(f"this Python is too old: the course needs {OLDEST[0]}.{OLDEST[1]} or newer")
    if missing:
        print(f"missing: {', '.join(missing)}. In a terminal, for exactly this Python:")
        print(f'  "{sys.executable}" -m pip install {" ".join(missing)}')
    complete = not missing and sys.version_info >= OLDEST
    if complete:
        print("everything is there")
    return complete


LIVE = "application/vnd.jupyter.widget-view+json"
CONFIG = {"ContentsManager": {"pre_save_hook": "course_lib.jupyter.pictures_only"}}


def pictures_only(model, **_keywords):
    """Remove the live view from every output that also has a picture, and the widgets' state from the file.

    ``model`` is what the server is about to save; it is changed in place. Other files than notebooks are left alone.
    """
    if model.get("type") != "notebook" or not isinstance(model.get("content"), dict):
        return
    book = model["content"]
    book.get("metadata", {}).pop("widgets", None)
    for cell in book.get("cells", ()):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                data.pop(LIVE, None)
