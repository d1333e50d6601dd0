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
"""EnvPool's settings."""

RESOLUTIONS = (
    (160, 120),  # the least that the engine draws, and the plugin's own default
    (200, 150),
    (256, 192),
    (320, 240),
    (400, 300),
    (512, 384),
    (640, 480),
    (800, 600),
    (1024, 768),
    (1280, 960),
    (1400, 1050),
    (1600, 1200),
)
"""ViZDoom's resolutions, width and height, in the shape of the scenarios' own 320x240: in all of them one sees the same."""


def drawn(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The default of screen_resolution: the first of `RESOLUTIONS` that is not smaller than the wanted image."""
    width, height = (options.get(name) or 0 for name in ("img_width", "img_height"))
    if not all(isinstance(size, int) for size in (width, height)):
        return {}  # refused by the host
    enough = (f"{w}x{h}" for w, h in RESOLUTIONS if w >= width and h >= height)
    return {"screen_resolution": next(enough, "{}x{}".format(*RESOLUTIONS[-1]))}


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
            TaskManifest(id="Doom-v1", defaults=DEFAULTS, more_defaults=drawn),
            *(
                TaskManifest(
                    id=task_id,
                    defaults={**DEFAULTS, **OWN_DEFAULTS.get(scenario, {})},
                    more_defaults=drawn,
                    aliases=tuple(aliases),
                )
                for scenario, task_id, *aliases in rows
            ),
        ),
        assets=assets,
    )


def assets() -> Mapping[str, str]:
    """Finds the engine and the scenarios of the vizdoom wheel, and OpenAL in cyal's, without importing them.

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
                "openal": openal(),
            }
    raise ImportError("envpool-vizdoom needs vizdoom 1.3.2: pip install vizdoom==1.3.2")


def openal() -> str:
    """The folder of cyal's libopenal.so.1; "" if that is not installed: the system's is used then, if there is one."""
    spec = importlib.util.find_spec("cyal")
    for place in spec.submodule_search_locations or () if spec else ():
        if (Path(place) / "libopenal.so.1").is_file():
            return place
    return ""
