"""What envpool_sdk reads of this package. Imports nothing large, and loads no library."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envpool_sdk.manifest import Manifest

NAME = "{{ cookiecutter.package_name }}"


def library() -> str:
    """The plugin: what {{ cookiecutter.package_name | upper }}_LIBRARY names, or the one that was installed.

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


def manifest() -> Manifest:
    """The entry point: the library and its tasks."""
    # Here, not above: importing envpool_sdk calls this function, so this module has to be complete by then.
    from envpool_sdk.manifest import Manifest, TaskManifest

    return Manifest(
        name=NAME,
        library=library(),
        abi=(1, 0),
        tasks=(TaskManifest(id="{{ cookiecutter.env_id }}", max_episode_steps=500),),
    )
