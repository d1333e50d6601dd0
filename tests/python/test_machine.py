"""What the pool does with the machine: memory in steady state, CPUs, threads."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import envpool_sdk

Run = Callable[[str], str]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks at Linux's /proc")

STACK = {"layout": "hw", "height": 84, "width": 84, "stack_num": 4}
"""Image-v0 with Atari's observations: uint8[4, 84, 84], 28224 bytes."""


@pytest.fixture
def run(run_python: Callable[..., Any], plugins: Path) -> Run:
    """Runs lines of Python in a process of its own, with the reference plugins' tasks there; gives what it prints."""

    def run(code: str) -> str:
        prelude = (
            f"import os, numpy as np, envpool_sdk\nenvpool_sdk.load_plugin({str(plugins / 'kitchen_sink.so')!r})\n"
        )
        done = run_python(prelude + code)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    return run


def play(env: Any, steps: int) -> None:
    actions = np.zeros(env._pool.batch_size, np.int64)
    for _ in range(steps):
        if env.is_async:
            env.send(actions, env.recv()[4]["env_id"])
        else:
            env.step(actions)


@pytest.mark.parametrize(("batch_size", "copy"), [(0, True), (0, False), (4, True)])
def test_steady_state_has_no_page_faults(batch_size: int, copy: bool) -> None:
    """A batch of 16 such observations has 110 pages: were it allocated anew, each step would fault on them all."""
    env = envpool_sdk.make("Image-v0", num_envs=16, batch_size=batch_size, num_threads=2, copy=copy, **STACK)
    env.async_reset()
    if not env.is_async:
        env.recv()
    play(env, 300)
    retained = env._pool.retained_bytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    play(env, 500)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100
    assert env._pool.retained_bytes == retained
    env.close()


@pytest.mark.full
def test_memory_of_many_large_observations() -> None:
    """docs/dev/runtime.md: two batches (one kept by the user, one being written) and the envs' own stacks."""
    num_envs, observation = 4096, 84 * 84 * 4
    process = psutil.Process()
    before = process.memory_info().rss
    env = envpool_sdk.make("Image-v0", num_envs=num_envs, **STACK)
    observations, _ = env.reset()
    for _ in range(20):
        observations = env.step(np.zeros(num_envs, np.int64))[0]
    assert observations.shape == (num_envs, 4, 84, 84)
    batches, stacks = 2 * num_envs * observation, num_envs * observation
    assert env._pool.retained_bytes <= 1.01 * batches
    assert process.memory_info().rss - before < batches + stacks + num_envs * 8192 + (32 << 20)
    env.close()


def test_threads_are_bound_within_the_allowed_cpus(run: Run) -> None:
    """thread_affinity_offset: worker i has the (offset + i)th allowed CPU, beginning anew behind the last."""
    out = run("""
import time
allowed = sorted(os.sched_getaffinity(0))
def cpus():
    read = lambda task: dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
    return {task: read(task)["Cpus_allowed_list"].strip() for task in os.listdir("/proc/self/task")}
def check(offset, allowed):
    before = cpus()
    env = envpool_sdk.make("Slow-v0", num_envs=8, batch_size=4, num_threads=3, thread_affinity_offset=offset, step_us=1.0)
    wanted = sorted(str(allowed[(offset + i) % len(allowed)]) for i in range(3))
    deadline = time.monotonic() + 20  # a thread binds itself as soon as it runs
    while True:
        workers = sorted(cpu for task, cpu in cpus().items() if task not in before)
        if workers == wanted or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    assert workers == wanted, (workers, wanted)
    env.close()
for offset in (0, 1, len(allowed) + 1):
    check(offset, allowed)
os.sched_setaffinity(0, {allowed[-1]})
check(0, allowed[-1:])
print("bound")
""")
    assert out == "bound\n"


def test_without_affinity_threads_may_run_anywhere(run: Run) -> None:
    out = run("""
env = envpool_sdk.make("Slow-v0", num_envs=8, batch_size=4, num_threads=3, step_us=1.0)
env.async_reset()
env.recv()
masks = {tuple(sorted(os.sched_getaffinity(int(task)))) for task in os.listdir("/proc/self/task")}
print(masks == {tuple(sorted(os.sched_getaffinity(0)))})
""")
    assert out == "True\n"


def test_automatic_threads_follow_the_affinity(run: Run) -> None:
    out = run("""
from envpool_sdk._native import available_cpus
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(available_cpus(), envpool_sdk.make("Slow-v0", num_envs=64).config["num_threads"])
""")
    assert out == "1 1\n"


def costs(num_threads: int, batch_size: int) -> tuple[np.ndarray[Any, Any], set[int]]:
    """What 12 envs of uneven cost planned for their steps 1 to 20, [env, step], in microseconds; and the threads."""
    env = envpool_sdk.make(
        "Slow-v0",
        num_envs=12,
        batch_size=batch_size,
        num_threads=num_threads,
        seed=5,
        step_us=200.0,
        vary=1.0,
        how="burn",
    )
    env.async_reset()
    planned = np.full((12, 20), np.nan)
    threads: set[int] = set()
    while np.isnan(planned).any():
        steps, *_, info = env.recv()
        for env_id, step, cost in zip(info["env_id"], steps, info["planned_us"], strict=True):
            if 0 < step <= 20:
                planned[env_id, step - 1] = cost
        threads |= set(info["thread"].tolist())
        env.send(np.zeros(len(steps), np.int64), info["env_id"])
    env.close()
    return planned, threads


def test_uneven_costs_come_from_the_seed() -> None:
    """Slow-v0, the load that `python -m benchmarks.busy` measures with: mean, spread and order are settings, not luck."""
    one, _ = costs(num_threads=1, batch_size=12)
    other, threads = costs(num_threads=2, batch_size=4)
    np.testing.assert_array_equal(one, other)
    assert len(threads) == 2  # both worked
    assert 0 <= one.min() < 40
    assert 360 < one.max() <= 400
    assert abs(one.mean() - 200) < 30
    assert len(np.unique(one)) == one.size
