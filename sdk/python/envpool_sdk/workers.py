"""Worker processes and what they say: how they are started, and the log of plugins."""

from __future__ import annotations

import logging
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envpool_sdk._native import set_log_sink
from envpool_sdk.manifest import Manifest

ISOLATIONS = ("auto", "thread", "process")

_LOG = logging.getLogger("envpool_sdk")

# An interpreter with nothing but ctypes: for engines that are Python extensions themselves.
_BARE = (
    "import ctypes, sys; arguments = [a.encode() for a in sys.argv[1:]]; "
    "sys.exit(ctypes.CDLL(sys.argv[1]).envpool_worker_main("
    "len(arguments), (ctypes.c_char_p * len(arguments))(*arguments)))"
)


@dataclass(frozen=True)
class Workers:
    """Where envs run: the arguments of make() about that, as the user gave them."""

    isolation: str = "auto"
    envs_per_worker: int = 1
    step_timeout: float | None = None
    reset_timeout: float | None = None

    def arguments(self, task_id: str, manifest: Manifest) -> dict[str, Any]:
        """Arguments of _native.Pool. Raises ValueError for those that are wrong whatever the task is."""
        if self.isolation not in ISOLATIONS:
            allowed = ", ".join(map(repr, ISOLATIONS))
            raise ValueError(f"{task_id}: isolation={self.isolation!r} must be one of {allowed}")
        return {
            "isolation": self.isolation,
            "worker_command": command(manifest),
            "guest_library": library() if manifest.guest else "",
            "step_timeout": _timeout(task_id, "step_timeout", self.step_timeout),
            "reset_timeout": _timeout(task_id, "reset_timeout", self.reset_timeout),
        }


DEFAULT = Workers()
"""Processes where the engine needs them, without time limits."""


def _timeout(task_id: str, name: str, seconds: Any) -> float | None:
    if seconds is None:
        return None
    try:
        value = float(seconds)
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(seconds, bool) or not value > 0:
        raise ValueError(f"{task_id}: {name}={seconds!r} must be a number of seconds above 0, or None: no limit")
    return value


def command(manifest: Manifest) -> list[str]:
    """The program that worker processes of this plugin run, and its first arguments."""
    if manifest.guest:
        return list(manifest.guest)
    if manifest.needs_python:
        if not sys.executable or not os.access(sys.executable, os.X_OK):
            return []  # an embedded interpreter: only threads
        return [sys.executable, "-I", "-S", "-c", _BARE, library()]
    return [_installed("envpool-worker")]


def library() -> str:
    """The shared library that makes a program a worker process."""
    return _installed("libenvpool_worker.so")


def _installed(name: str) -> str:
    import envpool_sdk

    places = [Path(place, name) for place in envpool_sdk.__path__]
    return str(next((place for place in places if place.is_file()), places[0]))


def log_to_python() -> None:
    """Sends what plugins log, and what worker processes print, to the logger "envpool_sdk"."""
    set_log_sink(_LOG.log)
