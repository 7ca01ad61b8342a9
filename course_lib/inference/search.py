"""Target sequences from an encoder–decoder, for models of both tracks: greedy for many sources, beam search for one.

Both write one token at a time, until the end token or ``max_length`` tokens.
"""

from dataclasses import dataclass

import numpy as np

from ..common.checks import check_whole
from ..common.probabilities import log_softmax
from .sampling import next_probabilities


def greedy_ids(model, source, begin, end, max_length, source_allow=None):
    """Choose the likeliest token at each step: source ids (B, S) -> a list of B lists of ids, without begin and end.

    All targets are written side by side, until each has its end or ``max_length`` tokens. ``source_allow`` (B, S):
    True = a real token, False = padding. Raises ValueError for a max_length below 1, or logits that are nan or infinite
    (training went wrong).
    """
    check_whole("max_length", max_length, 1)
    source = np.asarray(source)
    target = np.full((len(source), 1), begin)
    ended = np.zeros(len(source), bool)
    with model.evaluating():
        memory = model.encode(source, source_allow)
        while target.shape[1] <= max_length and not ended.all():
            chosen = _last_logits(model, target, memory, source_allow).argmax(axis=-1)
            target = np.column_stack([target, chosen])
            ended |= chosen == end
    return [_before(row[1:].tolist(), end) for row in target]


def _last_logits(model, target, memory, source_allow):
    """Return the logits (B, V) of the token after each target (B, T); raise ValueError, as sampling does, for nan."""
    logits = model.decode(target, memory, source_allow).detach().numpy()[:, -1]  # (B, T, V) -> (B, V)
    for row in logits[~np.isfinite(logits.max(axis=-1))]:
        next_probabilities(row)  # says what is wrong
    return logits


@dataclass(frozen=True)
class Hypothesis:
    """One way to write the target: its ``ids`` without begin and end, and the log-probability of them all, in nats.

    ``length`` counts the chosen tokens, the end included; ``ended`` is False if max_length came first.
    """

    ids: tuple
    log_probability: float
    length: int
    ended: bool

    def score(self, normalised):
        """Return the log-probability or, if ``normalised``, its mean over the chosen tokens."""
        return self.log_probability / max(self.length, 1) if normalised else self.log_probability


def beam_search(model, source, begin, end, max_length, num_beams=4, normalised=True, source_allow=None):
    """Return the ``num_beams`` best hypotheses for one source (S,), best first: a list of Hypothesis.

    Each step continues every unfinished one with every token; of these and the finished ones the ``num_beams`` best
    stay. Every token lowers the log-probability, so plain sums favour short answers; ``normalised`` compares the mean
    per token. One beam is greedy. A beam proves nothing: the best answer may begin with a token that was dropped.
    ``source_allow`` (S,): True = a real token, False = padding. Raises ValueError for num_beams or max_length below 1,
    for several sources, or for logits that are nan or infinite.
    """
    check_whole("num_beams", num_beams, 1)
    check_whole("max_length", max_length, 1)
    source = np.asarray(source)
    if source.ndim != 1:
        raise ValueError(f"one source at a time, ids of shape (S,): these have shape {source.shape}")
    best = [Hypothesis((), 0.0, 0, False)]
    with model.evaluating():
        for _ in range(max_length):
            running = [h for h in best if not h.ended]
            if not running:
                break
            target = np.array([(begin, *h.ids) for h in running])
            allow = None if source_allow is None else np.repeat(np.asarray(source_allow)[None], len(running), axis=0)
            memory = model.encode(np.repeat(source[None], len(running), axis=0), allow)  # the same for all of them
            logits = _last_logits(model, target, memory, allow)
            found = [h for h in best if h.ended]
            for h, row in zip(running, log_softmax(logits), strict=True):
                for token in np.argsort(-row, kind="stable")[:num_beams].tolist():  # more than num_beams cannot stay
                    ids = h.ids if token == end else (*h.ids, token)
                    found.append(Hypothesis(ids, h.log_probability + row[token], h.length + 1, token == end))
            best = sorted(found, key=lambda h: -h.score(normalised))[:num_beams]
    return best


def _before(ids, end):
    return ids[: ids.index(end)] if end in ids else ids
