#!/usr/bin/env python
"""Draw the picture of the README, from the model that ships:  python tools/pictures/readme_picture.py"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "notebooks" / "pictures" / "attention.png"
SENTENCE = "Ming bought apples, not bananas, because they were fresh. She had tasted the"


def main():
    from course_lib.numpy_track import causal_mask
    from course_lib.training import load_checkpoint
    from course_lib.views import attention_view

    reader = load_checkpoint("market-gpt")
    ids = reader.tokenizer.encode(SENTENCE)
    weights = reader.model.attention_maps(ids)[1, 0]  # layer 1, head 0: (T, T)
    tokens, allow = reader.tokenizer.tokens(ids), causal_mask(len(ids))
    view = attention_view(weights, tokens, allow=allow, title="Who looks at whom, layer 1, head 0")
    view.query = len(ids) - 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(view.static_png()[0])
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes; {view.reading()}")


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    main()
