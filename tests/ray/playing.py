"""What the tests of losses share: a player that keeps what each env did, and one local pool to compare it with."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import envpool_sdk
from envpool_sdk.ray import NodeInfo, RayPool

N = 4
ACTIONS = np.arange(100_000) % 7 % 2  # by step; the others play on while a node is replaced


def make(**arguments: Any) -> RayPool:
    return RayPool("CartPole-v1", num_nodes=2, envs_per_node=N, **{"strategy": "STRICT_SPREAD", "seed": 7} | arguments)


class Player:
    """Plays by ACTIONS, and keeps for each env the rows since its last fault."""

    def __init__(self, pool: RayPool) -> None:
        self.pool = pool
        self.observations: dict[int, list[Any]] = defaultdict(list)
        self.elapsed: dict[int, list[int]] = defaultdict(list)
        self.faults: list[tuple[int, str]] = []

    def receive(self) -> Any:
        batch = self.pool.recv(timeout=300)
        observations, rewards, _, truncated, info = batch
        faults = info.get("fault", [None] * len(rewards))
        for i, env in enumerate(info["env_id"].tolist()):
            if faults[i] is None:
                self.observations[env].append(observations[i].copy())
                self.elapsed[env].append(int(info["elapsed_step"][i]))
                continue
            assert truncated[i]
            assert info["TimeLimit.truncated"][i]
            assert rewards[i] == 0
            assert not observations[i].any()
            self.faults.append((env, faults[i]))
            self.observations[env].clear()
            self.elapsed[env].clear()
        return info["env_id"]

    def send(self, ids: Any) -> None:
        # An env whose row told of a fault has no rows: its action is ignored.
        self.pool.send(ACTIONS[[max(0, len(self.observations[env]) - 1) for env in ids.tolist()]], ids)

    def play(self, until: Callable[[], bool]) -> None:
        """Ends with everything received."""
        while not until():
            self.send(self.receive())
        while self.pool._in_flight.any() or self.pool._ready:
            self.receive()


def rank_of(pool: RayPool, rank: int) -> NodeInfo:
    [node] = [node for node in pool.nodes if node.rank == rank]
    return node


def local(steps: int) -> Any:
    """Observations [steps, 2 N, 4] of one local pool."""
    env = envpool_sdk.make("CartPole-v1", num_envs=2 * N, seed=7)
    record = [env.reset()[0]]
    for step in range(steps - 1):
        record.append(env.step(np.full(2 * N, ACTIONS[step]))[0])
    env.close()
    return np.stack(record)


def assert_others_never_noticed(player: Player, rank: int) -> None:
    expected = local(max(map(len, player.observations.values())))
    for env in range((1 - rank) * N, (2 - rank) * N):
        found = np.stack(player.observations[env])
        np.testing.assert_array_equal(found, expected[: len(found), env])


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
