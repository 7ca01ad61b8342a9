"""Tokens as labels: invisible characters get a visible form, and nothing is taken for markup or a formula."""

import html
import unicodedata

from .style import drawable

VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "": "∅"}
LONGEST = 14  # characters of a token in a picture
LONGEST_IN_WORDS = 24  # and in an alternative text


# Letters, marks and signs without ink: fillers of Hangul, vowels of Khmer, variation selectors of Mongolian and others,
# the joiner of graphemes, the empty Braille cell.
_WITHOUT_INK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
# control, format (zero width, direction marks), space, line and paragraph separator, surrogate, unassigned, private
_UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Cn", "Co")


def visible(token):
    """Return the token with spaces, newlines, tabs and other invisible characters in visible form.

    A mark that would sit on nothing, or on the visible form of another character, gets a dotted circle to sit on.

    >>> visible("to be"), visible("\\n"), visible("a\\u200bb"), visible("<b>"), visible("\\u0301")
    ('to␣be', '↵', 'a\\\\u200bb', '<b>', '◌\u0301')
    """
    return VISIBLE[token] if token in VISIBLE else _shown(token)


def _shown(text, kept=""):
    """Return the text with what cannot be seen made visible, apart from the characters that are ``kept``."""
    shown, base = [], False  # base: does the last character carry marks?
    for c in text:
        mark = unicodedata.category(c).startswith("M") and c not in _WITHOUT_INK
        shown.append("◌" + c if mark and not base else c if c in kept else _visible_character(c))
        base = (mark or shown[-1] == c) and c not in kept
    return "".join(shown)


def _visible_character(c):
    if c in VISIBLE:
        return VISIBLE[c]
    return f"\\u{ord(c):04x}" if c in _WITHOUT_INK or unicodedata.category(c) in _UNSEEN else c


def readable(text):
    """Return a title or sentence with what cannot be seen made visible, apart from spaces and line breaks.

    >>> readable("costs\\u200b 5"), readable("\\ud83d")
    ('costs\\\\u200b 5', '\\\\ud83d')
    """
    return _shown(text, kept=" \n")


def short(text, longest=LONGEST):
    """Return the text cut to ``longest`` characters, ending in … if something was cut."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def drawn(token, longest=LONGEST):
    """Return the label for a picture: visible, short, and with U+4F60 for a character that no font here has.

    A ``$`` needs no care: every text that contains a token is drawn with parse_math=False.
    """
    whole = _drawable(visible(token))
    if len(whole) <= longest:
        return whole
    return short(_drawable(short(visible(token), longest)), longest + 6)  # room for two names such as U+4F60


def _drawable(text):
    return drawable(text).replace("◌U+", "U+")


def drawn_words(text, longest=LONGEST):
    """Return the label of a row, column or bar: a few words keep their spaces and are not cut; a token is ``drawn``.

    >>> drawn_words("layer 0 head 1"), drawn_words(" the")
    ('layer 0 head 1', '␣the')
    """
    words = text.replace("\n", " ").split(" ")
    return _drawable(readable(text)) if len(words) > 1 and all(words) else drawn(text, longest)


def quoted(token):
    """Return the token for use in a sentence: visible, in curly quotes.

    >>> quoted("they")
    '“they”'
    """
    return f"“{visible(token)}”"


def quoted_short(text):
    """Return the text as ``quoted`` does, cut for an alternative text or a repr."""
    return f"“{short(visible(text), LONGEST_IN_WORDS)}”"


def escaped(text):
    """Return the text made safe for HTML, quotes included.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(text, quote=True)
