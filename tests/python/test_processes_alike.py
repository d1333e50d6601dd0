"""Threads and worker processes give the same bits: observations, rewards, infos, states and pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector.utils import concatenate, create_empty_array

import envpool_sdk

pytestmark = pytest.mark.usefixtures("no_leaks")

VOLATILE = frozenset({"spent", "thread", "pid"})
"""Infos that no seed determines."""

TASKS: list[tuple[str, dict[str, Any]]] = [
    ("CartPole-v1", {"max_episode_steps": 30}),
    ("KitchenSink-v0", {"length": 7, "weights": [1.0, -2.0, 3.0]}),
    ("Image-v0", {"stack_num": 4, "img_height": 8, "img_width": 8, "gray_scale": True, "frame_skip": 2}),
    ("Pursuit-v0", {}),
    ("Counter-v0", {"max_episode_steps": 5}),
    ("Bound-v0", {}),
    ("Faulty-v0", {"fault": "failed", "at_step": 3, "env_id": 1}),
]
MODES = ["next_step", "same_step", "disabled"]
WAYS: list[dict[str, Any]] = [
    {"isolation": "thread", "num_threads": 2},
    {"isolation": "process"},
    {"isolation": "process", "envs_per_worker": 3},
]


def rows_of(result: Any) -> dict[int, Any]:
    """The parts of a batch, env by env: no order counts."""
    ids = result[-1]["env_id"].tolist()

    def row(value: Any, i: int) -> Any:
        if isinstance(value, dict):
            return {key: row(part, i) for key, part in value.items() if key not in VOLATILE}
        if isinstance(value, tuple) and len(value) != len(ids):  # of fields; texts are tuples [n] of str
            return tuple(row(part, i) for part in value)
        if isinstance(value, tuple) and not all(isinstance(part, str) for part in value):
            return tuple(row(part, i) for part in value)
        return value[i]

    return {env_id: tuple(row(part, i) for part in result) for i, env_id in enumerate(ids)}


class Actions:
    """What each env does at each of its steps, whatever the pool is."""

    def __init__(self, env: envpool_sdk.EnvPool) -> None:
        self._space = env.action_space
        self._space.seed(5)
        self._table = [[self._space.sample() for _ in range(61)] for _ in range(env.num_envs)]

    def __call__(self, t: int, ids: list[int]) -> Any:
        chosen = [self._table[i][t % 61] for i in ids]
        return concatenate(self._space, chosen, create_empty_array(self._space, len(ids)))


def play(task: str, steps: int, mode: str, options: dict[str, Any], num_envs: int = 5) -> list[Any]:
    """All that users see of a synchronous pool: steps of all envs and of some, resets, states, pictures, faults."""
    env = envpool_sdk.make(task, num_envs=num_envs, seed=11, autoreset_mode=mode, **options)
    actions = Actions(env)
    seen: list[Any] = [env.reset()]
    over = np.zeros(num_envs, np.bool_)
    ids = list(range(num_envs))
    for t in range(steps):
        some = ids if t % 3 else ids[::-2]
        if mode == "disabled" and over[some].any():
            ended = [i for i in some if over[i]]
            seen.append(env.reset(ended, seed=t if t % 2 else None))
            over[ended] = False
        result = env.step(actions(t, some), some)
        flags = result[2] | result[3]
        if "episode_over" in result[4]:
            flags = result[4]["episode_over"]
        over[some] = flags
        seen.append(result)
    seen.append(env.reset([1, num_envs - 1], seed=[99, 100]))
    with contextlib.suppress(ValueError):  # not every task saves its state
        state = env.save_state(1)
        seen.append(state)
        env.load_state(0, state)
        seen.append(env.step(actions(50, [0, 1]), [0, 1]))
    if env._setup.renders:
        env.render_mode = "rgb_array"
        seen.append(env.render([1, 0]))
    seen.append(env.faults)
    statistics = env._pool.statistics
    seen.append(statistics)
    env.close()
    return [[rows_of(one)] if isinstance(one, tuple) else one for one in seen]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("task", "options"), TASKS)
def test_synchronous(task: str, options: dict[str, Any], mode: str, same: Callable[..., None]) -> None:
    one, *others = [play(task, 40, mode, options | way) for way in WAYS]
    for other in others:
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize(("task", "options"), TASKS)
def test_asynchronous(task: str, options: dict[str, Any], mode: str, same: Callable[..., None]) -> None:
    """Each env's rows, in its own order."""

    def histories(way: dict[str, Any]) -> list[list[Any]]:
        env = envpool_sdk.make(task, num_envs=5, batch_size=2, seed=3, autoreset_mode=mode, **options, **way)
        actions = Actions(env)
        env.async_reset()
        seen: list[list[Any]] = [[] for _ in range(5)]
        while env._pool.pending:
            result = env.recv()
            for i, row in rows_of(result).items():
                row[-1].pop("_final_obs", None)  # only there when an env of the batch ended
                row[-1].pop("_final_info", None)
                for key in ("final_obs", "final_info", "fault"):
                    if row[-1].get(key) is None:
                        row[-1].pop(key, None)
                final_info = row[-1].pop("final_info", None)
                seen[i].append((row, final_info if row[-1].get("final_obs") is not None else None))
            go_on = [i for i in result[-1]["env_id"].tolist() if len(seen[i]) < 25]
            for i in go_on:
                env.send(actions(len(seen[i]), [i]), [i])
        env.close()
        return seen

    one, *others = [histories(way) for way in WAYS]
    for other in others:
        same(one, other)


@pytest.mark.parametrize(
    ("task", "options"), [("CartPole-v1", {}), ("KitchenSink-v0", {"length": 7}), ("Image-v0", {})]
)
def test_gymnasiums_faces(task: str, options: dict[str, Any], same: Callable[..., None]) -> None:
    def play_both(isolation: str) -> list[Any]:
        seen: list[Any] = []
        for env in (
            gymnasium.make_vec(f"envpool/{task}", num_envs=3, isolation=isolation, **options),
            gymnasium.make(f"envpool/{task}", isolation=isolation, **options),
        ):
            seen.append(env.reset(seed=4))
            env.action_space.seed(4)
            for _ in range(30):
                seen.append(env.step(env.action_space.sample()))
                if isinstance(env, gymnasium.Env) and (seen[-1][2] or seen[-1][3]):
                    seen.append(env.reset())
            env.close()
        return seen

    same(play_both("thread"), play_both("process"), ignore=VOLATILE | {"_spent"})


def test_options_at_reset(same: Callable[..., None]) -> None:
    def play_both(isolation: str) -> Any:
        env = envpool_sdk.make("KitchenSink-v0", num_envs=3, isolation=isolation)
        env.reset()
        first = env.reset([0, 2], options={"salt": 7, "mood": "fancy"})
        second = env.step(Actions(env)(1, [0, 1, 2]))
        env.close()
        return first, second

    same(play_both("thread"), play_both("process"), ignore=VOLATILE)


def test_options_for_each_env(same: Callable[..., None]) -> None:
    each = [{"length": 3}, {"length": 4}, {"length": 5, "cut": True}]
    one, other = [
        play("KitchenSink-v0", 20, "next_step", {"env_kwargs": each, **way}, num_envs=3)
        for way in ({"isolation": "thread"}, {"isolation": "process", "envs_per_worker": 2})
    ]
    same(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_atari(mode: str, same: Callable[..., None]) -> None:
    pytest.importorskip("envpool_atari")
    options = {"noop_max": 5, "episodic_life": True, "max_episode_steps": 40, "reward_clip": True}
    one, *others = [play("Breakout-v5", 60, mode, options | way, num_envs=4) for way in WAYS]
    for other in others:
        for a, b in zip(one, other, strict=True):
            same(a, b)
