"""The handshake: descriptors, sizes, extensions, other hosts."""

from __future__ import annotations

import ctypes
import re

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed, Library, Task, tasks_of
from envpool_sdk.check.finding import Finding, NotApplicable, require
from envpool_sdk.check.host import Host
from envpool_sdk.check.memory import POISON, Exact, Larger, Memory, Pages
from envpool_sdk.check.run import Run


@check("abi.plugin", "ep_plugin", after="load.entry", per_plugin=True)
def plugin(run: Run) -> None:
    """The plugin's descriptor is complete and of this ABI."""
    p, least = run.plugin, ctypes.sizeof(abi.Plugin)
    require(p.size >= least, f"ep_plugin.size is {least} or more", f"{p.size}")
    require(p.abi_major == abi.MAJOR, f"abi_major is {abi.MAJOR}", f"{p.abi_major}")
    require(p.host_minor <= abi.MINOR, f"host_minor is {abi.MINOR} or less, what this host has", f"{p.host_minor}")
    for name in ("name", "version"):
        require(bool(getattr(p, name)), f"ep_plugin.{name} is not empty", f"{getattr(p, name)}")


@check("abi.tasks", "ep_plugin.tasks", after="abi.plugin", per_plugin=True)
def tasks(run: Run) -> None:
    """Every task's descriptor is complete, and says nothing that a host of this version does not know."""
    p, least = run.plugin, ctypes.sizeof(abi.Task)
    require(p.task_count > 0 and bool(p.tasks), "at least one task", f"task_count {p.task_count}, tasks {p.tasks}")
    for i, address in enumerate((ctypes.c_void_p * p.task_count).from_address(p.tasks)):
        if not address:
            raise Finding("every entry of tasks is set", f"tasks[{i}] is NULL")
        task = abi.Task.from_address(address)
        require(task.size >= least, f"ep_task.size is {least} or more", f"{task.size} (tasks[{i}])")
        known = (abi.ONE_PER_PROCESS, abi.THREAD_BOUND, abi.FREE)
        require(task.sharing in known, "sharing is 0, 1 or 2", f"{task.sharing} (tasks[{i}])")
        unknown = task.flags & 0xFFFFFFFF & ~abi.TASK_MAIN_THREAD
        require(not unknown, "no must-understand flag but EP_TASK_MAIN_THREAD", f"{unknown:#x} (tasks[{i}])")


@check("abi.ids", "ep_task.id", after="abi.tasks", per_plugin=True)
def ids(run: Run) -> None:
    """Ids are well formed, and no two tasks have the same."""
    seen: list[bytes] = []
    for i, task in enumerate(tasks_of(run.plugin)):
        good = task.id is not None and re.fullmatch(rb"[A-Za-z0-9_.-]+-v[0-9]+", task.id)
        expected = 'an id of letters, digits, "_", "-" and ".", that ends in -v<number>'
        require(bool(good), expected, f"{task.id!r} (tasks[{i}])")
        require(task.id not in seen, "a different id for each task", f"{task.id!r} twice")
        seen.append(task.id)


@check("abi.functions", "ep_task.describe", after="abi.tasks", per_plugin=True)
def functions(run: Run) -> None:
    """Every task has all its functions; only extension may be NULL."""
    for i, task in enumerate(tasks_of(run.plugin)):
        for name in ("describe", "create", "reset", "step", "observe", "destroy"):
            require(bool(getattr(task, name)), f"ep_task.{name} is set", f"NULL (tasks[{i}])")


@check("abi.reserved", "Reserved members are zero", after="abi.ids abi.functions options.declared", per_plugin=True)
def reserved(run: Run) -> None:
    """Reserved members are zero."""
    require(run.plugin.reserved == 0, "ep_plugin.reserved is 0", f"{run.plugin.reserved}")
    for task in tasks_of(run.plugin):
        require(task.reserved == 0, "ep_task.reserved is 0", f"{task.reserved} ({task.id.decode()})")
        for address in (ctypes.c_void_p * task.option_count).from_address(task.options) if task.option_count else ():
            option = abi.Option.from_address(address or 0)
            require(option.reserved == 0, "ep_option.reserved is 0", f"{option.reserved} ({option.name.decode()})")


@check("abi.texts", "Strings are UTF-8", after="abi.ids abi.functions options.declared", per_plugin=True)
def texts(run: Run) -> None:
    """Texts are UTF-8, and what is to be one line is one line."""
    said = {f"ep_plugin.{name}": getattr(run.plugin, name) for name in ("name", "version", "license", "url")}
    for task in tasks_of(run.plugin):
        said[f"ep_task.doc of {task.id.decode()}"] = task.doc
    for what, text in said.items():
        try:
            one_line = "\n" not in (text or b"").decode()
        except UnicodeDecodeError:
            raise Finding("UTF-8", f"{what} is {text!r}") from None
        require(one_line, "one line", f"{what} is {text!r}")


@check("abi.immortal", "Descriptors (ep_plugin,", after="lifecycle.observe_at_end")
def immortal(run: Run) -> None:
    """Descriptors never change, whatever is done."""
    before = _descriptors(run)
    env = run.env(run.seed)
    play.play(env, run.seed, run.generator(), steps=20)
    env.destroy()
    for what, data in _descriptors(run).items():
        require(data == before[what], f"{what} stays as it was", "its bytes changed while an env was used")


def _descriptors(run: Run) -> dict[str, bytes]:
    p, task = run.plugin, run.raw_task
    found = {"ep_plugin": bytes(p), f"ep_task {task.id.decode()}": bytes(task)}
    if task.option_count:
        for address in (ctypes.c_void_p * task.option_count).from_address(task.options):
            option = abi.Option.from_address(address or 0)
            found[f"ep_option {option.name.decode()}"] = bytes(option)
    for name, struct in abi.EXTENSIONS.items():
        extension = run.task.extension(name)
        if extension:
            found[name] = bytes(struct.from_address(extension))
    return found


@check("abi.unknown_extension", "ep_task.extension", after="options.given")
def unknown_extension(run: Run) -> None:
    """An extension that the task does not know is NULL."""
    for name in ("envpool.nothing/1", "envpool.render/999", "", "envpool", "\N{SNOWMAN}"):
        found = run.task.extension(name)
        require(not found, f"extension({name!r}) is NULL", f"{found or 0:#x}")


@check("abi.extensions", "ep_task.extension", after="abi.unknown_extension")
def extensions(run: Run) -> None:
    """An extension is complete and the same whenever it is asked for."""
    if not run.task.raw.extension:
        raise NotApplicable("the task has no extensions")
    for name, struct in abi.EXTENSIONS.items():
        first, second = run.task.extension(name), run.task.extension(name)
        require(first == second, f"extension({name!r}) gives the same address twice", f"{first} and {second}")
        if not first:
            continue
        found, least = struct.from_address(first), ctypes.sizeof(struct)
        require(found.size >= least, f"the size of {name} is {least} or more", f"{found.size}")
        for member, *_ in struct._fields_:
            function = getattr(found, member)
            require(not callable(function) or bool(function), f"{member} of {name} is set", "NULL")


def _trace_with(run: Run, task: Task, memory: Memory) -> play.Trace:
    task.describe(memory=memory)
    env = task.create(memory=memory)
    env.memory = memory
    env.note = "structs of another size"
    return play.play(env, run.seed, run.generator(), steps=10, seconds=5)


@check("abi.larger_structs", "Every struct that may grow starts with `size`", after="lifecycle.observe_at_end")
def larger_structs(run: Run) -> None:
    """Structs of a later host, longer than this plugin knows them, are taken like any other."""
    host = Host(run.subject.assets, memory=bytes([POISON]) * 64)
    _trace_with(run, run.task_with(host), Larger())


@check(
    "abi.exact_structs", "sets sizeof; the side that reads it never reads past `size`", after="lifecycle.observe_at_end"
)
def exact_structs(run: Run) -> None:
    """Nothing is read behind the size of a struct: a later plugin has to live with the shorter ones of this host."""
    host = Host(run.subject.assets)
    host.place(Pages(ctypes.sizeof(abi.Host), 8).address)
    _trace_with(run, run.task_with(host), Exact())


@check("abi.newer_host", "ep_host", after="lifecycle.runs")
def newer_host(run: Run) -> None:
    """A host of a later minor version is taken."""
    minor = abi.MINOR + 9
    host = Host(run.subject.assets, minor=minor)
    try:
        found = run.elsewhere(lambda other: bool(Library(other.subject.library).entry(host)))
        require(found, f"the entry accepts a host of ABI {abi.MAJOR}.{minor}", "it returned NULL")
        task = run.task_with(host)
        task.describe()
        task.create()
    except CallFailed as failed:
        raise Finding(f"a host of ABI {abi.MAJOR}.{minor} is taken", failed.seen) from None


@check("abi.no_assets", "ep_host.asset", after="lifecycle.runs")
def no_assets(run: Run) -> None:
    """Where an asset is missing, an error is returned and explained."""
    host = Host({})
    task = run.task_with(host)
    try:
        task.describe()
        env = task.create()
        env.reset(run.seed)
    except CallFailed as failed:
        require(bool(failed.why), "an explanation of the error", failed.seen)
