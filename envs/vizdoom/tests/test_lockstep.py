"""Beside vizdoom's DoomGame, from the same seed with the same actions: pictures, variables, rewards, ends, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doom_originals import VARIABLES, Frame, Original
from doom_pools import raw

BUTTONS = {
    "basic": ("DoomBasic-v1", 3),
    "deadly_corridor": ("DoomDeadlyCorridor-v1", 7),
    "defend_the_center": ("DoomDefendTheCenter-v1", 3),
    "health_gathering": ("DoomHealthGathering-v1", 3),
    "my_way_home": ("DoomMyWayHome-v1", 5),
    "predict_position": ("DoomPredictPosition-v1", 3),
}


def same(frame: Frame, obs: Any, info: dict[str, Any], reward: float, terminated: bool, truncated: bool) -> None:
    got = {name: float(info[name][0]) for name in VARIABLES}
    assert got == frame.variables
    assert reward == np.float32(frame.reward)
    assert (terminated or truncated) == frame.over
    if frame.over:
        assert truncated == frame.timeout
    if frame.screen is not None:
        np.testing.assert_array_equal(obs, frame.screen)


def play(scenario: str, frame_skip: int, steps: int, tmp_path: Path, **settings: Any) -> None:
    task_id, count = BUTTONS[scenario]
    random = np.random.default_rng(0)
    with Original(scenario, 7, tmp_path, frame_skip, **settings) as original:
        assert len(original.buttons) == count
        env = raw(task_id, frame_skip=frame_skip, seed=7, config=settings)
        obs, info = env.reset()
        same(original.frame(), obs[0], info, 0.0, False, False)
        episodes = 0
        for _ in range(steps):
            buttons = random.integers(2, size=count)
            frame = original.step([float(b) for b in buttons])
            obs, reward, terminated, truncated, info = env.step(buttons[None].astype(np.int8))
            same(frame, obs[0], info, reward[0], terminated[0], truncated[0])
            if frame.over:
                episodes += 1
                frame = original.new_episode()
                obs, reward, terminated, truncated, info = env.step(buttons[None].astype(np.int8))
                same(frame, obs[0], info, 0.0, False, False)
        assert episodes
        env.close()


@pytest.mark.parametrize("scenario", BUTTONS)
def test_four_tics_a_step(scenario: str, tmp_path: Path) -> None:
    play(scenario, 4, 550, tmp_path)


def test_tic_by_tic(tmp_path: Path) -> None:
    play("deadly_corridor", 1, 500, tmp_path)


def test_with_the_status_bar(tmp_path: Path) -> None:
    """Its face and numbers follow the engine's whole past, not the episode's."""
    play("health_gathering", 4, 300, tmp_path, render_hud=True, render_messages=True)


@pytest.mark.full
@pytest.mark.parametrize("scenario", BUTTONS)
def test_tic_by_tic_at_length(scenario: str, tmp_path: Path) -> None:
    play(scenario, 1, 2500, tmp_path)
