"""What more CPUs would give: constants measured here, and a model that adds them up for as many threads as you like.

`growth measure` runs native/bench_pool and native/bench_threads, and the Python face, for about two minutes, and writes the
constants and the measured curves. `growth` prints the model's table for them and draws it. docs/performance.md explains both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from . import plot, report

DEFAULT_FILE = Path("docs/benchmarks/growth.json")

CHUNK_NS = 20_000
"""Work that a thread claims at once, if there is that much: kChunkNanoseconds of sdk/runtime/thread_pool.hpp."""

LINE_FACTOR = 3
"""How much longer a cache line takes between sockets or chiplets than between the two CPUs that the constants are from."""


@dataclass(frozen=True)
class Constants:
    """Nanoseconds, all measured."""

    call: float
    """Serial, for each call: send, recv and Python, whatever the number of envs."""
    env: float
    """Serial, for each env of a call: the check and the copy of its action."""
    work: float
    """By any thread, for each CartPole env of a call: its step and its row."""
    row: float
    """Serial, for each env of an asynchronous pool: what the user's thread does in send and recv, its row being there."""
    claim: float
    """Serial, for each env of an asynchronous pool: its row is claimed under the lock. As much as send does for it, of which
    that is a part: the whole is too small to be measured by itself."""
    contended: float
    """A change of a number that another thread has just changed."""
    spin: float
    """A hand-over to a thread that spins."""
    sleep: float
    """A hand-over to a thread that sleeps."""
    wake: float
    """What waking a thread costs the one that wakes it."""


# ---- the model --------------------------------------------------------------


def claims(num_envs: int, threads: int, cost: float) -> int:
    """Ranges that the threads claim of a synchronous call: of CHUNK_NS, at least one for each thread."""
    size = max(1, min(int(CHUNK_NS / cost) + 1, num_envs // threads or 1))
    return -(-num_envs // size)


def synchronous(constants: Constants, num_envs: int, threads: int, cost: float, asleep: bool) -> float:
    """Seconds of a call that steps all envs.

    Args:
        cost: of an env-step, its row included, nanoseconds.
        asleep: the user thinks for so long between calls that the threads sleep; else they spin.
    """
    serial = constants.call + constants.env * num_envs
    line = constants.contended * (LINE_FACTOR if threads > 2 else 1)
    helpers = min(threads, num_envs) - 1
    if num_envs * cost < CHUNK_NS:
        helpers = 0  # the caller does so little work alone
    used = helpers + 1
    turns = claims(num_envs, used, cost)
    # Each thread does its share, one claim more or less; claims end one after another, at one counter.
    share = num_envs * cost / used
    work = max(share + (min(CHUNK_NS, cost * num_envs) / 2 if used > 1 else 0), turns * line)
    start = 0.0
    if helpers:
        # Asleep, one is woken after another while the first work already; the last decides.
        start = constants.wake * helpers + constants.sleep if asleep else line * helpers + constants.spin
    return (serial + work + start) * 1e-9


def asynchronous(constants: Constants, threads: int, cost: float, batch_size: int) -> float:
    """Env-steps a second, with envs enough (2 to 3 batches) that all threads are busy: what is serial, or the threads."""
    return 1e9 / max(serial_part(constants, threads, cost, batch_size), (cost + constants.contended) / threads)


def serial_part(constants: Constants, threads: int, cost: float, batch_size: int) -> float:
    """Nanoseconds of an env-step of an asynchronous pool that are the same for any number of threads."""
    claim = constants.claim + 2 * constants.contended / rows_of_a_claim(cost, batch_size)  # the lock, taken and left
    return (constants.row + claim) * (LINE_FACTOR if threads > 2 else 1) + constants.call / batch_size


def rows_of_a_claim(cost: float, batch_size: int) -> int:
    """Envs that a thread runs before it claims their rows."""
    return max(1, min(int(CHUNK_NS / cost) + 1, batch_size))


# ---- the constants ----------------------------------------------------------


def pool_run(programs: Path, plugin: str, task: str, sizes: Sequence[int], seconds: float) -> dict[str, Any]:
    """What bench_pool says of (num_envs, batch_size, threads)."""
    command = [str(programs / "benchmarks/bench_pool"), str(programs / f"reference/{plugin}.so"), task]
    run = subprocess.run([*command, *map(str, sizes), str(seconds)], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def python_call(plugin: Path, num_envs: int, seconds: float) -> float:
    """Nanoseconds of a call of the pool's Python face, one thread."""
    import numpy as np

    import envpool_sdk

    envpool_sdk.load_plugin(str(plugin))
    env = envpool_sdk.make("CartPole-v1", num_envs=num_envs, num_threads=1)
    env.reset()
    actions = list(np.random.default_rng(1).integers(0, 2, (64, num_envs)))
    calls, begin = 0, perf_counter()
    while (spent := perf_counter() - begin) < seconds or not calls:
        for action in actions:
            env.step(action)
        calls += len(actions)
    env.close()
    return spent / calls * 1e9


def line_through(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Constant and slope with the least squares of relative errors, so that small and large sizes count alike."""
    weights = [1 / (y * y) for y in ys]
    total = sum(weights)
    x0 = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    y0 = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    above = sum(w * (x - x0) * (y - y0) for w, x, y in zip(weights, xs, ys, strict=True))
    slope = above / sum(w * (x - x0) ** 2 for w, x in zip(weights, xs, strict=True))
    return y0 - slope * x0, slope


def measure(programs: Path, num_envs: Sequence[int], seconds: float, rounds: int) -> dict[str, Any]:
    """All curves and the constants."""
    plugin = programs / "reference/cartpole_c.so"
    curves = []
    for count in num_envs:
        one, two, python = [], [], []
        for _ in range(rounds):  # by turns
            one.append(pool_run(programs, "cartpole_c", "-", (count, count, 1), seconds))
            two.append(pool_run(programs, "cartpole_c", "-", (count, count, 2), seconds))
            python.append(python_call(plugin, count, seconds))
        curves.append(
            {
                "num_envs": count,
                "send_ns": median(run["send_seconds"] / run["calls"] for run in one) * 1e9,
                "native_1_thread_ns": median(run["seconds"] / run["calls"] for run in one) * 1e9,
                "native_2_threads_ns": median(run["seconds"] / run["calls"] for run in two) * 1e9,
                "python_1_thread_ns": median(python),
            }
        )
    # One worker, so that it and the user's thread have a CPU each.
    ready = [pool_run(programs, "cartpole_c", "-", (1024, 256, 1), seconds) for _ in range(rounds)]
    threads = [
        json.loads(subprocess.check_output([programs / "benchmarks/bench_threads", str(seconds)]))
        for _ in range(rounds)
    ]
    return {
        "machine": report.machine(),
        "curves": curves,
        "constants": constants_of(curves, ready, threads),
    }


def constants_of(
    curves: Sequence[dict[str, float]], ready: Sequence[dict[str, float]], threads: Sequence[dict[str, float]]
) -> dict[str, float]:
    """The model's constants from what was measured; see Constants."""
    sizes = [curve["num_envs"] for curve in curves]
    _, per_env = line_through(sizes, [curve["python_1_thread_ns"] for curve in curves])
    _, send = line_through(sizes, [curve["send_ns"] for curve in curves])
    _, native = line_through(sizes, [curve["native_1_thread_ns"] for curve in curves])
    # A call with one env is what it costs whatever the number of envs. Python adds to that; what its face looks at adds
    # columns, which the threads write.
    call = curves[0]["python_1_thread_ns"] - native
    return {
        "call": call,
        "env": max(send, 0),
        "work": max(per_env, native) - max(send, 0),
        "row": median(run["ready_call_seconds"] / run["batch_size"] for run in ready) * 1e9,
        "claim": median(run["send_seconds"] / run["calls"] / run["batch_size"] for run in ready) * 1e9,
        "contended": median(run["contended_ns"] for run in threads),
        "spin": median(run["spin_ns"] for run in threads),
        "sleep": median(run["sleep_ns"] for run in threads),
        "wake": median(run["wake_ns"] for run in threads),
    }


# ---- what it says -----------------------------------------------------------

ATARI_NS = 400_000
"""An Atari step of four frames, with its picture."""
THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def model_table(constants: Constants, atari: float) -> Table:
    """Env-steps a second against threads."""
    shown = Table(title="env-steps/s, from the model", title_justify="left", box=box.SIMPLE)
    for header in (
        "threads",
        "CartPole 4096",
        "CartPole 16384",
        "4096 asleep",
        "Atari sync 1024",
        "Atari async 768/256",
    ):
        shown.add_column(header, justify="right", no_wrap=True)
    for threads in THREADS:
        row = [
            4096 / synchronous(constants, 4096, threads, constants.work, asleep=False),
            16384 / synchronous(constants, 16384, threads, constants.work, asleep=False),
            4096 / synchronous(constants, 4096, threads, constants.work, asleep=True),
            1024 / synchronous(constants, 1024, threads, atari, asleep=True),
            asynchronous(constants, threads, atari, 256),
        ]
        shown.add_row(str(threads), *(f"{value:,.0f}" for value in row))
    return shown


def limits(constants: Constants) -> list[str]:
    """What the serial part allows, whatever the number of threads."""
    found = []
    for num_envs in (256, 1024, 4096, 16384):
        speed = num_envs / (constants.call + constants.env * num_envs) * 1e9
        found.append(f"serial part of a synchronous call of {num_envs} envs: at most {speed / 1e6:,.0f} M env-steps/s")
    for threads, where in ((2, "on these CPUs"), (256, f"with cache lines {LINE_FACTOR} times as slow")):
        speed = 1e9 / serial_part(constants, threads, constants.work, 256)
        found.append(f"serial part of an asynchronous pool, batches of 256, {where}: {speed / 1e6:,.1f} M env-steps/s")
    return found


def draw(found: dict[str, Any], constants: Constants, atari: float, folder: Path) -> list[Path]:
    """Measured: nanoseconds for each env-step against num_envs. The model: env-steps a second against threads."""
    machine = f"{found['machine']['cpu']}, {found['machine']['cpus']} CPUs"

    def cost(axes: Any) -> None:
        lines = (
            ("native_1_thread_ns", "C++, 1 thread", {"color": "#1f5fbf", "marker": "o"}),
            ("native_2_threads_ns", "C++, 2 threads", {"color": "#d9480f", "marker": "o"}),
            ("python_1_thread_ns", "Python, 1 thread", {"color": "#2b8a3e", "marker": "o"}),
            ("send_ns", "of it send, serial", {"color": "#888888", "linestyle": "--"}),
        )
        sizes = [curve["num_envs"] for curve in found["curves"]]
        for name, label, style in lines:
            axes.plot(sizes, [curve[name] / curve["num_envs"] for curve in found["curves"]], label=label, **style)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])

    def growth(axes: Any) -> None:
        counts = [2**power for power in range(9)]
        lines: tuple[tuple[str, list[float]], ...] = (
            (
                "CartPole, sync, 16384 envs",
                [16384 / synchronous(constants, 16384, n, constants.work, asleep=False) for n in counts],
            ),
            (
                "CartPole, sync, 4096 envs",
                [4096 / synchronous(constants, 4096, n, constants.work, asleep=False) for n in counts],
            ),
            ("20 µs envs, async", [asynchronous(constants, n, 20_000, 256) for n in counts]),
            (f"{atari / 1e3:.0f} µs envs, async", [asynchronous(constants, n, atari, 256) for n in counts]),
            (
                f"{atari / 1e3:.0f} µs envs, sync, 1024",
                [1024 / synchronous(constants, 1024, n, atari, True) for n in counts],
            ),
        )
        for label, speeds in lines:
            axes.plot(counts, speeds, label=label, marker="o", markersize=4)
        axes.axhline(1e7, color="#888888", linewidth=1, linestyle=":")
        axes.annotate("10 M", (1, 1e7), fontsize=8, va="bottom", color="#555555")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])

    paths = [folder / "growth-cost.png", folder / "growth-threads.png"]
    plot.picture(
        paths[0], "CartPole: cost of an env-step against num_envs", f"{machine}; medians", cost, "num_envs", "ns"
    )
    note = f"model; constants measured on {machine}"
    plot.picture(paths[1], "Throughput against threads, extrapolated", note, growth, "threads", "env-steps/s")
    return paths


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "model"], default="model", help="default: %(default)s")
    parser.add_argument("--file", type=Path, default=DEFAULT_FILE, help="constants and curves (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a folder for the pictures (default: that of the file)")
    parser.add_argument("--programs", type=Path, default=Path("build/release"), help="default: %(default)s")
    sizes = ",".join(str(2**power) for power in range(0, 15, 2))
    parser.add_argument("--num-envs", default=sizes, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--atari-ns", type=float, default=ATARI_NS, help="cost of an Atari step (default: %(default)s)")
    arguments = parser.parse_args(words)
    console = Console(highlight=False, width=160)
    if arguments.what == "measure":
        counts = [int(count) for count in arguments.num_envs.split(",")]
        found = measure(arguments.programs, counts, arguments.seconds, arguments.rounds)
        arguments.file.parent.mkdir(parents=True, exist_ok=True)
        arguments.file.write_text(json.dumps(found, indent=1) + "\n")
    found = json.loads(arguments.file.read_text())
    constants = Constants(**found["constants"])
    for name, value in found["constants"].items():
        console.print(f"{name:10} {value:10,.1f} ns")
    console.print(model_table(constants, arguments.atari_ns))
    for line in limits(constants):
        console.print(line)
    for path in draw(found, constants, arguments.atari_ns, arguments.out or arguments.file.parent):
        console.print(str(path))
    return 0
