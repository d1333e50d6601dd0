"""From what the user names, a file or the id of an installed environment, to what is checked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from envpool_sdk import registry
from envpool_sdk.check.runner import Target
from envpool_sdk.manifest import Manifest


def find_target(name: str | os.PathLike[str], tasks: Sequence[str] = ()) -> Target:
    """The library and the assets that a name stands for.

    Args:
        name: the path of a plugin library, or an id of an installed package ("Pong-v5" or "envpool/Pong-v5").
        tasks: ids, if not all tasks are meant.

    Raises:
        ValueError: there is no such file and no such id.
    """
    word = os.fspath(name)
    path = Path(word).expanduser()
    if path.is_file() or path.suffix == ".so" or os.sep in word.removeprefix(f"{registry.NAMESPACE}/"):
        if not path.is_file():
            raise ValueError(f"there is no file {word!r}")
        manifest = _manifest_of(path)
        return Target(str(path.resolve()), tuple(tasks), manifest_assets(manifest) if manifest else {}, word)
    entry = registry.find(word)
    return Target(entry.manifest.library, tuple(tasks) or (entry.task.id,), manifest_assets(entry.manifest), word)


def manifest_assets(manifest: Manifest) -> dict[str, str]:
    return dict(manifest.assets() if callable(manifest.assets) else manifest.assets)


def _manifest_of(path: Path) -> Manifest | None:
    """The manifest of the installed package that a file belongs to, if any."""
    known = {entry.manifest.library: entry.manifest for entry in map(registry.find, registry.list_all_envs())}
    return next((manifest for library, manifest in known.items() if os.path.samefile(library, path)), None)
