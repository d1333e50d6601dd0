"""What is lost when a node dies, and what is not; Ctrl-C; the end of the user's process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest
import ray
from playing import N, Player, assert_others_never_noticed, make, rank_of, wait_for

import envpool_sdk
from envpool_sdk.ray import RayPool


@pytest.mark.parametrize("batch_size", [0, 2])
def test_a_killed_actor_costs_the_episodes_of_its_envs(cluster: Any, batch_size: int) -> None:
    with make(batch_size=batch_size) as pool:
        player = Player(pool)
        pool.async_reset()
        rows = player.observations
        first = {}
        for _ in range(60):
            ids = player.receive()
            first |= {env: rows[env][0] for env in ids.tolist()}
            player.send(ids)
        killed = rank_of(pool, 1)
        assert pool._in_flight[N:].any()
        os.kill(killed.pid, signal.SIGKILL)

        player.play(until=lambda: len(player.faults) == N and min(len(rows[env]) for env in range(2 * N)) > 60)
        assert sorted(env for env, _ in player.faults) == list(range(N, 2 * N))  # each of its envs once, nobody else
        for _, message in player.faults:
            assert f"CartPole-v1: node 1 ({killed.host}, process {killed.pid}) was lost with envs 4 .. 7" in message
        assert sorted(pool.faults) == sorted(player.faults)
        assert_others_never_noticed(player, rank=1)
        for env in range(N, 2 * N):
            assert player.elapsed[env][:3] == [0, 1, 2]
            assert not np.array_equal(rows[env][0], first[env])  # a new seed
        anew = rank_of(pool, 1)
        assert anew.up
        assert anew.pid != killed.pid


def test_a_node_that_dies_while_idle_says_so_at_the_next_send(cluster: Any) -> None:
    with make() as pool:
        pool.reset()
        pool.send(np.zeros(2, np.int64), [0, 5])
        assert len(pool.recv(batch=2)[1]) == 2
        killed = rank_of(pool, 1)
        os.kill(killed.pid, signal.SIGKILL)
        wait_for(lambda: not psutil.pid_exists(killed.pid))
        told = []
        for ids in ([4], [5, 0], [6, 7, 4]):  # 4 is told when its step finds nobody, 5 to 7 without running
            pool.send(np.zeros(len(ids), np.int64), ids)
            _, _, _, truncated, info = pool.recv(batch=len(ids))
            for env, cut in zip(info["env_id"].tolist(), truncated.tolist(), strict=True):
                if cut:
                    told.append(env)
            assert sorted(info["env_id"].tolist()) == sorted(ids)
        assert told == [4, 5, 6, 7]
        assert sorted(env for env, _ in pool.faults) == [4, 5, 6, 7]
        pool.send(np.zeros(8, np.int64))
        info = pool.recv(batch=8)[4]
        elapsed = dict(zip(info["env_id"].tolist(), info["elapsed_step"].tolist(), strict=True))
        assert [elapsed[env] for env in (5, 6, 7)] == [0, 0, 0]
        assert elapsed[4] == 1  # it was reset by the send before


def test_a_node_that_dies_in_a_rollout(cluster: Any) -> None:
    with make() as pool:
        assert len(list(pool.rollout(slowly(0), 5))) == 2
        killed = rank_of(pool, 0)
        rollouts = pool.rollout(slowly(0.05), 20)
        os.kill(killed.pid, signal.SIGKILL)
        [rollout] = list(rollouts)
        assert rollout.rank == 1
        assert sorted(env for env, _ in pool.faults) == list(range(N))
        wait_for(lambda: rank_of(pool, 0).up)
        for rollout in pool.rollout(slowly(0), 5):
            elapsed = rollout.elapsed_step[0]
            assert (elapsed == 0).all() if rollout.rank == 0 else (elapsed > 0).any()
            assert rollout.faults == []


def slowly(seconds: float) -> Callable[[Any], Any]:
    """A policy. A function in a function, for Ray takes those along; it would import what stands in a module."""

    def policy(observations: Any) -> Any:
        time.sleep(seconds)
        return np.zeros(len(observations), np.int64)

    return policy


def test_a_reset_that_dies(cluster: Any) -> None:
    with make() as pool:
        pool.async_reset()
        os.kill(rank_of(pool, 1).pid, signal.SIGKILL)
        player = Player(pool)
        player.play(until=lambda: min(len(player.observations[env]) for env in range(2 * N)) > 5)
        assert all(env >= N for env, _ in player.faults)
        assert_others_never_noticed(player, rank=1)


def test_more_losses_than_allowed(cluster: Any) -> None:
    with make(max_restarts=1) as pool:
        player = Player(pool)
        pool.async_reset()
        os.kill(rank_of(pool, 1).pid, signal.SIGKILL)
        player.play(until=lambda: rank_of(pool, 1).up and len(player.observations[N]) > 3)
        os.kill(rank_of(pool, 1).pid, signal.SIGKILL)
        pool.send(np.zeros(2 * N, np.int64))
        with pytest.raises(envpool_sdk.EnvError, match=r"node 1 .* more than max_restarts=1"):
            player.play(until=lambda: False)
        with pytest.raises(envpool_sdk.EnvError, match="more than max_restarts=1"):  # from then on
            pool.rollout(slowly(0), 1)


def test_envs_that_crash_their_node_end_in_an_error(cluster: Any) -> None:
    """A crash in a thread takes the node along. The next one crashes too: that ends by max_restarts."""
    options = {"fault": "crash", "isolation": "thread"}
    with RayPool("Faulty-v0", num_nodes=1, envs_per_node=2, max_restarts=2, **options) as pool:

        def play() -> None:
            pool.async_reset()
            for _ in range(100):
                pool.send(np.zeros(2, np.int64), pool.recv(batch=2)[4]["env_id"])

        with pytest.raises(envpool_sdk.EnvError, match="max_restarts=2"):
            play()


def test_envs_that_can_not_be_made(cluster: Any) -> None:
    for fault, message in (
        ("failed", "faulty: failed in create"),
        ("crash", "node 0 died while its envs were made"),
    ):
        with pytest.raises(envpool_sdk.EnvError, match=message):
            RayPool("Faulty-v0", num_nodes=1, fault=fault, where="create", isolation="thread")


# ---- the user's process -----------------------------------------------------


@pytest.fixture
def driver(cluster: Any) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a program that has a RayPool of the cluster in `pool`."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str) -> subprocess.Popen[str]:
        begin = f"""
import os, signal, threading
import numpy as np
import ray
from envpool_sdk.ray import RayPool
ray.init(address={cluster.address!r}, log_to_driver=False)
pool = RayPool("Slow-v0", num_nodes=2, envs_per_node=2, step_us=300_000.0)
"""
        started.append(
            subprocess.Popen([sys.executable, "-c", begin + code], stdout=subprocess.PIPE, text=True, bufsize=1)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_ctrl_c_loses_nothing(driver: Callable[[str], subprocess.Popen[str]]) -> None:
    process = driver("""
pool.reset()
interrupts = 0
for _ in range(20):
    if interrupts == 3:
        break
    pool.send(np.zeros(4, np.int64))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    seen = []
    while len(seen) < 4:
        try:
            seen += pool.recv()[4]["env_id"].tolist()
        except KeyboardInterrupt:
            interrupts += 1
    try:
        timer.join()  # on a busy machine it comes too late
    except KeyboardInterrupt:
        pass
    assert sorted(seen) == [0, 1, 2, 3], seen
assert interrupts == 3, interrupts
assert pool.faults == [], pool.faults
print("sound")
""")
    assert process.communicate(timeout=300)[0] == "sound\n"


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit", "raise RuntimeError"])
def test_actors_end_with_the_users_process(driver: Callable[[str], subprocess.Popen[str]], end: str) -> None:
    process = driver(f"""
pool.async_reset()
print(*(node.pid for node in pool.nodes), flush=True)
{end}
""")
    pids = [int(word) for word in process.communicate(timeout=300)[0].split()]
    assert len(pids) == 2
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))
    wait_for(lambda: ray.available_resources().get("CPU") == 2)  # their room is free again


def test_a_pool_that_is_dropped_gives_its_room_back(cluster: Any) -> None:
    pool = make()
    pids = [node.pid for node in pool.nodes]
    del pool
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))
    with make():
        pass
