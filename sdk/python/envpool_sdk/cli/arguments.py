"""Arguments that several commands share, and how their texts become values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import envpool_sdk
from envpool_sdk import registry
from envpool_sdk.making import Setup

Task = Annotated[str, typer.Argument(metavar="ID", help="The task: Pong-v5, or envpool/Pong-v5.", show_default=False)]

Libraries = Annotated[
    list[Path],
    typer.Option(
        "--plugin", "-p", metavar="FILE", help="A plugin library to load first. May be repeated.", show_default=False
    ),
]

Options = Annotated[
    list[str],
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the task or a transform, e.g. frame_skip=4. May be repeated.",
        show_default=False,
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

_WORDS = {"true": True, "false": False, "none": None}


def setup(task_id: str, libraries: Sequence[Path], given: Sequence[str], maker: Callable[..., Any]) -> Setup:
    """The task with these options, its plugin loaded.

    Raises:
        ValueError: no such task or option (names the nearest), or a library is no plugin.
        typer.BadParameter: an option is not NAME=VALUE.
    """
    for library in libraries:
        envpool_sdk.load_plugin(library)
    entry = registry.find(task_id)
    task = registry.load(entry.manifest).tasks.get(entry.task.id)
    types = {option["name"]: option["type"] for option in task["options"]} if task else {}
    return Setup.of(maker, task_id, parse(given, types))


def parse(given: Sequence[str], types: dict[str, str]) -> dict[str, Any]:
    """Options from texts "name=value".

    Args:
        given: the texts.
        types: of the options that the task declares, by name. The values of those that hold text are taken as they
            stand; others are JSON, or true, false and none in any case, or else text.

    Raises:
        typer.BadParameter: a text is not name=value, or a name comes twice.
    """
    return {
        name: value if types.get(name) in ("string", "path", "json") else _value(value)
        for name, value in pairs(given, "--option").items()
    }


def pairs(given: Sequence[str], flag: str) -> dict[str, str]:
    """Names and texts from "name=text". Raises typer.BadParameter: one is no such pair, or a name comes twice."""
    texts: dict[str, str] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=flag)
        if name in texts:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint=flag)
        texts[name] = text
    return texts


def must_have_directory(file: Path, flag: str) -> None:
    """Raises typer.BadParameter: the file can't be written, since its directory does not exist."""
    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {str(file.parent)!r}", param_hint=flag)


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
