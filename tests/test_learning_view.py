"""The view of a model that learns: what is saved at which step, shown, forgotten and chosen."""

import json
import types

import numpy as np
import pytest
import traitlets

from course_lib import get_track
from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.text import Batches
from course_lib.training import train
from course_lib.views import LearningView
from course_lib.views.attention_widget import codec, learning

IDS, TOKENS = np.arange(6), list("abcdef")


def small(track="numpy", **settings):
    return get_track(track).GPT(GPTConfig(8, context_length=6, width=8, heads=2, layers=2, **settings), seed=1)


def trained(model, view, steps=6):
    track = get_track(type(model).__module__.split(".")[1].removesuffix("_track"))
    batches = Batches(np.tile(np.arange(8), 20), 6, 4, seed=0)
    return train(model, track.AdamW(model.parameters(), lr=0.05), batches, steps, progress=False, plot=view.plot)


@pytest.mark.parametrize("track", ["numpy", "torch"])
def test_it_saves_the_attention_while_the_model_trains(track, capsys):
    model = small(track)
    before = model.attention_maps(IDS)
    view = LearningView(model, IDS, TOKENS, every=2)
    history = trained(model, view)
    assert view.saved == [0, 2, 4, 6] and np.isnan(view.losses[0])
    np.testing.assert_allclose(view.losses[1:], np.mean(np.reshape(history.losses, (3, 2)), axis=1))
    np.testing.assert_array_equal(view.maps[0], before)
    np.testing.assert_allclose(view.maps[-1], model.attention_maps(IDS), atol=1e-6)
    np.testing.assert_array_equal(view.weights, view.maps[-1])
    assert np.abs(view.maps[-1] - before).max() > 0.01
    sent = view.content["learning"]
    assert sent["steps"] == [0, 2, 4, 6] and sent["losses"][0] is None
    allow = np.tri(6, dtype=bool)
    for frame, maps in zip(sent["frames"], view.maps):
        assert frame == [codec.pack_layer(layer, np.stack([allow] * 2), (0, 1)) for layer in maps]


def test_a_chosen_step_is_what_the_view_speaks_of():
    view = LearningView(small(), IDS, TOKENS, every=3, query=5)
    trained(view.model, view)
    view.frame, view.key = 0, 0
    assert view.weight == pytest.approx(view.maps[0][0, 0, 5, 0])
    view.frame = None
    assert view.weight == pytest.approx(view.maps[-1][0, 0, 5, 0])
    with pytest.raises(traitlets.TraitError, match="frame 3 does not exist: 3 steps are saved"):
        view.frame = 3
    assert repr(view) == "LearningView(2 layers, 2 heads, 6 queries, 6 keys; of a model trained in this run)"


def test_a_long_run_forgets_every_second_step(monkeypatch):
    monkeypatch.setattr(learning, "MOST", 6)
    view = LearningView(small(), IDS, TOKENS, every=1)
    history = trained(view.model, view, 20)
    assert view.every == 4 and view.saved == [0, 4, 8, 12, 16, 20] and len(view.maps) == len(view.losses) == 6
    np.testing.assert_allclose(np.mean(view.losses[1:]), np.mean(history.losses), rtol=1e-6)


def test_the_last_step_is_always_there():
    view = LearningView(small(), IDS, TOKENS, every=4)
    trained(view.model, view, 10)
    assert view.saved == [0, 4, 8, 10]
    np.testing.assert_array_equal(view.weights, view.model.attention_maps(IDS))


def test_all_saved_steps_together_stay_small(monkeypatch):
    monkeypatch.setattr(learning, "LARGEST", 4 * 2 * 2 * 2 * 21)  # four of 2 layers x 2 heads x 21 allowed cells
    view = LearningView(small(), IDS, TOKENS, every=1)
    trained(view.model, view, 30)
    assert 4 <= len(view.saved) + 1 <= 6


def test_the_first_gpt_and_the_page():
    first = get_track("numpy").FirstGPT(FirstGPTConfig(8, context_length=6, width=8))
    view = LearningView(first, IDS, ["<b>", "</script>", "c", "d", "e", "f"], every=2)
    trained(first, view)
    assert view.allow is None and view.maps[0].shape == (2, 1, 6, 6)
    text = view.to_html()
    state = json.loads(text.split('id="state">')[1].split("</script>")[0])
    assert len(state["content"]["learning"]["frames"]) == 4 and state["frame"] is None
    assert text.count("</script>") == 3


def test_a_run_that_ends_before_the_first_step():
    view = LearningView(small(), IDS, TOKENS)
    trained(view.model, view, 0)
    assert view.saved == [0] and view.content["learning"]["losses"] == [None]
    view.plot.update(types.SimpleNamespace(steps=25, losses=[2.0, 4.0]))
    assert view.losses[-1] == 3.0
    with pytest.raises(ValueError, match="every is 0"):
        LearningView(small(), IDS, TOKENS, every=0)
