"""dm_control's suite in lockstep with dm_control itself: the same state, the same actions, the same results."""

from __future__ import annotations

from typing import Any

import dm_oracles
import gymnasium
import numpy as np
import pytest
from mujoco_pools import Rows, plugin
from scipy import ndimage

# One task for each class and model; the others differ by a number.
SAMPLE = {
    *("acrobot swingup", "ball_in_cup catch", "cartpole balance_sparse", "cartpole three_poles", "cheetah run"),
    *("dog fetch", "finger spin", "finger turn_easy", "fish swim", "hopper hop", "hopper stand", "humanoid run"),
    *("humanoid run_pure_state", "lqr lqr_6_2", "manipulator insert_peg", "pendulum swingup", "point_mass hard"),
    *("quadruped escape", "reacher easy", "stacker stack_2", "swimmer swimmer6", "walker run"),
}
CASES = [
    pytest.param(domain, task, marks=[] if f"{domain} {task}" in SAMPLE else pytest.mark.full)
    for domain, task in dm_oracles.ID_OF
]

# Observations whose last bits may differ, since NumPy computes them otherwise than the C library: dot products by its
# BLAS, which may fuse multiply and add, and its own log1p, arcsinh, tanh, sin and cos.
ROUNDED = {
    *("touch", "target", "to_target", "dist_to_target", "extremities", "arm_pos", "force_torque", "origin"),
    *("rangefinder", "ball_state", "target_position", "torso_com_velocity"),
}


def compare(row: dict[str, Any], observation: dict[str, Any]) -> None:
    assert [name.removeprefix("obs.") for name in row if name.startswith("obs.")] == list(observation)
    for name, expected in observation.items():
        actual = row[f"obs.{name}"][0]
        if name in ROUNDED:
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=name)


def play(domain: str, task: str, options: dict[str, Any], oracle: Any, steps: int) -> None:
    random = np.random.default_rng(3)
    spec = oracle.action_spec()
    with Rows(dm_oracles.ID_OF[domain, task], options) as env:
        field = env.pool.spec["action"][0]
        np.testing.assert_array_equal(np.broadcast_to(field["low"], spec.shape), spec.minimum)
        np.testing.assert_array_equal(np.broadcast_to(field["high"], spec.shape), spec.maximum)
        episodes = 0
        while steps > 0:
            row = env.reset(episodes)
            dm_oracles.set_state(oracle, domain, task, *env.saved(oracle.physics.model.ptr))
            compare(row, oracle.task.get_observation(oracle.physics))
            for _ in range(300):  # an lqr episode has no end of its own
                action = random.uniform(spec.minimum.clip(-1), spec.maximum.clip(None, 1))  # lqr has no bounds
                step = oracle.step(action)
                row = env.step(action[None])
                compare(row, step.observation)
                # tolerance() uses NumPy's exp
                np.testing.assert_allclose(row["pool.reward"][0], step.reward, rtol=1e-9, atol=1e-12)
                assert row["pool.terminated"][0] == (step.last() and step.discount == 0)
                assert row["pool.truncated"][0] == (step.last() and step.discount == 1)
                steps -= 1
                if step.last():
                    break
            episodes += 1


@pytest.mark.parametrize(("domain", "task"), CASES)
def test_lockstep(domain: str, task: str) -> None:
    arguments = {}
    if domain != "lqr":
        arguments["time_limit"] = 300 * dm_oracles.load(domain, task).control_timestep()
    play(domain, task, arguments, dm_oracles.load(domain, task, **arguments), 1000)


@pytest.mark.parametrize(
    ("domain", "task", "environment", "options"),
    [
        ("cheetah", "run", {"legacy_step": False}, {"legacy_step": False}),
        ("cartpole", "swingup", {"legacy_step": False}, {"legacy_step": False}),
        ("cheetah", "run", {"control_timestep": 0.02}, {"control_timestep": 0.02}),
        ("walker", "walk", {"flat_observation": True}, {"flat_observation": True}),
    ],
)
def test_changed_settings(domain: str, task: str, environment: dict[str, Any], options: dict[str, Any]) -> None:
    oracle = dm_oracles.load(domain, task, time_limit=1.0, environment_kwargs=environment)
    if "flat_observation" in options:
        own = oracle.task.get_observation
        oracle.task.get_observation = lambda physics: {
            "observations": np.concatenate([np.ravel(part) for part in own(physics).values()])
        }
        oracle._flat_observation = False
    play(domain, task, {"time_limit": 1.0, **options}, oracle, 200)


@pytest.mark.parametrize(("domain", "task"), [("manipulator", "bring_ball"), ("stacker", "stack_4")])
def test_partly_observable(domain: str, task: str) -> None:
    arguments = {"time_limit": 0.5, "fully_observable": False}
    play(domain, task, arguments, dm_oracles.load(domain, task, **arguments), 100)


def test_all_of_the_suite() -> None:
    assert {task for task in plugin().tasks if task.endswith("-v1")} == set(dm_oracles.ID_OF.values())


@pytest.mark.full
def test_limits_are_the_suite_s() -> None:
    for domain, task in dm_oracles.ID_OF:
        limit = dm_oracles.load(domain, task)._step_limit
        spec = plugin().describe(dm_oracles.ID_OF[domain, task], {}, {})
        assert spec["max_episode_steps"] == (0 if np.isinf(limit) else np.ceil(limit))


def test_spaces() -> None:
    env = gymnasium.make("envpool/WalkerWalk-v1")
    assert isinstance(env.observation_space, gymnasium.spaces.Dict)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert {name: space.shape for name, space in env.observation_space.items()} == {
        "orientations": (14,),
        "height": (),
        "velocity": (9,),
    }
    assert env.action_space == gymnasium.spaces.Box(-1, 1, (6,), np.float64)


def test_the_bowl_is_made_as_scipy_would() -> None:
    """There are bumps between 0.15 and 1 from which SciPy makes the same terrain."""
    oracle = dm_oracles.load("quadruped", "escape")
    model = oracle.physics.model.ptr
    with Rows("QuadrupedEscape-v1") as env:
        env.reset(1)
        _, own = env.saved(model)
    size = model.hfield_nrow[0]
    terrain = np.frombuffer(own, np.float32).astype(float)
    y, x = np.ogrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    radius = np.clip(np.sqrt(x**2 + y**2), 0.04, 1)
    bowl = (0.5 - np.cos(2 * np.pi * radius) / 2).ravel()
    count = int(2 * model.hfield_size[0, 0] / 2)
    one = np.stack([ndimage.zoom(unit, size / count) for unit in np.eye(count)], axis=1)
    there = np.flatnonzero(bowl > 0.05)[::7]
    design = np.kron(one, one)[there]
    bumps, *_ = np.linalg.lstsq(design, terrain[there] / bowl[there], rcond=None)
    np.testing.assert_allclose(design @ bumps, terrain[there] / bowl[there], atol=2e-6)
    inner = np.hypot(*np.meshgrid(np.linspace(-1, 1, count), np.linspace(-1, 1, count))).ravel() < 0.8
    assert bumps[inner].min() > 0.149
    assert bumps[inner].max() < 1.001
    assert abs(bumps[inner].mean() - 0.575) < 5 * 0.2454 / np.sqrt(inner.sum())
