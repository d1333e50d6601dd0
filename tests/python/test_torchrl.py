"""envpool_sdk.torchrl.PoolEnv: what TorchRL asks of its environments, with the trajectories of Gymnasium's face."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk

full = pytest.mark.full  # PyTorch is too large for every day

TASKS = {
    "vector": ("CartPole-v1", {}),
    "picture": ("Pong-v5", {}),
    "continuous": ("InvertedPendulum-v5", {}),
    "dictionary": ("DoomBasic-v1", {"observe_variables": True}),
    "every type": ("KitchenSink-v0", {}),
}


@pytest.fixture
def pool_env() -> Any:
    pytest.importorskip("torchrl", reason="needs TorchRL")
    from envpool_sdk.torchrl import PoolEnv

    return PoolEnv


@pytest.fixture
def cartpole(pool_env: Any) -> Iterator[Any]:
    env = pool_env("CartPole-v1", num_envs=3)
    yield env
    env.close()


def task_of(name: str) -> tuple[str, dict[str, Any]]:
    task, options = TASKS[name]
    if task not in envpool_sdk.list_all_envs():
        pytest.skip(f"{task} is not installed")
    return task, options


@full
@pytest.mark.parametrize("name", TASKS)
def test_torchrl_finds_the_specs_right(pool_env: Any, name: str) -> None:
    from torchrl.envs.utils import check_env_specs

    task, options = task_of(name)
    env = pool_env(task, num_envs=2, **options)
    check_env_specs(env, seed=1)
    env.close()


@full
def test_steps_and_partial_resets_are_gymnasiums(cartpole: Any) -> None:
    """Over episodes that end at different times; torchrl resets just the envs that are done."""
    import torch

    envs: Any = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3, autoreset_mode="Disabled")
    wanted, _ = envs.reset(seed=5)
    cartpole.set_seed(5)
    data = cartpole.reset()
    ended = 0
    for actions in np.random.default_rng(0).integers(0, 2, (200, 3)):
        np.testing.assert_array_equal(data["observation"].numpy(), wanted)
        step, data = cartpole.step_and_maybe_reset(data.set("action", torch.from_numpy(actions)))
        wanted, reward, terminated, truncated, _ = envs.step(actions)
        after = step["next"]
        np.testing.assert_array_equal(after["observation"].numpy(), wanted)
        assert after["reward"].dtype == torch.float32
        np.testing.assert_array_equal(after["reward"][:, 0].numpy(), reward)
        for key, flags in (("terminated", terminated), ("truncated", truncated), ("done", terminated | truncated)):
            np.testing.assert_array_equal(after[key][:, 0].numpy(), flags)
        if (over := terminated | truncated).any():
            ended += int(over.sum())
            wanted, _ = envs.reset(options={"reset_mask": over})
    assert ended > 5
    envs.close()


@full
def test_a_time_limit_truncates(pool_env: Any) -> None:
    env = pool_env("CartPole-v1", num_envs=2, max_episode_steps=3)
    after = env.rollout(10)["next"]  # stops when one is done
    assert after["truncated"][:, -1].all()
    assert after["done"][:, -1].all()
    assert not after["terminated"].any()
    assert after.batch_size == (2, 3)
    env.close()


@full
def test_tensors_are_the_pools_memory(cartpole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    step = cartpole._envs.step
    monkeypatch.setattr(cartpole._envs, "step", lambda actions: given.append(step(actions)) or given[-1])
    after = cartpole.rand_step(cartpole.reset())["next"]
    assert after["observation"].data_ptr() == given[0][0].ctypes.data
    assert after["terminated"].data_ptr() == given[0][2].ctypes.data


@full
def test_a_failed_env_is_truncated(pool_env: Any) -> None:
    env = pool_env("Faulty-v0", num_envs=3, fault="failed", at_step=2, env_id=1, times=1, key="torchrl")
    after = env.rollout(5)["next"]
    assert after["truncated"][:, -1, 0].tolist() == [False, True, False]
    assert [env_id for env_id, _ in env.faults] == [1]
    env.close()


@full
@pytest.mark.parametrize("name", ["Collector", "MultiAsyncCollector"])
def test_collectors(pool_env: Any, name: str) -> None:
    """In this process, and in two processes of their own; over the ends of episodes."""
    import torchrl.collectors

    task, _ = task_of("continuous")  # of an installed package: other processes don't know what was loaded here
    make = functools.partial(pool_env, task, num_envs=4, num_threads=1)
    several = name != "Collector"
    collector = getattr(torchrl.collectors, name)(
        [make, make] if several else make, None, frames_per_batch=200, total_frames=800
    )
    try:
        batches = list(collector)
    finally:
        collector.shutdown()
    assert sum(batch.numel() for batch in batches) == 800
    for batch in batches:
        assert batch.shape == (4, 50)
        over = batch["next", "done"][:, :-1, 0]
        same = (batch["next", "observation"][:, :-1] == batch["observation"][:, 1:]).all(-1)
        assert (same == ~over).all()  # a new episode begins just where one ended
        assert over.any()


@full
@pytest.mark.parametrize("name", ["autoreset_mode", "copy"])
def test_arguments_that_are_torchrls_business(pool_env: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"CartPole-v1: {name} is no argument of PoolEnv"):
        pool_env("CartPole-v1", num_envs=2, **{name: False})


def test_without_torchrl_the_import_says_what_to_install() -> None:
    program = "import sys; sys.modules['torchrl'] = sys.modules['torch'] = None; import envpool_sdk.torchrl"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'envpool-sdk[torchrl]'" in done.stderr.splitlines()[-1]
