"""Characters that come in several tokens, and models whose numbers are broken: what is decoded, in both tracks."""

import importlib
import json

import numpy as np
import pytest
from test_decoding import BEGINS, ENDS, TRAP, Table
from track_tools import NUMPY, both_tracks

from course_lib.common.config import GPTConfig, TransformerConfig
from course_lib.inference import beam_search, generate, greedy_ids, load_tokenizer, stream
from course_lib.inference.streaming import growing_text
from course_lib.text import BytePairTokenizer
from course_lib.views import sampler_view


class Bytes:
    """A tokenizer whose tokens are the 256 bytes, as under GPT-2's merges; broken text reads as U+FFFD."""

    unit = "byte"

    def __len__(self):
        return 256

    def encode(self, text):
        return np.frombuffer(text.encode(), np.uint8).astype(np.int64)

    def decode(self, ids):
        return bytes(int(i) for i in ids).decode("utf-8", "replace")

    def tokens(self, ids):
        return [self.decode([i]) for i in ids]


class Script:
    """A model that writes the given bytes, whatever it reads; ``stop`` presses the stop button at that token."""

    def __init__(self, content, stop=None):
        self.content, self.stop, self.at = content, stop, 0
        self.vocab_size, self.context_length = 256, 1000
        self.inner = NUMPY.models.Bigram(256)

    def evaluating(self):
        return self.inner.evaluating()

    def __call__(self, ids):
        if self.at == self.stop:
            raise KeyboardInterrupt
        self.inner.weight.data[...] = -1e9
        self.inner.weight.data[:, self.content[self.at % len(self.content)]] = 0
        self.at += 1
        return self.inner(ids)


# ------------------------------------------------------------------ characters in pieces
@pytest.mark.parametrize(
    "content, text",
    [
        ("aé世🙂b".encode(), "aé世🙂b"),
        ("👩‍👩‍👧 क्षि e\u0301".encode(), "👩‍👩‍👧 क्षि e\u0301"),  # several code points each
        ("�x�".encode(), "�x�"),  # the sign itself
        (b"a\xe4\xb8b\xff\xffc", "a\ufffdb\ufffd\ufffdc"),  # bytes that never become a character
        ("ab世".encode()[:-1], "ab\ufffd"),  # the last character is cut off
        (b"\xf0\x9f\x99", "\ufffd"),
    ],
)
@pytest.mark.parametrize("prompt", ["é: ", "world�"])
def test_what_is_printed_is_what_comes_back(content, text, prompt, capsys):
    n, tokenizer = len(content), Bytes()
    whole = stream(Script(content), tokenizer, prompt, n)
    assert whole == prompt + text == generate(Script(content), tokenizer, prompt, n)
    assert capsys.readouterr().out == f"sample:\n{whole}\n(end of sample)\n"
    texts = [prompt, *growing_text(Script(content), tokenizer, prompt, n)]
    assert all(longer.startswith(text) for text, longer in zip(texts, texts[1:])) and texts[-1] == whole
    for stop in range(n):
        written = stream(Script(content, stop), tokenizer, prompt, n)
        note = f"(stopped after {stop} of {n} tokens)"
        assert whole.startswith(written)
        assert capsys.readouterr().out == f"sample:\n{written}\n{note}\n(end of sample)\n"


def test_the_sampler_shows_no_broken_characters():
    view, shown = sampler_view(Script("世🙂".encode()), Bytes(), "a", temperature=0, max_new_tokens=7), []
    view.model.at = 0  # opening the view asked for the next token
    view.observe(lambda change: shown.append(change.new), "text")
    view.write()
    assert view.text == "a世🙂" and all("\ufffd" not in text for text in shown)


# ------------------------------------------------------------------ broken numbers
@pytest.mark.parametrize(
    "broken, right",
    [
        ([np.nan, 0, 0, 0], False),
        ([0, 0, np.inf, 0], False),
        ([np.nan] * 4, False),
        ([-np.inf] * 4, False),
        ([-np.inf, 0, -np.inf, 1], True),  # tokens that never come
    ],
)
@pytest.mark.parametrize("when", [BEGINS, 3])  # at once, and after the first token
def test_broken_logits_of_one_row(broken, right, when):
    table = Table([[[0.0, 0.1, 0.0, 0.9]] * 4, TRAP])
    table.logits[0][when] = broken
    for decode in (
        lambda: greedy_ids(table, [[1], [0]], BEGINS, ENDS, 4),  # the row beside it is whole
        lambda: beam_search(table, [0], BEGINS, ENDS, 4, num_beams=2),
        lambda: beam_search(table, [0], BEGINS, ENDS, 4, num_beams=9, normalised=False),
    ):
        if right:
            decode()
        else:
            with pytest.raises(ValueError, match="of 4 logits are nan or infinite: the weights of this model are bro"):
                decode()


def encoder_decoder(track, **options):
    config = TransformerConfig(11, 33, width=8, heads=2, layers=1, d_ff=8, dropout=0.0, context_length=8, **options)
    return importlib.import_module(f"course_lib.{track.name}_track.encoder_decoder").Transformer(config)


@both_tracks
@pytest.mark.parametrize("name", ["encoder.embedding.token.weight", "decoder.layers.0.cross.key.weight", "head.bias"])
def test_weights_that_training_has_broken(track, name):
    model = encoder_decoder(track)
    source, allow = np.array([[1, 2, 3], [4, 5, 0]]), np.array([[True] * 3, [True, True, False]])
    greedy_ids(model, source, 1, 2, 4, allow)
    state = model.state_dict()
    state[name].flat[-8:] = np.nan
    model.load_state_dict(state)
    source[1, 1] = 10  # the row of the table that is broken
    for mask in (None, allow):
        with pytest.raises(ValueError, match="of 33 logits are nan or infinite"):
            greedy_ids(model, source, 1, 2, 4, mask)
        with pytest.raises(ValueError, match="of 33 logits are nan or infinite"):
            beam_search(model, source[1], 1, 2, 4, source_allow=None if mask is None else mask[1])


@both_tracks
def test_padding_is_hidden_from_both_ways_of_decoding(track):
    model = encoder_decoder(track, init="uniform", dtype="float64")
    short, padded, allow = np.array([4, 5]), np.array([4, 5, 9, 9]), np.array([True, True, False, False])
    best, same = (
        beam_search(model, source, 1, 2, 5, num_beams=3, source_allow=mask)
        for source, mask in ((short, None), (padded, allow))
    )
    assert [h.ids for h in best] == [h.ids for h in same]
    np.testing.assert_allclose([h.log_probability for h in best], [h.log_probability for h in same], rtol=1e-10)
    assert greedy_ids(model, short[None], 1, 2, 5) == greedy_ids(model, padded[None], 1, 2, 5, allow[None])
    with pytest.raises(ValueError, match="source_allow has shape"):
        beam_search(model, padded, 1, 2, 5, source_allow=allow[:3])
    with pytest.raises(TypeError, match="source_allow must be boolean"):
        beam_search(model, padded, 1, 2, 5, source_allow=[1, 1, 0, 0])


@both_tracks
def test_a_gpt_with_broken_weights(track):
    model = track.models.GPT(GPTConfig(256, width=8, heads=2, layers=1))
    state = model.state_dict()
    state["blocks.0.mlp.layer.up.bias"][0] = np.inf
    model.load_state_dict(state)
    for cache in (True, False):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="of 256 logits are nan or infinite"):
            stream(model, Bytes(), "a", 3, cache=cache)


# ------------------------------------------------------------------ marks that are one token
MARKS = {"<|endoftext|>": 270, "<|im_start|>": 271, "<|im|>": 280}


@pytest.fixture
def folder(tmp_path):
    """A vocabulary of 270 and the mark at 270."""
    made = BytePairTokenizer.train("hello world, <|end hello transformer" * 5, 271)
    vocabulary = made.ids | {"<|endoftext|>": 270}
    lines = ["#version: 0.2", *(" ".join(pair) for pair in made.merges)]
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8-sig")
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "name, content",
    [
        ("added_tokens.json", {"<|im_start|>": 271, "<|im|>": 280, "<|endoftext|>": 270}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"271": {"content": "<|im_start|>"},
                                                            "280": {"content": "<|im|>", "special": True}}}),
        ("tokenizer.json", {"added_tokens": [{"id": id, "content": mark} for mark, id in MARKS.items()]}),
    ],
)  # fmt: skip
def test_a_mark_is_one_token(name, content, folder):
    assert load_tokenizer(folder).encode("<|endoftext|>").tolist() == [270] and len(load_tokenizer(folder)) == 271
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    tokenizer = load_tokenizer(folder)
    assert len(tokenizer) == 273 and tokenizer.decode([270]) == "<|endoftext|>"
    for text, marks in (
        ("<|endoftext|><|endoftext|>", [270, 270]),
        (" hello <|endoftext|> hello\n<|im_start|>世<|im|>", [270, 271, 280]),
        ("<|endoftext|", []),
        ("<|im_start|><|im_st|>", [271]),
        ("<|endoftext>|<|ENDOFTEXT|>", []),
        ("", []),
    ):
        ids = tokenizer.encode(text)
        assert ids.dtype == np.int64 and [i for i in ids if i >= 270] == marks
        assert tokenizer.decode(ids) == text
    pieces = ["hello", "<|im|>", " world"]
    apart = np.concatenate([tokenizer.encode(piece) for piece in pieces])
    assert tokenizer.encode("".join(pieces)).tolist() == apart.tolist()


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("added_tokens.json", '{"<|endoftext|>": 271}', "added token '<|endoftext|>' cannot have id 271"),
        ("added_tokens.json", '{"<|im|>": 270}', "added token '<|im|>' cannot have id 270"),
        ("added_tokens.json", '{"<|im|>": "x"}', "added_tokens.json should give each token its id"),
        ("added_tokens.json", '{"": 271}', "added token '' cannot have id 271"),
        ("added_tokens.json", "[]", "added_tokens.json should hold"),
        ("tokenizer.json", '{"added_tokens": [{"content": "a"}]}', "tokenizer.json: added_tokens is not a list"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {}}}', "tokenizer_config.json: added_tokens_dec"),
        ("tokenizer_config.json", '{"add_prefix_space": true}', "this tokenizer cannot follow add_prefix_space True"),
        ("tokenizer_config.json", '{"add_bos_token": true}', "this tokenizer cannot follow add_bos_token True"),
        ("vocab.json", '{"a": "b"}', "vocab.json should give each token its id"),
        ("merges.txt", "#version: 0.2\na b c\n", "merges.txt: each line should be two pieces .* not 'a b c'"),
        ("merges.txt", "Gr\xfc\xdfe", "merges.txt is not in UTF-8"),
    ],
)
def test_a_vocabulary_that_does_not_fit(name, content, said, folder):
    (folder / name).write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=said.replace("|", r"\|")):
        load_tokenizer(folder)
