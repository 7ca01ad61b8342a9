"""What JupyterLab does before it saves a notebook of the course: live views give way to the pictures beside them.

A saved live view points at a model in a kernel that is gone when the notebook is opened again, and JupyterLab then
shows an error instead of the picture. `run.py` writes `CONFIG` where the course's JupyterLab reads it. The view in the
open page stays alive.
"""

LIVE = "application/vnd.jupyter.widget-view+json"
CONFIG = {"ContentsManager": {"pre_save_hook": "course_lib.on_save.pictures_only"}}


def pictures_only(model, **_keywords):
    """Take the live view out of every output that has a picture as well, and the state of widgets out of the file.

    model: what the server is about to save, changed in place; files that are not notebooks are left alone.
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
