"""The course's byte-level byte-pair encoding beside the library ``tokenizers``: words, ids, texts, merges, files.

Which characters are letters depends on the version of Unicode: Python has one, the library another, newer or older.
So texts are drawn from the characters that Python knows (category not Cn) and that the library takes for the same
kind; a test shows that those are all, but for what one of the two does not know yet. The library's NFC is older still
(it leaves marks of Unicode 10 and later where they are): texts for it have no mark that Unicode 3.2 lacks.
"""

import functools
import json
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from track_tools import ROOT, both_tracks

from course_lib.inference import generate, load_tokenizer
from course_lib.text import BytePairTokenizer, load_corpus, split_words
from course_lib.text.byte_level import GPT2_WORDS, LLAMA3_WORDS, PATTERNS, QWEN_WORDS, byte_characters

library = pytest.importorskip("tokenizers", reason="the library tokenizers is not installed")
GPT2 = ROOT / "data" / "gpt2"
published = pytest.mark.skipif(
    not (GPT2 / "merges.txt").is_file(), reason="data/gpt2 has no vocab.json and merges.txt of GPT-2"
)
NAMES = dict(zip(PATTERNS, ("GPT-2", "Llama 3", "Qwen")))
cuts = pytest.mark.parametrize("pattern", PATTERNS, ids=NAMES.get)
MIXED = (
    "Hello world, it's 2024: they'RE 1,234,567 apples!\n\n  Two  spaces,\ttabs\r\nGrüße aus Köln, naïve café. "
    "Привет, мир! Ελλάδα שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก 你好,世界。 こんにちは 안녕하세요 "
    "Ⅻ ½ ١٢٣ 🙂👩‍👩‍👧 e\u0301 ſ ﬁ\n"
) * 3


def kind(character, cut):
    """L, N, O or S: a letter, a number, another sign or a space, by the words in which ``cut`` puts it."""
    return next(
        (name for name, before in (("L", "x"), ("N", "1"), ("O", "!")) if len(cut(before + character)) == 1), "S"
    )


def library_cut(pattern):
    split = library.pre_tokenizers.Split(library.Regex(pattern), "isolated")
    return lambda text: [word for word, _ in split.pre_tokenize_str(text)]


@functools.cache
def known():
    """Every character that is one in Python's Unicode, and of the same kind in the library's."""
    theirs, found, other = library_cut(GPT2_WORDS), [], []
    for character in map(chr, range(0x110000)):
        if unicodedata.category(character) not in ("Cn", "Co", "Cs"):
            same = kind(character, split_words) == kind(character, theirs)
            (found if same else other).append(character)
    return "".join(found), "".join(other)


@pytest.mark.slow
def test_letters_numbers_and_spaces_are_the_librarys():
    """What differs, if anything, is a letter or number of a Unicode that the library does not know yet."""
    same, other = known()
    assert len(same) > 140_000
    assert {kind(character, library_cut(GPT2_WORDS)) for character in other} <= {"O"}


def new_mark(character):
    """Is this a combining mark that came after Unicode 3.2, the older table that every Python has?"""
    return unicodedata.combining(character) > 0 and unicodedata.ucd_3_2_0.category(character) == "Cn"


def texts(new_marks=True):
    """Texts of all scripts, and of the characters on which the patterns turn."""
    turning = st.sampled_from(" \n\r\t\x0b\x85\xa0\u3000\x1c'’sSſtTrevlLmdD09١½aéя世🙂!_-\u0301\u200d")
    characters = known()[0] if new_marks else [c for c in known()[0] if not new_mark(c)]
    everything = st.integers(0, len(characters) - 1).map(lambda n: characters[n])
    words = st.sampled_from(["hello", " world", "'ll", "'RE", "<|endoftext|>", "<|end", "世界", "  ", "\r\n", " 12345"])
    return st.lists(turning | everything | words, max_size=30).map("".join)


thousand = settings(
    max_examples=1000, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@cuts
def test_words_are_the_librarys(pattern):
    theirs = library_cut(pattern)

    @thousand
    @given(texts())
    def check(text):
        assert split_words(text, pattern) == theirs(text)

    check()


def test_a_character_that_ignores_case():
    """The long s is an s where case is ignored, and only there."""
    assert split_words("it'ſ", GPT2_WORDS) == ["it", "'", "ſ"]
    assert split_words("it'ſ", LLAMA3_WORDS) == library_cut(LLAMA3_WORDS)("it'ſ") == ["it", "'ſ"]
    with pytest.raises(ValueError, match=r"only the patterns of GPT-2, Llama 3 and Qwen cut text here, not '\\\\w\+'"):
        split_words("a", r"\w+")


def test_the_alphabet_is_the_librarys():
    table = byte_characters()
    assert sorted(table) == list(range(256)) and set(table.values()) == set(library.pre_tokenizers.ByteLevel.alphabet())


# ------------------------------------------------------------------ GPT-2's own vocabulary
@pytest.fixture(scope="module")
def gpt2():
    theirs = library.ByteLevelBPETokenizer(str(GPT2 / "vocab.json"), str(GPT2 / "merges.txt"))
    theirs.add_special_tokens(["<|endoftext|>"])
    return load_tokenizer(GPT2), theirs


def same(mine, theirs, text):
    ids = mine.encode(text)
    assert ids.dtype == np.int64 and ids.tolist() == theirs.encode(text).ids
    assert mine.decode(ids) == (unicodedata.normalize(mine.form, text) if mine.form else text)


@published
def test_the_published_ids(gpt2):
    mine, theirs = gpt2
    assert mine.encode("Hello world").tolist() == [15496, 995] and len(mine) == 50257
    assert mine.encode("<|endoftext|>").tolist() == [50256] and mine.decode([50256]) == "<|endoftext|>"
    assert mine.tokens([15496, 995, 220]) == ["Hello", " world", " "]
    for text in (MIXED, "", " ", "a" * 3000, "ab" * 3000, "日本語" * 500, load_corpus("market").text):
        same(mine, theirs, text)


@published
@pytest.mark.slow
def test_a_thousand_texts_with_the_published_vocabulary(gpt2):
    mine, theirs = gpt2
    assert known()

    @thousand
    @given(texts())
    def check(text):
        same(mine, theirs, text)

    check()


@published
@pytest.mark.slow
def test_any_ids_are_decoded_as_the_library_does(gpt2):
    """Also ids that end or begin inside a character."""
    mine, theirs = gpt2

    @thousand
    @given(st.lists(st.integers(0, 255) | st.integers(0, 50255), max_size=20))
    def check(ids):
        assert mine.decode(ids) == theirs.decode(ids, skip_special_tokens=False)

    check()


# ------------------------------------------------------------------ training
def library_trained(text, size):
    """The library's merges: bytes first, no special tokens, no pair that occurs once."""
    theirs = library.Tokenizer(library.models.BPE())
    theirs.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator([text], trainer)
    theirs.decoder = library.decoders.ByteLevel()
    return theirs


@pytest.mark.parametrize("text", [MIXED, load_corpus("market").text, "aaaa aaa aaaaa aa", "abcbcab" * 7, "", "a"])
def test_merges_are_the_librarys(text):
    """With its ties: of equally common pairs the one with the lower ids is merged."""
    mine, theirs = BytePairTokenizer.train(text, 600, special=()), library_trained(text, 600)
    model = json.loads(theirs.to_str())["model"]
    assert [list(pair) for pair in mine.merges] == [list(pair) for pair in model["merges"]]
    assert mine.ids == model["vocab"]
    same(mine, theirs, text + MIXED)


@pytest.mark.slow
def test_a_thousand_texts_with_a_trained_vocabulary():
    mine, theirs = BytePairTokenizer.train(MIXED, 500, special=()), library_trained(MIXED, 500)
    assert known()

    @thousand
    @given(texts())
    def check(text):
        same(mine, theirs, text)

    check()


def test_special_tokens_in_the_text_are_not_merged():
    text = "hello<|endoftext|>hello<|endoftext|>" * 5
    tokenizer = BytePairTokenizer.train(text, 270)
    assert tokenizer.tokens(tokenizer.encode(text)[:2]) == ["hello", "<|endoftext|>"]
    assert not any("|" in token for token in tokenizer.ids if len(token) > 1)
    two = BytePairTokenizer.train("aaaa", 258, special=("<|a|>", "<|a|><|b|>"))
    assert two.encode("<|a|><|b|><|a|>b").tolist() == [257, 256, two.ids["b"]]
    with pytest.raises(ValueError, match="vocab_size must be a whole number, at least 257, not 256"):
        BytePairTokenizer.train(text, 256)


# ------------------------------------------------------------------ in use
@both_tracks
def test_a_gpt_writes_with_it(track):
    from course_lib.common.config import GPTConfig

    tokenizer = BytePairTokenizer.train(MIXED, 300)
    model = track.models.GPT(GPTConfig(len(tokenizer), width=8, heads=2, layers=1))
    text = generate(model, tokenizer, "Grüße", 20)
    assert text.startswith("Grüße") and len(tokenizer.encode(text)) > 3


def test_what_is_no_text_or_no_id():
    tokenizer = BytePairTokenizer.train(MIXED, 300)
    with pytest.raises(ValueError, match=r"U\+D83D at position 2 is half of a surrogate pair"):
        tokenizer.encode("ab\ud83d")
    with pytest.raises(ValueError, match=r"U\+DC00 at position 0"):
        BytePairTokenizer.train("\udc00", 300)
    for wrong in (-1, 300):
        with pytest.raises(IndexError, match=rf"token id {wrong} at position 1 is not one of the 300 .* 0 to 299"):
            tokenizer.decode([0, wrong])
    with pytest.raises(ValueError, match=r"float64 of shape \(1,\)"):
        tokenizer.decode([0.5])
    assert tokenizer.decode([]) == "" and tokenizer.tokens([]) == [] and tokenizer.encode("").shape == (0,)
    bytes_of = [tokenizer.ids[byte_characters()[byte]] for byte in "é".encode()]
    assert tokenizer.tokens(bytes_of) == ["\ufffd", "\ufffd"] and tokenizer.decode(bytes_of) == "é"
    assert repr(tokenizer) == "BytePairTokenizer(300 tokens)"
    assert tokenizer == BytePairTokenizer.train(MIXED, 300) != BytePairTokenizer.train(MIXED, 299)
    assert hash(tokenizer) == hash(BytePairTokenizer.train(MIXED, 300))


@pytest.mark.parametrize(
    "change, said",
    [
        ({"ids": {"a": 0}}, "lacks 255 of the 256 bytes, among them 0x21"),
        ({"ids": {"ab": 7}}, "id 7 is given twice: to 'ab' and to "),
        ({"ids": {"ab": -7}}, "the id of 'ab' must be a whole number, at least 0, not -7"),
        ({"merges": [("a", "b")]}, "merge 0, 'a b': 'ab' is not a token"),
        ({"merges": [("a", "b", "c")]}, "merge 0, 'a b c'"),
        ({"special": {"<|a|>": 3}}, "id 3 is given twice: to '<|a|>'"),
        ({"form": "NFKC"}, "form must be None or 'NFC', not 'NFKC'"),
        ({"pattern": r"\S+"}, "only the patterns of GPT-2"),
    ],
)
def test_parts_that_do_not_fit(change, said):
    ids = {character: n for n, character in enumerate(sorted(byte_characters().values()))}
    given = {"ids": ids, "merges": [], **change}
    if "ids" in change and "a" not in change["ids"]:
        given["ids"] = ids | change["ids"]
    with pytest.raises(ValueError, match=said.replace("|", r"\|").replace("(", r"\(")):
        BytePairTokenizer(**given)


# ------------------------------------------------------------------ tokenizer.json
def written(folder, pattern=None, normalizer=None, **model):
    """A tokenizer of the library, trained on MIXED and saved; returned as the library has it, and its content."""
    theirs = library.Tokenizer(library.models.BPE(**model))
    level, alphabet = library.pre_tokenizers.ByteLevel, library.pre_tokenizers.ByteLevel.alphabet()
    steps = [level(add_prefix_space=False, use_regex=pattern is None)]
    if pattern is not None:
        steps = [library.pre_tokenizers.Split(library.Regex(pattern), "isolated"), *steps]
    theirs.pre_tokenizer = library.pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    theirs.normalizer = normalizer
    theirs.decoder = library.decoders.ByteLevel()
    theirs.post_processor = library.processors.ByteLevel(trim_offsets=False)
    trainer = library.trainers.BpeTrainer(vocab_size=450, initial_alphabet=alphabet, show_progress=False)
    theirs.train_from_iterator([MIXED], trainer)
    theirs.add_special_tokens(["<|endoftext|>", "<|im_end|>"])
    theirs.add_tokens([library.AddedToken("<think>", normalized=False)])
    theirs.save(str(folder / "tokenizer.json"))
    return theirs, json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))


FILES = {
    "GPT-2": {},
    "GPT-2, two steps": {"pattern": GPT2_WORDS},
    "Llama 3": {"pattern": LLAMA3_WORDS, "ignore_merges": True},
    "Qwen": {"pattern": QWEN_WORDS, "normalizer": library.normalizers.NFC()},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_thousand_texts_with_a_tokenizer_json(kind, tmp_path):
    theirs, _ = written(tmp_path, **FILES[kind])
    mine = load_tokenizer(tmp_path)
    assert len(mine) == theirs.get_vocab_size() == 453 and known()
    assert mine.encode("<think> a<|im_end|>").tolist()[::2] == [452, 451]

    @thousand
    @given(texts(new_marks=mine.form is None))
    def check(text):
        same(mine, theirs, text)

    check()


def test_a_word_that_is_a_token_without_merges(tmp_path):
    """As Llama 3's file says it: ``ignore_merges``."""
    _, content = written(tmp_path, LLAMA3_WORDS)
    content["model"]["merges"] = []
    word = max((token for token in content["model"]["vocab"] if token.isascii() and token.isalpha()), key=len)
    for ignore, length in ((True, 1), (False, len(word))):
        content["model"]["ignore_merges"] = ignore
        (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        theirs = library.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        ids = load_tokenizer(tmp_path).encode(word).tolist()
        assert ids == theirs.encode(word).ids and len(ids) == length


def changed(content, path, value):
    *before, last = path.split(".")
    place = content
    for name in before:
        place = place[int(name)] if name.isdigit() else place[name]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(content)


SPLIT = "pre_tokenizer.pretokenizers.0"
REFUSED = {
    "model: this tokenizer cannot follow type 'Unigram', only 'BPE'": ("model.type", "Unigram"),
    "cannot follow byte_fallback True": ("model.byte_fallback", True),
    "cannot follow dropout 0.1": ("model.dropout", 0.1),
    "cannot follow unk_token '<unk>'": ("model.unk_token", "<unk>"),
    "cannot follow end_of_word_suffix '</w>'": ("model.end_of_word_suffix", "</w>"),
    "model.merges should be a list of pairs, not None": ("model.merges", None),
    "model.merges: each line should be two pieces .* not 'a b c'": ("model.merges", ["a b c"]),
    "model.merges: each line should be two pieces .* not '1 2'": ("model.merges", [[1, 2]]),
    "do not fit together: merge 0, 'q x': 'qx' is not a token": ("model.merges", [["q", "x"]]),
    "model.vocab should give each token its id": ("model.vocab", {"a": "b"}),
    "do not fit together: the vocabulary lacks 256 of the 256 bytes": ("model.vocab", {}),
    "model is 3, which this tokenizer cannot follow": ("model", 3),
    "normalizer: this tokenizer cannot follow type 'Lowercase', only 'NFC'": ("normalizer", {"type": "Lowercase"}),
    "pre_tokenizer cuts text by 'x': only those of": (f"{SPLIT}.pattern", {"Regex": "x"}),
    "pre_tokenizer cuts text by None": (f"{SPLIT}.pattern", {"String": "x"}),
    "cannot follow behavior 'Removed'": (f"{SPLIT}.behavior", "Removed"),
    "cannot follow type 'Digits'": (SPLIT, {"type": "Digits"}),
    "cannot follow type 'Metaspace'": ("pre_tokenizer", {"type": "Metaspace"}),
    "pre_tokenizer is None, which": ("pre_tokenizer", None),
    "pre_tokenizer has steps that this tokenizer cannot follow": ("pre_tokenizer.pretokenizers", []),
    "cannot follow add_prefix_space True": ("pre_tokenizer.pretokenizers.1.add_prefix_space", True),
    "cannot follow use_regex True, only False": ("pre_tokenizer.pretokenizers.1.use_regex", True),
    "post_processor: .* cannot follow type 'TemplateProcessing'": ("post_processor", {"type": "TemplateProcessing"}),
    "decoder is None": ("decoder", None),
    "cannot follow truncation": ("truncation", {"max_length": 3}),
    "cannot follow padding": ("padding", {"length": 3}),
    "the added token '<|endoftext|>': this tokenizer cannot follow lstrip True": ("added_tokens.0.lstrip", True),
    "cannot follow single_word True": ("added_tokens.0.single_word", True),
    "cannot follow normalized True": ("added_tokens.0.normalized", True),
}


@pytest.mark.parametrize(("message", "change"), REFUSED.items(), ids=REFUSED)
def test_a_tokenizer_json_that_cannot_be_followed(message, change, tmp_path):
    _, content = written(tmp_path, QWEN_WORDS, library.normalizers.NFC())
    (tmp_path / "tokenizer.json").write_text(changed(content, *change), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"tokenizer\.json.*{message.replace('|', chr(92) + '|')}"):
        load_tokenizer(tmp_path)


def test_other_files_beside_the_vocabulary(tmp_path):
    made = BytePairTokenizer.train(MIXED, 300)
    (tmp_path / "vocab.json").write_text(json.dumps(made.ids | made.special), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"merges.txt is missing"):
        load_tokenizer(tmp_path)
    lines = "\r\n".join(["#version: 0.2", *(" ".join(pair) for pair in made.merges), ""])
    (tmp_path / "merges.txt").write_text(lines, encoding="utf-8")
    assert (
        load_tokenizer(tmp_path).encode(MIXED + "<|endoftext|>").tolist()
        == made.encode(MIXED + "<|endoftext|>").tolist()
    )
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}', encoding="utf-8")
    with pytest.raises(
        ValueError, match="tokenizer_config.json: .* tokenizer_class 'Qwen2Tokenizer', only None, 'GPT2"
    ):
        load_tokenizer(tmp_path)  # another pattern, which only tokenizer.json would show
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "merges.txt").write_text("q x\n", encoding="utf-8")
    with pytest.raises(ValueError, match="do not fit together: merge 0, 'q x'"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["GPT2TokenizerFast", "Qwen2TokenizerFast"])
def test_the_ids_of_transformers(name, tmp_path):
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    theirs, _ = written(tmp_path, **FILES["GPT-2" if name.startswith("GPT2") else "Qwen"])
    made = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).encode(MIXED).tolist() == made(MIXED)["input_ids"] == theirs.encode(MIXED).ids
