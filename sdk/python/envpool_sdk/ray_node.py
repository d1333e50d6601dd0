"""One node of an `envpool_sdk.ray.RayPool`: the actor that owns a pool, and what it ships."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import ray

import envpool_sdk
from envpool_sdk.facade import EnvPool, Step
from envpool_sdk.ray_trees import Record, faults_of, stacked

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Opened:
    """What a node tells when its envs are made."""

    node_id: str
    host: str
    pid: int
    num_threads: int
    observation_space: Any
    action_space: Any
    autoreset_mode: Any
    no_rows: Step
    """A batch of no rows: how batches are nested."""
    blank: Step
    """One row of zeros."""


@dataclass(frozen=True)
class Rollout:
    """What one node's envs did under a policy, in arrays that are read-only views of Ray's object store.

    In step t the policy saw observations[t], actions[t] were taken, and rewards[t], terminated[t], truncated[t] and
    observations[t + 1] came of it. Automatic resets are steps as in `envpool_sdk.make`: where elapsed_step[t + 1] is 0,
    the action was ignored, the reward is 0 and a new episode begins.
    """

    rank: int
    """Which node."""
    env_id: Ids
    """int32[n], global."""
    observations: Any
    """[steps + 1, n, ...], nested as observations are; the last one is where the next rollout goes on."""
    actions: Any
    """[steps, n, ...], nested as the policy gave them."""
    rewards: npt.NDArray[Any]
    """float32[steps, n]; with several agents all these have an agent dimension more, as in `envpool_sdk.EnvPool`."""
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    elapsed_step: npt.NDArray[np.int32]
    """int32[steps + 1, n]: steps since the reset. 0 in the first row: the episode begins here, and is no continuation of
    what this env did before."""
    infos: dict[str, Any]
    """[steps, n, ...]: the entries of the info that were asked for, after each step."""
    faults: list[tuple[int, str]]
    """(env_id, message) of the envs that failed; their episodes are truncated."""


class Node:
    """Makes the pool of a rank and drives it. It is called with its own ids, 0 .. n - 1, and ships global ones."""

    def open(self, task_id: str, rank: int, seeds: Sequence[int], arguments: Mapping[str, Any]) -> Opened:
        """Makes the pool, by `envpool_sdk.make`, whose errors it raises. num_threads=0: as many as Ray gave CPUs."""
        num_envs, batch_size = arguments["num_envs"], arguments["batch_size"]
        synchronous = batch_size in (0, num_envs)
        # What is shipped is copied at once, so a synchronous pool may use the same arrays again.
        self._pool = pool = envpool_sdk.make(task_id, seed=seeds, copy=not synchronous, **arguments)
        self._rank = rank
        self._first = np.int32(rank * num_envs)
        return Opened(
            node_id=ray.get_runtime_context().get_node_id(),
            host=socket.gethostname(),
            pid=os.getpid(),
            num_threads=pool.config["num_threads"],
            observation_space=pool.observation_space,
            action_space=pool.action_space,
            autoreset_mode=pool.metadata["autoreset_mode"],
            no_rows=_zeros(pool, 0),
            blank=_zeros(pool, 1),
        )

    def step(self, ids: Ids, actions: Any) -> Step:
        """Steps these envs and gives the next batch."""
        self._pool.send(actions, ids)
        return self.recv()

    def reset(self, ids: Ids, seeds: Sequence[int | None] | None, options: dict[str, Any] | None) -> Step:
        """Resets these envs and gives the next batch."""
        return self._ship(self._pool._reset_now(ids, seeds, options))

    def recv(self) -> Step:
        """The next batch of envs in flight."""
        return self._ship(self._pool.recv())

    def rollout(self, policy: Callable[[Any], Any], steps: int, infos: Sequence[str]) -> Rollout:
        """Plays all envs of a synchronous pool, none of which is in flight, from where they are."""
        pool = self._pool
        ids = pool.all_env_ids
        if pool._unstarted.any():
            pool._reset_now(ids[pool._unstarted], None, None)
        row = pool._pack(pool._pool.observe(ids), None, ())
        no_rows = _zeros(pool, 0)
        missing = [name for name in infos if name not in row[4]]
        if missing:
            raise ValueError(f"infos={missing!r} of rollout(): the info has {', '.join(map(repr, row[4]))}")

        observations = Record(no_rows[0], steps + 1, len(ids))
        elapsed = Record(no_rows[4]["elapsed_step"], steps + 1, len(ids))
        results = Record(no_rows[1:4], steps, len(ids))
        shown = Record({name: no_rows[4][name] for name in infos}, steps, len(ids))
        actions: list[Any] = []
        faults: list[tuple[int, str]] = []
        observations.write(0, row[0])
        elapsed.write(0, row[4]["elapsed_step"])
        for t in range(steps):
            action = policy(row[0])
            row = pool.step(action)
            actions.append(action)
            observations.write(t + 1, row[0])
            elapsed.write(t + 1, row[4]["elapsed_step"])
            results.write(t, row[1:4])
            shown.write(t, {name: row[4][name] for name in infos})
            if "fault" in row[4]:
                faults += faults_of(self._ship(row)[4])
        rewards, terminated, truncated = results.tree
        return Rollout(
            rank=self._rank,
            env_id=ids + self._first,
            observations=observations.tree,
            actions=stacked(actions),
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            elapsed_step=elapsed.tree,
            infos=shown.tree,
            faults=faults,
        )

    def close(self, timeout: float) -> None:
        """Ends the envs, within about so many seconds."""
        self._pool.close(timeout)

    def _ship(self, batch: Step) -> Step:
        """The batch with global ids, and messages that say on which node they arose."""
        info = batch[4]
        info["env_id"] = info["env_id"] + self._first
        info["players"] = {"env_id": info["players"]["env_id"] + self._first}
        if "fault" in info:
            texts = [None if text is None else f"node {self._rank}: {text}" for text in info["fault"]]
            info["fault"] = np.array(texts, object)
        return batch


def _zeros(pool: EnvPool, rows: int) -> Step:
    """A batch of so many rows of zeros, as the pool would give it."""
    columns = pool._pool.observe(pool.all_env_ids[:0])
    batch: Step = pool._pack(tuple(np.zeros((rows, *column.shape[1:]), column.dtype) for column in columns), None, ())
    return batch
