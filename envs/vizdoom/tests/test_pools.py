"""Seeds, threads and episodes of whole pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import envpool_sdk


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


def trace(task_id: str, threads: int, steps: int = 150) -> list[Any]:
    envs = envpool_sdk.make(task_id, num_envs=4, num_threads=threads, seed=5)
    random = np.random.default_rng(0)
    rows: list[Any] = [envs.reset()[0]]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = envs.step(random.integers(envs.action_space.n, size=4))
        rows += [obs, reward, terminated, truncated, info["elapsed_step"], info["HEALTH"], info["AMMO2"]]
    envs.close()
    return rows


@pytest.mark.parametrize("task_id", ["DoomDeadlyCorridor-v1", "DoomDefendTheLine-v1"])
def test_threads_change_nothing(task_id: str) -> None:
    for one, four in zip(trace(task_id, 1), trace(task_id, 4), strict=True):
        np.testing.assert_array_equal(one, four)


def test_a_seed_gives_the_same_episodes_again() -> None:
    """reset(seed=123); reset(): twice the same two episodes, and they differ from each other."""
    import gymnasium

    env = gymnasium.make("envpool/DoomDefendTheCenter-v1")
    episodes = []
    for how in ({"seed": 123}, {}, {"seed": 123}, {}):
        rows = [env.reset(**how)[0]]
        for _ in range(40):
            obs, reward, terminated, *_ = env.step(3)
            rows += [obs, np.array([reward, terminated])]
        episodes.append(rows)
    env.close()
    for a, b in zip(episodes[0] + episodes[1], episodes[2] + episodes[3], strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(episodes[0], episodes[1], strict=True))


def test_envs_of_a_pool_differ() -> None:
    envs = envpool_sdk.make("DoomBasic-v1", num_envs=4, seed=1)
    obs = envs.reset()[0]
    envs.close()
    assert len({o.tobytes() for o in obs}) == 4


def test_the_scenario_ends_by_its_clock() -> None:
    """300 tics of basic are 75 steps; the limit truncates, and the next step begins anew."""
    envs = envpool_sdk.make("DoomBasic-v1", num_envs=1, seed=1)
    envs.reset()
    noop = np.zeros(1, np.int64)
    for step in range(1, 76):
        obs, reward, terminated, truncated, info = envs.step(noop)
        assert (reward, terminated, truncated) == (-4, False, step == 75)
    last = obs
    obs, reward, terminated, truncated, info = envs.step(noop)
    assert (reward, terminated, truncated, info["elapsed_step"]) == (0, False, False, 0)
    assert (obs != last).any()
    envs.close()


def test_vector_env_in_same_step_mode() -> None:
    import gymnasium

    envs = gymnasium.make_vec("envpool/DoomBasic-v1", num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=3)
    for _ in range(75):
        obs, _, _, truncated, infos = envs.step(np.zeros(2, np.int64))
    assert truncated.all()
    assert all((infos["final_obs"][i] != obs[i]).any() for i in range(2))
    envs.close()
