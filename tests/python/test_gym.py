"""env_type="gym": the spaces of the package gym, and before gym 0.26 its old forms."""

from __future__ import annotations

import sys
import types
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk
from envpool_sdk import gym_face


@pytest.fixture
def new_gym(gym: types.ModuleType) -> types.ModuleType:
    if gym_face.is_old(gym):
        pytest.skip(f"needs gym 0.26, not {gym.__version__}")
    return gym


def test_without_gym_it_is_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gym", None)
    env = envpool_sdk.make_gym("CartPole-v1", num_envs=2)
    assert type(env) is envpool_sdk.GymnasiumEnvPool
    assert env.action_space == gymnasium.spaces.Discrete(2)
    assert len(env.reset()) == 2
    assert len(env.step(np.zeros(2, int))) == 5


def test_new_gym(new_gym: types.ModuleType) -> None:
    env = envpool_sdk.make_gym("KitchenSink-v0", num_envs=2)
    assert isinstance(env, new_gym.Env)
    assert isinstance(env, envpool_sdk.GymnasiumEnvPool)
    assert isinstance(env.action_space, new_gym.spaces.Dict)
    assert isinstance(env.action_space["move"], new_gym.spaces.Discrete)
    assert isinstance(env.spec.observation_space, new_gym.spaces.Dict)
    _obs, info = env.reset()
    assert info["env_id"].tolist() == [0, 1]
    wrapped = new_gym.Wrapper(envpool_sdk.make_gym("CartPole-v1", num_envs=2))
    assert len(wrapped.reset()) == 2
    assert len(wrapped.step(np.zeros(2, int))) == 5
    assert envpool_sdk.make_spec("CartPole-v1", "gym").action_space == new_gym.spaces.Discrete(2)
    with pytest.raises(ValueError, match="gym_reset_return_info=False must be True"):
        envpool_sdk.make_gym("CartPole-v1", gym_reset_return_info=False)


def test_old_gym(old_gym: types.ModuleType) -> None:
    env = envpool_sdk.make("CartPole-v1", "gym", num_envs=3, max_episode_steps=4)
    assert isinstance(env, old_gym.Env)
    assert isinstance(env.action_space, old_gym.spaces.Discrete)
    assert env.config["gym_reset_return_info"] is False
    wrapped = old_gym.Wrapper(env)
    observations = wrapped.reset()
    assert (observations.shape, observations.dtype) == ((3, 4), np.float32)
    assert wrapped.reset(seed=5).shape == (3, 4)
    for _ in range(4):
        observations, rewards, done, info = wrapped.step(np.array([0, 1, 0]))
    assert (rewards.dtype, done.dtype) == (np.float32, np.bool_)
    assert done.tolist() == info["TimeLimit.truncated"].tolist() == [True] * 3
    assert info["terminated"].tolist() == [0] * 3
    assert env.reset([2, 0]).shape == (2, 4)
    assert env.reset([]).shape == (0, 4)


def test_old_gym_tells_an_end_from_a_limit(old_gym: types.ModuleType) -> None:
    env = envpool_sdk.make_gym("CartPole-v1", num_envs=1)
    env.reset()
    done = np.zeros(1, bool)
    while not done.any():
        _, _, done, info = env.step(np.ones(1, int))
    assert (info["terminated"].tolist(), info["TimeLimit.truncated"].tolist()) == ([1], [False])


def test_old_gym_with_an_info(old_gym: types.ModuleType) -> None:
    env = envpool_sdk.make_gym("CartPole-v1", num_envs=2, gym_reset_return_info=True)
    _observations, info = env.reset()
    assert info["env_id"].tolist() == [0, 1]
    assert len(env.step(np.zeros(2, int))) == 4


def test_old_gym_asynchronous(old_gym: types.ModuleType) -> None:
    env = envpool_sdk.make_gym("Counter-v0", num_envs=4, batch_size=2)
    env.async_reset()
    seen: list[int] = []
    while len(seen) < 4:
        _, _, _, info = env.recv()
        seen += info["env_id"].tolist()
    assert sorted(seen) == [0, 1, 2, 3]
    env.send(np.zeros(2, int), np.array([0, 3]))
    assert env.recv(reset=True).shape == (2, 4)
    env.send(np.zeros(2, int), np.array([0, 3]))
    assert isinstance(env.recv(reset=True, return_info=False), np.ndarray)


def test_old_gym_without_text(old_gym: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(old_gym.spaces, "Text", raising=False)
    with pytest.raises(ValueError, match=r"gym 0\.23\.1 has no space for text"):
        envpool_sdk.make_gym("KitchenSink-v0")


@pytest.mark.parametrize("version", ["0.21.0", "0.23.1", "0.25.2"])
def test_which_are_old(gym: types.ModuleType, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gym, "__version__", "0.26.0")
    assert not gym_face.is_old(gym)
    monkeypatch.setattr(gym, "__version__", version)
    assert gym_face.is_old(gym)


def test_spaces(new_gym: types.ModuleType) -> None:
    spaces: Any = gymnasium.spaces
    cases = {
        "Box": spaces.Box(-1, 2, (2, 3), np.float32),
        "Discrete": spaces.Discrete(3, start=-1),
        "MultiBinary": spaces.MultiBinary([2, 2]),
        "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
        "Text": spaces.Text(4, min_length=0, charset="ab"),
        "Tuple": spaces.Tuple([spaces.Discrete(2), spaces.Discrete(3)]),
        "Dict": spaces.Dict(a=spaces.Discrete(2)),
    }
    for name, space in cases.items():
        converted = gym_face.convert(new_gym, space)
        assert type(converted) is getattr(new_gym.spaces, name)
        assert converted.contains(space.sample())
    shifted = gym_face.convert(new_gym, spaces.MultiDiscrete([2, 3], start=[1, -1]))  # gym's MultiDiscrete has no start
    assert (shifted.low.tolist(), shifted.high.tolist(), shifted.dtype) == ([1, -1], [2, 1], np.int64)
