"""``sampler_view``: choose prompt, temperature and top-k, see the next-token probabilities, let the model write."""

import time

import ipywidgets as widgets
import numpy as np
import traitlets

from ..inference.sampling import next_logits, next_probabilities
from ..inference.streaming import growing_text, stopped_note
from . import style
from .bars import before_and_after
from .cells import number
from .labels import drawn, escaped, quoted, quoted_short

BARS = 12  # tokens with a bar of their own
NAMED = 5  # tokens in the alternative text
HOTTEST, LONGEST = 2.0, 500  # ends of the sliders
EVERY_SECONDS = 0.05  # between two updates of the text while it is being written
# ipywidgets gives the handle of a slider no name, and JupyterLab takes keys on a handle or a button as commands (x cuts
# the cell). The picture fixes both once it has loaded.
_NAME_SLIDERS = (
    "const view = this.closest('.sampler-view');"
    "view?.querySelectorAll('.noUi-handle').forEach(handle =&gt; handle.setAttribute('aria-label',"
    " handle.closest('.widget-slider').querySelector('.widget-label').textContent));"
    "view?.querySelectorAll('.noUi-handle, button').forEach(control =&gt;"
    " control.setAttribute('data-lm-suppress-shortcuts', 'true'))"
)


class SamplerView(widgets.VBox):
    """Bars of a model's next-token probabilities, before and after temperature and top-k, and a button to write text.

    ``model``: of either track. ``temperature``: 0 (greedy) to 2. ``top_k``: 1 to V; None means V. ``max_new_tokens``:
    for the button "Write", up to 500. These three, ``prompt`` and ``seed`` are traits, which a cell can set;
    ``write()`` does what the button does, and ``text`` is the text written last. A prompt that cannot be encoded is
    reported on the page. Raises ValueError if the model and the tokenizer differ in V, TraitError for a value beyond
    its slider.
    """

    prompt = traitlets.Unicode()
    temperature = traitlets.Float(1.0, min=0.0, max=HOTTEST)
    top_k = traitlets.Int(1, min=1)
    max_new_tokens = traitlets.Int(100, min=1, max=LONGEST)
    seed = traitlets.Int(0, min=0, max=2**31 - 1)
    text = traitlets.Unicode()

    def __init__(self, model, tokenizer, prompt="", *, temperature=1.0, top_k=None, max_new_tokens=100, seed=0):
        if len(tokenizer) != model.vocab_size:
            raise ValueError(f"the tokenizer has {len(tokenizer)} tokens, but the model {model.vocab_size}")
        self.model, self.tokenizer, self._logits, self._trouble = model, tokenizer, None, ""
        self._seen_prompt, self._written = None, None  # written: (prompt, setting, note) of the text on the page
        size = len(tokenizer)
        wide, narrow = {"width": "22em"}, {"description_width": "6.5em"}
        self._controls = {
            "prompt": widgets.Textarea(description="Prompt", rows=3, layout=wide, style=narrow),
            "temperature": widgets.FloatSlider(
                description="Temperature", min=0, max=HOTTEST, step=0.05, layout=wide, style=narrow
            ),
            "top_k": widgets.IntSlider(description="Top-k", min=1, max=size, value=size, layout=wide, style=narrow),
            "max_new_tokens": widgets.IntSlider(description="Length", min=1, max=LONGEST, layout=wide, style=narrow),
            "seed": widgets.BoundedIntText(
                description="Seed", min=0, max=2**31 - 1, layout={"width": "14em"}, style=narrow
            ),
        }
        self._button = widgets.Button(description="Write", tooltip="Write the text that follows")
        self._image, self._line, self._page = widgets.HTML(), widgets.HTML(), widgets.HTML()
        super().__init__(
            [
                widgets.HBox(
                    [widgets.VBox([*self._controls.values(), self._button]), self._image],
                    layout={"flex_flow": "row wrap"},
                ),
                self._line,
                self._page,
            ]
        )
        self.add_class("sampler-view")
        self.set_trait("prompt", prompt)
        self.temperature, self.max_new_tokens, self.seed = temperature, max_new_tokens, seed
        self.top_k = size if top_k is None else top_k
        for name, control in self._controls.items():
            traitlets.link((self, name), (control, "value"))
        self.observe(self._draw, ["prompt", "temperature", "top_k"])
        self._button.on_click(lambda _button: self.write())
        self._draw()

    @traitlets.validate("top_k")
    def _within(self, proposal):
        if proposal.value > len(self.tokenizer):
            raise traitlets.TraitError(f"top_k {proposal.value}, but there are {len(self.tokenizer)} tokens")
        return proposal.value

    # ---------------------------------------------------------------- the probabilities
    def probabilities(self):
        """Return (before, after), two arrays (V,): as the model gives them, and at the chosen temperature and top-k."""
        return next_probabilities(self._logits), next_probabilities(self._logits, self.temperature, self.top_k)

    def _look(self):
        """Ask the model about a new prompt; an error becomes a sentence on the page."""
        if self.prompt == self._seen_prompt:
            return
        self._seen_prompt, self._logits, self._trouble = self.prompt, None, ""
        try:
            ids = self.tokenizer.encode(self.prompt).tolist()
            if not ids:
                raise ValueError(
                    f"the prompt is empty: a model needs at least one {self.tokenizer.unit} to continue from"
                )
            logits = next_logits(self.model, ids)
            next_probabilities(logits)
            self._logits = logits
        except ValueError as error:
            self._trouble = _sentence(error)

    def _draw(self, _change=None):
        self._look()
        self._button.disabled = self._logits is None
        self._image.value = "" if self._logits is None else self._image_html()
        said = self.reading()
        if self._written:
            before, now = self._written[:2], (self.prompt, self._setting())
            other = f"Written at {before[1]} after {quoted_short(before[0])}: press Write for what is set now."
            self._show_text(self._written[2] if before == now else other)
        self._line.value = f'<div role="status" aria-live="polite" style="line-height: 1.5">{escaped(said)}</div>'

    def _image_html(self):
        png, width = self._bars(level=1)
        return (
            f'<img alt="{escaped(self.alternative_text())}" onload="{_NAME_SLIDERS}" style="max-width: 100%" '
            f'width="{width}" src="data:image/png;base64,{style.png_text(png)}">'
        )

    def _bars(self, level=9):
        """Return (PNG bytes, shown width in pixels)."""
        before, after = self.probabilities()
        shown = self._most_likely(before, BARS if len(before) > BARS + 1 else len(before))
        names = [drawn(token) for token in self.tokenizer.tokens(shown)]
        rows = [values[shown].tolist() for values in (before, after)]
        if len(shown) < len(before):
            names.append(f"the other {len(before) - len(shown)} together")
            for row, values in zip(rows, (before, after), strict=True):
                row.append(np.delete(values, shown).sum())
        fig = before_and_after(names, *rows, legend=("as the model gives them", self._setting()))
        return style.png_bytes(fig, level), style.shown_width(fig)

    @staticmethod
    def _most_likely(values, count):
        return np.argsort(-values, kind="stable")[:count].tolist()

    def _setting(self):
        """Return the chosen temperature and top-k in words."""
        heat = "temperature 0 (greedy)" if self.temperature == 0 else f"temperature {self.temperature:g}"
        return heat if self.top_k == len(self.tokenizer) else f"{heat}, top-k {self.top_k}"

    def reading(self):
        """Return the line under the bars: what is wrong with the prompt, or what happens to the likeliest token."""
        if self._trouble:
            return self._trouble
        before, after = self.probabilities()
        best = int(before.argmax())
        left = int((after > 0).sum())
        token = self.tokenizer.tokens([best])[0]
        said = (
            f"Likeliest next: {quoted(token)}, {number(before[best])} as the model gives it, {number(after[best])} "
            f"at {self._setting()}; {left} of {len(before)} tokens are possible."
        )
        seen, context = len(self.tokenizer.encode(self.prompt)), self.model.context_length
        if seen > context:
            said += f" The model sees the last {context} of the {seen} tokens."
        return said

    def alternative_text(self):
        """Return the bars in words, with two decimals, which are the same on every machine."""
        if self._trouble:
            return self._trouble
        before, after = self.probabilities()
        named = self._most_likely(before, min(NAMED, len(before)))
        parts = [
            f"{quoted_short(token)} {number(before[n])}, then {number(after[n])}"
            for n, token in zip(named, self.tokenizer.tokens(named), strict=True)
        ]
        return (
            f"Bars of the next-token probabilities after {quoted_short(self.prompt)}, as the model gives them and "
            f"then at {self._setting()}, the {len(named)} likeliest of {len(before)} tokens: " + "; ".join(parts) + "."
        )

    # ---------------------------------------------------------------- the text
    def write(self):
        """Let the model write ``max_new_tokens`` after the prompt, shown as they come; interrupting ends it early."""
        if self._logits is None:
            return
        self._button.disabled, self.text, due, note, written = True, self.prompt, 0.0, "", 0
        self._written = self.prompt, self._setting(), ""
        try:
            top_k = None if self.top_k == len(self.tokenizer) else self.top_k
            arguments = self.model, self.tokenizer, self.prompt, self.max_new_tokens, self.temperature, top_k, self.seed
            for written, self.text in enumerate(growing_text(*arguments), 1):  # noqa: B007
                if time.perf_counter() >= due:
                    self._show_text(busy=True)
                    due = time.perf_counter() + EVERY_SECONDS
        except KeyboardInterrupt:
            note = stopped_note(written, self.max_new_tokens)
        except ValueError as error:
            note = _sentence(error)
        finally:
            self._button.disabled, self._written = False, (*self._written[:2], note)
            self._show_text(note)

    def _show_text(self, note="", busy=False):
        live = 'aria-busy="true"' if busy else 'role="status" aria-live="polite"'
        prompt = self._written[0]
        given, new = escaped(prompt), escaped(self.text[len(prompt) :])
        note = f"\n<em>{escaped(note)}</em>" if note else ""
        self._page.value = (
            f'<pre class="sampler-text" aria-label="The text" {live} style="white-space: pre-wrap; line-height: 1.4">'
            f"<strong>{given}</strong>{new}{note}</pre>"
        )

    # ---------------------------------------------------------------- what a saved notebook keeps
    def __repr__(self):
        if not hasattr(self, "_page"):
            return "SamplerView(not ready)"
        return f"SamplerView(prompt {quoted_short(self.prompt)}, {self._setting()})"

    def _repr_mimebundle_(self, **keywords):
        data = super()._repr_mimebundle_(**keywords) or {"text/plain": repr(self)}
        data = data[0] if isinstance(data, tuple) else data
        if self._logits is None:
            return data, {}
        png, width = self._bars()
        data["image/png"] = style.png_text(png)
        return data, {"image/png": {"alt": self.alternative_text(), "width": width}}


def _sentence(error):
    text = str(error)
    return text[:1].upper() + text[1:] + "."


sampler_view = SamplerView  # the name that notebooks use
