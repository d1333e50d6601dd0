"""env_type="gym": spaces and forms of the package gym, old (before 0.26) and new, if it is installed."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from gymnasium import spaces

from envpool_sdk.facade import GymnasiumEnvPool

NEW = (0, 26)
"""Since this version gym's reset() gives an info and its step() tells termination from truncation."""


def package() -> ModuleType | None:
    """The package gym, or None if it is not installed: env_type="gym" is "gymnasium" then, as in EnvPool."""
    try:
        import gym
    except ImportError:
        return None
    return gym  # type: ignore[no-any-return]


def is_old(gym: ModuleType) -> bool:
    """Whether this gym has the old forms."""
    return tuple(map(int, gym.__version__.split(".")[:2])) < NEW


@functools.cache
def pool_class(gym: ModuleType) -> type[GymnasiumEnvPool]:
    """The class of the pools that are envs of this gym."""
    base = OldGymEnvPool if is_old(gym) else GymnasiumEnvPool

    class GymEnvPool(base, gym.Env):  # type: ignore[misc,valid-type,name-defined]
        __doc__ = base.__doc__
        convert = staticmethod(functools.partial(convert, gym))

    GymEnvPool.__qualname__ = "GymEnvPool"
    return GymEnvPool


class OldGymEnvPool(GymnasiumEnvPool):
    """A pool whose results have the forms of gym before 0.26.

    step() and recv() give (observations, rewards, done, info), where done is terminated or truncated and
    info["TimeLimit.truncated"] tells them apart. reset() gives the observations; with gym_reset_return_info=True
    (observations, info).
    """

    def _pack(self, *batch: Any) -> Any:
        observations, rewards, terminated, truncated, info = super()._pack(*batch)
        return observations, rewards, terminated | truncated, info

    def _first(self, result: Any, return_info: bool) -> Any:
        observations, _, _, info = result
        return (observations, info) if return_info and self.config["gym_reset_return_info"] else observations


def convert(gym: ModuleType, space: spaces.Space[Any]) -> Any:
    """The same space of the package gym. Raises ValueError for one that this gym does not have."""
    own = gym.spaces
    if isinstance(space, spaces.Dict):
        return own.Dict({key: convert(gym, part) for key, part in space.items()})
    if isinstance(space, spaces.Tuple):
        return own.Tuple([convert(gym, part) for part in space])
    if isinstance(space, spaces.Box):
        return own.Box(space.low, space.high, space.shape, space.dtype.type)
    if isinstance(space, spaces.Discrete):
        return own.Discrete(int(space.n), start=int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return own.MultiBinary(space.n)
    if isinstance(space, spaces.Text):
        if not hasattr(own, "Text"):
            raise ValueError(f"gym {gym.__version__} has no space for text: use gym 0.26, or env_type='gymnasium'")
        return own.Text(space.max_length, min_length=space.min_length, charset=space.character_set)
    assert isinstance(space, spaces.MultiDiscrete)  # there are no others; see envpool_sdk.spaces
    if space.start.any():  # which gym's has not
        return own.Box(space.start, space.start + space.nvec - 1, space.shape, space.dtype.type)
    return own.MultiDiscrete(space.nvec)
