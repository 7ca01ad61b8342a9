"""System A: a first GPT without query, key, value, residual path or LayerNorm: five variants, three of which fail."""

import itertools
import time
from collections import Counter
from dataclasses import dataclass

from ... import get_track
from ...common.config import FirstGPTConfig
from ...inference.sampling import generate
from ...text import CharTokenizer, load_corpus, sequential_batches, split_by_position, windows
from ...training import WarmupCosine, train
from .checks import side_by_side

PROMPT, SAMPLE = "ROMEO:", 256
BATCHES, SHAPE = 1742, (4, 32, 65)


@dataclass(frozen=True)
class Expected:
    """One row of system A: which model, and the limits of its test loss and of the most common character's share."""

    init: str
    causal: bool
    loss: tuple
    share: tuple = (0.0, 1.0)
    note: str = ""


SYSTEM_A = (
    Expected("scaled", False, (2.7, 3.0), (0.8, 1.0), "the sample collapses into one character"),
    Expected("scaled", True, (1.8, 2.1), (0.0, 0.4)),
    Expected("uniform", False, (0.0, 1.0), (0.0, 1.0), "too good to be true: the model reads the answer"),
    Expected("uniform", True, (2.3, 2.6), (0.0, 0.4)),
    Expected("small", False, (3.1, 3.4), (0.0, 1.0), "it learns only how frequent each character is"),
)


@dataclass(frozen=True)
class SystemAData:
    """tinyshakespeare for system A: characters, split 90/10 by position, windows of 32 with stride 16, in order."""

    tokenizer: object
    train: list
    test: list

    @classmethod
    def load(cls):
        """Load and cut the text."""
        text = load_corpus("tinyshakespeare").text
        tokenizer = CharTokenizer.from_text(text)
        parts = split_by_position(tokenizer.encode(text), 0.9, context_length=32)
        # only system A drops a last batch that is not full, as its source does
        return cls(tokenizer, *(sequential_batches(*windows(part, 32, stride=16), 4, drop_last=True) for part in parts))


def train_system_a(track, data, init, causal):
    """Train system A as its source does, with seed 0; return (model, history).

    Two epochs in order, AdamW with decay 0.01 on everything, rate 1e-3 with 100 warm-up steps and a cosine down to a
    tenth, gradient clipped to norm 1.
    """
    track = get_track(track)
    model = track.FirstGPT(FirstGPTConfig(len(data.tokenizer), init=init, causal=causal), seed=0)
    optimizer = track.AdamW(model.parameters(), 1e-3, weight_decay=0.01, decay_all=True)
    steps = 2 * len(data.train)
    schedule = WarmupCosine(lr=1e-3, warmup_steps=100, total_steps=steps, min_lr=1e-4)
    batches = itertools.chain(data.train, data.train)
    return model, train(model, optimizer, batches, steps, schedule=schedule, clip=1.0, progress=False)


def mean_test_loss(model, batches):
    """Return the mean loss of batches of equal size, and the set of the shapes of their logits."""
    total, shapes = 0.0, set()
    with model.evaluating():
        for x, y in batches:
            logits, loss = model(x, y)
            total += loss.item()
            shapes.add(tuple(logits.shape))
    return total / len(batches), shapes


def most_common_share(text):
    """Return (character, its share) of the most common character in ``text``."""
    character, count = Counter(text).most_common(1)[0]
    return character, count / len(text)


def _run(track, row):
    start = time.perf_counter()
    data = SystemAData.load()
    model, history = train_system_a(track, data, row.init, row.causal)
    loss, shapes = mean_test_loss(model, data.test)
    sample = generate(model, data.tokenizer, PROMPT, SAMPLE, seed=0)[len(PROMPT) :]
    return loss, len(data.test), shapes, sample, history.steps, time.perf_counter() - start


def system_a(jobs):
    """Train all rows in both tracks, print a table, and return True if everything holds."""
    SystemAData.load()  # fetch the text, or fail, before any work starts
    print(f"system A: expected {BATCHES} test batches of logits {SHAPE}; {jobs} run(s) at a time")
    print("track  initial  mask    steps  test loss  expected    most common in sample  expected      time")
    held = []
    rows = [(track, row) for row in SYSTEM_A for track in ("numpy", "torch")]
    for (track, row), (loss, batches, shapes, sample, steps, seconds) in side_by_side(_run, rows, jobs):
        character, share = most_common_share(sample)
        holds = [row.loss[0] <= loss <= row.loss[1], row.share[0] <= share <= row.share[1]]
        holds.append((batches, shapes) == (BATCHES, {SHAPE}))
        held += holds
        print(
            f"{track:6} {row.init:8} {'causal' if row.causal else 'none':6} {steps:6}"
            f"  {loss:9.4f}  {row.loss[0]:.1f}-{row.loss[1]:.1f} {'ok ' if holds[0] else 'NO '}"
            f"  {character!r:>8} {share:12.1%}  {row.share[0]:.0%}-{row.share[1]:.0%} {'ok' if holds[1] else 'NO'}"
            f"  {seconds:6.0f} s  {batches} x {sorted(shapes)} {'ok' if holds[2] else 'NO'}  {row.note}",
            flush=True,
        )
        print(f"       sample: {sample[:72].encode('unicode_escape').decode()}", flush=True)
    return all(held)
