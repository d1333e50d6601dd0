"""Pictures: the same as Gymnasium's and dm_control's by the same OpenGL, from any pool, and whatever else holds."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mujoco_pools import Rows

import envpool_sdk

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}


def has(backend: str) -> bool:
    try:
        ctypes.CDLL(LIBRARIES[backend])
    except OSError:
        return False
    return True


BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(not has(name), reason=f"{LIBRARIES[name]} is not installed"))
    for name in LIBRARIES
]
needs_opengl = pytest.mark.skipif(not (has("egl") or has("osmesa")), reason="neither EGL nor OSMesa is installed")


def run(code: str, cwd: Path, **variables: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, cwd=cwd, capture_output=True, text=True, timeout=90
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


_BESIDE_GYMNASIUM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import gymnasium, mujoco, numpy as np
from mujoco_pools import Rows
for task, options in [
    ("HalfCheetah-v5", {{}}), ("Ant-v5", {{"width": 700, "height": 90}}), ("InvertedPendulum-v5", {{}}),
    ("Pusher-v5", {{"width": 64, "height": 64}}), ("Humanoid-v5", {{"camera_id": 0}}),
]:
    oracle = gymnasium.make(task, render_mode="rgb_array", **options)
    own = oracle.unwrapped
    with Rows(task, options) as env:
        env.reset(1)
        oracle.reset()
        mujoco.mj_resetData(own.model, own.data)
        mujoco.mj_forward(own.model, own.data)
        oracle.render()  # places the free camera by the pose of the first picture: ours is by the initial one
        own.set_state(*env.positions(own.model))
        for t in range(3):
            action = np.full(own.model.nu, 0.1, np.float32)
            oracle.step(action)
            env.step(action[None])
        ours, theirs = env.pool.render(0), oracle.render()
        assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
        assert len(np.unique(ours)) > 20
        print(task, np.abs(ours.astype(int) - theirs).max())
    oracle.close()
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_as_gymnasium_draws(backend: str, tmp_path: Path) -> None:
    for line in run(_BESIDE_GYMNASIUM, tmp_path, MUJOCO_GL=backend).splitlines():
        assert line.endswith(" 0"), line


@needs_opengl
def test_cameras_and_sizes() -> None:
    with Rows("WalkerWalk-v1") as env:
        env.reset(1)
        default = env.pool.render(0)
        assert default.shape == (240, 320, 3)
        np.testing.assert_array_equal(env.pool.render(0), default)
        first = env.pool.render(0, width=90, height=60, camera=1)
        assert first.shape == (60, 90, 3)
        assert not np.array_equal(env.pool.render(0, width=90, height=60, camera=2), first)
        assert env.pool.render(0, width=1000, height=800).shape == (800, 1000, 3)
        with pytest.raises(ValueError, match="camera 9: there are 0, the default, and 1 to 2, the model's"):
            env.pool.render(0, camera=9)
        with pytest.raises(ValueError, match="at most 16384 a side"):
            env.pool.render(0, width=20000)


@needs_opengl
def test_drawing_changes_nothing() -> None:
    with Rows("QuadrupedEscape-v1") as env, Rows("QuadrupedEscape-v1") as other:
        for t, action in enumerate(np.random.default_rng(1).uniform(-1, 1, (10, 1, 12))):
            for one in (env, other):
                one.reset(1) if t == 0 else one.step(action)
            env.pool.render(0)
            assert env.pool.save_state(0) == other.pool.save_state(0)


@needs_opengl
def test_from_any_pool_and_thread() -> None:
    envs = envpool_sdk.make("Hopper-v5", num_envs=4, batch_size=2, seed=1, render_mode="rgb_array")
    envs.async_reset()
    envs.recv()
    envs.recv()
    assert envs.render().shape[-1] == 3
    envs.close()


@needs_opengl
@pytest.mark.parametrize("order", ["", pytest.param("import mujoco; ", marks=pytest.mark.full)])
def test_a_hundred_left_open_at_exit(order: str, tmp_path: Path) -> None:
    code = (
        f"{order}import gymnasium, threading, envpool_sdk\n"
        "envs = [gymnasium.make('envpool/HalfCheetah-v5', render_mode='rgb_array', width=64, height=64) for _ in range(100)]\n"
        "def draw(some):\n"
        "    for env in some: env.reset(seed=1); env.render()\n"
        "thread = threading.Thread(target=draw, args=(envs[:50],)); thread.start(); draw(envs[50:]); thread.join()\n"
        "print('drawn')"
    )
    assert run(code, tmp_path) == "drawn\n"


def test_without_opengl(tmp_path: Path) -> None:
    """Neither library can be opened: a name that is none stands first in the search path of both."""
    for library in LIBRARIES.values():
        (tmp_path / library).write_text("no library")
    (tmp_path / "libOSMesa.so.6").write_text("no library")
    (tmp_path / "libOSMesa.so").write_text("no library")
    code = (
        "import envpool_sdk\n"
        "envs = envpool_sdk.make('Hopper-v5', num_envs=1, seed=1, render_mode='rgb_array'); envs.reset()\n"
        "try: envs.render()\n"
        "except Exception as error: print(error)"
    )
    said = run(code, tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert "EGL: " in said
    assert "OSMesa: " in said
    assert "apt-get install" in said


@needs_opengl
@pytest.mark.parametrize("task", ["HalfCheetah-v5", "CheetahRun-v1", "FingerTurnEasy-v1"])
def test_pixels_are_the_pictures(task: str) -> None:
    """On several threads, each with an OpenGL context of its own."""
    with Rows(task, {"from_pixels": True, "width": 84, "height": 60}, num_envs=4, num_threads=2) as env:
        name = "obs" if task.endswith("-v5") else "obs.pixels"
        rows = [env.reset(1, 2, 3, 4)]
        (field,) = env.pool.spec["action"]
        rows += [env.step(np.zeros((4, *field["shape"]), field["dtype"])) for _ in range(3)]
        for i in range(4):
            np.testing.assert_array_equal(rows[-1][name][i], env.pool.render(i))
        if task == "HalfCheetah-v5":  # the others are at rest
            assert not np.array_equal(rows[0][name], rows[-1][name])


@needs_opengl
@pytest.mark.parametrize("task", ["CheetahRun-v1", "HalfCheetah-v5"])
def test_pixels_through_the_transforms(task: str) -> None:
    envs = envpool_sdk.make(
        task,
        num_envs=2,
        seed=1,
        from_pixels=True,
        width=96,
        height=96,
        camera_id=0,
        gray_scale=True,
        img_width=48,
        img_height=48,
        stack_num=3,
        frame_skip=2,
    )
    observation, _ = envs.reset()
    pixels = observation["pixels"] if task == "CheetahRun-v1" else observation
    assert pixels.shape == (2, 3, 48, 48)
    assert len(np.unique(pixels)) > 10
    envs.close()


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("Ant-v5", {"camera_id": 5}, "camera_id=5: the model has 1 cameras"),
        ("Ant-v5", {"camera_name": "side"}, 'has no "side"; it has track'),
        ("Ant-v5", {"camera_name": "track", "camera_id": 0}, "give only one of them"),
        ("Reacher-v5", {"default_camera_config": {"zoom": 2}}, '"zoom": it may have distance'),
        ("Reacher-v5", {"default_camera_config": [1]}, "it must be an object"),
        ("Reacher-v5", {"visual_options": {"99": True}}, '"99": its keys are numbers of mjtVisFlag'),
        ("CheetahRun-v1", {"camera_id": 9}, "camera_id=9: the model has 2 cameras"),
    ],
)
def test_bad_options_are_explained(task: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match=message):
        envpool_sdk.make(task, **options)
