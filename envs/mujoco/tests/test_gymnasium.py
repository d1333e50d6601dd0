"""Gymnasium's eleven tasks in lockstep with Gymnasium itself: the same state, the same actions, the same results."""

from __future__ import annotations

import inspect
import json
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from mujoco_pools import Rows, plugin

# Options other than the defaults: every argument of every class, at least once.
CHANGED: dict[str, list[dict[str, Any]]] = {
    "Ant-v5": [
        {
            "frame_skip": 3,
            "forward_reward_weight": 1.5,
            "ctrl_cost_weight": 0.3,
            "contact_cost_weight": 1e-3,
            "healthy_reward": 2.0,
            "main_body": "front_left_leg",
            "healthy_z_range": (0.3, 0.9),
            "contact_force_range": (-0.5, 2.0),
            "reset_noise_scale": 0.2,
            "exclude_current_positions_from_observation": False,
        },
        {"terminate_when_unhealthy": False, "include_cfrc_ext_in_observation": False, "main_body": "3"},
    ],
    "HalfCheetah-v5": [
        {
            "frame_skip": 2,
            "forward_reward_weight": 0.7,
            "ctrl_cost_weight": 0.3,
            "reset_noise_scale": 0.3,
            "exclude_current_positions_from_observation": False,
        }
    ],
    "Hopper-v5": [
        {
            "frame_skip": 3,
            "forward_reward_weight": 0.7,
            "ctrl_cost_weight": 0.01,
            "healthy_reward": 0.5,
            "healthy_state_range": (-5.0, 5.0),
            "healthy_z_range": (0.5, 2.0),
            "healthy_angle_range": (-0.5, 0.4),
            "reset_noise_scale": 0.05,
            "exclude_current_positions_from_observation": False,
        },
        {"terminate_when_unhealthy": False},
    ],
    "Humanoid-v5": [
        {
            "frame_skip": 4,
            "forward_reward_weight": 2.0,
            "ctrl_cost_weight": 0.2,
            "contact_cost_weight": 1e-6,
            "contact_cost_range": (0.0, 0.1),
            "healthy_reward": 3.0,
            "healthy_z_range": (0.9, 1.6),
            "reset_noise_scale": 0.02,
            "exclude_current_positions_from_observation": False,
            "include_cinert_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
        },
        {
            "terminate_when_unhealthy": False,
            "include_cvel_in_observation": False,
            "include_cfrc_ext_in_observation": False,
        },
    ],
    "HumanoidStandup-v5": [
        {
            "frame_skip": 4,
            "uph_cost_weight": 2.0,
            "ctrl_cost_weight": 0.2,
            "impact_cost_weight": 1e-6,
            "impact_cost_range": (0.0, 0.1),
            "reset_noise_scale": 0.02,
            "exclude_current_positions_from_observation": False,
            "include_cinert_in_observation": False,
            "include_cvel_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
            "include_cfrc_ext_in_observation": False,
        }
    ],
    "InvertedDoublePendulum-v5": [{"frame_skip": 3, "healthy_reward": 5.0, "reset_noise_scale": 0.05}],
    "InvertedPendulum-v5": [{"frame_skip": 3, "reset_noise_scale": 0.05}],
    "Pusher-v5": [
        {"frame_skip": 3, "reward_near_weight": 0.3, "reward_dist_weight": 2.0, "reward_control_weight": 0.2},
        {"xml_file": "pusher.xml"},
    ],
    "Reacher-v5": [{"frame_skip": 3, "reward_dist_weight": 2.0, "reward_control_weight": 0.5}],
    "Swimmer-v5": [
        {
            "frame_skip": 3,
            "forward_reward_weight": 0.7,
            "ctrl_cost_weight": 0.01,
            "reset_noise_scale": 0.2,
            "exclude_current_positions_from_observation": False,
        }
    ],
    "Walker2d-v5": [
        {
            "frame_skip": 3,
            "forward_reward_weight": 0.7,
            "ctrl_cost_weight": 0.01,
            "healthy_reward": 0.5,
            "healthy_z_range": (0.5, 1.5),
            "healthy_angle_range": (-0.5, 0.4),
            "reset_noise_scale": 0.05,
            "exclude_current_positions_from_observation": False,
        },
        {"terminate_when_unhealthy": False, "xml_file": "walker2d.xml"},
    ],
}
CASES = [(task, options) for task, changed in CHANGED.items() for options in ({}, *changed)]

# Where the last bits may differ, and why:
# - np.linalg.norm uses the BLAS that NumPy was built with, which may fuse multiply and add;
# - np.sin, np.cos and float64 ** 2 are NumPy's own or the C library's, depending on the CPU.
NORMS = {"distance_from_origin", "reward_dist", "reward_near"}
ROUNDED: dict[str, set[str]] = {
    "Reacher-v5": {"obs", "pool.reward", *NORMS},
    "Pusher-v5": {"pool.reward", *NORMS},
    "InvertedDoublePendulum-v5": {"obs", "pool.reward", "distance_penalty", "velocity_penalty"},
}


def compare(task: str, row: dict[str, Any], name: str, expected: Any) -> None:
    if name in ROUNDED.get(task, NORMS):
        np.testing.assert_allclose(row[name][0], expected, rtol=1e-9, atol=1e-12, err_msg=name)
    else:
        np.testing.assert_array_equal(row[name][0], expected, err_msg=name)


def follow(oracle: gymnasium.Env[Any, Any], env: Rows, seed: int) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Resets both, the oracle to the state that ours drew: our row, its observation and info."""
    row = env.reset(seed)
    oracle.reset()
    own: Any = oracle.unwrapped
    mujoco.mj_resetData(own.model, own.data)
    own.set_state(*env.positions(own.model))
    return row, own._get_obs(), own._get_reset_info()


@pytest.mark.parametrize(("task", "options"), CASES, ids=lambda value: value if isinstance(value, str) else len(value))
def test_lockstep(task: str, options: dict[str, Any]) -> None:
    theirs = dict(options)
    if str(theirs.get("main_body", "")).isdigit():
        theirs["main_body"] = int(theirs["main_body"])
    oracle = gymnasium.make(task, max_episode_steps=300, **theirs)
    oracle.action_space.seed(3)
    with Rows(task, options, both_flags=True, max_episode_steps=300) as env:
        steps = episodes = 0
        while steps < 1000:
            row, observation, info = follow(oracle, env, episodes)
            compare(task, row, "obs", observation)
            for name, value in info.items():
                compare(task, row, name, value)
            ended = False
            while not ended:
                action = oracle.action_space.sample()
                observation, reward, terminated, truncated, info = oracle.step(action)
                row = env.step(action[None])
                compare(task, row, "obs", observation)
                compare(task, row, "pool.reward", reward)
                assert {name for name in row if "." not in name and name != "obs"} == info.keys()
                for name, value in info.items():
                    compare(task, row, name, value)
                assert (row["pool.terminated"][0], row["pool.truncated"][0]) == (terminated, truncated)
                ended = terminated or truncated
                steps += 1
            episodes += 1
    oracle.close()


NOT_OPTIONS = {"model_path", "observation_space", "render_mode"}
"""Arguments that Gymnasium's classes hand to their base, and what is an argument of make() here."""
WORDED_OTHERWISE = {"camera_id": -1, "camera_name": "", "main_body": "1"}
"""Defaults that are None, or of two types, in Gymnasium."""


@pytest.mark.parametrize("task", CHANGED)
def test_every_argument_is_an_option(task: str) -> None:
    """Of the task's class and of its base; with the same default."""
    entry_point = gymnasium.spec(task).entry_point
    assert isinstance(entry_point, str)
    own_class = gymnasium.envs.registration.load_env_creator(entry_point)
    assert isinstance(own_class, type)
    options = {option["name"]: option["default"] for option in plugin().tasks[task]["options"]}
    arguments = {
        name: parameter.default
        for one in (MujocoEnv, own_class)
        for name, parameter in inspect.signature(one).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name not in NOT_OPTIONS
    }
    assert options.keys() == arguments.keys() | {"from_pixels"}
    for name, default in arguments.items():
        own = options[name]
        if name in ("default_camera_config", "visual_options"):
            own = {key: np.asarray(value).tolist() for key, value in json.loads(own).items()}
            default = {key: np.asarray(value).tolist() for key, value in (default or {}).items()}
        np.testing.assert_equal(own, WORDED_OTHERWISE.get(name, default), err_msg=name)
