"""Our pool beside its peers, measured by turns: a table for each case, and with --json all rounds in a file.

cartpole, atari, mujoco, vizdoom and startup measure one family; suite measures the figures of the documentation, plot draws them from
a file, and growth computes from measured constants what machines with more CPUs would give."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from . import report, suite
from .arena import Arena
from .contender import FAMILIES, contenders, split

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 160  # a file has room


def add_arena_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every command that measures."""
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", default=str(cpus), help="like 1,2: each in turn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a round (default: %(default)s)")
    parser.add_argument("--warmup", type=float, default=1.0, help="seconds before (default: %(default)s)")
    parser.add_argument("--only", default="", help="names of contenders: these; a wrong name lists all")
    parser.add_argument(
        "--peers-python",
        default=sys.executable,
        help="the interpreters that have the peers, with commas; a peer runs in the first that has it (default: this one)",
    )
    parser.add_argument("--json", type=Path, help="a file to write; cases that it has and this run has not are kept")


def family_parser(name: str) -> argparse.ArgumentParser:
    """The options of a family."""
    module = importlib.import_module(f"{__package__}.{name}")
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=module.__doc__)
    module.add_arguments(parser)
    add_arena_arguments(parser)
    return parser


def measure(name: str, arguments: argparse.Namespace) -> bool:
    """Measures the cases of a family.

    Returns:
        Whether every contender did its work, or is not installed, or left out for a reason of its own.
    """
    family: Any = importlib.import_module(f"{__package__}.{name}")
    threads = sorted({int(count) for count in split(arguments.threads)})
    arena = Arena(
        split(arguments.peers_python), arguments.rounds, arguments.seconds, arguments.warmup, split(arguments.only)
    )
    fine = True
    for case in family.cases(arguments, threads[-1]):
        with console.status("") as status:
            results = arena.play(case, threads, status.update)
        console.print(report.table(case, results, family.FRAMES_PER_STEP))
        for remark in report.remarks(results):
            console.print(f"[yellow]{escape(remark)}")
        fine &= not any(result.failed for result in results)
        if arguments.json:  # after each case, so that an interrupted run leaves what it has
            report.keep(arguments.json, report.record(case, results, family.FRAMES_PER_STEP))
    return fine


def main(words: list[str]) -> int:
    commands = (*FAMILIES, "suite", "plot", "growth")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("command", choices=commands, help="--help after it lists its options")
    command, rest = parser.parse_args(words[:1]).command, words[1:]
    if command in ("plot", "growth"):
        return int(importlib.import_module(f"{__package__}.{command}").main(rest))
    if command == "suite":
        return run_suite(rest)
    parser = family_parser(command)
    arguments = parser.parse_args(rest)
    if unknown := set(split(arguments.only)) - set(contenders(command)):
        parser.error(f"--only: unknown: {', '.join(sorted(unknown))}; there are {', '.join(contenders(command))}")
    return int(not measure(command, arguments))


def run_suite(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks suite", description=suite.__doc__)
    parser.add_argument("--part", type=int, choices=range(1, len(suite.PARTS) + 1), help="only this (default: all)")
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    parser.add_argument("--peers-python", default=sys.executable, help="as for the families")
    parser.add_argument("--json", type=Path, default=Path("docs/benchmarks/figures.json"), help="default: %(default)s")
    arguments = parser.parse_args(words)
    fine = True
    for number, commands in enumerate(suite.PARTS, 1):
        if arguments.part not in (None, number):
            continue
        for line in commands:
            family, *options = line.split()
            console.print(f"[bold]part {number}: python -m benchmarks {line}")
            if not arguments.list:
                options += ["--peers-python", arguments.peers_python, "--json", str(arguments.json)]
                fine &= measure(family, family_parser(family).parse_args(options))
    return int(not fine)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
