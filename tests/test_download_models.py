"""Published models from the network: a server on this machine, with tiny models in the published layout."""

import contextlib
import dataclasses
import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from safetensors.numpy import save
from test_llama import QWEN

from course_lib.common.config import GPTConfig
from course_lib.inference import download, load_gpt2, load_llama, load_tokenizer
from course_lib.inference.download import MODELS, download_model, main
from course_lib.inference.gpt2 import gpt2_config, gpt2_shapes
from course_lib.inference.llama import llama_shapes
from course_lib.text import BytePairTokenizer
from course_lib.text.byte_level import QWEN_WORDS
from course_lib.text.download import DownloadFailed

V, T, C, H, L = 270, 16, 8, 2, 2
TOKENIZER = BytePairTokenizer.train("hello world, hello transformer " * 9, 270)


def drawn(shapes, dtype="float32"):
    rng = np.random.default_rng(0)
    return {name: (0.2 * rng.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}


def gpt2_files():
    """The files of a tiny GPT-2: name -> bytes."""
    arrays = drawn(gpt2_shapes(gpt2_config(L, H, C, T, V)))
    arrays |= {f"h.{i}.attn.bias": np.tril(np.ones((1, 1, T, T), "uint8")) for i in range(L)}  # as in the real file
    settings = {"model_type": "gpt2", "n_layer": L, "n_head": H, "n_embd": C, "n_positions": T, "vocab_size": V}
    merges = "\n".join(["#version: 0.2", *(" ".join(pair) for pair in TOKENIZER.merges), ""])
    return {
        "config.json": json.dumps(settings).encode(),
        "vocab.json": json.dumps(TOKENIZER.ids | TOKENIZER.special).encode(),
        "merges.txt": merges.encode(),
        "model.safetensors": save(arrays),
    }


def qwen_files():
    """The files of a tiny Qwen3, its head stored beside the table that it shares."""
    settings = QWEN | {"vocab_size": V, "tie_word_embeddings": True, "torch_dtype": "float32"}
    settings |= {"num_attention_heads": H, "num_key_value_heads": 1, "hidden_size": C, "max_position_embeddings": T}
    config = GPTConfig(
        V, T, C, H, settings["num_hidden_layers"], activation="swiglu", kv_heads=1, head_dim=settings["head_dim"],
        d_ff=settings["intermediate_size"], qk_norm=True, tied=True, positions="rotary", norm_layer="rms_norm",
        bias=False,
    )  # fmt: skip
    arrays = drawn({name: shape for name, (_, shape) in llama_shapes(config).items()})
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"].copy()
    split = {"type": "Split", "pattern": {"Regex": QWEN_WORDS}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    tokenizer = {
        "truncation": None, "padding": None, "normalizer": {"type": "NFC"}, "post_processor": level, "decoder": level,
        "added_tokens": [{"id": 269, "content": "<|endoftext|>", "normalized": False, "special": True}],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "model": {"type": "BPE", "vocab": TOKENIZER.ids, "merges": [" ".join(pair) for pair in TOKENIZER.merges]},
    }  # fmt: skip
    return {
        "config.json": json.dumps(settings).encode(),
        "tokenizer_config.json": b'{"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": false}',
        "tokenizer.json": json.dumps(tokenizer).encode(),
        "model.safetensors": save(arrays),
    }


FILES = {"gpt2": gpt2_files, "qwen3-0.6b": qwen_files}


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server with the files of both models; ``served`` may be changed, ``cut`` names a file that stops half-way."""
    served = {f"/{MODELS[n].repository}/resolve/main/{k}": v for n, made in FILES.items() for k, v in made().items()}
    vocabulary = hashlib.sha256(gpt2_files()["vocab.json"]).hexdigest()
    known = dataclasses.replace(MODELS["gpt2"], sha256={"vocab.json": vocabulary})
    monkeypatch.setitem(MODELS, "gpt2", known)
    monkeypatch.delenv("COURSE_OFFLINE", raising=False)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            at.requests.append(self.path)
            content = served.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if self.path.endswith(at.cut) else content)

        def log_message(self, *arguments):
            pass

    at = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    at.requests, at.cut, at.served, at.url = [], "nothing", served, f"http://127.0.0.1:{at.server_port}/"
    threading.Thread(target=at.serve_forever, args=(0.01,), daemon=True).start()
    yield at
    at.shutdown()
    at.server_close()


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def replaced(server, name, file, content):
    server.served[f"/{MODELS[name].repository}/resolve/main/{file}"] = content


@pytest.mark.parametrize("name", MODELS)
def test_once_with_a_progress_bar_and_two_lines_that_write(name, server, tmp_path, capsys):
    main([name, "--address", server.url])
    folder, said = tmp_path / "models" / name, capsys.readouterr()
    assert names(tmp_path) == sorted(MODELS[name].files) and "100%" in said.err
    assert server.requests == [f"/{MODELS[name].repository}/resolve/main/{file}" for file in MODELS[name].files]
    lines = said.out.splitlines()[-2:]
    written = []
    exec("\n".join(lines), {"print": written.append})
    assert written[0].startswith("The meaning of life is") and len(written[0]) > 25
    assert load_tokenizer(folder).encode("hello<|endoftext|>")[-1] == 269
    # a second call asks for nothing, not even without a network
    main([name, "--address", "http://127.0.0.1:9"])
    assert len(server.requests) == len(MODELS[name].files) and capsys.readouterr().out.splitlines()[-2:] == lines


def test_a_folder_of_ones_own(server, tmp_path):
    own = tmp_path / "my own"
    assert download_model("gpt2", own, server.url) == own and load_gpt2(own).config.layers == L
    (own / "merges.txt").unlink()
    download_model("gpt2", own, server.url)  # what is missing, and no more
    assert server.requests[4:] == ["/openai-community/gpt2/resolve/main/merges.txt"]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DownloadFailed, match="cannot be made .*\nWhat to do: name another one with --folder"):
        download_model("gpt2", tmp_path / "file" / "inside", server.url)
    with pytest.raises(ValueError, match="there is no model 'gpt5': choose from gpt2, qwen3-0.6b"):
        download_model("gpt5")


def test_the_server_does_not_have_it(server, tmp_path):
    del server.served["/openai-community/gpt2/resolve/main/merges.txt"]
    with pytest.raises(SystemExit) as stop:
        main(["gpt2", "--address", server.url])
    said = str(stop.value)
    assert said.startswith("merges.txt could not be downloaded (HTTPError).\nWhat to do: try again later, or, on a")
    assert f"download {server.url}openai-community/gpt2/resolve/main/merges.txt\nand copy the file to" in said
    assert "404" in said and names(tmp_path) == ["config.json", "vocab.json"]


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_connection_that_is_cut_leaves_no_file(file, server, tmp_path):
    server.cut = file
    with pytest.raises(DownloadFailed, match=f"{file} could not be downloaded"):
        download_model("gpt2", address=server.url)
    assert file not in names(tmp_path) and not [name for name in names(tmp_path) if name.endswith(".part")]
    server.cut = "nothing"
    load_gpt2(download_model("gpt2", address=server.url))


def test_without_a_network(server, tmp_path, monkeypatch):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with pytest.raises(DownloadFailed, match=r"(?s)config.json could not be downloaded \(ConnectionError\).\nWhat"):
        download_model("gpt2", address=f"http://127.0.0.1:{port}")
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(DownloadFailed, match="(?s)config.json is not on this machine.*COURSE_OFFLINE.*and copy the"):
        download_model("gpt2", address=server.url)
    assert names(tmp_path) == server.requests == []


def test_another_hash(server, tmp_path):
    other = json.dumps(TOKENIZER.ids | {"<|endoftext|>": 299}).encode()
    replaced(server, "gpt2", "vocab.json", other)
    with pytest.raises(DownloadFailed, match=r"vocab.json is not the published file: .* is expected\nWhat to do: try"):
        download_model("gpt2", address=server.url)
    assert names(tmp_path) == ["config.json"]
    path = tmp_path / "models" / "gpt2" / "vocab.json"
    path.write_bytes(other)  # one that lay there already is not removed
    with pytest.raises(ValueError, match=r"vocab.json is not the published file.*\nWhat to do: delete .*vocab.json"):
        download_model("gpt2", address=server.url)
    assert path.read_bytes() == other


def test_the_hash_of_the_real_vocabulary():
    assert MODELS["gpt2"].sha256 == {"vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"}


def gpt2_weights(**changes):
    return save({k: v for k, v in (drawn(gpt2_shapes(gpt2_config(L, H, C, T, V))) | changes).items() if v is not None})


def qwen_weights(changes, dtype="float32"):
    from safetensors.numpy import load

    arrays = {name: a.astype(dtype) for name, a in load(qwen_files()["model.safetensors"]).items()}
    return save({name: a for name, a in (arrays | changes).items() if a is not None})


SHAPE = np.zeros((3, 3), "float32")
DOWN = "model.layers.1.mlp.down_proj.weight"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gpt2", lambda: gpt2_weights(**{"h.1.mlp.c_fc.weight": SHAPE}),
         r"h.1.mlp.c_fc.weight has shape \(3, 3\), not \(8, 32\)"),
        ("gpt2", lambda: gpt2_weights(**{"ln_f.bias": None}), "ln_f.bias is missing"),
        ("gpt2", lambda: gpt2_weights(**{"new": SHAPE}), "new is unknown"),
        ("gpt2", lambda: gpt2_weights(**{"ln_f.bias": np.zeros(C, "int32")}), "ln_f.bias holds int32"),
        ("gpt2", lambda: save(drawn(gpt2_shapes(gpt2_config(1, H, C, T, V)))),
         "config.json says n_layer is 2, but the arrays 1"),
        ("gpt2", lambda: save(drawn(gpt2_shapes(gpt2_config(L, H, C, T, V - 1)))),
         "says vocab_size is 270, but the arrays 269"),
        ("gpt2", lambda: gpt2_weights()[:-4], "not a complete safetensors file"),
        ("gpt2", lambda: b"<!DOCTYPE html>" * 9, "not a complete safetensors file"),
        ("qwen3-0.6b", lambda: qwen_weights({DOWN: SHAPE}), r"down_proj.weight has shape \(3, 3\), not"),
        ("qwen3-0.6b", lambda: qwen_weights({DOWN: None}), f"{DOWN} is missing"),
        ("qwen3-0.6b", lambda: qwen_weights({}, "float16"), "config.json says float32, but .* is F16, not F32"),
        ("qwen3-0.6b", lambda: qwen_weights({"lm_head.weight": SHAPE}),
         "lm_head.weight is not model.embed_tokens.weight"),
    ],
)  # fmt: skip
def test_other_weights(name, content, said, server, tmp_path):
    """Names the file and what is expected; the wrong file is not kept."""
    replaced(server, name, "model.safetensors", content())
    with pytest.raises(
        DownloadFailed, match=rf"(?s)model\.safetensors is not what is expected: .*{said}.*\nWhat to do"
    ):
        download_model(name, address=server.url)
    assert names(tmp_path) == sorted(set(MODELS[name].files) - {"model.safetensors"})
    assert load_tokenizer(tmp_path / "models" / name)


@pytest.mark.parametrize(
    ("name", "file", "content", "said"),
    [
        ("gpt2", "config.json", b"<html>log in</html>",
         "config.json is not what is expected: config.json is not a JSON"),
        ("gpt2", "merges.txt", b"q x\n", "do not fit together: merge 0, 'q x'"),
        ("gpt2", "config.json", b'{"vocab_size": 9}',
         "the tokenizer has 270 tokens, but config.json says vocab_size is 9"),
        ("qwen3-0.6b", "tokenizer.json", b'{"model": {"type": "Unigram"}}', "cannot follow type 'Unigram'"),
    ],
)  # fmt: skip
def test_other_settings_are_found_before_the_weights_come(name, file, content, said, server, tmp_path):
    replaced(server, name, file, content)
    with pytest.raises((DownloadFailed, ValueError), match=f"(?s){said}.*What to do"):
        download_model(name, address=server.url)
    assert not [path for path in server.requests if path.endswith("model.safetensors")]


def test_half_precision_as_the_settings_say(server, tmp_path):
    """bfloat16, as Qwen3 is published."""
    import torch
    from safetensors.numpy import load
    from safetensors.torch import save as save_tensors

    arrays = load(qwen_files()["model.safetensors"])
    settings = json.loads(qwen_files()["config.json"]) | {"torch_dtype": "bfloat16"}
    replaced(server, "qwen3-0.6b", "config.json", json.dumps(settings).encode())
    halves = {name: torch.tensor(a).to(torch.bfloat16) for name, a in arrays.items()}
    replaced(server, "qwen3-0.6b", "model.safetensors", save_tensors(halves))
    model = load_llama(download_model("qwen3-0.6b", address=server.url))
    assert model.config.tied and model.config.qk_norm and model.config.kv_heads == 1


def test_the_weights_are_judged_without_being_read(server, monkeypatch):
    monkeypatch.setattr(np, "fromfile", lambda *arguments, **options: pytest.fail("the numbers were read"))
    for name in MODELS:
        download_model(name, address=server.url)


def test_help_names_the_models(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert "gpt2 or qwen3-0.6b" in said and "--folder" in said and download.ADDRESS == "https://huggingface.co"
