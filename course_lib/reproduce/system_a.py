"""System A: a first GPT without query, key, value, residual path or LayerNorm, and why it fails."""

import importlib
import itertools
import time
from collections import Counter
from dataclasses import dataclass

from ..config import FirstGPTConfig
from ..generation import generate
from ..text import CharTokenizer, load_corpus, sequential_batches, split_by_position, windows
from ..training import WarmupCosine, train
from .checks import side_by_side

PROMPT, SAMPLE = "ROMEO:", 256
BATCHES, SHAPE = 1742, (4, 32, 65)


@dataclass(frozen=True)
class Expected:
    """One row of system A: which model, and the limits of its test loss and of the commonest character's share."""

    initial: str
    causal: bool
    loss: tuple
    share: tuple = (0.0, 1.0)
    note: str = ""


SYSTEM_A = (
    Expected("scaled", False, (2.7, 3.0), (0.8, 1.0), "the sample collapses into one character"),
    Expected("scaled", True, (1.8, 2.1), (0.0, 0.4)),
    Expected("uniform", False, (0.0, 1.0), (0.0, 1.0), "too good to be true: the model reads the answer"),
    Expected("uniform", True, (2.3, 2.6), (0.0, 0.4)),
    Expected("small", False, (3.1, 3.4), (0.0, 1.0), "it learns the frequency of the characters, and no more"),
)


@dataclass(frozen=True)
class SystemAData:
    """tinyshakespeare as system A sees it: characters, 90/10 by position, windows of 32 with stride 16, in order."""

    tokenizer: object
    train: list
    test: list

    @classmethod
    def load(cls, text=None):
        """From ``text``, or from tinyshakespeare."""
        text = load_corpus("tinyshakespeare").text if text is None else text
        tokenizer = CharTokenizer.from_text(text)
        parts = split_by_position(tokenizer.encode(text), 0.9, context=32)
        # System A alone drops the last batch when it is not full, as its source does.
        return cls(tokenizer, *(sequential_batches(*windows(part, 32, stride=16), 4, drop_last=True) for part in parts))


def train_system_a(track, data, initial, causal, steps=None, seed=0, epochs=2, **options):
    """Train system A as its source does; returns (model, history). ``steps`` cuts the run (and its schedule) short.

    Two epochs in order, AdamW with decay 0.01 on everything, rate 1e-3 with 100 warm-up steps and a cosine down to a
    tenth, gradient clipped to norm 1. ``options`` go to ``train``.
    """
    models = importlib.import_module(f"course_lib.{track}_track.models")
    optim = importlib.import_module(f"course_lib.{track}_track.optim")
    model = models.FirstGPT(FirstGPTConfig(len(data.tokenizer), initial=initial, causal=causal), seed)
    optimizer = optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01, decay_all=True)
    batches = itertools.chain.from_iterable(itertools.repeat(data.train, epochs))
    steps = epochs * len(data.train) if steps is None else steps
    schedule = WarmupCosine(peak=1e-3, warmup=100, total=steps, final=1e-4)
    return model, train(model, optimizer, batches, steps, schedule=schedule, clip=1.0, **options)


def mean_test_loss(model, batches):
    """Mean loss of equally full batches, and the set of the shapes of their logits."""
    total, shapes = 0.0, set()
    with model.evaluating():
        for x, y in batches:
            logits, loss = model(x, y)
            total += loss.item()
            shapes.add(tuple(logits.shape))
    return total / len(batches), shapes


def commonest_share(text):
    """(character, its share) of the commonest character in ``text``."""
    character, count = Counter(text).most_common(1)[0]
    return character, count / len(text)


def _run(track, row):
    start = time.perf_counter()
    data = SystemAData.load()
    model, history = train_system_a(track, data, row.initial, row.causal, progress=False)
    loss, shapes = mean_test_loss(model, data.test)
    sample = generate(model, data.tokenizer, PROMPT, SAMPLE, seed=0)[len(PROMPT) :]
    return loss, len(data.test), shapes, sample, history.steps, time.perf_counter() - start


def system_a(jobs):
    """All rows in both tracks; prints a table and returns True if everything holds."""
    SystemAData.load()  # fetch the text, or fail, before any work starts
    print(f"system A: expected {BATCHES} test batches of logits {SHAPE}; {jobs} run(s) at a time")
    print("track  initial  mask    steps  test loss  expected    commonest in sample  expected      time")
    fine = True
    rows = [(track, row) for row in SYSTEM_A for track in ("numpy", "torch")]
    for (track, row), (loss, batches, shapes, sample, steps, seconds) in side_by_side(_run, rows, jobs):
        character, share = commonest_share(sample)
        holds = [row.loss[0] <= loss <= row.loss[1], row.share[0] <= share <= row.share[1]]
        holds.append((batches, shapes) == (BATCHES, {SHAPE}))
        fine = fine and all(holds)
        print(
            f"{track:6} {row.initial:8} {'causal' if row.causal else 'none':6} {steps:6}"
            f"  {loss:9.4f}  {row.loss[0]:.1f}-{row.loss[1]:.1f} {'ok ' if holds[0] else 'NO '}"
            f"  {character!r:>6} {share:12.1%}  {row.share[0]:.0%}-{row.share[1]:.0%} {'ok' if holds[1] else 'NO'}"
            f"  {seconds:6.0f} s  {batches} x {sorted(shapes)} {'ok' if holds[2] else 'NO'}  {row.note}",
            flush=True,
        )
        print(f"       sample: {sample[:72].encode('unicode_escape').decode()}", flush=True)
    return fine
