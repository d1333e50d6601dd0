"""Loading: the library opens, offers its entry, and does nothing else."""

from __future__ import annotations

import time
from functools import partial

from envpool_sdk.check import abi, elf
from envpool_sdk.check.catalog import check
from envpool_sdk.check.finding import Finding, require
from envpool_sdk.check.process import Unchanged
from envpool_sdk.check.run import Run

_ENTRY = "The one exported function"
_SLOW = 0.5  # seconds


@check("load.opens", _ENTRY, per_plugin=True)
def opens(run: Run) -> None:
    """The library opens with all its symbols resolved (RTLD_NOW, RTLD_LOCAL)."""
    _ = run.library


@check("load.entry", _ENTRY, after="load.opens", per_plugin=True)
def entry(run: Run) -> None:
    """The library exports its entry, which returns a descriptor."""
    _ = run.plugin


@check("load.exports", "A plugin is a shared library that exports one function", after="load.opens", per_plugin=True)
def exports(run: Run) -> None:
    """Nothing but the entry is exported: symbols of two plugins must not mix."""
    others = [name for name in elf.exported(run.subject.library) if name != abi.SYMBOL]
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    require(not others, f"{abi.SYMBOL} is the only exported symbol", f"also exported: {', '.join(others[:5])}{more}")


@check("load.same_pointer", "Descriptors (ep_plugin,", after="load.entry", per_plugin=True)
def same_pointer(run: Run) -> None:
    """The entry gives the same descriptor when it is called again."""
    first, second = run.library.entry(run.host), run.library.entry(run.host)
    require(first == second, "the same address twice", f"{first:#x} and {second or 0:#x}")


@check("load.quick", "Must be cheap", after="load.entry", per_plugin=True)
def quick(run: Run) -> None:
    """The entry returns at once."""
    took = min(run.elsewhere(_entry_takes) for _ in range(3))  # the least: a busy machine may halt one of them
    require(took < _SLOW, f"the entry returns within {_SLOW:g} s", f"it took {took:.1f} s")


def _entry_takes(run: Run) -> float:
    library = run.library
    begin = time.monotonic()
    library.entry(run.host)
    return time.monotonic() - begin


def _leaves(run: Run, what: str) -> None:
    run.host.explanation()  # what is made at the first use exists now
    try:
        with Unchanged(what):
            run.library.entry(run.host)
    except Finding as finding:
        raise Finding(f"loading has no side effects: {finding.expected}", finding.seen) from None


for _what, _title in {
    "threads": "Loading starts no thread",
    "children": "Loading starts no process",
    "files": "Loading leaves no file open",
    "output": "Loading prints nothing",
    "directory": "Loading does not change the working directory",
    "locale": "Loading does not change the locale",
    "signals": "Loading does not change signal handlers",
    "float_mode": "Loading does not change how numbers are rounded (a library linked with -ffast-math may)",
    "environment": "Loading does not change environment variables",
}.items():
    enter = check(f"load.{_what}", "and have no side effects", after="load.entry", per_plugin=True, title=_title)
    enter(partial(_leaves, what=_what))
