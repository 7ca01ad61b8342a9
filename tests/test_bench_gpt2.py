"""The bench of GPT-2 runs every kind in a process of its own and says what it found. No times are checked."""

import importlib.util
import sys

import numpy as np
import pytest
from track_tools import NUMPY

from course_lib import bench_gpt2
from course_lib.gpt2 import gpt2_config


def test_the_table(capfd):
    bench_gpt2.report(tokens=3, rounds=1, threads=1, small=True)
    found = capfd.readouterr().out
    kinds = ["numpy", "torch", *["transformers"] * bool(importlib.util.find_spec("transformers"))]
    rows = {line.split()[0]: line.split()[1:] for line in found.splitlines() if line.split()[:1] and
            line.split()[0] in bench_gpt2.KINDS}  # fmt: skip
    assert list(rows) == kinds
    assert all(float(speed) > 0 for speed, _ in rows.values())
    if sys.platform != "win32":  # NumPy's process never loads PyTorch
        assert 10 < float(rows["numpy"][1]) < float(rows["torch"][1]) - 50
    assert all(f"numpy/{kind} " in found for kind in kinds[1:])
    assert ("(the library transformers is not installed)" in found) == (len(kinds) == 2)


def test_every_token_is_written_with_the_cache(monkeypatch):
    """One process, from inside: a round for each line that comes, one token at a time, in the size that was asked."""
    seen, forward = [], NUMPY.models.GPT.forward

    def watched(self, ids, targets=None, cache=None):
        seen.append((ids.shape, cache.length, self.config))
        return forward(self, ids, targets, cache)

    monkeypatch.setattr(NUMPY.models.GPT, "forward", watched)
    run = bench_gpt2.build("numpy", bench_gpt2.SMALL)
    assert run(np.arange(5)) > 0 and run(np.arange(2)) > 0
    assert [length for _, length, _ in seen] == [0, 1, 2, 3, 4, 0, 1]
    assert {shape for shape, *_ in seen} == {(1, 1)} and seen[0][2] == gpt2_config(**bench_gpt2.SMALL)


def test_a_process_that_ends_is_an_error(monkeypatch, capfd):
    monkeypatch.setattr(bench_gpt2, "KINDS", ("jax",))
    with pytest.raises(RuntimeError, match="the process of jax has ended"):
        bench_gpt2.measure(["jax"], 1, 1, 1, small=True)
    assert "jax" in capfd.readouterr().err
