"""The process that a contender lives in, so that contenders don't disturb each other and may use other interpreters.

It reads JSON lines and answers each with one: first what to make, then how long to play. The end of its input ends it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from time import clock_gettime, perf_counter, process_time
from typing import Any

from .contender import Case, LeftOutError, contenders

NOT_INSTALLED = "not installed"
LEFT_OUT = "left out"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # engines that greet on the standard output greet on the standard error instead

    def answer(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")

    with TemporaryDirectory() as folder:
        os.chdir(folder)  # some packages leave files in the working directory
        serve(answer)


def serve(answer: Callable[..., None]) -> None:
    """Makes the contender and lets it play until the input ends."""
    request = json.loads(sys.stdin.readline())
    contender = contenders(request["case"]["family"])[request["contender"]]
    try:
        stepper = contender.make(Case(**request["case"]))
    except ModuleNotFoundError as error:
        answer(error=f"{NOT_INSTALLED}: {error}")
        return
    except LeftOutError as reason:
        answer(error=f"{LEFT_OUT}: {reason}")
        return
    except Exception as error:
        answer(error=f"failed: {type(error).__name__}: {error}")
        return
    answer(version=version_of(contender.package))

    for line in sys.stdin:
        cpu, begin = cpu_seconds(), perf_counter()
        steps = stepper.play(json.loads(line))
        wall = perf_counter() - begin
        answer(steps=steps, wall=wall, cpu=cpu_seconds() - cpu)
    stepper.close()


def cpu_seconds() -> float:
    """CPU time of this process and all that came from it, ended or not."""
    ended = getrusage(RUSAGE_CHILDREN)
    living = 0.0
    for pid in descendants(os.getpid()):
        try:
            living += clock_gettime((~pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid(3) makes it
        except OSError:  # it has just ended
            continue
    return process_time() + ended.ru_utime + ended.ru_stime + living


def descendants(pid: int) -> list[int]:
    """The living children of a process, their children and so on."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *descendants(child)]
    return found


def version_of(package: str | None) -> str:
    """The version of a distribution, or of the module of its name if that comes from a source tree."""
    if package is None:
        return ""
    try:
        return version(package)
    except PackageNotFoundError:
        return getattr(sys.modules.get(package.replace("-", "_")), "__version__", "")


if __name__ == "__main__":
    main()
