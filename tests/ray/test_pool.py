"""RayPool against one local pool with the same seeds: per env the same bits, by steps and by rollouts; and its errors."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray
from gymnasium.vector.utils import concatenate, create_empty_array

import envpool_sdk
from envpool_sdk.ray import RayPool, Rollout

IGNORED = {"players", "spent", "drawn", "thread"}  # nested otherwise, or of the clock
TASKS = ["CartPole-v1", "KitchenSink-v0", "Pursuit-v0", "Pong-v5"]


def make(task: str = "CartPole-v1", envs: int = 3, **arguments: Any) -> RayPool:
    return RayPool(task, num_nodes=2, envs_per_node=envs, **{"strategy": "STRICT_SPREAD", "seed": 7} | arguments)


def needs(task: str) -> None:
    if task not in envpool_sdk.list_all_envs():
        pytest.skip(f"{task} is not installed")


@pytest.fixture
def pool(cluster: Any) -> Iterator[RayPool]:
    with make() as pool:
        yield pool


class Script:
    """The actions of each env at each of its steps, the same whoever plays."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def __call__(self, env_ids: Any, steps: Any) -> Any:
        actions = []
        for env, step in zip(env_ids, steps, strict=True):
            self.space.seed(1000 * int(env) + int(step))
            actions.append(self.space.sample())
        return concatenate(self.space, actions, create_empty_array(self.space, len(actions)))


def rows(batch: Any) -> Iterator[tuple[int, Any]]:
    """(env, its row) of a batch."""
    observations, rewards, terminated, truncated, info = batch
    info = {key: value for key, value in info.items() if key not in IGNORED}
    for i, env in enumerate(info["env_id"].tolist()):
        yield env, pick((observations, rewards, terminated, truncated, info), i)


def pick(tree: Any, i: int) -> Any:
    if isinstance(tree, dict):
        return {key: pick(part, i) for key, part in tree.items()}
    if isinstance(tree, tuple) and not (tree and isinstance(tree[0], str)):
        return tuple(pick(part, i) for part in tree)
    return np.array(tree[i])


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(one, other, strict=True)


def local_rows(task: str, num_envs: int, steps: int, parts: int = 1) -> dict[int, list[Any]]:
    """What each env of one local pool gives that plays the script, or in so many parts of it each the same."""
    env = envpool_sdk.make(task, num_envs=num_envs, seed=7)
    players = env.all_env_ids % (num_envs // parts)
    script = Script(env.action_space)
    found = defaultdict(list)
    observations, info = env.reset()
    zero = np.zeros_like(info["reward"])
    batch = (observations, zero, zero.astype(bool), zero.astype(bool), info)
    for step in range(steps):
        for i, row in rows(batch):
            found[i].append(row)
        batch = env.step(script(players, [step] * num_envs))
    env.close()
    return found


# ---- trajectories -----------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("batch_size", [0, 2])
def test_trajectories_are_those_of_one_local_pool(cluster: Any, task: str, batch_size: int) -> None:
    needs(task)
    steps = 40
    expected = local_rows(task, 6, steps)
    found = defaultdict(list)
    with make(task, batch_size=batch_size) as pool:
        assert len({node.node_id for node in pool.nodes}) == 2
        script = Script(pool.action_space)
        pool.async_reset()
        while any(len(found[env]) < steps for env in range(6)):
            batch = pool.recv()
            for env, row in rows(batch):
                found[env].append(row)
            ids = batch[4]["env_id"]
            pool.send(script(ids, [len(found[env]) - 1 for env in ids.tolist()]), ids)
    for env in range(6):
        for one, other in zip(found[env][:steps], expected[env], strict=True):
            assert_same(one, other)


def test_a_thousand_batches_lose_and_double_nobody(cluster: Any) -> None:
    with make(envs=4, batch_size=2) as pool:
        elapsed = np.full(8, -1)
        in_flight = set(range(8))
        pool.async_reset()
        for _ in range(1000):
            _, _, terminated, truncated, info = pool.recv()
            ids = info["env_id"]
            assert len(set(ids.tolist())) == len(ids) > 0
            assert in_flight.issuperset(ids.tolist())
            assert len(set((ids // 4).tolist())) == 1  # one node's
            # Each env's steps follow each other: none of its rows was left out, none came twice.
            np.testing.assert_array_equal(info["elapsed_step"], elapsed[ids] + 1)
            elapsed[ids] = np.where(terminated | truncated, -1, info["elapsed_step"])
            pool.send(np.zeros(len(ids), np.int64), ids)
        while in_flight:
            in_flight -= set(pool.recv()[4]["env_id"].tolist())
        with pytest.raises(RuntimeError, match="nothing is in flight"):
            pool.recv()
        assert pool.faults == []


def test_batches_are_read_where_ray_has_them(cluster: Any) -> None:
    needs("Pong-v5")
    with make("Pong-v5", envs=4) as pool:
        pool.async_reset()
        observations, rewards, _, _, info = pool.recv()
        arrays = [observations, rewards, info["elapsed_step"]]
        assert not any(array.flags.writeable or array.flags.owndata for array in arrays)
        places = [array.__array_interface__["data"][0] for array in arrays]
        assert max(places) - min(places) < observations.nbytes + 4096  # one buffer
        kept = observations.copy()
        pool.recv()
        for _ in range(3):
            pool.send(np.ones(8, np.int64))
            pool.recv(batch=8)
        np.testing.assert_array_equal(observations, kept)  # never written again


def test_batches_of_several_nodes_are_joined(pool: RayPool) -> None:
    pool.async_reset()
    batch = pool.recv(batch=6)
    assert sorted(batch[4]["env_id"].tolist()) == list(range(6))
    pool.send([0, 1, 0], [5, 0, 3])
    batch = pool.recv(batch=100)  # all there are
    assert sorted(batch[4]["env_id"].tolist()) == [0, 3, 5]
    assert batch[0].shape == (3, 4)


def test_reset(pool: RayPool) -> None:
    local = envpool_sdk.make("CartPole-v1", num_envs=6)
    for arguments in ({"seed": 3}, {"env_id": [5, 0, 4], "seed": [1, 2, 3]}, {"env_id": [], "seed": []}):
        found, info = pool.reset(**arguments)
        expected, expected_info = local.reset(**arguments)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(info["env_id"], expected_info["env_id"])


# ---- rollouts ---------------------------------------------------------------


class Clumsy:
    """A policy that drops the pole within ten steps or so."""

    def __call__(self, observations: Any) -> Any:
        return (observations[:, 2] < 0).astype(np.int64)


def one_by_one(rollout: Rollout) -> dict[int, Any]:
    return {
        env: tuple(
            part[:, i]
            for part in (
                rollout.observations,
                rollout.actions,
                rollout.rewards,
                rollout.terminated,
                rollout.truncated,
                rollout.elapsed_step,
                *rollout.infos.values(),
            )
        )
        for i, env in enumerate(rollout.env_id.tolist())
    }


def local_rollout(env: Any, policy: Any, observations: Any, elapsed: Any, steps: int) -> tuple[Any, ...]:
    record: list[Any] = [[observations], [], [], [], [], [elapsed], []]
    for _ in range(steps):
        action = policy(record[0][-1])
        observations, rewards, terminated, truncated, info = env.step(action)
        values = (observations, action, rewards, terminated, truncated, info["elapsed_step"], info["reward"])
        for part, value in zip(record, values, strict=True):
            part.append(value)
    return tuple(np.stack(part) for part in record)


def test_rollouts_are_those_of_one_local_pool(cluster: Any) -> None:
    env = envpool_sdk.make("CartPole-v1", num_envs=6, seed=7)
    observations, info = env.reset()
    elapsed = info["elapsed_step"]
    with make() as pool:
        for steps in (50, 20):  # the second goes on where the first ended
            expected = local_rollout(env, Clumsy(), observations, elapsed, steps)
            observations, elapsed = expected[0][-1], expected[5][-1]
            rollouts = list(pool.rollout(Clumsy(), steps, infos=["reward"]))
            assert sorted(rollout.rank for rollout in rollouts) == [0, 1]
            found = {env: row for rollout in rollouts for env, row in one_by_one(rollout).items()}
            assert sorted(found) == list(range(6))
            for i, row in found.items():
                for one, other in zip(row, expected, strict=True):
                    np.testing.assert_array_equal(one, other[:, i], strict=True)
        assert expected[3].any()  # there were resets
        # Steps and rollouts of the same envs follow each other.
        pool.send(Clumsy()(observations))
        observations, elapsed = env.step(Clumsy()(observations))[0], None
        batch = pool.recv(batch=6)
        np.testing.assert_array_equal(batch[0][np.argsort(batch[4]["env_id"])], observations)
        [first] = [one for one in pool.rollout(Clumsy(), 1) if one.rank == 0]
        np.testing.assert_array_equal(first.observations[0], observations[:3])
        assert not first.observations.flags.writeable


@pytest.mark.parametrize("task", ["KitchenSink-v0", "Pursuit-v0"])
def test_rollouts_of_any_spaces(cluster: Any, task: str) -> None:
    with make(task, envs=2) as pool:
        script = Script(pool.action_space)
        expected = local_rows(task, 4, 6, parts=2)
        for rollout in pool.rollout(_Scripted(script, 2), 5):
            for i, env in enumerate(rollout.env_id.tolist()):
                for step in range(6):
                    assert_texts_same(expected[env][step][0], rollout.observations, step, i)


class _Scripted:
    """The script as a policy, which doesn't know on which node it is."""

    def __init__(self, script: Script, n: int) -> None:
        self.script, self.n, self.step = script, n, -1

    def __call__(self, observations: Any) -> Any:
        self.step += 1
        return self.script(range(self.n), [self.step] * self.n)


def assert_texts_same(one: Any, record: Any, step: int, i: int) -> None:
    if isinstance(one, dict):
        for key in one:
            assert_texts_same(one[key], record[key], step, i)
    elif isinstance(one, tuple):
        for a, b in zip(one, record, strict=True):
            assert_texts_same(a, b, step, i)
    else:
        np.testing.assert_array_equal(one, np.array(record[step, i]))


def test_a_policy_that_fails(pool: RayPool) -> None:
    pool.reset(seed=1)

    def policy(observations: Any) -> Any:
        raise ZeroDivisionError("of the policy")

    with pytest.raises(ZeroDivisionError, match="of the policy"):
        list(pool.rollout(policy, 3))
    assert len(list(pool.rollout(ray.put(Clumsy()), 3))) == 2
    with pytest.raises(ValueError, match=r"infos=\['lives'\]"):
        list(pool.rollout(Clumsy(), 3, infos=["lives"]))


def test_a_rollout_that_nobody_waits_for(pool: RayPool) -> None:
    pool.reset(seed=1)
    for rollout in pool.rollout(Clumsy(), 5):
        assert rollout.observations.shape == (6, 3, 4)
        break
    assert len(list(pool.rollout(Clumsy(), 5))) == 2
    pool.send(np.zeros(6, np.int64))
    assert len(pool.recv(batch=6)[1]) == 6


# ---- errors -----------------------------------------------------------------


def test_what_make_refuses(cluster: Any) -> None:
    from playing import wait_for  # not above: the nodes import this module for its policies, and don't have that one

    for arguments, message in (
        ({"gravitee": 1.0}, "no option 'gravitee'"),
        ({"num_envs": 4}, "num_envs is no argument of RayPool: envs_per_node"),
        ({"strategy": "SPRED"}, "strategy='SPRED' must be one of 'SPREAD'"),
        ({"autoreset_mode": "SameStep"}, "must be 'NextStep' or 'Disabled'"),
        ({"envs": 0}, "envs_per_node=0"),
        ({"batch_size": 9}, "batch_size=9"),
        ({"seed": [1, 2]}, "seed has 2 entries for 6 envs"),
        ({"env_kwargs": [{}]}, "env_kwargs has 1 entries for 6 envs"),
        ({"max_episode_steps": 0}, "max_episode_steps=0"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**arguments)
    with pytest.raises(ValueError, match=r"no task 'CartPol-v1' is known\. Did you mean 'CartPole-v1'"):
        make("CartPol-v1")
    with make() as pool:  # there is room again
        assert len(pool) == pool.num_envs == 6
    # Nothing that was refused keeps CPUs. Ray takes them back a little after their actors ended.
    wait_for(lambda: ray.available_resources().get("CPU") == ray.cluster_resources()["CPU"])


def test_env_kwargs_are_each_envs(cluster: Any) -> None:
    with make(envs=1, env_kwargs=[{"gravity": 9.8}, {"gravity": 0.0}], seed=[3, 3]) as pool:
        pool.reset()
        for _ in range(3):
            pool.send([1, 1])
            batch = pool.recv(batch=2)
        one, other = batch[0]
        assert not np.array_equal(one, other)


def test_wrong_sends(pool: RayPool) -> None:
    pool.reset(seed=1)
    for action, ids, message in (
        ([0], [6], r"env_id 6, allowed: 0 \.\. 5"),
        ([0], [-1], "env_id -1"),
        ([0, 0], [1, 1], "env_id 1 is given twice"),
        ([0], [1, 2], "an action for each of 2 envs"),
        ([0] * 6, [True] * 6, "must be a list of envs"),
        (0, [1], "an action for each of 1 envs"),
    ):
        with pytest.raises(ValueError, match=message):
            pool.send(action, ids)
    with pytest.raises(RuntimeError, match="nothing is in flight"):
        pool.recv()
    pool.send([0], [1])
    with pytest.raises(ValueError, match="env_id 1 is in flight"):
        pool.send([0], [1])
    for call in (pool.reset, lambda: pool.rollout(Clumsy(), 1)):
        with pytest.raises((RuntimeError, ValueError), match="in flight"):
            call()
    pool.recv()
    pool.send([2, 0], [1, 4])  # the nodes find it
    seen = []
    for _ in range(2):
        try:
            seen += pool.recv()[4]["env_id"].tolist()
        except ValueError:
            seen.append("refused")
    assert sorted(map(str, seen)) == ["4", "refused"]
    pool.send([1], [1])
    assert pool.recv()[4]["elapsed_step"].tolist() == [2]  # the refused one was no step


FAILING = {"fault": "failed", "env_id": 1}  # as the plugin counts, in the pool of its node


def test_an_env_that_fails_costs_an_episode(cluster: Any) -> None:
    """Faults of single envs come through, with global ids."""
    with RayPool("Faulty-v0", num_nodes=2, envs_per_node=2, env_kwargs=[{}, {}, {}, FAILING]) as pool:
        pool.reset()
        found = {}
        for _ in range(8):
            pool.send(np.zeros(4, np.int64))
            info = pool.recv(batch=4)[4]
            for i, text in zip(info["env_id"].tolist(), info.get("fault", [None] * 4), strict=True):
                if text is not None:
                    found[i] = text
        assert list(found) == [3]
        assert found[3].startswith("node 1: ")
        assert "faulty: failed in step" in found[3]
        assert {i for i, _ in pool.faults} == {3}
        [rollout] = [one for one in pool.rollout(lambda observations: np.zeros(2, np.int64), 8) if one.rank == 1]
        assert {i for i, _ in rollout.faults} == {3}


def test_pools_cannot_be_pickled(pool: RayPool) -> None:
    for one in (pool, envpool_sdk.make("CartPole-v1")):
        with pytest.raises(TypeError, match="Pass the task's id and the options"):
            pickle.dumps(one)
        with pytest.raises(TypeError, match="Pass the task's id and the options"):
            ray.put(one)


def test_closed(cluster: Any) -> None:
    pool = make()
    pool.async_reset()
    pool.close()
    pool.close()
    for call in (pool.recv, pool.async_reset, lambda: pool.rollout(Clumsy(), 1)):
        with pytest.raises((envpool_sdk.ClosedError, ValueError)):
            call()
    assert pool.faults == []


def test_threads_follow_the_cpus_that_ray_gave(cluster: Any) -> None:
    with make() as pool:
        assert [node.num_threads for node in pool.nodes] == [1, 1]
    with make(num_threads=2) as pool:
        assert [node.num_threads for node in pool.nodes] == [2, 2]

    @ray.remote(num_cpus=1)
    def threads() -> list[int]:
        import gymnasium

        import envpool_sdk

        one = envpool_sdk.make("CartPole-v1", num_envs=8).config["num_threads"]
        other = gymnasium.make_vec("envpool_sdk:envpool/CartPole-v1", num_envs=8).spec.config.num_threads
        return [one, other]

    assert ray.get(threads.remote()) == [1, 1]
