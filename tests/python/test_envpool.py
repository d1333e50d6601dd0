"""EnvPool 1.2.5 as oracle: the same script, run on it and here, sees equal shapes, dtypes, keys and orders, and equal
trajectories where both are deterministic from an equal state.

EnvPool is that of the interpreter in ENVPOOL_PEER_PYTHON, or of this one if it is installed here; docs/dev/compat.md tells
how to make one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import envpool_sdk

TOUR = Path(__file__).with_name("envpool_tour.py")
PEER = os.environ.get("ENVPOOL_PEER_PYTHON") or (sys.executable if find_spec("envpool") else "")

pytestmark = pytest.mark.skipif(not PEER, reason="needs EnvPool: ENVPOOL_PEER_PYTHON, or scripts/test --strict")

COLOURS = {"stack_num": 1, "gray_scale": False, "episodic_life": True}
COMBINED = {"use_combined_action": True}
STILL = {"reset_noise_scale": 0.0}
EPISODES = {"noop_max": 1, "episodic_life": True, "reward_clip": True}

USUAL = [
    ("Pong-v5", {}, 0),
    ("Ant-v5", {}, 0),
    ("CheetahRun-v1", {}, 0),
    ("Basic-v1", COMBINED, 0),
    ("CartPole-v1", {}, 0),
    ("Breakout-v5", EPISODES, 120),
    ("HalfCheetah-v5", STILL, 20),
]
LONG = [
    ("Breakout-v5", COLOURS, 0),
    ("Humanoid-v5", {}, 0),
    ("WalkerWalk-v1", {}, 0),
    ("HealthGathering-v1", COMBINED, 0),
    ("Pong-v5", {"noop_max": 1}, 400),
    ("Seaquest-v5", EPISODES, 400),
    ("Hopper-v5", STILL, 20),
]

MORE = {"elapsed_step", "reward", "terminated", "TimeLimit.truncated"}
"""What is told here for every task."""
OTHER_INFOS = {  # Gymnasium's v5 names, where EnvPool has those of v4
    "Humanoid-v5": (
        {"reward_linvel", "reward_quadctrl", "reward_alive", "reward_impact"},
        {"reward_survive", "reward_forward", "reward_ctrl", "reward_contact", "tendon_length", "tendon_velocity"},
    )
}


@pytest.fixture(scope="module")
def tour(plugins: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[Any]], tuple[list[Any], list[Any]]]:
    """What EnvPool sees and what is seen here, of some cases."""

    def run(command: list[str], cases: list[Any]) -> list[Any]:
        done = subprocess.run(
            [*command, str(TOUR), json.dumps(cases)],
            env=os.environ | {"ENVPOOL_PLUGIN_PATH": str(plugins / "cartpole_cpp.so")},
            cwd=tmp_path_factory.mktemp("tour"),  # EnvPool's Doom writes into it
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    known: dict[str, Any] = {}

    def both(cases: list[Any]) -> tuple[list[Any], list[Any]]:
        key = json.dumps(cases)
        if key not in known:
            known[key] = (run([PEER], cases), run([sys.executable, "-m", "envpool_sdk.as_envpool"], cases))
        return known[key]  # type: ignore[no-any-return]

    return both


@pytest.mark.parametrize(
    ("cases", "at"),
    [pytest.param(USUAL, i, id=str(case)) for i, case in enumerate(USUAL)]
    + [pytest.param(LONG, i, id=str(case), marks=pytest.mark.full) for i, case in enumerate(LONG)],
)
def test_the_same_script(cases: list[Any], at: int, tour: Callable[..., Any]) -> None:
    for package in ("envpool_atari", "envpool_mujoco", "envpool_vizdoom"):
        pytest.importorskip(package)
    theirs, ours = (results[at] for results in tour(cases))
    task, _, steps = cases[at]
    assert theirs.pop("listed")
    assert ours.pop("listed")
    if steps:
        compare_trajectories(task, theirs["trajectory"], ours["trajectory"])
    else:
        compare(theirs, ours, task, "")


@pytest.mark.full
def test_ids() -> None:
    """All of EnvPool's, of the families that are here, but those of Gymnasium's old versions and four of its own maps."""
    families = {
        "envpool.atari": "envpool_atari",
        "envpool.mujoco.gym": "envpool_mujoco",
        "envpool.mujoco.dmc": "envpool_mujoco",
        "envpool.vizdoom": "envpool_vizdoom",
    }
    for package in families.values():
        pytest.importorskip(package)
    code = (
        "import json; from envpool.registration import registry;"
        "import envpool; print(json.dumps([[task, spec[0]] for task, spec in registry.specs.items()]))"
    )
    done = subprocess.run([PEER, "-c", code], capture_output=True, text=True, check=True)
    theirs = {task for task, family in json.loads(done.stdout.splitlines()[-1]) if family in families}
    assert len(theirs) > 200
    missing = sorted(theirs - set(envpool_sdk.list_all_envs()))
    assert [task for task in missing if not re.fullmatch(r".*-v[234]|D[1-4].*", task)] == []


def compare(theirs: Any, ours: Any, task: str, where: str) -> None:
    if isinstance(theirs, dict):
        fewer, more = OTHER_INFOS.get(task, (set(), set()))
        told = "env_id" in theirs and "players" in theirs  # an info, or a State
        assert theirs.keys() - ours.keys() <= (fewer if told else set()), where
        assert ours.keys() - theirs.keys() <= (MORE | more if told else set()), where
        if not told:
            assert list(theirs) == list(ours), where
        for key in theirs.keys() & ours.keys():
            compare(theirs[key], ours[key], task, f"{where}/{key}")
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), where
        for i, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            compare(their, our, task, f"{where}/{i}")
    elif where.endswith(("config/max_episode_steps", "spec.config/1")) and ours == 0:
        assert task in ("Basic-v1", "HealthGathering-v1")  # a Doom scenario ends itself
    elif where.endswith(("action_spec", "spaces/1", "single/1")) and "float64" in theirs and "float64" not in ours:
        assert task in ("Ant-v5", "Humanoid-v5")  # Gymnasium's actions are float32; float64 ones are taken too
        assert ours == theirs.replace("float64", "float32"), where
    else:
        assert theirs == ours, where


def compare_trajectories(task: str, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    for flag in ("terminated", "truncated"):
        assert theirs[flag] == ours[flag]
    if task in ("HalfCheetah-v5", "Hopper-v5"):  # EnvPool's MuJoCo is another release: its last bits differ
        np.testing.assert_allclose(theirs["values"], ours["values"], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(theirs["rewards"], ours["rewards"], rtol=1e-5, atol=1e-5)
    else:
        assert theirs["rewards"] == ours["rewards"]
        assert theirs["hash"][0] == ours["hash"][0]
        # When a game ends within a skip, EnvPool shows a frame from before; see docs/dev/atari-semantics.md.
        for their, our, over in zip(theirs["hash"][1:], ours["hash"][1:], theirs["terminated"][:-1], strict=True):
            assert [a == b or end for a, b, end in zip(their, our, over, strict=True)] == [True] * len(over)
    assert np.any(theirs["rewards"]) or np.any(theirs["terminated"]) or task == "Pong-v5"  # something happened
