"""What is compared: a case, the contenders for it, and the loops in which they step environments.

The modules that contenders live in run under any interpreter, so they import packages only where they use them.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

FAMILIES = ("cartpole", "atari", "mujoco", "vizdoom", "startup")
Kind = Literal["own", "peer", "ceiling"]

CHUNK_SECONDS = 0.002
"""Calls between two looks at the clock take about this long."""


@dataclass(frozen=True)
class Case:
    """One table of the report."""

    family: str
    """The module that has its contenders."""
    task: str
    mode: str
    """sync: all envs are stepped by each call. async: a call gives those batch_size envs that are ready first. make and
    import: see `startup`."""
    num_envs: int
    batch_size: int
    threads: int
    plugin: str | None = None
    """A plugin of ours to load first, if the task is not of an installed package."""

    @property
    def sizes(self) -> dict[str, int]:
        """What EnvPool, AtariVectorEnv and our make() have the same names for."""
        return {"num_envs": self.num_envs, "batch_size": self.batch_size, "num_threads": self.threads}

    @property
    def shares(self) -> list[int]:
        """How many envs each thread has, if each keeps its own."""
        return [len(range(i, self.num_envs, self.threads)) for i in range(min(self.threads, self.num_envs))]

    @property
    def once(self) -> bool:
        """Whether a contender can play but one round, and none to warm up."""
        return self.mode in ("make", "import")


class Stepper(Protocol):
    """A contender at work."""

    def play(self, seconds: float) -> int:
        """Steps for about so long; returns the number of env steps."""

    def close(self) -> None:
        """Ends it."""


@dataclass(frozen=True)
class Contender:
    """Something to measure. In every family a dictionary CONTENDERS has them by name."""

    label: str
    kind: Kind
    package: str | None
    """The distribution whose version is reported."""
    make: Callable[[Case], Stepper]
    """Raises ModuleNotFoundError if a package is not installed."""
    modes: tuple[str, ...] = ("sync",)
    threaded: bool = True
    """Whether it obeys the number of threads; the others are measured once."""


class LeftOutError(Exception):
    """Raised by Contender.make where a contender can't take part in a case, and why; that is no failure."""


def contenders(family: str) -> dict[str, Contender]:
    """The contenders of a family, by name."""
    found: dict[str, Contender] = importlib.import_module(f"{__package__}.{family}").CONTENDERS
    return found


def split(text: str) -> list[str]:
    """The words of a list with commas, as options have them."""
    return [word for word in text.split(",") if word]


def add_case_arguments(parser: argparse.ArgumentParser, num_envs: str, mode: str) -> None:
    """The options that stepping_cases() reads, with these defaults."""
    parser.add_argument("--num-envs", default=num_envs, help="default: %(default)s")
    parser.add_argument("--mode", default=mode, help="default: %(default)s")
    parser.add_argument("--batch-size", default="", help="of async, each up to num_envs (default: half of num_envs)")


def stepping_cases(
    family: str, tasks: Sequence[str], arguments: argparse.Namespace, threads: int, plugin: str | None = None
) -> Iterator[Case]:
    """Every task with every number of envs in every mode; async with every size of batch that fits."""
    for task in tasks:
        for num_envs in map(int, split(arguments.num_envs)):
            for mode in split(arguments.mode):
                if mode == "sync":
                    yield Case(family, task, mode, num_envs, num_envs, threads, plugin)
                    continue
                sizes = [int(size) for size in split(arguments.batch_size)] or [num_envs // 2]
                for size in sizes:
                    if 0 < size <= num_envs and num_envs > 1:
                        yield Case(family, task, mode, num_envs, size, threads, plugin)


# ---- loops ------------------------------------------------------------------


def random_actions(space: Any, rows: int, dtype: str) -> list[Any]:
    """Actions for many calls, the same for every contender: a power of two of arrays [rows, ...], little enough to stay in
    cache where that can be.

    Args:
        space: of one env, of Gymnasium's kind: discrete from 0, or a box with bounds.
        rows: envs in a call.
        dtype: of discrete actions. Those of a box have the box's own.
    """
    import numpy as np

    width = 1 if hasattr(space, "n") else int(space.shape[0])
    calls = 1024
    while calls > 64 and calls * rows * width > 1 << 17:
        calls //= 2
    generator = np.random.default_rng(1)
    if hasattr(space, "n"):
        return list(generator.integers(0, int(space.n), (calls, rows)).astype(dtype))
    return list(generator.uniform(space.low, space.high, (calls, rows, width)).astype(space.dtype))


class Loop:
    """Calls the environments with ready-made actions, over and over."""

    def __init__(
        self,
        run: Callable[[Sequence[Any]], None],
        actions: list[Any],
        rows: int,
        close: Callable[[], Any] | None = None,
    ) -> None:
        """What to call.

        Args:
            run: makes one call for each action.
            actions: as many as a power of two.
            rows: env steps in a call.
            close: ends the environments.
        """
        self._run = run
        self._actions = actions
        self._rows = rows
        self._close = close
        self._chunk = 1
        self._at = 0

    def play(self, seconds: float) -> int:
        calls = 0
        now = perf_counter()
        end = now + seconds
        while now < end:
            begin = now
            self._run(self._actions[self._at : self._at + self._chunk])
            calls += self._chunk
            self._at = (self._at + self._chunk) % len(self._actions)
            now = perf_counter()
            if now - begin < CHUNK_SECONDS and self._at % (2 * self._chunk) == 0:
                self._chunk = min(2 * self._chunk, len(self._actions))
        return calls * self._rows

    def close(self) -> None:
        if self._close is not None:
            self._close()


def one_by_one(step: Callable[[Any], Any]) -> Callable[[Sequence[Any]], None]:
    """Calls step with each action."""

    def run(actions: Sequence[Any]) -> None:
        for action in actions:
            step(action)

    return run


def pool_loop(env: Any, case: Case) -> Loop:
    """Steps a pool that has the interface of EnvPool."""
    actions = random_actions(env.action_space, case.batch_size, "int32")
    if case.mode == "sync":
        env.reset()
        return Loop(one_by_one(env.step), actions, case.batch_size, env.close)

    env.async_reset()
    ids = env.recv()[4]["env_id"]

    def run(actions: Sequence[Any]) -> None:
        nonlocal ids
        for action in actions:
            env.send(action, ids)
            ids = env.recv()[4]["env_id"]

    return Loop(run, actions, case.batch_size, env.close)


PROGRAM_CALLS = 64
"""Steps of a compiled program."""


def program_loop(env: Any, case: Case) -> Loop:
    """Steps a pool that has EnvPool's xla() in a program of JAX's: a scan over actions, which gives all batches."""
    import jax
    import numpy as np

    actions = random_actions(env.action_space, case.num_envs, "int32")
    blocks = [np.stack(actions[i : i + PROGRAM_CALLS]) for i in range(0, len(actions), PROGRAM_CALLS)]
    env.reset()
    handle, _, _, step = env.xla()
    rollout = jax.jit(lambda handle, block: jax.lax.scan(step, handle, block))
    jax.block_until_ready(rollout(handle, blocks[0]))  # compiles

    def run(chunk: Sequence[Any]) -> None:
        for block in chunk:
            jax.block_until_ready(rollout(handle, block))

    return Loop(run, blocks, PROGRAM_CALLS * case.num_envs, env.close)


def vector_loop(env: Any) -> Loop:
    """Steps a vector env of Gymnasium's kind, all envs by each call."""
    env.reset(seed=1)
    actions = random_actions(env.single_action_space, env.num_envs, "int64")
    return Loop(one_by_one(env.step), actions, env.num_envs, env.close)


# ---- several processes ------------------------------------------------------


class Split:
    """Steppers that play at the same time, each in a process of its own."""

    def __init__(self, makers: Sequence[Callable[[], Stepper]]) -> None:
        self._connections: list[Connection] = []
        self._processes: list[Process] = []
        for make in makers:
            here, there = Pipe()
            process = Process(target=_serve, args=(there, make), daemon=True)
            process.start()
            there.close()
            self._connections.append(here)
            self._processes.append(process)
        for connection in self._connections:
            connection.recv()  # it is made

    def play(self, seconds: float) -> int:
        for connection in self._connections:
            connection.send(seconds)
        return sum(connection.recv() for connection in self._connections)

    def close(self) -> None:
        for connection in self._connections:
            connection.send(None)
        for process in self._processes:
            process.join()


class BareLoops:
    """Programs that step environments by themselves, one a thread, each with its share of the envs.

    Such a program reads how many seconds to step, answers with the number of env steps, and so on until its input ends.
    """

    def __init__(self, command: Sequence[str | Path], case: Case) -> None:
        """command: the program and its arguments, to which its number of envs is added."""
        self._processes = [
            subprocess.Popen([*command, str(share)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for share in case.shares
        ]

    def play(self, seconds: float) -> int:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
        steps = 0
        for process in self._processes:
            assert process.stdout is not None
            steps += int(process.stdout.readline())
        return steps

    def close(self) -> None:
        for process in self._processes:
            process.communicate()  # the end of its input ends it


def _serve(connection: Connection, make: Callable[[], Stepper]) -> None:
    stepper = make()
    connection.send(True)
    while (seconds := connection.recv()) is not None:
        connection.send(stepper.play(seconds))
    stepper.close()
