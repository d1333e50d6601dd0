"""PPO by RLlib on an environment of envpool-sdk: the pool is RLlib's vector env, nothing is between.

    pip install 'envpool-sdk[ray]' 'ray[rllib]' torch envpool-atari
    python examples/rllib_ppo.py Pong-v5

CartPole-v1 is a plugin that comes with the SDK's sources, not a package; the variable tells Ray's workers of it too:

    cmake -S reference -B build/reference && cmake --build build/reference
    ENVPOOL_PLUGIN_PATH=$PWD/build/reference/cartpole_cpp.so python examples/rllib_ppo.py CartPole-v1 --stop-return 450

Prints a line an iteration. Ends with exit code 1 if --stop-return was given and not reached.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig


class ToChannels(ConnectorV2):
    """Stacked images as RLlib's networks take them: float32[height, width, images] in 0 .. 1."""

    def recompute_output_observation_space(self, space: Any, action_space: Any) -> gymnasium.spaces.Box:
        images, height, width = space.shape
        return gymnasium.spaces.Box(0.0, 1.0, (height, width, images), np.float32)

    def __call__(self, *, episodes: list[Any], batch: Any, **_: Any) -> Any:
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False):
            images = episode.get_observations(-1)
            if images.dtype == np.uint8:
                channels = np.moveaxis(images, 0, -1).astype(np.float32) / 255
                episode.set_observations(at_indices=-1, new_data=channels)
        return batch


def config_of(task: str, runners: int, cpus: int, envs: int, seed: int) -> PPOConfig:
    """PPO for CartPole or for an Atari game."""
    config = (
        PPOConfig()
        .environment(f"envpool_sdk:envpool/{task}")
        .env_runners(
            num_env_runners=runners,
            num_cpus_per_env_runner=cpus,  # so many threads the pool takes
            num_envs_per_env_runner=envs,
            gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .debugging(seed=seed)
    )
    if task.startswith("CartPole"):
        return config.training(
            lr=3e-4, train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=8, vf_loss_coeff=0.01
        )
    # Images of half the usual size, so that two CPUs get somewhere.
    return (
        config.environment(env_config={"img_height": 42, "img_width": 42})
        .env_runners(env_to_module_connector=lambda env, spaces, device: ToChannels())
        .training(
            lr=[[0, 1e-3], [3_000_000, 0.0]],  # by steps: some 1500 iterations
            gamma=0.99,
            lambda_=0.95,
            train_batch_size_per_learner=2048,
            minibatch_size=256,
            num_epochs=4,
            clip_param=0.2,
            entropy_coeff=0.01,
            vf_loss_coeff=0.5,
            vf_clip_param=10.0,
            grad_clip=0.5,
            use_kl_loss=False,
        )
        .rl_module(
            model_config=DefaultModelConfig(
                conv_filters=[[16, 4, 2], [32, 4, 2], [32, 3, 2]],
                conv_activation="relu",
                head_fcnet_hiddens=[256],
                vf_share_layers=True,
            )
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", default="CartPole-v1", help='an id, e.g. "Pong-v5"')
    parser.add_argument("--runners", type=int, default=1, help="env runners: processes, on any machine of the cluster")
    parser.add_argument("--cpus", type=int, default=1, help="CPUs, and so threads, of each")
    parser.add_argument("--envs", type=int, default=8, help="envs of each")
    parser.add_argument("--iterations", type=int, default=200, help="at most")
    parser.add_argument("--stop-return", type=float, help="ends when the mean return of episodes is so high")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    ray.init(log_to_driver=False)
    algorithm = config_of(
        arguments.task, arguments.runners, arguments.cpus, arguments.envs, arguments.seed
    ).build_algo()
    start, steps, reached = time.monotonic(), 0, False
    try:
        for iteration in range(1, arguments.iterations + 1):
            results = algorithm.train()
            played, learned = results["env_runners"], results["learners"][DEFAULT_MODULE_ID]
            steps += played.get("num_env_steps_sampled", 0)
            mean = played.get("episode_return_mean", float("nan"))
            print(
                f"{iteration:4}  {steps:9.0f} steps  {time.monotonic() - start:6.0f} s"
                f"  return {mean:8.2f}  entropy {learned['entropy']:.3f}",
                flush=True,
            )
            reached = arguments.stop_return is not None and mean >= arguments.stop_return
            if reached:
                break
    finally:
        algorithm.stop()
        ray.shutdown()
    return int(arguments.stop_return is not None and not reached)


if __name__ == "__main__":
    sys.exit(main())
