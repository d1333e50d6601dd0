"""What the documentation shows is what there is: every code block of the READMEs and of docs/ is run.

A page is worked through from top to bottom in a directory of its own. A block with a title (```c title="catch.c") is
written to that file; ``console`` blocks are run by bash, and what they show must come out, where a line "..." stands for
any lines and "..." within a line for any text; ``python`` blocks are programs. A block after the comment
``<!-- not run: why -->`` is left alone, and no other block may be: it would be there to read only. One after
``<!-- needs: torch -->`` is run with the long sweeps, by itself: that package is too large for every day.

pip and python are those of a virtual environment made for the tests, which sees what is installed here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import envpool_sdk

markdown_it = pytest.importorskip("markdown_it")

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("envs/*/README.md")])
if find_spec("ray") is None:  # which has an environment of its own: scripts/test ray
    PAGES.remove(ROOT / "docs/distributed.md")
NEEDS = {"rust": "cargo", "c": "gcc", "cpp": "g++", "cmake": "cmake"}
"""Programs without which a page can't be worked through, by the language of its blocks."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    not_run: str
    """Why it is not run; "": it is."""
    needs: str
    """A package that only the long sweeps have; "": none."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    not_run = needs = ""
    for token in markdown_it.MarkdownIt().parse(page.read_text()):
        if token.type == "html_block":
            comment = re.search(r"<!-- not run: (.+?) -->", token.content, re.DOTALL)
            not_run = comment[1] if comment else ""
            package = re.search(r"<!-- needs: (\w+) -->", token.content)
            needs = package[1] if package else ""
        elif token.type == "fence":
            language, _, attributes = token.info.strip().partition(" ")
            title = re.search(r'title="([^"]+)"', attributes)
            yield Block(page, token.map[0] + 1, language, title[1] if title else "", token.content, not_run, needs)
            not_run = needs = ""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which a page's commands run: a virtual environment that sees what is installed here."""
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    (site / "installed_here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    for name, module in {"pip": "pip", "envpool-sdk": "envpool_sdk", "pytest": "pytest"}.items():
        script = place / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{python}" -P -m {module} "$@"\n')
        script.chmod(0o755)
    # Nothing is fetched: what a package is built with is installed here too.
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "CARGO_NET_OFFLINE": "true"}
    path = os.pathsep.join([str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    drop = {"ENVPOOL_PLUGIN_PATH", "PYTHONPATH", "PYTHONHOME"}
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return (
        kept
        | offline
        | {"PATH": path, "VIRTUAL_ENV": str(place), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "COLUMNS": "120"}
    )


def run(block: Block, command: list[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, f"{block}: {command[-1]}\n{done.stdout}{done.stderr}"
    return done.stdout


def console(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it prints."""
    command, printed, open_ended = "", [], False
    for line in text.splitlines():
        if open_ended or line.startswith("$ "):
            if not open_ended:
                if command:
                    yield command, printed
                command, printed = "", []
            command += line.removeprefix("$ ") + "\n"
            open_ended = line.endswith("\\")
        else:
            printed.append(line)
    if command:
        yield command, printed


def shows(printed: list[str], output: str) -> bool:
    """Whether the output is what a page shows of it."""
    pattern = ""
    for line in printed:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"\s*" + ".*?".join(map(re.escape, line.strip().split("..."))) + r"\s*?\n"
    return re.fullmatch(pattern, output if output.endswith("\n") else output + "\n") is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_does_what_it_shows(page: Path, tmp_path: Path, commands: dict[str, str]) -> None:
    todo = [block for block in blocks(page) if not block.not_run and not block.needs]
    for block in todo:
        if shutil.which(NEEDS.get(block.language, "sh")) is None:
            pytest.skip(f"there is no {NEEDS[block.language]}")
        if re.search(r"(Pong|Breakout)-v5", block.text):
            pytest.importorskip("envpool_atari")
        if "import jax" in block.text:
            pytest.importorskip("jax")
    if page.parts[-3] == "envs":
        pytest.importorskip(f"envpool_{page.parts[-2]}")
    for block in todo:
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.language == "console":
            pairs = list(console(block.text))
            assert pairs, f"{block}: has no line that begins with '$ '"
            for command, printed in pairs:
                output = run(block, ["bash", "-euo", "pipefail", "-c", command], tmp_path, commands)
                assert not printed or shows(printed, output), f"{block}: {command}prints\n{output}"
        elif block.language == "python":
            run(block, ["python", "-W", "error", "-c", block.text], tmp_path, commands)
        else:
            pytest.fail(f"{block}: a block of {block.language or 'no language'} that nothing runs")


@pytest.mark.full
def test_blocks_that_need_large_packages(tmp_path: Path, commands: dict[str, str]) -> None:
    todo = [block for page in PAGES for block in blocks(page) if block.needs]
    assert todo
    pytest.importorskip("envpool_atari")
    for block in todo:
        pytest.importorskip(block.needs)
        run(block, ["python", "-W", "error", "-c", block.text], tmp_path, commands)


def test_examples_are_quoted_whole() -> None:
    quoted = {block.title: block.text for block in blocks(ROOT / "README.md") if block.title}
    assert quoted == {name: (ROOT / "examples/walk" / name).read_text() for name in ("walk.cpp", "CMakeLists.txt")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page: Path) -> None:
    """Files that a page names in `code` are there, in this tree or in the page's own folder."""
    for path in re.findall(
        r"`((?:docs|envs|examples|reference|scripts|sdk|templates|tests)/[\w./*-]*)", page.read_text()
    ):
        assert any(any(folder.glob(path.rstrip("/"))) for folder in (ROOT, page.parent)), path


def test_example_exports_only_its_entry(tmp_path: Path) -> None:
    if not (shutil.which("nm") and shutil.which("cmake")):
        pytest.skip("there is no nm (binutils) or no cmake")
    source = ROOT / "examples/walk"
    for command in (
        ["cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={envpool_sdk.get_cmake_dir()}"],
        ["cmake", "--build", tmp_path],
    ):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", tmp_path / "walk.so"], capture_output=True, text=True, check=True
    )
    assert [line.split()[-1] for line in listing.stdout.splitlines()] == ["envpool_plugin_v1"]
