"""A machine that is gone: its envs go on elsewhere, or the others without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ray
from playing import N, Player, assert_others_never_noticed, make, rank_of, wait_for

import envpool_sdk
from envpool_sdk.ray import RayPool


def test_a_machine_that_is_gone_is_replaced_by_another(start_cluster: Any) -> None:
    with start_cluster(3) as cluster, make() as pool:
        head = ray.get_runtime_context().get_node_id()
        [rank, *_] = [node.rank for node in pool.nodes if node.node_id != head]
        gone = rank_of(pool, rank)
        player = Player(pool)
        pool.async_reset()
        for _ in range(20):
            player.send(player.receive())
        remove(cluster, gone.node_id)
        mine = range(rank * N, (rank + 1) * N)
        player.play(until=lambda: len(player.faults) == N and all(len(player.observations[env]) > 20 for env in mine))
        assert sorted(env for env, _ in player.faults) == list(mine)
        assert_others_never_noticed(player, rank)
        nodes = {node.node_id for node in pool.nodes}
        assert len(nodes) == 2
        assert gone.node_id not in nodes


def test_no_room_for_a_replacement(start_cluster: Any) -> None:
    with start_cluster(2) as cluster:
        with pytest.raises(TimeoutError, match=r"node \d was not there within start_timeout=3 s: it needs 1 CPUs"):
            RayPool("CartPole-v1", num_nodes=3, strategy="STRICT_SPREAD", start_timeout=3)
        with make(start_timeout=20) as pool:
            head = ray.get_runtime_context().get_node_id()
            [gone] = [node for node in pool.nodes if node.node_id != head]
            player = Player(pool)
            pool.async_reset()
            for _ in range(20):
                player.send(player.receive())
            remove(cluster, gone.node_id)
            others = [env for env in range(2 * N) if env not in gone.env_id]
            known = {env: len(player.observations[env]) for env in others}
            while len(player.faults) < N or any(len(player.observations[env]) < known[env] + 50 for env in others):
                player.send(player.receive())  # the others go on

            def wait_for_the_lost() -> None:
                while True:
                    ids = player.receive()
                    player.send(ids[np.isin(ids, gone.env_id)])

            with pytest.raises(envpool_sdk.EnvError, match=f"node {gone.rank} was not there within start_timeout=20 s"):
                wait_for_the_lost()
            assert not rank_of(pool, gone.rank).up
            cluster.add_node(num_cpus=1)
            wait_for(lambda: rank_of(pool, gone.rank).up)
            assert set(player.receive().tolist()) <= set(gone.env_id.tolist())


def remove(cluster: Any, node_id: str) -> None:
    [node] = [node for node in cluster.list_all_nodes() if node.node_id == node_id]
    cluster.remove_node(node, allow_graceful=False)
