"""Text that somebody types into a view: the tokens a model can read, and a sentence about what it cannot."""

import numpy as np

from .labels import quoted


def read_text(tokenizer, text, longest):
    """Return (ids (T,), the tokens as a list, what to say about the rest) of the last ``longest`` tokens of a text.

    Unknown pieces are left out; a word that is still being typed is answered with the known words it may become. T is 0
    if nothing is known.
    """
    if not hasattr(tokenizer, "known"):  # byte pairs: nothing is unknown
        ids = np.asarray(tokenizer.encode(text))
        pieces, notes = [tokenizer.decode([n]) for n in ids[-longest:]], []
    else:
        pieces, unknown = tokenizer.known(text)
        ids, notes = np.array([tokenizer.vocabulary.index(piece) for piece in pieces], np.int64), []
        if unknown and text.endswith(unknown[-1]):
            near = [word for word in tokenizer.vocabulary if word.startswith(unknown[-1])]
            if near:
                notes.append(f"{quoted(unknown.pop())} … {', '.join(near[:5])}?")
        if unknown:
            names = ", ".join(map(quoted, unknown[:5])) + (" …" if len(unknown) > 5 else "")
            notes.append(f"left out because the model does not know it: {names}")
    if len(ids) > longest:
        notes.append(f"only the last {longest} of {len(ids)} tokens are read")
    if not len(ids):
        notes.append("type something the model knows")
    return ids[-longest:], pieces[-longest:], "; ".join(notes)
