"""What can go wrong with an engine, and that it is told, stays in its env and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from doom_originals import SCENARIOS

import envpool_sdk

SHARED = Path("/dev/shm")


def engines(pid: int | None = None) -> list[psutil.Process]:
    """The engines of a process in the order of their making."""
    found = [p for p in psutil.Process(pid).children() if p.name() == "vizdoom"]
    return sorted(found, key=lambda p: (p.create_time(), p.pid))


def names() -> set[str]:
    return {p.name for p in SHARED.iterdir() if p.name.startswith("ViZDoom")}


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file, shared memory or process is there after a test that was not there before."""
    before = names()
    monkeypatch.chdir(tmp_path)
    yield
    assert not engines()
    assert names() <= before
    assert not list(tmp_path.iterdir())


def make(num_envs: int = 4, **options: Any) -> Any:
    return envpool_sdk.make("DoomBasic-v1", num_envs=num_envs, seed=1, **options)


def faults(info: dict[str, Any]) -> dict[int, str]:
    """What failed in a step, by env."""
    return {i: text for i, text in enumerate(info.get("fault", ())) if text is not None}


def test_a_killed_engine_costs_its_episode_and_nothing_else() -> None:
    envs, peers = make(), make()
    envs.reset()
    victim = engines()[2]
    peers.reset()
    actions = np.zeros(4, np.int64)
    victim.kill()
    obs, _, terminated, truncated, info = envs.step(actions)
    want = peers.step(actions)[0]
    [(env_id, text)] = faults(info).items()
    assert f"the Doom engine (process {victim.pid}) was killed by signal 9" in text
    assert list(truncated) == [i == env_id for i in range(4)]
    assert not terminated.any()
    for i in np.flatnonzero(~truncated):
        np.testing.assert_array_equal(obs[i], want[i])
    info = envs.step(actions)[4]  # the env is made anew
    assert info["elapsed_step"][env_id] == 0
    assert not faults(info)
    assert not envs.step(actions)[3].any()
    assert len(engines()) == 8
    envs.close()
    peers.close()


def test_a_hanging_engine_is_killed() -> None:
    envs = make(2, engine_timeout=1.0)
    envs.reset()
    engines()[0].send_signal(signal.SIGSTOP)
    truncated, info = envs.step(np.zeros(2, np.int64))[3:]
    assert truncated.sum() == 1
    [text] = faults(info).values()
    assert "did not answer within 1 s (engine_timeout)" in text
    assert not envs.step(np.zeros(2, np.int64))[3].any()
    envs.close()


@pytest.mark.parametrize(
    ("task_id", "options", "said"),
    [
        ("DoomCustom-v1", {}, "cfg_path"),
        ("DoomCustom-v1", {"cfg_path": "missing.cfg"}, "no scenario file .*missing.cfg"),
        ("DoomBasic-v1", {"wad_path": "missing.wad"}, "no WAD file .*missing.wad"),
        ("DoomBasic-v1", {"wad_path": str(SCENARIOS / "basic.cfg")}, "no WAD file: it begins with neither"),
        ("DoomBasic-v1", {"map_id": "map77"}, 'no map "map77"'),
        ("DoomBasic-v1", {"config": {"living_rewart": 1}}, 'no setting "living_rewart"'),
        ("DoomBasic-v1", {"config": {"doom_skill": 9}}, "doom_skill = 9: must be an integer, 1 to 5"),
        ("DoomBasic-v1", {"config": {"available_buttons": ["FIRE"]}}, 'no button "FIRE"; there are ATTACK, '),
        ("DoomBasic-v1", {"config": {"available_buttons": []}}, "nothing to do"),
        ("DoomBasic-v1", {"buffers": "depth,sound"}, 'no "sound"; there are depth'),
        ("DoomBasic-v1", {"screen_resolution": "80x60"}, "must be WxH, 160x120 to 3840x2160"),
        ("DoomBasic-v1", {"reward_config": {"HEALTH": 1}}, r'reward_config\["HEALTH"\] must be two numbers'),
        ("DoomBasic-v1", {"reward_config": {"WEALTH": [1, 1]}}, 'no game variable "WEALTH"'),
        ("DoomBasic-v1", {"frame_skip": 0}, "frame_skip"),
        ("Doom-v1", {"scenario": "basics"}, "no scenario file"),
    ],
)
def test_bad_options(task_id: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, envpool_sdk.EnvError), match=said):
        envpool_sdk.make(task_id, **options)


def test_a_scenario_file_with_a_mistake_names_the_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    cfg = tmp_path_factory.mktemp("scenarios") / "mine.cfg"
    cfg.write_text("doom_scenario_path = basic.wad\n\navailable_buttons = { ATTACK\n  JUMPS }\n")
    with pytest.raises(ValueError, match=r'mine.cfg:3: there is no button "JUMPS"'):
        envpool_sdk.make("DoomCustom-v1", cfg_path=str(cfg))


def test_an_engine_that_cannot_start_says_why(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A WAD with nothing but the name of a map passes for a game until the engine looks into it."""
    wad = tmp_path_factory.mktemp("wads") / "empty.wad"
    wad.write_bytes(b"IWAD" + struct.pack("<II", 1, 12) + struct.pack("<II8s", 12, 0, b"MAP01"))
    envs = make(1, iwad_path=str(wad))
    with pytest.raises(envpool_sdk.EnvError, match=r"env 0: .*the Doom engine \(process \d+\) exited with code 1"):
        envs.reset()
    envs.close()


PARENT = """
import sys, time
import envpool_sdk, numpy as np
envs = envpool_sdk.make("DoomBasic-v1", num_envs=4, seed=1)
envs.reset()
print("up", flush=True)
while True:
    envs.step(np.zeros(4, np.int64))
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_engines_die_with_their_parent(by: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    children = engines(parent.pid)
    assert len(children) == 4
    parent.send_signal(by)
    parent.wait(10)
    parent.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


STARTER = """
import envpool_sdk
print("up", flush=True)
envpool_sdk.make("DoomBasic-v1", num_envs=12, seed=1).reset()
"""


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.4])
def test_killed_while_engines_start(delay: float) -> None:
    """Names of shared memory are gone soon after, though nobody was left to remove them."""
    before = names()
    parent = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"up\n"
    time.sleep(delay)
    children = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait(10)
    parent.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
    deadline = time.monotonic() + 5
    while not names() <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert names() <= before


def kill_at_random(num_envs: int, steps: int, kills: int) -> None:
    """Engines are killed while all step; the envs go on, and nothing but the envs of killed engines fails."""
    envs = make(num_envs, max_faults=10 * kills)
    envs.reset()
    random = np.random.default_rng(0)
    due = set(random.choice(steps, kills, replace=False).tolist())
    count = 0
    for step in range(steps + 1):
        if step in due:
            victims = [p for p in engines() if p.status() != psutil.STATUS_ZOMBIE]
            os.kill(victims[random.integers(len(victims))].pid, signal.SIGKILL)
        _, _, _, truncated, info = envs.step(random.integers(4, size=num_envs))
        assert set(faults(info)) <= set(np.flatnonzero(truncated).tolist())
        count += len(faults(info))
    assert count == kills
    envs.close()


def test_random_kills() -> None:
    kill_at_random(num_envs=8, steps=150, kills=12)


@pytest.mark.full
def test_random_kills_at_length() -> None:
    kill_at_random(num_envs=16, steps=625, kills=100)


LITTLE_SHARED_MEMORY = """
import envpool_sdk
envs = envpool_sdk.make("DoomBasic-v1", num_envs=2)
try:
    envs.reset()
except envpool_sdk.EnvError as error:
    print(error)
envs.close()
"""


@pytest.mark.parametrize("size", ["4k", "64k"])
def test_no_room_in_shared_memory(size: str) -> None:
    """Neither for the queues (4k), nor for what the engine itself makes there (64k): it is told, and nothing hangs."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("AddressSanitizer, which the engine inherits, hangs at its SIGBUS")
    smaller = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*smaller, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a smaller /dev/shm")
    program = [*smaller, sys.executable, "-c", LITTLE_SHARED_MEMORY]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "is /dev/shm full? In a container: --shm-size" in done.stdout
