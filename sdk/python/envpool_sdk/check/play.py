"""Playing: random actions that a spec allows, episodes as they went, and where two of them part."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envpool_sdk.check import abi
from envpool_sdk.check.engine import Action, CallFailed, Env, Observation, Outcome
from envpool_sdk.check.finding import Finding
from envpool_sdk.check.spec import Field, Spec

Generator = np.random.Generator


# ---- actions --------------------------------------------------------------------------------------------------------


def _numbers(f: Field, count: int, random: Generator) -> Any:
    """`count` agents' values, all within bounds."""
    shape = (count, f.count)

    def all_elements(bound: Any, default: float) -> Any:
        return np.broadcast_to(default if bound is None else bound, (f.count,))

    if f.kind == abi.DISCRETE:
        start = all_elements(f.start, 0).astype(np.int64)
        return (start + random.integers(0, all_elements(f.n, 1), shape)).astype(f.dtype)
    if f.kind == abi.MULTI_BINARY or f.is_bool:
        return random.integers(0, 2, shape).astype(f.dtype)
    if f.dtype.kind == "f":
        low = all_elements(f.low, -np.inf).astype(np.float64)
        high = all_elements(f.high, np.inf).astype(np.float64)
        low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2, -1))
        high = np.where(np.isfinite(high), high, low + 2)
        return np.clip(low + (high - low) * random.random(shape), low, high).astype(f.dtype)
    limits = np.iinfo(f.dtype)
    least = all_elements(f.low, max(limits.min, -1000)).astype(object)
    most = all_elements(f.high, min(limits.max, 1000)).astype(object)
    draw = random.integers(0, 1 << 62, shape).astype(object)
    return np.asarray(least + draw % (most - least + 1), dtype=f.dtype)


def _masked(spec: Spec, f: Field, seen: Observation | None) -> Any:
    """Which values an "action_mask" allows: a row an agent, or None."""
    if seen is None or f.kind != abi.DISCRETE or f.count != 1 or len(spec.fields[abi.ACTION]) != 1:
        return None
    for role, i, other in _masks(spec):
        if other.count == int(f.n[0]):
            return seen[role, i].array(other).reshape(-1, other.count) != 0
    return None


def _masks(spec: Spec) -> list[tuple[int, int, Field]]:
    return [(role, i, f) for role, i, f in spec.outputs if f.meaning == "action_mask"]


def random_action(spec: Spec, random: Generator, seen: Observation | None = None) -> Action:
    """Any action that the spec allows and, if the last observation is given, that its "action_mask" does."""
    action: Action = []
    for f in spec.fields[abi.ACTION]:
        rows = f.rows(spec.max_agents)
        if f.kind == abi.TEXT:
            values = random.integers(32, 127, (rows, f.count)).astype(np.uint8)
        else:
            values = _numbers(f, rows, random)
        mask = _masked(spec, f, seen)
        if mask is not None:
            for row in range(rows):
                allowed = np.flatnonzero(mask[min(row, len(mask) - 1)])
                if len(allowed):
                    values[row] = (int(f.start[0]) if f.start is not None else 0) + random.choice(allowed)
        lengths = tuple(random.integers(0, f.shape[0] + 1, rows).tolist()) if f.has_length else None
        action.append((values.tobytes(), lengths))
    return action


def odd_actions(spec: Spec) -> Iterator[tuple[str, Action]]:
    """Actions beyond what the spec allows, each with what is odd in it."""
    sound = random_action(spec, np.random.default_rng(0))
    for i, f in enumerate(spec.fields[abi.ACTION]):
        for value in _odd_numbers(f):
            data = np.full(f.count * f.rows(spec.max_agents), value).astype(f.dtype).tobytes()
            yield f"{f.title} = {value}", [*sound[:i], (data, sound[i][1]), *sound[i + 1 :]]


def _odd_numbers(f: Field) -> list[Any]:
    if f.kind == abi.TEXT:
        return [0, 0x80, 0xFF]
    if f.dtype.kind == "f":
        limits: Any = np.finfo(f.dtype)
        return [f.dtype.type(x) for x in (np.nan, np.inf, -np.inf, limits.max, limits.min)]
    whole = np.iinfo(f.dtype)
    odd = [whole.min, whole.max, whole.min >> 8, whole.max >> 8]
    if f.kind == abi.DISCRETE:
        first = int(f.start[0]) if f.start is not None else 0
        odd += [first - 1, first + int(f.n.max()), first + 1000]
    return [f.dtype.type(x) for x in odd if whole.min <= x <= whole.max]


# ---- episodes -------------------------------------------------------------------------------------------------------


@dataclass
class Frame:
    """What a reset or a step showed."""

    observation: Observation | None
    outcome: Outcome | None  # None: after a reset


@dataclass
class Trace:
    """What was played, and how to play it again: `actions` holds None for a reset."""

    spec: Spec
    frames: list[Frame] = field(default_factory=list)
    actions: list[Action | None] = field(default_factory=list)

    def ends(self) -> int:
        return sum(frame.outcome is not None and frame.outcome.over for frame in self.frames)


def play(
    env: Env,
    seed: int | None,
    random: Generator,
    *,
    steps: int = 60,
    episodes: int = 1000,
    seconds: float = 1.0,
    seen: Observation | None = None,
) -> Trace:
    """Plays random actions, resetting where an episode ends.

    Args:
        seed: of the first reset; None: no reset, the env goes on from where it is.
        steps, episodes, seconds: whichever is over first.
        seen: what the env shows at present, if it was observed already.
    """
    trace = Trace(env.task.spec)
    until = time.monotonic() + seconds
    if seed is not None:
        env.reset(seed)
        trace.actions.append(None)
        seen = env.observe()
        trace.frames.append(Frame(seen, None))
    seen = seen or env.observe()
    for _ in range(steps):
        if time.monotonic() > until:
            break
        action = random_action(trace.spec, random, seen)
        outcome = env.step(action)
        seen = env.observe()
        trace.actions.append(action)
        trace.frames.append(Frame(seen, outcome))
        if outcome.over:
            if trace.ends() == episodes:
                break
            env.reset()
            seen = env.observe()
            trace.actions.append(None)
            trace.frames.append(Frame(seen, None))
    return trace


def replay(env: Env, seed: int | None, trace: Trace, looks: int = 1) -> Trace:
    """Plays the same again.

    Args:
        seed: of the first reset, if the trace begins with one.
        looks: how often the env is observed after each reset and step; 0: only at the end.
    """
    again = Trace(trace.spec, actions=trace.actions)
    for i, frame in enumerate(retrace(env, seed, trace)):
        for _ in range(looks - 1):
            env.observe()
        if looks or i == len(trace.actions) - 1:
            frame.observation = env.observe()
        again.frames.append(frame)
    return again


def retrace(env: Env, seed: int | None, trace: Trace) -> Iterator[Frame]:
    """Plays the same again, a call at a time, without looking.

    Raises:
        Finding: a call fails that did not fail before.
    """
    for i, action in enumerate(trace.actions):
        try:
            if action is None:
                env.reset(seed if i == 0 else None)
                outcome = None
            else:
                outcome = env.step(action)
        except CallFailed as failed:
            raise Finding("the same calls succeed again", f"call {i}: {failed.seen}") from None
        yield Frame(None, outcome)


def reach_end(env: Env, random: Generator, seconds: float = 1.0) -> Outcome | None:
    """Steps a running episode to its end; None if it did not end in that time."""
    until, spec = time.monotonic() + seconds, env.task.spec
    masked = bool(_masks(spec))
    while time.monotonic() < until:
        outcome = env.step(random_action(spec, random, env.observe() if masked else None))
        if outcome.over:
            return outcome
    return None


# ---- comparing ------------------------------------------------------------------------------------------------------


def difference(one: Trace, other: Trace, names: tuple[str, str] = ("first", "second")) -> str | None:
    """Where two traces part, as a sentence; None if nowhere. Frames that were not looked at are alike to any."""
    for i, (a, b) in enumerate(zip(one.frames, other.frames, strict=True)):
        where = "after the reset" if i == 0 else f"after call {i} ({'reset' if a.outcome is None else 'step'})"
        apart = _outcomes_differ(a.outcome, b.outcome)
        if apart is None and a.observation is not None and b.observation is not None:
            apart = observations_differ(one.spec, a.observation, b.observation)
        if apart:
            return f"{where}: {apart} ({names[0]}, {names[1]})"
    return None


def _outcomes_differ(a: Outcome | None, b: Outcome | None) -> str | None:
    if a is None or b is None:
        return None if a is b else "a reset and a step"
    if a.reward.tobytes() != b.reward.tobytes():
        return f"reward {a.reward.tolist()} and {b.reward.tolist()}"
    for name in ("terminated", "truncated", "alive", "episode_over"):
        x, y = getattr(a, name), getattr(b, name)
        if x != y:
            return f"{name} {_flags(x)} and {_flags(y)}"
    return None


def _flags(value: bytes | int | None) -> Any:
    return list(value) if isinstance(value, bytes) else value


def observations_differ(spec: Spec, a: Observation, b: Observation) -> str | None:
    """The first field that differs in what is deterministic of it."""
    for key in a.keys() & b.keys():
        f = spec.fields[key[0]][key[1]]
        if f.volatile:
            continue
        if a[key].lengths != b[key].lengths:
            return f"the length of {f.title}: {a[key].lengths} and {b[key].lengths}"
        one, two = a[key].meant(f), b[key].meant(f)
        if one != two:
            x, y = np.frombuffer(one, f.dtype), np.frombuffer(two, f.dtype)
            width = f.dtype.itemsize
            at = next(i for i in range(len(x)) if one[i * width : (i + 1) * width] != two[i * width : (i + 1) * width])
            return f"element {at} of {f.title}: {x[at].item()!r} and {y[at].item()!r}"
    return None
