"""The table of a model's parts: every parameter once, the shapes that flow, the same words on every machine."""

import importlib
from xml.etree import ElementTree

import numpy as np
import pytest
from track_tools import NUMPY, array, both_tracks

from course_lib.common.config import FirstGPTConfig, GPTConfig, TransformerConfig
from course_lib.text import Batches
from course_lib.text.numbers import encode_numbers
from course_lib.text.pairs import PairBatches
from course_lib.training import load_checkpoint

IDS = np.zeros((2, 5), int)
OF_SYSTEM_C = """\
GPT: 39,153 parameters
-----------------------------------------------------------------------------------------
part                             layer          weights                        parameters
-----------------------------------------------------------------------------------------
token                            Embedding      weight (17, 32)                       544
position                         Parameter      (8, 32)                               256
blocks.*.attention.norm          LayerNorm × 3  weight (32,), bias (32,)              192
blocks.*.attention.layer.query   Linear × 3     weight (32, 32)                     3,072
blocks.*.attention.layer.key     Linear × 3     weight (32, 32)                     3,072
blocks.*.attention.layer.value   Linear × 3     weight (32, 32)                     3,072
blocks.*.attention.layer.output  Linear × 3     weight (32, 32)                     3,072
blocks.*.mlp.norm                LayerNorm × 3  weight (32,), bias (32,)              192
blocks.*.mlp.layer.up            Linear × 3     weight (32, 128), bias (128,)      12,672
blocks.*.mlp.layer.down          Linear × 3     weight (128, 32), bias (32,)       12,384
norm                             LayerNorm      weight (32,), bias (32,)               64
head                             Linear         weight (32, 17), bias (17,)           561
-----------------------------------------------------------------------------------------
total                                                                              39,153"""


def outputs(summary):
    return {row.part: row.output for row in summary.rows}


@both_tracks
def test_the_table_of_system_c(track):
    assert repr(track.models.GPT(GPTConfig(17)).summary()) == OF_SYSTEM_C


@both_tracks
def test_what_is_printed_is_short_and_without_addresses(track):
    m = importlib.import_module(f"course_lib.{track}_track")
    gpt = m.GPT(GPTConfig(17))
    assert repr(gpt) == str(gpt) == OF_SYSTEM_C
    assert repr(gpt.dropout) == "Dropout: 0 parameters"
    large = m.Transformer(TransformerConfig(11, 40, width=64))
    assert repr(large).splitlines()[-3] == "... 11 more rows: print(model.summary())"
    assert repr(large).splitlines()[-1] == repr(large.summary()).splitlines()[-1]
    matrices = [p for block in gpt.blocks for p in block.parameters() if p.ndim == 2]
    models = [gpt, large, m.TeacherForcing(large), m.FirstGPT(FirstGPTConfig(17)), m.Bigram(17), gpt.blocks[0]]
    others = [
        m.SGD(gpt.parameters(), 0.1), m.AdamW(gpt.parameters(), 1e-3), m.Muon(gpt.parameters(), 1e-3, matrices),
        gpt.new_cache(2), Batches(np.arange(50), 4, 2), PairBatches([np.arange(9)], encode_numbers, 4),
        load_checkpoint("market-gpt", track.name),
    ]  # fmt: skip
    for thing in models + others:
        lines = repr(thing).splitlines()
        assert len(lines) <= (20 if thing in models else 1) and " at 0x" not in repr(thing), repr(thing)
    assert repr(others[1]) == "AdamW: 39,153 elements in 42 parameters, lr 0.001"
    assert repr(others[3]) == "KeyValueCache: 0 of 8 positions, 3 layers, batch of 2"


@both_tracks
@pytest.mark.parametrize("ids", [None, IDS], ids=["parts", "traced"])
@pytest.mark.parametrize(
    "options",
    [{}, {"tied": True}, {"norm": None, "residual": False, "activation": "none"}, {"layers": 0}, {"positions": False}],
)
def test_every_parameter_is_counted_once(track, options, ids):
    model = track.models.GPT(GPTConfig(17, dropout=0.1, **options))
    summary = model.summary(ids)
    assert sum(row.parameters for row in summary.rows) == summary.total == model.num_parameters()
    models = [track.models.FirstGPT(FirstGPTConfig(17)), track.models.Bigram(17)]
    for model in models:
        assert sum(row.parameters for row in model.summary(ids).rows) == model.num_parameters()


@both_tracks
def test_P03_a_shared_weight_names_where_it_is_counted(track):
    class Tied(track.modules.Module):
        def __init__(self):
            self.token = track.modules.Embedding(3, 2, track.models.Initializer(0))
            self.head = track.modules.Linear(3, 2, bias=False, init=track.models.Initializer(0))
            self.head.weight = self.token.weight

    token, head = Tied().summary().rows
    assert (token.weights, token.parameters) == ("weight (3, 2)", 6)
    assert (head.weights, head.parameters) == ("weight = token.weight", 0)


@both_tracks
def test_shapes_through_the_model(track):
    model = track.models.GPT(GPTConfig(17, width=12, heads=3, layers=2, dropout=0.5))
    before, state = model.state_dict(), model.dropout.rng.bit_generator.state
    summary = model.summary(IDS.tolist())
    found = outputs(summary)
    assert found["token"] == found["norm"] == found["blocks.*"] == found["blocks.*.attention.layer"] == (2, 5, 12)
    assert found["blocks.*.mlp.layer.up"] == (2, 5, 48) and found["head"] == (2, 5, 17) == summary.output
    assert found["position"] is None  # no layer: nothing is called
    assert "output shapes for ids (2, 5)" in summary.title and "(2, 5, 48)" in repr(summary)
    # afterwards nothing of the watching is left
    assert all("forward" not in vars(module) and module.training for module in model.modules())
    assert model.dropout.rng.bit_generator.state == state
    assert all((value == before[name]).all() for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


@both_tracks
def test_a_run_that_fails_leaves_the_model_whole(track):
    model = track.models.GPT(GPTConfig(17))
    with pytest.raises(IndexError, match="17"):
        model.summary(np.full((1, 2), 17))
    assert all("forward" not in vars(module) and module.training for module in model.modules())
    assert array(model(IDS)[0]).shape == (2, 5, 17)


def test_blocks_that_differ_have_rows_of_their_own():
    M, init = NUMPY.modules, NUMPY.models.Initializer(0)
    summary = M.Sequential(M.Linear(2, 3, init=init), M.Linear(3, 2, init=init)).summary()
    assert [row.part for row in summary.rows] == ["layers.0", "layers.1"]


@pytest.mark.parametrize("ids", [None, IDS], ids=["parts", "traced"])
def test_the_table_in_a_notebook_has_headings(ids):
    class Odd(NUMPY.models.GPT):
        pass

    Odd.__name__ = "<Odd>"
    html = Odd(GPTConfig(17)).summary(ids)._repr_html_()
    table = ElementTree.fromstring(html)  # well-formed, and names are escaped
    assert table.find("caption").text.startswith("<Odd>: 39,153 parameters")
    heads = [cell.text for cell in table.findall("thead/tr/th[@scope='col']")]
    assert heads == ["part", "layer", "weights", *([] if ids is None else ["output"]), "parameters"]
    rows = table.findall("tbody/tr")
    assert all(row[0].tag == "th" and row[0].get("scope") == "row" and len(row) == len(heads) for row in rows)
    assert table.findall("tfoot/tr/*")[-1].text == "39,153"
