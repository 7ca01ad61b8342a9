"""What sabotage.py breaks: each sabotage changes a copy of the repository and names the test that must fail.

Those that need a notebook take the first that has a fitting cell.
"""

import ast
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from tools import definitions, notebook

SABOTAGES = {}  # name: function of a Copy, which gives arguments for pytest and a piece of the failing test's name


class DoesNotApply(Exception):
    """No notebook has what this sabotage needs."""


class Stale(Exception):
    """The text to be replaced is gone: the sabotage proves nothing any more."""


@dataclass
class Copy:
    """A copy of the repository; ``only`` is the beginning of the names of the notebooks that give victims."""

    root: Path
    only: str = ""
    changed: set = field(default_factory=set)

    def books(self):
        """Return the notebooks, the quick ones first."""
        found = [p for p in notebook.books(self.root / "notebooks") if p.name.startswith(self.only)]
        return sorted(found, key=lambda p: (notebook.budget(p), p.name))

    def read(self, path):
        """Return the text of a file. Raises Stale if there is no such file."""
        if not (self.root / path).is_file():
            raise Stale(f"there is no {path}")
        return (self.root / path).read_text(encoding="utf-8")

    def write(self, path, text):
        """Write a file and note that it has changed."""
        self.changed.add(path)
        (self.root / path).write_text(text, encoding="utf-8", newline="\n")

    def replace(self, path, old, new):
        """Replace a text in a file. Raises Stale if it is not there exactly once."""
        text = self.read(path)
        if text.count(old) != 1:
            raise Stale(f"{path} has {text.count(old)} times {old!r}")
        self.write(path, text.replace(old, new))

    def edit_book(self, wanted, change):
        """Change the first cell for which ``wanted(cell)`` is true by ``change(book, cell)``; return path and cell.

        Raises DoesNotApply if there is none.
        """
        for file in self.books():
            book = notebook.read(file)
            for cell in book.cells:
                if wanted(cell):
                    change(book, cell)
                    path = file.relative_to(self.root).as_posix()
                    self.write(path, notebook.text(book))
                    return path, cell
        raise DoesNotApply("no notebook has such a cell")


def sabotage(name):
    """Register a function under a name."""

    def register(function):
        SABOTAGES[name] = function
        return function

    return register


def named(test, piece):
    """Return what a sabotage gives if one test of a file must fail: only those with this name are run."""
    return [f"tests/{test}.py", "-k", piece], piece


# ------------------------------------------------------------------ texts replaced
# == file, and the test file that must notice
# name of the sabotage :: piece of the test's name, if one test must notice
#     old text  =>  new text
LIBRARY = r"""
== course_lib/numpy_track/functional.py test_functional
softmax at temperature 1.01
    exps = np.exp(x.data - x.data.max(axis=dim, keepdims=True))
    =>
    exps = np.exp(x.data / 1.01 - x.data.max(axis=dim, keepdims=True))
attention backward wrong by a factor
    by_weights *= scale  =>  by_weights *= 2 * scale
scale by twice the head size
    1 / math.sqrt(query.shape[-1])  =>  1 / math.sqrt(2 * query.shape[-1])
mask shifted by one: sees the next
    np.tril(np.ones((size, size), dtype=bool))  =>  np.tril(np.ones((size, size), dtype=bool), 1)
mask shifted by one: hides the diagonal
    np.tril(np.ones((size, size), dtype=bool))  =>  np.tril(np.ones((size, size), dtype=bool), -1)
heads split by a bare reshape
    x.reshape(B, T, heads, C // heads).swapaxes(1, 2)  =>  x.reshape(B, heads, T, C // heads)
cross-entropy: gradient of the sum
    by_rows *= grad / len(targets)  =>  by_rows *= grad
embedding: repeated ids counted once
    onehot = ids.reshape(-1, 1) == np.arange(len(weight))
    =>
    onehot = ids.reshape(-1, 1) == np.arange(len(weight)); onehot &= onehot.cumsum(axis=0) == 1
LayerNorm backward without the mean
    (by_normed - mean - normed * along)  =>  (by_normed - normed * along)
== course_lib/numpy_track/functional.py test_parity
softmax backward without its sum
    grad - (grad * weights).sum(axis=dim, keepdims=True)  =>  grad
== course_lib/torch_track/functional.py test_functional
torch mask shifted by one
    torch.tril(torch.ones(size, size, dtype=torch.bool))  =>  torch.tril(torch.ones(size, size, dtype=torch.bool), 1)
torch heads split by a bare reshape
    x.reshape(B, T, heads, C // heads).swapaxes(1, 2)  =>  x.reshape(B, heads, T, C // heads)
torch heads of query, key and value mixed
    together.reshape(B, T, len(weights), heads, weights[0].shape[1] // heads)
    =>
    together.reshape(B, T, heads, len(weights), weights[0].shape[1] // heads).swapaxes(2, 3)
torch weights of a row with nothing allowed are 0 / 0
    return weights if allow.any(-1).all() else weights.masked_fill(hidden, 0)  =>  return weights
== course_lib/torch_track/functional.py test_properties
torch heads of query, key and value in another order
    return pieces.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
    =>
    return pieces.permute(2, 0, 3, 1, 4).flip(2).contiguous().unbind(0)
== course_lib/experiments/bench/training.py test_bench
bench: the floor forgets a gradient
                yield left.swapaxes(1, 2) @ grad  =>
== course_lib/views/sketches/blocks.py test_sketches
sketch: the biases of a block are not counted :: counts_of_a_block
    .removesuffix(".weight").removesuffix(".bias")  =>  .removesuffix(".weight")
sketch: shared heads are not lit :: only_what_changed
    lit = shared and part != "query"  =>  lit = False
== course_lib/views/sketches/positions.py test_sketches
sketch: keys are not rotated :: distance_only
    [float(at(q) @ at(k)) for  =>  [float(at(q) @ at(0)) for
== course_lib/views/sketches/marks.py test_sketches
sketch: words too small to read :: legible
    size=13, colour=INK, weight="normal", anchor="middle"  =>  size=11, colour=INK, weight="normal", anchor="middle"
sketch: dark words on dark cells :: stand_out
    if luminance > 0.179 else  =>  if luminance > 0.1 else
== course_lib/views/sketches/generation.py test_sketches
sketch: a beam that loses its second hypothesis :: beam_is_a_tree
    end, length, num_beams))  =>  end, length, num_beams)[:1])
== course_lib/views/attention_widget/words.py test_attention_widget
attention view shows the transpose
    return self.weights[self.layer, self.head]  =>  return self.weights[self.layer, self.head].T
== course_lib/views/attention_widget/codec.py test_attention_widget
attention view: cells that are not allowed are sent too
    weights.reshape(-1) if allow is None else weights[allow]  =>  weights.reshape(-1)
attention view: eight bits a weight
    STEPS = 65_535  =>  STEPS = 255
== course_lib/views/attention_widget/view.py test_attention_widget
attention view: exact numbers of the wrong head
    self.weights[layer, message["head"]]  =>  self.weights[layer, 0]
attention view: rows that do not sum to 1 go unnoticed
    np.abs(sums - 1) > 1e-3  =>  np.abs(sums - 1) > 1
== course_lib/views/attention_widget/page.py test_attention_widget
attention view: a token can end the script of a page
    .replace("<", "\\u003c")  =>
== course_lib/inference/inside.py test_model_view
logit lens: without the final norm
    x = model.norm(x)  =>  x = x * 1
logit lens: a gain that is off takes the bias with it
    ones, norm.bias, norm.eps)  =>  ones, norm.bias * 0, norm.eps)
logit lens: an MLP that is off still writes
    lambda x: whole(x) * 0  =>  lambda x: whole(x) * 1
== course_lib/views/model_widget/view.py test_model_view
model view: the next tokens at another temperature
    np.arange(1, round(10 * HOTTEST) + 1)  =>  np.arange(2, round(10 * HOTTEST) + 2)
model view: hidden units of another order
    order = np.argsort(-np.abs(values)  =>  order = np.argsort(np.abs(values)
model view: a page that moves the generator
    rng, recorded, size = copy.deepcopy(self._rng)  =>  rng, recorded, size = self._rng
== course_lib/views/attention_widget/learning.py test_learning_view
learning view: the last step is missing
    self._history.steps != self.saved[-1]  =>  self._history.steps < self.saved[-1]
learning view: the loss of forgotten steps is lost
    [(a + b) / 2 for a, b in  =>  [b for a, b in
== course_lib/views/attention_widget/js/learning.js browser/test_learning_view_in_browser
learning view: the slider does not change the picture
    data.cache.clear();  =>  ;
== course_lib/views/model_widget/js/road.js browser/test_model_view_in_browser
model view: the stops of another token
    record.stop(place, focus).forEach  =>  record.stop(place, 0).forEach
== course_lib/jupyter.py test_attention_widget
a saved notebook keeps its live view
    data.pop(LIVE, None)  =>  pass
== course_lib/inference/interventions.py test_interventions
a head that is off still speaks
    speaking[layer, head, positions[0] if positions else slice(None)] = 0  =>  speaking[layer, head, 0] = 1
without the scale, but with it
    head_size**-0.5 if scaled else 1.0  =>  head_size**-0.5
== course_lib/numpy_track/models.py test_cache
cache: positions start at 0 again
    x = x + self.position[start:end]  =>  x = x + self.position[: end - start]
== course_lib/torch_track/models.py test_cache
torch cache: positions start at 0 again
    x = x + self.position[start:end]  =>  x = x + self.position[: end - start]
cache: one layer for all
    block(x, cache, layer)  =>  block(x, cache, 0)
== course_lib/numpy_track/cache.py test_cache
cache: handed out uncropped
    return from_numpy(self.keys[layer, :, :, :end]), from_numpy(self.values[layer, :, :, :end])
    =>
    return from_numpy(self.keys[layer]), from_numpy(self.values[layer])
cache: counted before all layers are through
            return from_numpy(self.keys
    =>
            self.length = end
            return from_numpy(self.keys
== course_lib/torch_track/modules.py test_cache
cache: new tokens see each other
    self.allow[start : start + T, : start + T]  =>  self.allow[start + T - 1, : start + T]
== course_lib/inference/sampling.py test_generation
sampling: cached keys kept when the window slides
    if cache is not None and (len(ids) <= model.context_length or cache.rolls):
    =>
    if cache is not None:
                cache.length = min(cache.length, model.context_length - 1)
sampling: the prompt again at each step
    ids[cache.position :]  =>  ids[-1:] if cache.length else ids[:-1] or ids
sampling: the model sees the first tokens
    np.array([ids[-model.context_length :]])  =>  np.array([ids[: model.context_length]])
== course_lib/common/positions.py test_today
rotary: twice the angle
    * frequencies  # (rows, D/2)  =>  * frequencies * 2
rotary: positions start at 0 again
    np.arange(start, start + rows)  =>  np.arange(rows)
Llama 3: the fast pairs slowed down
    kept + (1 - kept) / factor  =>  kept / factor + (1 - kept)
== course_lib/inference/llama.py test_llama
Llama: another usual eps
    "rms_norm_eps", 1e-6  =>  "rms_norm_eps", 1e-5
Llama: no window in any layer
    return window if kinds == {"sliding_attention"} else None  =>  return None
Llama: biases of the MLP left out unseen
    "mlp_bias": False, "partial  =>  "partial
== course_lib/numpy_track/functional.py test_today
rotary: backward turns on
    turned(grad, -sin)  =>  turned(grad, sin)
rms_norm: eps outside the root
    1 / np.sqrt(np.einsum("...c,...c->...", x.data, x.data)[..., None] / size + eps)
    =>
    1 / (np.sqrt(np.einsum("...c,...c->...", x.data, x.data)[..., None] / size) + eps)
causal_conv1d: backward looks back, too
    late[:, K - 1 - k : K - 1 - k + T]  =>  padded[:, k : k + T]
repeat, not repeat_interleave
    np.repeat(x.data, repeats, axis=dim)  =>  np.concatenate([x.data] * repeats, axis=dim)
window one too wide
    1 - window)  =>  -window)
== course_lib/torch_track/functional.py test_today
torch rotary: neighbours as pairs
    a, b = x.chunk(2, -1)  =>  a, b = x[..., 0::2], x[..., 1::2]
== course_lib/numpy_track/today.py test_today
SwiGLU: gate and up exchanged
    F.silu(self.gate(x)) * self.up(x)  =>  F.silu(self.up(x)) * self.gate(x)
an embedding that is not normalised
    F.rms_norm(super().forward(ids), self.ones.shape, self.ones, self.eps)  =>  super().forward(ids)
the initial scale of the tokens forgotten
    Embedding(V, C, init, std)  =>  Embedding(V, C, init)
QK-norm of the query alone
    self.query_norm(q), self.key_norm(k)  =>  self.query_norm(q), k
rotary: rows of the cache, not positions
    cache.position)  =>  cache.length)
== course_lib/torch_track/cache.py test_today
cache: rolls with one position too few
    min(self.length, self.config.window - 1)  =>  min(self.length, self.config.window - 2)
torch cache: a convolution forgets what was dropped
    (self.keys, self.values, self.inputs)  =>  (self.keys, self.values)
== course_lib/numpy_track/cache.py test_today
cache: a convolution begins anew with each token
    return np.pad(before,  =>  return np.pad(0 * before,
== course_lib/idiomatic/today.py test_today
nn.Module: a convolution that looks ahead
    [..., : x.shape[1]]  =>  [..., -x.shape[1] :]
nn.Module: halves exchanged
    a, b = x.chunk(2, dim=-1)  =>  b, a = x.chunk(2, dim=-1)
== course_lib/common/costs.py test_today
costs: every head has a key and a value
    (config.heads + config.key_value_heads) * config.head_size  # rows
    =>
    (config.heads + config.heads) * config.head_size  # rows
== course_lib/inference/streaming.py test_stream
streaming: the stop button gets through
    except KeyboardInterrupt:  =>  except StopIteration:
== course_lib/views/sampler.py test_sampler_view
sampler view: bars ignore top-k
    next_probabilities(self._logits, self.temperature, self.top_k)
    =>
    next_probabilities(self._logits, self.temperature)
sampler view: what is written ignores the seed
    self.temperature, top_k, self.seed  =>  self.temperature, top_k
== course_lib/training/trainer.py test_training
batches of one step weigh the same
    [count / sum(kept) for count in kept]  =>  [1 / len(kept) for count in kept]
a step takes one batch too many
    list(itertools.islice(batches, size))  =>  list(itertools.islice(batches, size + 1))
one more step, before the clipping
        norm = optimizer.clip_grad_norm_(
    =>
        optimizer.step()
        norm = optimizer.clip_grad_norm_(
tokens per second are batches
    tokens += sum(np.size(y) for _, y in group)  =>  tokens += len(group)
== course_lib/training/schedule.py test_training
rate 0 at the first step
    (step + 1) / (self.warmup_steps + 1)  =>  step / self.warmup_steps
== course_lib/training/evaluation.py test_training
mean of batch means
    kept = int((targets != IGNORED).sum())  =>  kept = count * batch_size / len(x) * bool((targets != IGNORED).any())
== course_lib/training/checkpoint.py test_properties
dropout begins anew at a resume
    if about["dropout"]:  =>  if False:
the schedule begins anew at a resume
    about.get("history") and  =>  None and
== course_lib/common/summary.py test_summary
a tied weight counted twice
    0 if again else prod  =>  prod
== course_lib/text/floor.py test_reproduce
the floor looks at one token only
    x[:, :t]  =>  x[:, t - 1 : t]
== course_lib/experiments/reproduce/checks.py test_reproduce
reproduce forgets a verdict
    return bool(holds)  =>  return True
== course_lib/experiments/recipes.py test_reproduce
a recipe that forgets to clip
    clip=self.clip, **options  =>  clip=None, **options
a recipe whose validation windows overlap
    *windows(validation_ids, context, stride=context)  =>  *windows(validation_ids, context)
== course_lib/experiments/ladder.py test_ladder
a rung measured on overlapping windows
    windows(validation_ids, self.context_length, stride=self.context_length)
    =>
    windows(validation_ids, self.context_length)
a rung with another norm
    {**_RESIDUAL, "norm": "pre"}  =>  {**_RESIDUAL, "norm": "post"}
== course_lib/numpy_track/modules.py test_encoder_decoder
dropout missing inside the feed-forward
    self.down(hidden if self.dropout is None else self.dropout(hidden))  =>  self.down(hidden)
== course_lib/numpy_track/encoder_decoder.py test_encoder_decoder
cross-attention without the source mask
    self.cross(x, memory, memory, memory_allow)  =>  self.cross(x, memory, memory)
padding mask on the query axis
    return allow[:, None, None, :]  =>  return allow[:, None, :, None]
pre-norm instead of post-norm
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory, memory_allow)))
    =>
            x = x + self.dropout(self.cross(self.cross_norm(x), memory, memory, memory_allow))
embeddings not times the root of C
    math.sqrt(width)  =>  1.0
padding counts in the loss
    if (np.asarray(labels) == self.padding).any():  =>  if False:
== course_lib/torch_track/encoder_decoder.py test_encoder_decoder
torch cross-attention reads itself
    self.cross(x, memory, memory, memory_allow)  =>  self.cross(x, x, memory, memory_allow)
decoder without its causal mask
    F.causal_mask(x.shape[1])  =>  F.causal_mask(x.shape[1]) | True
== course_lib/common/positions.py test_encoder_decoder
sine and cosine not in turn
    table[:, 1::2] = np.cos  =>  table[:, 1::2] = np.sin
== course_lib/idiomatic/encoder_decoder.py test_encoder_decoder
idiomatic attention drops out in evaluation
    self.dropout if self.training else 0.0  =>  self.dropout
== course_lib/idiomatic/weights.py test_encoder_decoder
idiomatic matrices not transposed
    torch.tensor(state[raw].T if turned else state[raw])  =>  torch.tensor(state[raw])
== course_lib/text/pairs.py test_numbers
decoder is given its label
    return target[:, :-1], target[:, 1:]  =>  return target[:, 1:], target[:, 1:]
lengths not equally often
    self._starts[group] + self._rng.integers(self._sizes[group])
    =>
    self._rng.integers(len(self._examples), size=self.batch_size)
== course_lib/text/numbers.py test_numbers
held-out numbers train
    rest = np.sort(numbers[count:])  =>  rest = np.sort(numbers)
== course_lib/inference/search.py test_pieces
decoding goes on with nan
    logits[~np.isfinite(logits.max(axis=-1))]  =>  logits[:0]
beam search reads the padding
    memory = model.encode(np.repeat(source[None], len(running), axis=0), allow)
    =>
    memory = model.encode(np.repeat(source[None], len(running), axis=0))
== course_lib/inference/streaming.py test_pieces
streaming: half a character is written
    if count == max_new_tokens else  =>  if True else
== course_lib/inference/published.py test_outside
bfloat16 shifted by one
    << 16  =>  << 15
== course_lib/inference/gpt2.py test_outside
GPT-2: a scale of the scores not followed
    scaled = part == "query" and scale != 1  =>  scaled = False
GPT-2: another eps without a word
    settings.get("layer_norm_epsilon", 1e-5),  =>  1e-5,
== course_lib/training/stop.py test_outside
a handler from C is lost
    not in (None, signal.SIG_IGN)  =>  not in ()
== course_lib/training/checkpoint.py test_outside
two writers, one temporary file
    {uuid.uuid4().hex[:12]}.part  =>  part
== course_lib/inference/search.py test_decoding
greedy goes on after the end
    return ids[: ids.index(end)] if end in ids else ids  =>  return ids
beam compares sums though told not to
    key=lambda h: -h.score(normalised)  =>  key=lambda h: -h.score(False)
beam forgets what has ended
    found = [h for h in best if h.ended]  =>  found = []
== course_lib/experiments/numbers.py test_numbers
alignment counts the end token
    (hit & words[:, None]).sum(axis=(1, 3)) / words.sum()  =>  hit.sum(axis=(1, 3)) / words.size
== course_lib/inference/gpt2.py test_gpt2
GPT-2: key and query exchanged
    zip(("query", "key", "value"), three)  =>  zip(("key", "query", "value"), three)
GPT-2: number of heads not read
    ("n_head", "num_attention_heads") if name  =>  ("heads",) if name
GPT-2: a window that the layout cannot hold
    "qk_norm": (False,), "window": (None,),  =>  "qk_norm": (False,),
== course_lib/text/byte_level.py test_byte_level
byte pairs: ties go to the higher ids :: merges_are_the_librarys
    best = min((p for p, n in pairs.items() if n == most)  =>  best = max((p for p, n in pairs.items() if n == most)
byte pairs: a number is a letter :: words_are_the_librarys
    {"L": "x", "N": "0"}  =>  {"L": "x", "N": "x"}
byte pairs: special tokens are cut :: special_tokens_in_the_text
    if piece in self.special:  =>  if False:
== course_lib/inference/tokenizer_files.py test_byte_level
tokenizer.json: another normalizer without a word :: cannot_be_followed
    if normalizer is not None:  =>  if False:
== course_lib/inference/download.py test_download_models
download: weights of any shape are kept :: other_weights
    elif path.name == WEIGHTS:  =>  elif False:
download: another hash is kept :: another_hash
    if found != expected:  =>  if False:
== course_lib/text/download.py test_download_models
download: what is wrong gets its name all the same :: other_weights
    if said := wrong(part):  =>  if False:
== course_lib/numpy_track/tensor.py test_autograd
broadcasting not undone
    if grad.shape == shape:  =>  if True:
gradients overwrite
    arrived[key] + contribution if key in arrived else contribution  =>  contribution
== course_lib/idiomatic/gpt.py test_idiomatic_gpt
idiomatic GPT sees the future
    is_causal=True  =>  is_causal=False
== course_lib/idiomatic/training.py test_idiomatic_gpt
idiomatic AdamW's means in another orientation
    (piece.T if t else piece for  =>  (piece for
idiomatic AdamW decays everything
    "weight_decay": 0.0}  =>  "weight_decay": weight_decay}
mixed precision in name only
    if self.mixed else  =>  if False else
== course_lib/idiomatic/train_ddp.py test_train_ddp
data-parallel: all processes take the same rows
    yield x[self.rank :: self.world], y[self.rank :: self.world]  =>  yield x[:: self.world], y[:: self.world]
data-parallel: gradients are not averaged
    OnDevice(parallel), optimizer  =>  OnDevice(model), optimizer
data-parallel: a resumed run draws its batches anew
            batches.load_state_dict(kept.batches_state)  =>
data-parallel: a resumed run forgets its schedule
    schedule(done + step)  =>  schedule(step)
== course_lib/common/costs.py test_arithmetic
arithmetic: backward as long as forward
    return 3 * forward  =>  return 2 * forward
arithmetic: keys without values
    return 2 * config.layers * batch  =>  return config.layers * batch
arithmetic: activations of the MLP forgotten
    "gelu": 2  =>  "gelu": 0
== course_lib/numpy_track/models.py test_gpt2
GPT-2 with a cache: each step at position 0
    self.position[start:end]  =>  self.position[: ids.shape[1]]
== course_lib/numpy_track/muon.py test_muon
muon: no look ahead
    ahead = self.momentum * mean + (1 - self.momentum) * p.grad  =>  ahead = mean
muon: the decay is of the new value
                p.data *= 1 - self.lr * self.weight_decay
                p.data -= self.lr * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)
    =>
                p.data -= self.lr * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)
                p.data *= 1 - self.lr * self.weight_decay
muon: four steps instead of five
    steps=5  =>  steps=4
muon: the gradient is overwritten
    x = x / max(norm  =>  x /= max(norm
muon: a norm of tiny numbers is 0
    norm(x.astype(np.float64))  =>  norm(x)
muon: each part clipped by itself
    clip_grad_norm_([part.flat for part in self.parts], max_norm)
    =>
    math.hypot(*[clip_grad_norm_([part.flat], max_norm) for part in self.parts])
muon: gradients of matrices add up
                part.zero_grad(set_to_none)  =>              self.others.zero_grad(set_to_none)
muon: the schedule does not reach the matrices
    self.parts[0].lr, self.others.lr = value,  =>  self.others.lr =
muon: AdamW's own rate lasts until a schedule sets it
    self.ratio * value  =>  value
muon: means begin anew at a resume
    mean[...] = piece.reshape(mean.shape)  =>  mean[...] = 0 * piece.reshape(mean.shape)
muon: a matrix named twice
    len(chosen) == len(self.matrices) > 0  =>  bool(chosen)
== course_lib/torch_track/muon.py test_muon
torch muon: no look ahead
    ahead = self.momentum * mean + (1 - self.momentum) * p.grad  =>  ahead = mean
torch muon: matrices do not decay
                p.data *= 1 - self.lr * self.weight_decay  =>
torch muon: a step as long as the rows say
    math.sqrt(max(p.shape))  =>  math.sqrt(p.shape[0])
torch muon: a norm of tiny numbers is 0
    norm(x.double())  =>  norm(x)
torch muon: matrices that another took unnoticed
                part.gather()  =>              self.others.gather()
torch muon: a wrong state is half loaded
    if np.shape(state["matrices"]) != (sum(sizes),):  =>  if np.size(state["matrices"]) != sum(sizes):
== course_lib/experiments/recipes.py test_muon
muon: a recipe hands it the tables too
    [p for p in blocks if p.ndim == 2]  =>  [p for p in model.parameters() if p.ndim == 2]
muon: a recipe with a misspelt optimiser trains with AdamW
    if self.optimizer == "AdamW":  =>  if self.optimizer:
"""

EXERCISES = r"""
== course_lib/exercises/compare.py test_exercise_answers
shapes not compared :: wrong_form
    if tuple(got.shape) != want.shape:  =>  if tuple(got.shape) != want.shape and got.size != want.size:
dtypes not compared :: float64_for_float32
    if dtype_name(got) != dtype_name(want) and  =>  if False and
== course_lib/exercises/words.py test_exercise_pages
another input's dtype named :: dtype_is_that_of_an_input
    return f"{name}[0]" if several else name  =>  return "x"
two numbers that look the same :: two_numbers_that_differ
    for digits in (4, 6, 8, 10, 12, 17))  =>  for digits in (4,))
== course_lib/exercises/show.py test_exercise_pages
a name gets a capital :: name_keeps_its_letters
    if not re.match(r"\w+[._(\[]\w", text):  =>  if True:
the verdict by colour alone :: status_in_words
    {escape(title)}: <strong>{verdict.state}</strong></div>  =>  {escape(title)}</div>
== course_lib/exercises/answers.py test_exercises
length of the right list told :: how_long_the_right_one_is
    if hasattr(answer, "shape") and hasattr(right, "shape"):  =>  if True:
== course_lib/exercises/judge.py test_exercise_answers
no message for an error in an examination :: gets_its_message
    , likely=_why_error(exercise, outcome.error))  =>  )
edits in place accepted :: in_place
    if outcome.changed:  =>  if False:
calls of the library accepted :: call_of_the_library
    if outcome.called:  =>  if False:
an error accepted without its words :: gets_its_message[01.1
    missing = [word for word in want.args if not  =>  missing = [word for word in want.args if not True and not
== course_lib/exercises/exercise.py test_exercise_answers
the stub holds the answer :: stub_is_not_attempted
    return "\n".join([*lines[: head.end_lineno if head else body[0].lineno - 1], STUB])  =>  return text
== course_lib/exercises/nb06.py test_exercise_answers
a solution broken :: solution_is_right[06.2]
    return heads.swapaxes(0, 1).swapaxes(1, 2).reshape  =>  return heads.swapaxes(0, 1).reshape
== course_lib/exercises/nb05.py test_exercise_answers
a message for another mistake :: gets_its_own_message[05.1
    "the diagonal is hidden: a position may look at itself", "<=", "<"
    =>
    "the diagonal is hidden: a position may look at itself", "<=", ">="
== course_lib/exercises/exercise.py test_exercise_kinds
no zeros in random numbers :: wrong_answers_of_other_kinds[02.5
    x = np.round(x) if turn % 3 == 2 else x  =>  x = x
no random cases :: wrong_answers_of_other_kinds[12.1
    return self.more(np.random.default_rng()) if self.more else []  =>  return []
== course_lib/exercises/judge.py test_exercise_kinds
a mistake named for one case that fits :: wrong_answers_of_other_kinds
    if all(_explains(function, trial) for trial in trials):  =>  if any(_explains(function, trial) for trial in wrong):
a mistake named where only the type is wrong :: wrong_answers_of_other_kinds[12.
    if failed not in wrong:  =>  if False:
what remembers shapes accepted :: wrong_answers_of_other_kinds[02.1
    for case in [*cases, *other]:  =>  for case in cases:
a case that is the same turned round :: wrong_answers_of_other_kinds[02.5
    if not compare.same(exercise.right(*case), exercise.right(*turned)):  =>  if True:
calls of the library accepted in an examination :: wrong_answers_of_other_kinds[07.3
    if calls.seen:  =>  if False:
nearly zero accepted :: wrong_answers_of_other_kinds[05.4
    if exercise.zeros and not problem:  =>  if False:
one array for all calls accepted :: wrong_answers_of_other_kinds[12.1
    failed = _tried_again(exercise, answer, trials, track, names)  =>  failed = None
== course_lib/exercises/mending.py test_exercise_kinds
numbers of the small model accepted :: wrong_answers_of_other_kinds[07.3
    return _problem_elsewhere(part, heads, function)  =>  return None
a forward that remembers its first call :: wrong_answers_of_other_kinds[05.2
    or again_problem(part, heads, function)  =>  or None
== course_lib/exercises/nb13.py test_exercise_kinds
heads that do harm not tried :: wrong_answers_of_other_kinds[13.5
    return _other_costs(function, want)  =>  return None
== course_lib/exercises/watch.py test_exercise_kinds
a node of PyTorch's graph accepted :: wrong_answers_of_other_kinds[02.5
    if torch and "*backward*" in forbids else  =>  if False else
an answer that exits ends the check :: nothing_gets_through
    return not (self.stopped or  =>  return not (self.stopped or isinstance(error, SystemExit) or
a stop that an answer catches is lost :: stop_by_the_learner
    if self.stopped and not isinstance(error, KeyboardInterrupt):  =>  if False:
== course_lib/exercises/nb07.py test_exercise_answers
a broken model that does not leak :: loss_of_a_broken_one
    centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
    =>
    centred = x - x.mean(axis=2, keepdims=True)
        variance = (centred * centred).mean(axis=2, keepdims=True)
a mended forward with other numbers accepted :: gets_its_message[07.3
    different = mending.value_problem("norm", 4, function)  =>  different = None
== course_lib/exercises/mending.py test_exercise_answers
a cut gradient accepted :: gradient_that_is_cut
        if lost:  =>      if False:
== course_lib/exercises/answers.py test_exercise_pages
numbers in quotes accepted :: words_and_gaps
    if sentence := not_numbers(answer, right):  =>  if False:
== course_lib/exercises/answers.py test_exercise_kinds
complex numbers and times taken for numbers :: guess_is_not_told
    if mine.dtype.kind in "cMm":  =>  if False:
== course_lib/exercises/nb11.py test_exercise_kinds
a decay that stops later accepted :: wrong_answers_of_other_kinds[11.4
    return _other_training(fallen)  =>  return None
== course_lib/exercises/commands.py test_exercise_pages
an unknown exercise stops the page :: unknown_exercise
    except LookupError as error:  =>  except KeyError as error:
== course_lib/exercises/store.py test_exercise_progress
progress written over the old file :: killed_at_the_worst
    part = file.with_name(f"{file.name}.{_own()}.part")  =>  part = file
a damaged progress file stops the page :: damaged_file
    except (ValueError, KeyError, TypeError, RecursionError):  =>  except KeyError:
progress saved without the lock :: same_instant
    with _locked(path()):  =>  with contextlib.nullcontext():
== course_lib/exercises/nb14.py test_exercise_answers
queries and keys exchanged in a solution :: solution_is_right[14.2]
    query, key, value = x @ W_query, memory @ W_key, memory @ W_value
    =>
    query, key, value = memory @ W_query, x @ W_key, memory @ W_value
== course_lib/exercises/nb14.py test_exercise_answers
a translator whose padding nobody reads :: loss_of_a_broken_one
    return model.decode(inputs, memory, target_allow=target_allow)
    =>
    return model.decode(inputs, memory, allow, target_allow)  # both
padding always the id 0 where it is tried :: gets_its_own_message[14.6
    for padding in (PADDING, 3):  =>  for padding in (PADDING,):
a cut memory of the encoder accepted :: gets_its_message[14.6
    if problem := _gradient_problem(function):  =>  if problem := None:
== course_lib/exercises/nb13.py test_exercise_answers
heads measured together taken for one :: loss_of_a_broken_one
    pairs = {(int(layer), int(head)) for layer, head in off}
    =>
    pairs = {(int(layer), int(head)) for layer, head in off[-1:]}
== course_lib/exercises/nb15.py test_exercise_answers
the head of a GPT-2 counted twice :: solution_is_right[15.1]
    tables = vocab_size * C + context_length * C  =>  tables = 2 * vocab_size * C + context_length * C
== course_lib/exercises/nb15.py test_exercise_answers
a square matrix as it lies accepted :: loss_of_a_broken_one
    if not np.array_equal(array, state[name])]  =>  if array.shape != state[name].shape]
== course_lib/exercises/store.py test_exercise_progress
a lock that a killed kernel left stays :: killed_kernel_left
    STALE_LOCK = 5  =>  STALE_LOCK = 1e12
== tools/solved.py test_solved_copies
a task without its heading :: without_its_heading
            if len(tasks) != 1 or not  =>          if False and not
a solution whose names a notebook lacks :: does_not_find
        for name in sorted(wanted - imported):  =>      for name in ():
a solved copy that is not solved :: all_are_right
            cell.source = find(key).solved  =>          find(key)
== tools/working_copies.py test_working_copies
a learner's copy overwritten :: never_overwritten
    if mine == known.get("given") or work is not None and work == known.get("work"):  =>  if True:
a new version offered again and again :: never_overwritten
        known["offered"] = new["content"]  =>
== .gitignore test_working_copies
working copies seen by git :: git_pull
    /my_course/  =>
"""

OTHERS = {
    "browser": r"""
== course_lib/views/attention_widget/js/heatmap.js browser/test_attention_view_in_browser
cells that are not allowed are drawn as zero :: test_not_allowed
    if (values[n] === values[n] && j >= hidden) pixels  =>  if (j >= hidden) pixels
rows and columns exchanged under the mouse :: test_hover_reads
    return { query: i, key: j };  =>  return { query: j, key: i };
""",
    "truth": r"""
== course_lib/torch_track/functional.py test_twins
a twin takes another default :: functional.py
    def softmax(x, dim=-1)  =>  def softmax(x, dim=1)
a twin renames an argument :: functional.py
    def merge_heads(x)  =>  def merge_heads(y)
""",
    "guard": r"""
== nbval_sanitize.cfg test_sanitize
a sanitizer rule malformed :: test_every_rule_is_read
    replace: CELL.py:LINE  =>  replace:CELL.py:LINE
""",
}


def register_table(kind, table):
    """Register the sabotages of a table."""
    for group in re.split(r"(?m)^== ", table)[1:]:
        path, test = group.split("\n", 1)[0].split()
        for title, change in re.findall(r"(?m)^(\S.*)\n((?:    .*\n)+)", group):
            name, _, piece = title.partition(" :: ")
            old, new = re.split(r"(?:  |\n)=>(?:  |\n|$)", re.sub("(?m)^    ", "", change).rstrip("\n"), maxsplit=1)

            @sabotage(f"{kind}: {name}")
            def _(copy, path=path, old=old, new=new, test=test, piece=piece):
                copy.replace(path, old, new)
                return named(test, piece) if piece else ([f"tests/{test}.py"], test)


for kind, table in {"library": LIBRARY, "exercise": EXERCISES, **OTHERS}.items():
    register_table(kind, table)


# ------------------------------------------------------------------ the view in the browser
WIDGET = "course_lib/views/attention_widget/js/"
BROWSER = "browser/test_attention_view_in_browser"


@sabotage("browser: keys of the view reach JupyterLab")
def _(copy):
    # Two things hold them back, each alone is enough: the mark on the grid, and the end of the event at the view.
    copy.replace(WIDGET + "view.js", "|| event.stopPropagation()", "|| 0")
    copy.replace(WIDGET + "view.js", '"data-lm-suppress-shortcuts": "true" }, parts.base', "}, parts.base")
    return named(BROWSER, "test_a_walk_by_keyboard_alone")


# ------------------------------------------------------------------ cells of notebooks: what they are
def code(cell):
    return cell.cell_type == "code"


def compared(cell):
    """Return True for a code cell with printed text that nbval compares on every machine."""
    return code(cell) and not notebook.tags(cell) & {"nbval-ignore-output", "shakespeare", "raises-exception"}


def tagged(tag):
    return lambda cell: code(cell) and tag in notebook.tags(cell)


def printed(cell):
    return "".join(out.get("text", "") for out in cell.get("outputs", []))


def prints_numbers(cell):
    return compared(cell) and re.search(r"\d", printed(cell))


def has_figure(cell):
    return any("image/png" in out.get("data", {}) for out in cell.get("outputs", []))


def alt_text(out):
    """Return the metadata of an output that holds its alt text, or None."""
    found = out.get("metadata", {}).get("image/png", {})
    return found if "alt" in found else None


def asserts(cell, word=""):
    return code(cell) and re.search(rf"(?m)^assert .*{word}", cell.source)


def assigns(cell):
    try:
        return not all(isinstance(node, ast.Expr) for node in ast.parse(cell.source).body)
    except SyntaxError:
        return True


def still_python(cell, change):
    """Return True if the cell has no syntax error after the change, which would be noticed for the wrong reason."""
    tried = nbformat.from_dict(dict(cell))
    change(None, tried)
    try:
        ast.parse(tried.source)
    except SyntaxError:
        return False
    return True


# ------------------------------------------------------------------ cells of notebooks: what is done to them
def in_cell(name, wanted, change):
    """Register a change of a cell in which nbval must notice it."""

    @sabotage(name)
    def _(copy):
        path, cell = copy.edit_book(wanted, change)
        return [path], cell.id


def in_file(name, rule, wanted, change):
    """Register a change of a notebook that breaks a rule of tools/hygiene.py."""

    @sabotage(name)
    def _(copy):
        path, _ = copy.edit_book(wanted, change)
        return named("test_notebooks", f"{Path(path).stem}-{rule}]")


def source_change(name, pattern, new, wanted):
    """Register the first match replaced in a cell that prints numbers."""
    in_cell(
        name,
        lambda c: wanted(c) and prints_numbers(c) and re.search(pattern, c.source),
        lambda book, c: c.update(source=re.sub(pattern, new, c.source, count=1)),
    )


def appended(text):
    return lambda book, cell: cell.update(source=cell.source + text)


def other_number(book, cell):
    out = next(o for o in cell.outputs if re.search(r"\d", o.get("text", "")))
    out.text = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), out.text, count=1)


def negate(book, cell):
    cell.source = re.sub(r"(?m)^assert (.*?)((?:,\s*f?[\"'].*)?)$", r"assert not (\1)", cell.source, count=1)


def delete(book, cell):
    book.cells.remove(cell)
    book.update(notebook.clean(book))  # as an author would who knows the rules


def other_alt_text(book, cell):
    next(filter(None, map(alt_text, cell.outputs)))["alt"] += ", rising"


def without_caption(book, cell):
    after = book.cells[book.cells.index(cell) + 1]
    after.source = after.source.replace("*Figure:*", "Figure:")
    for out in cell.outputs:
        out.metadata = nbformat.from_dict({})


def print_set(book, cell):
    text = "the quick brown fox jumps over a lazy dog"
    cell.source += f"\nprint(set({text!r}.split()))"
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=f"{set(text.split())}\n")]


def edit_function(book, cell):
    """Add a statement to the first function of a cell."""
    cell.source = re.sub(r"(?m)^( *)def (.*):$", r"\1def \2:\n\1    assert True", cell.source, count=1)


ONLINE = (
    "import urllib.request\ntry:\n    urllib.request.urlopen('http://192.0.2.1', timeout=1)\n"
    "except Exception:\n    pass"
)

source_change(
    "notebook: another seed",
    r"(default_rng\(|seed=|manual_seed\()\d+",
    r"\g<1>98765",
    lambda c: "seed=" in c.source or re.search(r"\d\.\d\d", printed(c)),
)
source_change(
    "notebook: another learning rate", r"(?m)^((?! *def ).*\b(?:rate|lr)=)[\d.e-]+", r"\g<1>0.0123", lambda c: True
)
in_cell("notebook: a printed number changed", prints_numbers, other_number)
in_cell("notebook: an assertion made false", lambda c: asserts(c) and still_python(c, negate), negate)
in_cell("notebook: a loss assertion made false", lambda c: asserts(c, "loss") and still_python(c, negate), negate)

in_file(
    "deleted: a leaf cell", "manifest", lambda c: compared(c) and not assigns(c) and "import" not in c.source, delete
)
in_file("deleted: an assertion cell", "manifest", asserts, delete)
in_file(
    "deleted: a text cell", "manifest", lambda c: c.cell_type == "markdown" and not c.source.startswith("# "), delete
)
in_file("deleted: a check of an exercise", "manifest", tagged("check"), delete)
in_file("deleted: a solution of an exercise", "manifest", tagged("solution"), delete)
in_cell("deleted: a figure", lambda c: compared(c) and has_figure(c), lambda book, c: c.update(source="pass"))

in_file(
    "file: execution times kept",
    "committed_form",
    bool,
    lambda book, c: c.metadata.update(execution={"iopub.execute_input": "2026-01-01"}),
)
in_file(
    "file: widget state kept",
    "widget_state",
    bool,
    lambda book, c: book.metadata.update(widgets={"application/vnd.jupyter.widget-state+json": {}}),
)
in_file("file: another kernel", "kernel", bool, lambda book, c: book.metadata.kernelspec.update(name="my-env"))
in_file("file: a tag misspelt", "known_tags", bool, lambda book, c: c.metadata.update(tags=["nbval-ignore-outputs"]))
in_file("file: a picture from the network", "links", bool, appended("\n\n![cat](https://example.org/cat.png)"))
in_file("file: a link to nothing", "links", bool, appended("\n\n[cat](99_cat.ipynb)"))
in_file("file: a figure without words", "alt_text", lambda c: code(c) and has_figure(c), without_caption)
in_cell(
    "file: alt text that says something else", lambda c: compared(c) and any(map(alt_text, c.outputs)), other_alt_text
)

in_cell(
    "nbval: unknown magic in an uncompared cell",
    tagged("nbval-ignore-output"),
    lambda book, c: c.update(source="%notmagic\n" + c.source),
)
in_cell(
    "nbval: an error promised and not raised",
    tagged("raises-exception"),
    lambda book, c: c.update(source="pass", metadata={"tags": ["raises-exception", "nbval-ignore-output"]}),
)
in_cell("nbval: order of a set printed", lambda c: compared(c) and not c.outputs, print_set)
in_cell("nbval: the kernel dies, as out of memory", compared, appended("\nimport os; os._exit(1)"))
in_cell("nbval: the network in a cell", compared, appended("\n" + ONLINE))


@sabotage("file: outputs stripped")
def _(copy):
    def strip(book, cell):
        for c in filter(code, book.cells):
            c.update(outputs=[], execution_count=None)

    path, _ = copy.edit_book(compared, strip)
    return [path], path


@sabotage("deleted: a cell that others need")
def _(copy):
    path, _ = copy.edit_book(lambda c: code(c) and c.source.startswith(("import", "from")), delete)
    return [path], path


@sabotage("deleted: a notebook")
def _(copy):
    if not copy.books():
        raise DoesNotApply("no notebook")
    victim = copy.books()[-1]
    copy.changed.add(victim.relative_to(copy.root).as_posix())
    victim.unlink()
    return named("test_notebooks", "test_no_notebook_vanished")


# ------------------------------------------------------------------ one truth in three places
TEACHING = "test_teaching_cells"


@sabotage("truth: a teaching cell edited away from the library")
def _(copy):
    path, cell = copy.edit_book(
        lambda c: "teaches" in notebook.tags(c) and still_python(c, edit_function), edit_function
    )
    return named(TEACHING, f"{Path(path).stem}-{cell.id}")


@sabotage("truth: the library edited away from a teaching cell")
def _(copy):
    path, cell = copy.edit_book(lambda c: "teaches" in notebook.tags(c), lambda book, c: None)
    shown = definitions.taught(cell)[0]
    lines = copy.read(shown.file).splitlines(keepends=True)
    last = definitions.defined_in(shown.file)[shown.name].body[-1]
    lines.insert(last.lineno - 1, " " * last.col_offset + "assert True\n")
    copy.write(shown.file, "".join(lines))
    return named(TEACHING, f"{Path(path).stem}-{cell.id}")


@sabotage("truth: a copy of the library in a cell")
def _(copy):
    copy.edit_book(compared, appended("\n\ndef softmax(x):\n    return x"))
    return named(TEACHING, "test_no_unmarked_copies")


# ------------------------------------------------------------------ the web edition
SITE = "tests/browser/test_site_in_browser.py"


@sabotage("site: a twin page that leaves out what only one file has")
def _(copy):
    copy.replace("tools/site/twins.py", 'kind == "equal", range(a, b)', 'kind == "equal", range(a, b if d > c else a)')
    return named("test_site", "test_twins_show_every_line")


@sabotage("site: a view without a page")
def _(copy):
    copy.replace("tools/site/views.py", '"AttentionLab": recorded', '"AttentionLaboratory": recorded')
    return named("test_site", "test_every_view")


@sabotage("site: a script from another site")
def _(copy):
    where = '"site.js"'
    copy.replace("tools/site/conf.py", where, f'{where}, "https://example.org/a.js"')
    return [SITE, "-k", "test_links_to_other_sites"], "test_links_to_other_sites"


@sabotage("site: a link that leads nowhere")
def _(copy):
    copy.replace("tools/site/pages.py", ".html#{taught.name}", ".html#{taught.name}s")
    return [SITE, "-k", "test_every_link_inside"], "test_every_link_inside"


# ------------------------------------------------------------------ the guards themselves
@sabotage("guard: the sanitizer eats all numbers")
def _(copy):
    copy.write("nbval_sanitize.cfg", copy.read("nbval_sanitize.cfg") + "\nregex: \\d+\nreplace: N\n")
    return named("test_sanitize", "test_keeps")


@sabotage("guard: a notebook beyond its time")
def _(copy):
    copy.replace("tools/notebook.py", "BUDGET = 60 ", "BUDGET = 0.01 ")
    path = next((p for p in copy.books() if notebook.budget(p) == notebook.BUDGET), None)
    if path is None:
        raise DoesNotApply("no notebook")
    return [path.relative_to(copy.root).as_posix()], "time budget"


@sabotage("guard: a test that goes to the network")
def _(copy):
    copy.write("tests/test_online.py", "def test_online():\n" + re.sub("(?m)^", "    ", ONLINE) + "\n")
    return ["tests/test_online.py"], "test_online"


@sabotage("guard: a manifest without a notebook")
def _(copy):
    known = json.loads(copy.read("notebooks/manifest.json"))
    if not known:
        raise DoesNotApply("no notebook")
    known.popitem()
    copy.write("notebooks/manifest.json", json.dumps(known))
    return named("test_notebooks", "test_no_notebook_vanished")
