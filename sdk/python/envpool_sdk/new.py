"""Begins a package for an engine, from the templates that ship with the SDK, by cookiecutter (the extra ``new``).

What the questions are and which answers are allowed stands in the templates: envpool_sdk/templates.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import envpool_sdk
from envpool_sdk.registry import nearest

LANGUAGES = ("cpp", "c", "rust")


def templates() -> Path:
    """The directory of the templates; with its cookiecutter.json it is one that cookiecutter takes."""
    return Path(envpool_sdk._installed("templates"))


def questions(language: str = "cpp") -> dict[str, Any]:
    """The questions and their default answers; a list holds the choices, the default first.

    Raises:
        ValueError: an unknown language.
        ImportError: cookiecutter is not installed.
    """
    asked: dict[str, Any] = json.loads((_template(language) / "cookiecutter.json").read_text())
    with _cookiecutter():
        from cookiecutter.prompt import prompt_for_config
    answered = prompt_for_config({"cookiecutter": asked}, no_input=True)  # some defaults are made of other answers
    return {
        name: default if isinstance(default, list) else answered[name]
        for name, default in asked.items()
        if not name.startswith("_")
    }


def create(
    language: str = "cpp",
    answers: Mapping[str, str] | None = None,
    *,
    directory: str | os.PathLike[str] = ".",
    ask: bool = False,
) -> Path:
    """Generates a package, and prints what to do next.

    Args:
        language: of the engine: "cpp", "c" or "rust".
        answers: to the `questions`; the others have their defaults.
        directory: where the package's own directory is made.
        ask: asks for the answers, on the terminal, with the given ones as defaults.

    Returns:
        The directory that was made.

    Raises:
        ValueError: an unknown language or question, an answer that is not allowed, or the directory exists. Nothing was
            made then.
        ImportError: cookiecutter is not installed.
    """
    template = _template(language)
    answers = dict(answers or {})
    known = questions(language)
    for name in answers:
        if name not in known:
            raise ValueError(f"there is no question {name!r}. {nearest(name, known)}")
    with _cookiecutter():
        from cookiecutter.exceptions import CookiecutterException, FailedHookException, OutputDirExistsException
        from cookiecutter.main import cookiecutter
    # A hook that refuses an answer has said why: cookiecutter's traceback of it would hide that.
    logging.getLogger("cookiecutter").addHandler(logging.NullHandler())
    try:
        made = cookiecutter(
            str(template),
            no_input=not ask,
            extra_context=answers,
            output_dir=os.fspath(directory),
            default_config=not ask,
        )
    except FailedHookException:
        raise ValueError("the answers above are not allowed: nothing was made") from None
    except OutputDirExistsException as error:
        raise ValueError(str(error).removeprefix("Error: ")) from None
    except (CookiecutterException, ValueError) as error:
        raise ValueError(str(error)) from None
    return Path(made)


@contextmanager
def _cookiecutter() -> Iterator[None]:
    """Around imports of it: says what to install if it is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"a new package needs {error.name}: pip install 'envpool-sdk[new]'") from None


def _template(language: str) -> Path:
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    return templates() / language
