"""EnvPool.xla(): what compiled JAX programs get is what the NumPy loop gets, and what is wrong is a Python error."""

from __future__ import annotations

import gc
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envpool_sdk

jax = pytest.importorskip("jax", reason="needs JAX")
jnp = jax.numpy

STEPS = 100
KEPT_ACTIONS = 7  # of each env, taken in turn

VOLATILE = frozenset({"spent"})
"""KitchenSink-v0's wall clock."""

FAMILIES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {},
    "KitchenSink-v0": {},
    "Pursuit-v0": {},
    "Pong-v5": {"img_height": 42, "img_width": 42},
    "Ant-v5": {},
    "CheetahRun-v1": {},
    "HealthGathering-v1": {"img_height": 42, "img_width": 42},
}
PACKAGES = {
    "Pong-v5": "envpool_atari",
    "Ant-v5": "envpool_mujoco",
    "CheetahRun-v1": "envpool_mujoco",
    "HealthGathering-v1": "envpool_vizdoom",
}


@pytest.fixture
def x64() -> Iterator[None]:
    """JAX with 64 bits."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(params=["native", "host"])
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The CPU's way, or that of all other platforms, which works on a CPU too."""
    if request.param == "host":
        monkeypatch.setattr(jax.lax, "platform_dependent", lambda *args, cpu, default: default(*args))
    return str(request.param)


def make(task: str = "CartPole-v1", num_envs: int = 4, **options: Any) -> envpool_sdk.EnvPool:
    if task in PACKAGES:
        pytest.importorskip(PACKAGES[task])
    return envpool_sdk.make(task, num_envs=num_envs, **options)


class Policy:
    """Actions by env and elapsed step, the same bits for NumPy and JAX."""

    def __init__(self, env: envpool_sdk.EnvPool) -> None:
        env.action_space.seed(5)
        samples = [[env.action_space.sample() for _ in range(KEPT_ACTIONS)] for _ in range(len(env))]
        self._table = jax.tree.map(
            lambda *all: np.array(all).reshape(len(env), KEPT_ACTIONS, *np.shape(all[0])),
            *[sample for one in samples for sample in one],
        )

    def __call__(self, info: dict[str, Any]) -> Any:
        at = info["env_id"], info["elapsed_step"] % KEPT_ACTIONS
        if isinstance(at[0], np.ndarray):
            return jax.tree.map(lambda table: tuple(table[at].tolist()) if is_text(table) else table[at], self._table)
        return jax.tree.map(
            lambda table: jnp.asarray(as_bytes(table, 16) if is_text(table) else table)[at], self._table
        )


def is_text(table: Any) -> bool:
    return bool(table.dtype.kind == "U")


def as_bytes(texts: Any, most: int) -> Any:
    """uint8[..., most], as programs have texts."""
    texts = np.asarray(texts)
    padded = b"".join(text.encode().ljust(most, b"\0") for text in texts.flat)
    return np.frombuffer(padded, np.uint8).reshape(*texts.shape, most)


def in_program(wanted: Any, got: Any) -> Any:
    """What the NumPy loop gives, with texts as in what a program gave."""
    if isinstance(wanted, dict):
        return {key: in_program(part, got[key]) for key, part in wanted.items()}
    if isinstance(wanted, tuple) and isinstance(got, np.ndarray):
        return as_bytes(wanted, got.shape[-1])
    return tuple(map(in_program, wanted, got)) if isinstance(wanted, tuple) else wanted


def unstacked(batches: Any) -> list[Any]:
    """What scan stacked, as NumPy's arrays."""
    leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, batches))
    return [jax.tree.unflatten(tree, [leaf[t] for leaf in leaves]) for t in range(len(leaves[0]))]


def scanned(env: envpool_sdk.EnvPool, policy: Policy, steps: int) -> list[Any]:
    """A synchronous rollout in one program."""
    handle, _, _, step = env.xla()
    _, info = env.reset()

    def body(carry: Any, _: Any) -> Any:
        handle, info = carry
        handle, batch = step(handle, policy(info))
        return (handle, {key: batch[4][key] for key in info}), batch

    start = {key: jnp.asarray(info[key]) for key in ("env_id", "elapsed_step")}
    return unstacked(jax.jit(lambda carry: jax.lax.scan(body, carry, length=steps)[1])((handle, start)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("task", FAMILIES)
def test_scan_equals_the_numpy_loop(task: str, same: Callable[..., None]) -> None:
    env, other = (make(task, 3, seed=3, **FAMILIES[task]) for _ in range(2))
    policy = Policy(env)
    got = scanned(env, policy, STEPS)
    _, info = other.reset()
    for t in range(STEPS):
        wanted = other.step(policy(info))
        info = wanted[4]
        same(got[t], in_program(wanted, got[t]), f"step {t}", ignore=VOLATILE)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("task", FAMILIES)
def test_asynchronous_scan_equals_the_numpy_loop(task: str, same: Callable[..., None]) -> None:
    env, other = (make(task, 4, batch_size=2, seed=3, **FAMILIES[task]) for _ in range(2))
    policy = Policy(env)
    handle, recv, send, _ = env.xla()

    def body(handle: Any, _: Any) -> Any:
        handle, batch = recv(handle)
        return send(handle, policy(batch[4]), batch[4]["env_id"]), batch

    env.async_reset()
    batches = unstacked(jax.jit(lambda handle: jax.lax.scan(body, handle, length=STEPS)[1])(handle))
    got = by_env(batches)
    wanted = by_env([])
    other.async_reset()
    # Who comes first is a matter of luck; what each env does is not.
    while any(len(one) < len(another) for one, another in zip(wanted, got, strict=True)):
        batch = other.recv()
        for rows, more in zip(wanted, by_env([in_program(batch, batches[0])]), strict=True):
            rows += more
        other.send(policy(batch[4]), batch[4]["env_id"])
    for i in range(4):
        for t, (one, another) in enumerate(zip(got[i], wanted[i], strict=False)):
            same(one, another, f"env {i}, row {t}", ignore=VOLATILE)


def by_env(batches: list[Any]) -> list[list[Any]]:
    """The rows of each of four envs, in order."""
    rows: list[list[Any]] = [[], [], [], []]
    for batch in batches:
        for row, i in enumerate(batch[4]["env_id"].tolist()):
            rows[i].append(jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], batch))
    return rows


@pytest.mark.parametrize("options", [{}, {"isolation": "process"}])
def test_loops_calls_and_numpy_in_turn(options: dict[str, Any], platform: str, same: Callable[..., None]) -> None:
    env, other = make(seed=3, **options), make(seed=3)
    handle, recv, send, step = env.xla()
    env.reset()
    other.reset()
    action = np.array([0, 1, 1, 0], np.int32)

    handle = jax.jit(lambda h: jax.lax.fori_loop(0, 10, lambda _, h: step(h, action)[0], h))(handle)
    for _ in range(10):
        wanted = other.step(action)
    for _ in range(3):  # outside of any program
        handle, got = recv(send(handle, action))
        wanted = other.step(action)
        same(jax.tree.map(np.asarray, got), wanted)
    same(env.step(action), other.step(action))
    jitted = jax.jit(step)
    for ids in ([2, 0], [1, 3]):  # some envs
        handle, got = jitted(handle, action[:2], np.array(ids))
        wanted = other.step(action[:2], ids)
        same(jax.tree.map(np.asarray, got), wanted)


@pytest.mark.parametrize("env_type", ["gym", "dm"])
def test_forms_of_other_env_types(env_type: str, same: Callable[..., None]) -> None:
    env, other = (envpool_sdk.make("CartPole-v1", env_type, num_envs=4, seed=3) for _ in range(2))
    handle, _, _, step = env.xla()
    env.reset()
    other.reset()
    actions = np.random.default_rng(0).integers(0, 2, (STEPS, 4))
    got = unstacked(jax.jit(lambda handle: jax.lax.scan(step, handle, actions)[1])(handle))
    for one, action in zip(got, actions, strict=True):
        wanted = other.step(action)
        assert type(one).__name__ == type(wanted).__name__  # dm's named tuples are made for each pool
        same(jax.tree.leaves(one), jax.tree.leaves(wanted))


def test_dtypes_without_x64() -> None:
    env, other = make("HealthGathering-v1"), make("HealthGathering-v1")
    handle, recv, _, _ = env.xla()
    env.async_reset()
    other.async_reset()
    assert not jax.config.jax_enable_x64
    _, got = recv(handle)
    wanted = in_program(other.recv(), jax.tree.map(np.asarray, got))
    wide = {"float64": "float32", "int64": "int32"}
    for one, another in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == wide.get(another.dtype.name, another.dtype.name)
        np.testing.assert_array_equal(one, another.astype(one.dtype))


# ---- what client programs do ----


def test_calls_of_cleanrl() -> None:
    """ppo_atari_envpool_xla_jax_scan.py, its calls on the envs."""
    envs = make(num_envs=8, seed=1)
    envs.num_envs = 8
    envs.single_action_space = envs.action_space
    envs.single_observation_space = envs.observation_space
    envs.is_vector_env = True
    handle, _, _, step_env = envs.xla()

    def step_env_wrapped(stats: Any, handle: Any, action: Any) -> Any:
        handle, (next_obs, reward, terminated, truncated, info) = step_env(handle, action)
        returns = stats["returns"] + info["reward"]
        over = (1 - info["terminated"]) * (1 - info["TimeLimit.truncated"])
        lengths = stats["lengths"] + 1
        stats = {
            "returns": returns * over,
            "lengths": lengths * over,
            "last": jnp.where(terminated + truncated, returns, stats["last"]),
        }
        return stats, handle, (next_obs, reward, terminated + truncated, info)

    def step_once(carry: Any, _: Any) -> Any:
        stats, obs, done, key, handle = carry
        key, sub = jax.random.split(key)
        action = jnp.argmax(jax.random.uniform(sub, (8, 2)), axis=1)
        stats, handle, (next_obs, reward, next_done, _) = step_env_wrapped(stats, handle, action)
        return (stats, next_obs, next_done, key, handle), (obs, action, done, reward)

    stats = {"returns": jnp.zeros(8, jnp.float32), "lengths": jnp.zeros(8, jnp.int32), "last": jnp.zeros(8)}
    next_obs = envs.reset()[0]
    rollout = jax.jit(lambda carry: jax.lax.scan(step_once, carry, (), 32))
    carry = (stats, jnp.asarray(next_obs), jnp.zeros(8, jax.numpy.bool_), jax.random.PRNGKey(0), handle)
    for _ in range(4):
        carry, storage = rollout(carry)
    assert storage[0].shape == (32, 8, 4)
    assert float(carry[0]["last"].min()) > 5
    envs.close()


def test_calls_of_purejaxql() -> None:
    """pqn_atari.py: the handle is part of the env's state, which is reset at any time; all in one program."""
    env = make(num_envs=4)
    env.name = "CartPole-v1"
    handle0, _, _, step_f = env.xla()

    def train(key: Any, obs: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            (handle, seen), obs, key = carry
            key, sub = jax.random.split(key)
            action = jax.random.randint(sub, (4,), 0, 2)
            handle, (obs, reward, _, _, info) = step_f(handle, action)
            returns = jnp.where(info["elapsed_step"] > 0, seen + reward, 0)
            return ((handle, returns), obs, key), (returns, info["TimeLimit.truncated"])

        def update(carry: Any, _: Any) -> Any:
            return jax.lax.scan(step, carry, None, 16)

        return jax.lax.scan(update, ((jnp.array(handle0), jnp.zeros(4)), obs, key), None, 5)

    for seed in range(2):
        obs, _ = env.reset()
        carry, (returns, _) = jax.jit(train)(jax.random.PRNGKey(seed), jnp.asarray(obs))
        assert returns.shape == (5, 16, 4)
        assert carry[1].shape == (4, 4)


@pytest.mark.parametrize("task", ["CartPole-v1", "Pong-v5"])
@pytest.mark.parametrize("env_type", ["gymnasium", "dm"])
def test_shapes_are_envpools(task: str, env_type: str) -> None:
    envpool = pytest.importorskip("envpool", reason="needs EnvPool")
    theirs = envpool.make(task, env_type=env_type, num_envs=4)
    ours = make(task, env_type=env_type)
    results = []
    for env in (theirs, ours):
        functions = env.xla()
        shapes = jax.eval_shape(functions[3], functions[0], jnp.zeros(4, int))
        results.append({jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(shapes)})
    theirs, ours = results
    for key, leaf in theirs.items():
        assert (key, ours[key].shape, ours[key].dtype) == (key, leaf.shape, leaf.dtype)


def test_two_pools_in_one_program(same: Callable[..., None]) -> None:
    one, two, alone = make(seed=1), make(seed=2, num_envs=2), make(seed=2, num_envs=2)
    first, second = one.xla(), two.xla()
    for env in (one, two, alone):
        env.reset()

    @jax.jit
    def both(h1: Any, h2: Any) -> Any:
        h1, batch1 = first.step(h1, np.zeros(4, int))
        h2, batch2 = second.step(h2, (batch1[0][:2, 2] > 0).astype(int))
        return h1, h2, (batch1[0][:2, 2] > 0).astype(int), batch2

    h1, h2 = first.handle, second.handle
    for _ in range(30):
        h1, h2, action, batch = both(h1, h2)
        same(jax.tree.map(np.asarray, batch), alone.step(np.asarray(action)))


# ---- errors ----


def test_wrong_arguments_are_errors_while_tracing() -> None:
    env = make()
    handle, recv, send, step = env.xla()
    env.reset()
    good = np.zeros(4, int)
    for action, why in {
        (0.5,) * 4: r"CartPole-v1: action must hold int64 .* not float32",
        (1,) * 3: r"CartPole-v1: action must have the shape \(4,\), not \(3,\)",
        ((1,),) * 4: r"must have the shape \(4,\), not \(4, 1\)",
    }.items():
        for call in (step, send, jax.jit(step)):
            with pytest.raises(ValueError, match=why):
                call(handle, np.array(action, np.float32 if action[0] == 0.5 else np.int32))
    for ids in (np.zeros(0, int), np.ones((2, 2), int), np.array([True] * 4), np.array([0.0])):
        with pytest.raises(ValueError, match=r"CartPole-v1: env_id must be a list of envs"):
            step(handle, good, ids)
    with pytest.raises(ValueError, match=r"must have the shape \(2,\), not \(4,\)"):
        step(handle, good, np.array([0, 1]))
    for bad in (np.zeros(8, np.int32), np.zeros(4, np.uint8), 3):
        with pytest.raises(ValueError, match="the first argument must be the handle"):
            recv(bad)
    assert env._pool.pending == 0


def test_no_vmap_and_no_derivative() -> None:
    env = make()
    handle, recv, _, step = env.xla()
    env.reset()
    actions = np.zeros((3, 4), int)
    with pytest.raises(NotImplementedError, match=r"CartPole-v1: a pool can't be under jax\.vmap"):
        jax.vmap(lambda a: step(handle, a)[1][0])(actions)
    with pytest.raises(NotImplementedError, match=r"can't be under jax\.vmap"):
        jax.jit(jax.vmap(recv))(np.stack([handle] * 3))
    # As constants, batches may stand in what is differentiated.
    weight = jax.grad(lambda w: (w * step(handle, np.zeros(4, int))[1][1]).sum())(2.0)
    assert weight == 4


@pytest.mark.usefixtures("x64")
def test_no_derivative_by_an_action() -> None:
    env = make("KitchenSink-v0", num_envs=2)
    handle, _, _, step = env.xla()
    env.reset()
    action = Policy(env)({"env_id": jnp.arange(2), "elapsed_step": jnp.zeros(2, int)})

    def loss(push: Any, stop: bool) -> Any:
        sent = jax.lax.stop_gradient(push) if stop else push
        return step(handle, {**action, "push": sent})[1][1].sum() + push.sum()

    with pytest.raises(NotImplementedError, match=r"no derivative of a step by its action.*stop_gradient"):
        jax.grad(partial(loss, stop=False))(action["push"])
    np.testing.assert_array_equal(jax.grad(partial(loss, stop=True))(action["push"]), np.ones((2, 2), np.float32))


def test_observations_of_64_bits_need_x64() -> None:
    env = make("Ant-v5", 2)
    handle, recv, _, _ = env.xla()
    env.async_reset()
    for call in (recv, jax.jit(recv)):
        with pytest.raises(ValueError, match=r"Ant-v5: the observation is float64, which JAX has only with x64"):
            call(handle)
    assert env._pool.pending == 2


@pytest.mark.parametrize("platform", ["native", "host"], indirect=True)
def test_errors_at_run_time_name_the_env(platform: str) -> None:
    env = make()
    handle, recv, _, step = env.xla()
    error = jax.errors.JaxRuntimeError
    step = jax.jit(step)
    with pytest.raises(error, match="CartPole-v1: env 0 was never reset"):
        jax.block_until_ready(step(handle, np.zeros(4, int)))
    env.reset()
    with pytest.raises(error, match=r"CartPole-v1: action of env 2 is 5, allowed: 0 .. 1"):
        jax.block_until_ready(step(handle, np.array([0, 1, 5, 1])))
    with pytest.raises(error, match=r"env_id 7, allowed: 0 .. 3"):
        jax.block_until_ready(step(handle, np.array([0, 1]), np.array([0, 7])))
    with pytest.raises(error, match="recv has nothing to wait for"):
        jax.block_until_ready(recv(handle))
    env.send(np.zeros(2, int), [0, 1])
    with pytest.raises(error, match="recv got 2 rows, but the program is made for batches of 4"):
        jax.block_until_ready(recv(handle))
    jax.block_until_ready(step(handle, np.zeros(4, int)))  # and on it goes


def test_closed_pool() -> None:
    env = make()
    functions = env.xla()
    handle = functions.handle
    env.reset()
    action = np.zeros(4, np.int32)
    compiled = jax.jit(functions.step).lower(handle, action).compile()
    jax.block_until_ready(compiled(handle, action))
    env.close()
    closed = "CartPole-v1: the pool is closed"
    for call in (functions.recv, jax.jit(functions.recv)):
        with pytest.raises(envpool_sdk.ClosedError, match=closed):
            call(handle)
    with pytest.raises(envpool_sdk.ClosedError, match=closed):
        env.xla()
    error = jax.errors.JaxRuntimeError
    with pytest.raises(error, match=closed):
        jax.block_until_ready(compiled(handle, action))
    del env, functions, call
    gc.collect()
    with pytest.raises(error, match=r"the pool is closed|this handle's pool is gone"):
        jax.block_until_ready(compiled(handle, action))
    with pytest.raises(error, match="another process"):
        jax.block_until_ready(compiled(handle ^ np.uint8(1), action))


def test_what_has_no_place_in_a_program() -> None:
    with pytest.raises(ValueError, match=r"xla\(\) needs a pool with another autoreset_mode than 'SameStep'"):
        make(autoreset_mode="SameStep").xla()
    with pytest.raises(ValueError, match=r"xla\(\) needs a pool made with copy=True"):
        make(copy=False).xla()
    with pytest.raises(ValueError, match="zero_discount_on_life_loss=False"):
        envpool_sdk.make("Image-v0", "dm", zero_discount_on_life_loss=True).xla()


def test_jax_is_loaded_only_when_asked_for(run_python: Callable[..., Any], plugins: Path) -> None:
    done = run_python(
        "import sys, envpool_sdk\n"
        f"envpool_sdk.load_plugin({str(plugins / 'cartpole_cpp.so')!r})\n"
        "env = envpool_sdk.make('CartPole-v1')\n"
        "assert 'jax' not in sys.modules and 'torch' not in sys.modules\n"
        "sys.modules['jax'] = None\n"
        "try: env.xla()\n"
        "except ImportError as error: print(error)\n"
    )
    assert done.stdout == "CartPole-v1: xla() needs JAX, 0.6 or newer: pip install 'envpool-sdk[jax]'\n", done.stderr


def test_interface_is_xlas(tmp_path: Path) -> None:
    """Our description of XLA's C interface against the header of the JAX that is installed."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    structs = {
        "xla_extension": ("XLA_FFI_Extension_Base", {"struct_size": "", "type": "", "next": ""}),
        "xla_api_version": ("XLA_FFI_Api_Version", {"extension_start": "", "major_version": "", "minor_version": ""}),
        "xla_metadata": ("XLA_FFI_Metadata", {"struct_size": "", "api_version": ""}),
        "xla_metadata_extension": ("XLA_FFI_Metadata_Extension", {"extension_base": "", "metadata": ""}),
        "xla_error_create_args": ("XLA_FFI_Error_Create_Args", {"extension_start": "", "message": "", "errc": ""}),
        "xla_api": ("XLA_FFI_Api", {"api_version": "", "internal_api": "", "error_create": "XLA_FFI_Error_Create"}),
        "xla_buffer": ("XLA_FFI_Buffer", {"extension_start": "", "dtype": "", "data": "", "rank": "", "dims": ""}),
        "xla_call_frame": (
            "XLA_FFI_CallFrame",
            {"extension_start": "", "api": "", "ctx": "", "stage": "", "args": "", "rets": ""},
        ),
    }
    lists = {"XLA_FFI_Args": "args", "XLA_FFI_Rets": "rets"}
    pairs = [(ours, theirs, a, b or a) for ours, (theirs, members) in structs.items() for a, b in members.items()]
    for theirs, last in lists.items():
        pairs += [("xla_buffers", theirs, m, m) for m in ("struct_size", "size", "types")]
        pairs.append(("xla_buffers", theirs, "buffers", last))
    lines = [
        f"_Static_assert(offsetof({ours}, {a}) == offsetof({theirs}, {b})"
        f' && sizeof((({ours}*)0)->{a}) == sizeof((({theirs}*)0)->{b}), "{theirs}.{b}");'
        for ours, theirs, a, b in pairs
    ]
    names = ("PRED", "S8", "S16", "S32", "S64", "U8", "U16", "U32", "U64", "F16", "F32", "F64")
    codes = ("INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "INTERNAL")
    values = {f"XLA_{name}": f"XLA_FFI_DataType_{name}" for name in names}
    values |= {f"XLA_{code}": f"XLA_FFI_Error_Code_{code}" for code in codes}
    values |= {"XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata", "XLA_MAJOR": "XLA_FFI_API_MAJOR"}
    lines += [f'_Static_assert((int){ours} == (int){theirs}, "{theirs}");' for ours, theirs in values.items()]
    source = tmp_path / "compare.c"
    header = Path(__file__).parents[2] / "sdk/runtime/xla_ffi.h"
    source.write_text("\n".join(["#include <xla/ffi/api/c_api.h>", f'#include "{header}"', *lines, ""]))
    done = subprocess.run(
        [compiler, "-std=c11", "-fsyntax-only", f"-I{jax.ffi.include_dir()}", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
