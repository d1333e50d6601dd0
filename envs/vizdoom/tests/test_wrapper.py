"""Beside vizdoom's own Gymnasium environment: the same spaces, observations, rewards and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import vizdoom.gymnasium_wrapper  # noqa: F401 - registers its ids

import envpool_sdk  # noqa: F401 - registers ours

AS_IS = {
    "img_height": None,
    "img_width": None,
    "stack_num": 1,
    "channels_last": True,
    "screen_resolution": "",
    "observe_variables": True,
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # vizdoom writes there


def check_observation(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if name == "notifications":
            assert ours[name] == value
        else:
            np.testing.assert_array_equal(np.asarray(ours[name]).reshape(value.shape), value, err_msg=name)


@pytest.mark.parametrize(
    ("theirs_id", "ours_id", "settings"),
    [
        ("VizdoomBasic-v1", "DoomBasic-v1", {}),
        ("VizdoomBasicNotifications-v1", "DoomBasicNotifications-v1", {}),
        ("VizdoomDeadlyCorridor-v1", "DoomDeadlyCorridor-v1", {}),
        ("VizdoomDeathmatch-v1", "DoomDeathmatch-v1", {}),
        ("VizdoomHealthGatheringSupreme-v1", "DoomHealthGatheringSupreme-v1", {"screen_format": "GRAY8"}),
        ("VizdoomTakeCover-v1", "DoomTakeCover-v1", {}),
        (
            "VizdoomDefendLine-v1",
            "DoomDefendTheLine-v1",
            {
                "depth_buffer_enabled": True,
                "labels_buffer_enabled": True,
                "automap_buffer_enabled": True,
                "automap_mode": "WHOLE",
                "automap_rotate": True,
                "render_hud": True,
                "render_crosshair": True,
                "kill_reward": 3,
                "hit_reward": 0.5,
                "damage_made_reward": 0.25,
                "health_reward": 0.125,
                "death_penalty": 7,
            },
        ),
    ],
)
def test_same_as_vizdooms_own(theirs_id: str, ours_id: str, settings: dict[str, Any]) -> None:
    theirs = gymnasium.make(theirs_id, frame_skip=4, **settings)
    ours = gymnasium.make(f"envpool/{ours_id}", frame_skip=4, config=settings, **AS_IS)
    wanted, action_space = theirs.observation_space, theirs.action_space
    assert isinstance(wanted, gymnasium.spaces.Dict)
    assert isinstance(ours.observation_space, gymnasium.spaces.Dict)
    assert ours.observation_space.keys() == wanted.keys()
    binary = action_space["binary"] if isinstance(action_space, gymnasium.spaces.Dict) else action_space
    own = ours.action_space["binary"] if isinstance(ours.action_space, gymnasium.spaces.Dict) else ours.action_space
    assert own == binary

    random = np.random.default_rng(0)
    over = True
    for step in range(250):
        if over:
            want, _ = theirs.reset(seed=step)
            # Their seed makes the engine's by a generator of Gymnasium's.
            got, _ = ours.reset(seed=theirs.unwrapped.game.get_seed())
            check_observation(got, want)
        action: Any = int(random.integers(binary.n))
        if isinstance(action_space, gymnasium.spaces.Dict):
            turns = random.normal(0, 5, action_space["continuous"].shape).astype(np.float32)
            action = {"binary": action, "continuous": turns}
        want, reward, terminated, truncated, _ = theirs.step(action)
        got, own_reward, own_terminated, own_truncated, _ = ours.step(action)
        over = terminated or truncated
        assert (own_reward, own_terminated or own_truncated) == (pytest.approx(reward, rel=1e-12), over)
        assert own_truncated == truncated
        if not over:  # they show zeros at the end, we show the end
            check_observation(got, want)
    theirs.close()
    ours.close()
