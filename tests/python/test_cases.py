"""Faults that other libraries' users reported: the cases that no other file's tests cover.

The table at the end says which test covers which case.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import envpool_sdk

START = """
import atexit, gc, multiprocessing, os, resource, signal, sys, threading, time
import envpool_sdk, gymnasium
for name in ("cartpole_cpp", "kitchen_sink"):
    envpool_sdk.load_plugin({path!r} + f"/{{name}}.so")
"""

Run = Callable[..., Any]


@pytest.fixture
def run(plugins: Path, run_python: Run) -> Run:
    """Runs a program that knows the reference tasks; gives what it printed, and fails if it did not end by itself."""

    def run(code: str, returncode: int = 0, seconds: float = 10) -> str:
        start = time.monotonic()
        done = run_python(START.format(path=str(plugins)) + code)
        assert done.returncode == returncode, done.stderr
        assert time.monotonic() - start < seconds
        assert "leaked" not in done.stderr
        return done.stdout

    return run


def make(task: str = "Counter-v0", num_envs: int = 4, **options: Any) -> envpool_sdk.EnvPool:
    return envpool_sdk.make(task, num_envs=num_envs, **options)


# ---- batches, seeds, threads ----


@pytest.mark.parametrize(("num_envs", "batch_size"), [(256, 100), (1024, 256), (4096, 1024)])
def test_every_env_comes_once(num_envs: int, batch_size: int) -> None:
    """Cases 7, 9: ids are unique at any scale, asynchronously too."""
    env = make(num_envs=num_envs, batch_size=batch_size, num_threads=2)
    env.async_reset()
    for _ in range(3):
        seen: list[int] = []
        while len(seen) < num_envs:
            seen += env.recv()[4]["env_id"].tolist()
        assert sorted(seen) == list(range(num_envs))
        env.send(np.zeros(num_envs, int), env.all_env_ids)


def test_rows_are_of_their_envs() -> None:
    """Case 12: every env's row is its own, whatever the strides."""
    obs, info = make("CartPole-v1", num_envs=8).reset()
    assert len(np.unique(obs, axis=0)) == 8
    assert info["env_id"].tolist() == list(range(8))
    for i, row in enumerate(obs):
        np.testing.assert_array_equal(row, make("CartPole-v1", num_envs=1, seed=42 + i).reset()[0][0])


@pytest.mark.filterwarnings("ignore:.*num_threads=16")
@pytest.mark.parametrize("num_threads", [4, 16])
@pytest.mark.parametrize("batch_size", [0, 5])
def test_threads_do_not_matter(num_threads: int, batch_size: int) -> None:
    """Case 31: 1, 4 and 16 threads give the same bits."""

    def play(**options: Any) -> dict[int, list[bytes]]:
        env = make("CartPole-v1", num_envs=16, **options)
        rows: dict[int, list[bytes]] = {i: [] for i in range(16)}
        env.async_reset()
        while min(map(len, rows.values())) < 100:
            obs, _, _, _, info = env.recv()
            ids = info["env_id"].tolist()
            for row, i in zip(obs, ids, strict=True):
                rows[i].append(row.tobytes())
            env.send([(len(rows[i]) + i) // 3 % 2 for i in ids], ids)
        env.close()
        return {i: row[:100] for i, row in rows.items()}

    assert play(num_threads=num_threads, batch_size=batch_size) == play(num_threads=1)


def test_one_cpu_is_enough(run: Run) -> None:
    """Case 45: num_threads=0 honours the affinity, and many envs make progress on one CPU."""
    out = run("""
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for batch_size in (0, 8):
    env = envpool_sdk.make("Slow-v0", num_envs=64, batch_size=batch_size, step_us=50.0)
    assert env.config["num_threads"] == 1
    env.async_reset()
    steps = [0] * 64
    while min(steps) < 20:
        ids = env.recv()[4]["env_id"].tolist()
        for i in ids:
            steps[i] += 1
        env.send([0] * len(ids), ids)
    print(min(steps))
""")
    assert out == "20\n20\n"


@pytest.mark.parametrize("num_threads", [1, 2])
def test_several_threads_step_a_synchronous_pool(num_threads: int) -> None:
    """EnvPool aborts when several threads call recv and send: here no row is lost, and each comes once."""
    env = make(num_envs=8, num_threads=num_threads)
    env.reset()
    sent = threading.Semaphore(0)
    rewards: list[float] = []
    failures: list[BaseException] = []

    def send(i: int) -> None:
        try:
            for k in range(100):
                while not _sent(env, k, i):
                    time.sleep(0)
                sent.release()
        except BaseException as error:
            failures.append(error)

    def receive() -> None:
        try:
            for _ in range(400):
                sent.acquire()
                rewards.append(float(env.recv()[1][0]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(i,)) for i in range(8)]
    threads += [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(rewards) == sorted(float(k) for k in range(100) for _ in range(8))


@pytest.mark.parametrize("options", [{}, {"num_threads": 2}, {"num_threads": 2, "batch_size": 3}], ids=str)
def test_close_while_others_wait(options: dict[str, Any]) -> None:
    """Case 44: close() ends the waiting of other threads."""
    env = make("Slow-v0", step_us=100_000.0, **options)
    env.async_reset()
    while env._pool.pending:
        env.recv()
    env.send([0] * 4, [0, 1, 2, 3])
    ends: list[type] = []

    def wait() -> None:
        try:
            while True:
                env.recv()
        except RuntimeError as error:
            ends.append(type(error))

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.03)
    start = time.monotonic()
    env.close()
    for thread in threads:
        thread.join()
    assert time.monotonic() - start < 2
    assert ends == [envpool_sdk.ClosedError] * 3


def test_recv_lets_other_threads_run() -> None:
    """Case 49: recv waits without the GIL."""
    env = make("Slow-v0", step_us=50_000.0)
    env.reset()
    stepping = threading.Thread(target=env.step, args=([0] * 4,))
    stepping.start()
    turns = 0
    while stepping.is_alive():
        turns += 1
    assert turns > 1000


def test_pools_may_end_in_any_thread() -> None:
    """Case 26: a pool may be made in a thread that ends, and be dropped in another, busy and in a cycle."""
    threads = threading.active_count()
    for _ in range(10):
        pools: list[Any] = []

        def use(pools: list[Any] = pools) -> None:
            env = make("Slow-v0", num_threads=2, step_us=1000.0)
            env.itself = env
            pools += [env, env.reset()]
            env.send([0] * 4)

        for work in (use, pools.clear, gc.collect):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert threading.active_count() == threads


def _sent(env: envpool_sdk.EnvPool, action: int, env_id: int) -> bool:
    try:
        env.send([action], [env_id])
    except ValueError as error:
        if "flight" not in str(error):
            raise
        return False  # its last row was not received yet
    return True


# ---- arrays ----


def test_what_is_kept_never_changes(same: Callable[..., None]) -> None:
    """Case 47: over 200 steps, through DLPack and views, and when the pool is gone."""
    env = make()
    rows = [env.reset()] + [env.step([t] * 4) for t in range(200)]
    copies = copy.deepcopy(rows)
    views = [(np.from_dlpack(row[0]), memoryview(row[0]), row[0][1:, ::2]) for row in rows]

    def others() -> None:
        other = make()
        other.reset()
        for _ in range(300):
            other.step([9] * 4)

    others()
    for row, expected in zip(rows, copies, strict=True):
        same(row, expected)
    del rows, row, env
    gc.collect()
    others()
    for (tensor, memory, part), expected in zip(views, copies, strict=True):
        np.testing.assert_array_equal(tensor, expected[0])
        np.testing.assert_array_equal(memory, expected[0])
        np.testing.assert_array_equal(part, expected[0][1:, ::2])


def test_memory_of_batches_is_used_again() -> None:
    """Case 26: in steady state no memory is added, and what users write into an array is never read."""
    env = make("Image-v0", height=64, width=64)
    env.reset()
    for t in range(300):
        obs = env.step([0] * 4)[0]
        obs[...] = t % 256
        if t == 10:
            retained = env._pool.retained_bytes
    assert env._pool.retained_bytes == retained


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_AS")
@pytest.mark.parametrize("options", ["", ", batch_size=4, num_threads=2", ", autoreset_mode='SameStep'"])
def test_no_memory_is_an_error(run: Run, options: str) -> None:
    """Case 26: who keeps too much gets a MemoryError, and may go on when he has let it go."""
    out = run(f"""
env = envpool_sdk.make("Image-v0", num_envs=8, height=400, width=400{options})
env.async_reset()
while env._pool.pending:
    env.recv()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28,) * 2)
kept = []
try:
    for _ in range(1000):
        env.send([0] * 8, range(8))
        while env._pool.pending:
            kept.append(env.recv())
except MemoryError:
    kept.clear()
    gc.collect()
    while env._pool.pending:
        env.recv()
    env.send([0] * 8, range(8))
    print(sum(len(env.recv()[0]) for _ in range(8 // env._pool.batch_size)))
""")
    assert out == "8\n"


@pytest.mark.parametrize(
    "action",
    [
        np.asfortranarray(np.array([[0, 1, 0, 1]]).T)[:, 0],
        np.array([0, 1, 0, 1])[::-1][::-1],
        np.ma.array([0, 1, 0, 1]),
        np.frombuffer(b"\0" + np.array([0, 1, 0, 1]).tobytes(), np.uint8)[1:].view(np.int64),
        memoryview(np.array([0, 1, 0, 1])),
        np.array([0, 1, 0, 1], ">u2"),
    ],
    ids=lambda action: type(action).__name__ + str(getattr(action, "dtype", "")),
)
def test_arrays_of_any_making(action: Any) -> None:
    """Case 10: orders, strides, alignments and byte orders of actions."""
    env, other = make("CartPole-v1"), make("CartPole-v1")
    env.reset()
    other.reset()
    if isinstance(action, np.ndarray):
        action.flags.writeable = False
    np.testing.assert_array_equal(env.step(action)[0], other.step([0, 1, 0, 1])[0])


def test_memory_maps_as_actions(tmp_path: Path) -> None:
    """Case 10."""
    np.save(tmp_path / "actions.npy", np.array([0, 1, 0, 1]))
    env = make("CartPole-v1")
    env.reset()
    env.step(np.load(tmp_path / "actions.npy", mmap_mode="r"))


# ---- wrong arguments ----


@pytest.mark.parametrize(
    "name", ["num_envs", "batch_size", "thread_affinity_offset", "max_episode_steps", "max_faults"]
)
@pytest.mark.parametrize("value", [2**63, 2**64, 10**30, -(2**63) - 1])
def test_numbers_beyond_64_bits(name: str, value: int) -> None:
    """EnvPool aborts on wrong numbers: here every argument of make() says what it is."""
    with pytest.raises(ValueError, match=f"CartPole-v1: {name}={value}"):
        envpool_sdk.make("CartPole-v1", **{name: value})
    with pytest.raises(ValueError, match=f"CartPole-v1: {name}={value}"):
        gymnasium.make_vec("envpool/CartPole-v1", **({"num_envs": 1} | {name: value}))


def test_too_many_envs_are_refused_at_once() -> None:
    """Case 10: before any memory is taken for them."""
    start = time.monotonic()
    for num_envs in (2**20 + 1, 2**31, 2**40):
        with pytest.raises(ValueError, match=f"num_envs={num_envs} must be an integer, at most {2**20}"):
            make(num_envs=num_envs)
    assert time.monotonic() - start < 1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"render_env_id": 4}, "render_env_id=4 .*at most 3"),
        ({"render_env_id": -1}, "render_env_id=-1"),
        ({"render_env_id": "0"}, "render_env_id='0'"),
        ({"render_width": 2**32}, "render_width=4294967296"),
        ({"render_camera_id": 2**70}, "render_camera_id="),
        ({"seed": np.array(-1)}, "seed=-1"),
        ({"seed": b"1234"}, "seed=b'1234'"),
        ({"seed": np.array([1.0, 2, 3, 4])}, r"seed\[0\]=1.0"),
        ({"env_kwargs": {"gravity": 1.0}}, "env_kwargs={'gravity': 1.0} must be a list"),
        ({"env_kwargs": 4}, "env_kwargs=4 must be a list"),
        ({"env_kwargs": [{}, None, {}, {}]}, r"env_kwargs\[1\]=None must be a dictionary"),
        ({"env_kwargs": [{1: 2}] * 4}, r"env_kwargs\[0\]: there is no option 1"),
    ],
    ids=str,
)
def test_wrong_arguments_of_make(arguments: dict[str, Any], match: str) -> None:
    """Case 10."""
    with pytest.raises(ValueError, match=f"CartPole-v1: {match}"):
        make("CartPole-v1", **arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ticks", 2**31),
        ("ticks", [1.5, 2.0]),
        ("ticks", "x"),
        ("ticks", None),
        ("weights", "x"),
        ("weights", {"a": 1}),
        ("weights", [[1, 2], [3]]),
        ("extra", float("nan")),
        ("extra", {"a": object()}),
        ("extra", np.arange(3)),
    ],
    ids=str,
)
def test_wrong_arrays_and_documents(name: str, value: Any) -> None:
    """Case 10: an option that no array or no JSON can hold is named; nothing is rounded."""
    with pytest.raises(ValueError, match=f"KitchenSink-v0: option {name}"):
        make("KitchenSink-v0", **{name: value})
    with pytest.raises(ValueError, match=rf"KitchenSink-v0: env_kwargs\[1\]: option {name}"):
        make("KitchenSink-v0", num_envs=2, env_kwargs=[{}, {name: value}])


def test_texts_that_are_no_utf_8() -> None:
    """Case 10: surrogates stand for bytes that are no text."""
    with pytest.raises(ValueError, match=r"KitchenSink-v0: option file=.*not UTF-8"):
        make("KitchenSink-v0", file=Path("/tmp/\udcff"))
    env = make("KitchenSink-v0", num_envs=1)
    env.reset()
    action = gymnasium.vector.utils.batch_space(env.action_space, 1).sample()
    with pytest.raises(ValueError, match=r"KitchenSink-v0: action\['say'\] is not UTF-8"):
        env.step(action | {"say": ("\ud800",)})
    env.step(action)


@pytest.mark.parametrize("mask", [[True, False, False, True], np.ones(4, bool), np.zeros(4, bool), True])
def test_masks_are_no_env_ids(mask: Any) -> None:
    """Case 10: they would be taken for the envs 0 and 1."""
    env = make()
    env.reset()
    for call in (env.reset, lambda ids: env.step(np.zeros(np.size(ids), int), ids), env.render):
        env.render_mode = "rgb_array"
        with pytest.raises(ValueError, match="Counter-v0: env_id must be a list of envs, not a mask"):
            call(mask)
    assert env.step([0] * 4)[4]["elapsed_step"].tolist() == [1] * 4


@pytest.mark.parametrize("options", [0, [], "low", {1: 2}, {"low": [1, None]}], ids=repr)
def test_wrong_options_of_reset(options: Any) -> None:
    """Case 10, in every face."""
    envs = [make("CartPole-v1"), gymnasium.make_vec("envpool/CartPole-v1", num_envs=2)]
    envs.append(gymnasium.make("envpool/CartPole-v1").unwrapped)
    for env in envs:
        env.reset(seed=0)
        with pytest.raises((ValueError, TypeError), match="option"):
            env.reset(options=options)
        env.reset()


def test_seeds_in_arrays() -> None:
    """Case 13."""
    env = make()
    assert env.reset(seed=np.array(7))[0][:, 0].tolist() == [7, 8, 9, 10]
    assert env.reset(seed=np.array([4, 3, 2, 2**63], np.uint64))[0][:3, 0].tolist() == [4, 3, 2]
    with pytest.raises(ValueError, match=r"seed=\[5\]"):
        gymnasium.make("envpool/Counter-v0").unwrapped.reset(seed=[5])


def test_wrong_renders() -> None:
    """EnvPool leaves the process when it can't render."""
    env = make("KitchenSink-v0", render_mode="rgb_array")
    env.reset()
    for camera in (-2, 2**32, "top", 1.5):
        with pytest.raises(ValueError, match="KitchenSink-v0: render_camera_id="):
            env.render([0], camera)
    for ids in ([], [4], [0.5], [[0]]):
        with pytest.raises(ValueError, match=r"KitchenSink-v0: .*env"):
            env.render(ids)
    assert env.render([0, 0]).shape[0] == 2


def test_pools_cannot_be_copied() -> None:
    """A pickled or copied env is refused, and the env itself is as it was."""
    envs = [make("CartPole-v1", 1), gymnasium.make_vec("envpool/CartPole-v1"), gymnasium.make("envpool/CartPole-v1")]
    for env in envs:
        env.reset(seed=0)
        for copying in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=r"cannot pickle .*Pass the task's id and the options"):
                copying(env)
        env.reset()
    assert pickle.loads(pickle.dumps(envs[0].spec)).id == "CartPole-v1"


def test_disabled_autoreset() -> None:
    """Case 55: an env whose episode has ended is never stepped, and the others are not either."""
    env = make("KitchenSink-v0", num_envs=2, autoreset_mode="Disabled", env_kwargs=[{"length": 2}, {"length": 9}])
    action = gymnasium.vector.utils.batch_space(env.action_space, 2).sample()
    env.reset()
    env.step(action)
    assert env.step(action)[2].tolist() == [True, False]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="episode of env 0 is over"):
            env.step(action)
    env.reset([0])
    assert env.step(action)[4]["elapsed_step"].tolist() == [1, 3]


# ---- plugins ----


def test_load_plugin_takes_paths_of_all_kinds(plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 37."""
    file = plugins / "cartpole_cpp.so"
    (tmp_path / "ünï çode.so").symlink_to(file)
    monkeypatch.chdir(plugins)
    for path in (file, os.fsencode(file), "cartpole_cpp.so", tmp_path / "ünï çode.so"):
        assert envpool_sdk.load_plugin(path) == ("CartPole-v1",)
    for path, why in ((plugins, "directory"), ("/dev/null", "not a file"), (tmp_path / "no.so", "no such file")):
        with pytest.raises(envpool_sdk.PluginError, match=f"{re.escape(str(path))}.*{why}"):
            envpool_sdk.load_plugin(path)


def test_broken_specs_name_the_file(plugins: Path) -> None:
    """Case 37."""
    with pytest.raises(envpool_sdk.PluginError, match=r"bad_field_dtype\.so: Bad-v0: .*unknown dtype"):
        envpool_sdk.load_plugin(plugins / "bad_field_dtype.so")


def test_plugin_paths_that_no_file_can_have(run_python: Run) -> None:
    """Case 37: ENVPOOL_PLUGIN_PATH is one warning, whatever is wrong with it."""
    done = run_python("import envpool_sdk", ENVPOOL_PLUGIN_PATH=f"{'a' * 5000}{os.pathsep}/dev/null{os.pathsep}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning: envpool_sdk: ENVPOOL_PLUGIN_PATH") == 2


def test_half_a_file(plugins: Path, tmp_path: Path, run: Run) -> None:
    """Cases 33, 37: a library that was cut short, as by a full disk."""
    whole = (plugins / "cartpole_cpp.so").read_bytes()
    for size in (64, 3000, len(whole) // 2):
        (tmp_path / f"cut{size}.so").write_bytes(whole[:size])
    out = run(f"""
from pathlib import Path
for path in sorted(Path({str(tmp_path)!r}).glob("cut*.so")):
    try:
        envpool_sdk.load_plugin(path)
    except envpool_sdk.PluginError as error:
        print(path.name in str(error))
""")
    assert out == "True\n" * 3


# ---- the end, forks, signals: each in a process of its own ----

BUSY = """
env = envpool_sdk.make("Slow-v0", num_envs=8, batch_size=2, num_threads=2, step_us=20_000.0)
env.async_reset()
vec = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3, num_threads=2)
kept = vec.reset()
"""


PLAY = """
while True:
    ids = env.recv()[4]["env_id"]
    env.send([0] * len(ids), ids)
"""


@pytest.mark.parametrize(
    ("code", "returncode"),
    [
        ("atexit.register(lambda: print(len(env.recv()[0])))", 0),
        ("atexit.register(lambda: print(len(envpool_sdk.make('CartPole-v1').reset())))", 0),
        ("threading.Thread(target=lambda: (time.sleep(0.2), print(len(env.recv()[0])))).start()", 0),
        ("print(2); os._exit(0)", 0),
        ("signal.signal(signal.SIGALRM, lambda *_: sys.exit(5)); signal.setitimer(0, 0.2); print(2)" + PLAY, 5),
    ],
    ids=["atexit", "made-atexit", "thread", "_exit", "signal"],
)
def test_exit(run: Run, code: str, returncode: int) -> None:
    """Cases 21, 44, 49: with envs in flight, from anywhere."""
    assert run(BUSY + code, returncode) == "2\n"


@pytest.mark.parametrize("options", ["num_threads=1", "num_threads=2", "num_threads=2, batch_size=4"])
def test_exit_with_daemon_threads(run: Run, options: str) -> None:
    """Cases 21, 44."""
    run(f"""
env = envpool_sdk.make("CartPole-v1", num_envs=16, {options})
env.async_reset()
def play():
    while True:
        ids = env.recv()[4]["env_id"]
        env.send([0] * len(ids), ids)
threading.Thread(target=play, daemon=True).start()
time.sleep(0.1)
""")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("env.close(); vec.close(); sys.exit(0)", 0),
        ("del env, vec, kept; gc.collect(); sys.exit(0)", 0),
        ("raise ValueError", 1),
        ("new = envpool_sdk.make('CartPole-v1', num_envs=4, num_threads=2); new.reset(); sys.exit(len(new.step([0] * 4)[0]))", 4),
    ],
)  # fmt: skip
def test_a_forked_child_ends_as_it_wants(run: Run, code: str, status: int) -> None:
    """Case 24: os.fork() with busy pools, and a child that ends as any other process."""
    out = run(
        BUSY
        + f"""
child = os.fork()
if child == 0:
    {code}
start = time.monotonic()
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert time.monotonic() - start < 2
print(status, len(env.recv()[0]), len(vec.step([0] * 3)[0]))
"""
    )
    assert out == f"{status} 2 3\n"


def test_multiprocessing_by_fork(run: Run) -> None:
    """Case 24: workers that are forked after a pool was made use pools of their own; that of the parent is refused."""
    out = run(
        BUSY
        + """
def work(n):
    try:
        vec.step([0] * 3)
    except RuntimeError as error:
        assert "fork" in str(error)
    own = envpool_sdk.make("CartPole-v1", num_envs=n, num_threads=2)
    own.reset()
    return len(own.step([0] * n)[0])
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, [1, 2, 3, 4]))
print(len(vec.step([0] * 3)[0]))
"""
    )
    assert out == "[1, 2, 3, 4]\n3\n"


def test_async_vector_env_over_single_envs() -> None:
    """Case 24: Gymnasium forks while a pool of one is alive here."""
    alive = gymnasium.make("envpool/CartPole-v1")
    alive.reset(seed=0)
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=2, vectorization_mode="async")
    expected = gymnasium.make_vec("envpool/CartPole-v1", num_envs=2)
    np.testing.assert_array_equal(envs.reset(seed=3)[0], expected.reset(seed=3)[0])
    np.testing.assert_array_equal(envs.step([0, 1])[0], expected.step([0, 1])[0])
    envs.close()
    alive.step(0)


def test_exceptions_of_signal_handlers(run: Run) -> None:
    """Case 8: what a handler raises ends the wait, and nothing is lost."""
    out = run("""
env = envpool_sdk.make("Slow-v0", num_envs=4, batch_size=2, num_threads=2, step_us=200_000.0)
env.async_reset()
env.recv(), env.recv()
env.send([0] * 4, [0, 1, 2, 3])
def handler(*_):
    raise ZeroDivisionError
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    env.recv()
except ZeroDivisionError:
    print(env._pool.pending)
print(sorted([*env.recv()[4]["env_id"].tolist(), *env.recv()[4]["env_id"].tolist()]))
""")
    assert out == "4\n[0, 1, 2, 3]\n"


def test_reset_after_an_interrupted_step(run: Run) -> None:
    """Case 8: Gymnasium's users have no recv(): after Ctrl-C, reset() makes all good."""
    out = run("""
vector = gymnasium.make_vec("envpool/Slow-v0", num_envs=4, num_threads=2, step_us=100_000.0)
for env in (vector, gymnasium.make("envpool/Slow-v0", step_us=200_000.0)):
    action = env.action_space.sample()
    env.reset(seed=0)
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        env.step(action)
    except KeyboardInterrupt:
        env.reset(seed=0)
        print(env.step(action)[0])
""")
    assert out == "[1 1 1 1]\n1\n"


@pytest.mark.parametrize("env_id", [0, 1])
def test_reset_after_a_failed_reset(env_id: int) -> None:
    """Case 8: the rows of the other envs are not in the way."""
    envs = gymnasium.make_vec(
        "envpool/Faulty-v0", num_envs=3, fault="failed", where="reset", env_id=env_id, times=1, key=f"cases{env_id}"
    )
    with pytest.raises(envpool_sdk.EnvError, match=f"env {env_id}"):
        envs.reset(seed=[1, None, 2])
    envs.reset(seed=1)
    envs.step([0, 0, 0])


# case | covered by (test_cases.py unless another file is named)
# -----+---------------------------------------------------------
# 1    | test_facade.py: test_autoreset
# 2    | test_gymnasium_vector.py: test_shows_ends_of_episodes
# 3    | test_gymnasium_vector.py: test_recorded_lengths_are_those_of_the_episodes
# 5    | test_gymnasium_vector.py: test_reset_mask_touches_only_its_envs; atari: test_faces.py
# 6    | test_facade.py: test_reset_after_steps_is_a_fresh_start
# 7    | test_every_env_comes_once; test_facade.py: test_async_reset_gives_every_env_once
# 8    | test_exceptions_of_signal_handlers, test_reset_after_...; test_facade.py: test_ctrl_c_while_waiting, test_recv_waits_no_longer_than_told;
#      | test_inputs.py: test_nothing_in_flight
# 9    | test_every_env_comes_once; test_facade.py: test_scale
# 10   | test_arrays_of_any_making, test_wrong_...; test_inputs.py
# 12   | test_rows_are_of_their_envs
# 13   | test_seeds_in_arrays; test_facade.py: test_default_seed_is_42, test_reset_honours_seeds; test_inputs.py: test_wrong_resets
# 14   | test_gymnasium_single.py: test_the_limit_counts_steps_whatever_the_skip, test_time_limits
# 21   | test_exit, test_exit_with_daemon_threads; test_registration.py: test_exit_with_busy_pools
# 24   | test_a_forked_child_ends_as_it_wants, test_multiprocessing_by_fork; test_facade.py: test_a_forked_child_gets_an_error
# 26   | test_memory_of_batches_is_used_again, test_no_memory_is_an_error; test_facade.py: test_nothing_is_left_behind;
#      | atari: test_faces.py
# 28   | test_gymnasium_single.py: test_seeds
# 31   | test_threads_do_not_matter; test_facade.py: test_trajectories_are_those_of_a_synchronous_pool; atari: test_faces.py
# 33   | test_half_a_file; atari: test_engine.py: test_bad_options_are_explained
# 35   | test_processes.py: test_one_per_process_engines
# 37   | test_broken_specs_name_the_file, test_half_a_file; test_registration.py: test_files_that_are_no_plugins, test_broken_plugins
# 42   | test_facade.py: test_an_env_that_hangs
# 44   | test_close_while_others_wait, test_exit; test_facade.py: test_close
# 45   | test_one_cpu_is_enough
# 47   | test_what_is_kept_never_changes; test_gymnasium_vector.py: test_kept_batches_never_change
# 49   | test_recv_lets_other_threads_run, test_exit; test_facade.py: test_no_envs
# 50   | test_gymnasium_vector.py: test_info_leaves_are_arrays
# 54   | test_gymnasium_vector.py: test_each_env_has_its_own_options
# 55   | test_disabled_autoreset; test_gymnasium_vector.py: test_agrees_with_sync_vector_env
# 56   | test_gymnasium_vector.py: test_resets_differ_across_envs_and_episodes
# not yet there: 18 (xla), 19, 20, 51, 52, 53 (packaging, templates), 22, 25, 36 (worker processes)
