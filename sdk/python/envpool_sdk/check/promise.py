"""Finds in the installed headers where something is promised."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HEADERS = ("env.h", "ext/agents.h", "ext/batch.h", "ext/render.h", "ext/state.h")


@dataclass(frozen=True)
class Promise:
    """A line of a header."""

    header: str
    """ "envpool/env.h"."""
    line: int
    words: str
    """The member or the words that were looked for."""

    def __str__(self) -> str:
        return f"{self.header}:{self.line} ({self.words})"


@cache
def include_directory() -> Path:
    """Where the headers are: installed in the package, or in the source tree."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / "include", package.parent.parent / "include"):
        if (place / "envpool" / "env.h").is_file():
            return place
    import envpool_sdk

    return Path(envpool_sdk.get_include())


@cache
def _lines(header: str) -> tuple[str, ...]:
    return tuple((include_directory() / "envpool" / header).read_text().splitlines())


@cache
def locate(words: str) -> Promise:
    """The line that declares a struct ("ep_view"), a member ("ep_task.step"), a constant, or that holds these words.

    Raises:
        LookupError: no header has it.
    """
    struct, _, member = words.partition(".") if re.fullmatch(r"ep_\w+(\.\w+)?", words) else ("", "", "")
    for header in HEADERS:
        lines = _lines(header)
        line = _line_of_member(lines, struct, member) if struct else _line_of_words(lines, words)
        if line:
            return Promise(f"envpool/{header}", line, words)
    raise LookupError(f"no header promises {words!r}")


def _line_of_member(lines: tuple[str, ...], struct: str, member: str) -> int:
    begin = next((i for i, text in enumerate(lines) if re.match(rf"(typedef )?struct {struct} {{", text)), None)
    if begin is None:
        return next((i + 1 for i, text in enumerate(lines) if re.match(rf"typedef .*\b{struct};", text)), 0)
    if not member:
        return begin + 1
    for i in range(begin, len(lines)):
        code = re.sub(r"/\*.*", "", lines[i])
        if re.search(rf"\b{member}\)?[;,(]", code) or re.search(rf"\b{member}\b.*;", code):
            return i + 1
        if lines[i].startswith("}"):
            break
    return 0


def _line_of_words(lines: tuple[str, ...], words: str) -> int:
    return next((i + 1 for i, text in enumerate(lines) if words in text), 0)
