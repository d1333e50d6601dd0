"""The programs in examples/: each runs in short, and the one that is a whole algorithm learns.

Most need what examples/requirements.txt lists, which is too large for every day; JAX is there always.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import envpool_sdk

ROOT = Path(__file__).parents[1]
REFERENCE = Path(os.environ.get("ENVPOOL_REFERENCE_DIR", ROOT / "build/release/reference"))

full = pytest.mark.full

CARTPOLE = ["--task", "CartPole-v1", "--plugin", str(REFERENCE / "cartpole_cpp.so")]


def run(program: str, *arguments: str, needs: str = "torch") -> str:
    """What the example prints."""
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"needs {needs}: pip install -r examples/requirements.txt")
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(task: str) -> None:
    if task not in envpool_sdk.list_all_envs():
        pytest.skip(f"{task} is not installed")


def log(folder: Path) -> list[dict[str, float]]:
    with (folder / "progress.csv").open(newline="") as file:
        return [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)]


@full
def test_ppo_learns_cartpole(tmp_path: Path) -> None:
    """From a return of about 20 to at least 150 on average, where 500 is the most: a generous bound, for other processors
    round otherwise."""
    rollout = ["--num-envs", "8", "--num-steps", "32", "--gamma", "0.98", "--gae-lambda", "0.8", "--entropy", "0"]
    learning = [
        *rollout,
        "--epochs",
        "20",
        "--minibatches",
        "1",
        "--steps",
        "49152",
        "--threads",
        "1",
        "--gif-steps",
        "0",
    ]
    said = run("ppo.py", *CARTPOLE, "--options", "{}", *learning, "--out", str(tmp_path))
    returns = [row["mean_return"] for row in log(tmp_path)]
    assert returns[3] < 50
    assert returns[-1] > 150
    assert float(said.split("return ")[-1].split()[0]) > 150
    assert (tmp_path / "learning.png").exists()


@full
def test_ppo_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    short = ["--num-envs", "2", "--num-steps", "16", "--gif-steps", "0", "--episodes", "2", "--out", str(tmp_path)]
    run("ppo.py", *CARTPOLE, "--options", "{}", *short, "--steps", "64")
    first = log(tmp_path)
    run("ppo.py", *CARTPOLE, "--options", "{}", *short, "--steps", "128")
    rows = log(tmp_path)
    assert [row["step"] for row in rows] == [32, 64, 96, 128]
    assert rows[:2] == first
    assert rows[2]["seconds"] > first[-1]["seconds"]
    assert rows[2]["episodes"] >= first[-1]["episodes"]


@full
@pytest.mark.parametrize(
    ("task", "options"),
    [("Pong-v5", '{"img_height": 42, "img_width": 42, "reward_clip": true}'), ("DoomBasic-v1", "{}")],
)
def test_ppo_on_pictures(tmp_path: Path, task: str, options: str) -> None:
    installed(task)
    short = ["--num-envs", "2", "--num-steps", "8", "--minibatches", "2", "--steps", "32", "--gif-steps", "12"]
    if task == "Pong-v5":
        options = options.replace("}", ', "max_episode_steps": 20}')
    said = run("ppo.py", "--task", task, "--options", options, *short, "--episodes", "2", "--out", str(tmp_path))
    assert f"{task}: return " in said
    with Image.open(tmp_path / "agent.gif") as film:
        assert film.n_frames > 1
    assert (tmp_path / "checkpoint.pt").exists()


@full
def test_stable_baselines3(tmp_path: Path) -> None:
    small = ["--policy", "MlpPolicy", "--steps", "256", "--num-envs", "2", "--num-steps", "64", "--episodes", "2"]
    said = run("sb3.py", *CARTPOLE, *small, "--out", str(tmp_path), needs="stable_baselines3")
    assert "CartPole-v1: return " in said
    assert (tmp_path / "model.zip").exists()


@full
def test_tianshou(tmp_path: Path) -> None:
    installed("DoomBasic-v1")
    small = ["--num-envs", "2", "--epochs", "1", "--epoch-steps", "40", "--buffer-size", "500", "--batch-size", "8"]
    said = run("tianshou_dqn.py", *small, "--episodes", "2", "--out", str(tmp_path), needs="tianshou")
    assert "DoomBasic-v1: return " in said
    assert (tmp_path / "dqn.pt").exists()


def test_jax_rollout_learns_cartpole() -> None:
    """From a return of about 20 to more than 60: about 200 it is, but other processors round otherwise."""
    said = run("jax_rollout.py", *CARTPOLE, "--updates", "40", needs="jax")
    assert float(said.split("update 40: mean return ")[1]) > 60
