"""Atari: 84x84 gray, INTER_AREA, frame skip 4, stack of 4, up to 30 no-ops, FIRE at resets where it exists, no sticky actions."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from .contender import (
    Case,
    Contender,
    Loop,
    Split,
    Stepper,
    add_case_arguments,
    one_by_one,
    pool_loop,
    random_actions,
    split,
    stepping_cases,
    vector_loop,
)

FRAMES_PER_STEP = 4

# The same settings under the names of each contender. Rewards are clipped nowhere.
POOL: dict[str, Any] = {
    "img_height": 84,
    "img_width": 84,
    "gray_scale": True,
    "frame_skip": FRAMES_PER_STEP,
    "stack_num": 4,
    "noop_max": 30,
    "use_fire_reset": True,
    "repeat_action_probability": 0.0,
    "reward_clip": False,
    "episodic_life": False,
}
OURS: dict[str, Any] = {**POOL, "max_last_two": True, "interpolation": "area"}
ENVPOOL: dict[str, Any] = {**POOL, "use_inter_area_resize": True}
ALE_VECTOR: dict[str, Any] = {
    "img_height": 84,
    "img_width": 84,
    "grayscale": True,
    "frameskip": FRAMES_PER_STEP,
    "stack_num": 4,
    "noop_max": 30,
    "use_fire_reset": True,
    "repeat_action_probability": 0.0,
    "reward_clipping": False,
    "episodic_life": False,
}
PREPROCESSING: dict[str, Any] = {
    "screen_size": 84,
    "grayscale_obs": True,
    "frame_skip": FRAMES_PER_STEP,
    "noop_max": 30,
}


def task_id(game: str) -> str:
    """space_invaders: SpaceInvaders-v5."""
    return "".join(word.capitalize() for word in game.split("_")) + "-v5"


# ---- contenders -------------------------------------------------------------


def ours(case: Case) -> Stepper:
    import envpool_sdk

    return pool_loop(envpool_sdk.make(task_id(case.task), **case.sizes, **OURS), case)


def envpool(case: Case) -> Stepper:
    import envpool

    return pool_loop(envpool.make(task_id(case.task), env_type="gymnasium", **case.sizes, **ENVPOOL), case)


def ale_vector(case: Case) -> Stepper:
    from ale_py.vector_env import AtariVectorEnv

    env: Any = AtariVectorEnv(case.task, **case.sizes, **ALE_VECTOR)
    if case.mode == "sync":
        return vector_loop(env)

    env.reset(seed=1)

    def run(actions: Sequence[Any]) -> None:
        for action in actions:
            env.send(action)  # to the envs of the last batch
            env.recv()

    return Loop(run, random_actions(env.single_action_space, case.batch_size, "int32"), case.batch_size, env.close)


def gymnasium_env(game: str) -> Any:
    """One env with Gymnasium's standard preprocessing."""
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    env = gymnasium.make(f"ALE/{task_id(game)}", frameskip=1, repeat_action_probability=0.0, disable_env_checker=True)
    return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.AtariPreprocessing(env, **PREPROCESSING), 4)


def gymnasium_async(case: Case) -> Stepper:
    import ale_py  # noqa: F401 - a missing package shall be noticed here
    import cv2  # noqa: F401
    from gymnasium.vector import AsyncVectorEnv

    return vector_loop(AsyncVectorEnv([partial(gymnasium_env, case.task)] * case.num_envs))


def gymnasium_sync(case: Case) -> Stepper:
    import ale_py  # noqa: F401
    import cv2  # noqa: F401
    from gymnasium.vector import SyncVectorEnv

    return vector_loop(SyncVectorEnv([partial(gymnasium_env, case.task)] * case.num_envs))


def bare_ale(game: str) -> Any:
    """An emulator that has loaded the game."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 1)
    rom: Any = ale_py.roms.get_rom_path(game)
    ale.loadROM(rom)
    return ale


def bare_loop(game: str, emulators: int) -> Stepper:
    """Steps emulators in turn; sums rewards and steps of their games, looks at no picture."""
    import numpy as np

    ales = [bare_ale(game) for _ in range(emulators)]
    actions = ales[0].getMinimalActionSet()
    returned, length = [0] * emulators, [0] * emulators

    def step(action: Any) -> None:
        for i, ale in enumerate(ales):
            if ale.game_over():
                ale.reset_game()
                returned[i], length[i] = 0, 0
            for _ in range(FRAMES_PER_STEP):
                returned[i] += ale.act(action)
            length[i] += 1

    chosen = [actions[i] for i in np.random.default_rng(1).integers(0, len(actions), 1024)]
    return Loop(one_by_one(step), chosen, rows=emulators)


def bare_loops(case: Case) -> Stepper:
    import ale_py  # noqa: F401 - a missing package shall be noticed here

    return Split([partial(bare_loop, case.task, share) for share in case.shares])


BOTH = ("sync", "async")
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-sdk", ours, BOTH),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, BOTH),
    "ale_vector": Contender("AtariVectorEnv of ale-py", "peer", "ale-py", ale_vector, BOTH),
    "gymnasium_async": Contender(
        "Gymnasium AsyncVectorEnv", "peer", "gymnasium", gymnasium_async, BOTH, threaded=False
    ),
    "gymnasium_sync": Contender("Gymnasium SyncVectorEnv", "peer", "gymnasium", gymnasium_sync, threaded=False),
    "bare": Contender("bare loops, ale-py", "ceiling", "ale-py", bare_loops, BOTH),
}


# ---- cases ------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--game", default="pong,breakout", help="ROM names (default: %(default)s)")
    add_case_arguments(parser, num_envs="8,16", mode="sync,async")


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    return stepping_cases("atari", split(arguments.game), arguments, threads)
