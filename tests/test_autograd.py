"""Tensor and backward: the chain rule through every operation. Names like A01 are those of known faults."""

import gc
import inspect
import re
import threading
import weakref

import numpy as np
import pytest
import torch
from track_tools import NUMPY, TORCH, array, assert_close, both_tracks, grad

from course_lib.numpy_track.gradcheck import gradient_check
from course_lib.numpy_track.tensor import Parameter, Tensor, concatenate, no_grad, unbroadcast

# ------------------------------------------------------------------ how gradients travel


@both_tracks
def test_A01_node_used_twice(track):
    x = track.leaf(2.0)
    y = 3 * x
    (2 * y + 5 * y).backward()
    assert grad(x) == 21
    a = track.leaf(1.0)
    b = a + a
    (b + b).backward()
    assert grad(a) == 4


@both_tracks
def test_A01_gradients_add_up_over_backward_calls(track):
    x = track.leaf([1.0, 2.0])
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert_close(grad(x), [2.0 * times, 4.0 * times])


@both_tracks
@pytest.mark.parametrize(
    ("shape", "expected"),
    [((3,), 4), ((1, 3), 4), ((4, 1), 3), ((), 12), ((1, 1), 12), ((2, 4, 3), 1), ((2, 1, 1), 12)],
)
def test_A04_broadcasting_is_undone(track, shape, expected):
    A, b = track.leaf(np.ones((4, 3))), track.leaf(np.ones(shape))
    (A + b).sum().backward()
    assert_close(grad(b), np.full(shape, expected))
    assert_close(grad(A), np.full((4, 3), b.shape[0] if len(shape) == 3 else 1))


def test_A04_unbroadcast_keeps_an_axis_of_size_one():
    assert unbroadcast(np.ones((4, 1)), (4, 1)).shape == (4, 1)
    assert unbroadcast(np.ones((2, 4, 3)), (1, 1, 3)).tolist() == [[[8, 8, 8]]]


@both_tracks
def test_A05_matmul_of_a_batch_and_of_a_vector(track):
    x, W = track.leaf(np.ones((2, 3, 4))), track.leaf(np.ones((4, 5)))
    (x @ W).sum().backward()
    assert_close(grad(W), np.full((4, 5), 6))
    A, b = track.leaf([[1, 2, 3], [4, 5, 6]]), track.leaf([1, 0, -1])
    track.project(A @ b, [1, 10]).backward()
    assert_close(grad(A), [[1, 0, -1], [10, 0, -10]])
    assert_close(grad(b), [41, 52, 63])


def test_A10_numpy_on_the_left_hands_over():
    t = NUMPY.leaf([1, 2, 4])
    ones = np.ones(3)
    for out, expected in [
        (ones * t, [1, 2, 4]),
        (ones + t, [2, 3, 5]),
        (ones - t, [0, -1, -3]),
        (ones / t, [1, 0.5, 0.25]),
    ]:
        assert isinstance(out, Tensor) and out.shape == (3,) and out.requires_grad
        assert_close(out, expected)
    assert isinstance(np.float64(2) * t, Tensor)
    assert_close(np.eye(3) @ t, [1, 2, 4])
    assert_close(np.ones((2, 3)) @ t, [7, 7])


def test_A11_deep_graphs_are_walked_and_freed_without_recursion():
    x = NUMPY.leaf(1.0)
    y = x
    for _ in range(5000):
        y = y + x
    y.backward()
    assert grad(x) == 5001
    y = x
    for _ in range(50_000):  # never walked: freeing it must not recurse either
        y = y + x
    last = weakref.ref(y)
    del y
    gc.collect()
    assert last() is None


@both_tracks
def test_A12_integers_cannot_ask_for_a_gradient(track):
    with pytest.raises((TypeError, RuntimeError), match="float"):
        track.tensor.Parameter(np.array([1, 2, 3]))
    t = track.leaf([1, 2, 3])
    (t / 2).sum().backward()
    assert_close(grad(t), [0.5, 0.5, 0.5])


def test_A12_the_tensor_says_what_to_write():
    with pytest.raises(TypeError, match=r"int64.*1\.0"):
        Tensor([1, 2, 3], requires_grad=True)
    with pytest.raises(TypeError, match="numbers"):
        Tensor(["a", "b"])


def test_A15_each_tensor_owns_its_gradient():
    a, b = NUMPY.leaf([1, 2]), NUMPY.leaf([3, 4])
    (a + b).sum().backward()
    a.grad *= 0.5
    assert_close(grad(b), [1, 1])
    assert not np.shares_memory(a.grad, b.grad)
    assert NUMPY.optim.clip_grad_norm_([a, b], 0.1) == pytest.approx(np.sqrt(2 * 0.25 + 2))
    assert_close(grad(b) / grad(a), [2, 2])  # each was scaled once
    upstream = np.ones(2)
    a.grad = None
    (a * 1).backward(upstream)
    assert not np.shares_memory(a.grad, upstream)


@pytest.mark.parametrize(
    "make",
    [lambda a: a, lambda a: a.reshape(4), lambda a: a.swapaxes(0, 1), lambda a: a[:], lambda a: concatenate([a, a]),
     lambda a: a.sum()],
)  # fmt: skip
def test_A15_no_gradient_is_a_view_of_another(make):
    a, b = NUMPY.leaf(np.ones((2, 2))), NUMPY.leaf(np.ones((2, 2)))
    middle = a + b
    middle.retain_grad()
    make(middle).backward(np.ones(make(middle).shape))
    before = grad(b).copy()
    a.grad *= 100
    middle.grad *= 100
    np.testing.assert_array_equal(grad(b), before)


# ------------------------------------------------------------------ the graph itself


@both_tracks
def test_a_freed_graph_refuses_a_second_backward(track):
    x = track.leaf([1, 2, 3])
    y = (x * x).sum()
    y.backward()
    before = grad(x).copy()
    with pytest.raises(RuntimeError, match="freed|second time"):
        y.backward()
    np.testing.assert_array_equal(grad(x), before)


def test_a_shared_part_that_was_freed_is_noticed_before_anything_changes():
    x = NUMPY.leaf([1, 2, 3])
    shared = x * x
    first, second = shared.sum(), (shared * 2 + x).sum()
    first.backward()
    before = grad(x).copy()
    with pytest.raises(RuntimeError, match="freed"):
        second.backward()
    np.testing.assert_array_equal(grad(x), before)


@both_tracks
def test_backward_needs_a_graph_and_one_number(track):
    with pytest.raises(RuntimeError):
        track.constant([1.0]).sum().backward()
    x = track.leaf([1, 2])
    with pytest.raises(RuntimeError):
        (x * x).backward()


def test_backward_checks_the_shape_of_the_gradient_it_is_given():
    x = NUMPY.leaf([1, 2])
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        (x * x).backward(np.ones(3))


@both_tracks
def test_retain_grad_keeps_the_gradient_in_the_middle(track):
    x = track.leaf([1, 2])
    y = x * 3
    y.retain_grad()
    z = y * 2
    z.sum().backward()
    assert_close(grad(y), [2, 2])
    assert z.grad is None if track is NUMPY else True


def test_a_tensor_knows_what_made_it():
    a, b = NUMPY.leaf([[1, 2]]), NUMPY.leaf([[3, 4]])
    total = (a * b).sum()
    product = total.parents[0]
    assert [total.operation, product.operation, a.operation] == ["sum", "__mul__", ""]
    assert len(total.parents) == 1 and product.parents[0] is a and product.parents[1] is b and a.parents == ()
    assert NUMPY.F.linear(a, NUMPY.leaf([[1], [2]])).operation == "linear"
    assert [id(t) for t in total.topological_order()][-2:] == [id(product), id(total)]


def test_a_graph_is_freed_when_nobody_holds_its_end():
    x = NUMPY.leaf([1, 2])
    middle = x * 2
    seen, loss = weakref.ref(middle), middle.sum()
    del middle
    assert seen() is not None
    loss.backward()  # afterwards the graph is gone, although the loss is still there
    assert seen() is None


# ------------------------------------------------------------------ no_grad


@both_tracks
def test_A18_no_grad_nests_and_survives_exceptions(track):
    x = track.leaf([1.0])
    off = track.tensor.no_grad
    with off():
        with off():
            assert not (x * 1).requires_grad
        assert not (x * 1).requires_grad
    assert (x * 1).requires_grad
    with pytest.raises(KeyError), off():
        raise KeyError
    assert (x * 1).requires_grad


@both_tracks
def test_no_grad_marks_a_function_and_nests_in_itself(track):
    x = track.leaf([1.0])

    @track.tensor.no_grad()
    def recorded(depth):
        """Words."""
        return (recorded(depth - 1) if depth else []) + [(x * 1).requires_grad]

    assert recorded(2) == [False] * 3
    assert recorded.__name__ == "recorded" and recorded.__doc__ == "Words."
    assert (x * 1).requires_grad


@both_tracks
def test_no_grad_is_of_one_thread(track):
    inside, leave = threading.Event(), threading.Event()

    def wait_without_a_graph():
        with track.tensor.no_grad():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=wait_without_a_graph)
    thread.start()
    inside.wait()
    try:
        p = track.leaf(3.0)
        (p * p).backward()
    finally:
        leave.set()
        thread.join()
    assert grad(p) == 6
    assert (p * p).requires_grad


@both_tracks
def test_A18_a_generator_that_pauses_inside_leaves_recording_off(track):
    x = track.leaf([1.0])

    def pauses():
        with track.tensor.no_grad():
            yield

    paused = pauses()
    next(paused)
    assert not (x * 1).requires_grad  # as documented; generate_ids therefore never pauses inside
    paused.close()
    assert (x * 1).requires_grad


@both_tracks
def test_detach_has_no_history(track):
    x = track.leaf([1.0, 2.0])
    y = (x * 2).detach()
    assert not y.requires_grad
    with pytest.raises(RuntimeError):
        x.numpy()
    assert_close(x.detach().numpy(), [1, 2])


# ------------------------------------------------------------------ precision


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_O21_the_precision_of_a_tensor_wins(dtype):
    others = [
        2, 2.0, np.float64(0.5), np.float32(0.5), np.int64(3), np.array(1.0), np.ones(3), np.arange(1, 4),
        np.ones(3, bool), [1.0, 2.0, 3.0], Tensor(np.array([1, 2, 3])), Tensor(np.array([True, False, True])),
    ]  # fmt: skip
    operations = ["__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__rtruediv__", "__truediv__"]
    for other in others:
        for name in operations:
            if name == "__truediv__" and array(other).dtype == bool:
                continue  # False would be a division by 0
            x = Parameter(np.array([1, 2, 4], dtype))
            out = getattr(x, name)(other)
            assert out.dtype == dtype, (name, other)
            (out * out).sum().backward()
            assert x.grad.dtype == dtype, (name, other)
    x = Parameter(np.array([1, 2, 4], dtype))
    for power in (2, 0.5, -1, np.float64(2), np.int64(3), np.float32(2)):
        x.grad = None
        (x**power).sum().backward()
        assert (x**power).dtype == x.grad.dtype == dtype


def test_O21_two_precisions_do_not_meet_unnoticed():
    single, double = NUMPY.leaf(np.ones((2, 2)), "float32"), NUMPY.leaf(np.ones((2, 2)))
    F = NUMPY.F
    for meet in [
        lambda a, b: a + b, lambda a, b: a @ b, lambda a, b: a / b, lambda a, b: concatenate([a, b]), F.linear,
        lambda a, b: F.attention(a, b, b)[0], lambda a, b: F.layer_norm(a, b[0].shape, b[0], b[0]),
        lambda a, b: a * Tensor(b.data),
    ]:  # fmt: skip
        for one, other in ((single, double), (double, single)):
            with pytest.raises(TypeError, match="float32.*float64|float64.*float32"):
                meet(one, other)


def test_python_floats_become_float32_and_arrays_keep_theirs():
    assert Tensor([1.0, 2.0]).dtype == Tensor(1.0).dtype == np.float32
    assert Tensor(np.float64(1)).dtype == Tensor(np.ones(2)).dtype == np.float64
    assert Tensor([1, 2]).dtype == np.int64


def test_a_tensor_is_a_copy_and_from_numpy_shares_memory():
    source = np.array([2.0])
    for copied in (Tensor(source), Tensor(NUMPY.tensor.from_numpy(source)), *(
        track.tensor.Parameter(source) for track in (NUMPY, TORCH)
    )):  # fmt: skip
        assert not np.shares_memory(source, array(copied))
    for track in (NUMPY, TORCH):
        shared = track.tensor.from_numpy(source)
        assert np.shares_memory(source, array(shared)) and np.shares_memory(source, array(shared.detach()))
    x = Tensor(source, requires_grad=True)
    y = x * x
    source += 1
    y.backward()
    assert_close(grad(x), [4])


# ------------------------------------------------------------------ plain values


def test_A07_what_is_not_differentiable_says_so_or_gives_plain_values():
    t = NUMPY.leaf([1.0, 3.0, 2.0])
    for out in (t == 1, t != 1, t < t, t <= 2, t > 2, t >= np.array([1, 2, 3]), t.argmax()):
        assert not isinstance(out, Tensor)
    assert "not differentiable" in inspect.getdoc(Tensor.argmax)
    for name in ("numpy", "__array__"):
        with pytest.raises(RuntimeError, match="detach"):
            getattr(t, name)()
    assert "ot differentiable" in inspect.getdoc(Tensor.numpy)
    assert type(t.sum().item()) is float
    assert NUMPY.leaf([2.0]) and not NUMPY.leaf([0.0])


# ------------------------------------------------------------------ the gradient check itself


def test_A19_the_check_agrees_with_pytorchs():
    x = NUMPY.leaf([0.3, -1.2, 2.0])
    assert gradient_check(lambda x: (x * x * x).tanh(), x) < 1e-8
    assert torch.autograd.gradcheck(lambda x: (x * x * x).tanh(), TORCH.leaf([0.3, -1.2, 2.0]))


def test_A19_float64_and_a_small_step():
    x = NUMPY.leaf([1.0])
    assert gradient_check(lambda x: x**3, x, step=1e-6) < 1e-9
    with pytest.raises(TypeError, match="float32"):
        gradient_check(lambda x: x**3, NUMPY.leaf([1.0], "float32"))
    with pytest.raises(TypeError, match="requires_grad"):
        gradient_check(lambda x: x**3, NUMPY.constant([1.0]))


def wrong(x, factor):
    """x squared, with a backward that is wrong at one place."""
    from course_lib.numpy_track.tensor import tracked

    return tracked(x.data**2, (x,), lambda grad: (grad * 2 * x.data * np.array([[1, 1], [1, factor]]),))


def test_a_wrong_backward_is_named_with_its_place_and_both_numbers():
    x = NUMPY.leaf([[1.0, 2.0], [3.0, 4.0]])
    assert gradient_check(lambda x: wrong(x, 1), x) < 1e-7
    with pytest.raises(AssertionError) as caught:
        gradient_check(lambda a, x: wrong(x, 1.001) + a, NUMPY.leaf([[0.0, 0.0], [0.0, 0.0]]), x)
    report = r"gradient of x, index \(1, 1\): backward says (\S+), the slope is (\S+)"
    backward_says, slope = map(float, re.fullmatch(report, str(caught.value)).groups())
    assert backward_says / slope == pytest.approx(1.001, rel=1e-6)
    with pytest.raises(AssertionError, match="nan"):
        gradient_check(lambda x: wrong(x, np.nan), x)


def test_a_gradient_that_never_arrives_is_found():
    x = NUMPY.leaf([1.0, 2.0])
    with pytest.raises(AssertionError, match="backward says 0"):
        gradient_check(lambda x: Tensor(x.data) * 3 + 0 * x, x)


def test_A21_a_plain_sum_would_be_blind():
    """A softmax always sums to 1, so a backward that returns 0 passes with a plain sum, and not with a projection."""
    from course_lib.numpy_track.tensor import tracked

    def broken(x):
        return tracked(NUMPY.F.softmax(x).data, (x,), lambda grad: (np.zeros_like(grad),))

    x = NUMPY.leaf([1.0, 2.0, 3.0])
    assert gradient_check(lambda x: broken(x).sum(), x) < 1e-8
    with pytest.raises(AssertionError):
        gradient_check(broken, x)


def test_the_check_leaves_the_numbers_as_they_were():
    x = NUMPY.leaf([0.1, -2.3])
    gradient_check(lambda x: x * x, x)
    np.testing.assert_array_equal(x.data, [0.1, -2.3])


def test_no_grad_of_track_two_is_pytorchs_own():
    assert TORCH.tensor.no_grad is torch.no_grad and no_grad is NUMPY.tensor.no_grad


# ------------------------------------------------------------------ integers meet floats

INTEGERS_MEET = {
    "number on the right": (lambda i, f: i * 0.5, [0.5, 1.0]),
    "number on the left": (lambda i, f: 0.5 * i, [0.5, 1.0]),
    "floats on the right": (lambda i, f: i * f, [0.25, 1.0]),
    "floats on the left": (lambda i, f: f * i, [0.25, 1.0]),
    "sum": (lambda i, f: i + f, [1.25, 2.5]),
    "difference": (lambda i, f: f - i, [-0.75, -1.5]),
    "quotient": (lambda i, f: i / f, [4.0, 4.0]),
    "product of vectors": (lambda i, f: i @ f, 1.25),
    "quotient of integers": (lambda i, f: i / 2, [0.5, 1.0]),
}


@both_tracks
@pytest.mark.parametrize("name", INTEGERS_MEET)
def test_integers_take_the_precision_of_floats(track, name):
    function, expected = INTEGERS_MEET[name]
    if name == "product of vectors" and track is TORCH:
        pytest.skip("PyTorch multiplies no matrices of different types")
    i, f = track.constant([1, 2], "int64"), track.leaf([0.25, 0.5], "float32")
    out = function(i, f)
    assert_close(out, expected, 0)
    assert array(out).dtype == np.float32
    if out.requires_grad:
        out.sum().backward()
        assert np.isfinite(grad(f)).all()  # and of its shape and precision
    if track is NUMPY:
        assert function(i, track.leaf([0.25, 0.5], "float64")).dtype == (np.float64 if out.requires_grad else "float32")


def test_floats_made_from_integers_are_float32():
    i = Tensor([1, 2, 3])
    for out, expected in ((i.mean(), 2), (i.sqrt() ** 2, [1, 2, 3]), (i.exp().log(), [1, 2, 3]), (i / i, [1, 1, 1])):
        assert out.dtype == np.float32
        assert_close(out, expected, 1e-6)
    assert (i * 2).dtype == (i + i).dtype == i.sum().dtype == np.int64
    x = Parameter(np.array([0.5], "float32"))
    assert (Tensor([2]) * x).operation == "__mul__"
    assert concatenate([i, x]).dtype == np.float32
    with pytest.raises(TypeError, match="two precisions in one operation: float32 and float64"):
        x * Tensor(np.array([0.5]))
