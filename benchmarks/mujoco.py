"""MuJoCo: Gymnasium's robots, HalfCheetah-v5 or others, with all defaults; random actions within the bounds."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

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
    random_actions,
    split,
    stepping_cases,
    vector_loop,
)

FRAMES_PER_STEP = 1


def ours(case: Case) -> Stepper:
    import envpool_mujoco  # noqa: F401 - a missing package shall be noticed here
    import envpool_sdk

    return pool_loop(envpool_sdk.make(case.task, **case.sizes), case)


def envpool(case: Case) -> Stepper:
    import envpool

    return pool_loop(envpool.make(case.task, env_type="gymnasium", **case.sizes), case)


def make_env(task: str) -> Any:
    import gymnasium

    return gymnasium.make(task, disable_env_checker=True)


def gymnasium_sync(case: Case) -> Stepper:
    import mujoco  # noqa: F401
    from gymnasium.vector import SyncVectorEnv

    return vector_loop(SyncVectorEnv([partial(make_env, case.task)] * case.num_envs))


def gymnasium_async(case: Case) -> Stepper:
    import mujoco  # noqa: F401
    from gymnasium.vector import AsyncVectorEnv

    return vector_loop(AsyncVectorEnv([partial(make_env, case.task)] * case.num_envs))


# ---- the physics alone ------------------------------------------------------


def physics(task: str) -> tuple[Any, int, Any]:
    """The task's model, its frame skip, its actions."""
    env = make_env(task)
    return env.unwrapped.model, int(env.unwrapped.frame_skip), env.action_space


def healthy_heights(task: str) -> tuple[float, float]:
    """Of the third position: what ends an episode when it leaves them. Raises LeftOutError for tasks that end otherwise."""
    if task.split("-")[0] not in ("Ant", "HalfCheetah", "Humanoid"):
        raise LeftOutError("its ends and resets are not known here")
    lowest, highest = getattr(make_env(task).unwrapped, "_healthy_z_range", (float("-inf"), float("inf")))
    return lowest, highest


def bare(case: Case) -> Stepper:
    """native/mujoco_bare.cpp, compiled here: its headers have to be those of the library."""
    import mujoco

    own = make_env(case.task).unwrapped
    (library,) = Path(mujoco.__file__).parent.glob("libmujoco.so.*")
    headers = Path(mujoco.HEADERS_DIR).parent
    source = Path(__file__).parent / "native" / "mujoco_bare.cpp"
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    numbers = (own.frame_skip, *healthy_heights(case.task), own._reset_noise_scale)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / source.stem
        words = [*compiler, "-O2", "-std=c++20", "-I", headers, source, "-o", program, "-ldl"]
        try:
            subprocess.run(words, check=True)
        except FileNotFoundError:
            raise LeftOutError(f"there is no {compiler[0]} to compile it with") from None
        return BareLoops([program, library, own.fullpath, *map(str, numbers)], case)


def mujoco_rollout(case: Case) -> Stepper:
    """States in, states out: what a step of a synchronous vector env is with it. No observation, no reward, no reset."""
    import mujoco
    import numpy as np
    from mujoco.rollout import Rollout

    model, frame_skip, space = physics(case.task)
    threads = case.threads if case.threads > 1 else 0  # 0: on the calling thread
    datas = [mujoco.MjData(model) for _ in range(max(threads, 1))]
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, datas[0], state, kind)
    states = np.tile(state, (case.num_envs, 1))
    after = np.empty((case.num_envs, frame_skip, len(state)))
    sensors = np.empty((case.num_envs, frame_skip, model.nsensordata))
    rollout = Rollout(nthread=threads)

    def step(action: Any) -> None:
        controls = np.repeat(action[:, None, :], frame_skip, axis=1)
        rollout.rollout(model, datas, states, controls, nstep=frame_skip, state=after, sensordata=sensors)
        states[:] = after[:, -1]

    return Loop(one_by_one(step), random_actions(space, case.num_envs, ""), case.num_envs, rollout.close)


def mujoco_batch(case: Case) -> Stepper:
    """Physics and resets, without noise; neither observations nor rewards. A reset takes an env the whole of a step."""
    import numpy as np
    from mujoco.batch import Batch

    model, frame_skip, space = physics(case.task)
    lowest, highest = healthy_heights(case.task)
    batch = Batch(model, case.num_envs, case.threads)
    height = batch.bind("qpos")[:, 2]

    def step(action: Any) -> None:
        over = (height < lowest) | (height > highest)
        batch.ctrl[:] = action
        if over.any():
            batch.step(np.flatnonzero(~over), nstep=frame_skip)
            batch.reset(np.flatnonzero(over))
        else:
            batch.step(nstep=frame_skip)

    return Loop(one_by_one(step), random_actions(space, case.num_envs, ""), case.num_envs)


BOTH = ("sync", "async")
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-sdk", ours, BOTH),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, BOTH),
    "gymnasium_sync": Contender("Gymnasium SyncVectorEnv", "peer", "gymnasium", gymnasium_sync, threaded=False),
    "gymnasium_async": Contender("Gymnasium AsyncVectorEnv", "peer", "gymnasium", gymnasium_async, threaded=False),
    "bare": Contender("bare loops of mj_step", "ceiling", "mujoco", bare, BOTH),
    "rollout": Contender("mujoco.rollout, physics only", "ceiling", "mujoco", mujoco_rollout),
    "batch": Contender("mujoco.batch, physics only", "ceiling", "mujoco", mujoco_batch),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", default="HalfCheetah-v5", help="ids of Gymnasium's (default: %(default)s)")
    add_case_arguments(parser, num_envs="8,32", mode="sync,async")


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    return stepping_cases("mujoco", split(arguments.task), arguments, threads)
