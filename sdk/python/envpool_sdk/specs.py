"""What a task is with these arguments: EnvPool's spec, in Gymnasium's spaces and dm_env's specs."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from envpool_sdk.spaces import action_fields, action_space, bounds, length_space, limits, observation_space

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, SpecDict
    from envpool_sdk.making import Setup


@dataclass(frozen=True)
class ArraySpec:
    """An array that goes into a pool or comes out of it, by EnvPool's conventions."""

    dtype: np.dtype[Any]
    shape: list[int]
    """Of one row; -1 in front: a row for each player."""
    minimum: Any
    """One number, or one an element; unbounded: -inf, or the dtype's least."""
    maximum: Any
    is_discrete: bool = False


@dataclass
class Spec(EnvSpec):
    """What a task is with these arguments. The attributes may be assigned."""

    config: Any = None
    """The values of all arguments and options: a named tuple, "." in a name being "_"."""
    observation_space: Any = None
    """The space of one env's observation."""
    action_space: Any = None
    """The space of one env's action."""
    native: Any = field(default=None, repr=False)
    """The pool's own spec."""

    @classmethod
    def of(
        cls, made: Setup, native: SpecDict, config: Mapping[str, Any], convert: Callable[[spaces.Space[Any]], Any]
    ) -> Spec:
        """The spec of a task.

        Args:
            native: as the plugin and the transforms have it.
            config: all arguments and options.
            convert: what makes the spaces of the env_type out of Gymnasium's.
        """
        threshold = native["reward_threshold"]
        return cls(
            id=made.id,
            config=_config(config),
            observation_space=convert(observation_space(native)),
            action_space=convert(action_space(native)),
            max_episode_steps=config["max_episode_steps"] or None,
            reward_threshold=None if math.isnan(threshold) else threshold,
            native=native,
        )

    @property
    def gen_config(self) -> Any:
        """The type of the config, whose defaults are the values of this one: gen_config(num_envs=4)."""
        return type(self.config)

    @property
    def gymnasium_observation_space(self) -> Any:
        """The observation space."""
        return self.observation_space

    @property
    def gymnasium_action_space(self) -> Any:
        """The action space."""
        return self.action_space

    @property
    def action_array_spec(self) -> dict[str, ArraySpec]:
        """What send() takes, by name: "env_id", "players.env_id", and "action" or the fields' names."""
        arrays = {"env_id": _INT32, "players.env_id": _PLAYERS}
        for name, one, is_length in action_fields(self.native):
            spec = _length(one) if is_length else _array(one)
            arrays[name.replace("/", ".") or "action"] = ArraySpec(
                spec.dtype, [-1, *spec.shape], spec.minimum, spec.maximum, spec.is_discrete
            )
        return arrays

    @property
    def state_array_spec(self) -> dict[str, ArraySpec]:
        """What recv() gives, by name: the pool's own arrays, then "obs" or "obs:<name>", then "info:<name>"."""
        arrays = dict(_STATE)
        for section in ("obs", "info"):
            for one in self.native[section]:
                name = one["name"].replace("/", ".")
                arrays[f"{section}:{name}".removesuffix(":")] = _array(one)
        return arrays

    def observation_spec(self) -> Any:
        """dm_env's specs of the observation that env_type="dm" gives: a named tuple, nested. Needs dm_env."""
        from envpool_sdk.dm import State

        return State(self.native).spec

    def action_spec(self) -> Any:
        """dm_env's spec of one env's action, or a dictionary of specs. Needs dm_env."""
        from envpool_sdk.dm import action_spec

        return action_spec(self.native)


def _config(values: Mapping[str, Any]) -> Any:
    names = [name.replace(".", "_") for name in values]

    class Config(namedtuple("Config", names, rename=True, defaults=values.values())):  # type: ignore[misc]
        __slots__ = ()

        def __reduce__(self) -> Any:  # a class of its own can't be found by its name
            return _config, (self._asdict(),)

    return Config(*values.values())


def _array(one: FieldDict) -> ArraySpec:
    return ArraySpec(
        np.dtype(one["dtype"]), list(one["shape"]), *bounds(one), one["kind"] in ("discrete", "multi_binary")
    )


def _length(one: FieldDict) -> ArraySpec:
    space = length_space(one)
    most = space.n - 1 if isinstance(space, spaces.Discrete) else one["shape"][1]
    return ArraySpec(np.dtype(np.uint32), list(space.shape or ()), 0, most, True)


def _plain(name: str, shape: list[int]) -> ArraySpec:
    dtype = np.dtype(name)
    return ArraySpec(dtype, shape, *limits(dtype))


_INT32, _PLAYERS = _plain("int32", []), _plain("int32", [-1])
_STATE = {
    "info:env_id": _INT32,
    "info:players.env_id": _PLAYERS,
    "elapsed_step": _INT32,
    "done": _plain("bool", []),
    "reward": _plain("float32", [-1]),
    "discount": ArraySpec(np.dtype(np.float32), [-1], 0.0, 1.0),
    "step_type": _INT32,
    "trunc": _plain("bool", []),
}
