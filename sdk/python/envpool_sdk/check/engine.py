"""A plugin driven by its raw C ABI: the library, a task of it, and envs. No pool, no transforms."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from envpool_sdk.check import abi
from envpool_sdk.check.finding import Finding
from envpool_sdk.check.host import Host
from envpool_sdk.check.memory import POISON, Memory, read
from envpool_sdk.check.options import Option, complete, pack, take_options
from envpool_sdk.check.spec import Field, Spec, SpecError, check_whole, take_field

_RTLD_NODELETE = 0x1000

T = TypeVar("T")

_crumb: Callable[[str], None] = lambda text: None  # noqa: E731


def set_crumb(write: Callable[[str], None]) -> None:
    """Says who is told which call into the plugin begins: what a crash is explained with."""
    global _crumb
    _crumb = write


def _nothing() -> Any:
    """What is read after a call that gives nothing."""


class CallFailed(Finding):
    """A call of the plugin returned an error where it must not."""

    def __init__(self, call: str, status: int, why: str) -> None:
        super().__init__(
            f"{call} returns EP_OK", f"{abi.status_name(status)}: {why}" if why else f"{abi.status_name(status)}"
        )
        self.status = status
        self.why = why


class Library:
    """A shared library, opened as a host opens it."""

    def __init__(self, path: str) -> None:
        _crumb("dlopen()")
        try:
            self.cdll = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL | _RTLD_NODELETE)
        except OSError as error:
            raise Finding("dlopen(RTLD_NOW | RTLD_LOCAL) opens it", str(error)) from None

    def entry(self, host: Host) -> int | None:
        """Calls envpool_plugin_v1(); gives what it returned."""
        try:
            function = abi.Entry((abi.SYMBOL, self.cdll))
        except AttributeError:
            raise Finding(f"the library exports {abi.SYMBOL}", "it has no such symbol") from None
        _crumb(f"{abi.SYMBOL}()")
        address: int | None = function(host.address)
        return address

    def plugin(self, host: Host) -> abi.Plugin:
        address = self.entry(host)
        if not address:
            raise Finding(f"{abi.SYMBOL} returns its descriptor", f"NULL: {host.explanation() or 'not explained'}")
        return abi.Plugin.from_address(address)


def tasks_of(plugin: abi.Plugin) -> list[abi.Task]:
    addresses = (ctypes.c_void_p * plugin.task_count).from_address(plugin.tasks)
    return [abi.Task.from_address(address) for address in addresses]


@dataclass
class Extensions:
    """The extensions of a task, each None where the task has none."""

    agents: abi.Agents | None = None
    batch: abi.Batch | None = None
    render: abi.Render | None = None
    state: abi.State | None = None


class Task:
    """A task with options: what envs are made of."""

    def __init__(self, raw: abi.Task, host: Host, given: Mapping[str, Any] | None = None) -> None:
        """Raises SpecError for broken declarations, OptionError for options that are given wrongly."""
        self.raw, self.host = raw, host
        self.id = (raw.id or b"").decode(errors="replace")
        self.options: list[Option] = take_options(raw)
        self.values = complete(self.options, given or {})

    @property
    def at_reset(self) -> list[Option]:
        return [option for option in self.options if option.flags & abi.OPTION_AT_RESET]

    @cached_property
    def spec(self) -> Spec:
        """The spec for the options; described once."""
        return self.describe()

    def extension(self, name: str) -> int | None:
        """The address of an extension, or None."""
        if not self.raw.extension:
            return None
        _crumb(f"ep_task.extension({name})")
        address: int | None = self.raw.extension(name.encode())
        return address or None

    @cached_property
    def extensions(self) -> Extensions:
        found: dict[str, Any] = {}
        for name, struct in abi.EXTENSIONS.items():
            address = self.extension(name)
            if address:
                found[name.removeprefix("envpool.").removesuffix("/1")] = struct.from_address(address)
        return Extensions(**found)

    def describe(
        self, values: Mapping[str, Any] | None = None, memory: Memory | None = None, refuse: int | None = None
    ) -> Spec:
        """Calls describe().

        Args:
            values: of all options, instead of the task's own.
            memory: where the arguments lie.
            refuse: the add() of this number (from 0) is answered by EP_E_NOMEM, and the status returned is expected.

        Raises:
            SpecError: the spec breaks a rule.
            CallFailed: describe() returned an error.
        """
        spec, flaws, calls = Spec(), [], 0
        groups = self.extensions.agents.group_count if self.extensions.agents else 1

        def add(address: int, field: int) -> int:
            nonlocal calls
            calls += 1
            if refuse is not None and calls == refuse + 1:
                return abi.E_NOMEM
            try:
                raw = abi.Field.from_address(field)
                others = spec.fields.get(raw.role, [])
                others.append(take_field(raw, others, groups))
            except SpecError as error:
                flaws.append(error)
                return abi.E_ARGUMENT
            return abi.OK

        memory = memory or Memory()
        callback = abi.Add(add)
        raw = abi.Spec(max_agents=1, reward_threshold=float("nan"), add=callback)
        to = memory.struct(raw)
        how = self.place_create(values, memory, 0)
        _crumb("describe()")
        status = self.raw.describe(self.host.address, how, to)
        out = abi.Spec.from_buffer_copy(read(to, ctypes.sizeof(abi.Spec)))
        memory.done()
        if flaws:
            raise flaws[0]
        if refuse is None or status != abi.E_NOMEM:
            self._check(status, "describe()")
        spec.max_agents, spec.max_episode_steps = out.max_agents, out.max_episode_steps
        spec.reward_threshold, spec.fps = out.reward_threshold, out.fps
        if refuse is None:
            check_whole(spec)
        elif status != abi.E_NOMEM and calls > refuse:
            raise Finding(
                "describe() returns the status with which ep_spec.add refused a field (EP_E_NOMEM)",
                f"it returned {abi.status_name(status)}",
            )
        return spec

    def create(self, env_id: int = 0, values: Mapping[str, Any] | None = None, memory: Memory | None = None) -> Env:
        """Makes an env. Raises CallFailed."""
        memory = memory or Memory()
        to = memory.asked(8, 8, 0)
        how = self.place_create(values, memory, env_id)
        _crumb(f"create() of env {env_id}")
        status = self.raw.create(self.host.address, how, to)
        handle = int.from_bytes(read(to, 8), "little")
        memory.done()
        self._check(status, "create()")
        if not handle:
            raise Finding("create() sets *env", "it returned EP_OK and left NULL")
        return Env(self, handle, env_id)

    def place_create(self, values: Mapping[str, Any] | None, memory: Memory, env_id: int) -> int:
        """Places an ep_create, and gives its address."""
        options = pack(self.options, self.values if values is None else values, memory)
        return memory.struct(abi.Create(option_count=len(self.options), options=options, env_id=env_id))

    def _check(self, status: int, call: str) -> None:
        why = self.host.explanation()
        if status != abi.OK:
            raise CallFailed(call, status, why)


@dataclass(frozen=True)
class Outcome:
    """What step() wrote. Each has a row an agent; alive and episode_over are None for one agent."""

    reward: np.ndarray[Any, np.dtype[np.float64]]
    terminated: bytes
    truncated: bytes
    alive: bytes | None
    episode_over: int | None

    @property
    def over(self) -> bool:
        if self.episode_over is None:
            return self.terminated != b"\0" or self.truncated != b"\0"
        return self.episode_over != 0


@dataclass(frozen=True)
class Value:
    """What observe() wrote to one field: the bytes as they are, and the length of each row if the field has lengths."""

    data: bytes
    lengths: tuple[int, ...] | None

    def meant(self, field: Field) -> bytes:
        """The bytes that count: without what lies behind the length of a row."""
        if self.lengths is None:
            return self.data
        size = len(self.data) // len(self.lengths)
        unit = size // field.shape[0]
        rows = (self.data[i * size : i * size + min(n * unit, size)] for i, n in enumerate(self.lengths))
        return b"".join(rows)

    def array(self, field: Field) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.data, field.dtype)


Observation = dict[tuple[int, int], Value]
"""By role and place in the role."""

Action = list[tuple[bytes, tuple[int, ...] | None]]
"""A value and its lengths for each action field."""


class Env:
    """One env. Its calls raise CallFailed where the plugin returns an error."""

    def __init__(self, task: Task, handle: int, env_id: int) -> None:
        self.task, self.handle, self.env_id = task, handle, env_id
        self.memory = Memory()
        self.note = ""  # for the report of a crash: what is special about the calls

    def reset(self, seed: int | None = None, values: Mapping[str, Any] | None = None) -> None:
        """Begins an episode; values are those of the options that may be given at a reset."""
        self._call("reset()", self.task.raw.reset, self.place_reset(seed, values))

    def place_reset(self, seed: int | None, values: Mapping[str, Any] | None = None) -> int:
        """Places an ep_reset, and gives its address."""
        options = self.task.at_reset
        packed = pack(options, {**self.task.values, **(values or {})}, self.memory)
        how = abi.Reset(has_seed=seed is not None, seed=seed or 0, options=packed, option_count=len(options))
        return self.memory.struct(how)

    def step(self, action: Action) -> Outcome:
        where, to, outcome = self.place_step(action)
        return self._call("step()", self.task.raw.step, where, to, then=outcome)

    def place_step(self, action: Action) -> tuple[int, int, Callable[[], Outcome]]:
        """Places an ep_input and an ep_result; gives their addresses, and a function that reads the outcome."""
        memory, agents = self.memory, self.task.spec.max_agents
        values: list[int | None] = []
        lengths: list[int | None] = []
        for field, (data, count) in zip(self.task.spec.fields[abi.ACTION], action, strict=True):
            values.append(memory.given(data, field.dtype.itemsize))
            lengths.append(memory.given(np.array(count, np.uint32).tobytes(), 4) if count is not None else None)
        where = abi.Input(agents=agents, action=memory.pointers(values), action_length=memory.pointers(lengths))
        many = agents > 1
        reward = memory.asked(8 * agents, 8, 0)
        terminated, truncated = memory.asked(agents, 1, 0), memory.asked(agents, 1, 0)
        alive = memory.asked(agents, 1, 1) if many else None
        over = memory.asked(1, 1, 0) if many else None
        to = abi.Result(
            agents=agents, reward=reward, terminated=terminated, truncated=truncated, alive=alive, episode_over=over
        )

        def outcome() -> Outcome:
            return Outcome(
                np.frombuffer(read(reward, 8 * agents), np.float64),
                read(terminated, agents),
                read(truncated, agents),
                read(alive, agents) if alive else None,
                read(over, 1)[0] if over else None,
            )

        return memory.struct(where), memory.struct(to), outcome

    def observe(
        self,
        wanted: Collection[tuple[int, int]] | None = None,
        fill: int = POISON,
        rows: tuple[int, int] = (0, 1),
    ) -> Observation:
        """What observe() writes.

        Args:
            wanted: the fields, by role and place; None: all.
            fill: what each byte of the buffers is before.
            rows: (i, n): the buffer of each field is row i of n rows that follow each other, of which the others must
                not change.

        Raises:
            Finding: another row was changed.
        """
        view, seen = self.place_view(wanted, fill, rows)
        return self._call("observe()", self.task.raw.observe, view, then=seen)

    def place_view(
        self, wanted: Collection[tuple[int, int]] | None = None, fill: int = POISON, rows: tuple[int, int] = (0, 1)
    ) -> tuple[int, Callable[[], Observation]]:
        """Places an ep_view; gives its address, and a function that reads what was written. See `observe`."""
        memory, spec = self.memory, self.task.spec
        agents, (row, count) = spec.max_agents, rows
        view: dict[str, Any] = {"agents": agents}
        places: dict[tuple[int, int], tuple[int, int, int | None]] = {}
        for role, name in ((abi.OBS, "obs"), (abi.INFO, "info"), (abi.GLOBAL, "global")):
            data: list[int | None] = [None] * len(spec.fields[role])
            lengths = list(data)
            for i, field in enumerate(spec.fields[role]):
                if wanted is not None and (role, i) not in wanted:
                    continue
                size = field.bytes(agents)
                base = memory.asked(size * count, field.dtype.itemsize, fill)
                data[i] = base + row * size
                if field.has_length:
                    lengths[i] = memory.asked(4 * field.rows(agents), 4, fill)
                places[role, i] = base, size, lengths[i]
            used = any(data)
            view[name] = memory.pointers(data) if used else None
            view[f"{name}_length"] = memory.pointers(lengths) if used else None

        def seen() -> Observation:
            found: Observation = {}
            for (role, i), (base, size, at) in places.items():
                field = spec.fields[role][i]
                whole = read(base, size * count)
                if (whole[: row * size] + whole[(row + 1) * size :]).strip(bytes([fill])):
                    raise Finding(
                        f"observe() writes the row of {field.title} that it is given, and no other",
                        f"the env's row is {row} of {count} rows of {size} bytes; another one has changed",
                    )
                n = np.frombuffer(read(at, 4 * field.rows(agents)), np.uint32).tolist() if at else None
                found[role, i] = Value(whole[row * size : (row + 1) * size], tuple(n) if n is not None else None)
            return found

        return memory.struct(abi.View(**view)), seen

    def destroy(self) -> None:
        self._crumb("destroy()")
        self.task.raw.destroy(self.handle)

    def save(self, purpose: int, refuse: bool = False) -> bytes:
        """The saved state. With refuse the writer answers EP_E_NOMEM, and that status is expected of save()."""
        state = self.task.extensions.state
        assert state is not None
        parts: list[bytes] = []

        def write(writer: int, data: int, size: int) -> int:
            parts.append(read(data, size) if size else b"")
            return abi.E_NOMEM if refuse else abi.OK

        callback = abi.Write(write)
        writer = self.memory.struct(abi.Writer(write=callback))
        self._call("save()", state.save, purpose, writer)
        return b"".join(parts)

    def load(self, purpose: int, data: bytes) -> None:
        state = self.task.extensions.state
        assert state is not None
        self._call("load()", state.load, purpose, self.memory.given(data, 1) if data else None, len(data))

    def measure(self, **members: int) -> abi.Image:
        """The picture that measure() gives for these members of ep_image."""
        render = self.task.extensions.render
        assert render is not None
        at = self.memory.struct(abi.Image(**members))
        return self._call(
            "measure()",
            render.measure,
            at,
            then=lambda: abi.Image.from_buffer_copy(read(at, ctypes.sizeof(abi.Image))),
        )

    def draw(self, image: abi.Image, fill: int = POISON, gap: int = 0) -> bytes:
        """The bytes of the picture's memory, whose rows are `gap` bytes longer than their pixels."""
        render = self.task.extensions.render
        assert render is not None
        row = pixel_bytes(image.format) * image.width + gap
        pixels = self.memory.asked(row * image.height, 4 if image.format == abi.DEPTH_F32 else 1, fill)
        members = {name: getattr(image, name) for name in ("format", "width", "height", "camera")}
        to = self.memory.struct(abi.Image(**members, row_bytes=row, pixels=pixels))
        return self._call("draw()", render.draw, to, then=lambda: read(pixels, row * image.height))

    def _crumb(self, call: str) -> None:
        _crumb(f"{call} of env {self.env_id}{self.note and ', '}{self.note}")

    def _call(self, name: str, function: Any, *arguments: Any, then: Callable[[], T] = _nothing) -> T:
        """Calls a function of the plugin; gives what `then` reads before the memory of the call is given back."""
        self._crumb(name)
        try:
            status = function(self.handle, *arguments)
            why = self.task.host.explanation()
            if status != abi.OK:
                raise CallFailed(name, status, why)
            return then()
        finally:
            self.memory.done()


def pixel_bytes(format_: int) -> int:
    return {abi.RGB8: 3, abi.RGBA8: 4, abi.DEPTH_F32: 4, abi.ANSI: 1}[format_]
