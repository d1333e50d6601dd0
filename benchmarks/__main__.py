"""python -m benchmarks atari|cartpole|startup [options]: a table for each case, and with --json all rounds in a file."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from . import report
from .arena import Arena
from .contender import FAMILIES, contenders
from .worker import NOT_INSTALLED

console = Console(highlight=False)
if not console.is_terminal:
    console.width = 160  # a file has room


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=sys.modules[__package__ or ""].__doc__)
    families = parser.add_subparsers(dest="family", required=True, metavar="|".join(FAMILIES))
    for name in FAMILIES:
        module = importlib.import_module(f"{__package__}.{name}")
        family = families.add_parser(name, help=(module.__doc__ or "").splitlines()[0], description=module.__doc__)
        module.add_arguments(family)
        cpus = len(os.sched_getaffinity(0))
        family.add_argument("--threads", default=str(cpus), help="like 1,2: each in turn (default: %(default)s)")
        family.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
        family.add_argument("--seconds", type=float, default=2.0, help="of a round (default: %(default)s)")
        family.add_argument("--warmup", type=float, default=1.0, help="seconds before (default: %(default)s)")
        family.add_argument("--only", default="", help=f"of the contenders {', '.join(contenders(name))}: these")
        family.add_argument(
            "--peers-python", default=sys.executable, help="the interpreter that has the peers (default: this one)"
        )
        family.add_argument("--json", type=Path, help="a file to write")
    arguments = parser.parse_args()
    arguments.only = [name for name in arguments.only.split(",") if name]
    if unknown := set(arguments.only) - set(contenders(arguments.family)):
        parser.error(f"--only: unknown: {', '.join(sorted(unknown))}")
    return arguments


def main() -> int:
    arguments = parse()
    family: Any = importlib.import_module(f"{__package__}.{arguments.family}")
    threads = sorted({int(count) for count in arguments.threads.split(",")})
    arena = Arena(arguments.peers_python, arguments.rounds, arguments.seconds, arguments.warmup, arguments.only)
    failed = False
    records = []
    for case in family.cases(arguments, threads[-1]):
        with console.status("") as status:
            results = arena.play(case, threads, status.update)
        console.print(report.table(case, results, family.FRAMES_PER_STEP))
        for remark in report.remarks(results):
            console.print(f"[yellow]{escape(remark)}")
        failed |= any(result.absent and not result.absent.startswith(NOT_INSTALLED) for result in results)
        records.append(report.record(case, results, family.FRAMES_PER_STEP))
        if arguments.json:  # after each case, so that an interrupted run leaves what it has
            run = {"machine": report.machine(), "arguments": vars(arguments), "cases": records}
            arguments.json.write_text(json.dumps(run, indent=1, default=str) + "\n")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
