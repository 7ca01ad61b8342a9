"""The training loop, evaluation and the schedule, in both tracks. Names like O13 are those of known faults."""

import gc
import math
import os
import re
import signal
import threading
import time
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, assert_states_equal, both_tracks, grad

from course_lib.common.config import GPTConfig
from course_lib.inference import generate
from course_lib.text import Batches, CharTokenizer, load_corpus, sequential_batches, windows
from course_lib.training import History, WarmupCosine, evaluate, train, trainer
from course_lib.training.evaluation import token_losses

TOKENIZER = CharTokenizer.from_text(load_corpus("hello").text)
IDS = TOKENIZER.encode(load_corpus("hello").text)
V = len(TOKENIZER)
overflow_is_expected = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def gpt(track, seed=0, **options):
    return track.models.GPT(GPTConfig(V, **{"context_length": 8, "width": 8, "heads": 2, "layers": 1, **options}), seed)


def run(track, steps, model=None, optimizer=None, batches=None, **options):
    """A short run: (history, model, optimizer)."""
    model = gpt(track) if model is None else model
    optimizer = track.optim.SGD(model.parameters(), 0.1) if optimizer is None else optimizer
    batches = Batches(IDS, 8, 4, seed=0) if batches is None else batches
    return train(model, optimizer, batches, steps, progress=False, **options), model, optimizer


# ------------------------------------------------------------------ what a run leaves behind


@both_tracks
def test_A20_history_holds_floats_and_no_graph_survives(track):
    losses = []

    class Watched(track.models.GPT):
        def forward(self, ids, targets=None):
            logits, loss = super().forward(ids, targets)
            losses.append(weakref.ref(loss))
            return logits, loss

    model = Watched(GPTConfig(V, width=8, heads=2, layers=1))
    x, y = windows(IDS, 8)
    history, *_ = run(
        track,
        3,
        model,
        clip=1.0,
        schedule=WarmupCosine(0.1, 1, 3),
        evaluate_every=1,
        evaluate=lambda: evaluate(model, x, y),
    )
    gc.collect()
    assert len(losses) == 6 and all(loss() is None for loss in losses)
    for values in (history.losses, history.lrs, history.norms, [loss for _, loss in history.evaluations]):
        assert len(values) == 3 and all(type(value) is float for value in values)
    assert [step for step, _ in history.evaluations] == [1, 2, 3]
    assert type(history.seconds) is float and history.seconds > 0 and history.stopped is False and history.steps == 3


@both_tracks
def test_a_step_is_loss_then_gradient_then_update(track):
    batches = sequential_batches(*windows(IDS, 8), 4)
    history, trained, _ = run(track, 2, batches=batches)
    model = gpt(track)
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    for (x, y), loss in zip(batches[:2], history.losses, strict=True):
        assert loss == model(x, y)[1].item()
        optimizer.zero_grad()
        model(x, y)[1].backward()
        optimizer.step()
    assert_states_equal(trained.state_dict(), model.state_dict())


@both_tracks
def test_training_ends_with_the_batches_or_the_steps(track):
    batches = sequential_batches(*windows(IDS, 8), 16)
    assert run(track, None, batches=batches)[0].steps == 4
    assert run(track, 2, batches=batches)[0].steps == 2
    assert run(track, 9, batches=batches)[0].steps == 4
    assert run(track, 0)[0].steps == 0
    endless = Batches(IDS, 8, 4, seed=0)
    run(track, 3, batches=endless)
    again = Batches(IDS, 8, 4, seed=0)
    for _ in range(3):
        next(again)
    assert endless.state_dict() == again.state_dict()  # no batch was taken and thrown away


@both_tracks
def test_a_run_in_two_parts_is_one_run(track):
    """n + n = 2n: the schedule goes on where it was."""
    schedule = WarmupCosine(lr=0.01, warmup_steps=3, total_steps=8, min_lr=0.001)
    results = []
    for parts in ((8,), (3, 5), (1,) * 8):
        model = gpt(track, dropout=0.2)
        optimizer, batches, history = track.optim.AdamW(model.parameters(), 9.0), Batches(IDS, 8, 4, seed=0), None
        for steps in parts:
            history = train(
                model, optimizer, batches, steps, schedule=schedule, clip=0.5, history=history, progress=False
            )
        assert history.lrs == [schedule(step) for step in range(8)]
        results.append((history, model.state_dict()))
    for history, state in results[1:]:
        assert history.losses == results[0][0].losses and history.norms == results[0][0].norms
        assert_states_equal(state, results[0][1])


def test_the_mean_of_the_last_losses():
    history = History(losses=[4.0, 3.0, 1.0])
    assert history.mean_loss(2) == 2.0 and history.mean_loss(99) == pytest.approx(8 / 3)
    with pytest.raises(ValueError, match="no step"):
        History().mean_loss(5)
    for last in (0, -1):
        with pytest.raises(ValueError, match=f"not {last}"):
            history.mean_loss(last)


@both_tracks
def test_progress_is_silent_when_switched_off(track, capsys):
    run(track, 2)
    assert capsys.readouterr() == ("", "")


@both_tracks
def test_plot_and_after_step_are_called_after_each_step_and_the_plot_is_closed(track):
    class Plot:
        calls = []

        def update(self, history):
            self.calls.append(history.steps)

        def close(self):
            self.calls.append("closed")

    seen = []
    run(track, 2, plot=Plot(), after_step=seen.append)
    assert Plot.calls == [1, 2, "closed"] and seen == [1, 2]
    with pytest.raises(ZeroDivisionError):
        run(track, 2, plot=Plot(), after_step=lambda step: 1 / 0)
    assert Plot.calls[-1] == "closed"


@both_tracks
def test_an_optimiser_of_another_model_is_refused(track):
    """It would train nothing, in silence: the gradients go to the new model, the steps to the old one."""
    other = TORCH if track is NUMPY else NUMPY
    for stranger in (gpt(track), gpt(other)):
        model = gpt(track)
        before, batches = model.state_dict(), Batches(IDS, 8, 4, seed=0)
        optimizer = (track if stranger.__class__ is track.models.GPT else other).optim.SGD(stranger.parameters(), 0.1)
        with pytest.raises(ValueError, match="parameters of another model: make a new one"):
            run(track, 1, model, optimizer, batches)
        assert_states_equal(model.state_dict(), before)
        assert batches.state_dict() == Batches(IDS, 8, 4, seed=0).state_dict()


@both_tracks
def test_a_part_of_the_model_can_be_trained_alone(track):
    model = gpt(track)
    before = model.state_dict()
    run(track, 1, model, track.optim.SGD(model.head.parameters(), 0.1))
    assert {name for name, value in model.state_dict().items() if (value != before[name]).any()} == {
        "head.weight",
        "head.bias",
    }
    for p in model.head.parameters():
        p.requires_grad = False
    before = model.state_dict()
    run(track, 1, model, track.optim.SGD(model.parameters(), 0.1))
    same = {name for name, value in model.state_dict().items() if (value == before[name]).all()}
    assert {name for name in same if name.startswith("head")} == {"head.weight", "head.bias"}
    assert (model.state_dict()["token.weight"] != before["token.weight"]).any()


# ------------------------------------------------------------------ rates and clipping


def test_O07_the_first_rate_is_positive_and_the_peak_exact():
    lr = WarmupCosine(lr=1e-3, warmup_steps=4, total_steps=10, min_lr=1e-4)
    expected = [2e-4, 4e-4, 6e-4, 8e-4, 1e-3, 9.397e-4, 7.75e-4, 5.5e-4, 3.25e-4, 1.603e-4, 1e-4, 1e-4]
    assert_close([lr(step) for step in range(12)], expected, 5e-8)
    assert lr(4) == 1e-3 and lr(10) == lr(10**6) == 1e-4
    assert WarmupCosine(lr=1.0, warmup_steps=0, total_steps=4)(0) == 1.0
    assert WarmupCosine(lr=1.0, warmup_steps=0, total_steps=4)(4) == 0.0


@both_tracks
def test_O06_every_step_is_clipped_and_the_peak_is_the_schedules(track):
    seen = []

    class Watched(track.optim.SGD):
        def step(self):
            seen.append(float(np.linalg.norm(array(self.flat.grad))))
            super().step()

    model = gpt(track, init="uniform")
    optimizer = Watched(model.parameters(), 77.0)
    history, *_ = run(track, 7, model, optimizer, schedule=WarmupCosine(3e-4, 3, 7), clip=0.1)
    assert len(seen) == 7 and max(seen) <= 0.1 * (1 + 1e-6)
    assert min(history.norms) > 0.1  # those before clipping
    assert max(history.lrs) == history.lrs[3] == 3e-4


@both_tracks
def test_norms_are_kept_without_clipping_too(track):
    clipped, *_ = run(track, 2, clip=1e9)
    plain, *_ = run(track, 2)
    assert plain.norms == clipped.norms and plain.losses == clipped.losses and len(plain.norms) == 2


# ------------------------------------------------------------------ several batches a step


def ragged_batches():
    """Eight batches that differ in how many targets count; one has none."""
    rng, (x, y) = np.random.default_rng(0), windows(IDS, 8)
    batches = []
    for start, size in ((0, 4), (4, 1), (5, 7), (12, 3), (15, 2), (17, 4), (21, 4), (25, 5)):
        targets = y[start : start + size].copy()
        targets[rng.random(targets.shape) < 0.4] = -100
        batches.append((x[start : start + size], targets))
    batches[1][1][...] = -100
    return batches


@both_tracks
def test_several_batches_a_step_are_one_large_batch(track):
    """Losses, norms and weights in float64: the mean is over targets, so a batch weighs what it holds of them."""
    small = ragged_batches()
    large = [tuple(np.concatenate(part) for part in zip(*small[i : i + 4], strict=True)) for i in (0, 4)]
    results = []
    for batches, accumulate in ((small, 4), (large, 1)):
        model = gpt(track, init="uniform", dtype="float64")
        optimizer = track.optim.AdamW(model.parameters(), 1e-3)
        history, *_ = run(track, None, model, optimizer, batches, clip=0.5, accumulate=accumulate)
        results.append((history, model.state_dict()))
    (mine, state), (other, expected) = results
    assert mine.steps == other.steps == 2 and all(type(loss) is float for loss in mine.losses)
    assert_close(mine.losses, other.losses, 1e-13)
    assert_close(mine.norms, other.norms, 1e-13)
    for name, value in state.items():
        assert_same(value, expected[name], name)
    plain = np.mean([gpt(track, init="uniform", dtype="float64")(*small[i])[1].item() for i in (0, 2, 3)])
    assert abs(plain - mine.losses[0]) > 1e-3, "equal weights would do as well: the test sees nothing"


@both_tracks
def test_the_gradient_of_every_parameter_is_that_of_the_large_batch(track):
    x, y = windows(IDS, 8)
    results = []
    for batches, accumulate in (([(x[:2], y[:2]), (x[2:9], y[2:9])], 2), ([(x[:9], y[:9])], 1)):
        model = gpt(track, init="uniform", dtype="float64", tied=True)
        optimizer = track.optim.SGD(model.parameters(), 0.0)
        run(track, 1, model, optimizer, batches, accumulate=accumulate)
        results.append({name: grad(p).copy() for name, p in model.named_parameters()})
    for name, value in results[0].items():
        assert_same(value, results[1][name], name)


@both_tracks
def test_several_batches_a_step_keep_the_precision_and_one_is_as_before(track):
    model, batches = gpt(track), Batches(IDS, 8, 4, seed=0)
    run(track, 3, model, batches=batches, accumulate=2)
    assert all(value.dtype == np.float32 for value in model.state_dict().values())
    again = Batches(IDS, 8, 4, seed=0)
    for _ in range(6):
        next(again)
    assert batches.state_dict() == again.state_dict()  # 3 steps of 2, and none thrown away
    one, expected, _ = run(track, 3, accumulate=1)
    other, found, _ = run(track, 3)
    assert one.losses == other.losses and one.norms == other.norms
    assert_states_equal(found.state_dict(), expected.state_dict())


@both_tracks
def test_the_last_step_takes_the_batches_that_are_left(track):
    batches = sequential_batches(*windows(IDS, 8), 8)  # 50 windows: 7 batches
    history, *_ = run(track, None, batches=batches, accumulate=3)
    assert history.steps == 3
    last = gpt(track)
    run(track, None, last, batches=[batches[6]], accumulate=3)
    alone = gpt(track)
    run(track, None, alone, batches=[batches[6]])
    assert_states_equal(last.state_dict(), alone.state_dict())


@both_tracks
def test_a_run_of_several_batches_a_step_in_two_parts_is_one_run(track):
    results = []
    for parts in ((6,), (2, 4)):
        model, batches, history = gpt(track, dropout=0.2), Batches(IDS, 8, 2, seed=0), None
        optimizer = track.optim.AdamW(model.parameters(), 0.01)
        for steps in parts:
            history, *_ = run(track, steps, model, optimizer, batches, accumulate=3, history=history)
        results.append((history.losses, model.state_dict()))
    assert results[0][0] == results[1][0]
    assert_states_equal(results[0][1], results[1][1])


@both_tracks
def test_the_stop_button_lets_a_step_of_several_batches_end(track):
    batches = Batches(IDS, 8, 2, seed=0)
    history, model, _ = run(track, 5, Presses(gpt(track), at=2), batches=batches, accumulate=3)
    assert history.stopped and history.steps == 1
    same, expected, _ = run(track, 1, batches=Batches(IDS, 8, 2, seed=0), accumulate=3)
    assert same.losses == history.losses
    assert_states_equal(model.state_dict(), expected.state_dict())


@pytest.mark.slow
def test_the_bar_shows_steps_remaining_time_loss_and_tokens_per_second(capsys, monkeypatch):
    model, seconds = gpt(NUMPY), 0.0

    def slowly(step):
        nonlocal seconds
        seconds += 2.0
        time.sleep(0.6)  # the bar is drawn every half second

    monkeypatch.setattr(trainer, "time", SimpleNamespace(perf_counter=lambda: seconds))
    optimizer = NUMPY.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer, Batches(IDS, 8, 4, seed=0), 3, accumulate=5, after_step=slowly)
    drawn = capsys.readouterr().err
    # a step takes 5 batches of 4 windows of 8 tokens, and two seconds of this clock
    assert re.search(r"train:.*\b2/3 .*<00:0\d.*loss \d\.\d{3}, 80\.0 tokens/s", drawn), drawn


# ------------------------------------------------------------------ modes and generators


@both_tracks
def test_O13_every_module_keeps_its_mode(track):
    for frozen in (False, True):
        model = gpt(track, dropout=0.5)
        model.train(not frozen)
        model.dropout.training = frozen  # the opposite of the others
        modes = [module.training for module in model.modules()]
        run(track, 1, model)
        assert [module.training for module in model.modules()] == modes
        evaluate(model, *windows(IDS, 8))
        generate(model, TOKENIZER, "hello", 2)
        assert [module.training for module in model.modules()] == modes
        too_long = IDS[None]
        for failing in (
            partial(run, track, 1, model, batches=[(too_long, too_long)]),
            partial(evaluate, model, too_long, too_long),
        ):
            with pytest.raises(ValueError, match="58.*8"):
                failing()
            assert [module.training for module in model.modules()] == modes


@both_tracks
def test_O13_training_switches_dropout_on(track):
    model = gpt(track, dropout=0.5)
    before = model.dropout.rng.bit_generator.state
    run(track, 1, model.eval())
    assert model.dropout.rng.bit_generator.state != before and not model.training


@both_tracks
def test_O14_evaluating_and_sampling_do_not_change_training(track):
    x, y = windows(IDS, 8)
    results = []
    for looks in (False, True):
        model = gpt(track, dropout=0.3)

        def look(step, model=model):
            generate(model, TOKENIZER, "hello", 5, seed=step)
            model.attention_maps(IDS[:5])

        options = {"evaluate": partial(evaluate, model, x, y), "evaluate_every": 2, "after_step": look} if looks else {}
        history, *_ = run(track, 6, model, **options)
        results.append((history.losses, model.state_dict()))
    assert results[0][0] == results[1][0]
    assert_states_equal(results[0][1], results[1][1])


@both_tracks
def test_O14_batches_are_drawn_by_their_own_generator(track):
    """A thousand windows, one at a time; a shared Generator would give 850, 636, 269 after a look."""
    model, drawn = gpt(track, dropout=0.5), []
    batches = Batches(np.arange(1008) % V, 8, 1, seed=0)
    batches.x, batches.y = (np.tile(np.arange(1000)[:, None], 2) for _ in range(2))  # a window names its place
    for _ in range(2):
        drawn += [int(next(batches)[0][0, 0]) for _ in range(2)]
        evaluate(model, *windows(IDS, 8))
        generate(model, TOKENIZER, "hello", 3)
        np.random.default_rng(0).integers(1000)
    assert drawn == [850, 636, 511, 269]


# ------------------------------------------------------------------ evaluation


@both_tracks
def test_O10_evaluation_does_not_depend_on_the_batch_size(track):
    model = gpt(track, init="uniform", dtype="float64")
    x, y = windows(IDS, 8)
    losses = [evaluate(model, x, y, batch_size) for batch_size in (1, 7, 49, 50, 1000)]
    assert len(x) == 50 and type(losses[0]) is float
    assert_close(losses, [losses[0]] * 5, 1e-12)
    assert losses[0] == pytest.approx(
        np.mean([model(x[i : i + 1], y[i : i + 1])[1].item() for i in range(50)]), abs=1e-12
    )


@both_tracks
def test_O10_a_batch_weighs_what_it_holds(track):
    """Summed losses 2 of 1 token and 90 of 9: 92 / 10 = 9.2, and not (2 + 10) / 2 = 6."""

    class Known(track.modules.Module):
        def forward(self, ids, targets=None):
            return None, track.constant(2.0 if (targets != -100).sum() == 1 else 10.0)

    x, y = np.zeros((2, 9), int), np.full((2, 9), -100)
    y[0, 4], y[1] = 0, 0
    assert evaluate(Known(), x, y, batch_size=1) == pytest.approx(9.2, abs=1e-12)
    assert evaluate(Known(), x[::-1], y[::-1], batch_size=1) == pytest.approx(9.2, abs=1e-12)


@both_tracks
def test_O10_ignored_targets_have_no_weight(track):
    """As with padding: the loss is the mean over the targets that count, also where a batch has none."""
    model = gpt(track, init="uniform", dtype="float64")
    x, y = windows(IDS, 8)
    y = y.copy()
    y[:, 5:], y[10:20], y[0, 1:] = -100, -100, -100
    expected = model(x, y)[1].item()
    for batch_size in (1, 3, 50):
        assert evaluate(model, x, y, batch_size) == pytest.approx(expected, abs=1e-12)
    for nothing in ((x[:0], y[:0]), (x[10:20], y[10:20])):
        with pytest.raises(ValueError, match="nothing to evaluate"):
            evaluate(model, *nothing)


@both_tracks
@pytest.mark.parametrize("function", [evaluate, token_losses])
def test_evaluation_refuses_what_does_not_fit(track, function):
    model = gpt(track)
    x, y = windows(IDS, 8)
    for y_wrong in (y[:16], y[:4], y[:8, :5]):
        with pytest.raises(ValueError, match=rf"\(8, 8\).*\({len(y_wrong)}, {y_wrong.shape[1]}\)"):
            function(model, x[:8], y_wrong)
    for batch_size in (0, -1):
        with pytest.raises(ValueError, match=f"batch_size.*{batch_size}"):
            function(model, x, y, batch_size)


@both_tracks
def test_evaluation_leaves_no_trace(track):
    model = gpt(track, dropout=0.5)
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    before, state = model.state_dict(), model.dropout.rng.bit_generator.state
    evaluate(model, *windows(IDS, 8))
    assert_states_equal(model.state_dict(), before)
    assert model.dropout.rng.bit_generator.state == state
    assert (array(optimizer.flat.grad) == 0).all()


# ------------------------------------------------------------------ the stop button


class Presses:
    """A model that presses the stop button in the middle of its forward pass at one step."""

    def __init__(self, model, at, times=1):
        self.model, self.at, self.times, self.calls = model, at, times, 0

    def __call__(self, x, y):
        self.calls += 1
        if self.calls == self.at:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return self.model(x, y)

    def __getattr__(self, name):
        return getattr(self.model, name)


@both_tracks
def test_stop_button_ends_after_a_whole_step_and_training_goes_on(track, capsys):
    handler = signal.getsignal(signal.SIGINT)
    whole, expected, _ = run(track, 7)
    batches, model = Batches(IDS, 8, 4, seed=0), gpt(track)
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    history, *_ = run(track, 7, Presses(model, at=3), optimizer, batches)
    assert history.stopped and history.steps == 3 and history.losses == whole.losses[:3]
    assert capsys.readouterr().out.startswith("Training was stopped after 3 of 7 steps: what follows")
    assert signal.getsignal(signal.SIGINT) is handler
    assert all(module.training for module in model.modules())
    again, *_ = run(track, 4, model, optimizer, batches, history=history)
    assert again is history and not history.stopped and history.losses == whole.losses
    assert_states_equal(model.state_dict(), expected.state_dict())


@both_tracks
def test_stop_button_from_another_thread(track):
    """As in Jupyter: the signal comes from outside, at any place of the step."""
    model = gpt(track)
    optimizer, batches = track.optim.SGD(model.parameters(), 0.1), Batches(IDS, 8, 4, seed=0)
    started = threading.Event()

    def press():
        started.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    history, *_ = run(track, 20_000, model, optimizer, batches, after_step=lambda step: started.set())
    thread.join()
    assert history.stopped and 1 <= history.steps < 20_000
    same, expected, _ = run(track, history.steps)
    assert same.losses == history.losses
    assert_states_equal(model.state_dict(), expected.state_dict())


@both_tracks
def test_a_second_press_interrupts_at_once(track):
    history, model, _ = run(track, 5, Presses(gpt(track), at=3, times=2))
    assert history.stopped and history.steps == 2
    assert all(np.isfinite(value).all() for value in model.state_dict().values())


@both_tracks
def test_training_outside_the_main_thread(track):
    results = []
    thread = threading.Thread(target=lambda: results.append(run(track, 2)[0]))
    thread.start()
    thread.join()
    assert results[0].losses == run(track, 2)[0].losses


@both_tracks
def test_an_interrupt_while_evaluating_keeps_the_history(track):
    def evaluate_and_press():
        signal.raise_signal(signal.SIGINT)
        return 1.0

    history, *_ = run(track, 5, evaluate=evaluate_and_press, evaluate_every=2)
    assert history.stopped and history.steps == 2 and history.evaluations == [(2, 1.0)]


class PressesAtClose:
    """A plot whose close is interrupted by the stop button."""

    def __init__(self, times):
        self.times = times

    def update(self, history):
        pass

    def close(self):
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)


@both_tracks
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_while_the_plot_closes_keeps_the_history(track, times):
    handler = signal.getsignal(signal.SIGINT)
    history, *_ = run(track, 2, plot=PressesAtClose(times))
    assert history.steps == 2 and history.stopped == (times == 2)
    history, *_ = run(track, 5, Presses(gpt(track), at=3), plot=PressesAtClose(1))
    assert history.steps == 3 and history.stopped
    assert signal.getsignal(signal.SIGINT) is handler


@both_tracks
def test_a_close_that_fails_hides_no_failure(track):
    class Plot(PressesAtClose):
        def close(self):
            raise OSError("no display")

    history = History()
    with pytest.raises(OSError, match="no display"):
        run(track, 1, plot=Plot(0), history=history)
    assert history.steps == 1
    for plot in (Plot(0), PressesAtClose(2)):
        with pytest.raises(ZeroDivisionError):
            run(track, 1, plot=plot, after_step=lambda step: 1 / 0)
    history, *_ = run(track, 5, Presses(gpt(track), at=3, times=2), plot=Plot(0))
    assert history.stopped and history.steps == 2


# ------------------------------------------------------------------ options that make no sense


@both_tracks
@pytest.mark.parametrize(
    "wrong",
    [{"steps": -1}, {"steps": 2.5}, {"evaluate_every": -1}, {"accumulate": 0}, {"accumulate": 1.5},
     {"clip": 0}, {"clip": -1.0}, {"clip": math.nan}],
    ids=str,
)  # fmt: skip
def test_wrong_options_are_refused_before_the_first_step(track, wrong):
    (name, value), history, model = *wrong.items(), History(), gpt(track)
    before = model.state_dict()
    with pytest.raises(ValueError, match=f"{name} must be .*not {value}"):
        run(track, model=model, history=history, **{"steps": 2, **wrong})
    assert history.steps == 0
    assert_states_equal(model.state_dict(), before)


@both_tracks
@pytest.mark.parametrize("lr", [math.nan, math.inf, -0.1])
def test_a_rate_that_is_no_rate_stops_training(track, lr):
    model, history = gpt(track), History()
    states = []
    with pytest.raises(ValueError, match=f"learning rate is {lr} at step 2"):
        run(
            track, 5, model, history=history, schedule=lambda step: 0.1 if step < 2 else lr,
            after_step=lambda step: states.append(model.state_dict()),
        )  # fmt: skip
    assert history.steps == 2
    assert_states_equal(model.state_dict(), states[-1])
    optimizer = track.optim.SGD(model.parameters(), 0.1)
    optimizer.lr = lr
    with pytest.raises(ValueError, match=f"learning rate is {lr} at step 0"):
        run(track, 1, model, optimizer)
    assert_states_equal(model.state_dict(), states[-1])


# ------------------------------------------------------------------ numbers that are not finite


@both_tracks
@overflow_is_expected
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_loss_that_is_not_finite_stops_training(track, clip):
    """A huge rate throws the weights away at the first step; the second loss is not a number."""
    model, history = gpt(track), History()
    after = []
    with pytest.raises(FloatingPointError, match=r"loss is (nan|inf) at step 1, learning rate 1e\+30"):
        run(
            track, 5, model, track.optim.SGD(model.parameters(), 1e30), clip=clip, history=history,
            after_step=lambda step: after.append(model.state_dict()),
        )  # fmt: skip
    assert history.steps == 1 == len(history.norms) == len(history.lrs) and len(after) == 1
    assert_states_equal(model.state_dict(), after[0])


@both_tracks
def test_a_nan_in_the_weights_stops_before_anything_changes(track):
    model = gpt(track)
    array(model.head.weight)[0, 0] = math.nan
    before = model.state_dict()
    optimizer = track.optim.AdamW(model.parameters(), 1e-3)
    with pytest.raises(FloatingPointError, match=r"loss is nan at step 0, learning rate 0\.001"):
        run(track, 5, model, optimizer)
    assert_states_equal(model.state_dict(), before)
    assert optimizer.steps == 0 and (array(optimizer.mean) == 0).all()


@both_tracks
@overflow_is_expected
@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_gradient_that_is_not_finite_stops_training_also_without_clipping(track, clip):
    """The loss is 0 and its gradient infinite: the root of x - x."""

    class Root(track.modules.Module):
        def __init__(self):
            self.weight = track.leaf([1.0, 2.0])

        def forward(self, ids, targets=None):
            return None, (self.weight - self.weight.detach()).sqrt().sum()

    model, history = Root(), History()
    optimizer = track.optim.AdamW(model.parameters(), 0.5)
    with pytest.raises(FloatingPointError, match=r"norm of the gradient is (nan|inf) at step 0, learning rate 0\.5"):
        run(track, 5, model, optimizer, clip=clip, history=history)
    assert_close(model.weight, [1, 2], 0)
    assert history.steps == 0 == len(history.norms) and optimizer.steps == 0


@both_tracks
def test_L01_a_batch_with_all_targets_ignored_is_refused(track):
    model = gpt(track)
    before = model.state_dict()
    nothing = (windows(IDS, 8)[0][:2], np.full((2, 8), -100))
    for batches in (1, 2):
        with pytest.raises(ValueError, match="all 16 targets are -100"):
            run(track, 1, model, batches=[nothing] * batches, accumulate=batches)
    assert_states_equal(model.state_dict(), before)


# ------------------------------------------------------------------ does it learn, and honestly?


def random_batches(seed=0):
    """Windows of fresh random tokens: whoever sees only the past cannot know the next one."""
    rng = np.random.default_rng(seed)
    while True:
        tokens = rng.integers(5, size=(16, 5))
        yield tokens[:, :-1], tokens[:, 1:]


@both_tracks
def test_G08_nobody_who_sees_only_the_past_can_predict_chance(track):
    losses = {}
    for causal in (True, False):
        config = GPTConfig(5, context_length=4, width=16, heads=2, layers=1, causal=causal, init="uniform")
        model = track.models.GPT(config)
        optimizer = track.optim.AdamW(model.parameters(), 1e-2)
        losses[causal] = run(track, 200, model, optimizer, random_batches())[0].mean_loss(50)
    assert losses[True] > 0.98 * math.log(5)
    assert losses[False] < 0.4 * math.log(5), "the leaking twin should cheat, or this test sees nothing"


@both_tracks
def test_the_loss_falls(track):
    history, *_ = run(track, 120, gpt(track, width=16), batches=Batches(IDS, 8, 8, seed=0))
    assert abs(history.losses[0] - math.log(V)) < 0.1
    assert history.mean_loss(20) < 0.9 * history.losses[0]


@both_tracks
def test_training_ends_when_after_step_says_enough(track):
    history, *_ = run(track, 50, after_step=lambda step: step == 7)
    assert history.steps == 7 and not history.stopped
    history, *_ = run(track, 5, after_step=lambda step: None)
    assert history.steps == 5
