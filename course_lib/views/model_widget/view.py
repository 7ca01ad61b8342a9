"""``ModelView``, the widget on the kernel's side: it runs the model, packs what it did, and the browser draws."""

import copy
from functools import lru_cache
from types import MappingProxyType

import anywidget
import numpy as np
import traitlets

from ...inference.inside import look_inside
from ...inference.sampling import next_probabilities
from ..attention_widget import assets, codec
from ..attention_widget.page import page_of
from ..attention_widget.view import LONGEST_SENT
from ..labels import quoted_short, short, visible
from ..style import png_text
from ..typed import read_text
from .plan import plan_of
from .still import still_png

LONGEST_READ = 64  # tokens
STOPPED = 3  # tokens that are named where the model might stop
FOLLOWING = 8  # next tokens
STRONGEST = 8  # hidden units of an MLP
HOTTEST = 2.0  # temperature, in steps of 0.1
EVERYWHERE = 500_000_000  # multiplications that the lens may cost for all positions at once; else it looks at one
RECORDED = 750_000  # bytes of recorded texts in a page


class ModelView(anywidget.AnyWidget):
    """A whole GPT at work on the sentence ``text``: its stream after every part, and what would come next there.

    ``reader``: what ``load_checkpoint`` returns, or anything with a ``model`` (a GPT of either track) and its
    ``tokenizer``. Traits, which a cell can set and read: ``text``; ``focus``, the token that is followed through the
    model, None for the last; ``part``, the part that is open, a name such as "blocks.0.attention", "" for none;
    ``head``, of the attention that is open; ``temperature``, from 0 to 2 in steps of 0.1; ``off``, a tuple of what is
    switched off, names of ``course_lib.inference.inside.switches`` (``switch`` adds and removes one).
    ``probabilities`` {token: probability} says what comes next, ``trained`` the same without any switch. ``step()``
    draws the next token and appends it, ``back()`` takes the last one away. Of a long text the last 64 tokens are read.

    Raises ValueError for a text without a known token, TypeError for a model that is not a GPT or for an option that
    does not exist, TraitError for a choice outside its range.

    ModelView(load_checkpoint("shakespeare-gpt"), "ROMEO:")
    """

    _esm = assets.script("model")
    _css = assets.style("model")

    text = traitlets.Unicode().tag(sync=True)
    focus = traitlets.Int(None, allow_none=True).tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    off = traitlets.TraitType(()).tag(sync=True)  # a tuple, not changed in place
    plan = traitlets.Dict().tag(sync=True)  # what the model is made of; it does not change
    content = traitlets.Dict().tag(sync=True)  # what the model did with the text, in one trait: it changes together
    choices = ("text", "focus", "part", "head", "temperature", "off")
    tokens = ()

    def __init__(self, reader, text, *, seed=0, **choices):
        for name in choices:
            if name not in self.choices:
                raise TypeError(f"{name} is not an option of the view: choose from {', '.join(self.choices)}")
        self.reader, self._shown, self._rng = reader, None, np.random.default_rng(seed)
        self._look = lru_cache(maxsize=64)(self._look_anew)
        ids, pieces, note = self._read(text)
        if not pieces:
            raise ValueError(f"text {text!r} contains no token the model knows: {note}")
        self._look(tuple(ids), (), (len(ids) - 1,))  # refuses what is not a GPT before a widget exists
        super().__init__()
        self.plan = plan_of(reader.model)
        self.text = text
        for name in (name for name in choices if name != "focus"):
            setattr(self, name, choices[name])
        self._follow()
        self.focus = choices.get("focus")
        self.observe(self._follow, ["text", "off", "focus"])
        self.on_msg(self._answer)

    # ---------------------------------------------------------------- choices
    @traitlets.validate("temperature")
    def _warm_enough(self, proposal):
        if not 0 <= proposal.value <= HOTTEST:
            raise traitlets.TraitError(f"temperature must be from 0 to {HOTTEST:g}, got {proposal.value}")
        return round(proposal.value, 1)

    @traitlets.validate("off")
    def _switches_exist(self, proposal):
        known = self.plan["switches"]
        if isinstance(proposal.value, str) or any(name not in known for name in proposal.value):
            raise traitlets.TraitError(
                f"off is {proposal.value!r}: expected names such as {known[0]!r} and {known[1]!r}"
            )
        return tuple(name for name in known if name in proposal.value)

    @traitlets.validate("part")
    def _part_exists(self, proposal):
        names = [part["name"] for part in self.plan["parts"]]
        if proposal.value and proposal.value not in names:
            raise traitlets.TraitError(f"part {proposal.value!r} does not exist: choose from {', '.join(names)}")
        return proposal.value

    @traitlets.validate("head", "focus")
    def _within(self, proposal):
        name, value = proposal.trait.name, proposal.value
        count = self.plan["heads"] if name == "head" else len(self.tokens)
        if value is not None and not 0 <= value < count:
            raise traitlets.TraitError(f"{name} {value} does not exist: there are {count}, numbered from 0")
        return value

    def switch(self, name, on=None):
        """Switch a part off, or on again if it is off; ``on`` says which. Raises TraitError for an unknown name."""
        others = tuple(other for other in self.off if other != name)
        on = name in self.off if on is None else on
        self.off = others if on else (*others, name)

    # ---------------------------------------------------------------- text
    def _read(self, text, longest=None):
        most = min(LONGEST_READ, self.reader.model.context_length) if longest is None else longest
        return read_text(self.reader.tokenizer, text, most)

    def _extended(self, count=None, ids=()):
        """Return the text of its first ``count`` tokens (all when None) and of further ``ids``."""
        known = self._read(self.text, 10**9)[0][:count]
        return self.reader.tokenizer.decode([*known.tolist(), *ids])

    def step(self):
        """Draw the next token with the present temperature and switches, append it to the text, and return it."""
        chances = self._chances(self.off, self.temperature)
        token = int(self._rng.choice(len(chances), p=chances))
        self.text = self._extended(ids=[token])
        return self._name(token)

    def back(self):
        """Take the last token away, unless it is the only one."""
        if len(self._read(self.text, 10**9)[0]) > 1:
            self.text = self._extended(-1)

    def _name(self, token):
        names = getattr(self.reader.tokenizer, "vocabulary", None)
        return self.reader.tokenizer.decode([token]) if names is None else names[token]

    # ---------------------------------------------------------------- the model
    def _look_anew(self, ids, off, positions):
        return look_inside(self.reader.model, ids, off, None if positions is None else list(positions))

    def _positions(self, focus):
        """Return None where the lens can afford to look at all positions, else (focus,)."""
        of = self.reader.model.config
        cost = (2 * of.layers + 1) * LONGEST_READ * of.width * of.vocab_size
        return None if cost <= EVERYWHERE else (focus,)

    def _chances(self, off, temperature=1.0):
        ids = self._read(self.text)[0]
        inside = self._look(tuple(ids), tuple(off), self._positions(len(ids) - 1))
        return next_probabilities(inside.trace.logits[-1], temperature)

    @property
    def probabilities(self):
        """The probability of each next token, with the temperature and the switches."""
        return MappingProxyType(
            {self._name(n): float(p) for n, p in enumerate(self._chances(self.off, self.temperature))}
        )

    @property
    def trained(self):
        """The probability of each next token, without any switch and with temperature 1."""
        return MappingProxyType({self._name(n): float(p) for n, p in enumerate(self._chances(()))})

    def lens(self, count=STOPPED):
        """Return {place: [(token, probability)]}: what would come next if the model stopped there, most likely first.

        Next is what follows the token in focus. The last place is the prediction of the model, at temperature 1.
        """
        at = self._focused()
        inside = self._inside(at)
        chances = _softmax(inside.lens[:, list(inside.positions).index(at)])
        return {
            place: [(self._name(n), float(row[n])) for n in np.argsort(-row, kind="stable")[:count]]
            for place, row in zip(inside.places, chances)
        }

    def _focused(self):
        return len(self.tokens) - 1 if self.focus is None else self.focus

    def _inside(self, focus, off=None, ids=None):
        ids = self._ids if ids is None else ids
        return self._look(tuple(ids), self.off if off is None else off, self._positions(focus))

    def _follow(self, _change=None):
        """Show what the model makes of the text now, unless it is already shown."""
        ids, pieces, note = self._read(self.text)
        version = self.content.get("version", 0) + 1
        if not pieces:
            self.content = {**self.content, "version": version, "note": note}
            self._shown = None
            return
        focus = len(pieces) - 1 if self.focus is None else min(self.focus, len(pieces) - 1)
        state = self.text, self.off, self._positions(focus)
        if state == self._shown:
            return
        self._shown, self._ids, self.tokens = state, ids, tuple(pieces)
        with self.hold_sync():
            if self.focus is not None and self.focus >= len(pieces):
                self.focus = None
            self.content = {"version": version, "note": note, **self._content(ids, pieces, focus)}

    def _content(self, ids, tokens, focus):
        """Return what the browser needs of one run."""
        inside = self._inside(focus, None, ids)
        logits = inside.lens[-1]  # (P, V), the model's own
        best = np.argsort(-logits, axis=-1, kind="stable")[:, :FOLLOWING]  # (P, 8)
        chances = _softmax(inside.lens)  # (S, P, V)
        stopped = np.argsort(-chances, axis=-1, kind="stable")[..., :STOPPED]  # (S, P, 3)
        as_trained = _softmax(self._inside(focus, (), ids).lens[-1]) if self.off else chances[-1]
        return {
            "tokens": [_label(token) for token in tokens],
            "attention": self._attention(inside.trace, tokens),
            "places": list(inside.places),
            "stream": _in_steps(inside.stream),
            "hidden": _strongest(inside.hidden),
            "at": inside.positions.tolist(),
            "names": {int(n): _label(self._name(n)) for n in np.unique(np.append(best, stopped))},
            "stopped": {"ids": _ints(stopped), "chances": _floats(np.take_along_axis(chances, stopped, -1))},
            "next": {
                "ids": _ints(best),
                "logits": _floats(np.take_along_axis(logits, best, -1)),
                "trained": _floats(np.take_along_axis(as_trained, best, -1)),
                "sums": _floats(_log_sums(logits)),
            },
        }

    @staticmethod
    def _attention(trace, tokens):
        """Return the content of an attention view of this run, or None for a model without blocks."""
        weights = np.asarray(trace.weights, np.float32)
        if not len(weights):
            return None
        allow = None if trace.allow is None else np.broadcast_to(trace.allow, weights.shape)
        q, k = (np.ascontiguousarray(a, np.float32) for a in (trace.queries, trace.keys))
        dot = q @ k.swapaxes(-1, -2)  # (L, H, T, D) @ (L, H, D, T) -> (L, H, T, T)
        scaled = trace.scale * (dot if allow is None else dot[allow])
        limits = {name: [float(a.min()), float(a.max())] for name, a in (("dot", dot), ("scaled", scaled))}
        named = [_label(token) for token in tokens]
        return {
            "version": 1, "shape": list(weights.shape), "queries": named, "keys": named, "same": True, "title": "",
            "proper": True, "limits": [0, 1], "outside": [False, False], "code": [0, 1],
            "mask": codec.pack_mask(allow), "notes": [],
            "layers": [codec.pack_layer(w, None if allow is None else allow[n], (0, 1)) for n, w in enumerate(weights)],
            "stages": {
                "q": q.tobytes(), "k": k.tobytes(), "size": q.shape[3], "scale": trace.scale, "limits": limits,
            },
        }  # fmt: skip

    def _answer(self, _widget, message, _buffers):
        """Do what a button in the browser asks for."""
        kind = message.get("kind")
        if kind == "step":
            self.step()
        elif kind == "back":
            self.back()
        elif kind == "append":  # one of the tokens that may follow the one in focus
            dropped = len(self.tokens) - 1 - min(message["after"], len(self.tokens) - 1)
            self.text = self._extended(-dropped or None, [message["token"]])

    # ---------------------------------------------------------------- without a kernel
    def static_png(self):
        """Return (PNG bytes, shown width in pixels) of the still picture."""
        at = self._focused()
        text = self.reader.tokenizer.decode(self._ids[: at + 1])
        return still_png(self._inside(at), self.plan, text, at, self._name)

    def static_text(self):
        """Return the picture in words; two decimals are the same on every machine."""
        at, found = self._focused(), self.lens(1)
        named = ((place.replace("blocks.", "block ").replace(".", " "), best[0]) for place, best in found.items())
        steps = ", ".join(f"{place} {quoted_short(token)} {p:.2f}" for place, (token, p) in named)
        return (
            f"A GPT of {self.plan['layers']} blocks reads {quoted_short(self.text)}. The picture follows token {at}, "
            f"{quoted_short(self.tokens[at])}. What would come next if the model stopped after each part: {steps}. "
            "The last is the prediction of the model."
        )

    def to_html(self, path=None, steps=8):
        """Return the view as a page that needs neither kernel nor network; write it to ``path`` if one is given.

        The text is recorded, and up to ``steps`` tokens that the model draws next, as far as a megabyte reaches.
        """
        rng, recorded, size = copy.deepcopy(self._rng), [], 0
        whole = self._read(self.text, 10**9)[0].tolist() or self._ids.tolist()
        while len(recorded) <= steps:
            text = self.reader.tokenizer.decode(whole) if recorded else self.text
            ids, tokens, note = self._read(text) if recorded else (self._ids, self.tokens, self.content["note"])
            content = self._content(ids, tokens, len(ids) - 1 if recorded else self._focused())
            if content["attention"] is not None:
                content["attention"]["stages"] = None
            size += sum(map(len, _bytes_in(content)))
            if recorded and size > RECORDED:
                break
            recorded.append({"text": text, "content": {"version": len(recorded) + 1, "note": note, **content}})
            logits = self._inside(len(ids) - 1, None, ids).trace.logits[-1]
            whole.append(int(rng.choice(len(logits), p=next_probabilities(logits, self.temperature))))
        state = {name: getattr(self, name) for name in self.choices} | {"plan": self.plan, "recorded": recorded}
        state["content"], recorded[0]["content"] = recorded[0]["content"], None  # once is enough
        return page_of(state, f"A GPT reads {quoted_short(self.text)}", path, "model", self._still_image())

    def _still_image(self):
        png, width = self.static_png()
        return {"src": f"data:image/png;base64,{png_text(png)}", "alt": self.static_text(), "width": width}

    def _repr_mimebundle_(self, **keywords):
        data = super()._repr_mimebundle_(**keywords) or {"text/plain": repr(self)}
        data = dict(data[0] if isinstance(data, tuple) else data)
        png, width = self.static_png()
        data["image/png"] = png_text(png)
        return data, {"image/png": {"alt": self.static_text(), "width": width}}

    def __repr__(self):
        if not self.tokens:
            return "ModelView(not ready)"
        of = self.plan
        size = f"{of['layers']} blocks of {of['heads']} heads, {len(self.tokens)} tokens"
        return f"ModelView({size}: {quoted_short(self.text)})"


@lru_cache(maxsize=4096)
def _label(token):
    """Return a token as the browser gets it."""
    return short(visible(token), LONGEST_SENT)


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _log_sums(logits):
    """Return the logarithm of the sum of exp(logits / temperature): (P, V) -> (20, P), for temperatures 0.1 to 2.0.

    With it the browser knows the exact probability of a token at any of these temperatures.
    """
    most = logits.max(axis=-1, keepdims=True)
    heat = np.arange(1, round(10 * HOTTEST) + 1)[:, None, None] / 10
    return np.log(np.exp((logits - most) / heat).sum(axis=-1)) + most[:, 0] / heat[..., 0]


def _strongest(hidden):
    """Return the hidden units of each MLP that are largest in magnitude, as bytes, or None for a model without MLPs.

    Their ids and values are (L, T, 8); ``active`` (L, T) counts all units above 0.
    """
    if not hidden:
        return None
    h = np.stack(hidden)  # (L, T, d_ff)
    most = min(STRONGEST, h.shape[-1])
    ids = np.argpartition(-np.abs(h), most - 1, axis=-1)[..., :most]
    values = np.take_along_axis(h, ids, -1)
    order = np.argsort(-np.abs(values), axis=-1, kind="stable")
    ids, values = (np.take_along_axis(a, order, -1) for a in (ids, values))
    return {"ids": _ints(ids), "values": _floats(values), "active": _ints((h > 0).sum(axis=-1)), "most": most}


def _in_steps(array):
    """Pack an array as 16-bit steps: {"step": their size, "words": bytes}; off by at most half a step."""
    step = float(np.abs(array).max()) / 32_767 or 1.0
    return {"step": step, "words": np.rint(array / step).astype("<i2").tobytes()}


def _ints(array):
    return np.ascontiguousarray(array, "<i4").tobytes()


def _floats(array):
    return np.ascontiguousarray(array, "<f4").tobytes()


def _bytes_in(thing):
    """Yield every bytes object inside dicts and lists."""
    if isinstance(thing, bytes):
        yield thing
    elif isinstance(thing, (dict, list)):
        for item in thing.values() if isinstance(thing, dict) else thing:
            yield from _bytes_in(item)


model_view = ModelView  # as notebooks write it, beside attention_view
