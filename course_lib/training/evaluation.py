"""The loss over a whole part of the text."""


def evaluate(model, x, y, batch_size=64):
    """Mean loss in nats per token over all windows ``x`` (N, T) with targets ``y``, each token counted once.

    Every batch is weighted by its tokens, so a short last batch changes nothing and the result does not depend on
    ``batch_size``. The model's mode and every Generator are left as they were.
    """
    if len(x) == 0:
        raise ValueError("nothing to evaluate: there are 0 windows")
    total = 0.0
    with model.evaluating():
        for start in range(0, len(x), batch_size):
            piece = slice(start, start + batch_size)
            total += model(x[piece], y[piece])[1].item() * y[piece].size
    return total / y.size
