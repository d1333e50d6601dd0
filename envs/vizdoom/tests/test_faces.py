"""What users see: ids, spaces, options, rewards, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from doom_pools import raw
from gymnasium.utils.env_checker import check_env

import envpool_sdk
from envpool_vizdoom.plugin import manifest

ALL = [task.id for task in manifest().tasks]
PLAYABLE = [task_id for task_id in ALL if task_id != "DoomCustom-v1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("task_id", PLAYABLE)
def test_every_task_plays(task_id: str) -> None:
    env = gymnasium.make(f"envpool/{task_id}")
    obs, _ = env.reset(seed=1)
    assert obs in env.observation_space
    env.action_space.seed(1)
    for _ in range(5):
        obs, reward, terminated, _, info = env.step(env.action_space.sample())
        assert obs in env.observation_space
        assert isinstance(reward, float)
        assert "HEALTH" in info
        if terminated:
            env.reset()
    env.close()


def test_the_checker_is_content() -> None:
    env = gymnasium.make("envpool/Doom-v1", render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


def test_names_of_envpool() -> None:
    for name in ("Basic-v1", "HealthGathering-v1", "DefendTheCenter-v1", "VizdoomCustom-v1"):
        assert name in envpool_sdk.list_all_envs()


def test_doom_plays_any_scenario() -> None:
    picked = envpool_sdk.make("Doom-v1", scenario="health_gathering", seed=1)
    named = envpool_sdk.make("HealthGathering-v1", seed=1)
    np.testing.assert_array_equal(picked.reset()[0], named.reset()[0])
    picked.close()
    named.close()


def test_a_scenario_file_of_ones_own(tmp_path: Path) -> None:
    """Beside its own WAD's name, which is looked for in the wheel too; another map's rules."""
    cfg = tmp_path / "mine.cfg"
    cfg.write_text(
        "# mine\ndoom_scenario_path = basic.wad\ndoom_map = map01\nepisode_start_time = 14\n"
        "available_buttons =\n{\n  MOVE_LEFT # and back\n  ATTACK\n}\navailable_game_variables = { HEALTH }\n"
        "available_game_variables += { ANGLE }\nliving_reward = 0.5\nepisode_timeout = 40\ngame_args += +sv_noautoaim 1\n"
    )
    env = envpool_sdk.make("DoomCustom-v1", cfg_path="mine.cfg", seed=1, observe_variables=True)
    assert env.action_space.n == 3
    assert env.observation_space["gamevariables"].shape == (2,)
    env.reset()
    rewards = [float(env.step(np.zeros(1, np.int64))[1][0]) for _ in range(10)]
    assert rewards == [2.0] * 10
    assert env.step(np.zeros(1, np.int64))[4]["elapsed_step"] == 0
    env.close()


@pytest.mark.parametrize(
    ("options", "drawn"),
    [
        ({}, "160x120"),
        ({"img_height": None, "img_width": None}, "160x120"),
        ({"img_height": 120, "img_width": 160}, "160x120"),
        ({"img_height": 128, "img_width": 128}, "200x150"),
        ({"img_height": 84, "img_width": 300}, "320x240"),
        ({"img_height": 5000}, "1600x1200"),
        ({"img_height": 128, "screen_resolution": "640x480"}, "640x480"),
        ({"img_height": 128, "screen_resolution": ""}, ""),
    ],
)
def test_what_is_drawn_covers_the_image(options: dict[str, Any], drawn: str) -> None:
    from envpool_sdk.making import Setup

    assert Setup.of(envpool_sdk.make, "DoomBasic-v1", options).values["screen_resolution"] == drawn


def labels(task_id: str, **options: Any) -> list[str]:
    """The meanings of a task's discrete actions."""
    from envpool_sdk.making import Setup

    setup = Setup.of(envpool_sdk.make, task_id, options)
    return list(setup.describe()["action"][0]["labels"])


def test_combined_actions_are_those_of_envpool() -> None:
    """Counts and order were read off EnvPool 1.2.5's engines, action by action."""
    assert labels("DoomBasic-v1", use_combined_action=True) == [
        "NOOP",
        "MOVE_RIGHT",
        "MOVE_LEFT",
        "ATTACK",
        "ATTACK+MOVE_RIGHT",
        "ATTACK+MOVE_LEFT",
    ]
    corridor = labels("DoomDeadlyCorridor-v1", use_combined_action=True)
    assert len(corridor) == 54
    assert corridor[:6] == [
        "NOOP",
        "TURN_RIGHT",
        "TURN_LEFT",
        "MOVE_BACKWARD",
        "MOVE_BACKWARD+TURN_RIGHT",
        "MOVE_BACKWARD+TURN_LEFT",
    ]
    assert corridor[9] == "MOVE_RIGHT"
    assert corridor[27] == "ATTACK"
    assert corridor[53] == "ATTACK+MOVE_LEFT+MOVE_FORWARD+TURN_LEFT"
    assert envpool_sdk.make("DoomDeathmatch-v1", use_combined_action=True).action_space.n == 4536


def test_delta_buttons_in_combined_actions() -> None:
    names = labels(
        "DoomBasic-v1",
        use_combined_action=True,
        config={"available_buttons": ["ATTACK", "TURN_LEFT_RIGHT_DELTA"]},
        delta_button_config={"TURN_LEFT_RIGHT_DELTA": (3, -6, 6)},
    )
    assert len(names) == 6
    env = raw(
        "DoomBasic-v1",
        use_combined_action=True,
        config={"available_buttons": ["ATTACK", "TURN_LEFT_RIGHT_DELTA"]},
        delta_button_config={"TURN_LEFT_RIGHT_DELTA": (3, -6, 6)},
        seed=1,
    )
    env.reset()
    angles = [float(env.step(np.array([a]))[4]["ANGLE"][0]) for a in (0, 1, 2, 2)]
    turns = [(after - before + 180) % 360 - 180 for before, after in zip([0.0, *angles], angles, strict=False)]
    assert turns == pytest.approx([6, 0, -6, -6], abs=0.1)
    env.close()


def test_a_bit_for_each_button_and_numbers() -> None:
    env = gymnasium.make("envpool/DoomCig-v1", max_buttons_pressed=0)
    assert env.action_space["binary"] == gymnasium.spaces.MultiBinary(8)
    assert env.action_space["continuous"].shape == (2,)
    env.reset(seed=1)
    action = {"binary": np.zeros(8, np.int8), "continuous": np.array([np.nan, 0], np.float32)}
    info = env.step(action)[4]
    assert "must be a finite number" in str(info["fault"])
    env.close()


def test_force_speed() -> None:
    assert "SPEED" not in " ".join(labels("DoomDeathmatch-v1", force_speed=True))

    def way(force_speed: bool) -> float:
        env = raw(
            "DoomMyWayHome-v1",
            force_speed=force_speed,
            config={"available_buttons": ["MOVE_FORWARD", "SPEED"]},
            max_buttons_pressed=1,
            seed=3,
        )
        info = env.reset()[1]
        x, y = info["POSITION_X"][0], info["POSITION_Y"][0]
        forward = 1
        for _ in range(6):
            info = env.step(np.array([forward if force_speed else 2]))[4]
        env.close()
        return float(np.hypot(info["POSITION_X"][0] - x, info["POSITION_Y"][0] - y))

    assert way(True) > 1.2 * way(False) > 0


def test_shaped_rewards() -> None:
    """A shot costs ammunition of two kinds; the weapon in hand counts from its fifth observation on."""
    env = envpool_sdk.make(
        "DoomBasic-v1",
        seed=1,
        use_combined_action=True,
        reward_config={"AMMO2": (2, -1), "AMMO4": (0, -5), "HEALTH": (1, -1)},
        selected_weapon_reward_config={2: 0.25},
        weapon_duration=5,
    )
    env.reset()
    noop, attack = np.array([0]), np.array([3])
    assert [env.step(noop)[1].item() for _ in range(5)] == [0, 0, 0, 0.25, 0.25]
    rewards = []
    ammo = 50.0
    for _ in range(4):
        _, reward, *_, info = env.step(attack)
        rewards.append((reward.item(), ammo - info["AMMO2"].item()))
        ammo = info["AMMO2"].item()
    assert rewards == [(0.25 - 6 * shots, shots) for _, shots in rewards]
    assert sum(shots for _, shots in rewards) >= 1
    env.close()


def test_pictures() -> None:
    env = gymnasium.make(
        "envpool/DoomBasic-v1",
        render_mode="rgb_array",
        screen_resolution="320x240",
        img_height=None,
        img_width=None,
        stack_num=1,
        channels_last=True,
    )
    obs, _ = env.reset(seed=1)
    picture: Any = env.render()
    np.testing.assert_array_equal(picture, obs)
    gray = gymnasium.make("envpool/DoomBasic-v1", render_mode="rgb_array", screen_format="GRAY8")
    gray.reset(seed=1)
    picture = gray.render()
    assert picture.shape == (120, 160, 3)
    assert (picture == picture[..., :1]).all()
    env.close()
    gray.close()
