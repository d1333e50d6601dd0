{% set many = cookiecutter.players | int > 1 %}
"""What must hold for {{ cookiecutter.project_name }}: the game runs, repeats itself, leaks nothing, and is what Gymnasium expects."""

from __future__ import annotations

import os
{% if not many %}
import warnings
from contextlib import closing
{% endif %}
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
{% if not many %}
from gymnasium.utils.env_checker import check_env
{% endif %}

import envpool_sdk

ID = "{{ cookiecutter.env_id }}"
NUM_ENVS = 8


def arrays(tree: Any) -> list[np.ndarray]:
    """The leaves of an observation."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in arrays(tree[key])]
    return [np.asarray(tree)]


def random_actions(space: gymnasium.Space[Any]) -> np.ndarray:
    """An action for each env{{ ", of all players" if many else "" }}."""
    return np.stack([space.sample() for _ in range(NUM_ENVS)])


def play(seed: int, num_threads: int = 1, steps: int = 300) -> list[np.ndarray]:
    """Everything that random play gives, array by array."""
    with envpool_sdk.make(ID, num_envs=NUM_ENVS, num_threads=num_threads, seed=seed) as envs:
        envs.action_space.seed(7)
        observations, _ = envs.reset()
        seen = arrays(observations)
        for _ in range(steps):
            observations, *outcome, info = envs.step(random_actions(envs.action_space))
            seen += [*arrays(observations), *outcome, info["coins"]]
    return seen


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_it_is_known() -> None:
    assert ID in envpool_sdk.list_all_envs()
    spec = envpool_sdk.make_spec(ID)
    assert gymnasium.spec(f"envpool/{ID}").max_episode_steps == spec.config.max_episode_steps


def test_points_and_ends() -> None:
    rewards, ended = set(), False
    with envpool_sdk.make(ID, num_envs=NUM_ENVS, seed=1) as envs:
        envs.reset()
        for _ in range(2000):
            _, reward, terminated, truncated, _ = envs.step(random_actions(envs.action_space))
            rewards |= set(reward.ravel().tolist())
            ended = ended or bool((terminated | truncated).any())
    assert {0.0, -1.0} <= rewards <= {-1.0, 0.0, 1.0}
    assert ended


def test_a_seed_is_a_game() -> None:
    assert same(play(seed=3), play(seed=3))
    assert not same(play(seed=3, steps=0), play(seed=4, steps=0))


def test_threads_change_nothing() -> None:
    assert same(play(seed=3, num_threads=1), play(seed=3, num_threads=4))


def test_it_is_drawn() -> None:
    with envpool_sdk.make(ID, num_envs=NUM_ENVS, seed=1, render_mode="rgb_array") as envs:
        envs.reset()
        [first] = envs.render()
        for _ in range(20):
            envs.step(random_actions(envs.action_space))
        [later] = envs.render()
    assert (first.dtype, first.shape) == (np.uint8, (256, 256, 3))
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 3  # players, coin, hunter and the field
    assert not np.array_equal(first, later)


def test_nothing_leaks() -> None:
    def live_and_die(times: int) -> None:
        for _ in range(times):
            with envpool_sdk.make(ID, num_envs=NUM_ENVS, num_threads=1) as envs:
                envs.reset()

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    live_and_die(50)
    before, files = memory(), len(os.listdir("/proc/self/fd"))
    live_and_die(300)
    assert len(os.listdir("/proc/self/fd")) == files
    assert memory() - before < 300 * NUM_ENVS * 1024  # less than 1 KiB an env
{% if not many %}


def test_gymnasiums_checker() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"envpool/{ID}").unwrapped)


def test_make_vec() -> None:
    with closing(gymnasium.make_vec(f"envpool/{ID}", num_envs=NUM_ENVS)) as envs:
        observations, _ = envs.reset(seed=1)
        assert observations in envs.observation_space
        envs.action_space.seed(1)
        for _ in range(100):
            observations, rewards, _, _, _ = envs.step(envs.action_space.sample())
            assert observations in envs.observation_space
            assert rewards.shape == (NUM_ENVS,)
{% endif %}
