"""Workers killed at random moments in every way: no step is lost, none is done twice."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import envpool_sdk

pytestmark = pytest.mark.usefixtures("no_leaks")

WAYS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP, signal.SIGABRT, signal.SIGTERM)


class Killer(threading.Thread):
    """Sends a signal to one of these processes, every now and then."""

    def __init__(self, every: float, seed: int) -> None:
        super().__init__()
        self.pids: list[int] = []
        self.kills = 0
        self._every = every
        self._random = random.Random(seed)
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._random.expovariate(1 / self._every)):
            if not self.pids:
                continue
            try:
                os.kill(self._random.choice(self.pids), self._random.choice(WAYS))
                self.kills += 1
            except ProcessLookupError:  # killed before, and not noticed yet
                continue

    def stop(self) -> None:
        self._ended.set()
        self.join()


class Books:
    """What was sent to each env of a pool of Evil-v0 and not answered yet, and what its counters must be.

    Every row is the answer to the one action or reset that its env has open: applied exactly once, or a fault.
    """

    def __init__(self, num_envs: int) -> None:
        self.open = np.full(num_envs, -1, np.int64)  # the action; -2: a reset; -1: nothing
        self.life = np.zeros(num_envs, np.int64)
        self.episode = np.zeros(num_envs, np.int64)
        self.over = np.ones(num_envs, np.bool_)
        self.pid = np.zeros(num_envs, np.int64)
        self.sent = self.answers = self.faults = 0

    def actions(self, ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """New ones for these envs, different from all that were sent lately."""
        assert (self.open[ids] == -1).all()
        actions = np.arange(self.sent, self.sent + len(ids)) % 2_000_000_000
        self.open[ids] = actions
        self.sent += len(ids)
        return actions

    def check(self, row: Any) -> np.ndarray[Any, Any]:
        """Checks the rows of a batch; gives the envs."""
        obs, _, terminated, truncated, info = row
        ids = info["env_id"]
        messages = info.get("fault", np.full(len(ids), None))
        assert len(set(ids.tolist())) == len(ids)
        for i, env in enumerate(ids.tolist()):
            action = self.open[env]
            assert action != -1, f"env {env} answered twice"
            self.open[env] = -1
            self.answers += 1
            if messages[i] is not None:
                assert truncated[i]
                assert (obs[i] == 0).all()
                assert f"env {env}:" in messages[i]
                self.faults += 1
                self.over[env] = True
                continue
            if info["pid"][i] != self.pid[env]:  # it was made anew, and so it begins an episode
                assert self.over[env] or action == -2
                self.pid[env] = info["pid"][i]
                self.life[env] = 0
            if self.over[env] or action == -2:
                assert obs[i, 1:].tolist() == [self.life[env], 0, 0]
                self.episode[env] = 0
            else:
                self.life[env] += 1
                self.episode[env] += 1
                assert obs[i, 1:].tolist() == [self.life[env], self.episode[env], action]
            self.over[env] = terminated[i] or truncated[i]
        return ids


def soak(seconds: float, seed: int, batch_size: int, envs_per_worker: int, num_envs: int = 16) -> str:
    env = envpool_sdk.make(
        "Evil-v0",
        num_envs=num_envs,
        batch_size=batch_size,
        length=50,
        isolation="process",
        envs_per_worker=envs_per_worker,
        step_timeout=0.2,
        reset_timeout=0.5,
        max_faults=10**9,
    )
    books = Books(num_envs)
    chance = random.Random(seed)
    killer = Killer(every=0.05, seed=seed)
    while True:  # first resets
        books.open[:] = -2
        try:
            if env.is_async:
                env.async_reset()
                while env._pool.pending:
                    books.check(env.recv())
            else:
                obs, info = env.reset()
                none = np.zeros(num_envs, np.bool_)
                books.check((obs, None, none, none, info))
            break
        except envpool_sdk.EnvError:
            continue
    killer.start()
    end = time.monotonic() + seconds
    idle = np.arange(num_envs)
    try:
        while time.monotonic() < end:
            if len(idle):
                if not env.is_async and chance.random() < 0.02:
                    chosen = np.array(chance.sample(range(num_envs), 5))
                    books.open[chosen] = -2
                    obs, info = env.reset(chosen)
                    flags = np.array([m is not None for m in info.get("fault", [None] * 5)])
                    books.check((obs, None, np.zeros(5, np.bool_), flags, info))
                env.send(books.actions(idle), idle)
            try:
                idle = books.check(env.recv(timeout=chance.choice([0.01, 20.0])))
            except TimeoutError:
                idle = idle[:0]
            killer.pids = sorted(set(books.pid.tolist()) - {0})
    finally:
        killer.stop()
    while env._pool.pending:
        books.check(env.recv(timeout=20))
    assert (books.open == -1).all()
    assert books.faults >= killer.kills * envs_per_worker / 4
    assert env._pool.statistics["faults"] == books.faults
    env.close()
    return f"{books.sent} steps, {killer.kills} signals, {books.faults} faults"


CASES = [(16, 1), (5, 1), (16, 4)]
"""(batch_size, envs_per_worker)"""


@pytest.mark.parametrize(("batch_size", "envs_per_worker"), CASES)
def test_random_kills(batch_size: int, envs_per_worker: int) -> None:
    print(soak(7, seed=1, batch_size=batch_size, envs_per_worker=envs_per_worker))


@pytest.mark.full
@pytest.mark.parametrize(("batch_size", "envs_per_worker"), CASES)
def test_random_kills_for_ten_minutes(batch_size: int, envs_per_worker: int) -> None:
    print(soak(200, seed=2, batch_size=batch_size, envs_per_worker=envs_per_worker))
