"""System C: the decoder-only GPT of notebook 09 on three lines of text, down to the floor that the text allows."""

import math
import time

from ... import get_track
from ...common.config import GPTConfig
from ...inference.sampling import generate
from ...text import Batches, CharTokenizer, load_corpus, loss_floor
from ...training import train
from .checks import check, side_by_side

CONTEXT, BATCH_SIZE, RATE, STEPS, LAST = 8, 4, 0.1, 10_000, 1000
PARAMETERS, FLOOR = 39_153, 0.1614
# Greedy, from "h": after "hello " w and t are equally likely, after "nsformer" newline and space; in training such ties
# fall either way, so each of these lines is right.
LINES = ("hello world\nhello tra", "hello transformer lea", "hello transformer\ntra")


def train_system_c(track, steps=STEPS):
    """Train by plain gradient descent on windows of 8, 4 at a time, with seed 0; return (model, history, tokenizer)."""
    track = get_track(track)
    text = load_corpus("hello").text
    tokenizer = CharTokenizer.from_text(text)
    model = track.GPT(GPTConfig(len(tokenizer), CONTEXT), seed=0)
    batches = Batches(tokenizer.encode(text), CONTEXT, BATCH_SIZE, seed=0)
    return model, train(model, track.SGD(model.parameters(), RATE), batches, steps, progress=False), tokenizer


def _run(track):
    start = time.perf_counter()
    model, history, tokenizer = train_system_c(track)
    ending = generate(model, tokenizer, "hello wo", 3, temperature=0)[-3:]
    line = generate(model, tokenizer, "h", 20, temperature=0)
    mean, seconds = history.mean_loss(LAST), time.perf_counter() - start
    return model.num_parameters(), history.losses[0], mean, ending, line, seconds


def system_c(jobs):
    """Train in both tracks, print expected beside measured, and return True if everything holds."""
    text = load_corpus("hello").text
    tokenizer = CharTokenizer.from_text(text)
    guess, floor = math.log(len(tokenizer)), loss_floor(tokenizer.encode(text), CONTEXT)
    print(f"system c: {STEPS:,} steps of plain gradient descent on {len(text)} characters, {len(tokenizer)} symbols")
    held = [check("floor, counted over the windows", str(FLOOR), f"{floor:.4f}", abs(floor - FLOOR) < 5e-5)]
    for (track,), (parameters, first, mean, ending, line, seconds) in side_by_side(
        _run, [("numpy",), ("torch",)], jobs
    ):
        print(f" {track} track, {seconds:.0f} s")
        held += [
            check("parameters", f"{PARAMETERS:,}", f"{parameters:,}", parameters == PARAMETERS),
            check("first loss", f"{guess:.2f} +- 0.1 (ln {len(tokenizer)})", f"{first:.4f}", abs(first - guess) < 0.1),
            check(f"mean of the last {LAST:,} losses", f"{floor:.4f} +- 0.02", f"{mean:.4f}", abs(mean - floor) < 0.02),
            check("continuation of hello wo, greedily", "'rld'", ascii(ending), ending == "rld"),
            check("text from h, greedily", "one of the three lines", ascii(line), line in LINES),
        ]
    return all(held)
