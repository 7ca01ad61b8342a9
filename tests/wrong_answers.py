"""Wrong answers that no likely mistake of the library proves: exercise -> (old, new, words of the message).

Each is the solution with ``old`` replaced by ``new``, or all of ``new`` where ``old`` is "". The words are those of the
likely mistake, or, after "happened: ", of what happened. They prove the mistakes that a predicate recognises (``when``)
and the general verdicts: type, shape, dtype, in place, None, an exception, and what an examination says by itself.
"""

_SUM = "sum(n / total * gradient for gradient, n in zip(gradients, tokens))"
_SEES = "np.arange(old + new)[None, :] <= old + np.arange(new)[:, None]"
_STEP = "[p - lr * grad for p, grad in zip(parameters, grads)]"
_REST = r"| ?[^A-Za-z0-9 ]+| +(?! )(?![^ ])| +(?= )"
# 15.6 by regular expressions: (pattern, words of the message)
_FOUND = [
    (r" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 ]+| +", "took the last one, too"),
    (r" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 ]+| +(?= )| ", "several spaces at the end"),
    (r" ?[^\W\d]+| ?\d+| ?[^\w ]+| +(?! )(?![^ ])| +(?= )", "though \\w takes it"),
    (r" ?\w+| ?[^\w ]+| +(?! )(?![^ ])| +(?= )", "\\w takes all of these"),
    (r" ?[A-Za-z0-9]+" + _REST, "letters and digits part"),
    (r" ?[A-Za-z]+| ?[0-9]" + _REST, "“2024” is one word"),
    (r" ?\w+", "is lost"),
    (r"\w+", "is lost"),
    (r" ?[A-Za-z]+| ?[0-9]+", "is lost"),
]

WRONG = {
    "01.1": [
        ('raise ValueError(f"unknown character {character!r} at position {position}")', "pass", "the KeyError"),
        (
            "",
            "def encode(text, vocabulary):\n    return np.array([vocabulary.index(c) for c in text])",
            "comes from `index`",
        ),
        ("unknown character {character!r}", "unknown character", "happened: does not name ?"),
        ("raise ValueError", "raise IndexError", "happened: expected a ValueError"),
    ],
    "01.3": [("return merged", "return ''.join(merged)", "happened: expected a list")],
    "02.1": [
        ("return by_a, by_b", "return by_a", "happened: expected 2 results"),
        ("return by_a, by_b", "by_a, by_b", "`return` is missing"),
    ],
    "03.1": [
        (
            "",
            "def softmax(x):\n    exps = np.exp(x)\n    return exps / exps.sum()",
            "the sum goes over everything",
        ),
        (
            "",
            "def softmax(x):\n    exps = np.exp(x)\n    return exps / exps.sum(axis=0)",
            "the sum goes down the columns",
        ),
        ("    exps =", "    x -= x.max(axis=-1, keepdims=True)\n    exps =", "make a new one"),
        ("np.exp(", "np.exq(", "happened: line 3 of the cell"),
    ],
    "03.3": [("exps.sum(axis=-1", "exps.sum(axis=-2", "softmax goes down the columns")],
    "05.2": [
        ("q, k, v, allow", "q, k, allow", "happened: stopped with"),
        ("return self", "self", "`return` is missing"),
        ("return self.output(context)", "return context", "fix the one thing"),
        ("self.weights = F", "_ = F", "happened: self.weights is None"),
    ],
    "05.3": [
        ("0, -1e9", "-1e9, 0", "happened: logits of the earlier position"),
        (" / math.sqrt(x.shape[-1])", "", "fix the one thing"),
    ],
    "05.4": [
        (
            "",
            "def masked_softmax(scores, allow):\n"
            "    exps = np.exp(scores - scores.max(axis=-1, keepdims=True)) * allow\n"
            "    total = exps.sum(axis=-1, keepdims=True)\n"
            "    return exps / np.where(allow.any(axis=-1, keepdims=True), total, 1)",
            "takes part in the maximum",
        ),
    ],
    "06.1": [
        ("C // heads)", "C / heads)", "/ gives a float"),
        ("return q, k, v", "return np.stack([q, k, v])", "happened: got a NumPy array, expected 3 results"),
        ("return q, k, v", "return q, k", "happened: got 2 results"),
        ("return q, k, v", "q, k, v", "`return` is missing"),
        ("    B, T, C =", "    x *= 2\n    B, T, C =", "make a new one"),
    ],
    "06.2": [
        ("swapaxes(1, 2)", "swapaxes(1, 4)", "happened: axis2: axis 4 is out of bounds"),
        ("H * D)", "H, D)", "not yet joined into one axis"),
        ("H * D)", "H + D)", "happened: cannot reshape"),
    ],
    "06.3": [
        (
            "    context, self",
            "    k = self.key(x).reshape(B, H, T, C // H)\n    context, self",
            "happened: the logits of the earlier position",
        ),
        (
            "F.attention(q, k, v,",
            "F.attention(q, k, Tensor(v.data),",
            "happened: no gradient reaches value.weight",
        ),
        ("reshape(B, T, C))", "reshape(B, T, C)).detach().numpy()", "happened: expected a Tensor"),
        ("T, H, C // H).swapaxes(1, 2)", "T, 1, C).swapaxes(1, 2)", "happened: nothing leaks, but this is not"),
    ],
    "07.1": [
        ("shape[-1] // groups", "shape[-1] / groups", "/ gives a float"),
        ("n.reshape(x.shape)", "n", "not yet put together again"),
        ("    pieces =", "    x -= x.mean(axis=-1, keepdims=True)\n    pieces =", "make a new one"),
        ("return n", "n", "`return` is missing"),
    ],
    "07.2": [
        (
            ", (grad * n).sum(axis=rows), grad.sum(axis=rows)",
            "",
            "happened: got a NumPy array, expected 3 results",
        ),
        ("(grad * n).sum(axis=rows)", "grad * n", "are sums over all axes but the last"),
        ("grad.sum(axis=rows)", "grad.sum()", "happened: got a float64 for result 3"),
        ("    s =", "    grad *= 1\n    x[..., 0] = 0\n    s =", "make a new one"),
    ],
    "07.3": [
        ("(centred * centred).mean(axis=-1", "(centred * centred).mean(axis=1", "whose mean"),
        (
            "x - x.mean(axis=-1, keepdims=True)",
            "x - x.data.mean(axis=-1, keepdims=True)",
            "happened: the gradient that reaches x is not",
        ),
        ("* self.weight", "* self.weight.data", "happened: no gradient reaches weight"),
    ],
    "08.1": [("grad * (x > 0)", "x > 0", "happened: is bool, expected float64")],
    "09.1": [("return tables", "return 0.5 + tables", "happened: expected a whole number")],
    "10.1": [
        (
            "",
            "def cross_entropy_gradient(logits, targets):\n    exps = np.exp(logits)\n"
            "    gradient = exps / exps.sum()\n    gradient[np.arange(len(targets)), targets] -= 1\n"
            "    return gradient / len(targets)",
            "the sum of exp goes over the row",
        ),
    ],
    "11.3": [
        ("max_norm / max(norm, max_norm)", "max_norm / norm if norm > max_norm or norm / norm < 1 else 1.0", "norm 0"),
    ],
    "10.2": [
        (
            "    loss.backward()\n",
            "    loss.backward()\n    optimizer.zero_grad()\n",
            "before the step uses them",
        ),
        ("return loss.item()", "loss.item()", "happened: return its loss"),
    ],
    "11.4": [
        ("weight_decay=0.1", "weight_decay=0.0", "should still decay"),
        ("weight_decay=0.1", "weight_decay=0.01, decay_all=True", "only matrices decay"),
    ],
    "10.3": [
        (
            f"return {_STEP}",
            "for p, grad in zip(parameters, grads):\n        p -= lr * grad\n    return parameters",
            "make a new one",
        ),
    ],
    "12.1": [("[:k]", "[np.arange(k)]", "larger than V")],
    "12.2": [
        ("if temperature == 0", "if False", "a case of its own"),
        (
            "(np.arange(len(logits)) == logits.argmax())",
            "((logits == logits.max()) / (logits == logits.max()).sum())",
            "only the first gets the 1",
        ),
    ],
    "14.6": [
        ("allow, target_allow)", "target_allow, allow)", "happened: stopped with ValueError"),
        ("target_allow)", "target_allow).data", "stay with Tensors"),
        ("return model.decode", "model.decode", "`return` is missing"),
        (
            "return model.decode(inputs, memory,",
            "return model.decode(inputs, Tensor(memory.data),",
            "happened: the gradient that reaches encoder",
        ),
    ],
    "12.6": [
        (_SEES, "np.triu(np.ones((new, old + new), bool), old)", "the other triangle"),
        (_SEES, "np.triu(np.ones((new, old + new), bool))", "the other triangle"),
        (_SEES, "np.hstack([np.ones((new, old), bool), np.zeros((new, new), bool)])", "all new ones up to itself"),
        (_SEES, "np.tile(np.arange(old + new) < old, (new, 1))", "all new ones up to itself"),
        (_SEES, "np.tri(new, old + new, new, dtype=bool)", "not `new`"),
        (_SEES, "np.hstack([np.zeros((new, old), bool), np.tri(new, dtype=bool)])", "the cache is hidden"),
    ],
    "13.5": [
        ("[(layer, head)]", "(layer, head)", "takes a *list* of pairs"),
        ("[(layer, head)]", "layer, head", "takes a *list* of pairs"),
        ("(layer, head)]", "(head, layer)]", "happened: stopped with ValueError"),
        ("return costs", "return costs.T", "happened: has shape (4, 2), expected (2, 4)"),
    ],
    "15.3": [
        (
            f"return {_SUM}",
            "mean = np.zeros_like(gradients[0], dtype=int)\n    for gradient, n in zip(gradients, tokens):\n"
            "        mean = mean + (n / total * gradient).astype(int)\n    return mean",
            "happened: is int64",
        ),
        (
            f"return {_SUM}",
            "mean = np.zeros(gradients[0].shape)\n    for gradient, n in zip(gradients, tokens):\n"
            "        mean += n / total * gradient\n    return mean",
            "happened: expected float32, like gradients[0]: np.zeros can make float64",
        ),
        (
            _SUM,
            "np.tensordot(np.array(tokens) / total, gradients, 1)",
            "happened: or .astype(gradients[0].dtype) after the result",
        ),
    ],
    "15.4": [
        (
            "ours = {}\n    for name, array in theirs.items()",
            "ours = theirs\n    for name, array in list(theirs.items())",
            "write into a new dict",
        ),
        (
            "ours[name] = array.T if",
            'if not name.endswith(".weight"):\n            continue\n        ours[name] = array.T if',
            "every array comes along",
        ),
        (
            "return ours",
            "return ours | {'token': ours['token'].T}",
            "happened: the array token has shape",
        ),
        ("return ours", "return ours | {'extra': 1}", "names stay as they are"),
        (
            "return ours",
            "return {name: Tensor(array) for name, array in ours.items()}",
            "happened: expected a NumPy array",
        ),
    ],
    "15.6": [
        ("", "def words_of(text):\n    return text.split()", "str.split drops the spaces"),
        ("", "def words_of(text):\n    return text.split(' ')", "str.split drops the spaces"),
        *(
            ("", f"def words_of(text):\n    import re\n    return re.findall(r'{find}', text)", words)
            for find, words in _FOUND
        ),
        (
            "cuts = sorted(cuts)",
            "text = text.rstrip()\n    cuts = sorted(c for c in cuts if c <= len(text))",
            "is lost",
        ),
        ("[text[a:b] for", "[text[a:b].strip() for", "something of the text is lost"),
        ("[text[a:b] for", "text.split() + [text[a:b] for", "comes twice"),
        ("return [", "return [''] + [", "leave them out"),
        ("    cuts = {", "    if not text:\n        return ['']\n    cuts = {", "leave them out"),
        ("    cuts = sorted(cuts)\n", "    return text\n", "happened: got a str"),
    ],
    "16.1": [
        ("np.arange(half)", "np.arange(half, dtype=x.dtype)", "too coarse for angles"),
        ("[:, None] * frequencies", "[:, None].astype(x.dtype) * frequencies.astype(x.dtype)", "too coarse for angles"),
        ("# (T, D/2)\n", "\n    angles = angles.astype('float32')\n", "too coarse for angles"),
        ("(angles).astype(x.dtype)", "(angles).astype('float32').astype(x.dtype)", "cos and sin of a float64 x"),
        ("theta ** (", "np.float32(theta) ** np.float32(", "too coarse for angles"),
        (".astype(x.dtype), np.sin(angles).astype(x.dtype)", ", np.sin(angles)", "happened: is float64"),
        ("    a, b", "    x *= 1.5\n    a, b", "make a new one"),
    ],
    "16.2": [("return ", "", "`return` is missing")],
    "16.3": [
        ("2 * layers", "3 * layers", "queries are used once"),
        ("return 2 * layers", "return 2.0 * layers", "happened: expected a whole number"),
    ],
    "16.4": [
        ("(back >= 0) & (back < window)", "(back > 0) & (back < window)", "your own key belongs"),
        ("(back >= 0) & (back < window)", "position[:, None] // window == position // window", "the window moves with"),
        ("(back >= 0) & (back < window)", "0 <= back < window", "cannot be compared in a chain"),
        ("(back >= 0) & (back < window)", "back >= 0 and back < window", "cannot be compared in a chain"),
        ("(back >= 0) & (back < window)", "back >= 0 & back < window", "each in brackets"),
    ],
    "16.5": [
        ("rotary_angles(0, ", "rotary_angles(position, ", "`position` counts twice"),
        ("    cos, sin = cos[position:], sin[position:]", "    pass", "need a row for each of the T tokens"),
        ("cos[position:], sin[position:]", "cos[position - 1:], sin[position - 1:]", "makes `rows` of them"),
        ("cos[position:], sin[position:]", "cos[position], sin[position]", "by the angle of the first"),
        ("return q, k, v", "q, k, v", "`return` is missing"),
        ("return q, k, v", "return q, k", "happened: got 2 results"),
        ("return q, k, v", "return q, k, self.value(x)", "happened: the value has shape"),
        ("return q, k, v", "return q, k, v.data", "stay with Tensors"),
        ("return q, k, v", "return q, Tensor(k.data), v", "happened: the gradient"),
        ("return q, k, v", "return q, k, 2 * v", "happened: with a cache the logits are those without"),
        ("    q, k = F", "    x.data[:] = 0\n    q, k = F", "happened: in place: x"),
        (
            "    T, of",
            "    self.calls = getattr(self, 'calls', 0) + 1\n    x = x * (self.calls < 20)\n    T, of",
            "left over",
        ),
    ],
}

# question -> (answer, words of the likely mistake), for those that a predicate recognises
WRONG_VALUES = {
    "01.4": [
        ([969, 31], "a window needs one more token"),
        ([967, 31], "last window was lost"),
        ([968, 30], "first start, too"),
        ([968, 32], "is not full"),
    ],
    "02.6": [
        ([1, 0, 6], "in x - x both uses count"),
        ([0, 1 / 3, 6], "does not move"),
        ([0, 0, 3], "3 from each"),
    ],
    "03.2": [([0.333, 0.333, 0.333], "equal weights")],
    "03.4": [
        ([16, 1, 1024], "that is the deviation"),
        ([256, 16, 1024], "by 16²"),
        ([256, 1, 512], "not 2"),
        ([256, 1, 4096], "not 16"),
        ([1, 1, 4], "256 of them"),
    ],
    "03.5": [([0.91, 0.02], "scale is its root"), ([0.91, 0.91], "no effect here")],
    "06.4": [
        ([2359296, 64], "order of the two numbers"),
        ([64, 2362368], "biases are counted"),
        ([768, 2359296], "a part of the width"),
        ([64, 1769472], "output matrix is missing"),
        ([64, 589824], "that is one matrix"),
        ([64, 28311552], "do not count them"),
        ([64, 16384], "no matrix is 64 × 64"),
        ([64, 2360000], "rounded too far"),
    ],
    "07.5": [
        ([True, True, True], "the one that does not learn"),
        ([False, False, True], "a warm-up helps"),
        ([False, True, False], "learns from the first step"),
        ([True, False, True], "what post-norm needs"),
        ([True, True, False], "the other way round"),
    ],
    "12.5": [
        ([9437184, 37.7], "keys *and* values"),
        ([1572864, 6.3], "that is one layer"),
        ([226492416, 906.0], "heads share the width"),
        ([18874368, 151.0], "not eight"),
        ([18874368, 18.9], "each number has four"),
        ([18874368, 72.0], "not 1024²"),
    ],
    "14.5": [
        ([[2, 8, 10, 7], [2, 8, 7, 7]], "looks at the source"),
        ([[2, 8, 7, 7], [2, 8, 7, 7]], "10 columns"),
        ([[2, 8, 10, 10], [2, 8, 7, 7]], "7 rows"),
        ([[2, 8, 7, 10], [2, 8, 10, 10]], "the source plays no part"),
        ([[2, 8, 7, 64], [2, 8, 7, 64]], "width plays no part"),
    ],
    "13.4": [
        ([4, 1], "earlier B itself"),
        ([5, 2], "one position to the left"),
        ([4, 0], "what came before the earlier B"),
    ],
    "15.5": [
        ([8, 6, 4, 2, 1], "smallest should come first"),
        ([1, 2, 3, 4, 5, 6, 7, 8], "what bfloat16 is for"),
        ([2, 4, 6, 8], "many small updates"),
        ([1, 4, 6, 8], "many small updates"),
        ([1, 2, 6, 8], "residual stream"),
        ([1, 2, 4, 8], "LayerNorm takes means"),
        ([1, 2, 4, 6], "the loss is a mean"),
    ],
    "16.6": [
        ([8, 7, 4, 3], "smallest should come first"),
        ([1, 3, 4, 7, 8], "row 64 of the table"),
        ([2, 3, 4, 7, 8], "does not fit into a model"),
        ([3, 4, 5, 7, 8], "still needs its row"),
        ([3, 4, 6, 7, 8], "a full cache can drop nothing"),
        ([3, 4, 6, 7, 8], "Only generate_ids"),
        ([3, 4, 5, 6, 7, 8], "still needs its row"),
        ([7, 8], "which shapes have the context length"),
        ([3, 4, 8], "may drop the others"),
        ([3, 4, 7], "a text of 64"),
    ],
}
