"""Tianshou over a pool: DQN on a task with pictures. Its collectors take what envpool_sdk.make_gymnasium() gives as it is.

`python tianshou_dqn.py` trains on Doom; --help shows what else there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env.atari.atari_network import DQNet, ScaledObsInputActionReprNet
from tianshou.trainer import OffPolicyTrainerParams

import envpool_sdk


@dataclass(frozen=True)
class Settings:
    task: str = "DoomBasic-v1"
    seed: int = 1
    num_envs: int = 16
    epochs: int = 10
    epoch_steps: int = 10_000
    buffer_size: int = 50_000
    batch_size: int = 64
    learning_rate: float = 1e-4
    gamma: float = 0.99
    horizon: int = 3
    """Steps of rewards before a value is trusted."""
    target_update: int = 500
    """Gradient steps between two copies of the network to the one that gives the targets."""
    epsilon: float = 0.1
    """Chance of a random action, in training."""
    episodes: int = 16
    """Of the tests after each epoch."""
    out: Path = Path("runs/tianshou")


def main(settings: Settings) -> None:
    torch.manual_seed(settings.seed)
    training, testing = (
        envpool_sdk.make_gymnasium(settings.task, num_envs=n, seed=settings.seed + offset, gray_scale=True)
        for n, offset in ((settings.num_envs, 0), (settings.episodes, 1_000_000))
    )
    network = DQNet(*training.observation_space.shape, action_shape=training.action_space.n)
    policy = DiscreteQLearningPolicy(
        model=ScaledObsInputActionReprNet(network),
        action_space=training.action_space,
        observation_space=training.observation_space,
        eps_training=settings.epsilon,
        eps_inference=0.01,
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=settings.learning_rate),
        gamma=settings.gamma,
        n_step_return_horizon=settings.horizon,
        target_update_freq=settings.target_update,
    )
    buffer = VectorReplayBuffer(settings.buffer_size, settings.num_envs)
    collector = Collector[CollectStats](algorithm, training, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=settings.batch_size * settings.num_envs)
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            max_epochs=settings.epochs,
            epoch_num_steps=settings.epoch_steps,
            batch_size=settings.batch_size,
            training_collector=collector,
            test_collector=Collector[CollectStats](algorithm, testing, exploration_noise=True),
            test_step_num_episodes=settings.episodes,
            collection_step_num_env_steps=10 * settings.num_envs,
            update_step_num_gradient_steps_per_sample=0.1,
        )
    )
    settings.out.mkdir(parents=True, exist_ok=True)
    torch.save(algorithm.state_dict(), settings.out / "dqn.pt")
    print(f"{settings.task}: return {result.best_score:.1f} over {settings.episodes} episodes")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
