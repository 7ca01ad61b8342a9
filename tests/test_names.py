"""None of the course's former names is left: who knows PyTorch needs no glossary."""

import json
import re
import subprocess

import pytest
from track_tools import ROOT

FORMER = {
    r"\bvocabulary_size\b": "vocab_size",
    r"\bnumber_of_parameters\b": "num_parameters",
    r"\bload_state\b": "load_state_dict",
    r"\.state\(\)": "state_dict()",
    r"\bclip_grad_norm\b": "clip_grad_norm_",
    r"\bkeep_mask\b": "draw_dropout_mask",
    r"\bfinal_rate\b|\.rates?\b|(?<!\w)rate=": "min_lr, lr, lrs",
    r"\bepsilon\b": "eps",
    r"\bInitial\(|\.initial\b|(?<!max\()(?<!True, )(?<!\w)initial=": "Initializer, init",
    r"\.table\b(?!\()": "weight",
    r"\.gain\b": "weight",
    r"\bwiring=|\"wiring\"|\.wiring\b": "norm, residual",
    r"\bsource_size\b|\btarget_size\b": "source_vocab_size, target_vocab_size",
    r"\.maximum\b(?<!np.maximum)(?<!torch.maximum)|(?<!\w)maximum=": "context_length",
    r"(?<![\w.])context=": "context_length",
    r"(?<!page)(?<!monkeypatch)(?<!again)(?<!alone)\.context\b": "context_length",
    r"[Rr]eferee": "baseline",
    r"\bcourse_lib[./](config|inputs|initial|module|memory|positions|summary|generation|decoding|interventions"
    r"|gpt2|recipes|numbers_recipe|ladder|make_checkpoints|reproduce|bench|train_ddp|environment|on_save)\b": "moved",
}
SELF = "tests/test_names.py"


def sources():
    """(name, text) of every file of the project that can hold a name; of notebooks the cells, not their outputs."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name == SELF or not path.is_file():
            continue
        if path.suffix in (".py", ".md", ".toml", ".yml"):
            yield name, path.read_text(encoding="utf-8")
        elif path.suffix == ".ipynb":
            book = json.loads(path.read_text(encoding="utf-8"))
            yield name, "\n".join("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code")


@pytest.fixture(scope="module")
def texts():
    return list(sources())


@pytest.mark.parametrize(("former", "now"), FORMER.items(), ids=FORMER.values())
def test_no_former_name_is_left(former, now, texts):
    assert len(texts) > 100
    assert [f"{name}: {m[0]}" for name, text in texts for m in re.finditer(former, text)] == [], f"today: {now}"
