"""All commands under one name, and what becomes of their errors."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import envpool_sdk
from envpool_sdk import _native
from envpool_sdk.check.command import check
from envpool_sdk.cli.bench import bench
from envpool_sdk.cli.doctor import doctor
from envpool_sdk.cli.new import new
from envpool_sdk.cli.play import play
from envpool_sdk.cli.tasks import info, list_tasks


class Commands(TyperGroup):
    """Bad input and failing envs end a command with one line on stderr and code 1, not with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, envpool_sdk.EnvError, ImportError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    name="envpool-sdk",
    help="Batches of reinforcement-learning environments: look at them, measure, play and check them, make new ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        major, minor = _native.ABI_VERSION
        typer.echo(f"envpool-sdk {envpool_sdk.__version__} (ABI {major}.{minor})")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


app.command("list")(list_tasks)
app.command()(info)
app.command()(bench)
app.command()(play)
app.command()(check)
app.command()(new)
app.command()(doctor)
