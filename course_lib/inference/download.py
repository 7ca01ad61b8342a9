"""Download a published model, once, check it, and say how to use it.

    python -m course_lib.inference.download gpt2 [--folder FOLDER]

gpt2 is the smallest GPT-2 (Radford et al. 2019), about 0.5 GB; qwen3-0.6b is a small model of 2025 (about 1.5 GB).
"""

import argparse
import hashlib
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..text.corpus import data_folder
from ..text.download import DownloadFailed, fetch, offline
from .gpt2 import SETTINGS, from_gpt2_state
from .llama import from_llama_state
from .published import DTYPES, WEIGHTS, described, read_json
from .tokenizer_files import load_tokenizer

ADDRESS = "https://huggingface.co"


@dataclass(frozen=True)
class PublishedModel:
    """A model on the network: its repository, its files, what loads it, and the SHA-256 of a file, where it is known.

    The settings are listed first and the weights last: each file is checked against those before it.
    """

    repository: str
    files: tuple
    loader: str  # load_gpt2 or load_llama
    prompt: str
    sha256: dict = field(default_factory=dict)


MODELS = {
    "gpt2": PublishedModel(
        "openai-community/gpt2", (SETTINGS, "vocab.json", "merges.txt", WEIGHTS), "load_gpt2",
        "The meaning of life is",
        {"vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"},
    ),
    "qwen3-0.6b": PublishedModel(
        "Qwen/Qwen3-0.6B", (SETTINGS, "tokenizer_config.json", "tokenizer.json", WEIGHTS), "load_llama",
        "The meaning of life is",
    ),
}  # fmt: skip


def download_model(name, folder=None, address=ADDRESS):
    """Return the folder with the files of a published model; those that are not there yet are downloaded.

    ``folder`` is by default ``models`` and the name, in the data folder. Each file is checked, also one that was there:
    its SHA-256 where that is known; the tokenizer, that it can be followed; the weights, that they are complete, and
    that name, shape and type of each array are those that the settings ask for. Raises ValueError for another name and
    for a wrong file that was there, DownloadFailed if a file cannot be had.
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}: choose from {', '.join(MODELS)}")
    model = MODELS[name]
    folder = data_folder() / "models" / name if folder is None else Path(folder).expanduser()
    for file in model.files:
        path = folder / file
        if file == WEIGHTS:
            _check_tokenizer(folder)  # before the long download
        url = f"{address.rstrip('/')}/{model.repository}/resolve/main/{file}"
        advice = (
            f"What to do: try again later, or, on a machine with a network, download {url}\nand copy the file to {path}"
        )
        if path.is_file():
            if wrong := what_is_wrong(model, path, folder):
                raise ValueError(f"{wrong}\nWhat to do: delete {path} and run this again.")
            continue
        if offline():
            raise DownloadFailed(
                f"{path} is not on this machine, and the environment variable COURSE_OFFLINE forbids the network.\n"
                + advice
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DownloadFailed(
                f"the folder {folder} cannot be made ({error}).\nWhat to do: name another one with --folder"
            ) from error
        fetch(url, path, lambda part, path=path: what_is_wrong(model, path, folder, part), advice)
    return folder


def _check_tokenizer(folder):
    try:
        tokens, size = len(load_tokenizer(folder)), read_json(folder / SETTINGS).get("vocab_size", 0)
        if tokens > size:
            raise ValueError(f"{folder}: the tokenizer has {tokens} tokens, but {SETTINGS} says vocab_size is {size}")
    except ValueError as error:
        raise ValueError(f"{error}\nWhat to do: delete all files in {folder} and run this again.") from error


def what_is_wrong(model, path, folder, part=None):
    """Return what is wrong with the file ``path`` of a model, whose bytes are in ``part`` still, in words, or ""."""
    content = part or path
    if expected := model.sha256.get(path.name):
        with content.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            return (
                f"{path} is not the published file: {content.stat().st_size:,} bytes with SHA-256 {found[:12]}..., "
                f"{expected[:12]}... is expected"
            )
    try:
        if path.name.endswith(".json"):
            read_json(content)
        elif path.name == WEIGHTS:
            _check_weights(model, content, read_json(folder / SETTINGS))
    except ValueError as error:
        return f"{path} is not what is expected: {str(error).replace(str(content), path.name)}"
    return ""


def _check_weights(model, path, settings):
    """Raise ValueError unless the arrays of a file are those that the settings ask for; only its header is read."""
    _, about = described(path)
    kind = str(settings.get("dtype") or settings.get("torch_dtype") or "")
    expected = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}.get(kind)
    masks = (".attn.bias", ".attn.masked_bias")  # in GPT-2's file, of any type
    if odd := [
        f"{name} is {entry['dtype']}, not {expected}"
        for name, entry in about.items()
        if expected and entry["dtype"] != expected and not name.endswith(masks)
    ]:
        raise ValueError(f"{SETTINGS} says {kind}, but {'; '.join(odd[:10])}")
    # arrays of these shapes that take no memory: what loads the weights judges them
    arrays = {
        name: np.broadcast_to(
            np.zeros((), "f4" if entry["dtype"] == "BF16" else DTYPES[entry["dtype"]]), entry["shape"]
        )
        for name, entry in about.items()
    }
    table = arrays.get("model.embed_tokens.weight", arrays.get("transformer.wte.weight", arrays.get("wte.weight")))
    if settings.get("tie_word_embeddings", model.loader == "load_gpt2") and table is not None:
        if arrays.get("lm_head.weight", table).shape == table.shape:
            arrays.pop("lm_head.weight", None)  # a copy of the table: compared when it is loaded
    if model.loader == "load_gpt2":
        from_gpt2_state(arrays, settings=settings)
    else:
        from_llama_state(arrays, settings)


def usage(name, folder):
    """Return two lines of Python that write text with a model in ``folder``."""
    model, place = MODELS[name], folder.as_posix()
    return (
        f"from course_lib.inference import generate, {model.loader}, load_tokenizer\n"
        f'print(generate({model.loader}({place!r}, "torch"), load_tokenizer({place!r}), "{model.prompt}", 40, '
        "temperature=0.8, top_k=40))"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help=" or ".join(MODELS))
    parser.add_argument("--folder", type=Path, help="where the files go (default: data/models/NAME)")
    parser.add_argument("--address", default=ADDRESS, help=f"of another server with these files (default: {ADDRESS})")
    options = parser.parse_args(arguments)
    try:
        folder = download_model(options.name, options.folder, options.address)
    except (DownloadFailed, ValueError) as error:
        sys.exit(str(error))
    print(f"All files of {options.name} are in {folder}. In Python, these two lines write text:\n")
    print(usage(options.name, folder))


if __name__ == "__main__":
    main()
