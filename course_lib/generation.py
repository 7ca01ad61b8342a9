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


def generate_ids(model, ids, length, temperature=1.0, top_k=None, rng=None, cache=None):
    """Yield ``length`` new ids, one at a time, that continue ``ids`` (T,).

    The model sees the last ``model.context`` tokens only. Dropout is off and no graph is built, and the model's mode is
    its own again between two tokens. ``rng`` is a NumPy Generator (default: seed 0).
    cache: keep the keys and values of earlier tokens, so that a step computes one position: True, False, or None for
    "if the model can". The ids are the same either way, as long as the weights do not change in between. It helps until
    the text fills the context. From there on the window slides: every token gets another position, and forgets what it
    had heard from the token that left, so the whole window is computed at each step, as it is without a cache.
    Raises, before the first id, ValueError for an empty prompt or for several, for a length, temperature or top_k that
    makes no sense, or for cache=True with a model that has none; IndexError for an id outside the vocabulary.
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
    return _one_by_one(model, ids, length, temperature, top_k, rng, _new_cache(model, cache))


def _one_by_one(model, ids, length, temperature, top_k, rng, cache):
    for _ in range(length):
        probabilities = next_probabilities(next_logits(model, ids, cache), temperature, top_k)
        ids.append(int(rng.choice(len(probabilities), p=probabilities)))
        yield ids[-1]


def _new_cache(model, wanted):
    """An empty cache, or None where none is wanted or, if that is left open, the model has none."""
    able = hasattr(model, "new_cache")
    if wanted and not able:
        raise ValueError(f"cache=True, but a {type(model).__name__} has no cache: leave cache away")
    if wanted or (wanted is None and able and model.config.causal):
        return model.new_cache()
    return None


def next_logits(model, ids, cache=None):
    """Logits (V,) of the token after ``ids``, a list. A cache knows some of the ids already, and learns the rest."""
    with model.evaluating():  # left again before the caller goes on: a pause must not switch anything off
        if cache is not None and len(ids) <= model.context:
            logits, _ = model(np.array([ids[cache.length :]]), cache=cache)
        else:
            logits, _ = model(np.array([ids[-model.context :]]))
    return logits.detach().numpy()[0, -1]  # (1, T, V) -> (V,)


def generate(model, tokenizer, prompt, length, temperature=1.0, top_k=None, seed=0, cache=None):
    """``prompt`` and ``length`` more tokens, as text. Equal seeds give equal text; ``cache`` as in ``generate_ids``."""
    ids = tokenizer.encode(prompt)
    new = generate_ids(model, ids, length, temperature, top_k, np.random.default_rng(seed), cache)
    return tokenizer.decode([*ids, *new])


_BEFORE, _AFTER = "sample:", "(end of sample)"  # tests compare the marks, not what stands between them


def print_sample(text):
    """Print generated text between two marks. What a float32 model writes may differ on another processor, so tests
    look at the marks only, and the cell asserts what matters."""
    print(_BEFORE, text, _AFTER, sep="\n")


class Written(str):
    """A text that stands on the page already: a cell that ends with it does not show it a second time."""

    def _ipython_display_(self):
        pass


def growing_text(model, tokenizer, prompt, length, temperature=1.0, top_k=None, seed=0, cache=None):
    """Yield the text of ``generate`` after each of its ``length`` new tokens; a wrong request is an error at once."""
    ids = tokenizer.encode(prompt).tolist()
    new = generate_ids(model, ids, length, temperature, top_k, np.random.default_rng(seed), cache)

    def texts():
        for token in new:
            ids.append(token)
            yield tokenizer.decode(ids)  # of all: whether a space comes before a word, the one before it decides

    return texts()


def stream(model, tokenizer, prompt, length, temperature=1.0, top_k=None, seed=0, cache=None):
    """Write ``prompt`` and each new token as it comes, between the marks of ``print_sample``; returns the whole text.

    It is the text of ``generate``. The stop button (KeyboardInterrupt) ends it early: what is written stays, a note
    says how far it came, and the text so far is returned.
    """
    texts = growing_text(model, tokenizer, prompt, length, temperature, top_k, seed, cache)
    text, written, note = prompt, 0, ""
    print(_BEFORE, prompt, sep="\n", end="", flush=True)
    try:
        for longer in texts:
            print(longer[len(text) :], end="", flush=True)
            text, written = longer, written + 1
    except KeyboardInterrupt:
        note = stopped_note(written, length) + "\n"
    print(f"\n{note}{_AFTER}")
    return Written(text)


def stopped_note(written, length):
    """What stands under a text that the stop button ended."""
    return f"(stopped after {written} of {length} tokens)"
