"""Answers that no author had in mind: right ones in odd styles, wrong ones of all kinds, and hostile ones."""

import inspect
import pickle
import re
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from test_exercise_answers import made

from course_lib.common.config import GPTConfig
from course_lib.exercises import every, find, watch
from course_lib.exercises.exercise import NOT_YET, RIGHT
from course_lib.exercises.judge import judge
from course_lib.numpy_track import GPT
from course_lib.text import windows

SOFTMAX = "lambda x: (lambda e: e / e.sum(-1, keepdims=True))(np.exp(x - {}))"
MERGE = """def merge_pair(tokens, pair):
    out, i = [], 0
    while i < len(tokens):
        if tuple(tokens[i : i + 2]) == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out"""
LINEAR = """def from_linear(theirs, shapes):
    ours = {}
    for name, array in theirs.items():
        ours[name] = array.T if name.endswith(".weight") else array
    return ours"""
SINUSOIDS = """def sinusoids(rows, width):
    i, p = np.arange(width), np.arange(rows)[:, None]
    return np.sin(p / 10000 ** (i // 2 * 2 / width) + i % 2 * np.pi / 2)"""
TOP_P = """def top_p(probabilities, p):
    order = np.argsort(-probabilities, kind="stable")
    shares = probabilities[order]
    shares = np.where(np.cumsum(shares) - shares < p, shares, 0)
    shares = shares / shares.sum()
    return shares[np.argsort(order)]"""
TOP_K = """def top_k_filter(logits, k):
    order = np.argsort(-logits, kind="stable")[:k]
    result = np.full(logits.shape, -np.inf, logits.dtype)
    result[order] = logits[order]
    return result"""
GREEDY = """def probabilities_at(logits, temperature):
    if temperature == 0:
        p = np.zeros_like(logits)
        p[logits.argmax()] = 1
        return p
    e = np.exp((logits - logits.max()) / temperature)
    return e / e.sum()"""
MASKED = """def masked_softmax(scores, allow):
    s = np.where(allow, scores, -np.inf)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)"""
SUMMED = """def unbroadcast(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, size in enumerate(shape):
        grad = grad.sum(axis=axis, keepdims=True) if size == 1 else grad
    return grad"""
ENCODE = """def encode(text, vocabulary):
    for i, c in enumerate(text):
        if c not in vocabulary:
            raise ValueError(f"place {i}: {c!r} is not in the vocabulary")
    return np.array([vocabulary.index(c) for c in text])"""
CROSS = """def cross_attention(x, memory, Q, K, V):
    q, k, v = x @ Q, memory @ K, memory @ V
    s = q @ k.T / q.shape[-1] ** 0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w"""

MASKED_FORWARD = """def masked_forward(self, x):
    allow = np.tri(x.shape[1], dtype=bool)
    context, self.weights = F.attention(self.query(x), self.key(x), self.value(x), allow)
    return self.output(context)"""
HEADS = """def heads_forward(self, x):
    B, T, C = x.shape
    cut = (f(x).reshape(B, T, self.heads, -1).swapaxes(1, 2) for f in (self.query, self.key, self.value))
    context, self.weights = F.attention(*cut, F.causal_mask(T))
    return self.output(context.swapaxes(1, 2).reshape(B, T, C))"""
QKV = """def split_qkv(x, heads):
    B, T, C = *x.shape[:2], x.shape[-1] // 3
    D = C // heads
    out = [np.empty((B, heads, T, D), x.dtype) for _ in range(3)]
    for i, part in enumerate(out):
        for h in range(heads):
            part[:, h] = x[:, :, i * C + h * D : i * C + (h + 1) * D]
    return out"""
STACK = """def merge_stack(heads):
    H, B, T, D = heads.shape
    out = np.empty((B, T, H * D), heads.dtype)
    for h, head in enumerate(heads):
        out[..., h * D : (h + 1) * D] = head
    return out"""
COSTS = """lambda loss, layers, heads: np.array(
    [[loss([(layer, head)]) - loss([]) for head in range(heads)] for layer in range(layers)]
)"""

ROTATE = """def rotate(x, start=0, theta=10000.0):
    T, D = x.shape[-2:]
    p = np.arange(start, start + T, dtype="float64")
    angles = np.outer(p, 1 / theta ** (np.arange(0, D, 2) / D))
    cos, sin = (np.tile(f(angles), 2).astype(x.dtype) for f in (np.cos, np.sin))
    turned = np.concatenate([-x[..., D // 2 :], x[..., : D // 2]], axis=-1)
    return x * cos + turned * sin"""
LOOPS = """def rotate(x, start=0, theta=10000.0):
    out, half = np.empty_like(x), x.shape[-1] // 2
    for t in range(x.shape[-2]):
        for i in range(half):
            angle = (start + t) * theta ** (-i / half)
            a, b = x[..., t, i], x[..., t, half + i]
            out[..., t, i] = a * math.cos(angle) - b * math.sin(angle)
            out[..., t, half + i] = a * math.sin(angle) + b * math.cos(angle)
    return out"""
COMPLEX = """def rotate(x, start=0, theta=10000.0):
    h = x.shape[-1] // 2
    z = x[..., :h] + 1j * x[..., h:]
    z = z * np.exp(1j * np.outer(start + np.arange(x.shape[-2]), theta ** (-np.arange(h) / h)))
    return np.concatenate([z.real, z.imag], axis=-1).astype(x.dtype)"""
MATRICES = """def rotate(x, start=0, theta=10000.0):
    D = x.shape[-1]
    rows = []
    for p, row in enumerate(np.moveaxis(x, -2, 0), start):
        turn = np.eye(D)
        for i in range(D // 2):
            angle = p / theta ** (2 * i / D)
            both = [i, i + D // 2]
            turn[np.ix_(both, both)] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        rows.append(row @ turn.T)
    return np.stack(rows, axis=-2).astype(x.dtype)"""
SHARE = """def share(x, heads):
    B, G, S, D = x.shape
    group = heads // G
    return np.broadcast_to(x[:, :, None], (B, G, group, S, D)).reshape(B, heads, S, D)"""
CLIP = """def clip_by_norm(grads, m):
    norm = float(np.linalg.norm(np.concatenate([g.ravel() for g in grads])))
    return [g.copy() if norm <= m else g * (m / norm) for g in grads], norm"""
BYTES = """def cache_bytes(layers, kv_heads, head_dim, length, bytes_each=2):
    total = 0
    for _ in range(layers):
        total += 2 * kv_heads * head_dim * bytes_each * length
    return total"""
WINDOW = """def window_mask(size, window):
    mask = np.zeros((size, size), bool)
    for i in range(size):
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask"""
PROJECT = """def project(self, x, position=0):
    T, of = x.shape[1], self.config
    q, k, v = self.query(x), self.key(x), self.value(x)
    q, k, v = F.split_heads(q, self.heads), F.split_heads(k, self.kv_heads), F.split_heads(v, self.kv_heads)
    angles = rotary_angles(position, T, of.head_size, of.rope_theta)
    return F.rotary(self.query_norm(q), *angles), F.rotary(self.key_norm(k), *angles), v"""
WORDS = """def words_of(text):
    import re
    return re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^ A-Za-z0-9]+| +(?! )(?![^ ])| +(?= )", text)"""
GROUPS = """def group_layer_norm(x, groups, gain, bias, eps):
    out, size = np.empty_like(x), x.shape[-1] // groups
    for k in range(groups):
        part = slice(k * size, (k + 1) * size)
        centred = x[..., part] - x[..., part].mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        out[..., part] = centred / (variance + eps) ** 0.5
    return gain * out + bias"""
CUT_NORM = """def group_layer_norm(x, groups, gain, bias, eps):
    cut = lambda a: a.reshape(*a.shape[:-1], groups, -1)
    x, shape = cut(x), x.shape
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    return (x * cut(gain) + cut(bias)).reshape(shape)"""
ALL_THREE = """def layer_norm_backward(x, gain, grad):
    C = len(gain)
    rows, grads = x.reshape(-1, C), grad.reshape(-1, C)
    n = rows - rows.mean(1, keepdims=True)
    deviation = np.sqrt(np.square(n).mean(1, keepdims=True) + 1e-5)
    n = n / deviation
    g = grads * gain
    dx = (C * g - g.sum(1, keepdims=True) - n * (g * n).sum(1, keepdims=True)) / (C * deviation)
    return dx.reshape(x.shape), (grads * n).sum(0), grads.sum(0)"""
JACOBIAN = """def layer_norm_backward(x, gain, grad):
    C = x.shape[-1]
    c = x - x.mean(-1, keepdims=True)
    s = 1 / np.sqrt((c * c).sum(-1, keepdims=True) / C + 1e-5)
    n = c * s
    J = np.eye(C, dtype=x.dtype) - 1 / C - n[..., :, None] * n[..., None, :] / C
    dx = s * np.einsum("...ij,...j->...i", J, grad * gain)
    lines = lambda a: a.reshape(-1, C).T
    return [dx, np.einsum("cp,cp->c", lines(grad), lines(n)), np.einsum("cp->c", lines(grad))]"""
LOOPED = """def layer_norm_backward(x, gain, grad):
    dx, dgain, dbias = np.zeros_like(x), np.zeros_like(gain), np.zeros_like(gain)
    for place in np.ndindex(x.shape[:-1]):
        s = (x[place].var() + 1e-5) ** -0.5
        n, g = (x[place] - x[place].mean()) * s, grad[place] * gain
        dx[place] = (g - g.mean() - n * (g @ n) / len(n)) * s
        dgain, dbias = dgain + grad[place] * n, dbias + grad[place]
    return dx, dgain, dbias"""
NORM = """def norm_forward(self, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / (variance + self.eps).sqrt() * self.weight + self.bias"""
RMS = """def rms_norm_backward(x, grad):
    s = (np.square(x).mean(-1, keepdims=True) + 1e-5) ** -0.5
    n = x * s
    return s * (grad - n * (grad * n).mean(-1, keepdims=True))"""
MLP = """def mlp(x, W_in, b_in, W_out, b_out):
    C = x.shape[-1]
    inner = np.empty((*x.shape[:-1], 4 * C), x.dtype)
    inner[...] = x @ W_in + b_in
    return np.clip(inner, 0, np.inf) @ W_out + b_out"""
COUNT = "lambda V, T, C, L: C * (2 * V + T + 2 + L * (12 * C + 9)) + V"
ADAMW = """def adamw_step(p, grad, m, v, step, lr, decay):
    m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
    top, low = m / (1 - 0.9**step), np.sqrt(v / (1 - 0.999**step)) + 1e-8
    return p * (1 - lr * decay) - lr * top / low, m, v"""
OPTIMIZER = """def make_optimizer(model, lr):
    decays = lambda pair: pair[1].ndim > 1
    pairs = sorted(model.named_parameters(), key=lambda pair: not decays(pair))
    optimizer = AdamW([p for _, p in pairs], lr, weight_decay=0.1, decay_all=True)
    optimizer.decayed = sum(p.numel() for p in [pair[1] for pair in pairs if decays(pair)])
    return optimizer"""
STEP = """def cache_step(query, key, value, keys, values):
    keys, values = np.append(keys, [key], axis=0), np.append(values, [value], axis=0)
    s = keys @ query / len(query) ** 0.5
    w = np.exp(s - s.max())
    return (w / w.sum())[None].dot(values)[0], keys, values"""
ATTENTION = """def attention(query, key, value):
    s = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ value, w"""

# exercise -> (right answers); each an expression, a definition, or the solution with pairs of texts replaced
ACCEPTED = [
    ("01.1", ENCODE),
    ("01.1", ENCODE, "text])", "text], dtype=np.uint8)"),
    ("01.1", ENCODE, "vocabulary.index(c)", "[v.encode() for v in vocabulary].index(c.encode())"),
    ("01.3", MERGE, "pair[0] + pair[1]", '"".join(pair)'),
    ("02.2", SUMMED),
    ("02.3", "lambda a, b, grad: ((grad.T * b[:, None]).T, np.einsum('ij,ij->j', grad, a))"),
    ("02.5", "lambda x, grad: np.broadcast_to(grad[..., None] / x.shape[-1], x.shape)"),
    ("02.4", "lambda ids, grad, V: np.eye(V, dtype=grad.dtype)[ids.ravel()].T @ grad.reshape(-1, grad.shape[-1])"),
    ("03.1", "lambda x: 1 / np.exp(x[..., None, :] - x[..., :, None]).sum(-1)"),
    ("05.2", MASKED_FORWARD),
    ("05.4", MASKED),
    (
        "05.4",
        MASKED,
        "    e = np.exp(s - top)\n",
        "    lse = np.logaddexp.reduce(s, axis=-1, keepdims=True)\n"
        "    e = np.where(allow, np.exp(s - np.where(np.isinf(lse), 0, lse)), 0)\n",
    ),
    ("06.1", QKV),
    ("06.1", QKV, "return out", "return np.stack(out)[0], *out[1:]"),
    ("06.1", "lambda x, heads: [np.stack(np.split(p, heads, axis=-1), axis=1) for p in np.split(x, 3, axis=-1)]"),
    ("06.1", "lambda x, heads: tuple(x.reshape(*x.shape[:2], 3, heads, -1).transpose(2, 0, 3, 1, 4))"),
    ("06.1", "lambda x, heads: list(np.einsum('btihd->ibhtd', x.reshape(*x.shape[:2], 3, heads, -1)))"),
    ("06.1", "lambda x, heads: [np.moveaxis(x.reshape(*x.shape[:2], 3, heads, -1)[:, :, i], 2, 1) for i in range(3)]"),
    ("06.2", STACK),
    ("06.2", "lambda heads: np.concatenate(heads, axis=-1)"),
    ("06.2", "lambda heads: np.moveaxis(heads, 0, 2).reshape(*heads.shape[1:3], -1)"),
    ("06.2", "lambda heads: np.einsum('hbtd->bthd', heads).reshape(*heads.shape[1:3], -1)"),
    ("06.2", "lambda heads: np.stack([np.hstack([head[b] for head in heads]) for b in range(heads.shape[1])])"),
    ("06.3", HEADS),
    ("06.3", HEADS, "swapaxes(1, 2)", "permute(0, 2, 1, 3)"),
    ("07.1", GROUPS),
    ("07.1", CUT_NORM),
    (
        "07.1",
        "lambda x, k, gain, bias, e: np.concatenate([(p - p.mean(-1, keepdims=True)) / np.sqrt(p.var(-1, keepdims=True)"
        " + e) for p in np.split(x, k, axis=-1)], axis=-1) * gain + bias",
    ),
    ("07.1", CUT_NORM, "np.square(x).mean(-1, keepdims=True)", "np.einsum('...i,...i', x, x)[..., None] / x.shape[-1]"),
    ("07.1", GROUPS, "(centred**2).mean(-1, keepdims=True)", "x[..., part].std(-1, keepdims=True) ** 2"),
    ("07.2", ALL_THREE),
    ("07.2", JACOBIAN),
    ("07.2", LOOPED),
    ("07.2", ALL_THREE, "(grads * n).sum(0)", "sum(grads * n)", "grads.sum(0)", "np.ones(len(grads), x.dtype) @ grads"),
    ("07.3", "__import__('functools').partial(lambda axis, self, x: find('07.3').function(self, x), -1)"),
    ("07.3", NORM, "(centred * centred).mean(", "x.var(correction=0, "),
    ("08.1", "lambda x, grad: grad * np.heaviside(x, 0)"),
    ("08.3", MLP),  # it takes the page by its word: the wide layer has 4C units
    ("09.1", COUNT),
    ("11.1", ADAMW),
    ("11.4", OPTIMIZER),
    ("12.4", STEP),
    ("03.3", ATTENTION),
    (
        "11.3",
        "lambda grads, m: (lambda n: ([g * (m / n if n > m else 1) for g in grads], n))(math.sqrt(sum("
        "(g**2).sum() for g in grads)))",
    ),
    ("12.1", TOP_K),
    ("12.3", TOP_P),
    ("13.5", COSTS),
    ("14.2", CROSS),
    ("14.6", "lambda model, s, i, p: model(s, i, s != p, i != p)"),
    ("13.1", "lambda maps: np.trace(maps, -1, 2, 3) / (maps.shape[2] - 1)"),
    ("15.4", "lambda theirs, shapes: {n: a.T if 'weight' in n else a for n, a in theirs.items()}"),
    ("15.4", LINEAR, ".weight", "weight", '")', '") and "token" not in name'),  # the tables are as in the course
    ("15.4", LINEAR, 'name.endswith(".weight")', 'name not in ("token", "position")'),
    ("14.1", SINUSOIDS),
    ("12.6", "lambda old, new: np.tri(new, old + new, old, dtype=bool)"),
    ("12.6", "lambda old, new: np.hstack([np.ones((new, old), bool), np.tri(new, dtype=bool)])"),
    ("15.6", WORDS),
    ("16.1", ROTATE),
    ("16.1", LOOPS),
    ("16.1", ROTATE, "start + T", "T + start", 'dtype="float64"', "dtype=np.longdouble"),
    ("16.1", ROTATE, "np.outer(p, 1 /", "p[:, None] * (1 /", "/ D))", "/ D))"),
    ("16.1", COMPLEX),
    ("16.1", MATRICES),
    ("16.2", SHARE),
    ("16.2", "lambda x, heads: x[:, np.arange(heads) // (heads // x.shape[1])]"),
    ("16.2", "lambda x, heads: x.repeat(heads // x.shape[1], axis=-3)"),
    ("16.2", "lambda x, heads: np.take(x, [h * x.shape[1] // heads for h in range(heads)], axis=1)"),
    ("16.2", "lambda x, heads: np.concatenate([x[:, [g] * (heads // x.shape[1])] for g in range(x.shape[1])], axis=1)"),
    ("16.2", "lambda x, heads: np.kron(x, np.ones((1, heads // x.shape[1], 1, 1), x.dtype))"),
    ("16.3", BYTES),
    ("16.3", "lambda l, h, d, t, b=2: math.prod((2, l, h, d, t, b))"),
    ("16.3", "lambda l, h, d, t, b=2: np.int64(l * h) * d * t * b * 2"),
    (
        "16.3",
        "lambda layers, kv_heads, head_dim, length, bytes_each=2: 2 * np.prod([layers, kv_heads, head_dim, length]"
        " + [bytes_each])",
    ),
    ("16.3", "lambda l, h, d, t, b=2: (l * h * d * t + l * h * d * t) * b"),
    ("16.3", BYTES, "range(layers)", "2 * list(range(layers))", "2 * kv_heads", "kv_heads"),
    ("16.4", WINDOW),
    ("16.4", "lambda size, window: np.tril(np.triu(np.ones((size, size), dtype=bool), 1 - window))"),
    ("16.4", "lambda size, window: np.tri(size, dtype=bool) & ~np.tri(size, k=-window, dtype=bool)"),
    ("16.4", "lambda size, window: np.tri(size, dtype=bool) ^ np.tri(size, k=-window, dtype=bool)"),
    ("16.4", "lambda size, window: np.array([[0 <= i - j < window for j in range(size)] for i in range(size)])"),
    (
        "16.4",
        "lambda size, window: F.causal_mask(size) & (np.subtract.outer(np.arange(size), np.arange(size)) < window)",
    ),
    ("16.5", PROJECT),
    (
        "16.5",
        PROJECT,
        "(position, T,",
        "(0, position + T,",
        "    return",
        "    angles = [a[-T:] for a in angles]\n    return",
    ),
    (
        "16.5",
        PROJECT,
        "of.rope_theta)",
        "of.rope_theta, of.rope_scaling)",
        "T, of = x.shape[1]",
        "B, T, C = x.shape\n    of",
        "of, self.config",
        "of = self.config",
    ),
    (
        "16.5",
        PROJECT,
        "(position, T,",
        "(0, of.context_length,",
        "    return",
        "    angles = [a[position : position + T] for a in angles]\n    return",
    ),
    ("16.5", PROJECT, "    return F.rotary(", "    return (F.rotary(", "*angles), v", "*angles), v)"),
    ("16.5", "lambda self, x, position=0: type(self).project(self, x, position)"),
]

# exercise, words of the likely mistake ("" where none must be named), or "happened: " and words; then as above
REFUSED = [
    ("01.1", "", ENCODE, "enumerate(text)", "enumerate(text.strip())", "c in text]", "c in text.strip()]"),
    ("01.1", "", ENCODE, "{c!r} is not", "c is not"),
    ("01.1", "happened: write raise", ENCODE, "raise ", "return "),
    ("01.2", "", "lambda ids, T: (np.array([ids[i : T] for i in range(len(ids) - T)]),) * 2"),
    ("01.3", "", MERGE, "tuple(tokens[i : i + 2]) == pair", "''.join(tokens[i : i + 2]) == ''.join(pair)"),
    ("01.3", "", MERGE, "len(tokens):", "len(tokens) - 1:"),
    ("01.3", "never equal to a tuple", MERGE, "tuple(tokens[i : i + 2])", "tokens[i : i + 2]"),
    ("01.3", "", "lambda tokens, pair: '|'.join(tokens).replace('|'.join(pair), ''.join(pair)).split('|')"),
    (
        "02.1",
        "happened: It calls",
        "lambda a, b, grad: (lambda a, b: torch.autograd.grad(a @ b, (a, b), torch.tensor(grad)))("
        "*(torch.tensor(v, requires_grad=True) for v in (a, b)))",
    ),
    (
        "02.1",
        "methods like x.sort()",
        "def matmul_backward(a, b, grad):\n    grad.sort()\n    return find('02.1').function(a, b, grad)",
    ),
    ("02.2", "", SUMMED, "while grad", "if grad"),
    ("02.3", "", "lambda a, b, grad: (grad * (a * b) / a, (grad * a).sum(0))"),
    (
        "02.4",
        "happened: It calls embedding_dense_backward",
        "lambda ids, grad, V: torch.ops.aten.embedding_dense_backward(*map(torch.tensor, (grad, ids)), V, -1, False)",
    ),
    ("02.5", "", "lambda x, grad: np.sign(x) ** 2 * grad[..., None] / x.shape[-1]"),
    (
        "02.5",
        "one and the same array",
        "BUFFERS = {}\ndef mean_backward(x, grad):\n    grad = grad[..., None] / x.shape[-1] * np.ones_like(x)\n"
        "    np.copyto(BUFFERS.setdefault((x.shape, x.dtype), grad), grad)\n    return BUFFERS[x.shape, x.dtype]",
    ),
    (
        "02.5",
        "happened: stopped with TypeError",
        "lambda x, grad: torch.tensor(x, requires_grad=True).mean(-1).grad_fn(torch.tensor(grad)).numpy()",
    ),
    ("02.2", "at the front are still there", SUMMED, "while grad.ndim > len(shape)", "while False"),
    ("02.2", "nothing was summed", "lambda grad, shape: grad.copy()"),
    ("02.4", "is None", "lambda ids, grad, V: np.add.at(np.zeros((V, grad.shape[-1])), ids, grad)"),
    ("03.1", "", SOFTMAX.format("x.mean(-1, keepdims=True)")),
    ("03.1", "", SOFTMAX.format("x[..., -1:]")),
    ("03.1", "", SOFTMAX.format("np.abs(x).max(-1, keepdims=True)")),
    ("03.1", "overflows", SOFTMAX.format("0")),
    ("03.3", "", ATTENTION, "s.max(-1, keepdims=True)", "np.maximum(s.max(-1, keepdims=True), 0)"),
    ("05.2", "happened: It calls SelfAttention", "lambda self, x: type(self).forward(self, x)"),
    ("05.2", "fix the one thing", MASKED_FORWARD, "dtype=bool)", "dtype=bool)[:8, :8]"),
    ("06.1", "/ gives a float", QKV, "C // heads", "C / heads"),
    ("06.1", "/ gives a float", QKV, "x.shape[-1] // 3", "x.shape[-1] / 3", "D = C // heads", "D = int(C) // heads"),
    ("06.1", "/ gives a float", "lambda x, heads: x.reshape(*x.shape[:2], 3, heads, x.shape[-1] / 3 / heads)"),
    ("06.1", "first q, then k", QKV, "return out", "return out[::-1]"),
    ("06.1", "happened: got a NumPy array, expected 3 results", QKV, "return out", "return np.stack(out)"),
    ("06.1", "happened: got a dict", QKV, "return out", "return dict(zip('qkv', out))"),
    ("06.1", "happened: got 1 results, expected 3", QKV, "return out", "return out[:1]"),
    (
        "06.1",
        "not in turn",
        "lambda x, heads: [x[..., i::3].reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for i in range(3)]",
    ),
    ("06.1", "", QKV, "i * C + (h + 1) * D", "i * C + h * D + 1"),
    ("06.1", "happened: It calls split_heads", "lambda x, heads: [F.split_heads(Tensor(x), heads).data] * 3"),
    ("06.2", "added up", STACK, "h * D : (h + 1) * D] = head", "] = heads.sum(0)", "H * D), h", "D), h"),
    ("06.2", "interleaved", STACK, "h * D : (h + 1) * D]", "h::H]"),
    ("06.2", "along the positions", "lambda heads: np.concatenate(heads, axis=1)"),
    ("06.2", "", "lambda heads: np.concatenate(heads[::-1], axis=-1)"),
    ("06.2", "", STACK, "enumerate(heads)", "enumerate(heads[:2])", "np.empty", "np.zeros"),
    ("06.2", "happened: is float64, expected float32", STACK, ", heads.dtype)", ")"),
    ("06.2", "still come before", "lambda heads: np.moveaxis(heads, 0, 1).reshape(*heads.shape[1:3], -1)"),
    ("06.2", "happened: got a list", "lambda heads: list(np.concatenate(heads, axis=-1))"),
    ("06.3", "are cut across", HEADS, "T, self.heads, -1).swapaxes(1, 2)", "T, -1, self.heads).permute(0, 3, 1, 2)"),
    ("06.3", "happened: in a model with other sizes", HEADS, "self.heads, -1", "4, -1"),
    ("07.1", "adjacent numbers", GROUPS, "slice(k * size, (k + 1) * size)", "slice(k, None, groups)"),
    (
        "07.1",
        "that is LayerNorm",
        GROUPS,
        "range(groups)",
        "range(1)",
        "slice(k * size, (k + 1) * size)",
        "slice(None)",
    ),
    (
        "07.1",
        "adjacent numbers",
        CUT_NORM,
        "(x * cut(gain) + cut(bias)).reshape(shape)",
        "x.reshape(shape) * gain + bias",
        "groups, -1)",
        "-1, groups).swapaxes(-1, -2)",
    ),
    ("07.1", "are over all positions", GROUPS, "mean(-1, keepdims=True)", "mean()"),
    ("07.1", "the ε is missing", CUT_NORM, " + eps", ""),
    ("07.1", "", GROUPS, "range(groups)", "range(groups - 1)", "np.empty_like", "np.zeros_like"),
    ("07.1", "", GROUPS, "gain * out", "gain * gain * out"),
    ("07.1", "/ gives a float", GROUPS, "x.shape[-1] // groups", "x.shape[-1] / groups"),
    ("07.1", "happened: is float64, expected float32", GROUPS, "np.empty_like(x)", "np.empty(x.shape)"),
    ("07.1", "last one of the cut", CUT_NORM, "mean(-1,", "mean(-2,"),
    ("07.1", "", CUT_NORM, "np.square(x)", "np.abs(x)"),
    ("07.1", "", GROUPS, "(variance + eps) ** 0.5", "np.maximum(variance + eps, 1e-4) ** 0.5"),
    ("07.1", "happened: in place", GROUPS, "    out, size", "    gain *= 1 + eps\n    out, size"),
    (
        "07.2",
        "over everything",
        "def layer_norm_backward(x, gain, grad):\n    s = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)\n"
        "    n, g = (x - x.mean(-1, keepdims=True)) * s, grad * gain\n    rows = tuple(range(x.ndim - 1))\n"
        "    return s * (g - g.mean() - n * (g * n).mean()), (grad * n).sum(rows), grad.sum(rows)",
    ),
    ("07.2", "instead of the mean", ALL_THREE, "(C * g -", "(g -", "(C * deviation)", "deviation"),
    (
        "07.2",
        "are sums over all axes",
        ALL_THREE,
        "(grads * n).sum(0), grads.sum(0)",
        "(grads * n).mean(0), grads.mean(0)",
    ),
    ("07.2", "keep the last axis", ALL_THREE, "(grads * n).sum(0), grads.sum(0)", "(grads * n).sum(), grads.sum()"),
    ("07.2", "without the gain", ALL_THREE, "(grads * n)", "(g * n)"),
    ("07.2", "the order is another", LOOPED, "return dx, dgain, dbias", "return dx, dbias, dgain"),
    ("07.2", "happened: got 1 results, expected 3", LOOPED, "return dx, dgain, dbias", "return (dx,)"),
    ("07.2", "happened: result 2 has shape", LOOPED, "return dx, dgain, dbias", "return dx, dgain[None], dbias"),
    ("07.2", "happened: result 2 is float64", LOOPED, "dgain + grad", "dgain.astype(float) + grad"),
    ("07.2", "", LOOPED, "dbias + grad[place]", "grad[place]"),
    ("07.2", "", LOOPED, "var()", "std()"),
    ("07.2", "treated as constants", LOOPED, "(g - g.mean() - n * (g @ n) / len(n)) * s", "g * s"),
    ("07.3", "happened: It calls layer_norm", "lambda self, x: F.layer_norm(x, x.shape[-1:], self.weight, self.bias)"),
    ("07.3", "happened: in a model with other sizes", NORM, "self.eps", "1e-5"),
    (
        "07.3",
        "happened: in a model with other sizes",
        NORM,
        "x - x.mean(axis=-1, keepdims=True)",
        "x - x.sum(axis=-1, keepdims=True) / 32",
    ),
    (
        "07.3",
        "happened: and yet",
        NORM,
        "    centred",
        "    axis = -1 if self.training else 1\n    centred",
        "x.mean(axis=-1",
        "x.mean(axis=axis",
    ),
    (
        "07.3",
        "",
        NORM,
        "    return",
        "    variance = variance + (np.maximum(variance.data, 1e-2) - variance.data)\n    return",
    ),
    ("08.3", "", MLP, "np.inf", "100"),
    ("08.3", "", MLP, "np.clip(inner, 0, np.inf)", "np.where(inner > 1e-5, inner, 0)"),
    ("09.1", "the table of tokens, or the head", COUNT, "2 * V", "V"),
    ("09.1", "", COUNT, "12 * C", "24 * (C // 2)"),
    ("09.1", "", f"lambda *sizes: int(np.float32(({COUNT})(*sizes)))"),
    (
        "09.1",
        "happened: It calls",
        "def num_parameters(V, T, C, L):\n    from course_lib.common import config, costs\n"
        "    return costs.parameter_count(config.GPTConfig(V, T, C, heads=1, layers=L))",
    ),
    ("11.1", "", ADAMW, "0.999**step", "0.999**min(step, 1000)"),
    ("11.1", "", ADAMW, "    m, v", "    grad = np.clip(grad, -10, 10)\n    m, v"),
    (
        "11.1",
        "happened: It calls ",
        "def adamw_step(p, grad, m, v, step, lr, decay):\n"
        "    p, g, m, v, t = map(torch.tensor, (p, grad, m, v, float(step)))\n"
        "    hows = {'amsgrad': False, 'beta1': 0.9, 'beta2': 0.999, 'lr': lr, 'weight_decay': decay, 'eps': 1e-8}\n"
        "    torch._fused_adamw_([p], [g], [m], [v], [], [t], maximize=False, **hows)\n"
        "    return p.numpy(), m.numpy(), v.numpy()",
    ),
    ("11.4", "only matrices decay", OPTIMIZER, "pair[1].ndim > 1", "'norm' not in pair[0]"),
    ("11.4", "only matrices decay", OPTIMIZER, "pair[1].ndim > 1", "pair[1].ndim > 1 or 'blocks.1' in pair[0]"),
    ("11.4", "should still decay", OPTIMIZER, "pair[1].ndim > 1", "pair[1].numel() > 128"),
    ("11.4", "at the rate", OPTIMIZER, "], lr", "], min(lr, 0.1)"),
    (
        "11.4",
        "for the model that it gets",
        "BUFFERS = []\n" + OPTIMIZER,
        "return optimizer",
        "BUFFERS.append(optimizer)\n    return BUFFERS[0]",
    ),
    ("11.4", "leave the model as it is", OPTIMIZER, "    return", "    pairs[0][1].data *= 2\n    return"),
    (
        "11.4",
        "",
        OPTIMIZER,
        "    return",
        "    update = optimizer.update\n    optimizer.update = lambda: (setattr("
        "optimizer, 'weight_decay', 0.1 * (optimizer.steps < 9)), update())\n    return",
    ),
    ("03.1", "happened: leave out .data", SOFTMAX.format("x.data.max()")),
    ("03.1", "happened: It calls softmax", "lambda x: torch.ops.aten._softmax(torch.tensor(x), -1, False).numpy()"),
    ("05.1", "", "lambda size: np.tri(128, dtype=bool)[:size, :size]"),
    ("05.1", "", "lambda size: np.tri(size, dtype=bool) & ~np.tri(size, k=-99, dtype=bool)"),
    ("05.2", "nothing is hidden", MASKED_FORWARD, "np.tri(x.shape[1], dtype=bool)", "np.ones((x.shape[1],) * 2, bool)"),
    ("05.2", "sees the future and not the past", MASKED_FORWARD, "dtype=bool)", "dtype=bool)[::-1, ::-1]"),
    (
        "05.2",
        "left over from an earlier call",
        MASKED_FORWARD,
        "allow = np.tri(x.shape[1], dtype=bool)",
        "self.mask = allow = getattr(self, 'mask', np.tri(x.shape[1], dtype=bool))",
    ),
    (
        "05.2",
        "happened: what self.weights keeps has shape (4, 4)",
        MASKED_FORWARD,
        "    return",
        "    self.weights = allow\n    return",
    ),
    ("05.2", "", MASKED_FORWARD, "return self.output(context)", "return 'self.output(context)'"),
    ("05.2", "", MASKED_FORWARD, "return self.output(context)", "return self.weights"),
    ("05.2", "has no history", MASKED_FORWARD, "self.output(context)", "self.output(context).data"),
    ("06.3", "happened: a Tensor's transpose swaps two axes", HEADS, "swapaxes(1, 2)", "transpose(0, 2, 1, 3)"),
    ("05.4", "happened: expected exactly 0", MASKED, "return e /", "return np.maximum(e, 1e-12) /"),
    ("05.4", "", MASKED, "np.where(np.isinf(top), 0, top)", "np.maximum(top, 0)"),
    ("05.4", "", MASKED, "-np.inf", "-100"),
    (
        "07.2",
        "happened: It calls",
        "lambda x, gain, grad: torch.func.vjp(torch.exp, torch.tensor(x))[1](torch.tensor(grad))",
    ),
    ("07.4", "over everything", RMS, "(grad * n).mean(-1, keepdims=True)", "(grad * n).mean()"),
    ("07.4", "the sign", RMS, "grad - n", "grad + n"),
    ("07.4", "mean(g) goes", RMS, "n * (grad * n).mean(", "grad.mean("),
    (
        "07.4",
        "",
        "lambda x, grad: find('07.4').function(x, grad).astype('float32').astype(x.dtype)",
    ),
    (
        "07.4",
        "",
        "def rms_norm_backward(x, grad):\n    assert x.ndim < 4\n    return find('07.4').function(x, grad)",
    ),
    ("08.1", "", "lambda x, grad: grad * (x > 1e-3)"),
    ("08.1", "", "lambda x, grad: grad * (x > 1e-12)"),
    ("08.1", "happened: astype(float)", "lambda x, grad: (grad * (x > 0)).astype(float)"),
    ("08.1", "happened: an array of whole numbers", "lambda x, grad: grad * (1 - (x <= 0))"),
    (
        "08.1",
        "one and the same array",
        "BUFFERS = {}\ndef relu_backward(x, grad):\n"
        "    return np.multiply(grad, x > 0, out=BUFFERS.setdefault((x.shape, x.dtype), np.zeros_like(x)))",
    ),
    ("09.1", "in each block 4C", "lambda V, T, C, L: 2 * V * C + V + T * C + 2 * C + L * (12 * C * C + 5 * C)"),
    (
        "10.1",
        "happened: np.eye can make float64",
        "def cross_entropy_gradient(logits, targets):\n"
        "    e = np.exp(logits - logits.max(1, keepdims=True))\n"
        "    return (e / e.sum(1, keepdims=True) - np.eye(logits.shape[1])[targets]) / len(targets)",
    ),
    (
        "11.3",
        "nothing to divide by",
        "lambda grads, m: (lambda n: ([g * min(1, m / n) for g in grads], n))(math.sqrt("
        "sum(float((g**2).sum()) for g in grads)))",
    ),
    *(
        ("11.3", "", CLIP, "norm <= m", f"norm <= {limit} * m")  # the limit is not quite where it should be
        for limit in (2, 1.001)
    ),
    ("11.3", "a short gradient is made longer", CLIP, "norm <= m", "norm == 0"),
    ("11.3", "", CLIP, "norm <= m", "norm <= 0.9998 * m"),
    ("11.3", "", CLIP, "m / norm", "m / (norm + 1e-8)"),
    ("10.2", "before the step uses them", "lambda model, optimizer, x, y: model(x, y)[1].item()"),
    (
        "11.4",
        "decay of matrices",
        "lambda model, lr: AdamW([p for p in model.parameters() if p.ndim > 1], lr, weight_decay=0.1, decay_all=True)",
    ),
    ("11.4", "decay of matrices", "lambda model, lr: AdamW(model.parameters(), lr, weight_decay=1.0)"),
    ("11.4", "decay of matrices", "lambda model, lr: AdamW(model.parameters(), 0.1, weight_decay=0.1)"),
    ("12.1", "", TOP_K, ', kind="stable"', ""),
    ("12.1", "", TOP_K, "-logits", "-np.round(logits, 2)"),
    ("12.1", "", TOP_K, "-logits", "-logits.astype('float32')"),
    ("12.1", "", TOP_K, "[:k]", "[:min(k, 100)]"),
    ("12.1", "", TOP_K, ", logits.dtype)", ")"),
    ("12.1", "", TOP_K, "-np.inf, ", "-1e9, "),
    (
        "12.1",
        "one and the same array",
        "BUFFERS = {}\n" + TOP_K,
        "np.full(logits.shape, -np.inf, logits.dtype)",
        "BUFFERS.setdefault((logits.dtype, logits.size), logits.copy())\n    result[:] = -np.inf",
    ),
    ("12.2", "", GREEDY, "logits.max()", "max(logits.max(), 0)"),
    ("12.2", "", GREEDY, "argmax", "argmin"),
    ("12.2", "", GREEDY, "argmax", "argmaximum"),
    ("12.2", "", GREEDY, "        p[logits.argmax()] = 1\n", ""),
    ("12.3", "", TOP_P, ', kind="stable"', ""),
    ("12.3", "must go back to its index", TOP_P, "np.argsort(order)", "order"),
    ("12.3", "", TOP_P, "shares[np.argsort(order)]", "list(shares[np.argsort(order)])"),
    ("12.4", "", STEP, "s.max()", "max(s.max(), 0)"),
    ("12.4", "", STEP, "s.max()", "s[0]"),
    (
        "12.4",
        "happened: It calls",
        STEP,
        "w = np.exp(s - s.max())",
        "w = torch._safe_softmax(torch.tensor(s), -1).numpy()",
    ),
    (
        "13.5",
        "happened: some heads do harm",
        COSTS,
        "loss([(layer, head)]) - loss([])",
        "abs(loss([(layer, head)]) - loss([]))",
    ),
    ("13.5", "happened: 3 layers of 2 heads", COSTS, "range(heads)", "range(4)", "range(layers)", "range(2)"),
    (
        "13.5",
        "left over from an earlier call",
        "BUFFERS = []\ndef head_costs(loss, layers, heads):\n    BUFFERS.append(1)\n"
        "    return find('13.5').function(loss, layers, heads) * len(BUFFERS)",
    ),
    ("14.2", "root of D", CROSS, "q.shape[-1] **", "x.shape[-1] **"),
    ("14.2", "happened: np.sqrt of a plain number", CROSS, "q.shape[-1] ** 0.5", "np.sqrt(q.shape[-1])"),
    ("14.6", "happened: in place", "def padded_logits(model, s, i, p):\n    i[:] = p\n    return model(s, i) * 2"),
    ("14.6", "logits alone", "lambda model, s, i, p: (model(s, i, s != p, i != p), None)"),
    (
        "15.4",
        "may be square",
        "lambda theirs, shapes: {n: a.T if a.ndim == 2 and (a.shape != shapes[n] or a.shape[0] =="
        " a.shape[1]) else a for n, a in theirs.items()}",
    ),
    # what is no plain array
    ("05.1", "happened: got a matrix", "lambda size: np.asmatrix(np.tri(size, dtype=bool))"),
    ("13.5", "happened: got a matrix", "lambda *a: np.asmatrix(find('13.5').function(*a))"),
    ("13.5", "happened: got a MaskedArray", "lambda *a: np.ma.array(find('13.5').function(*a))"),
    ("15.4", "happened: got a MaskedArray", LINEAR, "else array", "else np.ma.array(array)"),
    ("15.4", "happened: is float32", LINEAR, "array.T", "array.T.astype('float32')"),
    # a size that is built in, and a size that is another one's
    ("05.1", "", "lambda size: np.tri(512, dtype=bool)[:size, :size]"),
    ("06.3", "happened: (2, 70, 48)", HEADS, "F.causal_mask(T)", "F.causal_mask(64)[:T, :T]"),
    ("12.6", "", "lambda old, new: np.tri(512, dtype=bool)[old : old + new, : old + new]"),
    ("14.1", "", SINUSOIDS, "np.arange(rows)", "np.minimum(np.arange(rows), 4999)"),
    ("14.1", "", SINUSOIDS, "    return", "    if rows == 1:\n        return np.zeros((1, width))\n    return"),
    ("16.2", "", SHARE, "heads // G", "min(heads // G, 16)"),
    ("16.2", "", "lambda x, heads: x[:, np.linspace(0, x.shape[1] - 1, heads).round().astype(int)]"),
    ("16.4", "", WINDOW, "i - window + 1", "i - min(window, 512) + 1"),
    ("03.3", "", ATTENTION, "query.shape[-1]", "max(query.shape[-2:])"),
    ("14.2", "", CROSS, "q.shape[-1]", "min(q.shape)"),
    ("14.2", "", CROSS, "q @ k.T", "k @ q.T"),  # the same error as that of another mistake, where T is not S
    ("15.4", "", LINEAR, 'name.endswith(".weight")', 'array.shape != shapes[name] or "blocks.0" in name'),
    ("05.3", "fix the one thing", find("05.3").solution, "-1e9", "-50"),
    # wrong for one shape is not left over from an earlier call
    ("06.3", "", HEADS, "F.causal_mask(T)", "F.causal_mask(T) if T != 2 else np.ones((T, T), bool)"),
    (
        "13.5",
        "left over from an earlier call",
        "BUFFERS = {}\ndef head_costs(loss, *sizes):\n"
        "    return BUFFERS.setdefault(sizes, find('13.5').function(loss, *sizes)).copy()",
    ),
    (
        "13.5",
        "one and the same array",
        "BUFFERS = np.zeros((9, 9))\ndef head_costs(loss, *sizes):\n"
        "    costs = BUFFERS[: sizes[0], : sizes[1]]\n    costs[:] = find('13.5').function(loss, *sizes)\n"
        "    return costs",
    ),
    ("13.5", "`return` is missing", "def head_costs(*a):\n    find('13.5').function(*a)"),
    (
        "15.4",
        "left over from an earlier call",
        "BUFFERS = {}\n" + LINEAR,
        "    return ours",
        "    return BUFFERS.setdefault(tuple(shapes.items()), ours)",
    ),
    (
        "15.4",
        "one and the same array",
        "BUFFERS = {}\n" + LINEAR,
        "    return ours",
        "    kept = BUFFERS.setdefault(tuple(shapes.items()), {n: a.copy() for n, a in ours.items()})\n"
        "    for name in ours:\n        kept[name][...] = ours[name]\n    return kept",
    ),
    (
        "16.5",
        "",
        "BUFFERS = {}\n" + PROJECT,
        "    T, of",
        "    position = BUFFERS.setdefault((self, x.data.tobytes()), position)\n    T, of",
    ),
    ("12.6", "", "lambda old, new: np.tri(new, old + new, old - (old > 50), dtype=bool)"),
    ("12.6", "only the new ones", "lambda old, new: np.tri(old + new, dtype=bool)"),
    ("12.6", "", "lambda old, new: np.tri(new, old + new, old if new > 1 else 0, dtype=bool)"),
    ("12.6", "", "lambda old, new: np.triu(np.ones((new, old + new), bool), 1) if old else np.tri(new, dtype=bool)"),
    ("15.6", "", WORDS, "[A-Za-z]+", "[A-Za-z]"),
    ("15.6", "", "lambda text: [text]"),
    ("15.6", "is lost", WORDS, " ?[0-9]+", "[0-9]+"),
    ("15.6", "is one word", WORDS, "[^ A-Za-z0-9]+", "[^ A-Za-z0-9]"),
    ("16.1", "goes the wrong way", ROTATE, "x * cos + turned", "x * cos - turned"),
    (
        "16.1",
        "too coarse for angles",
        ROTATE,
        'dtype="float64"',
        "dtype=x.dtype",
        "np.arange(0, D, 2)",
        "np.arange(0, D, 2, dtype=x.dtype)",
    ),
    ("16.1", "happened: is float64", ROTATE, ".astype(x.dtype)", ""),
    ("16.1", "", ROTATE, "np.arange(0, D, 2)", "np.arange(D // 2)[::-1] * 2"),
    ("16.1", "", LOOPS, "out[..., t, half + i] = a", "a = out[..., t, i]\n            out[..., t, half + i] = a"),
    ("16.1", "", ROTATE, "x * cos", "x.astype('float32').astype(x.dtype) * cos"),
    ("16.1", "", ROTATE, "x * cos + turned * sin", "(x * cos + turned * sin) * (1 + 1e-7)"),
    ("16.1", "`start` is not used", LOOPS, "(start + t)", "t"),
    ("16.1", "", LOOPS, "theta ** (", "(theta if start < 100 else 10000.0) ** ("),
    (
        "16.1",
        "too coarse for angles",
        "BUFFERS = {}\n" + ROTATE,
        "1 / theta ** (np.arange(0, D, 2) / D)",
        "BUFFERS.setdefault((D, theta), (1 / theta ** (np.arange(0, D, 2) / D)).astype(x.dtype))",
    ),
    (
        "16.1",
        "happened: It calls",
        "lambda x, s=0, t=1e4: (lambda T: F.rotary(Tensor(x), *T).data)(rotary_angles(s, x.shape[-2], x.shape[-1], t))",
    ),
    ("16.2", "0 1 0 1", "lambda x, heads: x[:, np.arange(heads) % x.shape[1]]"),
    ("16.2", "", SHARE, "x[:, :, None]", "x[:, ::-1, None]"),
    ("16.2", "happened: has shape", SHARE, ".reshape(B, heads, S, D)", ""),
    ("16.2", "0 1 0 1", SHARE, "x[:, :, None], (B, G, group, S, D)", "x[:, None], (B, group, G, S, D)"),
    ("16.2", "happened: is float64", "lambda x, heads: np.kron(x, np.ones((1, heads // x.shape[1], 1, 1)))"),
    ("16.2", "", "lambda x, heads: np.repeat(x.mean(1, keepdims=True), heads, 1)"),
    ("16.3", "keys *and* values", BYTES, "2 * kv_heads", "kv_heads"),
    ("16.3", "happened: expected a whole number", BYTES, "return total", "return total / 1"),
    ("16.3", "", BYTES, "return total", "return total + 8"),
    ("16.3", "", "lambda l, h, d, t, b=2: (l + h + d + t) * b"),
    ("16.3", "happened: expected a number", BYTES, "return total", "return str(total)"),
    ("16.3", "", BYTES, "return total", "return total // 1000 * 1000"),
    ("16.4", "one key too few", WINDOW, "i - window + 1", "i - window + 2"),
    ("16.4", "one key too many", WINDOW, "i - window + 1", "i - window"),
    ("16.4", "", WINDOW, "max(0, i - window + 1)", "i - window + 1"),
    ("16.4", "", WINDOW, "i - window + 1", "i - min(window, 64) + 1"),
    ("16.4", "", WINDOW, "i - window + 1", "i // window * window + 1"),
    ("16.4", "", WINDOW, ": i + 1]", ": max(i, 1)]"),
    ("16.4", "rows and columns are swapped", WINDOW, "return mask", "return mask.T"),
    ("16.4", "0 and 1 are numbers", WINDOW, "bool)", "int)"),
    ("16.4", "", "lambda size, window: np.tri(size, dtype=bool) & ~np.tri(size, k=-min(window, 29), dtype=bool)"),
    ("16.5", "counts twice", PROJECT, "(position, T,", "(2 * position, T,"),
    ("16.5", "begin at position 0", PROJECT, "(position, T,", "(0, T,"),
    ("16.5", "one too high", PROJECT, "(position, T,", "(position + 1, T,"),
    ("16.5", "", PROJECT, "of.head_size", "8", "of.rope_theta", "10000.0"),
    ("16.5", "QK-norm is missing", PROJECT, "self.query_norm(q)", "q", "self.key_norm(k)", "k"),
    (
        "16.5",
        "has no history",
        PROJECT,
        "F.rotary(self.query_norm(q), *angles)",
        "Tensor(F.rotary(self.query_norm(q), *angles).data)",
    ),
    ("16.5", "", PROJECT, "    angles =", "    position = min(position, 5)\n    angles ="),
    ("16.5", "makes `rows` of them", PROJECT, "(position, T,", "(position, position + T,"),
    ("16.5", "", PROJECT, "self.kv_heads), F", "self.kv_heads + 1), F"),
    ("16.5", "happened: got a Tensor", PROJECT, "    return", "    return x\n    return"),
]


def answer(key, text, *pairs):
    """The learner's function of this text, with pairs of texts replaced."""
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    exercise = find(key)
    if not text.startswith(("def ", "BUFFERS")):
        text = f"{exercise.name} = {text}"
    return made(exercise, f"from course_lib.exercises import find\n{text}")


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row[0])
def test_right_answers_in_other_styles(row):
    for _ in range(3):  # the random cases are others each time
        assert judge(find(row[0]), answer(*row)).state == RIGHT


# What does not matter to a result may be forgotten: the matrices of attention are the same for any number of heads.
# The gradient of a mean asks for the shape of x alone.
ARGUMENTS = [
    (e, i, name)
    for e in every()
    if e.right
    for i, name in enumerate(inspect.signature(e.function).parameters)
    if (e.id, name) not in (("09.4", "H"), ("02.5", "x"))
]


@pytest.mark.parametrize(("exercise", "i", "name"), ARGUMENTS, ids=lambda value: getattr(value, "id", str(value)))
def test_what_remembers_a_result_by_all_but_one_argument_is_refused(exercise, i, name):
    form, known = inspect.signature(exercise.function), {}

    def remembering(*arguments):
        given = form.bind(*arguments)
        given.apply_defaults()
        every_one = list(given.arguments.values())
        one = every_one.pop(i)
        every_one.insert(i, known.setdefault(pickle.dumps(every_one), one))
        return exercise.function(*every_one)

    assert judge(replace(exercise, more=None), remembering).state == NOT_YET  # not by chance


def test_what_remembers_a_result_by_its_shapes_is_told_so():
    known, exercise = {}, replace(find("02.1"), more=None)  # among drawn cases shapes may come twice

    def remembering(a, b, grad):
        return known.setdefault((a.shape, grad.shape), exercise.function(a, b, grad))

    assert "left over from an earlier call" in judge(exercise, remembering).likely


def test_a_reason_is_known_in_float32_too():
    grads = [np.array([0.18, 0.86], "float32"), np.array([[1.39]], "float32")]
    exercise = replace(find("11.3"), cases=lambda: [(grads, 2.0)], more=None)
    assert "made longer" in judge(exercise, answer("11.3", CLIP, "norm <= m", "norm == 0")).likely
    text = CLIP.replace("], norm", "], __import__('decimal').Decimal(norm)")
    assert judge(exercise, answer("11.3", text)).state == RIGHT


def long_or_not(exercise, i, axis):
    """The solution, which fails where an axis of argument i has length 1."""

    def answer(*arguments):
        assert arguments[i].shape[axis] != 1
        return exercise.function(*arguments)

    return answer


@pytest.mark.parametrize(
    ("key", "i", "axes"),
    [("02.4", 0, [-1]), ("02.4", 1, [-1]), ("06.1", 0, [0, 1]), ("06.2", 0, [0, 1, 2, 3]), ("03.1", 0, [-1])],
)
def test_what_fails_for_an_axis_of_length_1_is_refused(key, i, axes):
    for axis in axes:
        assert judge(find(key), long_or_not(find(key), i, axis)).state == NOT_YET
    assert judge(find("06.1"), lambda x, heads: find("06.1").function(x, heads if heads > 1 else 2)).state == NOT_YET


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_wrong_answers_of_other_kinds(row):
    key, words, *text = row
    verdict = judge(find(key), answer(key, *text))
    assert verdict.state == NOT_YET
    _, _, happened = words.partition("happened: ")
    assert happened in verdict.problem
    assert happened or (words in verdict.likely if words else not verdict.likely), verdict


class Equal:
    """Equal to everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("01.4", [969, 32], "one more token"),  # two mistakes, both known
        ("02.6", [0, 2 / 3, 6], "counts with a minus"),
        ("02.6", [2, 2, 6], ""),
        ("03.4", [1, 0.0039, 4], "256 of them"),
        ("03.4", np.ma.array([256, 1, 1024], mask=[0, 1, 0]), ""),
        ("03.4", [Equal(), Equal(), Equal()], ""),
        ("07.5", [Equal(), Equal(), Equal()], ""),
        ("03.5", [1.0, 0.02], ""),
        ("03.5", [0.5, 0.5], ""),
        ("03.5", [1.0, 1.0], "compared with itself"),
        ("04.2", b"148224", ""),
        ("04.2", 2 * (128 * 128 + 2 * 128 * 512), ""),
        ("04.3", 2.5 / 16, ""),
        ("06.4", [64, 196608], "reads all 768 numbers"),
        ("06.4", [64, 2.36e6], "rounded too far"),
        ("06.4", np.array([64, 2359000]), "rounded too far"),
        ("06.4", [768, 2.3e6], "rounded too far"),
        ("06.4", [64, 2e6], ""),
        ("06.4", [64, 2359297], ""),
        ("06.4", [2.36e6, 64], ""),
        ("07.5", [[False], [True], [True]], ""),
        ("12.5", [75.5, 18874368], "are swapped"),
        ("16.6", [3, 4, 7, 9], "a text of 64"),
        ("16.6", [3, 4, 7, 8, 9], ""),
        ("16.6", "3478", ""),
        ("16.6", [False, False, True, True, False, False, True, True], ""),
        ("16.6", [0, 0, 1, 1, 0, 0, 1, 1], ""),
        ("16.6", [[3, 4], [7, 8]], ""),
        ("16.6", {n: n in (3, 4, 7, 8) for n in range(1, 9)}, ""),
        ("16.6", [3, 4, 7, float("nan")], ""),
        ("16.6", {3, 4, 7}, "a text of 64"),
        ("16.6", np.array([3.0, 4.0, 8.0]), "may drop the others"),
        ("15.5", [True, True, False, True, False, True, False, True], ""),
        ("15.5", [[1, 2, 4, 6, 8]], ""),
        ("15.5", (1, 2, 4, 6), "the loss is a mean"),
        ("01.4", np.array(["968", "31"]), ""),
        ("01.4", np.array([968 + 5j, 31]), ""),
        ("01.4", np.array([968, 31], "m8[s]"), ""),
        ("01.4", np.ma.array([968, 31], mask=[False, True]), ""),
    ],
)
def test_a_guess_is_not_told_a_reason(key, value, words):
    verdict = judge(find(key), value)
    assert verdict.state == NOT_YET and (words in verdict.likely if words else not verdict.likely)


def test_a_masked_number_is_not_filled_in():
    assert "Not every element" in judge(find("03.4"), np.ma.array([256, 1, 1024], mask=[0, 1, 0])).problem


@pytest.mark.parametrize("key", ["10.2", "13.5"])
def test_two_different_numbers_look_different(key):
    problem = judge(find(key), lambda *a: np.round(find(key).function(*a), 3)).problem
    assert len(set(re.findall(r"(?:by|returns|was) (\d\.\d+)", problem))) == 2


def test_the_next_window_is_not_the_next_number():
    ids = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    assert judge(find("01.2"), lambda ids, T: (windows(ids, T)[0], windows(ids, T)[0] + 1)).state == NOT_YET
    assert (windows(ids, 3)[1] != windows(ids, 3)[0] + 1).any()


def test_what_works_past_the_training_length():
    """Exercise 16.6, done: a model for 8 positions meets a ninth token."""
    ids = np.arange(9)[None] % 5

    def longer(positions):
        GPT(GPTConfig(5, 16, positions=positions)).load_state_dict(models[positions].state_dict())

    def step_by_step(model):
        cache = model.new_cache()
        with model.evaluating():
            for t in range(9):
                model(ids[:, t : t + 1], cache=cache)

    models = {positions: GPT(GPTConfig(5, 8, positions=positions)) for positions in (True, "rotary", False)}
    tries = (
        lambda: models[True](ids),
        lambda: longer(True),
        lambda: longer("rotary"),
        lambda: longer(False),
        lambda: step_by_step(GPT(GPTConfig(5, 8, window=2))),
        lambda: step_by_step(models["rotary"]),
        lambda: step_by_step(GPT(GPTConfig(5, 8, positions="rotary", window=2))),
        lambda: models[True](ids[:, -8:]),
    )
    works = [n for n, attempt in enumerate(tries, 1) if watch.call(attempt, ()).error is None]
    assert works == find("16.6").value


def test_questions_take_what_the_page_gives_and_say_nearly():
    assert judge(find("02.6"), [np.array([0.0]), np.array([0.0]), np.array([6.0])]).state == RIGHT
    assert "3 decimals count" in judge(find("03.2"), [0.13, 0.25, 0.63]).problem


# ------------------------------------------------------------------ whatever is raised; and a stop
class Own(BaseException):
    pass


class Silent(Exception):
    def __str__(self):
        raise SystemExit


class Disguised:
    @property
    def __class__(self):
        raise KeyboardInterrupt


NESTED = []
NESTED.append(NESTED)


def raising(error):
    def function(*arguments):
        raise error

    return function


def endless(*arguments):
    return endless(*arguments)


def in_a_thread(*arguments):
    thread = threading.Thread(target=lambda: sys.exit(3))
    thread.start()
    thread.join()


def generator(*arguments):
    yield 1


HOSTILE = [raising(e) for e in (SystemExit(1), KeyboardInterrupt(), GeneratorExit(), Own(), Silent(), MemoryError())]
HOSTILE += [endless, in_a_thread, generator, lambda *a: Disguised(), lambda *a: NESTED]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("exercise", every(), ids=lambda e: e.id)
def test_nothing_gets_through(exercise):
    for function in HOSTILE:
        assert judge(exercise, function).state == NOT_YET
    for value in (Disguised(), NESTED, [Disguised()]):
        assert judge(exercise, value).state == NOT_YET


def test_an_answer_that_checks_itself():
    def softmax(x):
        return judge(find("03.1"), softmax)

    assert "got a Verdict" in judge(find("03.1"), softmax).problem


def test_in_a_job_that_ignores_stops_an_interrupt_is_the_answers_own():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert judge(find("03.1"), raising(KeyboardInterrupt())).state == NOT_YET
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def default_stop():
    """The handler that Python installs: a job in the background has none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("key", ["03.1", "07.3"])
@pytest.mark.usefixtures("default_stop")
def test_a_stop_by_the_learner_gets_through(key, caught):
    def function(*arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            if not caught:
                raise
        return ...

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        judge(find(key), function)
    assert signal.getsignal(signal.SIGINT) is before
    assert judge(find("06.2"), find("06.2").function).state == RIGHT  # and the next check works
