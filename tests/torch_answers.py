"""Right answers to exercises, written in PyTorch: exercise -> function; None where the solution serves both tracks."""

TORCH = {
    "02.2": "def unbroadcast(grad, shape):\n    while grad.ndim > len(shape):\n        grad = grad.sum(0)\n"
    "    for axis, size in enumerate(shape):\n        grad = grad.sum(axis, keepdim=True) if size == 1 else grad\n"
    "    return grad",
    "02.3": None,  # the same text serves both
    "02.5": "def mean_backward(x, grad):\n    return (grad[..., None] / x.shape[-1]).expand_as(x)",
    "03.1": "def softmax(x):\n    exps = torch.exp(x - x.amax(-1, keepdim=True))\n"
    "    return exps / exps.sum(-1, keepdim=True)",
    "03.3": "def attention(query, key, value):\n    scores = query @ key.mT / math.sqrt(query.shape[-1])\n"
    "    exps = torch.exp(scores - scores.amax(-1, keepdim=True))\n    weights = exps / exps.sum(-1, keepdim=True)\n"
    "    return weights @ value, weights",
    "04.1": None,
    "05.4": "def masked_softmax(scores, allow):\n    scores = torch.where(allow, scores, -math.inf)\n"
    "    top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)\n"
    "    exps = torch.exp(scores - top)\n"
    "    return exps / exps.sum(-1, keepdim=True).clamp(min=1)",
    "06.1": None,
    "06.2": None,
    "07.1": "def group_layer_norm(x, groups, gain, bias, eps):\n    pieces = x.unflatten(-1, (groups, -1))\n"
    "    variance = pieces.var(-1, correction=0, keepdim=True)\n"
    "    normed = (pieces - pieces.mean(-1, keepdim=True)) / torch.sqrt(variance + eps)\n"
    "    return normed.flatten(-2) * gain + bias",
    "07.2": "def layer_norm_backward(x, gain, grad):\n    variance = x.var(-1, correction=0, keepdim=True)\n"
    "    s = torch.rsqrt(variance + 1e-5)\n    n, g = (x - x.mean(-1, keepdim=True)) * s, grad * gain\n"
    "    dx = s * (g - g.mean(-1, keepdim=True) - n * (g * n).mean(-1, keepdim=True))\n    C = len(gain)\n"
    "    return dx, (grad * n).reshape(-1, C).sum(0), grad.reshape(-1, C).sum(0)",
    "07.4": "def rms_norm_backward(x, grad):\n    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)\n"
    "    normed = x * scale\n    return scale * (grad - normed * (grad * normed).mean(-1, keepdim=True))",
    "08.1": None,
    "08.3": "def mlp(x, W_in, b_in, W_out, b_out):\n    return torch.relu(x @ W_in + b_in) @ W_out + b_out",
    "09.3": None,
    "10.3": None,
    "12.1": "def top_k_filter(logits, k):\n    kept = torch.argsort(logits, descending=True, stable=True)[:k]\n"
    "    filtered = torch.full_like(logits, -math.inf)\n    filtered[kept] = logits[kept]\n    return filtered",
    "12.2": "def probabilities_at(logits, temperature):\n    if temperature == 0:\n"
    "        return (torch.arange(len(logits)) == logits.argmax()).to(logits.dtype)\n"
    "    exps = torch.exp((logits - logits.max()) / temperature)\n    return exps / exps.sum()",
    "12.4": "def cache_step(query, key, value, keys, values):\n"
    "    keys, values = torch.vstack([keys, key]), torch.vstack([values, value])\n"
    "    scores = keys @ query / math.sqrt(len(query))\n    exps = torch.exp(scores - scores.max())\n"
    "    return exps / exps.sum() @ values, keys, values",
    "14.2": "def cross_attention(x, memory, Q, K, V):\n    scores = (x @ Q) @ (memory @ K).T / math.sqrt(Q.shape[1])\n"
    "    exps = torch.exp(scores - scores.amax(-1, keepdim=True))\n    weights = exps / exps.sum(-1, keepdim=True)\n"
    "    return weights @ (memory @ V), weights",
    "13.1": "def previous_token_score(maps):\n    return maps.diagonal(-1, dim1=2, dim2=3).mean(-1)",
    "13.2": "def induction_score(maps, period):\n    queries = torch.arange(period, maps.shape[3])\n"
    "    return maps[:, :, queries, queries - period + 1].mean(2)",
    "13.3": "def switch_off(W, head, H):\n    off, D = W.clone(), len(W) // H\n    off[head * D : (head + 1) * D] = 0\n"
    "    return off",
    "15.3": None,
}
