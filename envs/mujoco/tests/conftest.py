"""Lets the tests import the modules beside them, and leaves them out where what they need is not installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if not all(find_spec(name) for name in ("mujoco", "dm_control", "envpool_mujoco")):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory of the test's own: MuJoCo's Python bindings write MUJOCO_LOG.TXT there when they warn."""
    monkeypatch.chdir(tmp_path)
