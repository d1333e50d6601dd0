"""Makes .venv in the clone and installs this tree into it: the SDK and every engine package under envs/.

Standard library only: it runs before there is a virtual environment. What is up to date is left alone, told by a hash of
the sources that each part was built from. Run as a program it prepares .venv for the dependency groups named.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older interpreter is just what this is about
    sys.exit(
        f"envpool-sdk needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. "
        "Set PYTHON to a newer interpreter."
    )

import argparse
import hashlib
import os
import shutil
import subprocess
import sysconfig
import time
import tomllib
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
ENGINE_LIBRARIES = VENV / "engine-libraries"
"""Where `install_engine_libraries` puts wheels: not in site-packages, where pip would miss what their Python part depends on."""
_STAMPS = VENV / "envpool-sdk"
_SKIPPED_FOLDERS = {"build", "dist", "__pycache__", "tests", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


class SetupError(Exception):
    """A step of the set-up failed; the message says which and shows what the tool said."""


def environment() -> dict[str, str]:
    """The environment in which the tools run: .venv first, as many compile jobs as this process may use CPUs."""
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', '')}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env.pop("PYTHONHOME", None)
    return env


def run(title: str, command: Sequence[str | Path], cwd: Path = ROOT) -> None:
    """Runs a command that talks much. On a terminal its latest line is shown while it runs; all of it if it fails."""
    log_path = _STAMPS / "log" / (title.replace(" ", "-").replace("/", "-") + ".txt")
    log_path.parent.mkdir(parents=True, exist_ok=True)
    live = sys.stdout.isatty()
    start = time.monotonic()
    if not live:
        print(f"{title} ...", flush=True)
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            while True:
                try:
                    process.wait(timeout=0.25 if live else None)
                    break
                except subprocess.TimeoutExpired:
                    width = shutil.get_terminal_size().columns - 1
                    line = f"{title} {time.monotonic() - start:4.0f} s  {_last_line(log_path)}"
                    print(f"\r\x1b[K{line[:width]}", end="", flush=True)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    took = time.monotonic() - start
    if live:
        print("\r\x1b[K", end="")
    if process.returncode:
        text = log_path.read_text(errors="replace")
        words = " ".join(str(word) for word in command)
        raise SetupError(f"{text}\n{title}: failed with code {process.returncode}: {words}")
    print(f"{title}: {took:.0f} s" if live else f"{title}: done in {took:.0f} s", flush=True)


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def hash_of(paths: Iterable[Path], *extra: str) -> str:
    """A hash over files (and all files under folders), their names and the extra texts."""
    digest = hashlib.sha256()
    for text in extra:
        digest.update(f"{text}\0".encode())
    for path in sorted(paths):
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            relative = file.relative_to(ROOT)
            skipped = _SKIPPED_FOLDERS.intersection(relative.parts) and relative.parts[0] != "templates"
            if file.suffix != ".so" and not skipped:
                digest.update(f"{relative}\0{file.stat().st_size}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


class _Stamp:
    """Remembers with which hash a part was last finished."""

    def __init__(self, name: str, value: str) -> None:
        self._path = _STAMPS / f"{name}.stamp"
        self._value = value

    def fresh(self) -> bool:
        return self._path.is_file() and self._path.read_text() == self._value

    def write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(self._value)


def requirements(groups: Iterable[str]) -> list[str]:
    """The requirements in these dependency groups of pyproject.toml."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    found: list[str] = []
    for group in groups:
        for entry in table[group]:
            found += requirements([entry["include-group"]]) if isinstance(entry, dict) else [entry]
    return list(dict.fromkeys(found))


def engine_packages() -> list[Path]:
    return sorted(path.parent for path in ROOT.glob("envs/*/pyproject.toml"))


def make_venv() -> None:
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", "import pip"], capture_output=True).returncode == 0:
        return
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.is_file():
        raise SetupError(
            f"{header} is missing: the Python module can't be compiled. On Debian and Ubuntu: apt-get install python3-dev"
        )
    if not any(map(shutil.which, filter(None, [os.environ.get("CXX"), "c++", "g++", "clang++"]))):
        raise SetupError("there is no C++ compiler. On Debian and Ubuntu: apt-get install g++")
    print(f"making {VENV} with Python {sys.version.split()[0]}", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    # Not run(): its log would stand in the folder that this makes, and Python's own message is clear.
    if subprocess.run([sys.executable, "-m", "venv", VENV]).returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupError("no virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv")


def install_requirements(groups: Sequence[str]) -> None:
    wanted = requirements(["build", *groups])
    stamp = _Stamp("requirements-" + "-".join(groups), hash_of([], *wanted))
    if not stamp.fresh():
        run("install " + ", ".join(["build tools", *groups]), [PYTHON, "-m", "pip", "install", *wanted])
        stamp.write()


def install_engine_libraries() -> None:
    """Puts the wheels of the dependency group "engine-libraries" into the folder ENGINE_LIBRARIES, without what they depend on."""
    wanted = requirements(["engine-libraries"])
    stamp = _Stamp("engine-libraries", hash_of([], *wanted))
    if not stamp.fresh():
        shutil.rmtree(ENGINE_LIBRARIES, ignore_errors=True)
        # Only their shared libraries are used, so the wheel of one Python will do for all.
        pip = [str(PYTHON), "-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--python-version=3.11"]
        run("install engine libraries", [*pip, f"--target={ENGINE_LIBRARIES}", *wanted])
        stamp.write()


def _install_wheel(title: str, source: Path, stamp: _Stamp) -> None:
    folder = ROOT / "dist" / source.name if source != ROOT else ROOT / "dist" / "sdk"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(PYTHON), "-m", "pip"]
    run(
        f"build {title}",
        [*pip, "wheel", "-v", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", str(source)],
    )
    (wheel,) = folder.glob("*.whl")
    # Forced, since an older build has the same version; then once more for what the wheel depends on.
    run(f"install {title}", [*pip, "install", "--no-deps", "--force-reinstall", str(wheel)])
    run(f"install what {title} depends on", [*pip, "install", str(wheel)])
    stamp.write()


def install_packages(engines: Container[str] | None = None) -> None:
    """Builds and installs the wheels of the SDK and of the engine packages (none named: all) whose sources changed."""
    sdk = [
        ROOT / name
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "cmake", "sdk", "templates")
    ]
    stamp = _Stamp("envpool-sdk", hash_of(sdk))
    if not stamp.fresh():
        _install_wheel("envpool-sdk", ROOT, stamp)
    for package in engine_packages():
        if engines is not None and package.name not in engines:
            continue
        stamp = _Stamp(f"envpool-{package.name}", hash_of([package, ROOT / "sdk" / "include", ROOT / "cmake"]))
        if not stamp.fresh():
            _install_wheel(f"envpool-{package.name}", package, stamp)


def prepare(groups: Sequence[str], engines: Container[str] | None = None) -> None:
    """All of it: .venv with the tools, the dependency groups, the SDK and the engine packages (none named: all)."""
    make_venv()
    install_requirements(groups)
    if "test" in groups:
        install_engine_libraries()
    install_packages(engines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="bootstrap.py", description=__doc__)
    parser.add_argument("groups", nargs="*", help="dependency groups of pyproject.toml")
    parser.add_argument("--engine", action="append", help="only this package under envs/ (may be repeated)")
    arguments = parser.parse_args()
    try:
        prepare(arguments.groups, arguments.engine)
    except SetupError as failure:
        sys.exit(str(failure))
