"""Wrong answers to the exercises of notebook 13; wrong_answers.py says how to read them."""

_SUM = "sum(n / total * gradient for gradient, n in zip(gradients, tokens))"

WRONG = {
    "13.1": [
        ("head counted twice", "vocabulary_size * C +", "2 * vocabulary_size * C +", "head is counted twice"),
        (
            "head of its own, with bias",
            "+ norms) + 2 * C",
            "+ norms) + 2 * C + vocabulary_size * (C + 1)",
            "head is counted twice",
        ),
        ("bias of the head", "+ norms) + 2 * C", "+ norms) + 2 * C + vocabulary_size", "head of a GPT-2 has no bias"),
        ("no positions", " + context * C", "", "table of positions"),
        ("no last LayerNorm", "+ norms) + 2 * C", "+ norms)", "LayerNorm at the end"),
        ("no LayerNorm at all", "+ norms) + 2 * C", ")", "and 2C at the end"),
        (
            "LayerNorm without bias",
            "norms = 2 * (2 * C)\n    return tables + layers * (attention + mlp + norms) + 2 * C",
            "norms = 2 * C\n    return tables + layers * (attention + mlp + norms) + C",
            "a gain and a bias",
        ),
        (
            "one LayerNorm in a block",
            "norms = 2 * (2 * C)",
            "norms = 2 * C",
            "two LayerNorms, each with a gain and a bias",
        ),
        ("gains alone in the blocks", "2 * (2 * C)", "2 * C", "in each block 2C numbers are missing"),
        ("one bias in attention", "4 * (C * C + C)", "4 * C * C + C", "have a bias each"),
        ("short bias in the MLP", "4 * C + 4 * C)", "4 * C + C)", "first bias of the MLP has 4C numbers"),
        (
            "matrices and tables",
            "tables + layers * (attention + mlp + norms) + 2 * C",
            "tables + layers * 12 * C**2",
            "13C in each block, 2C at the end",
        ),
        ("no biases in attention", "4 * (C * C + C)", "4 * C * C", "or the two LayerNorms"),
        ("no biases in the MLP", "(C * 4 * C + 4 * C) + (4 * C * C + C)", "8 * C * C", "biases of the MLP"),
        (
            "no biases",
            "4 * (C * C + C)  # query, key, value, output\n    mlp = (C * 4 * C + 4 * C) + (4 * C * C + C)",
            "4 * C * C\n    mlp = 8 * C * C",
            "biases are missing: 9C",
        ),
        ("one for query, key and value", "4 * (C * C + C)", "2 * (C * C + C)", "three matrices"),
        ("no output matrix", "4 * (C * C + C)", "3 * (C * C + C)", "output matrix"),
        (
            "12 L C²",
            "return tables + layers * (attention + mlp + norms) + 2 * C",
            "return 12 * layers * C**2",
            "matrices of the blocks alone",
        ),
        ("a float", "return tables", "return 1.0 * tables", "happened: a whole number is expected"),
        ("sizes of the smallest", "C = width", "C, layers = 768, 12", "happened: expected is"),
        (
            "calls the library",
            "",
            "from course_lib.gpt2 import gpt2_config, gpt2_shapes\n"
            "gpt2_parameters = lambda L, C, V=50257, T=1024: sum(\n"
            "    int(np.prod(s)) for s in gpt2_shapes(gpt2_config(L, 1, C, T, V)).values())",
            "happened: asked to write",
        ),
    ],
    "13.2": [
        ("no root", " ** 0.5", "", "the root is missing"),
        ("no 6", "(6 * 20)", "20", "the 6 is missing"),
        ("no 20", "(6 * 20)", "6", "the 20 is missing"),
        ("forward alone", "6 * 20", "2 * 20", "forward alone"),
        ("added", "6 * 20)", "6 + 20)", "multiply 6 and 20"),
        ("a twentieth", "20 * parameters", "parameters / 20", "not N / 20"),
        ("exchanged", "parameters, 20 * parameters", "20 * parameters, parameters", "are exchanged"),
        ("tokens by division", "20 * parameters", "operations / parameters", "divide by 6, too"),
        (
            "equal numbers",
            "(operations / (6 * 20)) ** 0.5  # 6 · N · 20 N = operations\n    return parameters, 20 * parameters",
            "(operations / 6) ** 0.5\n    return parameters, parameters",
            "wants 20 tokens",
        ),
        ("one number", "return parameters, 20 * parameters", "return parameters", "happened: 2 results are expected"),
    ],
    "13.3": [
        ("plain mean", _SUM, "sum(gradients) / len(gradients)", "plain mean"),
        ("not normalised", "n / total * gradient", "n * gradient", "not normalised"),
        ("by the processes", "total = sum(tokens)", "total = len(tokens)", "number of processes"),
        ("plain sum", "n / total * gradient", "gradient", "plain sum"),
        ("divided by the tokens alone", "n / total * gradient", "gradient / total", "to a mean already"),
        (
            "turned over",
            "total = sum(tokens)\n    return sum(n / total * gradient",
            "total = sum(1 / n for n in tokens)\n    return sum(1 / n / total * gradient",
            "turned over",
        ),
        ("integer division", "n / total", "n // total", "integer division makes 0"),
        (
            "last part only",
            f"return {_SUM}",
            "for gradient, n in zip(gradients, tokens):\n        mean = n / total * gradient\n    return mean",
            "only one part is left",
        ),
        ("one number", "n / total * gradient for", "n / total * gradient.sum() for", "one number came"),
        (
            "in place",
            f"return {_SUM}",
            "mean = gradients[0]\n    mean *= tokens[0] / total\n"
            "    for gradient, n in list(zip(gradients, tokens))[1:]:\n        mean += n / total * gradient\n"
            "    return mean",
            "make a new one",
        ),
        (
            "integers",
            f"return {_SUM}",
            "mean = np.zeros_like(gradients[0], dtype=int)\n    for gradient, n in zip(gradients, tokens):\n"
            "        mean = mean + (n / total * gradient).astype(int)\n    return mean",
            "happened: is int64",
        ),
        (
            "zeros to begin with",
            f"return {_SUM}",
            "mean = np.zeros(gradients[0].shape)\n    for gradient, n in zip(gradients, tokens):\n"
            "        mean += n / total * gradient\n    return mean",
            "happened: expected is float32, as gradients[0] has: np.zeros, np.array([...]) and the numbers",
        ),
        (
            "tensordot",
            _SUM,
            "np.tensordot(np.array(tokens) / total, gradients, 1)",
            "happened: or .astype(gradients[0].dtype) behind the result",
        ),
        ("np.sum of the tokens", "total = sum(", "total = np.sum(", "happened: numbers that np.sum(...) and the like"),
        ("calls the library", _SUM, "np.average(gradients, axis=0, weights=tokens)", "happened: asked to write"),
    ],
    "13.4": [
        (
            "still by the shape",
            'array.T if name.endswith(".weight") else array',
            "array if array.shape == shapes[name] else array.T",
            "its shape says nothing",
        ),
        (
            "reshaped",
            'array.T if name.endswith(".weight") else array',
            "array.reshape(shapes[name])",
            "a reshape moves numbers",
        ),
        (
            "output forgotten",
            'name.endswith(".weight")',
            'name.endswith(".weight") and "output" not in name',
            "output matrix is one of",
        ),
        (
            "square ones only",
            'array.T if name.endswith(".weight") else array\n        assert ours[name].shape == shapes[name], name',
            "array.T if array.shape == (32, 32) else array",
            "have now the wrong shape",
        ),
        (
            "nothing turned",
            'array.T if name.endswith(".weight") else array\n        assert ours[name].shape == shapes[name], name',
            "array",
            "nothing is turned over",
        ),
        (
            "all turned",
            'array.T if name.endswith(".weight") else array\n        assert ours[name].shape == shapes[name], name',
            "array.T",
            "two tables are no matrices",
        ),
        (
            "into the old dict",
            "ours = {}\n    for name, array in theirs.items()",
            "ours = theirs\n    for name, array in list(theirs.items())",
            "write into a new dict",
        ),
        (
            "matrices alone",
            "ours[name] = array.T if",
            'if not name.endswith(".weight"):\n            continue\n        ours[name] = array.T if',
            "every array comes along",
        ),
        (
            "shape of one array",
            "return ours",
            "return ours | {'token.table': ours['token.table'].T}",
            "happened: the array token.table has shape",
        ),
        ("other names", "return ours", "return ours | {'extra': 1}", "names stay as they are"),
        ("not returned", "return ours", "ours", "`return` is missing"),
        ("an assertion fails", "else array\n", "else array.T\n", "happened: stopped with AssertionError: token.table"),
        (
            "tensors",
            "return ours",
            "return {name: Tensor(array) for name, array in ours.items()}",
            "happened: a NumPy array is expected",
        ),
    ],
}

VALUES = {
    "13.5": [
        ("turned over", [3, 5, 7], "the other way round"),
        ("another order", [8, 6, 4, 2, 1], "smallest should stand first"),
        ("everything", [1, 2, 3, 4, 5, 6, 7, 8], "what bfloat16 is for"),
        ("the head, too", [1, 2, 4, 6, 7, 8], "what bfloat16 is for"),
        ("not the weights", [2, 4, 6, 8], "an update of a thousandth"),
        ("not the averages", [1, 4, 6, 8], "part of the update"),
        ("not the stream", [1, 2, 6, 8], "residual stream"),
        ("not LayerNorm", [1, 2, 4, 8], "LayerNorm takes means"),
        ("not the loss", [1, 2, 4, 6], "the loss is a mean"),
    ],
}
