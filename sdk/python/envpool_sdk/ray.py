"""Pools on several machines, by Ray: one actor a node owns one pool (the extra ``ray``).

Ray places, carries, watches and gives up machines; docs/dev/ray.md says what is kept where, and what follows when
something fails.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from envpool_sdk import making
from envpool_sdk._native import ClosedError, EnvError
from envpool_sdk.facade import Step

try:
    import ray
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    raise ModuleNotFoundError("envpool_sdk.ray needs Ray: pip install 'envpool-sdk[ray]'", name="ray") from None
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from envpool_sdk.ray_node import Ids, Node, Opened, Rollout
from envpool_sdk.ray_trees import arrays, chosen, faults_of, joined, row_count, taken

_LOG = logging.getLogger("envpool_sdk")

__all__ = ["NodeInfo", "RayPool", "Rollout"]

STRATEGIES = ("SPREAD", "STRICT_SPREAD", "PACK", "STRICT_PACK")
_OURS = ("num_envs", "copy", "env_type", "render_mode")  # arguments of make() that a node gives itself, or nobody needs


@dataclass(frozen=True)
class NodeInfo:
    """Where a node's envs are."""

    rank: int
    env_id: Ids
    """int32[n], global."""
    up: bool
    """False: it is being started anew; the rest is not known then."""
    node_id: str = ""
    """Ray's id of the machine."""
    host: str = ""
    pid: int = 0
    """Of the actor's process."""
    num_threads: int = 0


class _Member:
    """One node as the user's process sees it: its actor, replaced when it is lost."""

    def __init__(self, rank: int, ids: Ids, actor: Any, opened: Any, deadline: float) -> None:
        self.rank = rank
        self.ids = ids
        self.actor = actor
        self.deadline = deadline
        """Until when its pool should be made, in seconds of time.monotonic()."""
        self._opened = opened
        self._told: Opened | None = None

    def opened(self, timeout: float | None = None) -> Opened:
        """What it told when its pool was made; waits for that. Raises as ray.get()."""
        if self._told is None:
            self._told = ray.get(self._opened, timeout=timeout)
        return self._told

    def is_up(self) -> bool:
        """Whether its pool was made. Doesn't wait."""
        if self._told is None:
            try:
                self.opened(timeout=0)
            except RayError:  # not yet, or it never will be, which the next call finds out
                return False
        return True


@dataclass(frozen=True)
class _Call:
    """A call of an actor whose batch is to come."""

    member: _Member
    ids: Ids
    """The envs that it sent."""
    new: npt.NDArray[np.bool_]
    """Which of them were new."""
    what: tuple[Any, ...]
    """The method, and its arguments after the ids."""


class _LostError(Exception):
    """A node is gone; the message says why."""


class RayPool:
    """Pools of one task on several nodes of a Ray cluster, with the ids of one.

    Node r owns the envs r n, ..., r n + n - 1. All are stepped as by `envpool_sdk.make`'s asynchronous interface: send()
    some actions, recv() what is ready first. Per env that gives what one local pool gives with the same seeds. Or
    rollout() a policy on the nodes, and receive whole trajectories.

    Batches are as `envpool_sdk.EnvPool` says, with global env ids, but read-only: they are Ray's, in shared memory, and
    keep it occupied as long as they live. Copy what is kept.

    A node that is lost (its process or its machine died) costs the episodes of its envs. Each gets one row that is
    truncated, has zeros for observation, reward and infos, and the reason in the info's "fault"; the next action for it is
    ignored, as in automatic resets, and gives the first row of a new episode, with a new seed, wherever Ray has found
    room. The other nodes go on.

    One thread at a time may use it. It can't be pickled: pass the task's id and the options.
    """

    def __init__(
        self,
        task_id: str,
        *,
        num_nodes: int,
        envs_per_node: int = 1,
        cpus_per_node: int = 1,
        batch_size: int = 0,
        seed: int | Sequence[int] = 42,
        strategy: str = "SPREAD",
        start_timeout: float = 120.0,
        max_restarts: int = 10,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        env_kwargs: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        """Makes the pools, on all nodes at once. Ray is started on this machine if it is not yet (ray.init()).

        The engine's package must be installed on each node; for a library of its own set ENVPOOL_PLUGIN_PATH there,
        e.g. by ``ray.init(runtime_env={"env_vars": {"ENVPOOL_PLUGIN_PATH": path}})``.

        Args:
            task_id: "Pong-v5" or "envpool/Pong-v5".
            num_nodes: how many actors, each with a pool.
            envs_per_node: n, the envs of each.
            cpus_per_node: CPUs that Ray reserves for each; so many threads run its envs, unless num_threads is given.
            batch_size: how many rows a node gives at a time; 0: those of the envs that were sent. As in
                `envpool_sdk.make`, below n the first that are done.
            seed: of the first resets: an integer s seeds env i with s + i, a sequence has one for each env.
            strategy: Ray's for placement groups. "SPREAD": on as many machines as there is room; "STRICT_SPREAD": each on
                a machine of its own; "PACK", "STRICT_PACK": the contrary.
            start_timeout: seconds in which a node must find room and make its envs, at the start and when it is replaced.
            max_restarts: how many losses of nodes to bear before raising EnvError.
            autoreset_mode: "NextStep" or "Disabled".
            env_kwargs: options of the task for each of all envs, on top of the common ones.
            options: other arguments of `envpool_sdk.make`, for each node's pool: num_threads, isolation, max_faults, ..., the
                task's options, transforms.

        Raises:
            ValueError: as `envpool_sdk.make`, which the nodes call.
            TimeoutError: the cluster has no room, or takes too long. EnvError: an env can't be made, or a node died of it.
        """
        self._task_id = task_id
        self._num_nodes = making.integer(task_id, "num_nodes", num_nodes, 1)
        self._n = making.integer(task_id, "envs_per_node", envs_per_node, 1, making.MOST_ENVS)
        self._cpus = making.integer(task_id, "cpus_per_node", cpus_per_node, 1)
        self._max_restarts = making.integer(task_id, "max_restarts", max_restarts, 0)
        self._start_timeout = float(start_timeout)
        if strategy not in STRATEGIES:
            raise ValueError(f"{task_id}: strategy={strategy!r} must be one of {', '.join(map(repr, STRATEGIES))}")
        self._strategy = strategy
        mode = making.autoreset(task_id, autoreset_mode)
        if mode is AutoresetMode.SAME_STEP:
            raise ValueError(
                f"{task_id}: autoreset_mode={autoreset_mode!r} must be 'NextStep' or 'Disabled' here: the row that tells of"
                " a lost node can't show the next episode"
            )
        for name in _OURS:
            if name in options:
                hint = ": envs_per_node says how many envs a node has" if name == "num_envs" else ""
                raise ValueError(f"{task_id}: {name} is no argument of RayPool{hint}")
        self.num_envs = self._num_nodes * self._n
        self._ids = np.arange(self.num_envs, dtype=np.int32)
        self._seeds = making.seeds_of(task_id, seed, self._ids)
        if None in self._seeds:
            raise ValueError(f"{task_id}: seed={seed!r} must be given")
        if env_kwargs is not None and len(env_kwargs) != self.num_envs:
            raise ValueError(f"{task_id}: env_kwargs has {len(env_kwargs)} entries for {self.num_envs} envs")
        self._env_kwargs = env_kwargs
        self._arguments = {
            **options,
            "num_envs": self._n,
            "batch_size": making.integer(task_id, "batch_size", batch_size, 0, self._n),
            "autoreset_mode": mode,
        }

        self._new = np.ones(self.num_envs, np.bool_)  # the next send resets it
        self._in_flight = np.zeros(self.num_envs, np.bool_)
        self._unread = np.zeros(self.num_envs, np.bool_)  # its row is in _ready
        self._lost = np.full(self.num_envs, None, object)  # the message that the next send is answered with
        self._calls: dict[Any, _Call] = {}  # by the reference to their result, the oldest first
        self._ready: deque[Step] = deque()
        self._faults: deque[tuple[int, str]] = deque(maxlen=1000)
        self._restarts = 0
        self._failure: EnvError | None = None

        if not ray.is_initialized():
            ray.init()
        self._group: PlacementGroup = placement_group([{"CPU": self._cpus}] * self._num_nodes, strategy=strategy)
        self._members: list[_Member] = []
        self._close = weakref.finalize(self, _release, self._group, self._members)
        try:
            self._members += [self._start(rank, self._seeds) for rank in range(self._num_nodes)]
            opened = [self._first_opened(member) for member in self._members]
        except BaseException:
            self._close()
            raise
        self.observation_space = self.single_observation_space = opened[0].observation_space
        self.action_space = self.single_action_space = opened[0].action_space
        self.metadata = {"render_modes": [], "autoreset_mode": opened[0].autoreset_mode}
        self._no_rows = opened[0].no_rows
        self._blank = opened[0].blank

    # ---- stepping ----

    def send(self, action: Any, env_id: Any = None) -> None:
        """Steps these envs; recv() gives their rows. Envs that were never reset are reset instead.

        Args:
            action: one action for each env, batched as `envpool_sdk.EnvPool` takes it. Copied.
            env_id: which envs, global, int[k]; None: all, in order.

        Raises:
            ValueError: an env is out of range, given twice or in flight, or it is not one action for each. Nothing was sent
                then. What else may be wrong with actions, the nodes find: recv() raises it, and the envs of that node
                are as they were.
        """
        ids = self._select(env_id)
        actions = arrays(self.action_space, action, len(ids), f"{self._task_id}: action")
        self._check()
        lost = self._lost[ids] != None  # noqa: E711 - by element
        if lost.any():
            self._tell(ids[lost])
        for member, rows in self._by_member(ids, ~lost):
            new = self._new[ids[rows]]
            if new.any():
                self._call(member, ids[rows[new]], "reset", None, None)
            if not new.all():
                self._call(member, ids[rows[~new]], "step", taken(actions, rows[~new]))

    def async_reset(self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        """Begins new episodes in these envs (None: all); recv() gives their first rows. Arguments and errors: reset()."""
        ids = self._select(env_id)
        seeds = making.seeds_of(self._task_id, seed, ids)
        self._check()
        self._lost[ids] = None
        for member, rows in self._by_member(ids, np.ones(len(ids), np.bool_)):
            self._call(member, ids[rows], "reset", [seeds[row] for row in rows], options)

    def reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes and returns their first rows, in the order of env_id: (observations, info).

        Args:
            env_id: which envs, global, int[k]; None: all.
            seed: an integer s seeds env i with s + i; a sequence has one seed for each of these envs; None: each goes on
                with its generator, or at its first reset takes the seed that it was made with.
            options: the task's options that may change at a reset.

        Raises:
            ValueError: an env is out of range, given twice or in flight, or a seed or option is wrong.
            RuntimeError: other envs are in flight, or rows not received: they would come between.
        """
        ids = self._select(env_id)
        if self._in_flight.any() or self._ready:
            raise RuntimeError(f"{self._task_id}: reset(): envs are in flight or not received: recv() them first")
        self.async_reset(ids, seed=seed, options=options)
        batch = self.recv(batch=len(ids)) if len(ids) else self._no_rows
        if not np.array_equal(batch[4]["env_id"], ids):
            places = np.empty(self.num_envs, np.intp)
            places[batch[4]["env_id"]] = np.arange(len(ids))
            batch = chosen(self._no_rows, batch, places[ids])
        return batch[0], batch[4]

    def recv(self, batch: int = 1, timeout: float | None = None) -> Step:
        """Waits for rows: (observations, rewards, terminated, truncated, info), of whichever nodes are ready first.

        One node's batch is read where Ray has it, without a copy; several are joined, which copies.

        Args:
            batch: takes batches of nodes until there are at least so many rows, or no env is in flight any more. 1: one
                node's batch.
            timeout: seconds; None: no limit.

        Raises:
            RuntimeError: nothing is in flight. TimeoutError: names the envs waited for; nothing is lost.
            EnvError: an env fails for good, or nodes were lost more often than max_restarts, or only envs of nodes for
                which there is no room are waited for. Others: what the nodes' pools say.
        """
        batch = making.integer(self._task_id, "batch", batch, 1)
        end = None if timeout is None else time.monotonic() + max(0.0, timeout)
        while sum(map(row_count, self._ready)) < batch and (self._in_flight.any() or not self._ready):
            self._receive(end)
        parts: list[Step] = []
        while self._ready and sum(map(row_count, parts)) < batch:
            parts.append(self._ready.popleft())
            self._unread[parts[-1][4]["env_id"]] = False
        return joined(self._no_rows, parts)

    def rollout(self, policy: Callable[[Any], Any], steps: int, *, infos: Sequence[str] = ()) -> Iterator[Rollout]:
        """Plays all envs on their nodes, from where they are, and ships whole rollouts.

        All nodes begin at once; the iterator gives each node's when it is ready, those that are first first. A node that is
        lost meanwhile gives none (see `faults`), and one that is just being replaced is left out.

        Args:
            policy: what gives a batch of actions for a batch of observations [n, ...]. It is pickled for each rollout (by
                cloudpickle, so a module that it stands in must be there too); a reference that ray.put() gave is taken
                as well. What it remembers is forgotten after the rollout. It must not keep the observations, which are
                overwritten.
            steps: of each env.
            infos: names of entries of the info to ship as well, e.g. ["reward", "lives"].

        Raises:
            ValueError: a pool with batch_size below envs_per_node, or no such info; RuntimeError: envs are in flight or
                rows not received. What the policy raises, the iterator raises.
        """
        steps = making.integer(self._task_id, "steps", steps, 1)
        if self._arguments["batch_size"] not in (0, self._n):
            raise ValueError(f"{self._task_id}: rollout() needs batch_size=0, where all envs of a node step together")
        self._check()
        if self._in_flight.any() or self._ready:
            raise RuntimeError(f"{self._task_id}: rollout(): envs are in flight or not received: recv() them first")
        members = [member for member in self._members if member.is_up()] or self._members
        if not isinstance(policy, ray.ObjectRef):
            policy = ray.put(policy)
        calls = {member.actor.rollout.remote(policy, steps, list(infos)): _Call(member, *_NOBODY) for member in members}
        for member in members:
            self._new[member.ids] = False
            self._lost[member.ids] = None
        return self._rollouts(calls)

    def _rollouts(self, calls: dict[Any, _Call]) -> Iterator[Rollout]:
        while calls:
            self._check()
            ref = self._wait(calls, None)
            try:
                rollout: Rollout = self._result(ref, calls[ref].member)
            except _LostError as error:
                self._replace(calls.pop(ref).member, str(error))
                continue
            del calls[ref]
            self._faults += rollout.faults
            yield rollout

    # ---- the state of envs ----

    def _select(self, env_id: Any) -> Ids:
        """The envs, checked: int32[k]."""
        if env_id is None:
            ids = self._ids
        else:
            ids = making.env_ids_of(self._task_id, env_id, self.num_envs)
            values, counts = np.unique(ids, return_counts=True)
            if len(values) < len(ids):
                raise ValueError(f"{self._task_id}: env_id {values[counts > 1][0]} is given twice")
        flying = ids[self._in_flight[ids] | self._unread[ids]]
        if len(flying):
            raise ValueError(f"{self._task_id}: env_id {flying[0]} is in flight: recv() it first")
        return ids

    def _check(self) -> None:
        """Raises what makes every further call useless."""
        if not self._close.alive:
            raise ClosedError(f"{self._task_id}: the pool is closed")
        if self._failure is not None:
            raise self._failure

    def _by_member(self, ids: Ids, mask: npt.NDArray[np.bool_]) -> Iterator[tuple[_Member, npt.NDArray[np.intp]]]:
        """For each node the places in ids of its envs, of those that the mask has."""
        ranks = ids // self._n
        for member in self._members:
            rows = np.flatnonzero((ranks == member.rank) & mask)
            if len(rows):
                yield member, rows

    def _call(self, member: _Member, ids: Ids, method: str, *arguments: Any) -> None:
        """Notes the envs as in flight, and calls."""
        ref = getattr(member.actor, method).remote(ids - member.ids[0], *arguments)
        self._calls[ref] = _Call(member, ids, self._new[ids], (method, *arguments))
        self._in_flight[ids] = True
        self._new[ids] = False

    def _receive(self, end: float | None) -> None:
        """Waits for the result of one call, until then (by time.monotonic()) at most. Nothing is noted before it is here."""
        self._check()
        asked = {call.member for call in self._calls.values()}
        for member in self._members:
            # Its pool gave fewer rows than it was sent, and no call is out that would give more.
            if member not in asked and self._in_flight[member.ids].any():
                self._calls[member.actor.recv.remote()] = _Call(member, *_NOBODY)
        if not self._calls:
            raise RuntimeError(f"{self._task_id}: recv(): nothing is in flight: send() or async_reset() first")
        ref = self._wait(self._calls, end)
        call = self._calls[ref]
        try:
            batch: Step = self._result(ref, call.member)
        except _LostError as error:
            self._replace(call.member, str(error))
            return
        except Exception as error:  # the pool's own: of an action, or for good
            del self._calls[ref]
            self._in_flight[call.ids if len(call.ids) else call.member.ids] = False
            self._new[call.ids] = call.new
            if isinstance(error, EnvError):
                self._failure = error
            raise
        del self._calls[ref]
        ids = batch[4]["env_id"]
        self._in_flight[ids] = False
        self._put(batch)
        self._faults += faults_of(batch[4])

    # ---- nodes ----

    def _start(self, rank: int, seeds: Sequence[int | None]) -> _Member:
        """A new actor in the bundle of this rank. Doesn't wait for it."""
        mine = slice(rank * self._n, (rank + 1) * self._n)
        each = {} if self._env_kwargs is None else {"env_kwargs": self._env_kwargs[mine]}
        place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank)
        actor = _Actor.options(num_cpus=self._cpus, scheduling_strategy=place).remote()
        opened = actor.open.remote(self._task_id, rank, seeds[mine], self._arguments | each)
        return _Member(rank, self._ids[mine], actor, opened, time.monotonic() + self._start_timeout)

    def _first_opened(self, member: _Member) -> Opened:
        """Waits until a node's first pool is made."""
        try:
            return member.opened(timeout=max(0.0, member.deadline - time.monotonic()))
        except GetTimeoutError:
            raise TimeoutError(self._no_room(member)) from None
        except RayTaskError as error:
            raise error.cause from None
        except RayError as error:
            raise EnvError(
                f"{self._task_id}: node {member.rank} died while its envs were made: {_reason(error)}"
            ) from None

    def _no_room(self, member: _Member) -> str:
        return (
            f"{self._task_id}: node {member.rank} was not there within start_timeout={self._start_timeout:g} s: it needs"
            f" {self._cpus} CPUs (strategy {self._strategy}), and of the cluster's {ray.cluster_resources().get('CPU', 0):g}"
            f" {ray.available_resources().get('CPU', 0):g} are free"
        )

    def _wait(self, calls: Mapping[Any, _Call], end: float | None) -> Any:
        """A call whose result is there, the oldest of them. Raises TimeoutError or, if there is no room for any of the
        nodes that are waited for, EnvError; both may be tried again."""
        while True:
            members = {call.member for call in calls.values()}
            room = None if any(member.is_up() for member in members) else max(m.deadline for m in members)
            ends = [t for t in (end, room) if t is not None]
            left = max(0.0, min(ends) - time.monotonic()) if ends else None
            ready, _ = ray.wait(list(calls), num_returns=1, timeout=left)
            if ready:
                return ready[0]
            if end is not None and time.monotonic() >= end:
                flying = np.flatnonzero(self._in_flight)
                names = ", ".join(map(str, flying[:8])) + (", ..." if len(flying) > 8 else "")
                raise TimeoutError(f"{self._task_id}: no batch yet, and nothing is lost. In flight: envs {names}")
            if room is not None and not any(member.is_up() for member in members):
                raise EnvError(self._no_room(next(iter(members))))

    def _result(self, ref: Any, member: _Member) -> Any:
        """What a call that is ready gave. Raises _LostError, or what its pool raised."""
        try:
            member.opened()
        except RayTaskError as error:
            raise _LostError(f"its envs could not be made: {error.cause}") from None
        except RayError as error:
            raise _LostError(_reason(error)) from None
        try:
            return ray.get(ref)
        except RayTaskError as error:
            error.cause.add_note(f"on node {member.rank} of {self!r}")
            raise error.cause from None
        except RayError as error:
            raise _LostError(_reason(error)) from None

    def _replace(self, lost: _Member, reason: str) -> None:
        """Notes that a node is gone, tells so of its envs, and starts it anew."""
        if self._members[lost.rank] is not lost:
            return  # another of its calls told already
        self._restarts += 1
        info = _info(lost)
        where = f" ({info.host}, process {info.pid})" if info.up else ""
        message = (
            f"{self._task_id}: node {lost.rank}{where} was lost with envs {lost.ids[0]} .. {lost.ids[-1]}: {reason}"
        )
        _LOG.warning("%s", message)
        ray.kill(lost.actor)  # it may live and only be out of reach
        calls = [call for call in self._calls.values() if call.member is lost]
        self._calls = {ref: call for ref, call in self._calls.items() if call.member is not lost}
        if info.up:
            self._lose(lost.ids, message)
        if self._restarts > self._max_restarts:
            self._failure = EnvError(f"{message}. That is more than max_restarts={self._max_restarts}")
            raise self._failure
        seeds = [
            int(np.random.SeedSequence([seed or 0, self._restarts]).generate_state(1, np.uint64)[0])
            for seed in self._seeds
        ]
        member = self._members[lost.rank] = self._start(lost.rank, seeds)
        if not info.up:  # no env had a row from it, so none lost anything: what it was to do, this one does
            self._new[member.ids[~self._in_flight[member.ids]]] = True
            for call in calls:
                self._new[call.ids] = call.new
                self._call(member, call.ids, *call.what)

    def _lose(self, ids: Ids, message: str) -> None:
        """Notes that what these envs were doing is lost, and tells so for those in flight."""
        flying = self._in_flight[ids]
        started = ids[flying | ~self._new[ids]]
        self._in_flight[ids] = False
        self._lost[started] = message
        self._faults += [(i, message) for i in started.tolist()]
        if flying.any():
            self._tell(ids[flying])

    def _tell(self, ids: Ids) -> None:
        """Makes the rows that say that these envs are lost. They are new then."""
        batch = chosen(self._no_rows, self._blank, np.zeros(len(ids), np.intp))
        batch[3][:] = True
        info = batch[4]
        info["env_id"][:] = ids
        info["players"]["env_id"].T[...] = ids
        info["TimeLimit.truncated"][:] = True
        info["fault"] = self._lost[ids]
        self._put(batch)
        self._lost[ids] = None
        self._new[ids] = True

    def _put(self, batch: Step) -> None:
        """For recv() to give."""
        self._ready.append(batch)
        self._unread[batch[4]["env_id"]] = True

    # ---- the rest ----

    @property
    def nodes(self) -> list[NodeInfo]:
        """Where the envs are."""
        return [_info(member) for member in self._members]

    @property
    def faults(self) -> list[tuple[int, str]]:
        """(env_id, message) of the latest faults, at most 1000, oldest first: of envs, and of nodes for each of their
        envs; after close() too."""
        return list(self._faults)

    @property
    def all_env_ids(self) -> Ids:
        """int32[num_envs]: 0, 1, ..."""
        return self._ids.copy()

    def __len__(self) -> int:
        """The number of envs."""
        return self.num_envs

    def __repr__(self) -> str:
        return f"RayPool({self._task_id}, num_nodes={self._num_nodes}, envs_per_node={self._n})"

    __reduce_ex__ = making.refuse_pickling

    def close(self) -> None:
        """Ends the envs and gives the CPUs back, dropping what is in flight. Twice is safe."""
        self._close()

    def __enter__(self) -> RayPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_Actor = ray.remote(Node)  # Ray restarts none: it could not say that the episodes are gone
_NOBODY = np.empty(0, np.int32), np.empty(0, np.bool_), ()


def _release(group: PlacementGroup, members: Sequence[_Member]) -> None:
    """Ends the actors, their worker processes too, and gives their CPUs back."""
    if not ray.is_initialized():
        return  # they ended with the connection
    closing = [member.actor.close.remote(1.0) for member in members]
    if closing:
        ray.wait(closing, num_returns=len(closing), timeout=2.0)
    for member in members:
        ray.kill(member.actor)
    remove_placement_group(group)


def _info(member: _Member) -> NodeInfo:
    if not member.is_up():
        return NodeInfo(member.rank, member.ids, up=False)
    told = member.opened()
    return NodeInfo(member.rank, member.ids, True, told.node_id, told.host, told.pid, told.num_threads)


def _reason(error: RayError) -> str:
    """Ray's message in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
