"""envpool.batch/1: many envs in one call, exactly what single calls give."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import Action, Env, Observation, Outcome, Value
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.memory import POISON, Pages, read
from envpool_sdk.check.run import Run

_ENVS, _STEPS = 5, 40
_UNTOUCHED = 0x5A5A5A5A  # what status[] holds before the call


@dataclass
class Row:
    """What step_many() wrote for one env."""

    status: int
    outcome: Outcome
    observation: Observation


@dataclass
class Table:
    """How a batch lies in memory: which row each env reads and writes, and how many bytes stand between rows."""

    rows: int
    of_action: list[int]
    of_result: list[int]
    gap: int = 0
    wanted: set[tuple[int, int]] | None = None


class _Buffer:
    """A column behind which memory ends."""

    def __init__(self, rows: int, bytes_: int, gap: int, align: int) -> None:
        self.stride = bytes_ + gap * align
        self.bytes, self._rows = bytes_, rows
        self._pages = Pages((rows - 1) * self.stride + bytes_, align)
        ctypes.memset(self._pages.address, POISON, (rows - 1) * self.stride + bytes_)
        self.address = self._pages.address

    def put(self, row: int, data: bytes) -> None:
        ctypes.memmove(self.address + row * self.stride, data, len(data))

    def get(self, row: int) -> bytes:
        return read(self.address + row * self.stride, self.bytes)

    def require_untouched(self, rows: set[int], what: str) -> None:
        """Nothing but these rows has changed."""
        data = bytearray(read(self.address, (self._rows - 1) * self.stride + self.bytes))
        for row in rows:
            data[row * self.stride : row * self.stride + self.bytes] = bytes([POISON]) * self.bytes
        changed = [at for at, byte in enumerate(data) if byte != POISON]
        require(
            not changed,
            f"only the rows {sorted(rows)} of {what}, {self.stride} bytes apart, are written",
            f"byte {changed[0] if changed else 0} of the column has changed",
        )

    def column(self, wanted: bool = True) -> abi.Column:
        return abi.Column(self.address if wanted else None, self.stride)


def _step_many(run: Run, envs: list[Env], actions: list[Action], table: Table) -> tuple[int, list[Row]]:
    """Steps all envs in one call; gives its status, and the row of each env."""
    batch = run.extensions.batch
    assert batch is not None
    spec, n = run.spec, table.rows

    def buffers(role: int) -> list[_Buffer]:
        return [_Buffer(n, f.bytes(1), table.gap, f.dtype.itemsize) for f in spec.fields[role]]

    act, obs, info = buffers(abi.ACTION), buffers(abi.OBS), buffers(abi.INFO)
    for i, action in enumerate(actions):
        for buffer, (data, _) in zip(act, action, strict=True):
            buffer.put(table.of_action[i], data)
    reward, status = (ctypes.c_double * n)(), (ctypes.c_int32 * n)(*[_UNTOUCHED] * n)
    terminated, truncated = (ctypes.c_uint8 * n)(), (ctypes.c_uint8 * n)()

    def columns(role: int, of: list[_Buffer]) -> Any:
        wanted = [table.wanted is None or (role, i) in table.wanted for i in range(len(of))]
        if not any(wanted):
            return None
        return (abi.Column * len(of))(*[b.column(w) for b, w in zip(of, wanted, strict=True)])

    kept = [
        (ctypes.c_void_p * len(envs))(*[env.handle for env in envs]),
        (ctypes.c_uint32 * len(envs))(*table.of_action),
        (ctypes.c_uint32 * len(envs))(*table.of_result),
        (abi.Column * len(act))(*[b.column() for b in act]),
        columns(abi.OBS, obs),
        columns(abi.INFO, info),
    ]
    at = [ctypes.addressof(array) if array is not None else None for array in kept]
    rows = abi.Rows(
        size=ctypes.sizeof(abi.Rows),
        count=len(envs),
        env=at[0],
        in_=at[1],
        out=at[2],
        action=at[3],
        obs=at[4],
        info=at[5],
        reward=ctypes.addressof(reward),
        terminated=ctypes.addressof(terminated),
        truncated=ctypes.addressof(truncated),
        status=ctypes.addressof(status),
    )
    run.crumb.write(f"step_many() of {len(envs)} envs")
    whole: int = batch.step_many(ctypes.addressof(rows))
    run.host.explanation()
    for role, of in ((abi.OBS, obs), (abi.INFO, info)):
        for i, buffer in enumerate(of):
            wanted = table.wanted is None or (role, i) in table.wanted
            buffer.require_untouched(set(table.of_result) if wanted else set(), spec.fields[role][i].title)
    found = []
    for row in table.of_result:
        outcome = Outcome(np.array([reward[row]]), bytes([terminated[row]]), bytes([truncated[row]]), None, None)
        seen = {(abi.OBS, i): Value(b.get(row), None) for i, b in enumerate(obs)}
        seen |= {(abi.INFO, i): Value(b.get(row), None) for i, b in enumerate(info)}
        if table.wanted is not None:
            seen = {key: value for key, value in seen.items() if key in table.wanted}
        found.append(Row(status[row], outcome, seen))
    return whole, found


def _plain(count: int = _ENVS) -> Table:
    return Table(count, list(range(count)), list(range(count)))


def _compare(run: Run, table: Table, what: str) -> None:
    """Plays the same with step_many() and with single calls, and compares all that comes."""
    run.needs("batch")
    run.needs("deterministic")
    many, single = ([run.env(run.seed + i) for i in range(_ENVS)] for _ in range(2))
    for step in range(_STEPS):
        actions = [play.random_action(run.spec, run.random, env.observe()) for env in single]
        status, rows = _step_many(run, many, actions, table)
        require(status == abi.OK, "step_many() returns EP_OK", f"{abi.status_name(status)} at step {step}")
        for i, (row, env) in enumerate(zip(rows, single, strict=True)):
            expected = play.Trace(run.spec, [play.Frame(None, env.step(actions[i]))])
            expected.frames[0].observation = {k: v for k, v in env.observe().items() if k in row.observation}
            got = play.Trace(run.spec, [play.Frame(row.observation, row.outcome)])
            apart = play.difference(expected, got, ("step() and observe()", "step_many()"))
            require(apart is None, f"step_many() {what} gives what step() and observe() give", f"{apart}, step {step}")
            if row.outcome.over:
                env.reset(step)
                many[i].reset(step)


@check("batch.allowed", "For EP_FREE", after="abi.extensions spec.valid")
def allowed(run: Run) -> None:
    """Only a task that is EP_FREE, has one agent, no lengths and no globals, offers it."""
    run.needs("batch")
    require(run.raw_task.sharing == abi.FREE, "sharing is EP_FREE", f"{run.raw_task.sharing}")
    require(run.spec.max_agents == 1, "one agent", f"{run.spec.max_agents}")
    bad = [f.title for role in abi.ROLES for f in run.spec.fields[role] if f.has_length or role == abi.GLOBAL]
    require(not bad, "no field with a length, and no global", ", ".join(bad))


@check(
    "batch.same", "what step() and observe() give", after="batch.allowed determinism.interleaved lifecycle.observe_pure"
)
def same(run: Run) -> None:
    """step_many() gives the bytes that step() and observe() give."""
    _compare(run, _plain(), "in rows 0 .. n-1")


@check("batch.scattered", "takes its action from row in[i]", after="batch.same")
def scattered(run: Run) -> None:
    """Rows may be in any order, with space between them that stays as it is."""
    _compare(run, Table(9, [4, 8, 0, 2, 6], [7, 1, 5, 3, 0], gap=3), "with other rows for actions and results")


@check("batch.unwanted", "data NULL: not wanted", after="batch.same")
def unwanted(run: Run) -> None:
    """Columns that are not wanted are left alone."""
    keys = [(role, i) for role, i, _ in run.spec.outputs]
    choices = [set(), *({key} for key in keys)] if len(keys) > 1 else [set()]
    for wanted in choices:
        table = _plain()
        table.wanted = set(wanted)
        _compare(run, table, "with few columns")


@check("batch.status", "per env, always written", after="batch.same")
def status(run: Run) -> None:
    """The status of each env is written."""
    run.needs("batch")
    envs = [run.env(run.seed + i) for i in range(_ENVS)]
    actions = [play.random_action(run.spec, run.random, env.observe()) for env in envs]
    _, rows = _step_many(run, envs, actions, _plain())
    for i, row in enumerate(rows):
        require(row.status == abi.OK, "status[out[i]] is EP_OK", f"status {row.status:#x} for env {i}")


@check("batch.bad_row", "one failing env must not fail the rest", after="batch.status lifecycle.step_after_end")
def bad_row(run: Run) -> None:
    """An env that fails (its episode is over) spares the others, and the call says so."""
    run.needs("batch")
    run.needs("deterministic")
    envs, single = ([run.env(run.seed + i) for i in range(_ENVS)] for _ in range(2))
    bad = 2
    for group in (envs, single):
        if play.reach_end(group[bad], run.generator()) is None:
            raise NotApplicable("no episode came to its end in 1 s of random play")
    actions = [play.random_action(run.spec, run.random, env.observe()) for env in envs]
    whole, rows = _step_many(run, envs, actions, _plain())
    require(whole != abi.OK, "step_many() does not return EP_OK when one env failed", "EP_OK")
    require(
        rows[bad].status == abi.E_STATE, "EP_E_STATE for the env whose episode is over", f"status {rows[bad].status}"
    )
    for i in set(range(_ENVS)) - {bad}:
        require(rows[i].status == abi.OK, "EP_OK for the envs that did not fail", f"status {rows[i].status}")
        outcome, seen = single[i].step(actions[i]), single[i].observe()
        apart = play.difference(
            play.Trace(run.spec, [play.Frame(seen, outcome)]),
            play.Trace(run.spec, [play.Frame(rows[i].observation, rows[i].outcome)]),
            ("step()", "step_many()"),
        )
        if apart:
            raise Finding("the envs beside a failing one are stepped as ever", apart)
