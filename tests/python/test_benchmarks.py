"""The benchmarks run, in little: tables and JSON are whole, absent contenders are named, the model adds up. No speed is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ENVPOOL_REFERENCE_DIR", ROOT / "build/release/reference")).resolve().parent
PLUGIN = BUILD / "reference/cartpole_c.so"
QUICK = ["--rounds", "2", "--seconds", "0.02", "--warmup", "0.01"]


def benchmarks(*words: Any, fails: bool = False) -> str:
    """What `python -m benchmarks` prints."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert bool(run.returncode) == fails, run.stdout + run.stderr
    return run.stdout + run.stderr


def cartpole(*words: Any, fails: bool = False) -> str:
    return benchmarks("cartpole", "--plugin", PLUGIN, *QUICK, *words, fails=fails)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Our CartPole with others that the test environment has, synchronous with two sizes, asynchronous with two batches."""
    path = tmp_path_factory.mktemp("benchmarks") / "figures.json"
    only = "ours,ours_make_vec,gymnasium_sync,gymnasium_entry_point,bare"
    text = cartpole("--num-envs", "1,4", "--threads", "1,2", "--only", only, "--json", path)
    text += cartpole(
        "--mode", "async", "--num-envs", 4, "--batch-size", "1,2", "--only", "ours,envpool", "--json", path
    )
    return text, path


def test_table_has_every_contender(measured: tuple[str, Path]) -> None:
    text, _ = measured
    for row in (
        "envpool-sdk, make_vec, 2 threads",
        "Gymnasium SyncVectorEnv",
        "bare loops in C++, our CartPole, 1 thread",
    ):
        assert text.count(row) == 2, row  # once a case
    assert "CartPole-v1, async, 4 envs, batches of 2" in text


def test_json_is_whole(measured: tuple[str, Path]) -> None:
    whole = json.loads(measured[1].read_text())
    assert whole["machine"]["cpus"] == len(os.sched_getaffinity(0))
    sizes = [(case["mode"], case["num_envs"], case["batch_size"]) for case in whole["cases"]]
    assert sizes == [("async", 4, 1), ("async", 4, 2), ("sync", 1, 1), ("sync", 4, 4)]
    for case in whole["cases"]:
        for contender in case["contenders"]:
            if contender["absent"]:
                assert contender["name"] == "envpool"
                assert contender["absent"].startswith("not installed")
                continue
            assert len(contender["rounds"]) == 2
            for one in contender["rounds"]:
                assert one["steps"] >= case["batch_size"]
                assert one["steps"] % case["batch_size"] == 0
                assert one["wall"] > 0
                assert one["cpu"] >= 0
            figures = contender["figures"]
            speeds = [one["steps"] / one["wall"] for one in contender["rounds"]]
            assert min(speeds) <= figures["steps_per_second"] <= max(speeds)


def test_a_case_measured_again_takes_its_old_place(measured: tuple[str, Path]) -> None:
    path = measured[1]
    before = json.loads(path.read_text())["cases"]
    cartpole("--num-envs", 4, "--threads", 1, "--only", "ours", "--json", path)
    after = json.loads(path.read_text())["cases"]
    assert after[:3] == before[:3]
    assert [contender["name"] for contender in after[3]["contenders"]] == ["ours"]
    path.write_text(json.dumps({"machine": json.loads(path.read_text())["machine"], "cases": before}))


def test_figures_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_text('{"machine": {"cpu": "another"}, "cases": []}')
    assert "another machine" in cartpole("--num-envs", 1, "--only", "ours", "--json", path, fails=True)


def test_a_contender_that_fails_is_named() -> None:
    text = benchmarks("cartpole", "--plugin", ROOT / "README.md", *QUICK, "--num-envs", 1, "--only", "ours", fails=True)
    assert "envpool-sdk: failed: PluginError" in text


def test_a_wrong_contender_is_refused() -> None:
    assert "there are ours," in cartpole("--only", "nobody", fails=True)


def test_atari_runs() -> None:
    text = benchmarks("atari", *QUICK, "--game", "pong", "--num-envs", 2, "--only", "ours,ale_vector,bare")
    assert "pong, sync, 2 envs" in text
    assert "pong, async, 2 envs, batches of 1" in text
    assert "AtariVectorEnv of ale-py" in text


def test_pictures(measured: tuple[str, Path], tmp_path: Path) -> None:
    text = benchmarks("plot", measured[1], "--out", tmp_path)
    names = {"num_envs", "batch_size", "threads"}
    assert {path.name for path in tmp_path.iterdir()} == {f"cartpole-CartPole-v1-{name}.png" for name in names}
    for path in tmp_path.iterdir():
        assert str(path) in text.replace("\n", "")
        assert path.read_bytes().startswith(b"\x89PNG")


def test_suite_names_commands_that_exist() -> None:
    from benchmarks import suite
    from benchmarks.__main__ import family_parser
    from benchmarks.contender import contenders, split

    listed = benchmarks("suite", "--list")
    for line in (line for part in suite.PARTS for line in part):
        family, *options = line.split()
        arguments = family_parser(family).parse_args(options)
        assert set(split(arguments.only)) <= set(contenders(family))
        assert f"python -m benchmarks {family}" in listed


# ---- growth -----------------------------------------------------------------


def test_growth_measures_and_draws(tmp_path: Path) -> None:
    path = tmp_path / "growth.json"
    sizes = ["--num-envs", "1,16,64", "--seconds", "0.02", "--rounds", "1"]
    text = benchmarks("growth", "measure", "--file", path, "--programs", BUILD, *sizes)
    found = json.loads(path.read_text())
    assert [curve["num_envs"] for curve in found["curves"]] == [1, 16, 64]
    assert "256 " in text
    assert {path.name for path in tmp_path.glob("*.png")} == {"growth-cost.png", "growth-threads.png"}


def test_growth_fits_a_line_exactly() -> None:
    from benchmarks.growth import line_through

    constant, slope = line_through([1, 10, 1000], [103, 130, 3100])
    assert constant == pytest.approx(100)
    assert slope == pytest.approx(3)


def test_the_model_never_beats_its_limits() -> None:
    from benchmarks.growth import THREADS, Constants, asynchronous, synchronous

    constants = Constants(call=2000, env=1, work=20, row=80, claim=20, contended=50, spin=200, sleep=30000, wake=3000)
    for threads in THREADS:
        for num_envs in (1, 256, 16384):
            for cost in (20.0, 400_000.0):
                seconds = synchronous(constants, num_envs, threads, cost, asleep=False)
                assert seconds >= (constants.call + constants.env * num_envs) * 1e-9
                assert seconds >= num_envs * cost / threads * 1e-9
        assert asynchronous(constants, threads, 400_000, 256) <= threads / 400e-6
        assert asynchronous(constants, threads, 1, 256) <= 1e9 / constants.row
    one = synchronous(constants, 1024, 1, 400_000, asleep=True)
    assert one == pytest.approx((2000 + 1024 * 400_001) * 1e-9)
