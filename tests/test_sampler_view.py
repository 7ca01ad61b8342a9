"""The sampler view, tested on its data: the probabilities, the words on the page, the generated text."""

import re

import numpy as np
import pytest
import traitlets
from test_generation import TOKENIZER, V, gpt
from track_tools import NUMPY, assert_close, both_tracks

from course_lib.inference import generate, next_logits, next_probabilities
from course_lib.text import CharTokenizer
from course_lib.views import SamplerView, bars, sampler, sampler_view


@pytest.fixture
def drawn_bars(monkeypatch):
    """What was drawn: (names, before, after) of each picture in turn."""
    seen, real = [], bars.before_and_after

    def watched(names, before, after, **options):
        seen.append((names, before, after))
        return real(names, before, after, **options)

    monkeypatch.setattr(sampler, "before_and_after", watched)
    return seen


@both_tracks
def test_bars_show_the_probabilities_before_and_after(track, drawn_bars):
    model = gpt(track)
    view = sampler_view(model, TOKENIZER, "hello", temperature=0.5, top_k=3)
    logits = next_logits(model, TOKENIZER.encode("hello").tolist())
    for name, value in ((None, None), ("temperature", 2.0), ("top_k", V), ("temperature", 0.0), ("prompt", "world")):
        if name:
            setattr(view, name, value)
        if name == "prompt":
            logits = next_logits(model, TOKENIZER.encode("world").tolist())
        names, before, after = drawn_bars[-1]
        order = np.argsort(-logits, kind="stable")[:12]
        assert names[:12] == [
            {"\n": "↵", " ": "␣"}.get(TOKENIZER.vocabulary[i], TOKENIZER.vocabulary[i]) for i in order
        ]
        expected = next_probabilities(logits), next_probabilities(logits, view.temperature, view.top_k)
        for drawn, values in zip((before, after), expected, strict=True):
            assert_close(drawn[:12], values[order], 1e-12)
            assert_close(sum(drawn), 1.0, 1e-12)
        assert names[12] == "the other 5 together"


def test_the_figure_draws_what_it_is_given():
    fig = bars.before_and_after(["a", "$b^$"], [0.75, 0.25], [1.0, 0.0], legend=("one", "two"))
    (ax,) = fig.axes
    widths = [[patch.get_width() for patch in container] for container in ax.containers]
    assert widths == [[0.75, 0.25], [1.0, 0.0]]
    assert [text.get_text() for text in ax.texts] == ["1.00", "0"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "$b^$"] and ax.yaxis_inverted()
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["one", "two"]


def test_a_slider_moves_the_picture_and_the_words():
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello")
    before = view._image.value
    view._controls["temperature"].value = 0.5
    assert view.temperature == 0.5 and view._image.value != before and "temperature 0.5" in view._image.value
    view._controls["top_k"].value = 2
    assert "2 of 17 tokens are possible" in view._line.value and "top-k 2" in view._line.value
    view._controls["temperature"].value = 0
    assert "1 of 17 tokens are possible" in view._line.value and "greedy" in view._line.value


@both_tracks
def test_the_button_writes_what_generate_gives(track):
    model = gpt(track, dropout=0.5)
    view = sampler_view(model, TOKENIZER, "hello", temperature=0.8, top_k=4, max_new_tokens=20, seed=3)
    view._button.click()
    expected = generate(model, TOKENIZER, "hello", 20, 0.8, 4, seed=3)
    assert view.text == expected and f"<strong>hello</strong>{expected[5:]}</pre>" in view._page.value
    view.top_k, view.seed = V, 4
    view.write()
    assert view.text == generate(model, TOKENIZER, "hello", 20, 0.8, seed=4)
    assert not view._button.disabled and all(module.training for module in model.modules())


def test_a_text_of_an_earlier_setting_says_so():
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello", temperature=0.5, max_new_tokens=5)
    view.temperature = 0.75
    assert view._page.value == "", "nothing is written yet"
    view.write()
    fresh = view._page.value
    for name, value, back in (("temperature", 0.25, 0.75), ("top_k", 2, V), ("prompt", "he", "hello")):
        setattr(view, name, value)
        assert "<em>Written at temperature 0.75 after “hello”: press Write" in view._page.value, name
        assert view._page.value.count("<strong>hello</strong>") == 1
        setattr(view, name, back)
        assert view._page.value == fresh
    view.prompt = ""
    assert "Written at" in view._page.value


def test_bars_of_two_settings_can_be_compared():
    limits = {bars.before_and_after("ab", [a, 1 - a], [0.5, 0.5], "xy").axes[0].get_xlim() for a in (0.02, 0.5, 1.0)}
    assert len(limits) == 1


def test_the_text_appears_as_it_is_written(monkeypatch):
    monkeypatch.setattr(sampler, "EVERY_SECONDS", 0)
    view, seen = sampler_view(gpt(NUMPY), TOKENIZER, "hello", max_new_tokens=5), []
    view._page.observe(lambda change: seen.append(change["new"]), "value")
    view.write()
    assert len(seen) == 6 and all('aria-busy="true"' in page for page in seen[:5])
    assert 'role="status"' in seen[5] and "aria-busy" not in seen[5]


def test_the_stop_button_keeps_the_text(monkeypatch):
    model = gpt(NUMPY)
    view, forward, calls = sampler_view(model, TOKENIZER, "hello", max_new_tokens=9), model.forward, []

    def stopped(*arguments, **options):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return forward(*arguments, **options)

    monkeypatch.setattr(model, "forward", stopped)
    view.write()
    assert len(view.text) == 8 and "<em>(stopped after 3 of 9 tokens)</em>" in view._page.value
    assert not view._button.disabled


@pytest.mark.parametrize(("prompt", "said"), [("hello <X>", "Unknown characters.*&#x27;&lt;&#x27;"), ("", "is empty")])
def test_a_prompt_that_cannot_be_read_gets_a_sentence(prompt, said):
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello")
    view._controls["prompt"].value = prompt
    assert view._button.disabled and view._image.value == "" and view._logits is None
    assert re.search(said, view._line.value) and "<X>" not in view._line.value
    view.write()
    assert view.text == ""
    view.prompt = "hello"
    assert not view._button.disabled and "<img" in view._image.value and "Likeliest next" in view._line.value


def test_a_broken_model_gets_a_sentence():
    model = gpt(NUMPY)
    model.head.bias.data[:] = np.nan
    view = sampler_view(model, TOKENIZER, "hello")
    assert "weights of this model are broken" in view._line.value and view._button.disabled


def test_the_reading_says_when_the_prompt_is_cut():
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello wo")
    assert "The model sees" not in view.reading()
    view.prompt = "hello wor"
    assert "The model sees the last 8 of the 9 tokens." in view.reading()


def test_what_is_shown_cannot_be_read_as_markup():
    tokenizer = CharTokenizer("<b>&\n$\"'")
    view = sampler_view(NUMPY.models.Bigram(len(tokenizer)), tokenizer, "<b>", max_new_tokens=50)
    view.write()
    for page in (view._page.value, view._image.value, view._line.value):
        assert "<b>" not in page.replace("<strong>", "")
    assert "&lt;b&gt;" in view._page.value


def test_values_beyond_the_sliders_are_refused():
    for options in ({"temperature": -0.1}, {"temperature": 2.5}, {"top_k": 0}, {"top_k": V + 1}, {"max_new_tokens": 0}):
        with pytest.raises(traitlets.TraitError, match=r"-0\.1|2\.5|\b0\b|18"):
            sampler_view(gpt(NUMPY), TOKENIZER, "hello", **options)
    with pytest.raises(ValueError, match="4 tokens.*17"):
        sampler_view(gpt(NUMPY), CharTokenizer("abcd"), "a")


def test_writing_leaves_the_model_unchanged():
    model = gpt(NUMPY, dropout=0.5)
    state, rng = model.state_dict(), model.dropout.rng.bit_generator.state
    sampler_view(model, TOKENIZER, "hello", max_new_tokens=3).write()
    assert all((model.state_dict()[name] == array).all() for name, array in state.items())
    assert model.dropout.rng.bit_generator.state == rng


def test_a_saved_notebook_keeps_a_picture_and_words():
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello ", temperature=0.5, top_k=3)
    data, meta = view._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"} == set(data)
    assert data["text/plain"] == "SamplerView(prompt “hello␣”, temperature 0.5, top-k 3)"
    assert meta["image/png"]["alt"] == view.alternative_text() and "after “hello␣”" in view.alternative_text()
    assert view.alternative_text().count(", then ") == 5
    other, _ = sampler_view(gpt(NUMPY), TOKENIZER, "hello ", temperature=0.5, top_k=3)._repr_mimebundle_()
    assert other["image/png"] == data["image/png"]  # equal choices, equal bytes
    view.prompt = ""
    assert "image/png" not in view._repr_mimebundle_()[0]
    assert repr(SamplerView.__new__(SamplerView)) == "SamplerView(not ready)"


def test_every_control_has_a_name():
    view = sampler_view(gpt(NUMPY), TOKENIZER, "hello")
    names = [control.description for control in view._controls.values()]
    assert names == ["Prompt", "Temperature", "Top-k", "Length", "Seed"] and view._button.description == "Write"
