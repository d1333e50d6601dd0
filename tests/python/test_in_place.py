"""copy=False: every batch is the same array objects, with the values that copy=True gives."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import envpool_sdk

NUM_ENVS = 9
STEPS = 120  # several episodes of random CartPole


def leaves(value: Any) -> list[np.ndarray[Any, Any]]:
    """All arrays of a result, in order, but those of objects."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value] if isinstance(value, np.ndarray) and value.dtype != object else []


def assert_equal(one: Any, other: Any) -> None:
    first, second = leaves(one), leaves(other)
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_make_vec_gives_the_same_values_in_the_same_arrays(mode: AutoresetMode, num_threads: int) -> None:
    made: dict[str, Any] = {"num_envs": NUM_ENVS, "num_threads": num_threads, "autoreset_mode": mode}
    copying = gymnasium.make_vec("envpool/CartPole-v1", **made)
    kept = gymnasium.make_vec("envpool/CartPole-v1", **made, copy=False)
    first = kept.reset(seed=3)
    assert_equal(copying.reset(seed=3), first)
    arrays = None
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        actions = rng.integers(0, 2, NUM_ENVS)
        wanted, got = copying.step(actions), kept.step(actions)
        assert_equal(wanted, got)
        arrays = arrays or got[:4]
        assert all(a is b for a, b in zip(arrays, got[:4], strict=True))
        assert got[0] is first[0]
        over = got[2] | got[3]
        if mode == AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            assert_equal(copying.reset(options=dict(options)), kept.reset(options=dict(options)))
    seeds: list[int | None] = [5, None] * NUM_ENVS
    assert_equal(copying.reset(seed=seeds[:NUM_ENVS]), kept.reset(seed=seeds[:NUM_ENVS]))  # comes in two parts
    copying.close()
    kept.close()
    np.testing.assert_array_equal(first[0], first[0].copy())  # still there


def test_make_gives_views_for_some_envs() -> None:
    copying = envpool_sdk.make("CartPole-v1", num_envs=NUM_ENVS, seed=1)
    kept = envpool_sdk.make("CartPole-v1", num_envs=NUM_ENVS, seed=1, copy=False)
    first = kept.reset()
    assert_equal(copying.reset(), first)
    rng = np.random.default_rng(0)
    for step in range(STEPS):
        ids = np.sort(rng.permutation(NUM_ENVS)[: 1 + step % NUM_ENVS]).astype(np.int32)
        actions = rng.integers(0, 2, len(ids))
        wanted, got = copying.step(actions, ids), kept.step(actions, ids)
        assert_equal(wanted, got)
        assert np.shares_memory(got[0], first[0])
        assert (got[0] is first[0]) == (len(ids) == NUM_ENVS)
    assert kept.config["copy"] is False
    copying.close()
    kept.close()


def test_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"CartPole-v1: copy=False needs batch_size=num_envs, not batch_size=2"):
        envpool_sdk.make("CartPole-v1", num_envs=4, batch_size=2, copy=False)
    with pytest.raises(ValueError, match=r"CartPole-v1: copy='no' must be a bool"):
        envpool_sdk.make("CartPole-v1", num_envs=4, copy="no")  # type: ignore[arg-type]
    envs = envpool_sdk.make("CartPole-v1", num_envs=4, copy=False)
    envs.reset()
    envs.send(np.zeros(2, np.int64), np.array([0, 1]))
    with pytest.raises(RuntimeError, match=r"copy=False has one batch of arrays, and it is still in flight"):
        envs.send(np.zeros(2, np.int64), np.array([2, 3]))
    assert envs.recv()[4]["env_id"].tolist() == [0, 1]  # and nothing is lost
    envs.send(np.zeros(2, np.int64), np.array([2, 3]))
    assert envs.recv()[4]["env_id"].tolist() == [2, 3]
    envs.close()


def test_arrays_outlive_the_pool() -> None:
    envs = envpool_sdk.make("CartPole-v1", num_envs=4, copy=False)
    observations, _ = envs.reset()
    before = observations.copy()
    envs.close()
    del envs
    np.testing.assert_array_equal(observations, before)
