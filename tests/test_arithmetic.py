"""The arithmetic of a real run, against figures worked out by hand for GPT-2's smallest size, and against models."""

import dataclasses
import itertools

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from track_tools import NUMPY

from course_lib.common.config import GPTConfig
from course_lib.common.costs import (
    activation_bytes,
    chinchilla_tokens,
    flops_per_token,
    kv_cache_bytes,
    matrix_numbers,
    parameter_count,
    seconds,
    training_bytes,
    training_flops,
    what_it_takes,
)
from course_lib.idiomatic.gpt import GPT
from course_lib.inference.gpt2 import gpt2_config

GPT2 = gpt2_config()
SMALL = GPTConfig(50, 64, 96, 4, 2, activation="gelu")


def test_numbers_of_gpt2():
    assert parameter_count(GPT2) == 124_439_808
    # 12 blocks of 12 · 768², and the head: 84,934,656 + 38,597,376
    assert matrix_numbers(GPT2) == 123_532_032
    assert chinchilla_tokens(GPT2) == 2_488_796_160


def test_parameters_are_those_of_the_model():
    sizes = itertools.product(("pre", "post", None), ("relu", "none"), (True, False), (True, False))
    for norm, activation, tied, bias in sizes:
        config = GPTConfig(
            7, 5, 6, 2, 3, activation=activation, norm=norm, tied=tied, attention_bias=bias, positions=not bias
        )
        assert parameter_count(config) == NUMPY.models.GPT(config).num_parameters(), config
    assert parameter_count(GPTConfig(17)) == 39_153


def test_operations_of_gpt2():
    # 2 · 123,532,032 = 247,064,064, and attention: 4 · 12 · 768 · 1024 = 37,748,736
    assert flops_per_token(GPT2, training=False) == 284_812_800
    assert flops_per_token(GPT2) == 854_438_400  # 3 times
    assert flops_per_token(dataclasses.replace(GPT2, context_length=1), training=False) == 247_064_064 + 36_864
    assert training_flops(GPT2, 10) == 8_544_384_000
    assert training_flops(GPT2, chinchilla_tokens(GPT2)) == pytest.approx(2.1265e18, rel=1e-4)


def test_operations_are_those_of_the_products():
    """PyTorch's own counter on the nn.Module form; attention written out, whose products it sees."""
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.zeros(3, 64, dtype=torch.int64)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        _, loss = GPT(SMALL)(x, x)
        forward = counter.get_total_flops()
        loss.backward()
    assert forward == 3 * 64 * flops_per_token(SMALL, training=False)
    assert counter.get_total_flops() == 3 * 64 * flops_per_token(SMALL)


def test_memory_of_gpt2():
    assert training_bytes(GPT2, batch=2) == {
        "weights": 497_759_232, "gradients": 497_759_232, "moments": 995_518_464,
        # 2 · 1024 tokens, each 12 layers · 16 · 768 and 2 · 768 + 50,257 numbers of 4 bytes: 199,249 numbers
        "activations": 1_632_247_808,
    }  # fmt: skip
    assert kv_cache_bytes(GPT2) == 75_497_472 == 72 * 2**20
    assert kv_cache_bytes(dataclasses.replace(GPT2, dtype="float64"), batch=3) == 2 * 12 * 3 * 1024 * 768 * 8


def test_the_cache_is_as_large():
    for dtype in ("float32", "float64"):
        config = dataclasses.replace(SMALL, dtype=dtype)
        cache = NUMPY.models.GPT(config).new_cache(3)
        assert cache.keys.nbytes + cache.values.nbytes == kv_cache_bytes(config, batch=3)


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_activations_are_what_is_kept(activation):
    """The memory that autograd keeps hold of, each piece once, parameters aside."""
    config = dataclasses.replace(SMALL, activation=activation)
    model, x, kept = GPT(config), torch.zeros(2, 64, dtype=torch.int64), {}
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and tensor.is_floating_point():
            kept[storage.data_ptr()] = storage  # held, so that no other takes its address
        return tensor

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(x, x)[1]
    measured = sum(storage.nbytes() for storage in kept.values())
    assert loss.isfinite() and 0.99 * measured < activation_bytes(config, batch=2) <= measured  # a little is left out


def test_time():
    assert seconds(1e18, 50e12) == 20_000
    assert seconds(1e18, 50e12, utilisation=0.4) == 50_000
    for wrong in (0, -1, 1.1):
        with pytest.raises(
            ValueError, match=f"utilisation is a fraction of the peak, above 0 and at most 1, not {wrong}"
        ):
            seconds(1, 1, wrong)


def test_the_table():
    rows = what_it_takes(GPT2, batch=8).splitlines()
    assert rows[0].split() == ["parameters", "124,439,808"]
    assert rows[4].endswith(" 29.54 hours")  # 2.1265e18 / (0.4 · 50e12) = 106,326 seconds
    assert rows[-1].endswith(" 72.00 MiB") and {len(row) for row in rows} == {50}
