"""Tokens as labels: what cannot be seen gets a visible form, what would be read as markup or maths does not."""

import html
import unicodedata

from .style import can_draw

VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "": "∅"}
LONGEST = 14


def visible(token):
    """The token with spaces, newlines, tabs and other unseen characters in visible form.

    >>> visible("to be"), visible("\\n"), visible("a\\u200bb"), visible("<b>")
    ('to␣be', '↵', 'a\\\\u200bb', '<b>')
    """
    if token in VISIBLE:
        return VISIBLE[token]
    return "".join(_visible_character(c) for c in token)


def _visible_character(c):
    if c in VISIBLE:
        return VISIBLE[c]
    # Cc control, Cf format (zero width, direction marks), Zs spaces, Zl and Zp separators, Cs halves of a pair.
    if unicodedata.category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Cn", "Co"):
        return f"\\u{ord(c):04x}"
    return c


def short(text, longest=LONGEST):
    """The text cut to `longest` characters, with … at the end if something was cut."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def drawn(token):
    """The label for a picture: visible, short, and with U+4F60 in place of a sign that no font here has.

    A `$` needs no care: every text with a token in it is drawn with parse_math=False.
    """
    return "".join(c if can_draw(c) else f"U+{ord(c):04X}" for c in short(visible(token)))


def drawn_words(text):
    """The label of a row that may be a few words: they keep their spaces, and are not cut; a token is ``drawn``.

    >>> drawn_words("layer 0 head 1"), drawn_words(" the")
    ('layer 0 head 1', '␣the')
    """
    if text == text.strip() and " " in text and all(text.split(" ")):
        return " ".join("".join(c if can_draw(c) else drawn(c) for c in visible(word)) for word in text.split(" "))
    return drawn(text)


def quoted(token):
    """The label in a sentence of text: visible, in curly quotes.

    >>> quoted("they")
    '“they”'
    """
    return f"“{visible(token)}”"


def escaped(text):
    """The text made safe for HTML, quotes included.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(text, quote=True)
