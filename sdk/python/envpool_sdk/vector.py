"""Many envs for gymnasium.make_vec(), exactly as Gymnasium's own vector envs behave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from envpool_sdk import making
from envpool_sdk.making import Setup
from envpool_sdk.rows import Rows, batch_encoder
from envpool_sdk.spaces import action_space, observation_space
from envpool_sdk.workers import Workers

Array = npt.NDArray[Any]
Step = tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """n envs of a task, stepped together; gymnasium.make_vec("envpool/<id>", num_envs=n) makes it.

    Step by step it gives what SyncVectorEnv over n single envs gives. Observations and actions are as
    `envpool_sdk.spaces` says, batched as Gymnasium does; rewards float64[n], flags bool[n]. Arrays are the caller's
    to keep and to change. The info holds, each with its mask, the plugin's info fields and, below "global", its global
    ones; with reward_clip also "reward", float32[n], before clipping; "final_obs" and "final_info" in same-step mode;
    and in a step in which envs failed "fault", an object array of messages: the episodes of those envs are truncated,
    the others go on. The masks of one info are one array.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task_id: str,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        batch_size: int = 0,
        num_threads: int = 0,
        thread_affinity_offset: int = -1,
        max_faults: int = 1000,
        isolation: str = "auto",
        envs_per_worker: int = 1,
        step_timeout: float | None = None,
        reset_timeout: float | None = None,
        render_mode: str | None = None,
        render_width: int = 0,
        render_height: int = 0,
        render_camera_id: int = 0,
        env_kwargs: Sequence[Mapping[str, Any]] | None = None,
        copy: bool = True,
        **options: Any,
    ) -> None:
        """Makes the envs, in parallel.

        Args:
            num_envs: how many.
            task_id: "Pong-v5" or "envpool/Pong-v5".
            max_episode_steps: steps after which an episode is truncated. None: the task's own limit; -1: no limit.
            autoreset_mode: Gymnasium's AutoresetMode, or its value.
            batch_size: only 0 or num_envs; smaller batches are for envpool_sdk.make().
            num_threads: 0: as many as CPUs may be used; in a Ray task or actor, as Ray gave it.
            thread_affinity_offset: the first CPU to bind threads to; -1: don't bind.
            max_faults: how many failures of envs to bear before raising EnvError.
            isolation: "thread": threads of this process run the envs; "process": worker processes, so that a crash or
                a hang costs an episode of one env; "auto": processes where the engine needs them.
            envs_per_worker: envs in one worker process, which die together. More than 1 is for cheap envs.
            step_timeout, reset_timeout: seconds after which a worker process that is in one step or reset is killed,
                which is a fault of its envs; None: no limit.
            render_mode: None or "rgb_array".
            render_width, render_height: pixels; 0: the env's own.
            render_camera_id: 0: the default camera.
            env_kwargs: options of the task for each env, on top of the common ones.
            copy: as SyncVectorEnv's, but for all arrays. False: each reset() and step() gives the same array objects
                (observations, rewards, flags, infos), which the next one overwrites; that saves about a third of a small
                step. Masks, text, discrete observations (int64 by Gymnasium's rule) and what same-step mode tells of
                ended episodes are new objects also then.
            options: the task's options and the runtime's transforms.

        Raises:
            ValueError: unknown task or option (names the nearest), or a value that is not allowed.
            EnvError: an env can't be made.
        """
        self.closed = True  # until there is something to close: Gymnasium closes whatever is dropped
        made = Setup.of(type(self), task_id, options, env_kwargs)
        mode = making.autoreset(task_id, autoreset_mode)
        self.render_mode = making.render_mode(made, render_mode)
        self._camera = making.camera(task_id, render_width, render_height, render_camera_id)
        if batch_size not in (0, num_envs):
            raise ValueError(
                f"{task_id}: batch_size={batch_size} must be num_envs={num_envs} (or 0) here, for Gymnasium's vector"
                f" envs always step all. Use envpool_sdk.make({task_id!r}, num_envs={num_envs},"
                f" batch_size={batch_size}) for asynchronous batches"
            )
        self._pool = made.open(
            self,
            num_envs=num_envs,
            batch_size=num_envs,
            num_threads=num_threads,
            thread_affinity_offset=thread_affinity_offset,
            autoreset_mode=mode,
            max_episode_steps=max_episode_steps,
            both_flags=True,
            reward_dtype="float64",
            max_faults=max_faults,
            workers=Workers(isolation, envs_per_worker, step_timeout, reset_timeout),
            pool_columns=making.gymnasium_columns(made),
            copy=copy,
        )
        self.closed = False
        self._setup = made
        spec = self._pool.spec
        making.single_agent(task_id, spec)
        self.num_envs = self._pool.num_envs
        self.metadata = {**making.metadata(made, spec), "autoreset_mode": mode}
        self.single_observation_space = observation_space(spec)
        self.single_action_space = action_space(spec)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._gymnasium_spec: EnvSpec | None = None
        self._config = SimpleNamespace(
            **made.values,
            num_envs=self.num_envs,
            num_threads=self._pool.num_threads,
            max_episode_steps=max_episode_steps if max_episode_steps is not None else spec["max_episode_steps"],
        )

        columns = making.pool_columns(self._pool)
        self._reward = columns["reward"]
        self._raw_reward = columns["raw_reward"] if making.shows_raw_reward(made, spec) else None
        self._terminated = columns["terminated"]
        self._truncated = columns["truncated"]
        self._rows = Rows(self._pool)
        self._observations = self._rows.observations
        self._infos = self._rows.masked_infos
        self._has_infos = self._rows.has_infos
        self._encode = batch_encoder(spec, task_id)
        self._all = np.ones(self.num_envs, np.bool_)
        self._ids = np.arange(self.num_envs, dtype=np.int32)

    @property
    def spec(self) -> EnvSpec | None:
        """Gymnasium's spec of the task, with ``config``: the values of all options. make_vec() sets it."""
        return self._gymnasium_spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            spec.config = self._config  # type: ignore[attr-defined]
        self._gymnasium_spec = spec

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes.

        Args:
            seed: an integer s seeds env i with s + i; a sequence has a seed for each env; None, also as an entry: the
                env's generator goes on, or begins from entropy at the first reset.
            options: the task's options that may change at a reset, and "reset_mask", bool[n]: the envs to reset. The
                others stay as they are.

        Returns:
            The observations of all envs, and the infos of those that were reset.
        """
        mask, chosen = self._split(options)
        seeds = making.seeds_of(self._setup.id, seed, self._ids)
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
        ids = self._ids[mask]
        making.drain(self._pool)
        columns, faults = making.reset_now(self._pool, ids, [seeds[i] for i in ids], chosen)
        if columns is None or len(ids) < self.num_envs:
            columns = self._pool.observe(self._ids)
            self._rows.clear_infos(columns, mask)
        infos = self._infos(columns, mask)
        if self._raw_reward is not None:
            rewards = columns[self._raw_reward]
            rewards[~mask] = 0
            self._add(infos, "reward", rewards, mask)
        if faults:
            self._add_faults(infos, faults)
        return self._observations(columns), infos

    def _split(self, options: dict[str, Any] | None) -> tuple[npt.NDArray[np.bool_], Mapping[str, Any]]:
        """The mask and the task's options of a reset."""
        if not isinstance(options, Mapping) or "reset_mask" not in options:
            return self._all.copy(), self._setup.reset_options(options)
        mask = options["reset_mask"]
        where = f"{self._setup.id}: options['reset_mask']"
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"{where} must be a NumPy array of bool, not {mask!r}")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"{where} must have the shape ({self.num_envs},), not {mask.shape}")
        if not mask.any():
            raise ValueError(f"{where} must have at least one True")
        others = {name: value for name, value in options.items() if name != "reset_mask"}
        return mask.copy(), self._setup.reset_options(others)

    def step(self, actions: Any) -> Step:
        """Steps all envs; see Gymnasium.

        Raises:
            ValueError: the actions are not in the action space.
            RuntimeError: an env was never reset, or (autoreset disabled) its episode has ended.
            Nothing was stepped then.
        """
        columns, final, faults = self._pool.step(self._encode(actions))
        infos = self._infos(columns, self._all.copy()) if self._has_infos else {}
        if self._raw_reward is not None:
            self._add(infos, "reward", columns[self._raw_reward], self._all.copy())
        if final is not None:
            self._add_final(infos, final)
        if faults:
            self._add_faults(infos, faults)
        return (
            self._observations(columns),
            columns[self._reward],
            columns[self._terminated],
            columns[self._truncated],
            infos,
        )

    def _add_final(self, infos: dict[str, Any], final: tuple[Array, ...]) -> None:
        """Adds what was true at the end of the episodes that ended, for which final also holds their mask."""
        *columns, ended = final
        last = tuple(columns)
        self._rows.clear_infos(last, ended)
        final_infos = self._infos(last, ended.copy())
        if self._raw_reward is not None:
            rewards = infos["reward"]
            self._add(final_infos, "reward", np.where(ended, rewards, rewards.dtype.type(0)), ended.copy())
            rewards[ended] = 0  # the observation beside it is of the new episode
        infos["final_obs"] = self._rows.final(last, ended)
        infos["_final_obs"] = ended.copy()
        infos["final_info"] = final_infos
        infos["_final_info"] = ended.copy()

    @staticmethod
    def _add(infos: dict[str, Any], key: str, values: Array, mask: npt.NDArray[np.bool_]) -> None:
        infos[key] = values
        infos[f"_{key}"] = mask

    def _add_faults(self, infos: dict[str, Any], faults: tuple[tuple[int, str], ...]) -> None:
        messages = np.full(self.num_envs, None, dtype=object)
        for env_id, message in faults:
            messages[env_id] = message
        self._add(infos, "fault", messages, messages != None)  # noqa: E711 - by element

    @property
    def faults(self) -> list[tuple[int, str]]:
        """(env_id, message) of the latest faults, at most 1000, oldest first; after close() too."""
        return self._pool.faults

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """The present states, uint8[height, width, 3] each; None with a warning if no render_mode was given."""
        if self.render_mode is None:
            gymnasium.logger.warn(f"{self._setup.id}: render() needs render_mode='rgb_array'")
            return None
        return tuple(self._pool.render(i, *self._camera) for i in range(self.num_envs))

    def save_state(self, env_id: int) -> bytes:
        """An env's whole state, frame stack and generators included, for load_state().

        Raises:
            ValueError: the task can't save its state, or the env is out of range. RuntimeError: it was never reset.
        """
        return self._pool.save_state(making.integer(self._setup.id, "env_id", env_id, 0, self.num_envs - 1))

    def load_state(self, env_id: int, state: bytes) -> None:
        """Puts an env into a state that an env with the same settings saved: its next step goes on there.

        Raises:
            ValueError: these bytes are no such state (then nothing changes), or as in save_state().
        """
        self._pool.load_state(making.integer(self._setup.id, "env_id", env_id, 0, self.num_envs - 1), state)

    __reduce_ex__ = making.refuse_pickling

    def close_extras(self, timeout: float = 2.0) -> None:
        """Ends the envs.

        Args:
            timeout: seconds to wait for envs that hang.
        """
        self._pool.close(timeout)
