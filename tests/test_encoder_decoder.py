"""The encoder–decoder Transformer against PyTorch's own layers, in both tracks; its masks, its sizes, its numbers."""

import importlib
import operator

import numpy as np
import pytest
import torch
from torch import nn
from track_tools import (
    NUMPY,
    TORCH,
    array,
    assert_close,
    assert_parameters_agree,
    assert_same,
    both_tracks,
    grad,
    normal,
)

from course_lib.common.config import TransformerConfig
from course_lib.common.initializer import Initializer
from course_lib.common.positions import sinusoidal_positions
from course_lib.idiomatic import encoder_decoder as idiomatic
from course_lib.idiomatic.weights import load_raw, pairs, raw_state

B, S, T, C, H, INNER = 3, 4, 5, 6, 2, 10
KEPT = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], bool)  # of the source
TARGET_KEPT = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], bool)
PADDED = pytest.mark.parametrize("padded", [False, True], ids=["no padding", "padding"])


def parts(track):
    return importlib.import_module(f"course_lib.{track}_track.encoder_decoder")


def config(**options):
    size = {"width": C, "heads": H, "layers": 2, "d_ff": INNER, "dropout": 0.0, "context_length": 9, "dtype": "float64"}
    return TransformerConfig(7, 11, **{**size, "init": "uniform", **options})


def ids(*shape, size=7, seed=0):
    return np.random.default_rng(seed).integers(size, size=shape)


def stirred(module):
    """Every parameter moved a little, so that no bias is 0 and no gain 1."""
    rng = np.random.default_rng(5)
    module.load_state_dict({name: p + 0.1 * rng.standard_normal(p.shape) for name, p in module.state_dict().items()})
    return module


def sources(kept):
    """Masks for the parts, (B, 1, 1, S) of the track's own kind, from (B, S) or None."""
    return None if kept is None else kept[:, None, None, :]


# ------------------------------------------------------------------ PyTorch's layers, with our weights
def matched(theirs, ours):
    """Pairs: a parameter of PyTorch's layer, and ours that stand in it one below the other, matrices transposed."""
    if isinstance(theirs, nn.Linear | nn.LayerNorm):
        yield from ((theirs.weight, [ours.weight]), (theirs.bias, [ours.bias]))
    elif isinstance(theirs, nn.MultiheadAttention):
        three = (ours.query, ours.key, ours.value)
        yield theirs.in_proj_weight, [part.weight for part in three]
        yield theirs.in_proj_bias, [part.bias for part in three]
        yield from matched(theirs.out_proj, ours.output)
    else:
        names = {"self_attn": "attention", "linear1": "feed_forward.up", "linear2": "feed_forward.down"}
        if hasattr(ours, "cross"):
            names |= {"multihead_attn": "cross", "norm2": "cross_norm", "norm3": "feed_forward_norm"}
        else:
            names |= {"norm2": "feed_forward_norm"}
        for name, our_name in {**names, "norm1": "attention_norm"}.items():
            yield from matched(getattr(theirs, name), operator.attrgetter(our_name)(ours))


def give(theirs, ours):
    """Our weights for PyTorch's layer."""
    for p, pieces in matched(theirs, ours):
        p.data = torch.tensor(np.concatenate([array(piece).T for piece in pieces]))


def same_gradients(theirs, ours):
    """The gradient of every parameter of a layer."""
    compared = 0
    for p, pieces in matched(theirs, ours):
        assert_same(np.concatenate([grad(piece).T for piece in pieces]), p.grad, f"gradient in {type(ours).__name__}")
        compared += len(pieces)
    assert compared == len(ours.parameters())


def leaf(values):
    return torch.tensor(values, requires_grad=True)


def projected(out, r):
    return (out * torch.tensor(r)).sum()


def layer_pair(track, kind):
    made = getattr(parts(track), kind)(config(), Initializer(1, "uniform", "float64"), track.modules.Dropout(0.0, None))
    theirs = getattr(nn, f"Transformer{kind}")(C, H, INNER, dropout=0.0, batch_first=True, dtype=torch.float64)
    give(theirs, stirred(made))
    return made, theirs


@PADDED
@both_tracks
def test_encoder_layer_equals_pytorch(track, padded):
    ours, theirs = layer_pair(track, "EncoderLayer")
    kept = KEPT if padded else np.ones((B, S), bool)
    mine, other = track.leaf(normal(B, S, C)), leaf(normal(B, S, C))
    out = ours(mine, track.F.check_allow(sources(KEPT)) if padded else None)
    expected = theirs(other, src_key_padding_mask=torch.tensor(~kept) if padded else None)
    assert_same(array(out)[kept], array(expected)[kept], "output at the kept positions")
    r = normal(B, S, C, seed=9) * kept[..., None]  # what stands at padding counts for nothing
    track.project(out, r).backward()
    projected(expected, r).backward()
    assert_same(grad(mine), other.grad, "gradient of the input")
    same_gradients(theirs, ours)


@PADDED
@both_tracks
def test_decoder_layer_equals_pytorch(track, padded):
    ours, theirs = layer_pair(track, "DecoderLayer")
    kept = TARGET_KEPT if padded else np.ones((B, T), bool)
    (x, memory), (their_x, their_memory) = (
        [make(normal(B, length, C, seed=length)) for length in (T, S)] for make in (track.leaf, leaf)
    )
    causal = np.tril(np.ones((T, T), bool))
    seen, memory_seen, masks = causal, None, {}
    if padded:
        seen, memory_seen = causal & TARGET_KEPT[:, None, None, :], sources(KEPT)
        masks = {"tgt_key_padding_mask": torch.tensor(~TARGET_KEPT), "memory_key_padding_mask": torch.tensor(~KEPT)}
    out = ours(x, memory, *map(track.F.check_allow, (seen, memory_seen)))
    expected = theirs(their_x, their_memory, tgt_mask=torch.tensor(~causal), **masks)
    assert_same(array(out)[kept], array(expected)[kept], "output at the kept positions")
    r = normal(B, T, C, seed=9) * kept[..., None]
    track.project(out, r).backward()
    projected(expected, r).backward()
    assert_same(grad(x), their_x.grad, "gradient of the target")
    assert_same(grad(memory), their_memory.grad, "gradient of the memory")
    same_gradients(theirs, ours)


@PADDED
@both_tracks
def test_transformer_equals_pytorch(track, padded):
    """nn.Transformer knows no tokens and no head: it is given our embeddings, and our head reads its output."""
    model = stirred(parts(track).Transformer(config(), seed=3))
    theirs = nn.Transformer(C, H, 2, 2, INNER, dropout=0.0, batch_first=True, dtype=torch.float64)
    theirs.encoder.norm = theirs.decoder.norm = None  # the two LayerNorms that the paper does not have
    layers = [*model.encoder.layers, *model.decoder.layers]
    their_layers = [*theirs.encoder.layers, *theirs.decoder.layers]
    for mine, other in zip(layers, their_layers, strict=True):
        give(other, mine)
    source, target = ids(B, S), ids(B, T, size=11)
    kept = TARGET_KEPT if padded else np.ones((B, T), bool)
    tables = [leaf(array(part.embedding.token.weight)) for part in (model.encoder, model.decoder)]
    places = torch.tensor(sinusoidal_positions(9, C, "float64"))
    inputs = [t[torch.tensor(x)] * C**0.5 + places[: x.shape[1]] for t, x in zip(tables, (source, target))]
    masks = {"tgt_mask": torch.tensor(~np.tril(np.ones((T, T), bool)))}
    if padded:
        masks |= {
            "src_key_padding_mask": torch.tensor(~KEPT),
            "memory_key_padding_mask": torch.tensor(~KEPT),
            "tgt_key_padding_mask": torch.tensor(~TARGET_KEPT),
        }
    head = nn.Linear(C, 11, dtype=torch.float64)
    give(head, model.head)
    expected = head(theirs(*inputs, **masks))
    out = model(source, target, *((KEPT, TARGET_KEPT) if padded else ()))
    assert out.shape == (B, T, 11)
    assert_same(array(out)[kept], array(expected)[kept], "logits at the kept positions")
    r = normal(B, T, 11, seed=9) * kept[..., None]
    track.project(out, r).backward()
    projected(expected, r).backward()
    for part, table in zip((model.encoder, model.decoder), tables, strict=True):
        assert_same(grad(part.embedding.token.weight), table.grad, "gradient of a table")
    for mine, other in zip(layers, their_layers, strict=True):
        same_gradients(other, mine)
    same_gradients(head, model.head)


@both_tracks
def test_dropout_sits_where_the_docstrings_say(track):
    """On the weights, after attention, inside the feed-forward: how many numbers are drawn tells each place."""
    M = parts(track)

    class Counting(track.modules.Dropout):
        def __init__(self):
            self.p, self.rng, self.shapes = 0.5, np.random.default_rng(0), []

        def forward(self, x):
            self.shapes.append(tuple(x.shape))
            return super().forward(x)

        def mask(self, shape):
            self.shapes.append(tuple(shape))
            return super().mask(shape)

    drop = Counting()
    x, memory = track.constant(normal(B, T, C)), track.constant(normal(B, S, C))
    M.DecoderLayer(config(), Initializer(0, "uniform", "float64"), drop)(x, memory)
    inside = (B, T, INNER)
    assert drop.shapes == [(B, H, T, T), (B, T, C), (B, H, T, S), (B, T, C), inside]
    drop.shapes.clear()
    M.EncoderLayer(config(), Initializer(0, "uniform", "float64"), drop)(x)
    assert drop.shapes == [(B, H, T, T), (B, T, C), inside]


@both_tracks
def test_weights_on_show_are_those_before_dropout(track):
    drop = track.modules.Dropout(0.5, np.random.default_rng(0))
    attention = parts(track).MultiHeadAttention(C, H, Initializer(0, "uniform", "float64"), drop)
    x, memory = track.constant(normal(B, T, C)), track.constant(normal(B, S, C))
    out = array(attention(x, memory, memory))
    weights = array(attention.weights)
    assert (weights > 0).all()
    assert_close(weights.sum(axis=-1), np.ones((B, H, T)), 1e-12)
    attention.eval()
    assert np.abs(array(attention(x, memory, memory)) - out).max() > 1e-3  # the output did feel the dropout


@both_tracks
def test_looking_at_attention_changes_nothing(track):
    model = parts(track).Transformer(config(dropout=0.5), seed=0)
    before = model.dropout.rng.bit_generator.state
    one, two = (model.attention_maps(ids(S), ids(T, size=11)) for _ in range(2))
    assert all((one[name] == two[name]).all() for name in one)
    assert_close(one["cross"].sum(axis=-1), np.ones((2, H, T)), 1e-12)
    assert (one["decoder"][..., ~np.tril(np.ones((T, T), bool))] == 0).all()
    assert model.training and model.dropout.rng.bit_generator.state == before


# ------------------------------------------------------------------ both tracks, and the idiomatic form
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("options", [{}, {"dropout": 0.3}, {"width": 15, "heads": 3}, {"init": "small"}], ids=str)
def test_the_tracks_agree(options, dtype):
    models = [stirred(parts(track).Transformer(config(dtype=dtype, **options), seed=3)) for track in (NUMPY, TORCH)]
    taught = [parts(t).TeacherForcing(model) for t, model in zip((NUMPY, TORCH), models, strict=True)]
    source, target = 1 + ids(B, S, size=6), 1 + ids(B, T, size=10)
    source[~KEPT], target[~TARGET_KEPT] = 0, 0
    labels = np.where(TARGET_KEPT, 1 + ids(B, T, size=10, seed=1), -100)
    for _ in range(2):  # twice, so that the next dropout masks agree too
        for model in models:
            for p in model.parameters():
                p.grad = None
        results = [model((source, target), labels) for model in taught]
        for name, pair in zip(("logits", "loss"), zip(*results, strict=True), strict=True):
            assert_same(*pair, name)
        for _, loss in results:
            loss.backward()
        assert_parameters_agree(*models)
    maps = [model.attention_maps(source[0], target[0]) for model in models]
    layers, heads = models[0].config.layers, models[0].config.heads
    for name, shape in {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}.items():
        assert maps[0][name].shape == (layers, heads, *shape)
        assert_same(maps[0][name], maps[1][name].astype(maps[0][name].dtype), name)


def test_no_layers():
    """The shortest model of all: the head reads the target's tokens and places, nobody reads the source."""
    models = [parts(track).Transformer(config(layers=0), seed=3) for track in (NUMPY, TORCH)]
    source, target = ids(B, S), ids(B, T, size=11)
    assert_same(*(model(source, target) for model in models))
    assert_same(models[0](source, target), models[0]((source + 1) % 7, target))
    for model in models:
        shapes = {name: found.shape for name, found in model.attention_maps(source[0], target[0]).items()}
        assert shapes == {"encoder": (0, H, S, S), "decoder": (0, H, T, T), "cross": (0, H, T, S)}


@PADDED
@both_tracks
def test_the_idiomatic_form_equals_the_raw_one(track, padded):
    raw = stirred(parts(track).Transformer(config(), seed=3))
    model = load_raw(idiomatic.Transformer(config()), raw.state_dict())
    source, target, masks = ids(B, S), ids(B, T, size=11), (KEPT, TARGET_KEPT) if padded else ()
    kept = TARGET_KEPT if padded else np.ones((B, T), bool)
    out = raw(source, target, *masks)
    expected = model(*map(torch.tensor, (source, target, *masks)))
    assert_same(array(out)[kept], array(expected)[kept], "logits")
    r = normal(B, T, 11, seed=9) * kept[..., None]
    track.project(out, r).backward()
    projected(expected, r).backward()
    theirs = dict(model.named_parameters())
    assert len(theirs) == len(raw.parameters()) == len(list(pairs(model)))
    for name, raw_name, turned in pairs(model):
        found = theirs[name].grad
        assert_same(grad(dict(raw.named_parameters())[raw_name]), found.T if turned else found, name)


@both_tracks
def test_weights_go_back_from_the_idiomatic_form(track):
    torch.manual_seed(0)
    model = idiomatic.Transformer(config())
    raw = parts(track).Transformer(config(), seed=1)
    raw.load_state_dict(raw_state(model))
    source, target = ids(B, S), ids(B, T, size=11)
    assert_same(raw(source, target), model(torch.tensor(source), torch.tensor(target)))
    for p in raw.parameters():  # the raw model has its own copies
        array(p)[...] = 0
    assert all(p.abs().sum() > 0 for p in model.parameters() if p.ndim == 2)


def test_idiomatic_conveniences():
    model = idiomatic.Transformer(config(dropout=0.5))
    buffers, kept = dict(model.named_buffers()), model.state_dict()
    assert list(buffers) == ["encoder.embedding.positions", "decoder.embedding.positions"]
    assert not any("positions" in name for name in [*kept, *dict(model.named_parameters())])
    assert_same(buffers["encoder.embedding.positions"], sinusoidal_positions(9, C, "float64"))
    pair = torch.tensor(ids(B, S)), torch.tensor(ids(B, T, size=11))
    assert not torch.equal(model(*pair), model(*pair))  # dropout draws anew
    model.eval()
    assert torch.equal(model(*pair), model(*pair))  # also in the attention, whose function does not know eval
    state = parts(NUMPY).Transformer(config()).state_dict()
    for wrong, message in (
        ({k: v for k, v in state.items() if k != "head.bias"}, r"missing \['head.bias'\]"),
        (state | {"tail": np.zeros(3)}, r"unknown \['tail'\]"),
        (state | {"head.bias": np.zeros(3)}, "size mismatch for head.bias"),
    ):
        with pytest.raises(ValueError, match=message):
            load_raw(model, wrong)
    with pytest.raises(ValueError, match="10 tokens: the model takes 1 to 9"):
        model(torch.zeros(1, 10, dtype=torch.int64), pair[1])


# ------------------------------------------------------------------ positions
def test_P01_positions_of_an_odd_width():
    table = sinusoidal_positions(4, 5)
    assert table.dtype == np.float32
    assert table.shape == (4, 5)
    assert_close(table[1], [0.841471, 0.540302, 0.025116, 0.999685, 0.000631], 1e-6)
    assert_close(table[0], [0, 1, 0, 1, 0], 0)
    assert_close(sinusoidal_positions(2, 1, "float64"), [[0], [np.sin(1)]], 1e-12)
    for rows, width in ((0, 4), (4, 0)):
        with pytest.raises(ValueError, match=f"not {rows} and {width}"):
            sinusoidal_positions(rows, width)


def test_positions_are_exact_to_the_last_row():
    table = sinusoidal_positions(5000, 512, "float64")
    for place, column in ((4999, 0), (4999, 1), (1234, 510), (1234, 511)):
        angle = place / 10000 ** ((column - column % 2) / 512)
        assert table[place, column] == pytest.approx(np.cos(angle) if column % 2 else np.sin(angle), abs=1e-12)
    assert_close(sinusoidal_positions(5000, 512)[4999], table[4999], 1e-7)


@both_tracks
def test_positions_are_a_constant(track):
    model = parts(track).Transformer(config(), seed=0)
    assert not any("position" in name for name, _ in model.named_parameters())
    embedding, tokens = model.encoder.embedding, ids(B, S)
    table = array(embedding.token.weight)
    assert_close(embedding(tokens), table[tokens] * 6**0.5 + sinusoidal_positions(9, C, "float64")[:S], 1e-12)
    parts(track).TeacherForcing(model, padding=-1)((tokens, tokens), tokens)[1].backward()
    assert array(embedding.positions).tolist() == sinusoidal_positions(9, C, "float64").tolist()


# ------------------------------------------------------------------ masks (who may look at whom)
@both_tracks
def test_padded_source_tokens_change_nothing(track):
    model = stirred(parts(track).Transformer(config(), seed=0))
    source, target = ids(B, S), ids(B, T, size=11)
    out = array(model(source, target, KEPT))
    changed = np.where(KEPT, source, (source + 1) % 7)
    assert (array(model(changed, target, KEPT)) == out).all()
    unmasked = np.abs(array(model(changed, target)) - array(model(source, target))).max(axis=(1, 2))
    assert unmasked[0] == 0 and unmasked[1:].min() > 1e-6  # without the mask they matter


@both_tracks
def test_cross_attention_averages_the_real_source_only(track):
    """The source mask is on the key axis: of the values 1, 2, 9 (padding) a query that sees all the same takes 1.5."""
    attention = parts(track).MultiHeadAttention(1, 1, Initializer(0, dtype="float64"), track.modules.Dropout(0.0, None))
    ones = {name: np.full(p.shape, float(name in ("value.weight", "output.weight"))) for name, p in
            attention.named_parameters()}  # fmt: skip
    attention.load_state_dict(ones)
    query, memory = track.constant(np.zeros((1, 2, 1))), track.constant([[[1.0], [2.0], [9.0]]])
    on_key_axis = parts(track).on_key_axis
    mask = on_key_axis(np.array([[True, True, False]]), (1, 3), "source_allow")
    assert_close(attention(query, memory, memory, mask), [[[1.5], [1.5]]], 1e-12)
    assert_close(attention.weights, [[[[0.5, 0.5, 0]] * 2]], 1e-12)
    assert_close(attention(query, memory, memory), [[[4.0], [4.0]]], 1e-12)


@both_tracks
def test_no_position_sees_a_later_target(track):
    model = stirred(parts(track).Transformer(config(), seed=0))
    source, target = ids(B, S), ids(B, T, size=11)
    out = array(model(source, target))
    for k in range(T):
        other = target.copy()
        other[:, k] = (other[:, k] + 1) % 11
        moved = np.abs(array(model(source, other)) - out).max(axis=(0, 2))
        assert (moved[:k] == 0).all() and (moved[k:] > 1e-6).all(), (k, moved)
    other = source.copy()
    other[:, -1] = (other[:, -1] + 1) % 7
    assert np.abs(array(model(other, target)) - out).max(axis=(0, 2)).min() > 1e-6  # the source is seen by all


@both_tracks
def test_a_source_of_padding_alone(track):
    """Attention finds nothing and gives 0: finite logits, the same for every such source, gradients 0 for its ids."""
    model = stirred(parts(track).Transformer(config(), seed=0))
    kept = KEPT.copy()
    kept[1] = False
    source, target = ids(B, S), ids(B, T, size=11)
    source[1], source[[0, 2]] = 6, source[[0, 2]] % 6  # id 6 stands in the empty row only
    out = model(source, target, kept)
    other = source.copy()
    other[1] = 0
    assert np.isfinite(array(out)).all()
    assert_same(out, model(other, target, kept))
    out.sum().backward()
    gradients = grad(model.encoder.embedding.token.weight)
    assert np.isfinite(gradients).all() and (gradients[6] == 0).all() and (gradients[source[0]] != 0).any()
    cross = model.decoder.layers[0].cross.weights
    assert (array(cross)[1] == 0).all()
    assert_close(array(cross)[0].sum(axis=-1), np.ones((H, T)), 1e-12)


@both_tracks
def test_labels_of_padding_do_not_count(track):
    taught = parts(track).TeacherForcing(stirred(parts(track).Transformer(config(), seed=0)))
    source, target = 1 + ids(B, S, size=6), 1 + ids(B, T, size=10)
    target[~TARGET_KEPT] = 0
    labels = np.where(TARGET_KEPT, 1 + ids(B, T, size=10, seed=1), -100)
    logits, loss = taught((source, target), labels)
    rows = array(logits)[TARGET_KEPT]
    rows = rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))
    expected = -np.take_along_axis(rows, labels[TARGET_KEPT][:, None], axis=-1).mean()
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    assert taught((source, target))[1] is None
    # more padding on both sides changes nothing
    wider = [np.pad(row, ((0, 0), (0, 3)), constant_values=p) for row, p in ((source, 0), (target, 0), (labels, -100))]
    longer = taught((wider[0], wider[1]), wider[2])
    assert longer[1].item() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match=r"0 is padding, so as a label it must be -100: ignore_padding"):
        taught((source, target), np.where(labels == -100, 0, labels))
    with pytest.raises(ValueError, match="all 15 targets are -100"):
        taught((source, target), np.full_like(labels, -100))


@both_tracks
def test_masks_that_do_not_fit(track):
    model = parts(track).Transformer(config(), seed=0)
    source, target = ids(B, S), ids(B, T, size=11)
    with pytest.raises(TypeError, match="source_allow must be boolean .True = may attend., not .*int64"):
        model(source, target, KEPT.astype(int))
    with pytest.raises(ValueError, match=r"source_allow has shape \(3, 5\), but the ids \(3, 4\)"):
        model(source, target, TARGET_KEPT)
    with pytest.raises(ValueError, match=r"target_allow has shape \(3, 4\), but the ids \(3, 5\)"):
        model(source, target, KEPT, KEPT)
    with pytest.raises(ValueError, match=r"source_allow has shape \(3, 5\), but the ids \(3, 4\)"):
        model.decode(target, model.encode(source), TARGET_KEPT)
    with pytest.raises(ValueError, match="1 sources, but 3 targets"):
        model(source[:1], target)


# ------------------------------------------------------------------ sizes
@both_tracks
def test_lengths(track):
    model = parts(track).Transformer(config(), seed=0)
    for s, t in ((1, 1), (9, 1), (1, 9), (9, 9)):
        out = array(model(ids(2, s), ids(2, t, size=11)))
        assert out.shape == (2, t, 11) and np.isfinite(out).all()
    for s, t, wrong in ((0, 1, 0), (1, 0, 0), (10, 1, 10), (1, 10, 10)):
        with pytest.raises(ValueError, match=f"a window of {wrong} tokens: the model takes 1 to 9"):
            model(ids(2, s), ids(2, t, size=11))
    with pytest.raises(IndexError, match="id 7 is outside the vocabulary of 7"):
        model(np.array([[7]]), np.array([[0]]))
    with pytest.raises(IndexError, match="id 11 is outside the vocabulary of 11"):
        model(np.array([[0]]), np.array([[11]]))


@both_tracks
def test_the_longest_sequence_of_the_defaults(track):
    """5000 positions work and 5001 do not, in the source and in the target."""
    model = parts(track).Transformer(TransformerConfig(7, 11, width=3, heads=1, layers=1, d_ff=2), seed=0)
    with model.evaluating():
        for s, t in ((5000, 1), (1, 5000)):
            out = array(model(ids(1, s), ids(1, t, size=11)))
            assert out.shape == (1, t, 11) and np.isfinite(out).all()
        for s, t in ((5001, 1), (1, 5001)):
            with pytest.raises(ValueError, match="a window of 5001 tokens: the model takes 1 to 5000"):
                model(ids(1, s), ids(1, t, size=11))


@both_tracks
@pytest.mark.parametrize(("width", "heads"), [(1, 1), (5, 1), (15, 3), (15, 5)])
def test_odd_widths(track, width, heads):
    model = parts(track).Transformer(config(width=width, heads=heads), seed=0)
    out = array(model(ids(B, S), ids(B, T, size=11)))
    assert out.shape == (B, T, 11) and np.isfinite(out).all()


def test_parameters_of_the_default_model():
    """The base model of the paper: 44 million numbers in the layers, and what the vocabularies cost."""
    width, inner, layers, source, target = 512, 2048, 6, 11, 33
    attention = 4 * (width * width + width)  # query, key, value, output: a matrix and a bias each
    feed_forward = (width * inner + inner) + (inner * width + width)
    norm = 2 * width
    encoder = layers * (attention + feed_forward + 2 * norm)
    decoder = layers * (2 * attention + feed_forward + 3 * norm)
    assert (attention, feed_forward, encoder, decoder) == (1_050_624, 2_099_712, 18_914_304, 25_224_192)
    vocabularies = (source + target) * width + (width * target + target)
    model = parts(NUMPY).Transformer(TransformerConfig(source, target))
    assert model.num_parameters() == encoder + decoder + vocabularies == 44_177_953
    by_part = {
        name: sum(p.data.size for full, p in model.named_parameters() if full.startswith(name))
        for name in ("encoder.layers", "decoder.layers")
    }
    assert by_part == {"encoder.layers": encoder, "decoder.layers": decoder}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 10, "heads": 4}, "width 10 is not divisible by 4 heads"),
        ({"dropout": 1.5}, "dropout must be between 0 and 1, not 1.5"),
        ({"layers": -1}, "layers must be a whole number, at least 0, not -1"),
        ({"d_ff": 0}, "d_ff must be a whole number, at least 1, not 0"),
        ({"context_length": 2.5}, "context_length must be a whole number, at least 1, not 2.5"),
        ({"init": "big"}, "init must be one of small"),
    ],
)
def test_configs_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        config(**options)


def test_the_defaults_are_those_of_the_paper():
    base = TransformerConfig(11, 33)
    sizes = (base.width, base.heads, base.layers, base.d_ff, base.dropout, base.context_length)
    assert sizes == (512, 8, 6, 2048, 0.1, 5000)
