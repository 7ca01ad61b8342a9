"""Data-parallel training: several processes, each with its own copy of the model and its part of every batch.

    torchrun --nproc-per-node 2 -m course_lib.idiomatic.train_ddp --checkpoint run.safetensors --save-every 10

torchrun starts the processes and gives each its number, the rank. After each backward pass PyTorch's
DistributedDataParallel averages the gradients of all processes (Li et al. 2020), so every copy takes the same step: the
step of one process with the whole batch. The loop is ``course_lib.training.train``, as everywhere. If the checkpoint
exists, training resumes from it. ``launch.py`` starts a run from a notebook.

The processes here communicate through gloo and compute on the CPU. With one GPU each, the backend would be "nccl" and
the device that of the rank; nothing else changes.
"""

import argparse
import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..common.config import GPTConfig
from ..text import Batches, CharTokenizer, load_corpus
from ..torch_track import models
from ..training import WarmupCosine, load_checkpoint, save_checkpoint, train
from .gpt import GPT
from .training import AdamW, OnDevice, as_raw
from .weights import load_raw


class Share:
    """The rows of one process in each batch: every ``world``-th, starting at ``rank``. All processes share ``batches``.

    Raises ValueError for a batch that does not divide evenly: the mean of unequal parts is not the mean of the whole.

    >>> list(Share([([5, 6, 7, 8], [6, 7, 8, 9])], rank=1, world=2))
    [([6, 8], [7, 9])]
    """

    def __init__(self, batches, rank, world):
        self.batches, self.rank, self.world = batches, rank, world

    def __iter__(self):
        for x, y in self.batches:
            if len(x) % self.world:
                raise ValueError(f"a batch of {len(x)} windows cannot be divided equally among {self.world} processes")
            yield x[self.rank :: self.world], y[self.rank :: self.world]


def gradient_difference(parallel, batch, rank, world):
    """Compare the gradient of all processes with that of one process on the whole ``batch`` (x, y).

    Return (largest difference, largest number), absolute values. ``parallel`` is a model in DistributedDataParallel;
    every process must call this. The gradients are cleared afterwards.
    """
    parameters = list(parallel.parameters())
    mine = next(iter(Share([batch], rank, world)))
    parallel(*map(torch.tensor, mine))[1].backward()  # averaged over all processes
    shared = [p.grad.clone() for p in parameters]
    alone = torch.autograd.grad(parallel.module(*map(torch.tensor, batch))[1], parameters)
    parallel.zero_grad()
    difference = max(float((a - b).abs().max()) for a, b in zip(shared, alone))
    return difference, max(float(b.abs().max()) for b in alone)


def setting(options):
    """Return (tokenizer, batches, config) of a run, which each process makes for itself from equal seeds."""
    text = load_corpus(options.corpus).text
    tokenizer = CharTokenizer.from_text(text)
    config = GPTConfig(len(tokenizer), layers=2, activation="gelu", dtype=options.dtype)
    return tokenizer, Batches(tokenizer.encode(text), config.context_length, options.batch, seed=1), config


def resumable(path, tokenizer, config):
    """Return the Checkpoint in the file ``path``.

    Raises ValueError unless it holds a model of this ``config`` (dtype aside) and vocabulary, and all that resuming
    needs.
    """
    kept = load_checkpoint(path, "torch")
    if kept.tokenizer != tokenizer:
        raise ValueError(f"{path} is of another run: its vocabulary is not that of this corpus")
    found, wanted = kept.model.config, replace(config, dtype=kept.model.config.dtype)
    if found != wanted:
        raise ValueError(f"{path} is of another run: its model is {found}, here it is {wanted}")
    missing = sorted({"mean", "square", "steps", "decayed"} - (kept.optimizer_state or {}).keys())
    missing = ["the whole state"] if kept.optimizer_state is None else missing
    if missing:
        raise ValueError(f"{path} cannot be resumed: of the optimiser AdamW it lacks {', '.join(missing)}")
    if kept.batches_state is None:
        raise ValueError(f"{path} cannot be resumed: the state of its batches was not saved")
    return kept


def run(options, rank, world):
    """Carry out one process of the run; only rank 0 prints and writes the checkpoint."""
    say = print if rank == 0 else lambda *words, **options: None
    tokenizer, batches, config = setting(options)
    model = load_raw(GPT(config), models.GPT(config, seed=0).state_dict())
    optimizer, done = AdamW(model, options.lr), 0
    if options.checkpoint and options.checkpoint.exists():
        kept = resumable(options.checkpoint, tokenizer, config)
        done = kept.optimizer_state["steps"]
        if done >= options.steps:
            say(f"nothing to do: {options.checkpoint} is at step {done}, the whole run has {options.steps} (--steps)")
            return
        load_raw(model, kept.model.state_dict())
        optimizer.load_state_dict(kept.optimizer_state)
        batches.load_state_dict(kept.batches_state)
        say(f"resuming from step {done}")
    parallel = DistributedDataParallel(model)
    if options.check:
        first = next(setting(options)[1])  # from a second Batches, so that the run's own do not advance
        difference, largest = gradient_difference(parallel, first, rank, world)
        limit = {"float32": 1e-4, "float64": 1e-10}[options.dtype]
        if not difference <= limit * largest:
            raise ArithmeticError(f"gradients of {world} processes and of one differ by {difference:g} of {largest:g}")
        say(f"gradients of {world} processes and of one differ by less than {limit:.0e} of the largest, ~{largest:.2f}")

    def after_step(steps):
        if rank == 0 and options.save_every and (done + steps) % options.save_every == 0:
            save_checkpoint(options.checkpoint, *_for_checkpoint(model, tokenizer, optimizer), batches)
        if done + steps == options.crash_after:
            say(f"crashing after step {done + steps}", flush=True)
            os._exit(1)  # no cleanup: as when the machine fails

    schedule = WarmupCosine(options.lr, 3, options.steps, options.lr / 10)
    history = train(
        OnDevice(parallel), optimizer, Share(batches, rank, world), options.steps - done,
        schedule=lambda step: schedule(done + step), clip=1.0, progress=False, after_step=after_step,
    )  # fmt: skip
    losses = torch.tensor(history.losses, dtype=torch.float64)
    dist.all_reduce(losses)  # the sum over all processes, each with the loss of its own rows
    if options.checkpoint and rank == 0:
        save_checkpoint(options.checkpoint, *_for_checkpoint(model, tokenizer, optimizer), batches)
    shown = f", loss ~{losses[0] / world:.2f} to ~{losses[-1] / world:.2f}" if len(losses) else ""
    say(f"{world} processes, steps {done} to {done + history.steps}{shown}")


def _for_checkpoint(model, tokenizer, optimizer):
    raw, copy = as_raw(model, optimizer)
    return raw, tokenizer, copy


def parser():
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--corpus", default="hello", help="a text of the course, by name")
    made.add_argument("--steps", type=int, default=20, help="of the whole run, including those of earlier parts")
    made.add_argument("--batch", type=int, default=8, help="windows per step, over all processes")
    made.add_argument("--lr", type=float, default=3e-3, help="the largest learning rate")
    made.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    made.add_argument("--checkpoint", type=Path, help="file to write, and to resume from if it exists")
    made.add_argument("--save-every", type=int, default=0, metavar="N", help="also write it every N steps")
    made.add_argument("--crash-after", type=int, metavar="N", help="exit without warning after step N, as a test")
    made.add_argument("--check", action="store_true", help="first compare the gradients with those of one process")
    return made


def main():
    options = parser().parse_args()
    if options.save_every and not options.checkpoint:
        sys.exit("--save-every needs --checkpoint")
    if options.checkpoint and not options.checkpoint.parent.is_dir():
        sys.exit(f"there is no folder {options.checkpoint.parent} for the checkpoint")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world, code = dist.get_rank(), dist.get_world_size(), 0
    try:
        run(options, rank, world)
        dist.barrier()  # no process leaves while another still waits for it
    except Exception:
        # In one piece, as all processes write to the same place, and before the others notice that this one is gone.
        code = 1
        os.write(2, f"process {rank} of {world} failed:\n{traceback.format_exc()}(end of process {rank})\n".encode())
    finally:
        dist.destroy_process_group()
    # Threads of gloo may hold tensors a moment longer. Released while the interpreter shuts down, these abort the
    # process (PyTorch pull request 179291), so it exits here, with everything written.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
