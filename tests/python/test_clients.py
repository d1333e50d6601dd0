"""What programs written for EnvPool call, one test a program: just these calls, on quick envs.

XLA, which some of them use too, has tests of its own.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk


@pytest.fixture
def atari() -> None:
    pytest.importorskip("envpool_atari")


@pytest.fixture
def doom() -> None:
    pytest.importorskip("envpool_vizdoom")


def test_cleanrl(atari: None, old_gym: types.ModuleType) -> None:
    """ppo_atari_envpool.py and its kin, with gym 0.23.1."""

    class RecordEpisodeStatistics(old_gym.Wrapper):  # type: ignore[misc,name-defined]
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.num_envs = getattr(env, "num_envs", 1)

        def reset(self, **kwargs: Any) -> Any:
            observations = super().reset(**kwargs)
            self.returns, self.lives = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.int32)
            return observations

        def step(self, action: Any) -> Any:
            observations, rewards, dones, infos = super().step(action)
            self.returns += infos["reward"]
            infos["r"] = self.returns.copy()
            self.returns *= 1 - infos["terminated"]
            self.lives[:] = infos["lives"]
            return observations, rewards, dones, infos

    envs = envpool_sdk.make(
        "Breakout-v5",
        env_type="gym",
        num_envs=2,
        episodic_life=True,
        reward_clip=True,
        seed=1,
        repeat_action_probability=0.25,
    )
    envs.num_envs = 2
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    envs.is_vector_env = True
    wrapped = RecordEpisodeStatistics(envs)
    assert isinstance(wrapped.action_space, old_gym.spaces.Discrete)
    assert wrapped.single_observation_space.shape == (4, 84, 84)
    assert wrapped.reset().shape == (2, 4, 84, 84)
    lost = 0
    for turn in range(120):
        observations, rewards, dones, infos = wrapped.step(np.array([turn % 4, turn // 2 % 4], np.int64))
        assert set(np.unique(rewards)) <= {-1, 0, 1}
        lost += int((dones & (infos["terminated"] == 0)).sum())
    assert observations.dtype == np.uint8
    assert lost > 0  # an episode of one life is done, the game is not
    assert "r" in infos


def test_cleanba(atari: None) -> None:
    envs = envpool_sdk.make(
        "Pong-v5",
        env_type="gymnasium",
        num_envs=4,
        batch_size=2,
        noop_max=1,
        full_action_space=True,
        max_episode_steps=108_000 // 4,
        repeat_action_probability=0.25,
        seed=3,
    )
    assert envs.action_space.n == 18
    assert envs.spec.config.max_episode_steps == 27_000
    envs.async_reset()
    lengths = np.zeros(4, np.float32)
    for _ in range(6):
        _, rewards, terminated, truncated, info = envs.recv()
        env_id = info["env_id"]
        done = terminated | truncated
        lengths[env_id] = np.where(info["elapsed_step"] == 0, 0, lengths[env_id] + 1) * (1 - done)
        assert (info["elapsed_step"] <= envs.spec.config.max_episode_steps).all()
        envs.send(np.zeros(len(rewards), np.int64), env_id)


def test_purejaxql(atari: None) -> None:
    env = envpool_sdk.make("Pong-v5", env_type="gymnasium", num_envs=2, seed=0)
    env.num_envs = 2
    env.single_action_space, env.single_observation_space = env.action_space, env.observation_space
    env.name = "Pong-v5"
    env.reset()
    info = env.step(np.zeros(2, int))[-1]
    assert {"lives", "reward", "terminated", "TimeLimit.truncated", "elapsed_step"} <= info.keys()


def test_stoix(plugins: Path, doom: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wrapper closes the env that it looked at, and goes on with it; envs that are done begin anew by a step with as
    many actions as there are envs."""
    monkeypatch.syspath_prepend(str(Path(envpool_sdk.__file__).parent / "as_envpool/path"))
    for name in ("envpool", "envpool.python", "envpool.python.envpool", "envpool.python.protocol"):
        monkeypatch.setitem(sys.modules, name, None)  # so that what is imported here is gone afterwards
        del sys.modules[name]
    envpool = pytest.importorskip("envpool")
    assert envpool.python is envpool_sdk.python
    envs = envpool.make("Basic-v1", env_type="gymnasium", num_envs=2, use_combined_action=True, episodic_life=True)
    assert envs.action_space.n > 1
    observations, _ = envs.reset()
    assert observations.shape[0] == 2
    assert envs.step(np.zeros(2, int))[-1]["env_id"].tolist() == [0, 1]
    envs.close()
    observations, _ = envs.reset()
    action = np.zeros(2, int)
    for _ in range(100):
        observations, _, terminated, truncated, _ = envs.step(action)
        [over] = np.where(terminated | truncated)
        if len(over) > 0:
            observations[over] = envs.step(np.zeros_like(action), over)[0]
            break
    assert len(over) > 0


def test_rl_games(atari: None) -> None:
    envs = envpool_sdk.make_gymnasium("Breakout-v5", num_envs=4, batch_size=4)
    ids = np.arange(4)
    assert envs.reset(ids)[0].shape[0] == 4
    action = np.array([1, 0, 3, 2], np.int64)
    observations, rewards, _, _, info = envs.step(action, ids)
    del info["lives"]
    assert (observations.shape[0], rewards.dtype) == (4, np.float32)
    assert "lives" in envs.step(action, ids)[-1]


def test_rl_games_with_dictionaries() -> None:
    pytest.importorskip("envpool_mujoco")
    envs = envpool_sdk.make_gymnasium("CheetahRun-v1", num_envs=3, batch_size=3)
    assert isinstance(envs.observation_space, gymnasium.spaces.Dict)
    observations, _ = envs.reset(np.arange(3))
    assert {name: part.shape for name, part in observations.items()} == {"position": (3, 8), "velocity": (3, 9)}
    assert envs.step(np.zeros((3, 6)), np.arange(3))[0].keys() == observations.keys()


def test_sample_factory(atari: None) -> None:
    class Batched(gymnasium.Wrapper):  # type: ignore[type-arg]
        pass

    env = Batched(
        envpool_sdk.make(
            "Breakout-v5", env_type="gymnasium", num_envs=4, num_threads=2, thread_affinity_offset=-1, frame_skip=4
        )
    )
    observations, _ = env.reset()
    for ids in (np.array([], int), np.array([2, 0]), np.flatnonzero(np.zeros(4, bool))):
        observations[ids], _ = env.unwrapped.reset(ids)
    observations, rewards, terminated, truncated, _ = env.step(np.zeros(4, np.int64))
    assert (len(observations), len(rewards), len(terminated), len(truncated)) == (4, 4, 4, 4)


def test_tianshou(atari: None) -> None:
    env = envpool_sdk.make_gymnasium("Pong-v5", num_envs=2, seed=1, stack_num=2, episodic_life=True, reward_clip=True)
    assert len(env) == 2
    assert env.observation_space.shape == (2, 84, 84)
    env.seed  # noqa: B018 - it asks for it
    assert env.reset(np.array([1]))[1]["env_id"].tolist() == [1]
    env.reset()
    assert env.step(np.zeros(1, int), np.array([0]))[-1]["env_id"].tolist() == [0]
    unordered = env.step(np.zeros(2, int), np.array([1, 0]))
    assert unordered[-1]["env_id"].tolist() == [1, 0]


def test_tianshou_on_doom(doom: None, tmp_path: Path) -> None:
    reward = {"KILLCOUNT": [20.0, -20.0], "HEALTH": [1.0, 0.0], "AMMO2": [1.0, -1.0]}
    env = envpool_sdk.make_gymnasium(
        "Basic-v1",
        num_envs=1,
        seed=0,
        frame_skip=4,
        stack_num=4,
        reward_config=reward,
        use_combined_action=True,
        max_episode_steps=2625,
        use_inter_area_resize=False,
        lmp_save_dir=str(tmp_path),
    )
    assert len(env) == 1
    assert env.action_space.n > 1
    env.reset()
    env.step(np.zeros(1, int))
    env.close()


def test_torchrl() -> None:
    import envpool_sdk as envpool

    env = envpool.make(task_id="CartPole-v1", env_type="gym", num_envs=3, gym_reset_return_info=True, max_num_players=1)
    assert isinstance(env, (envpool.python.envpool.EnvPoolMixin,))
    assert env.config["num_envs"] == 3
    assert env.spec.action_space.n == 2
    assert env.spec.observation_space.shape == (4,)
    observations, _ = env.reset(np.where(np.array([True, False, True]))[0])
    assert observations.shape == (2, 4)
    env.reset()
    assert len(env.step(np.zeros(3, np.int64))) == 5


def test_stable_baselines3() -> None:
    from envpool_sdk.python.protocol import EnvPool

    env: EnvPool = envpool_sdk.make("CartPole-v1", env_type="gym", num_envs=3)
    assert isinstance(env, EnvPool)
    env.spec.id = "CartPole-v1"
    env.spec.reward_threshold = 475.0
    env.reset()
    observations, *_ = env.reset(np.array([2]))
    assert np.asarray(observations).shape == (1, 4)


def test_acme() -> None:
    pytest.importorskip("dm_env")
    env: Any = envpool_sdk.make_dm("CartPole-v1", num_envs=4)
    assert env.action_spec().num_values == 2
    step = env.reset()
    assert step.observation.obs.shape == (4, 4)
    step = env.step(np.zeros(len(step.observation.env_id), np.int32), step.observation.env_id)
    assert step.observation.env_id.tolist() == [0, 1, 2, 3]


def test_di_engine(old_gym: types.ModuleType) -> None:
    env = envpool_sdk.make(task_id="CartPole-v1", env_type="gym", num_envs=4, batch_size=2, num_threads=2)
    env.async_reset()
    ready: dict[int, Any] = {}
    while len(ready) < 4:
        observations, _, _, info = env.recv()
        ready |= {int(i): row for i, row in zip(info["env_id"], observations, strict=True)}
    env.send(np.zeros(2, np.int64), np.array([0, 3]))
    assert len(env.recv()) == 4
