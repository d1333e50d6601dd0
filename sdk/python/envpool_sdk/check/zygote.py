"""The process from which the process of each check is copied.

A program of its own: it imports what checks need once, never loads a plugin, and has one thread, so that a copy of it is
as good as a fresh interpreter and costs a few milliseconds. It reads requests from its input, a JSON object a line, and
writes what came of each to its output:

    {"n": 3, "check": "memory.written", "subject": {...}, "limit": 60}
    {"n": 3, "outcome": "passed", "expected": "", "seen": "", "remark": "", "log": "", "seconds": 0.01}

The check "tasks" is none: it gives the ids of the plugin's tasks as "tasks". An outcome is "passed", "failed" or "skipped"; "error" where a check itself is wrong. At the end of its input, or when its parent dies, it kills what still runs
and ends.

usage: python zygote.py JOBS PACKAGE_PATH...
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import selectors
import signal
import sys
import time
import traceback
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envpool_sdk.check.catalog import Check
    from envpool_sdk.check.run import Run

_PR_SET_PDEATHSIG = 1
_LOOK = 0.25  # seconds


def _import_bare(paths: list[str]) -> None:
    """Makes envpool_sdk's modules importable without running envpool_sdk/__init__.py, which brings Gymnasium."""
    package = types.ModuleType("envpool_sdk")
    package.__path__ = paths
    sys.modules["envpool_sdk"] = package
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # NumPy must not start threads


@dataclass
class _Child:
    request: dict[str, Any]
    pid: int
    pidfd: int
    result: int  # read end of the pipe for its result
    log: int  # what it printed
    crumb: Any
    begun: float

    @property
    def deadline(self) -> float:
        allowed = self.begun + float(self.request["limit"])
        return min(allowed, self.crumb.deadline or allowed)


def _start(request: dict[str, Any], checks: dict[str, Check]) -> _Child:
    from envpool_sdk.check.run import Crumb

    crumb = Crumb(mmap.mmap(-1, 4096))
    log = os.memfd_create("log")
    result, to = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            _child(request, checks, crumb, log, to)
            code = 0
        finally:
            os._exit(code)
    os.close(to)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)  # the child does the same: whoever is first
    return _Child(request, pid, os.pidfd_open(pid), result, log, crumb, time.monotonic())


def _child(request: dict[str, Any], checks: dict[str, Check], crumb: Any, log: int, to: int) -> None:
    """Runs one check and sends its result."""
    from envpool_sdk.check import engine
    from envpool_sdk.check.run import Run, Subject

    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    for place in (1, 2):
        os.dup2(log, place)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    to = os.dup2(to, 3, inheritable=False)
    os.closerange(4, 256)
    engine.set_crumb(crumb.write)
    run = Run(Subject(**request["subject"]), crumb)
    name = request["check"]
    answer = {"outcome": "passed", "tasks": task_ids(run)} if name == "tasks" else judge(run, checks[name])
    data = json.dumps(answer).encode()
    while data:
        data = data[os.write(to, data) :]


def task_ids(run: Run) -> list[str]:
    """The ids of the plugin's tasks."""
    from envpool_sdk.check.engine import tasks_of

    return [(task.id or b"").decode(errors="replace") for task in tasks_of(run.plugin)]


def judge(run: Run, check: Check) -> dict[str, str]:
    """What comes of a check, in this process."""
    from envpool_sdk.check.finding import Finding, NotApplicable
    from envpool_sdk.check.options import OptionError
    from envpool_sdk.check.spec import SpecError

    try:
        check.function(run)
    except NotApplicable as reason:
        return {"outcome": "skipped", "remark": str(reason)}
    except Finding as finding:
        return {"outcome": "failed", "expected": finding.expected, "seen": finding.seen}
    except SpecError as error:
        return {"outcome": "failed", "expected": "a spec that keeps the rules of env.h", "seen": str(error)}
    except OptionError as error:
        return {"outcome": "failed", "expected": "options that the task takes", "seen": str(error)}
    except Exception:
        return {"outcome": "error", "seen": traceback.format_exc()}
    return {"outcome": "passed", "remark": run.remark}


def _kill(group: int) -> None:
    """Ends a child, and whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _finish(child: _Child, timed_out: bool) -> dict[str, Any]:
    """The result of a child that ended, or is ended now."""
    from envpool_sdk.check.run import ended

    if timed_out:
        _kill(child.pid)
    _, status = os.waitpid(child.pid, 0)
    _kill(child.pid)  # what it and the plugin may have started
    os.set_blocking(child.result, False)
    data = b""
    try:
        while part := os.read(child.result, 1 << 16):
            data += part
    except BlockingIOError:
        pass
    log = os.pread(child.log, 4000, max(0, os.fstat(child.log).st_size - 4000))
    crumb = child.crumb.read()
    answer: dict[str, Any]
    if timed_out:
        seen = f"no end after {time.monotonic() - child.begun:.0f} s, in {crumb or 'the check'}"
        answer = {"outcome": "failed", "expected": "", "seen": seen}
    elif status == 0 and data:
        answer = json.loads(data)
    else:
        answer = {"outcome": "failed", "expected": "", "seen": ended(status, crumb)}
    for fd in (child.pidfd, child.result, child.log):
        os.close(fd)
    child.crumb.memory.close()
    text = log.decode(errors="replace")
    return {**answer, "n": child.request["n"], "log": text, "seconds": round(time.monotonic() - child.begun, 3)}


def serve(jobs: int) -> None:
    """Runs the requests of the input, `jobs` at a time, until it ends."""
    from envpool_sdk.check.catalog import all_checks

    checks = all_checks()
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    running: dict[int, _Child] = {}
    waiting: list[dict[str, Any]] = []
    buffer = b""

    def answer(child: _Child, timed_out: bool) -> None:
        selector.unregister(child.pidfd)
        del running[child.pidfd]
        line = json.dumps(_finish(child, timed_out)).encode() + b"\n"
        while line:
            line = line[os.write(1, line) :]

    while True:
        while waiting and len(running) < jobs:
            child = _start(waiting.pop(0), checks)
            running[child.pidfd] = child
            selector.register(child.pidfd, selectors.EVENT_READ)
        # While something runs, its deadline is looked at now and then: it may have been set meanwhile.
        for key, _ in selector.select(_LOOK if running else None):
            if key.fd != 0:
                answer(running[key.fd], timed_out=False)
                continue
            data = os.read(0, 1 << 16)
            if not data:
                for child in running.values():
                    _kill(child.pid)
                return
            *lines, buffer = (buffer + data).split(b"\n")
            waiting += [json.loads(line) for line in lines]
        for child in [child for child in running.values() if time.monotonic() >= child.deadline]:
            answer(child, timed_out=True)


if __name__ == "__main__":
    _import_bare(sys.argv[2:])
    serve(int(sys.argv[1]))
