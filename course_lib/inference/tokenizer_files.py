"""The files in which byte-level tokenizers are published: ``tokenizer.json``, or ``vocab.json`` and ``merges.txt``.

``tokenizer.json`` describes every step from text to ids; each is followed, or refused by its name.
"""

import re
from pathlib import Path

from ..text.byte_level import GPT2_WORDS, PATTERNS, BytePairTokenizer
from .published import read_json, there

MARK = re.compile(r"<.+>|\[.+\]")  # the form of <|endoftext|>, </s> and [PAD]
# settings of tokenizer.json that change the ids, and the values that BytePairTokenizer has; a missing one is None
WHOLE = {"truncation": (None,), "padding": (None,)}
MODEL = {
    "type": ("BPE", None), "dropout": (None, 0), "unk_token": (None,), "byte_fallback": (None, False),
    "continuing_subword_prefix": (None, ""), "end_of_word_suffix": (None, ""), "ignore_merges": (None, False, True),
}  # fmt: skip
BYTE_LEVEL = {"type": ("ByteLevel",), "add_prefix_space": (False,)}
SPLIT = {"type": ("Split",), "behavior": ("Isolated",), "invert": (None, False)}
ADDED = {"lstrip": (None, False), "rstrip": (None, False), "single_word": (None, False)}
CONFIG = {
    "add_prefix_space": (None, False), "add_bos_token": (None, False), "add_eos_token": (None, False),
}  # fmt: skip
GPT2_CLASSES = (None, "GPT2Tokenizer", "GPT2TokenizerFast")


def load_tokenizer(folder):
    """Return the BytePairTokenizer in ``folder``, from the files of a published model.

    They are ``tokenizer.json``, or ``vocab.json`` and ``merges.txt`` of a GPT-2. Special tokens are those that these
    files, ``added_tokens.json`` or ``tokenizer_config.json`` add; in a ``vocab.json`` also what looks like one, as
    ``<|endoftext|>`` does, and is made by no merge. Raises FileNotFoundError for a missing file, ValueError for one
    that holds something else, or a step that the tokenizer cannot follow, by its name and value.
    """
    folder = Path(folder)
    whole = folder / "tokenizer.json"
    about = read_json(whole) if whole.is_file() else {}
    if "model" in about:
        where, (ids, merges, options), special = whole, _followed(about, whole), {}
    else:
        where, options = folder, {}
        ids, merges = _ids(folder / "vocab.json"), _merges(there(folder / "merges.txt"))
        made = {a + b for a, b in merges}
        special = {token: id for token, id in ids.items() if MARK.fullmatch(token) and token not in made}
    taken = {id: token for token, id in ids.items()}
    for token, id in _added(folder, "model" not in about):
        known = special.get(token, ids.get(token, id))
        if not token or known != id or taken.setdefault(id, token) != token:
            raise ValueError(f"{folder}: the added token {token!r} cannot have id {id!r}: it is taken or another")
        special[token] = id
    try:
        return BytePairTokenizer(ids, merges, special, **options)
    except ValueError as error:
        raise ValueError(f"{where}: vocabulary and merges do not fit together: {error}") from error


def _check(found, allowed, where):
    """Raise ValueError unless ``found`` is a dict in which each name in ``allowed`` has one of the values there."""
    if not isinstance(found, dict):
        raise ValueError(f"{where} is {found!r}, which this tokenizer cannot follow")
    for name, values in allowed.items():
        if found.get(name) not in values:
            raise ValueError(
                f"{where}: this tokenizer cannot follow {name} {found.get(name)!r}, only {', '.join(map(repr, values))}"
            )


def _followed(about, path):
    """Return (ids, merges, options) of a tokenizer.json; raise ValueError for a step that cannot be followed."""
    _check(about, WHOLE, path)
    model, normalizer = about["model"], about.get("normalizer")
    _check(model, MODEL, f"{path}: model")
    if normalizer is not None:
        _check(normalizer, {"type": ("NFC",)}, f"{path}: normalizer")
    steps = about.get("pre_tokenizer")
    steps = steps.get("pretokenizers") if isinstance(steps, dict) and steps.get("type") == "Sequence" else [steps]
    if not isinstance(steps, list) or len(steps) not in (1, 2):
        raise ValueError(f"{path}: pre_tokenizer has steps that this tokenizer cannot follow: {steps!r}")
    *before, last = steps
    _check(last, BYTE_LEVEL | {"use_regex": (False,) if before else (None, True)}, f"{path}: pre_tokenizer")
    pattern = GPT2_WORDS
    if before:
        _check(before[0], SPLIT, f"{path}: pre_tokenizer")
        pattern = before[0].get("pattern")
        pattern = pattern.get("Regex") if isinstance(pattern, dict) else pattern
        if pattern not in PATTERNS:
            raise ValueError(
                f"{path}: pre_tokenizer cuts text by {pattern!r}: only those of GPT-2, Llama 3 and Qwen are known"
            )
    _check(about.get("decoder"), {"type": ("ByteLevel",)}, f"{path}: decoder")
    if about.get("post_processor") is not None:  # a TemplateProcessing would add tokens to every text
        _check(about["post_processor"], {"type": ("ByteLevel",)}, f"{path}: post_processor")
    merges = model.get("merges")
    if not isinstance(merges, list) or not all(isinstance(m, (str, list)) for m in merges):
        raise ValueError(f"{path}: model.merges should be a list of pairs, not {str(merges)[:80]}")
    options = {
        "pattern": pattern, "form": normalizer and "NFC", "whole_words": bool(model.get("ignore_merges")),
    }  # fmt: skip
    return _whole_numbers(model.get("vocab"), f"{path}: model.vocab"), _pairs(merges, f"{path}: model.merges"), options


def _whole_numbers(found, where):
    if not isinstance(found, dict) or not all(isinstance(id, int) for id in found.values()):
        raise ValueError(f"{where} should give each token its id, a whole number")
    return found


def _ids(path):
    """Return the dict of tokens and ids in a JSON file."""
    return _whole_numbers(read_json(path), path)


def _pairs(entries, where):
    """Return pairs from lines "a b", or from pairs."""
    pairs = [tuple(entry.split(" ") if isinstance(entry, str) else entry) for entry in entries]
    if wrong := [pair for pair in pairs if len(pair) != 2 or not all(isinstance(token, str) for token in pair)]:
        shown = " ".join(map(str, wrong[0]))[:80]
        raise ValueError(f"{where}: each line should be two pieces with a space between them, not {shown!r}")
    return pairs


def _merges(path):
    """Return the pairs in a file of merges, one a line after a line with the version."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8: {error}") from error
    lines = [line.rstrip("\r") for line in lines]
    return _pairs([line for line in lines if line and not line.startswith("#version")], path)


def _added(folder, plain):
    """Yield (token, id) of every token that the files add; ``plain``: nothing else says how text is cut."""
    if (path := folder / "added_tokens.json").is_file():
        yield from _ids(path).items()
    for name, key in (("tokenizer_config.json", "added_tokens_decoder"), ("tokenizer.json", "added_tokens")):
        if (path := folder / name).is_file():
            about = read_json(path)
            _check(about, CONFIG | ({"tokenizer_class": GPT2_CLASSES} if plain else {}), path)
            found = about.get(key) or {}
            try:
                entries = found.items() if isinstance(found, dict) else [(entry["id"], entry) for entry in found]
                tokens = [(str(entry["content"]), int(id), entry) for id, entry in entries]
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}: {key} is not a list of tokens with their ids: {error!r}") from error
            for token, id, entry in tokens:
                moved = about.get("normalizer") and {"normalized": (None, False)}  # looked for in other text
                _check(entry, ADDED | (moved or {}), f"{path}: the added token {token!r}")
                yield token, id
