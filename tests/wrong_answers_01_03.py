"""Wrong answers to the exercises of notebooks 01 to 03; wrong_answers.py says how to read them."""

WRONG = {
    "01.1": [
        ("letters of the text", "enumerate(vocabulary)", "enumerate(sorted(set(text)))", "letters of the text"),
        ("vocabulary sorted again", "enumerate(vocabulary)", "enumerate(sorted(vocabulary))", "sorted again"),
        ("code points", "ids[character] for", "ord(character) for", "code points"),
        (
            "dropped",
            "",
            "def encode(text, vocabulary):\n"
            "    return np.array([vocabulary.index(c) for c in text if c in vocabulary])",
            "dropped silently",
        ),
        (
            "id 0",
            "",
            "def encode(text, vocabulary):\n    ids = {c: i for i, c in enumerate(vocabulary)}\n"
            "    return np.array([ids.get(c, 0) for c in text])",
            "a real character",
        ),
        (
            "a dictionary alone",
            "",
            "def encode(text, vocabulary):\n    ids = {c: i for i, c in enumerate(vocabulary)}\n"
            "    return np.array([ids[c] for c in text])",
            "KeyError",
        ),
        (
            "index",
            "",
            "def encode(text, vocabulary):\n    return np.array([vocabulary.index(c) for c in text])",
            "comes from `index`",
        ),
        ("places from 1", "enumerate(text)", "enumerate(text, 1)", "places count from 0"),
        (
            "message without the character",
            "unknown character {character!r}",
            "unknown character",
            "happened: does not name ?",
        ),
        ("another error", "raise ValueError", "raise IndexError", "happened: a ValueError is expected"),
    ],
    "01.2": [
        ("last window lost", "range(len(ids) - T)", "range(len(ids) - T - 1)", "last window is missing"),
        ("one too many", "range(len(ids) - T)", "range(len(ids) - T + 1)", "one window too many"),
        ("not moved", "ids[i + 1 : i + T + 1]", "ids[i : i + T]", "not moved on"),
        ("exchanged", "return x, y", "return y, x", "exchanged"),
        ("moved by T", "ids[i + 1 : i + T + 1]", "ids[i + T : i + 2 * T]", "a whole window later"),
        ("stride T", "range(len(ids) - T)", "range(0, len(ids) - T, T)", "side by side"),
        (
            "lists",
            "np.array([ids[i : i + T] for i in starts])",
            "[ids[i : i + T] for i in starts]",
            "happened: a NumPy array is expected",
        ),
    ],
    "01.3": [
        ("used twice", "i += 2", "i += 1", "is used again"),
        ("three places", "i += 2", "i += 3", "passed over"),
        ("first only", "            i += 2\n", "            return merged + tokens[i + 2 :]\n", "only the first pair"),
        (
            "on letters",
            "",
            "def merge_pair(tokens, pair):\n    tokens = list(''.join(tokens))\n"
            "    merged, i, new = [], 0, ''.join(pair)\n    while i < len(tokens):\n"
            "        if ''.join(tokens[i : i + len(new)]) == new:\n            merged.append(new)\n"
            "            i += len(new)\n        else:\n            merged.append(tokens[i])\n"
            "            i += 1\n    return merged",
            "letters are compared",
        ),
        ("dropped", "            merged.append(pair[0] + pair[1])\n", "", "pair was dropped"),
        (
            "either order",
            "tuple(tokens[i : i + 2]) == pair:\n            merged.append(pair[0] + pair[1])",
            "tuple(tokens[i : i + 2]) in (pair, pair[::-1]):\n            merged.append(tokens[i] + tokens[i + 1])",
            "in this order only",
        ),
        ("a string", "return merged", "return ''.join(merged)", "happened: a list is expected"),
    ],
    "02.1": [
        ("gradients exchanged", "return by_a, by_b", "return by_b, by_a", "wrong order"),
        ("b not transposed", "grad @ b.T", "grad @ b", "`b` must be transposed"),
        ("a not transposed", "rows.T @", "rows @", "`a` must be transposed"),
        ("factors exchanged", "rows.T @ grad.reshape(-1, grad.shape[-1])", "grad @ a.swapaxes(-1, -2)", "not grad aᵀ"),
        (
            "not summed over the batch",
            "rows.T @ grad.reshape(-1, grad.shape[-1])",
            "a.swapaxes(-1, -2) @ grad",
            "added up over the batch",
        ),
        (
            "mean over the batch",
            "rows.T @ grad.reshape(-1, grad.shape[-1])",
            "(a.swapaxes(-1, -2) @ grad).reshape(-1, a.shape[-1], grad.shape[-1]).mean(axis=0)",
            "this is their mean",
        ),
        ("one gradient only", "return by_a, by_b", "return by_a", "happened: 2 results are expected"),
        ("return forgotten", "return by_a, by_b", "by_a, by_b", "`return` is missing"),
    ],
    "02.2": [
        (
            "mean",
            "grad.sum(axis=tuple(range(grad.ndim - len(shape))))",
            "grad.mean(axis=tuple(range(grad.ndim - len(shape))))",
            "the mean was taken",
        ),
        (
            "one use",
            "",
            "def unbroadcast(grad, shape):\n    grad = grad[(0,) * (grad.ndim - len(shape))]\n"
            "    return grad[tuple(slice(0, 1) if size == 1 else slice(None) for size in shape)]",
            "one use only",
        ),
        ("nothing", "", "def unbroadcast(grad, shape):\n    return grad.copy()", "nothing was summed"),
        ("keepdims forgotten", "axis=repeated, keepdims=True", "axis=repeated", "keepdims=True"),
        (
            "axes behind",
            "",
            "def unbroadcast(grad, shape):\n    while grad.ndim > len(shape):\n"
            "        grad = grad.sum(axis=-1)\n    return grad",
            "put in *front*",
        ),
        ("axes in front only", "return grad.sum(axis=repeated, keepdims=True)", "return grad", "sum over these, too"),
        ("calls the library", "", "from course_lib.numpy_track.tensor import unbroadcast", "happened: asked to write"),
    ],
    "02.3": [
        (
            "exchanged",
            "return grad * b, (grad * a).sum(axis=0)",
            "return (grad * a).sum(axis=0), grad * b",
            "wrong order",
        ),
        ("own factor", "grad * b, (grad * a)", "grad * a, (grad * b)", "*other* factor"),
        ("not summed", "(grad * a).sum(axis=0)", "grad * a", "sum its gradients over the rows"),
        ("mean", "(grad * a).sum(axis=0)", "(grad * a).mean(axis=0)", "this is their mean"),
        ("wrong axis", "sum(axis=0)", "sum(axis=1)", "over the columns"),
        (
            "no gradient",
            "return grad * b, (grad * a).sum(axis=0)",
            "return np.ones_like(grad) * b, a.sum(axis=0)",
            "without grad",
        ),
    ],
    "02.4": [
        ("+=", "np.add.at(full, ids, grad)", "full[ids] += grad", "written once"),
        (
            "mean",
            "    return full",
            "    counts = np.bincount(ids.ravel(), minlength=V)[:, None]\n"
            "    return (full / np.maximum(counts, 1)).astype(grad.dtype)",
            "mean over the places",
        ),
        ("rows missing", "np.zeros((V,", "np.zeros((ids.max() + 1,", "rows that nobody used"),
        ("counts", "np.add.at(full, ids, grad)", "np.add.at(full, ids, 1)", "only counts"),
        ("rows of grad", "return full", "return grad[ids]", "not a table"),
        (
            "float64",
            "np.zeros((V, grad.shape[-1]), grad.dtype)",
            "np.zeros((V, grad.shape[-1]))",
            "happened: is float64, expected is float32",
        ),
    ],
    "02.5": [
        ("not divided", " / x.shape[-1]", "", "not divided by n"),
        ("divided by all", "/ x.shape[-1]", "/ x.size", "divided by all numbers"),
        ("one each row", "np.ones_like(x) * ", "", "one gradient a row"),
        ("wrong axis", "grad[..., None]", "grad", "along the wrong axis"),
        ("times x", "np.ones_like(x)", "x", "play no part"),
    ],
    "03.1": [
        ("one sum for everything", "exps.sum(axis=-1, keepdims=True)", "exps.sum()", "each row must have its own"),
        ("sum down the columns", "exps.sum(axis=-1", "exps.sum(axis=0", "rows are what sums to 1"),
        ("keepdims forgotten", "exps.sum(axis=-1, keepdims=True)", "exps.sum(axis=-1)", "keepdims=True"),
        (
            "axis 1",
            "x.max(axis=-1, keepdims=True))  # at most exp(0) = 1\n    return exps / exps.sum(axis=-1",
            "x.max(axis=min(1, x.ndim - 1), keepdims=True))\n    return exps / exps.sum(axis=min(1, x.ndim - 1)",
            "is the last axis of a matrix only",
        ),
        ("no maximum taken off", "x - x.max(axis=-1, keepdims=True)", "x", "`exp` overflows"),
        ("maximum of everything", "x.max(axis=-1, keepdims=True)", "x.max()", "largest score of everything"),
        ("no exp", "np.exp(x - x.max(axis=-1, keepdims=True))", "x", "shares of the scores"),
        ("not divided", " / exps.sum(axis=-1, keepdims=True)", "", "not yet divided"),
        ("in place", "    exps =", "    x -= x.max(axis=-1, keepdims=True)\n    exps =", "make a new one"),
        (
            "a list",
            "return exps / exps.sum(axis=-1, keepdims=True)",
            "return exps.tolist()",
            "happened: a NumPy array is",
        ),
        ("a typing error", "np.exp(", "np.exq(", "happened: line 3 of the cell"),
    ],
    "03.3": [
        ("no scale", " / math.sqrt(query.shape[-1])", "", "scale is missing"),
        ("divided by D", "math.sqrt(query.shape[-1])", "query.shape[-1]", "scale is its root"),
        ("multiplied", " / math.sqrt", " * math.sqrt", "multiplied by √D"),
        ("down the columns", "exps.sum(axis=-1", "exps.sum(axis=-2", "down the columns"),
        (
            "keys and values",
            "",
            "def attention(query, value, key):\n"
            "    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])\n"
            "    exps = np.exp(scores)\n    weights = exps / exps.sum(axis=-1, keepdims=True)\n"
            "    return weights @ value, weights",
            "keys and values are exchanged",
        ),
        ("queries and keys", "query @ key.swapaxes(-1, -2)", "key @ query.swapaxes(-1, -2)", "rows are queries"),
        ("weights first", "return weights @ value, weights", "return weights, weights @ value", "weights came first"),
        ("no softmax", "return weights @ value, weights", "return scores @ value, scores", "softmax them"),
        ("overflow", " - scores.max(axis=-1, keepdims=True)", "", "`exp` overflows"),
        (
            "context only",
            "return weights @ value, weights",
            "return weights @ value",
            "happened: 2 results are expected",
        ),
        (
            "calls the library",
            "",
            "def attention(query, key, value):\n"
            "    context, weights = F.attention(*map(Tensor, (query, key, value)))\n"
            "    return context.data, weights.data",
            "happened: asked to write",
        ),
    ],
    "03.6": [
        ("order", "return W1 @ W2", "return W2 @ W1", "x meets W1 first"),
        ("bias not sent through", "b1 @ W2 + b2", "b1 + b2", "goes through W2, too"),
        ("no first bias", "b1 @ W2 + b2", "b2.copy()", "`b1` is missing"),
        ("no second bias", " + b2", "", "`b2` is missing"),
        ("number by number", "W1 @ W2, b1 @ W2 + b2", "W1 * W2, b1 * b2", "number by number"),
        ("added", "W1 @ W2, b1 @ W2 + b2", "W1 + W2, b1 + b2", "added: two layers"),
    ],
}

VALUES = {
    "01.4": [
        ("one too many", [969, 31], "a window needs one more token"),
        ("one too few", [967, 31], "last window was lost"),
        ("side by side", [31, 31], "windows overlap"),
        ("first start forgotten", [968, 30], "first start, too"),
        ("last one not full", [968, 32], "is not full"),
    ],
    "02.6": [
        ("first use only", [1, 0, 6], "in x - x both uses count"),
        ("second use forgotten", [0, 0.3333333333333333, 6], "does not move"),
        ("one factor", [0, 0, 3], "3 from each"),
        ("values", [0, 1, 9], "these are the values"),
    ],
    "03.2": [
        ("not divided", [1, 2, 5], "not yet divided"),
        ("exp(0) is 0", [0, 0.2857142857142857, 0.7142857142857143], "first word gets something"),
        ("shares of scores", [0, 0.30103, 0.69897], "shares of the scores themselves"),
        ("equal", [0.333, 0.333, 0.333], "all the same would"),
    ],
    "03.4": [
        ("deviation", [16, 1, 1024], "that is the deviation"),
        ("scale not squared", [256, 16, 1024], "by 16²"),
        ("doubled", [256, 1, 512], "not 2"),
        ("squared again", [256, 1, 4096], "not 16"),
        ("one product", [1, 1, 4], "256 of them"),
    ],
    "03.5": [
        ("exchanged", [0.14, 0.91], "two are exchanged"),
        ("divided by D", [0.91, 0.02], "scale is its root"),
        ("columns", [0.9, 0.13], "down the columns"),
        ("largest of all", [1.0, 0.31], "largest of all rows"),
        ("scale behind softmax", [0.91, 0.91], "no effect here"),
    ],
}
