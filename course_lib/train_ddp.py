"""Data-parallel training: several processes, each with its own copy of the model and its part of every batch.

    torchrun --nproc-per-node 2 -m course_lib.train_ddp --checkpoint run.safetensors --save-every 10

torchrun starts the processes and gives each its number, the rank. After each backward PyTorch's
DistributedDataParallel averages the gradients of all processes (Li et al. 2020), so every copy makes the same step,
and it is the step of one process with the whole batch. The loop is ``course_lib.training.train``, as everywhere.
Where the checkpoint lies already, the run goes on from it. From a notebook: ``print(launch("--steps", "20"))``.

The processes here talk through gloo and compute on the CPU. With one GPU each it would be the backend "nccl" and the
device of the rank; nothing else changes.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .config import GPTConfig
from .idiomatic.gpt import GPT
from .idiomatic.training import AdamW, OnDevice, as_raw
from .idiomatic.weights import load_raw
from .text import Batches, CharTokenizer, load_corpus
from .torch_track import models
from .training import WarmupCosine, load_checkpoint, save_checkpoint, train


class Share:
    """Of each batch the rows of one process: every ``world``-th from ``rank`` on. ``batches`` are the same in all.

    Raises ValueError for a batch that does not divide: the mean of unequal parts is not the mean of the whole.

    >>> list(Share([([5, 6, 7, 8], [6, 7, 8, 9])], rank=1, world=2))
    [([6, 8], [7, 9])]
    """

    def __init__(self, batches, rank, world):
        self.batches, self.rank, self.world = batches, rank, world

    def __iter__(self):
        for x, y in self.batches:
            if len(x) % self.world:
                raise ValueError(f"a batch of {len(x)} windows cannot be shared equally by {self.world} processes")
            yield x[self.rank :: self.world], y[self.rank :: self.world]


def gradient_difference(parallel, batch, rank, world):
    """(largest difference, largest number) of the gradients: of all processes together, of one with all of ``batch``.

    ``parallel`` is a model in DistributedDataParallel; every process must call this. No gradient is left behind.
    """
    parameters = list(parallel.parameters())
    mine, whole = next(iter(Share([batch], rank, world))), batch
    parallel(*map(torch.tensor, mine))[1].backward()  # averaged over all processes on the way
    shared = [p.grad.clone() for p in parameters]
    alone = torch.autograd.grad(parallel.module(*map(torch.tensor, whole))[1], parameters)
    parallel.zero_grad()
    difference = max(float((a - b).abs().max()) for a, b in zip(shared, alone))
    return difference, max(float(b.abs().max()) for b in alone)


def setting(options):
    """(tokenizer, batches, config) of a run: everything that each process makes for itself, from equal seeds."""
    text = load_corpus(options.corpus).text
    tokenizer = CharTokenizer.from_text(text)
    config = GPTConfig(len(tokenizer), layers=2, activation="gelu", dtype=options.dtype)
    return tokenizer, Batches(tokenizer.encode(text), config.context, options.batch, seed=1), config


def run(options, rank, world):
    """One process of the run; rank 0 writes the checkpoint and speaks for all."""
    say = print if rank == 0 else lambda *words, **options: None
    tokenizer, batches, config = setting(options)
    model = load_raw(GPT(config), models.GPT(config, seed=0).state())
    optimizer, done = AdamW(model, options.rate), 0
    if options.checkpoint and options.checkpoint.exists():
        kept = load_checkpoint(options.checkpoint, "torch")
        load_raw(model, kept.model.state())
        optimizer.load_state(kept.optimizer_state)
        batches.load_state(kept.batches_state)
        done = kept.optimizer_state["steps"]
        say(f"goes on from step {done}")
    parallel = DistributedDataParallel(model)
    if options.check:
        first = next(setting(options)[1])  # of a second Batches: the run's own stay where they are
        difference, largest = gradient_difference(parallel, first, rank, world)
        limit = {"float32": 1e-4, "float64": 1e-10}[options.dtype]
        if not difference <= limit * largest:
            raise ArithmeticError(f"gradients of {world} processes and of one differ by {difference:g} of {largest:g}")
        say(f"gradients of {world} processes and of one differ by less than {limit:.0e} of the largest, ~{largest:.2f}")

    def after_step(steps):
        if rank == 0 and options.save_every and (done + steps) % options.save_every == 0:
            save_checkpoint(options.checkpoint, *_for_checkpoint(model, tokenizer, optimizer), batches)
        if done + steps == options.crash_after:
            say(f"crashes after step {done + steps}", flush=True)
            os._exit(1)  # nothing is put in order: as when the machine fails

    schedule = WarmupCosine(options.rate, 3, options.steps, options.rate / 10)
    history = train(
        OnDevice(parallel), optimizer, Share(batches, rank, world), options.steps - done,
        schedule=lambda step: schedule(done + step), clip=1.0, progress=False, after_step=after_step,
    )  # fmt: skip
    losses = torch.tensor(history.losses, dtype=torch.float64)
    dist.all_reduce(losses)  # the sum over all processes; each has the loss of its own rows
    if options.checkpoint and rank == 0:
        save_checkpoint(options.checkpoint, *_for_checkpoint(model, tokenizer, optimizer), batches)
    shown = f", loss ~{losses[0] / world:.2f} to ~{losses[-1] / world:.2f}" if len(losses) else ""
    say(f"{world} processes, steps {done} to {done + history.steps}{shown}")


def _for_checkpoint(model, tokenizer, optimizer):
    raw, copy = as_raw(model, optimizer)
    return raw, tokenizer, copy


def launch(*arguments, processes=2, fails=False, timeout=300, torchrun=sys.platform != "win32"):
    """Run this module in ``processes`` on this machine, return what it printed; ``arguments`` as on the command line.

    Each process computes with one thread. Without ``torchrun`` the processes are started here: on Windows PyTorch comes
    without libuv, which torchrun asks for. Raises RuntimeError with the end of the messages where the run fails; with
    ``fails`` that is expected, and a run that does not fail is the error.
    """
    root = str(Path(__file__).resolve().parents[1])
    loopback = {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}  # Linux, macOS
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
        "PYTHONIOENCODING": "utf-8",
    }
    if loopback:  # else gloo looks up the name of the machine
        env["GLOO_SOCKET_IFNAME"] = loopback.pop()
    command = ["-m", "course_lib.train_ddp", *map(str, arguments)]
    if torchrun:
        options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(processes)]
        commands = [([sys.executable, "-m", "torch.distributed.run", *options, *command], env)]
    else:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]  # a free one
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes), "USE_LIBUV": "0"}
        commands = [([sys.executable, *command], {**env, "RANK": str(rank)}) for rank in range(processes)]
    codes, printed = _run_together(commands, timeout)
    if any(codes) != fails:
        raise RuntimeError(f"the processes ended with {codes}:\n{printed[0]}\n{printed[1][-2000:]}")
    return printed[0]


def _run_together(commands, timeout):
    """Run all (command, environment) at once: their exit codes, and what they wrote to stdout and to stderr."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = [subprocess.Popen(command, env=env, stdout=out, stderr=err) for command, env in commands]
        end = time.monotonic() + timeout
        try:
            codes = [process.wait(max(0, end - time.monotonic())) for process in started]
        finally:
            for process in started:  # nothing happens to those that have ended; torchrun ends its processes too
                process.terminate()
            for process in started:
                process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace").replace("\r\n", "\n"))
    return codes, texts


def parser():
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--corpus", default="hello", help="a text of the course, by name")
    made.add_argument("--steps", type=int, default=20, help="of the whole run, earlier parts included")
    made.add_argument("--batch", type=int, default=8, help="windows per step, all processes together")
    made.add_argument("--rate", type=float, default=3e-3, help="the largest learning rate")
    made.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    made.add_argument("--checkpoint", type=Path, help="file to write, and to go on from if it is there")
    made.add_argument("--save-every", type=int, default=0, metavar="N", help="write it every N steps too")
    made.add_argument("--crash-after", type=int, metavar="N", help="end without warning after step N, to try it out")
    made.add_argument("--check", action="store_true", help="compare the gradients with those of one process first")
    return made


def main():
    options = parser().parse_args()
    if options.save_every and not options.checkpoint:
        sys.exit("--save-every needs --checkpoint")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        run(options, dist.get_rank(), dist.get_world_size())
        dist.barrier()  # nobody leaves while another still waits for an answer
    finally:
        dist.destroy_process_group()
    # Threads of gloo may hold tensors a moment longer. Released while the interpreter shuts down, they abort the
    # process (PyTorch pull request 179291); so it ends here, with everything written.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
