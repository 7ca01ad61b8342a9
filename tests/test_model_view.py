"""The model view on the kernel's side, and the look inside a model: what is recorded, refused, packed and shown."""

import io
import json
import types
from pathlib import Path

import numpy as np
import pytest
import traitlets
from PIL import Image

from course_lib import get_track, jupyter
from course_lib.common.config import FirstGPTConfig, GPTConfig
from course_lib.inference import interventions
from course_lib.inference.inside import look_inside, switches
from course_lib.text import CharTokenizer, WordTokenizer
from course_lib.training import load_checkpoint
from course_lib.views import ModelView, model_view
from course_lib.views.attention_widget import assets, page
from course_lib.views.model_widget.view import _bytes_in

TRACKS = ("numpy", "torch")
TEXT = "ROMEO: But soft, what light through yonder window breaks? It is"
KINDS = {
    "default": {},
    "post": {"norm": "post"},
    "no norm": {"norm": None},
    "no residual": {"residual": False, "norm": None},
    "no MLP": {"activation": "none"},
    "tied, gelu": {"tied": True, "activation": "gelu", "attention_bias": True},
    "today": {"positions": "rotary", "norm_layer": "rms_norm", "activation": "swiglu", "kv_heads": 2, "bias": False},
    "no blocks": {"layers": 0},
}
HOSTILE = ("<b>", "</script><img/src=x/onerror=alert(1)>", "$a^$", "\u200b", "🙂", "a", "b")


@pytest.fixture(scope="module", params=TRACKS)
def poet(request):
    return load_checkpoint("shakespeare-gpt", request.param)


@pytest.fixture(scope="module")
def view(poet):
    return ModelView(poet, TEXT)


@pytest.fixture
def fresh(view):
    view.text, view.off, view.temperature, view.focus, view.part = TEXT, (), 1.0, None, ""
    return view


def small(track="numpy", tokenizer=None, **settings):
    tokenizer = CharTokenizer("abcdefghij") if tokenizer is None else tokenizer
    model = get_track(track).GPT(GPTConfig(len(tokenizer), context_length=12, width=16, **settings), seed=1)
    return types.SimpleNamespace(model=model, tokenizer=tokenizer)


def softmax(logits):
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ---- the look inside ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("track", TRACKS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_place_of_the_lens_is_the_models_own_prediction(track, kind):
    model = small(track, **KINDS[kind]).model
    ids = np.arange(6)
    logits = np.asarray(model(ids[None])[0].detach())[0]
    inside = look_inside(model, ids)
    assert len(inside.places) == 1 + model.config.layers * (1 if kind == "no MLP" else 2) == len(inside.stream)
    np.testing.assert_allclose(inside.lens[-1], logits, atol=1e-5)
    np.testing.assert_allclose(inside.trace.logits, logits, atol=1e-5)
    only = look_inside(model, ids, positions=[4])
    np.testing.assert_allclose(only.lens[:, 0], inside.lens[:, 4], atol=1e-5)


def test_both_tracks_see_the_same():
    states = [small(track, activation="gelu").model for track in TRACKS]
    states[1].load_state_dict(states[0].state_dict())
    one, other = (look_inside(model, np.arange(5), off=["blocks.1.mlp", "norm"]) for model in states)
    for name in ("stream", "lens", "hidden"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-5)


def test_the_lens_uses_the_statistics_of_its_own_place(poet):
    ids = poet.tokenizer.encode(TEXT[:20])
    inside = look_inside(poet.model, ids)
    gain, bias = (np.asarray(p.detach()) for p in (poet.model.norm.weight, poet.model.norm.bias))
    weight, shift = (np.asarray(p.detach()) for p in (poet.model.head.weight, poet.model.head.bias))
    x = inside.stream[0].astype(np.float64)
    normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + poet.model.norm.eps)
    np.testing.assert_allclose(inside.lens[0], (normed * gain + bias) @ weight + shift, atol=1e-3)
    assert softmax(inside.lens[0]).max(axis=-1).mean() > 0.2, "early places are not uniform"


def test_the_stream_is_the_sum_of_what_is_added(poet):
    ids = poet.tokenizer.encode(TEXT[:20])
    with poet.model.evaluating():
        table = np.asarray(poet.model.token.weight.detach())[ids] + np.asarray(poet.model.position.detach())[:20]
    inside = look_inside(poet.model, ids)
    np.testing.assert_allclose(inside.stream[0], table, atol=1e-6)
    assert inside.places[:3] == ("embedding", "blocks.0.attention", "blocks.0.mlp")
    down = poet.model.blocks[0].mlp.layer.down
    added = inside.hidden[0] @ np.asarray(down.weight.detach()) + np.asarray(down.bias.detach())
    np.testing.assert_allclose(inside.stream[2] - inside.stream[1], added, atol=1e-4)


def test_what_is_off_is_off(poet):
    model, ids = poet.model, poet.tokenizer.encode(TEXT[:20])
    whole = look_inside(model, ids)
    no_mlp = look_inside(model, ids, ["blocks.1.mlp"])
    np.testing.assert_array_equal(no_mlp.stream[4], no_mlp.stream[3])
    np.testing.assert_array_equal(no_mlp.hidden[1], whole.hidden[1])
    heads = [f"blocks.0.attention.head.{h}" for h in range(4)]
    silent = look_inside(model, ids, heads)
    np.testing.assert_allclose(silent.stream[1], silent.stream[0], atol=1e-6)  # the poet's attention has no bias
    one = interventions.run(model, ids, off=[(0, 2)])
    np.testing.assert_allclose(look_inside(model, ids, heads[2:3]).lens[-1], one.logits, atol=1e-5)
    before = model.norm.weight.detach().numpy().copy()
    plain = look_inside(model, ids, ["norm"])
    np.testing.assert_array_equal(model.norm.weight.detach().numpy(), before)
    model.norm.weight.detach().numpy()[...] = 1
    model.norm.mark_changed([model.norm.weight])
    np.testing.assert_allclose(plain.lens, look_inside(model, ids).lens, atol=1e-4)
    model.norm.weight.detach().numpy()[...] = before
    model.norm.mark_changed([model.norm.weight])
    np.testing.assert_array_equal(look_inside(model, ids).lens, whole.lens)


def test_what_cannot_be_looked_into_is_refused():
    model = small().model
    with pytest.raises(ValueError, match=r"'blocks.9.mlp' cannot be switched off.*blocks.0.attention.head.0"):
        look_inside(model, [1], ["blocks.9.mlp"])
    first = get_track("numpy").FirstGPT(FirstGPTConfig(10))
    with pytest.raises(TypeError, match="not a FirstGPT"):
        look_inside(first, [1])
    with pytest.raises(TypeError, match="not a FirstGPT"):
        ModelView(types.SimpleNamespace(model=first, tokenizer=CharTokenizer("abcdefghij")), "abc")
    assert len(switches(model)) == 3 * (4 + 3) + 1


# ---- the view -------------------------------------------------------------------------------------------------------


def test_it_shows_what_the_model_does(fresh):
    reader = fresh.reader
    ids = reader.tokenizer.encode(TEXT)
    logits = np.asarray(reader.model(ids[None])[0].detach())[0, -1].astype(float)
    chances = softmax(logits)
    token = reader.tokenizer.vocabulary[int(chances.argmax())]
    assert fresh.probabilities[token] == pytest.approx(chances.max(), abs=1e-5)
    assert fresh.probabilities == fresh.trained and sum(fresh.trained.values()) == pytest.approx(1)
    lens = fresh.lens(2)
    assert list(lens) == fresh.content["places"] and lens["blocks.3.mlp"][0] == (
        token,
        pytest.approx(chances.max(), abs=1e-5),
    )
    fresh.temperature = 0
    assert max(fresh.probabilities.values()) == 1


def unpacked(view):
    """What the browser makes of the content."""
    c, S, T = view.content, len(view.content["places"]), len(view.content["tokens"])
    stream = np.frombuffer(c["stream"]["words"], "<i2").reshape(S, T, -1) * c["stream"]["step"]
    stopped = np.frombuffer(c["stopped"]["ids"], "<i4").reshape(S, len(c["at"]), -1)
    chances = np.frombuffer(c["stopped"]["chances"], "<f4").reshape(stopped.shape)
    following = np.frombuffer(c["next"]["ids"], "<i4").reshape(len(c["at"]), -1)
    logits = np.frombuffer(c["next"]["logits"], "<f4").reshape(following.shape)
    sums = np.frombuffer(c["next"]["sums"], "<f4").reshape(20, -1)
    return types.SimpleNamespace(
        stream=stream, stopped=stopped, chances=chances, ids=following, logits=logits, sums=sums
    )


def test_what_the_browser_gets_is_what_the_model_did(fresh):
    inside = look_inside(fresh.reader.model, fresh.reader.tokenizer.encode(TEXT))
    got = unpacked(fresh)
    np.testing.assert_allclose(got.stream, inside.stream, atol=np.abs(inside.stream).max() / 60_000)
    chances = softmax(inside.lens)
    np.testing.assert_allclose(got.chances, np.sort(chances)[..., :-4:-1], atol=1e-5)
    for heat in (0.1, 0.7, 1.0, 2.0):  # the exact probability at any temperature
        wanted = np.take_along_axis(softmax(inside.lens[-1].astype(float) / heat), got.ids, -1)
        np.testing.assert_allclose(
            np.exp(got.logits / heat - got.sums[round(heat * 10) - 1][:, None]), wanted, atol=1e-4
        )
    hidden = fresh.content["hidden"]
    units = np.frombuffer(hidden["ids"], "<i4").reshape(4, len(fresh.tokens), -1)
    values = np.frombuffer(hidden["values"], "<f4").reshape(units.shape)
    np.testing.assert_allclose(values[2, 5], inside.hidden[2][5][units[2, 5]], atol=1e-5)
    assert np.abs(values[2, 5, 0]) == pytest.approx(np.abs(inside.hidden[2][5]).max(), abs=1e-5)
    assert set(fresh.content["names"]) >= {int(n) for n in got.ids.flat}


def test_switches_change_the_prediction_and_come_back(fresh):
    before = dict(fresh.probabilities)
    fresh.switch("blocks.3.mlp")
    assert fresh.off == ("blocks.3.mlp",) and fresh.probabilities != before and fresh.trained == before
    fresh.switch("blocks.0.attention.head.1", on=False)
    assert fresh.off == ("blocks.0.attention.head.1", "blocks.3.mlp"), "in the order of the model"
    for name in fresh.off:
        fresh.switch(name)
    assert fresh.off == () and fresh.probabilities == before


def test_choices_that_do_not_exist_are_refused(fresh):
    wrong = [("temperature", 2.5, "from 0 to 2"), ("part", "blocks.7.mlp", "choose from token, position")]
    wrong += [("off", ("head 3",), "expected names such as 'blocks.0"), ("off", "norm", "expected")]
    for name, value, message in [*wrong, ("head", 4, "there are 4"), ("focus", 99, "numbered from 0")]:
        with pytest.raises(traitlets.TraitError, match=message):
            setattr(fresh, name, value)
    with pytest.raises(TypeError, match="colour is not an option"):
        ModelView(fresh.reader, TEXT, colour="red")
    with pytest.raises(ValueError, match="contains no token"):
        ModelView(fresh.reader, "你好")
    fresh.temperature = 0.7000001
    assert fresh.temperature == 0.7


def test_generation_steps_forth_and_back(fresh):
    fresh.text, fresh.temperature = "ROMEO", 0
    best = max(fresh.probabilities, key=fresh.probabilities.get)
    assert fresh.step() == best and fresh.text == "ROMEO" + best
    fresh.back()
    assert fresh.text == "ROMEO" and fresh.tokens[-1] == "O"
    fresh._answer(fresh, {"kind": "append", "token": fresh.reader.tokenizer.vocabulary.index("m"), "after": 1}, [])
    assert fresh.text == "ROm", "what may come after the token in focus goes on from there"
    fresh._answer(fresh, {"kind": "back"}, [])
    fresh._answer(fresh, {"kind": "back"}, [])
    fresh._answer(fresh, {"kind": "back"}, [])
    assert fresh.text == "R", "the last one stays"


def test_draws_are_the_same_for_a_seed(poet):
    texts = []
    for _ in range(2):
        view = ModelView(poet, "JULIET:", seed=3)
        for _ in range(5):
            view.step()
        texts.append(view.text)
    assert texts[0] == texts[1] and len(texts[0]) == 12


def test_the_focus_follows_the_text(fresh):
    fresh.text, fresh.focus = "ROMEO", 2
    fresh.text = "ROMEO:"
    assert fresh.focus == 2 and fresh.tokens[2] == "M"
    fresh.text = "RO"
    assert fresh.focus is None
    version = fresh.content["version"]
    fresh.text = "你"
    assert (
        fresh.content["version"] > version and "type something" in fresh.content["note"] and fresh.tokens == ("R", "O")
    )
    fresh.text = TEXT * 2
    assert len(fresh.tokens) == 64 and "only the last 64 of" in fresh.content["note"]
    assert fresh.content["tokens"][-1] == "s"


def test_words_and_models_without_mlp():
    view = model_view(load_checkpoint("market-gpt"), "Ming bought apples, not bananas, because they were fre")
    assert view.content["hidden"] is None and "fresh" in view.content["note"]
    assert view.content["places"] == ["embedding", "blocks.0.attention", "blocks.1.attention"]
    view._answer(
        view,
        {"kind": "append", "token": view.reader.tokenizer.vocabulary.index("fresh"), "after": len(view.tokens) - 1},
        [],
    )
    assert view.text.endswith("because they were fresh")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_gpt_is_shown(kind):
    view = ModelView(small(**KINDS[kind]), "abcde")
    names = [part["name"] for part in view.plan["parts"]]
    model = view.reader.model
    tied = model.head is None
    assert sum(part["count"] for part in view.plan["parts"]) == model.num_parameters(), "each parameter in one part"
    assert names[0] == "token" and names[-1] == "head" and ("position" in names) == (model.position is not None)
    assert [p["count"] for p in view.plan["parts"] if p["name"] == "head"] == [
        0 if tied else model.head.num_parameters()
    ]
    png, width = view.static_png()
    image = Image.open(io.BytesIO(png))
    assert image.width == pytest.approx(1.5 * width, abs=2)
    page.embedded(view.content)  # as JSON, where NaN and infinity are errors
    assert page.embedded(view.plan)


def test_each_part_names_the_code_that_computes_it(fresh):
    for part in fresh.plan["parts"]:
        file, line, function = part["where"]
        text = (Path(jupyter.__file__).parents[1] / file).read_text(encoding="utf-8").splitlines()
        assert text[line - 1].strip().startswith("def forward(") and function.endswith(".forward")
    track = type(fresh.reader.model).__module__.split(".")[1]
    where = {part["name"]: part["where"] for part in fresh.plan["parts"]}
    assert where["blocks.0.mlp"][0] == f"course_lib/{track}/modules.py" and where["norm"][2] == "LayerNorm.forward"


def test_a_large_vocabulary_is_looked_at_in_one_place(monkeypatch):
    from course_lib.views.model_widget import view as module

    monkeypatch.setattr(module, "EVERYWHERE", 10)
    view = ModelView(small(), "abcde")
    assert view.content["at"] == [4]
    view.focus = 2
    assert view.content["at"] == [2] and len(view.lens()) == 7
    inside = look_inside(view.reader.model, np.arange(5))
    np.testing.assert_allclose(unpacked(view).chances[:, 0], np.sort(softmax(inside.lens[:, 2]))[:, :-4:-1], atol=1e-5)
    assert view.probabilities["a"] == pytest.approx(float(softmax(inside.lens[-1, 4])[0]), abs=1e-5)


def test_byte_pairs_need_no_vocabulary():
    class Bytes:
        def __len__(self):
            return 10

        def encode(self, text):
            return np.array([ord(c) % 10 for c in text])

        def decode(self, ids):
            return "".join(chr(100 + n) for n in ids)

    reader = small()
    view = ModelView(types.SimpleNamespace(model=reader.model, tokenizer=Bytes()), "defghijkl" * 3)
    assert view.tokens[-1] == "l" and len(view.tokens) == 12 and view.step() in "defghijklm"


# ---- without a kernel -----------------------------------------------------------------------------------------------


def test_the_page_of_the_poet_is_small_and_records_what_comes(fresh):
    fresh.text = "ROMEO: But soft, what light through yonder window breaks?"
    before = fresh.text, fresh.focus, dict(fresh.probabilities)
    text = fresh.to_html(steps=8)
    assert before == (fresh.text, fresh.focus, dict(fresh.probabilities)), "the view itself has not moved"
    assert len(text.encode()) <= 1.5e6 and sum(map(len, _bytes_in(fresh.content))) + len(assets.script("model")) <= 1e6
    assert "http" not in text.replace("http-equiv", ""), "nothing is asked of a network"
    state = json.loads(text.split('id="state">')[1].split("</script>")[0])
    recorded = [entry["text"] for entry in state["recorded"]]
    assert (
        recorded[0] == fresh.text
        and len(recorded) >= 3
        and all(b.startswith(a) for a, b in zip(recorded, recorded[1:]))
    )
    assert text.count("<img ") == 1 and "<noscript><img " in text
    assert text == fresh.to_html(steps=8), "the same again"


def test_hostile_tokens_are_text_everywhere():
    reader = small(tokenizer=WordTokenizer(HOSTILE + ("c", "d", "e")))
    reader.tokenizer.pieces = lambda text: text.split(" ")
    view = ModelView(reader, " ".join(HOSTILE))
    assert len(view.tokens) == 7
    text = view.to_html(steps=1)
    assert "<img/src" not in text and text.count("</script>") == 3
    view.static_png()
    assert "\u200b" not in json.dumps(view.content["tokens"], ensure_ascii=False)


def test_a_cell_shows_words_a_picture_and_the_view(fresh):
    data, metadata = fresh._repr_mimebundle_()
    assert data["text/plain"] == f"ModelView(4 blocks of 4 heads, 63 tokens: “{TEXT[:5]}:␣But␣soft,␣what␣l…”)"
    assert set(data) == {"text/plain", "image/png", jupyter.LIVE}
    alt = metadata["image/png"]["alt"]
    assert alt.startswith("A GPT of 4 blocks reads “ROMEO:␣But") and "block 3 mlp “" in alt
    book = {"cells": [{"outputs": [{"data": dict(data)}]}], "metadata": {"widgets": {}}}
    jupyter.pictures_only({"type": "notebook", "content": book})
    assert jupyter.LIVE not in book["cells"][0]["outputs"][0]["data"] and book["metadata"] == {}


def test_the_browsers_part_is_complete():
    names = {path.stem for path in (assets.MODEL / "js").glob("*.js")}
    assert names == set(assets.MODEL_PARTS)
    source = assets.script("model")
    assert source.count("export ") == 1 and source.rstrip().endswith("export default { render: renderModel };")
    assert "import(" not in source and "innerHTML" not in source and "insertAdjacent" not in source
