"""TorchRL's collector on Ray takes PoolEnv as it is."""

from __future__ import annotations

import os
import subprocess
import sys

# In a process of its own, because the collector ends the Ray that it used; with a cluster of its own for the same reason.
PROGRAM = """
import functools
import ray
from torchrl.collectors.distributed import RayCollector
from envpool_sdk.torchrl import PoolEnv

if __name__ == "__main__":
    ray.init(address="local", num_cpus=3, log_to_driver=False)
    make = functools.partial(PoolEnv, "CartPole-v1", num_envs=4, num_threads=1)
    collector = RayCollector(
        [make, make],
        None,
        frames_per_batch=400,
        total_frames=1600,
        sync=True,
        remote_configs={"num_cpus": 1, "num_gpus": 0, "memory": 2**28, "object_store_memory": 2**26},
    )
    frames, ends = 0, 0
    for batch in collector:
        assert batch.shape == (2, 4, 50), batch.shape  # two actors with four envs
        over = batch["next", "done"][..., :-1, 0]
        same = (batch["next", "observation"][..., :-1, :] == batch["observation"][..., 1:, :]).all(-1)
        assert (same == ~over).all()  # a new episode begins just where one ended
        frames += batch.numel()
        ends += int(over.sum())
    assert ends > 0
    print("frames", frames, flush=True)
    collector.shutdown()
"""


def test_the_ray_collector_takes_pools() -> None:
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, env=os.environ | {"RAY_ADDRESS": "local"}, capture_output=True, text=True)
    assert "frames 1600" in done.stdout, done.stdout + done.stderr
