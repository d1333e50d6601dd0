"""The options that a task declares: their rules, and values for them."""

from __future__ import annotations

import ctypes
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envpool_sdk.check import abi
from envpool_sdk.check.memory import Memory
from envpool_sdk.check.spec import SpecError, text

_LEAST_SIZE = ctypes.sizeof(abi.Option)
_TEXTS = (abi.T_STRING, abi.T_PATH, abi.T_JSON)


class OptionError(ValueError):
    """A user's value of an option can't be used."""


@dataclass(frozen=True, eq=False)
class Option:
    """One declared option, copied out of an ep_option. Values are bool, int, float, str or a NumPy array."""

    name: str
    type: int
    dtype: int  # of an array's elements
    flags: int
    default: Any  # None: required
    low: float | int | None
    high: float | int | None
    choices: tuple[Any, ...]

    def parse(self, word: Any) -> Any:
        """The value that a user means: a string is read as the option's type.

        Raises:
            OptionError: it can't be read so, or is out of range, or none of the choices.
        """
        try:
            value = self._read(word) if isinstance(word, str) else self._convert(word)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise OptionError(f"option {self.name}: {word!r} is no {abi.TYPES[self.type]}") from None
        if self.type in (abi.T_INT, abi.T_FLOAT) and not in_range(self, value):
            raise OptionError(f"option {self.name}: {value} is out of range [{self.low}, {self.high}]")
        if self.choices and value not in self.choices:
            raise OptionError(f"option {self.name}: {value!r} is none of {list(self.choices)}")
        return value

    def _read(self, word: str) -> Any:
        if self.type == abi.T_BOOL:
            return {"true": True, "1": True, "false": False, "0": False}[word.lower()]
        if self.type in (abi.T_INT, abi.T_FLOAT):
            return int(word, 0) if self.type == abi.T_INT else float(word)
        if self.type == abi.T_ARRAY:
            return self._convert(json.loads(word))
        if self.type == abi.T_JSON:
            json.loads(word)
        return word

    def _convert(self, value: Any) -> Any:
        if self.type == abi.T_ARRAY:
            return np.asarray(value, dtype=abi.DTYPES[self.dtype]).reshape(-1)
        kinds = {abi.T_BOOL: bool, abi.T_INT: int, abi.T_FLOAT: float}
        return kinds[self.type](value) if self.type in kinds else str(value)


def in_range(option: Option, value: Any) -> bool:
    return (option.low is None or value >= option.low) and (option.high is None or value <= option.high)


def value_of(raw: abi.Value) -> Any:
    """The value in an ep_value. Raises SpecError."""
    if raw.type == abi.T_BOOL:
        if raw.i not in (0, 1):
            raise SpecError(f"is a bool but not 0 or 1: {raw.i}")
        return bool(raw.i)
    if raw.type == abi.T_INT:
        return int(raw.i)
    if raw.type == abi.T_FLOAT:
        return float(raw.f)
    if raw.type in _TEXTS:
        if not raw.s:
            raise SpecError("has no text (s is NULL)")
        return text(ctypes.string_at(raw.s), "text")
    if raw.dtype not in abi.DTYPES:
        raise SpecError(f"has the unknown dtype {raw.dtype}")
    if raw.count and not raw.data:
        raise SpecError("has elements but no data")
    dtype: np.dtype[Any] = np.dtype(abi.DTYPES[raw.dtype])
    return np.frombuffer(ctypes.string_at(raw.data, raw.count * dtype.itemsize) if raw.count else b"", dtype=dtype)


def take_options(task: abi.Task) -> list[Option]:
    """The options of a task. Raises SpecError, naming the rule that one breaks."""
    if task.option_count and not task.options:
        raise SpecError("the task has an option_count but no options")
    addresses = (ctypes.c_void_p * task.option_count).from_address(task.options) if task.option_count else ()
    taken: list[Option] = []
    for i, address in enumerate(addresses):
        if not address:
            raise SpecError(f"options[{i}] is NULL")
        option = _take(abi.Option.from_address(address), i)
        if option.name in [other.name for other in taken]:
            raise SpecError(f"duplicate option {option.name}")
        taken.append(option)
    return taken


def _take(raw: abi.Option, i: int) -> Option:
    if raw.size < _LEAST_SIZE:
        raise SpecError(f"the size of options[{i}] is {raw.size}, but ABI 1.0 needs {_LEAST_SIZE}")
    name = text(raw.name, "name")
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        raise SpecError(f"options[{i}] has the bad name {name!r}: lower case letters, digits and _")
    try:
        return _take_named(raw, name)
    except SpecError as error:
        raise SpecError(f"option {name} {error}") from None


def _take_named(raw: abi.Option, name: str) -> Option:
    default: abi.Value = getattr(raw, "def")
    if raw.flags & 0xFFFF & ~(abi.OPTION_REQUIRED | abi.OPTION_AT_RESET | abi.OPTION_SHAPES_SPEC):
        raise SpecError(f"has flags that no host of ABI 1.0 knows: {raw.flags:#x}")
    if default.type not in abi.TYPES:
        raise SpecError(f"has the unknown type {default.type}")
    text(raw.doc, "doc")
    text(raw.unit, "unit")
    low, high = (_bound(address, default.type) for address in (raw.min, raw.max))
    if low is not None and high is not None and low > high:
        raise SpecError(f"has a min above its max: {low} and {high}")
    option = Option(
        name=name,
        type=default.type,
        dtype=default.dtype,
        flags=raw.flags,
        default=None if raw.flags & abi.OPTION_REQUIRED else value_of(default),
        low=low,
        high=high,
        choices=_choices(raw, default.type),
    )
    _check_values(option)
    return option


def _bound(address: int | None, type_: int) -> float | int | None:
    if not address:
        return None
    if type_ not in (abi.T_INT, abi.T_FLOAT, abi.T_ARRAY):
        raise SpecError(f"has min or max, but is {abi.TYPES[type_]}")
    raw = abi.Value.from_address(address)
    if raw.type != (abi.T_INT if type_ == abi.T_INT else abi.T_FLOAT):
        raise SpecError("has a min or max of another type")
    bound: float | int = value_of(raw)
    if math.isnan(bound):
        raise SpecError("has NaN as min or max")
    return bound


def _choices(raw: abi.Option, type_: int) -> tuple[Any, ...]:
    if bool(raw.choices) != bool(raw.choice_count):
        raise SpecError(f"has a choice_count of {raw.choice_count}, but choices {'set' if raw.choices else 'NULL'}")
    if not raw.choices:
        return ()
    if type_ not in (abi.T_INT, abi.T_FLOAT, abi.T_STRING):
        raise SpecError(f"has choices, but is {abi.TYPES[type_]}")
    values = (abi.Value * raw.choice_count).from_address(raw.choices)
    if any(value.type != type_ for value in values):
        raise SpecError("has a choice of another type")
    return tuple(value_of(value) for value in values)


def _check_values(option: Option) -> None:
    numbers = option.type in (abi.T_INT, abi.T_FLOAT)
    for choice in option.choices:
        if numbers and not in_range(option, choice):
            raise SpecError(f"has the choice {choice} out of range [{option.low}, {option.high}]")
    default = option.default
    if default is None:
        return
    if numbers and not in_range(option, default):
        raise SpecError(f"has a default that its own declaration refuses: {default}")
    if option.type == abi.T_ARRAY and not all(in_range(option, x) for x in default):
        raise SpecError(f"has a default out of range [{option.low}, {option.high}]: {default.tolist()}")
    if option.choices and default not in option.choices:
        raise SpecError(f"has a default that is none of its choices: {default!r}")
    if option.type == abi.T_JSON:
        try:
            json.loads(default)
        except ValueError:
            raise SpecError(f"has a default that is not JSON: {default!r}") from None


def complete(options: list[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """All values, in declared order: what is given, defaults for the rest.

    Raises:
        OptionError: an option is required but not given, or unknown, or has a bad value.
    """
    names = [option.name for option in options]
    for name in given:
        if name not in names:
            raise OptionError(f"there is no option {name}; there are: {', '.join(names) or 'none'}")
    missing = [o.name for o in options if o.default is None and o.name not in given]
    if missing:
        raise OptionError(f"option {missing[0]} is required: give it with --option {missing[0]}=VALUE")
    return {o.name: o.parse(given[o.name]) if o.name in given else o.default for o in options}


def pack(options: list[Option], values: Mapping[str, Any], memory: Memory) -> int | None:
    """Places an array of ep_value for these options; gives its address, None if there are none."""
    if not options:
        return None
    raw = (abi.Value * len(options))()
    for slot, option in zip(raw, options, strict=True):
        value = values[option.name]
        slot.type = option.type
        if option.type in (abi.T_BOOL, abi.T_INT):
            slot.i = int(value)
        elif option.type == abi.T_FLOAT:
            slot.f = float(value)
        elif option.type in _TEXTS:
            slot.s = memory.given(value.encode() + b"\0", 1)
        else:
            slot.dtype = option.dtype
            slot.count = len(value)
            slot.data = memory.given(value.tobytes(), value.dtype.itemsize) if len(value) else None
    return memory.given(bytes(raw))


def odd_values(option: Option) -> list[Any]:
    """Values that are allowed, but that nobody thought of."""
    limits: dict[int, list[Any]] = {
        abi.T_INT: [-(2**63), -1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1],
        abi.T_FLOAT: [-math.inf, -1e300, -1.0, 0.0, 5e-324, 1e300, math.inf, math.nan],
    }
    if option.choices or option.type == abi.T_BOOL:
        return []
    if option.type in limits:
        return [value for value in limits[option.type] if in_range(option, value)]
    if option.type == abi.T_PATH:
        return ["/no/such/file", "/", "/dev/null", "x" * 5000]
    if option.type == abi.T_STRING:
        return ["", "\N{SNOWMAN}" * 40, "x" * 100_000, "../..", "%s%n"]
    if option.type == abi.T_JSON:
        return ["null", "0", "[]", "{}", '"text"', "[" * 60 + "]" * 60]
    dtype = abi.DTYPES[option.dtype]
    value = option.low if option.low is not None else option.high if option.high is not None else 0
    return [np.zeros(0, dtype), np.full(1, value, dtype), np.full(1000, value, dtype)]
