"""Doom: 84x84 gray, stack of 4, frame skip 4, scenarios of the vizdoom wheel. All engines draw 160x120 in GRAY8, our default RGB24 beside it."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
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
    split,
    stepping_cases,
    vector_loop,
)

FRAMES_PER_STEP = 4
POOL: dict[str, Any] = {
    "img_height": 84,
    "img_width": 84,
    "stack_num": 4,
    "frame_skip": FRAMES_PER_STEP,
    "use_combined_action": True,
}


def id_of(scenario: str) -> str:
    """health_gathering: HealthGathering."""
    return "".join(word.capitalize() for word in scenario.split("_"))


def ours(case: Case, **options: Any) -> Stepper:
    import envpool_sdk
    import envpool_vizdoom  # noqa: F401 - a missing package shall be noticed here

    env = envpool_sdk.make(f"Doom{id_of(case.task)}-v1", **case.sizes, **POOL, screen_resolution="160x120", **options)
    return pool_loop(env, case)


def envpool(case: Case) -> Stepper:
    import envpool

    # Its own scenario file, of 320x240 and colours, with the engine's settings of all others.
    task = f"{id_of(case.task)}-v1"
    spec = envpool.make_spec(task)
    settings = dict(zip(spec._config_keys, spec._config_values, strict=True))
    lines = Path(settings["cfg_path"]).read_text().splitlines()
    kept = [line for line in lines if not line.strip().lower().startswith(("screen_resolution", "screen_format"))]
    own = Path(f"{case.task}.cfg").absolute()  # the working directory is the contender's own
    own.write_text("\n".join([*kept, "screen_resolution = RES_160X120", "screen_format = GRAY8", ""]))
    return pool_loop(envpool.make(task, env_type="gymnasium", **case.sizes, **POOL, cfg_path=str(own)), case)


def make_env(scenario: str) -> Any:
    """vizdoom's own Gymnasium env, with Gymnasium's wrappers."""
    import gymnasium
    import numpy as np
    import vizdoom.gymnasium_wrapper  # noqa: F401 - registers its ids
    from gymnasium.wrappers import FrameStackObservation, ResizeObservation, TransformObservation

    env: Any = gymnasium.make(
        f"Vizdoom{id_of(scenario)}-v1",
        frame_skip=FRAMES_PER_STEP,
        screen_resolution="RES_160X120",
        screen_format="GRAY8",
        disable_env_checker=True,
    )
    screen = gymnasium.spaces.Box(0, 255, (120, 160), np.uint8)
    env = TransformObservation(env, lambda obs: np.ascontiguousarray(obs["screen"][..., 0]), screen)
    return FrameStackObservation(ResizeObservation(env, (84, 84)), 4)


def vizdoom_async(case: Case) -> Stepper:
    import cv2  # noqa: F401 - a missing package shall be noticed here
    import vizdoom  # noqa: F401
    from gymnasium.vector import AsyncVectorEnv

    return vector_loop(AsyncVectorEnv([partial(make_env, case.task)] * case.num_envs))


def bare_game(scenario: str, settings: Path) -> Any:
    """A game whose engine runs. settings: a file that the engine may write."""
    import vizdoom

    game = vizdoom.DoomGame()
    game.load_config(str(Path(vizdoom.scenarios_path) / f"{scenario}.cfg"))
    game.set_doom_config_path(str(settings.absolute()))
    game.set_window_visible(False)
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.set_screen_format(vizdoom.ScreenFormat.GRAY8)
    game.init()
    return game


def bare_loop(scenario: str, number: int, engines: int) -> Stepper:
    """Plays DoomGames in turn, alone with their engines on a CPU, and looks at no picture."""
    import numpy as np

    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[number % len(cpus)]})
    games = [bare_game(scenario, Path(f"_vizdoom{number}-{i}.ini")) for i in range(engines)]
    buttons = [list(map(float, pressed)) for pressed in itertools.product((0, 1), repeat=3)]

    def step(action: list[float]) -> None:
        for game in games:
            if game.is_episode_finished():
                game.new_episode()
            game.make_action(action, FRAMES_PER_STEP)

    def close() -> None:
        for game in games:
            game.close()

    chosen = [buttons[i] for i in np.random.default_rng(1).integers(0, len(buttons), 1024)]
    return Loop(one_by_one(step), chosen, rows=engines, close=close)


def bare_loops(case: Case) -> Stepper:
    import vizdoom  # noqa: F401 - a missing package shall be noticed here

    return Split([partial(bare_loop, case.task, number, share) for number, share in enumerate(case.shares)])


BOTH = ("sync", "async")
CONTENDERS = {
    "ours": Contender("envpool-sdk", "own", "envpool-vizdoom", partial(ours, screen_format="GRAY8"), BOTH),
    "ours_rgb": Contender(
        "envpool-sdk, RGB24 made gray", "own", "envpool-vizdoom", partial(ours, gray_scale=True), BOTH
    ),
    "envpool": Contender("EnvPool", "peer", "envpool", envpool, BOTH),
    "vizdoom_async": Contender(
        "vizdoom's env in AsyncVectorEnv", "peer", "vizdoom", vizdoom_async, BOTH, threaded=False
    ),
    "bare": Contender("bare loops, DoomGame", "ceiling", "vizdoom", bare_loops, BOTH),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", default="basic,health_gathering", help="default: %(default)s")
    add_case_arguments(parser, num_envs="8,16", mode="sync,async")


def cases(arguments: argparse.Namespace, threads: int) -> Iterator[Case]:
    return stepping_cases("vizdoom", split(arguments.scenario), arguments, threads)
