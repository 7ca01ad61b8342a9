"""`AttentionLab`: type a sentence and watch a trained model read it; switch parts of it off, and see what moves."""

import re
from functools import lru_cache

import numpy as np
import traitlets

from ... import interventions
from ...generation import next_probabilities
from ..labels import quoted, visible
from .view import AttentionView

SHOWN = 8  # next tokens


class AttentionLab(AttentionView):
    """An AttentionView on the sentence in `text`, with switches, and the next token's probabilities beside it.

    reader: what `load_checkpoint` returns, or anything with a `model` (a GPT of either track) and its `tokenizer`.
    causal: the causal mask. scaled: the scale 1/√D of the scores. off: pairs [layer, head] that are switched off.
    temperature: divides the logits of the next token; 0 takes the largest. Each is a trait, as are those of
    AttentionView. `probabilities` {token: probability} has what comes next, `trained` the same without any switch.
    What the tokenizer does not know is left out, and the view says so; of a long text the last tokens are read.

    lab = AttentionLab(load_checkpoint("market-gpt"), "Ming bought apples")
    """

    text = traitlets.Unicode().tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    off = traitlets.List().tag(sync=True)
    choices = (*AttentionView.choices, "text", "causal", "scaled", "temperature", "off")

    def __init__(self, reader, text, *, title="The attention laboratory", off=(), temperature=1.0, **choices):
        self.reader = reader
        self._run = lru_cache(maxsize=256)(self._run_anew)
        self._shown = None
        own = {name: choices.pop(name) for name in ("causal", "scaled") if name in choices}
        pieces, note = self._pieces(text)
        if not pieces:
            raise ValueError(f"text {text!r} holds no token that the model knows: {note}")
        trace = self._run(tuple(pieces), True, True, ())
        super().__init__(trace.weights, pieces, allow=trace.allow, title=title, **choices)
        self.text, self.temperature, self.off = text, temperature, [list(pair) for pair in off]
        for name, value in own.items():
            setattr(self, name, value)
        self._follow()
        self.observe(self._follow, ["text", "causal", "scaled", "temperature", "off"])

    @traitlets.validate("temperature")
    def _warm_enough(self, proposal):
        if not 0 <= proposal.value < np.inf:
            raise traitlets.TraitError(f"temperature must be 0 or a positive number, not {proposal.value}")
        return proposal.value

    @traitlets.validate("off")
    def _heads_exist(self, proposal):
        config, pairs = self.reader.model.config, [[int(n) for n in pair] for pair in proposal.value]
        for pair in pairs:
            if len(pair) != 2 or not (0 <= pair[0] < config.layers and 0 <= pair[1] < config.heads):
                raise traitlets.TraitError(
                    f"off: {pair} is no pair [layer, head] of {config.layers} layers with {config.heads} heads"
                )
        return pairs

    def _pieces(self, text):
        """(the tokens to read, what the view says of the others)."""
        tokenizer, context = self.reader.tokenizer, self.reader.model.context
        words = tokenizer.unit != "character"
        pieces = re.findall(r"\n|\w+|[^\w\s]", text) if words else list(text)
        known = set(tokenizer.vocabulary)
        strange = list(dict.fromkeys(p for p in pieces if p not in known))
        pieces = [p for p in pieces if p in known]
        notes = []
        if words and strange and text.endswith(strange[-1]):
            near = [w for w in tokenizer.vocabulary if w.startswith(strange[-1])]
            if near:  # a word that is still being typed
                notes.append(f"{quoted(strange.pop())} … {', '.join(near[:5])}?")
        if strange:
            names = ", ".join(map(quoted, strange[:5])) + (" …" if len(strange) > 5 else "")
            notes.append(f"left out, as the model does not know it: {names}")
        if len(pieces) > context:
            notes.append(f"only the last {context} of {len(pieces)} tokens are read")
        if not pieces:
            notes.append("type something that the model knows")
        return pieces[-context:], "; ".join(notes)

    def _run_anew(self, pieces, causal, scaled, off):
        ids = [self.reader.tokenizer.vocabulary.index(piece) for piece in pieces]
        return interventions.run(self.reader.model, np.array(ids), causal, scaled, off)

    def _follow(self, _change=None):
        """Show what the model makes of the sentence now; called after every change, and does nothing twice."""
        state = self.text, self.causal, self.scaled, self.temperature, tuple(map(tuple, self.off))
        if state == self._shown:
            return
        self._shown = state
        pieces, note = self._pieces(self.text)
        if not pieces:
            self.content = {
                **self.content, "version": self.content["version"] + 1, "lab": {**self.content["lab"], "note": note},
            }  # fmt: skip
            return
        trace = self._run(tuple(pieces), self.causal, self.scaled, state[4])
        trained = next_probabilities(self._run(tuple(pieces), True, True, ()).logits[-1])
        now = next_probabilities(trace.logits[-1], self.temperature)
        vocabulary = self.reader.tokenizer.vocabulary
        self.probabilities = dict(zip(vocabulary, now.tolist()))
        self.trained = dict(zip(vocabulary, trained.tolist()))
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
        self._load(
            trace.weights,
            pieces,
            None,
            trace.allow,
            (0, 1),
            trace.queries,
            trace.keys,
            trace.scale,
            off=[list(pair) for pair in state[4]],
            lab={"note": note, "next": following},
        )
