"""Worker processes: what becomes of engines that crash, hang and misbehave, and of their neighbours."""

from __future__ import annotations

import ctypes
import locale
import logging
import os
import re
import resource
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk

pytestmark = pytest.mark.usefixtures("no_leaks")

BAD = 2**31 - 2
"""The action that tempts Evil-v0."""

DEATHS = {
    "segfault": r"was killed by signal 11 \(Segmentation fault\)",
    "abort": r"was killed by signal 6 \(Aborted\)",
    "exit": "exited with code 3",
    "quick_exit": "exited with code 0",
    "kill": r"was killed by signal 9 \(Killed\)",
    "throw": "evil: thrown across the boundary",
    "throw_int": r"was killed by signal 6 \(Aborted\)",
    "overflow_stack": r"was killed by signal 11 \(Segmentation fault\)",
}


def make(task: str = "Evil-v0", num_envs: int = 4, **options: Any) -> envpool_sdk.EnvPool:
    return envpool_sdk.make(task, num_envs=num_envs, **{"isolation": "process", **options})


def u64(value: int) -> int:
    return value & (2**64 - 1)


def respawn_seed(seed: int, env_id: int, respawns: int) -> int:
    """The seed of an env that was made anew, as the documentation has it: a hash of these three by splitmix64."""

    def mixed(word: int) -> int:
        z = u64(word + 0x9E3779B97F4A7C15)
        z = u64((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9)
        z = u64((z ^ (z >> 27)) * 0x94D049BB133111EB)
        return z ^ (z >> 31)

    # Each draw moves the state on by the constant, then the number drawn is the next state.
    return mixed(mixed(mixed(seed) ^ env_id) ^ respawns)


class Ledger:
    """Steps a pool of Evil-v0 with actions that are all different, and checks every row: each action sent was applied
    exactly once, or its row tells of a fault."""

    def __init__(self, env: envpool_sdk.EnvPool) -> None:
        self.env = env
        n = env.num_envs
        self.life = np.zeros(n, np.int64)  # steps since create
        self.episode = np.zeros(n, np.int64)  # steps since reset
        self.over = np.zeros(n, np.bool_)
        self.faults = 0
        self.sent = 0
        self.info: dict[str, Any] = {}
        if env.is_async:
            self.over[:] = True  # the first row of each is that of a reset
        else:
            obs, self.info = env.reset()
            assert (obs[:, 1:] == 0).all()

    def actions(self, count: int) -> np.ndarray[Any, Any]:
        actions = np.arange(self.sent, self.sent + count) % (BAD - 1) + 1
        self.sent += count
        return actions

    def step(self, bad: tuple[int, ...] = ()) -> dict[int, str]:
        """Steps all, with the bad action for some. The faults, by env."""
        actions = self.actions(self.env.num_envs)
        actions[list(bad)] = BAD
        return self.check(actions, self.env.step(actions))

    def check(self, actions: np.ndarray[Any, Any], row: Any) -> dict[int, str]:
        """Checks the rows of a batch; actions: of all envs. The faults, by env."""
        obs, reward, terminated, truncated, self.info = row
        ids = self.info["env_id"]
        messages = self.info.get("fault", np.full(len(ids), None))
        for i, env_id in enumerate(ids.tolist()):
            if messages[i] is not None:
                assert truncated[i]
                assert not terminated[i]
                assert reward[i] == 0
                assert (obs[i] == 0).all()
                assert f"env {env_id}:" in messages[i]
                self.life[env_id] = 0
                self.over[env_id] = True
                self.faults += 1
            elif self.over[env_id]:  # the reset by itself
                assert obs[i, 1:].tolist() == [self.life[env_id], 0, 0]
                assert not truncated[i]
                self.over[env_id] = False
                self.episode[env_id] = 0
            else:
                self.life[env_id] += 1
                self.episode[env_id] += 1
                assert obs[i, 1:].tolist() == [self.life[env_id], self.episode[env_id], actions[env_id]]
                assert reward[i] == np.float32(actions[env_id])
                assert self.info["elapsed_step"][i] == self.episode[env_id]
                self.over[env_id] = terminated[i]
        return {int(i): m for i, m in zip(ids, messages, strict=True) if m is not None}


# ---- crashes ----


def crash(evil: str, times: int, num_envs: int, **options: Any) -> None:
    """Has one env after the other do it; the others must not notice."""
    env = make(num_envs=num_envs, fault=evil, at_action=BAD, **options)
    ledger = Ledger(env)
    for i in range(times):
        victim = i % num_envs
        ledger.step()
        faults = ledger.step(bad=(victim,))
        assert list(faults) == [victim]
        assert re.search(DEATHS[evil], faults[victim]), faults[victim]
        assert ledger.step() == {}  # it is reset
        assert ledger.step() == {}
        assert ledger.info["elapsed_step"][victim] == 1
    assert ledger.faults == times
    assert env.faults[-1][0] == (times - 1) % num_envs
    env.close()


@pytest.mark.parametrize("evil", DEATHS)
def test_a_crash_costs_one_episode(evil: str) -> None:
    crash(evil, times=3, num_envs=3)


@pytest.mark.full
@pytest.mark.parametrize("evil", DEATHS)
def test_a_hundred_crashes(evil: str) -> None:
    crash(evil, times=100, num_envs=16)


def test_respawned_envs_have_seeds_of_their_own() -> None:
    env = make(num_envs=2, fault="segfault", at_action=BAD)
    obs, _ = env.reset(seed=[7, 8])
    assert obs[:, 0].tolist() == [7, 8]
    seed = 7
    for respawn in range(1, 4):
        env.step([BAD, 1])
        obs = env.step([1, 1])[0]
        seed = respawn_seed(seed, 0, respawn)
        assert u64(int(obs[0, 0])) == seed
        assert obs[1, 0] == 8
    env.step([BAD, 1])
    assert env.reset(seed=[5, 6])[0][:, 0].tolist() == [5, 6]


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_crash_in_every_autoreset_mode(mode: str) -> None:
    env = make(num_envs=2, fault="segfault", at_step=3, env_id=1, autoreset_mode=mode)
    env.reset()
    for t in (1, 2):
        assert env.step([t, t])[0][:, 2].tolist() == [t, t]
    obs, reward, terminated, truncated, info = env.step([5, 5])
    assert truncated.tolist() == [False, True]
    assert not terminated.any()
    assert reward.tolist() == [5, 0]
    assert "signal 11" in info["fault"][1]
    assert info["fault"][0] is None
    assert info["elapsed_step"].tolist() == [3, 0 if mode == "same_step" else 2]
    if mode == "same_step":
        assert info["_final_obs"].tolist() == [False, True]
        assert (info["final_obs"][1] == 0).all()
        assert obs[1, 1:].tolist() == [0, 0, 0]
        assert obs[1, 0] not in (0, 43)  # it began anew, with a seed of its own
        assert env.step([6, 6])[0][:, 3].tolist() == [6, 6]
    elif mode == "disabled":
        assert (obs[1] == 0).all()
        with pytest.raises(RuntimeError, match="env 1 is over and autoreset is disabled"):
            env.step([6, 6])
        assert env.step([6], [0])[0][0, 3] == 6
        assert env.reset([1])[0][0, 1:].tolist() == [0, 0, 0]
    else:
        assert (obs[1] == 0).all()
        assert env.step([6, 6])[0][:, 2].tolist() == [4, 0]


def test_a_crash_of_asynchronous_envs() -> None:
    env = make(num_envs=4, batch_size=2, fault="segfault", at_action=BAD)
    ledger = Ledger(env)
    env.async_reset()
    actions = np.zeros(4, np.int64)
    crashed = 0
    for i in range(200):
        row = env.recv()
        ledger.check(actions, row)
        ids = row[4]["env_id"]
        actions[ids] = ledger.actions(len(ids))
        if i % 20 == 19:
            actions[ids[0]] = BAD
            crashed += not ledger.over[ids[0]]
        env.send(actions[ids], ids)
    while env._pool.pending:
        ledger.check(actions, env.recv())
    assert ledger.faults == crashed > 5


def test_a_worker_killed_while_idle() -> None:
    """Each env of it tells so at its next step, without running."""
    env = make(num_envs=4, envs_per_worker=2)
    ledger = Ledger(env)
    ledger.step()
    pids = ledger.info["pid"]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    os.kill(int(pids[0]), signal.SIGKILL)
    time.sleep(0.2)
    faults = ledger.step()
    assert sorted(faults) == [0, 1]
    assert all("signal 9" in text for text in faults.values())
    assert ledger.step() == {}
    assert ledger.step() == {}
    # An episode that had ended is not lost.
    env.reset()
    os.kill(int(env.reset()[1]["pid"][2]), signal.SIGKILL)
    time.sleep(0.2)
    assert "fault" not in env.reset()[1]


def test_a_worker_killed_while_idle_in_same_step_mode() -> None:
    """As any episode's end in that mode: the final row tells, the row itself is the first of a new episode."""
    env = make(num_envs=2, autoreset_mode="same_step")
    env.reset()
    pids = env.step([3, 3])[4]["pid"]
    os.kill(int(pids[1]), signal.SIGKILL)
    time.sleep(0.2)
    obs, _, _, truncated, info = env.step([4, 4])
    assert truncated.tolist() == [False, True]
    assert "signal 9" in info["fault"][1]
    assert info["_final_obs"].tolist() == [False, True]
    assert obs[1, 1:].tolist() == [0, 0, 0]
    assert obs[1, 0] not in (0, 43)
    assert env.step([5, 5])[0][:, 1:].tolist() == [[3, 3, 5], [1, 1, 5]]


def test_envs_of_one_worker_die_together() -> None:
    env = make(num_envs=6, envs_per_worker=3, fault="segfault", at_action=BAD)
    ledger = Ledger(env)
    ledger.step()
    faults = ledger.step(bad=(1,))
    # What env 0 finished before the crash is finished; it is told of its lost episode at its next step.
    assert 1 in faults
    assert set(faults) <= {0, 1, 2}
    faults |= ledger.step()
    assert set(faults) == {0, 1, 2}
    for _ in range(3):
        assert ledger.step() == {}


@pytest.mark.parametrize("where", ["reset", "observe"])
def test_a_crash_in(where: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    env = make(num_envs=2, fault="segfault", where=where, at_step=2, env_id=1, while_exists=str(marker))
    ledger = Ledger(env)
    ledger.step()
    marker.touch()
    if where == "reset":
        _, info = env.reset()
        assert info["fault"][0] is None
        assert "signal 11" in info["fault"][1]
        marker.unlink()
        obs, _ = env.reset()
        assert (obs[:, 1:] == [[1, 0, 0], [0, 0, 0]]).all()
    else:
        assert list(ledger.step()) == [1]
        marker.unlink()
        assert ledger.step() == {}
        assert ledger.step() == {}
    assert len(env.faults) == 1


def test_a_reset_that_crashes_is_not_tried_with_the_same_seed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    env = make(num_envs=1, fault="segfault", where="reset", while_exists=str(marker))
    env.reset(seed=[7])
    for crashes in (1, 2):
        marker.touch()
        for _ in range(crashes):
            assert env.reset()[1]["fault"][0] is not None
        marker.unlink()
        seeds = respawn_seed(7, 0, 2), respawn_seed(respawn_seed(7, 0, 2), 0, 5)
        assert u64(int(env.reset()[0][0, 0])) == seeds[crashes - 1]


def test_a_crash_in_the_first_reset() -> None:
    env = make(num_envs=2, fault="segfault", where="reset", env_id=1)
    with pytest.raises(envpool_sdk.EnvError, match=r"Evil-v0, env 1: .*signal 11"):
        env.reset()
    assert env.reset([0])[1]["env_id"].tolist() == [0]


def test_a_crash_while_drawing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    env = make(num_envs=2, fault="segfault", where="draw", env_id=1, while_exists=str(marker), render_mode="rgb_array")
    ledger = Ledger(env)
    ledger.step()
    marker.touch()
    with pytest.raises(RuntimeError, match=r"env 1: .*signal 11"):
        env.render([1])
    picture = env.render([0])
    assert picture is not None
    assert (picture == 1).all()
    marker.unlink()
    assert list(ledger.step()) == [1]  # its episode is gone
    assert ledger.step() == {}


def test_a_crash_in_create(tmp_path: Path) -> None:
    with pytest.raises(envpool_sdk.EnvError, match=r"Evil-v0, env 2: create: .*signal 11"):
        make(fault="segfault", where="create", env_id=2)
    with pytest.raises(envpool_sdk.EnvError, match=r"Faulty-v0, env 1: .*faulty: failed in create"):
        make("Faulty-v0", fault="failed", where="create", env_id=1)
    # In a worker that was started anew: a fault of the reset that waits for it.
    marker = tmp_path / "marker"
    env = make(num_envs=2, fault="segfault", where="create", while_exists=str(marker), max_faults=20)
    ledger = Ledger(env)
    marker.touch()
    os.kill(int(ledger.info["pid"][0]), signal.SIGKILL)
    for _ in range(3):
        faults = ledger.step()
        assert list(faults) == [0]
    assert "signal 11" in faults[0]
    marker.unlink()
    for _ in range(3):
        ledger.step()
    assert ledger.step() == {}


def test_a_fault_that_the_engine_reports() -> None:
    """No process dies for it."""
    for isolation in ("thread", "process"):
        env = make("Faulty-v0", num_envs=2, fault="failed", at_step=2, env_id=1, isolation=isolation)
        env.reset()
        env.step([0, 0])
        assert env.step([0, 0])[4]["fault"][1] == "Faulty-v0, env 1: step: faulty: failed in step of env 1"
        assert env.faults == [(1, "Faulty-v0, env 1: step: faulty: failed in step of env 1")]


def test_the_fault_budget() -> None:
    env = make(num_envs=2, fault="segfault", at_action=BAD, max_faults=3)
    ledger = Ledger(env)
    for _ in range(3):
        assert list(ledger.step(bad=(0,))) == [0]
        ledger.step()
    with pytest.raises(envpool_sdk.EnvError, match=r"more than max_faults=3 faults; the last one: .*env 0"):
        ledger.step(bad=(0,))
    with pytest.raises(envpool_sdk.EnvError, match="max_faults=3"):
        env.step([1, 1])
    assert len(env.faults) == 4
    env.close()


def test_a_restart_loop_ends() -> None:
    """An engine that dies at every step spends the budget, and no more."""
    env = make(num_envs=2, fault="segfault", at_step=1, max_faults=10, autoreset_mode="same_step")
    env.reset()

    def play() -> None:
        for _ in range(100):
            env.step([1, 1])

    with pytest.raises(envpool_sdk.EnvError, match="max_faults=10"):
        play()


def test_faults_of_gymnasiums_faces() -> None:
    envs = gymnasium.make_vec("envpool/Evil-v0", num_envs=2, isolation="process", fault="segfault", at_step=2, env_id=1)
    envs.reset(seed=0)
    envs.step(np.array([1, 1]))
    *_, truncated, info = envs.step(np.array([2, 2]))
    assert truncated.tolist() == [False, True]
    assert info["_fault"].tolist() == [False, True]
    assert envs.unwrapped.faults == [(1, info["fault"][1])]
    envs.close()
    env = gymnasium.make("envpool/Evil-v0", isolation="process", fault="abort", at_step=2)
    env.reset(seed=0)
    env.step(1)
    *_, truncated, info = env.step(2)
    assert truncated
    assert "signal 6" in info["fault"]
    assert env.unwrapped.faults == [(0, info["fault"])]
    assert env.reset()[0].tolist()[1:] == [0, 0, 0]
    env.close()


def test_the_latest_faults_are_kept() -> None:
    env = make("Faulty-v0", num_envs=4, fault="failed", at_step=1, max_faults=10_000, isolation="thread")
    env.reset()
    for _ in range(600):
        env.step([0] * 4)
    assert len(env.faults) == 1000
    assert env._pool.statistics["faults"] == 1200


def test_memory_that_an_engine_spoils() -> None:
    """One that writes over all it shares costs the pool, but neither the user's process nor its other pools."""
    env = make(num_envs=4, fault="scribble", at_action=BAD, max_faults=20)
    other = make(num_envs=2)
    others = Ledger(other)
    Ledger(env).step()

    def play() -> None:
        env.send([1, BAD, 1, 1])
        for _ in range(50):
            env.recv(timeout=10)
            env.send([1, 1, 1, 1])

    with pytest.raises((envpool_sdk.EnvError, TimeoutError, ValueError)):
        play()
    for _, message in env.faults:
        message.encode()
    env.close(timeout=3)
    for _ in range(3):
        assert others.step() == {}


# ---- hangs ----


def test_a_step_that_takes_too_long() -> None:
    env = make(num_envs=3, fault="hang", at_action=BAD, step_timeout=0.3)
    ledger = Ledger(env)
    for victim in (1, 2):
        start = time.monotonic()
        faults = ledger.step(bad=(victim,))
        assert 0.3 <= time.monotonic() - start < 1.0
        assert list(faults) == [victim]
        assert faults[victim].startswith(
            f"Evil-v0, env {victim}: its worker process was killed, since a step took longer than step_timeout=0.3 s"
        )
        assert ledger.step() == {}


def test_a_reset_that_takes_too_long(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    env = make(num_envs=2, fault="hang", where="reset", env_id=1, while_exists=str(marker), reset_timeout=0.3)
    Ledger(env)
    marker.touch()
    start = time.monotonic()
    _, info = env.reset()
    assert 0.3 <= time.monotonic() - start < 1.0
    assert "its worker process was killed, since a reset took longer than reset_timeout=0.3 s" in info["fault"][1]
    marker.unlink()
    assert "fault" not in env.reset()[1]


def test_a_create_that_takes_too_long() -> None:
    start = time.monotonic()
    with pytest.raises(envpool_sdk.EnvError, match=r"env 1: create: .*reset_timeout=0.3 s"):
        make(num_envs=2, fault="hang", where="create", env_id=1, reset_timeout=0.3)
    assert time.monotonic() - start < 2.0


def test_a_picture_that_takes_too_long() -> None:
    env = make(num_envs=2, fault="hang", where="draw", env_id=1, step_timeout=0.3, render_mode="rgb_array")
    ledger = Ledger(env)
    with pytest.raises(RuntimeError, match=r"env 1: .*render, observe or a state took longer than step_timeout=0.3 s"):
        env.render([1])
    assert list(ledger.step()) == [1]
    assert ledger.step() == {}


def test_a_sweep_is_many_steps_and_resets() -> None:
    """The limit is that of one step or reset: what many of them take together is another thing."""
    env = make("Counter-v0", num_envs=64, envs_per_worker=64, max_episode_steps=2, step_timeout=0.05)
    env.reset()
    for _ in range(300):
        assert "fault" not in env.step([1] * 64)[4]


def test_a_stopped_worker_is_a_hang() -> None:
    env = make(num_envs=2, fault="stop", at_action=BAD, step_timeout=0.3)
    ledger = Ledger(env)
    faults = ledger.step(bad=(0,))
    assert "env 0" in faults[0]
    assert ledger.step() == {}


def test_timeouts_are_for_single_steps() -> None:
    """Many slow envs of one worker, each within the limit, are not too slow together."""
    env = make("Slow-v0", num_envs=8, envs_per_worker=8, step_us=100_000.0, step_timeout=0.4)
    env.reset()
    assert "fault" not in env.step([0] * 8)[4]


def test_recv_with_a_timeout() -> None:
    """It is exact, names those who are late, and loses nothing."""
    env = make(num_envs=3, fault="hang", at_action=BAD)
    ledger = Ledger(env)
    actions = ledger.actions(3)
    for seconds in (0.0, 0.05, 0.33):
        slow = make("Slow-v0", num_envs=2, step_us=700_000.0)
        slow.reset()
        slow.send([0, 0])
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"in flight: env_id 0, 1"):
            slow.recv(timeout=seconds)
        assert seconds <= time.monotonic() - start < seconds + 0.05
        assert slow.recv()[0].tolist() == [1, 1]
        slow.close()
    env.send(actions)
    assert ledger.check(actions, env.recv(timeout=1.0)) == {}


def test_close_with_an_env_that_hangs() -> None:
    """Of threads: test_facade.py, test_an_env_that_hangs."""
    env = make(num_envs=3, fault="hang", at_action=BAD)
    env.reset()
    env.send([1, BAD, 1])
    with pytest.raises(TimeoutError, match="in flight: env_id 0, 1, 2"):
        env.recv(timeout=0.1)
    start = time.monotonic()
    env.close(timeout=1.0)
    assert time.monotonic() - start < 1.1
    with pytest.raises(envpool_sdk.ClosedError):
        env.step([1, 1, 1])


def test_close_twice_and_without_close() -> None:
    env = make(num_envs=2)
    env.reset()
    env.close()
    env.close()
    other = make(num_envs=2)
    other.reset()
    other.send([1, 1])
    del other


# ---- manners ----


def test_a_leak_is_the_workers_own() -> None:
    """The user's process does not grow; a worker that meets its limit dies and is replaced."""
    env = make(num_envs=2, fault="leak", at_action=BAD)
    ledger = Ledger(env)
    before = _memory(os.getpid())
    for _ in range(10):
        ledger.step(bad=(0,))
    assert _memory(int(ledger.info["pid"][0])) > 40 << 20
    assert _memory(os.getpid()) < before + (20 << 20)
    pid = int(ledger.info["pid"][0])
    now = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * 4096
    resource.prlimit(pid, resource.RLIMIT_AS, (now + (16 << 20), now + (16 << 20)))
    faults: dict[int, str] = {}
    for _ in range(20):
        faults = ledger.step(bad=(0,))
        if faults:
            break
    assert list(faults) == [0]
    assert ledger.step() == {}
    assert _memory(int(ledger.info["pid"][0])) < 40 << 20


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize(
    "evil",
    [
        "print_line",
        "print_part",
        "print_much",
        "print_bytes",
        "change_directory",
        "change_locale",
        "change_rounding",
        "ignore_signals",
        "close_files",
        "leave_child",
    ],
)
def test_bad_manners_stay_in_the_worker(evil: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing of it is seen here, the env goes on, and a crash after it is dealt with as ever."""
    here = (os.getcwd(), locale.setlocale(locale.LC_ALL), ctypes.CDLL(None).fegetround())
    env = make(num_envs=2, fault=evil, at_action=BAD)
    ledger = Ledger(env)
    for _ in range(3):
        assert ledger.step(bad=(0,)) == {}
        assert ledger.step() == {}
    assert (os.getcwd(), locale.setlocale(locale.LC_ALL), ctypes.CDLL(None).fegetround()) == here
    os.kill(int(ledger.info["pid"][0]), signal.SIGKILL)
    faults: dict[int, str] = {}
    while not faults:
        faults = ledger.step()
    assert list(faults) == [0]
    assert "signal 9" in faults[0]
    assert ledger.step(bad=(1,)) == {}
    start = time.monotonic()
    env.close()
    assert time.monotonic() - start < 1.9
    assert capfd.readouterr() == ("", "")


def test_what_workers_print_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="envpool_sdk")
    env = make(num_envs=2, fault="print_line", at_action=BAD)
    ledger = Ledger(env)
    ledger.step(bad=(1,))
    time.sleep(0.3)
    ledger.step()
    lines = [(r.name, r.levelno, r.getMessage()) for r in caplog.records]
    assert ("envpool_sdk", logging.INFO, "Evil-v0, env 1: evil: a line on stdout") in lines
    # The last lines are in the message of a crash, a part of a line too.
    env = make(num_envs=1, fault="print_part", at_action=BAD)
    ledger = Ledger(env)
    ledger.step(bad=(0,))
    os.kill(int(ledger.info["pid"][0]), signal.SIGTERM)
    faults: dict[int, str] = {}
    while not faults:
        faults = ledger.step()
    assert "signal 15" in faults[0]


def test_the_message_has_the_last_lines() -> None:
    env = make("Evil-v0", num_envs=1, fault="throw", at_action=BAD)
    faults = Ledger(env).step(bad=(0,))
    assert re.fullmatch(
        r"Evil-v0, env 0: its worker process exited with code 1; it printed last:\n"
        r"  evil: thrown across the boundary",
        faults[0],
    )


def test_one_per_process_engines() -> None:
    """They have worker processes by themselves; one env may be in a thread if that is asked for."""
    env = envpool_sdk.make("Globals-v0", num_envs=3)
    obs, info = env.reset()
    assert obs.tolist() == [[0, 1]] * 3
    assert len({*info["pid"].tolist(), os.getpid()}) == 4
    for t in range(1, 20):
        assert env.step([0] * 3)[0].tolist() == [[t, 1]] * 3
    assert env.config["num_threads"] == 3
    alone = envpool_sdk.make("Globals-v0", num_envs=1, isolation="thread")
    assert alone.reset()[1]["pid"].tolist() == [os.getpid()]
    with pytest.raises(ValueError, match="one env per process, and this process has one already"):
        envpool_sdk.make("Globals-v0", num_envs=1, isolation="thread")
    alone.close()
    env = envpool_sdk.make("MainThread-v0", num_envs=2)
    env.reset()
    assert env.step([0, 0])[0].tolist() == [1, 1]
    assert env.step([0, 0])[4].get("fault") is None


@pytest.mark.parametrize(
    ("task", "arguments", "error"),
    [
        ("Evil-v0", {"isolation": "fork"}, r"Evil-v0: isolation='fork' must be one of 'auto', 'thread', 'process'"),
        ("Evil-v0", {"isolation": None}, "isolation=None"),
        ("Evil-v0", {"envs_per_worker": 0}, "envs_per_worker=0"),
        ("Evil-v0", {"envs_per_worker": 1.5}, "envs_per_worker=1.5"),
        ("Globals-v0", {"envs_per_worker": 2}, "Globals-v0: envs_per_worker=2, allowed: 1, since"),
        ("Globals-v0", {"isolation": "thread"}, "isolation='thread' with num_envs=2: this engine allows one env"),
        ("MainThread-v0", {"isolation": "thread"}, "isolation='thread': this engine needs a process's main thread"),
        ("Evil-v0", {"step_timeout": 0}, r"step_timeout=0 must be a number of seconds above 0"),
        ("Evil-v0", {"reset_timeout": -1.0}, r"reset_timeout=-1\.0"),
        ("Evil-v0", {"step_timeout": float("nan")}, "step_timeout=nan"),
        ("Evil-v0", {"step_timeout": "soon"}, "step_timeout='soon'"),
        ("Evil-v0", {"isolation": "thread", "step_timeout": 1.0}, "step_timeout and reset_timeout are for worker"),
        ("Evil-v0", {"isolation": "thread", "envs_per_worker": 2}, "envs_per_worker=2 is for worker processes"),
    ],
)
def test_wrong_arguments(task: str, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        envpool_sdk.make(task, num_envs=2, **{"isolation": "process" if task == "Evil-v0" else "auto", **arguments})


def test_many_workers_start_quickly() -> None:
    start = time.monotonic()
    env = make("CartPole-v1", num_envs=64)
    seconds = time.monotonic() - start
    env.reset()
    print(f"64 workers were ready after {seconds:.2f} s")
    assert seconds < 30
