"""States saved and loaded through every face: what follows is what followed."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import envpool_sdk

IMAGE = {"layout": "indexed", "gray_scale": True, "stack_num": 3, "frame_skip": 2, "noop_max": 5}


def test_facade() -> None:
    env = envpool_sdk.make("Image-v0", num_envs=3, seed=1, **IMAGE)
    env.reset()
    env.step([1, 2, 3])
    state = env.save_state(1)
    wanted = [env.step([0, 1, 2]) for _ in range(20)]
    other = envpool_sdk.make("Image-v0", num_envs=2, seed=9, **IMAGE)
    other.load_state(0, state)  # before any reset
    for step in wanted:
        got = other.step([1], [0])
        for one, all_ in zip(got[:4], step[:4], strict=True):
            np.testing.assert_array_equal(one[0], all_[1])


def test_vector_and_single() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=2)
    env = gymnasium.make("envpool/CartPole-v1").unwrapped
    envs.reset(seed=3)
    env.reset(seed=4)
    state = env.save_state()
    wanted = [env.step(i % 2)[0] for i in range(8)]
    envs.load_state(1, state)
    env.load_state(state)
    for i, observation in enumerate(wanted):
        np.testing.assert_array_equal(envs.step(np.array([0, i % 2]))[0][1], observation)
        np.testing.assert_array_equal(env.step(i % 2)[0], observation)


def test_errors() -> None:
    env = envpool_sdk.make("CartPole-v1", num_envs=2)
    with pytest.raises(RuntimeError, match=r"CartPole-v1, env 0: .*reset"):
        env.save_state(0)
    env.reset()
    with pytest.raises(ValueError, match="env_id=2 must be an integer, at most 1"):
        env.save_state(2)
    with pytest.raises(ValueError, match=r"CartPole-v1, env 1: load_state: .*no saved state"):
        env.load_state(1, b"something else")
    slow = envpool_sdk.make("Slow-v0")
    slow.reset()
    with pytest.raises(ValueError, match="can't save its state"):
        slow.save_state(0)


def test_sizes_may_be_left_alone() -> None:
    env = envpool_sdk.make("Image-v0", gray_scale=True, img_height=None)
    assert env.observation_space.shape == envpool_sdk.make("Image-v0", gray_scale=True).observation_space.shape
    with pytest.raises(ValueError, match="img_height=0 must be at least 1, or None"):
        envpool_sdk.make("Image-v0", img_height=0)
