"""The arithmetic of a real run: floating-point operations, memory, tokens and time for a GPT, from its config alone.

    config = gpt2_config()
    parameter_count(config)                            # 124,439,808
    training_flops(config, chinchilla_tokens(config))  # 2.1e18 operations
    seconds(2.1e18, 50e12, utilisation=0.4)            # 105,000 on a GPU with a peak of 50 · 10¹² operations per second

Letters: B batch, T time, C channels (width), L layers, V vocabulary, N elements of the matrices. A multiplication and
an addition are two operations (FLOPs); a byte is 8 bits, a MiB is 2²⁰ bytes.
"""

import numpy as np

TOKENS_PER_PARAMETER = 20


def matrix_numbers(config):
    """Return N, the number of elements of the matrices that every token is multiplied by, the head included.

    The tables of tokens and positions do not count: a row is looked up, not multiplied. A tied table counts as the
    head's matrix.
    """
    attention = 2 * (config.heads + config.key_value_heads) * config.head_size  # rows of query and output, key, value
    mlp = _mlp_matrices(config) * config.hidden_units
    return config.layers * (attention + mlp) * config.width + config.width * config.vocab_size


def _mlp_matrices(config):
    return {"none": 0, "swiglu": 3}.get(config.activation, 2)


def parameter_count(config):
    """Return the number of trained parameters."""
    V, C, D, bias = config.vocab_size, config.width, config.head_size, int(config.bias)
    norm = 0 if config.norm is None else C if config.norm_layer == "rms_norm" else C + C * bias
    block = norm + (2 * D if config.qk_norm else 0)
    if config.attention_bias:
        block += (config.heads + 2 * config.key_value_heads) * D + C
    if config.activation != "none":
        block += norm + bias * ((_mlp_matrices(config) - 1) * config.hidden_units + C) + C * (config.conv_kernel or 0)
    tables = V * C + (config.context_length * C if config.positions and not config.rotary else 0)
    matrices = matrix_numbers(config) - C * V  # those of the blocks
    head = 0 if config.tied else C * V + V * bias
    return tables + matrices + config.layers * block + head + (norm if config.norm == "pre" else 0)


def flops_per_token(config, training=True):
    """Return the operations for one token in a window of T tokens, the whole context.

    Forward ``2 N + 4 L C T``: each element of a matrix takes one multiplication and one addition (2 N), and so does
    each of the C products of query · key and of weight · value (H D of them, where ``head_dim`` is set), for each of T
    positions in each layer. Backward needs two matrix products for every one of forward, so training takes three times
    as many: ``6 N + 12 L C T`` (Kaplan et al. 2020, section 2.1; Chowdhery et al. 2022, appendix B). Cells hidden by a
    mask count: most programs compute them too. Norms, softmax and activations are left out: they take time, for memory
    traffic, but hardly any operations.
    """
    attention = 4 * config.layers * config.heads * config.head_size * config.context_length
    forward = 2 * matrix_numbers(config) + attention
    return 3 * forward if training else forward


def training_flops(config, tokens):
    """Return the operations of a training run over that many tokens."""
    return flops_per_token(config) * tokens


def chinchilla_tokens(config):
    """Return the number of training tokens at which a model of this size makes the best use of its operations.

    The rule of thumb of 20 per parameter is from Hoffmann et al. 2022 (table 3). Many later models were trained on
    more: a small model trained for longer is cheaper to use.
    """
    return TOKENS_PER_PARAMETER * parameter_count(config)


def seconds(flops, flops_per_second, utilisation=1.0):
    """Return the seconds that ``flops`` operations take on a machine that reaches ``utilisation`` of its peak.

    Well-tuned training of large models reaches 0.3 to 0.5. Raises ValueError unless 0 < utilisation ≤ 1.
    """
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation is a fraction of the peak, above 0 and at most 1, not {utilisation}")
    return flops / (flops_per_second * utilisation)


def kv_cache_bytes(config, batch=1):
    """Return the bytes of the keys and values of a whole context, ``2 L B T G D`` elements, G their heads: mostly C."""
    elements = config.context_length * config.key_value_heads * config.head_size
    return 2 * config.layers * batch * elements * np.dtype(config.dtype).itemsize


def activation_bytes(config, batch=1):
    """Estimate the bytes that a forward pass of the nn.Module form keeps for backward, without dropout.

    Elements per token and layer: 6 C for attention (into and out of its LayerNorm, query, key, value, context); 10 C
    for an MLP with GELU (into and out of its LayerNorm, 4 C before and 4 C after the nonlinearity), 6 C with ReLU,
    whose backward needs only the result; with SwiGLU the hidden units four times: gate, silu(gate), up, product. At
    the end 2 C, and V for the loss. A few more per token are left out (what a rotation or QK-norm keeps, for one), and
    so are the attention weights: scaled_dot_product_attention computes them again instead of keeping them (Dao et al.
    2022). Korthikanti et al. 2022, section 4.1, count in the same way: 34 C bytes in 16 bits, dropout masks included.
    """
    per_layer = 2 * config.width + 2 * (config.heads + config.key_value_heads) * config.head_size
    if config.activation != "none":
        times = {"relu": 1, "gelu": 2, "swiglu": 4}.get(config.activation, 2)
        per_layer += 2 * config.width + times * config.hidden_units
    numbers = batch * config.context_length * (config.layers * per_layer + 2 * config.width + config.vocab_size)
    return numbers * np.dtype(config.dtype).itemsize


def training_bytes(config, batch=1):
    """Return the bytes that training with AdamW holds: a dict of weights, gradients, moments and activations.

    The first three add up to 4 + 4 + 8 = 16 bytes per parameter in float32.
    """
    weights = parameter_count(config) * np.dtype(config.dtype).itemsize
    kept = activation_bytes(config, batch)
    return {"weights": weights, "gradients": weights, "moments": 2 * weights, "activations": kept}


def what_it_takes(config, batch=1, flops_per_second=50e12, utilisation=0.4):
    """Return the figures of a real run of ``config`` as text, one per line.

    >>> from course_lib.common.config import GPTConfig
    >>> print(what_it_takes(GPTConfig(17), batch=4, flops_per_second=1e9))
    parameters                                  39,153
    tokens, 20 per parameter                   783,060
    operations per token in training           233,664
    operations of the whole run                1.8e+11
    time at 1e+09/s, 40 % of it             0.13 hours
    weights                                   0.15 MiB
    gradients                                 0.15 MiB
    moments                                   0.30 MiB
    activations, batch of 4                   0.15 MiB
    keys and values, one text                 0.01 MiB
    """
    tokens, per_token = chinchilla_tokens(config), flops_per_token(config)
    total = training_flops(config, tokens)
    hours = seconds(total, flops_per_second, utilisation) / 3600
    held = training_bytes(config, batch)
    held[f"activations, batch of {batch}"] = held.pop("activations")
    held["keys and values, one text"] = kv_cache_bytes(config)
    rows = [
        ("parameters", f"{parameter_count(config):,}"),
        (f"tokens, {TOKENS_PER_PARAMETER} per parameter", f"{tokens:,}"),
        ("operations per token in training", f"{per_token:,}"),
        ("operations of the whole run", f"{total:.1e}"),
        (f"time at {flops_per_second:.0e}/s, {100 * utilisation:.0f} % of it", f"{hours:,.2f} hours"),
        *((name, f"{size / 2**20:,.2f} MiB") for name, size in held.items()),
    ]
    return "\n".join(f"{name:34}{value:>16}" for name, value in rows)
