"""Exercises of notebook 10: the loss, a training step, and what they measure."""

import math
import numbers

import numpy as np

from ..numpy_track import SGD, Parameter, Tensor, cross_entropy
from . import mending, words
from .exercise import BACKWARD, SOFTMAX, Mistake, arrays, draws, exercise, varied


def _right_gradient(logits, targets):
    logits = Tensor(logits, requires_grad=True)
    cross_entropy(logits, targets).backward()
    return logits.grad


_STABLE = "logits - logits.max(axis=-1, keepdims=True)"


@exercise(
    "10.1",
    "The gradient of cross-entropy",
    minutes=12,
    difficulty="medium",
    hints=(
        "Softmax of each row first; subtract the largest logit of the row, so that nothing overflows.",
        "It is (softmax - onehot) / n. onehot is 1 at the target of each row and 0 elsewhere: subtract 1 there.",
        "probabilities[np.arange(n), targets] -= 1 changes one element in each row. Divide by n at the end.",
    ),
    next_thought="Each row of this gradient sums to 0. What does that say about adding the same number to all logits?",
    cases=lambda: [
        (*arrays(0, (3, 5)), np.array([1, 0, 4])),
        (*arrays(1, (4, 4)), np.array([2, 2, 0, 3])),
        (*arrays(2, (2, 3), dtype="float32"), np.array([0, 2])),
        (np.array([[1000.0, 0.0], [0.0, 1.0]]), np.array([1, 0])),
    ],
    more=lambda rng: [(x, rng.integers(0, x.shape[1], len(x))) for s in (1, 1e3) for (x,) in draws("nv", 4, (s,))(rng)],
    right=_right_gradient,
    forbids=("*cross_entropy*", *SOFTMAX, *BACKWARD),
    mistakes=(
        Mistake("the loss is a mean, so the gradient is divided by n", "return gradient / n", "return gradient"),
        Mistake("the sign: softmax - onehot, not onehot - softmax", "return gradient / n", "return -gradient / n"),
        Mistake(
            "divided by all n · V elements; the mean is over the n rows",
            "return gradient / n",
            "return gradient / gradient.size",
        ),
        Mistake(
            "`[:, targets] -= 1` reaches whole columns: one element in each row is `[np.arange(n), targets]`",
            "[np.arange(n), targets]",
            "[:, targets]",
        ),
        Mistake(
            "the probabilities of each row sum to 1: the sum of exp goes over the row, axis=-1",
            "exps.sum(axis=-1, keepdims=True)",
            "exps.sum()",
        ),
        Mistake(
            "the sum of exp goes over the row, axis=-1; and the largest logit of each row must be subtracted first",
            f"{_STABLE})\n    gradient = exps / exps.sum(axis=-1, keepdims=True)",
            "logits)\n    gradient = exps / exps.sum()",
        ),
        Mistake(
            "`exp` overflows: subtract the largest logit of each row first",
            _STABLE,
            "logits",
        ),
    ),
)
def cross_entropy_gradient(logits, targets):
    """Return the gradient of the mean cross-entropy with respect to the logits: (n, V), targets (n,) -> (n, V)."""
    n = len(targets)
    exps = np.exp(logits - logits.max(axis=-1, keepdims=True))
    gradient = exps / exps.sum(axis=-1, keepdims=True)  # (n, V): softmax
    gradient[np.arange(n), targets] -= 1
    return gradient / n


def _examine_step(function):
    x, y = mending.small_data()
    fallen = mending.losses(mending.small_model(), step=function)
    if not all(isinstance(value, numbers.Real) for value in fallen):
        return "the step should return its loss as a number: loss.item()"
    model, twin, without = (mending.small_model() for _ in range(3))
    optimizer, summing = SGD(model.parameters(), 0.1), SGD(without.parameters(), 0.1)
    remembers = True  # as if nothing were ever taken away
    for step in range(3):
        before = model.state_dict()
        twin.load_state_dict(before)
        loss = mending.train_step(twin, SGD(twin.parameters(), 0.1), x, y)
        _step_broken(without, summing, x, y)
        got = function(model, optimizer, x, y)
        after = model.state_dict()
        remembers = remembers and mending.furthest(after, without.state_dict()) < 1e-12
        if mending.furthest(after, before) == 0:
            return f"step {step} moves no weight", (
                "the gradients are taken away before the step uses them, or there is no backward or no step"
            )
        if mending.furthest(after, twin.state_dict()) > 1e-12:
            return (
                f"The loss falls from {fallen[0]:.2f} to {fallen[-1]:.2f}, and yet: step {step} does not move the"
                " weights by rate times the gradient of its own batch",
                "gradients of earlier steps are still there" if step and remembers else "",
            )
        if abs(got - loss) > 1e-9:
            return (
                "the step returns {}, but the loss was {}".format(*words.two_numbers(got, loss)),
                "return the loss of this step, loss.item()",
            )
    return mending.falls_sentence(fallen)


def _step_broken(model, optimizer, x, y):
    """Take one training step; return the loss, a number. Something is forgotten."""
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise(
    "10.2",
    "Find the bug: a training step that remembers",
    minutes=6,
    difficulty="easy",
    hints=(
        "backward() adds to the gradients that are there. What removes the old ones?",
        "optimizer.zero_grad(), before the backward or after the step.",
    ),
    next_thought="When would one *want* gradients to add up over several batches?",
    broken=_step_broken,
    examine=_examine_step,
)
def train_step(model, optimizer, x, y):
    """Take one training step; return the loss, a number."""
    optimizer.zero_grad()
    loss = model(x, y)[1]
    loss.backward()
    optimizer.step()
    return loss.item()


def _right_step(parameters, grads, lr):
    mine = [Parameter(p.copy()) for p in parameters]
    for p, grad in zip(mine, grads, strict=True):
        p.grad = grad.copy()
    SGD(mine, lr).step()
    return [p.data for p in mine]


@exercise(
    "10.3",
    "A step of gradient descent",
    minutes=6,
    difficulty="easy",
    hints=(
        "The gradient says where the loss rises fastest. In which direction do you go?",
        "p - lr * grad, for each pair: zip(parameters, grads) gives them.",
    ),
    next_thought="What does this step do to a number whose gradient is 0? And what would AdamW with decay do to it?",
    more=lambda rng: [
        (list(six[:3]), list(six[3:]), float(lr))
        for six in draws("nm m ...k nm m ...k", scales=(1, 30))(rng)
        for lr in rng.uniform(0, 2, 2)
    ],
    right=_right_step,
    forbids=("*sgd*", "*adam*", "step"),
    mistakes=(
        Mistake("uphill: the gradient points to where the loss rises, so subtract it", "p - lr", "p + lr"),
        Mistake("without the learning rate: the step is lr times the gradient", "lr * grad", "grad"),
        Mistake("the gradient is divided by the rate: multiply", "lr * grad", "grad / lr"),
        Mistake("only its sign: the step is lr times the gradient", "lr * grad", "lr * np.sign(grad)"),
        Mistake("this is the step alone: subtract it from the parameters", "p - lr", "lr"),
        Mistake("the parameters did not move", "[p - lr * grad for p, grad in zip(parameters, grads)]", "parameters"),
    ),
)
def sgd_step(parameters, grads, lr):
    """Return the parameters after one step of gradient descent: a list of arrays."""
    return [p - lr * grad for p, grad in zip(parameters, grads)]


@exercise(
    "10.4",
    "The mean loss of all tokens",
    minutes=8,
    difficulty="medium",
    hints=(
        "A mean loss times its count is the summed loss of the batch.",
        "Add up the losses of all tokens, then divide by the number of all tokens.",
    ),
    next_thought="When is the plain mean of `losses` right anyway?",
    cases=lambda: [
        (np.array([2.0, 3.0, 5.0]), np.array([8, 8, 2])),
        (np.array([1.5]), np.array([7])),
        (np.array([0.5, 1.0, 2.5, 0.0]), np.array([3, 0, 5, 1])),
    ],
    more=lambda rng: [(rng.uniform(0, 9, n), rng.integers(1, 99, n)) for n in (1, 2, 5, 30)],
    right=lambda losses, counts: sum(np.repeat(losses, counts).tolist()) / int(counts.sum()),
    forbids=("average", "evaluate"),
    mistakes=(
        Mistake(
            "a small batch counts as much as a large one: weight each by its tokens",
            "(losses * counts).sum() / counts.sum()",
            "losses.mean()",
        ),
        Mistake("this is the sum over all tokens: divide by their number", " / counts.sum()", ""),
        Mistake("divided by the number of batches: divide by the number of tokens", "/ counts.sum()", "/ len(counts)"),
        Mistake(
            "the losses are means already: multiply each by its count first, then divide by the total",
            "(losses * counts).sum()",
            "losses.sum()",
        ),
        Mistake(
            "this is the median of the losses, not their mean",
            "(losses * counts).sum() / counts.sum()",
            "np.median(losses)",
        ),
    ),
)
def mean_loss(losses, counts):
    """Return the mean loss per token of batches with mean losses (n,) and token counts (n,): a number."""
    return (losses * counts).sum() / counts.sum()


def _right_words(loss, tokens, characters):
    return math.exp(loss), math.log2(math.exp(loss * tokens)) / characters


@exercise(
    "10.5",
    "Perplexity and bits per character",
    minutes=8,
    difficulty="medium",
    hints=(
        "Perplexity is e to the power of the loss: as unsure as among that many equally likely tokens.",
        "A nat is 1 / ln 2 bits. All tokens together have loss · tokens nats.",
        "bits per character = loss / ln 2 · tokens / characters.",
    ),
    next_thought="Model A: 4 nats per word of 5 characters. Model B: 1 nat per character. Which is better?",
    cases=lambda: [(1.5, 20, 100), (2.0, 30, 30), (0.25, 100, 40)] + varied(1.0, 20, 40, by=[0.5, 30, 50]),
    more=lambda rng: [(float(rng.uniform(0, 9)), *map(int, rng.integers(1, 70, 2))) for _ in range(4)],
    right=_right_words,
    mistakes=(
        Mistake("a loss in nats belongs to e, not to 2: perplexity is e^loss", "math.exp(loss)", "2**loss"),
        Mistake("from nats to bits: divide by ln 2", "loss / math.log(2)", "loss * math.log(2)"),
        Mistake("these are nats per character: divide by ln 2", "loss / math.log(2)", "loss"),
        Mistake("these are bits per token: how many tokens does a character have?", " * tokens / characters", ""),
        Mistake(
            "tokens and characters are swapped: divide by the characters",
            "* tokens / characters",
            "* characters / tokens",
        ),
        Mistake(
            "perplexity comes first",
            "math.exp(loss), loss / math.log(2) * tokens / characters",
            "loss / math.log(2) * tokens / characters, math.exp(loss)",
        ),
    ),
)
def perplexity_and_bits(loss, tokens, characters):
    """Return (perplexity per token, bits per character) of a mean loss in nats per token: two numbers."""
    return math.exp(loss), loss / math.log(2) * tokens / characters
