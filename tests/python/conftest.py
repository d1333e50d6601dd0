"""What the Python tests share: the reference plugins, an exact comparison, and what a process must not leave behind."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envpool_sdk
from envpool_sdk import gym_face

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def plugins() -> Path:
    """The directory of the reference plugins; scripts/test builds them."""
    directory = Path(os.environ.get("ENVPOOL_REFERENCE_DIR", ROOT / "build/release/reference"))
    if not any(directory.glob("*.so")):
        pytest.skip(f"no reference plugins in {directory}: scripts/test builds them")
    return directory


@pytest.fixture(scope="session", autouse=True)
def tasks(plugins: Path) -> None:
    """Registers the tasks of the good reference plugins."""
    for name in ("cartpole_cpp", "kitchen_sink", "multi_agent", "evil"):
        envpool_sdk.load_plugin(plugins / f"{name}.so")


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    """Asserts that two results are alike in structure, types, dtypes, shapes and every bit."""
    return _same


def _same(one: Any, other: Any, where: str = "", ignore: frozenset[str] = frozenset()) -> None:
    assert type(one) is type(other), f"{where}: {type(one)} and {type(other)}"
    if isinstance(one, dict):
        assert one.keys() == other.keys(), f"{where}: {sorted(one)} and {sorted(other)}"
        for key in one.keys() - ignore:
            _same(one[key], other[key], f"{where}/{key}", ignore)
    elif isinstance(one, (tuple, list)):
        assert len(one) == len(other), f"{where}: {len(one)} and {len(other)} entries"
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            _same(a, b, f"{where}/{i}", ignore)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), (
            f"{where}: {one.dtype}{one.shape} and {other.dtype}{other.shape}"
        )
        if one.dtype == object:
            for i, (a, b) in enumerate(zip(one, other, strict=True)):
                _same(a, b, f"{where}[{i}]", ignore)
        else:
            np.testing.assert_array_equal(one, other, err_msg=where, strict=True)
    else:
        assert one == other or (one != one and other != other), f"{where}: {one!r} and {other!r}"  # NaN is alike


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in an interpreter of its own: run_python(code, name="value of an environment variable")."""

    def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        if "PYTHONPATH" in variables and "PYTHONPATH" in os.environ:
            variables["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
        return subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def gym() -> types.ModuleType:
    return pytest.importorskip("gym", reason="needs the package gym")


@pytest.fixture
def old_gym(gym: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The installed gym, which says that it is 0.23.1; docs/dev/compat.md tells how to install the real one."""
    monkeypatch.setattr(gym, "__version__", "0.23.1")
    gym_face.pool_class.cache_clear()
    yield gym
    gym_face.pool_class.cache_clear()


@pytest.fixture(scope="session")
def keeper(tasks: None) -> None:
    """Starts the thread that looks after worker processes; it stays as long as the process."""
    envpool_sdk.make("Counter-v0", isolation="process").close()


@pytest.fixture
def no_leaks(keeper: None) -> Iterator[None]:
    """After the test no process, descriptor, thread, mapping or name in /dev/shm is left that was not there before."""
    before = _belongings()
    yield
    end = time.monotonic() + 5
    while (left := _belongings() - before) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left


def _belongings() -> Counter[str]:
    gc.collect()
    found: Counter[str] = Counter()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of listdir itself
            found["descriptor of " + os.readlink(f"/proc/self/fd/{fd}").split(":")[0]] += 1
    for thread in os.listdir("/proc/self/task"):
        found["thread"] += 1
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended
            found.update(f"process {pid}" for pid in Path(f"/proc/self/task/{thread}/children").read_text().split())
    found["mapping"] = Path("/proc/self/maps").read_text().count("memfd:envpool")
    found.update(f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if "envpool" in name)  # others use it too
    return found
