"""The pool as RLlib's vector environment, as users configure it."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

import envpool_sdk
from envpool_sdk.vector import VectorEnv

EXAMPLE = Path(__file__).parents[2] / "examples/rllib_ppo.py"


def config(**options: Any) -> PPOConfig:
    return (
        PPOConfig()
        .environment("envpool_sdk:envpool/CartPole-v1", env_config=options)
        .env_runners(
            gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT,
            num_env_runners=1,
            num_cpus_per_env_runner=1,
            num_envs_per_env_runner=4,
        )
    )


def test_the_env_runners_have_pools(cluster: Any) -> None:
    """With as many threads as CPUs, and the options of env_config."""
    algorithm = config(gravity=5.0).build_algo()
    try:

        def look(runner: Any) -> tuple[str, int, int, float]:
            pool = runner.env.unwrapped
            found = pool.spec.config
            return type(pool).__module__, pool.num_envs, found.num_threads, found.gravity

        [found] = algorithm.env_runner_group.foreach_env_runner(look, local_env_runner=False)
        assert found == (VectorEnv.__module__, 4, 1, 5.0)
    finally:
        algorithm.stop()


def test_episodes_are_those_of_the_pool(cluster: Any) -> None:
    """RLlib's episodes hold the rows that the pool gives for the same seeds and actions, resets left out."""
    runner = SingleAgentEnvRunner(config=config().debugging(seed=3))
    episodes = runner.sample(num_timesteps=200, random_actions=True)
    runner.stop()
    assert sum(len(episode) for episode in episodes) >= 200
    for episode in episodes:
        observations, actions = np.stack(episode.get_observations()), list(episode.get_actions())
        env = gymnasium.make("CartPole-v1").unwrapped  # Gymnasium's own physics
        env.reset()
        for t, action in enumerate(actions):
            env.state = observations[t].astype(np.float64)
            stepped, _, terminated, _, _ = env.step(int(action))
            np.testing.assert_allclose(observations[t + 1], stepped, rtol=1e-5, atol=1e-6)
            assert terminated == (episode.is_terminated and t == len(actions) - 1)


def test_stacked_images_are_channels(cluster: Any) -> None:
    """The example's network looks at the images of a stack as channels, not at their rows."""
    if "Pong-v5" not in envpool_sdk.list_all_envs():
        pytest.skip("Pong-v5 is not installed")
    example = runpy.run_path(str(EXAMPLE))
    runner = SingleAgentEnvRunner(config=example["config_of"]("Pong-v5", runners=0, cpus=1, envs=2, seed=1))
    episodes = runner.sample(num_timesteps=40)
    first = next(layer for layer in runner.module.modules() if isinstance(layer, torch.nn.Conv2d))
    runner.stop()
    assert first.in_channels == 4
    observations = np.stack(episodes[0].get_observations())
    assert observations.shape[1:] == (42, 42, 4)
    assert observations.dtype == np.float32
    assert 0 <= observations.min() < observations.max() <= 1
    # A stack moves on by one image a step.
    np.testing.assert_array_equal(observations[1:, ..., :-1], observations[:-1, ..., 1:])


@pytest.mark.timeout(1800)
def test_the_example_learns(plugins: None) -> None:
    """Its short form: CartPole until a mean return of 80, four times that of random actions."""
    command = [sys.executable, EXAMPLE, "CartPole-v1", "--stop-return", "80", "--iterations", "15"]
    # A cluster of its own: nodes of the other tests have one CPU each.
    done = subprocess.run(command, env=os.environ | {"RAY_ADDRESS": "local"}, capture_output=True, text=True)
    returns = [float(text) for text in re.findall(r"return +([\d.]+)", done.stdout)]
    assert done.returncode == 0, done.stdout + done.stderr
    assert returns[0] < 60
    assert returns[-1] >= 80
