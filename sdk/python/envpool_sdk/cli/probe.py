"""Loads the library of a known task in a process of its own, for doctor: python -m envpool_sdk.cli.probe ID.

Prints JSON: the plugin's name, version and ABI, and for each of its tasks "" or why it can't be described; or "error".
"""

from __future__ import annotations

import json
import sys
from typing import Any

from envpool_sdk import EnvError, facade, registry


def probe(task_id: str) -> dict[str, Any]:
    manifest = registry.find(task_id).manifest
    try:
        plugin = registry.load(manifest)
    except Exception as error:  # an asset function is the package's own code
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "name": plugin.name,
        "version": plugin.version,
        "abi": plugin.abi,
        "tasks": {task.id: _flaw(task.id) for task in manifest.tasks},
    }


def _flaw(task_id: str) -> str:
    try:
        facade.make_spec(task_id)
    except (ValueError, EnvError) as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1])))
