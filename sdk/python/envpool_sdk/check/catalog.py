"""The checks: what each is called, what it promises, and what has to hold before it says anything."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envpool_sdk.check.run import Run

GROUPS = (
    "load",
    "abi",
    "spec",
    "options",
    "memory",
    "values",
    "lifecycle",
    "determinism",
    "state",
    "batch",
    "render",
    "resources",
)


@dataclass(frozen=True)
class Check:
    """One check."""

    id: str
    """ "memory.written": its group and its name."""
    title: str
    """What must hold, a sentence."""
    promise: str
    """Where the headers promise it: a member ("ep_view.obs"), or words of a comment. See `promise.locate`."""
    after: tuple[str, ...]
    """The checks that must have passed: otherwise this one would only tell the same again."""
    function: Callable[[Run], None]
    per_plugin: bool
    """It looks at the library, not at a task."""

    @property
    def group(self) -> str:
        return self.id.split(".")[0]


_checks: dict[str, Check] = {}


def check(
    id_: str, promise: str, after: str = "", per_plugin: bool = False, title: str = ""
) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Enters a function as a check. Without a title, its docstring's first line is the title; `after` names checks, with
    spaces between."""

    def enter(function: Callable[[Run], None]) -> Callable[[Run], None]:
        what = title or (function.__doc__ or "").split("\n")[0].rstrip(".")
        _checks[id_] = Check(id_, what, promise, tuple(after.split()), function, per_plugin)
        return function

    return enter


def all_checks() -> dict[str, Check]:
    """All checks by id, group by group."""
    for group in GROUPS:
        importlib.import_module(f"envpool_sdk.check.checks.{group}")
    return dict(sorted(_checks.items(), key=lambda item: GROUPS.index(item[1].group)))


def chosen(only: Iterable[str]) -> list[Check]:
    """The checks that these words name: an id, a group, or a pattern like "memory.guard*"; all if there are none.

    Raises:
        ValueError: a word names no check.
    """
    checks = all_checks()
    words = list(only)
    names: set[str] = set()
    for word in words:
        found = {id_ for id_ in checks if fnmatch.fnmatch(id_, word) or id_.startswith(f"{word}.")}
        if not found:
            raise ValueError(f"no check is called {word!r}; groups: {', '.join(GROUPS)}; see --list")
        names |= found
    return [one for id_, one in checks.items() if not words or id_ in names]
