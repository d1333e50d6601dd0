"""Where plugins read and write: only there, everything there, and only during the call."""

from __future__ import annotations

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import Env, Observation
from envpool_sdk.check.finding import NotApplicable, require
from envpool_sdk.check.memory import POISONS, Guarded, Memory, Unaligned, unwritten
from envpool_sdk.check.run import Run

_STEPS = 12


def _look_at_each(run: Run, env: Env, memory: Memory, where: str) -> None:
    """Observes one field after the other with its buffer in `memory`, all others unwanted."""
    ordinary = env.memory
    for role, i, field in run.spec.outputs:
        env.memory, env.note = memory, f"{field.title} {where}"
        env.observe({(role, i)})
    env.memory, env.note = ordinary, ""


def _steps(run: Run, look: object = None) -> Env:
    """An env after some steps."""
    env = run.env(run.seed)
    play.play(env, run.seed, run.generator(), steps=_STEPS)
    return env


@check("memory.guard_after", "ep_view", after="memory.unaligned")
def guard_after(run: Run) -> None:
    """observe() writes nothing behind the end of a buffer."""
    env = _steps(run)
    _look_at_each(run, env, Guarded("after", given=""), "ends where memory ends")


@check("memory.guard_before", "ep_view", after="memory.guard_after")
def guard_before(run: Run) -> None:
    """observe() writes nothing before the beginning of a buffer."""
    env = _steps(run)
    _look_at_each(run, env, Guarded("before", given=""), "begins where memory begins")


@check("memory.canaries", "ep_view", after="memory.guard_before")
def canaries(run: Run) -> None:
    """observe() writes its own row of a batch, and no other."""
    env = run.env(env_id=3) if not run.one_per_process else run.env()
    env.reset(run.seed)
    for row in (0, 3, 7):
        env.observe(rows=(row, 8))
        env.step(play.random_action(run.spec, run.random, env.observe()))
        env.observe(rows=(row, 8))
        env.reset(run.seed)


@check("memory.results_guard", "ep_result", after="lifecycle.observe_at_end")
def results_guard(run: Run) -> None:
    """step() writes nothing beyond the ends of reward and flags."""
    env = run.env()
    for side in ("after", "before"):
        env.reset(run.seed)
        env.note = f"rewards and flags {'end' if side == 'after' else 'begin'} where memory does"
        for _ in range(_STEPS):
            ordinary, action = env.memory, play.random_action(run.spec, run.random, env.observe())
            env.memory = Guarded(side, given="")
            over = env.step(action).over
            env.memory = ordinary
            if over:
                env.reset()


@check("memory.written", "write every element of every", after="memory.canaries")
def written(run: Run) -> None:
    """observe() writes every byte of every field (as many as its length says)."""
    env = run.env(run.seed)
    _written(run, env, "after the reset")
    for _ in range(_STEPS):
        over = env.step(play.random_action(run.spec, run.random, env.observe())).over
        _written(run, env, "at an episode's end" if over else "after a step")
        if over:
            env.reset()


def _written(run: Run, env: Env, when: str) -> None:
    agents = run.spec.max_agents
    one, two = (env.observe(fill=fill) for fill in POISONS)
    for (role, i), value in one.items():
        field, other = run.spec.fields[role][i], two[role, i]
        a, b = value.meant(field), other.meant(field)
        missing = unwritten(a, b)
        require(
            not len(missing) or (field.volatile and len(missing) < field.bytes(agents)),
            f"every byte of {field.title} is written ({when})",
            f"byte {missing[0] if len(missing) else 0} still holds what the buffer held before"
            f" ({len(missing)} of {len(a)} bytes do)",
        )
        if value.lengths is not None:
            poison = int.from_bytes(bytes([POISONS[0]] * 4), "little")
            require(poison not in value.lengths, f"the length of {field.title} is written ({when})", "it is not")


@check("memory.actions_read_only", "What step() acts on", after="abi.exact_structs memory.results_guard")
def actions_read_only(run: Run) -> None:
    """Actions are only read."""
    _step_in(run, Guarded(given="before", read_only=True), "actions that can only be read")


@check("memory.actions_guard", "ep_input.action", after="memory.actions_read_only")
def actions_guard(run: Run) -> None:
    """step() reads nothing behind the end of an action."""
    _step_in(run, Guarded(), "actions that end where memory ends")


@check("memory.actions_released", "Arguments are valid until the", after="memory.actions_guard")
def actions_released(run: Run) -> None:
    """Actions and results are not touched after the call."""
    _step_in(run, Guarded(vanish=True), "memory of earlier steps is gone")


def _step_in(run: Run, memory: Memory, note: str) -> None:
    env = run.env(run.seed)
    for _ in range(_STEPS):
        action = play.random_action(run.spec, run.random, env.observe())
        ordinary = env.memory
        env.memory, env.note = memory, note
        over = env.step(action).over
        env.memory, env.note = ordinary, ""
        if over:
            env.reset()


@check("memory.views_released", "Arguments are valid until the", after="memory.guard_before abi.exact_structs")
def views_released(run: Run) -> None:
    """Buffers of observations are not touched after the call."""
    env = run.env(run.seed)
    for _ in range(_STEPS):
        ordinary = env.memory
        env.memory = Guarded(vanish=True)
        seen: Observation = env.observe()
        env.memory, env.note = ordinary, "buffers of earlier observations are gone"
        if env.step(play.random_action(run.spec, run.random, seen)).over:
            env.reset()
        env.observe()


@check("memory.options_released", "Arguments are valid until the", after="abi.exact_structs")
def options_released(run: Run) -> None:
    """Options are only read, and not touched after describe(), create() and reset()."""
    memory = Guarded(read_only=True, vanish=True)
    task = run.task
    task.describe()
    task.describe(memory=Guarded(vanish=True))
    env = task.create(memory=memory)
    env.note = "the options that describe() and create() had are gone"
    env.memory = Guarded(read_only=True, vanish=True)
    env.reset(run.seed)
    env.memory = Memory()
    env.note = "the options that create() and reset() had are gone"
    for _ in range(_STEPS):
        if env.step(play.random_action(run.spec, run.random, env.observe())).over:
            env.reset()
    env.destroy()


@check("memory.unaligned", "aligned to their type only", after="memory.null_roles")
def unaligned(run: Run) -> None:
    """Buffers and actions need no more alignment than that of their elements."""
    env = _steps(run)
    _look_at_each(run, env, Unaligned(), "is aligned to its type only")
    env.memory, env.note = Unaligned(), "buffers are aligned to their type only"
    env.reset(run.seed)
    env.step(play.random_action(run.spec, run.random, env.observe()))


@check("memory.null_entries", "wanted: skip computing it", after="lifecycle.observe_twice")
def null_entries(run: Run) -> None:
    """Fields that are not wanted are left alone, whichever they are, and the others are the same as ever."""
    run.needs("deterministic")
    outputs = [(role, i) for role, i, _ in run.spec.outputs]
    if all(len(fields) < 2 for role, fields in run.spec.fields.items() if role != abi.ACTION):
        raise NotApplicable("no role has two fields")
    env = _steps(run)
    whole = env.observe()
    for role, i in outputs:
        others = {key for key in outputs if key != (role, i)}
        if not any(key[0] == role for key in others):
            continue  # then the role has no array: the next check
        env.note = f"{run.spec.fields[role][i].title} is not wanted"
        _same(run, whole, env.observe(others), env.note)


@check("memory.null_roles", "the array itself is NULL when no field of that role", after="memory.null_entries")
def null_roles(run: Run) -> None:
    """A role of which nothing is wanted has no array at all."""
    run.needs("deterministic")
    env = _steps(run)
    whole = env.observe()
    for role, i, field in run.spec.outputs:
        env.note = f"only {field.title} is wanted"
        _same(run, whole, env.observe({(role, i)}), env.note)
    env.note = "nothing is wanted"
    env.observe(set())


def _same(run: Run, whole: Observation, part: Observation, when: str) -> None:
    apart = play.observations_differ(run.spec, whole, part)
    require(apart is None, f"the same bytes when {when}", apart or "")
