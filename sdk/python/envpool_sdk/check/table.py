"""Prints a report as tables."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from envpool_sdk.check.report import Report, Result

_STYLES = {"passed": "green", "failed": "bold red", "skipped": "dim", "blocked": "yellow"}


def show(report: Report, console: Console, everything: bool = False) -> None:
    """Prints a table with a line for each group of checks (with `everything` for each check), and each failure whole."""
    for task in dict.fromkeys(result.task for result in report.results):
        results = [result for result in report.results if result.task == task]
        table = _details(results) if everything else _groups(results)
        table.title = escape(task or f"plugin {report.plugin}")
        console.print(table)
    for result in report.failed:
        console.print(f"[bold red]failed[/] [bold]{escape(result.task)}[/]", highlight=False)
        console.print(result.message(), markup=False, highlight=False, soft_wrap=True)
    for result in report.results:
        if result.outcome == "passed" and result.remark:
            console.print(f"note, {result.check}: {result.remark}", markup=False, highlight=False, soft_wrap=True)
    counts = ", ".join(f"{n} {word}" for word, n in report.counts().items() if n or word in ("passed", "failed"))
    style = "bold green" if report.ok else "bold red"
    console.print(f"[{style}]{counts}[/] in {report.seconds:.1f} s, seed {report.seed}", highlight=False)


def _groups(results: list[Result]) -> Table:
    table = Table("group", *(f"[{style}]{word}[/]" for word, style in _STYLES.items()), "seconds")
    for group in dict.fromkeys(result.check.split(".")[0] for result in results):
        members = [result for result in results if result.check.startswith(f"{group}.")]
        counts = [sum(result.outcome == word for result in members) for word in _STYLES]
        cells = [f"[{s}]{n}[/]" if n else "" for n, s in zip(counts, _STYLES.values(), strict=True)]
        table.add_row(group, *cells, f"{sum(result.seconds for result in members):.2f}")
    return table


def _details(results: list[Result]) -> Table:
    table = Table("check", "outcome", "what must hold", "seconds")
    for result in results:
        why = f"\n[dim]{escape(result.remark)}[/]" if result.remark else ""
        outcome = f"[{_STYLES[result.outcome]}]{result.outcome}[/]"
        table.add_row(result.check, outcome, escape(result.title) + why, f"{result.seconds:.2f}")
    return table
