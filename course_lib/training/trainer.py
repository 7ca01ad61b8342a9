"""The training loop, the same for both tracks."""

import contextlib
import itertools
import math
import numbers
import time

import numpy as np
from tqdm.auto import tqdm

from .evaluation import IGNORED
from .history import History
from .stop import StopButton


def train(
    model, optimizer, batches, steps=None, *, schedule=None, clip=None, accumulate=1, evaluate=None,
    evaluate_every=0, history=None, progress=True, plot=None, after_step=None,
):  # fmt: skip
    """Train ``model`` and return the History.

    batches: an iterable of (x, y), integer arrays (B, T); training ends with it, or after ``steps`` steps.
    schedule: step -> learning rate; without one ``optimizer.rate`` stays as it is.
    clip: the largest norm of the gradient (None: not clipped).
    accumulate: a step takes so many batches, one after the other, and its gradient is that of all of them as one large
    batch: the mean over all targets that count. Memory is needed for one of them only.
    evaluate: a function without arguments that returns the validation loss, called every ``evaluate_every`` steps.
    history: go on with this one; the schedule goes on at its step too.
    progress: show a bar. plot: an object with ``update(history)`` and ``close()``, called after each step; None costs
    nothing. after_step: a function of the number of steps made; training ends when it returns a true value.

    The stop button (or Ctrl-C) lets the current step end, then training returns what it has; it can go on later.
    Raises FloatingPointError, with the step and the rate, when the loss or the norm of the gradient is not finite;
    the parameters are then those of the step before. Raises ValueError for a rate below 0 or not finite, and, before
    the first step, for wrong options or an optimiser that holds other parameters than the model's.
    """
    _require_options(steps, clip, accumulate, evaluate_every)
    _require_owner(model, optimizer)
    history = History() if history is None else history
    history.stopped = False
    total = steps
    if steps is None and hasattr(batches, "__len__"):
        total = math.ceil(len(batches) / accumulate)
    groups = itertools.islice(_groups(batches, accumulate), steps)
    tokens, started, modes = 0, time.perf_counter(), [(module, module.training) for module in model.modules()]
    model.train()
    try:
        with StopButton() as stop, _bar(total, progress) as bar, _closing(plot):
            for group in groups:
                _step(model, optimizer, group, history, schedule, clip)
                tokens += sum(np.size(y) for _, y in group)
                if evaluate is not None and evaluate_every and history.steps % evaluate_every == 0:
                    history.evaluations.append((history.steps, float(evaluate())))
                if plot is not None:
                    plot.update(history)
                enough = after_step is not None and bool(after_step(history.steps))
                if bar.update():  # True when it was just drawn again
                    speed = tqdm.format_sizeof(tokens / (time.perf_counter() - started))
                    bar.set_postfix_str(f"loss {history.losses[-1]:.3f}, {speed} tokens/s", refresh=False)
                if stop.pressed or enough:
                    history.stopped = stop.pressed
                    bar.total = bar.n  # or the bar would turn red, as if something had failed
                    break
    except KeyboardInterrupt:  # raised by a second press, or where signals cannot be caught
        history.stopped = True
    finally:
        history.seconds += time.perf_counter() - started
        for module, mode in modes:
            module.training = mode
    return history


def _groups(batches, size):
    """Lists of ``size`` batches; the last one holds what is left. None is taken before it is asked for."""
    batches = iter(batches)
    while group := list(itertools.islice(batches, size)):
        yield group


def _step(model, optimizer, group, history, schedule, clip):
    """One step: loss, gradient, update, and a line in the history. Nothing is updated unless everything is finite."""
    if schedule is not None:
        optimizer.rate = schedule(history.steps)
    if not 0 <= optimizer.rate < math.inf:
        raise ValueError(
            f"the learning rate is {optimizer.rate} at step {history.steps}, and must be 0 or a positive number"
        )
    optimizer.zero_grad()
    value = 0.0
    for (x, y), share in zip(group, _shares(group)):
        if share == 0:  # every target is ignored: the loss of this batch has no value, and no weight
            continue
        loss = model(x, y)[1]
        value += share * float(loss.item())
        _require_finite("loss", value, history.steps, optimizer.rate)
        (loss if share == 1 else loss * share).backward()  # gradients of the group add up
    norm = optimizer.clip_grad_norm(math.inf if clip is None else clip)
    _require_finite("norm of the gradient", norm, history.steps, optimizer.rate)
    optimizer.step()
    history.losses.append(value)
    history.norms.append(norm)
    history.rates.append(float(optimizer.rate))


def _shares(group):
    """How much each batch of a step weighs: its part of the targets that count. One batch alone weighs 1."""
    if len(group) == 1:
        return [1]
    kept = [int((np.asarray(y) != IGNORED).sum()) for _, y in group]
    return [count / sum(kept) for count in kept] if any(kept) else [1] * len(kept)


def _require_options(steps, clip, accumulate, evaluate_every):
    for name, value in (("steps", steps), ("evaluate_every", evaluate_every)):
        if value is not None and not (isinstance(value, numbers.Integral) and value >= 0):
            raise ValueError(f"{name} must be a whole number from 0 up, not {value}")
    if not (isinstance(accumulate, numbers.Integral) and accumulate >= 1):
        raise ValueError(f"accumulate must be a whole number from 1 up, not {accumulate}")
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be positive (None: not clipped), not {clip}")


def _require_owner(model, optimizer):
    held, mine = ({id(p) for p in parameters} for parameters in (optimizer.parameters, model.parameters()))
    if not held or not held <= mine:
        raise ValueError("this optimiser holds the parameters of another model: make it again")


def _require_finite(name, value, step, rate):
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {name} is {value} at step {step}, learning rate {rate:g}: training stops, and the parameters are"
            f" those of the step before. A smaller learning rate, a longer warm-up or clipping usually helps."
        )


def _bar(total, progress):
    return tqdm(total=total, desc="train", unit="step", disable=not progress, leave=False, mininterval=0.5)


@contextlib.contextmanager
def _closing(plot):
    """Closes the plot; where something failed before, that is what comes out, whatever closing does."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(BaseException):
            _close(plot)
        raise
    _close(plot)


def _close(plot):
    if plot is not None:
        plot.close()
