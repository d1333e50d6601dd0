"""What running costs, and what it leaves behind."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable
from functools import partial

from envpool_sdk.check import abi, play, process
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed
from envpool_sdk.check.finding import Finding, require
from envpool_sdk.check.host import Host
from envpool_sdk.check.memory import Memory
from envpool_sdk.check.run import Run, ended

_CYCLES = 10_000
_SECONDS = 1.5  # for half of them
_SOON = 6.0  # seconds in which what is told to end has ended, on a busy machine too
_MOST_GROWTH, _TOO_MUCH = 2 << 20, 256 << 20


def _one_life(run: Run) -> None:
    env = run.env(run.seed)
    env.step(play.random_action(run.spec, run.generator()))
    env.observe()
    env.destroy()


def _flat(cycle: Callable[[], object], what: str) -> None:
    """Memory in use does not grow in both halves of 10000 cycles, or of as many as the time allows."""
    for _ in range(20):
        cycle()
    begin = _resident()
    until, n = time.monotonic() + _SECONDS, 0
    while n < _CYCLES // 2 and time.monotonic() < until and process.resident() < begin + _TOO_MUCH:
        cycle()
        n += 1
    middle = _resident()
    for _ in range(n):
        cycle()
    end = _resident()
    grown = min(middle - begin, end - middle)
    require(
        grown < max(_MOST_GROWTH, 8 * n),
        f"memory stays the same over {2 * n} times {what}",
        f"it grew by {(middle - begin) / 2**20:.1f} and then by {(end - middle) / 2**20:.1f} MiB"
        f" ({grown // max(n, 1)} bytes each time)",
    )


def _resident() -> int:
    gc.collect()
    return process.resident()


@check("resources.envs", "ep_task.destroy", after="lifecycle.observe_at_end")
def envs(run: Run) -> None:
    """Memory does not grow with the number of envs made and destroyed (10000, or what 3 s allow)."""
    run.needs("several")
    sample = run.env(run.seed)
    task, kept = run.task, Memory()
    to, how, begin = kept.asked(8, 8, 0), task.place_create(None, kept, 0), sample.place_reset(run.seed)
    handle = ctypes.c_uint64.from_address(to)
    raw, host = task.raw, run.host.address

    def cycle() -> None:
        if raw.create(host, how, to) == abi.OK:
            raw.reset(handle.value, begin)
            raw.destroy(handle.value)

    run.crumb.write("create(), reset() and destroy(), again and again")
    _flat(cycle, "create, reset and destroy")


@check("resources.steps", "ep_task.step", after="lifecycle.observe_at_end")
def steps(run: Run) -> None:
    """Memory does not grow with the number of steps, observations and episodes (10000, or what 3 s allow)."""
    env = run.env(run.seed)
    seen = env.observe()
    where, to, outcome = env.place_step(play.random_action(run.spec, run.random, seen))
    view, _ = env.place_view()
    begin = env.place_reset(None)
    raw = run.raw_task

    def cycle() -> None:
        status = raw.step(env.handle, where, to)
        raw.observe(env.handle, view)
        if status != abi.OK or outcome().over:
            raw.reset(env.handle, begin)

    run.crumb.write("step() and observe(), again and again")
    _flat(cycle, "step and observe")


@check("resources.files", "ep_task.destroy", after="lifecycle.observe_at_end")
def files(run: Run) -> None:
    """No descriptor stays open with each env that was destroyed (50, or what 3 s allow)."""
    run.needs("several")
    for _ in range(3):
        _one_life(run)
    before = len(process.files())
    until, lives = time.monotonic() + 2 * _SECONDS, 0
    while lives < 5 or (lives < 50 and time.monotonic() < until):
        _one_life(run)
        lives += 1
    after = len(process.files())
    require(after <= before, f"as many open files after {lives} envs as before", f"{before} became {after}")


@check("resources.threads", "spawns workers: run fewer envs at once", after="lifecycle.observe_at_end")
def threads(run: Run) -> None:
    """No thread is started, unless the task is flagged EP_TASK_OWN_THREADS; none outlives its env."""
    _ = run.spec
    before = process.threads()
    env = run.env(run.seed)
    env.step(play.random_action(run.spec, run.random, env.observe()))
    during = process.threads().keys() - before.keys()
    if during and not run.flagged(abi.TASK_OWN_THREADS):
        raise Finding("no thread but the caller's, or the flag EP_TASK_OWN_THREADS", f"{len(during)} more threads")
    env.destroy()
    if run.one_per_process:
        return
    first = len(process.threads())
    for _ in range(5):
        _one_life(run)
    until = time.monotonic() + _SOON
    while (last := len(process.threads())) > first and during and time.monotonic() < until:
        time.sleep(0.01)  # a thread that was told to end needs a moment
    require(last <= first, "threads end with their env", f"{last - first} more threads after 5 more envs")


@check("resources.children", "ep_task.destroy", after="lifecycle.observe_at_end")
def children(run: Run) -> None:
    """No process outlives its env."""
    run.needs("several")
    _one_life(run)
    first = len(process.children())
    for _ in range(3):
        _one_life(run)
    last = len(process.children())
    require(last <= first, "processes end with their env", f"{last - first} more processes after 3 more envs")


def _leaves(run: Run, what: str) -> None:
    _ = run.task
    with process.Unchanged(what):
        run.task.describe()
        env = run.env(run.seed)
        play.play(env, None, run.generator(), steps=30, seconds=0.5)
        env.destroy()


for _what, _title in {
    "output": "Nothing is printed to standard output, which is the user's",
    "directory": "The working directory stays the same",
    "locale": "The locale stays the same",
    "signals": "Signal handlers stay the same",
    "float_mode": "Floating-point modes stay the same",
    "environment": "Environment variables stay the same",
}.items():
    enter = check(
        f"resources.{_what}",
        "leaves the process as it found it",
        after="lifecycle.observe_at_end",
        title=_title,
    )
    enter(partial(_leaves, what=_what))


@check(
    "resources.cancel",
    "Nonzero once the host wants long work to return EP_E_CANCELLED",
    after="lifecycle.observe_at_end",
)
def cancel(run: Run) -> None:
    """Every call returns soon once the host wants to stop."""
    host = Host(run.subject.assets)
    task = run.task_with(host)
    _ = task.spec
    env = task.create()
    env.reset(run.seed)
    seen = env.observe()
    host.cancelled = True
    run.hurry(_SOON)
    env.note = "the host is cancelled"
    for call in (
        lambda: env.step(play.random_action(task.spec, run.random, seen)),
        lambda: env.observe(),
        lambda: env.reset(run.seed),
        lambda: task.describe(),
    ):
        try:
            call()
        except CallFailed as failed:
            expected = "EP_OK or EP_E_CANCELLED once cancelled"
            allowed = failed.status in (abi.E_CANCELLED, abi.E_STATE)
            require(allowed, expected, failed.seen)


@check("resources.exit", "libraries are never unloaded", after="lifecycle.observe_at_end")
def at_exit(run: Run) -> None:
    """A process that exits while envs exist ends in peace."""
    child = os.fork()
    if child == 0:
        env = run.env(run.seed)
        env.note = "then exit()"
        env.step(play.random_action(run.spec, run.random, env.observe()))
        run.crumb.write("exit() of the process, with an env")
        ctypes.CDLL(None).exit(0)
    _, status = os.waitpid(child, 0)
    require(status == 0, "exit(0) ends the process with code 0", ended(status, run.crumb.read()))
