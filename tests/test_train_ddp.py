"""Data-parallel training: the gradients and the run of one process; a crash, and going on from the checkpoint."""

import re
import sys
from unittest import mock

import numpy as np
import pytest
from track_tools import NUMPY, assert_same

from course_lib.idiomatic import launch as launching
from course_lib.idiomatic import train_ddp
from course_lib.idiomatic.launch import launch
from course_lib.idiomatic.train_ddp import Share
from course_lib.training import WarmupCosine, load_checkpoint, train

STEPS, SAVED, CRASH = 8, 3, 5
COMMON = ("--steps", STEPS, "--batch", 8, "--dtype", "float64")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of two processes each: one whole, one that crashes, and one that goes on. What they printed."""
    folder = tmp_path_factory.mktemp("ddp")
    printed = {"folder": folder}
    with mock.patch.object(launching, "TORCHRUN", False):  # as on Windows
        printed["whole"] = launch(*COMMON, "--check", "--checkpoint", folder / "whole")
    broken = (*COMMON, "--checkpoint", folder / "broken", "--save-every", SAVED)
    printed["crash"] = launch(*broken, "--crash-after", CRASH, fails=True)
    printed["steps in the file"] = load_checkpoint(folder / "broken").optimizer_state["steps"]
    printed["rest"] = launch(*broken)
    return printed


def test_gradients_of_two_processes_are_those_of_one(runs):
    """In float64; a difference would have ended the run."""
    line = runs["whole"].splitlines()[0]
    assert re.fullmatch(
        r"gradients of 2 processes and of one differ by less than 1e-10 of the largest, ~0\.\d\d", line
    ), line


def test_the_run_of_two_processes_is_that_of_one(runs):
    """The same steps in this process with whole batches, in the NumPy track: data-parallel changes nothing at all."""
    options = train_ddp.parser().parse_args(list(map(str, COMMON)))
    _, batches, config = train_ddp.setting(options)
    model = NUMPY.models.GPT(config, seed=0)
    optimizer = NUMPY.optim.AdamW(model.parameters(), options.lr)
    schedule = WarmupCosine(options.lr, 3, STEPS, options.lr / 10)
    history = train(model, optimizer, batches, STEPS, schedule=schedule, clip=1.0, progress=False)
    kept = load_checkpoint(runs["folder"] / "whole")
    for name, value in model.state_dict().items():
        assert_same(kept.model.state_dict()[name], value, name)
    for name in ("mean", "square"):
        assert_same(kept.optimizer_state[name], optimizer.state_dict()[name], name)
    assert kept.batches_state == batches.state_dict()
    first, last = (f"{history.losses[i]:.2f}" for i in (0, -1))  # the mean over both processes
    assert runs["whole"].splitlines()[-1] == f"2 processes, steps 0 to {STEPS}, loss ~{first} to ~{last}"


def test_crashed_and_resumed_is_the_whole_run(runs):
    assert runs["steps in the file"] == SAVED < CRASH  # what came after is lost, and made again
    assert runs["crash"].splitlines() == [f"crashing after step {CRASH}"]
    assert runs["rest"].splitlines()[0] == f"resuming from step {SAVED}"
    assert (runs["folder"] / "broken").read_bytes() == (runs["folder"] / "whole").read_bytes()
    assert sorted(file.name for file in runs["folder"].iterdir()) == ["broken", "whole"]  # nothing half written


def test_every_row_goes_to_one_process():
    x = np.arange(12).reshape(6, 2)
    shares = [next(iter(Share([(x, x + 1)], rank, 3))) for rank in range(3)]
    assert sorted(np.concatenate([a for a, _ in shares]).tolist()) == x.tolist()
    assert all((b == a + 1).all() and len(a) == 2 for a, b in shares)
    with pytest.raises(ValueError, match="a batch of 6 windows cannot be divided equally among 4 processes"):
        list(Share([(x, x)], 0, 4))


def test_a_run_that_fails_says_why(monkeypatch):
    codes, (out, err) = launching.run_together(
        [
            ([sys.executable, "-c", f"import sys; sys.stdout.write('so far\\n'); sys.exit({word!r} or 0)"], None)
            for word in ("", "no!")
        ]
    )
    assert (codes, out.split(), err.split()) == ([0, 1], ["so", "far"] * 2, ["no!"])
    monkeypatch.setattr(launching, "run_together", lambda commands: (codes, (out, err)))
    with pytest.raises(RuntimeError, match=r"the exit codes of the processes were \[0, 1\]:\nso far\n[\s\S]*no!"):
        launch()
    assert launch(fails=True) == out
    codes[1] = 0
    with pytest.raises(RuntimeError):
        launch(fails=True)
