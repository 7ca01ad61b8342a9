"""Text that appears while it is generated, and the marks around it that tests look for."""

import numpy as np

from .sampling import generate_ids

_BEFORE, _AFTER = "sample:", "(end of sample)"  # tests compare the marks, not the text between them


def print_sample(text):
    """Print generated text between two marks.

    What a float32 model writes may differ on another processor: tests compare only the marks, and the cell asserts what
    matters.
    """
    print(_BEFORE, text, _AFTER, sep="\n")


class Written(str):
    """A text that is on the page already: a cell that ends with it does not show it again."""

    def _ipython_display_(self):
        pass


def growing_text(model, tokenizer, prompt, max_new_tokens, temperature=1.0, top_k=None, seed=0, cache=None):
    """Return a generator of the text of ``generate`` after each new token; a wrong request is an error at once.

    The bytes of one character may come in several tokens. Decoded too early they read as U+FFFD, the sign for broken
    text, so such signs at the end wait for what follows. Each text begins with the one before.
    """
    ids = tokenizer.encode(prompt).tolist()
    new = generate_ids(model, ids, max_new_tokens, temperature, top_k, np.random.default_rng(seed), cache)

    def texts():
        shown = len(tokenizer.decode(ids))
        for count, token in enumerate(new, 1):
            ids.append(token)
            text = tokenizer.decode(ids)  # of all ids: the word before decides whether a space follows it
            shown = len(text) if count == max_new_tokens else max(shown, len(text.rstrip("\ufffd")))
            yield text[:shown]

    return texts()


def stream(model, tokenizer, prompt, max_new_tokens, temperature=1.0, top_k=None, seed=0, cache=None):
    """Write ``prompt`` and each new token as it comes, between the marks of ``print_sample``; return the whole text.

    The text is that of ``generate``. The stop button (KeyboardInterrupt) ends it early: what is written stays, a note
    says how far it got, and the text so far is returned.
    """
    texts = growing_text(model, tokenizer, prompt, max_new_tokens, temperature, top_k, seed, cache)
    text, written, note = tokenizer.decode(tokenizer.encode(prompt)), 0, ""
    print(_BEFORE, text, sep="\n", end="", flush=True)
    try:
        for longer in texts:
            print(longer[len(text) :], end="", flush=True)
            text, written = longer, written + 1
    except KeyboardInterrupt:
        note = stopped_note(written, max_new_tokens) + "\n"
    print(f"\n{note}{_AFTER}")
    return Written(text)


def stopped_note(written, max_new_tokens):
    """Return the note under a text that the stop button ended."""
    return f"(stopped after {written} of {max_new_tokens} tokens)"
