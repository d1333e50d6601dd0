"""Stable-Baselines3 over a pool: a VecEnv, and PPO on it.

`python sb3.py` trains on Pong, `python sb3.py --task HalfCheetah-v5 --policy MlpPolicy` on a task without pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import tyro
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

import envpool_sdk


class PoolVecEnv(VecEnv):
    """The environments of a pool as Stable-Baselines3 wants them.

    It resets an environment within the step that ends its episode, as same-step autoreset does; the last observation
    stands in the info. The environments are no Python objects: they have no attributes or methods to call.
    """

    def __init__(self, task: str, num_envs: int, **options: Any) -> None:
        self.envs = gymnasium.make_vec(
            f"envpool/{task}", num_envs=num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options
        )
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> VecEnvObs:
        observations, _ = self.envs.reset(seed=self._seeds)
        self._reset_seeds()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, terminated, truncated, info = self.envs.step(self.actions)
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return observations, rewards.astype(np.float32), over, infos

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.envs.render()

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise AttributeError(f"the environments of a pool have no attribute {attr_name!r} to set")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"the environments of a pool have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))


@dataclass(frozen=True)
class Settings:
    task: str = "Pong-v5"
    policy: str = "CnnPolicy"
    plugin: Path | None = None
    """A shared library that has the task, if no installed package has it."""
    steps: int = 1_000_000
    num_envs: int = 16
    num_steps: int = 128
    """Steps of each environment between two updates."""
    seed: int = 1
    episodes: int = 10
    """Of the evaluation at the end."""
    out: Path = Path("runs/sb3")


def main(settings: Settings) -> None:
    if settings.plugin is not None:
        envpool_sdk.load_plugin(settings.plugin)
    envs = VecMonitor(PoolVecEnv(settings.task, settings.num_envs))
    model = PPO(
        settings.policy,
        envs,
        n_steps=settings.num_steps,
        batch_size=256,
        n_epochs=4,
        clip_range=0.1,
        ent_coef=0.01,
        seed=settings.seed,
        device="cpu",
        verbose=1,
    )
    model.learn(settings.steps)
    settings.out.mkdir(parents=True, exist_ok=True)
    model.save(settings.out / "model.zip")
    mean, deviation = evaluate_policy(model, envs, n_eval_episodes=settings.episodes, deterministic=False)
    print(f"{settings.task}: return {mean:.1f} ± {deviation:.1f} over {settings.episodes} episodes")
    envs.close()


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
