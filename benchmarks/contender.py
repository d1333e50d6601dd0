"""What is compared: a case, the contenders for it, and the loops in which they step environments.

The modules that contenders live in run under any interpreter, so they import packages only where they use them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Literal, Protocol

FAMILIES = ("atari", "cartpole", "startup")
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
    """sync: all envs are stepped by each call. async: a call gives the half of the envs that is ready first. make and
    import: see `startup`."""
    num_envs: int
    threads: int
    plugin: str | None = None
    """A plugin of ours to load first, if the task is not of an installed package."""

    @property
    def batch_size(self) -> int:
        return max(1, self.num_envs // 2) if self.mode == "async" else self.num_envs

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


def contenders(family: str) -> dict[str, Contender]:
    """The contenders of a family, by name."""
    found: dict[str, Contender] = importlib.import_module(f"{__package__}.{family}").CONTENDERS
    return found


# ---- loops ------------------------------------------------------------------


def random_actions(count: int, rows: int, dtype: str) -> list[Any]:
    """Actions for many calls, the same for every contender: a power of two of arrays [rows], little enough to stay in cache."""
    import numpy as np

    calls = 1024
    while calls > 64 and calls * rows > 1 << 17:
        calls //= 2
    return list(np.random.default_rng(1).integers(0, count, (calls, rows)).astype(dtype))


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
    actions = random_actions(int(env.action_space.n), case.batch_size, "int32")
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


def vector_loop(env: Any) -> Loop:
    """Steps a vector env of Gymnasium's kind, all envs by each call."""
    env.reset(seed=1)
    actions = random_actions(int(env.single_action_space.n), env.num_envs, "int64")
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


def _serve(connection: Connection, make: Callable[[], Stepper]) -> None:
    stepper = make()
    connection.send(True)
    while (seconds := connection.recv()) is not None:
        connection.send(stepper.play(seconds))
    stepper.close()
