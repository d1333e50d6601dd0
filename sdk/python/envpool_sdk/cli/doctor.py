"""envpool-sdk doctor: what is installed, and what of it does not work and why."""

from __future__ import annotations

import json as json_module
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import envpool_sdk
from envpool_sdk import _native, registry
from envpool_sdk.cli import arguments
from envpool_sdk.cli.words import count

PACKAGES = {
    "numpy": "",
    "gymnasium": "",
    "nanobind-backend": "",
    "typer": "",
    "rich": "",
    "pillow": "PNG and GIF, for play",
    "imageio-ffmpeg": "MP4, for play",
    "cookiecutter": "for new",
    "pytest": "to test an engine package",
}
"""What is worth knowing of, and what it is for where it may be missing."""

TOOLS = {
    "cc": "C",
    "c++": "C++",
    "cargo": "Rust",
    "cmake": "to build a plugin",
    "ninja": "to build a plugin",
}

_ABSENT = "[yellow]not there[/]"

PATIENCE = 60.0
"""Seconds that a plugin may take to load."""


def doctor(json: arguments.Json = False) -> None:
    """Tell what is installed, try to load every known plugin, and say what fails and why.

    Each plugin is loaded in a process of its own, and each of its tasks described; those that need options first are
    named. Code 1 if anything is broken.

    Example: `envpool-sdk doctor`
    """
    with ThreadPoolExecutor(_native.available_cpus()) as workers:
        plugins = list(workers.map(_examine, registry.sources))
    report = {
        "envpool_sdk": envpool_sdk.__version__,
        "abi": list(_native.ABI_VERSION),
        "path": list(envpool_sdk.__path__),
        "python": f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}",
        "platform": platform.platform(),
        "cpus_allowed": _native.available_cpus(),
        "cpus": os.cpu_count(),
        "include": _directory(envpool_sdk.get_include),
        "cmake": _directory(envpool_sdk.get_cmake_dir),
        registry.PATH_VARIABLE: os.environ.get(registry.PATH_VARIABLE, ""),
        "packages": {name: _version(name) for name in PACKAGES},
        "tools": {name: shutil.which(name) for name in TOOLS},
        "plugins": plugins,
    }
    if json:
        Console().print_json(data=report)
    else:
        _show(report)
    if any(plugin["problems"] for plugin in plugins):
        raise typer.Exit(1)


def _directory(get: Callable[[], str]) -> str | None:
    try:
        return get()
    except FileNotFoundError:
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _examine(source: registry.Source) -> dict[str, Any]:
    """What a source of tasks is, and what is wrong with it."""
    found: dict[str, Any] = {"source": source.name, "version": source.version, "tasks": list(source.tasks)}
    if source.error or not source.tasks:
        return found | {"problems": [source.error or "offers no task"]}
    found["library"] = registry.find(source.tasks[0]).manifest.library
    answer = _probe(source.tasks[0])
    if "error" in answer:
        return found | {"problems": [answer["error"]]}
    return found | {"problems": answer.pop("broken"), "needs": answer.pop("unfinished"), "engine": answer}


def _probe(task_id: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "envpool_sdk.cli.probe", task_id]
    try:
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"error": f"did not load within {PATIENCE:g} s"}
    if process.returncode < 0:
        return {"error": f"loading it ends the process by {signal.Signals(-process.returncode).name}"}
    try:
        return json_module.loads(process.stdout.splitlines()[-1])  # type: ignore[no-any-return]
    except (ValueError, IndexError):
        last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"error": f"loading it ends the process with code {process.returncode}: {last}"}


def _show(report: dict[str, Any]) -> None:
    console = Console(highlight=False)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in {
        "envpool-sdk": f"{report['envpool_sdk']}, ABI {report['abi'][0]}.{report['abi'][1]}, {', '.join(report['path'])}",
        "Python": report["python"],
        "platform": report["platform"],
        "CPUs": f"{report['cpus_allowed']} of {report['cpus']} may be used",
        "headers": report["include"],
        "CMake package": report["cmake"],
        registry.PATH_VARIABLE: report[registry.PATH_VARIABLE] or "not set",
    }.items():
        grid.add_row(name, escape(value) if value else _ABSENT)
    console.print(grid)
    for title, names, purposes in (("packages", report["packages"], PACKAGES), ("tools", report["tools"], TOOLS)):
        console.print(f"\n[bold]{title}[/]")
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(overflow="fold")
        for name, found in names.items():
            purpose = f" ({purposes[name]})" if purposes[name] else ""
            table.add_row(f"  {name}", escape(found) if found else f"{_ABSENT}{purpose}")
        console.print(table)
    console.print(f"\n[bold]plugins[/]: {len(report['plugins']) or 'none'}")
    for plugin in report["plugins"]:
        mark = "[red]broken[/]" if plugin["problems"] else "[green]fine[/]"
        name = " ".join(filter(None, [plugin["source"], plugin["version"]]))
        console.print(f"  {mark}  {escape(name)}: {count(len(plugin['tasks']), 'id')}", soft_wrap=True)
        if "engine" in plugin:
            engine = plugin["engine"]
            about = (
                f"{engine['name']} {engine['version']}, ABI {engine['abi'][0]}.{engine['abi'][1]}, {plugin['library']}"
            )
            console.print(f"          {escape(about)}", soft_wrap=True)
        for problem in plugin["problems"]:
            console.print(f"          {escape(problem)}", style="red", soft_wrap=True)
        for need in plugin.get("needs", ()):
            console.print(f"          {escape(need)}", style="dim", soft_wrap=True)
