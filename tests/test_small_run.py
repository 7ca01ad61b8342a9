"""The small GPT, one change at a time: every line trains, and the stored figures are those of these lines.
The figures themselves come from ``python -m course_lib.experiments.small_run``."""

import json
import math
import sys

import pytest
from track_tools import TORCH

from course_lib.common.config import GPTConfig
from course_lib.experiments import small_run
from course_lib.experiments.recipes import BEST_RECIPE, SMALL_CHANGES, SMALL_RECIPE
from course_lib.experiments.small_run import CHANGES, FIGURES, LINES, TRIED, measured, recipe_of
from course_lib.text import load_corpus
from course_lib.training import evaluate

TEXT = load_corpus("market").text[:3000]
STORED = json.loads(FIGURES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", LINES)
def test_every_line_trains_with_the_same_number_of_tokens(key):
    recipe, row = recipe_of(key), measured(key, TEXT, steps=1)
    assert recipe.steps * recipe.batch_size * recipe.model_settings["context_length"] == 1_536_000
    assert row["line"] == key and row["what"] == LINES[key].what and math.isfinite(row["loss"])
    json.dumps(row, allow_nan=False)


def test_the_changes_lead_from_the_small_recipe_to_the_best():
    assert recipe_of("small") == SMALL_RECIPE and recipe_of(list(CHANGES)[-1]) == BEST_RECIPE
    recipes = [recipe_of(key) for key in LINES]
    assert all(one != other for i, one in enumerate(recipes) for other in recipes[:i])
    with pytest.raises(KeyError, match="none"):
        recipe_of("none")


@pytest.mark.parametrize("key", ["small", list(CHANGES)[-1]])
def test_a_line_is_the_run_of_its_recipe(key):
    """As nn.Module and in the raw track: the same losses, but for rounding."""
    recipe = recipe_of(key)
    data = recipe.data(TEXT)
    model = recipe.model("torch", data)
    recipe.train("torch", model, data, steps=4, progress=False)
    assert measured(key, TEXT, steps=4)["loss"] == pytest.approx(evaluate(model, data.x, data.y), abs=2e-3)


def test_the_stored_figures():
    for part, lines in (("changes", CHANGES), ("tried", TRIED)):
        assert [(row["line"], row["what"]) for row in STORED[part]] == [(k, line.what) for k, line in lines.items()]
        for row in STORED[part]:
            model = TORCH.models.GPT(GPTConfig(65, **recipe_of(row["line"]).model_settings))
            assert row["parameters"] == model.num_parameters() <= 814_000 and row["tokens"] == 1_536_000
    losses = [row["loss"] for row in STORED["changes"]]
    assert abs(losses[0] - SMALL_CHANGES[-1][1]) < 0.01 and losses[-1] == min(losses) <= 1.56
    assert STORED["changes"][-1]["parameters"] <= 810_000
    assert all(row["loss"] > losses[-1] - 0.005 for row in STORED["tried"])  # within the noise of a run


def test_a_row_takes_its_place_among_the_stored_ones(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(small_run, "FIGURES", tmp_path / "small.json")
    monkeypatch.setattr(small_run, "load_corpus", lambda name: None)
    row = {"parameters": 1, "what": "it"}
    results = iter((1.5, 1.25, 1.75))
    monkeypatch.setattr(
        small_run,
        "side_by_side",
        lambda function, calls, jobs: ((call, {**row, "line": call[0], "loss": next(results)}) for call in calls),
    )
    for lines in ("today,rotary", "today"):
        monkeypatch.setattr(sys, "argv", ["small_run", "--lines", lines])
        small_run.main()
    kept = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))
    assert [[(row["line"], row["loss"]) for row in kept[part]] for part in ("changes", "tried")] == [
        [("rotary", 1.25)], [("today", 1.75)]
    ]  # fmt: skip
    assert capsys.readouterr().out.count("parameters") == 3


@pytest.mark.parametrize(("words", "said"), [(["--lines", "none"], "no line 'none'"), (["--jobs", "0"], "--jobs 0")])
def test_what_the_command_line_refuses(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["small_run", *words])
    with pytest.raises(SystemExit):
        small_run.main()
    assert said in capsys.readouterr().err
