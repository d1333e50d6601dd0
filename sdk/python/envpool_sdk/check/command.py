"""The command `envpool-sdk check`."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from envpool_sdk.check.catalog import all_checks
from envpool_sdk.check.promise import locate
from envpool_sdk.check.report import Report, Result
from envpool_sdk.check.runner import Checker
from envpool_sdk.check.table import show
from envpool_sdk.check.target import find_target
from envpool_sdk.cli import arguments


def check(
    plugin: Annotated[
        str | None, typer.Argument(help="A plugin library, or an id of an installed package.", metavar="PLUGIN")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task. May be repeated.", metavar="ID")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="The value of an option. May be repeated.", metavar="NAME=VALUE"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help='Only these checks: an id, a group, a pattern ("memory.*"). May be repeated.', metavar="CHECK"
        ),
    ] = None,
    reproduce: Annotated[
        int | None, typer.Option(help="The seed of a report: makes every random choice as it was.", metavar="SEED")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write the report as JUnit XML.", metavar="FILE")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line for each check.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds after which a check is taken for hung.", min=1)] = 60,
    jobs: Annotated[int, typer.Option(help="Checks that run at once; 0: one a CPU.", min=0)] = 0,
    list_checks: Annotated[bool, typer.Option("--list", help="List the checks and stop.")] = False,
) -> None:
    """Check that a plugin keeps the promises of envpool/env.h.

    Each check runs in a process of its own, so that a crash, a hang or a leak is one failure among others. Ends with 0 if
    nothing failed, 1 if something did, 2 if it could not be checked.

    Example: `envpool-sdk check build/my_game.so --option size=7 --only memory`
    """
    out, err = Console(), Console(stderr=True)
    if list_checks:
        for one in all_checks().values():
            out.print(f"{one.id:28} {one.title} [{locate(one.promise)}]", markup=False, highlight=False, soft_wrap=True)
        return
    if junit:
        arguments.must_have_directory(junit, "--junit")
    try:
        if plugin is None:
            raise ValueError("name a plugin library or an id; see envpool-sdk check --help")
        report = _run(
            plugin, task or [], arguments.pairs(option or [], "--option"), only or [], reproduce, timeout, jobs, err
        )
    except ValueError as error:
        err.print(f"envpool-sdk check: {error}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    if junit:
        junit.write_text(report.to_junit())
    if as_json:
        sys.stdout.write(report.to_json() + "\n")
    else:
        show(report, out, verbose)
    raise typer.Exit(0 if report.ok else 1)


def _run(
    plugin: str,
    tasks: list[str],
    options: dict[str, str],
    only: list[str],
    reproduce: int | None,
    timeout: float,
    jobs: int,
    console: Console,
) -> Report:
    """Runs the checks, showing on a terminal how far they are."""
    target = find_target(plugin, tasks)
    seed = secrets.randbelow(1 << 31) if reproduce is None else reproduce
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress, Checker(target, options, seed, timeout, jobs) as checker:
        bar, done = progress.add_task("checking"), 0

        def tell(result: Result) -> None:
            nonlocal done
            done += 1
            progress.update(bar, description=f"{done} done, last {result.check} {result.task}: {result.outcome}")

        return checker.run(only, tell)
