"""What sabotage.py breaks. Each function changes a copy of the repository, and gives the arguments for pytest and a
piece of the name of the test that must fail. Those that need a notebook take the first that has a fitting cell."""

import ast
import json
import re

import nbformat
from sabotage import DoesNotApply, code, compared, printed, stream

from tools import definitions, nb

FILES, TEACHING, TWINS = "tests/test_notebooks.py", "tests/test_teaching_cells.py", "tests/test_twins.py"
SABOTAGES = {}


def sabotage(name):
    def register(function):
        SABOTAGES[name] = function
        return function

    return register


def stem(path):
    return path.split("/")[-1].removesuffix(".ipynb")


# ------------------------------------------------------------------ a library that computes something else
NUMPY, TORCH = "course_lib/numpy_track/", "course_lib/torch_track/"
WIDGET = "course_lib/views/attention_widget/"

MASK = "np.tril(np.ones((size, size), dtype=bool))"
HEADS = "x.reshape(B, T, heads, C // heads).swapaxes(1, 2)"
SOFTMAX = "exps = np.exp(x.data - x.data.max(axis=axis, keepdims=True))"

# name: (file, old text, new text, tests/test_....py that should notice)
LIBRARY = {
    "softmax at temperature 1.01": (
        NUMPY + "functional.py",
        SOFTMAX,
        SOFTMAX.replace("x.data - ", "x.data / 1.01 - "),
        "functional",
    ),
    "softmax backward without its sum": (
        NUMPY + "functional.py",
        "grad - (grad * weights).sum(axis=axis, keepdims=True)",
        "grad",
        "parity",
    ),
    "attention backward wrong by a factor": (
        NUMPY + "functional.py",
        "by_weights *= scale",
        "by_weights *= 2 * scale",
        "functional",
    ),
    "scale by twice the head size": (
        NUMPY + "functional.py",
        "1 / math.sqrt(query.shape[-1])",
        "1 / math.sqrt(2 * query.shape[-1])",
        "functional",
    ),
    "mask shifted by one: sees the next": (NUMPY + "functional.py", MASK, MASK[:-1] + ", 1)", "functional"),
    "mask shifted by one: hides the diagonal": (NUMPY + "functional.py", MASK, MASK[:-1] + ", -1)", "functional"),
    "torch mask shifted by one": (
        TORCH + "functional.py",
        "torch.tril(torch.ones(size, size, dtype=torch.bool))",
        "torch.tril(torch.ones(size, size, dtype=torch.bool), 1)",
        "functional",
    ),
    "torch heads of query, key and value in another order": (
        TORCH + "functional.py",
        "return pieces.permute(2, 0, 3, 1, 4).contiguous().unbind(0)",
        "return pieces.permute(2, 0, 3, 1, 4).flip(2).contiguous().unbind(0)",
        "properties",
    ),
    "heads split by a bare reshape": (
        NUMPY + "functional.py",
        HEADS,
        "x.reshape(B, heads, T, C // heads)",
        "functional",
    ),
    "torch heads split by a bare reshape": (
        TORCH + "functional.py",
        HEADS,
        "x.reshape(B, heads, T, C // heads)",
        "functional",
    ),
    "torch heads of query, key and value mixed": (
        TORCH + "functional.py",
        "together.reshape(B, T, len(weights), heads, -1)",
        "together.reshape(B, T, heads, len(weights), -1).swapaxes(2, 3)",
        "functional",
    ),
    "torch weights of a row with nothing allowed are 0 / 0": (
        TORCH + "functional.py",
        "return weights if allow.any(-1).all() else weights.masked_fill(hidden, 0)",
        "return weights",
        "functional",
    ),
    "bench: the floor forgets a gradient": (
        "course_lib/bench.py",
        "            yield left.swapaxes(1, 2) @ grad\n",
        "",
        "bench",
    ),
    "cross-entropy: gradient of the sum": (
        NUMPY + "functional.py",
        "by_rows *= grad / len(targets)",
        "by_rows *= grad",
        "functional",
    ),
    "embedding: repeated ids counted once": (
        NUMPY + "functional.py",
        "onehot = ids.reshape(-1, 1) == np.arange(len(table))",
        "onehot = ids.reshape(-1, 1) == np.arange(len(table)); onehot &= onehot.cumsum(axis=0) == 1",
        "functional",
    ),
    "LayerNorm backward without the mean": (
        NUMPY + "functional.py",
        "(by_normed - mean - normed * along)",
        "(by_normed - normed * along)",
        "functional",
    ),
    "attention view shows the transpose": (
        WIDGET + "words.py",
        "return self.weights[self.layer, self.head]",
        "return self.weights[self.layer, self.head].T",
        "views",
    ),
    "attention view: cells that are not allowed are sent too": (
        WIDGET + "codec.py",
        "weights.reshape(-1) if allow is None else weights[allow]",
        "weights.reshape(-1)",
        "attention_widget",
    ),
    "attention view: eight bits a weight": (WIDGET + "codec.py", "STEPS = 65_535", "STEPS = 255", "attention_widget"),
    "attention view: exact numbers of the wrong head": (
        WIDGET + "view.py",
        'self.weights[layer, message["head"]]',
        "self.weights[layer, 0]",
        "attention_widget",
    ),
    "attention view: rows that do not sum to 1 go unnoticed": (
        WIDGET + "view.py",
        "np.abs(sums - 1) > 1e-3",
        "np.abs(sums - 1) > 1",
        "attention_widget",
    ),
    "attention view: a token can end the script of a page": (
        WIDGET + "page.py",
        '.replace("<", "\\\\u003c")',
        "",
        "attention_widget",
    ),
    "a saved notebook keeps its live view": (
        "course_lib/on_save.py",
        "data.pop(LIVE, None)",
        "pass",
        "attention_widget",
    ),
    "a head that is off still speaks": (
        "course_lib/interventions.py",
        "keep[layer, head] = 0",
        "keep[layer, head] = 1",
        "interventions",
    ),
    "without the scale, but with it": (
        "course_lib/interventions.py",
        "** -0.5 if scaled else 1.0",
        "** -0.5",
        "interventions",
    ),
    "cache: positions start at 0 again": (
        NUMPY + "models.py",
        "x = x + self.position[start:end]",
        "x = x + self.position[: end - start]",
        "cache",
    ),
    "torch cache: positions start at 0 again": (
        TORCH + "models.py",
        "x = x + self.position[start:end]",
        "x = x + self.position[: end - start]",
        "cache",
    ),
    "cache: handed out uncropped": (
        NUMPY + "cache.py",
        "return from_numpy(self.keys[layer, :, :, :end]), from_numpy(self.values[layer, :, :, :end])",
        "return from_numpy(self.keys[layer]), from_numpy(self.values[layer])",
        "cache",
    ),
    "cache: one layer for all": (TORCH + "models.py", "block(x, cache, layer)", "block(x, cache, 0)", "cache"),
    "cache: new tokens see each other": (
        TORCH + "modules.py",
        "self.allow[start : start + T, : start + T]",
        "self.allow[start + T - 1, : start + T]",
        "cache",
    ),
    "cache: counted before all layers are through": (
        NUMPY + "cache.py",
        "        return from_numpy(self.keys",
        "        self.length = end\n        return from_numpy(self.keys",
        "cache",
    ),
    "sampling: cached keys kept when the window slides": (
        "course_lib/generation.py",
        "if cache is not None and len(ids) <= model.context:",
        "if cache is not None:\n            cache.length = min(cache.length, model.context - 1)",
        "generation",
    ),
    "sampling: the prompt again at each step": (
        "course_lib/generation.py",
        "ids[cache.length :]",
        "ids[-1:] if cache.length else ids[:-1] or ids",
        "generation",
    ),
    "sampling: the model sees the first tokens": (
        "course_lib/generation.py",
        "np.array([ids[-model.context :]])",
        "np.array([ids[: model.context]])",
        "generation",
    ),
    "streaming: the stop button gets through": (
        "course_lib/generation.py",
        "except KeyboardInterrupt:",
        "except StopIteration:",
        "stream",
    ),
    "sampler view: bars ignore top-k": (
        "course_lib/views/sampler.py",
        "next_probabilities(self._logits, self.temperature, self.top_k)",
        "next_probabilities(self._logits, self.temperature)",
        "sampler_view",
    ),
    "sampler view: what is written ignores the seed": (
        "course_lib/views/sampler.py",
        "self.temperature, top_k, self.seed\n",
        "self.temperature, top_k\n",
        "sampler_view",
    ),
    "batches of one step weigh the same": (
        "course_lib/training/trainer.py",
        "[count / sum(kept) for count in kept]",
        "[1 / len(kept) for count in kept]",
        "training",
    ),
    "a step takes one batch too many": (
        "course_lib/training/trainer.py",
        "list(itertools.islice(batches, size))",
        "list(itertools.islice(batches, size + 1))",
        "training",
    ),
    "one more step, before the clipping": (
        "course_lib/training/trainer.py",
        "    norm = optimizer.clip_grad_norm(",
        "    optimizer.step()\n    norm = optimizer.clip_grad_norm(",
        "training",
    ),
    "tokens per second are batches": (
        "course_lib/training/trainer.py",
        "tokens += sum(np.size(y) for _, y in group)",
        "tokens += len(group)",
        "training",
    ),
    "rate 0 at the first step": (
        "course_lib/training/schedule.py",
        "(step + 1) / (self.warmup + 1)",
        "step / self.warmup",
        "training",
    ),
    "mean of batch means": (
        "course_lib/training/evaluation.py",
        "kept = int((targets != IGNORED).sum())",
        "kept = count * batch_size / len(x) * bool((targets != IGNORED).any())",
        "training",
    ),
    "dropout begins anew at a resume": (
        "course_lib/training/checkpoint.py",
        'if about["dropout"]:',
        "if False:",
        "properties",
    ),
    "the schedule begins anew at a resume": (
        "course_lib/training/checkpoint.py",
        'about.get("history") and',
        "None and",
        "properties",
    ),
    "a tied weight counted twice": ("course_lib/summary.py", "0 if again else prod", "prod", "summary"),
    "the floor looks at one token only": ("course_lib/text/floor.py", "x[:, :t]", "x[:, t - 1 : t]", "reproduce"),
    "reproduce forgets a verdict": (
        "course_lib/reproduce/checks.py",
        "return bool(holds)",
        "return True",
        "reproduce",
    ),
    "a recipe that forgets to clip": (
        "course_lib/recipes.py",
        "clip=self.clip, **options",
        "clip=None, **options",
        "reproduce",
    ),
    "a recipe whose validation windows overlap": (
        "course_lib/recipes.py",
        "*windows(validation_ids, context, stride=context)",
        "*windows(validation_ids, context)",
        "reproduce",
    ),
    "a rung measured on overlapping windows": (
        "course_lib/ladder.py",
        "windows(validation_ids, self.context, stride=self.context)",
        "windows(validation_ids, self.context)",
        "ladder",
    ),
    "a rung with another wiring": (
        "course_lib/ladder.py",
        '{**_HEADS, "wiring": "pre"}',
        '{**_HEADS, "wiring": "residual"}',
        "ladder",
    ),
    "cross-attention without the source mask": (
        NUMPY + "encoder_decoder.py",
        "self.cross(x, memory, memory, memory_allow)",
        "self.cross(x, memory, memory)",
        "encoder_decoder",
    ),
    "torch cross-attention reads itself": (
        TORCH + "encoder_decoder.py",
        "self.cross(x, memory, memory, memory_allow)",
        "self.cross(x, x, memory, memory_allow)",
        "encoder_decoder",
    ),
    "padding mask on the query axis": (
        NUMPY + "encoder_decoder.py",
        "F.check_allow(allow)[:, None, None, :]",
        "F.check_allow(allow)[:, None, :, None]",
        "encoder_decoder",
    ),
    "decoder without its causal mask": (
        TORCH + "encoder_decoder.py",
        "F.causal_mask(x.shape[1])",
        "F.causal_mask(x.shape[1]) | True",
        "encoder_decoder",
    ),
    "pre-norm instead of post-norm": (
        NUMPY + "encoder_decoder.py",
        "        x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory, memory_allow)))",
        "        x = x + self.dropout(self.cross(self.cross_norm(x), memory, memory, memory_allow))",
        "encoder_decoder",
    ),
    "embeddings not times √C": (NUMPY + "encoder_decoder.py", "math.sqrt(width)", "1.0", "encoder_decoder"),
    "dropout missing inside the feed-forward": (
        NUMPY + "encoder_decoder.py",
        "self.outer(self.dropout(F.relu(self.inner(x))))",
        "self.outer(F.relu(self.inner(x)))",
        "encoder_decoder",
    ),
    "padding counts in the loss": (
        NUMPY + "encoder_decoder.py",
        "F.cross_entropy(logits, labels, ignore_index=self.padding)",
        "F.cross_entropy(logits, labels)",
        "encoder_decoder",
    ),
    "sine and cosine not in turn": (
        "course_lib/positions.py",
        "table[:, 1::2] = np.cos",
        "table[:, 1::2] = np.sin",
        "encoder_decoder",
    ),
    "idiomatic attention drops out in evaluation": (
        "course_lib/idiomatic/encoder_decoder.py",
        "self.dropout if self.training else 0.0",
        "self.dropout",
        "encoder_decoder",
    ),
    "idiomatic matrices not transposed": (
        "course_lib/idiomatic/weights.py",
        "torch.tensor(state[raw].T if turned else state[raw])",
        "torch.tensor(state[raw])",
        "encoder_decoder",
    ),
    "decoder is given its label": (
        "course_lib/text/pairs.py",
        "return target[:, :-1], target[:, 1:]",
        "return target[:, 1:], target[:, 1:]",
        "numbers",
    ),
    "held-out numbers train": (
        "course_lib/text/numbers.py",
        "rest = np.sort(numbers[count:])",
        "rest = np.sort(numbers)",
        "numbers",
    ),
    "lengths not equally often": (
        "course_lib/text/pairs.py",
        "self._starts[group] + self._rng.integers(self._sizes[group])",
        "self._rng.integers(len(self._examples), size=self.batch_size)",
        "numbers",
    ),
    "greedy goes on after the end": (
        "course_lib/decoding.py",
        "return ids[: ids.index(end)] if end in ids else ids",
        "return ids",
        "decoding",
    ),
    "beam compares sums though told not to": (
        "course_lib/decoding.py",
        "key=lambda h: -h.score(normalised)",
        "key=lambda h: -h.score(False)",
        "decoding",
    ),
    "beam forgets what has ended": (
        "course_lib/decoding.py",
        "found = [h for h in best if h.ended]",
        "found = []",
        "decoding",
    ),
    "alignment counts the end token": (
        "course_lib/numbers_recipe.py",
        "(hit & words[:, None]).sum(axis=(1, 3)) / words.sum()",
        "hit.sum(axis=(1, 3)) / words.size",
        "numbers",
    ),
    "GPT-2: key and query exchanged": (
        "course_lib/gpt2.py",
        'zip(("query", "key", "value"), three)',
        'zip(("key", "query", "value"), three)',
        "gpt2",
    ),
    "GPT-2: number of heads not read": ("course_lib/gpt2.py", '.get("n_head")', '.get("heads")', "gpt2"),
    "broadcasting not undone": (NUMPY + "tensor.py", "if grad.shape == shape:", "if True:", "autograd"),
    "gradients overwrite": (
        NUMPY + "tensor.py",
        "arrived[key] + contribution if key in arrived else contribution",
        "contribution",
        "autograd",
    ),
    "idiomatic GPT sees the future": (
        "course_lib/idiomatic/gpt.py",
        "is_causal=True",
        "is_causal=False",
        "idiomatic_gpt",
    ),
    "idiomatic AdamW's means in another orientation": (
        "course_lib/idiomatic/training.py",
        "(piece.T if t else piece for",
        "(piece for",
        "idiomatic_gpt",
    ),
    "idiomatic AdamW decays everything": (
        "course_lib/idiomatic/training.py",
        '"weight_decay": 0.0}',
        '"weight_decay": weight_decay}',
        "idiomatic_gpt",
    ),
    "mixed precision in name only": (
        "course_lib/idiomatic/training.py",
        "if self.mixed else",
        "if False else",
        "idiomatic_gpt",
    ),
    "data-parallel: all processes take the same rows": (
        "course_lib/train_ddp.py",
        "yield x[self.rank :: self.world], y[self.rank :: self.world]",
        "yield x[:: self.world], y[:: self.world]",
        "train_ddp",
    ),
    "data-parallel: gradients are not averaged": (
        "course_lib/train_ddp.py",
        "OnDevice(parallel), optimizer",
        "OnDevice(model), optimizer",
        "train_ddp",
    ),
    "data-parallel: a resumed run draws its batches anew": (
        "course_lib/train_ddp.py",
        "        batches.load_state(kept.batches_state)\n",
        "",
        "train_ddp",
    ),
    "data-parallel: a resumed run forgets its schedule": (
        "course_lib/train_ddp.py",
        "schedule(done + step)",
        "schedule(step)",
        "train_ddp",
    ),
    "arithmetic: backward as long as forward": (
        "course_lib/arithmetic.py",
        "return 3 * forward",
        "return 2 * forward",
        "arithmetic",
    ),
    "arithmetic: keys without values": (
        "course_lib/arithmetic.py",
        "return 2 * config.layers * batch",
        "return config.layers * batch",
        "arithmetic",
    ),
    "arithmetic: activations of the MLP forgotten": (
        "course_lib/arithmetic.py",
        '"gelu": 10',
        '"gelu": 6',
        "arithmetic",
    ),
    "GPT-2 with a cache: each step at position 0": (
        "course_lib/numpy_track/models.py",
        "self.position[start:end]",
        "self.position[: ids.shape[1]]",
        "gpt2",
    ),
    "bench of GPT-2: NumPy's process loads PyTorch": (
        "course_lib/bench_gpt2.py",
        'if kind != "numpy":',
        "if kind:",
        "bench_gpt2",
    ),
    "muon: no look ahead": (
        NUMPY + "muon.py",
        "ahead = self.momentum * mean + (1 - self.momentum) * p.grad",
        "ahead = mean",
        "muon",
    ),
    "torch muon: no look ahead": (
        TORCH + "muon.py",
        "ahead = self.momentum * mean + (1 - self.momentum) * p.grad",
        "ahead = mean",
        "muon",
    ),
    "muon: the decay is of the new value": (
        NUMPY + "muon.py",
        "            p.data *= 1 - self.rate * self.weight_decay\n"
        "            p.data -= self.rate * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)\n",
        "            p.data -= self.rate * 0.2 * math.sqrt(max(p.shape)) * orthogonal(ahead)\n"
        "            p.data *= 1 - self.rate * self.weight_decay\n",
        "muon",
    ),
    "torch muon: matrices do not decay": (
        TORCH + "muon.py",
        "            p.data *= 1 - self.rate * self.weight_decay\n",
        "",
        "muon",
    ),
    "torch muon: a step as long as the rows say": (
        TORCH + "muon.py",
        "math.sqrt(max(p.shape))",
        "math.sqrt(p.shape[0])",
        "muon",
    ),
    "muon: four steps instead of five": (NUMPY + "muon.py", "steps=5", "steps=4", "muon"),
    "muon: the gradient is overwritten": (NUMPY + "muon.py", "x = x / max(norm", "x /= max(norm", "muon"),
    "muon: a norm of tiny numbers is 0": (NUMPY + "muon.py", "norm(x.astype(np.float64))", "norm(x)", "muon"),
    "torch muon: a norm of tiny numbers is 0": (TORCH + "muon.py", "norm(x.double())", "norm(x)", "muon"),
    "muon: each part clipped by itself": (
        NUMPY + "muon.py",
        "clip_grad_norm([part.flat for part in self.parts], max_norm)",
        "math.hypot(*[clip_grad_norm([part.flat], max_norm) for part in self.parts])",
        "muon",
    ),
    "muon: gradients of matrices add up": (
        NUMPY + "muon.py",
        "            part.zero_grad()",
        "            self.others.zero_grad()",
        "muon",
    ),
    "torch muon: matrices that another took unnoticed": (
        TORCH + "muon.py",
        "            part.check_owner()",
        "            self.others.check_owner()",
        "muon",
    ),
    "muon: the schedule does not reach the matrices": (
        NUMPY + "muon.py",
        "p.data -= self.rate * 0.2",
        "p.data -= self.parts[0].rate * 0.2",
        "muon",
    ),
    "muon: means begin anew at a resume": (
        NUMPY + "muon.py",
        "mean[...] = piece.reshape(mean.shape)",
        "mean[...] = 0 * piece.reshape(mean.shape)",
        "muon",
    ),
    "torch muon: a wrong state is half loaded": (
        TORCH + "muon.py",
        'if np.shape(state["matrices"]) != (sum(sizes),):',
        'if np.size(state["matrices"]) != sum(sizes):',
        "muon",
    ),
    "muon: a matrix named twice": (NUMPY + "muon.py", "len(chosen) == len(self.matrices) > 0", "bool(chosen)", "muon"),
    "muon: a recipe hands it the tables too": (
        "course_lib/recipes.py",
        "[p for p in blocks if p.ndim == 2]",
        "[p for p in model.parameters() if p.ndim == 2]",
        "muon",
    ),
    "muon: a recipe with a misspelt optimiser trains with AdamW": (
        "course_lib/recipes.py",
        'if self.optimizer == "AdamW":',
        "if self.optimizer:",
        "muon",
    ),
}


def library_change(path, old, new, tests):
    def change(copy):
        copy.replace(path, old, new)
        return [f"tests/test_{tests}.py"], f"test_{tests}.py"

    return change


for _name, _entry in LIBRARY.items():
    SABOTAGES[f"library: {_name}"] = library_change(*_entry)


# ------------------------------------------------------------------ the view in the browser
BROWSER = "tests/browser/test_attention_view_in_browser.py"


def browser_change(path, old, new, test):
    def change(copy):
        copy.replace(WIDGET + "js/" + path, old, new)
        return [BROWSER], test

    return change


SABOTAGES["browser: cells that are not allowed are drawn as zero"] = browser_change(
    "heatmap.js", "if (values[n] === values[n] && j >= hidden) pixels", "if (j >= hidden) pixels", "test_not_allowed"
)


@sabotage("browser: keys of the view reach JupyterLab")
def _(copy):
    """Two things hold them back, each alone is enough: the mark on the grid, and the end of the event at the view."""
    copy.replace(WIDGET + "js/view.js", "|| event.stopPropagation()", "|| 0")
    copy.replace(WIDGET + "js/view.js", '"data-lm-suppress-shortcuts": "true" }, parts.base', "}, parts.base")
    return [BROWSER], "test_a_walk_by_keyboard_alone"


SABOTAGES["browser: rows and columns exchanged under the mouse"] = browser_change(
    "heatmap.js", "return { query: i, key: j };", "return { query: j, key: i };", "test_hover_reads"
)


# ------------------------------------------------------------------ a notebook that computes something else
def source_change(pattern, new, where=compared):
    """Replace the first match in a cell that prints numbers; nbval must see other numbers in that very cell."""

    def change(copy):
        path, cell = copy.edit_book(
            lambda c: where(c) and re.search(pattern, c.source) and re.search(r"\d", printed(c)),
            lambda book, c: c.update(source=re.sub(pattern, new, c.source, count=1)),
        )
        return [path], cell.id

    return change


def shows_what_it_draws(cell):
    return compared(cell) and ("seed=" in cell.source or re.search(r"\d\.\d\d", printed(cell)))


SABOTAGES["notebook: another seed"] = source_change(
    r"(default_rng\(|seed=|manual_seed\()\d+", r"\g<1>98765", shows_what_it_draws
)
SABOTAGES["notebook: another learning rate"] = source_change(
    r"(?m)^((?! *def ).*\b(?:rate|lr)=)[\d.e-]+", r"\g<1>0.0123"
)


@sabotage("notebook: a printed number changed")
def _(copy):
    def change(book, cell):
        out = next(o for o in cell.outputs if re.search(r"\d", o.get("text", "")))
        out.text = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), out.text, count=1)

    path, cell = copy.edit_book(lambda c: compared(c) and re.search(r"\d", printed(c)), change)
    return [path], cell.id


def asserts(cell, word=""):
    return code(cell) and re.search(rf"(?m)^assert .*{word}", cell.source)


def negate(book, cell):
    cell.source = re.sub(r"(?m)^assert (.*?)((?:,\s*f?[\"'].*)?)$", r"assert not (\1)", cell.source, count=1)


@sabotage("notebook: an assertion made false")
def _(copy):
    path, cell = copy.edit_book(lambda c: asserts(c) and ast_ok(c, negate), negate)
    return [path], cell.id


@sabotage("notebook: a loss assertion made false")
def _(copy):
    path, cell = copy.edit_book(lambda c: asserts(c, "loss") and ast_ok(c, negate), negate)
    return [path], cell.id


def ast_ok(cell, change):
    """Whether the cell is still Python after the change: a syntax error would be noticed for the wrong reason."""
    tried = nbformat.from_dict(dict(cell))
    change(None, tried)
    try:
        ast.parse(tried.source)
    except SyntaxError:
        return False
    return True


# ------------------------------------------------------------------ things deleted
def removal(wanted):
    def change(copy):
        path, _ = copy.edit_book(wanted, delete)
        return [FILES], f"{stem(path)}-manifest]"

    return change


def delete(book, cell):
    book.cells.remove(cell)
    book.update(nb.clean(book))  # as someone would who knows the rules of the house


SABOTAGES["deleted: a leaf cell"] = removal(lambda c: compared(c) and not assigns(c) and "import" not in c.source)
SABOTAGES["deleted: an assertion cell"] = removal(asserts)
SABOTAGES["deleted: a text cell"] = removal(lambda c: c.cell_type == "markdown" and not c.source.startswith("# "))
SABOTAGES["deleted: a check of an exercise"] = removal(lambda c: "check" in nb.tags(c))
SABOTAGES["deleted: a solution of an exercise"] = removal(lambda c: "solution" in nb.tags(c))


def assigns(cell):
    try:
        body = ast.parse(cell.source).body
    except SyntaxError:
        return True
    return not all(isinstance(node, ast.Expr) for node in body)


@sabotage("deleted: a cell that others need")
def _(copy):
    path, _ = copy.edit_book(lambda c: code(c) and c.source.startswith(("import", "from")), delete)
    return [path], path


@sabotage("deleted: a notebook")
def _(copy):
    if not copy.books():
        raise DoesNotApply("no notebook")
    copy.books()[-1].unlink()
    return [FILES], "test_no_notebook_vanished"


@sabotage("deleted: a figure")
def _(copy):
    path, cell = copy.edit_book(
        lambda c: compared(c) and any("image/png" in o.get("data", {}) for o in c.outputs),
        lambda book, c: c.update(source="pass"),
    )
    return [path], cell.id


# ------------------------------------------------------------------ notebooks as files
@sabotage("file: outputs stripped")
def _(copy):
    def strip(book, cell):
        for c in filter(code, book.cells):
            c.update(outputs=[], execution_count=None)

    path, cell = copy.edit_book(compared, strip)
    return [path], path


def file_change(change, rule):
    def sabotage_(copy):
        path, _ = copy.edit_book(lambda c: True, change)
        return [FILES], f"{stem(path)}-{rule}]"

    return sabotage_


SABOTAGES["file: execution times kept"] = file_change(
    lambda book, cell: cell.metadata.update(execution={"iopub.execute_input": "2026-01-01"}), "committed_form"
)
SABOTAGES["file: widget state kept"] = file_change(
    lambda book, cell: book.metadata.update(widgets={"application/vnd.jupyter.widget-state+json": {}}), "widget_state"
)
SABOTAGES["file: another kernel"] = file_change(
    lambda book, cell: book.metadata.kernelspec.update(name="my-env"), "kernel"
)
SABOTAGES["file: a tag misspelt"] = file_change(
    lambda book, cell: cell.metadata.update(tags=["nbval-ignore-outputs"]), "known_tags"
)
SABOTAGES["file: a picture from the network"] = file_change(
    lambda book, cell: cell.update(source=cell.source + "\n\n![cat](https://example.org/cat.png)"), "links"
)
SABOTAGES["file: a link to nothing"] = file_change(
    lambda book, cell: cell.update(source=cell.source + "\n\n[cat](99_cat.ipynb)"), "links"
)


@sabotage("file: a figure without words")
def _(copy):
    def mute(book, cell):
        after = book.cells[book.cells.index(cell) + 1]
        after.source = after.source.replace("*Figure:*", "Figure:")
        for out in cell.outputs:
            out.metadata = nbformat.from_dict({})

    path, _ = copy.edit_book(lambda c: code(c) and any("image/png" in o.get("data", {}) for o in c.outputs), mute)
    return [FILES], f"{stem(path)}-alt_text]"


@sabotage("file: alt text that says something else")
def _(copy):
    def change(book, cell):
        out = next(o for o in cell.outputs if "alt" in o.get("metadata", {}).get("image/png", {}))
        out.metadata["image/png"]["alt"] += ", rising"

    path, cell = copy.edit_book(
        lambda c: compared(c) and any("alt" in o.get("metadata", {}).get("image/png", {}) for o in c.outputs), change
    )
    return [path], cell.id


# ------------------------------------------------------------------ what stock nbval lets pass
@sabotage("nbval: unknown magic in an uncompared cell")
def _(copy):
    path, cell = copy.edit_book(
        lambda c: code(c) and "nbval-ignore-output" in nb.tags(c),
        lambda book, c: c.update(source="%notmagic\n" + c.source),
    )
    return [path], cell.id


@sabotage("nbval: an error promised and not raised")
def _(copy):
    path, cell = copy.edit_book(
        lambda c: code(c) and "raises-exception" in nb.tags(c),
        lambda book, c: c.update(source="pass", metadata={"tags": ["raises-exception", "nbval-ignore-output"]}),
    )
    return [path], cell.id


@sabotage("nbval: order of a set printed")
def _(copy):
    text = "the quick brown fox jumps over a lazy dog"
    path, cell = copy.edit_book(
        lambda c: compared(c) and not c.outputs,
        lambda book, c: c.update(
            source=c.source + f"\nprint(set({text!r}.split()))", outputs=stream(f"{set(text.split())}\n")
        ),
    )
    return [path], cell.id


@sabotage("nbval: the kernel dies, as out of memory")
def _(copy):
    path, cell = copy.edit_book(compared, lambda book, c: c.update(source=c.source + "\nimport os; os._exit(1)"))
    return [path], cell.id


@sabotage("nbval: the network in a cell")
def _(copy):
    path, cell = copy.edit_book(
        compared,
        lambda book, c: c.update(
            source=c.source
            + "\nimport urllib.request\ntry:\n    urllib.request.urlopen('http://192.0.2.1', timeout=1)\n"
            "except Exception:\n    pass"
        ),
    )
    return [path], cell.id


# ------------------------------------------------------------------ one truth in three places
def edit_function(book, cell):
    """One more statement in the first function of a cell."""
    cell.source = re.sub(r"(?m)^( *)def (.*):$", r"\1def \2:\n\1    assert True", cell.source, count=1)


@sabotage("truth: a teaching cell edited away from the library")
def _(copy):
    path, cell = copy.edit_book(lambda c: "teaches" in nb.tags(c) and ast_ok(c, edit_function), edit_function)
    return [TEACHING], f"{stem(path)}-{cell.id}"


@sabotage("truth: the library edited away from a teaching cell")
def _(copy):
    path, cell = copy.edit_book(lambda c: "teaches" in nb.tags(c), lambda book, c: None)
    shown = definitions.taught(cell)[0]
    file = copy.root / shown.file
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    last = definitions.defined_in(shown.file)[shown.name].body[-1]
    lines.insert(last.lineno - 1, " " * last.col_offset + "assert True\n")
    file.write_text("".join(lines), encoding="utf-8")
    return [TEACHING], f"{stem(path)}-{cell.id}"


@sabotage("truth: a copy of the library in a cell")
def _(copy):
    copy.edit_book(compared, lambda book, c: c.update(source=c.source + "\n\ndef softmax(x):\n    return x"))
    return [TEACHING], "test_no_unmarked_copies"


@sabotage("truth: a twin takes another default")
def _(copy):
    copy.replace(TORCH + "functional.py", "def softmax(x, axis=-1)", "def softmax(x, axis=1)")
    return [TWINS], "functional.py"


@sabotage("truth: a twin renames an argument")
def _(copy):
    copy.replace(TORCH + "functional.py", "def merge_heads(x)", "def merge_heads(y)")
    return [TWINS], "functional.py"


# ------------------------------------------------------------------ the guards themselves
@sabotage("guard: the sanitizer eats all numbers")
def _(copy):
    path = copy.root / "nbval_sanitize.cfg"
    path.write_text(path.read_text(encoding="utf-8") + "\nregex: \\d+\nreplace: N\n", encoding="utf-8")
    return ["tests/test_sanitize.py"], "test_keeps"


@sabotage("guard: a sanitizer rule malformed")
def _(copy):
    copy.replace("nbval_sanitize.cfg", "replace: CELL.py:LINE", "replace:CELL.py:LINE")
    return ["tests/test_sanitize.py"], "test_every_rule_is_read"


@sabotage("guard: a notebook beyond its time")
def _(copy):
    copy.replace("tools/nb.py", "BUDGET = 60 ", "BUDGET = 0.01 ")
    path = next((p for p in copy.books() if nb.budget(p) == nb.BUDGET), None)
    if path is None:
        raise DoesNotApply("no notebook")
    return [path.relative_to(copy.root).as_posix()], "time budget"


@sabotage("guard: a test that goes to the network")
def _(copy):
    (copy.root / "tests" / "test_online.py").write_text(
        "import urllib.request\n\ndef test_online():\n    try:\n"
        "        urllib.request.urlopen('http://192.0.2.1', timeout=1)\n    except Exception:\n        pass\n",
        encoding="utf-8",
    )
    return ["tests/test_online.py", "tests/test_sanitize.py"], "test_online"


@sabotage("guard: a manifest without a notebook")
def _(copy):
    path = copy.root / "notebooks" / "manifest.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    if not known:
        raise DoesNotApply("no notebook")
    known.popitem()
    path.write_text(json.dumps(known), encoding="utf-8")
    return [FILES], "test_no_notebook_vanished"


# ------------------------------------------------------------------ exercises, progress and working copies
EXERCISES = "course_lib/exercises/"

# name: (file, old text, new text, test file that should notice, piece of the test's name)
EXERCISE_CHANGES = {
    "shapes not compared": (
        EXERCISES + "compare.py",
        "if tuple(got.shape) != want.shape:",
        "if tuple(got.shape) != want.shape and got.size != want.size:",
        "tests/test_exercise_answers.py",
        "wrong_form",
    ),
    "dtypes not compared": (
        EXERCISES + "compare.py",
        "if dtype_name(got) != dtype_name(want):",
        "if False:",
        "tests/test_exercise_answers.py",
        "float64_for_float32",
    ),
    "another input's dtype named": (
        EXERCISES + "words.py",
        'return f"{name}[0]" if several else name',
        'return "x"',
        "tests/test_exercise_pages.py",
        "dtype_is_that_of_an_input",
    ),
    "a name gets a capital": (
        EXERCISES + "show.py",
        'if not re.match(r"\\w+[._(\\[]\\w", text):',
        "if True:",
        "tests/test_exercise_pages.py",
        "name_keeps_its_letters",
    ),
    "length of the right list told": (
        EXERCISES + "answers.py",
        'if hasattr(answer, "shape") and hasattr(right, "shape"):',
        "if True:",
        "tests/test_exercises.py",
        "how_long_the_right_one_is",
    ),
    "no message for an error in an examination": (
        EXERCISES + "judge.py",
        ", likely=_why_error(exercise, outcome.error))",
        ")",
        "tests/test_exercise_answers.py",
        "gets_its_message",
    ),
    "edits in place accepted": (
        EXERCISES + "judge.py",
        "if outcome.changed:",
        "if False:",
        "tests/test_exercise_answers.py",
        "in_place",
    ),
    "calls of the library accepted": (
        EXERCISES + "judge.py",
        "if outcome.called:",
        "if False:",
        "tests/test_exercise_answers.py",
        "call_of_the_library",
    ),
    "the stub holds the answer": (
        EXERCISES + "exercise.py",
        'return "\\n".join([*lines[: head.end_lineno if head else body[0].lineno - 1], STUB])',
        "return text",
        "tests/test_exercise_answers.py",
        "stub_is_not_attempted",
    ),
    "a solution broken": (
        EXERCISES + "nb05.py",
        "return x.swapaxes(1, 2).reshape(B, T, H * D)",
        "return x.reshape(B, T, H * D)",
        "tests/test_exercise_answers.py",
        "solution_is_right[05.2]",
    ),
    "a message for another mistake": (
        EXERCISES + "nb04_mask.py",
        "the diagonal is hidden: a position may look at itself",
        "rows and columns are exchanged",
        "tests/test_exercise_answers.py",
        "gets_its_message[04.1",
    ),
    "a decisive case dropped": (
        EXERCISES + "nb03.py",
        "        (np.array([[1000.0, 1001.0], [0.0, 1.0]]),),\n"
        "        (np.array([[-1000.0, -1001.0], [0.0, 1000.0]]),),\n",
        "",
        "tests/test_exercise_answers.py",
        "gets_its_message[03.1",
    ),
    "a broken model that does not leak": (
        EXERCISES + "nb06_bug.py",
        "centred = x - x.mean(axis=1, keepdims=True)\n    variance = (centred * centred).mean(axis=1, keepdims=True)",
        "centred = x - x.mean(axis=2, keepdims=True)\n    variance = (centred * centred).mean(axis=2, keepdims=True)",
        "tests/test_exercise_answers.py",
        "loss_of_a_broken_one",
    ),
    "a cut gradient accepted": (
        EXERCISES + "mended.py",
        "    if lost:\n",
        "    if False:\n",
        "tests/test_exercise_answers.py",
        "gradient_that_is_cut",
    ),
    "numbers in quotes accepted": (
        EXERCISES + "answers.py",
        "if sentence := not_numbers(answer):",
        "if False:",
        "tests/test_exercise_pages.py",
        "words_and_gaps",
    ),
    "two numbers that look the same": (
        EXERCISES + "words.py",
        "for digits in (4, 6, 8, 10, 12, 17))",
        "for digits in (4,))",
        "tests/test_exercise_pages.py",
        "two_numbers_that_differ",
    ),
    "a mended forward with other numbers accepted": (
        EXERCISES + "mended.py",
        "return None if np.allclose(out, expected, rtol=0, atol=1e-9) else",
        "return None if True else",
        "tests/test_exercise_answers.py",
        "gets_its_message[06.3",
    ),
    "an unknown exercise stops the page": (
        EXERCISES + "commands.py",
        "except LookupError as error:",
        "except KeyError as error:",
        "tests/test_exercise_pages.py",
        "unknown_exercise",
    ),
    "progress written over the old file": (
        EXERCISES + "store.py",
        'part = file.with_name(f"{file.name}.{os.getpid()}.part")',
        "part = file",
        "tests/test_exercise_progress.py",
        "killed_at_the_worst",
    ),
    "a damaged progress file stops the page": (
        EXERCISES + "store.py",
        "except (ValueError, KeyError, TypeError, AttributeError):",
        "except KeyError:",
        "tests/test_exercise_progress.py",
        "damaged_file",
    ),
    "an error accepted without its words": (
        EXERCISES + "judge.py",
        "missing = [word for word in want.args if word not in str(outcome.error)]",
        "missing = []",
        "tests/test_exercise_answers.py",
        "gets_its_message[01.1",
    ),
    "the row that may look at nothing not tried": (
        EXERCISES + "nb04_allowed.py",
        "_EMPTY = np.array([[True, True, False], [False, False, False]])",
        "_EMPTY = np.array([[True, True, False], [False, True, False]])",
        "tests/test_exercise_answers.py",
        "gets_its_message[04.4",
    ),
    "queries and keys exchanged in a solution": (
        EXERCISES + "nb11_parts.py",
        "query, key, value = x @ W_query, memory @ W_key, memory @ W_value",
        "query, key, value = memory @ W_query, x @ W_key, memory @ W_value",
        "tests/test_exercise_answers.py",
        "solution_is_right[11.2]",
    ),
    "a translator whose padding nobody reads": (
        EXERCISES + "nb11_bug.py",
        "return model.decode(inputs, memory, target_allow=target_allow)",
        "return model.decode(inputs, memory, allow, target_allow)  # both",
        "tests/test_exercise_answers.py",
        "loss_of_a_broken_one",
    ),
    "padding always the id 0 where it is tried": (
        EXERCISES + "nb11_bug.py",
        "for padding in (PADDING, 3):",
        "for padding in (PADDING,):",
        "tests/test_exercise_answers.py",
        "gets_its_message[11.6",
    ),
    "a cut memory of the encoder accepted": (
        EXERCISES + "nb11_bug.py",
        "    return _gradient_problem(function)",
        "    return None",
        "tests/test_exercise_answers.py",
        "gets_its_message[11.6",
    ),
    "heads measured together taken for one": (
        EXERCISES + "nb12_bug.py",
        "pairs = {(int(layer), int(head)) for layer, head in off}",
        "pairs = {(int(layer), int(head)) for layer, head in off[-1:]}",
        "tests/test_exercise_answers.py",
        "loss_of_a_broken_one",
    ),
    "equal parts alone averaged": (
        EXERCISES + "nb13_gradient.py",
        "        (list(arrays(0, (2, 3), (2, 3))), [3, 1]),\n        (list(arrays(1, (4,), (4,), (4,))), [5, 0, 2]),\n"
        '        (list(arrays(2, (3, 2), (3, 2), dtype="float32")), [24, 8]),\n',
        "",
        "tests/test_exercise_answers.py",
        "gets_its_message[13.3",
    ),
    "the head of a GPT-2 counted twice": (
        EXERCISES + "nb13_sizes.py",
        "tables = vocabulary_size * C + context * C",
        "tables = 2 * vocabulary_size * C + context * C",
        "tests/test_exercise_answers.py",
        "solution_is_right[13.1]",
    ),
    "a square matrix as it lies accepted": (
        EXERCISES + "nb13_bug.py",
        "if not np.array_equal(array, state[name])]",
        "if array.shape != state[name].shape]",
        "tests/test_exercise_answers.py",
        "loss_of_a_broken_one",
    ),
    "progress saved without the lock": (
        EXERCISES + "store.py",
        "with locked(path()):",
        "with contextlib.nullcontext():",
        "tests/test_exercise_progress.py",
        "same_instant",
    ),
    "a lock that a killed kernel left stays": (
        EXERCISES + "lock.py",
        "STALE = 5 ",
        "STALE = 1e12 ",
        "tests/test_exercise_progress.py",
        "killed_kernel_left",
    ),
    "the verdict by colour alone": (
        EXERCISES + "show.py",
        "{escape(title)}: <strong>{verdict.state}</strong></div>",
        "{escape(title)}</div>",
        "tests/test_exercise_pages.py",
        "status_in_words",
    ),
    "a stale task on a page": (
        "tools/solved.py",
        "        if tasks != [",
        "        if False and tasks != [",
        "tests/test_solved_copies.py",
        "is_another_one",
    ),
    "a solution whose names a notebook lacks": (
        "tools/solved.py",
        "    for name in sorted(wanted - imported):",
        "    for name in ():",
        "tests/test_solved_copies.py",
        "does_not_find",
    ),
    "a solved copy that is not solved": (
        "tools/solved.py",
        "        cell.source = find(key).solved\n",
        "        find(key)\n",
        "tests/test_solved_copies.py",
        "all_are_right",
    ),
    "a learner's copy overwritten": (
        "tools/working_copies.py",
        'if mine == known.get("given"):',
        "if True:",
        "tests/test_working_copies.py",
        "never_overwritten",
    ),
    "a new version offered again and again": (
        "tools/working_copies.py",
        '    known["offered"] = new["content"]\n',
        "",
        "tests/test_working_copies.py",
        "never_overwritten",
    ),
    "working copies seen by git": (".gitignore", "/my_course/\n", "", "tests/test_working_copies.py", "git_pull"),
}


def exercise_change(path, old, new, test, name):
    def change(copy):
        copy.replace(path, old, new)
        return [test], name

    return change


for _name, _entry in EXERCISE_CHANGES.items():
    SABOTAGES[f"exercise: {_name}"] = exercise_change(*_entry)
