"""Each template, with each choice of observation, action, players and sharing, gives a package that builds, whose own tests
pass, and whose sources are as the tools want them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from generated_package import LANGUAGES, ROOT, Project

from envpool_sdk import new

Generate = Callable[..., Project]

# An orthogonal array: every pair of choices of any two questions occurs.
CHOICES = [
    ("vector", "discrete", "1", "free", "MIT"),
    ("vector", "continuous", "2", "one thread", "BSD-3-Clause"),
    ("vector", "multi-discrete", "8", "own process", "Apache-2.0"),
    ("image", "discrete", "2", "own process", "Proprietary"),
    ("image", "continuous", "8", "free", "Apache-2.0"),
    ("image", "multi-discrete", "1", "one thread", "MIT"),
    ("dict", "discrete", "8", "one thread", "BSD-3-Clause"),
    ("dict", "continuous", "1", "own process", "Proprietary"),
    ("dict", "multi-discrete", "2", "free", "MIT"),
]
QUESTIONS = ("observation", "action", "players", "sharing", "license")
ORDINARY = {("cpp", 0), ("c", 4), ("rust", 8)}  # one of each language; the others with --all


@pytest.mark.parametrize(
    ("language", "choices"),
    [
        pytest.param(language, choices, marks=() if (language, row) in ORDINARY else pytest.mark.full)
        for language in LANGUAGES
        for row, choices in enumerate(CHOICES)
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[:4]).replace(" ", "_"),
)
def test_package(generate: Generate, language: str, choices: tuple[str, ...]) -> None:
    project = generate(language, project_name="Try It", **dict(zip(QUESTIONS, choices, strict=True)))
    project.install("-v")
    output = project.must(["python", "-m", "pytest", "-q", "-W", "error"])
    passed = re.search(r"\b(\d+) passed", output)
    assert passed, output
    assert int(passed[1]) > 100, output  # its own, and a check each
    symbols = project.must(["nm", "-D", "--defined-only", project.library]) if shutil.which("nm") else ""
    assert {line.split()[-1] for line in symbols.splitlines()} <= {"envpool_plugin_v1"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_sources_are_well_formatted(language: str, tmp_path: Path) -> None:
    """The formatters and linters have nothing to say, with this project's settings, whatever was chosen."""
    pytest.importorskip("cookiecutter")
    made = []
    for row, choices in enumerate(CHOICES):
        answers = {"project_name": "Try It", **dict(zip(QUESTIONS, choices, strict=True))}
        made.append(new.create(language, answers, directory=tmp_path / str(row)))
    sources = [path for project in made for path in (*project.glob("src/*.[ch]*"), project / "tests/play.c")]
    commands = [
        ["ruff", "check", "--config", ROOT / "pyproject.toml", tmp_path],
        ["ruff", "format", "--diff", "--config", ROOT / "pyproject.toml", tmp_path],
        ["clang-format", f"--style=file:{ROOT / '.clang-format'}", "--dry-run", "-Werror", *sources],
    ]
    if language == "rust" and shutil.which("rustfmt"):
        commands.append(["rustfmt", "--check", "--edition", "2021", *(project / "src/lib.rs" for project in made)])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.parametrize("language", LANGUAGES)
def test_from_clone_to_tested(generate: Generate, language: str) -> None:
    """As its author would: with pip's isolation, which fetches the build backend. It is to take less than two minutes."""
    project = generate(language)
    start = time.monotonic()
    done = project.run(["python", "-m", "pip", "install", "--no-deps", "."], PIP_NO_INDEX="0")
    if "No matching distribution" in done.stderr or "ConnectionError" in done.stderr:
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    project.must(["python", "-m", "pytest", "-q"])  # the pytest of the PATH may be that of another environment
    print(f"{language}: {time.monotonic() - start:.0f} s")


@pytest.mark.parametrize("language", ["cpp", *(pytest.param(name, marks=pytest.mark.full) for name in ("c", "rust"))])
def test_edit_and_run_again(generate: Generate, language: str) -> None:
    project = generate(language)
    project.install("-e")
    program = "import envpool_sdk; envs = envpool_sdk.make('GridChase-v0', seed=1); envs.reset(); print(envs.step([0])[4]['coins'])"
    assert project.must(["python", "-W", "error", "-c", program]).split() == ["[0]"]

    source, was, becomes = {
        "cpp": ("src/env.cpp", "v.put(f.coins, p.coins)", "v.put(f.coins, p.coins + 41)"),
        "c": ("src/env.c", "= p->coins;", "= p->coins + 41;"),
        "rust": ("src/lib.rs", "&[player.coins]", "&[player.coins + 41]"),
    }[language]
    text = (project.path / source).read_text()
    assert was in text
    (project.path / source).write_text(text.replace(was, becomes))
    assert project.must(["python", "-W", "error", "-c", program]).split() == ["[41]"]


def with_sanitizers(language: str, preset: str) -> bool:
    return language != "rust" or preset == "debug"


@pytest.mark.parametrize(
    ("language", "preset"),
    [
        pytest.param(
            language, preset, marks=() if (language, preset) in {("cpp", "asan"), ("c", "tsan")} else pytest.mark.full
        )
        for language in LANGUAGES
        for preset in ("debug", "asan", "tsan")
        if with_sanitizers(language, preset)
    ],
)
def test_presets(generate: Generate, language: str, preset: str) -> None:
    project = generate(language, observation="image", players="2")
    project.must(["cmake", "--preset", preset, "-G", "Ninja"])
    project.must(["cmake", "--build", "--preset", preset])
    # A ThreadSanitizer that is older than the kernel does not bear its randomness.
    unshuffled = ["setarch", "-R"] if preset == "tsan" and shutil.which("setarch") else []
    project.must([*unshuffled, "ctest", "--preset", preset])
    assert (project.path / "build" / preset / "compile_commands.json").is_file()


def test_wheel_is_for_every_python(generate: Generate, tmp_path: Path) -> None:
    project = generate("c")
    project.must(["python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "wheels", "."])
    [wheel] = (tmp_path / "wheels").glob("*.whl")
    assert re.fullmatch(r"grid_chase-0\.1\.0-py3-none-\w+\.whl", wheel.name)
    # Case: a wheel in an environment that never saw the sources.
    fresh = tmp_path / "fresh"
    venv.create(fresh, symlinks=True)
    [own] = fresh.glob("lib/python*/site-packages")
    shutil.copy(next(project.home.glob("lib/python*/site-packages/parent.pth")), own)
    elsewhere = Project(tmp_path, fresh)
    elsewhere.must(["python", "-m", "pip", "install", "--no-deps", wheel])
    shutil.rmtree(project.path)
    elsewhere.must(["python", "-W", "error", "-c", "import envpool_sdk; envpool_sdk.make('GridChase-v0').reset()"])


def test_another_library_may_be_named(generate: Generate) -> None:
    project = generate("c")
    project.install()
    installed = project.library
    other = project.path / "other.so"
    shutil.move(installed, other)
    program = "import envpool_sdk; envpool_sdk.make('GridChase-v0').reset()"
    assert "grid_chase.so is missing" in project.run(["python", "-c", program]).stderr
    project.must(["python", "-W", "error", "-c", program], GRID_CHASE_LIBRARY=os.fspath(other))
