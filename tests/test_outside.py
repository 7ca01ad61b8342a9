"""What the course meets outside itself: signals, other processes, and files that others have written."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as torch_save
from test_gpt2 import IDS, checkpoint, folder_with, reference
from track_tools import NUMPY, ROOT, array, assert_same, both_tracks

from course_lib.common.config import GPTConfig
from course_lib.exercises import store
from course_lib.idiomatic import train_ddp
from course_lib.idiomatic.launch import launch, what_failed
from course_lib.inference import load_tokenizer
from course_lib.inference.gpt2 import load_gpt2, to_gpt2_state
from course_lib.inference.published import read_weights
from course_lib.text import CharTokenizer, download
from course_lib.training import load_checkpoint, save_checkpoint, train
from course_lib.training.stop import StopButton
from tools import notebook, working_copies


# ------------------------------------------------------------------ signals
def refused(number, handler):
    raise ValueError("signal only works in main thread of the main interpreter")


@pytest.mark.parametrize(
    ("name", "before"),
    [("getsignal", None), ("getsignal", signal.SIG_IGN), ("signal", refused)],
    ids=["from C", "ignored", "refused"],
)
def test_training_where_the_interrupt_is_not_ours_to_catch(name, before, monkeypatch):
    """A handler installed from C, an ignored signal, a second interpreter: training runs, the handler stays."""
    monkeypatch.setattr(signal, name, before if callable(before) and name == "signal" else lambda number: before)
    if name == "getsignal":
        monkeypatch.setattr(signal, "signal", lambda *arguments: pytest.fail("the signal was touched"))
    model = NUMPY.models.Bigram(3)
    history = train(
        model, NUMPY.optim.AdamW(model.parameters(), 0.1), [(np.array([[0, 1]]), np.array([[1, 2]]))] * 4,
        progress=False,
    )  # fmt: skip
    assert history.steps == 4 and not history.stopped


@pytest.mark.parametrize(
    "before",
    [signal.SIG_DFL, signal.default_int_handler, lambda number, frame: None],
    ids=["default", "Python's", "own"],
)
def test_a_handler_that_python_knows_comes_back(before):
    mine = signal.signal(signal.SIGINT, before)
    try:
        with StopButton() as stop:
            signal.raise_signal(signal.SIGINT)
        assert stop.pressed and signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, mine)


# ------------------------------------------------------------------ several writers of one file
SMALL = GPTConfig(3, width=8, heads=1, layers=1)
SAVER = """
import sys
from course_lib.common.config import GPTConfig
from course_lib.numpy_track import GPT
from course_lib.text import CharTokenizer
from course_lib.training import save_checkpoint
model = GPT(GPTConfig(3, width=8, heads=1, layers=1), seed=int(sys.argv[2]))
for _ in range(60):
    save_checkpoint(sys.argv[1], model, CharTokenizer("abc"), note=sys.argv[2])
"""


def test_two_processes_save_one_checkpoint(tmp_path):
    """None fails, the file is whole, and nothing is left over."""
    path = tmp_path / "shared"
    command = [sys.executable, "-c", SAVER, str(path)]
    writers = [
        subprocess.Popen([*command, seed], cwd=ROOT, stderr=subprocess.PIPE, encoding="utf-8", env=os.environ)
        for seed in "123"
    ]
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["shared"] and load_checkpoint(path).note in "123"


WRITERS = {
    "checkpoint": lambda path: save_checkpoint(path, NUMPY.models.GPT(SMALL), CharTokenizer("abc")),
    "progress": lambda path: store.save({"01.1": "done"}),
    "notebook": lambda path: notebook.replace(path, "{}"),
    "working copy": lambda path: working_copies._write(path, b"{}"),
    "download": lambda path: download.download("https://example.org/text"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_each_writer_has_a_temporary_file_of_its_own(kind, tmp_path, monkeypatch):
    """Also threads of one process, and containers that share a folder, where every process has the same number."""
    path, names, barrier, errors = tmp_path / "file.ipynb", [], threading.Barrier(4), []
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)
    monkeypatch.setattr(download, "what_is_wrong", lambda content, where: "")
    monkeypatch.setattr(
        pooch, "HTTPDownloader", lambda **options: lambda url, part, mine: Path(part).write_bytes(b"text")
    )
    rename = os.replace

    def together(part, final):
        names.append(str(part))
        barrier.wait(10)  # all have written, none has renamed
        rename(part, final)

    monkeypatch.setattr(os, "replace", together)

    def write():
        try:
            WRITERS[kind](path)
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(set(names)) == 4
    assert len(list(tmp_path.iterdir())) == 1


# ------------------------------------------------------------------ GPT-2: settings
def gpt2_logits(folder, track, ids=IDS):
    return array(load_gpt2(folder, track.name, "float64")(ids)[0])


def with_scale(arrays, factor):
    """The same weights, but the scores of block i are multiplied by ``factor(i)``: in float64, query by query."""
    arrays = dict(arrays)
    for i in range(2):
        for kind in ("weight", "bias"):
            name = f"h.{i}.attn.c_attn.{kind}"
            arrays[name] = arrays[name].copy()
            arrays[name][..., :24] *= factor(i)
    return arrays


D = 24 // 3
FOLLOWED = [
    ({"scale_attn_by_inverse_layer_idx": True}, lambda i: 1 / (i + 1)),
    ({"scale_attn_weights": False}, lambda i: D**0.5),
    ({"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}, lambda i: D**0.5 / (i + 1)),
    ({"reorder_and_upcast_attn": True, "attn_pdrop": 0.3, "use_cache": False, "n_ctx": 7, "torch_dtype": "float16"},
     lambda i: 1),
    ({"num_attention_heads": 3, "n_layer": 2, "n_embd": 24, "n_positions": 12, "vocab_size": 61, "n_inner": 96}, None),
    ({"activation_function": "gelu_fast", "layer_norm_epsilon": 1e-05, "n_inner": None, "pruned_heads": {}}, None),
]  # fmt: skip


@both_tracks
@pytest.mark.parametrize("settings, factor", FOLLOWED)
def test_settings_that_are_followed(settings, factor, track, tmp_path):
    arrays = checkpoint("float64")
    expected = reference(arrays if factor is None else with_scale(arrays, factor), IDS)
    assert_same(gpt2_logits(folder_with(tmp_path, arrays, **settings), track), expected)


@both_tracks
def test_relu(track, tmp_path, monkeypatch):
    folder = folder_with(tmp_path, checkpoint("float64"), activation_function="relu")
    monkeypatch.setattr(torch.nn.functional, "gelu", lambda x, approximate: torch.relu(x))
    assert_same(gpt2_logits(folder, track), reference(checkpoint("float64"), IDS))


REFUSED = [
    ({"activation_function": "gelu"}, "activation_function is 'gelu', not one of gelu_new, "),
    ({"activation_function": "silu"}, "activation_function is 'silu'"),
    ({"activation_function": None}, "activation_function is None"),
    ({"activation_function": ["relu"]}, r"activation_function is \['relu'\]"),
    ({"layer_norm_epsilon": 0}, "layer_norm_epsilon is 0, not a number above 0"),
    ({"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon is '1e-5', not a number above 0"),
    ({"layer_norm_epsilon": None}, "layer_norm_epsilon is None"),
    ({"layer_norm_epsilon": True}, "layer_norm_epsilon is True"),
    ({"add_cross_attention": True}, "add_cross_attention is True"),
    ({"is_encoder_decoder": True}, "is_encoder_decoder is True"),
    ({"tie_word_embeddings": False}, "tie_word_embeddings is False, but there is no lm_head.weight"),
    ({"model_type": "gpt_neo"}, "model_type is 'gpt_neo', not 'gpt2'"),
    ({"model_type": "opt", "layer_norm_epsilon": -1}, "model_type is 'opt', not 'gpt2'; layer_norm_epsilon is -1"),
    ({"quantization_config": {"bits": 4}}, r"quantization_config is \{'bits': 4\}"),
    ({"auto_map": {"AutoModel": "own.Model"}}, "auto_map is "),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads is "),
    ({"scale_attn_weights": "false"}, "scale_attn_weights is 'false', not true or false"),
    ({"scale_attn_by_inverse_layer_idx": 3}, "scale_attn_by_inverse_layer_idx is 3"),
    ({"n_layer": 1}, "n_layer is 1, but the arrays 2"),
    ({"num_hidden_layers": 12}, "num_hidden_layers is 12, but the arrays 2"),
    ({"n_positions": 1024}, "n_positions is 1024, but the arrays 12"),
    ({"vocab_size": 50257}, "vocab_size is 50257, but the arrays 61"),
    ({"n_embd": "24"}, "n_embd is '24', but the arrays 24"),
    ({"n_inner": 48}, "n_inner is 48, but the arrays 96"),
    ({"num_attention_heads": 4}, "num_attention_heads is 4, but the arrays 3"),
    ({"n_head": 0}, "n_head must be a whole number, at least 1, not 0"),
    ({"n_head": "3"}, "n_head must be a whole number, at least 1, not '?3"),
    ({"n_head": None}, "n_head must be a whole number, at least 1, not None"),
    ({"n_head": 5}, "width 24 is not divisible by 5 heads"),
]


@pytest.mark.parametrize("settings, said", REFUSED)
def test_settings_that_are_refused(settings, said, tmp_path):
    with pytest.raises(ValueError, match=r"model\.safetensors: .*" + said):
        load_gpt2(folder_with(tmp_path, checkpoint(), **settings))


def test_a_head_that_is_untied_in_name_only(tmp_path):
    arrays = checkpoint()
    arrays["lm_head.weight"] = arrays["wte.weight"].copy()
    load_gpt2(folder_with(tmp_path, arrays, tie_word_embeddings=False))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="n_head is missing"):
        load_gpt2(tmp_path)


@both_tracks
@pytest.mark.parametrize("settings", [{}, *(settings for settings, _ in FOLLOWED[:3]), {"activation_function": "relu"},
                                      {"layer_norm_epsilon": 0.03}, {"reorder_and_upcast_attn": True}])  # fmt: skip
def test_settings_against_transformers(settings, track, tmp_path):
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=61, n_positions=12, n_embd=24, n_layer=2, n_head=3, **settings)
    theirs = transformers.GPT2LMHeadModel(config).eval().double()
    for p in theirs.parameters():
        p.data += 0.1 * torch.randn(p.shape)
    theirs.save_pretrained(tmp_path, max_shard_size="30kB")  # in several files
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with torch.no_grad():
        assert_same(gpt2_logits(tmp_path, track), theirs(torch.tensor(IDS)).logits)


# ------------------------------------------------------------------ GPT-2: how the numbers are stored
def stored(folder, arrays, dtype):
    torch_save({name: torch.tensor(a).to(dtype) for name, a in arrays.items()}, folder / "model.safetensors")
    return folder


@both_tracks
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_weights_of_every_precision_load_exactly(dtype, track, tmp_path):
    dtype = getattr(torch, dtype)
    arrays = checkpoint("float64")
    rounded = {name: torch.tensor(a).to(dtype).double().numpy() for name, a in arrays.items()}
    folder = stored(folder_with(tmp_path, arrays), arrays | {"h.0.attn.bias": np.ones((1, 1, 12, 12))}, dtype)
    written = to_gpt2_state(load_gpt2(folder, track.name, "float64"))
    assert all((written[name] == rounded[name]).all() for name in arrays)
    assert_same(gpt2_logits(folder, track), reference(rounded, IDS))


def test_every_bfloat16(tmp_path):
    """All 65,536 of them, with both zeros, the smallest, infinities and every kind of nan."""
    bits = np.arange(1 << 16).astype(np.int64)
    every = torch.tensor(bits, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    torch_save({"a": every, "none": every[:0].clone(), "one": every[5].clone()}, tmp_path / "model.safetensors")
    arrays, _ = read_weights(tmp_path)
    assert (arrays["a"].view(np.uint32) == bits << 16).all() and arrays["a"].dtype == np.float32
    assert (arrays["none"].shape, arrays["one"].shape) == ((0,), ())


@pytest.mark.parametrize(
    "dtype, said",
    [
        ("float8_e4m3fn", "is F8_E4M3: numbers of this kind cannot be read, only F64, F32, F16, BF16"),
        ("float8_e5m2", "is F8_E5M2"),
        ("complex64", "is C64"),
        ("int8", "holds int8"),
        ("bool", "holds bool"),
        ("int64", "holds int64"),
    ],
)
def test_numbers_that_no_model_can_use(dtype, said, tmp_path):
    folder = folder_with(tmp_path, checkpoint())
    tensors = {name: torch.tensor(a) for name, a in checkpoint().items()}
    tensors["h.1.mlp.c_fc.bias"] = tensors["h.1.mlp.c_fc.bias"].to(getattr(torch, dtype))
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 12, 12, dtype=torch.bool)  # a mask may be of any kind
    torch_save(tensors, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors: .*h.1.mlp.c_fc.bias " + said):
        load_gpt2(folder)


# ------------------------------------------------------------------ GPT-2: several files
def in_parts(folder, arrays, parts=3):
    folder_with(folder, {})
    (folder / "model.safetensors").unlink()
    where = {name: f"model-{i % parts + 1:05}-of-{parts:05}.safetensors" for i, name in enumerate(arrays)}
    for file in set(where.values()):
        save_file({name: arrays[name] for name in arrays if where[name] == file}, folder / file)
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return where


@both_tracks
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_weights_in_several_files(parts, track, tmp_path):
    arrays = checkpoint("float64")
    in_parts(tmp_path, arrays, parts)
    assert_same(gpt2_logits(tmp_path, track), reference(arrays, IDS))


def test_an_index_that_does_not_fit(tmp_path):
    arrays, index = checkpoint(), tmp_path / "model.safetensors.index.json"
    where = in_parts(tmp_path, arrays)
    for changed, said in (
        ({**where, "ln_f.bias": where["ln_f.weight"]}, "index.json: ln_f.bias is not in model-0000"),
        ({k: v for k, v in where.items() if k != "ln_f.bias"}, "index.json: .*ln_f.bias is missing$"),
        ({**where, "ln_f.bias": "../elsewhere.safetensors"}, "index.json: weight_map should give"),
        ({**where, "ln_f.bias": 3}, "index.json: weight_map should give"),
        (["a"], "index.json: weight_map should give"),
        (None, "index.json: weight_map should give"),
    ):
        index.write_text(json.dumps({"weight_map": changed}), encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            load_gpt2(tmp_path)
    index.write_text(json.dumps({"weight_map": where}), encoding="utf-8")
    part = tmp_path / where["ln_f.bias"]
    part.write_bytes(part.read_bytes()[:-5])
    with pytest.raises(ValueError, match=f"{part.name} is not a complete safetensors file"):
        load_gpt2(tmp_path)
    part.unlink()
    with pytest.raises(FileNotFoundError, match=f"{part.name} is missing"):
        load_gpt2(tmp_path)


# ------------------------------------------------------------------ JSON from elsewhere
GOOD = json.dumps({"n_head": 3, "name": "GPT für alle 世"}, ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_settings_in_every_encoding_of_json(encoding, tmp_path):
    folder = folder_with(tmp_path, checkpoint())
    (folder / "config.json").write_bytes(GOOD.encode(encoding))
    assert load_gpt2(folder).config.heads == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"\xef\xbb\xbf", b"[1, 2]", b"null", b'"gpt2"', b"{'n_head': 3}", b'{"n_head": 3', b"\x80\x81", b"\0" * 9,
     '{"name": "Grüße"}'.encode("latin-1"), b"[" * 100_000, b'{"a": ' * 100_000, b"<!DOCTYPE html>", b"9" * 5000],
    ids=lambda content: repr(content[:12]),
)  # fmt: skip
@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "vocab.json"])
def test_broken_json_is_an_error_that_names_the_file(name, content, tmp_path):
    folder = folder_with(tmp_path, checkpoint())
    (folder / name).write_bytes(content)
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    if "index" in name:
        (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        load_tokenizer(folder) if name == "vocab.json" else load_gpt2(folder)


# ------------------------------------------------------------------ files that are no checkpoint of the course
@pytest.mark.parametrize(
    "dtype, about, said",
    [
        ("bfloat16", "{}", "was not written by this course"),
        ("float8_e4m3fn", "[1]", "was not written by this course"),
        ("bfloat16", '{"format": "gpt-twice 2"}', "holds numbers that this course does not write"),
        ("float16", '{"format": "gpt-twice 2"}', "is damaged"),
        ("float32", "[" * 100_000, "is not a complete safetensors file"),
        ("float32", "\ufeff{}", "is not a complete safetensors file"),
    ],
    ids=lambda value: value[:20],
)
def test_other_files_are_no_checkpoints(dtype, about, said, tmp_path):
    path = tmp_path / "other"
    torch_save({"a": torch.ones(2).to(getattr(torch, dtype))}, path, {"about": about})
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} {said}"):
        load_checkpoint(path)


@pytest.mark.parametrize("change", [lambda c: b"\xef\xbb\xbf" + c, lambda c: c.decode().encode("utf-16")])
def test_an_editor_that_changes_the_encoding_of_the_copies(change, tmp_path):
    """What was handed out is still known, so an untouched copy is brought up to date."""
    source, target = tmp_path / "source", tmp_path / "target"
    for text in ("one", "two"):
        source.mkdir(exist_ok=True)
        (source / "notes.txt").write_text(text, encoding="utf-8")
        working_copies.update(source, target)
        state = target / working_copies.STATE
        state.write_bytes(change(state.read_bytes()))
    assert (target / "notes.txt").read_text(encoding="utf-8") == "two"
    state.write_bytes(b"[" * 100_000)
    working_copies.update(source, target)


# ------------------------------------------------------------------ processes that train together
def ddp_file(path, **changes):
    """A checkpoint of a run of two steps over the course's small text, or one that differs from it."""
    options = train_ddp.parser().parse_args(["--dtype", "float64", "--corpus", changes.get("corpus", "hello")])
    tokenizer, batches, config = train_ddp.setting(options)
    tokenizer = changes.get("tokenizer", tokenizer)
    model = NUMPY.models.GPT(dataclasses.replace(config, **changes.get("config", {})))
    optimizer = changes.get("optimizer", NUMPY.optim.AdamW)(model.parameters(), 0.001)
    train(model, optimizer, batches, 2, progress=False)
    save_checkpoint(
        path, model, tokenizer, None if changes.get("bare") else optimizer, None if "lost" in changes else batches
    )
    return path, tokenizer, config


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"bare": True}, "cannot be resumed: of the optimiser AdamW it lacks the whole state"),
        ({"lost": "batches"}, "cannot be resumed: the state of its batches was not saved"),
        (
            {"optimizer": NUMPY.optim.SGD},
            "cannot be resumed: of the optimiser AdamW it lacks decayed, mean, square, steps",
        ),
        ({"config": {"layers": 1}}, r"is of another run: its model is GPTConfig\(.*layers=1.*layers=2"),
        (
            {"tokenizer": CharTokenizer("abcdefghijklmnopq")},
            "is of another run: its vocabulary is not that of this corpus",
        ),
    ],
)
def test_a_checkpoint_that_no_run_can_continue(changes, said, tmp_path):
    path, _, config = ddp_file(tmp_path / "run", **changes)
    tokenizer = train_ddp.setting(train_ddp.parser().parse_args([]))[0]
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} {said}"):
        train_ddp.resumable(path, tokenizer, config)


@pytest.mark.slow
def test_runs_that_end_before_they_begin(tmp_path):
    """Nothing left to do, no state to continue from, a batch that cannot be divided: one sentence each."""
    path, *_ = ddp_file(tmp_path / "run")
    before = path.read_bytes()
    for steps in (2, 1):
        said = launch("--steps", steps, "--dtype", "float64", "--checkpoint", path)
        assert said == f"nothing to do: {path} is at step 2, the whole run has {steps} (--steps)\n"
    assert path.read_bytes() == before
    ddp_file(path, bare=True)
    for arguments, last in (
        (
            ("--checkpoint", path),
            f"ValueError: {path} cannot be resumed: of the optimiser AdamW it lacks the whole state",
        ),
        (("--batch", 7), "ValueError: a batch of 7 windows cannot be divided equally among 2 processes"),
    ):
        with pytest.raises(RuntimeError) as caught:
            launch("--steps", 4, *arguments)
        assert str(caught.value).splitlines()[-1] == last and "torch/distributed/run" not in str(caught.value)


REPORT = (
    "E1201 failed (exitcode: {1}) elastic\nTraceback ...\nRoot Cause (first observed failure):\n[0]:\n"
    "  rank      : {0} (local_rank: {0})\n  exitcode  : {1} (pid: 7)\n"
)
RAISED = "process {0} of 2 failed:\nTraceback ...\n\nValueError: {1}\n(end of process {0})\n"


@pytest.mark.parametrize(
    "err, said",
    [
        (RAISED.format(1, "first") + RAISED.format(0, "connection closed") + REPORT.format(0, 1), "ValueError: first"),
        (RAISED.format(0, "first") + "noise\n", "ValueError: first"),  # started without torchrun
        (REPORT.format(1, -9), "process 1 ended with exit code -9:\nit left no message"),
        (RAISED.format(0, "connection closed") + REPORT.format(1, -9), "exit code -9:\nit left no message"),
        ("usage: ...\nerror: --steps\n" + REPORT.format(0, 2), "exit code 2:\nusage: ...\nerror: --steps"),
        ("killed", "killed"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_run_that_failed(err, said):
    assert what_failed(err).endswith(said)
