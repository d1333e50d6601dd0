"""What describe() says."""

from __future__ import annotations

import threading

from envpool_sdk.check import abi, process
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed
from envpool_sdk.check.finding import Finding, require
from envpool_sdk.check.options import Option, in_range
from envpool_sdk.check.run import Run


@check("spec.valid", "ep_field", after="options.given")
def valid(run: Run) -> None:
    """The described fields keep every rule of env.h."""
    _ = run.spec


@check("spec.repeatable", "ep_task.describe", after="spec.valid")
def repeatable(run: Run) -> None:
    """The same options give the same spec."""
    first = run.task.describe()
    for _ in range(3):
        again = run.task.describe()
        require(first.full_key() == again.full_key(), "the same spec each time", first.difference(again))


@check("spec.refusal", "ep_spec.add", after="spec.valid")
def refusal(run: Run) -> None:
    """When the host refuses a field, describe() returns that status."""
    count = sum(len(fields) for fields in run.spec.fields.values())
    for place in range(count):
        run.task.describe(refuse=place)


@check("spec.follows_options", "EP_OPTION_SHAPES_SPEC", after="spec.repeatable options.bounds options.choices")
def follows_options(run: Run) -> None:
    """The fields depend only on options that are flagged EP_OPTION_SHAPES_SPEC."""
    for option in run.task.options:
        if option.flags & abi.OPTION_SHAPES_SPEC:
            continue
        for value in other_values(option):
            spec = run.task.describe({**run.task.values, option.name: value})
            require(
                spec.key() == run.spec.key(),
                f"the same fields for any {option.name}, which is not flagged EP_OPTION_SHAPES_SPEC",
                f"{option.name}={value!r} changes {run.spec.difference(spec)}",
            )


_LIMITS = {sign * 2**bits - (sign > 0) for bits in (31, 63) for sign in (-1, 1)} | {2**32 - 1}
"""The ends of integer types: what holds a value, not what means something."""


def other_values(option: Option) -> list[object]:
    """The values that a declaration names: both ends and all choices."""
    if option.type == abi.T_BOOL:
        return [False, True]
    ends = [end for end in (option.low, option.high) if end is not None and end not in _LIMITS]
    if option.type in (abi.T_INT, abi.T_FLOAT):
        return [*(end for end in ends if not option.choices and in_range(option, end)), *option.choices]
    return list(option.choices)


@check("spec.threads", "compile a model; no window", after="spec.repeatable")
def threads(run: Run) -> None:
    """describe() gives the same on several threads at once."""
    expected, wrong = run.spec.full_key(), []

    def describe() -> None:
        try:
            for _ in range(5):
                spec = run.task.describe()
                if spec.full_key() != expected:
                    wrong.append(run.spec.difference(spec))
        except Exception as error:
            wrong.append(str(error))

    workers = [threading.Thread(target=describe) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    require(not wrong, "the same spec on each of 4 threads", wrong[0] if wrong else "")


@check("spec.light", "compile a model; no window", after="spec.valid")
def light(run: Run) -> None:
    """describe() starts no thread and no process, and leaves no file open."""
    task = run.task
    run.host.explanation()
    for what in ("threads", "children"):
        with process.Unchanged(what):
            task.describe()
    with process.Unchanged("files"):
        task.describe()


@check("spec.create_alone", "ep_task.create", after="lifecycle.runs")
def create_alone(run: Run) -> None:
    """create() works in a process in which describe() was never called."""

    def create(other: Run) -> None:
        other.task.create()

    try:
        run.elsewhere(create)
    except CallFailed as failed:
        raise Finding("create() needs no describe() before it in the same process", failed.seen) from None


@check("spec.agents", "ep_agents", after="spec.valid")
def agents(run: Run) -> None:
    """Each agent and each group has a name, and always the same."""
    run.needs("agents")
    extension = run.extensions.agents
    assert extension is not None
    require(extension.group_count >= 1, "group_count is 1 or more", f"{extension.group_count}")
    for what, call, count in (
        ("name", extension.name, run.spec.max_agents),
        ("group", extension.group, extension.group_count),
    ):
        names = [call(i) for i in range(count)]
        require(
            None not in names, f"a {what} for each of {count}", f"NULL for {names.index(None) if None in names else 0}"
        )
        require(names == [call(i) for i in range(count)], f"the same {what} each time", f"{names} at first")
        require(len(set(names)) == count, f"a different {what} for each of {count}", f"{names}")
