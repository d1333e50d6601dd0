"""envpool_sdk.make(): batches of envs behind the interface that EnvPool's users know, asynchronous use included."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from envpool_sdk import making, registry
from envpool_sdk.making import Setup
from envpool_sdk.rows import Rows, batch_encoder, cast
from envpool_sdk.spaces import action_space, observation_space
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    from envpool_sdk._native import SpecDict

Array = npt.NDArray[Any]
Step = tuple[Any, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]

ENV_TYPES = ("gymnasium", "gym", "dm")
_INT32 = np.dtype(np.int32)

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


@dataclass
class Spec(EnvSpec):
    """What a task is with these arguments. The attributes may be assigned."""

    config: SimpleNamespace = field(default_factory=SimpleNamespace)
    """The values of all arguments and options, as attributes."""
    observation_space: Any = None
    """The space of one env's observation."""
    action_space: Any = None
    """The space of one env's action."""


class EnvPool(gymnasium.Env[Any, Any]):
    """n envs of a task, stepped in batches of m <= n; `make` makes it.

    Synchronous (m == n): step() gives the rows of the envs that it was given, in their order. Asynchronous (m < n):
    send() some actions, recv() the first m envs that are done, in the order of completion; the info's "env_id" tells
    which. Any thread may call any method.

    Spaces are those of one env; observations and actions are batched: arrays [m, ...], nested as `envpool_sdk.spaces`
    says, with an agent dimension [m, agents, ...] where there are several. Rewards are float32, flags bool. Arrays are
    the caller's to keep and to change. The info holds

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

    def __init__(
        self,
        made: Setup,
        *,
        env_type: str,
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
    ) -> None:
        """See `make`."""
        mode = making.autoreset(made.id, autoreset_mode)
        self.render_mode = making.render_mode(made, render_mode)
        self._camera = making.camera(made.id, render_width, render_height, render_camera_id)
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
            "gym_reset_return_info": True,
        }
        self.spec: Spec = _spec(made, native, self.config, env_type)
        self.observation_space = self.single_observation_space = self.spec.observation_space
        self.action_space = self.single_action_space = self.spec.action_space
        self.metadata = {**making.metadata(made, native), "autoreset_mode": mode}
        self.num_envs = self._pool.num_envs
        self.is_vector_env = True

        self._encode = batch_encoder(native, made.id)
        self._rows = Rows(self._pool)
        self._observations = self._rows.observations
        columns = making.pool_columns(self._pool)
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

    # ---- stepping ----

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes and returns their first rows: (observations, info).

        Args:
            env_id: which envs, int[k] (maybe none); None: all.
            seed: an integer s seeds env i with s + i; a sequence has one seed for each of these envs; None: each goes
                on with its generator, or at its first reset takes the seed that make() was given.
            options: the task's options that may change at a reset.

        Raises:
            ValueError: an env is out of range, given twice or in flight, or a seed or option is wrong.
            RuntimeError: envs are in flight in a synchronous pool: their rows would come first.
        """
        ids = self._select(env_id)
        if self._pool.pending and not self.is_async:
            raise RuntimeError(f"{self._setup.id}: reset(): {self._pool.pending} envs are in flight: recv() them first")
        if len(ids) == 0:
            result = self._pack(self._pool.observe(ids), None, ())
        else:
            result = self._reset_now(ids, seed, options)
        return result[0], result[4]

    def _reset_now(
        self, ids: npt.NDArray[np.int32], seed: int | Sequence[int | None] | None, options: dict[str, Any] | None
    ) -> Step:
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

    def step(self, action: Any, env_id: Any = None) -> Step:  # type: ignore[override]
        """send() and recv(): (observations, rewards, terminated, truncated, info)."""
        if env_id is None and self._all_started:
            return self._pack(*self._pool.step(self._encode(action)))
        if env_id is not None and len(self._select(env_id)) == 0:
            return self._pack(self._pool.observe(self._ids[:0]), None, ())
        self.send(action, env_id)
        return self.recv()

    def send(self, action: Any, env_id: Any = None) -> None:
        """Steps these envs; recv() gives their rows. Envs that were never reset are reset instead.

        Args:
            action: one action for each env, batched; see the class. Copied.
            env_id: which envs, int[k]; None: all, in order.

        Raises:
            ValueError: the actions are not in the action space, or an env is out of range, given twice or in flight.
            RuntimeError: (autoreset disabled) an env's episode has ended.
            Nothing was sent then.
        """
        ids = None if env_id is None else self._select(env_id)
        actions = self._encode(action)
        if not self._all_started and self._unstarted[self._ids if ids is None else ids].all():
            self._send_resets(self._ids if ids is None else ids, None, None)
        else:
            self._pool.send(actions, ids)

    def recv(self, timeout: float | None = None) -> Step:
        """Waits for the next batch: (observations, rewards, terminated, truncated, info); see the class.

        Synchronous: the rows of the oldest send or reset, in its order. Asynchronous: batch_size rows in the order of
        completion, or fewer if no more are in flight.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            RuntimeError: nothing is in flight. TimeoutError: names the envs waited for; nothing is lost.
        """
        return self._pack(*self._pool.recv(-1.0 if timeout is None else max(0.0, timeout)))

    def _select(self, env_id: Any) -> npt.NDArray[np.int32]:
        """The envs as the pool takes them. Raises ValueError; the pool checks for duplicates and envs in flight."""
        if env_id is None:
            return self._ids
        ids = np.atleast_1d(cast(env_id, _INT32, f"{self._setup.id}: env_id"))
        if ids.ndim != 1:
            raise ValueError(f"{self._setup.id}: env_id must be a list of envs, not of shape {ids.shape}")
        if np.asarray(env_id).dtype == np.bool_:
            raise ValueError(f"{self._setup.id}: env_id must be a list of envs, not a mask: np.flatnonzero() makes one")
        wrong = ids[(ids < 0) | (ids >= len(self._ids))]
        if len(wrong):
            raise ValueError(f"{self._setup.id}: env_id {int(wrong[0])} must be within 0 .. {len(self._ids) - 1}")
        return ids

    def _send_resets(
        self, ids: npt.NDArray[np.int32], seed: int | Sequence[int | None] | None, options: dict[str, Any] | None
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

    def _pack(
        self,
        columns: tuple[Array, ...],
        final: tuple[Array, ...] | None,
        faults: tuple[tuple[int, str], ...],
    ) -> Step:
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
        if self._rows.has_infos:
            info.update(self._rows.infos(columns))
        if final is not None:
            self._add_final(info, final)
        if faults:
            messages = dict(faults)
            info["fault"] = np.array([messages.get(i) for i in env_id.tolist()], dtype=object)
        return (
            self._observations(columns),
            columns[self._at_reward],
            columns[self._at_terminated],
            columns[self._at_truncated],
            info,
        )

    def _add_final(self, info: dict[str, Any], final: tuple[Array, ...]) -> None:
        *columns, ended = final
        last = tuple(columns)
        self._rows.clear_infos(last, ended)
        info["final_obs"] = self._rows.final(last, ended)
        info["_final_obs"] = ended.copy()
        info["final_info"] = self._rows.masked_infos(last, ended.copy())
        info["_final_info"] = ended.copy()

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
            camera_id: 0: the default camera; None: the render_camera_id that make() was given.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(f"{self._setup.id}: render() needs render_mode='rgb_array'")
            return None
        ids = self._select(self._render_env_id if env_ids is None else env_ids)
        if len(ids) == 0:
            raise ValueError(f"{self._setup.id}: render() needs at least one env, not env_ids={env_ids!r}")
        width, height, camera = self._camera
        if camera_id is not None:
            width, height, camera = making.camera(self._setup.id, width, height, camera_id)
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
        self._pool.close(timeout)


# ---- making -----------------------------------------------------------------


def make(
    task_id: str,
    env_type: str = "gymnasium",
    *,
    num_envs: int = 1,
    batch_size: int = 0,
    num_threads: int = 0,
    seed: int | Sequence[int] = 42,
    max_episode_steps: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    thread_affinity_offset: int = -1,
    max_faults: int = 1000,
    isolation: str = "auto",
    envs_per_worker: int = 1,
    step_timeout: float | None = None,
    reset_timeout: float | None = None,
    render_mode: str | None = None,
    render_env_id: int = 0,
    render_width: int = 0,
    render_height: int = 0,
    render_camera_id: int = 0,
    env_kwargs: Sequence[Mapping[str, Any]] | None = None,
    copy: bool = True,
    gym_reset_return_info: bool = True,
    max_num_players: int | None = None,
    **options: Any,
) -> EnvPool:
    """Makes a pool of envs, in parallel.

    Args:
        task_id: "Pong-v5" or "envpool/Pong-v5"; see `list_all_envs`.
        env_type: "gymnasium", or "gym" for spaces of the package gym (0.26 or newer).
        num_envs: how many envs.
        batch_size: how many of them a recv() gives; 0: all, which makes the pool synchronous.
        num_threads: 0: as many as CPUs may be used; in a Ray task or actor, as Ray gave it.
        seed: of the first resets: an integer s seeds env i with s + i, a sequence has one for each env.
        max_episode_steps: steps after which an episode is truncated. None: the task's own limit; -1: no limit.
        autoreset_mode: Gymnasium's AutoresetMode, or its value.
        thread_affinity_offset: the first CPU to bind threads to; -1: don't bind.
        max_faults: how many failures of envs to bear before raising EnvError.
        isolation: "thread": threads of this process run the envs; "process": worker processes, so that a crash or
            a hang costs an episode of one env; "auto": processes where the engine needs them.
        envs_per_worker: envs in one worker process, which die together. More than 1 is for cheap envs.
        step_timeout, reset_timeout: seconds after which a worker process that is in one step or reset is killed,
            which is a fault of its envs; None: no limit.
        render_mode: None or "rgb_array".
        render_env_id: the env that render() draws unless told otherwise.
        render_width, render_height: pixels; 0: the env's own.
        render_camera_id: 0: the default camera.
        env_kwargs: options of the task for each env, on top of the common ones.
        copy: False, for synchronous pools: every batch is the same array objects, which the next one overwrites (of a
            step of some envs, views of their first rows); that saves about a third of a small step. recv() before the next
            send() or reset(). Text and what same-step mode tells of ended episodes are new objects also then.
        gym_reset_return_info: only True: reset() returns (observations, info).
        max_num_players: only the number of agents that the task has.
        options: the task's options and the runtime's transforms (frame_skip, stack_num, img_height, gray_scale,
            reward_clip, ...). An option that the task declares itself goes to the task.

    Raises:
        ValueError: unknown task or option (names the nearest), or a value that is not allowed.
        EnvError: an env can't be made.
    """
    made = _setup(task_id, env_type, options, env_kwargs)
    if gym_reset_return_info is not True:
        raise ValueError(f"{task_id}: gym_reset_return_info={gym_reset_return_info!r} must be True")
    env = EnvPool(
        made,
        env_type=env_type,
        num_envs=num_envs,
        batch_size=batch_size,
        num_threads=num_threads,
        seed=seed,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        thread_affinity_offset=thread_affinity_offset,
        max_faults=max_faults,
        workers=Workers(isolation, envs_per_worker, step_timeout, reset_timeout),
        copy=copy,
        render_mode=render_mode,
        render_env_id=render_env_id,
        render_width=render_width,
        render_height=render_height,
        render_camera_id=render_camera_id,
    )
    agents = env.config["max_num_players"]
    if max_num_players not in (None, agents):
        env.close()
        raise ValueError(f"{task_id}: max_num_players={max_num_players!r} must be {agents}, as the task has it")
    return env


def make_gymnasium(task_id: str, **arguments: Any) -> EnvPool:
    """make(task_id, "gymnasium", ...)."""
    return make(task_id, "gymnasium", **arguments)


def make_gym(task_id: str, **arguments: Any) -> EnvPool:
    """make(task_id, "gym", ...)."""
    return make(task_id, "gym", **arguments)


_ARGUMENTS = {
    name: parameter.default
    for name, parameter in inspect.signature(make).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}


def make_spec(task_id: str, env_type: str = "gymnasium", **arguments: Any) -> Spec:
    """What make() would make with these arguments, without making an env.

    Raises:
        ValueError: as make().
    """
    config = {name: arguments.pop(name, default) for name, default in _ARGUMENTS.items()}
    made = _setup(task_id, env_type, arguments, config["env_kwargs"])
    native = made.describe()
    if config["max_episode_steps"] is None:
        config["max_episode_steps"] = native["max_episode_steps"]
    return _spec(made, native, {**made.values, **config}, env_type)


def _setup(
    task_id: str, env_type: str, options: Mapping[str, Any], env_kwargs: Sequence[Mapping[str, Any]] | None
) -> Setup:
    if env_type not in ENV_TYPES:
        raise ValueError(f"{task_id}: env_type={env_type!r} is unknown. {registry.nearest(str(env_type), ENV_TYPES)}")
    if env_type == "dm":
        raise NotImplementedError(f"{task_id}: env_type='dm' is not there yet: use 'gymnasium'")
    if env_type == "gym":
        _gym()  # before any env is made
    return Setup.of(make, task_id, options, env_kwargs)


def _spec(made: Setup, native: SpecDict, config: Mapping[str, Any], env_type: str) -> Spec:
    convert = _gym_space if env_type == "gym" else lambda space: space
    threshold = native["reward_threshold"]
    return Spec(
        id=made.id,
        config=SimpleNamespace(**config),
        observation_space=convert(observation_space(native)),
        action_space=convert(action_space(native)),
        max_episode_steps=config["max_episode_steps"] or None,
        reward_threshold=None if math.isnan(threshold) else threshold,
    )


def _gym() -> Any:
    """The package gym."""
    try:
        import gym
    except ImportError as error:
        raise ImportError("env_type='gym' needs the package gym: install it, or use env_type='gymnasium'") from error
    if tuple(map(int, gym.__version__.split(".")[:2])) < (0, 26):
        raise NotImplementedError(f"env_type='gym' needs gym 0.26 or newer, not {gym.__version__}")
    return gym


def _gym_space(space: spaces.Space[Any]) -> Any:
    """The same space of the package gym."""
    gym = _gym()
    if isinstance(space, spaces.Dict):
        return gym.spaces.Dict({key: _gym_space(part) for key, part in space.items()})
    if isinstance(space, spaces.Tuple):
        return gym.spaces.Tuple([_gym_space(part) for part in space])
    if isinstance(space, spaces.Box):
        return gym.spaces.Box(space.low, space.high, space.shape, space.dtype.type)
    if isinstance(space, spaces.Discrete):
        return gym.spaces.Discrete(int(space.n), start=int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return gym.spaces.MultiBinary(space.n)
    if isinstance(space, spaces.Text):
        return gym.spaces.Text(space.max_length, min_length=space.min_length, charset=space.character_set)
    assert isinstance(space, spaces.MultiDiscrete)  # there are no others; see envpool_sdk.spaces
    if space.start.any():  # which gym's has not
        return gym.spaces.Box(space.start, space.start + space.nvec - 1, space.shape, np.int64)
    return gym.spaces.MultiDiscrete(space.nvec)
