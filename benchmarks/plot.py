"""Draws the pictures of docs/benchmarks.md from a file of figures: throughput against num_envs, batch_size and threads.

A picture for each task and axis, as PNG. Lines are medians of rounds, the best number of threads at each point; bars and
shades span least and greatest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_FILE = Path("docs/benchmarks/figures.json")

# A contender looks the same in every picture.
STYLES: dict[str, dict[str, Any]] = {
    "ours": {"color": "#1f5fbf", "marker": "o"},
    "ours_in_place": {"color": "#0b2e66", "marker": "s"},
    "ours_make_vec": {"color": "#6fa3e8", "marker": "D"},
    "envpool": {"color": "#d9480f", "marker": "o"},
    "pufferlib": {"color": "#9c36b5", "marker": "o"},
    "ale_vector": {"color": "#c2255c", "marker": "o"},
    "gymnasium_entry_point": {"color": "#2b8a3e", "marker": "o"},
    "gymnasium_sync": {"color": "#74b816", "marker": "s"},
    "gymnasium_async": {"color": "#0ca678", "marker": "D"},
    "sample_factory": {"color": "#e8a200", "marker": "o"},
    "bare": {"color": "#555555", "linestyle": "--"},
    "rollout": {"color": "#555555", "linestyle": "--"},
    "batch": {"color": "#999999", "linestyle": "--"},
}
PLAIN = {"color": "#333333", "marker": "x"}


@dataclass(frozen=True)
class Point:
    """A contender with one number of threads in one case."""

    name: str
    label: str
    threads: int
    num_envs: int
    batch_size: int
    speed: float
    low: float
    high: float


def points(cases: Iterable[dict[str, Any]]) -> list[Point]:
    """All that was measured in these cases, frames where a step has several."""
    found = []
    for case in cases:
        for contender in case["contenders"]:
            speeds = sorted(
                case["frames_per_step"] * one["steps"] / one["wall"] for one in contender["rounds"] if one["wall"]
            )
            if speeds:
                label = contender["label"].partition(", 1 thread")[0].partition(f", {contender['threads']} thread")[0]
                sizes = (contender["threads"], case["num_envs"], case["batch_size"])
                middle = case["frames_per_step"] * contender["figures"]["steps_per_second"]
                found.append(Point(contender["name"], label, *sizes, middle, speeds[0], speeds[-1]))
    return found


# ---- pictures ---------------------------------------------------------------


def draw_lines(axes: Any, found: Sequence[Point], size: str) -> None:
    """A line for each contender against num_envs or batch_size: at each its best number of threads."""

    def x(point: Point) -> int:
        return int(getattr(point, size))

    for name in dict.fromkeys(point.name for point in found):
        best: dict[int, Point] = {}
        for point in found:
            if point.name == name and (x(point) not in best or point.speed > best[x(point)].speed):
                best[x(point)] = point
        line = [best[at] for at in sorted(best)]
        at = [x(point) for point in line]
        style = STYLES.get(name, PLAIN)
        axes.plot(at, [point.speed for point in line], label=line[0].label, markersize=4.5, linewidth=1.6, **style)
        lows, highs = [point.low for point in line], [point.high for point in line]
        axes.fill_between(at, lows, highs, color=style["color"], alpha=0.15, linewidth=0)
    ticks = sorted({x(point) for point in found})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


def draw_bars(axes: Any, found: Sequence[Point]) -> None:
    """Bars for each contender that was measured with several numbers of threads, one for each number."""
    from matplotlib.ticker import EngFormatter

    names = [
        name
        for name in dict.fromkeys(point.name for point in found)
        if len({point.threads for point in found if point.name == name}) > 1
    ]
    counts = sorted({point.threads for point in found})
    height = 0.8 / len(counts)
    for row, name in enumerate(names):
        for point in found:
            if point.name != name:
                continue
            place = counts.index(point.threads)
            spread = [[point.speed - point.low], [point.high - point.speed]]
            color = STYLES.get(name, PLAIN)["color"]
            alpha = 0.45 + 0.55 * place / max(len(counts) - 1, 1)
            at = row + place * height
            axes.barh(at, point.speed, height * 0.92, xerr=spread, color=color, alpha=alpha, error_kw={"linewidth": 1})
            axes.annotate(f"{point.threads} ", (0, at), ha="right", va="center", fontsize=8, color="#555555")
    labels = [next(point.label for point in found if point.name == name) for name in names]
    axes.set_yticks([row + height * (len(counts) - 1) / 2 for row in range(len(names))], labels)
    axes.tick_params(axis="y", length=0, pad=14)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter())


def picture(path: Path, title: str, note: str, draw: Callable[[Any], None], x_label: str, y_label: str = "") -> None:
    """A figure with one pair of axes, and a legend beside it if lines have labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    draw(axes)
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(f"{x_label}\n{note}", fontsize=9)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        figure.legend(loc="outside right center", fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})  # the same figures make the same file


def pictures(whole: dict[str, Any], folder: Path) -> list[Path]:
    """Draws all that the figures give, and says what it wrote."""
    written = []
    note = f"{whole['machine']['cpu']}, {whole['machine']['cpus']} CPUs; medians, best number of threads, shade: least to greatest"

    def add(
        name: str, title: str, draw: Callable[[Any], None], x_label: str, y_label: str = "", its_note: str = note
    ) -> None:
        written.append(folder / f"{name}.png")
        picture(written[-1], title, its_note, draw, x_label, y_label)

    steps = [case for case in whole["cases"] if case["mode"] in ("sync", "async")]
    for family, task in dict.fromkeys((case["family"], case["task"]) for case in steps):
        cases = [case for case in steps if (case["family"], case["task"]) == (family, task)]
        unit = "frames/s" if cases[0]["frames_per_step"] > 1 else "env steps/s"
        sync = points(case for case in cases if case["mode"] == "sync")
        if len({point.num_envs for point in sync}) > 1:
            add(
                f"{family}-{task}-num_envs",
                f"{task}, synchronous: throughput against num_envs",
                lambda axes, found=sync: draw_lines(axes, found, "num_envs"),
                "num_envs",
                unit,
            )
        most = max((case["num_envs"] for case in cases if case["mode"] == "async"), default=0)
        ready = points(case for case in cases if case["mode"] == "async" and case["num_envs"] == most)
        if len({point.batch_size for point in ready}) > 1:
            add(
                f"{family}-{task}-batch_size",
                f"{task}, asynchronous, {most} envs: throughput against batch_size",
                lambda axes, found=ready: draw_lines(axes, found, "batch_size"),
                "batch_size",
                unit,
            )
        chosen = threads_case(sync)
        if len({point.threads for point in chosen}) > 1:
            add(
                f"{family}-{task}-threads",
                f"{task}, synchronous, {chosen[0].num_envs} envs: throughput against threads",
                lambda axes, found=chosen: draw_bars(axes, found),
                unit,
                its_note=note.replace(", best number of threads, shade", "; line"),
            )
    return written


def threads_case(found: Sequence[Point]) -> list[Point]:
    """Those of the num_envs at which most was measured with several numbers of threads; of several such, the largest."""
    counts: dict[int, set[tuple[str, int]]] = {}
    for point in found:
        counts.setdefault(point.num_envs, set())
        if any(other.name == point.name and other.threads != point.threads for other in found):
            counts[point.num_envs].add((point.name, point.threads))
    size = max(counts, key=lambda size: (len(counts[size]), size), default=0)
    return [point for point in found if point.num_envs == size]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks plot", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=DEFAULT_FILE, help="JSON (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a folder (default: that of the file)")
    arguments = parser.parse_args(words)
    for path in pictures(json.loads(arguments.file.read_text()), arguments.out or arguments.file.parent):
        print(path)
    return 0
