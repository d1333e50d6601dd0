"""Which tasks exist: ids, the plugins that offer them, and their registration with Gymnasium."""

from __future__ import annotations

import difflib
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import gymnasium

from envpool_sdk._native import ABI_VERSION, EnvError, Plugin, PluginError
from envpool_sdk.manifest import Manifest, TaskManifest

NAMESPACE = "envpool"
ENTRY_POINT_GROUP = "envpool_sdk.plugins"
PATH_VARIABLE = "ENVPOOL_PLUGIN_PATH"


@dataclass(frozen=True)
class Entry:
    """A known task and the plugin that offers it."""

    manifest: Manifest
    task: TaskManifest


@dataclass(frozen=True)
class Source:
    """Where discover() looked for tasks: an engine package, or a file that ENVPOOL_PLUGIN_PATH names."""

    name: str
    """Of the package, or the path of the file."""
    version: str = ""
    """Of the package."""
    tasks: tuple[str, ...] = ()
    """The ids that it offers."""
    error: str = ""
    """Why it offers none."""


sources: list[Source] = []
"""What discover() found, broken ones included."""

_entries: dict[str, Entry] = {}
_plugins: dict[str, Plugin] = {}


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name most like this one, or lists them if there are few and none is."""
    names = sorted(known)
    match = difflib.get_close_matches(name, names, n=1) or [one for one in names if one.casefold() == name.casefold()]
    if match:
        return f"Did you mean {match[0]!r}?"
    if len(names) <= 40:
        return f"Known: {', '.join(names) or 'none'}."
    return ""


def list_all_envs() -> list[str]:
    """All known ids, sorted, without the namespace: "Pong-v5"."""
    return sorted(_entries)


def entries() -> dict[str, Entry]:
    """All known tasks by id, sorted; aliases are ids of their own."""
    return dict(sorted(_entries.items()))


def find(task_id: str) -> Entry:
    """The task of this id, bare ("Pong-v5") or with the namespace ("envpool/Pong-v5").

    Raises:
        TypeError: the id is no string.
        ValueError: no such task; names the nearest.
    """
    if not isinstance(task_id, str):
        raise TypeError(f"task_id must be a string, not {task_id!r}")
    entry = _entries.get(task_id.removeprefix(f"{NAMESPACE}/"))
    if entry is None:
        hint = nearest(task_id.removeprefix(f"{NAMESPACE}/"), _entries) or "See envpool_sdk.list_all_envs()."
        raise ValueError(f"no task {task_id!r} is known. {hint}")
    return entry


def load(manifest: Manifest) -> Plugin:
    """The loaded plugin of a manifest. Raises PluginError."""
    plugin = _plugins.get(manifest.library)
    if plugin is None:
        assets = manifest.assets() if callable(manifest.assets) else manifest.assets
        plugin = _plugins[manifest.library] = Plugin(manifest.library, assets)
    return plugin


def register(manifest: Manifest) -> tuple[str, ...]:
    """Makes a plugin's tasks known to envpool_sdk.make and to Gymnasium, without loading its library.

    Again with the same library: nothing happens.

    Returns:
        The ids, aliases included.

    Raises:
        PluginError: the library is missing or of another ABI, or another plugin offers one of the ids already; then
            none of its tasks is registered.
    """
    major, minor = manifest.abi
    if major != ABI_VERSION[0] or minor > ABI_VERSION[1]:
        raise PluginError(
            f"{manifest.library}: built for ABI {major}.{minor}, but this envpool_sdk has"
            f" ABI {ABI_VERSION[0]}.{ABI_VERSION[1]}"
        )
    if not os.path.isabs(manifest.library) or not os.path.isfile(manifest.library):
        raise PluginError(f"{manifest.library!r} is not the absolute path of a file")
    entries = {task_id: Entry(manifest, task) for task in manifest.tasks for task_id in (task.id, *task.aliases)}
    for task_id in entries:
        other = _entries.get(task_id)
        if other is not None and not _same_file(other.manifest.library, manifest.library):
            raise PluginError(
                f"{manifest.library} ({manifest.name}) offers {task_id!r}, which is offered by"
                f" {other.manifest.library} ({other.manifest.name}) already"
            )
    for task_id, entry in entries.items():
        if task_id not in _entries:
            _register_with_gymnasium(task_id, entry.task)
            _entries[task_id] = entry
    return tuple(entries)


def load_plugin(path: str | bytes | os.PathLike[Any], guest: Sequence[str] = ()) -> tuple[str, ...]:
    """Loads a plugin library and makes its tasks known to envpool_sdk.make and to Gymnasium (as "envpool/<id>").

    Again with the same file: nothing happens. Libraries are never unloaded: a file that was built anew needs another
    path or another process.

    Args:
        path: the shared library.
        guest: of an engine that is a program of its own (envpool/guest.h): the program and its arguments.

    Returns:
        The ids of its tasks.

    Raises:
        PluginError: the file is missing or no usable plugin, or its spec is broken, or another plugin offers one of
            its ids.
    """
    file = os.path.realpath(os.path.expanduser(os.fsdecode(path)))
    known = next((e.manifest for e in _entries.values() if _same_file(e.manifest.library, file)), None)
    if known is not None:
        load(known)
        return register(known)
    plugin = Plugin(file)
    manifest = Manifest(
        name=plugin.name,
        library=file,
        abi=ABI_VERSION,  # checked by loading it
        tasks=tuple(_described(plugin, task_id) for task_id in plugin.tasks),
        guest=tuple(guest),
    )
    ids = register(manifest)
    _plugins[file] = plugin
    return ids


def discover() -> None:
    """Registers the tasks of the installed engine packages, and those of the libraries in ENVPOOL_PLUGIN_PATH.

    Packages are found by their entry points, and nothing of them is loaded but their manifests. The files that the
    variable names (os.pathsep between files and directories, all *.so of which count) have no manifest and are
    loaded. Whatever is broken is one warning, and the others still work.
    """
    for point in entry_points(group=ENTRY_POINT_GROUP):
        package, version = (point.dist.name, point.dist.version) if point.dist else (point.value, "")
        try:
            sources.append(Source(package, version, register(point.load()())))
        except (Exception, SystemExit) as error:  # the package's own code: anything may come
            sources.append(Source(package, version, error=_reason(error)))
            _warn(f"the tasks of the package {package} are not available: {_reason(error)}")
    for place in filter(None, os.environ.get(PATH_VARIABLE, "").split(os.pathsep)):
        directory = Path(place)
        for file in sorted(directory.glob("*.so")) if os.path.isdir(directory) else (directory,):
            try:
                sources.append(Source(str(file), tasks=load_plugin(file)))
            except Exception as error:
                sources.append(Source(str(file), error=_reason(error)))
                _warn(f"{PATH_VARIABLE}: the tasks of {file} are not available: {_reason(error)}")


def _warn(text: str) -> None:
    warnings.warn(f"envpool_sdk: {text}", stacklevel=4)


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _described(plugin: Plugin, task_id: str) -> TaskManifest:
    """What a manifest would say about a task of a loaded plugin, with default options."""
    task = plugin.tasks[task_id]
    try:
        spec = plugin.describe(task_id, {}, {})
    except PluginError as error:
        raise PluginError(f"{plugin.path}: {error}") from None
    except (ValueError, EnvError):  # it can't be described without options or assets
        limit, threshold = 0, math.nan
    else:
        limit, threshold = spec["max_episode_steps"], spec["reward_threshold"]
    return TaskManifest(
        id=task_id,
        max_episode_steps=limit or None,
        reward_threshold=None if math.isnan(threshold) else threshold,
        nondeterministic="nondeterministic" in task["flags"],
    )


def _register_with_gymnasium(task_id: str, task: TaskManifest) -> None:
    gymnasium.register(
        id=f"{NAMESPACE}/{task_id}",
        entry_point="envpool_sdk.single:Env",
        vector_entry_point="envpool_sdk.vector:VectorEnv",
        max_episode_steps=task.max_episode_steps,
        reward_threshold=task.reward_threshold,
        nondeterministic=task.nondeterministic,
        kwargs={"task_id": task_id},
    )
