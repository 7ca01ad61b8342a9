"""``AttentionLab``: type a sentence and watch a trained model read it; switch parts of it off and see what changes."""

import operator
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import traitlets

from ...inference import interventions
from ...inference.sampling import next_probabilities
from ..labels import visible
from ..typed import read_text
from .view import AttentionView

SHOWN = 5  # next tokens


class AttentionLab(AttentionView):
    """An AttentionView of the sentence ``text``, with switches and with the probabilities of the next token beside it.

    ``reader``: what ``load_checkpoint`` returns, or anything with a ``model`` (a GPT of either track) and its
    ``tokenizer``. Further traits: ``causal``, the causal mask; ``scaled``, the scale 1/√D of the scores; ``off``, the
    pairs (layer, head) that are switched off (``switch`` adds and removes one); ``temperature``, which divides the
    logits of the next token (0 takes the largest). ``probabilities`` {token: probability} says what comes next,
    ``trained`` the same without any switch. Tokens that the tokenizer does not know are left out, and the view says so;
    of a long text only the end is read.

    Raises ValueError for a text without a known token, TraitError for a switch outside its range.

    lab = AttentionLab(load_checkpoint("market-gpt"), "Ming bought apples")
    """

    text = traitlets.Unicode().tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    off = traitlets.TraitType(()).tag(sync=True)  # a tuple, not changed in place
    choices = (*AttentionView.choices, "text", "causal", "scaled", "temperature", "off")

    def __init__(self, reader, text, **choices):
        self.reader = reader
        self._run = lru_cache(maxsize=256)(self._run_anew)
        self._shown = None
        pieces, note = self._pieces(text)
        if not pieces:
            raise ValueError(f"text {text!r} contains no token the model knows: {note}")
        trace = self._run(tuple(pieces), True, True, ())
        title = "The attention laboratory"
        super().__init__(trace.weights, pieces, allow=trace.allow, title=title, text=text, **choices)
        self._follow()
        self.observe(self._follow, ["text", "causal", "scaled", "temperature", "off"])

    @traitlets.validate("temperature")
    def _warm_enough(self, proposal):
        if not 0 <= proposal.value < np.inf:
            raise traitlets.TraitError(f"temperature must be 0 or a positive number, got {proposal.value}")
        return proposal.value

    @traitlets.validate("off")
    def _heads_exist(self, proposal):
        layers, heads = self.reader.model.config.layers, self.reader.model.config.heads
        try:
            pairs = [tuple(map(operator.index, pair)) for pair in proposal.value]
        except TypeError:
            raise traitlets.TraitError(
                f"off is {proposal.value!r}: expected pairs (layer, head), such as [(0, 1)]"
            ) from None
        for pair in pairs:
            if len(pair) != 2 or not (0 <= pair[0] < layers and 0 <= pair[1] < heads):
                raise traitlets.TraitError(
                    f"off: {pair} is not a (layer, head) of {layers} layers with {heads} heads each"
                )
        return tuple(sorted(set(pairs)))

    def switch(self, layer, head, on=None):
        """Switch a head off, or on again if it is off; ``on`` says which of the two. Raises TraitError for no head."""
        others = tuple(pair for pair in self.off if pair != (layer, head))
        on = (layer, head) in self.off if on is None else on
        self.off = others if on else (*others, (layer, head))

    def _pieces(self, text):
        """Return (the tokens to read, what the view says about the others)."""
        return read_text(self.reader.tokenizer, text, self.reader.model.context_length)[1:]

    def _run_anew(self, pieces, causal, scaled, off):
        ids = [self.reader.tokenizer.vocabulary.index(piece) for piece in pieces]
        return interventions.run(self.reader.model, np.array(ids), causal, scaled, off)

    def _follow(self, _change=None):
        """Show what the model makes of the sentence now, unless it is already shown."""
        state = self.text, self.causal, self.scaled, self.temperature, self.off
        if state == self._shown:
            return
        self._shown = state
        pieces, note = self._pieces(self.text)
        if not pieces:
            self.content = {
                **self.content, "version": self.content["version"] + 1, "lab": {**self.content["lab"], "note": note},
            }  # fmt: skip
            return
        trace = self._run(tuple(pieces), self.causal, self.scaled, self.off)
        trained = next_probabilities(self._run(tuple(pieces), True, True, ()).logits[-1])
        now = next_probabilities(trace.logits[-1], self.temperature)
        vocabulary = self.reader.tokenizer.vocabulary
        self.probabilities = MappingProxyType(dict(zip(vocabulary, now.tolist())))  # to be read, not written
        self.trained = MappingProxyType(dict(zip(vocabulary, trained.tolist())))
        best = np.argsort(-now, kind="stable")[:SHOWN]
        following = [
            {
                "token": visible(vocabulary[n]),
                "now": float(now[n]),
                "trained": float(trained[n]),
                "longer": self.reader.tokenizer.join([*pieces, vocabulary[n]]),
            }
            for n in best
        ]
        # Who looks from the last token follows the text: "What comes next" is about the last one, too.
        last = self.query is not None and self.query == len(self.queries_shown) - 1
        with self.hold_sync():
            self._load(
                trace.weights,
                pieces,
                None,
                trace.allow,
                (0, 1),
                trace.queries,
                trace.keys,
                trace.scale,
                off=[list(pair) for pair in self.off],
                lab={"note": note, "next": following},
            )
            if last:
                self.query = len(pieces) - 1
