"""EnvPool.torch(): the same values as from the pool itself, in tensors over the pool's memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import envpool_sdk

pytestmark = pytest.mark.full  # PyTorch is too large for every day


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs PyTorch")


def in_numpy(torch: Any, value: Any) -> Any:
    """The structure with arrays for tensors, and dictionaries for named tuples, whose types are made for each pool."""
    if isinstance(value, torch.Tensor):
        return value.numpy()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: in_numpy(torch, part) for key, part in value.items()}
    return tuple(in_numpy(torch, part) for part in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("env_type", ["gymnasium", "gym", "dm"])
@pytest.mark.parametrize("task", ["CartPole-v1", "KitchenSink-v0", "Pursuit-v0"])
def test_values_are_the_pools(torch: Any, task: str, env_type: str, same: Callable[..., None]) -> None:
    env, other = (envpool_sdk.make(task, env_type, num_envs=3, seed=2) for _ in range(2))
    envs = env.torch()
    got, wanted = envs.reset(), other.reset()
    space = envpool_sdk.make_spec(task).action_space
    for i in range(20):
        assert not any(isinstance(leaf, np.ndarray) for leaf in leaves(got))
        same(in_numpy(torch, got), in_numpy(torch, wanted), ignore=frozenset({"spent"}))
        actions = [space.sample() for _ in range(3)]
        arrays = stacked(actions)
        tensors = mapped(arrays, lambda array: torch.from_numpy(array) if isinstance(array, np.ndarray) else array)
        if i % 3:
            got, wanted = envs.step(tensors), other.step(arrays)
        else:
            envs.send(tensors)
            got, wanted = envs.recv(), other.step(arrays)


def leaves(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else None
    return [value] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def stacked(samples: list[Any]) -> Any:
    first = samples[0]
    if isinstance(first, dict):
        return {key: stacked([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple):
        return tuple(stacked([sample[i] for sample in samples]) for i in range(len(first)))
    return tuple(samples) if isinstance(first, str) else np.array(samples)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, tuple) and not isinstance(value[0], str):
        return tuple(mapped(part, change) for part in value)
    return change(value)


def test_tensors_are_the_pools_memory_and_ours(torch: Any) -> None:
    env = envpool_sdk.make("CartPole-v1", num_envs=64)
    envs = env.torch()
    observations, _ = envs.reset()
    actions = torch.zeros(64, dtype=torch.int64)
    envs.step(actions)  # so that all blocks are made
    before = env._pool.retained_bytes
    kept = [envs.step(actions)[0] for _ in range(10)]
    copies = [one.clone() for one in kept]
    assert len({one.data_ptr() for one in kept}) == 10
    assert env._pool.retained_bytes > before  # what we keep is the pool's memory, not a copy of it
    for one in kept:
        one += 1  # ours to change
    next_one = envs.step(actions)[0]
    for one, copy in zip(kept, copies, strict=True):
        torch.testing.assert_close(one, copy + 1, rtol=0, atol=0)
    last = kept[-1][5]
    env.close()
    del kept, one, envs, env, observations, next_one
    gc.collect()
    torch.testing.assert_close(last, copies[-1][5] + 1, rtol=0, atol=0)  # a view keeps it, whatever became of the pool


def test_in_place_pools_give_the_same_tensors_memory(torch: Any) -> None:
    envs = envpool_sdk.make("CartPole-v1", num_envs=4, copy=False).torch()
    first = envs.reset()[0]
    assert envs.step(torch.zeros(4, dtype=torch.int64))[0].data_ptr() == first.data_ptr()


def test_actions_of_any_kind(torch: Any) -> None:
    env = envpool_sdk.make("CartPole-v1", num_envs=4)
    envs = env.torch()
    envs.reset()
    for action in (
        torch.ones(4, dtype=torch.int32),
        torch.rand(4, 2, requires_grad=True).argmax(1),
        np.ones(4, int),
        [1, 0, 1, 0],
    ):
        envs.step(action)
    assert envs.step(torch.ones(2, dtype=torch.int64), torch.tensor([3, 1]))[4]["env_id"].tolist() == [3, 1]
    with pytest.raises(ValueError, match="CartPole-v1: action must hold int64"):
        envs.step(torch.ones(4))
    assert len(envs) == 4
    envs.close()
    with pytest.raises(envpool_sdk.ClosedError):
        envs.step([0] * 4)


def test_floating_point_actions(torch: Any) -> None:
    pytest.importorskip("envpool_mujoco")
    env, other = (envpool_sdk.make("Ant-v5", num_envs=2) for _ in range(2))
    envs = env.torch()
    envs.reset()
    other.reset()
    action = (torch.rand(2, 8) - 0.5).requires_grad_()
    np.testing.assert_array_equal(envs.step(action)[0].numpy(), other.step(action.detach().numpy())[0])
    envs.step(action.bfloat16())


def test_other_devices_get_copies(torch: Any) -> None:
    """Which is all that can be known of them without one: "meta" has shapes and no memory."""
    envs = envpool_sdk.make("CartPole-v1", num_envs=4).torch("meta")
    observations, info = envs.reset()
    assert observations.is_meta
    assert observations.shape == (4, 4)
    assert info["players"]["env_id"].is_meta


def test_cuda(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    env, other = (envpool_sdk.make("CartPole-v1", num_envs=64, seed=1) for _ in range(2))
    envs = env.torch("cuda")
    envs.reset()
    other.reset()
    for i in range(50):
        action = torch.full((64,), i % 2, device="cuda")
        got, wanted = envs.step(action), other.step(action.cpu().numpy())
        assert got[0].device.type == "cuda"
        np.testing.assert_array_equal(got[0].cpu().numpy(), wanted[0])


def test_flushing_denormals_changes_no_env(torch: Any) -> None:
    """set_flush_denormal() is of this thread, which helps to run envs."""
    pytest.importorskip("envpool_mujoco")
    runs = []
    for flush in (False, True):
        env = envpool_sdk.make("Ant-v5", num_envs=2, num_threads=1, seed=1)
        torch.set_flush_denormal(flush)
        try:
            env.reset()
            runs.append([env.step(np.full((2, 8), 1e-40, np.float32))[0] for _ in range(50)])
        finally:
            torch.set_flush_denormal(False)
    np.testing.assert_array_equal(*runs)
