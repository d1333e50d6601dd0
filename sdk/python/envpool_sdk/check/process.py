"""What belongs to the whole process, and what a plugin must leave as it was."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

from envpool_sdk.check.finding import Finding

_libc = ctypes.CDLL(None)
_libc.setlocale.restype = ctypes.c_char_p
_LC_ALL = 6


def threads() -> dict[str, str]:
    """The name of each thread, by id."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            found[task.name] = (task / "comm").read_text().strip()
        except OSError:  # it has ended
            continue
    return found


def children() -> list[str]:
    """The processes that this one started and that have not been waited for."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += (task / "children").read_text().split()
        except OSError:
            continue
    return found


def files() -> dict[str, str]:
    """What each open descriptor refers to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the listing's own
            continue
    return found


def output() -> str:
    """What was printed so far to standard output."""
    _libc.fflush(None)
    return os.pread(1, os.fstat(1).st_size, 0).decode(errors="replace")


def directory() -> str:
    return os.getcwd()


def locale() -> str:
    name: bytes = _libc.setlocale(_LC_ALL, None)
    return name.decode(errors="replace")


def signals() -> dict[str, str]:
    """How each signal is handled, and which are blocked."""
    action = ctypes.create_string_buffer(256)
    found = {}
    for number in range(1, 32):
        ctypes.memset(action, 0, 256)
        if _libc.sigaction(number, None, action) == 0:
            found[signal.Signals(number).name] = hex(int.from_bytes(action.raw[:8], "little"))
    found["blocked"] = str(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    return found


def float_mode() -> str:
    """How the calling thread rounds, and what it does with denormal numbers: told by what comes of sums."""
    one, tiny, least = ctypes.c_double(1.0), ctypes.c_double(2.0**-60), ctypes.c_double(5e-324)
    up = one.value + tiny.value > 1.0
    down = -one.value - tiny.value < -1.0
    truncated = (1.0 + tiny.value == 1.0) and (-1.0 + tiny.value != -1.0) and not up and not down
    mode = "up" if up else "down" if down else "toward zero" if truncated else "to nearest"
    return f"rounds {mode}, denormal numbers {'kept' if least.value * 1.0 != 0.0 else 'flushed to zero'}"


def environment() -> dict[str, str]:
    """The environment variables, as C sees them."""
    ctypes.pythonapi.PyErr_CheckSignals()
    pointer = ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ")
    found, i = {}, 0
    while pointer and pointer[i] is not None:
        name, _, value = (pointer[i] or b"").partition(b"=")
        found[name.decode(errors="replace")] = value.decode(errors="replace")
        i += 1
    return found


WHAT = {
    "directory": (directory, "the working directory stays the same"),
    "locale": (locale, "the locale stays the same"),
    "signals": (signals, "signal handlers and masks stay the same"),
    "float_mode": (float_mode, "floating-point modes stay the same"),
    "environment": (environment, "environment variables stay the same"),
    "threads": (threads, "no thread is left running"),
    "files": (files, "no descriptor is left open"),
    "output": (output, "nothing is printed to standard output"),
    "children": (children, "no process is left running"),
}


class Unchanged:
    """Compares one thing of the process before and after: with Unchanged("locale"): ..."""

    def __init__(self, what: str) -> None:
        self._look, self._expected = WHAT[what]

    def __enter__(self) -> None:
        self._before = self._look()

    def __exit__(self, kind: object, *_: object) -> None:
        after = self._look()
        if kind is None and after != self._before:
            raise Finding(self._expected, _change(self._before, after))


def _change(before: object, after: object) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        parts = [f"{name}: {before.get(name, 'none')} became {after.get(name, 'none')}" for name in names[:3]]
        return "; ".join(parts) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{str(before)[-200:]!r} became {str(after)[-200:]!r}"


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")
