"""Text from a model, one token at a time, for models of both tracks."""

import math
import numbers

import numpy as np

from ..common.checks import check_ids


def next_probabilities(logits, temperature=1.0, top_k=None):
    """Return the probabilities of the next token, float64 (V,) that sums to 1, from its ``logits`` (V,).

    The logits are divided by ``temperature``: below 1, likely tokens get likelier; 0 means greedy (all on the largest).
    With ``top_k`` only the k most likely tokens remain (more than V means V).

    Raises ValueError for temperature < 0, k < 1, or logits that are nan or infinite (training went wrong).

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
    with np.errstate(over="ignore"):  # at a tiny temperature -inf is correct
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


def generate_ids(model, ids, max_new_tokens, temperature=1.0, top_k=None, rng=None, cache=None):
    """Yield ``max_new_tokens`` new ids, one at a time, that continue ``ids`` (T,).

    The model sees only the last ``model.context_length`` tokens. Dropout is off and no graph is built; between two
    tokens the model is back in its own mode. ``rng`` is a NumPy Generator (default: seed 0). ``cache`` (True, False, or
    None for "if the model can") keeps the keys and values of earlier tokens, so that a step computes one position. The
    ids are the same either way, unless the weights change in between. A cache helps until the text fills the context.
    Then the window slides: every token moves to another position and loses the influence of the token that dropped out,
    so each step computes the whole window, as it does without a cache. Not so with rotary positions and an attention
    ``window``: only distances count, so the cache goes on, and a token keeps the influence of all that came before it,
    one window further back with each layer. Raises, before the first id, ValueError for an
    empty prompt or several, for a max_new_tokens, temperature or top_k out of range, or for cache=True with a model
    that has none; IndexError for an id outside the vocabulary.
    """
    ids = np.asarray(ids)
    if ids.size > 1 and ids.size != ids.shape[-1]:
        raise ValueError(f"one prompt at a time, ids of shape (T,): these have shape {ids.shape}")
    if ids.size == 0:
        raise ValueError("the prompt is empty: a model needs at least one token to continue")
    ids = check_ids(ids, model.vocab_size).reshape(-1).tolist()
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be 0 or more, not {max_new_tokens}")
    _check_options(temperature, top_k)
    rng = np.random.default_rng(0) if rng is None else rng
    return _one_by_one(model, ids, max_new_tokens, temperature, top_k, rng, _new_cache(model, cache))


def _one_by_one(model, ids, max_new_tokens, temperature, top_k, rng, cache):
    for _ in range(max_new_tokens):
        probabilities = next_probabilities(next_logits(model, ids, cache), temperature, top_k)
        ids.append(int(rng.choice(len(probabilities), p=probabilities)))
        yield ids[-1]


def _new_cache(model, wanted):
    """Return an empty cache, or None if none is wanted or, with ``wanted`` None, the model has none."""
    able = hasattr(model, "new_cache")
    if wanted and not able:
        raise ValueError(f"cache=True, but a {type(model).__name__} has no cache: leave out cache")
    if wanted or (wanted is None and able and model.config.causal):
        return model.new_cache()
    return None


def next_logits(model, ids, cache=None):
    """Return the logits (V,) of the token after ``ids``, a list; a cache of the first ones takes in the rest."""
    with model.evaluating():  # closed before the caller continues: a pause must not leave the model in evaluation mode
        if cache is not None and (len(ids) <= model.context_length or cache.rolls):
            while True:  # once, unless a prompt is longer than the context
                logits, _ = model(np.array([ids[cache.position :][: cache.room]]), cache=cache)
                if cache.position >= len(ids):
                    break
        else:
            logits, _ = model(np.array([ids[-model.context_length :]]))
    return logits.detach().numpy()[0, -1]  # (1, T, V) -> (V,)


def generate(model, tokenizer, prompt, max_new_tokens, temperature=1.0, top_k=None, seed=0, cache=None):
    """Return ``prompt`` and the tokens that follow it, as text. Equal seeds give equal text; see ``generate_ids``."""
    ids = tokenizer.encode(prompt)
    new = generate_ids(model, ids, max_new_tokens, temperature, top_k, np.random.default_rng(seed), cache)
    return tokenizer.decode([*ids, *new])
