"""The plugin around the tasks: one copy of MuJoCo, shared models, states, threads, faults and bad input."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from mujoco_pools import Rows, plugin

import envpool_sdk
from envpool_mujoco.plugin import assets, manifest

GYMNASIUM = [task for task in plugin().tasks if task.endswith("-v5")]
SAMPLE = {
    *GYMNASIUM,
    *("BallInCupCatch-v1", "CheetahRun-v1", "DogFetch-v1", "FingerTurnEasy-v1", "FishSwim-v1", "LqrLqr62-v1"),
    *("ManipulatorInsertPeg-v1", "PointMassHard-v1", "QuadrupedEscape-v1", "StackerStack2-v1", "SwimmerSwimmer6-v1"),
    "MujocoCustom-v0",
}
SOME = [pytest.param(task, marks=[] if task in SAMPLE else pytest.mark.full) for task in plugin().tasks]

MODELS = Path(assets()["gymnasium_models"])
ONE_JOINT = """<mujoco><worldbody><body><joint name="hinge"/><geom size="0.1"/></body></worldbody>
<actuator><motor joint="hinge" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>"""
NEEDED = {"MujocoCustom-v0": {"xml_file": ONE_JOINT}}
"""Options without which there is no env: the one task that has no model of its own."""


def actions_of(env: Rows, steps: int, seed: int = 0) -> np.ndarray:
    """[steps, num_envs, ...] random actions within the bounds."""
    field = env.pool.spec["action"][0]
    return (
        np.random.default_rng(seed)
        .uniform(field["low"], field["high"], (steps, env.pool.num_envs, *field["shape"]))
        .astype(field["dtype"])
    )


def run(code: str, cwd: Path, **variables: str) -> str:
    """The output of a program in an interpreter of its own."""
    process = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


# ---- what is offered --------------------------------------------------------


def test_manifest_agrees_with_the_library() -> None:
    promised = manifest()
    own = plugin()
    assert [task.id for task in promised.tasks] == list(own.tasks)
    for task in promised.tasks:
        spec = own.describe(task.id, NEEDED.get(task.id, {}), {})
        assert spec["max_episode_steps"] == (task.max_episode_steps or 0)
        threshold = spec["reward_threshold"]
        assert (None if np.isnan(threshold) else threshold) == task.reward_threshold


@pytest.mark.parametrize("task", GYMNASIUM)
def test_registered_and_spaced_as_in_gymnasium(task: str) -> None:
    ours, theirs = gymnasium.make(f"envpool/{task}"), gymnasium.make(task)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.spec is not None
    assert theirs.spec is not None
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"] if ours.metadata["render_modes"] else True
    ours.close()
    theirs.close()


def test_every_option_is_documented() -> None:
    for task, description in plugin().tasks.items():
        for option in description["options"]:
            assert option["doc"], f"{task}: {option['name']}"


def test_manifest_is_light(tmp_path: Path) -> None:
    code = (
        "import sys, envpool_sdk; before = set(sys.modules); import envpool_mujoco.plugin as p; p.manifest(); p.assets();"
        "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] in ('mujoco', 'dm_control', 'numpy')))"
    )
    assert run(code, tmp_path) == "[]\n"


# ---- the library ------------------------------------------------------------


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_one_copy_of_the_library(first: str, tmp_path: Path) -> None:
    ours = "envpool_sdk.make('HalfCheetah-v5', num_envs=2, seed=0).reset()"
    theirs = "import mujoco; mujoco.MjModel.from_xml_string('<mujoco/>')"
    one, other = (ours, theirs) if first == "ours" else (theirs, ours)
    code = (
        f"import envpool_sdk; {one}; {other}\n"
        "print({line.split()[-1] for line in open('/proc/self/maps') if 'libmujoco' in line})"
    )
    assert run(code, tmp_path) == f"{ {assets()['mujoco_library']} }\n"


# ---- determinism ------------------------------------------------------------


@pytest.mark.parametrize("task", SOME)
def test_threads_change_nothing(task: str) -> None:
    results = []
    for threads in (1, 2, 8):
        with Rows(task, NEEDED.get(task), num_envs=8, num_threads=threads, autoreset="next_step") as env:
            rows = [env.reset(*range(8))]
            rows += [env.step(actions) for actions in actions_of(env, 25)]
            results.append(rows)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize("task", SOME)
@pytest.mark.parametrize("steps", [0, 1, 20])
def test_saved_state_goes_on_alike(task: str, steps: int) -> None:
    with Rows(task, NEEDED.get(task)) as one, Rows(task, NEEDED.get(task)) as other:
        one.reset(3)
        actions = actions_of(one, steps + 30)
        for action in actions[:steps]:
            if one.step(action)["pool.terminated"][0]:
                one.reset()
        state = one.pool.save_state(0)
        other.reset(4)
        other.step(actions[0])
        other.pool.load_state(0, state)
        mine, theirs = one.observe(), other.observe()
        for action in actions[steps:]:
            for name in mine:
                np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
            if mine["pool.terminated"][0]:
                mine, theirs = one.reset(), other.reset()  # the generator is part of the state
            else:
                mine, theirs = one.step(action), other.step(action)


def test_state_of_another_model_or_damaged_is_refused() -> None:
    with Rows("HalfCheetah-v5") as cheetah, Rows("Ant-v5") as ant:
        cheetah.reset(1)
        ant.reset(1)
        state = cheetah.pool.save_state(0)
        before = ant.observe()["obs"].copy()
        for bad in (state, state[:-9], b""):
            with pytest.raises(ValueError, match="state"):
                ant.pool.load_state(0, bad)
        np.testing.assert_array_equal(ant.observe()["obs"], before)


def test_seeds_decide() -> None:
    with Rows("Pusher-v5", num_envs=3) as env:
        first = env.reset(1, 2, 1)["obs"]
        np.testing.assert_array_equal(first[0], first[2])
        assert not np.array_equal(first[0], first[1])
        assert not np.array_equal(env.reset()["obs"][0], first[0])
        np.testing.assert_array_equal(env.reset(1, 2, 1)["obs"], first)


def test_normal_noise_is_normal() -> None:
    with Rows("HalfCheetah-v5", {"reset_noise_scale": 1.0}, num_envs=512) as env:
        velocity = env.reset(*range(512))["obs"][:, 8:].ravel()
    assert abs(velocity.mean()) < 5 / np.sqrt(velocity.size)
    assert abs(velocity.var() - 1) < 5 * np.sqrt(2 / velocity.size)
    assert abs((np.abs(velocity) < 1).mean() - 0.6827) < 5 * np.sqrt(0.6827 * 0.3173 / velocity.size)


# ---- faults -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"), [(np.nan, "not finite"), (np.inf, "not finite"), (1e9, "the simulation diverged")]
)
def test_bad_control_and_divergence_end_only_that_episode(bad: float, message: str, tmp_path: Path) -> None:
    free = tmp_path / "free.xml"  # without limits on the control, so that a huge one is felt
    free.write_text((MODELS / "half_cheetah.xml").read_text().replace('ctrllimited="true"', 'ctrllimited="false"'))
    with Rows("HalfCheetah-v5", {"xml_file": str(free)}, num_envs=3) as env, Rows("HalfCheetah-v5", {"xml_file": str(free)}, num_envs=3) as other:  # fmt: skip
        env.reset(1, 2, 3)
        other.reset(1, 2, 3)
        for t, action in enumerate(actions_of(env, 20)):
            expected = other.step(action)
            if t == 10:
                action[1] = bad
            columns, _, faults = env.pool.step([action])
            row = dict(zip(env.names, columns, strict=True))
            for i in (0, 2):
                np.testing.assert_array_equal(row["obs"][i], expected["obs"][i])
                assert not row["pool.fault"][i]
            if t == 10:
                assert row["pool.fault"][1]
                assert row["pool.truncated"][1]
                assert [env_id for env_id, _ in faults] == [1]
                assert message in faults[0][1]
                env.pool.reset(np.array([1], np.int32))
                env.pool.recv()
            else:
                assert not faults
            assert np.isfinite(row["obs"]).all()
    assert not Path("MUJOCO_LOG.TXT").exists()  # this is the test's own directory


def test_errors_of_mujoco_itself_do_not_end_the_process(tmp_path: Path) -> None:
    """A model whose memory is too small for its contacts: MuJoCo calls this an error, which must not return."""
    small = tmp_path / "small.xml"
    text = (MODELS / "ant.xml").read_text()
    small.write_text(text.replace("<worldbody>", '<size memory="16K"/><worldbody>', 1))
    with Rows("Ant-v5", {"xml_file": str(small)}, num_envs=2, num_threads=2, autoreset="next_step") as env:
        env.reset(1, 2)
        messages = []
        for _ in range(200):  # such an env is made anew, and fails again when it touches the ground
            messages += [text for _, text in env.pool.step([np.zeros((2, 8), np.float32)])[2]]
    assert len(messages) > 4
    assert all("MuJoCo: mj_stackAlloc: out of memory" in text for text in messages)


# ---- bad input --------------------------------------------------------------


BROKEN = {
    "unclosed.xml": "<mujoco>\n <worldbody>\n",
    "unknown.xml": "<mujoco>\n <worldbody>\n  <thing/>\n </worldbody>\n</mujoco>",
    "wrong.xml": "<mujoco>\n <worldbody>\n  <geom type='sphere' size='-1'/>\n </worldbody>\n</mujoco>",
}


@pytest.mark.parametrize(
    ("name", "line"), [("unclosed.xml", "Line number=2"), ("unknown.xml", "line 3"), ("wrong.xml", "line 3")]
)
def test_broken_models_are_explained(name: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(BROKEN[name])
    with pytest.raises(Exception, match=line) as raised:
        envpool_sdk.make("Ant-v5", xml_file=str(file))
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("Ant-v5", {"xml_file": "/nowhere/ant.xml"}, "can't read the model /nowhere/ant.xml"),
        ("Ant-v5", {"xml_file": "nothing.xml"}, r"can't read the model .*assets/nothing.xml"),
        ("Ant-v5", {"main_body": "tail"}, 'has no "tail"; it has world, torso'),
        ("Ant-v5", {"main_body": "14"}, "main_body=14: the model has bodies 0 to 13"),
        ("Ant-v5", {"healthy_z_range": (1.0,)}, r"healthy_z_range has 1 values: it must be \(low, high\)"),
        ("Ant-v5", {"frame_skip": 0}, "frame_skip"),
        ("Ant-v5", {"reset_noise_scale": -1.0}, "reset_noise_scale"),
        ("Reacher-v5", {"xml_file": "ant.xml"}, "ant.xml is no reacher"),
        ("Humanoid-v5", {"xml_file": "inverted_pendulum.xml"}, "at least 3 positions and 6 velocities"),
        ("Hopper-v5", {"healthy_state": 1}, "healthy_state_range"),
    ],
)
def test_bad_options_are_explained(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        envpool_sdk.make(task, **options)


def test_a_model_that_changes_on_disk_is_another_model(tmp_path: Path) -> None:
    file = tmp_path / "cheetah.xml"
    text = (MODELS / "half_cheetah.xml").read_text()
    file.write_text(text)
    with Rows("HalfCheetah-v5", {"xml_file": str(file)}) as env:
        env.reset(1)
        before = env.step(actions_of(env, 1)[0])["obs"]
        file.write_text(text.replace('timestep="0.01"', 'timestep="0.005"'))
        with Rows("HalfCheetah-v5", {"xml_file": str(file)}) as changed:
            changed.reset(1)
            assert not np.array_equal(changed.step(actions_of(env, 1)[0])["obs"], before)


def test_without_mujoco(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mujoco' else find(name, *rest)\n"
        "import envpool_sdk\n"
        "try: envpool_sdk.make('Ant-v5')\n"
        "except Exception as error: print(error)"
    )
    assert "pip install 'mujoco-core>=4.0,<4.1'" in run(code, tmp_path)


@pytest.mark.full
def test_another_version_of_mujoco_is_refused(tmp_path: Path) -> None:
    """In a virtual environment whose own packages come before ours: all is as here, but for MuJoCo."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "mujoco==3.17.0"], check=True)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = (
        "import envpool_sdk\n"
        "try: envpool_sdk.make('Ant-v5')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert "is MuJoCo 3.17.0, but envpool-mujoco" in said
    assert "is built for MuJoCo 4.0" in said
    assert "pip install 'mujoco-core>=4.0,<4.1'" in said
