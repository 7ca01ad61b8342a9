"""What reproduce prints is what was measured, and a figure that does not hold is noticed. The runs themselves take
minutes: ``python -m course_lib.experiments.reproduce``."""

import importlib
import math
import sys

import numpy as np
import pytest
from track_tools import both_tracks

from course_lib.common.config import GPTConfig
from course_lib.experiments import recipes
from course_lib.experiments.recipes import BEST_RECIPE, SMALL_CHANGES, SMALL_RECIPE, SMALL_TRIED
from course_lib.experiments.reproduce.system_c import LINES, train_system_c
from course_lib.experiments.reproduce.trajectories import largest_difference, trajectory
from course_lib.text import CharTokenizer, load_corpus, loss_floor, windows
from course_lib.training import WarmupCosine

command, small, system_a, system_c, trajectories = (
    importlib.import_module(f"course_lib.experiments.reproduce.{name}")
    for name in ("__main__", "small", "system_a", "system_c", "trajectories")
)
TEXT = load_corpus("hello").text
IDS = CharTokenizer.from_text(TEXT).encode(TEXT)


# ------------------------------------------------------------------ the floor


def test_the_floor_of_system_c():
    assert loss_floor(IDS, 8) == pytest.approx(0.1614, abs=5e-5)


def test_the_floor_counted_by_hand():
    # windows of 2 in 0 1 0 2 0 1: 01|0 10|2 02|0 20|1. After 0: 1 or 2; after 1: 0; after 2: 0; all after two are sure
    assert loss_floor(np.array([0, 1, 0, 2, 0, 1]), 2) == pytest.approx(2 * math.log(2) / 8)
    assert loss_floor(np.arange(9), 3) == 0  # every beginning has one continuation
    assert loss_floor(np.array([0, 0, 0, 1, 0]), 1) == pytest.approx((3 * math.log(3) - 2 * math.log(2)) / 4)
    with pytest.raises(ValueError, match=r"2 tokens.*3"):
        loss_floor(np.array([0, 1]), 2)


def test_the_floor_is_the_loss_of_the_best_possible_predictions():
    """No table of predictions for the beginnings has a lower loss: neither a sharper nor a flatter one."""
    x, y = windows(IDS, 3)
    counts = {}
    for row, targets in zip(x, y):
        for t in range(3):
            counts.setdefault(tuple(row[: t + 1]), np.zeros(17))[targets[t]] += 1
    for power in (0.5, 1.0, 2.0):
        total = 0.0
        for seen in counts.values():
            p = seen**power / (seen**power).sum()
            total -= (seen[seen > 0] * np.log(p[seen > 0])).sum()
        assert (
            total / x.size == pytest.approx(loss_floor(IDS, 3), abs=1e-12)
            if power == 1
            else (total / x.size > loss_floor(IDS, 3) + 1e-3)
        )


# ------------------------------------------------------------------ the runs, short


@both_tracks
def test_system_c_begins_as_it_should(track):
    model, history, tokenizer = train_system_c(track.name, steps=30)
    assert model.num_parameters() == 39_153 and len(tokenizer) == 17
    assert abs(history.losses[0] - math.log(17)) < 0.1 and history.steps == 30
    assert history.lrs == [0.1] * 30 and history.mean_loss(5) < history.losses[0]


@both_tracks
@pytest.mark.parametrize("recipe", small.RECIPES.values(), ids=small.RECIPES)
def test_the_small_recipes_are_of_the_size_that_they_say(recipe, track):
    model = track.models.GPT(GPTConfig(65, **recipe.model_settings))
    assert 788_000 <= model.num_parameters() <= 810_000
    settings = recipe.model_settings
    assert [settings[k] for k in ("context_length", "width", "heads", "layers")] == [64, 128, 4, 4]
    assert recipe.steps * recipe.batch_size * settings["context_length"] == 1_536_000
    assert settings.get("dropout", 0) == 0


def test_the_changes_lead_down_to_the_small_recipe():
    losses = [loss for _, loss in SMALL_CHANGES]
    assert losses == sorted(losses, reverse=True) and losses[-1] <= small.LOSSES["with Muon"]
    assert all(loss > losses[2] for _, loss in SMALL_TRIED)
    words = " ".join(what for what, _ in SMALL_CHANGES[1:])
    assert "6e-3" in words and SMALL_RECIPE.lr == 6e-3 and "0.95" in words and SMALL_RECIPE.betas == (0.9, 0.95)
    assert "down to 0" in words and SMALL_RECIPE.min_lr == 0
    assert "Muon" in SMALL_CHANGES[-1][0] and SMALL_RECIPE.optimizer == "Muon"


@both_tracks
@pytest.mark.parametrize(("recipe", "near"), [(SMALL_RECIPE, 0.1), (BEST_RECIPE, 10)], ids=small.RECIPES)
def test_the_small_recipes_train_for_some_steps(recipe, near, track):
    """The larger token table of the best, which is also the head, begins with a guess that is too sure."""
    data = recipe.data(load_corpus("market").text[:4000])
    model = recipe.model(track.name, data)
    history = recipe.train(track.name, model, data, steps=3, progress=False)
    assert abs(history.losses[0] - math.log(len(data.tokenizer))) < near and history.losses[2] < history.losses[0]


def test_the_small_loss_is_that_of_the_whole_validation_part():
    """Windows of 64 side by side over the last tenth of the text: every target once, but for a rest below 64."""
    text = load_corpus("market").text[:4000]
    data = SMALL_RECIPE.data(text)
    ids = data.tokenizer.encode(text)
    assert len(data.train_ids) == 3600 and data.x.shape == data.y.shape == (6, 64)
    np.testing.assert_array_equal(data.x.ravel(), ids[3600 : 3600 + 384])
    np.testing.assert_array_equal(data.y.ravel(), ids[3601 : 3601 + 384])


@both_tracks
def test_a_recipe_trains_as_it_says(track, monkeypatch):
    data, seen = SMALL_RECIPE.data(load_corpus("market").text[:4000]), []
    monkeypatch.setattr(recipes, "train", lambda *what, **how: seen.append((*what, how)))
    model = SMALL_RECIPE.model(track.name, data)
    SMALL_RECIPE.train(track.name, model, data, seed=7, progress=False)
    ((trained, optimizer, batches, steps, how),) = seen
    assert trained is model and type(optimizer).__name__ == SMALL_RECIPE.optimizer == "Muon" and steps == 2000
    assert (optimizer.others.betas, optimizer.weight_decay) == ((0.9, 0.95), 0.1)
    assert how == {"schedule": WarmupCosine(6e-3, 100, 2000, 0.0), "clip": 1.0, "progress": False}
    assert next(batches)[0].shape == (12, 64) and batches.x.max() < len(data.tokenizer)
    np.testing.assert_array_equal(batches.x[:, 0], data.train_ids[:-64])


def test_largest_difference():
    assert largest_difference([1.0, 2.0], [1.0, 4.0]) == 0.5
    with pytest.raises(ValueError, match=r"\(1,\).*\(2,\)"):
        largest_difference([1.0], [1.0, 2.0])


# ------------------------------------------------------------------ what is printed, and the verdict


def here(function, calls, jobs):
    """side_by_side without processes."""
    return ((call, function(*call)) for call in calls)


def canned(*results):
    """side_by_side that knows the results already."""
    return lambda function, calls, jobs: zip(calls, results, strict=True)


def test_trajectories_hold_and_a_wrong_one_is_noticed(monkeypatch, capsys):
    monkeypatch.setattr(trajectories, "side_by_side", here)
    assert trajectories.trajectories(jobs=1, steps=8)
    told = capsys.readouterr().out
    assert told.count(" ok\n") == len(trajectories.KINDS) and "NO" not in told

    def other_rate(track, kind, steps):
        history, model, batches = trajectory(track, kind, steps)
        if track == "torch":
            history.losses[-1] *= 1 + 3e-8
        return history, model, batches

    monkeypatch.setattr(trajectories, "trajectory", other_rate)
    assert not trajectories.trajectories(jobs=1, steps=3)
    assert capsys.readouterr().out.count(" NO\n") == len(trajectories.KINDS)


GOOD_C = (39_153, 2.857, 0.172, "rld", LINES[1], 9.0)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [(0, 39_152), (1, 2.95), (1, 2.7), (2, 0.19), (2, 0.12), (3, "rl "), (4, "hello world\nhello wor")],
)
def test_system_c_notices_what_does_not_hold(place, wrong, monkeypatch, capsys):
    monkeypatch.setattr(system_c, "side_by_side", canned(GOOD_C, GOOD_C))
    assert system_c.system_c(1)
    told = capsys.readouterr().out
    assert "NO" not in told and told.count(" ok\n") == 11 and "0.1614" in told and "39,153" in told
    bad = tuple(wrong if i == place else value for i, value in enumerate(GOOD_C))
    for results in ((bad, GOOD_C), (GOOD_C, bad)):
        monkeypatch.setattr(system_c, "side_by_side", canned(*results))
        assert not system_c.system_c(1) and capsys.readouterr().out.count(" NO\n") == 1


@pytest.mark.parametrize(("place", "wrong"), [(0, 700_000), (0, 830_000), (2, 1.7001)])
def test_small_notices_what_does_not_hold(place, wrong, monkeypatch, capsys):
    good, best = (807_808, 2000, 1.70, 111_488, 99.0), (798_208, 2000, 1.56, 111_488, 99.0)
    monkeypatch.setattr(small, "load_corpus", lambda name: None)
    monkeypatch.setattr(small, "side_by_side", canned(good, good, best, best))
    assert small.small(1)
    told = capsys.readouterr().out
    assert told.count(" ok\n") == 8 and told.index("with Muon: torch") < told.index("as good as it gets: numpy")
    bad, worse = (tuple(wrong if i == place else value for i, value in enumerate(run)) for run in (good, best))
    for results in ((good, bad, best, best), (good, good, worse, best)):
        monkeypatch.setattr(small, "side_by_side", canned(*results))
        assert not small.small(1) and capsys.readouterr().out.count(" NO\n") == 1


def test_system_a_notices_what_does_not_hold(monkeypatch, capsys):
    runs = []
    for row in system_a.SYSTEM_A:
        loss, share = sum(row.loss) / 2, sum(row.share) / 2
        common = round(256 * share)
        rest = "".join(chr(200 + i % 150) for i in range(256 - common))
        runs += [[loss, 1742, {(4, 32, 65)}, "O" * common + rest, 31_368, 9.0] for _ in range(2)]
    monkeypatch.setattr(system_a.SystemAData, "load", lambda: None)
    monkeypatch.setattr(system_a, "side_by_side", canned(*runs))
    assert system_a.system_a(1)
    for place, wrong in ((0, 3.05), (1, 1741), (2, {(4, 32, 64)}), (3, "".join(map(chr, range(300, 556))))):
        bad = [list(run) for run in runs]
        bad[0][place] = wrong
        monkeypatch.setattr(system_a, "side_by_side", canned(*bad))
        assert not system_a.system_a(1), place
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "asked"), [([], ["a", "c", "small", "trajectories"]), (["small", "c"], ["small", "c"])]
)
@pytest.mark.parametrize("fails", [None, "c"])
def test_the_exit_code_is_0_only_if_all_hold(words, asked, fails, monkeypatch, capsys):
    ran = []
    for name in command.SYSTEMS:
        monkeypatch.setitem(command.SYSTEMS, name, lambda jobs, name=name: ran.append((name, jobs)) or name != fails)
    monkeypatch.setattr(sys, "argv", ["reproduce", *words, "--jobs", "1"])
    with pytest.raises(SystemExit) as stop:
        command.main()
    assert stop.value.code == (fails is not None) and ran == [(name, 1) for name in asked]
    assert ("NOT" in capsys.readouterr().out) == (fails is not None)


def test_runs_side_by_side_are_processes_of_one_thread():
    from course_lib.experiments.reproduce.checks import side_by_side

    assert dict(side_by_side(math.pow, [(2, 3), (3, 2)], 2)) == {(2, 3): 8.0, (3, 2): 9.0}
