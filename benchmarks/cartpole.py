"""CartPole-v1: an environment that costs nanoseconds, so that what is measured is the pool."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .contender import Case, Contender, Stepper, pool_loop, vector_loop

FRAMES_PER_STEP = 1
TASK = "CartPole-v1"


def load_ours(case: Case) -> None:
    """Makes our CartPole known."""
    import envpool_sdk

    if case.plugin:
        envpool_sdk.load_plugin(case.plugin)


def ours(case: Case) -> Stepper:
    import envpool_sdk

    load_ours(case)
    settings: dict[str, Any] = {"num_envs": case.num_envs, "batch_size": case.batch_size, "num_threads": case.threads}
    return pool_loop(envpool_sdk.make(TASK, max_episode_steps=500, **settings), case)


def ours_make_vec(case: Case) -> Stepper:
    import gymnasium

    load_ours(case)
    return vector_loop(gymnasium.make_vec(f"envpool/{TASK}", num_envs=case.num_envs, num_threads=case.threads))


def envpool(case: Case) -> Stepper:
    import envpool

    settings: dict[str, Any] = {"num_envs": case.num_envs, "batch_size": case.batch_size, "num_threads": case.threads}
    return pool_loop(envpool.make(TASK, env_type="gymnasium", **settings), case)


def gymnasium_sync(case: Case) -> Stepper:
    import gymnasium

    def make() -> gymnasium.Env[Any, Any]:
        return gymnasium.make(TASK, disable_env_checker=True)

    return vector_loop(gymnasium.vector.SyncVectorEnv([make] * case.num_envs))


def gymnasium_entry_point(case: Case) -> Stepper:
    import gymnasium

    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    return vector_loop(gymnasium.make_vec(TASK, num_envs=case.num_envs, vectorization_mode=mode))


BOTH = ("sync", "async")
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-sdk", ours, BOTH),
    "ours_make_vec": Contender("envpool-sdk, make_vec", "own", "envpool-sdk", ours_make_vec),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, BOTH),
    "gymnasium_entry_point": Contender(
        "Gymnasium vector entry point", "peer", "gymnasium", gymnasium_entry_point, threaded=False
    ),
    "gymnasium_sync": Contender("Gymnasium SyncVectorEnv", "peer", "gymnasium", gymnasium_sync, threaded=False),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--num-envs", default="1,8,64,256,1024,4096", help="default: %(default)s")
    parser.add_argument("--mode", default="sync", help="default: %(default)s")
    parser.add_argument(
        "--plugin", default="build/dev/reference/cartpole_c.so", help="our CartPole, built (default: %(default)s)"
    )


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    plugin = str(Path(arguments.plugin).resolve()) if arguments.plugin else None
    for num_envs in map(int, arguments.num_envs.split(",")):
        for mode in arguments.mode.split(",") if num_envs > 1 else ["sync"]:
            yield Case("cartpole", TASK, mode, num_envs, threads, plugin)
