"""envpool-sdk new: begins a package for an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envpool_sdk.cli import arguments


def new(
    language: Annotated[
        str, typer.Argument(metavar="LANGUAGE", help="What the engine is written in: cpp, c or rust.")
    ] = "cpp",
    answer: Annotated[
        list[str],
        typer.Option(
            "--answer", "-a", metavar="QUESTION=ANSWER", help="Answer beforehand. May be repeated.", show_default=False
        ),
    ] = [],  # noqa: B006
    directory: Annotated[
        Path, typer.Option("--directory", "-d", metavar="DIRECTORY", help="Where the package's own directory is made.")
    ] = Path(),
    ask: Annotated[bool, typer.Option("--ask/--no-input", help="Ask the questions, or take the defaults.")] = True,
    questions: Annotated[bool, typer.Option("--questions", help="List the questions and stop.")] = False,
) -> None:
    """Begin an environment package: a small game in your language, to be replaced by yours, with build, tests and CI.

    Needs the package cookiecutter.

    Example: `envpool-sdk new rust --no-input --answer project_name="Tin Soldiers"`
    """
    import envpool_sdk.new as maker

    if questions:
        for name, default in maker.questions(language).items():
            choices = isinstance(default, list)
            typer.echo(f"{name}: {', '.join(default) if choices else default}")
        return
    maker.create(language, arguments.pairs(answer, "--answer"), directory=directory, ask=ask)
