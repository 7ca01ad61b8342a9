"""The GPTs of the bench on HIPS autograd, another autograd for NumPy, where that package is installed."""

import math

import numpy

try:
    import autograd.numpy
    from autograd import value_and_grad
except ImportError:
    value_and_grad = None


def logits(np, p, system, ids):
    """Return the logits (B, T, V); ``np`` is NumPy or autograd.numpy, ``p`` the arrays by the names of the track."""
    config, (B, T) = system.config, ids.shape
    heads = 1 if system.first else config.heads
    allow = numpy.tril(numpy.ones((T, T), bool))

    def attention(q, k, v):
        q, k, v = (np.swapaxes(np.reshape(t, (B, T, heads, -1)), 1, 2) for t in (q, k, v))
        scores = np.where(allow, q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1])), -numpy.inf)
        weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        weights = weights / np.sum(weights, axis=-1, keepdims=True)
        return np.reshape(np.swapaxes(weights @ v, 1, 2), (B, T, -1))

    def linear(x, name):
        out = np.reshape(np.reshape(x, (B * T, -1)) @ p[name + ".weight"], (B, T, -1))
        return out + p[name + ".bias"] if name + ".bias" in p else out

    def norm(x, name):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * p[name + ".weight"] + p[name + ".bias"]

    def mlp(x, name, gelu):
        x = linear(x, name + ".up")
        if gelu:
            x = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
        else:
            x = np.maximum(x, 0)
        return linear(x, name + ".down")

    x = p["token.weight"][ids] + p["position"][:T]
    for n in range(config.layers):
        block = f"blocks.{n}."
        if system.first:
            x = mlp(linear(attention(x, x, x), block + "output"), block + "feed_forward", gelu=True)
            continue
        step = block + "attention"
        y = norm(x, step + ".norm")
        y = attention(*(linear(y, f"{step}.layer.{name}") for name in ("query", "key", "value")))
        x = x + linear(y, step + ".layer.output")
        step = block + "mlp"
        x = x + mlp(norm(x, step + ".norm"), step + ".layer", config.activation == "gelu")
    return linear(x if system.first else norm(x, "norm"), "head")


def loss_and_grads(model, system, x, y):
    """Return the loss, a number, and the gradients by name, of the track's ``model`` computed by HIPS autograd."""
    np = autograd.numpy

    def loss(p):
        rows = np.reshape(logits(np, p, system, x), (y.size, -1))
        shifted = rows - np.max(rows, axis=-1, keepdims=True)
        totals = np.log(np.sum(np.exp(shifted), axis=-1))
        return np.mean(totals - shifted[numpy.arange(y.size), y.reshape(-1)])

    return value_and_grad(loss)({name: p.data for name, p in model.named_parameters()})
