"""What envpool_sdk reads of this package. Imports neither NumPy nor vizdoom, and loads no library."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envpool_sdk.manifest import Manifest

_HERE = Path(__file__).resolve().parent

DEFAULTS: Mapping[str, Any] = {"img_height": 84, "img_width": 84, "stack_num": 4}
"""EnvPool's settings. The engine draws 160x120 by default, the least that it can and enough for these."""

OWN_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    # Those scenario files enable sound and automap: a screen alone is what agents are usually given.
    "freedoom1": {"buffers": ""},
    "freedoom2": {"buffers": ""},
}
"""Defaults of single scenarios, on top of those."""


def manifest() -> Manifest:
    """The entry point: the library, its tasks and where its files are."""
    # Here, not above: importing envpool_sdk calls this function, so this module has to be complete by then.
    from envpool_sdk.manifest import Manifest, TaskManifest

    rows = [line.split() for line in (_HERE / "scenarios.txt").read_text().splitlines()]
    return Manifest(
        name="vizdoom",
        library=str(_HERE / "vizdoom.so"),
        abi=(1, 0),
        tasks=(
            TaskManifest(id="Doom-v1", defaults=DEFAULTS),
            *(
                TaskManifest(
                    id=task_id, defaults={**DEFAULTS, **OWN_DEFAULTS.get(scenario, {})}, aliases=tuple(aliases)
                )
                for scenario, task_id, *aliases in rows
            ),
        ),
        assets=assets,
    )


def assets() -> Mapping[str, str]:
    """Finds the engine and the scenarios of the vizdoom wheel without importing it.

    Raises:
        ImportError: vizdoom is not installed.
    """
    spec = importlib.util.find_spec("vizdoom")
    for place in spec.submodule_search_locations or () if spec else ():
        package = Path(place)
        if (package / "vizdoom").is_file():
            return {
                "engine": str(package / "vizdoom"),
                "package": str(package),
                "scenarios": str(package / "scenarios"),
                "home": str(_HERE / "engine_home"),
            }
    raise ImportError("envpool-vizdoom needs vizdoom 1.3.2: pip install vizdoom==1.3.2")
