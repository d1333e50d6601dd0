"""python -m benchmarks.distributed TASK [options]: what it costs to ship steps or rollouts from other nodes, by Ray.

Three contenders step as many envs with random actions: one local pool with two threads, and two nodes of a Ray cluster on this
machine, each with one CPU and half the envs, which ship single steps or whole rollouts (`envpool_sdk.ray.RayPool`). They
take turns; a figure is the median of the rounds, in env steps a second.

It needs Ray, so it runs in the environment that `scripts/test ray` makes: build/ray/bin/python -m benchmarks.distributed.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

import envpool_sdk
from envpool_sdk.ray import RayPool


class Random:
    """A policy of random actions."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, observations: Any) -> Any:
        return np.random.randint(self.n, size=len(observations))


def local(task: str, envs: int, seconds: float, **options: Any) -> float:
    with closing(envpool_sdk.make(task, num_envs=envs, num_threads=2, **options)) as env:
        policy = Random(env.action_space.n)
        observations, _ = env.reset()

        def step() -> int:
            nonlocal observations
            observations = env.step(policy(observations))[0]
            return envs

        return rate(step, seconds)


def steps(pool: RayPool, seconds: float) -> float:
    policy = Random(pool.action_space.n)
    pool.async_reset()

    def step() -> int:
        observations, _, _, _, info = pool.recv()
        pool.send(policy(observations), info["env_id"])
        return len(observations)

    speed = rate(step, seconds)
    pool.recv(batch=pool.num_envs)
    return speed


def rollouts(pool: RayPool, length: int, seconds: float) -> float:
    """One rollout ahead: the nodes play the next one while this one is fetched and read."""
    policy = Random(pool.action_space.n)
    ahead = pool.rollout(policy, length)

    def step() -> int:
        nonlocal ahead
        now, ahead = ahead, pool.rollout(policy, length)
        return sum(rollout.rewards.size for rollout in now)

    speed = rate(step, seconds)
    list(ahead)
    return speed


def rate(step: Callable[[], int], seconds: float) -> float:
    """Steps a second, after half a second of running in."""
    for warm_up in (True, False):
        done, begin = 0, perf_counter()
        while (wall := perf_counter() - begin) < (0.5 if warm_up else seconds):
            done += step()
    return done / wall


@contextmanager
def two_nodes() -> Iterator[None]:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("task", nargs="?", default="Pong-v5")
    parser.add_argument("--envs", default="8,32", help="of each node (default: %(default)s)")
    parser.add_argument("--length", type=int, default=32, help="steps of a rollout (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    arguments = parser.parse_args()

    with two_nodes():
        print(f"{arguments.task}, rollouts of {arguments.length} steps; env steps a second")
        print("envs a node  local pool   rollouts          steps", flush=True)
        for envs in map(int, arguments.envs.split(",")):
            found: dict[str, list[float]] = {"local": [], "rollouts": [], "steps": []}
            with RayPool(arguments.task, num_nodes=2, envs_per_node=envs, strategy="STRICT_SPREAD") as pool:
                for _ in range(arguments.rounds):
                    found["local"].append(local(arguments.task, 2 * envs, arguments.seconds))
                    found["rollouts"].append(rollouts(pool, arguments.length, arguments.seconds))
                    found["steps"].append(steps(pool, arguments.seconds))
            base, shipped, single = (statistics.median(found[name]) for name in ("local", "rollouts", "steps"))
            print(
                f"{envs:11}  {base:10.0f}  {shipped:9.0f} {shipped / base:5.0%}  {single:9.0f} {single / base:5.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
