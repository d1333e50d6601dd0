"""What the hooks of all three templates do: check the answers, add what is common to all languages, print the next steps.

The hooks run this with the interpreter that runs cookiecutter. Nothing here needs a network.
"""

from __future__ import annotations

import keyword
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cookiecutter.generate import generate_files
from slugify import slugify

COMMON = Path(__file__).resolve().parent
TAKEN = {"gymnasium", "numpy", "pytest", "scikit_build_core"}
"""Packages that the generated one uses."""


def check(answers: Mapping[str, Any]) -> None:
    """Says what is wrong with the answers, and how to do better, and exits; cookiecutter then removes the directory."""
    problems = list(problems_of(answers))
    if problems:
        print("\nNothing was generated:", file=sys.stderr)
        sys.exit("\n".join(f"  - {problem}" for problem in problems))


def problems_of(answers: Mapping[str, Any]) -> Iterator[str]:
    for name in ("project_name", "author", "description"):
        text = answers[name]
        if not text.strip() or not text.isprintable() or '"' in text or "\\" in text:
            yield f"{name} {text!r}: must be a line of text without double quotes and backslashes."
    if "," in answers["author"]:
        yield f"author {answers['author']!r}: must be one name, without commas."
    package = answers["package_name"]
    fault = fault_of_package(package)
    if fault:
        yield f"package_name {package!r}: {fault}. Try {suggest_package(package)!r}."
    task_id = answers["env_id"]
    if not is_task_id(task_id):
        name = "".join(word[:1].upper() + word[1:] for word in slugify(task_id, lowercase=False).split("-"))
        name = re.sub(r"V\d+$", "", name) or "Game"
        yield (
            f"env_id {task_id!r}: must be letters, digits, '_', '-' and '.', and end in -v<number>,"
            f" as Gymnasium wants it. Try '{name}-v0'."
        )
    players = answers["players"]
    if players not in {str(n) for n in range(1, 9)}:
        yield f"players {players!r}: must be a number from 1 to 8."


def fault_of_package(name: str) -> str | None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.endswith("_"):
        return "must be lower-case letters, digits and '_', begin with a letter and not end in '_'"
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        return "is a keyword of Python"
    if name in sys.stdlib_module_names:
        return "is a module of Python's standard library"
    if name.startswith("envpool"):
        return "names that begin with 'envpool' are those of envpool and envpool-sdk"
    if name in TAKEN:
        return "is a package that this one will use"
    return None


def suggest_package(name: str) -> str:
    """A package name that is allowed and much like this one."""
    plain = slugify(name, separator="_").removeprefix("envpool").strip("_")
    return plain if fault_of_package(plain) is None else f"env_{plain or 'game'}"


def is_task_id(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*-v(0|[1-9][0-9]*)", name) is not None


def complete(answers: Mapping[str, Any]) -> None:
    """Adds the common files and copies of the SDK's to the package in the working directory; prints the next steps."""
    here = Path.cwd()
    generate_files(
        COMMON,
        {"cookiecutter": dict(answers)},
        output_dir=here.parent,
        overwrite_if_exists=True,  # the directory that the language's template has begun
        skip_if_file_exists=True,
        accept_hooks=False,
    )
    copy_sdk(here / "sdk", cmake=answers["_language"] != "rust")
    task_id = answers["env_id"]
    # A hook runs in the package's directory; PWD is still that of the user's shell.
    shell = Path(os.environ.get("PWD", here.parent))
    shown = here.relative_to(shell) if here.is_relative_to(shell) else here
    print(
        f"\n{here.name} is there: {answers['project_name']}, the environment envpool/{task_id}. Next:\n\n"
        f"  cd {shlex.quote(str(shown))}\n"
        f"  pip install .                  # or, to work on it: pip install --no-build-isolation -e .\n"
        f"  pip install pytest && pytest   # among its tests: envpool-sdk check {task_id}\n\n"
        f"Then replace the game in src/ by your engine; README.md says how."
    )


def copy_sdk(to: Path, cmake: bool) -> None:
    """Copies the headers, and what CMake needs, from the clone or the wheel that these templates are in."""
    root = COMMON.parent.parent
    headers = next(path for path in (root / "sdk/include", root / "include") if path.is_dir())
    shutil.copytree(headers, to / "include")
    if cmake:
        (to / "cmake").mkdir()
        for name in ("EnvpoolSdkPlugin.cmake", "plugin.map"):
            shutil.copyfile(root / "cmake" / name, to / "cmake" / name)
