"""The command line that the benches share: each number of threads is measured in a new process."""

import argparse
import os
import subprocess
import sys

from ...common.threads import thread_variables


def at_least_one(text):
    """Return ``text`` as a whole number, for argparse. Raises ArgumentTypeError below 1."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number from 1 on")
    return number


def new_parser(doc, threads, rounds):
    """Return a parser with ``--threads`` and ``--rounds`` and these defaults; ``doc`` is the docstring of the bench."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--threads", type=at_least_one, nargs="+", default=threads, metavar="N")
    parser.add_argument("--rounds", type=at_least_one, default=rounds, metavar="N")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser


def run(module, parser, report):
    """Call ``report(options, threads)`` of ``module`` for each number of threads, each in a new process.

    A new process, because NumPy reads the number of threads when it is loaded.
    """
    options = parser.parse_args()
    if options.inside:
        return report(options, *options.threads)
    for threads in options.threads:
        command = [sys.executable, "-m", module, *sys.argv[1:], "--inside", "--threads", str(threads)]
        subprocess.run(command, check=True, env={**os.environ, **thread_variables(threads)})
