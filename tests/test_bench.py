"""The bench times what it says: the same step in every kind, all matrix products in the floor. No times are checked."""

import math

import pytest
from track_tools import NUMPY, TORCH

from course_lib import bench
from course_lib.referee import Referee

EVERY = pytest.mark.parametrize("name", bench.SYSTEMS)


def model(track, system):
    return (track.models.FirstGPT if system.first else track.models.GPT)(system.config)


@EVERY
def test_the_referee_has_as_many_parameters(name):
    system = bench.SYSTEMS[name]
    theirs = sum(p.numel() for p in Referee(system.config, system.first).parameters())
    assert theirs == model(TORCH, system).number_of_parameters()


def test_sizes():
    assert model(NUMPY, bench.SYSTEMS["C"]).number_of_parameters() == 39_153
    assert 0.78e6 < model(NUMPY, bench.SYSTEMS["small"]).number_of_parameters() < 0.82e6


@EVERY
def test_the_products_use_every_matrix_once(name):
    """Products with weights: inner times columns adds up to the numbers in all matrices but the tables."""
    system = bench.SYSTEMS[name]
    matrices = sum(
        math.prod(p.shape)
        for key, p in model(NUMPY, system).named_parameters().items()
        if key.endswith("weight") and p.ndim == 2
    )
    rows = system.batch * system.config.context
    assert sum(many * k * n for many, m, k, n in bench.products(system) if m == rows) == matrices


@EVERY
def test_the_floor_makes_each_product_and_its_two_gradients(name):
    system = bench.SYSTEMS[name]
    assert bench.floor_step(system)() == 3 * len(bench.products(system))


@pytest.mark.parametrize("name", ["A", "C"])
def test_every_kind_trains_from_a_loss_near_chance(name):
    system = bench.SYSTEMS[name]
    steps = {kind: bench.build(system, kind) for kind in ("numpy", "raw", "referee")}
    first = {kind: step() for kind, step in steps.items()}
    assert first["numpy"] == pytest.approx(first["raw"], rel=1e-5)
    chance = math.log(system.config.vocabulary_size)
    for kind, step in steps.items():
        assert first[kind] == pytest.approx(chance, rel=0.3)
        for _ in range(20):
            last = step()
        assert last < first[kind], kind


def test_verdicts(monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure", lambda *a: {"numpy": 1.0, "raw": 2.0, "referee": 1.0, "floor": 0.5})
    monkeypatch.setattr("torch.set_num_threads", lambda n: None)
    bench.report(1, 1, ["C"])
    assert "numpy/raw 0.50 <= 0.5 OK, raw/referee 2.00 <= 1.4 NO" in capsys.readouterr().out


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
