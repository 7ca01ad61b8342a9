"""A notebook as one page whose attention views need neither kernel nor network.

python -m course_lib.views.export notebooks/03_attention.ipynb [page.html]
"""

import sys
from pathlib import Path

PAGE = Path(__file__).parent / "attention_widget" / "page"


def export_notebook(path, target=None):
    """Write a notebook as one HTML page whose attention views work offline; return the path of the page.

    The notebook is run first, as a stored one has only pictures; its file is not changed. Formulas remain source text:
    the library that draws them would have to come from the network.
    """
    import nbformat
    from nbconvert.exporters import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    path = Path(path)
    book = nbformat.read(path, as_version=4)
    ExecutePreprocessor(timeout=600, store_widget_state=True).preprocess(book, {"metadata": {"path": str(path.parent)}})
    exporter = HTMLExporter(
        template_name="offline", extra_template_basedirs=[str(PAGE)], mathjax_url="", embed_images=True
    )
    host = (PAGE / "host.js").read_text(encoding="utf-8")
    text, _ = exporter.from_notebook_node(book, {"metadata": {"name": path.stem}, "attention_host": host})
    target = path.with_suffix(".html") if target is None else Path(target)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target


if __name__ == "__main__":
    if not 1 <= len(sys.argv) - 1 <= 2:
        sys.exit(__doc__)
    print(export_notebook(*sys.argv[1:]))
