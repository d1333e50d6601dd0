"""What the rounds say: medians, spread and ratios, as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from .arena import Result
from .contender import Case

FOREIGN_LIMIT = 0.1  # CPUs


def reference(results: Sequence[Result]) -> Result | None:
    """The fastest of our contenders, which all are compared with."""
    own = [result for result in results if result.kind == "own" and result.rounds]
    return max(own, key=lambda result: result.speed, default=None)


def ratios(result: Result, ours: Result | None) -> list[float]:
    """Our speed by its speed, round by round."""
    if ours is None:
        return []
    return [our.speed / its.speed for our, its in zip(ours.rounds, result.rounds, strict=False)]


# ---- the table --------------------------------------------------------------


def title(case: Case, results: Sequence[Result]) -> str:
    if case.mode == "import":
        return "importing in a fresh interpreter"
    threads = "/".join(map(str, sorted({result.threads for result in results})))
    envs = f"{case.num_envs} envs" if case.num_envs > 1 else "1 env"
    batch = f", batches of {case.batch_size}" if case.mode == "async" else ""
    return f"{case.task}, {case.mode}, {envs}{batch}, threads: {threads}"


def table(case: Case, results: Sequence[Result], frames_per_step: int) -> Table:
    """One row for each contender."""
    ours = reference(results)
    shown = Table(title=title(case, results), title_justify="left", box=box.SIMPLE)
    shown.add_column("", no_wrap=True)
    if case.once:
        headers = ["seconds", "min .. max", "CPU seconds", "CPU ms each"]
    else:
        headers = ["steps/s", "min .. max", "µs/step", "CPU µs/step"]
        headers[:0] = ["frames/s"] if frames_per_step > 1 else []
    for header in [*headers, "ours is faster", "min .. max"]:
        shown.add_column(header, justify="right", no_wrap=True)
    for result in results:
        name = f"{result.label} {result.version}".rstrip()
        if not result.rounds:
            shown.add_row(name, "-", style="dim")
            continue
        figures = _once(result) if case.once else _repeated(result, frames_per_step)
        compared = ratios(result, ours)
        style = "bold" if result is ours else "italic" if result.kind == "ceiling" else None
        if result is ours or not compared:
            shown.add_row(name, *figures, "", "", style=style)
        else:
            shown.add_row(name, *figures, f"{median(compared):.2f} x", _spread(compared, ".2f"), style=style)
    return shown


def _repeated(result: Result, frames_per_step: int) -> list[str]:
    speeds = [one.speed for one in result.rounds]
    wall = median(one.wall / one.steps for one in result.rounds)
    cpu = median(one.cpu / one.steps for one in result.rounds)
    figures = [f"{median(speeds):,.0f}", _spread(speeds, ",.0f"), _micro(wall), _micro(cpu)]
    return [f"{median(speeds) * frames_per_step:,.0f}", *figures] if frames_per_step > 1 else figures


def _once(result: Result) -> list[str]:
    walls = [one.wall for one in result.rounds]
    cpu = median(one.cpu for one in result.rounds)
    each = median(one.cpu / one.steps for one in result.rounds)
    return [f"{median(walls):.3f}", _spread(walls, ".3f"), f"{cpu:.3f}", f"{each * 1e3:.1f}"]


def _micro(seconds: float) -> str:
    """In µs, to three places or to whole ones."""
    value = seconds * 1e6
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _spread(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} .. {max(values):{form}}"


def remarks(results: Sequence[Result]) -> list[str]:
    """What is missing, and why these figures may be wrong."""
    found = [f"{result.label}: {result.absent.rstrip('. ')}." for result in results if result.absent]
    foreign = [one.foreign for result in results for one in result.rounds]
    if foreign and median(foreign) > FOREIGN_LIMIT:
        found.append(f"Other programs kept {median(foreign):.2f} CPUs busy (median of the rounds).")
    return found


# ---- JSON -------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What it was measured on."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


CASE_KEY = ("family", "task", "mode", "num_envs", "batch_size")


def keep(path: Path, measured: dict[str, Any]) -> None:
    """Puts a case into a file, in the place of the same case if it has that.

    Raises:
        ValueError: the file's figures are of another machine.
    """
    here = machine()
    whole = json.loads(path.read_text()) if path.exists() else {"machine": here, "cases": []}
    if whole["machine"] != here:
        raise ValueError(f"{path} has figures of another machine ({whole['machine']}); this one is {here}")

    def key(case: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(case[name] for name in CASE_KEY)

    others = [case for case in whole["cases"] if key(case) != key(measured)]
    whole["cases"] = sorted([*others, measured], key=key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1) + "\n")


def record(case: Case, results: Sequence[Result], frames_per_step: int) -> dict[str, Any]:
    """A case with all its rounds, and the figures of the table."""
    ours = reference(results)
    return {
        **asdict(case),
        "plugin": case.plugin and Path(case.plugin).name,
        "measured": date.today().isoformat(),
        "frames_per_step": frames_per_step,
        "reference": ours and ours.label,
        "remarks": remarks(results),
        "contenders": [{**asdict(result), "figures": _figures(result, ours)} for result in results],
    }


def _figures(result: Result, ours: Result | None) -> dict[str, float] | None:
    if not result.rounds:
        return None
    compared = ratios(result, ours)
    return {
        "steps_per_second": result.speed,
        "wall_per_step": median(one.wall / one.steps for one in result.rounds),
        "cpu_per_step": median(one.cpu / one.steps for one in result.rounds),
        **({"ours_is_faster": median(compared)} if compared else {}),
    }
