"""Start several processes of ``train_ddp.py`` on this machine, for notebooks and tests: the work of torchrun.

print(launch("--steps", 20))
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..common.threads import thread_variables

PROCESSES, TIMEOUT = 2, 300  # seconds for the whole run
TORCHRUN = sys.platform != "win32"  # torchrun needs libuv, which PyTorch for Windows lacks


def launch(*arguments, fails=False):
    """Run ``train_ddp`` with these command-line arguments in two processes of one thread; return what they print.

    Raises RuntimeError with the exception of the process that failed first, or else the end of the messages, if the run
    fails; with ``fails`` a failure is expected, and a run that succeeds is the error.
    """
    command = ["-m", "course_lib.idiomatic.train_ddp", *map(str, arguments)]
    if TORCHRUN:
        options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(PROCESSES)]
        commands = [([sys.executable, "-m", "torch.distributed.run", *options, *command], _environment())]
    else:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]  # a free one
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(PROCESSES), "USE_LIBUV": "0"}
        env = {**_environment(), **shared}
        commands = [([sys.executable, *command], {**env, "RANK": str(rank)}) for rank in range(PROCESSES)]
    codes, (out, err) = run_together(commands)
    if any(codes) != fails:
        raise RuntimeError(f"the exit codes of the processes were {codes}:\n{out}\n{what_failed(err)}")
    return out


def what_failed(err):
    """Return the part of the messages ``err`` that says why: those of torchrun only where a process left none."""
    raised = re.findall(r"^(process (\d+) of \d+ failed:\n.*?)\n\(end of process \2\)$", err, re.DOTALL | re.MULTILINE)
    first = re.search(r"^Root Cause.*?rank +: (\d+).*?exitcode +: (-?\d+)", err, re.DOTALL | re.MULTILINE)
    if first and first[1] not in (rank for _, rank in raised):  # killed, perhaps for its memory
        said = re.split(r"^[EW]\d{4} .*elastic", err, maxsplit=1, flags=re.MULTILINE)[0].strip()
        said = said if said and not raised else "it left no message"
        return f"process {first[1]} ended with exit code {first[2]}:\n{said[-2000:]}"
    return raised[0][0] if raised else err[-2000:]


def run_together(commands):
    """Run all (command, environment) at once; return their exit codes, and (stdout, stderr) of all of them as text."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = [subprocess.Popen(command, env=env, stdout=out, stderr=err) for command, env in commands]
        end = time.monotonic() + TIMEOUT
        try:
            codes = [process.wait(max(0, end - time.monotonic())) for process in started]
        finally:
            for process in started:  # does nothing to those that have exited; torchrun stops its own processes
                process.terminate()
            for process in started:
                process.wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace").replace("\r\n", "\n"))
    return codes, texts


def _environment():
    root = str(Path(__file__).resolve().parents[2])
    env = {
        **os.environ,
        **thread_variables(1),
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
        "PYTHONIOENCODING": "utf-8",
    }
    loopback = {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}  # Linux, macOS
    if loopback:  # otherwise gloo looks up the machine's name
        env["GLOO_SOCKET_IFNAME"] = loopback.pop()
    return env
