"""The loss ladder: every rung can be climbed, changes one thing, and the stored figures are those of these rungs.
The figures themselves come from ``python -m course_lib.experiments.ladder``."""

import json
import math
from dataclasses import fields

import numpy as np
import pytest
from matplotlib.figure import Figure
from track_tools import assert_same, both_tracks

from course_lib.experiments import ladder as ladders
from course_lib.experiments.ladder import (
    ALL,
    OTHER_SEEDS,
    PICTURES,
    RUNGS,
    TODAY,
    TODAY_WITHOUT,
    WITHOUT,
    Ladder,
    in_words,
    measured,
    stored_loss,
)
from course_lib.text import CharTokenizer, load_corpus
from course_lib.training.evaluation import token_losses
from course_lib.views.ladder import draw_ladder

TEXT = load_corpus("market").text[:5000]
STORED = json.loads((PICTURES / "ladder.json").read_text(encoding="utf-8"))


@both_tracks
@pytest.mark.parametrize("key", ALL)
def test_every_rung_can_be_climbed(track, key):
    ladder = Ladder(TEXT, steps=4, batch_size=2, context_length=8, width=8)
    rung = measured(ladder, key, track.name, progress=False)
    assert rung["steps"] == 4 and rung["tokens"] == 4 * 2 * 8 and rung["track"] == track.name
    assert rung["parameters"] == ladder.model(key).num_parameters()
    assert math.isfinite(rung["loss"]) and rung["loss"] < 1.3 * math.log(len(set(TEXT)))
    json.dumps(rung, allow_nan=False)


@pytest.mark.parametrize("key", RUNGS | TODAY)
def test_both_tracks_begin_a_rung_with_the_same_weights(key):
    one, other = (Ladder(TEXT).model(key, track).state_dict() for track in ("numpy", "torch"))
    for name, value in one.items():
        assert_same(value, other[name], name)


@both_tracks
def test_the_figure_of_a_rung_is_the_loss_of_the_whole_validation_part(track):
    """Every token of it counts once; of the rest, which fills no window, none."""
    ladder = Ladder(TEXT, steps=2, batch_size=2, context_length=8, width=8)
    model, history, loss = ladder.climb("causal", track.name, progress=False)
    ids = CharTokenizer.from_text(TEXT).encode(TEXT)[4500:]
    starts = range(0, len(ids) - 8, 8)
    x, y = (np.stack([ids[i + shift : i + shift + 8] for i in starts]) for shift in (0, 1))
    assert len(x) == 62 and loss == pytest.approx(token_losses(model, x, y).mean(), rel=1e-5)
    assert history.norms and history.steps == 2


def test_one_change_a_rung():
    """What differs between a rung and the one below; only the last is a recipe, whose changes its comment lists."""
    rungs = [rung.changes for rung in RUNGS.values()]
    steps = [{k for k in {**old, **new} if old.get(k) != new.get(k)} for old, new in zip(rungs[1:], rungs[2:])]
    assert steps == [
        {"layers", "heads", "causal"}, {"causal"}, {"heads"}, {"residual"}, {"norm"}, {"activation"},
        {"layers", "init", "residual_scaled"},
    ]  # fmt: skip
    assert [key for key, rung in RUNGS.items() if rung.cheats] == ["attention"]
    full = RUNGS["full"]
    for rung in WITHOUT.values():  # one thing less than the last rung
        changed = [k for k in full.changes | rung.changes if full.changes.get(k) != rung.changes.get(k)]
        assert len(changed) + (rung.lr != full.lr) == 1 and set(changed) <= {"positions", *full.changes}


def test_one_change_a_rung_of_today():
    def changed(one, other):
        one, other = (Ladder(TEXT).model(key).config for key in (one, other))
        return [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]

    keys, wanted = ["full", *TODAY], ["positions", "qk_norm", "norm_layer", "activation", "kv_heads", "bias"]
    assert [changed(one, other) for one, other in zip(keys, keys[1:])] == [[name] for name in wanted]
    assert [changed(keys[-1], key) for key in TODAY_WITHOUT] == [[name] for name in wanted]


def test_a_rung_writes_and_the_stored_losses_are_found():
    ladder = Ladder(TEXT)
    written = ladder.sample(ladder.model("causal"), length=40)
    assert len(written) == 40 and set(written) <= set(TEXT) and written == ladder.sample(ladder.model("causal"), 40)
    assert stored_loss("causal") == STORED["rungs"][3]["loss"]
    assert stored_loss("rotary") == STORED["today"][0]["loss"]


# ------------------------------------------------------------------ what is stored


def test_the_stored_figures_are_those_of_these_rungs():
    ladder = Ladder(load_corpus("hello").text * 30)
    rungs = STORED["rungs"]
    assert [r["rung"] for r in STORED["without"]] == list(WITHOUT)
    assert all(r["loss"] > rungs[-1]["loss"] - 0.02 for r in STORED["without"])
    assert [(r["rung"], r["name"], r["cheats"]) for r in rungs] == [(k, r.name, r.cheats) for k, r in RUNGS.items()]
    assert [r["rung"] for r in STORED["today"]] == list(TODAY)
    assert [r["rung"] for r in STORED["today_without"]] == list(TODAY_WITHOUT)
    for r in rungs + STORED["without"] + STORED["today"] + STORED["today_without"]:
        assert (r["steps"], r["tokens"]) == (ladder.steps, ladder.tokens) == (2000, 1_024_000)
        # the vocabulary of tinyshakespeare has 65 characters
        text = "".join(map(chr, range(65))) * 20
        assert r["parameters"] == Ladder(text).model(r["rung"]).num_parameters()
    assert [(r["rung"], r["seed"]) for r in STORED["other_seeds"]] == [
        (key, seed) for seed in OTHER_SEEDS for key in ("full", *TODAY)
    ]
    assert STORED["alt"] == in_words(rungs)
    assert (PICTURES / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_what_todays_rungs_gain_holds_for_every_seed():
    """The pages say which of them buy something: rotary positions, QK-norm, SwiGLU and the sharing of heads."""
    runs = [{r["rung"]: r["loss"] for r in (STORED["rungs"][-1], *STORED["today"])}]
    runs += [{r["rung"]: r["loss"] for r in STORED["other_seeds"] if r["seed"] == seed} for seed in OTHER_SEEDS]
    keys = ["full", *TODAY]
    gains = {key: [run[before] - run[key] for run in runs] for before, key in zip(keys, keys[1:])}
    assert [key for key, gained in gains.items() if min(gained) > 0.005] == ["rotary", "qk_norm", "swiglu", "grouped"]
    assert all(run["full"] - run["no bias"] > 0.11 for run in runs)


def test_each_honest_rung_is_lower_than_the_one_before():
    honest = [r["loss"] for r in STORED["rungs"] if not r["cheats"]]
    assert all(after < before + 0.005 for before, after in zip(honest, honest[1:])), honest
    assert min(honest) > 1.4 > 0.5 > next(r["loss"] for r in STORED["rungs"] if r["cheats"])


def test_the_picture_shows_the_figures_and_marks_who_cheats():
    ax = Figure().subplots()
    draw_ladder(ax, STORED["rungs"])
    honest = [(r["loss"], n) for n, r in enumerate(STORED["rungs"]) if not r["cheats"]]
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), honest)
    low, high = ax.get_xlim()
    assert all(low < loss < high for loss, _ in honest)
    (edge,) = [c for c in ax.collections[1:] if len(c.get_offsets())]
    np.testing.assert_allclose(edge.get_offsets(), [[low, 2]])
    words = [text.get_text() for text in ax.texts]
    assert [w for w in words if "cheats" in w] == [f"{STORED['rungs'][2]['loss']:.2f}: it cheats, off the scale"]
    assert [t.get_text() for t in ax.get_yticklabels()] == [r.name for r in RUNGS.values()]


def test_words_for_who_cannot_see_the_picture():
    rungs = [{"name": "bigram", "loss": 2.4871, "cheats": False}, {"name": "+ all", "loss": 0.091, "cheats": True}]
    assert in_words(rungs) == ("Loss ladder, validation loss in nats per character: bigram 2.49; all 0.09 (it cheats).")


def test_files_are_written_only_for_the_whole_ladder(tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(ladders, "PICTURES", tmp_path)
    monkeypatch.setattr(ladders, "write", lambda *parts: seen.append([r["rung"] for part in parts for r in part]))
    monkeypatch.setattr(ladders, "load_corpus", lambda name: load_corpus("market"))
    losses = iter(range(99))

    def known(ladder, key, track):
        rung = ALL[key]
        row = {"rung": key, "name": rung.name, "loss": 3 - 0.1 * next(losses), "cheats": rung.cheats}
        return {**row, "parameters": 1, "seconds": 0.1}

    monkeypatch.setattr(ladders, "measured", known)
    for words in ([], ["--rungs", "bigram,causal"], ["--steps", "5"]):
        monkeypatch.setattr("sys.argv", ["ladder", *words])
        ladders.main()
    assert seen == [[*ALL, *2 * ("full", *TODAY)]]
    told = capsys.readouterr().out
    assert told.isascii() and "cheats" in told and "0.100" in told
