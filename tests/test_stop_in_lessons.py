"""The stop button, pressed in every cell that trains: each says so, shows what there is, and the page goes on."""

import nbformat
import pytest
from nbclient import NotebookClient

from tools import notebook

PRESSED = """
import course_lib.training.trainer as trainer

class Pressed(trainer.StopButton):
    pressed = property(lambda self: True, lambda self, value: None)

trainer.StopButton = Pressed
"""
TRAINING = [path for path in notebook.books() if "train(" in path.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_every_cell_runs_after_one_step(path, tmp_path):
    book = notebook.read(path)
    book.cells.insert(0, nbformat.v4.new_code_cell(PRESSED))
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(notebook.ROOT / "notebooks")}}).execute()
    said = "".join(output.get("text", "") for cell in book.cells if cell.cell_type == "code" for output in cell.outputs)
    assert "Training was stopped after 1 of " in said
