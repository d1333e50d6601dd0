"""env_type="dm": batches of dm_env's TimeSteps, and single dm_env.Environments. Needs the package dm_env.

A time limit ends an episode with discount 1, a terminated one with 0; so does a fault of an env with 1, for its episode is
truncated.
"""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

try:
    import dm_env
    from dm_env import StepType, TimeStep, specs
except ImportError as error:
    raise ImportError("env_type='dm' and dm_env's specs need the package dm_env: pip install dm-env") from error

from envpool_sdk import making
from envpool_sdk.facade import Columns, EnvPool, Faults
from envpool_sdk.making import Setup
from envpool_sdk.rows import Rows, info_fields, row_encoder
from envpool_sdk.single import ONLY, OneEnv
from envpool_sdk.spaces import Tree, action_fields, bounds, field_space, length_space, limits, nest
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, SpecDict


# ---- specs ------------------------------------------------------------------


def action_spec(native: SpecDict) -> Any:
    """The spec of one env's action, named "action"; or specs nested as the fields' names say."""
    leaves = ((n, _length_spec(f, n) if is_length else _action(f)) for n, f, is_length in action_fields(native))
    return nest(leaves, tuples=True)


def observation_spec(native: SpecDict) -> Any:
    """The spec of one env's observation, named "observation"; or specs nested as the fields' names say."""
    return nest(((f["name"], _observed(f, "observation")) for f in native["obs"]), tuples=True)


def _action(field: FieldDict) -> specs.Array:
    """Of an action, whose discrete ones are int32, dm_env's type for them. Any safe cast is accepted."""
    return _field(field, np.int32 if field["kind"] == "discrete" else field["dtype"], "action")


def _observed(field: FieldDict, unnamed: str) -> specs.Array:
    """Of a part of an observation, in the type that Gymnasium has for it; see envpool_sdk.spaces."""
    return _field(field, field_space(field).dtype or field["dtype"], unnamed)


def _info(field: FieldDict) -> specs.Array:
    return _field(field, field["dtype"], "info")


def _field(field: FieldDict, dtype: npt.DTypeLike, unnamed: str) -> specs.Array:
    """The spec of one field: discrete ones that begin at 0 have num_values, others bounds, unless there are none.

    Args:
        dtype: of its values.
        unnamed: what a field without a name is called.
    """
    dtype, name = np.dtype(dtype), field["name"].rpartition("/")[2] or unnamed
    if field["kind"] == "text":
        return specs.StringArray(field["shape"][:-1], name=name)
    low, high = bounds(field)
    if field["kind"] == "discrete" and field["shape"] == () and low == 0:
        return specs.DiscreteArray(int(high) + 1, dtype=dtype, name=name)
    if field["kind"] == "box" and field["low"] is None and field["high"] is None and dtype.kind == "f":
        return specs.Array(field["shape"], dtype, name=name)
    return specs.BoundedArray(field["shape"], dtype, low, high, name=name)


def _length_spec(field: FieldDict, name: str) -> specs.Array:
    most = field["shape"][1 if field["per_agent"] else 0]
    return specs.BoundedArray(length_space(field).shape or (), np.uint32, 0, most, name=name.rpartition("/")[2])


# ---- batches ----------------------------------------------------------------


class State:
    """The observation of a batch, EnvPool's named tuple "State", nested as the fields' names say.

    Its fields: env_id and players.env_id; the observation, as "obs" or by the names of its fields; the plugin's info
    fields; elapsed_step, reward (before reward_clip) and terminated. What is no identifier is made one.
    """

    def __init__(self, native: SpecDict) -> None:
        agents = _agents(native)
        observed = nest(((f["name"], _observed(f, "obs")) for f in native["obs"]), tuples=True)
        self._is_whole = not isinstance(observed, dict)
        informed = ((n, _length_spec(f, n) if long else _info(f)) for n, f, _, long in info_fields(native))
        parts = (
            {"env_id": _int32("env_id", ()), "players": {"env_id": _int32("env_id", agents)}},
            {"obs": observed} if self._is_whole else observed,
            nest(informed, tuples=False),
            {
                "elapsed_step": _int32("elapsed_step", ()),
                "reward": specs.Array(agents, np.float32, "reward"),
                "terminated": specs.BoundedArray(agents, np.int32, 0, 1, "terminated"),
            },
        )
        tree = {key: part for some in reversed(parts) for key, part in some.items()}  # the first of a name counts
        self._make = _named_tuple("State", {key: tree[key] for some in parts for key in some})
        self.spec: Any = self._make(tree)
        """The spec of each field, for one env."""

    def of(self, ids: Tree, observation: Any, infos: Tree, own: Tree) -> Any:
        """The named tuple of a batch: which envs, what they observe, their infos, and the pool's own columns."""
        observed = {"obs": observation} if self._is_whole else observation
        return self._make({**own, **infos, **observed, **ids})


def _int32(name: str, shape: tuple[int, ...]) -> specs.Array:
    return specs.BoundedArray(shape, np.int32, *limits(np.dtype(np.int32)), name=name)


def _named_tuple(name: str, tree: Mapping[str, Tree]) -> Callable[[Mapping[str, Any]], Any]:
    """What makes named tuples of dictionaries that have this tree's keys."""
    fields: list[str] = []
    for key in tree:
        one = _identifier(key)
        while one in fields:
            one += "_"
        fields.append(one)
    make = namedtuple(_identifier(name), fields)  # type: ignore[misc]
    parts = [(key, _named_tuple(key, part) if isinstance(part, dict) else None) for key, part in tree.items()]

    def of(values: Mapping[str, Any]) -> Any:
        return make(*[values[key] if nested is None else nested(values[key]) for key, nested in parts])

    return of


def _identifier(name: str) -> str:
    one = re.sub(r"\W", "_", name)
    return f"field_{one}" if not one or keyword.iskeyword(one) or not one[0].isalpha() else one


class DMEnvPool(EnvPool, dm_env.Environment):  # type: ignore[misc]
    """A pool whose results are dm_env.TimeSteps of a batch, as EnvPool has them; see EnvPool.

    step_type   int32[m]: 0 FIRST, 1 MID, 2 LAST
    reward      float32[m] (or [m, agents]); 0 in FIRST rows
    discount    float32 likewise: 0 where the episode terminated, also for an agent alone, else 1
    observation a State: .env_id, .players.env_id, .obs (or the fields of the observation by name), and the infos

    reset() gives FIRST rows. An env whose episode ended begins anew in its next step, whose row is FIRST. `faults` tells
    of envs that failed: their rows are LAST, with discount 1.
    """

    autoreset_modes = (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)

    def _prepare(self) -> None:
        native = self._pool.spec
        self._state = State(native)
        self._lives: npt.NDArray[Any] | None = None
        if self.config["zero_discount_on_life_loss"]:
            if not any(field["name"] == "lives" for field in native["info"]):
                self.close()
                raise ValueError(
                    f"{self._setup.id}: zero_discount_on_life_loss=True must be False: the info has no lives"
                )
            self._lives = np.zeros(len(self._ids), np.int64)

    def _pack(self, columns: Columns, final: Columns | None, faults: Faults, rows: Rows | None = None) -> TimeStep:
        rows = rows or self._rows
        terminated, elapsed = columns[self._at_terminated], columns[self._at_elapsed]
        over = terminated | columns[self._at_truncated]
        if over.ndim > 1:
            over = columns[self._columns["episode_over"]]
        step_type = _MID + over.astype(np.int32) - (~over & (elapsed == 0)).astype(np.int32)  # one more, or one less
        env_id = columns[self._at_env_id]
        infos = rows.infos(columns) if rows.has_infos else {}
        ids = {"env_id": env_id, "players": {"env_id": columns[self._at_player_env_id]}}
        own = {
            "elapsed_step": elapsed,
            "reward": columns[self._at_raw_reward],
            "terminated": columns[self._at_terminated_int32],
        }
        discount = (~terminated).astype(np.float32)
        if self._lives is not None:
            lives = infos["lives"]
            discount[(elapsed > 0) & (lives < self._lives[env_id])] = 0
            self._lives[env_id] = lives
        return TimeStep(
            step_type, columns[self._at_reward], discount, self._state.of(ids, rows.observations(columns), infos, own)
        )

    def _first(self, result: TimeStep, return_info: bool) -> TimeStep:
        return result

    def observation_spec(self) -> Any:
        """The specs of one env's observation: a State of them."""
        return self._state.spec

    def action_spec(self) -> Any:
        """The spec of one env's action, or a dictionary of specs."""
        return action_spec(self._pool.spec)

    def reward_spec(self) -> specs.Array:
        """The spec of one env's reward."""
        return specs.Array(_agents(self._pool.spec), np.float32, "reward")

    def discount_spec(self) -> specs.Array:
        """The spec of one env's discount."""
        return specs.BoundedArray(_agents(self._pool.spec), np.float32, 0.0, 1.0, "discount")


def _agents(native: SpecDict) -> tuple[int, ...]:
    """The agent dimension of a row, if there are several agents."""
    return (native["max_agents"],) if native["max_agents"] > 1 else ()


_MID = np.int32(StepType.MID)


# ---- one env ----------------------------------------------------------------


class Environment(OneEnv, dm_env.Environment):  # type: ignore[misc]
    """One env of a task, without a batch dimension; envpool_sdk.make_dm(task_id) makes it.

    Observations are arrays, in dictionaries and tuples as the fields' names say; reward and discount are floats, and None
    in a FIRST step. `faults` tells of failures of the env, which end its episode with discount 1.
    """

    def __init__(
        self,
        task_id: str,
        *,
        seed: int | None = 42,
        max_episode_steps: int | None = None,
        isolation: str = "auto",
        step_timeout: float | None = None,
        reset_timeout: float | None = None,
        **options: Any,
    ) -> None:
        """Makes the env.

        Args:
            task_id: "CheetahRun-v1" or "envpool/CheetahRun-v1".
            seed: of the first reset; later ones go on with the env's generator. None: from entropy.
            max_episode_steps: steps after which an episode is truncated. None: the task's own limit; -1: no limit.
            isolation, step_timeout, reset_timeout: as `make` has them.
            options: the task's options and the runtime's transforms.

        Raises:
            ValueError: unknown task or option (names the nearest), or a value that is not allowed.
            EnvError: the env can't be made.
        """
        made = Setup.of(type(self), task_id, options)
        [self._seed] = making.seeds_of(task_id, seed, ONLY)
        self._pool = made.open(
            self,
            num_envs=1,
            batch_size=1,
            num_threads=1,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=max_episode_steps,
            both_flags=False,
            reward_dtype="float64",
            workers=Workers(isolation, 1, step_timeout, reset_timeout),
            pool_columns=["reward", "terminated", "truncated"],
        )
        native = self._pool.spec
        making.single_agent(task_id, native)
        columns = making.pool_columns(self._pool)
        self._reward, self._terminated = columns["reward"], columns["terminated"]
        self._truncated = columns["truncated"]
        self._encode = row_encoder(native, task_id)
        self._rows = Rows(self._pool)
        self._begins = True

    def reset(self) -> TimeStep:
        """Begins an episode: a FIRST step."""
        making.drain(self._pool)
        self._pool.reset(None, None if self._seed is None else np.array([self._seed], np.uint64))
        columns, _, _ = self._pool.recv()
        self._seed, self._begins = None, False
        return dm_env.restart(self._rows.observation(columns, 0))

    def step(self, action: Any) -> TimeStep:
        """Advances by one action. At first, and after a LAST step, it ignores the action and does what reset() does.

        Raises:
            ValueError: the action does not conform to the action spec.
        """
        if self._begins:
            return self.reset()
        columns, _, _ = self._pool.step(self._encode(action))
        reward, observation = float(columns[self._reward][0]), self._rows.observation(columns, 0)
        terminated, truncated = bool(columns[self._terminated][0]), bool(columns[self._truncated][0])
        self._begins = terminated or truncated
        if terminated:
            return dm_env.termination(reward, observation)
        if truncated:
            return dm_env.truncation(reward, observation)
        return dm_env.transition(reward, observation)

    def observation_spec(self) -> Any:
        """The spec of an observation, nested as the observation."""
        return observation_spec(self._pool.spec)

    def action_spec(self) -> Any:
        """The spec of an action, nested as the action."""
        return action_spec(self._pool.spec)

    def load_state(self, state: bytes) -> None:
        super().load_state(state)
        columns = self._pool.observe(ONLY)
        self._begins = bool(columns[self._terminated][0] | columns[self._truncated][0])
