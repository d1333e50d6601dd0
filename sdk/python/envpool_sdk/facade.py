"""The pools that envpool_sdk.make() gives: batches of envs behind the interface that EnvPool's users know, asynchronous
use included."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from envpool_sdk import making
from envpool_sdk.making import Setup
from envpool_sdk.rows import Rows, batch_encoder, cast
from envpool_sdk.specs import Spec
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    import torch

    from envpool_sdk.torch import TorchPool
    from envpool_sdk.xla import XlaFunctions

Array = npt.NDArray[Any]
Columns = tuple[Array, ...]
Faults = tuple[tuple[int, str], ...]
Step = tuple[Any, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]
"""A batch of a GymnasiumEnvPool."""

_INT32 = np.dtype(np.int32)
_IDS = ("env_id", "players", "players.env_id")
"""What an action given as a dictionary may hold beside the action."""

_COLUMNS = (
    "env_id",
    "player_env_id",
    "elapsed_step",
    "reward",
    "raw_reward",
    "terminated",
    "terminated_int32",
    "truncated",
    "time_limit",
    "alive",
    "episode_over",
)
"""Those of the pool's own columns that a batch here tells of."""


class EnvPool(ABC):
    """n envs of a task, stepped in batches of m <= n; `make` makes it. A subclass says what a batch looks like.

    Synchronous (m == n): step() gives the rows of the envs that it was given, in their order. Asynchronous (m < n):
    send() some actions, recv() the first m envs that are done, in the order of completion; "env_id" tells which. Any
    thread may call any method.

    Spaces are those of one env; observations and actions are batched: arrays [m, ...], nested as `envpool_sdk.spaces`
    says, with an agent dimension [m, agents, ...] where there are several. Rewards are float32, flags bool. Arrays are
    the caller's to keep and to change.
    """

    autoreset_modes: ClassVar[tuple[AutoresetMode, ...]] = tuple(AutoresetMode)
    """Those that results of this class can express."""
    closed = True
    """Whether there are no envs: close() was called, or they could not be made."""

    def __init__(
        self,
        made: Setup,
        *,
        num_envs: int,
        batch_size: int,
        num_threads: int,
        seed: int | Sequence[int],
        max_episode_steps: int | None,
        autoreset_mode: AutoresetMode | str,
        thread_affinity_offset: int,
        max_faults: int,
        workers: Workers,
        copy: bool,
        render_mode: str | None,
        render_env_id: int,
        render_width: int,
        render_height: int,
        render_camera_id: int,
        gym_reset_return_info: bool,
        zero_discount_on_life_loss: bool,
    ) -> None:
        """See `make`."""
        mode = making.autoreset(made.id, autoreset_mode)
        if mode not in self.autoreset_modes:
            allowed = ", ".join(repr(one.value) for one in self.autoreset_modes)
            raise ValueError(f"{made.id}: autoreset_mode={mode.value!r} must be one of {allowed} with this env_type")
        self.render_mode = making.render_mode(made, render_mode)
        self._camera = _camera(made.id, render_width, render_height, render_camera_id)
        num_envs = making.integer(made.id, "num_envs", num_envs, 1, making.MOST_ENVS)
        self._render_env_id = making.integer(made.id, "render_env_id", render_env_id, 0, num_envs - 1)
        ids = np.arange(num_envs, dtype=np.int32)
        self._first_seeds = making.seeds_of(made.id, seed, ids)
        self._pool = made.open(
            self,
            num_envs=num_envs,
            batch_size=batch_size,
            num_threads=num_threads,
            thread_affinity_offset=thread_affinity_offset,
            autoreset_mode=mode,
            max_episode_steps=max_episode_steps,
            both_flags=False,
            reward_dtype="float32",
            max_faults=max_faults,
            workers=workers,
            pool_columns=_COLUMNS,
            copy=copy,
        )
        self.closed = False
        self._setup = made
        self._ids = ids
        self._unstarted = np.ones(len(ids), np.bool_)
        self._all_started = False

        native = self._pool.spec
        self.config: dict[str, Any] = {
            **made.values,
            "task_id": made.id,
            "num_envs": self._pool.num_envs,
            "batch_size": self._pool.batch_size,
            "num_threads": self._pool.num_threads,
            "max_num_players": native["max_agents"],
            "thread_affinity_offset": thread_affinity_offset,
            "seed": seed,
            "max_episode_steps": native["max_episode_steps"] if max_episode_steps is None else max_episode_steps,
            "copy": copy,
            "gym_reset_return_info": gym_reset_return_info,
            "zero_discount_on_life_loss": zero_discount_on_life_loss,
        }
        self.spec: Any = Spec.of(made, native, self.config, self.convert)
        self.observation_space = self.single_observation_space = self.spec.observation_space
        self.action_space = self.single_action_space = self.spec.action_space
        self.metadata = {**making.metadata(made, native), "autoreset_mode": mode}
        self.num_envs = self._pool.num_envs
        self.is_vector_env = True

        self._named_actions = len(native["action"]) > 1 or native["action"][0]["name"] != ""
        self._encode = batch_encoder(native, made.id)
        self._rows = Rows(self._pool)
        self._columns = columns = making.pool_columns(self._pool)
        self._at_env_id = columns["env_id"]
        self._at_elapsed = columns["elapsed_step"]
        self._at_reward = columns["reward"]
        self._at_raw_reward = columns["raw_reward"]
        self._at_terminated = columns["terminated"]
        self._at_truncated = columns["truncated"]
        self._at_player_env_id = columns["player_env_id"]
        self._at_terminated_int32 = columns["terminated_int32"]
        self._at_time_limit = columns["time_limit"]
        self._agent_columns = [(name, columns[name]) for name in ("alive", "episode_over") if name in columns]
        self._prepare()

    # ---- what a subclass says ----

    def _prepare(self) -> None:  # noqa: B027 - a class may need nothing
        """Makes ready for _pack(), when everything else is."""

    @abstractmethod
    def _pack(self, columns: Columns, final: Columns | None, faults: Faults, rows: Rows | None = None) -> Any:
        """A batch as step() and recv() give it, by operators alone: columns may be JAX's arrays.

        Args:
            columns, final, faults: as Pool.recv() returns them.
            rows: what reads the columns; None: the pool's own, for NumPy's arrays.
        """

    @abstractmethod
    def _first(self, result: Any, return_info: bool) -> Any:
        """What reset() gives of a batch that _pack() made.

        Args:
            return_info: False asks for less, where there is less.
        """

    @staticmethod
    def convert(space: spaces.Space[Any]) -> Any:
        """A space of Gymnasium as this class gives it."""
        return space

    # ---- stepping ----

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Begins new episodes and returns their first rows.

        Args:
            env_id: which envs, int[k] (maybe none); None: all.
            seed: an integer s seeds env i with s + i; a sequence has one seed for each of these envs; None: each goes
                on with its generator, or at its first reset takes the seed that make() was given.
            options: the task's options that may change at a reset; and "reset_mask", bool[num_envs], in place of env_id.

        Raises:
            ValueError: an env is out of range, given twice or in flight, or a seed or option is wrong.
            RuntimeError: envs are in flight in a synchronous pool: their rows would come first.
        """
        if isinstance(options, Mapping) and "reset_mask" in options:
            env_id, options = self._masked(env_id, options)
        ids = self._select(env_id)
        if self._pool.pending and not self.is_async:
            raise RuntimeError(f"{self._setup.id}: reset(): {self._pool.pending} envs are in flight: recv() them first")
        if len(ids) == 0:
            result = self._pack(self._pool.observe(ids), None, ())
        else:
            result = self._reset_now(ids, seed, options)
        return self._first(result, True)

    def _masked(self, env_id: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The envs that the option "reset_mask" names, and the other options."""
        others = dict(options)
        mask = np.asarray(others.pop("reset_mask"))
        if env_id is not None:
            raise ValueError(f"{self._setup.id}: reset() takes env_id or options['reset_mask'], not both")
        if mask.dtype != np.bool_ or mask.shape != self._ids.shape:
            raise ValueError(
                f"{self._setup.id}: options['reset_mask'] of reset() must be bool[{len(self._ids)}], not"
                f" {mask.dtype}{list(mask.shape)}"
            )
        return np.flatnonzero(mask), others

    def _reset_now(
        self, ids: npt.NDArray[np.int32], seed: int | Sequence[int | None] | None, options: Mapping[str, Any] | None
    ) -> Any:
        if self.is_async:
            self._send_resets(ids, seed, options)
            return self._pack(*self._pool.recv())
        seeds = self._seeds(ids, seed)
        columns, faults = making.reset_now(self._pool, ids, seeds, self._setup.reset_options(options))
        self._note_started(ids)
        if columns is None:
            columns = self._pool.observe(ids)
        return self._pack(columns, None, faults)

    def async_reset(self) -> None:
        """Begins new episodes in all envs; recv() gives their first rows."""
        self._send_resets(self._ids, None, None)

    def step(self, action: Any, env_id: Any = None) -> Any:
        """send() and recv()."""
        if action.__class__ is dict:
            action, env_id = self._without_ids(action, env_id)
        if env_id is None and self._all_started:
            return self._pack(*self._pool.step(self._encode(action)))
        if env_id is not None and len(self._chosen(env_id)) == 0:
            return self._pack(self._pool.observe(self._ids[:0]), None, ())
        self.send(action, env_id)
        return self.recv()

    def send(self, action: Any, env_id: Any = None) -> None:
        """Steps these envs; recv() gives their rows. Where none of them was ever reset, they are reset instead.

        Args:
            action: one action for each env, batched; see the class. Copied. Where all of these envs only begin anew,
                which ignores actions, there may be one for each env of the pool. A dictionary may hold "env_id" and
                "players.env_id" too, and the action of a task with only one as "action".
            env_id: which envs, int[k]; None: all, in order.

        Raises:
            ValueError: the actions are not in the action space, or an env is out of range, given twice or in flight.
            RuntimeError: some of these envs were never reset and others were, or (autoreset disabled) an env's episode
                has ended.
            Nothing was sent then.
        """
        if action.__class__ is dict:
            action, env_id = self._without_ids(action, env_id)
        ids = None if env_id is None else self._chosen(env_id)
        actions = self._encode(action)
        if ids is not None and actions[0].shape[:1] != ids.shape:
            actions = self._as_many(actions, self._select(ids))
        if not self._all_started and self._unstarted[self._ids if ids is None else ids].all():
            self._pool.check_actions(actions, ids)
            self._send_resets(self._ids if ids is None else ids, None, None)
        else:
            self._pool.send(actions, ids)

    def _without_ids(self, action: dict[str, Any], env_id: Any) -> tuple[Any, Any]:
        """The action and the envs that a dictionary names, as EnvPool takes it; the argument env_id goes before."""
        rest = {name: part for name, part in action.items() if name not in _IDS}
        if env_id is None:
            env_id = action.get("env_id")
        players = action.get("players.env_id", action.get("players"))
        if players is not None:
            ids = self._select(env_id)
            where = f"{self._setup.id}: players.env_id"
            own = cast(players.get("env_id") if isinstance(players, Mapping) else players, _INT32, where).ravel()
            if not np.array_equal(own, np.repeat(ids, own.size // max(1, len(ids)))):
                raise ValueError(f"{where} must be env_id, once a player, not {own.tolist()}")
        if not self._named_actions and rest.keys() == {"action"}:
            return rest["action"], env_id
        return rest, env_id

    def _as_many(self, actions: Sequence[Array], ids: npt.NDArray[np.int32]) -> Sequence[Array]:
        """As many actions as envs, also where there is one for each env of the pool and nobody reads them."""
        given = {len(one) if one.ndim else -1 for one in actions}
        if len(ids) >= len(self._ids) or given != {len(self._ids)} or not self._begin_anew(ids):
            return actions
        return [one[: len(ids)] for one in actions]

    def _begin_anew(self, ids: npt.NDArray[np.int32]) -> bool:
        """Whether the next step of all these envs is an automatic reset."""
        if self.metadata["autoreset_mode"] is not AutoresetMode.NEXT_STEP or self._unstarted[ids].any():
            return False
        rows = self._pool.observe(ids)
        over = rows[self._at_terminated] | rows[self._at_truncated]
        return bool(over.all())

    def recv(self, reset: bool = False, return_info: bool = True, *, timeout: float | None = None) -> Any:
        """Waits for the next batch; see the class.

        Synchronous: the rows of the oldest send or reset, in its order. Asynchronous: batch_size rows in the order of
        completion, or fewer if no more are in flight.

        Args:
            reset: gives what reset() gives.
            return_info: as make()'s gym_reset_return_info, for this call.
            timeout: seconds; None: no limit.

        Raises:
            RuntimeError: nothing is in flight. TimeoutError: names the envs waited for; nothing is lost.
        """
        result = self._pack(*self._pool.recv(-1.0 if timeout is None else max(0.0, timeout)))
        return self._first(result, return_info) if reset else result

    def _select(self, env_id: Any) -> npt.NDArray[np.int32]:
        """The envs as the pool takes them. Raises ValueError; the pool checks for duplicates and envs in flight."""
        if env_id is None:
            return self._ids
        return making.env_ids_of(self._setup.id, env_id, len(self._ids))

    def _chosen(self, env_id: Any) -> npt.NDArray[np.int32]:
        """The same for a step. Envs as recv() gave them go to the pool, which checks them, as they are."""
        as_received = env_id.__class__ is np.ndarray and env_id.dtype is _INT32 and env_id.ndim == 1
        return env_id if as_received and self._all_started else self._select(env_id)

    def _send_resets(
        self, ids: npt.NDArray[np.int32], seed: int | Sequence[int | None] | None, options: Mapping[str, Any] | None
    ) -> None:
        chosen = self._setup.reset_options(options)
        for part, seeds in making.resets(ids, self._seeds(ids, seed)):
            self._pool.reset(part, seeds, chosen)
        self._note_started(ids)

    def _seeds(self, ids: npt.NDArray[np.int32], seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        """Of a reset of these envs: what was given to it, or to make() for their first."""
        seeds = making.seeds_of(self._setup.id, seed, ids)
        if self._all_started:
            return seeds
        first = self._unstarted[ids]
        return [
            self._first_seeds[i] if new and one is None else one
            for i, new, one in zip(ids.tolist(), first.tolist(), seeds, strict=True)
        ]

    def _note_started(self, ids: npt.NDArray[np.int32]) -> None:
        if not self._all_started:
            self._unstarted[ids] = False
            self._all_started = not self._unstarted.any()

    # ---- other libraries' arrays ----

    def xla(self) -> XlaFunctions:
        """This pool for compiled JAX programs: (handle, recv, send, step), to be used under jit, scan, fori_loop.

        recv(handle) -> (handle, batch), send(handle, action, env_id=None) -> handle and step(handle, action, env_id=None)
        -> (handle, batch) do what the methods of these names do; a batch is what recv() returns, with batch_size rows (a
        step of some envs of a synchronous pool: a row for each), without "fault" in its info. Texts, observed or sent, are
        uint8[n, most bytes], UTF-8 with zeros behind. Every call takes the handle that the last one gave: that is what
        keeps them in order. Reset the envs before.

        While a program is traced, wrong arguments raise ValueError; what fails as it runs is JAX's JaxRuntimeError with
        the text of the pool's error, and the pool goes on.

        Raises:
            ImportError: there is no JAX: pip install 'envpool-sdk[jax]'.
            ValueError: the pool can't be in a program: same-step autoreset, copy=False, zero_discount_on_life_loss=True.
            ClosedError: the pool is closed.
        """
        for name, value in {"copy": False, "zero_discount_on_life_loss": True}.items():
            if self.config[name] == value:
                raise ValueError(f"{self._setup.id}: xla() needs a pool made with {name}={not value}")
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            raise ValueError(f"{self._setup.id}: xla() needs a pool with another autoreset_mode than 'SameStep'")
        try:
            from envpool_sdk import xla
        except ImportError as error:
            raise ImportError(
                f"{self._setup.id}: xla() needs JAX, 0.6 or newer: pip install 'envpool-sdk[jax]'"
            ) from error
        rows = Rows(self._pool, plain=True)
        return xla.functions(self._pool, self._setup.id, lambda columns: self._pack(columns, None, (), rows))

    def torch(self, device: str | torch.device = "cpu") -> TorchPool:
        """This pool with PyTorch's tensors for arrays; see `envpool_sdk.torch.TorchPool`. Both may be used in turn.

        Args:
            device: where observations, rewards and the like shall be: "cpu", without a copy, or "cuda", ...

        Raises:
            ImportError: there is no PyTorch.
        """
        try:
            from envpool_sdk.torch import TorchPool
        except ImportError as error:
            raise ImportError(f"{self._setup.id}: torch() needs PyTorch: pip install torch") from error
        return TorchPool(self, device)

    # ---- the rest ----

    @property
    def all_env_ids(self) -> npt.NDArray[np.int32]:
        """int32[num_envs]: 0, 1, ..."""
        return self._ids.copy()

    @property
    def is_async(self) -> bool:
        """Whether batches are smaller than the pool."""
        return self._pool.batch_size < self._pool.num_envs

    @property
    def faults(self) -> list[tuple[int, str]]:
        """(env_id, message) of the latest faults, at most 1000, oldest first; after close() too."""
        return self._pool.faults

    def __len__(self) -> int:
        """The number of envs."""
        return self._pool.num_envs

    def __str__(self) -> str:
        return f"EnvPool({self._setup.id}, num_envs={self._pool.num_envs}, batch_size={self._pool.batch_size})"

    __repr__ = __str__
    __reduce_ex__ = making.refuse_pickling

    def seed(self, seed: int | Sequence[int] | None = None) -> None:
        """Does nothing but warn, as EnvPool's."""
        warnings.warn(
            f"{self._setup.id}: seed() does nothing: give seed= to envpool_sdk.make() or to reset()", stacklevel=2
        )

    def render(self, env_ids: Any = None, camera_id: int | None = None) -> npt.NDArray[np.uint8] | None:
        """The present states as uint8[k, height, width, 3]; None with a warning if make() had no render_mode.

        Args:
            env_ids: which envs, int[k]; None: the render_env_id that make() was given.
            camera_id: -1: the default camera; None: the render_camera_id that make() was given.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(f"{self._setup.id}: render() needs render_mode='rgb_array'")
            return None
        ids = self._select(self._render_env_id if env_ids is None else env_ids)
        if len(ids) == 0:
            raise ValueError(f"{self._setup.id}: render() needs at least one env, not env_ids={env_ids!r}")
        width, height, camera = self._camera
        if camera_id is not None:
            width, height, camera = _camera(self._setup.id, width, height, camera_id)
        return np.stack([self._pool.render(i, width, height, camera) for i in ids.tolist()])

    def save_state(self, env_id: int) -> bytes:
        """An env's whole state, frame stack and generators included, for load_state().

        Raises:
            ValueError: the task can't save its state, or the env is out of range or in flight.
            RuntimeError: the env was never reset.
        """
        return self._pool.save_state(making.integer(self._setup.id, "env_id", env_id, 0, len(self._ids) - 1))

    def load_state(self, env_id: int, state: bytes) -> None:
        """Puts an env into a state that an env of a pool with the same settings saved: its next step goes on there.

        Raises:
            ValueError: these bytes are no such state (then nothing changes), or as in save_state().
        """
        env = making.integer(self._setup.id, "env_id", env_id, 0, len(self._ids) - 1)
        self._pool.load_state(env, state)
        self._unstarted[env] = False
        self._all_started = not self._unstarted.any()

    def close(self, timeout: float = 2.0) -> None:
        """Ends the envs, dropping what is in flight. Twice is safe; attributes stay readable.

        Args:
            timeout: seconds to wait for envs that hang.
        """
        self.closed = True
        self._pool.close(timeout)


def _camera(task_id: str, width: int, height: int, camera_id: int) -> tuple[int, int, int]:
    """What Pool.render() takes, checked: EnvPool's cameras begin at 0, and -1 is the default; the pool's begin at 1."""
    number = making.integer(task_id, "render_camera_id", camera_id, -1, making.MOST_CAMERAS - 1) + 1
    return making.camera(task_id, width, height, number)


class GymnasiumEnvPool(EnvPool, gymnasium.vector.VectorEnv[Any, Any, Any], gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """A pool whose results have Gymnasium's forms; see EnvPool.

    step() and recv() give (observations, rewards, terminated, truncated, info), reset() gives (observations, info).
    The info holds

    ==================  ==============================================================================
    env_id              int32[m]
    players.env_id      int32[m], or [m, agents]: which env a player is in
    elapsed_step        int32[m], steps since the reset
    reward              float32, before reward_clip
    terminated          int32, as the flag
    TimeLimit.truncated bool, as the flag
    fault               only when an env failed in this batch: messages in an object array[m], None for the others.
                        The episode of such an env is truncated, the others go on
    final_obs, ...      in same-step mode, when an episode ended: as in Gymnasium's vector envs
    alive, episode_over with several agents: bool[m, agents], bool[m]
    ==================  ==============================================================================

    and the plugin's info fields, which replace those of the same name; its global ones stand below "global".
    """

    def _pack(self, columns: Columns, final: Columns | None, faults: Faults, rows: Rows | None = None) -> Any:
        rows = rows or self._rows
        env_id = columns[self._at_env_id]
        info = {
            "env_id": env_id,
            "players": {"env_id": columns[self._at_player_env_id]},
            "elapsed_step": columns[self._at_elapsed],
            "reward": columns[self._at_raw_reward],
            "terminated": columns[self._at_terminated_int32],
            "TimeLimit.truncated": columns[self._at_time_limit],
        }
        for name, at in self._agent_columns:
            info[name] = columns[at]
        if rows.has_infos:
            info.update(rows.infos(columns))
        if final is not None:
            self._add_final(info, final)
        if faults:
            messages = dict(faults)
            info["fault"] = np.array([messages.get(i) for i in env_id.tolist()], dtype=object)
        return (
            rows.observations(columns),
            columns[self._at_reward],
            columns[self._at_terminated],
            columns[self._at_truncated],
            info,
        )

    def _first(self, result: Any, return_info: bool) -> Any:
        return result[0], result[4]

    def _add_final(self, info: dict[str, Any], final: Columns) -> None:
        *columns, ended = final
        last = tuple(columns)
        self._rows.clear_infos(last, ended)
        info["final_obs"] = self._rows.final(last, ended)
        info["_final_obs"] = ended.copy()
        info["final_info"] = self._rows.masked_infos(last, ended.copy())
        info["_final_info"] = ended.copy()
