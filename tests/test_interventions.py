"""A GPT with switches: with none it is the model itself, with one exactly the thing named is gone. Both tracks."""

import dataclasses
import importlib

import numpy as np
import pytest

from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.inference import interventions

CONFIGS = {
    "as in notebook 09": GPTConfig(17, dtype="float64"),
    "post-norm, tied": GPTConfig(17, norm="post", tied=True, dtype="float64"),
    "residual, no positions": GPTConfig(17, norm=None, positions=False, activation="gelu", dtype="float64"),
    "plain": GPTConfig(17, norm=None, residual=False, dtype="float64", init="scaled"),
    "attention alone, dropout": GPTConfig(17, activation="none", dropout=0.5, dtype="float64"),
    "sees all": GPTConfig(17, causal=False, dtype="float64"),
    "attention biases": GPTConfig(17, attention_bias=True, dtype="float64"),
}
IDS = np.array([7, 4, 8, 8, 11, 1])


@pytest.fixture(params=["numpy", "torch"])
def models(request):
    return importlib.import_module(f"course_lib.{request.param}_track.models")


def output(model, ids):
    with model.evaluating():
        return np.asarray(model(ids[None])[0].detach())[0]


def close(a, b):
    np.testing.assert_allclose(a, b, atol=1e-12 + 1e-10 * np.abs(b).max(), rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_without_switches_it_is_the_model(models, name):
    model = models.GPT(CONFIGS[name], seed=3)
    trace = interventions.run(model, IDS)
    close(trace.logits, output(model, IDS))
    close(trace.weights, model.attention_maps(IDS))
    assert model.training, "the mode is restored"
    scores = trace.queries @ trace.keys.swapaxes(-1, -2) * trace.scale
    e = np.exp(np.where(True if trace.allow is None else trace.allow, scores, -np.inf))
    close(trace.weights, e / e.sum(-1, keepdims=True))


def test_without_the_mask_it_is_the_model_without_a_mask(models):
    config = CONFIGS["as in notebook 09"]
    model, open_eyed = models.GPT(config), models.GPT(dataclasses.replace(config, causal=False))
    open_eyed.load_state_dict(model.state_dict())
    trace = interventions.run(model, IDS, causal=False)
    close(trace.logits, output(open_eyed, IDS))
    assert trace.allow is None
    assert np.abs(trace.logits - output(model, IDS)).max() > 1e-6


def test_a_head_that_is_off_is_one_whose_rows_of_the_output_matrix_are_zero(models):
    model = models.GPT(CONFIGS["as in notebook 09"])
    off = interventions.run(model, IDS, off=[(1, 2), (2, 0)])
    for layer, head in ((1, 2), (2, 0)):
        matrix = model.blocks[layer].attention.layer.output.weight.detach().numpy()
        matrix[8 * head : 8 * (head + 1)] = 0  # D = 8
    close(off.logits, output(model, IDS))
    assert off.weights[1, 2].sum() == pytest.approx(len(IDS)), "what it would look at is still shown"


def test_a_head_may_be_off_at_some_positions_alone(models):
    model = models.GPT(CONFIGS["as in notebook 09"])
    whole, off = interventions.run(model, IDS), interventions.run(model, IDS, off=[(1, 2)])
    close(interventions.run(model, IDS, off=[(1, 2, np.arange(len(IDS)))]).logits, off.logits)
    part = interventions.run(model, IDS, off=[(2, 2, 4), (2, 1, [4, 5])])  # the last layer: other positions stay
    moved = np.abs(part.logits - whole.logits).max(axis=1) > 1e-9
    assert np.flatnonzero(moved).tolist() == [4, 5]
    with pytest.raises(IndexError, match="99"):
        interventions.run(model, IDS, off=[(0, 0, 99)])


def test_without_the_scale_the_scores_are_as_they_are(models):
    trace = interventions.run(models.GPT(CONFIGS["as in notebook 09"]), IDS, scaled=False)
    assert trace.scale == 1.0
    e = np.exp(np.where(trace.allow, trace.queries @ trace.keys.swapaxes(-1, -2), -np.inf))
    close(trace.weights, e / e.sum(-1, keepdims=True))


def test_what_does_not_fit_is_refused(models):
    model = models.GPT(GPTConfig(17))
    with pytest.raises(ValueError, match="layer 3, head 0 does not exist: there are 3 layers of 4 heads"):
        interventions.run(model, IDS, off=[(3, 0)])
    with pytest.raises(ValueError, match="9 tokens.*1 to 8"):
        interventions.run(model, np.zeros(9, dtype=int))
    with pytest.raises(TypeError, match="not for a FirstGPT"):
        interventions.run(models.FirstGPT(FirstGPTConfig(17)), IDS)
