"""Exercise of notebook 13: what mixed precision leaves in float32."""

from .exercise import Mistake, question

_PRODUCTS = {3, 5, 7}


def _without(number):
    """Whether this one is missing, in an answer that names no large product."""
    return lambda got, want, case: number not in got and not _PRODUCTS & set(got)


stays_in_float32 = question(
    "13.5",
    "What stays in float32?",
    minutes=4,
    difficulty="easy",
    task="""
A GPT-2 is trained in mixed precision, with bfloat16. Which of these stay in float32? (1) the weights that the optimiser
changes, (2) AdamW's averages, (3) the products with the matrices of the MLP, (4) the residual stream, (5) the products
query · keyᵀ, (6) LayerNorm, (7) the product with the head's matrix, (8) the loss. Give a list of numbers, the smallest
first.
""",
    hints=(
        "Which operations are most of the work? Those, and only those, are done in bfloat16.",
        "A sum of a large and a small number loses the small one in bfloat16. Who adds up many small things?",
        "Large matrix products: three of the eight. The other five stay.",
    ),
    next_thought="So what needs less memory in mixed precision: the weights with their averages, or the activations?",
    value=[1, 2, 4, 6, 8],
    answer="[1, 2, 4, 6, 8]: the weights and all that changes them, the stream, LayerNorm and the loss. The three large"
    " products are done in bfloat16.",
    mistakes=(
        Mistake(
            "the other way round: these are the ones in bfloat16", when=lambda got, want, case: set(got) == _PRODUCTS
        ),
        Mistake(
            "these are the right ones, and the smallest should stand first",
            when=lambda got, want, case: not isinstance(got, set) and sorted(got) == want,
        ),
        Mistake(
            "the large matrix products are what bfloat16 is for: 3, 5 and 7 are such products",
            when=lambda got, want, case: bool(_PRODUCTS & set(got)),
        ),
        Mistake(
            "the weights stay in float32: in bfloat16 an update of a thousandth would be lost, every time",
            when=_without(1),
        ),
        Mistake("the averages are part of the update: they add up many small numbers", when=_without(2)),
        Mistake("every block adds a little to the residual stream: in bfloat16 it would get lost", when=_without(4)),
        Mistake("LayerNorm takes means and a root: it is little work, and stays in float32", when=_without(6)),
        Mistake("the loss is a mean over many tokens: it stays in float32", when=_without(8)),
    ),
)
