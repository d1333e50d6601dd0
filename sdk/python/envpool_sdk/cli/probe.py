"""Loads the library of a known task in a process of its own, for doctor: python -m envpool_sdk.cli.probe ID.

Prints JSON: the plugin's name, version and ABI; "broken": why tasks of it can't be described; "unfinished": which ones can't
without options of the user's, and why; or "error".
"""

from __future__ import annotations

import json
import sys
from typing import Any

from envpool_sdk import EnvError, PluginError, makers, registry


def probe(task_id: str) -> dict[str, Any]:
    manifest = registry.find(task_id).manifest
    try:
        plugin = registry.load(manifest)
    except Exception as error:  # an asset function is the package's own code
        return {"error": f"{type(error).__name__}: {error}"}
    broken: list[str] = []
    unfinished: list[str] = []
    for task in manifest.tasks:
        try:
            makers.make_spec(task.id)
        except (ValueError, EnvError) as error:
            # A complaint about one of its options: it wants to be given a value.
            names = [option["name"] for option in plugin.tasks[task.id]["options"]] if task.id in plugin.tasks else []
            wants = not isinstance(error, (PluginError, EnvError)) and any(name in str(error) for name in names)
            (unfinished if wants else broken).append(str(error))
    return {
        "name": plugin.name,
        "version": plugin.version,
        "abi": plugin.abi,
        "broken": broken,
        "unfinished": unfinished,
    }


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1])))
