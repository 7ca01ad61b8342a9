"""The files in which models are published: settings as JSON, weights as safetensors, in one file or in several."""

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# the names that safetensors gives; a BF16 is the upper half of a float32
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2",
    "U16": "<u2", "I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8",
}  # fmt: skip


def there(path):
    """Return ``path``; raise FileNotFoundError unless it is a file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: the files of a published model are not part of the course; put them in this folder"
        )
    return path


def read_json(path):
    """Return the dict in a JSON file, in UTF-8, 16 or 32, with or without a byte-order mark.

    Raises FileNotFoundError, or ValueError that names the file if it is broken or holds something else.
    """
    content = there(path).read_bytes()
    try:
        found = json.loads(content)  # of bytes: finds out the encoding
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} should hold names and their values, {{...}}, not a {type(found).__name__}")
    return found


def read_weights(folder):
    """Read all weights in a folder: ``(arrays, path)``, name -> array, and the file to name in an error.

    They are in ``model.safetensors``, or in the files that ``model.safetensors.index.json`` lists. bfloat16 becomes
    float32, which holds each of its numbers exactly. Raises FileNotFoundError that names the missing file, ValueError
    for a file that is damaged, lacks what the index promises, or holds numbers in a form that NumPy lacks.
    """
    path, index = Path(folder) / WEIGHTS, Path(folder) / INDEX
    if path.is_file() or not index.is_file():
        return _read(there(path)), path
    where = read_json(index).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(n, str) and n == Path(n).name for n in where.values()):
        raise ValueError(f"{index}: weight_map should give, for each array, the name of a file in the same folder")
    files = {name: _read(there(index.with_name(name))) for name in sorted(set(where.values()))}
    if lost := [f"{name} is not in {file}" for name, file in where.items() if name not in files[file]]:
        raise ValueError(f"{index}: {'; '.join(lost[:10])}{f'; and {len(lost) - 10} more' if lost[10:] else ''}")
    return {name: files[file][name] for name, file in where.items()}, index


def _read(path):
    start, about = described(path)
    arrays = {}
    for name, entry in about.items():
        first, end = entry["data_offsets"]
        dtype = np.dtype(DTYPES[entry["dtype"]])
        array = np.fromfile(path, dtype, (end - first) // dtype.itemsize, offset=start + first)
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        arrays[name] = array.reshape(entry["shape"])
    return arrays


def described(path):
    """Read the header of a safetensors file: ``(start, about)``, where its numbers start, and what each array is.

    ``about`` is name -> dict with dtype, shape and data_offsets. The file's length is checked, its numbers are not
    read. Raises ValueError for a file that is damaged or holds numbers in a form that NumPy lacks.
    """
    try:
        with safe_open(path, "numpy"):  # checks the whole description
            pass
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file: {error}") from error
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        about = json.loads(file.read(size))
    about.pop("__metadata__", None)
    if odd := [f"{name} is {entry['dtype']}" for name, entry in about.items() if entry["dtype"] not in DTYPES]:
        raise ValueError(
            f"{path}: {'; '.join(odd[:10])}: numbers of this kind cannot be read, only {', '.join(DTYPES)}"
        )
    return 8 + size, about
