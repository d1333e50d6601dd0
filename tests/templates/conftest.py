"""What the tests of the templates share: generating a package, installing it, running its tests.

Each package has a virtual environment of its own, which sees everything that this one has installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the tests import the module beside them

from generated_package import ROOT, Project


@pytest.fixture(scope="session")
def cookiecutter(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs cookiecutter without questions: cookiecutter(directory, *arguments, answer="...")."""
    pytest.importorskip("cookiecutter")
    config = tmp_path_factory.mktemp("cookiecutter") / "config.yml"
    config.write_text(f"replay_dir: {config.parent}\n")  # not the home directory

    def run(directory: Path, *arguments: str, **answers: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cookiecutter", "--config-file", config, "--no-input", "-o", directory, ROOT]
        command += [*arguments, *(f"{name}={answer}" for name, answer in answers.items())]
        # A network that is not there: nothing may want one.
        env = os.environ | {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        words = [str(word) for word in command]
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def generate(tmp_path: Path, cookiecutter: Callable[..., Any]) -> Callable[..., Project]:
    """Generates a package: generate("rust", project_name="Pong"). Skips what can't be built here."""

    def run(language: str, **answers: str) -> Project:
        for program in {"cpp": ("cmake", "c++"), "c": ("cmake", "cc"), "rust": ("cmake", "cc", "cargo")}[language]:
            if shutil.which(program) is None:
                pytest.skip(f"there is no {program}")
        before = set(tmp_path.iterdir())
        done = cookiecutter(tmp_path, "--directory", f"templates/{language}", **answers)
        assert done.returncode == 0, done.stdout + done.stderr
        [path] = set(tmp_path.iterdir()) - before
        home = tmp_path / f"venv-{path.name}"
        venv.create(home, symlinks=True)
        [own] = home.glob("lib/python*/site-packages")
        (own / "parent.pth").write_text(sysconfig.get_path("purelib") + "\n")
        return Project(path, home)

    return run
