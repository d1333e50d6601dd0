"""Lets the tests import the modules beside them, and leaves them out where what they need is not installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

if not all(find_spec(name) for name in ("vizdoom", "envpool_vizdoom")):
    collect_ignore_glob = ["test_*.py"]
