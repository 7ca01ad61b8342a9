"""`stream`: text that appears token by token, in a terminal and in a notebook, and ends well when it is stopped."""

import os
import re

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager
from test_generation import TOKENIZER, gpt
from track_tools import NUMPY, both_tracks

from course_lib.inference import generate, print_sample, stream
from course_lib.inference.streaming import Written
from course_lib.text import WordTokenizer
from tools import notebook

SOURCE = """
from course_lib.inference import stream
from course_lib.numpy_track import Bigram
from course_lib.text import CharTokenizer
tokenizer = CharTokenizer.from_text("hello world")
stream(Bigram(len(tokenizer)), tokenizer, "hello", 20)
"""


@both_tracks
def test_it_writes_what_generate_gives(track, capsys):
    model = gpt(track)
    for options in ({}, {"temperature": 0}, {"top_k": 2, "seed": 3, "cache": False}):
        text = stream(model, TOKENIZER, "hello", 12, **options)
        written = capsys.readouterr()
        assert text == generate(model, TOKENIZER, "hello", 12, **options) and written.err == ""
        print_sample(text)
        assert written.out == capsys.readouterr().out


def test_each_token_is_written_before_the_next_is_computed(capsys):
    model, seen = gpt(NUMPY), []

    class Looking(type(model)):
        def forward(self, ids, targets=None, cache=None):
            seen.append(capsys.readouterr().out)
            return super().forward(ids, targets, cache)

    text = stream(Looking(model.config), TOKENIZER, "hello", 4, cache=False)
    assert seen == ["sample:\nhello", *text[5:8]]
    assert capsys.readouterr().out == text[8:] + "\n(end of sample)\n"


def test_words_get_their_spaces(capsys):
    tokenizer = WordTokenizer.from_text("Ming bought apples, not pears.\n")
    model = NUMPY.models.Bigram(len(tokenizer))
    text = stream(model, tokenizer, "Ming bought", 30)
    assert text == generate(model, tokenizer, "Ming bought", 30) and text in capsys.readouterr().out


@both_tracks
@pytest.mark.parametrize("when", [1, 3, 11])  # the first token, one in the middle, one beyond the context
def test_the_stop_button_keeps_the_text(track, when, capsys):
    model, calls = gpt(track, dropout=0.5), []
    forward = model.forward

    def stopped(*arguments, **options):
        calls.append(1)
        if len(calls) == when:
            raise KeyboardInterrupt
        return forward(*arguments, **options)

    model.forward = stopped
    try:
        text = stream(model, TOKENIZER, "hello", 20)
    except KeyboardInterrupt:  # it would end pytest itself
        pytest.fail("the stop button gets through")
    out = capsys.readouterr().out
    assert out == f"sample:\n{text}\n(stopped after {when - 1} of 20 tokens)\n(end of sample)\n"
    model.forward = forward
    assert text == generate(model, TOKENIZER, "hello", when - 1)
    assert all(module.training for module in model.modules()) and (track.leaf([1.0]) * 1).requires_grad


@both_tracks
def test_a_wrong_request_writes_nothing(track, capsys):
    for prompt, options, said in (
        ("", {}, "prompt is empty"), ("hello X", {}, "'X'"), ("h", {"temperature": -1}, "temperature.*-1"),
        ("h", {"top_k": 0}, "top_k.*0"), ("h", {"max_new_tokens": -1}, "max_new_tokens.*-1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            stream(gpt(track), TOKENIZER, prompt, **{"max_new_tokens": 3, **options})
    assert capsys.readouterr() == ("", "")
    assert stream(gpt(track), TOKENIZER, "h", 0) == "h"
    assert capsys.readouterr().out == "sample:\nh\n(end of sample)\n"


def test_a_notebook_keeps_one_text_output():
    """Its pieces are joined when the notebook is saved, and the returned text is not shown a second time."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SOURCE)])
    notebook.client(book, notebook.ROOT, 60).execute()
    (output,) = book.cells[0].outputs
    assert (output.output_type, output.name) == ("stream", "stdout")
    assert re.fullmatch(r"sample:\nhello[ dehlorw]{20}\n\(end of sample\)\n", output.text)


def test_the_stop_button_of_a_notebook():
    """A real interrupt of a real kernel, in the middle of a text that would take hours."""
    manager = KernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
    manager.start_kernel(cwd=str(notebook.ROOT), env={**os.environ, "PYTHONPATH": str(notebook.ROOT)})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        written = []

        def heard(message):
            kind, content = message["msg_type"], message["content"]
            assert kind not in ("error", "execute_result"), content
            if kind == "stream":
                assert content["name"] == "stdout"
                written.append(content["text"])
                if len(written) == 5:
                    manager.interrupt_kernel()

        source = SOURCE.replace("20)", "10**8)")
        reply = client.execute_interactive(source, timeout=60, output_hook=heard)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert re.fullmatch(
        r"sample:\nhello[ dehlorw]+\n\(stopped after \d+ of 100000000 tokens\)\n\(end of sample\)\n", "".join(written)
    )


def test_what_comes_back_is_text():
    written = Written("hello")
    assert written == "hello" and written[1:] == "ello" and isinstance(written, str)
