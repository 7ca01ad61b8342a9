"""Compare definitions in course_lib with those in notebook cells, as syntax trees."""

import ast
import re
from dataclasses import dataclass
from functools import cache

from tools import notebook

HEADER = re.compile(r"# (course_lib/[\w/]+\.py)(?:: ([\w.]+))?\s*")
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Docstrings(ast.NodeTransformer):
    """A transformer that removes docstrings; a body of nothing else becomes ``pass``."""

    def generic_visit(self, node):
        super().generic_visit(node)
        if isinstance(node, DEFINITION) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node


def bare(node):
    """Return the source of a definition in one form: no comments, no docstrings, one layout."""
    return ast.unparse(ast.fix_missing_locations(_Docstrings().visit(ast.parse(ast.unparse(node)))))


def definitions(body):
    """Return {name: node} of the functions and classes in this body; the last of a name counts."""
    return {node.name: node for node in body if isinstance(node, DEFINITION)}


@cache
def defined_in(path):
    """Return {dotted name: node} of a file of course_lib, methods included."""
    tree = ast.parse((notebook.ROOT / path).read_text(encoding="utf-8"))
    found = {}
    for name, node in definitions(tree.body).items():
        found[name] = node
        if isinstance(node, ast.ClassDef):
            found |= {f"{name}.{method}": m for method, m in definitions(node.body).items()}
    return found


@cache
def public_names():
    """Return {name: [files]} of the public functions and classes that are taught.

    Commands, drawing and exercises are left out.
    """
    found = {}
    for path in sorted((notebook.ROOT / "course_lib").rglob("*.py")):
        if path.parent.name in ("views", "exercises") or "__main__" in path.read_text(encoding="utf-8"):
            continue
        where = path.relative_to(notebook.ROOT).as_posix()
        for name in defined_in(where):
            if "." not in name and not name.startswith("_"):
                found.setdefault(name, []).append(where)
    return found


@dataclass
class Taught:
    """One definition in a cell: its file and name in the library, and its tree."""

    file: str
    name: str
    node: ast.AST


def taught(cell):
    """Return the definitions of a teaching cell.

    A comment ``# course_lib/...py`` says where those below it live; ``# course_lib/...py: Tensor.backward`` says that
    the plain function below it is that method. Raises ValueError if the cell has no such comment, or no definition.
    """
    headers = [(i, HEADER.fullmatch(line)) for i, line in enumerate(cell.source.splitlines(), 1)]
    headers = [(i, found) for i, found in headers if found]
    if not headers or headers[0][0] != 1:
        raise ValueError("a teaching cell begins with a comment like '# course_lib/numpy_track/functional.py'")
    result = []
    for node in definitions(ast.parse(cell.source).body).values():
        _, found = [h for h in headers if h[0] < node.lineno][-1]
        name = found[2] or node.name
        if name.split(".")[-1] != node.name:
            raise ValueError(f"the comment names {name}, the cell defines {node.name}")
        result.append(Taught(found[1], name, node))
    if not result:
        raise ValueError("a teaching cell defines a function or a class")
    return result
