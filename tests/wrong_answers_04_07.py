"""Wrong answers to the exercises of notebooks 04 to 07; wrong_answers.py says how to read them."""

WRONG = {
    "04.1": [
        ("rows and columns exchanged", "<=", ">=", "shows the future"),
        ("without the diagonal", "<=", "<", "may look at itself"),
        ("diagonal off by one", "<= position[:, None]", "<= position[:, None] + 1", "sees the next one"),
        ("True means hidden", "<=", ">", "True means"),
        (
            "numbers to add to the scores",
            "return position[None, :] <= position[:, None]",
            "return np.triu(np.full((size, size), -np.inf), 1)",
            "numbers to be added",
        ),
        (
            "zeros and ones",
            "return position[None, :] <= position[:, None]",
            "return np.tril(np.ones((size, size)))",
            "dtype=bool",
        ),
        ("size fixed", "np.arange(size)", "np.arange(3)", "size is fixed"),
    ],
    "04.2": [
        ("the diagonal is lost", "<=", "<", "look at the diagonal"),
        ("sees one ahead", "<= position[:, None]", "<= position[:, None] + 1", "which axis is the query"),
        ("mask forgotten", "F.attention(q, k, v, allow)", "F.attention(q, k, v)", "which axis is the query"),
        ("keys and values exchanged", "q, k, v, allow", "q, k, allow", "happened: stopped with"),
    ],
    "04.3": [
        ("over both axes", "axis=-1", "axis=(-1, -2)", "shares out its attention"),
        ("over the batch", "axis=-1", "axis=0", "shares out its attention"),
        ("hidden cells the wrong way round", "0, -1e9", "-1e9, 0", "happened: logits of the earlier position"),
        ("raw scores", "F.softmax(scores + hidden, axis=-1)", "scores", "shares out its attention"),
    ],
    "04.4": [
        (
            "mask behind softmax",
            "",
            "def masked_softmax(scores, allow):\n"
            "    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
            "    return exps / exps.sum(axis=-1, keepdims=True) * allow",
            "mask comes after softmax",
        ),
        ("True hides", "np.where(allow, scores, -np.inf)", "np.where(allow, -np.inf, scores)", "True means"),
        ("zeros", "-np.inf)\n", "0.0)\n", "exp(0) is 1"),
        ("no mask", "    scores = np.where(allow, scores, -np.inf)\n", "", "mask was not used"),
        (
            "nan in empty rows",
            "np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(scores.dtype).min)",
            "scores.max(axis=-1, keepdims=True)",
            "becomes 0 / 0",
        ),
        ("-1e9", "-np.inf)\n", "-1e9)\n", "looks at everything"),
        (
            "hidden maximum",
            "",
            "def masked_softmax(scores, allow):\n"
            "    exps = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allow\n"
            "    total = exps.sum(axis=-1, keepdims=True)\n"
            "    return exps / np.where(allow.any(axis=-1, keepdims=True), total, 1)",
            "takes part in the maximum",
        ),
        (
            "wrong axis",
            "",
            "def masked_softmax(scores, allow):\n    exps = np.exp(np.where(allow, scores, -np.inf))\n"
            "    return exps / exps.sum(axis=-2, keepdims=True)",
            "each row sums to 1",
        ),
        (
            "in place",
            "scores = np.where(allow, scores, -np.inf)",
            "scores[~np.broadcast_to(allow, scores.shape)] = -np.inf",
            "make a new one",
        ),
    ],
    "05.1": [
        (
            "bare reshape",
            "    x = x.reshape(B, T, heads, C // heads)  # (B, T, C) → (B, T, H, D)\n    return x.swapaxes(1, 2)",
            "    return x.reshape(B, heads, T, C // heads)",
            "a bare reshape",
        ),
        ("axes not exchanged", "x.swapaxes(1, 2)", "x", "heads must stand before"),
        (
            "cut across",
            "x.reshape(B, T, heads, C // heads)  # (B, T, C) → (B, T, H, D)\n    return x.swapaxes(1, 2)",
            "x.reshape(B, T, C // heads, heads)\n    return x.transpose(0, 3, 1, 2)",
            "cut across",
        ),
        ("last axes exchanged", "x.swapaxes(1, 2)", "x.transpose(0, 2, 3, 1)", "last two axes"),
        ("batch moved", "x.swapaxes(1, 2)", "x.transpose(2, 0, 1, 3)", "the batch has moved"),
        (
            "calls the library",
            "",
            "def split_heads(x, heads):\n    return F.split_heads(x, heads)",
            "happened: asked to write",
        ),
    ],
    "05.2": [
        ("bare reshape", "x.swapaxes(1, 2).reshape", "x.reshape", "a bare reshape"),
        ("not joined", ".reshape(B, T, H * D)", "", "not yet joined"),
        ("interleaved", "x.swapaxes(1, 2)", "x.transpose(0, 2, 3, 1)", "interleaved"),
        ("added up", "x.swapaxes(1, 2).reshape(B, T, H * D)", "x.sum(axis=1)", "added up"),
        ("one head only", "x.swapaxes(1, 2).reshape(B, T, H * D)", "x[:, 0]", "only one head"),
    ],
    "05.3": [
        ("merged by a bare reshape", "context.swapaxes(1, 2).reshape", "context.reshape", "a reshape moves numbers"),
        ("mask forgotten", "F.attention(q, k, v, F.causal_mask(T))", "F.attention(q, k, v)", "a reshape moves numbers"),
        (
            "one head in place of H",
            "T, H, C // H).swapaxes(1, 2)",
            "T, 1, C).swapaxes(1, 2)",
            "split, attend, and merge",
        ),
        (
            "cut across",
            "T, H, C // H).swapaxes(1, 2)",
            "T, C // H, H).swapaxes(2, 3).swapaxes(1, 2)",
            "split, attend, and merge",
        ),
    ],
    "06.1": [
        (
            "divided by C - 1",
            "x.var(axis=-1, keepdims=True)",
            "x.var(axis=-1, keepdims=True, ddof=1)",
            "divided by C - 1",
        ),
        (
            "wrong axis",
            "x.mean(axis=-1, keepdims=True)  # (..., C) → (..., 1)\n    variance = x.var(axis=-1, keepdims=True)",
            "x.mean(axis=0, keepdims=True)\n    variance = x.var(axis=0, keepdims=True)",
            "over the wrong axis",
        ),
        (
            "over everything",
            "x.mean(axis=-1, keepdims=True)  # (..., C) → (..., 1)\n    variance = x.var(axis=-1, keepdims=True)",
            "x.mean()\n    variance = x.var()",
            "over everything",
        ),
        ("no root", "np.sqrt(variance + epsilon)", "(variance + epsilon)", "not by its root"),
        ("ε outside the root", "np.sqrt(variance + epsilon)", "(np.sqrt(variance) + epsilon)", "under the root"),
        (
            "keepdims forgotten",
            "x.mean(axis=-1, keepdims=True)  # (..., C) → (..., 1)\n    variance = x.var(axis=-1, keepdims=True)",
            "x.mean(axis=-1)\n    variance = x.var(axis=-1)",
            "keepdims=True",
        ),
        ("no gain", " * gain", "", "`gain` is missing"),
        ("no bias", " + bias", "", "`bias` is missing"),
        ("mean not taken off", "(x - mean)", "x", "mean is not taken off"),
        (
            "calls PyTorch",
            "",
            "def layer_norm(x, gain, bias, epsilon):\n    x, gain, bias = map(torch.tensor, (x, gain, bias))\n"
            "    return torch.layer_norm(x, x.shape[-1:], gain, bias, epsilon).numpy()",
            "happened: asked to write",
        ),
    ],
    "06.2": [
        ("constants", "(h - by_mean - by_scale)", "h", "treated as constants"),
        ("no term for the variance", " - by_scale", "", "term of the variance"),
        ("no term for the mean", " - by_mean", "", "term of the mean"),
        ("no gain", "grad * gain", "grad", "`gain` is missing"),
        ("not divided", "by_scale) * scale", "by_scale)", "the deviation is missing"),
        (
            "sums in place of means",
            "h.mean(axis=-1, keepdims=True)\n    by_scale = normed * (h * normed).mean(",
            "h.sum(axis=-1, keepdims=True)\n    by_scale = normed * (h * normed).sum(",
            "these are sums",
        ),
        (
            "means of everything",
            "h.mean(axis=-1, keepdims=True)\n    by_scale = normed * (h * normed).mean(axis=-1, keepdims=True)",
            "h.mean()\n    by_scale = normed * (h * normed).mean()",
            "over everything",
        ),
    ],
    "06.3": [
        (
            "only the mean mended",
            "variance = (centred * centred).mean(axis=-1",
            "variance = (centred * centred).mean(axis=1",
            "whose mean",
        ),
        ("over time and channels", "x - x.mean(axis=-1", "x - x.mean(axis=(1, 2)", "whose mean"),
        ("gain lost", " * self.gain", "", "last axis"),
        ("no root", ".sqrt()", "", "last axis"),
    ],
    "06.4": [
        (
            "constant length",
            "(grad - normed * (grad * normed).mean(axis=-1, keepdims=True))",
            "grad",
            "treated as a constant",
        ),
        ("LayerNorm's", "(grad - normed", "(grad - grad.mean(axis=-1, keepdims=True) - normed", "that is LayerNorm's"),
        ("no scale", "return scale * (", "return (", "factor s is missing"),
        ("sum", "(grad * normed).mean(", "(grad * normed).sum(", "in place of the mean"),
        ("x for n", "normed = x * scale", "normed = x", "normalised form"),
        ("sign", "(grad - normed", "(grad + normed", "the sign"),
        (
            "over everything",
            "(grad * normed).mean(axis=-1, keepdims=True)",
            "(grad * normed).mean()",
            "over everything",
        ),
    ],
    "07.1": [
        ("relu of the gradient", "grad * (x > 0)", "np.maximum(grad, 0)", "sign of x decides"),
        ("relu itself", "grad * (x > 0)", "np.maximum(x, 0)", "ReLU itself"),
        ("no gradient", "grad * (x > 0)", "(x > 0).astype(x.dtype)", "without grad"),
        ("other side", "x > 0", "x < 0", "where x < 0"),
        ("at zero", "x > 0", "x >= 0", "at x = 0"),
        ("times relu", "(x > 0)", "np.maximum(x, 0)", "times relu"),
        ("booleans", "grad * (x > 0)", "x > 0", "happened: is bool, expected is float64"),
    ],
    "07.2": [
        ("only the first term", " + 0.5 * x * (1 - bent**2) * inner", "", "second term"),
        ("only the second term", "0.5 * (1 + bent) + ", "", "first term"),
        ("no gradient", "grad * (", "(", "without grad"),
        ("no inner slope", " * inner)", ")", "du/dx is missing"),
        ("slope of x³ is x²", "1 + 3 * cubic", "1 + cubic", "the 3 is missing"),
        ("slope of tanh", "1 - bent**2", "1 - bent", "not 1 - tanh"),
    ],
    "07.3": [
        ("no bend", "np.maximum(x @ W_in + b_in, 0)", "x @ W_in + b_in", "bend is missing"),
        (
            "bend twice",
            "return inner @ W_out + b_out",
            "return np.maximum(inner @ W_out + b_out, 0)",
            "at the end, too",
        ),
        (
            "bend at the end",
            "",
            "def mlp(x, W_in, b_in, W_out, b_out):\n    return np.maximum((x @ W_in + b_in) @ W_out + b_out, 0)",
            "between the two matrices",
        ),
        (
            "bend at the start",
            "np.maximum(x @ W_in + b_in, 0)",
            "np.maximum(x, 0) @ W_in + b_in",
            "bend stands at the start",
        ),
        (
            "bias behind the bend",
            "np.maximum(x @ W_in + b_in, 0)",
            "np.maximum(x @ W_in, 0) + b_in",
            "comes before the bend",
        ),
        ("no inner bias", "x @ W_in + b_in", "x @ W_in", "`b_in` is missing"),
        ("no outer bias", " + b_out", "", "`b_out` is missing"),
        ("residual", "return inner", "return x + inner", "residual path"),
    ],
}

VALUES = {
    "05.4": [
        ("multiplied", [9216, 2359296], "do not multiply"),
        ("whole width", [768, 2359296], "part of the width only"),
        ("no output", [64, 1769472], "output matrix is missing"),
        ("one matrix", [64, 589824], "that is one matrix"),
        ("one head", [64, 196608], "that is one head"),
        ("once a head", [64, 28311552], "do not count these"),
    ],
    "06.5": [
        ("all", [True, True, True], "the one that stays"),
        ("pre-norm only", [False, False, True], "a warm-up helps"),
        ("warm-up only", [False, True, False], "learns from the first step"),
        ("exchanged", [True, True, False], "the other way round"),
    ],
    "07.4": [
        ("no bend", [1, -3, 0], "bend is missing"),
        ("no bias", [2, 0, 1], "bias is missing"),
        ("bias added", [3, 0, 2], "do not add it"),
        ("no minus", [3, 3, 2], "minus of the pattern"),
        ("bias behind the bend", [1, -1, 0], "bias comes before"),
    ],
}
