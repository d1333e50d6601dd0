"""The same seed and actions give the same bytes, whatever else is different."""

from __future__ import annotations

import threading
from collections.abc import Callable

from envpool_sdk.check import play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import Env
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.run import Run

_STEPS, _ENVS = 60, 4


def _played(run: Run, *, shift: bool = False, env_id: int = 0, episodes: int = 1000, steps: int = _STEPS) -> play.Trace:
    """What an env shows in a process of its own."""

    def fresh(other: Run) -> play.Trace:
        env = other.env(env_id=env_id)
        return play.play(env, run.seed, run.generator(), steps=steps, episodes=episodes, seconds=0.7)

    return run.elsewhere(fresh, shift=shift)


def _replayed(run: Run, trace: play.Trace, *, shift: bool = False, env_id: int = 0) -> play.Trace:
    return run.elsewhere(lambda other: play.replay(other.env(env_id=env_id), run.seed, trace), shift=shift)


def _same(one: play.Trace, other: play.Trace, names: tuple[str, str], expected: str) -> None:
    apart = play.difference(one, other, names)
    require(apart is None, expected, apart or "")


@check("determinism.same_seed", "EP_TASK_NONDETERMINISTIC", after="lifecycle.observe_twice lifecycle.several")
def same_seed(run: Run) -> None:
    """The same seed and actions give the same episode."""
    run.needs("deterministic")
    if run.one_per_process:
        trace = _played(run, episodes=1)
        again = _replayed(run, trace)
    else:  # in one process: whether another one gives the same is a check of its own
        trace = play.play(run.env(), run.seed, run.generator(), steps=_STEPS, episodes=1, seconds=0.7)
        again = play.replay(run.env(), run.seed, trace)
    _same(trace, again, ("first env", "second env"), "the same bytes for the same seed and actions")


@check("determinism.next_episodes", "go on with the generator's state", after="determinism.fresh_process")
def next_episodes(run: Run) -> None:
    """Episodes after a reset without a seed are the same again, too."""
    run.needs("deterministic")
    trace = _three_episodes(run)
    _same(trace, _replayed(run, trace), ("first env", "second env"), "the same second and third episode")


def _three_episodes(run: Run) -> play.Trace:
    """Three short episodes, cut off where they don't end by themselves."""

    def fresh(other: Run) -> play.Trace:
        env, random = other.env(), run.generator()
        trace = play.play(env, run.seed, random, steps=15, episodes=1, seconds=0.3)
        for _ in range(2):
            env.reset()
            trace.actions.append(None)
            trace.frames.append(play.Frame(env.observe(), None))
            seen = trace.frames[-1].observation
            more = play.play(env, None, random, steps=15, episodes=1, seconds=0.3, seen=seen)
            trace.actions += more.actions
            trace.frames += more.frames
        return trace

    return run.elsewhere(fresh)


@check("determinism.reseeded", "go on with the generator's state", after="determinism.next_episodes")
def reseeded(run: Run) -> None:
    """An env that has played and is given a seed plays like a new one."""
    run.needs("deterministic")
    trace = _played(run)

    def used(other: Run) -> play.Trace:
        env = other.env(run.seed + 17)
        play.play(env, None, other.random, steps=30, seconds=0.3)
        return play.replay(env, run.seed, trace)

    _same(trace, run.elsewhere(used), ("new env", "env that has played"), "the same as a new env from the same seed")


@check("determinism.fresh_process", "EP_TASK_NONDETERMINISTIC", after="determinism.same_seed")
def fresh_process(run: Run) -> None:
    """Another process, with other addresses, gives the same."""
    run.needs("deterministic")
    trace = _played(run, episodes=1)
    for _ in range(2):
        again = _replayed(run, trace, shift=True)
        _same(trace, again, ("one process", "another process"), "the same in any process")


@check(
    "determinism.env_id", "for logs; must not influence the dynamics", after="determinism.next_episodes memory.canaries"
)
def env_id(run: Run) -> None:
    """The number of an env does not matter."""
    run.needs("deterministic")
    trace = _played(run)
    for number in (1, 2**40 + 3):
        again = _replayed(run, trace, env_id=number)
        _same(trace, again, ("env_id 0", f"env_id {number}"), "the same whatever env_id is")


def _first_looks(run: Run, seeds: list[int | None]) -> list[play.Trace]:
    """The beginning of an episode for each seed, all with the same actions, one env playing all."""

    def fresh(other: Run) -> list[play.Trace]:
        env, traces = other.env(), []
        model = play.play(env, seeds[0], run.generator(), steps=20, episodes=1, seconds=0.3)
        for seed in seeds:
            traces.append(_same_actions(env, seed, model))
        return traces

    return run.elsewhere(fresh)


def _same_actions(env: Env, seed: int | None, model: play.Trace) -> play.Trace:
    """Plays a trace's actions after a reset with this seed, as far as the episode goes."""
    trace = play.Trace(model.spec)
    env.reset(seed)
    trace.frames.append(play.Frame(env.observe(), None))
    for action in model.actions[1:]:
        if action is None:
            break
        outcome = env.step(action)
        trace.frames.append(play.Frame(env.observe(), outcome))
        if outcome.over:
            break
    return trace


def _all_alike(traces: list[play.Trace]) -> bool:
    first = traces[0]
    return all(len(other.frames) == len(first.frames) and play.difference(first, other) is None for other in traces[1:])


@check("determinism.seeds_matter", "ep_reset.seed", after="determinism.next_episodes")
def seeds_matter(run: Run) -> None:
    """Where there is chance in a task, different seeds give different episodes."""
    run.needs("deterministic")
    by_seed = _first_looks(run, [run.seed + 101 * i for i in range(8)])
    if not _all_alike(by_seed):
        return
    by_episode = _first_looks(run, [run.seed, *[None] * 7])
    require(
        _all_alike(by_episode),
        "different episodes for different seeds",
        "8 seeds give the same episode, although episodes without a seed differ: the seed is ignored",
    )
    run.remark = "8 seeds gave the same episode: the task seems to know no chance, or it ignores its seed"


@check("determinism.episodes_vary", "go on with the generator's state", after="determinism.seeds_matter")
def episodes_vary(run: Run) -> None:
    """A reset without a seed goes on with the generator, so that episodes are not all the same."""
    run.needs("deterministic")
    by_seed = _first_looks(run, [run.seed + 101 * i for i in range(8)])
    if _all_alike(by_seed):
        raise NotApplicable("no seed makes a difference: there is no chance in this task")
    by_episode = _first_looks(run, [run.seed, *[None] * 7])
    require(
        not _all_alike(by_episode),
        "a reset without a seed goes on with the generator's state",
        "8 episodes in a row are the same, although seeds make a difference: each reset begins the generator anew",
    )


@check("determinism.interleaved", "ep_sharing", after="determinism.env_id")
def interleaved(run: Run) -> None:
    """Envs of one process that take turns play as if each were alone."""
    run.needs("deterministic")
    run.needs("several")
    traces = _alone(run)
    envs = [run.env(env_id=i) for i in range(_ENVS)]
    plays = [play.retrace(env, run.seed + i, trace) for i, (env, trace) in enumerate(zip(envs, traces, strict=True))]
    again = [play.Trace(run.spec, actions=trace.actions) for trace in traces]
    left = set(range(_ENVS))
    while left:
        for i in sorted(left):
            frame = next(plays[i], None)
            if frame is None:
                left.discard(i)
                continue
            frame.observation = envs[i].observe()
            again[i].frames.append(frame)
    for trace, other in zip(traces, again, strict=True):
        _same(trace, other, ("alone", "beside others"), "the same as when it is alone in its process")


def _alone(run: Run) -> list[play.Trace]:
    """What each of some envs shows, alone in its process."""

    def fresh(seed: int) -> Callable[[Run], play.Trace]:
        return lambda other: play.play(other.env(), seed, run.generator(), steps=40, seconds=0.4)

    return [run.elsewhere(fresh(run.seed + i)) for i in range(_ENVS)]


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs work(i) on a thread each, at once; raises what one of them raised."""
    raised: list[BaseException] = []
    begin = threading.Barrier(count)

    def body(i: int) -> None:
        try:
            begin.wait()
            work(i)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


@check("determinism.concurrent", "ep_sharing", after="determinism.interleaved")
def concurrent(run: Run) -> None:
    """Envs that run at once, a thread each, play as if each were alone."""
    run.needs("deterministic")
    run.needs("several")
    traces = _alone(run)
    again: list[play.Trace | None] = [None] * _ENVS
    _ = run.spec, run.extensions

    def work(i: int) -> None:
        env = run.env(env_id=i)
        again[i] = play.replay(env, run.seed + i, traces[i])
        env.destroy()

    _in_threads(_ENVS, work)
    for trace, other in zip(traces, again, strict=True):
        if other is None:
            raise Finding("every thread ends its play", "one did not")
        _same(trace, other, ("alone", "beside other threads"), "the same as when it is alone in its process")


@check("determinism.migration", "ep_sharing", after="determinism.interleaved resources.float_mode")
def migration(run: Run) -> None:
    """An EP_FREE env may be made, reset, stepped, observed and destroyed on a different thread each."""
    run.needs("free")
    run.needs("deterministic")
    trace = _played(run, steps=20)
    # Made on this thread, which lives on: the identity of one that ended may be the next one's.
    env = run.env()
    env.note = "on another thread than before"
    steps = play.retrace(env, run.seed, trace)
    again = play.Trace(run.spec, actions=trace.actions)
    for _ in trace.actions:
        _in_threads(1, lambda _: again.frames.append(next(steps)))

        def look(_: int) -> None:
            again.frames[-1].observation = env.observe()

        _in_threads(1, look)
    _same(trace, again, ("one thread", "many threads"), "the same on whichever threads it runs")
    _in_threads(1, lambda _: env.destroy())
