"""The bench times what it says: the same step in every kind, all matrix products in the floor. No times are checked."""

import math

import numpy as np
import pytest
from track_tools import NUMPY, TORCH

from course_lib import get_track
from course_lib.experiments.bench import training as bench
from course_lib.experiments.bench.baseline import new_baseline

EVERY = pytest.mark.parametrize("name", bench.SYSTEMS)


def model(track, system):
    return bench.new_model(get_track(track.name), system)


@EVERY
def test_the_baseline_has_as_many_parameters(name):
    system = bench.SYSTEMS[name]
    theirs = sum(p.numel() for p in new_baseline(system).parameters())
    assert theirs == model(TORCH, system).num_parameters()


def test_sizes():
    assert model(NUMPY, bench.SYSTEMS["C"]).num_parameters() == 39_153
    assert 0.78e6 < model(NUMPY, bench.SYSTEMS["small"]).num_parameters() < 0.82e6


@EVERY
def test_the_products_use_every_matrix_once(name):
    """Products with weights: inner times columns adds up to the numbers in all matrices but the tables."""
    system = bench.SYSTEMS[name]
    matrices = sum(
        math.prod(p.shape)
        for key, p in model(NUMPY, system).named_parameters()
        if p.ndim == 2 and not key.endswith(("token.weight", "position"))
    )
    rows = system.batch * system.config.context_length
    assert sum(many * k * n for many, m, k, n in bench.products(system) if m == rows) == matrices


@EVERY
def test_the_floor_makes_each_product_and_its_two_gradients(name):
    system = bench.SYSTEMS[name]
    assert bench.floor_step(system)() == 3 * len(bench.products(system))


@pytest.mark.parametrize("name", ["A", "C", "translation"])
def test_every_kind_trains_from_a_loss_near_chance(name):
    system = bench.SYSTEMS[name]
    steps = {kind: bench.build(system, kind) for kind in ("numpy", "raw", "baseline")}
    first = {kind: step() for kind, step in steps.items()}
    assert first["numpy"] == pytest.approx(first["raw"], rel=1e-5)
    chance = math.log(system.config.target_vocab_size if system.translates else system.config.vocab_size)
    for kind, step in steps.items():
        assert first[kind] == pytest.approx(chance, rel=0.3)
        losses = [step() for _ in range(40)]
        assert np.mean(losses[-10:]) < first[kind], kind


def test_every_step_has_a_fresh_batch_that_is_the_same_in_every_kind():
    one, other = (bench.batches(bench.SYSTEMS["C"]) for _ in range(2))
    drawn = [next(one) for _ in range(3)]
    assert all((x != drawn[0][0]).any() for x, _ in drawn[1:])
    np.testing.assert_equal(drawn, [next(other) for _ in range(3)])


@pytest.mark.parametrize("name", ["A", "C", "small"])
def test_the_model_of_hips_is_that_of_the_track(name):
    system = bench.SYSTEMS[name]
    ours, (x, y) = model(NUMPY, system), next(bench.batches(system))
    arrays = {key: p.data for key, p in ours.named_parameters()}
    np.testing.assert_allclose(bench.hips.logits(np, arrays, system, x), ours(x)[0].data, atol=2e-5)
    if bench.hips.value_and_grad:
        grads = bench.hips.loss_and_grads(ours, system, x, y)[1]
        ours(x, y)[1].backward()
        for key, p in ours.named_parameters():
            np.testing.assert_allclose(grads[key], p.grad, atol=2e-5)


def test_verdicts(monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure", lambda *a: {"numpy": 1.2, "raw": 2.0, "baseline": 1.0, "floor": 0.5})
    monkeypatch.setattr("torch.set_num_threads", lambda n: None)
    bench.report(1, 1, ["C", "small"])
    out = capsys.readouterr().out
    assert "numpy/baseline 1.20 <= 0.72 NO" in out
    assert "numpy/baseline 1.20 <= 1.22 OK (to chase: 1.1), numpy/raw 0.60 <= 0.95 OK" in out


def test_measure_times_each_kind():
    ms = bench.measure(bench.SYSTEMS["C"], rounds=1, seconds=0, settle=0)
    assert list(ms) == list(bench.KINDS) and all(value > 0 for value in ms.values())


def test_a_turn_does_not_pay_for_the_one_before(monkeypatch):
    """The first tenth of a second after a change of turn is slow, whoever it is: none of it may be in the figures."""
    now, turn = [0.0], [None, 0.0]  # the clock; whose turn it is and since when

    def build(system, kind):
        def step():
            if turn[0] != kind:
                turn[:] = kind, now[0]
            now[0] += 0.02 if now[0] - turn[1] < 0.1 else 0.001

        return step

    monkeypatch.setattr(bench, "build", build)
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])
    assert bench.measure(bench.SYSTEMS["C"], rounds=3) == pytest.approx(dict.fromkeys(bench.KINDS, 1.0))
