"""The checks of `envpool_sdk.check` as tests of pytest: one test a check.

In the tests of an engine package::

    from envpool_sdk.testing import conformance

    test_conformance = conformance("MyGame-v0", options={"size": 7})

gives ``test_conformance[memory.written]`` and so on. All that are selected run at the first of them, each in a process of
its own and as many at once as there are CPUs; the tests then tell what came of each. A check that has nothing to look at
(the task renders nothing) is skipped. What a failure says includes the command that repeats it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from envpool_sdk.check.catalog import chosen
from envpool_sdk.check.report import Result
from envpool_sdk.check.runner import Checker
from envpool_sdk.check.target import find_target

__all__ = ["conformance"]


def conformance(
    plugin: str | os.PathLike[str],
    *,
    tasks: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    only: Iterable[str] = (),
    seed: int = 0,
    timeout: float = 60,
) -> Callable[..., None]:
    """A test function with a parameter for each check.

    Args:
        plugin: an id of an installed package, or the path of a plugin library.
        tasks: ids; none: the one that the plugin is named by, or all of the library.
        options: values of the tasks' options, those that are required at least.
        only: which checks: ids, groups or patterns such as "memory.*"; none: all.
        seed: of all that is random in checks.
        timeout: seconds after which a check is taken for hung.

    Raises:
        ValueError: a word of `only` names no check.
    """
    results: dict[str, list[Result]] = {}

    def run(names: list[str]) -> None:
        with Checker(find_target(plugin, tasks), options, seed, timeout) as checker:
            for result in checker.run(names).results:
                results.setdefault(result.check, []).append(result)

    @pytest.mark.parametrize("check", [check.id for check in chosen(only)])
    def test(check: str, request: pytest.FixtureRequest) -> None:
        if check not in results:
            run(_selected(request) or [check])
        _tell(results[check])

    return test


def _selected(request: pytest.FixtureRequest) -> list[str]:
    """The checks of this test function that pytest was asked to run."""
    parent = request.node.originalname, request.node.parent
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    return [str(item.callspec.params["check"]) for item in items if (item.originalname, item.parent) == parent]


def _tell(results: list[Result]) -> None:
    """Ends the test as the check ended, of whichever task it was worst."""
    failed = [result for result in results if result.outcome == "failed"]
    if failed:
        pytest.fail("\n".join(f"{result.task} {result.message()}" for result in failed), pytrace=False)
    if not any(result.outcome == "passed" for result in results):
        pytest.skip("; ".join(dict.fromkeys(result.remark for result in results)))
