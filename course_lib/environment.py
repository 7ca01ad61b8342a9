"""Is everything there that the notebooks need, in the Python that runs them?"""

import importlib.metadata
import os
import sys

PACKAGES = ("numpy", "torch", "matplotlib", "ipywidgets", "jupyterlab", "pooch", "tqdm", "safetensors")
OLDEST = (3, 11)


def check_environment(packages=PACKAGES):
    """Print which Python runs this notebook and what it has; for what is missing, the command that installs it.

    A notebook's kernel can be another Python than the one in which JupyterLab, or the course, was installed; then
    sliders show as text, or imports fail. Returns True if nothing is missing.
    """
    try:
        where = os.path.relpath(sys.executable)  # short, and the same for everybody who uses `make lab`
    except ValueError:  # on Windows, when it lies on another drive
        where = sys.executable
    print(f"here: Python {sys.version.split()[0]} at {where}")
    missing = []
    for package in packages:
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
