"""A generated package and its virtual environment, and where the templates are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
LANGUAGES = ("cpp", "c", "rust")


@dataclass(frozen=True)
class Project:
    """A generated package and its virtual environment."""

    path: Path
    home: Path

    @property
    def library(self) -> Path:
        """The installed plugin."""
        [path] = self.home.glob("lib/python*/site-packages/*/*.so")
        return path

    def run(self, command: Sequence[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in the package's directory, with its virtual environment first in the PATH."""
        programs = os.pathsep.join([str(self.home / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        env = os.environ | {"PATH": programs, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"} | variables
        env.pop("PYTHONPATH", None)
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=self.path, env=env, capture_output=True, text=True, timeout=300)

    def must(self, command: Sequence[str | Path], **variables: str) -> str:
        """As run(), which has to succeed; gives what was printed."""
        done = self.run(command, **variables)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def install(self, *arguments: str) -> None:
        self.must(["python", "-m", "pip", "install", "--no-deps", "--no-build-isolation", *arguments, "."])
