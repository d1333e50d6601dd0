"""One env over a pool of one: for gymnasium.make(), and what others of one env have as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from envpool_sdk import making
from envpool_sdk.making import Setup
from envpool_sdk.rows import Rows, row_encoder
from envpool_sdk.spaces import action_space, observation_space
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    from envpool_sdk._native import Pool

Step = tuple[Any, float, bool, bool, dict[str, Any]]
ONLY = np.zeros(1, np.int32)
"""The ids of a pool of one."""


class OneEnv:
    """What every face of one env has. A subclass makes the pool."""

    _pool: Pool

    @property
    def faults(self) -> list[tuple[int, str]]:
        """(0, message) of the latest faults, at most 1000, oldest first; after close() too."""
        return self._pool.faults

    def save_state(self) -> bytes:
        """The env's whole state, frame stack and generators included, for load_state().

        Raises:
            ValueError: the task can't save its state. RuntimeError: the env was never reset.
        """
        return self._pool.save_state(0)

    def load_state(self, state: bytes) -> None:
        """Takes a state that an env with the same settings saved: the next step goes on there.

        Raises:
            ValueError: these bytes are no such state; then nothing changes.
        """
        self._pool.load_state(0, state)

    def close(self, timeout: float = 2.0) -> None:
        """Ends the env. Twice is safe.

        Args:
            timeout: seconds to wait for an env that hangs.
        """
        self._pool.close(timeout)

    __reduce_ex__ = making.refuse_pickling


class Env(OneEnv, gymnasium.Env[Any, Any]):
    """One env of a task. gymnasium.make("envpool/<id>") makes it and adds the time limit, so that there is none here.

    Observations and actions are as `envpool_sdk.spaces` says. The info holds the plugin's info fields and, below
    "global", its global ones; with reward_clip also "reward", the float32 reward before clipping; and "fault", a
    message, when the env failed in this step: its episode is truncated, and the next reset makes it good.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - what may be; an instance has its own

    def __init__(
        self,
        task_id: str,
        *,
        render_mode: str | None = None,
        render_width: int = 0,
        render_height: int = 0,
        render_camera_id: int = 0,
        isolation: str = "auto",
        step_timeout: float | None = None,
        reset_timeout: float | None = None,
        **options: Any,
    ) -> None:
        """Makes the env.

        Args:
            task_id: "Pong-v5" or "envpool/Pong-v5".
            render_mode: None or "rgb_array".
            render_width, render_height: pixels; 0: the env's own.
            render_camera_id: 0: the default camera.
            isolation, step_timeout, reset_timeout: as VectorEnv has them.
            options: the task's options and the runtime's transforms.

        Raises:
            ValueError: unknown task or option (names the nearest), or a value that is not allowed.
            EnvError: the env can't be made.
        """
        made = Setup.of(type(self), task_id, options)
        self.render_mode = making.render_mode(made, render_mode)
        self._camera = making.camera(task_id, render_width, render_height, render_camera_id)
        self._pool = made.open(
            self,
            num_envs=1,
            batch_size=1,
            num_threads=1,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=-1,
            both_flags=True,
            reward_dtype="float64",
            workers=Workers(isolation, 1, step_timeout, reset_timeout),
            pool_columns=making.gymnasium_columns(made),
        )
        self._setup = made
        spec = self._pool.spec
        making.single_agent(task_id, spec)
        self.metadata = making.metadata(made, spec)
        self.observation_space = observation_space(spec)
        self.action_space = action_space(spec)

        columns = making.pool_columns(self._pool)
        self._reward = columns["reward"]
        self._raw_reward = columns["raw_reward"] if making.shows_raw_reward(made, spec) else None
        self._terminated = columns["terminated"]
        self._truncated = columns["truncated"]
        self._encode = row_encoder(spec, task_id)
        self._rows = Rows(self._pool)
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode.

        Args:
            seed: seeds the env's generator (with its lowest 64 bits) and np_random. None: the generator goes on; at
                the first reset it is seeded from np_random.
            options: the task's options that may change at a reset.
        """
        chosen = self._setup.reset_options(options)
        seed = None if seed is None else making.integer(self._setup.id, "seed", seed, least=0)
        [engine_seed] = making.seeds_of(self._setup.id, seed, ONLY)
        super().reset(seed=seed)
        if engine_seed is None and not self._seeded:
            engine_seed = int(self.np_random.integers(2**64, dtype=np.uint64))
        making.drain(self._pool)
        self._pool.reset(None, None if engine_seed is None else np.array([engine_seed], np.uint64), chosen)
        self._seeded = True
        columns, _, faults = self._pool.recv()
        return self._rows.observation(columns, 0), self._info(columns, faults)

    def step(self, action: Any) -> Step:
        """Advances by one action; see Gymnasium. Raises ValueError for an action that is not in the action space."""
        columns, _, faults = self._pool.step(self._encode(action))
        return (
            self._rows.observation(columns, 0),
            float(columns[self._reward][0]),
            bool(columns[self._terminated][0]),
            bool(columns[self._truncated][0]),
            self._info(columns, faults),
        )

    def _info(self, columns: tuple[npt.NDArray[Any], ...], faults: tuple[tuple[int, str], ...]) -> dict[str, Any]:
        info = self._rows.info(columns, 0)
        if self._raw_reward is not None:
            info["reward"] = columns[self._raw_reward][0]
        if faults:
            info["fault"] = faults[0][1]
        return info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The present state as uint8[height, width, 3]; None with a warning if no render_mode was given."""
        if self.render_mode is None:
            gymnasium.logger.warn(f"{self._setup.id}: render() needs render_mode='rgb_array'")
            return None
        return self._pool.render(0, *self._camera)
