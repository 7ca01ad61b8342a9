"""The sanitizer hides what differs between two runs, and no number that a lesson prints."""

import re

import pytest
from nbval.plugin import get_sanitize_patterns

from tools import notebook

SOURCE = (notebook.ROOT / "nbval_sanitize.cfg").read_text(encoding="utf-8")
RULES = get_sanitize_patterns(SOURCE)


def sanitize(text):
    for regex, replacement in RULES:
        text = re.sub(regex, replacement, text)
    return text


def test_every_rule_is_read():
    """nbval drops a malformed pair in silence, and an emptied `replace:` too."""
    rules = re.findall(r"(?m)^\s*regex\s*:", SOURCE)
    assert len(RULES) == len(rules) == len(re.findall(r"(?m)^\s*replace\s*:", SOURCE)) > 0


def test_plain_ascii():
    """nbval reads the file in the encoding of the machine."""
    assert SOURCE.isascii()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<object at 0x7fba4a46f370>", "<object at 0x7efdd0fa7260>"),
        ("/tmp/ipykernel_9008/33424140.py:1: UserWarning: x", "/tmp/ipykernel_8777/99424140.py:1: UserWarning: x"),
        ("train: 100%|████| 5/5 [00:00<00:00,  6.60it/s]", "train: 100%|████| 5/5 [00:01<00:00,  5.12it/s, loss=2]"),
        ("took 1.2 s", "took 350 ms"),
        ("12,345 tok/s", "9.5k tok/s"),
        ("850 tokens/s", "7,200 tokens/s"),
        ("Wall time: 45.8 μs", "Wall time: 1.2 s"),
        ("1.2 ms ± 3 µs per loop (mean)", "900 μs ± 1.1 ns per loop (std)"),
        ("test loss ~2.85 after 5 steps", "test loss ~2.861 after 5 steps"),
        ("here: numpy 2.4.6\n", "here: numpy 2.5.0\n"),
        ("sample: 'OOO'", "sample: 'MMM and more'"),
        ("sample:\nTo be\nor\n(end of sample)\n", "sample:\nnot\n(end of sample)\n"),
        ("id 12345678-1234-1234-1234-123456789abc", "id 87654321-1234-1234-1234-123456789abc"),
    ],
)
def test_hides(one, other):
    assert sanitize(one) == sanitize(other)


@pytest.mark.parametrize(
    "text",
    [
        "step 100  loss 2.3107",
        "loss 2.31 val 2.45",
        "tensor([0.1000, 0.2000])",
        "39,153 parameters",
        "0x1F",
        "[[1. 0.]\n [0.3 0.7]]",
        "accuracy 93%",
        "after 5 s",
        "ratio 0.5",
        "1742 x (4, 32, 65)",
        "took 3 steps",
        "a sample: of 3 words",
        "~abc",
        "2.85~",
        "58 characters, 17 symbols",
        "0.1614 nats/token",
        "12 samples",
        "|0.5| 3/4 [1, 2]",
    ],
)
def test_keeps(text):
    assert sanitize(text) == text
