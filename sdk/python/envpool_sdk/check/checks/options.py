"""Options: what is declared can be given."""

from __future__ import annotations

from collections.abc import Callable

from envpool_sdk.check import abi
from envpool_sdk.check.catalog import check
from envpool_sdk.check.checks.spec import other_values
from envpool_sdk.check.engine import CallFailed, tasks_of
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.options import Option, odd_values, take_options
from envpool_sdk.check.play import random_action
from envpool_sdk.check.run import Run


@check("options.declared", "ep_option", after="abi.ids abi.functions", per_plugin=True)
def declared(run: Run) -> None:
    """Every declaration keeps the rules: name, type, default within its own range and choices."""
    for task in tasks_of(run.plugin):
        take_options(task)


@check("options.given", "EP_OPTION_REQUIRED", after="options.declared")
def given(run: Run) -> None:
    """What is given by --option is declared, and every required option is given."""
    _ = run.task


def _use(run: Run, option: Option, value: object) -> None:
    """Describes, makes and steps an env with one option set."""
    task = run.task_with(run.host)
    task.values = {**task.values, option.name: value}
    _ = task.spec
    env = task.create()
    env.note = f"{option.name}={shown(value)}"
    env.reset(run.seed)
    env.step(random_action(task.spec, run.generator(), env.observe()))
    env.observe()
    env.destroy()


def _each(run: Run, pairs: list[tuple[Option, object]], use: Callable[[Run, Option, object], None], what: str) -> None:
    """Uses each option with its value: all in one process where that may be; if that fails, each in its own."""

    def use_all(other: Run) -> None:
        for option, value in pairs:
            use(other, option, value)

    if not run.one_per_process:
        try:
            run.elsewhere(use_all)
            return
        except Finding:
            pass
    for option, value in pairs:
        try:
            run.elsewhere(lambda other, o=option, v=value: use(other, o, v))  # type: ignore[misc]
        except Finding as finding:
            raise Finding(f"{option.name}={shown(value)}, which is allowed, {what}", finding.seen) from None


def shown(value: object) -> str:
    """A value as messages show it."""
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:50]}..."


def _options_of(run: Run) -> list[Option]:
    return run.elsewhere(lambda other: other.task.options)


@check("options.bounds", "ep_option.min", after="lifecycle.runs")
def bounds(run: Run) -> None:
    """The least and the greatest value of each option make an env that runs."""
    found = [o for o in _options_of(run) if not o.choices and o.type != abi.T_BOOL]
    pairs = [(option, value) for option in found for value in other_values(option)]
    if not pairs:
        raise NotApplicable("no option has a min or a max")
    _each(run, pairs, _use, "works")


@check("options.choices", "ep_option.choices", after="lifecycle.runs")
def choices(run: Run) -> None:
    """Each choice of each option, and both values of each flag, make an env that runs."""
    found = [o for o in _options_of(run) if o.choices or o.type == abi.T_BOOL]
    pairs = [(option, value) for option in found for value in other_values(option)]
    if not pairs:
        raise NotApplicable("no option has choices")
    _each(run, pairs, _use, "works")


@check("options.at_reset", "EP_OPTION_AT_RESET", after="lifecycle.reset_again options.bounds options.choices")
def at_reset(run: Run) -> None:
    """The ends and choices of options that may be given at a reset are taken there."""
    if not run.task.at_reset:
        raise NotApplicable("no option may be given at a reset")
    env = run.env(run.seed)
    for option in run.task.at_reset:
        for value in other_values(option):
            try:
                env.reset(None, {option.name: value})
            except CallFailed as failed:
                raise Finding(f"reset() takes {option.name}={value!r}, which is allowed", failed.seen) from None


@check("options.odd_values", "A text for the user goes to ep_host.explain", after="options.bounds options.choices")
def odd(run: Run) -> None:
    """Values that are allowed but odd (missing files, huge numbers, empty texts) work or are explained, never a crash."""

    pairs = [(option, value) for option in _options_of(run) for value in odd_values(option)]
    if not pairs:
        raise NotApplicable("every option has choices")
    _each(run, pairs, _try, "works or is an error with an explanation")


def _try(run: Run, option: Option, value: object) -> None:
    """Makes an env with an option that may be refused, but not without a word."""
    task = run.task_with(run.host)
    values = {**task.values, option.name: value}
    try:
        task.describe(values)
        env = task.create(values=values)
        env.note = f"{option.name}={shown(value)}"
        env.reset(run.seed, values)
    except CallFailed as failed:
        require(bool(failed.why), "an explanation of the error", f"{failed.seen}, not explained")
