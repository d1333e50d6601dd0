"""Worker processes and the system: forks, signals, the end of the user's process, names and limits.

Most tests run a program in an interpreter of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import envpool_sdk

pytestmark = pytest.mark.usefixtures("no_leaks")

START = """
import gc, os, signal, sys, threading, time
import envpool_sdk
for name in ("kitchen_sink", "evil", "cartpole_cpp"):
    envpool_sdk.load_plugin({path!r} + f"/{{name}}.so")

def make(task="Evil-v0", num_envs=4, **options):
    return envpool_sdk.make(task, num_envs=num_envs, **{{"isolation": "process", **options}})

def steps(env, count=3):
    for t in range(count):
        obs, _, _, _, info = env.step([t] * env.num_envs)
    return obs, info
"""

Run = Callable[..., str]


@pytest.fixture
def run(plugins: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]) -> Run:
    """Runs a program that knows the reference tasks; gives what it printed. Fails if it left workers behind."""

    def run(code: str) -> str:
        done = run_python(START.format(path=str(plugins)) + code)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def alive(pids: list[int]) -> list[int]:
    """Those that still run; the dead that nobody has waited for do not."""

    def runs(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return "envpool-worker" in stat and stat.rsplit(")", 1)[1].split()[0] not in "ZX"

    return [pid for pid in pids if runs(pid)]


def wait_for_end(pids: list[int], seconds: float) -> None:
    end = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert alive(pids) == []


# ---- what a worker is ----


def test_what_a_worker_has_of_its_parent() -> None:
    """Its name, group, signals, limits; descriptors: /dev/null, its output, nothing else."""
    with open(os.devnull) as opened, open("/dev/zero") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        env = envpool_sdk.make("Evil-v0", num_envs=2, isolation="process")
        pids = [int(pid) for pid in env.reset()[1]["pid"]]
        for pid in pids:
            assert Path(f"/proc/{pid}/comm").read_text() == "envpool-worker\n"
            assert os.getpgid(pid) == pid
            status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            assert int(status["PPid"]) == os.getpid()
            assert int(status["SigBlk"], 16) == int(status["SigIgn"], 16) & (2**31 - 1) == 0  # 32, 33: the C library's
            assert int(status["Threads"]) == 1
            limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
            assert next(line for line in limits if "core file" in line).split()[4:6] == ["0", "0"]
            links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            assert links.pop("0") == "/dev/null"
            assert links.pop("1").startswith("pipe:")
            assert links.pop("2").startswith("pipe:")
            assert links == {}
            assert os.readlink(f"/proc/{pid}/cwd") == os.getcwd()
        assert opened.readable()
        env.close()
    wait_for_end(pids, 1)


def test_the_environment_is_that_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVPOOL_TEST", "seen")
    env = envpool_sdk.make("Evil-v0", isolation="process")
    pid = int(env.reset()[1]["pid"][0])
    assert b"ENVPOOL_TEST=seen" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    env.close()


def test_nothing_is_left_after_many_pools() -> None:
    """Also when the pool is dropped without close(), in the middle of a step."""
    for i in range(10):
        env = envpool_sdk.make("Evil-v0", num_envs=4, batch_size=2 if i % 2 else 0, isolation="process")
        env.async_reset()
        env.recv()
        if i % 3 == 0:
            env.close()
        del env


def test_too_few_descriptors(run: Run) -> None:
    out = run(
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
try:
    make(num_envs=64)
except Exception as error:
    print(type(error).__name__, error)
env = make(num_envs=2)  # there is room again
env.reset()
steps(env)
"""
    )
    assert "ulimit -n" in out
    assert "Error" in out


def test_a_worker_program_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envpool_sdk.workers.command", lambda manifest: ["/nowhere/envpool-worker"])
    with pytest.raises(RuntimeError, match=r"a worker process can't be started: /nowhere/envpool-worker: No such file"):
        envpool_sdk.make("Evil-v0", num_envs=2, isolation="process")
    monkeypatch.setattr("envpool_sdk.workers.command", lambda manifest: ["/bin/false"])
    with pytest.raises(envpool_sdk.EnvError, match=r"env 0: create: its worker process exited with code 1"):
        envpool_sdk.make("Evil-v0", num_envs=1, isolation="process")


def test_the_program_by_hand() -> None:
    from envpool_sdk.workers import _installed

    done = subprocess.run([_installed("envpool-worker")], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2
    assert "not by hand" in done.stderr


# ---- forks ----


def test_fork_with_a_pool(run: Run) -> None:
    """The child's calls raise and do not hang; the arrays that it inherited stay as they were; it can have a pool of its
    own; the parent goes on."""
    out = run(
        """
import numpy as np
env = make()
env.reset()
obs, _ = steps(env)
kept = obs.copy()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        for call in (env.reset, env.recv, env.async_reset, lambda: env.step([0] * 4), lambda: env.save_state(0),
                     lambda: env.faults):
            try:
                call()
                os._exit(2)
            except RuntimeError as error:
                assert "made before fork()" in str(error), error
        os.read(reading, 1)  # the parent has gone on
        assert np.array_equal(obs, kept), (obs, kept)
        obs[:] = 77  # its own copy
        os.write(1, b"child: read\\n")
        own = make(num_envs=2)
        own.reset()
        assert steps(own)[0][:, 2].tolist() == [3, 3]
        own.close()
        env.close()
        del env
        gc.collect()
    except BaseException as error:
        os.write(1, repr(error).encode())
        os._exit(3)
    os._exit(0)
for _ in range(50):
    steps(env)
assert obs.tolist() == kept.tolist()
later = env.step([5] * 4)[0]
os.write(writing, b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert obs.tolist() == kept.tolist()
assert later[:, 3].tolist() == [5] * 4
del obs
for _ in range(50):
    steps(env)
env.close()
print("parent: done")
"""
    )
    assert out == "child: read\nparent: done\n"


def test_fork_while_envs_work(run: Run) -> None:
    """The parent's rows are there, whatever the child does and however it ends."""
    run(
        """
env = make("Slow-v0", num_envs=3, step_us=100_000.0)
env.reset()
for end in (lambda: os._exit(0), lambda: sys.exit(0), lambda: os.kill(os.getpid(), signal.SIGKILL)):
    env.send([0] * 3)
    child = os.fork()
    if child == 0:
        end()
    os.waitpid(child, 0)
    assert "fault" not in env.recv()[4]
pids = os.popen(f"pgrep -c -P {os.getpid()} envpool-worker").read()
assert int(pids) == 3, pids
"""
    )


def test_multiprocessing_by_every_method(run: Run, plugins: Path) -> None:
    code = """
import multiprocessing
env = make(num_envs=2)
env.reset()
context = multiprocessing.get_context("fork")
def work(queue):
    own = make(num_envs=2)
    own.reset()
    queue.put(steps(own)[0][:, 2].tolist())
    own.close()
queue = context.Queue()
processes = [context.Process(target=work, args=(queue,)) for _ in range(2)]
for process in processes: process.start()
for process in processes: assert queue.get(timeout=20) == [3, 3]
for process in processes:
    process.join(20)
    assert process.exitcode == 0
steps(env)
"""
    run(code)


# ---- signals ----


def test_ctrl_c(run: Run) -> None:
    """To the whole group, as a terminal sends it: this process gets KeyboardInterrupt, nothing is lost."""
    out = run(
        """
os.setpgid(0, 0)
env = make("Slow-v0", num_envs=4, step_us=600_000.0)
env.reset()
for wait in (lambda: env.step([0] * 4), lambda: env.recv()):
    threading.Timer(0.1, lambda: os.killpg(os.getpgid(0), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        wait()
        sys.exit("not interrupted")
    except KeyboardInterrupt:
        assert time.monotonic() - start < 1.0
obs, *_, info = env.recv()
assert obs.tolist() == [1] * 4 and "fault" not in info
assert env.step([1] * 4)[0].tolist() == [2] * 4
print("usable")
"""
    )
    assert out == "usable\n"


def test_ctrl_c_while_making(run: Run) -> None:
    run(
        """
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    make(fault="hang", where="create")
    sys.exit("not interrupted")
except KeyboardInterrupt:
    assert time.monotonic() - start < 3.0
env = make()
env.reset()
steps(env)
"""
    )


def test_ctrl_c_while_drawing(run: Run) -> None:
    """An env that hangs in it stays busy; the others go on."""
    run(
        """
env = make(fault="hang", where="draw", env_id=1, render_mode="rgb_array")
env.reset()
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    env.render([1])
    sys.exit("not interrupted")
except KeyboardInterrupt:
    assert time.monotonic() - start < 1.0
assert env.step([7, 7, 7], [0, 2, 3])[0][:, 3].tolist() == [7] * 3
try:
    env.step([7], [1])
    sys.exit("not refused")
except ValueError as error:
    assert "env_id 1 is still in flight" in str(error), error
start = time.monotonic()
env.close(timeout=1.0)
assert time.monotonic() - start < 1.1
"""
    )


def test_a_receiver_is_told_of_the_end(run: Run) -> None:
    run(
        """
env = make("Slow-v0", num_envs=2, step_us=5e6)
env.reset()
env.send([0, 0])
heard = []
def receive():
    try:
        env.recv()
    except envpool_sdk.ClosedError:
        heard.append(time.monotonic())
threads = [threading.Thread(target=receive) for _ in range(3)]
for thread in threads: thread.start()
time.sleep(0.2)
start = time.monotonic()
env.close(timeout=1.0)
for thread in threads: thread.join()
assert len(heard) == 3 and max(heard) - start < 1.1
"""
    )


def test_workers_on_cpus_of_their_own() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    env = envpool_sdk.make("Evil-v0", num_envs=3, isolation="process", thread_affinity_offset=1)
    for i, pid in enumerate(env.reset()[1]["pid"].tolist()):
        assert os.sched_getaffinity(pid) == {cpus[(1 + i) % len(cpus)]}
    env.close()


def test_a_users_handling_of_children(run: Run) -> None:
    """SIGCHLD ignored, handled, or all children waited for: deaths are noticed all the same."""
    run(
        """
def crash(env):
    env.reset()
    faults = 0
    for t in range(30):
        info = env.step([2**31 - 2 if t % 3 == 2 and i == t % 4 else 1 for i in range(4)])[4]
        faults += len([f for f in info.get("fault", []) if f])
    return faults

expected = crash(make(fault="segfault", at_action=2**31 - 2))
assert expected > 5
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
assert crash(make(fault="segfault", at_action=2**31 - 2)) == expected
signal.signal(signal.SIGCHLD, lambda *_: None)
assert crash(make(fault="segfault", at_action=2**31 - 2)) == expected
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
stop = threading.Event()
def reap():
    while not stop.is_set():
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass
reaper = threading.Thread(target=reap)
reaper.start()
assert crash(make(fault="segfault", at_action=2**31 - 2)) == expected
stop.set()
reaper.join()
"""
    )


def test_subprocesses_are_waited_for_by_their_owner(run: Run) -> None:
    """The keeper takes only its own children."""
    run(
        """
import subprocess
env = make(fault="segfault", at_action=9)
env.reset()
others = [subprocess.Popen(["sh", "-c", f"sleep 0.0{i}; exit {i}"]) for i in range(10)]
for _ in range(10):
    env.step([1, 9, 1, 9])
    env.step([1] * 4)
assert [other.wait() for other in others] == list(range(10))
"""
    )


# ---- the end of the user's process ----

ENDS = {
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "term": "os.kill(os.getpid(), signal.SIGTERM)",
    "abort": "os.abort()",
    "_exit": "os._exit(0)",
    "exit": "sys.exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_no_worker_outlives_the_process(end: str, plugins: Path) -> None:
    """Made by a thread that ended, at work, hanging, or idle: none is there 5 s later."""
    code = START.format(path=str(plugins)) + (
        f"""
pools = []
thread = threading.Thread(target=lambda: pools.append(make(num_envs=3)))
thread.start(); thread.join()
pools.append(make(num_envs=2, fault="hang", at_action=9))
pools.append(make("Slow-v0", num_envs=2, step_us=30e6))
for pool in pools: pool.reset()
pools[1].send([9, 9])
pools[2].send([0, 0])
time.sleep(0.2)
assert pools[0].step([1] * 3)[0][:, 2].tolist() == [1] * 3
print(*os.popen(f"pgrep -P {{os.getpid()}} envpool-worker").read().split(), flush=True)
{ENDS[end]}
"""
    )
    limits = "ulimit -c 0; exec "
    done = subprocess.run(
        ["sh", "-c", limits + '"$@"', "sh", sys.executable, "-c", code], capture_output=True, text=True, timeout=30
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 7, done.stderr
    wait_for_end(pids, 5)


def test_threads_that_make_pools_and_end(run: Run) -> None:
    """Workers are the keeper's children, not those of the thread that made the pool."""
    run(
        """
pools = []
def work():
    env = make(num_envs=2)
    env.reset()
    pools.append(env)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
time.sleep(0.3)
for env in pools:
    obs, info = steps(env)
    assert "fault" not in info and obs[:, 2].tolist() == [3, 3]
"""
    )


def test_the_interpreter_ends_while_threads_receive(run: Run) -> None:
    run(
        """
env = make("Slow-v0", num_envs=2, step_us=5e6)
env.reset()
env.send([0, 0])
threading.Thread(target=env.recv, daemon=True).start()
time.sleep(0.2)
"""
    )


def test_two_threads_share_a_pool(run: Run) -> None:
    """One sends, another receives; nothing is lost though workers die."""
    run(
        """
import queue
env = make(num_envs=8, batch_size=3, fault="segfault", at_action=9)
env.async_reset()
ready = queue.Queue()
rows = faults = 0
def receive():
    global rows, faults
    while rows < 3000:
        try:
            info = env.recv()[4]
        except RuntimeError:  # the sender is late: nothing is in flight
            time.sleep(0.001)
            continue
        rows += len(info["env_id"])
        faults += sum(f is not None for f in info.get("fault", []))
        ready.put(info["env_id"].copy())
receiver = threading.Thread(target=receive)
receiver.start()
sent = 0
while receiver.is_alive():
    try:
        ids = ready.get(timeout=0.1)
    except queue.Empty:
        continue
    sent += 1
    env.send([9 if sent % 100 == 50 and i == ids[0] else 1 for i in ids], ids)
receiver.join()
assert faults >= 5, faults
"""
    )


def test_pools_of_processes_beside_threads(run: Run) -> None:
    """Kill one pool's worker: only that pool hears of it."""
    out = run(
        """
one, other, threads = make(), make(), make(isolation="thread")
for env in (one, other, threads): env.reset()
_, info = steps(one)
os.kill(int(info["pid"][2]), signal.SIGSEGV)
time.sleep(0.2)
info = one.step([1] * 4)[4]
assert [f is not None for f in info["fault"]] == [False, False, True, False]
for env in (other, threads):
    assert "fault" not in steps(env)[1]
print("ok")
"""
    )
    assert out == "ok\n"


def test_no_core_dump(run: Run, tmp_path: Path) -> None:
    run(
        f"""
import resource
os.chdir({str(tmp_path)!r})
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
env = make(fault="segfault", at_action=9)
env.reset()
env.step([9] * 4)
"""
    )
    assert list(tmp_path.iterdir()) == []


def test_a_signal_for_the_group_of_a_worker() -> None:
    """SIGSTOP and SIGCONT of a worker only delay it."""
    env = envpool_sdk.make("Evil-v0", num_envs=2, isolation="process")
    pid = int(env.reset()[1]["pid"][0])
    os.kill(pid, signal.SIGSTOP)
    env.send([1, 1])
    with pytest.raises(TimeoutError):
        env.recv(timeout=0.2)
    os.kill(pid, signal.SIGCONT)
    result: Any = env.recv(timeout=5)
    assert "fault" not in result[4]
    env.close()
