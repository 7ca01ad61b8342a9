"""The README is true: its ten lines print what stands below them."""

import contextlib
import hashlib
import io
import re
from pathlib import Path

from tools import notebook

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_print_what_the_readme_says():
    (code, printed), *others = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.S)
    assert not others and len([line for line in code.splitlines() if line.strip()]) <= 10
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_every_file_that_the_readme_names_exists():
    root = Path(__file__).parent.parent
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 5 and not [link for link in links if not (root / link).exists()]


def test_the_table_of_the_data_is_true():
    data = Path(__file__).parent.parent / "data"
    table = (data / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `([\w.-]+)` \|.*\| ([\d,]+) \| `([0-9a-f]{64})` \|$", table)
    assert len(rows) == 4
    for name, size, digest in rows:
        if name != "tinyshakespeare.txt" or (data / name).is_file():
            content = (data / name).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size.replace(",", "")), digest), name
    shipped = {path.name for path in data.glob("*.safetensors")} | {"hello.txt", "tinyshakespeare.txt"}
    assert {name for name, _, _ in rows} == shipped


def test_a_page_promises_the_same_minutes_everywhere():
    """At its own head, in the table of notebook 00 and in the README."""
    readme = dict(re.findall(r"^\| \[(\w+)\]\(notebooks/.*\| (\d+) \|$", README, re.M))
    books = {path.stem: notebook.read(path) for path in notebook.books()}
    start = next(cell.source for cell in books["00_start_here"].cells if cell.id == "plan")
    table = dict(re.findall(r"^\| \[.*?\]\((\w+)\.ipynb\).*\| (\d+) \|$", start, re.M))
    table["00_start_here"] = re.search(r"^\| \*\*00.*\| (\d+) \|$", start, re.M)[1]
    heads = {name: re.search(r"(\d+) minutes", book.cells[0].source)[1] for name, book in books.items()}
    assert heads == table == readme
