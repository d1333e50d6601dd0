"""envpool.state/1: the whole state of an env as bytes."""

from __future__ import annotations

import contextlib

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed, Env
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.run import Run

_PURPOSES = {abi.STATE_CLONE: "EP_STATE_CLONE", abi.STATE_PERSIST: "EP_STATE_PERSIST"}
_AFTER = "determinism.interleaved lifecycle.observe_pure state.save_pure"


def _purposes(run: Run) -> list[int]:
    run.needs("state")
    run.needs("deterministic")
    state = run.extensions.state
    assert state is not None
    return [purpose for purpose in _PURPOSES if state.purposes >> purpose & 1]


def _played_env(run: Run) -> Env:
    """An env in the middle of its second episode, where there is one."""
    env = run.env(run.seed)
    play.play(env, None, run.generator(), steps=10, seconds=0.3)
    return env


def _future(run: Run, env: Env) -> play.Trace:
    """What comes next, resets included."""
    trace = play.play(env, None, run.generator(), steps=30, seconds=0.5)
    env.reset()
    trace.actions.append(None)
    trace.frames.append(play.Frame(env.observe(), None))
    return trace


def _future_again(env: Env, trace: play.Trace) -> play.Trace:
    """The same actions; its first reset, if any, is without a seed."""
    return play.replay(env, None, trace)


def _same(one: play.Trace, other: play.Trace, what: str) -> None:
    apart = play.difference(one, other, ("where it was saved", what))
    require(apart is None, "the same future after save() and load()", apart or "")


@check("state.purposes", "bit p set: purpose p is supported", after="abi.extensions lifecycle.observe_at_end")
def purposes(run: Run) -> None:
    """The purposes are those of the header, at least one, and each can be saved."""
    run.needs("state")
    state = run.extensions.state
    assert state is not None
    known = 1 << abi.STATE_CLONE | 1 << abi.STATE_PERSIST
    require(bool(state.purposes) and not state.purposes & ~known, "bits 1 and 2 of purposes", f"{state.purposes:#x}")
    env = run.env(run.seed)
    for purpose, name in _PURPOSES.items():
        if state.purposes >> purpose & 1:
            require(len(env.save(purpose)) > 0, f"save() for {name} writes something", "no byte")


@check("state.round_trip", "Writes all that step(), observe() and an unseeded reset() depend on", after=_AFTER)
def round_trip(run: Run) -> None:
    """A state loaded into another env of equal options has the same future, generator and all."""
    purposes = _purposes(run)
    run.needs("several")
    for purpose in purposes:
        env, other = _played_env(run), run.env(run.seed + 5)
        data, at = env.save(purpose), env.observe()
        other.load(purpose, data)
        apart = play.observations_differ(run.spec, at, other.observe())
        require(apart is None, "a loaded state looks like the saved one", apart or "")
        trace = _future(run, env)
        _same(trace, _future_again(other, trace), f"where it was loaded, {_PURPOSES[purpose]}")


@check("state.same_env", "into any env made with equal options", after="state.round_trip")
def same_env(run: Run) -> None:
    """An env that goes back to its own earlier state has the same future again, from wherever it comes."""
    purposes, env = _purposes(run), _played_env(run)
    for purpose in purposes:
        data = env.save(purpose)
        trace = _future(run, env)
        for steps in (0, 1, 3):  # from the reset with which that future ends, and from a little later
            play.play(env, None, run.generator(), steps=steps)
            env.load(purpose, data)
            _same(trace, _future_again(env, trace), f"when it went back, {_PURPOSES[purpose]}")
            env.load(purpose, data)


@check("state.at_end", "into any env made with equal options", after="state.same_env lifecycle.step_after_end")
def at_end(run: Run) -> None:
    """Whether the episode is over is part of the state."""
    purposes, env = _purposes(run), run.env()
    for purpose in purposes:
        env.reset(run.seed)
        running = env.save(purpose)
        if play.reach_end(env, run.generator()) is None:
            raise NotApplicable("no episode came to its end in 1 s of random play")
        over = env.save(purpose)
        env.load(purpose, running)
        env.note = "after going back from an episode's end"
        env.step(play.random_action(run.spec, run.random, env.observe()))
        env.load(purpose, over)
        env.note = "after loading a state whose episode is over"
        try:
            env.step(play.random_action(run.spec, run.random, env.observe()))
        except CallFailed as failed:
            require(failed.status == abi.E_STATE, "EP_E_STATE", failed.seen)
        else:
            raise Finding("step() returns EP_E_STATE in a loaded state whose episode is over", "EP_OK")


@check("state.new_env", "into any env made with equal options", after="state.at_end")
def new_env(run: Run) -> None:
    """A state can be loaded into an env that was never reset."""
    purposes = _purposes(run)
    run.needs("several")
    for purpose in purposes:
        env, other = _played_env(run), run.env()
        other.note = "never reset"
        other.load(purpose, env.save(purpose))
        trace = _future(run, env)
        _same(trace, _future_again(other, trace), "in an env that was never reset")


@check("state.elsewhere", "for any machine and a later version of the plugin", after="state.new_env")
def elsewhere(run: Run) -> None:
    """What is saved to persist is loaded in another process."""
    purpose = abi.STATE_PERSIST

    def save(other: Run) -> tuple[bytes, play.Trace] | None:
        if purpose not in _purposes(other):
            return None
        env = _played_env(other)
        return env.save(purpose), _future(other, env)

    saved = run.elsewhere(save)
    if saved is None:
        raise NotApplicable("EP_STATE_PERSIST is not among the purposes")
    data, trace = saved

    def load(other: Run) -> play.Trace:
        env = other.env()
        env.note = "a state from another process"
        env.load(purpose, data)
        return _future_again(env, trace)

    _same(trace, run.elsewhere(load, shift=True), "in another process")


@check("state.save_pure", "ep_state.save", after="state.purposes determinism.reseeded")
def save_pure(run: Run) -> None:
    """Saving changes nothing."""
    purposes, env = _purposes(run), run.env()
    for purpose in purposes:
        trace = play.play(env, run.seed, run.generator(), steps=40, seconds=0.5)
        again = play.Trace(run.spec, actions=trace.actions)
        for frame in play.retrace(env, run.seed, trace):
            frame.observation = env.observe()
            env.save(purpose)
            again.frames.append(frame)
        apart = play.difference(trace, again, ("not saved", "saved after each step"))
        require(apart is None, "the same play when it is saved on the way", apart or "")


@check("state.writer", "A status other than EP_OK is to be returned by", after="state.purposes")
def writer(run: Run) -> None:
    """What the writer refuses, save() returns."""
    purposes, env = _purposes(run), run.env(run.seed)
    for purpose in purposes:
        try:
            env.save(purpose, refuse=True)
        except CallFailed as failed:
            require(failed.status == abi.E_NOMEM, "save() returns the writer's status, EP_E_NOMEM", failed.seen)
        else:
            raise Finding("save() returns the writer's status, EP_E_NOMEM", "EP_OK")


def _refused(env: Env, purpose: int, data: bytes, what: str) -> None:
    env.note = what
    try:
        env.load(purpose, data)
    except CallFailed:
        return
    raise Finding(f"load() refuses {what}", "EP_OK")


@check("state.truncated", "Bytes it can't use: EP_E_ARGUMENT", after="state.purposes")
def truncated(run: Run) -> None:
    """A state that is cut short, or longer than it was, is refused."""
    purposes, env = _purposes(run), _played_env(run)
    for purpose in purposes:
        data = env.save(purpose)
        for size in sorted({0, 1, len(data) // 4, len(data) // 2, len(data) - 8, len(data) - 1}):
            if 0 <= size < len(data):
                _refused(env, purpose, data[:size], f"a state of {size} instead of {len(data)} bytes")
        _refused(env, purpose, data + bytes(8), f"a state of {len(data)} bytes with 8 more behind")


@check("state.random", "Bytes it can't use: EP_E_ARGUMENT", after="state.truncated")
def random_bytes(run: Run) -> None:
    """Random bytes are refused."""
    purposes, env = _purposes(run), _played_env(run)
    for purpose in purposes:
        size = len(env.save(purpose))
        for length in (1, 8, 64, size, size, size, 4 * size):
            _refused(env, purpose, run.random.bytes(length), f"{length} random bytes")


@check("state.damaged", "Bytes it can't use: EP_E_ARGUMENT", after="state.random")
def damaged(run: Run) -> None:
    """A damaged state is refused, or loaded without a crash, and a reset goes on."""
    purposes, env = _purposes(run), _played_env(run)
    for purpose in purposes:
        data = env.save(purpose)
        places = range(len(data)) if len(data) <= 200 else run.random.integers(0, len(data), 60).tolist()
        for at in places:
            bad = bytearray(data)
            bad[at] ^= 0xFF
            env.note = f"a state whose byte {at} is inverted"
            with contextlib.suppress(CallFailed):
                env.load(purpose, bytes(bad))
            env.reset(run.seed)
    env.note = "after damaged states"
    env.step(play.random_action(run.spec, run.random, env.observe()))


@check("state.refusal_harmless", "nothing changes", after="state.random state.same_env")
def refusal_harmless(run: Run) -> None:
    """A refused load() leaves the env as it was."""
    purposes, env = _purposes(run), _played_env(run)
    for purpose in purposes:
        data = env.save(purpose)
        trace = _future(run, env)
        env.load(purpose, data)
        for bad in (b"", data[:-1], data[: len(data) // 2], run.random.bytes(len(data))):
            _refused(env, purpose, bad, "a broken state")
        env.note = "after a refused load()"
        _same(trace, _future_again(env, trace), "after load() refused other bytes")
