"""Greedy and beam decoding: on a table whose best answers can be listed, and on the Transformer of both tracks."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
from track_tools import array, both_tracks

from course_lib.common.config import TransformerConfig
from course_lib.experiments.numbers import NUMBERS_RECIPE
from course_lib.inference import beam_search, greedy_ids
from course_lib.text.numbers import BEGIN, END

BEGINS, ENDS, A, B_ = 0, 1, 2, 3  # a vocabulary of four tokens


class Answer(np.ndarray):
    """An array that answers like a tensor of either track."""

    def detach(self):
        return self

    def numpy(self):
        return np.asarray(self)


class Table:
    """A model that looks at the last token and the source's first id: ``probabilities[source][last]`` (V,)."""

    def __init__(self, probabilities):
        with np.errstate(divide="ignore"):
            self.logits = np.log(np.asarray(probabilities, float)) + 3  # logits know no zero point
        self.calls = 0

    @contextmanager
    def evaluating(self):
        yield self

    def encode(self, source, source_allow=None):
        return np.asarray(source)[:, 0]

    def decode(self, target, memory, source_allow=None):
        self.calls += 1
        return self.logits[memory[:, None], target].view(Answer)  # (B, T, V)

    def log_probability(self, source, ids):
        places = itertools.pairwise([BEGINS, *ids])
        return sum(self.logits[source, last, token] - 3 for last, token in places)


# After begin A is likelier (0.6), but after A everything is open, and after B_ the end is nearly certain.
TRAP = [[0, 0, 0.6, 0.4], [0, 1, 0, 0], [0, 0.4, 0.3, 0.3], [0, 0.9, 0.05, 0.05]]
# After begin the end comes at once or A does; A leads to B_ and the end without a doubt.
SHORT = [[0, 0.5, 0.48, 0.02], [0, 1, 0, 0], [0, 0.02, 0.0, 0.98], [0, 0.98, 0.01, 0.01]]


def test_greedy_on_a_table():
    model = Table([TRAP, SHORT])
    assert greedy_ids(model, [[0], [1]], BEGINS, ENDS, 5) == [[A], []]
    assert model.calls == 2  # one more step for the first, none after both have ended
    endless = Table([[[0, 0, 1, 0]] * 4])
    assert greedy_ids(endless, [[0]], BEGINS, ENDS, 3) == [[A, A, A]]
    assert endless.calls == 3


def test_beam_finds_what_greedy_misses():
    model = Table([TRAP])
    best = beam_search(model, [0], BEGINS, ENDS, 5, num_beams=2, normalised=False)
    assert best[0].ids == (B_,) and best[0].ended and best[0].length == 2
    assert best[0].log_probability == pytest.approx(np.log(0.4 * 0.9))
    assert best[1].ids == (A,) and best[1].log_probability == pytest.approx(np.log(0.6 * 0.4))
    assert beam_search(model, [0], BEGINS, ENDS, 5, num_beams=1)[0].ids == (A,)


def test_length_normalisation():
    """The sum prefers to say nothing, the mean per token the longer answer."""
    model = Table([SHORT])
    plain = beam_search(model, [0], BEGINS, ENDS, 5, num_beams=3, normalised=False)
    assert plain[0].ids == () and plain[0].log_probability == pytest.approx(np.log(0.5))
    mean = beam_search(model, [0], BEGINS, ENDS, 5, num_beams=3)
    assert mean[0].ids == (A, B_) and mean[0].length == 3
    assert mean[0].score(True) == pytest.approx(np.log(0.48 * 0.98 * 0.98) / 3)
    assert mean[0].score(False) == mean[0].log_probability
    for found, normalised in ((plain, False), (mean, True)):
        scores = [h.score(normalised) for h in found]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_wide_beam_is_exhaustive(normalised):
    limit = 4
    rng = np.random.default_rng(3)
    model = Table([rng.dirichlet(np.ones(4), size=4)])
    answers = [  # every way to end within the limit, or to fill it
        ids
        for n in range(1, limit + 1)
        for ids in itertools.product(range(4), repeat=n)
        if ENDS not in ids[:-1] and (ids[-1] == ENDS or n == limit)
    ]
    scores = [model.log_probability(0, ids) / (len(ids) if normalised else 1) for ids in answers]
    best = beam_search(model, [0], BEGINS, ENDS, limit, num_beams=len(answers), normalised=normalised)
    assert len(best) == len(answers)
    np.testing.assert_allclose([h.score(normalised) for h in best], sorted(scores, reverse=True), atol=1e-12)
    top = answers[int(np.argmax(scores))]
    assert best[0].ids == tuple(token for token in top if token != ENDS)


def test_requests_that_make_no_sense():
    model = Table([TRAP])
    with pytest.raises(ValueError, match="max_length must be a whole number, at least 1, not 0"):
        greedy_ids(model, [[0]], BEGINS, ENDS, 0)
    with pytest.raises(ValueError, match="max_length must be a whole number, at least 1, not -1"):
        beam_search(model, [0], BEGINS, ENDS, -1)
    with pytest.raises(ValueError, match="num_beams must be a whole number, at least 1, not 0"):
        beam_search(model, [0], BEGINS, ENDS, 5, num_beams=0)
    with pytest.raises(ValueError, match=r"one source at a time.*\(1, 1\)"):
        beam_search(model, [[0]], BEGINS, ENDS, 5)


# ------------------------------------------------------------------ the Transformer


@both_tracks
def test_on_the_transformer(track):
    model = NUMBERS_RECIPE.model(track.name, seed=0)
    rng = np.random.default_rng(0)
    model.load_state_dict({n: p + 0.3 * rng.standard_normal(p.shape) for n, p in model.state_dict().items()})
    source = np.array([[1, 2, 3, 4], [5, 6, 0, 0], [9, 1, 1, 0]])
    before = model.dropout.rng.bit_generator.state
    together = greedy_ids(model, source, BEGIN, END, 6, source != 0)
    for row, ids in zip(source, together, strict=True):
        assert greedy_ids(model, row[None][:, row != 0], BEGIN, END, 6) == [ids]  # company and padding change nothing
        assert beam_search(model, row[row != 0], BEGIN, END, 6, num_beams=1)[0].ids == tuple(ids)
        given = np.array([[BEGIN, *ids]])
        chosen = array(model(row[None][:, row != 0], given)).argmax(axis=-1)[0].tolist()
        assert chosen[: len(ids)] == ids  # what teacher forcing says of the same words
        for h in beam_search(model, row[row != 0], BEGIN, END, 6, num_beams=3):
            assert h.ended == (h.length == len(h.ids) + 1) and (h.ended or h.length == 6)
    assert model.training and model.dropout.rng.bit_generator.state == before


@both_tracks
def test_decoding_does_not_drop_out(track):
    module = NUMBERS_RECIPE.model(track.name).__class__
    config = TransformerConfig(
        11, 33, width=8, heads=2, layers=1, d_ff=8, dropout=0.5, context_length=8, init="uniform"
    )
    model, source = module(config, seed=0), np.array([[1, 2, 3]])
    assert greedy_ids(model, source, BEGIN, END, 6) == greedy_ids(model, source, BEGIN, END, 6)
    assert beam_search(model, source[0], BEGIN, END, 6) == beam_search(model, source[0], BEGIN, END, 6)
    assert model.training
