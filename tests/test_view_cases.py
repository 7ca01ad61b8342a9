"""Views given what users really pass: attention of other libraries, tokens without ink, scripts without a font."""

import io
import json
import warnings

import numpy as np
import pytest
import torch
import traitlets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from course_lib import numpy_track
from course_lib.training import load_checkpoint
from course_lib.views import AttentionLab, attention_view, figure, plot_bars, plot_lines, style
from course_lib.views.labels import drawn, visible


def rows(*shape):
    weights = np.random.default_rng(0).random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------ heads that are off


def test_off_cannot_be_changed_behind_the_views_back():
    lab = AttentionLab(load_checkpoint("market-gpt"), "Ming bought apples , not")
    lab.off = [[0, 1]]  # as a page sends it
    assert lab.off == ((0, 1),)
    with pytest.raises(TypeError):
        lab.off[0][1] = 0
    with pytest.raises(AttributeError):
        lab.off.append([1, 0])
    before = lab.probabilities
    lab.switch(1, 0)
    assert lab.off == ((0, 1), (1, 0)) and lab.probabilities != before
    lab.switch(1, 0, on=True)
    assert lab.off == ((0, 1),) and lab.probabilities == before
    lab.switch(0, 1)
    assert lab.off == () and lab.probabilities == lab.trained
    lab.switch(0, 0, on=True)  # it is on
    assert lab.off == ()
    with pytest.raises(traitlets.TraitError, match=r"\(2, 0\) is not a \(layer, head\)"):
        lab.switch(2, 0)


def test_what_is_not_a_pair_of_numbers_is_no_head():
    lab = AttentionLab(load_checkpoint("market-gpt"), "Ming bought apples , not")
    for same in ({(0, 1)}, np.array([[0, 1], [0, 1]]), (pair for pair in [(0, 1)])):
        lab.off = same
        assert lab.off == ((0, 1),)
    for wrong in ((0, 1), [(0, 1.5)], 3, None, ["01"], [(0, 2)], [(-1, 0)], [(0, 0, 0)], [()]):
        with pytest.raises(traitlets.TraitError, match="layer, head"):
            lab.off = wrong


def test_what_is_shown_cannot_be_written():
    lab = AttentionLab(load_checkpoint("market-gpt"), "Ming bought apples , not")
    view = attention_view([[1.0, 0.0], [0.5, 0.5]], ["a", "b"], allow=np.tri(2, dtype=bool))
    for array in (view.weights, view.allow, lab.weights, lab.allow):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    for shown in (view, lab):
        assert isinstance(shown.keys_shown, tuple) and isinstance(shown.queries_shown, tuple)
    for probabilities in (lab.probabilities, lab.trained):
        with pytest.raises(TypeError):
            probabilities["apples"] = 1.0


# ------------------------------------------------------------------ attention as other libraries give it

W = rows(3, 2, 4, 4)  # layers, heads
GIVEN = {
    "a tuple of (1, H, T, T)": tuple(torch.tensor(layer[None]) for layer in W),
    "with gradients": [torch.tensor(layer[None], requires_grad=True) for layer in W],
    "a list of (H, T, T)": list(W),
    "bfloat16": [torch.tensor(layer[None], dtype=torch.bfloat16) for layer in W],
    "tensors of the NumPy track": [numpy_track.Parameter(layer) for layer in W],
    "stacked (L, 1, H, T, T)": W[:, None],
    "a batch of one (1, L, H, T, T)": torch.tensor(W[None]),
}


@pytest.mark.filterwarnings("ignore:.*rows do not sum to 1")  # bfloat16 rounds
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_layers_may_come_one_by_one(given):
    view = attention_view(given, list("abcd"))
    assert view.weights.shape == W.shape and np.allclose(view.weights, W, atol=4e-3)


def test_layers_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"different shapes, \(2, 4, 4\), \(3, 4, 4\)"):
        attention_view([rows(2, 4, 4), rows(3, 4, 4)], list("abcd"))
    with pytest.raises(ValueError, match=r"\(3, 2, 2, 4, 4\).*choose one sentence.*layer\[:1\] for layer in weights"):
        attention_view([rows(2, 2, 4, 4)] * 3, list("abcd"))


def test_cross_attention_queries_keys_and_masks_too():
    q, k = np.random.default_rng(1).normal(size=(2, 3, 2, 4, 5)).astype(np.float32)
    e = np.exp(q @ k.swapaxes(-1, -2) / 5**0.5) * np.tri(4)
    weights = e / e.sum(-1, keepdims=True)
    per_layer = [[torch.tensor(layer[None], requires_grad=True) for layer in array] for array in (weights, q, k)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = attention_view(
            per_layer[0],
            list("abcd"),
            allow=[torch.tensor(row) for row in np.tri(4, dtype=bool)],
            queries=per_layer[1],
            keys=tuple(per_layer[2]),
        )
    assert np.frombuffer(view.content["stages"]["q"], "<f4").tobytes() == q.tobytes()
    cross = attention_view(
        tuple(torch.tensor(layer[None, :, :3], requires_grad=True) for layer in W),
        list("abcd"),
        query_tokens=list("xyz"),
    )
    np.testing.assert_array_equal(cross.weights, W[:, :, :3])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((None, None), r"weights\[0\] is None.*eager"),
        ([W[0], None], r"weights\[1\] is None"),
        (None, "weights is None"),
        (
            tuple(np.stack([layer, layer]) for layer in W),
            r"\(3, 2, 2, 4, 4\) hold several sentences.*\[layer\[:1\]",
        ),
        ([np.stack([W[0]] * 2)], r"\(1, 2, 2, 4, 4\) hold several sentences"),
        (np.stack([W, W]), "hold several sentences"),
        ((W[0], W[1][..., :3]), r"different shapes, \(2, 4, 4\), \(2, 4, 3\)"),
        (((W[0],), (W[0], W[1])), r"different shapes, \(1, 2, 4, 4\), \(2, 2, 4, 4\)"),
        ({0: W}, "weights are a dict, not numbers"),
        (iter(W), "not numbers"),
        ("abcd", "dtype <U4: expected real numbers"),
        (W > 0, "dtype bool"),
        (W + 1j, "complex"),
        ([], r"shape \(0,\)"),
        (W[None, None], r"\(1, 1, 3, 2, 4, 4\): expected"),
    ],
)
def test_everything_else_is_refused_with_a_sentence(weights, words):
    with pytest.raises(ValueError, match=words):
        attention_view(weights, list("abcd"))


# ------------------------------------------------------------------ tokens that cannot be seen


UNSEEN = {
    "\u0301": "◌\u0301",
    "\u093f": "◌\u093f",
    "\u20dd": "◌\u20dd",  # an enclosing circle
    " \u0308": "␣◌\u0308",
    "\u0301\u0308": "◌\u0301\u0308",
    "\u0301a": "◌\u0301a",
    "": "∅",
    "e\u0301": "e\u0301",  # sits on its letter
    "\u200b": "\\u200b",
    "a\u200e": "a\\u200e",
    "\u202e": "\\u202e",
    "\ufe0f": "\\ufe0f",
    "\U000e0100": "\\ue0100",
    "\u034f": "\\u034f",
    "\u3164": "\\u3164",  # a Hangul filler, which is a letter
    "\u2800": "\\u2800",
    "\u180b": "\\u180b",
    "\u00ad": "\\u00ad",
    "\ud83d": "\\ud83d",
    "\U0001f469\u200d\U0001f4bb": "\U0001f469\\u200d\U0001f4bb",
    "1\ufe0f\u20e3": "1\\ufe0f◌\u20e3",
    "\ue000": "\\ue000",
    "\x00": "\\u0000",
    "\u2028": "\\u2028",
}


@pytest.mark.parametrize(("token", "shown"), UNSEEN.items(), ids=ascii)
def test_tokens_that_cannot_be_seen_are_shown_in_every_view(token, shown):
    assert visible(token) == shown
    tokens, weights = [token, "b"], [[1.0, 0.0], [0.25, 0.75]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = attention_view(weights, tokens, title=f"One {token}", query=0)
        assert view.content["keys"] == [shown, "b"]
        assert f"“{shown}”" in view.reading() and f"“{shown}”" in view.static_text()
        data, metadata = view._repr_mimebundle_()
        view.to_html().encode()
        json.dumps([data["text/plain"], metadata, view.content["title"]], ensure_ascii=False).encode()
        still = drawn(token)
        assert [label.get_text() for label in view._picture.ax.get_yticklabels()] == [still, "b"]
        assert all(style.can_draw(c) for c in still) and still.strip() and "◌U+" not in still
        attention_view([weights] * 2, tokens).static_png()
        plot_bars(tokens, [1, 2], alt=f"Bars {token}", title=token, xlabel=token, ylabel=token)


# ------------------------------------------------------------------ still pictures


def words(fig):
    return [text.get_text() for text in fig.findobj(Text)]


def saved(fig):
    """The words of a figure as it was saved; no warning may come."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        style.png_bytes(fig)
    return words(fig)


def test_characters_without_a_font_are_named_wherever_they_stand():
    """Not as equal empty boxes, in titles, axis names, legends, tick labels and what a learner writes into a figure."""
    gone = "\U0010fffd"  # no font has it
    fig = style.plot_figure(4, 3)
    with style.rules():
        ax = fig.subplots()
        ax.plot([1, 2], label=f"a{gone}")
        ax.set(xlabel=f"b{gone}", ylabel=f"c{gone}", title=f"d{gone}")
        ax.set_xticks([0], [f"e{gone}"])
        ax.legend()
        ax.text(0, 1, f"f{gone}")
    found = saved(fig)
    assert {f"{letter}U+10FFFD" for letter in "abcdef"} <= set(found)
    assert drawn(gone) in ("U+10FFFD", "\\u10fffd")


def test_public_figures_name_them_too(monkeypatch):
    seen = []
    monkeypatch.setattr("course_lib.views.figures.show", lambda fig, alt: seen.extend(saved(fig)))
    plot_bars(["你", "好"], [1, 2], alt="two bars", title="你", xlabel="好")
    plot_lines({"你": [1, 2], "好": [2, 1]}, alt="two lines", ylabel="你")
    with figure(alt="mine") as ax:
        ax.set_title("好")
    expected = {"你", "好"} if style.can_draw("你") else {"U+4F60", "U+597D"}
    assert expected <= set(seen) and (style.can_draw("你") or not {"你", "好"} & set(seen))


@pytest.mark.parametrize("tokens", [["a"], ["a", "b"], list("abcdefgh")], ids=len)
def test_no_axis_name_is_cut(tokens):
    n = len(tokens)
    view = attention_view(np.full((n, n), 1 / n), tokens)
    view.static_png()
    picture = view._picture
    renderer = FigureCanvasAgg(picture.fig).get_renderer()
    box = picture.fig.bbox
    for text in picture.ax.texts:
        if text.get_text():
            inside = text.get_window_extent(renderer)
            assert box.x0 <= inside.x0 and inside.x1 <= box.x1, text
            assert box.y0 <= inside.y0 and inside.y1 <= box.y1, text
    assert any(text.get_text().startswith("query") for text in picture.ax.texts)


@pytest.mark.parametrize("allow", [None, np.tril(np.ones((4, 4), bool))], ids=["no mask", "mask"])
def test_several_heads_name_their_axes(allow, monkeypatch):
    figs = []
    monkeypatch.setattr(style, "png_bytes", lambda fig, **options: figs.append(fig) or io.BytesIO().getvalue())
    weights = W if allow is None else W * allow / (W * allow).sum(axis=-1, keepdims=True)
    attention_view(weights, list("abcd"), allow=allow).static_png()
    assert "rows: queries · columns: keys" in words(figs[-1])


LONG = "A title that is much too long for the width of so small a picture, by any measure and in any font"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (1, 1, 2, 2), (1, 3, 2, 2), (2, 2, 1, 1), (1, 1, 2, 9), (3, 4, 30, 30)]
)
@pytest.mark.parametrize("token", ["a", "WWWWWWWWWWWWWW", "你好你好"])
def test_every_still_names_its_axes_and_cuts_nothing_off(shape, masked, token, monkeypatch):
    seen = {}
    save = style.png_bytes

    def spy(fig, *more, **keywords):
        png = save(fig, *more, **keywords)
        for ax in fig.axes:
            for text in (*ax.texts, *(ax.axison * (ax.get_xticklabels() + ax.get_yticklabels()))):
                if text.get_text():
                    seen[text.get_text()] = text.get_window_extent()
        seen["card"] = fig.bbox
        return png

    monkeypatch.setattr(style, "png_bytes", spy)
    allow = np.tri(*shape[-2:], dtype=bool)
    weights = np.broadcast_to(allow / allow.sum(-1, keepdims=True), shape)
    queries, keys = ([token] * n for n in shape[-2:])
    attention_view(weights, keys, query_tokens=queries, allow=allow if masked else None, title=LONG).static_png()
    card = seen.pop("card")
    for text, box in seen.items():
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= card.x1 and box.y1 <= card.y1, (
            text,
            box.extents,
            card.extents,
        )
    names = " ".join(seen)
    assert ("queries" in names and "keys" in names) or ("query" in names and "key:" in names)
