"""What an engine package says about itself, so that its tasks are known without loading its library.

An engine package declares an entry point of the group ``envpool_sdk.plugins`` whose value is a callable without
arguments that returns a `Manifest`::

    [project.entry-points."envpool_sdk.plugins"]
    atari = "envpool_atari.plugin:manifest"

It is called at ``import envpool_sdk``: keep it quick, and keep it in a module of its own, so that it can be imported
while the package itself is still being imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TaskManifest:
    """One task of a plugin."""

    id: str
    """As the plugin spells it: "Pong-v5". Gymnasium knows it as "envpool/Pong-v5"."""
    max_episode_steps: int | None = None
    """The plugin's own time limit, in steps of the env; None if it has none."""
    reward_threshold: float | None = None
    """Return at which the task counts as solved."""
    nondeterministic: bool = False
    """The same seed and actions may give different results."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default arguments of make() for this task: options of the plugin and of the transforms, e.g. frame_skip=4."""
    more_defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Further defaults that follow from other arguments: called with what was given on top of `defaults`, by name and
    unchecked. Quick, and without exceptions."""
    aliases: tuple[str, ...] = ()
    """Further ids of the same task."""


@dataclass(frozen=True)
class Manifest:
    """A plugin library and its tasks."""

    name: str
    """The engine's name: "atari"."""
    library: str
    """Absolute path of the plugin's shared library."""
    abi: tuple[int, int]
    """The ABI that the library was built for: its major, and the least minor of the host it can live with."""
    tasks: tuple[TaskManifest, ...]
    assets: Mapping[str, str] | Callable[[], Mapping[str, str]] = field(default_factory=dict)
    """Absolute paths of files that the plugin asks the host for, by name. A callable is called when the library is
    loaded, so that finding them may cost time or import other packages."""
    needs_python: bool = False
    """The library uses the Python interpreter: its worker processes must be interpreters themselves."""
    guest: tuple[str, ...] = ()
    """An engine with a main loop of its own: the program, with arguments, that serves one env through envpool/guest.h.
    The library then only describes the tasks."""
