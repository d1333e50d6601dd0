"""What the README shows is what there is: its programs run, its example is the one in examples/, built as it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import envpool_sdk

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with walk.so, built against the installed package as any project elsewhere would be."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    folder = tmp_path_factory.mktemp("walk")
    for command in (
        ["cmake", "-S", ROOT / "examples/walk", "-B", folder, f"-DCMAKE_PREFIX_PATH={envpool_sdk.get_cmake_dir()}"],
        ["cmake", "--build", folder],
    ):
        process = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr
    return folder


def test_example_is_quoted_whole() -> None:
    assert blocks("cpp") == [(ROOT / "examples/walk/walk.cpp").read_text()]
    assert blocks("cmake") == [(ROOT / "examples/walk/CMakeLists.txt").read_text()]


@pytest.mark.parametrize("program", blocks("python"), ids=lambda program: re.sub(r"\W+", "-", program)[:40])
def test_program_runs(program: str, built: Path) -> None:
    if re.search(r"(Pong|Breakout)-v5", program):
        pytest.importorskip("envpool_atari")
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=built, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr


def test_plugin_exports_only_its_entry(built: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("there is no nm (binutils)")
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", built / "walk.so"], capture_output=True, text=True, check=True
    )
    assert [line.split()[-1] for line in listing.stdout.splitlines()] == ["envpool_plugin_v1"]


def test_paths_exist() -> None:
    for path in re.findall(r"`((?:docs|envs|examples|reference|scripts|sdk)/[\w./-]*)", README):
        assert (ROOT / path).exists(), path
