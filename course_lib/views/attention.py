"""`attention_view`: look at attention weights, choose layer, head and query, and read the exact numbers."""

import sys

try:
    import anywidget  # noqa: F401 - it needs ipywidgets, and says so only as a bare ImportError
    import ipywidgets  # noqa: F401
except ImportError as missing:
    name = missing.name or "anywidget"
    raise ImportError(
        f"the attention view needs {name} in the Python that runs this notebook; install it with:  "
        f'"{sys.executable}" -m pip install {name}'
    ) from missing

from .attention_widget.view import AttentionView


def attention_view(
    weights,
    tokens,
    *,
    query_tokens=None,
    layer=0,
    head=0,
    title=None,
    allow=None,
    value_limits=(0, 1),
    queries=None,
    keys=None,
    scale=None,
    trained_here=False,
    **choices,
):
    """Show attention weights: all heads small, one large, with the exact numbers of whatever is pointed at.

    weights: (T, T), (H, T, T) or (L, H, T, T); an array, a list, or a tensor of either track. Rows are queries,
    columns are keys. tokens: the T tokens, as text; with query_tokens (T_q of them) the tokens are those of the keys
    only, as in cross-attention: weights (…, T_q, T_k). allow: boolean, True = may look, of the last two axes or more;
    cells that are not allowed are hatched, and not drawn as zero. value_limits: the values at the ends of the colour
    bar; weights are checked against (0, 1), for scores give limits of their own, or None for the smallest and largest.
    queries (…, T_q, D), keys (…, T_k, D) and scale (1/√D when None): the view then also shows q · k and the scaled,
    masked scores, and for a cell the products that its score is the sum of.
    trained_here: the weights come from a training in this notebook, so they differ a little from machine to machine;
    what the view says of itself as text then leaves the numbers out.
    choices: any trait of AttentionView, `query=3, mode="arcs"`.
    Raises ValueError, naming the numbers, for shapes that do not fit the tokens, values that are not finite, weights
    outside 0 … 1, and weight on a cell that is not allowed. Warns of rows that do not sum to 1.

    >>> attention_view([[1, 0], [0.25, 0.75]], ["the", "cat"])
    AttentionView(1 layer, 1 head, 2 queries, 2 keys; layer 0 head 0: row max 0.75..1.00, mean 0.875)
    """
    return AttentionView(
        weights,
        tokens,
        query_tokens=query_tokens,
        allow=allow,
        title=title,
        value_limits=value_limits,
        queries=queries,
        keys=keys,
        scale=scale,
        trained_here=trained_here,
        layer=layer,
        head=head,
        **choices,
    )
