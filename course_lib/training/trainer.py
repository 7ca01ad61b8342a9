"""The training loop, the same for both tracks."""

import contextlib
import itertools
import math
import time

import numpy as np
from tqdm.auto import tqdm

from ..common.checks import IGNORED, check_whole
from .history import History
from .memory import keep_freed_memory
from .stop import StopButton


def train(
    model, optimizer, batches, steps=None, *, schedule=None, clip=None, accumulate=1, evaluate=None,
    evaluate_every=0, history=None, progress=True, plot=None, after_step=None,
):  # fmt: skip
    """Train ``model`` and return the History.

    batches: an iterable of (x, y), integer arrays (B, T); training ends with it, or after ``steps`` steps.
    schedule: step -> learning rate; without one ``optimizer.lr`` stays as it is.
    clip: the largest norm of the gradient (None: not clipped).
    accumulate: the number of batches per step. They run one at a time, in the memory of one, and the gradient is that
    of all of them as one large batch: of the mean over all targets that count (are not -100).
    evaluate: a function without arguments that returns the validation loss, called every ``evaluate_every`` steps.
    history: a History to continue; the schedule continues at its step.
    progress: show a bar. plot: an object with ``update(history)``, called after each step, and ``close()``.
    after_step: a function of the number of steps so far; training ends when it returns a true value.

    After the stop button (or Ctrl-C) the current step is finished and training returns, with a printed sentence; it can
    be resumed later.
    Raises FloatingPointError, with the step and the rate, if the loss or the norm of the gradient is not finite; the
    parameters are then those of the step before. Raises ValueError for a rate below 0 or not finite and, before the
    first step, for wrong options or an optimiser that holds parameters of another model.
    """
    _require_options(steps, clip, accumulate, evaluate_every)
    _require_owner(model, optimizer)
    keep_freed_memory()
    history = History() if history is None else history
    history.stopped, before = False, history.steps
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
                if bar.update():  # True if it was just redrawn
                    speed = tqdm.format_sizeof(tokens / (time.perf_counter() - started))
                    bar.set_postfix_str(f"loss {history.losses[-1]:.3f}, {speed} tokens/s", refresh=False)
                if stop.pressed or enough:
                    history.stopped = stop.pressed
                    bar.total = bar.n  # or the bar would turn red, as after an error
                    break
    except KeyboardInterrupt:  # raised by a second press, or where signals cannot be caught
        history.stopped = True
    finally:
        if history.stopped:
            done = f"{history.steps - before:,}" + (f" of {total:,}" if total is not None else "")
            print(f"Training was stopped after {done} steps: what follows shows the model as it is now.")
        history.seconds += time.perf_counter() - started
        for module, mode in modes:
            module.training = mode
    return history


def _groups(batches, size):
    """Yield lists of ``size`` batches, the last one with what is left; take no batch before it is needed."""
    batches = iter(batches)
    while group := list(itertools.islice(batches, size)):
        yield group


def _step(model, optimizer, group, history, schedule, clip):
    """Take one step: loss, gradient, update, an entry in the history. Update nothing unless everything is finite."""
    if schedule is not None:
        optimizer.lr = schedule(history.steps)
    if not 0 <= optimizer.lr < math.inf:
        raise ValueError(
            f"the learning rate is {optimizer.lr} at step {history.steps}, but must be 0 or a positive number"
        )
    optimizer.zero_grad()
    value = 0.0
    for (x, y), share in zip(group, _shares(group)):
        if share == 0:  # every target is ignored: the loss of this batch has neither value nor weight
            continue
        loss = model(x, y)[1]
        value += share * float(loss.item())
        _require_finite("loss", value, history.steps, optimizer.lr)
        (loss if share == 1 else loss * share).backward()  # gradients of the group add up
    norm = optimizer.clip_grad_norm_(math.inf if clip is None else clip)
    _require_finite("norm of the gradient", norm, history.steps, optimizer.lr)
    optimizer.step()
    history.losses.append(value)
    history.norms.append(norm)
    history.lrs.append(float(optimizer.lr))


def _shares(group):
    """Return the weight of each batch of a step: its share of the targets that count. A single batch weighs 1."""
    if len(group) == 1:
        return [1]
    kept = [int((np.asarray(y) != IGNORED).sum()) for _, y in group]
    return [count / sum(kept) for count in kept] if any(kept) else [1] * len(kept)


def _require_options(steps, clip, accumulate, evaluate_every):
    for name, value in (("steps", steps), ("evaluate_every", evaluate_every)):
        if value is not None:
            check_whole(name, value, 0)
    check_whole("accumulate", accumulate, 1)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be positive (None: not clipped), not {clip}")


def _require_owner(model, optimizer):
    held, mine = ({id(p) for p in parameters} for parameters in (optimizer.parameters, model.parameters()))
    if not held or not held <= mine:
        raise ValueError("this optimiser holds the parameters of another model: make a new one")


def _require_finite(name, value, step, lr):
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the {name} is {value} at step {step}, learning rate {lr:g}: training stops, and the parameters are"
            f" those of the step before. A smaller learning rate, a longer warm-up or clipping usually helps."
        )


def _bar(total, progress):
    return tqdm(total=total, desc="train", unit="step", disable=not progress, leave=False, mininterval=0.5)


@contextlib.contextmanager
def _closing(plot):
    """Close the plot on exit; if the body failed, its error comes out, whatever closing raises."""
    close = plot.close if plot is not None else lambda: None
    try:
        yield
    except BaseException:
        with contextlib.suppress(BaseException):
            close()
        raise
    close()
