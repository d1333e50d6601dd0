"""Proves that a plugin keeps the promises of envpool/env.h.

Each check runs in a process of its own and drives the plugin's C functions itself, without the pool: `check_plugin` runs
them and gives a report; the command ``envpool-sdk check`` prints it; `envpool_sdk.testing` makes each a test of pytest.

| module | what it is |
| --- | --- |
| `abi`, `promise` | the structs of the headers; where a header promises what |
| `memory`, `host`, `engine`, `spec`, `options` | memory with guards; the host; the plugin, its fields and options |
| `play`, `process` | random play and its comparison; what belongs to the process |
| `checks/` | the checks, a module for each group |
| `catalog`, `run`, `finding` | what a check is, what it is given, how it fails |
| `zygote`, `runner`, `report`, `table` | a process for each check; the order of them; what came of them; printed |
| `target`, `command` | what the user names; the command |

Here, and in all that checks import, nothing of the rest of envpool_sdk may be imported: see `zygote`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envpool_sdk.check.report import Report

__all__ = ["check_plugin"]


def check_plugin(
    name: str | os.PathLike[str],
    tasks: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    only: Iterable[str] = (),
    seed: int = 0,
) -> Report:
    """Runs the checks of a plugin.

    Args:
        name: the path of its library, or an id of an installed package.
        tasks: ids; none: the one that the name is, or all of the library.
        options: values of the tasks' options.
        only: which checks: ids, groups or patterns such as "memory.*"; none: all.
        seed: of all that is random in checks.

    Raises:
        ValueError: there is no such file, id, or check.
    """
    from envpool_sdk.check.runner import Checker
    from envpool_sdk.check.target import find_target

    with Checker(find_target(name, tasks), options, seed) as checker:
        return checker.run(only)
