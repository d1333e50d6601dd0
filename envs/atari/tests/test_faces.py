"""Atari through gymnasium.make_vec and envpool_sdk.make: threads, autoreset, leaks, rendering, state."""

from __future__ import annotations

import hashlib
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from atari_pools import Rows
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import envpool_sdk

Trajectories = dict[int, list[tuple[Any, ...]]]


def play(game: str, steps: int, num_envs: int = 4, **options: Any) -> Trajectories:
    """What each env gives over its first steps, whatever the order in which they come."""
    env = envpool_sdk.make(game, num_envs=num_envs, **options)
    rows: Trajectories = {i: [] for i in range(num_envs)}
    env.async_reset()
    while min(map(len, rows.values())) < steps:
        obs, reward, terminated, truncated, info = env.recv()
        ids = info["env_id"].tolist()
        for k, i in enumerate(ids):
            picture = hashlib.sha1(obs[k].tobytes() + info["ram"][k].tobytes()).digest()
            numbers = (reward[k], terminated[k], truncated[k], info["lives"][k], info["elapsed_step"][k])
            rows[i].append((picture, *map(float, numbers)))
        env.send([(7 * len(rows[i]) + 3 * i) % env.action_space.n for i in ids], ids)
    env.close()
    return {i: row[:steps] for i, row in rows.items()}


@pytest.mark.filterwarnings("ignore:.*num_threads=8")
@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("Breakout-v5", {"episodic_life": True, "repeat_action_probability": 0.25}),
        ("Seaquest-v5", {"episodic_life": True, "life_loss_reset": "real", "max_episode_steps": 40}),
        ("MsPacman-v5", {"gray_scale": False, "max_episode_steps": 25, "autoreset_mode": "SameStep"}),
    ],
    ids=str,
)
def test_threads_and_batches_do_not_matter(game: str, options: dict[str, Any]) -> None:
    """Case 31: 1, 2 and 8 threads, synchronous and asynchronous, give the same bits."""
    expected = play(game, 90, num_threads=1, **options)
    assert any(row[2] or row[3] for row in expected[0])  # episodes end
    for num_threads, batch_size in ((2, 0), (8, 0), (1, 3), (2, 1), (8, 3)):
        assert play(game, 90, num_threads=num_threads, batch_size=batch_size, **options) == expected


REAL = {"episodic_life": True, "life_loss_reset": "real"}
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("Breakout-v5", {"episodic_life": True}),
    ("Breakout-v5", REAL),
    ("Breakout-v5", REAL | {"stop_on_life_loss": True, "life_loss_at_zero": True, "reward_clip": True}),
    ("Seaquest-v5", {"episodic_life": True, "max_episode_steps": 30, "repeat_action_probability": 0.25}),
]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(("game", "options"), SETTINGS, ids=str)
@pytest.mark.parametrize("steps", [120, pytest.param(2000, marks=pytest.mark.full)])
def test_agrees_with_sync_vector_env(game: str, options: dict[str, Any], mode: AutoresetMode, steps: int) -> None:
    """Cases 1, 2, 5, 55: in every autoreset mode, with partial resets."""
    make = lambda: gymnasium.make(f"envpool/{game}", **options)  # noqa: E731
    envs = gymnasium.make_vec(f"envpool/{game}", num_envs=3, autoreset_mode=mode, **options)
    expected = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    assert_same(envs.reset(seed=5), expected.reset(seed=5))
    random = np.random.default_rng(0)
    over, ends = np.zeros(3, np.bool_), 0
    for t in range(steps):
        if mode is AutoresetMode.DISABLED:
            mask = over
        else:
            mask = np.array([True, False, t % 2 == 0]) & (t % 50 == 49)
        if mask.any():
            assert_same(*(each.reset(options={"reset_mask": mask.copy()}) for each in (envs, expected)))
        actions = random.integers(envs.single_action_space.n, size=3)
        ours, theirs = envs.step(actions), expected.step(actions)
        assert_same(ours, theirs)
        over = ours[2] | ours[3]
        ends += over.sum()
    assert ends > 1
    envs.close()
    expected.close()


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        assert_same(tuple(one.values()), tuple(other[key] for key in one))
    elif isinstance(one, tuple) or (isinstance(one, np.ndarray) and one.dtype == object):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(one, other, strict=isinstance(one, np.ndarray))


def test_kept_observations_never_change() -> None:
    """Case 47."""
    env = envpool_sdk.make("Pong-v5", num_envs=2)
    kept = [env.reset()[0]] + [env.step([t % 6, 2])[0] for t in range(200)]
    copies = [obs.copy() for obs in kept]
    for t in range(50):
        env.step([2, t % 6])
    assert all(np.array_equal(np.from_dlpack(obs), copy) for obs, copy in zip(kept, copies, strict=True))


@pytest.mark.parametrize("times", [30, pytest.param(200, marks=pytest.mark.full)])
def test_nothing_is_left_behind(times: int) -> None:
    """Case 26: make, play and close, or forget."""
    process = psutil.Process()

    def left(times: int) -> tuple[int, int, int]:
        for k in range(times):
            env = envpool_sdk.make("Breakout-v5", num_envs=4, num_threads=2, batch_size=2)
            env.async_reset()
            for _ in range(3):
                env.send([0, 1], env.recv()[4]["env_id"])
            if k % 3:
                env.close()
            del env
        return process.num_threads(), process.num_fds(), process.memory_info().rss

    threads, fds, rss = left(20)
    more_threads, more_fds, more_rss = left(times)
    assert (more_threads, more_fds) == (threads, fds)
    assert more_rss - rss < 16 * 2**20


def test_renders_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """EnvPool leaves the process here."""
    monkeypatch.delenv("DISPLAY", raising=False)
    env = envpool_sdk.make("Pong-v5", num_envs=3, render_mode="rgb_array")
    env.reset()
    env.step([0, 2, 3])
    assert env.render([2, 0]).shape == (2, 210, 160, 3)
    envs = gymnasium.make_vec("envpool/Pong-v5", num_envs=1, render_mode="rgb_array", render_width=84)
    envs.reset()
    with pytest.raises(ValueError, match=r"Pong-v5, env 0: render.*160 x 210"):
        envs.render()


LIVES = {"episodic_life": True, "frame_skip": 4, "noop_max": 30, "use_fire_reset": True}


@pytest.mark.parametrize("reset", ["continue", "real"])
@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_state_holds_all_that_the_pool_adds(game: str, reset: str) -> None:
    """Stack, life, skip, limit and no-ops: another pool goes on from the bytes as the first one."""
    transforms = LIVES | {"life_loss_reset": reset, "gray_scale": True, "stack_num": 4, "max_last_two": True}
    with (
        Rows(game, 2, {"repeat_action_probability": 0.25}, transforms, 50) as one,
        Rows(game, 2, {"repeat_action_probability": 0.25}, transforms, 50) as other,
    ):
        one.reset(1, 2)
        other.reset(8, 9)
        random = np.random.default_rng(0)
        for _ in range(4):
            for actions in random.integers(4, size=(17, 2)):
                one.step(*map(int, actions))
            for i in range(2):
                other.pool.load_state(1 - i, one.pool.save_state(i))
            for actions in random.integers(4, size=(60, 2)).tolist():
                mine, theirs = one.step(*actions), other.step(*reversed(actions))
                for name in mine.keys() - {"pool.env_id"}:
                    np.testing.assert_array_equal(mine[name], theirs[name][::-1], err_msg=name)
