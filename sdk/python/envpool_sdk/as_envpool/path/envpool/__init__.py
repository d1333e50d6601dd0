"""What `import envpool` gives to a script that runs under envpool_sdk.as_envpool: the names of EnvPool, with its meaning.

Two things differ from envpool_sdk: make_dm() always gives a pool, and close() does nothing, for scripts written for EnvPool
go on using what they closed. The envs end with the last reference to them, or with the process.
"""

from __future__ import annotations

import sys
from typing import Any

import envpool_sdk
from envpool_sdk import python
from envpool_sdk.facade import EnvPool, GymnasiumEnvPool
from envpool_sdk.makers import make_spec
from envpool_sdk.registry import list_all_envs
from envpool_sdk.specs import Spec as EnvSpec

__version__ = envpool_sdk.__version__
__all__ = [
    "EnvPool",
    "EnvSpec",
    "GymnasiumEnvPool",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "python",
]


def make(task_id: str, env_type: str, **arguments: Any) -> Any:
    """envpool_sdk.make(), whose close() does nothing."""
    env = envpool_sdk.make(task_id, env_type, **arguments)
    env.close = _nothing
    return env


def make_dm(task_id: str, **arguments: Any) -> Any:
    """make(task_id, "dm", ...)."""
    return make(task_id, "dm", **arguments)


def make_gym(task_id: str, **arguments: Any) -> Any:
    """make(task_id, "gym", ...)."""
    return make(task_id, "gym", **arguments)


def make_gymnasium(task_id: str, **arguments: Any) -> Any:
    """make(task_id, "gymnasium", ...)."""
    return make(task_id, "gymnasium", **arguments)


def _nothing(**_: Any) -> None:
    """In place of close()."""


for _name in ("python", "python.envpool", "python.protocol"):  # the same modules, so that types are the same
    sys.modules[f"{__name__}.{_name}"] = sys.modules[f"envpool_sdk.{_name}"]
