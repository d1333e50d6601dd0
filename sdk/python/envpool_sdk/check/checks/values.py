"""What is written: within bounds, within ranges, no NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import Outcome, Value
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.run import Run
from envpool_sdk.check.spec import Field

_STEPS = 150


def _each_value(run: Run, fits: Callable[[Field], bool], what: str, judge: Callable[[Field, Value], None]) -> None:
    """Plays, and judges every value of the fields that fit."""
    keys = [(role, i) for role, i, field in run.spec.outputs if fits(field)]
    if not keys:
        raise NotApplicable(f"no field is {what}")
    env = run.env()
    trace = play.play(env, run.seed, run.generator(), steps=_STEPS)
    for step, frame in enumerate(trace.frames):
        for key in keys:
            field = run.spec.fields[key[0]][key[1]]
            try:
                judge(field, (frame.observation or {})[key])
            except Finding as finding:
                raise Finding(finding.expected, f"{finding.seen} (call {step})") from None


def _elements(field: Field, value: Value) -> Any:
    """The elements, (agents, count); those behind a length are masked."""
    array = value.array(field)
    if value.lengths is None:
        return array.reshape(-1, field.count)
    unit = field.count // field.shape[0]
    rows = array.reshape(-1, field.count)
    meant = np.zeros(rows.shape, bool)
    for i, n in enumerate(value.lengths):
        meant[i, : n * unit] = True
    return np.ma.masked_array(rows, ~meant)


def _outside(field: Field, value: Value, low: Any, high: Any, expected: str) -> None:
    rows = _elements(field, value)
    wrong = np.zeros(rows.shape, bool)
    if low is not None:
        wrong |= np.ma.filled(rows < low, False)
    if high is not None:
        wrong |= np.ma.filled(rows > high, False)
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        limits = [None if b is None else np.broadcast_to(b, (field.count,))[at].item() for b in (low, high)]
        raise Finding(expected, f"element {at} of {field.title} is {rows[row, at].item()}, not in {limits}")


@check("values.lengths", "EP_FIELD_RAGGED", after="memory.written")
def lengths(run: Run) -> None:
    """The length of a ragged field or text is at most the field's size."""

    def judge(field: Field, value: Value) -> None:
        most = max(value.lengths or (0,))
        require(most <= field.shape[0], f"at most {field.shape[0]} for {field.title}", f"a length of {most}")

    _each_value(run, lambda field: field.has_length, "ragged or a text", judge)


@check("values.bounds", "ep_field.low", after="memory.written values.lengths values.nan")
def bounds(run: Run) -> None:
    """The numbers of a box lie within low and high."""

    def judge(field: Field, value: Value) -> None:
        _outside(field, value, field.low, field.high, "numbers within [low, high]")

    def bounded(field: Field) -> bool:
        return field.kind == abi.BOX and (field.low is not None or field.high is not None)

    _each_value(run, bounded, "a box with bounds", judge)


@check("values.nan", "EP_BOX", after="memory.written values.lengths")
def nan(run: Run) -> None:
    """No element of a box is NaN."""

    def judge(field: Field, value: Value) -> None:
        bad = np.argwhere(np.ma.filled(np.isnan(_elements(field, value)), False))
        require(not len(bad), "numbers", f"element {bad[0][1] if len(bad) else 0} of {field.title} is NaN")

    _each_value(run, lambda field: field.kind == abi.BOX and field.dtype.kind == "f", "a box of floats", judge)


@check("values.discrete", "Integers start .. start+n-1 per element", after="memory.written values.lengths")
def discrete(run: Run) -> None:
    """Discrete values lie in start .. start + n - 1."""

    def judge(field: Field, value: Value) -> None:
        start = field.start if field.start is not None else np.zeros(1, np.int64)
        _outside(field, value, start, start + field.n - 1, "values in start .. start + n - 1")

    _each_value(run, lambda field: field.kind == abi.DISCRETE, "discrete", judge)


@check("values.binary", "0 or 1 per element; EP_BOOL", after="memory.written values.lengths")
def binary(run: Run) -> None:
    """Binary values and booleans are 0 or 1."""

    def judge(field: Field, value: Value) -> None:
        _outside(field, value, 0, 1, "0 or 1")

    _each_value(run, lambda field: field.kind == abi.MULTI_BINARY or field.is_bool, "binary or boolean", judge)


@check("values.text", "UTF-8, rank 1; always has a length", after="memory.written values.lengths")
def text(run: Run) -> None:
    """Texts are UTF-8."""

    def judge(field: Field, value: Value) -> None:
        size = field.count
        for row, length in enumerate(value.lengths or ()):
            data = value.data[row * size : row * size + length]
            try:
                data.decode()
            except UnicodeDecodeError:
                raise Finding("UTF-8", f"{field.title} is {data!r}") from None

    _each_value(run, lambda field: field.kind == abi.TEXT, "a text", judge)


def _each_outcome(run: Run, judge: Callable[[Outcome], None]) -> None:
    trace = play.play(run.env(), run.seed, run.generator(), steps=_STEPS)
    for step, frame in enumerate(trace.frames):
        if frame.outcome is None:
            continue
        try:
            judge(frame.outcome)
        except Finding as finding:
            raise Finding(finding.expected, f"{finding.seen} (call {step})") from None


@check("values.flags", "Booleans are uint8_t, 0 or 1", after="lifecycle.observe_at_end")
def flags(run: Run) -> None:
    """The flags that step() writes are 0 or 1."""

    def judge(outcome: Outcome) -> None:
        for name in ("terminated", "truncated", "alive"):
            values = list(getattr(outcome, name) or b"")
            require(all(value in (0, 1) for value in values), f"{name} is 0 or 1", f"{values}")
        require(outcome.episode_over in (None, 0, 1), "episode_over is 0 or 1", f"{outcome.episode_over}")

    _each_outcome(run, judge)


@check("values.reward", "ep_result.reward", after="lifecycle.observe_at_end")
def reward(run: Run) -> None:
    """Rewards are finite numbers."""

    def judge(outcome: Outcome) -> None:
        require(bool(np.isfinite(outcome.reward).all()), "finite rewards", f"{outcome.reward.tolist()}")

    _each_outcome(run, judge)
