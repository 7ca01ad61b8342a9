"""Exercises of notebook 09: a step of gradient descent, the mean loss, and other ways to say a loss."""

import math

import numpy as np

from ..numpy_track import SGD, Parameter
from .cases import arrays
from .exercise import Mistake, exercise


def _right_step(parameters, grads, rate):
    mine = [Parameter(p.copy()) for p in parameters]
    for p, grad in zip(mine, grads, strict=True):
        p.grad = grad.copy()
    SGD(mine, rate).step()
    return [p.data for p in mine]


def _moved(by):
    return lambda parameters, grads, rate: [p - by(g, rate) for p, g in zip(parameters, grads, strict=True)]


@exercise(
    "09.7",
    "A step of gradient descent",
    minutes=6,
    difficulty="easy",
    task="""
`parameters` and `grads` are lists of arrays that belong together. Make one step of plain gradient descent with learning
rate `rate`, and return the list of new arrays. Leave the old ones as they are.
""",
    hints=(
        "The gradient says where the loss rises fastest. In which direction do you go?",
        "p - rate * grad, for each pair: zip(parameters, grads) gives them.",
    ),
    next_thought="What does this step do to a number whose gradient is 0? And what would AdamW with decay do to it?",
    cases=lambda: [
        (list(arrays(0, (3, 2), (4,))), list(arrays(1, (3, 2), (4,))), 0.1),
        (list(arrays(2, (2, 2))), list(arrays(3, (2, 2))), 2.0),
        (list(arrays(4, (2, 2), (3,), dtype="float32")), list(arrays(5, (2, 2), (3,), dtype="float32")), 0.5),
    ],
    right=_right_step,
    forbids=("SGD", "AdamW", "step"),
    mistakes=(
        Mistake(
            "uphill: the gradient points to where the loss rises, so take it off", _moved(lambda g, rate: -rate * g)
        ),
        Mistake("without the learning rate: the step is rate times the gradient", _moved(lambda g, rate: g)),
        Mistake("the gradient is divided by the rate: multiply", _moved(lambda g, rate: g / rate)),
        Mistake("only its sign: the step is rate times the gradient", _moved(lambda g, rate: rate * np.sign(g))),
        Mistake("this is what is taken off: take it off the parameters", lambda ps, gs, rate: [rate * g for g in gs]),
        Mistake("the parameters did not move", lambda ps, gs, rate: ps),
    ),
)
def sgd_step(parameters, grads, rate):
    """The parameters after one step of gradient descent: a list of arrays."""
    return [p - rate * grad for p, grad in zip(parameters, grads)]


@exercise(
    "09.8",
    "The mean loss of all tokens",
    minutes=8,
    difficulty="middle",
    task="""
A validation text was cut into batches of different sizes. `losses` holds the mean loss of each batch, `counts` how many
tokens it had. What is the mean loss of a *token*? It must not depend on how the text was cut.
""",
    hints=(
        "A mean loss times its count is the summed loss of the batch.",
        "Add up the losses of all tokens, then divide by the number of all tokens.",
    ),
    next_thought="When is the plain mean of `losses` right all the same?",
    cases=lambda: [
        (np.array([2.0, 3.0, 5.0]), np.array([8, 8, 2])),
        (np.array([1.5]), np.array([7])),
        (np.array([0.5, 1.0, 2.5, 0.0]), np.array([3, 0, 5, 1])),
    ],
    right=lambda losses, counts: sum(np.repeat(losses, counts).tolist()) / int(counts.sum()),
    forbids=("average", "evaluate"),
    mistakes=(
        Mistake("a small batch counts as much as a large one: weight each by its tokens", lambda x, n: x.mean()),
        Mistake("this is the sum over all tokens: divide by their number", lambda x, n: (x * n).sum()),
        Mistake("divided by the number of batches: divide by the number of tokens", lambda x, n: (x * n).mean()),
        Mistake(
            "the losses are means already: first times its count, then divide by all", lambda x, n: x.sum() / n.sum()
        ),
        Mistake("the middle one of the losses, and not their mean", lambda x, n: np.median(x)),
    ),
)
def mean_loss(losses, counts):
    """The mean loss of a token from the mean losses (n,) of n batches with so many tokens (n,): a number."""
    return (losses * counts).sum() / counts.sum()


def _right_words(loss, tokens, characters):
    return math.exp(loss), math.log2(math.exp(loss * tokens)) / characters


@exercise(
    "09.9",
    "Perplexity, and bits per character",
    minutes=8,
    difficulty="middle",
    task="""
A model has the mean `loss`, in nats per token, on a text of so many `tokens`, which are so many `characters`. Return
its perplexity (per token) and its bits per *character*: the bits of the whole text, divided by the characters.
""",
    hints=(
        "Perplexity is e to the power of the loss: as unsure as between so many equally likely tokens.",
        "A nat is 1 / ln 2 bits. All tokens together have loss · tokens nats.",
        "bits per character = loss / ln 2 · tokens / characters.",
    ),
    next_thought="Model A: 4 nats per word of 5 characters. Model B: 1 nat per character. Which knows the text better?",
    cases=lambda: [(1.5, 20, 100), (2.0, 30, 30), (0.25, 100, 40)],
    right=_right_words,
    mistakes=(
        Mistake(
            "a loss in nats belongs to e, not to 2: perplexity is e^loss",
            lambda loss, n, c: (2**loss, _right_words(loss, n, c)[1]),
        ),
        Mistake("from nats to bits: divide by ln 2", lambda loss, n, c: (math.exp(loss), loss * math.log(2) * n / c)),
        Mistake("these are nats per character: divide by ln 2", lambda loss, n, c: (math.exp(loss), loss * n / c)),
        Mistake(
            "these are bits per token: how many tokens does a character have?",
            lambda loss, n, c: (math.exp(loss), loss / math.log(2)),
        ),
        Mistake(
            "tokens and characters are exchanged: divide by the characters",
            lambda loss, n, c: (math.exp(loss), loss / math.log(2) * c / n),
        ),
        Mistake("perplexity comes first", lambda loss, n, c: _right_words(loss, n, c)[::-1]),
    ),
)
def perplexity_and_bits(loss, tokens, characters):
    """(perplexity per token, bits per character) of a mean loss in nats per token: two numbers."""
    return math.exp(loss), loss / math.log(2) * tokens / characters
