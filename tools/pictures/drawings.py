#!/usr/bin/env python
"""Draw the models into notebooks/pictures, for the pages and the README:  python tools/pictures/drawings.py"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks" / "pictures"

SENTENCE = "Ming bought apples, not bananas, because they were fresh. She had tasted the"


def drawings():
    """Return {file name: Drawing}; a test compares the stored files with these."""
    from course_lib.common.config import GPTConfig
    from course_lib.experiments.ladder import ALL
    from course_lib.experiments.numbers import NUMBERS_RECIPE
    from course_lib.inference.gpt2 import gpt2_config
    from course_lib.training import load_checkpoint
    from course_lib.views import draw_encoder_decoder, draw_gpt, sketches

    gpt = GPTConfig(17)  # of notebook 09
    old, today = (GPTConfig(65, 32, 64, **ALL[key].changes) for key in ("full", "no bias"))  # of notebook 16
    return {
        "gpt.svg": draw_gpt(load_checkpoint("shakespeare-gpt").model.config),
        "first-gpt.svg": draw_gpt(GPTConfig(65, 32, 64, layers=2, norm=None, residual=False)),
        "gpt-tokens.svg": draw_gpt(gpt, lit=("tokens",)),
        "gpt-attention.svg": draw_gpt(gpt, lit=("attention",)),
        "gpt-norm.svg": draw_gpt(gpt, lit=("norm", "residual")),
        "gpt-mlp.svg": draw_gpt(gpt, lit=("mlp",)),
        "gpt-counts.svg": draw_gpt(gpt, counts=True),
        "encoder-decoder.svg": draw_encoder_decoder(NUMBERS_RECIPE.model("numpy").config, lit=("cross",)),
        "gpt2-block.svg": sketches.draw_blocks(gpt2_config(), names=["GPT-2, the smallest (2019)"]),
        "today.svg": sketches.draw_blocks(old, today, names=["GPT-2 (2019)", "Today's open models"]),
        "rotary.svg": sketches.draw_rotary(),
        "grouped-queries.svg": sketches.draw_grouped_queries(today),
        "swiglu.svg": sketches.draw_swiglu(),
        "window.svg": sketches.draw_window(),
        "norms.svg": sketches.draw_norms(),
        "attention-matrices.svg": sketches.draw_attention_matrices(),
        "split-heads.svg": sketches.draw_split_heads(),
        "norm-places.svg": sketches.draw_norm_places(),
        "window-examples.svg": sketches.draw_window_examples(),
        "lookup.svg": sketches.draw_lookup(),
        "cache.svg": sketches.draw_cache(),
        "induction.svg": sketches.draw_induction(),
        "note-and-look.svg": sketches.draw_note_and_look(),
        "data-parallel.svg": sketches.draw_data_parallel(),
        "training-loop.svg": sketches.draw_training_loop(),
        "writing-loop.svg": sketches.draw_writing_loop(),
        "mlp.svg": sketches.draw_mlp(),
        "attention-arcs.svg": sketches.draw_arcs(*last_words()),
    }


def last_words():
    """Return (tokens, weights) of two sentences: what the last word attends to in the head that notebook 03 shows."""
    from course_lib.training import load_checkpoint

    reader, found = load_checkpoint("market-gpt"), []
    for quality in ("fresh", "stale"):
        ids = reader.tokenizer.encode(SENTENCE.replace("fresh", quality))
        found.append(([reader.tokenizer.decode([i]).strip() for i in ids], reader.model.attention_maps(ids)[1, 0, -1]))
    return found


def main():
    for name, drawing in drawings().items():
        drawing.save(FOLDER / name)
        print(f"{name}: {drawing.width} x {drawing.height}. {drawing.alt}")


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    main()
