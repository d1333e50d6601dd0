"""env_type="dm": TimeSteps in batches, single dm_env.Environments, their specs and discounts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import TestCase

import numpy as np
import pytest

import envpool_sdk

dm_env = pytest.importorskip("dm_env", reason="needs the package dm_env")
test_utils = pytest.importorskip("dm_env.test_utils", reason="needs the packages dm_env and dm_tree")

FIRST, MID, LAST = 0, 1, 2

# ---- batches ----


def make(task: str = "CartPole-v1", num_envs: int = 3, **options: Any) -> Any:
    return envpool_sdk.make(task, "dm", num_envs=num_envs, **options)


def dtypes(step: Any) -> list[str]:
    return [array.dtype.name for array in step[:3]]


def test_a_batch() -> None:
    env = make()
    assert isinstance(env, dm_env.Environment)
    assert isinstance(env, envpool_sdk.EnvPool)
    step = env.reset()
    assert isinstance(step, dm_env.TimeStep)
    assert dtypes(step) == ["int32", "float32", "float32"]
    assert [array.tolist() for array in step[:3]] == [[FIRST] * 3, [0] * 3, [1] * 3]
    state = step.observation
    assert type(state).__name__ == "State"
    assert state._fields == ("env_id", "players", "obs", "elapsed_step", "reward", "terminated")
    assert (state.env_id.dtype, state.env_id.tolist()) == (np.int32, [0, 1, 2])
    assert state.players.env_id.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(state.obs, envpool_sdk.make("CartPole-v1", num_envs=3).reset()[0], strict=True)
    step = env.step(np.array([1, 0]), np.array([2, 0]))
    assert dtypes(step) == ["int32", "float32", "float32"]
    assert [array.tolist() for array in step[:3]] == [[MID] * 2, [1] * 2, [1] * 2]
    assert step.observation.env_id.tolist() == [2, 0]
    assert step.observation.elapsed_step.tolist() == [1, 1]
    assert env.reset([1]).step_type.tolist() == [FIRST]
    assert env.reset([]).step_type.shape == (0,)


def test_ends_of_episodes() -> None:
    env = make("KitchenSink-v0", num_envs=2, env_kwargs=[{"length": 2}, {"length": 5}], max_episode_steps=3)
    random = np.random.default_rng(1)
    action = _action(env.action_spec(), 2, random)
    env.reset()
    steps = [env.step(action) for _ in range(6)]
    assert [one.step_type.tolist() for one in steps] == [[1, 1], [2, 1], [0, 2], [1, 0], [2, 1], [0, 1]]
    assert [one.discount.tolist() for one in steps] == [[1, 1], [0, 1], [1, 1], [1, 1], [0, 1], [1, 1]]
    assert steps[2].reward[0] == 0
    assert steps[2].observation.elapsed_step.tolist() == [0, 3]


def test_a_natural_end_on_the_limit_step_has_discount_0() -> None:
    env = make("KitchenSink-v0", num_envs=1, length=3, max_episode_steps=3)
    action = _action(env.action_spec(), 1, np.random.default_rng(1))
    env.reset()
    *_, step = [env.step(action) for _ in range(3)]
    assert (step.step_type.tolist(), step.discount.tolist()) == ([LAST], [0])


def test_asynchronous() -> None:
    env = make("Counter-v0", num_envs=4, batch_size=2)
    env.async_reset()
    seen: list[int] = []
    for _ in range(2):
        step = env.recv()
        assert step.step_type.tolist() == [FIRST] * 2
        seen += step.observation.env_id.tolist()
    assert sorted(seen) == [0, 1, 2, 3]
    env.send(np.zeros(2, int), np.array([3, 1]))
    assert env.recv().step_type.tolist() == [MID] * 2


def test_a_fault_is_a_last_step_with_discount_1() -> None:
    env = make("Faulty-v0", num_envs=3, fault="broken", at_step=2, env_id=1, key="dm", times=1)
    env.reset()
    env.step([0, 0, 0])
    step = env.step([0, 0, 0])
    assert step.step_type.tolist() == [MID, LAST, MID]
    assert step.discount.tolist() == [1, 1, 1]
    assert env.faults[0][0] == 1
    assert env.step([0, 0, 0]).step_type.tolist() == [MID, FIRST, MID]


def test_several_agents() -> None:
    env = make("Pursuit-v0", num_envs=2)
    assert env.reward_spec().shape == env.discount_spec().shape == (3,)
    step = env.reset()
    assert step.reward.shape == step.discount.shape == (2, 3)
    assert step.step_type.tolist() == [FIRST] * 2
    for _ in range(12):
        step = env.step(np.ones((2, 3), int))
        assert step.step_type.shape == (2,)
        assert step.discount.shape == (2, 3)


def test_nested_observations() -> None:
    env = make("KitchenSink-v0", num_envs=2)
    state = env.reset().observation
    assert state.num.int64.tolist() == [0, 0]
    assert state.pair[0].shape[0] == 2
    assert state.field_global.tick.tolist() == [0, 0]  # "global" is no identifier
    assert state.lives.tolist() == [3, 3]
    assert state.echo.say == ("", "")  # the observation's, not the info of the same name
    spec = env.observation_spec()
    assert type(spec).__name__ == "State"
    assert spec._fields == state._fields
    assert (spec.vec.shape, spec.vec.dtype, spec.vec.name) == (state.vec.shape[1:], state.vec.dtype, "vec")


def test_specs() -> None:
    env = make()
    spec = env.action_spec()
    assert isinstance(spec, dm_env.specs.DiscreteArray)
    assert (spec.num_values, spec.dtype, spec.name) == (2, np.int32, "action")
    obs = env.observation_spec().obs
    assert (obs.shape, obs.dtype, obs.name) == ((4,), np.float32, "obs")
    np.testing.assert_array_equal(obs.maximum, env.observation_space.high)
    assert (env.reward_spec().dtype, env.reward_spec().name) == (np.float32, "reward")
    discount = env.discount_spec()
    assert (discount.dtype, discount.minimum, discount.maximum, discount.name) == (np.float32, 0, 1, "discount")
    made = envpool_sdk.make_spec("CartPole-v1")
    assert made.action_spec() == spec
    assert made.observation_spec() == env.observation_spec()


def test_zero_discount_on_life_loss() -> None:
    arguments = {"num_envs": 2, "num_threads": 1, "seed": 3}
    env = make("Image-v0", zero_discount_on_life_loss=True, **arguments)
    plain = make("Image-v0", **arguments)
    lives = env.reset().observation.lives
    plain.reset()
    losses = 0
    for _ in range(200):
        step, other = env.step([0, 0]), plain.step([0, 0])
        lost = (step.observation.lives < lives) & (step.step_type != FIRST)
        np.testing.assert_array_equal(step.discount, np.where(lost, 0, other.discount))
        losses += int((lost & (other.discount == 1)).sum())
        lives = step.observation.lives
    assert losses > 0
    with pytest.raises(ValueError, match="zero_discount_on_life_loss=True must be False"):
        make("CartPole-v1", zero_discount_on_life_loss=True)


def test_same_step_resets_are_refused() -> None:
    with pytest.raises(ValueError, match="autoreset_mode='SameStep' must be one of 'NextStep', 'Disabled'"):
        make(autoreset_mode="SameStep")


def test_without_dm_env(plugins: Path, run_python: Callable[..., Any]) -> None:
    done = run_python(
        f"""
import sys
sys.modules["dm_env"] = None
import envpool_sdk
envpool_sdk.load_plugin({str(plugins / "cartpole_cpp.so")!r})
spec = envpool_sdk.make_spec("CartPole-v1")
for call in (
    lambda: envpool_sdk.make("CartPole-v1", "dm"),
    lambda: envpool_sdk.make_dm("CartPole-v1"),
    spec.observation_spec,
    spec.action_spec,
):
    try:
        call()
    except ImportError as error:
        assert "pip install dm-env" in str(error)
    else:
        raise AssertionError
"""
    )
    assert done.returncode == 0, done.stderr


def _action(spec: Any, rows: int, random: np.random.Generator) -> Any:
    """A batch of actions within the specs."""
    if isinstance(spec, dict):
        return {name: _action(part, rows, random) for name, part in spec.items()}
    if isinstance(spec, tuple):
        return tuple(_action(part, rows, random) for part in spec)
    if isinstance(spec, dm_env.specs.StringArray):
        return ("",) * rows
    return np.stack([spec.generate_value() for _ in range(rows)])


# ---- one env: dm_env's own test ----


class Single(test_utils.EnvironmentTestMixin):
    """dm_env's test of an Environment."""

    task = "CartPole-v1"
    options: dict[str, Any] = {}  # noqa: RUF012

    def make_object_under_test(self) -> Any:
        return envpool_sdk.make_dm(self.task, **self.options)

    def make_action_sequence(self) -> Any:
        for _ in range(60):  # beyond the ends of several episodes
            yield self.make_action()


class TestCartPole(Single, TestCase):
    pass


class TestLimited(Single, TestCase):
    options = {"max_episode_steps": 3}  # noqa: RUF012


class TestNested(Single, TestCase):
    task, options = "KitchenSink-v0", {"length": 7}


class TestImages(Single, TestCase):
    task = "Image-v0"


def test_single_discounts() -> None:
    for options, discount in (({"length": 3}, 0.0), ({"length": 9, "max_episode_steps": 3}, 1.0)):
        env = envpool_sdk.make_dm("KitchenSink-v0", **options)
        action = env.action_spec()
        one = dict(_action(action, 1, np.random.default_rng(0)).items())
        one = {name: _first(part) for name, part in one.items()}
        env.reset()
        *_, step = [env.step(one) for _ in range(3)]
        assert (step.step_type, step.discount) == (dm_env.StepType.LAST, discount)
        assert env.step(one).first()


def _first(part: Any) -> Any:
    return tuple(_first(one) for one in part) if isinstance(part, tuple) and not isinstance(part[0], str) else part[0]


def test_make_dm() -> None:
    assert envpool_sdk.make_dm("CartPole-v1", num_envs=1).reset().reward.shape == (1,)
    env = envpool_sdk.make_dm("CartPole-v1", seed=3)
    first = env.reset().observation
    np.testing.assert_array_equal(first, envpool_sdk.make_dm("CartPole-v1", 2, seed=[1, 3]).reset().observation.obs[1])
    assert not np.array_equal(first, env.reset().observation)
    with pytest.raises(ValueError, match="Did you mean 'gravity'"):
        envpool_sdk.make_dm("CartPole-v1", gravty=1.0)
    with pytest.raises(ValueError, match="3 agents"):
        envpool_sdk.make_dm("Pursuit-v0")
    with pytest.raises(ValueError, match="CartPole-v1: action"):
        env.step(5)
    env.close()
    with pytest.raises(envpool_sdk.ClosedError):
        env.reset()


def test_single_states() -> None:
    env = envpool_sdk.make_dm("CartPole-v1", seed=1)
    env.reset()
    state = env.save_state()
    expected = [env.step(1).observation.tolist() for _ in range(3)]
    env.load_state(state)
    assert [env.step(1).observation.tolist() for _ in range(3)] == expected
    with pytest.raises(TypeError, match="cannot pickle or copy"):
        copy.copy(env)


def test_a_single_fault() -> None:
    env = envpool_sdk.make_dm("Faulty-v0", fault="broken", at_step=2, key="dm-single", times=1)
    env.reset()
    env.step(0)
    step = env.step(0)
    assert (step.last(), step.discount) == (True, 1.0)
    assert "broken" in env.faults[0][1]
    assert env.step(0).first()
