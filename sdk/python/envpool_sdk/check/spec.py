"""The typed fields that describe() gives: taken from the plugin's structs, with every rule of env.h checked."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envpool_sdk.check import abi

_LEAST_SIZE = ctypes.sizeof(abi.Field)
_MOST_RANK = 8


class SpecError(ValueError):
    """A field breaks a rule."""


@dataclass(frozen=True, eq=False)
class Field:
    """One field, copied out of an ep_field."""

    role: int
    kind: int
    dtype: np.dtype[Any]
    name: str
    shape: tuple[int, ...]  # without agents
    low: Any  # array of one or all elements, or None
    high: Any
    n: Any
    start: Any
    flags: int
    group: int
    layout: int
    meaning: str
    labels: tuple[str, ...]
    tables: tuple[bytes, bytes]  # palette, gray
    is_bool: bool

    @property
    def count(self) -> int:
        """Elements of one agent's value."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def has_length(self) -> bool:
        return self.kind == abi.TEXT or bool(self.flags & abi.FIELD_RAGGED)

    @property
    def volatile(self) -> bool:
        return bool(self.flags & abi.FIELD_VOLATILE)

    @property
    def title(self) -> str:
        """ "observation 'x'": how messages call it."""
        words = {abi.OBS: "observation", abi.ACTION: "action", abi.INFO: "info", abi.GLOBAL: "global"}
        return f"{words[self.role]} {self.name!r}" if self.name else words[self.role]

    def rows(self, agents: int) -> int:
        return agents if self.flags & abi.FIELD_PER_AGENT else 1

    def bytes(self, agents: int) -> int:
        return self.count * self.dtype.itemsize * self.rows(agents)

    def key(self) -> tuple[Any, ...]:
        """What has to be equal for two fields to be the same field."""
        bounds = tuple(None if a is None else a.tobytes() for a in (self.low, self.high, self.n, self.start))
        plain = (self.role, self.kind, self.dtype.str, self.is_bool, self.name, self.shape, self.flags, self.group)
        return (*plain, self.layout, self.meaning, self.labels, self.tables, *bounds)


@dataclass
class Spec:
    """What describe() gave. fields are in the order of add() within each role."""

    fields: dict[int, list[Field]] = field(default_factory=lambda: {role: [] for role in abi.ROLES})
    max_agents: int = 1
    max_episode_steps: int = 0
    reward_threshold: float = float("nan")
    fps: float = 0.0

    def key(self) -> tuple[Any, ...]:
        """What has to be equal for two specs to be compatible: all but the limits."""
        return self.max_agents, tuple(tuple(f.key() for f in self.fields[role]) for role in abi.ROLES)

    def full_key(self) -> tuple[Any, ...]:
        return *self.key(), self.max_episode_steps, np.float64(self.reward_threshold).tobytes(), self.fps

    @property
    def outputs(self) -> list[tuple[int, int, Field]]:
        """(role, place in the role, field) of all that observe() writes."""
        roles = (abi.OBS, abi.INFO, abi.GLOBAL)
        return [(role, i, f) for role in roles for i, f in enumerate(self.fields[role])]

    def difference(self, other: Spec) -> str:
        """A sentence on the first thing in which the two differ."""
        if self.max_agents != other.max_agents:
            return f"max_agents {self.max_agents} and {other.max_agents}"
        for role in abi.ROLES:
            one, two = self.fields[role], other.fields[role]
            if len(one) != len(two):
                return f"{len(one)} and {len(two)} {abi.ROLES[role]} fields"
            for a, b in zip(one, two, strict=True):
                if a.key() != b.key():
                    return f"{a.title} of shape {a.shape}, {a.dtype} and {b.title} of shape {b.shape}, {b.dtype}"
        if self.max_episode_steps != other.max_episode_steps:
            return f"max_episode_steps {self.max_episode_steps} and {other.max_episode_steps}"
        return f"reward_threshold {self.reward_threshold} and {other.reward_threshold}, fps {self.fps} and {other.fps}"


def _refuse(flaw: str) -> None:
    raise SpecError(flaw)


def text(raw: bytes | None, what: str) -> str:
    """The text of a C string; NULL is "". Raises SpecError if it is not UTF-8."""
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        raise SpecError(f"its {what} is not UTF-8: {raw!r}") from None


def _array(address: int | None, count: int, dtype: Any) -> Any:
    if not address:
        return None
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(dtype).itemsize), dtype=dtype)


def take_field(raw: abi.Field, others: list[Field], group_count: int) -> Field:
    """A field out of its struct. Raises SpecError, naming the rule that it breaks."""
    if raw.size < _LEAST_SIZE:
        _refuse(f"the size of a field is {raw.size}, but ABI 1.0 needs {_LEAST_SIZE}")
    if raw.role not in abi.ROLES:
        _refuse(f"a field has the unknown role {raw.role}")
    if raw.name is None:
        _refuse(f"a field of role {abi.ROLES[raw.role]} has no name (NULL)")
    name = text(raw.name, "name")
    try:
        return _take(raw, name, others, group_count)
    except SpecError as error:
        raise SpecError(f"{abi.ROLES[raw.role]} field {name!r}: {error}") from None


def _take(raw: abi.Field, name: str, others: list[Field], group_count: int) -> Field:
    _check_name(name, others)
    if raw.kind not in (abi.BOX, abi.DISCRETE, abi.MULTI_BINARY, abi.TEXT):
        _refuse(f"unknown kind {raw.kind}")
    if raw.dtype not in abi.DTYPES:
        _refuse(f"unknown dtype {raw.dtype}")
    if raw.layout not in (abi.PLAIN, abi.HW, abi.HWC, abi.CHW, abi.INDEXED):
        _refuse(f"unknown layout {raw.layout}")
    if raw.flags & 0xFFFF & ~(abi.FIELD_PER_AGENT | abi.FIELD_RAGGED):
        _refuse(f"flags that no host of ABI 1.0 knows: {raw.flags:#x}")
    if raw.role == abi.GLOBAL and raw.flags & abi.FIELD_PER_AGENT:
        _refuse("a global field can't be per agent")
    if raw.group >= group_count:
        _refuse(f"group {raw.group}, but there are {group_count}")
    shape = _shape(raw)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    any_bound = any((raw.low, raw.high, raw.n, raw.start))
    if raw.bound_count not in ((1, count) if any_bound else (0,)):
        _refuse(f"bound_count is {raw.bound_count}, but the field has {count} elements and {any_bound=}".lower())
    is_bool = raw.dtype == abi.BOOL
    dtype: np.dtype[Any] = np.dtype("uint8" if is_bool else abi.DTYPES[raw.dtype])
    taken = Field(
        role=raw.role,
        kind=raw.kind,
        dtype=dtype,
        name=name,
        shape=shape,
        low=_array(raw.low, raw.bound_count, dtype),
        high=_array(raw.high, raw.bound_count, dtype),
        n=_array(raw.n, raw.bound_count, np.int64),
        start=_array(raw.start, raw.bound_count, np.int64),
        flags=raw.flags,
        group=raw.group,
        layout=raw.layout,
        meaning=text(raw.meaning, "meaning"),
        labels=(),
        tables=(
            ctypes.string_at(raw.palette, 768) if raw.palette else b"",
            ctypes.string_at(raw.gray, 256) if raw.gray else b"",
        ),
        is_bool=is_bool,
    )
    text(raw.doc, "doc")
    text(raw.unit, "unit")
    _check_kind(taken, raw)
    _check_layout(taken)
    if raw.labels and taken.n is not None:
        names = (ctypes.c_char_p * int(taken.n[0])).from_address(raw.labels)
        if None in list(names):
            _refuse("a label is NULL")
        taken = Field(**{**vars(taken), "labels": tuple(text(label, "label") for label in names)})
    return taken


def _check_name(name: str, others: list[Field]) -> None:
    if name and "//" in f"/{name}/":
        _refuse("its name has an empty segment")
    for other in others:
        if other.name == name:
            _refuse("duplicate name")
        if "" in (other.name, name):
            _refuse('a field named "" is the whole space and stands alone in its role')
        if name.startswith(other.name + "/") or other.name.startswith(name + "/"):
            _refuse(f"it can't nest with {other.name!r}: a name is either a field or a branch")


def _shape(raw: abi.Field) -> tuple[int, ...]:
    if raw.rank > _MOST_RANK:
        _refuse(f"rank {raw.rank} is more than {_MOST_RANK}")
    if raw.rank and not raw.shape:
        _refuse(f"its rank is {raw.rank}, its shape NULL")
    if raw.flags & abi.FIELD_RAGGED and raw.rank == 0:
        _refuse("it is ragged, but has no dimension whose length could vary")
    shape = tuple(int(x) for x in _array(raw.shape, raw.rank, np.int64)) if raw.rank else ()
    if any(extent <= 0 for extent in shape):
        _refuse(f"its shape is {shape}, but extents must be positive")
    if int(np.prod(shape, dtype=object)) >= 1 << 48:
        _refuse(f"its shape {shape} is too large")
    return shape


def _check_kind(f: Field, raw: abi.Field) -> None:
    if f.kind != abi.BOX and (f.low is not None or f.high is not None):
        _refuse("low and high are for boxes, but it is none")
    if f.kind != abi.DISCRETE and (f.n is not None or f.start is not None or raw.labels):
        _refuse("n, start and labels are for discrete values, but it has none")
    if f.kind == abi.BOX:
        for bound in (f.low, f.high):
            if bound is not None and f.dtype.kind == "f" and np.isnan(bound).any():
                _refuse("low or high is NaN")
        if f.low is not None and f.high is not None and (f.low > f.high).any():
            _refuse(f"low {f.low.tolist()} is above high {f.high.tolist()}")
    if f.kind == abi.DISCRETE:
        if f.dtype.kind == "f" or f.is_bool:
            _refuse(f"discrete values need an integer dtype, not {abi.DTYPES[raw.dtype]}")
        if f.n is None or (f.n <= 0).any():
            _refuse(f"n must be positive, not {None if f.n is None else f.n.tolist()}")
        limits = np.iinfo(f.dtype)
        for i, n in enumerate(f.n.tolist()):
            first = int(f.start[i]) if f.start is not None else 0
            if first < limits.min or first + n - 1 > limits.max:
                _refuse(f"the values {first} to {first + n - 1} do not fit the dtype {f.dtype}")
    if f.kind == abi.MULTI_BINARY and raw.dtype not in (abi.BOOL, abi.UINT8, abi.INT8):
        _refuse(f"binary values need the dtype bool, uint8 or int8, not {abi.DTYPES[raw.dtype]}")
    if f.kind == abi.TEXT and (raw.dtype != abi.UINT8 or len(f.shape) != 1):
        _refuse("a text needs the dtype uint8 and rank 1")


def _check_layout(f: Field) -> None:
    palette, gray = f.tables
    if f.layout == abi.INDEXED and not (palette and gray):
        _refuse("an indexed image needs a palette and a gray table")
    if f.layout != abi.INDEXED and (palette or gray):
        _refuse("palette and gray are for indexed images, but it is none")
    if f.layout == abi.PLAIN:
        return
    if f.dtype != np.uint8 or f.is_bool or f.kind != abi.BOX:
        _refuse("an image must be a box of dtype uint8")
    if f.flags & abi.FIELD_RAGGED:
        _refuse("an image can't be ragged")
    rank = 3 if f.layout in (abi.HWC, abi.CHW) else 2
    if len(f.shape) != rank:
        _refuse(f"its layout needs rank {rank}, not {len(f.shape)}")
    if rank == 3 and f.shape[2 if f.layout == abi.HWC else 0] not in (1, 3, 4):
        _refuse("an image has 1, 3 or 4 channels")


def check_whole(spec: Spec) -> None:
    """The rules that concern all fields together. Raises SpecError."""
    if not spec.fields[abi.OBS] or not spec.fields[abi.ACTION]:
        _refuse("there must be at least one observation and one action field")
    if spec.max_agents < 1:
        _refuse("max_agents is 0, but must be at least 1")
    if spec.max_episode_steps < 0:
        _refuse(f"max_episode_steps is {spec.max_episode_steps}")
    if not (spec.fps >= 0 and np.isfinite(spec.fps)):
        _refuse(f"fps is {spec.fps}, but must be a number from 0 on")
    for fields in spec.fields.values():
        branches: dict[str, set[str]] = {}
        for f in fields:
            segments = f.name.split("/")
            for depth, segment in enumerate(segments):
                branches.setdefault("/".join(segments[:depth]), set()).add(segment)
        for branch, keys in branches.items():
            if any(key.isdigit() for key in keys) and keys != {str(i) for i in range(len(keys))}:
                _refuse(f"the keys {sorted(keys)} of {branch!r}: keys of digits make a tuple and must be 0 .. k-1")
