"""envpool-sdk bench: how many frames a second a pool makes, beside a bare loop over the same plugin."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from envpool_sdk._native import available_cpus, bare_loop
from envpool_sdk.cli import arguments
from envpool_sdk.cli.words import count
from envpool_sdk.makers import make
from envpool_sdk.making import gymnasium_columns
from envpool_sdk.rows import Actions, batch_encoder
from envpool_sdk.spaces import action_space
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    from envpool_sdk._native import Pool
    from envpool_sdk.making import Setup

BATCHES = 8
"""Batches of random actions that are drawn beforehand and taken in turn, so that drawing is not measured."""
BARE_ROWS = 256
"""The same for the bare loop: single actions."""
BATCH_SECONDS = 0.001
"""What a step of all envs should take a CPU unless the user says how many there are: much beside Python's part of it."""
LEAST, MOST = 8, 1024
"""Bounds of that number, for each CPU."""
TURN = 0.5
"""Seconds that one side runs before it is the other's turn: what else the machine does falls on both."""


@dataclass
class Side:
    """One of the two that are measured."""

    name: str
    run: Callable[[float], tuple[int, float]]
    """Runs for about so many seconds: (actions taken, seconds)."""
    frame_skip: int
    actions: int = 0
    seconds: float = 0.0

    def turn(self, seconds: float) -> None:
        actions, took = self.run(seconds)
        self.actions += actions
        self.seconds += took

    @property
    def frames(self) -> int:
        return self.actions * self.frame_skip

    @property
    def speed(self) -> float:
        """Frames a second."""
        return self.frames / self.seconds if self.seconds else 0.0


def bench(
    task: arguments.Task,
    num_envs: Annotated[
        int, typer.Option("--num-envs", "-n", min=0, help="How many envs; 0: enough for the engine's speed.")
    ] = 0,
    batch_size: Annotated[int, typer.Option(min=0, help="How many of them a recv() gives; 0: all.")] = 0,
    num_threads: Annotated[int, typer.Option(min=0, help="0: as many as CPUs may be used.")] = 0,
    isolation: Annotated[str, typer.Option(help="As of make(): auto, thread or process.")] = "auto",
    envs_per_worker: Annotated[int, typer.Option(min=1, help="Envs in one worker process.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.01, help="How long to measure each side.")] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the envs and of the random actions.")] = 0,
    plugin: arguments.Libraries = [],  # noqa: B006
    option: arguments.Options = [],  # noqa: B006
    json: arguments.Json = False,
) -> None:
    """Measure a pool's frames a second, and those of a bare loop over the same plugin.

    The bare loop is native code that makes one env and calls its step(), observe() and reset(), on one thread and
    without a pool. A frame is one step() of the engine: with frame_skip=4 an action makes four, and both observe only
    the last. What the pool does besides (threads, batches, images) is its own cost. Both act at random; they run in turns.

    Example: `envpool-sdk bench CartPole-v1 --num-envs 64 --seconds 5`
    """
    made = arguments.setup(task, plugin, option, make)
    frame_skip = int(made.transforms.get("frame_skip", 1))
    bare = Side("bare loop, 1 env, 1 thread", _bare(made, frame_skip, seed), frame_skip)
    num_envs = num_envs or _enough(*bare.run(min(0.05, seconds)))
    owner = _Owner()
    pool = owner.pool = made.open(
        owner,
        num_envs=num_envs,
        batch_size=batch_size,
        num_threads=num_threads,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        max_episode_steps=None,
        both_flags=False,
        reward_dtype="float64",
        pool_columns=["env_id", *gymnasium_columns(made)],
        workers=Workers(isolation, envs_per_worker),
    )
    try:
        runner = "process" if pool.isolation == "process" else "thread"
        name = f"pool, {count(num_envs, 'env')}, {count(pool.num_threads, runner)}"
        sides = (bare, Side(name, _pooled(made, pool, seed), frame_skip))
        console = Console(highlight=False, stderr=json)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            for _ in range(max(1, round(seconds / TURN))):
                for side in sides:
                    side.turn(min(TURN, seconds))
                    if console.is_terminal:
                        live.update(_table(task, *sides), refresh=True)
        if json:
            Console().print_json(data=_report(made, pool, *sides))
        else:
            console.print(_table(task, *sides))
    finally:
        pool.close()


class _Owner:
    """Who closes the pool if the interpreter ends meanwhile."""

    pool: Pool

    def close(self, timeout: float) -> None:
        self.pool.close(timeout)


def _enough(actions: int, seconds: float) -> int:
    """How many envs keep the CPUs busy for BATCH_SECONDS a step, told by a short run of the bare loop."""
    return int(min(max(BATCH_SECONDS * actions / seconds, LEAST), MOST)) * available_cpus()


def _draw(made: Setup, rows: int, batches: int, seed: int) -> list[Actions]:
    spec = made.describe()
    space = batch_space(action_space(spec), rows)
    space.seed(seed)
    encode = batch_encoder(spec, made.id)
    return [encode(space.sample()) for _ in range(batches)]


def _bare(made: Setup, frame_skip: int, seed: int) -> Callable[[float], tuple[int, float]]:
    [actions] = _draw(made, BARE_ROWS, 1, seed)

    def run(seconds: float) -> tuple[int, float]:
        steps, _, took = bare_loop(
            made.plugin,
            made.task["id"],
            made.options[0],
            actions,
            seconds=seconds,
            seed=seed,
            frame_skip=frame_skip,
        )
        return steps, took

    return run


def _pooled(made: Setup, pool: Pool, seed: int) -> Callable[[float], tuple[int, float]]:
    size = pool.batch_size
    batches = itertools.cycle(_draw(made, size, BATCHES, seed))
    ids = np.arange(pool.num_envs, dtype=np.int32)
    env_id = [name for _, name in pool.columns].index("env_id")
    pool.reset(ids, seed + ids.astype(np.uint64))
    if size == pool.num_envs:
        pool.recv()

    def run(seconds: float) -> tuple[int, float]:
        before, start = pool.statistics["steps"], time.perf_counter()
        end = start + seconds
        if size == pool.num_envs:
            while time.perf_counter() < end:
                pool.step(next(batches))
        else:
            while time.perf_counter() < end:
                pool.send(next(batches), pool.recv()[0][env_id])
        return pool.statistics["steps"] - before, time.perf_counter() - start

    return run


def _table(task: str, bare: Side, pool: Side) -> Table:
    table = Table(
        "",
        "frames/s",
        "of the bare loop",
        title=task,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for side in (bare, pool):
        ratio = f"{side.speed / bare.speed:.2f}" if bare.speed else ""
        table.add_row(side.name, f"{side.speed:,.0f}", ratio)
    return table


def _report(made: Setup, pool: Pool, *sides: Side) -> dict[str, Any]:
    bare, pooled = ({"frames_per_second": side.speed, "frames": side.frames, "seconds": side.seconds} for side in sides)
    return {
        "id": made.id,
        "num_envs": pool.num_envs,
        "batch_size": pool.batch_size,
        "num_threads": pool.num_threads,
        "isolation": pool.isolation,
        "frame_skip": sides[0].frame_skip,
        "bare_loop": bare,
        "pool": pooled,
        "ratio": sides[1].speed / sides[0].speed,
    }
