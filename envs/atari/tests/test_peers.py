"""The models of the peers against the peers themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from atari_peers import AleVector, EnvPool

NUM_ENVS, SEED = 2, 7


@pytest.mark.parametrize(
    ("game", "names", "settings"),
    [
        ("pong", {}, {}),
        ("breakout", {"episodic_life": True}, {"episodic_life": True}),
        (
            "seaquest",
            {"repeat_action_probability": 0.25, "noop_max": 1},
            {"repeat_action_probability": 0.25, "noop_max": 1},
        ),
        ("freeway", {"max_num_frames_per_episode": 403}, {"max_frames": 403}),
        ("breakout", {"grayscale": False, "reward_clipping": False}, {"channels": 3, "reward_clip": False}),
        ("ms_pacman", {"full_action_space": True}, {"full_action_space": True}),
    ],
)
def test_ale_vector(game: str, names: dict[str, Any], settings: dict[str, Any]) -> None:
    from ale_py import AtariVectorEnv

    envs = AtariVectorEnv(game, NUM_ENVS, **names)
    models = [AleVector(game=game, seed=SEED + i, **settings) for i in range(NUM_ENVS)]
    obs, _ = envs.reset(seed=SEED)
    for i, model in enumerate(models):
        np.testing.assert_array_equal(obs[i], model.reset().obs)
    random = np.random.default_rng(0)
    for _ in range(500):
        actions = random.integers(0, envs.single_action_space.n, NUM_ENVS)
        obs, rewards, terminated, truncated, info = envs.step(actions)
        for i, model in enumerate(models):
            want = model.step(actions[i])
            np.testing.assert_array_equal(obs[i], want.obs)
            assert (rewards[i], terminated[i], truncated[i]) == (want.reward, want.terminated, want.truncated)
            assert info["lives"][i] == want.lives


@pytest.mark.parametrize(
    ("game", "names", "settings"),
    [
        ("pong", {}, {}),
        ("breakout", {"episodic_life": True, "reward_clip": True}, {"episodic_life": True, "reward_clip": True}),
        ("seaquest", {"repeat_action_probability": 0.25}, {"repeat_action_probability": 0.25}),
        ("freeway", {"max_episode_steps": 101}, {"max_steps": 101}),
        ("breakout", {"gray_scale": False, "frame_skip": 1}, {"channels": 3, "frame_skip": 1}),
    ],
)
def test_envpool(game: str, names: dict[str, Any], settings: dict[str, Any]) -> None:
    envpool = pytest.importorskip("envpool")
    envs = envpool.make(f"{game.capitalize()}-v5", env_type="gymnasium", num_envs=NUM_ENVS, seed=SEED, **names)
    models = [EnvPool(game=game, seed=SEED + i, **settings) for i in range(NUM_ENVS)]
    obs, _ = envs.reset()
    for i, model in enumerate(models):
        np.testing.assert_array_equal(obs[i], model.reset().obs)
    random = np.random.default_rng(0)
    for _ in range(500):
        actions = random.integers(0, envs.action_space.n, NUM_ENVS)
        obs, rewards, terminated, truncated, info = envs.step(actions)
        for i, model in enumerate(models):
            want = model.step(int(actions[i]))
            np.testing.assert_array_equal(obs[i], want.obs)
            assert (rewards[i], terminated[i], truncated[i]) == (want.reward, want.terminated, want.truncated)
            assert info["lives"][i] == want.lives
