"""Text from a model: one token after the other, for models of both tracks."""

import math
import numbers

import numpy as np

from .inputs import check_ids


def next_probabilities(logits, temperature=1.0, top_k=None):
    """Probabilities of the next token from its ``logits`` (V,), as float64 that sums to 1.

    temperature: logits are divided by it; below 1 the likely gets likelier, and 0 means greedy (all on the largest).
    top_k: only the k most likely tokens stay (more than V means V).

    Raises ValueError for temperature < 0, k < 1, or logits that are not numbers (training went wrong).

    >>> next_probabilities(np.array([1.0, 3.0, 2.0]), temperature=0)
    array([0., 1., 0.])
    """
    logits = np.asarray(logits, np.float64)
    _check_options(temperature, top_k)
    if not np.isfinite(logits.max()):  # nan, or inf; -inf is a token that never comes, as long as others do
        raise ValueError(
            f"{(~np.isfinite(logits)).sum()} of {len(logits)} logits are nan or infinite: the weights of this model"
            " are broken"
        )
    if temperature == 0:
        return (np.arange(len(logits)) == logits.argmax()).astype(np.float64)
    with np.errstate(over="ignore"):  # at a tiny temperature -inf is the right answer
        scaled = (logits - logits.max()) / temperature
    if top_k is not None and top_k < len(logits):
        dropped = np.argsort(-scaled, kind="stable")[int(top_k) :]
        scaled[dropped] = -np.inf
    exps = np.exp(scaled)
    return exps / exps.sum()


def _check_options(temperature, top_k):
    if not isinstance(temperature, numbers.Real) or not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or a positive number, not {temperature!s}")
    if top_k is not None and (not isinstance(top_k, numbers.Real) or not top_k >= 1 or top_k % 1):
        raise ValueError(f"top_k must be a whole number from 1 up, not {top_k!s}")


def generate_ids(model, ids, length, temperature=1.0, top_k=None, rng=None):
    """Yield ``length`` new ids, one at a time, that continue ``ids`` (T,).

    The model sees the last ``model.context`` tokens only. Dropout is off and no graph is built, and the model's mode is
    its own again between two tokens. ``rng`` is a NumPy Generator (default: seed 0).
    Raises, when the first id is asked for, ValueError for an empty prompt or for several, IndexError for an id outside
    the vocabulary.
    """
    ids = np.asarray(ids)
    if ids.size > 1 and ids.size != ids.shape[-1]:
        raise ValueError(f"one prompt at a time, ids of shape (T,): these have shape {ids.shape}")
    if ids.size == 0:
        raise ValueError("the prompt is empty: a model needs at least one token to go on from")
    ids = check_ids(ids, model.vocabulary_size).reshape(-1).tolist()
    if length < 0:
        raise ValueError(f"length must be 0 or more, not {length}")
    _check_options(temperature, top_k)
    rng = np.random.default_rng(0) if rng is None else rng
    for _ in range(length):
        window = np.array(ids[-model.context :])
        with model.evaluating():
            logits = model(window[None])[0].detach().numpy()[0, -1]  # (1, T, V) -> (V,)
        probabilities = next_probabilities(logits, temperature, top_k)
        ids.append(int(rng.choice(len(probabilities), p=probabilities)))
        yield ids[-1]


def generate(model, tokenizer, prompt, length, temperature=1.0, top_k=None, seed=0):
    """``prompt`` and ``length`` more tokens, as text. Equal seeds give equal text."""
    ids = tokenizer.encode(prompt)
    new = generate_ids(model, ids, length, temperature, top_k, np.random.default_rng(seed))
    return tokenizer.decode([*ids, *new])


def print_sample(text):
    """Print generated text between two marks. What a float32 model writes may differ on another processor, so tests
    look at the marks only, and the cell asserts what matters."""
    print("sample:", text, "(end of sample)", sep="\n")
