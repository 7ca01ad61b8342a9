"""Exercises of notebook 15: on the way to GPT-2."""

import functools
import math
import re

import numpy as np

from ..inference.gpt2 import gpt2_config, gpt2_shapes
from ..text.byte_level import split_words
from . import compare, mending, watch, words
from .exercise import COUNTS, Mistake, arrays, chosen, drawn, exercise, question, varied


def _right_size(layers, width, vocab_size=50257, context_length=1024):
    shapes = gpt2_shapes(gpt2_config(layers, 1, width, context_length, vocab_size))
    return sum(math.prod(shape) for shape in shapes.values())


@exercise(
    "15.1",
    "Count a GPT-2",
    minutes=10,
    difficulty="medium",
    hints=(
        "Outside the blocks: the table of tokens, the table of positions, and the last LayerNorm.",
        "In a block: four C × C matrices, one C × 4C, one 4C × C, each with a bias; and two LayerNorms of 2C numbers.",
        "Together 12 C² + 13 C in each block. Outside: V · C + T · C + 2 C.",
    ),
    next_thought="What share of the smallest GPT-2 is its token table, and what share of the largest?",
    cases=lambda: [(12, 768), (48, 1600), (2, 6, 11, 5), (0, 8, 50, 16)] + varied(3, 8, 50, 16, by=[2, 16, 40, 32]),
    more=lambda rng: [(int(L), int(C), int(V), int(T)) for L, C, V, T in rng.integers(1, 60, (4, 4))],
    right=_right_size,
    forbids=("gpt2_shapes", *COUNTS),
    mistakes=(
        Mistake(
            "the head is counted twice: it is the token table (`tied=True`) and adds no parameters",
            "vocab_size * C +",
            "2 * vocab_size * C +",
        ),
        Mistake("the table of positions is missing: T · C", " + context_length * C", ""),
        Mistake("the LayerNorm at the end is missing: 2C", "+ norms) + 2 * C", "+ norms)"),
        Mistake(
            "in each block 4C parameters are missing: the biases of the attention, or the two LayerNorms",
            "4 * (C * C + C)",
            "4 * C * C",
        ),
        Mistake(
            "the biases of the MLP are missing: 4C + C in each block",
            "(C * 4 * C + 4 * C) + (4 * C * C + C)",
            "8 * C * C",
        ),
        Mistake(
            "these are the matrices of the blocks alone: the two tables, biases and LayerNorms count, too",
            "return tables + layers * (attention + mlp + norms) + 2 * C",
            "return layers * 12 * C**2",
        ),
    ),
)
def gpt2_parameters(layers, width, vocab_size=50257, context_length=1024):
    """Return how many parameters a GPT-2 of this size has: a whole number."""
    C = width
    tables = vocab_size * C + context_length * C
    attention = 4 * (C * C + C)  # query, key, value, output
    mlp = (C * 4 * C + 4 * C) + (4 * C * C + C)
    norms = 2 * (2 * C)
    return tables + layers * (attention + mlp + norms) + 2 * C


def _right_pair(operations):
    parameters = math.sqrt(operations / 120)
    return parameters, 20 * parameters


@exercise(
    "15.2",
    "The best size for your operations",
    minutes=8,
    difficulty="easy",
    hints=(
        "Put D = 20 N into 6 N D. What is left has only N in it.",
        "operations = 120 N².",
        "N = (operations / 120) ** 0.5, and D = 20 · N.",
    ),
    next_thought="Four times the operations: how many times the parameters, and how many times the tokens?",
    cases=lambda: [(1.08e20,), (8.64e18,), (480.0,)],
    more=lambda rng: [(float(10 ** (power + rng.random())),) for power in (1, 2, 12, 25)],
    right=_right_pair,
    mistakes=(
        Mistake("the root is missing: 120 N² are the operations, not 120 N", " ** 0.5", ""),
        Mistake("the 6 is missing: each parameter takes 6 operations a token", "(6 * 20)", "20"),
        Mistake("the 20 is missing under the root: D is 20 N, too", "(6 * 20)", "6"),
        Mistake("two operations are the forward alone; training takes six", "6 * 20)", "2 * 20)"),
        Mistake("tokens are 20 N, not N / 20", "20 * parameters", "parameters / 20"),
        Mistake(
            "the two are swapped: first the parameters, then the tokens",
            "parameters, 20 * parameters",
            "20 * parameters, parameters",
        ),
    ),
)
def compute_optimal(operations):
    """Return the pair (N parameters, D tokens) with 6 N D = operations and D = 20 N."""
    parameters = (operations / (6 * 20)) ** 0.5  # 6 · N · 20 N = operations
    return parameters, 20 * parameters


def _right_mean(gradients, tokens):
    weights = np.array(tokens) / sum(tokens)
    return np.tensordot(weights, np.stack(gradients), axes=1).astype(gradients[0].dtype)


@exercise(
    "15.3",
    "Average the gradients of unequal parts",
    minutes=10,
    difficulty="medium",
    hints=(
        "Two parts, of 3 and of 1 tokens: the first counts three times as much as the second.",
        "The weight of a part is its share of all tokens: n / total. The weights sum to 1.",
        "Add up n / total * gradient over all parts, with zip(gradients, tokens).",
    ),
    next_thought="A mean of means is wrong here, as in exercise 10.4. When is it right?",
    cases=lambda: [
        (list(arrays(0, (2, 3), (2, 3))), [3, 1]),
        (list(arrays(1, (4,), (4,), (4,))), [5, 0, 2]),
        (list(arrays(2, (3, 2), (3, 2), dtype="float32")), [24, 8]),
        (list(arrays(3, (2,), (2,))), [4, 4]),
        (list(arrays(4, (2, 2))), [7]),
    ],
    more=lambda rng: [
        (list(drawn(rng, "...c " * (n + 1) + "...c", n, (1, 1e3)[n % 2])), [3, *rng.integers(0, 9, n + 1).tolist()])
        for n in range(5)
    ],
    right=_right_mean,
    forbids=("average",),
    mistakes=(
        Mistake(
            "a plain mean: the small part counts as much as the large one. Weight each by its tokens",
            "n / total * gradient",
            "gradient / len(tokens)",
        ),
        Mistake("the weights are not normalised: divide by the number of all tokens", "n / total", "n"),
        Mistake(
            "divided by the number of processes: divide by the number of all tokens",
            "total = sum(tokens)",
            "total = len(tokens)",
        ),
        Mistake("a plain sum: the weights should sum to 1", "n / total * gradient", "gradient"),
        Mistake(
            "each gradient belongs to a mean already: multiply it by its tokens first, then divide by the total",
            "n / total * gradient",
            "gradient / total",
        ),
        Mistake(
            "integer division makes each share 0: `//` drops the fraction. Use `/`",
            "n / total",
            "n // total",
        ),
    ),
)
def mean_gradient(gradients, tokens):
    """Return the gradient of the mean over all tokens: arrays of one shape -> an array of this shape."""
    total = sum(tokens)
    return sum(n / total * gradient for gradient, n in zip(gradients, tokens))


# In the second model T = C, in the third V = C. The first and the last have the same shapes, and other weights.
_MODELS = ({"width": 32}, {"width": 8, "layers": 2}, {"width": 17, "heads": 1}, {"width": 32, "heads": 2})


@functools.cache
def _saved(number):
    """Return (weights, last loss) of a trained model. The tables are "token" and "position". Do not write into them."""
    model = mending.small_model(**_MODELS[number])
    last = mending.losses(model)[-1]
    return {name.replace("token.weight", "token"): array for name, array in model.state_dict().items()}, last


def _turned(state):
    """Return these weights with the matrices as nn.Linear keeps them, (fan out, fan in)."""
    return {name: (array.T if name.endswith(".weight") else array).copy() for name, array in state.items()}


def _likely(ours, theirs, state):
    """Return the message of the first mistake that gives the same arrays, other than those of ``state``; or ""."""
    shapes = {name: array.shape for name, array in state.items()}
    for message, function in from_linear.wrong_functions():
        other = function(theirs, shapes)
        wrong = not all(compare.same(other[name], state[name]) for name in state)
        if wrong and all(compare.same(ours[name], other[name]) for name in other):
            return message
    return ""


def _examine_linear(function):
    kept = []
    for number in range(len(_MODELS)):
        if problem := _examine_model(function, number, kept):
            return problem
    if any(_differ(ours, _saved(number)[0]) for number, ours in enumerate(kept)):
        return "a result changes when the function is called again", watch.ONE_ARRAY
    return None


def _differ(ours, state):
    """Return the names of the arrays that are not those of ``state``."""
    return [name for name, array in state.items() if not np.array_equal(ours.get(name), array)]


def _examine_model(function, number, kept):
    """Return what is wrong with the weights of this model; add the result to those ``kept``."""
    state, last = _saved(number)
    shapes, theirs, given = {name: array.shape for name, array in state.items()}, _turned(state), _turned(state)
    ours = function(given, dict(shapes))
    if not isinstance(ours, dict):
        likely = "the `return` is missing" if ours is None else ""
        return ... if watch.untouched(ours) else (f"got {words.kind(ours)}, expected a dict of arrays", likely)
    if missing := [name for name in shapes if name not in ours]:
        return f"the array {missing[0]} is missing", "every array comes along, transposed or not"
    if unknown := [name for name in ours if name not in shapes]:
        return f"{unknown[0]!r} is unknown to the model", "the names stay as they are"
    if kinds := [name for name, array in ours.items() if not compare.is_array(array)]:
        return f"got {words.kind(ours[kinds[0]])} for {kinds[0]}, expected a NumPy array"
    likely = _likely(ours, theirs, state)
    if wrong := [name for name, array in ours.items() if array.shape != shapes[name]]:
        name = wrong[0]
        return f"the array {name} has shape {ours[name].shape}, the model expects {shapes[name]}", likely
    if kinds := [name for name, array in ours.items() if array.dtype != state[name].dtype]:
        return f"the array {kinds[0]} is {ours[kinds[0]].dtype}, expected {state[kinds[0]].dtype}"
    if list(given) != list(theirs) or any(not compare.same(given[name], theirs[name]) for name in theirs):
        return "The function changes its input in place: theirs", "write into a new dict, `ours`"
    wrong = _differ(ours, state)
    if not wrong:
        kept.append(ours)
        return None
    if not _differ(ours, _saved(0)[0]):
        return "right for one model, but not for another one of the same shapes", watch.LEFT_OVER
    model = mending.small_model(**_MODELS[number])
    model.load_state_dict({name if name != "token" else "token.weight": array for name, array in ours.items()})
    fallen = mending.losses(model)
    return (
        f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: the saved model had {last:.2f} before the"
        f" first step. {wrong[0]} is not what was saved",
        likely,
    )


def _linear_broken(theirs, shapes):
    """Convert weights from nn.Linear's layout to the course's: {name: array} both. Some matrix is left as it is."""
    ours = {}
    for name, array in theirs.items():
        ours[name] = array.T if array.shape != shapes[name] else array
        assert ours[name].shape == shapes[name], name
    return ours


_LINES = 'array.T if name.endswith(".weight") else array\n        assert ours[name].shape == shapes[name], name'


@exercise(
    "15.4",
    "Find the bug: a matrix that fits both ways",
    minutes=10,
    difficulty="medium",
    hints=(
        "Print the shapes. Which matrices look the same in both layouts?",
        "Query, key, value and output are C × C: they fit either way round, and so they are never transposed.",
        "Decide by the name, not by the shape: array.T if name.endswith('.weight').",
    ),
    next_thought="GPT-2's c_attn is (C, 3C). Would this mistake be noticed there? And in its attn.c_proj?",
    broken=_linear_broken,
    examine=_examine_linear,
    mistakes=(
        Mistake(
            "a square matrix fits either way round, so its shape says nothing: go by its name",
            'array.T if name.endswith(".weight") else array',
            "array if array.shape == shapes[name] else array.T",
        ),
        Mistake(
            "a reshape moves numbers into other rows: nn.Linear needs a transpose, array.T",
            'array.T if name.endswith(".weight") else array',
            "array.reshape(shapes[name])",
        ),
        Mistake(
            "the output matrix belongs to nn.Linear, too: all names that end in .weight",
            'name.endswith(".weight")',
            'name.endswith(".weight") and "output" not in name',
        ),
        Mistake(
            "the square ones are transposed, and the others now have the wrong shape",
            _LINES,
            "array.T if array.shape == array.T.shape else array",
        ),
        Mistake(
            "a table may be square, too, and is no matrix of nn.Linear: go by the name",
            'name.endswith(".weight")',
            "(array.shape != shapes[name] or array.shape == array.shape[::-1])",
        ),
        Mistake("nothing is transposed: nn.Linear keeps (fan out, fan in)", _LINES, "array"),
        Mistake("the two tables are not matrices of nn.Linear: they were not transposed", _LINES, "array.T"),
    ),
)
def from_linear(theirs, shapes):
    """Convert weights from nn.Linear's layout to the course's: {name: array} both."""
    ours = {}
    for name, array in theirs.items():
        ours[name] = array.T if name.endswith(".weight") else array
        assert ours[name].shape == shapes[name], name
    return ours


stays_in_float32 = question(
    "15.5",
    "What stays in float32?",
    minutes=4,
    difficulty="easy",
    hints=(
        "Which operations are most of the work? Those, and only those, are done in bfloat16.",
        "A sum of a large and a small number loses the small one in bfloat16. What adds up many small things?",
        "Large matrix products: three of the eight. The other five stay.",
    ),
    next_thought="So what needs less memory in mixed precision: the weights with their averages, or the activations?",
    value=[1, 2, 4, 6, 8],
    answer="[1, 2, 4, 6, 8]: the weights and all that changes them, the stream, LayerNorm and the loss. The three large"
    " products are done in bfloat16.",
    mistakes=(
        Mistake(
            "these are the right ones, and the smallest should come first",
            when=chosen(lambda got: sorted(got) == [1, 2, 4, 6, 8]),
        ),
        Mistake(
            "the large matrix products are what bfloat16 is for: 3, 5 and 7 are such products",
            when=chosen(lambda got: bool({3, 5, 7} & set(got))),
        ),
        Mistake(
            "the weights and AdamW's averages add up many small updates: in bfloat16 these would be lost, every time",
            when=chosen(lambda got: not {1, 2} <= set(got)),
        ),
        Mistake(
            "every block adds a little to the residual stream: in bfloat16 it would get lost",
            when=chosen(lambda got: 4 not in got),
        ),
        Mistake(
            "LayerNorm takes means and a root: it is little work, and stays in float32",
            when=chosen(lambda got: 6 not in got),
        ),
        Mistake("the loss is a mean over many tokens: it stays in float32", when=chosen(lambda got: 8 not in got)),
    ),
)


def _drawn_texts(rng):
    """Return texts of runs of letters, digits, other signs and spaces, in any order."""
    runs = ("a", "Bc", "the", "7", "2024", ".", "?!", "-", "_", "(", " ", " ", " ", "  ", "   ")
    return [("".join(rng.choice(runs, n)),) for n in (2, 4, 8, 16, 32)]


def _not_the_text(got, want, case):
    """Return True if the words are not the text again; \\w+, which loses signs, loses none of "a_1"."""
    (text,) = case
    return isinstance(got, (list, tuple)) and (
        "".join(got) != text or list(got) in (re.findall(r" ?\w+", text), re.findall(r"\w+", text))
    )


_CUTS = 'i - 1 if text[i - 1] == " " else i'


@exercise(
    "15.6",
    "Cut before you merge",
    minutes=15,
    difficulty="harder",
    hints=(
        "First give each character its kind. A new word begins where the kind changes.",
        "Between a space and what follows, the cut is one place further left: the last space goes with the word.",
        "Collect the places in a set with 0 and len(text), so that none is there twice; sort it, and slice the text"
        " between neighbours.",
    ),
    next_thought="Merges never cross a cut. What does that save for “dog.”, “dog!” and “dog,”?",
    cases=lambda: [
        ("Hello world",),
        ("in 2024, at last",),
        ("a_b",),
        ("a  b   c",),
        ("x = y+1;",),
        ("  two before, two behind  ",),
        ("abc123...",),
        (" ",),
        ("",),
    ],
    more=_drawn_texts,
    right=split_words,
    forbids=("split_words", "BytePairTokenizer"),
    mistakes=(
        Mistake(
            "spaces are words of their own here: the last space of a run goes with the word after it",
            _CUTS,
            "i",
        ),
        Mistake(
            "a word takes at most one space along: the spaces before that one are a word of their own",
            _CUTS,
            'len(text[:i].rstrip(" ")) if text[i - 1] == " " else i',
        ),
        Mistake(
            "the space goes with the word before it: it belongs to the one after it",
            _CUTS,
            'i + 1 if text[i] == " " else i',
        ),
        Mistake(
            "the spaces are lost: all words together are the text again",
            "return [text[a:b] for a, b in zip(cuts, cuts[1:])]",
            "return [text[a:b].strip() for a, b in zip(cuts, cuts[1:]) if text[a:b].strip()]",
        ),
        Mistake(
            "the text is cut at spaces only: letters, digits and other signs part, too",
            'letter" if c.isalpha() else "digit" if c.isdigit() else "space"',
            'space"',
        ),
        Mistake("letters and digits part, too", "c.isalpha()", "c.isalnum()"),
        Mistake("`_` is a sign, though \\w takes it for a letter", "c.isalpha()", "(c.isalpha() or c == '_')"),
        Mistake(
            "letters and digits part, too, and `_` is a sign: \\w takes all of these",
            "c.isalpha()",
            "(c.isalnum() or c == '_')",
        ),
        Mistake(
            "other signs stay together as letters do: “...” is one word",
            "kinds[i] != kinds[i - 1]",
            "kinds[i] != kinds[i - 1] or kinds[i] == 'other'",
        ),
        Mistake(
            "digits stay together as letters do: “2024” is one word",
            "kinds[i] != kinds[i - 1]",
            "kinds[i] != kinds[i - 1] or kinds[i] == 'digit'",
        ),
        Mistake(
            "a run of several spaces took the last one, too: it belongs to the word after",
            _CUTS,
            'i - 1 if text[i - 1] == " " and text[i - 2 : i - 1] != " " else i',
        ),
        Mistake(
            "several spaces at the end are one word: there is no word after them that could take the last one",
            "len(text)}",
            'len(text), len(text) - text.endswith("  ")}',
        ),
        Mistake(
            "there are empty words among yours: leave them out",
            when=lambda got, want, case: "" in got and [word for word in got if word] == want,
        ),
        Mistake(
            "str.split drops the spaces: all words together are the text again",
            when=lambda got, want, case: got in (case[0].split(), case[0].split(" ")),
        ),
        Mistake(
            "something of the text is lost, or comes twice: all words together are the text again",
            when=_not_the_text,
        ),
    ),
)
def words_of(text):
    """Cut ASCII text, without apostrophes, as GPT-2 does: -> list of words, together the text again."""
    kinds = ["letter" if c.isalpha() else "digit" if c.isdigit() else "space" if c == " " else "other" for c in text]
    cuts = {0, len(text)}
    for i in range(1, len(text)):
        if kinds[i] != kinds[i - 1]:
            cuts.add(i - 1 if text[i - 1] == " " else i)  # the last space goes with the word after it
    cuts = sorted(cuts)
    return [text[a:b] for a, b in zip(cuts, cuts[1:])]
