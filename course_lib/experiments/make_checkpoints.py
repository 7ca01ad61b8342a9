"""Train the two models that ship with the course and write them into data/.

    python -m course_lib.experiments.make_checkpoints [market-gpt] [shakespeare-gpt]

market-gpt takes half a minute, shakespeare-gpt about a quarter of an hour on two cores.
"""

import argparse
import hashlib
import time

from ..training import evaluate, save_checkpoint
from ..training.checkpoint import SHIPPED
from .recipes import MARKET_RECIPE, SHAKESPEARE_RECIPE

# name -> recipe and the track that trains it: NumPy is faster for tiny models, PyTorch for larger ones
MODELS = {"market-gpt": (MARKET_RECIPE, "numpy"), "shakespeare-gpt": (SHAKESPEARE_RECIPE, "torch")}


def make(name):
    """Train one model with seed 0 and write it; print the facts that data/README.md states."""
    recipe, track = MODELS[name]
    data, start = recipe.data(), time.perf_counter()
    model = recipe.model(track, data, seed=0)
    history = recipe.train(track, model, data, seed=0)
    loss = evaluate(model, data.x, data.y)
    path = SHIPPED / f"{name}.safetensors"
    note = f"{recipe.corpus}, {recipe.steps} steps, seed 0, validation loss {loss:.4f} nats per token"
    save_checkpoint(path, model, data.tokenizer, note=note)
    content = path.read_bytes()
    print(f"{name}: {model.num_parameters():,} parameters, {history.steps} steps in the {track} track")
    print(f"  validation loss {loss:.4f} nats per token, {time.perf_counter() - start:.0f} s")
    print(f"  {path.name}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="model", help=f"{' or '.join(MODELS)} (default: both)")
    names = parser.parse_args().names  # argparse's own choices would refuse an empty list
    for name in names:
        if name not in MODELS:
            parser.error(f"there is no model {name!a}: choose from {', '.join(MODELS)}")
    for name in names or MODELS:
        make(name)


if __name__ == "__main__":
    main()
