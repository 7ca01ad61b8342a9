"""The arithmetic of a real run: floating-point operations, memory, tokens and time of a GPT, from its config alone.

    config = gpt2_config()
    parameter_count(config)                            # 124,439,808
    training_flops(config, chinchilla_tokens(config))  # 2.1e18 operations
    seconds(2.1e18, 50e12, utilisation=0.4)            # 105,000 on a GPU with a peak of 50 · 10¹² operations per second

Letters: B batch, T time, C channels (width), H heads, L layers, V vocabulary, N numbers in the matrices. A multiply
and an add are two operations (FLOPs); a byte is 8 bits, a MiB 2²⁰ bytes.
"""

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
TOKENS_PER_PARAMETER = 20


def matrix_numbers(config):
    """N: numbers in the matrices that every token is multiplied with, the head included.

    The tables of tokens and positions are not: a row is looked up and nothing is multiplied. A tied table is the
    head's matrix, and as such it counts.
    """
    C, mlp = config.width, 8 if config.activation != "none" else 0
    return config.layers * (4 + mlp) * C * C + C * config.vocabulary_size


def parameter_count(config):
    """How many numbers are trained."""
    V, C, L = config.vocabulary_size, config.width, config.layers
    norms = {"pre": 1, "post": 1}.get(config.wiring, 0)
    block = 4 * C * C + 2 * C * norms + (4 * C if config.attention_bias else 0)
    if config.activation != "none":
        block += 8 * C * C + 5 * C + 2 * C * norms
    tables = V * C + (config.context * C if config.positions else 0)
    head = 0 if config.tied else C * V + V
    return tables + L * block + head + (2 * C if config.wiring == "pre" else 0)


def flops_per_token(config, length=None, training=True):
    """Operations for one token in a window of ``length`` tokens (the context, if None).

    Forward ``2 N + 4 L C T``: each number of a matrix is multiplied and added once (2 N), and so are query · key and
    weight · value, C numbers for each of T positions in each layer. Backward needs two products where forward has one,
    so training takes three times as many: ``6 N + 12 L C T`` (Kaplan et al. 2020, section 2.1; Chowdhery et al. 2022,
    appendix B). Cells that a causal mask hides are counted: the usual programs compute them too. LayerNorm, softmax and
    GELU are left out; they cost time, through memory, but hardly any operations.
    """
    length = config.context if length is None else length
    forward = 2 * matrix_numbers(config) + 4 * config.layers * config.width * length
    return 3 * forward if training else forward


def training_flops(config, tokens):
    """Operations of a training run over so many tokens."""
    return flops_per_token(config) * tokens


def chinchilla_tokens(config):
    """Tokens for which a model of this size is the best use of its operations: about 20 per parameter.

    A rule of thumb from Hoffmann et al. 2022 (table 3). GPT-2 and many later models were trained on more: a small
    model with more training is cheaper to use.
    """
    return TOKENS_PER_PARAMETER * parameter_count(config)


def seconds(flops, flops_per_second, utilisation=1.0):
    """How long so many operations take on a machine with this peak, of which a real run reaches ``utilisation``.

    Well-tuned training of large models reaches 0.3 to 0.5. Raises ValueError unless 0 < utilisation ≤ 1.
    """
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation is a part of the peak, above 0 and at most 1, not {utilisation}")
    return flops / (flops_per_second * utilisation)


def kv_cache_bytes(config, batch=1, length=None, dtype=None):
    """Bytes of the keys and values of ``length`` tokens (the context, if None): ``2 L B T C`` numbers."""
    length = config.context if length is None else length
    return 2 * config.layers * batch * length * config.width * BYTES[dtype or config.dtype]


def activation_bytes(config, batch=1, length=None, dtype=None, weights_kept=False):
    """Bytes that a forward pass of the nn.Module form keeps for backward, without dropout; an estimate.

    Numbers per token and layer: 6 C for the attention (into and out of its LayerNorm, query, key, value, context); 10 C
    for an MLP with GELU (into and out of its LayerNorm, 4 C before and 4 C after the bend), 6 C with ReLU, whose
    backward needs the result alone. At the end 2 C and V for the loss. A few more per token are left out. With
    ``weights_kept`` the H T attention weights too, as in a program that writes attention out: that is what
    scaled_dot_product_attention avoids by computing them again (Dao et al. 2022). Korthikanti et al. 2022, section 4.1,
    count alike: 34 C bytes in 16 bits, dropout masks included.
    """
    length = config.context if length is None else length
    per_layer = (6 + {"none": 0, "relu": 6, "gelu": 10}[config.activation]) * config.width
    if weights_kept:
        per_layer += config.heads * length
    numbers = batch * length * (config.layers * per_layer + 2 * config.width + config.vocabulary_size)
    return numbers * BYTES[dtype or config.dtype]


def training_bytes(config, batch=1, length=None, mixed=False):
    """Bytes for each thing that training with AdamW holds: a dict of weights, gradients, moments and activations.

    The first three make 4 + 4 + 8 = 16 bytes per parameter in float32. ``mixed``: activations in bfloat16; weights,
    gradients and moments stay as they are (see ``course_lib.idiomatic.training.OnDevice``).
    """
    weights = parameter_count(config) * BYTES[config.dtype]
    kept = activation_bytes(config, batch, length, "bfloat16" if mixed else None)
    return {"weights": weights, "gradients": weights, "moments": 2 * weights, "activations": kept}


def what_it_takes(config, batch=1, flops_per_second=50e12, utilisation=0.4):
    """The figures of a real run of ``config`` as text, one a line.

    >>> from course_lib.config import GPTConfig
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
