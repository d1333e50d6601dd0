"""The order of calls: what may come when."""

from __future__ import annotations

import contextlib

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed, Env
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.run import Run


def _ended(run: Run) -> Env:
    """An env whose episode is over."""
    env = run.env(run.seed)
    if play.reach_end(env, run.generator()) is None:
        raise NotApplicable("no episode came to its end in 1 s of random play")
    return env


@check("lifecycle.runs", "ep_task.step", after="spec.valid")
def runs(run: Run) -> None:
    """An env is made, reset, stepped, observed and destroyed."""
    env = run.env(run.seed)
    seen = env.observe()
    over = env.step(play.random_action(run.spec, run.random, seen)).over
    if not over:
        env.observe()
    env.destroy()


@check("lifecycle.reset_again", "ep_task.reset", after="lifecycle.runs")
def reset_again(run: Run) -> None:
    """An env can be reset again: after its episode's end, twice in a row, with and without a seed."""
    env = run.env(run.seed)
    env.reset(run.seed + 1)
    env.reset()
    play.reach_end(env, run.generator(), seconds=1)
    env.note = "after an episode"
    env.reset()
    env.step(play.random_action(run.spec, run.random, env.observe()))


@check("lifecycle.reset_in_episode", "Begins an episode. Comes before the first step", after="lifecycle.reset_again")
def reset_in_episode(run: Run) -> None:
    """A reset may come in the middle of an episode."""
    env = run.env(run.seed)
    for steps in (1, 2, 5):
        for _ in range(steps):
            if env.step(play.random_action(run.spec, run.random, env.observe())).over:
                env.reset()
        env.note = "in the middle of an episode"
        env.reset()


@check("lifecycle.observe_at_end", "Callable any number of times after reset", after="lifecycle.reset_in_episode")
def observe_at_end(run: Run) -> None:
    """The end of an episode can be observed."""
    env = run.env(run.seed)
    if play.reach_end(env, run.generator()) is not None:
        env.note = "after the end of an episode"
        env.observe()


@check("lifecycle.observe_twice", "Callable any number of times after reset", after="lifecycle.observe_at_end")
def observe_twice(run: Run) -> None:
    """Observing twice gives the same bytes: after a reset, a step, and the end of an episode."""
    env = run.env(run.seed)
    _twice(run, env, "after a reset")
    env.step(play.random_action(run.spec, run.random, env.observe()))
    _twice(run, env, "after a step")
    if play.reach_end(env, run.generator(), seconds=1):
        _twice(run, env, "after the end of an episode")


def _twice(run: Run, env: Env, when: str) -> None:
    first = env.observe()
    for _ in range(3):
        apart = play.observations_differ(run.spec, first, env.observe())
        require(apart is None, f"the same bytes again ({when})", apart or "")


@check("lifecycle.observe_pure", "Callable any number of times after reset", after="determinism.next_episodes")
def observe_pure(run: Run) -> None:
    """Observing changes nothing: an env that is observed thrice a step, or never, plays the same."""
    run.needs("deterministic")

    def once(other: Run) -> play.Trace:
        return play.play(other.env(), run.seed, run.generator(), steps=100, seconds=0.7)

    trace = run.elsewhere(once)
    for looks, how in ((3, "observed three times a step"), (0, "never observed before the end")):
        again = run.elsewhere(lambda other, n=looks: play.replay(other.env(), run.seed, trace, n))  # type: ignore[misc]
        apart = play.difference(trace, again, ("observed once a step", how))
        require(apart is None, "the same play however often it is observed", apart or "")


@check("lifecycle.step_before_reset", "Comes before the first", after="lifecycle.runs")
def step_before_reset(run: Run) -> None:
    """A step before the first reset is refused or harmless."""
    env = run.env()
    env.note = "before the first reset"
    with contextlib.suppress(CallFailed):
        env.step(play.random_action(run.spec, run.random))
    env.reset(run.seed)
    env.observe()


@check("lifecycle.step_after_end", "ep_task.step", after="lifecycle.observe_at_end")
def step_after_end(run: Run) -> None:
    """A step after the end of an episode is refused with EP_E_STATE, and a reset goes on."""
    env = _ended(run)
    env.note = "after the end of an episode"
    for _ in range(2):
        try:
            env.step(play.random_action(run.spec, run.random, env.observe()))
        except CallFailed as failed:
            require(failed.status == abi.E_STATE, "EP_E_STATE", failed.seen)
        else:
            raise Finding("step() after an episode's end returns EP_E_STATE", "EP_OK")
    env.reset()
    env.step(play.random_action(run.spec, run.random, env.observe()))


@check("lifecycle.explained", "A text for the user goes to ep_host.explain", after="lifecycle.step_after_end")
def explained(run: Run) -> None:
    """Whoever returns an error explains it."""
    env = _ended(run)
    try:
        env.step(play.random_action(run.spec, run.random, env.observe()))
    except CallFailed as failed:
        require(bool(failed.why), "ep_host.explain is called before an error is returned", f"{failed.seen}, no text")


@check("lifecycle.destroy_unused", "ep_task.destroy", after="lifecycle.runs")
def destroy_unused(run: Run) -> None:
    """An env that was never reset can be destroyed."""
    run.env().destroy()


@check("lifecycle.destroy_ended", "ep_task.destroy", after="lifecycle.observe_at_end")
def destroy_ended(run: Run) -> None:
    """An env can be destroyed after the end of an episode."""
    env = run.env(run.seed)
    if play.reach_end(env, run.generator()) is None:
        raise NotApplicable("no episode came to its end in 1 s of random play")
    env.destroy()


@check("lifecycle.odd_actions", "bad option value, action or argument", after="lifecycle.observe_at_end")
def odd_actions(run: Run) -> None:
    """Actions out of range (NaN, infinite, huge, negative) are refused or survived, and a reset goes on."""
    env = run.env(run.seed)
    for what, action in play.odd_actions(run.spec):
        env.note = what
        try:
            over = env.step(action).over
        except CallFailed:
            over = True
        env.observe()
        if over:
            env.reset()
    env.note = "after odd actions"
    env.reset(run.seed)
    env.step(play.random_action(run.spec, run.random, env.observe()))


@check("lifecycle.several", "ep_sharing", after="lifecycle.observe_at_end")
def several(run: Run) -> None:
    """A process can have many envs, made and destroyed in any order (unless EP_ONE_PER_PROCESS)."""
    run.needs("several")
    envs = [run.env(run.seed + i, env_id=i) for i in range(5)]
    for env in (envs.pop(2), envs.pop(0), envs.pop()):
        env.destroy()
    for env in envs:
        env.note = "after others were destroyed"
        env.step(play.random_action(run.spec, run.random, env.observe()))
        env.destroy()
