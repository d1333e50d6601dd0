"""The time to start: making many Atari environments, and importing the package in a fresh interpreter.

Environments are made when their first observations are there, as some pools make them only at the first reset.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from . import atari
from .contender import Case, Contender, Split, Stepper, split

FRAMES_PER_STEP = 1  # a step is here an environment made, or an import


class Once:
    """Does its work at the first play(), whatever the seconds."""

    def __init__(self, work: Callable[[], Any], count: int) -> None:
        self._work = work
        self._count = count
        self._kept: list[Any] = []

    def play(self, seconds: float) -> int:
        self._kept.append(self._work())
        return self._count

    def close(self) -> None:
        for made in self._kept:
            if hasattr(made, "close"):
                made.close()


# ---- making -----------------------------------------------------------------


def started(env: Any) -> Any:
    """The env, after its first reset."""
    env.reset()
    return env


def ours(case: Case) -> Stepper:
    import envpool_sdk

    task, settings = atari.task_id(case.task), {**case.sizes, **atari.OURS}
    return Once(lambda: started(envpool_sdk.make(task, **settings)), case.num_envs)


def envpool(case: Case) -> Stepper:
    import envpool

    task, settings = atari.task_id(case.task), {**case.sizes, **atari.ENVPOOL}
    return Once(lambda: started(envpool.make(task, env_type="gymnasium", **settings)), case.num_envs)


def ale_vector(case: Case) -> Stepper:
    from ale_py.vector_env import AtariVectorEnv

    settings = {**case.sizes, **atari.ALE_VECTOR}
    return Once(lambda: started(AtariVectorEnv(case.task, **settings)), case.num_envs)


def bare_loads(game: str, count: int) -> Stepper:
    import ale_py  # noqa: F401 - before the clock runs

    return Once(lambda: [atari.bare_ale(game) for _ in range(count)], count)


def bare(case: Case) -> Stepper:
    import ale_py  # noqa: F401 - a missing package shall be noticed here

    shares = [len(range(i, case.num_envs, case.threads)) for i in range(case.threads)]
    return Split([partial(bare_loads, case.task, share) for share in shares])


# ---- importing --------------------------------------------------------------


def importing(module: str) -> Callable[[Case], Stepper]:
    """A fresh interpreter that does nothing but import it."""
    command = [sys.executable, "-c", f"import {module}"]

    def make(case: Case) -> Stepper:
        first = subprocess.run(command, capture_output=True, text=True, check=False)
        if first.returncode:
            error, _, text = first.stderr.splitlines()[-1].partition(": ")
            raise ModuleNotFoundError(text) if error == "ModuleNotFoundError" else ImportError(text)
        return Once(lambda: subprocess.run(command, check=True, capture_output=True), 1)

    return make


MAKE, IMPORT = ("make",), ("import",)
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-sdk", ours, MAKE),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, MAKE),
    "ale_vector": Contender("AtariVectorEnv of ale-py", "peer", "ale-py", ale_vector, MAKE),
    "bare": Contender("bare loadROM, ale-py", "ceiling", "ale-py", bare, MAKE),
    "import_ours": Contender(
        "import envpool_sdk", "own", "envpool-sdk", importing("envpool_sdk"), IMPORT, threaded=False
    ),
    "import_envpool": Contender("import envpool", "peer", "envpool", importing("envpool"), IMPORT, threaded=False),
    "import_gymnasium": Contender(
        "import gymnasium", "peer", "gymnasium", importing("gymnasium"), IMPORT, threaded=False
    ),
    "import_numpy": Contender("import numpy", "peer", "numpy", importing("numpy"), IMPORT, threaded=False),
    "import_nothing": Contender("no import", "ceiling", None, importing("sys"), IMPORT, threaded=False),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--game", default="pong", help="a ROM name (default: %(default)s)")
    parser.add_argument("--num-envs", default=256, type=int, help="default: %(default)s")
    parser.add_argument("--mode", default="make,import", help="default: %(default)s")


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    for mode in split(arguments.mode):
        count, task = (arguments.num_envs, arguments.game) if mode == "make" else (1, "Python")
        yield Case("startup", task, mode, count, count, threads)
