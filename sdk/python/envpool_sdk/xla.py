"""EnvPool.xla(): a pool as functions for compiled JAX programs. docs/dev/xla.md says how it works, and why so.

Imports JAX: only xla() imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from jax import numpy as jnp
from jax.experimental import io_callback

from envpool_sdk._native import ClosedError, xla_handlers
from envpool_sdk.rows import cast, tree_encoder
from envpool_sdk.spaces import action_fields, bounds, field_space, nest

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, Pool, SpecDict

Columns = tuple[Any, ...]

_HANDLE = jax.ShapeDtypeStruct((8,), np.uint8)

for _name, _handler in xla_handlers.items():
    jax.ffi.register_ffi_target(_name, _handler, platform="cpu")


class XlaFunctions(NamedTuple):
    """What xla() gives."""

    handle: npt.NDArray[np.uint8]
    """Names the pool, uint8[8]. Each function takes the one that the function before it gave."""
    recv: Callable[..., Any]
    """recv(handle) -> (handle, batch): as EnvPool.recv(), batch_size rows."""
    send: Callable[..., Any]
    """send(handle, action, env_id=None) -> handle: as EnvPool.send()."""
    step: Callable[..., Any]
    """step(handle, action, env_id=None) -> (handle, batch): send, then recv."""


def functions(pool: Pool, task_id: str, pack: Callable[[Columns], Any]) -> XlaFunctions:
    """The functions of a pool.

    Args:
        pool: with copies of each batch, and without same-step autoreset.
        task_id: for messages.
        pack: what makes a batch, as the user sees it, of the pool's columns. It gets JAX's arrays or tracers.
    """
    actions = _Actions(pool.spec, task_id)
    columns = _Columns(pool, task_id)
    synchronous = pool.batch_size == pool.num_envs
    calls = _Calls(pool, task_id, actions.dtypes)

    def check(handle: Any) -> None:
        if pool.closed:
            raise ClosedError(f"{task_id}: the pool is closed")
        if jnp.shape(handle) != _HANDLE.shape or jnp.result_type(handle) != _HANDLE.dtype:
            raise ValueError(
                f"{task_id}: the first argument must be the handle that xla() or the last call gave, uint8[8],"
                f" not {jnp.result_type(handle)}{list(jnp.shape(handle))}"
            )

    def recv(handle: Any) -> tuple[Any, Any]:
        check(handle)
        handle, *batch = calls.recv(handle, results=columns.results(pool.batch_size))
        return handle, pack(tuple(batch))

    def send(handle: Any, action: Any, env_id: Any = None) -> Any:
        check(handle)
        ids = _env_ids(env_id, task_id)
        return calls.send(handle, ids, actions.arrays(action, len(ids) if ids is not None else pool.num_envs))

    def step(handle: Any, action: Any, env_id: Any = None) -> tuple[Any, Any]:
        check(handle)
        ids = _env_ids(env_id, task_id)
        sent = len(ids) if ids is not None else pool.num_envs
        results = columns.results(sent if synchronous else pool.batch_size)
        handle, *batch = calls.step(handle, ids, actions.arrays(action, sent), results=results)
        return handle, pack(tuple(batch))

    handle = np.array([pool.lend_to_xla()], np.uint64).view(np.uint8)
    return XlaFunctions(handle, recv, send, step)


class _Calls:
    """The custom calls. Their platform is known only when a program is compiled: on the CPU XLA calls the pool itself;
    anywhere else JAX calls it back by way of the host.

    Compiled here once, so that a call outside of any program is a program already.
    """

    def __init__(self, pool: Pool, task_id: str, dtypes: Sequence[np.dtype[Any]]) -> None:
        refuse = _refusal(task_id)

        def host_send(handle: Any, ids: Any, actions: Sequence[Any]) -> Any:
            taken = [cast(a, d, f"{task_id}: action") for a, d in zip(actions, dtypes, strict=True)]
            pool.send(taken, None if ids is None else np.asarray(ids, np.int32))
            return np.asarray(handle)

        def host_recv(handle: Any, results: Sequence[jax.ShapeDtypeStruct]) -> Any:
            columns, _, _ = pool.recv()
            rows = len(columns[0])
            if rows != results[0].shape[0]:
                raise RuntimeError(
                    f"{task_id}: recv got {rows} rows, but the program is made for batches of {results[0].shape[0]}"
                )
            return np.asarray(handle), *(c.astype(r.dtype) for c, r in zip(columns, results, strict=True))

        def host_step(handle: Any, ids: Any, actions: Sequence[Any], results: Sequence[jax.ShapeDtypeStruct]) -> Any:
            return host_recv(host_send(handle, ids, actions), results)

        def call(name: str, host: Callable[..., Any], results: Sequence[jax.ShapeDtypeStruct], *args: Any) -> Any:
            leaves, tree = jax.tree.flatten(refuse(args))
            native = jax.ffi.ffi_call(f"envpool_sdk.{name}", [_HANDLE, *results], has_side_effect=True)

            def by_host(*leaves: Any) -> Any:
                return io_callback(host, [_HANDLE, *results], *jax.tree.unflatten(tree, leaves))

            return jax.lax.platform_dependent(*leaves, cpu=native, default=by_host)

        @partial(jax.jit, inline=True)
        def send(handle: Any, ids: Any, actions: Any) -> Any:
            return call("send", lambda *args: [host_send(*args)], [], handle, ids, actions)[0]

        @partial(jax.jit, static_argnames="results", inline=True)
        def recv(handle: Any, results: Any) -> Any:
            return call("recv", partial(host_recv, results=results), results, handle)

        @partial(jax.jit, static_argnames="results", inline=True)
        def step(handle: Any, ids: Any, actions: Any, results: Any) -> Any:
            return call("step", partial(host_step, results=results), results, handle, ids, actions)

        self.send, self.recv, self.step = send, recv, step


def _refusal(task_id: str) -> Callable[[Any], Any]:
    """The identity of any tree of arrays, except under vmap and derivatives, where it raises."""

    def no_derivative(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError(
            f"{task_id}: there is no derivative of a step by its action: put the action into jax.lax.stop_gradient()"
        )

    def no_map(axis_size: int, in_batched: Any, tree: Any) -> Any:
        raise NotImplementedError(
            f"{task_id}: a pool can't be under jax.vmap: it is a batch by itself, of num_envs envs"
        )

    constant = jax.custom_jvp(lambda tree: tree)
    constant.defjvp(no_derivative)
    single = jax.custom_batching.custom_vmap(lambda tree: constant(tree))
    single.def_vmap(no_map)
    refuse: Callable[[Any], Any] = single
    return refuse


class _Actions:
    """Checks actions, by all that is known of an array while a program is traced."""

    def __init__(self, spec: SpecDict, task_id: str) -> None:
        self._leaves: list[_Leaf] = []
        encoders = []
        for name, field, is_length in action_fields(spec):
            where = f"{task_id}: action" + "".join(f"[{key!r}]" for key in name.split("/") if name)
            shape = field["shape"][: field["per_agent"]] if is_length else field["shape"]
            encoders.append((name, partial(_put, len(self._leaves))))
            dtype = np.dtype(np.uint32 if is_length else field["dtype"])
            self._leaves.append(_Leaf(where, shape, dtype, field["kind"] == "text"))
        self._encode = tree_encoder(nest(encoders, tuples=True), f"{task_id}: action")
        self.dtypes = [dtype for leaf in self._leaves for dtype in leaf.dtypes]
        """Of the arrays."""

    def arrays(self, action: Any, rows: int) -> list[Any]:
        """The action's arrays in the pool's order. Raises ValueError naming what is wrong with its shape or dtype."""
        values: list[Any] = [None] * len(self._leaves)
        self._encode(action, values)
        return [array for value, leaf in zip(values, self._leaves, strict=True) for array in leaf.arrays(value, rows)]


def _put(slot: int, value: Any, out: list[Any]) -> None:
    out[slot] = value


class _Leaf(NamedTuple):
    """A field of the action, or its length."""

    where: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_text: bool

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        return [self.dtype, np.dtype(np.uint32)] if self.is_text else [self.dtype]

    def arrays(self, value: Any, rows: int) -> list[Any]:
        array = jnp.asarray(value)
        if array.shape != (rows, *self.shape):
            raise ValueError(f"{self.where} must have the shape {(rows, *self.shape)}, not {array.shape}")
        real = jnp.issubdtype(self.dtype, jnp.floating)
        allowed = (jnp.integer, jnp.bool_, jnp.floating) if real else (jnp.integer, jnp.bool_)
        if not any(jnp.issubdtype(array.dtype, kind) for kind in allowed):
            raise ValueError(f"{self.where} must hold {self.dtype} (or what casts to it safely), not {array.dtype}")
        if real:
            return [array.astype(_in_jax(self.dtype))]
        if self.is_text:
            return [array, jnp.where(array != 0, jnp.arange(1, self.shape[-1] + 1), 0).max(-1)]
        return [array]  # as they are: whether an integer fits is known only at run time


def _env_ids(env_id: Any, task_id: str) -> Any:
    """None or int[k]."""
    if env_id is None:
        return None
    ids = jnp.atleast_1d(env_id)
    if ids.ndim != 1 or len(ids) == 0 or not jnp.issubdtype(ids.dtype, jnp.integer):
        raise ValueError(f"{task_id}: env_id must be a list of envs, int[k], not {ids.dtype}{list(ids.shape)}")
    return ids


class _Columns:
    """The pool's columns as results of a program."""

    def __init__(self, pool: Pool, task_id: str) -> None:
        self._task_id = task_id
        fields = {f["name"]: f for f in pool.spec["obs"] if f["kind"] != "text"}
        self._columns = [
            (fields.get(name) if section == "obs" else None, column.shape[1:], column.dtype)
            for (section, name), column in zip(pool.columns, pool.observe(np.empty(0, np.int32)), strict=True)
        ]

    def results(self, rows: int) -> tuple[jax.ShapeDtypeStruct, ...]:
        """Of a batch of so many rows. Raises ValueError if JAX would cut observations short."""
        return tuple(
            jax.ShapeDtypeStruct((rows, *shape), self._dtype(field, dtype)) for field, shape, dtype in self._columns
        )

    def _dtype(self, field: FieldDict | None, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if field is None:  # of infos, texts, ...: as of any array that is given to JAX
            return _in_jax(dtype)
        seen = _in_jax(field_space(field).dtype)
        if not np.can_cast(_least(field, dtype), seen):
            name = f"the observation {field['name']!r}" if field["name"] else "the observation"
            raise ValueError(
                f"{self._task_id}: {name} is {dtype}, which JAX has only with x64:"
                " jax.config.update('jax_enable_x64', True)"
            )
        return seen


def _in_jax(dtype: Any) -> np.dtype[Any]:
    """The dtype itself, or the one of 32 bits that JAX has for it without x64."""
    found: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return found


def _least(field: FieldDict, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest dtype that holds what the field may be."""
    if field["kind"] == "discrete":
        low, high = bounds(field)
        least: np.dtype[Any] = np.result_type(np.min_scalar_type(low.min()), np.min_scalar_type(high.max()))
        return least
    return dtype if field["kind"] == "box" else np.dtype(np.int8)
