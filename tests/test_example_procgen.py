"""examples/procgen: an engine that nobody here wrote, played in lockstep with its own library.

Needs Procgen's library: scripts/test puts it into .venv/engine-libraries, which has to be in PYTHONPATH.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk

EXAMPLE = Path(__file__).parents[1] / "examples/procgen"


def manifest_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("libenv_procgen_plugin", EXAMPLE / "python/libenv_procgen/plugin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PACKAGE = manifest_module()
GAMES: tuple[str, ...] = PACKAGE.GAMES
FILES: dict[str, str] = PACKAGE.procgen()

pytestmark = [
    pytest.mark.skipif(not FILES, reason="there is no library of Procgen: scripts/test installs it on Linux x86-64"),
    pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed"),
]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The example, built against the installed SDK and registered."""
    build = tmp_path_factory.mktemp("procgen")
    sdk = f"-Denvpool_sdk_DIR={envpool_sdk.get_cmake_dir()}"
    subprocess.run(["cmake", "-S", EXAMPLE, "-B", build, sdk, "-DCMAKE_CXX_FLAGS=-Werror"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIBENV_PROCGEN_LIBRARY", str(build / "libenv_procgen.so"))
        ids = tuple(f"procgen-{game}-v0" for game in GAMES)
        if ids[0] not in envpool_sdk.list_all_envs():  # else the package is installed too
            envpool_sdk.register(PACKAGE.manifest())
        yield ids


class Oracle:
    """One game of Procgen's library, called as gym3 calls it."""

    class Option(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char * 128),
            ("dtype", ctypes.c_int),
            ("count", ctypes.c_int),
            ("data", ctypes.c_void_p),
        )

    class Options(ctypes.Structure):
        _fields_ = (("items", ctypes.c_void_p), ("count", ctypes.c_int))

    class Buffers(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_void_p) for name in ("obs", "reward", "first", "info", "action"))

    def __init__(self, game: str, seed: int, **changed: Any) -> None:
        self.lib = ctypes.CDLL(FILES["procgen library"])
        self.lib.libenv_make.restype = ctypes.c_void_p
        options: dict[str, Any] = {
            "env_name": game,
            "resource_root": FILES["procgen pictures"],
            "rand_seed": seed,
            "num_actions": 15,
            "num_threads": 0,
            "debug_mode": 0,
            "render_human": False,
            "distribution_mode": 1,
            "num_levels": 0,
            "start_level": 0,
            "use_sequential_levels": False,
            "center_agent": True,
            "use_backgrounds": True,
            "use_monochrome_assets": False,
            "restrict_themes": False,
            "use_generated_assets": False,
            "paint_vel_info": False,
            **changed,
        }
        self.values = [self._array(value) for value in options.values()]  # kept: the options point to them
        self.options = (self.Option * len(options))()
        for option, name, value in zip(self.options, options, self.values, strict=True):
            option.name = name.encode()
            option.dtype = 1 if value.dtype == np.uint8 else 2
            option.count = value.size
            option.data = value.ctypes.data
        made = self.lib.libenv_make(1, self.Options(ctypes.addressof(self.options), len(options)))
        self.handle = ctypes.c_void_p(made)

        self.picture = np.zeros((64, 64, 3), np.uint8)
        self.action, self.reward, self.first = np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(1, np.uint8)
        # In the order of the library's tensors: prev_level_seed, prev_level_complete, level_seed.
        self.info = np.zeros(3, np.int32)
        self.pointers = [
            np.array([self.picture.ctypes.data], np.uintp),
            self.info.ctypes.data + 4 * np.arange(3, dtype=np.uintp),
            np.array([self.action.ctypes.data], np.uintp),
        ]
        obs, info, action = (pointers.ctypes.data for pointers in self.pointers)
        self.buffers = self.Buffers(obs, self.reward.ctypes.data, self.first.ctypes.data, info, action)
        self.lib.libenv_set_buffers(self.handle, ctypes.byref(self.buffers))
        self.lib.libenv_observe(self.handle)

    @staticmethod
    def _array(value: str | bool | int) -> np.ndarray:
        if isinstance(value, str):
            return np.frombuffer(value.encode(), np.uint8).copy()
        return np.array([value], np.uint8 if isinstance(value, bool) else np.int32)

    def play(self, action: int) -> None:
        self.action[0] = action
        self.lib.libenv_act(self.handle)
        self.lib.libenv_observe(self.handle)

    @property
    def level_seed(self) -> int:
        return int(self.info[2])

    @property
    def solved(self) -> bool:
        return bool(self.info.view(np.uint8)[4])

    def close(self) -> None:
        self.lib.libenv_close(self.handle)


def in_lockstep(game: str, seed: int, steps: int, distribution_mode: str, **options: Any) -> int:
    """Plays a game in both; how many episodes ended."""
    modes = {"easy": 0, "hard": 1}
    made = gymnasium.make(f"envpool/procgen-{game}-v0", distribution_mode=distribution_mode, **options)
    oracle = Oracle(game, seed, distribution_mode=modes[distribution_mode], **options)
    random, ends = np.random.default_rng(seed), 0
    with closing(made) as env, closing(oracle):
        seen, info = env.reset(seed=seed)
        for step in range(steps):
            assert np.array_equal(seen, oracle.picture), step
            assert info["level_seed"] == oracle.level_seed, step
            if step % 97 == 96:  # in the middle of an episode
                oracle.play(-1)
                seen, info = env.reset()
                continue
            action, before, level = int(random.integers(15)), oracle.picture.copy(), oracle.level_seed
            oracle.play(action)
            seen, reward, terminated, truncated, info = env.step(action)
            assert reward == oracle.reward[0], step
            assert (terminated, truncated) == (bool(oracle.first[0]), False), step
            assert info["level_complete"] == oracle.solved, step
            if terminated:
                # The engine never shows an episode's last picture: the one before it stands in.
                assert np.array_equal(seen, before), step
                assert info["level_seed"] == level, step
                seen, info = env.reset()
                ends += 1
    return ends


def test_plays_as_procgen_does(tasks: tuple[str, ...]) -> None:
    assert len(tasks) == 16
    ends = sum(in_lockstep(game, 3 + i, 300, ["easy", "hard"][i % 2]) for i, game in enumerate(GAMES))
    assert ends > 10


def test_options_reach_the_engine(tasks: tuple[str, ...]) -> None:
    for options in (
        {"num_levels": 2, "start_level": 40},
        {"use_sequential_levels": True},
        {"center_agent": False, "use_backgrounds": False},
        {"use_monochrome_assets": True, "restrict_themes": True},
        {"use_generated_assets": True, "paint_vel_info": True},
    ):
        in_lockstep("coinrun", 11, 100, "easy", **options)


def test_in_a_vector(tasks: tuple[str, ...]) -> None:
    def play(num_threads: int) -> list[np.ndarray]:
        made = gymnasium.make_vec(
            "envpool/procgen-starpilot-v0", num_envs=6, num_threads=num_threads, distribution_mode="easy"
        )
        with closing(made) as envs:
            envs.action_space.seed(1)
            seen, _ = envs.reset(seed=5)
            out = [seen.copy()]
            for _ in range(200):
                out += [np.copy(part) for part in envs.step(envs.action_space.sample())[:4]]
            assert seen in envs.observation_space
        assert np.any(out[3::4]), "no episode ended"
        return out

    assert all(np.array_equal(a, b) for a, b in zip(play(1), play(3), strict=True))


@pytest.mark.full
@pytest.mark.timeout(1200)  # a process for each check, and each loads all pictures
def test_the_checker_passes(tmp_path: Path) -> None:
    """The whole checker on one of the games, the example being installed as its README says."""
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("build"))
    pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--target", tmp_path / "site", tmp_path / "example"], check=True)
    path = [str(tmp_path / "site"), str(Path(FILES["procgen pictures"]).parents[2])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
    check = [sys.executable, "-m", "envpool_sdk", "check", "procgen-coinrun-v0", "--task", "procgen-coinrun-v0"]
    done = subprocess.run(check, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
