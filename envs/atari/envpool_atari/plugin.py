"""What envpool_sdk reads of this package. Imports neither NumPy nor ale_py, and loads no library."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envpool_sdk.manifest import Manifest

_HERE = Path(__file__).resolve().parent

DEFAULTS = {
    "frame_skip": 4,
    "max_last_two": True,
    "gray_scale": True,
    "img_height": 84,
    "img_width": 84,
    "stack_num": 4,
    "noop_max": 30,
    "use_fire_reset": True,
}
"""EnvPool's settings, which are those of most published work."""


def manifest() -> Manifest:
    """The entry point: the library, its tasks and where its files are."""
    # Here, not above: importing envpool_sdk calls this function, so this module has to be complete by then.
    from envpool_sdk.manifest import Manifest, TaskManifest

    rows = [line.split() for line in (_HERE / "games.txt").read_text().splitlines()]
    return Manifest(
        name="atari",
        library=str(_HERE / "atari.so"),
        abi=(1, 0),
        tasks=tuple(
            TaskManifest(id=task_id, max_episode_steps=27000, defaults=DEFAULTS, aliases=tuple(aliases))
            for _, task_id, *aliases in rows
        ),
        assets=assets,
        needs_python=True,  # ale-py's module resolves its symbols in an interpreter
    )


def assets() -> Mapping[str, str]:
    """Finds ale-py's extension module and its ROMs without importing it.

    ROMs come from the directory that ALE_ROMS_DIR names, as with ale_py itself, if it is set.

    Raises:
        ImportError: ale-py is not installed, or has no module for this interpreter.
    """
    spec = importlib.util.find_spec("ale_py")
    for place in spec.submodule_search_locations or () if spec else ():
        for suffix in EXTENSION_SUFFIXES:
            module = Path(place, f"_ale_py{suffix}")
            if module.is_file():
                roms = os.environ.get("ALE_ROMS_DIR") or str(Path(place, "roms"))
                return {"ale_library": str(module), "roms": str(Path(roms).absolute())}
    raise ImportError("envpool-atari needs ale-py>=0.12,<0.13 for this Python: pip install 'ale-py>=0.12,<0.13'")
