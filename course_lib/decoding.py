"""Target sequences from an encoder–decoder, for models of both tracks: greedy for many sources, beam search for one.

Both read the source once and write one token after the other until the end token, or until ``limit`` tokens.
"""

from dataclasses import dataclass

import numpy as np


def greedy_ids(model, source, begin, end, limit, source_allow=None):
    """The likeliest token at each step: source ids (B, S) -> a list of B lists of ids, without begin and end.

    All sources are written side by side; the batch goes on until each has its end, or ``limit`` tokens (B, limit).
    Raises ValueError for a limit below 1.
    """
    _check_least(limit, "limit")
    source = np.asarray(source)
    target = np.full((len(source), 1), begin)
    ended = np.zeros(len(source), bool)
    with model.evaluating():
        memory = model.encode(source, source_allow)
        while target.shape[1] <= limit and not ended.all():
            logits = model.decode(target, memory, source_allow).detach().numpy()[:, -1]  # (B, T, V) -> (B, V)
            chosen = logits.argmax(axis=-1)
            target = np.column_stack([target, chosen])
            ended |= chosen == end
    return [_before(row[1:].tolist(), end) for row in target]


@dataclass(frozen=True)
class Hypothesis:
    """One way to write the target: its ``ids`` without begin and end, the log-probability of all, in nats, and more.

    ``length`` counts the tokens that were chosen, the end included; ``ended`` is False where the limit came first.
    """

    ids: tuple
    log_probability: float
    length: int
    ended: bool

    def score(self, normalised):
        """What is compared: the log-probability, or ``normalised`` its mean over the chosen tokens."""
        return self.log_probability / max(self.length, 1) if normalised else self.log_probability


def beam_search(model, source, begin, end, limit, width=4, normalised=True):
    """The ``width`` best hypotheses for one source (S,), best first: a list of Hypothesis.

    At each step every unfinished one is continued by every token, and of these and the finished ones the ``width``
    best stay. Each token makes a log-probability smaller, so plain sums favour short answers; ``normalised`` compares
    the mean per token. Width 1 is greedy. A beam is no proof: the best answer may begin with a token that was dropped.
    Raises ValueError for a width or a limit below 1, or several sources.
    """
    _check_least(width, "width")
    _check_least(limit, "limit")
    source = np.asarray(source)
    if source.ndim != 1:
        raise ValueError(f"one source at a time, ids of shape (S,): these have shape {source.shape}")
    best = [Hypothesis((), 0.0, 0, False)]
    with model.evaluating():
        for _ in range(limit):
            running = [h for h in best if not h.ended]
            if not running:
                break
            target = np.array([(begin, *h.ids) for h in running])
            memory = model.encode(np.repeat(source[None], len(running), axis=0))  # the same for all of them
            logits = model.decode(target, memory).detach().numpy()[:, -1].astype(np.float64)
            found = [h for h in best if h.ended]
            for h, row in zip(running, _log_softmax(logits), strict=True):
                for token in np.argsort(-row, kind="stable")[:width].tolist():  # more than width cannot stay
                    ids = h.ids if token == end else (*h.ids, token)
                    found.append(Hypothesis(ids, h.log_probability + row[token], h.length + 1, token == end))
            best = sorted(found, key=lambda h: -h.score(normalised))[:width]
    return best


def _log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _before(ids, end):
    return ids[: ids.index(end)] if end in ids else ids


def _check_least(value, name):
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
