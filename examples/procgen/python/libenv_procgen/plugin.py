"""What envpool_sdk reads of this package. Imports nothing large, and loads no library."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envpool_sdk.manifest import Manifest

NAME = "libenv_procgen"
GAMES = (
    "bigfish",
    "bossfight",
    "caveflyer",
    "chaser",
    "climber",
    "coinrun",
    "dodgeball",
    "fruitbot",
    "heist",
    "jumper",
    "leaper",
    "maze",
    "miner",
    "ninja",
    "plunder",
    "starpilot",
)


def library() -> str:
    """The plugin: what LIBENV_PROCGEN_LIBRARY names, or the one that was installed.

    Raises:
        FileNotFoundError: it was not built.
    """
    chosen = os.environ.get(f"{NAME.upper()}_LIBRARY")
    if chosen is None:
        # Looked up as a module, which it is not: in an editable install this builds what was changed.
        spec = importlib.util.find_spec(f"{NAME}.{NAME}")
        chosen = spec.origin if spec else None
    if chosen is None or not os.path.isfile(chosen):
        raise FileNotFoundError(f"the library {chosen or NAME + '.so'} is missing")
    return os.path.realpath(chosen)


def procgen() -> dict[str, str]:
    """Where Procgen's wheel has its library and its pictures; empty if it is not installed. Imports nothing of it."""
    spec = importlib.util.find_spec("procgen")
    if spec is None or spec.origin is None:
        return {}
    data = Path(spec.origin).parent / "data"
    engine = data / "prebuilt" / "libenv.so"
    # The engine appends file names to the folder's: it has to end in a slash.
    return {"procgen library": str(engine), "procgen pictures": f"{data / 'assets'}/"} if engine.is_file() else {}


def manifest() -> Manifest:
    """The entry point: the library and its tasks."""
    # Here, not above: importing envpool_sdk calls this function, so this module has to be complete by then.
    from envpool_sdk.manifest import Manifest, TaskManifest

    return Manifest(
        name=NAME,
        library=library(),
        abi=(1, 0),
        tasks=tuple(TaskManifest(id=f"procgen-{game}-v0") for game in GAMES),
        assets=procgen,
    )
