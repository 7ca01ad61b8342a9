"""Checkpoints: a run that goes on exactly, in either track; files that survive an interruption; nothing unpickled."""

import json
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from track_tools import NUMPY, TORCH, array, assert_same, assert_states_equal, both_tracks

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.inference import generate
from course_lib.text import Batches, CharTokenizer, WordTokenizer, load_corpus
from course_lib.training import History, WarmupCosine, load_checkpoint, save_checkpoint, train

TOKENIZER = CharTokenizer.from_text(load_corpus("hello").text)
IDS = TOKENIZER.encode(load_corpus("hello").text)
V = len(TOKENIZER)
SMALL = {"context_length": 8, "width": 8, "layers": 1}


def gpt(track, seed=0, **options):
    return track.models.GPT(GPTConfig(V, **{"heads": 2, **SMALL, **options}), seed)


@both_tracks
@pytest.mark.parametrize("reader", ["numpy", "torch"])
def test_a_model_comes_back_in_either_track(track, reader, tmp_path):
    models = [
        gpt(track, seed=5, init="uniform"),
        gpt(track, seed=5, tied=True, norm="post", activation="gelu", dropout=0.1, dtype="float64"),
        track.models.FirstGPT(FirstGPTConfig(V, causal=True, output_projection=False, **SMALL), seed=5),
    ]
    for model in models:
        save_checkpoint(tmp_path / "w.ckpt", model, TOKENIZER, note="from a test")
        names = [p.name for p in tmp_path.iterdir()]
        assert names == ["w.ckpt"]  # under exactly this name, and nothing beside it (O17)
        found = load_checkpoint(tmp_path / "w.ckpt", track=reader)
        assert type(found.model).__module__ == f"course_lib.{reader}_track.models"
        assert type(found.model).__name__ == type(model).__name__ and found.model.config == model.config
        assert (found.tokenizer, found.note) == (TOKENIZER, "from a test")
        assert found.optimizer_state is None and found.batches_state is None
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(found.model.state_dict()[name], value)
            assert found.model.state_dict()[name].dtype == value.dtype
        ids = np.array([IDS[:8]])
        with model.evaluating(), found.model.evaluating():
            assert_same(model(ids, ids)[0], found.model(ids, ids)[0])
        assert generate(model, TOKENIZER, "hello", 9, 0) == generate(found.model, found.tokenizer, "hello", 9, 0)


@both_tracks
@pytest.mark.parametrize("reader", ["numpy", "torch"])
def test_P03_a_tie_survives(track, reader, tmp_path):
    model = gpt(track, tied=True)
    save_checkpoint(tmp_path / "tied", model, TOKENIZER)
    found = load_checkpoint(tmp_path / "tied", reader).model
    assert found.head is None and found.num_parameters() == model.num_parameters()
    with safe_open(tmp_path / "tied", "numpy") as file:
        assert "model.token.weight" in file.keys() and not any("head" in key for key in file.keys())


def resume(tracks, tmp_path, steps=3, dtype="float32"):
    """Train ``steps`` steps in each of ``tracks``, through a file between two: the losses and the last weights."""
    schedule = WarmupCosine(lr=0.01, warmup_steps=2, total_steps=steps * len(tracks), min_lr=0.001)
    path, history = tmp_path / "run.safetensors", None
    for i, track in enumerate(tracks):
        batches, found = Batches(IDS, 8, 4, seed=3), load_checkpoint(path, track.name) if i else None
        model = found.model if found else gpt(track, seed=1, dropout=0.2, dtype=dtype)
        optimizer = track.optim.AdamW(model.parameters(), 0.5)
        if found:
            optimizer.load_state_dict(found.optimizer_state)
            batches.load_state_dict(found.batches_state)
        history = train(model, optimizer, batches, steps, schedule=schedule, clip=0.5, history=history, progress=False)
        save_checkpoint(path, model, TOKENIZER, optimizer, batches)
    return history.losses, model.state_dict()


@both_tracks
def test_O15_n_and_n_steps_are_2n_steps(track, tmp_path):
    whole, expected = resume([track], tmp_path, steps=6)
    losses, state = resume([track, track], tmp_path, steps=3)
    assert losses == whole
    assert_states_equal(state, expected)


@pytest.mark.parametrize("tracks", [(NUMPY, TORCH), (TORCH, NUMPY), (NUMPY, TORCH, NUMPY)], ids=str)
def test_O15_also_when_the_track_changes_half_way(tracks, tmp_path):
    whole, expected = resume([NUMPY], tmp_path, steps=6, dtype="float64")
    losses, state = resume(tracks, tmp_path, steps=6 // len(tracks), dtype="float64")
    np.testing.assert_allclose(losses, whole, rtol=1e-10)
    for name, value in state.items():
        assert_same(value, expected[name], name)


@both_tracks
@pytest.mark.parametrize("evaluations", [[], [(1, 2.5), (3, 2.25)]])
def test_O15_the_history_is_kept_as_plain_numbers(track, evaluations, tmp_path):
    """The schedule goes on at its step: with plain descent, too, whose optimiser counts nothing."""
    history = History([3.0, 2.5, 0.1], [0.1] * 3, [1.0, 2.0, 3.0], evaluations, seconds=1.5, stopped=True)
    save_checkpoint(tmp_path / "w", gpt(track), TOKENIZER, history=history)
    found = load_checkpoint(tmp_path / "w", track.name).history
    assert found == history and found.steps == 3
    assert all(type(value) is float for row in (found.losses, found.lrs, found.norms) for value in row)
    assert all((type(step), type(loss)) == (int, float) for step, loss in found.evaluations)
    assert load_checkpoint("market-gpt", track.name).history is None  # written before there was one


@both_tracks
def test_the_rate_of_plain_descent_is_kept(track, tmp_path):
    model = gpt(track)
    save_checkpoint(tmp_path / "w", model, TOKENIZER, track.optim.SGD(model.parameters(), 0.25))
    optimizer = track.optim.SGD(model.parameters(), 9.0)
    optimizer.load_state_dict(load_checkpoint(tmp_path / "w", track.name).optimizer_state)
    assert optimizer.lr == 0.25


def test_the_model_that_ships_is_the_same_in_both_tracks():
    mine, other = (load_checkpoint("market-gpt", track) for track in ("numpy", "torch"))
    assert mine.tokenizer == other.tokenizer and mine.model.config == other.model.config
    ids = np.arange(2 * mine.model.context_length).reshape(2, -1) % len(mine.tokenizer)
    with mine.model.evaluating(), other.model.evaluating():
        assert_same(mine.model(ids)[0], other.model(ids)[0])


@both_tracks
def test_frozen_parameters_are_in_the_file(track, tmp_path):
    model = track.models.GPT(GPTConfig(V))
    model.token.weight.requires_grad = False
    optimizer = track.optim.AdamW(model.parameters(), 0.1)
    save_checkpoint(tmp_path / "w", model, TOKENIZER, optimizer)
    with safe_open(tmp_path / "w", "numpy") as file:
        assert len([key for key in file.keys() if key.startswith("model.")]) == 42
    found, ids = load_checkpoint(tmp_path / "w", track.name), np.zeros((1, 5), int)
    np.testing.assert_array_equal(array(found.model(ids)[0]), array(model(ids)[0]))
    found.model.token.weight.requires_grad = False
    track.optim.AdamW(found.model.parameters(), 0.1).load_state_dict(found.optimizer_state)


@both_tracks
def test_an_optimiser_of_fewer_or_other_parameters_is_refused(track, tmp_path):
    model = gpt(track)
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    model.token.weight.requires_grad = False  # held from before: fine
    save_checkpoint(tmp_path / "w", model, TOKENIZER, optimizer)
    part = track.optim.SGD(model.parameters(), 0.1)
    model.token.weight.requires_grad = True  # trained, and not held
    more = track.optim.SGD([*model.parameters(), track.leaf([1.0], "float32")], 0.1)
    for optimizer in (part, more):
        with pytest.raises(ValueError, match="does not hold"):
            save_checkpoint(tmp_path / "w", model, TOKENIZER, optimizer)


# ------------------------------------------------------------------ the vocabulary


def test_D12_the_vocabulary_is_inside(tmp_path):
    words = WordTokenizer.from_text("Ming bought apples, not pears.\n")
    model = NUMPY.models.GPT(GPTConfig(len(words), heads=2, **SMALL))
    save_checkpoint(tmp_path / "w", model, words)
    found = load_checkpoint(tmp_path / "w")
    assert found.tokenizer == words and type(found.tokenizer) is WordTokenizer
    with pytest.raises(ValueError, match=f"{V}.*{len(words)}"):
        save_checkpoint(tmp_path / "other", model, TOKENIZER)
    assert not (tmp_path / "other").exists()


def test_any_character_can_be_in_the_vocabulary(tmp_path):
    tokenizer = CharTokenizer.from_text('\n\t"\\é’漢😀\x00 $<')
    save_checkpoint(tmp_path / "w", NUMPY.models.GPT(GPTConfig(len(tokenizer), heads=2, **SMALL)), tokenizer)
    assert load_checkpoint(tmp_path / "w").tokenizer == tokenizer


def test_only_models_of_the_course_are_saved(tmp_path):
    with pytest.raises(TypeError, match="FirstGPT, GPT.*Bigram"):
        save_checkpoint(tmp_path / "w", NUMPY.models.Bigram(V), TOKENIZER)


# ------------------------------------------------------------------ interrupted and damaged


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("where", ["while writing", "before renaming"])
def test_an_interrupted_write_leaves_the_old_file_whole(tmp_path, monkeypatch, error, where):
    path, old, new = tmp_path / "w.safetensors", gpt(NUMPY, seed=1), gpt(NUMPY, seed=2)
    save_checkpoint(path, old, TOKENIZER)
    before = path.read_bytes()

    write = Path.write_bytes

    def half(file, content):
        write(file, content[: len(content) // 2])
        raise error

    def no_rename(*names):
        raise error

    with monkeypatch.context() as patched:
        if where == "while writing":
            patched.setattr(Path, "write_bytes", half)
        else:
            patched.setattr(os, "replace", no_rename)
        with pytest.raises(error):
            save_checkpoint(path, new, TOKENIZER)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]
    save_checkpoint(path, new, TOKENIZER)
    np.testing.assert_array_equal(
        load_checkpoint(path).model.state_dict()["token.weight"], new.state_dict()["token.weight"]
    )


def test_the_file_is_there_under_its_name_only_when_it_is_whole(tmp_path, monkeypatch):
    rename, seen = os.replace, []

    def watch(beside, path):
        seen.append((beside.suffix, path.exists(), load_checkpoint(beside).tokenizer == TOKENIZER))
        rename(beside, path)

    monkeypatch.setattr(os, "replace", watch)
    save_checkpoint(tmp_path / "w", gpt(NUMPY), TOKENIZER)
    assert seen == [(".part", False, True)]


def damaged(path, content):
    path.write_bytes(content)
    try:
        load_checkpoint(path)
    except ValueError as error:
        assert str(path) in str(error)
        return True
    return False


def test_a_damaged_file_is_a_value_error_that_names_the_path(tmp_path):
    good = tmp_path / "good"
    model = gpt(NUMPY)
    save_checkpoint(good, model, TOKENIZER, NUMPY.optim.AdamW(model.parameters(), 0.1))
    content, path = good.read_bytes(), tmp_path / "bad"
    header = 8 + int.from_bytes(content[:8], "little")
    for size in (0, 4, 8, 100, header, len(content) // 2, len(content) - 1):
        assert damaged(path, content[:size]), size
    assert damaged(path, content + b"\0")
    assert damaged(path, b"<!DOCTYPE html><html>" + bytes(1000))
    found = 0
    for place in range(0, header, 13):  # one wrong bit anywhere in the description: read as it is, or a ValueError
        for bit in (1, 64):
            found += damaged(path, content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
    assert found > header // 13


def rewritten(path, **changes):
    """The checkpoint at ``path`` again, with some of its description replaced."""
    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["about"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}
    save_file(arrays, path, {"about": json.dumps({**about, **changes})})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other 1"}, {"model": "Bigram"}, {"model": "os"}, {"tokenizer": "re"},
        {"vocabulary": ["a", "a"]}, {"vocabulary": ["a", "b"]}, {"dropout": {"bit_generator": "MT19937"}},
        {"config": {"vocab_size": V, "depth": 3}}, {"config": {"vocab_size": V, "width": 9}},
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_named(tmp_path, changes):
    path = tmp_path / "w"
    save_checkpoint(path, gpt(NUMPY), TOKENIZER)
    load_checkpoint(path)
    rewritten(path, **changes)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        load_checkpoint(path)


def test_O17_nothing_is_unpickled(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (exec, ("raise SystemExit('unpickled')",))

    path = tmp_path / "w"
    assert damaged(path, pickle.dumps({"model": Trap()}))
    np.savez(path, weights=np.ones(3))
    with pytest.raises(FileNotFoundError, match="w"):
        load_checkpoint(tmp_path / "nowhere")
    assert damaged(path, (tmp_path / "w.npz").read_bytes())
    save_checkpoint(path, gpt(NUMPY), TOKENIZER)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    load_checkpoint(path)


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="'numpy' or 'torch', not 'jax'"):
        load_checkpoint(tmp_path / "w", track="jax")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path)


def test_a_flipped_bit_and_a_changed_vocabulary_are_noticed(tmp_path):
    path, quoted = tmp_path / "w.ckpt", b'\\"a\\"'
    save_checkpoint(path, gpt(NUMPY), TOKENIZER)
    content = path.read_bytes()
    assert content.count(quoted) == 1
    flipped = content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]
    for changed in (flipped, content.replace(quoted, quoted.replace(b"a", b"z"))):
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="w.ckpt.*not those that were written"):
            load_checkpoint(path)


@pytest.mark.parametrize("about", ["[1]", "3", '{"format": 1}'])
def test_odd_descriptions_are_not_ours(tmp_path, about):
    save_file({"a": np.zeros(1)}, tmp_path / "odd", {"about": about})
    with pytest.raises(ValueError, match="not written by this course"):
        load_checkpoint(tmp_path / "odd")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    class Mine(CharTokenizer):
        pass

    model = gpt(NUMPY)
    with pytest.raises(TypeError, match="not a Mine"):
        save_checkpoint(tmp_path / "w", model, Mine(TOKENIZER.vocabulary))
    with pytest.raises(ValueError, match="ships with the course"):
        save_checkpoint("market-gpt", model, TOKENIZER)
    with pytest.raises(ValueError, match="parameters of this model"):
        save_checkpoint(tmp_path / "w", model, TOKENIZER, NUMPY.optim.SGD(gpt(NUMPY).parameters(), 0.1))
    assert list(tmp_path.iterdir()) == []
