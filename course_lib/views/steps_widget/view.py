"""``StepsView``: drawings one after another, with buttons, a slider and arrow keys. The browser needs no kernel."""

import anywidget
import traitlets

from ..attention_widget import assets
from ..attention_widget.page import page_of
from ..raster import png_of
from ..style import png_text


class StepsView(anywidget.AnyWidget):
    """Drawings to step through, such as ``sketches.draw_backward_steps`` makes; each one's ``alt`` is read aloud.

    ``label`` says what is counted. ``step``, a trait, counts from 0 and cannot be set beyond the last. Where no kernel
    runs, a notebook shows the last drawing. Raises ValueError without any drawing.

    StepsView(sketches.draw_backward_steps(loss, {"x": x}))
    """

    _esm = assets.script("steps")
    _css = assets.style("steps")

    pictures = traitlets.List(traitlets.Unicode()).tag(sync=True)  # SVG
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)  # what each shows
    label = traitlets.Unicode().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, drawings, label="Step", step=0):
        self.drawings = tuple(drawings)
        if not self.drawings:
            raise ValueError("there is no drawing to show")
        super().__init__()
        self.pictures, self.words = [d.svg for d in self.drawings], [d.alt for d in self.drawings]
        self.label, self.step = label, step

    @traitlets.validate("step")
    def _one_of_them(self, proposal):
        if not 0 <= proposal.value < len(self.pictures):
            raise traitlets.TraitError(f"step must be from 0 to {len(self.pictures) - 1}, got {proposal.value}")
        return proposal.value

    def __repr__(self):
        return f"StepsView({len(self.words)} steps; the last: {self.words[-1]})"

    def _repr_mimebundle_(self, **keywords):
        data = super()._repr_mimebundle_(**keywords) or {}
        data, last = dict(data[0] if isinstance(data, tuple) else data), self.drawings[-1]
        data |= {"image/png": png_text(png_of(last)), "text/plain": repr(self)}
        return data, {"image/png": {"alt": last.alt, "width": last.width}}

    def to_html(self, path=None):
        """Return one page with all steps, without a kernel or a network; write it to ``path`` if one is given."""
        state = {"pictures": list(self.pictures), "words": list(self.words), "label": self.label, "step": self.step}
        return page_of(state, self.words[-1], path, view="steps")
