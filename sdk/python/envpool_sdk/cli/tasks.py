"""envpool-sdk list and info: which tasks there are, and what one of them is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from envpool_sdk import registry
from envpool_sdk.cli import arguments
from envpool_sdk.cli.words import count, plain
from envpool_sdk.makers import make
from envpool_sdk.making import TRANSFORMS
from envpool_sdk.spaces import action_space, observation_space

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, OptionDict, SpecDict
    from envpool_sdk.making import Setup


# ---- list -------------------------------------------------------------------


def list_tasks(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="[PATTERN]", help="Only ids that contain this, or match it: 'Pong*'.", show_default=False
        ),
    ] = "",
    plugin: arguments.Libraries = [],  # noqa: B006 - typer copies it
    json: arguments.Json = False,
) -> None:
    """List the tasks that are known: those of installed engine packages, of ENVPOOL_PLUGIN_PATH and of --plugin.

    No library is loaded but those named. Code 1 if no task fits.

    Example: `envpool-sdk list 'Pong*'`
    """
    for library in plugin:
        registry.load_plugin(library)
    console = Console(highlight=False)
    entries = {task_id: entry for task_id, entry in registry.entries().items() if _fits(task_id, pattern)}
    if json:
        console.print_json(data=[_listed(task_id, entry) for task_id, entry in entries.items()])
    else:
        for file in dict.fromkeys(entry.manifest.library for entry in entries.values()):
            ids = [task_id for task_id, entry in entries.items() if entry.manifest.library == file]
            name = entries[ids[0]].manifest.name
            console.print(f"[bold]{escape(name)}[/]: {count(len(ids), 'id')}, {escape(file)}", soft_wrap=True)
            console.print(Columns([escape(task_id) for task_id in ids], padding=(0, 3)))
    if not entries:
        if not json:
            fits = (
                f" fits {pattern!r}"
                if pattern
                else " is known: install an engine package, or name a library by --plugin"
            )
            typer.echo(f"no task{fits}", err=True)
        raise typer.Exit(1)


def _fits(task_id: str, pattern: str) -> bool:
    return pattern.lower() in task_id.lower() or fnmatch(task_id.lower(), pattern.lower())


def _listed(task_id: str, entry: registry.Entry) -> dict[str, Any]:
    task = entry.task
    return {
        "id": task_id,
        "alias_of": None if task_id == task.id else task.id,
        "engine": entry.manifest.name,
        "library": entry.manifest.library,
        "max_episode_steps": task.max_episode_steps,
        "reward_threshold": task.reward_threshold,
        "nondeterministic": task.nondeterministic,
        "defaults": plain(task.defaults),
    }


# ---- info -------------------------------------------------------------------


def info(
    task: arguments.Task,
    plugin: arguments.Libraries = [],  # noqa: B006
    option: arguments.Options = [],  # noqa: B006
    json: arguments.Json = False,
) -> None:
    """Show what a task is: its spaces and fields, its options with what they allow, and the engine behind it.

    With --option, what it is with these options. Without an option that is required, all but spaces and fields.

    Example: `envpool-sdk info Pong-v5 --option gray_scale=false`
    """
    made = arguments.setup(task, plugin, option, make)
    required = {one["name"] for one in made.task["options"] if one["required"]}
    spec = made.describe() if required <= made.options[0].keys() else None
    if json:
        Console().print_json(data=_described(made, spec))
    else:
        _show(made, spec)


def _described(made: Setup, spec: SpecDict | None) -> dict[str, Any]:
    plugin, task = made.plugin, made.task
    entry = registry.find(made.id)
    about: dict[str, Any] = {
        "id": task["id"],
        "gymnasium_id": f"{registry.NAMESPACE}/{task['id']}",
        "aliases": entry.task.aliases,
        "doc": task["doc"],
        "engine": {
            "name": plugin.name,
            "version": plugin.version,
            "license": plugin.license,
            "url": plugin.url,
            "library": plugin.path,
            "abi": plugin.abi,
        },
        "sharing": task["sharing"],
        "flags": task["flags"],
        "extensions": task["extensions"],
        "options": [option | {"value": made.values[option["name"]]} for option in task["options"]],
        "transforms": [
            {"name": name, "default": one.default, "value": made.transforms.get(name, one.default), "doc": one.doc}
            for name, one in TRANSFORMS.items()
        ],
    }
    if spec:
        about |= {
            "max_episode_steps": spec["max_episode_steps"] or None,
            "reward_threshold": spec["reward_threshold"],
            "fps": spec["fps"] or None,
            "agents": spec["max_agents"],
            "agent_names": spec["agent_names"],
            "group_names": spec["group_names"],
            "observation_space": str(observation_space(spec)),
            "action_space": str(action_space(spec)),
            "fields": {role: spec[role] for role in ("obs", "action", "info", "globals")},
        }
    return plain(about)  # type: ignore[no-any-return]


_SHARING = {
    "free": "envs share nothing: any thread may run any of them",
    "thread_bound": "many envs, each on a thread of its own",
    "one_per_process": "one env a process",
}


def _show(made: Setup, spec: SpecDict | None) -> None:
    console = Console(highlight=False)
    plugin, task = made.plugin, made.task
    rows: dict[str, Any] = {
        "engine": " ".join(filter(None, [plugin.name, plugin.version, plugin.license, plugin.url])),
        "library": f"{plugin.path} (ABI {plugin.abi[0]}.{plugin.abi[1]})",
        "sharing": _SHARING[task["sharing"]],
        "flags": ", ".join(task["flags"]),
        "extensions": ", ".join(task["extensions"]),
    }
    if spec:
        rows |= {
            "agents": _agents(spec),
            "time limit": spec["max_episode_steps"] and count(spec["max_episode_steps"], "step"),
            "solved at": "" if math.isnan(spec["reward_threshold"]) else f"a return of {spec['reward_threshold']:g}",
            "frames a second": spec["fps"] and f"{spec['fps']:g}",
        }
    about = Table.grid(padding=(0, 2))
    about.add_column(style="bold")
    about.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            about.add_row(name, escape(str(value)))
    console.print(f"[bold]{escape(task['id'])}[/]  {escape(task['doc'])}")
    console.print(about)
    if spec:
        fields = {"observation": spec["obs"], "action": spec["action"], "info": spec["info"], "global": spec["globals"]}
        for title, some in fields.items():
            if some:
                console.print(_fields_table(title, some))
    else:
        console.print("\nIts spaces are known once the required options are given, by --option.")
    if task["options"]:
        console.print(_options_table(task["options"], made.values))
    console.print(_transforms_table(made.transforms))


def _agents(spec: SpecDict) -> str:
    if spec["max_agents"] == 1:
        return ""
    names = ", ".join(spec["agent_names"][:8]) + (", ..." if len(spec["agent_names"]) > 8 else "")
    return f"{spec['max_agents']}" + (f": {names}" if names else "")


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first column is never broken, without the columns that are empty in all rows."""
    table = Table(
        title=title, title_justify="left", title_style="bold", header_style="dim", box=SIMPLE_HEAD, pad_edge=False
    )
    rows = list(rows)
    kept = [i for i in range(len(headings)) if any(row[i] for row in rows)]
    for i in kept:
        table.add_column(headings[i], overflow="fold", no_wrap=i == 0)
    for row in rows:
        table.add_row(*(escape(row[i]) for i in kept))
    return table


def _fields_table(title: str, fields: Iterable[FieldDict]) -> Table:
    return _table(title, ("name", "type", "values", "unit", "about"), map(_field_row, fields))


def _field_row(field: FieldDict) -> tuple[str, ...]:
    notes = [field["doc"]]
    notes += [f"labels: {', '.join(field['labels'])}"] if field["labels"] else []
    notes += ["one for each agent"] if field["per_agent"] else []
    notes += ["the first dimension is the most it can be"] if field["ragged"] else []
    notes += ["not deterministic"] if field["volatile"] else []
    notes += [f"meaning: {field['meaning']}"] if field["meaning"] else []
    shape = "".join(f"[{dim}]" for dim in field["shape"])
    layout = "" if field["layout"] == "plain" else f" {field['layout']} image"
    kind = f"{field['dtype']}{shape}{layout}"
    return field["name"] or "-", kind, _values(field), field["unit"], "; ".join(filter(None, notes))


def _values(field: FieldDict) -> str:
    if field["kind"] == "box":
        low, high = field["low"], field["high"]
        return "any" if low is None and high is None else f"{_range(low)} .. {_range(high)}"
    if field["kind"] == "discrete":
        n = np.asarray(field["n"])
        start = np.zeros_like(n) if field["start"] is None else np.asarray(field["start"])
        return f"{_range(start)} .. {_range(start + n - 1)}"
    return "0 or 1" if field["kind"] == "multi_binary" else "UTF-8 text"


def _range(bound: Any) -> str:
    """A bound for people: one number, or a few, or the least and the greatest of many."""
    if bound is None:
        return "any"
    numbers = np.unique(bound).tolist()
    if len(numbers) == 1:
        return _shown(numbers[0])
    if np.size(bound) <= 4:
        return f"[{', '.join(map(_shown, np.ravel(bound).tolist()))}]"
    return f"[{_shown(numbers[0])} to {_shown(numbers[-1])}]"


def _options_table(options: Iterable[OptionDict], values: Mapping[str, Any]) -> Table:
    headings = ("name", "type", "value", "allowed", "unit", "about")
    return _table("options", headings, (_option_row(option, values[option["name"]]) for option in options))


def _option_row(option: OptionDict, value: Any) -> tuple[str, ...]:
    notes = [option["doc"]]
    notes += ["required"] if option["required"] else []
    notes += ["may be given at a reset"] if option["at_reset"] else []
    notes += ["changes the spaces"] if option["shapes_spec"] else []
    shown = "" if option["required"] and value is option["default"] else _shown(value)
    kind = f"{option['type']} of {option['dtype']}" if option["dtype"] else option["type"]
    return option["name"], kind, shown, _allowed(option), option["unit"], "; ".join(filter(None, notes))


def _transforms_table(values: Mapping[str, Any]) -> Table:
    rows = ((name, _shown(values.get(name, one.default)), one.allowed, one.doc) for name, one in TRANSFORMS.items())
    return _table(
        "transforms, options that the pool offers for every task", ("name", "value", "allowed", "about"), rows
    )


def _allowed(option: OptionDict) -> str:
    """What an option's value may be, for people; "" if its type is all there is to say."""
    if option["choices"]:
        return ", ".join(_shown(choice) for choice in option["choices"])
    low, high = option["min"], option["max"]
    if low is not None and high is not None:
        return f"{_shown(low)} .. {_shown(high)}"
    if low is not None:
        return f"at least {_shown(low)}"
    return "" if high is None else f"at most {_shown(high)}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, separator=", ")
    return f"{value:g}" if isinstance(value, float) else repr(value)
