"""Muon in both tracks. The baseline takes the matrix apart with NumPy's SVD, which the course's code never does."""

import dataclasses
import importlib
import math

import numpy as np
import pytest
from track_tools import NUMPY, TORCH, array, assert_close, assert_same, both_tracks, grad, normal
from track_tools import give as give_grads

from course_lib.common.config import GPTConfig
from course_lib.experiments.recipes import Recipe
from course_lib.experiments.reproduce.trajectories import largest_difference
from course_lib.text import Batches, CharTokenizer, load_corpus
from course_lib.training import History, WarmupCosine, load_checkpoint, save_checkpoint, train

TOKENIZER = CharTokenizer.from_text(load_corpus("hello").text)
IDS = TOKENIZER.encode(load_corpus("hello").text)
SHAPES = {"wide": (4, 7), "tall": (7, 4), "square": (5, 5), "one row": (1, 6), "one column": (6, 1)}
for track in (NUMPY, TORCH):
    track.muon = importlib.import_module(f"course_lib.{track.name}_track.muon")
    track.package = importlib.import_module(f"course_lib.{track.name}_track")


def polynomial(s):
    """What five steps make of singular values ``s`` between 0 and 1."""
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


def baseline(matrix):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left * polynomial(values / np.linalg.norm(matrix)) @ right


def spectrum(shape, seed=1):
    """A matrix with known singular values, from 1 down to 0.003 of it."""
    left, _, right = np.linalg.svd(normal(*shape, seed=seed), full_matrices=False)
    return left * np.geomspace(1, 0.003, min(shape)) @ right


# ------------------------------------------------------------------ the same directions, equally long


def orthogonal(track, matrix):
    """The result as an array; the input must be as it was."""
    given = track.constant(matrix, str(matrix.dtype)).data
    found = array(track.muon.orthogonal(given))
    np.testing.assert_array_equal(array(given), matrix)
    assert found.dtype == matrix.dtype and found.shape == matrix.shape
    return found


@both_tracks
@pytest.mark.parametrize("make", [lambda shape: normal(*shape), spectrum], ids=["normal", "spectrum"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_orthogonal_makes_all_singular_values_about_1(track, shape, make):
    matrix = make(shape) * 30
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    assert (values > 0.002 * np.linalg.norm(matrix)).all()  # or nothing would be promised
    found = orthogonal(track, matrix)
    assert_same(found, baseline(matrix))
    inside = left.T @ found @ right.T  # in the directions of the input: a diagonal of positive numbers
    assert_close(inside, np.diag(np.diag(inside)), 1e-9)
    assert (0.68 < np.diag(inside)).all() and (np.diag(inside) < 1.21).all()
    single = orthogonal(track, matrix.astype(np.float32))
    assert_close(single, found, 1e-3)  # 3.4445⁵ ≈ 485 times the rounding of the smallest ones


def test_between_which_bounds_the_singular_values_end():
    """The docstring's numbers."""
    inside = polynomial(np.concatenate([np.geomspace(0.002, 1, 20_000), np.linspace(0.002, 1, 20_000)]))
    assert 0.68 < inside.min() < 0.69 and 1.20 < inside.max() < 1.21
    assert polynomial(np.linspace(0, 0.002, 1000)).max() < 0.9


@both_tracks
def test_small_singular_values_stay_smaller(track):
    left, _, right = np.linalg.svd(normal(3, 5), full_matrices=False)
    values = np.linalg.svd(orthogonal(track, left * [1, 1e-3, 1e-9] @ right), compute_uv=False)
    assert 0.68 < values[0] < 1.21 and 0.3 < values[1] < 0.5 and values[2] < 1e-6


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_orthogonal_is_the_same_in_both_tracks(shape, dtype):
    matrix = normal(*shape, seed=2).astype(dtype)
    assert_same(orthogonal(NUMPY, matrix), orthogonal(TORCH, matrix))


@both_tracks
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_zeros_stay_zeros_and_rank_1_stays_rank_1(track, dtype):
    np.testing.assert_array_equal(orthogonal(track, np.zeros((3, 2), dtype)), np.zeros((3, 2)))
    matrix = np.outer(normal(4), normal(3, seed=1)).astype(dtype)
    assert_close(orthogonal(track, matrix), matrix / np.linalg.norm(matrix) * polynomial(1.0), 1e-5)


@both_tracks
@pytest.mark.parametrize("exponent", [-28, -25, -20, 20, 30])
def test_the_size_of_the_matrix_does_not_count(track, exponent):
    """In float32 the squares of 1e-25 are 0 and those of 1e25 infinite; the norm must not be."""
    matrix = normal(3, 4).astype(np.float32)
    assert_close(orthogonal(track, (matrix * 10.0**exponent).astype(np.float32)), orthogonal(track, matrix), 1e-4)


# ------------------------------------------------------------------ steps by hand

ARRAYS = {"wide": (3, 5), "gain": (4,), "tall": (6, 2), "table": (4, 3), "row": (1, 5)}
MATRICES = ("wide", "tall", "row")


def parameters(track, dtype="float64"):
    return {name: track.leaf(normal(*shape, seed=i), dtype) for i, (name, shape) in enumerate(ARRAYS.items())}


def muon(track, ps, lr=0.1, matrices=MATRICES, **options):
    return track.muon.Muon(ps.values(), lr, [ps[name] for name in matrices], **options)


def give(ps, seed):
    """Give random gradients, as backward would; returns them."""
    grads = {name: normal(*shape, seed=100 * seed + i) for i, (name, shape) in enumerate(ARRAYS.items())}
    give_grads(ps.values(), [grads[name] for name in ps])
    return grads


@both_tracks
@pytest.mark.parametrize("options", [{}, {"momentum": 0.5, "weight_decay": 0.3, "betas": (0.8, 0.9)}, {"momentum": 0}])
def test_three_steps_by_hand(track, options):
    momentum, decay = options.get("momentum", 0.95), options.get("weight_decay", 0.01)
    ps = parameters(track)
    optimizer = muon(track, ps, **options)
    expected = {name: array(ps[name]).copy() for name in MATRICES}
    means = {name: np.zeros(ARRAYS[name]) for name in MATRICES}
    for seed, lr in enumerate((0.1, 0.4, 0.2)):
        optimizer.lr = lr
        grads = give(ps, seed)
        optimizer.step()
        for name, old in expected.items():
            means[name] = momentum * means[name] + (1 - momentum) * grads[name]
            ahead = momentum * means[name] + (1 - momentum) * grads[name]
            length = 0.2 * math.sqrt(max(ARRAYS[name]))
            expected[name] = old - lr * decay * old - lr * length * baseline(ahead)
            assert_same(ps[name], expected[name], f"{name}, step {seed}")


@both_tracks
@pytest.mark.parametrize(("g", "expected"), [(0.1, 0.976071), (-7.0, 1.003929), (0, 0.99)])
def test_one_number_moves_by_its_sign_and_decays_from_its_old_value(track, g, expected):
    """Five steps make 0.696436 of a single number, whatever it was: 1 - 0.1 · 0.1 · 1 ∓ 0.1 · 0.2 · 0.696436."""
    p, other = track.leaf([[1.0]]), track.leaf([1.0])
    optimizer = track.muon.Muon([p, other], 0.1, [p], weight_decay=0.1)
    give_grads([p], [g])
    optimizer.step()
    assert_close(p, [[expected]], 1e-6)
    assert_close(other, [1.0], 0)


@both_tracks
def test_a_matrix_whose_gradient_stays_away_comes_to_rest(track):
    """Its mean becomes smaller by a twentieth each step, until float32 has no such numbers any more."""
    ps = parameters(track, "float32")
    optimizer = muon(track, ps, weight_decay=0)
    give(ps, 0)
    moved = []
    for _ in range(2100):
        before = array(ps["wide"]).copy()
        optimizer.step()
        give_grads(ps.values(), [0.0] * len(ps))
        moved.append(np.abs(array(ps["wide"]) - before).max())
    assert moved[0] > 0.01 and moved[-1] == 0 and np.isfinite(moved).all()


@both_tracks
def test_the_others_move_exactly_as_with_adamw_alone(track):
    ps, alone = parameters(track), parameters(track)
    options = {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.3}
    mine = muon(track, ps, **options)
    alone = {name: p for name, p in alone.items() if name not in MATRICES}
    other = track.optim.AdamW(alone.values(), 0.1, **options)
    for seed in range(3):
        give(ps, seed)
        give(alone, seed)
        for optimizer in (mine, other):
            optimizer.lr = 0.1 * (seed + 1)
            optimizer.step()
        for name, p in alone.items():
            np.testing.assert_array_equal(array(ps[name]), array(p))
    assert mine.others.steps == 3


@both_tracks
def test_the_others_may_have_a_rate_of_their_own(track):
    """It keeps its proportion to the rate that a schedule sets, and a state brings it back."""
    ps, plain, alone = parameters(track), parameters(track), parameters(track)
    mine, same = muon(track, ps, lr=0.1, adamw_lr=0.3), muon(track, plain, lr=0.1)
    alone = {name: p for name, p in alone.items() if name not in MATRICES}
    other = track.optim.AdamW(alone.values(), 0.3)
    for seed, rate in enumerate((0.1, 0.04, 0.02)):
        for of in (ps, plain, alone):
            give(of, seed)
        mine.lr = same.lr = rate
        other.lr = mine.ratio * rate
        for optimizer in (mine, same, other):
            optimizer.step()
    for name in ps:
        np.testing.assert_array_equal(array(ps[name]), array((plain if name in MATRICES else alone)[name]))
    assert (mine.lr, mine.state_dict()["lr"]) == (0.02, 0.02) and abs(mine.others.lr - 0.06) < 1e-12
    again = muon(track, parameters(track), lr=0.5, adamw_lr=1.5)
    again.load_state_dict(mine.state_dict())
    assert again.lr == 0.02 and abs(again.others.lr - 0.06) < 1e-12


@both_tracks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_keeps_the_precision_and_the_numbers_in_their_vectors(track, dtype):
    ps = parameters(track, dtype)
    optimizer = muon(track, ps, np.float64(0.1))
    vectors = [part.flat for part in optimizer.parts]
    for seed in range(2):
        give(ps, seed)
        optimizer.clip_grad_norm_(np.float64(0.01))
        optimizer.lr = np.float64(0.01)
        optimizer.step()
    for p in ps.values():
        assert array(p).dtype == grad(p).dtype == dtype
        assert sum(np.shares_memory(array(p), array(flat)) for flat in vectors) == 1
        assert sum(np.shares_memory(array(p.grad), array(flat.grad)) for flat in vectors) == 1
    assert all(array(mean).dtype == dtype for mean in optimizer.means)
    assert all(value.dtype == dtype for value in optimizer.state_dict().values() if isinstance(value, np.ndarray))


@both_tracks
def test_zero_grad_forgets_both_parts(track):
    ps = parameters(track)
    optimizer = muon(track, ps)
    for times in (1, 2):
        sum(p.sum() for p in ps.values()).backward()
        for p in ps.values():
            assert_close(grad(p), np.full(p.shape, times))
    optimizer.zero_grad()
    assert all(p.grad is None for p in ps.values())


@both_tracks
def test_the_norm_is_that_of_all_parameters_together(track):
    p, q = track.leaf([[1.0]]), track.leaf([1.0])
    optimizer = track.muon.Muon([p, q], 0.1, [p])
    give_grads([p, q], [3, 4])
    assert optimizer.clip_grad_norm_(math.inf) == optimizer.clip_grad_norm_(5.0) == 5
    assert (grad(p).item(), grad(q).item()) == (3, 4)
    assert optimizer.clip_grad_norm_(1.0) == 5
    assert_close([grad(p).item(), grad(q).item()], [0.6, 0.8], 1e-12)
    with pytest.raises(ValueError, match="max_norm must be positive, not 0"):
        optimizer.clip_grad_norm_(0)


# ------------------------------------------------------------------ who may be trained


@both_tracks
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"matrices": ()}, "matrices must be .*not none"),
        ({"matrices": ("wide", "gain")}, r"two axes, not \(3, 5\), \(4,\)"),
        ({"matrices": ("wide", "wide")}, r"distinct .*not \(3, 5\), \(3, 5\)"),
        ({"momentum": 1}, "momentum must be at least 0 and below 1, not 1"),
        ({"momentum": -0.1}, "momentum must be .*not -0.1"),
        ({"momentum": math.nan}, "momentum must be .*not nan"),
        ({"lr": -0.1}, "lr must be .*not -0.1"),
        ({"lr": math.inf}, "lr must be .*not inf"),
        ({"adamw_lr": -0.1}, "lr must be .*not -0.1"),
        ({"adamw_lr": 0.1, "lr": 0}, "adamw_lr is kept in proportion to lr, which must be above 0, not 0"),
        ({"weight_decay": -0.1}, "weight_decay must be .*not -0.1"),
        ({"betas": (0.9, 1.0)}, r"betas must be .*not \(0.9, 1.0\)"),
    ],
)
def test_wrong_settings_are_refused_and_the_parameters_left_alone(track, wrong, message):
    ps = parameters(track)
    owner = muon(track, ps)
    with pytest.raises(ValueError, match=message):
        muon(track, ps, **wrong)
    owner.step()  # still the one whose steps arrive


@both_tracks
def test_matrices_of_somebody_else_and_nothing_but_matrices_are_refused(track):
    ps = parameters(track)
    chosen = [ps[name] for name in MATRICES]
    for all_parameters, matrices in ((ps.values(), [*chosen, track.leaf(np.ones((2, 2)))]), (chosen, chosen)):
        with pytest.raises(ValueError, match="some of the parameters"):
            track.muon.Muon(all_parameters, 0.1, matrices)


SECONDS = {
    "SGD": lambda track, ps: track.optim.SGD(ps.values(), 0.1),
    "Muon": muon,
    "AdamW of the matrices": lambda track, ps: track.optim.AdamW([ps[name] for name in MATRICES], 0.1),
    "AdamW of the others": lambda track, ps: track.optim.AdamW([ps["table"], ps["gain"]], 0.1),
}


@both_tracks
@pytest.mark.parametrize("second", SECONDS.values(), ids=SECONDS)
def test_a_second_optimiser_takes_over_and_the_first_says_so(track, second):
    ps = parameters(track)
    first = muon(track, ps)
    other = second(track, ps)
    give(ps, 0)
    before = {name: array(p).copy() for name, p in ps.items()}
    with pytest.raises(RuntimeError, match="another one"):
        first.step()
    for name, p in ps.items():
        np.testing.assert_array_equal(array(p), before[name])
    assert first.others.steps == 0 and not any(array(mean).any() for mean in first.means)
    other.step()


@both_tracks
@pytest.mark.parametrize("tied", [False, True])
def test_a_recipe_gives_muon_the_matrices_of_the_blocks_and_nothing_else(track, tied):
    config = GPTConfig(
        7, context_length=4, width=8, heads=2, layers=2, activation="gelu", attention_bias=True, tied=tied
    )
    model = track.models.GPT(config)
    recipe = Recipe("hello", "characters", {}, 10, 2, 0.25, 0.0, betas=(0.7, 0.8), weight_decay=0.3, optimizer="Muon")
    optimizer = recipe.new_optimizer(track.package, model)
    names = {id(p): name for name, p in model.named_parameters()}
    layers = [f"attention.layer.{part}" for part in ("query", "key", "value", "output")]
    layers += ["mlp.layer.up", "mlp.layer.down"]
    wanted = {f"blocks.{i}.{layer}.weight" for i in range(2) for layer in layers}
    assert type(optimizer) is track.muon.Muon is track.package.Muon
    assert {names[id(p)] for p in optimizer.matrices} == wanted and len(optimizer.matrices) == len(wanted)
    assert {names[id(p)] for p in optimizer.others.parameters} == set(names.values()) - wanted
    assert [id(p) for p in optimizer.parameters] == [id(p) for p in model.parameters()]
    assert (optimizer.lr, optimizer.others.betas, optimizer.momentum) == (0.25, (0.7, 0.8), 0.95)
    assert optimizer.weight_decay == optimizer.others.weight_decay == 0.3
    own = dataclasses.replace(recipe, adamw_lr=0.5).new_optimizer(track.package, track.models.GPT(config))
    assert (own.lr, own.others.lr, optimizer.others.lr) == (0.25, 0.5, 0.25)


@both_tracks
def test_a_recipe_without_a_word_takes_adamw_and_refuses_an_unknown_one(track):
    model = gpt(track)
    plain = Recipe("hello", "characters", {}, 10, 2, 0.25, 0.0, betas=(0.7, 0.8), weight_decay=0.3)
    optimizer = plain.new_optimizer(track.package, model)
    assert type(optimizer) is track.optim.AdamW and len(optimizer.parameters) == len(model.parameters())
    assert (optimizer.lr, optimizer.betas, optimizer.weight_decay) == (0.25, (0.7, 0.8), 0.3)
    with pytest.raises(ValueError, match="adamw_lr 0.5 is a setting of Muon: with AdamW, set lr"):
        dataclasses.replace(plain, adamw_lr=0.5).new_optimizer(track.package, model)
    recipe = Recipe("hello", "characters", {}, 10, 2, 0.25, 0.0, optimizer="muon")
    with pytest.raises(ValueError, match="optimizer must be 'AdamW' or 'Muon', not 'muon'"):
        recipe.new_optimizer(track.package, model)


# ------------------------------------------------------------------ whole runs


def gpt(track, dtype="float64", **options):
    size = {"context_length": 8, "width": 8, "heads": 2, "layers": 1, "dtype": dtype}
    return track.models.GPT(GPTConfig(len(TOKENIZER), **size, **options), seed=1)


def of_model(track, model, lr=0.5, **options):
    """Muon for a model; the rate is one that a schedule has to replace."""
    matrices = [p for name, p in model.named_parameters() if name.startswith("blocks.") and p.ndim == 2]
    return track.muon.Muon(model.parameters(), lr, matrices, **options)


def run(model, optimizer, steps, batches=None, **options):
    batches = Batches(IDS, 8, 4, seed=3) if batches is None else batches
    return train(model, optimizer, batches, steps, progress=False, **options)


def resume(tracks, tmp_path, steps, dtype="float64"):
    """Train ``steps`` steps in each of ``tracks``, through a file between two: the history and the last weights."""
    schedule = WarmupCosine(lr=0.02, warmup_steps=5, total_steps=steps * len(tracks), min_lr=0.001)
    path, model, history = tmp_path / "run.safetensors", gpt(tracks[0], dtype, dropout=0.1), History()
    for i, track in enumerate(tracks):
        batches, found = Batches(IDS, 8, 4, seed=3), load_checkpoint(path, track.name) if i else None
        model, history = (found.model, found.history) if found else (model, history)
        optimizer = of_model(track, model)
        if found:
            optimizer.load_state_dict(found.optimizer_state)
            batches.load_state_dict(found.batches_state)
        run(model, optimizer, steps, batches, schedule=schedule, clip=1.0, history=history)
        save_checkpoint(path, model, TOKENIZER, optimizer, batches, history=history)
    return history, model.state_dict()


def assert_states(mine, other, tolerance):
    for name, value in mine.items():
        np.testing.assert_allclose(value, other[name], rtol=0, atol=tolerance * np.abs(other[name]).max(), err_msg=name)


def test_40_steps_are_the_same_in_both_tracks_and_learn_something(tmp_path):
    (mine, state), (other, twin) = (resume([track], tmp_path, 40) for track in (NUMPY, TORCH))
    assert mine.steps == other.steps == 40 and mine.lrs == other.lrs
    assert largest_difference(mine.losses, other.losses) <= 1e-8
    assert largest_difference(mine.norms, other.norms) <= 1e-8
    assert np.mean(mine.losses[-10:]) < 0.9 * mine.losses[0] and max(mine.norms) > 1 > min(mine.norms)
    assert_states(state, twin, 1e-8)


@both_tracks
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_n_and_n_steps_are_2n_steps(track, dtype, tmp_path):
    whole, expected = resume([track], tmp_path, 12, dtype)
    history, state = resume([track, track], tmp_path, 6, dtype)
    assert (history.losses, history.norms, history.lrs) == (whole.losses, whole.norms, whole.lrs)
    assert len(set(whole.lrs)) == 12  # a schedule that begins anew would show
    for name, value in state.items():
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("tracks", [(NUMPY, TORCH), (TORCH, NUMPY), (NUMPY, TORCH, NUMPY)], ids=str)
def test_also_when_the_track_changes_half_way(tracks, tmp_path):
    whole, expected = resume([NUMPY], tmp_path, 12)
    history, state = resume(tracks, tmp_path, 12 // len(tracks))
    assert history.lrs == whole.lrs and largest_difference(history.losses, whole.losses) <= 1e-8
    assert_states(state, expected, 1e-8)


@both_tracks
def test_the_schedule_reaches_both_parts(track):
    models = [gpt(track) for _ in range(3)]
    before = models[0].state_dict()
    run(models[0], of_model(track, models[0]), 1, schedule=lambda step: 0.0)
    assert_states(models[0].state_dict(), before, 0)
    history = run(models[1], of_model(track, models[1], lr=7.0), 2, schedule=lambda step: 0.01)
    run(models[2], of_model(track, models[2], lr=0.01), 2)
    assert history.lrs == [0.01, 0.01]
    assert_states(models[1].state_dict(), models[2].state_dict(), 0)
    same = [name for name, value in models[1].state_dict().items() if (value == before[name]).all()]
    assert same == []  # every parameter moved


@both_tracks
def test_train_and_checkpoints_refuse_the_optimiser_of_another_model(track, tmp_path):
    model, other = gpt(track), gpt(track)
    with pytest.raises(ValueError, match="parameters of another model"):
        run(model, of_model(track, other), 1)
    with pytest.raises(ValueError, match="does not hold the parameters"):
        save_checkpoint(tmp_path / "w", model, TOKENIZER, of_model(track, other))


@both_tracks
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("bad", ["matrix", "vector"])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_a_gradient_that_is_not_finite_changes_nothing_in_either_part(track, bad, clip):
    """The loss is finite and the gradient of one parameter infinite: the root of x - x."""

    class Root(track.modules.Module):
        def __init__(self):
            self.matrix, self.vector = track.leaf([[1.0, 2.0]]), track.leaf([3.0])

        def forward(self, ids, targets=None):
            p = getattr(self, bad)
            return None, (p - p.detach()).sqrt().sum() + self.matrix.sum() + self.vector.sum()

    model = Root()
    optimizer = track.muon.Muon(model.parameters(), 0.5, [model.matrix])
    with pytest.raises(FloatingPointError, match=r"norm of the gradient is (nan|inf) at step 0, learning rate 0\.5"):
        run(model, optimizer, 3, clip=clip)
    assert_close(model.matrix, [[1, 2]], 0)
    assert_close(model.vector, [3], 0)
    assert optimizer.others.steps == 0 and not array(optimizer.means[0]).any()


# ------------------------------------------------------------------ states


def after_steps(track, ps, optimizer=None):
    """The optimiser after two steps with random gradients: nothing in its state is 0."""
    optimizer = muon(track, ps) if optimizer is None else optimizer
    for seed in range(2):
        give(ps, seed)
        optimizer.step()
    return optimizer


def smaller(track):
    """The state of a model whose table is one row shorter; its matrices are as large."""
    ps = parameters(track)
    ps["table"] = track.leaf(np.ones((3, 3)))
    return muon(track, ps).state_dict()


WRONG_STATES = {
    "of AdamW": (
        lambda track, state: track.optim.AdamW(parameters(track).values(), 0.1).state_dict(),
        "no matrices, only",
    ),
    "of SGD": (lambda track, state: track.optim.SGD(parameters(track).values(), 0.1).state_dict(), "only lr"),
    "fewer matrices": (lambda track, state: muon(track, parameters(track), matrices=["wide"]).state_dict(), r"\(15,\)"),
    "one number more": (lambda track, state: {**state, "matrices": np.ones(33)}, r"\(33,\).*\(32,\)"),
    "another form": (lambda track, state: {**state, "matrices": np.ones((2, 16))}, r"\(2, 16\).*\(32,\)"),
    "smaller others": (lambda track, state: smaller(track), r"\(13,\).*\(16,\)"),
    "others in another order": (lambda track, state: {**state, "decayed": 4}, "4 elements decay, here 12"),
}  # fmt: skip


@both_tracks
@pytest.mark.parametrize(("wrong", "message"), WRONG_STATES.values(), ids=WRONG_STATES)
def test_a_wrong_state_is_refused_and_nothing_is_half_loaded(track, wrong, message):
    optimizer = after_steps(track, parameters(track))
    before = optimizer.state_dict()
    state = wrong(track, {key: value * 2 for key, value in before.items() if key != "decayed"} | {"decayed": 12})
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(state)
    after = optimizer.state_dict()
    assert list(after) == list(before)
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value, key)


@both_tracks
def test_adamw_refuses_the_state_of_muon(track):
    with pytest.raises(ValueError, match="mean has shape .16,. in this state, not .48,."):
        track.optim.AdamW(parameters(track).values(), 0.1).load_state_dict(muon(track, parameters(track)).state_dict())


@both_tracks
@pytest.mark.parametrize("matrices", [MATRICES, ("tall",)], ids=["three", "one"])
def test_a_state_is_a_copy_and_so_is_what_was_loaded(track, matrices):
    ps = parameters(track)
    optimizer = after_steps(track, ps, muon(track, ps, matrices=matrices))
    state, again = optimizer.state_dict(), muon(track, parameters(track), lr=0.7, matrices=matrices)
    again.load_state_dict(state)
    assert again.lr == 0.1 and again.others.steps == 2
    kept = optimizer.state_dict()
    for key in ("matrices", "mean", "square"):
        state[key][...] = 5
        for each in (optimizer, again):
            np.testing.assert_array_equal(each.state_dict()[key], kept[key])
    assert kept["matrices"].ndim == 1 and np.abs(kept["matrices"]).min() > 0
