"""Exercise of notebook 05: the sizes of heads."""

from .exercise import Mistake, question

head_sizes = question(
    "05.4",
    "The heads of GPT-2",
    minutes=5,
    difficulty="easy",
    task="""
GPT-2 has width 768 and 12 heads. How many numbers does one head work with, and how many numbers have the four matrices
(query, key, value, output) of one layer together, without biases? Give a list of two numbers.
""",
    hints=(
        "The width is shared out among the heads: D = C / H.",
        "Each of the four matrices is C by C, for all heads together.",
    ),
    next_thought="With 24 heads in place of 12: which of the two numbers changes?",
    value=[64, 4 * 768**2],
    answer="[64, 2359296]: 768 / 12 = 64, and 4 · 768² = 2,359,296. The number of heads plays no part in the second.",
    mistakes=(
        Mistake(
            "the order of the two numbers: first the numbers of one head, then those of the matrices",
            when=lambda got, want, case: list(got) == want[::-1],
        ),
        Mistake(
            "the biases are counted, too: here it is the matrices alone",
            when=lambda got, want, case: got[1] == 4 * 768**2 + 4 * 768,
        ),
        Mistake(
            "a matrix has rows times columns: 768 · 768 numbers, and not 768",
            when=lambda got, want, case: got[1] == 4 * 768,
        ),
        Mistake(
            "the width is shared out among the heads: divide, do not multiply",
            when=lambda got, want, case: got[0] == 768 * 12,
        ),
        Mistake("each head has a part of the width only: 768 / 12", when=lambda got, want, case: got[0] == 768),
        Mistake("the output matrix is missing: there are four", when=lambda got, want, case: got[1] == 3 * 768**2),
        Mistake("that is one matrix: there are four", when=lambda got, want, case: got[1] == 768**2),
        Mistake(
            "that is one head: twelve heads lie side by side in each matrix",
            when=lambda got, want, case: got[1] == 4 * 768 * 64,
        ),
        Mistake(
            "the heads share the matrices: do not count these once for each head",
            when=lambda got, want, case: got[1] == 12 * 4 * 768**2,
        ),
    ),
)
