"""The text layer: corpora, tokenizers, windows, batches, byte pairs. The numbers in names are those of known faults."""

import hashlib
import json
import os
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from course_lib.text import (
    Batches,
    CharTokenizer,
    Corpus,
    WordTokenizer,
    apply_merges,
    count_pairs,
    data_folder,
    learn_merges,
    load_corpus,
    merge_pair,
    most_common_pair,
    read_text,
    sequential_batches,
    split_by_position,
    windows,
)

ROOT = Path(__file__).resolve().parents[1]
HELLO = "hello world\nhello transformer\ntransformer learns language\n"


def run_python(code, **environment):
    """Run code in a new Python, from another folder, and return what it prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env=env,
        cwd=Path(sys.executable).parent,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout.strip()


# --- corpora -------------------------------------------------------------------------------------------------------


def test_hello_is_the_text_of_58_characters_and_17_symbols():
    corpus = load_corpus("hello")
    tokenizer = CharTokenizer.from_text(corpus.text)
    assert corpus.text == HELLO
    assert (len(corpus.text), len(tokenizer)) == (58, 17)
    assert tokenizer.vocabulary[:2] == ("\n", " ")
    assert tokenizer.encode("hello").tolist() == [7, 4, 8, 8, 11]


def test_the_bytes_of_hello_are_those_in_the_readme():
    content = (ROOT / "data" / "hello.txt").read_bytes()
    assert hashlib.sha256(content).hexdigest() in (ROOT / "data" / "README.md").read_text(encoding="utf-8")


def test_a_corpus_knows_its_name_and_source(tmp_path):
    path = tmp_path / "poem.txt"
    path.write_bytes("snow, Schnee, neige, 雪\n".encode())
    corpus = load_corpus(path)
    assert (corpus.name, corpus.source) == ("poem", str(path))
    assert corpus.text.endswith("雪\n")
    assert load_corpus(str(path)) == corpus
    assert load_corpus("hello").name == "hello"
    assert "hello.txt" in load_corpus("hello").source
    assert "4 symbols" in repr(Corpus("x", "hello"))


def test_an_unknown_corpus_is_named_with_the_known_ones():
    with pytest.raises(FileNotFoundError, match=r"'tinyshakspeare'.*hello, market, tinyshakespeare"):
        load_corpus("tinyshakspeare")


def test_course_data_names_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert load_corpus("hello").text == HELLO  # a folder for the download alone: the shipped text is still there
    with monkeypatch.context() as patch:
        patch.setattr("course_lib.text.corpora.shipped_folder", lambda: tmp_path / "nowhere")
        with pytest.raises(OSError, match="COURSE_DATA"):
            load_corpus("hello")
    (tmp_path / "hello.txt").write_text("hello again\n", encoding="utf-8")
    assert load_corpus("hello").text == "hello again\n"


def test_d06_files_are_read_as_utf8_everywhere(tmp_path):
    path = tmp_path / "quote.txt"
    path.write_bytes("it’s “so”".encode())
    assert "’".encode().decode("cp1252") == "â€™"  # the fault: what a Windows code page makes of it
    assert read_text(path) == "it’s “so”"
    code = f"from course_lib.text import *; print(len(load_corpus(r'{path}').text), len(load_corpus('hello').text))"
    assert run_python(code, PYTHONWARNDEFAULTENCODING="1") == "9 58"


def test_a_file_that_is_not_utf8_is_refused_with_its_position(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("café".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.txt is not UTF-8.*0xe9 at position 3"):
        read_text(path)


def test_the_position_of_a_wrong_byte_counts_the_byte_order_mark(tmp_path):
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbfcaf\xe9 au lait")
    with pytest.raises(ValueError, match=r"0xe9 at position 6"):
        read_text(path)


@pytest.mark.parametrize("text", ["To be, or not to be. " * 500, "a\0b"])
def test_a_text_in_place_of_a_name_is_refused_in_few_words(text):
    with pytest.raises(FileNotFoundError, match="neither a corpus") as refused:
        load_corpus(text)
    assert len(str(refused.value)) < 400 + len(str(Path.cwd()))


@pytest.mark.parametrize("value", ["", "0", "no", "off", "false", "False", " OFF "])
def test_a_switch_may_be_off_in_words(monkeypatch, value):
    from course_lib.text import download

    monkeypatch.setenv("COURSE_NO_SHAKESPEARE", value)
    assert not download._is_on("COURSE_NO_SHAKESPEARE")
    monkeypatch.setenv("COURSE_NO_SHAKESPEARE", "yes")
    assert download._is_on("COURSE_NO_SHAKESPEARE")


def test_merges_that_were_saved_as_json_are_lists():
    merges = json.loads(json.dumps([("e", "l"), ("el", "l")]))
    assert apply_merges("yellow", merges) == ["y", "ell", "o", "w"]


def test_d07_line_ends_become_newlines_but_the_hash_sees_the_bytes(tmp_path):
    path = tmp_path / "dos.txt"
    path.write_bytes(b"a\r\nb")
    assert len(set(path.read_bytes().decode("utf-8"))) == 4
    assert len(set(read_text(path))) == 3
    assert read_text(path) == "a\nb"  # one newline for the two characters, not two
    assert hashlib.sha256(b"a\r\nb").digest() != hashlib.sha256(b"a\nb").digest()
    path.write_bytes(b"a\rb")
    assert read_text(path) == "a\nb"
    path.write_bytes(b"\xef\xbb\xbfa")  # the mark that some Windows editors put in front
    assert read_text(path) == "a"
    attributes = (ROOT / ".gitattributes").read_text(encoding="utf-8")
    assert "data/* -text" in attributes


def test_d10_the_shipped_texts_need_no_network(monkeypatch):
    def no_network(*arguments, **names):
        raise OSError("no network here")

    monkeypatch.setattr(socket, "socket", no_network)
    assert len(load_corpus("hello").text) == 58
    assert len(load_corpus("market").text) > 300_000
    code = (
        "import socket\n"
        "def no_network(*a, **k): raise OSError('no network here')\n"
        "socket.socket = no_network\n"
        "import course_lib\n"
        "from course_lib.text import load_corpus\n"
        "print(len(load_corpus('hello').text))"
    )
    assert run_python(code) == "58"


def test_the_text_layer_imports_neither_torch_nor_the_downloader():
    code = "import sys, course_lib.text; print([m for m in ('torch', 'pooch', 'requests', 'tqdm') if m in sys.modules])"
    assert run_python(code) == "[]"


# --- tokenizers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hello", "market"])
def test_characters_come_back(name):
    text = load_corpus(name).text
    tokenizer = CharTokenizer.from_text(text)
    ids = tokenizer.encode(text)
    assert (ids.dtype, ids.shape) == (np.int64, (len(text),))
    assert tokenizer.decode(ids) == text
    assert tokenizer.tokens(ids[:5]) == list(text[:5])


def test_d04_unknown_characters_are_named_with_code_point_and_place():
    tokenizer = CharTokenizer.from_text("In the year, 3\n")
    with pytest.raises(ValueError) as error:
        tokenizer.encode("In 2024é")
    message = str(error.value)
    for part in ("'2' (U+0032) at 3, 5", "'0' (U+0030) at 4", "'4' (U+0034) at 6", "'é' (U+00E9) at 7"):
        assert part in message
    assert f"the {len(tokenizer)} of the vocabulary" in message


def test_d12_the_vocabulary_is_sorted_in_every_process():
    code = "from course_lib.text import *; print(*CharTokenizer.from_text('hello world').vocabulary, sep='', end='|')"
    for seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=seed) == "dehlorw|"  # strip() took the space in front
    assert "".join(CharTokenizer.from_text("hello world").vocabulary) == " dehlorw"


def test_d12_tokenizers_are_equal_only_with_the_same_kind_and_vocabulary():
    tokenizer = CharTokenizer.from_text("hello")
    assert tokenizer == CharTokenizer(tokenizer.vocabulary)
    assert tokenizer != CharTokenizer.from_text("help")
    assert tokenizer != WordTokenizer(tokenizer.vocabulary)
    with pytest.raises(ValueError, match="twice"):
        CharTokenizer("aab")
    with pytest.raises(ValueError, match="empty"):
        CharTokenizer.from_text("")


@pytest.mark.parametrize("wrong", [-1, 8])
def test_l03_ids_outside_the_vocabulary_are_refused(wrong):
    tokenizer = CharTokenizer.from_text("hello world")
    with pytest.raises(IndexError, match=rf"token id {wrong} at position 1 .* 0 to 7"):
        tokenizer.decode([0, wrong])
    with pytest.raises(ValueError, match=r"float64 of shape \(2,\)"):
        tokenizer.decode(np.array([0.0, 1.0]))
    assert tokenizer.decode([]) == ""


def test_words_come_back_exactly():
    text = load_corpus("market").text
    tokenizer = WordTokenizer.from_text(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer.encode("")) == ""
    first = "Ming bought apples, not bananas"
    assert tokenizer.tokens(tokenizer.encode(first)) == ["Ming", "bought", "apples", ",", "not", "bananas"]


@pytest.mark.parametrize("prompt", ["Ming bought ", "Ming  bought", " Ming", "Ming , not", "Ming\tbought", "Ming \n"])
def test_words_refuse_a_text_that_would_not_come_back(prompt):
    tokenizer = WordTokenizer.from_text("Ming bought apples, not bananas\n")
    with pytest.raises(ValueError, match="would not come back.*at character"):
        tokenizer.encode(prompt)


def test_unknown_words_are_named_with_their_places():
    tokenizer = WordTokenizer.from_text("Ming bought apples, not bananas\n")
    with pytest.raises(ValueError, match=r"unknown words.*'Tom' at 0; 'kiwis' at 2"):
        tokenizer.encode("Tom bought kiwis")


# --- split and windows ---------------------------------------------------------------------------------------------


def test_d01_the_number_of_windows():
    x, y = windows(np.arange(8), context_length=4)
    assert x.shape == y.shape == (4, 4)
    assert (x[-1].tolist(), y[-1].tolist()) == ([3, 4, 5, 6], [4, 5, 6, 7])
    assert x.dtype == np.int64
    assert len(windows(np.arange(5), context_length=4)[0]) == 1
    with pytest.raises(ValueError, match=r"4 tokens .* window of 4.* at least 5"):
        windows(np.arange(4), context_length=4)


@pytest.mark.parametrize("context", [1, 4, 8])
@pytest.mark.parametrize("n", [9, 10, 50])
@pytest.mark.parametrize("stride", [1, 2, 3, 8])
def test_windows_against_a_loop(n, context, stride):
    ids = np.random.default_rng(0).integers(0, 99, n)
    x, y = windows(ids, context, stride)
    starts = [i for i in range(0, n, stride) if i + context + 1 <= n]
    assert x.tolist() == [ids[i : i + context].tolist() for i in starts]
    assert y.tolist() == [ids[i + 1 : i + context + 1].tolist() for i in starts]
    assert len(starts) == (n - context - 1) // stride + 1


def test_system_a_has_1742_full_batches():
    _, test_ids = split_by_position(np.zeros(1_115_394, dtype=np.int64), 0.9, context_length=32)
    x, y = windows(test_ids, context_length=32, stride=16)
    batches = sequential_batches(x, y, 4, drop_last=True)
    assert len(batches) == 1742
    assert all(x.shape == y.shape == (4, 32) for x, y in batches)
    assert len(sequential_batches(x, y, 4)) == 1743


def test_x01_one_window_holds_as_many_examples_as_tokens():
    tokenizer = CharTokenizer.from_text("hello")
    x, y = windows(tokenizer.encode("hello"), context_length=4)
    pairs = [(tokenizer.decode(x[0, : t + 1]), tokenizer.decode(y[0, t : t + 1])) for t in range(4)]
    assert pairs == [("h", "e"), ("he", "l"), ("hel", "l"), ("hell", "o")]


def test_x03_every_position_starts_a_window_but_the_last_context():
    for n, context in [(8, 4), (58, 8)]:
        assert len(windows(np.arange(n), context)[0]) == n - context


def test_d03_a_part_that_is_too_short_is_named():
    with pytest.raises(ValueError, match=r"val .*10 .*needs ≥17"):
        split_by_position(np.arange(100), 0.9, context_length=16)
    with pytest.raises(ValueError, match=r"train .*5 .*needs ≥9"):
        split_by_position(np.arange(50), 0.1, context_length=8)
    with pytest.raises(ValueError, match="empty"):
        split_by_position(np.array([], dtype=np.int64), 0.9, context_length=8)
    assert (
        len(split_by_position(np.arange(100), 0.9, context_length=9)[1]) == 10
    )  # one window and its target: just enough
    with pytest.raises(ValueError, match=r"val .*10 .*needs ≥11"):
        split_by_position(np.arange(100), 0.9, context_length=10)
    for fraction in (0, 1, 1.5, -0.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            split_by_position(np.arange(100), fraction)


def test_d13_no_window_crosses_the_split():
    train_ids, validation_ids = split_by_position(np.arange(100), 0.9, context_length=8)
    for part, low, high in [(train_ids, 0, 90), (validation_ids, 90, 100)]:
        for array in windows(part, context_length=8):
            assert low <= array.min() <= array.max() < high
    assert len(split_by_position(np.arange(100), 0.29)[0]) == 29  # 0.29 * 100 is a little less than 29


def test_wrong_arguments_are_named():
    ids = np.arange(20)
    for call, message in [
        (lambda: windows(ids, 0), "context_length must be at least 1 token, not 0"),
        (lambda: windows(ids, 4, stride=0), "stride must be at least 1, not 0"),
        (lambda: windows(ids.reshape(4, 5), 4), r"shape \(4, 5\)"),
        (lambda: windows(ids / 2, 4), "float64"),
        (lambda: Batches(ids, 4, batch_size=0), "batch_size must be at least 1, not 0"),
        (lambda: Batches(ids[:4], 4, batch_size=2), "4 tokens"),
        (lambda: sequential_batches(ids, ids[:3], 2), "20 and 3"),
        (lambda: sequential_batches(ids, ids, 30, drop_last=True), "20 windows do not fill one batch of 30"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# --- batches -------------------------------------------------------------------------------------------------------


def take(batches, n):
    return [next(batches)[0].tolist() for _ in range(n)]


def test_batches_are_random_windows_from_their_own_generator():
    ids = np.arange(50)
    batches = Batches(ids, context_length=8, batch_size=4, seed=3)
    for _ in range(20):
        x, y = next(batches)
        assert x.shape == y.shape == (4, 8)
        assert (y == x + 1).all()
        x[:] = -1  # a batch is the caller's own: the text must not change
    assert ids.tolist() == list(range(50))
    np.random.seed(0)
    again = Batches(ids, context_length=8, batch_size=4, seed=3)
    first = take(again, 3)
    np.random.seed(1)
    assert take(Batches(ids, context_length=8, batch_size=4, seed=3), 3) == first
    assert take(Batches(ids, context_length=8, batch_size=4, seed=4), 3) != first


def test_every_window_can_be_drawn_the_last_one_too():
    batches = Batches(np.arange(12), context_length=4, batch_size=16, seed=0)
    starts = {row[0] for x in take(batches, 30) for row in x}
    assert starts == set(range(8))


def test_stride_keeps_starts_on_sentence_beginnings():
    batches = Batches(np.arange(100), context_length=8, batch_size=16, seed=0, stride=10)
    assert {row[0] % 10 for x in take(batches, 10) for row in x} == {0}


def test_batches_go_on_from_a_stored_state():
    batches = Batches(np.arange(50), context_length=8, batch_size=4, seed=3)
    take(batches, 5)
    stored = json.loads(json.dumps(batches.state_dict()))
    expected = take(batches, 5)
    other = Batches(np.arange(50), context_length=8, batch_size=4, seed=99)
    other.load_state_dict(stored)
    assert take(other, 5) == expected


# --- byte pairs ----------------------------------------------------------------------------------------------------


def test_the_first_merges_of_hello():
    text = load_corpus("hello").text
    tokens = list(text)
    pair = most_common_pair(tokens)
    assert count_pairs(tokens)[pair] == max(count_pairs(tokens).values())
    merges = learn_merges(text, 10)
    assert len(set(merges)) == 10
    lengths = [len(apply_merges(text, merges[:n])) for n in range(11)]
    assert all(after < before for before, after in pairwise(lengths))
    assert all("".join(apply_merges(text, merges[:n])) == text for n in range(11))


def test_merging_is_from_left_to_right_and_stops_at_one_token():
    assert merge_pair(list("aaaa"), ("a", "a")) == ["aa", "aa"]
    assert merge_pair(list("abab"), ("b", "a")) == ["a", "ba", "b"]
    assert merge_pair([], ("a", "b")) == []
    assert apply_merges("abab", learn_merges("abab", 99)) == ["abab"]
    assert learn_merges("", 3) == []
    with pytest.raises(ValueError, match="1 tokens, at least 2"):
        most_common_pair(["a"])
    with pytest.raises(ValueError, match="-1"):
        learn_merges("abc", -1)
