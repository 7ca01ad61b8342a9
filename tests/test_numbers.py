"""Numbers into words: the exact answers, the split, the batches; and that both tracks learn it."""

import dataclasses
import importlib

import numpy as np
import pytest
from track_tools import assert_same, both_tracks

from course_lib.experiments.numbers import NUMBERS_RECIPE, cross_alignment, exact_matches, say_numbers
from course_lib.numpy_track.encoder_decoder import TeacherForcing
from course_lib.numpy_track.optim import SGD
from course_lib.text.numbers import (
    BEGIN,
    DIGITS,
    END,
    ONES,
    TENS,
    WORDS,
    digits_of_words,
    encode_digits,
    encode_numbers,
    number_to_words,
    split_numbers,
)
from course_lib.text.pairs import PADDING, PairBatches, pad, shift
from course_lib.training import train

SAID = {
    0: "zero",
    7: "seven",
    10: "ten",
    13: "thirteen",
    20: "twenty",
    40: "forty",
    99: "ninety nine",
    100: "one hundred",
    115: "one hundred fifteen",
    1000: "one thousand",
    3407: "three thousand four hundred seven",
    10_010: "ten thousand ten",
    200_000: "two hundred thousand",
    818_080: "eight hundred eighteen thousand eighty",
    999_999: "nine hundred ninety nine thousand nine hundred ninety nine",
}


def value(words):
    """What the words add up to, read from left to right."""
    thousands, group = 0, 0
    for word in words.split():
        if word == "thousand":
            thousands, group = group, 0
        elif word == "hundred":
            group *= 100
        else:
            group += ONES.index(word) if word in ONES else 10 * (TENS.index(word) + 2)
    return 1000 * thousands + group


@pytest.mark.parametrize(("number", "words"), SAID.items())
def test_numbers_in_words(number, words):
    assert number_to_words(number) == number_to_words(np.int64(number)) == words
    assert value(words) == number


def test_every_number_comes_back():
    said = {number_to_words(number) for number in range(0, 1_000_000, 11)} | set(map(number_to_words, range(2000)))
    assert len(said) == len({*range(0, 1_000_000, 11), *range(2000)})  # no two sound alike
    for number in [*range(2000), *range(0, 1_000_000, 997)]:
        assert value(number_to_words(number)) == number
    assert max(len(words.split()) for words in said) == 9


@pytest.mark.parametrize("number", [-1, 1_000_000])
def test_numbers_out_of_range(number):
    with pytest.raises(ValueError, match=f"0 to 999,999, not {number:,}"):
        number_to_words(number)


@pytest.mark.parametrize("number", [1.0, "7", True, None])
def test_what_is_no_number(number):
    with pytest.raises(TypeError, match=f"a whole number is needed, not {number!r}"):
        number_to_words(number)


def test_which_digit_each_word_comes_from():
    assert digits_of_words(0) == [(0,)]
    assert digits_of_words(40) == [(0,)]
    assert digits_of_words(13) == [(0, 1)]
    assert digits_of_words(3407) == [(0,), (0,), (1,), (1,), (3,)]
    assert digits_of_words(120_015) == [(0,), (0,), (1,), (0, 1, 2), (4, 5)]
    for number in [*range(2000), *range(0, 1_000_000, 1999)]:
        found = digits_of_words(number)
        assert len(found) == len(number_to_words(number).split())
        named = {place for places in found for place in places}
        needed = {place for place, digit in enumerate(str(number)) if digit != "0"} or {0}
        assert needed <= named <= set(range(len(str(number))))  # no digit but 0 goes unsaid


def test_encoding():
    source, target = encode_numbers([3407, 7])
    assert [DIGITS.vocabulary[i] for i in source[0]] == list("3407")
    assert source.tolist()[1] == [8, PADDING, PADDING, PADDING]
    assert WORDS.tokens(target[0]) == ["<begin>", "three", "thousand", "four", "hundred", "seven", "<end>"]
    assert target[1].tolist() == [BEGIN, WORDS.encode("seven")[0], END, *[PADDING] * 4]
    assert (encode_digits([3407, 7]) == source).all()
    assert (len(DIGITS), len(WORDS)) == (11, 33)
    for text, tokenizer in (("<padding>", DIGITS), ("<begin>", WORDS)):
        with pytest.raises(ValueError, match="unknown|would not come back"):
            tokenizer.encode(text)  # no text contains the tokens that are not symbols


def test_split():
    training, held_out = split_numbers()
    again, _ = split_numbers()
    other, _ = split_numbers(seed=1)
    for digits, (mine, kept_out) in enumerate(zip(training, held_out, strict=True), start=1):
        assert len(kept_out) == (2, 18, 180, 200, 200, 200)[digits - 1]
        both = np.concatenate([mine, kept_out])
        assert {len(str(n)) for n in both[:: max(1, len(both) // 1000)].tolist()} == {digits}
        assert len(np.unique(both)) == len(both) == 9 * 10 ** (digits - 1) + (digits == 1)  # none twice, none lost
        assert (again[digits - 1] == mine).all()
        assert len(other[digits - 1]) == len(mine) and not (other[digits - 1] == mine).all()
    assert training[0][0] == 0
    with pytest.raises(ValueError, match="9 of the 9 numbers of 1 digits cannot be held out"):
        split_numbers((9, 0, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="-1 of the 90 numbers"):
        split_numbers((0, -1, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="not 2 counts"):
        split_numbers((1, 1))


# ------------------------------------------------------------------ pairs
def test_G08_shift():
    inputs, labels = shift(np.array([[1, 8, 9, 2]]))
    assert (inputs.tolist(), labels.tolist()) == ([[1, 8, 9]], [[8, 9, 2]])
    with pytest.raises(ValueError, match=r"at least 2 ids.*\(3, 1\)"):
        shift(np.ones((3, 1), int))
    with pytest.raises(ValueError, match=r"not \(3,\)"):
        shift(np.ones(3, int))


def test_pad():
    assert pad([[5], [6, 7]]).tolist() == [[5, 0], [6, 7]]
    for rows in ([], [[1], []]):
        with pytest.raises(ValueError, match="at least one id"):
            pad(rows)


def test_pair_batches():
    training, held_out = split_numbers()
    batches = PairBatches(training, encode_numbers, batch_size=50, seed=4)
    kept_out, lengths, seen = set(np.concatenate(held_out).tolist()), [], []
    stored = batches.state_dict()
    for _ in range(60):
        (source, inputs), labels = next(batches)
        assert len(source) == len(inputs) == len(labels) == 50 and inputs.shape == labels.shape
        assert (inputs[:, 0] == BEGIN).all() and (inputs[:, 1:] == labels[:, :-1])[inputs[:, 1:] != PADDING].all()
        for row, label in zip(source, labels, strict=True):
            number = int("".join(DIGITS.tokens(row[row != PADDING])))
            end = label.tolist().index(END)
            assert WORDS.decode(label[:end]) == number_to_words(number) and (label[end + 1 :] == -100).all()
            seen.append(number)
            lengths.append(len(str(number)))
    assert not kept_out.intersection(seen)
    shares = np.bincount(lengths, minlength=7)[1:] / len(lengths)
    assert np.abs(shares - 1 / 6).max() < 0.03  # each length equally often
    batches.load_state_dict(stored)
    again = next(batches)
    first = next(PairBatches(training, encode_numbers, batch_size=50, seed=4))
    assert (again[0][0] == first[0][0]).all() and (again[1] == first[1]).all()
    with pytest.raises(ValueError, match=r"groups of \[2, 0\]"):
        PairBatches([np.arange(2), np.arange(0)], encode_numbers, 4)
    with pytest.raises(ValueError, match="batch_size must be at least 1, not 0"):
        PairBatches(training, encode_numbers, 0)


# ------------------------------------------------------------------ training
def small_recipe(**settings):
    return dataclasses.replace(NUMBERS_RECIPE, model_settings={**NUMBERS_RECIPE.model_settings, **settings})


@pytest.mark.slow
def test_both_tracks_train_alike():
    training, _ = split_numbers()
    histories, models = [], []
    for track in ("numpy", "torch"):
        recipe = dataclasses.replace(small_recipe(width=16, d_ff=32, dropout=0.1, dtype="float64"), warmup_steps=5)
        model = recipe.model(track, seed=1)
        histories.append(recipe.train(track, model, training, seed=1, steps=40, progress=False))
        models.append(model)
    np.testing.assert_allclose(histories[0].losses, histories[1].losses, rtol=1e-8)
    np.testing.assert_allclose(histories[0].norms, histories[1].norms, rtol=1e-8)
    assert histories[0].losses[0] == pytest.approx(np.log(33), abs=0.2)
    assert histories[0].losses[-1] < 0.95 * histories[0].losses[0]
    for mine, other in zip(*map(cross_alignment, models, [range(90, 130)] * 2), strict=True):
        assert_same(mine, other)
    assert say_numbers(models[0], [5, 77]) == say_numbers(models[1], [5, 77])


@pytest.mark.slow
@both_tracks
def test_numbers_up_to_99_are_learnt(track):
    """The recipe in small: after some seconds every number of two digits is right, those never seen too."""
    recipe = dataclasses.replace(
        small_recipe(width=32, layers=1, d_ff=64), steps=500, lr=4e-3, batch_size=32, warmup_steps=50
    )
    training, held_out = split_numbers((0, 9, 0, 0, 0, 0))
    model = recipe.model(track.name, seed=0)
    recipe.train(track.name, model, training[:2], seed=0, progress=False)
    assert exact_matches(model, training[1]) > 0.95
    assert exact_matches(model, held_out[1]) > 0.75
    heads, layers = cross_alignment(model, held_out[1])
    assert heads.shape == (1, 4) and layers.shape == (1,)


@both_tracks
def test_G08_fresh_random_targets_cannot_be_learnt(track):
    """A decoder that saw its own label would get far below ln V on targets that nobody can know."""
    rng = np.random.default_rng(0)
    model = small_recipe(width=16, layers=1, d_ff=32).model(track.name, seed=0)

    def batches():
        while True:
            inputs, labels = shift(rng.integers(3, 33, size=(32, 7)))
            yield (rng.integers(1, 11, size=(32, 5)), inputs), labels

    taught = importlib.import_module(f"course_lib.{track.name}_track.encoder_decoder").TeacherForcing(model)
    history = train(taught, track.optim.AdamW(model.parameters(), 3e-3), batches(), 150, progress=False)
    assert history.mean_loss(50) > np.log(30) - 0.05


def test_the_loop_knows_the_wrapper_and_the_model():
    """An optimiser made for the model alone is at home in the wrapper, and modes come back."""
    model = small_recipe(width=8, layers=1, d_ff=8).model("numpy", seed=0)
    taught = TeacherForcing(model)
    assert taught.num_parameters() == model.num_parameters()
    training, _ = split_numbers()
    model.eval()
    history = train(taught, SGD(model.parameters(), 0.1), PairBatches(training, encode_numbers, 4), 3, progress=False)
    assert history.steps == 3 and not model.training


def test_accuracy_counts_whole_answers(monkeypatch):
    """Of a model that says "six" for "seven", every answer with a seven is wrong, however long it is."""

    def six_for_seven(model, numbers):
        return [number_to_words(n).replace("seven", "six") for n in numbers]

    monkeypatch.setattr("course_lib.experiments.numbers.say_numbers", six_for_seven)
    assert exact_matches(None, range(10)) == 0.9
    assert exact_matches(None, [7, 17, 321_117, 1]) == 0.25
    with pytest.raises(ValueError, match="at least 1 is needed"):
        exact_matches(None, [])


def test_alignment_of_a_known_model():
    """Attention on the first digit alone: right for the words that come from it."""
    model = NUMBERS_RECIPE.model("numpy", seed=0)

    class Layer:
        class cross:
            weights = np.eye(4)[np.zeros((2, 4, 6), int)]  # (B, H, T, S): all on digit 0

    model.decoder.layers = [Layer]
    model.forward = lambda *args: None
    heads, layers = cross_alignment(model, [3407, 20])
    # three thousand four hundred seven, twenty: three, thousand and twenty of six
    assert heads.tolist() == [[0.5] * 4] and layers.tolist() == [0.5]
