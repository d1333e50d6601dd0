"""CartPole-v1: an environment that costs nanoseconds, so that what is measured is the pool."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import sample_factory
from .contender import (
    BareLoops,
    Case,
    Contender,
    LeftOutError,
    Loop,
    Stepper,
    add_case_arguments,
    one_by_one,
    pool_loop,
    program_loop,
    random_actions,
    stepping_cases,
    vector_loop,
)

FRAMES_PER_STEP = 1
TASK = "CartPole-v1"

MOST_PROCESSES = 64
MOST_ENVS_ONE_BY_ONE = 1024
"""Above these Gymnasium's AsyncVectorEnv, a process an env, and SyncVectorEnv take longer to make than to measure."""


# ---- ours -------------------------------------------------------------------


def load_ours(case: Case) -> None:
    """Makes our CartPole known."""
    import envpool_sdk

    if case.plugin:
        envpool_sdk.load_plugin(case.plugin)


def ours(case: Case) -> Stepper:
    import envpool_sdk

    load_ours(case)
    return pool_loop(envpool_sdk.make(TASK, **case.sizes), case)


def ours_in_place(case: Case) -> Stepper:
    import envpool_sdk

    load_ours(case)
    return pool_loop(envpool_sdk.make(TASK, copy=False, **case.sizes), case)


def ours_xla(case: Case) -> Stepper:
    import envpool_sdk

    load_ours(case)
    return program_loop(envpool_sdk.make(TASK, **case.sizes), case)


def ours_make_vec(case: Case) -> Stepper:
    import gymnasium

    load_ours(case)
    return vector_loop(gymnasium.make_vec(f"envpool/{TASK}", num_envs=case.num_envs, num_threads=case.threads))


# ---- peers ------------------------------------------------------------------


def envpool(case: Case) -> Stepper:
    import envpool

    return pool_loop(envpool.make(TASK, env_type="gymnasium", **case.sizes), case)


def envpool_xla(case: Case) -> Stepper:
    import envpool

    return program_loop(envpool.make(TASK, env_type="gymnasium", **case.sizes), case)


def pufferlib(case: Case) -> Stepper:
    """PufferLib's CartPole in C: float32, 200 steps at most, an ended episode begins anew in the same step."""
    from pufferlib.ocean.cartpole.cartpole import Cartpole

    env = Cartpole(num_envs=case.num_envs, report_interval=1 << 30)  # its logs are collected by a call of their own
    env.reset(seed=1)
    # float32 is what its C code takes.
    actions = random_actions(env.single_action_space, case.num_envs, "float32")
    return Loop(one_by_one(env.step), actions, case.num_envs, env.close)


def make_env() -> Any:
    import gymnasium

    return gymnasium.make(TASK, disable_env_checker=True)


def gymnasium_sync(case: Case) -> Stepper:
    from gymnasium.vector import SyncVectorEnv

    if case.num_envs > MOST_ENVS_ONE_BY_ONE:
        raise LeftOutError(f"more than {MOST_ENVS_ONE_BY_ONE} envs")
    return vector_loop(SyncVectorEnv([make_env] * case.num_envs))


def gymnasium_async(case: Case) -> Stepper:
    from gymnasium.vector import AsyncVectorEnv

    if case.num_envs > MOST_PROCESSES:
        raise LeftOutError(f"more than {MOST_PROCESSES} processes")
    return vector_loop(AsyncVectorEnv([make_env] * case.num_envs))


def gymnasium_entry_point(case: Case) -> Stepper:
    import gymnasium

    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    return vector_loop(gymnasium.make_vec(TASK, num_envs=case.num_envs, vectorization_mode=mode))


# ---- the ceiling ------------------------------------------------------------


def bare(case: Case) -> Stepper:
    """native/bench_bare.cpp."""
    if not case.plugin:
        raise LeftOutError("it needs --plugin")
    program = Path(case.plugin).parent.parent / "benchmarks" / "bench_bare"
    if not program.exists():
        raise LeftOutError(f"{program} is not built")
    return BareLoops([program, case.plugin], case)


BOTH = ("sync", "async")
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-sdk", ours, BOTH),
    "ours_in_place": Contender("envpool-sdk, copy=False", "own", "envpool-sdk", ours_in_place),
    "ours_make_vec": Contender("envpool-sdk, make_vec", "own", "envpool-sdk", ours_make_vec),
    "ours_xla": Contender("envpool-sdk, xla", "own", "envpool-sdk", ours_xla),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, BOTH),
    "envpool_xla": Contender("EnvPool, xla", "peer", "envpool", envpool_xla),
    "pufferlib": Contender("PufferLib, native", "peer", "pufferlib", pufferlib, threaded=False),
    "gymnasium_entry_point": Contender(
        "Gymnasium vector entry point", "peer", "gymnasium", gymnasium_entry_point, threaded=False
    ),
    "gymnasium_sync": Contender("Gymnasium SyncVectorEnv", "peer", "gymnasium", gymnasium_sync, threaded=False),
    "gymnasium_async": Contender("Gymnasium AsyncVectorEnv", "peer", "gymnasium", gymnasium_async, threaded=False),
    "sample_factory": Contender("Sample Factory, sampler", "peer", "sample-factory", sample_factory.make, ("async",)),
    "bare": Contender("bare loops in C++, our CartPole", "ceiling", None, bare),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_case_arguments(parser, num_envs="1,8,64,256,1024,4096", mode="sync")
    parser.add_argument(
        "--plugin", default="build/release/reference/cartpole_c.so", help="our CartPole, built (default: %(default)s)"
    )


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    plugin = str(Path(arguments.plugin).resolve()) if arguments.plugin else None
    return stepping_cases("cartpole", [TASK], arguments, threads, plugin)
