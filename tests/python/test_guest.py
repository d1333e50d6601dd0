"""Engines that are programs of their own (envpool/guest.h): reference/guest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import psutil
import pytest

import envpool_sdk


@pytest.fixture(scope="module")
def program(plugins: Path) -> str:
    return str(plugins / "lander_program")


@pytest.fixture(scope="module", autouse=True)
def lander(plugins: Path, program: str) -> None:
    envpool_sdk.load_plugin(plugins / "lander.so", guest=[program])


def workers(program: str) -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.name() == Path(program).name[:15]]


def test_each_env_is_a_process_of_the_guest(program: str) -> None:
    envs = gymnasium.make_vec("envpool/Lander-v0", num_envs=3)
    try:
        envs.reset(seed=1)
        assert len(workers(program)) == 3
    finally:
        envs.close()
    assert not workers(program)


def expected(seed: int, actions: list[int], fuel: int = 40) -> list[tuple[float, float, float]]:
    """The observations of the first episode by the rules of lander_program.c, in Python."""

    def random() -> float:
        nonlocal state
        mask = 2**64 - 1
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / 2**53

    state = seed
    height = 40.0 + 20.0 * random()
    speed = -2.0 + 2.0 * random()
    observations = [(height, speed, float(fuel))]
    for action in actions:
        thrust = action == 1 and fuel > 0
        fuel -= thrust
        speed += 0.2 if thrust else -0.1
        height += speed
        observations.append((height, speed, float(fuel)))
        if height <= 0:
            break
    return observations


@pytest.mark.parametrize("fuel", [3, 40])
def test_plays_by_its_own_rules(fuel: int) -> None:
    env = gymnasium.make("envpool/Lander-v0", fuel=fuel)
    try:
        actions = [1, 0, 0, 1, 1, 1, *[0] * 40]
        want = expected(7, actions, fuel)
        observation, info = env.reset(seed=7)
        got = [observation]
        terminated = False
        for action in actions:
            observation, reward, terminated, _, info = env.step(action)
            got.append(observation)
            if terminated:
                break
        assert terminated
        assert reward == -100.0
        np.testing.assert_array_equal(np.array(got), np.array(want, np.float32))
        assert info["frames"] > 0
    finally:
        env.close()


def test_a_killed_guest_costs_one_episode(program: str) -> None:
    envs = envpool_sdk.make("Lander-v0", num_envs=2, seed=3)
    try:
        envs.reset()
        victim = workers(program)[0]
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait(10)
        *_, truncated, info = envs.step(np.zeros(2, np.int64))
        assert truncated.sum() == 1
        (message,) = [message for message in info["fault"] if message is not None]
        assert "signal 9" in message
        assert "Lander-v0, env " in message
        _, _, terminated, truncated, info = envs.step(np.zeros(2, np.int64))
        assert not terminated.any()
        assert not truncated.any()
        assert "fault" not in info
        assert sorted(info["elapsed_step"]) == [0, 2]
    finally:
        envs.close()


def test_threads_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Lander-v0: isolation='thread': this engine is a program of its own"):
        envpool_sdk.make("Lander-v0", isolation="thread")


def test_runs_without_a_host(program: str) -> None:
    done = subprocess.run([program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith("landed with speed")


def test_a_program_that_is_no_guest_is_named(plugins: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other.so"
    copy.write_bytes((plugins / "lander.so").read_bytes())
    code = (
        "import envpool_sdk, sys\n"
        "envpool_sdk.load_plugin(sys.argv[1], guest=['/bin/false'])\n"
        "try: envpool_sdk.make('Lander-v0')\n"
        "except envpool_sdk.EnvError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, copy], capture_output=True, text=True, timeout=60)
    assert "Lander-v0, env 0: create: its worker process exited with code 1" in done.stdout, done.stderr
