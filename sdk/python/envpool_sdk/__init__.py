"""Batches of reinforcement-learning environments from plugins that are loaded at run time.

``import envpool_sdk`` makes all installed engine packages known: to `make`, which gives EnvPool's interface, and to
Gymnasium, as ``gymnasium.make("envpool/Pong-v5")`` and ``gymnasium.make_vec("envpool/Pong-v5", num_envs=8)``.
`load_plugin` adds the tasks of a shared library.
"""

from __future__ import annotations

from pathlib import Path

from envpool_sdk import python
from envpool_sdk._native import ClosedError, EnvError, PluginError, __version__
from envpool_sdk.facade import EnvPool, GymnasiumEnvPool
from envpool_sdk.makers import make, make_dm, make_gym, make_gymnasium, make_spec
from envpool_sdk.manifest import Manifest, TaskManifest
from envpool_sdk.registry import discover, list_all_envs, load_plugin, register
from envpool_sdk.specs import Spec
from envpool_sdk.workers import log_to_python

__all__ = [
    "ClosedError",
    "EnvError",
    "EnvPool",
    "GymnasiumEnvPool",
    "Manifest",
    "PluginError",
    "Spec",
    "TaskManifest",
    "__version__",
    "get_cmake_dir",
    "get_include",
    "list_all_envs",
    "load_plugin",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "python",
    "register",
]


def get_include() -> str:
    """The directory of the headers that a plugin includes: <envpool/env.h>, <envpool/env.hpp>."""
    return _installed("include")


def get_cmake_dir() -> str:
    """The directory in which CMake's find_package(envpool_sdk) finds what a plugin needs, as envpool_sdk_DIR."""
    return _installed("cmake")


def _installed(name: str) -> str:
    for place in __path__:  # two of them, if the Python files stand in a source tree
        directory = Path(place) / name
        if directory.is_dir():
            return str(directory)
    raise FileNotFoundError(f"envpool_sdk is not installed: {name} is in none of {list(__path__)}")


log_to_python()
del log_to_python
discover()
del discover
