"""MujocoCustom-v0: models of the user's own, beside mujoco itself."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from mujoco_pools import Rows

import envpool_sdk

XML = """<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <body name="pod" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.2 0.05"/>
      <site name="middle"/>
      <body pos="0.2 0 0">
        <joint name="hinge" axis="0 1 0" range="-1 1" limited="true"/>
        <geom type="capsule" size="0.02 0.1"/>
      </body>
    </body>
    <geom type="plane" size="5 5 0.1"/>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-1 1" ctrllimited="true"/><motor joint="hinge" gear="0.1"/></actuator>
  <sensor>
    <velocimeter name="velocity" site="middle"/>
    <jointpos name="angle" joint="hinge"/>
  </sensor>
  <keyframe><key name="high" qpos="0 0 3 1 0 0 0 0.5"/></keyframe>
</mujoco>"""


@pytest.mark.parametrize("as_file", [False, True])
def test_lockstep_with_mujoco(as_file: bool, tmp_path: Path) -> None:
    file = tmp_path / "pod.xml"
    file.write_text(XML)
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    options = {
        "xml_file": str(file) if as_file else XML,
        "frame_skip": 3,
        "reward_sensors": "velocity[2], angle",
        "reward_weights": [2.0, -0.5],
        "ctrl_cost_weight": 0.1,
    }
    with Rows("MujocoCustom-v0", options) as env:
        for seed in range(3):
            row = env.reset(seed)
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = env.positions(model)
            mujoco.mj_forward(model, data)
            assert np.abs(data.qvel).max() <= 0.01
            np.testing.assert_allclose(np.linalg.norm(data.qpos[3:7]), 1, rtol=1e-12)
            for action in np.random.default_rng(seed).uniform(-1, 1, (100, 1, 2)).astype(np.float32):
                for name in ("qpos", "qvel", "sensordata"):
                    np.testing.assert_array_equal(row[f"obs.{name}"][0], getattr(data, name))
                assert row["time"][0] == data.time
                row = env.step(action)
                data.ctrl[:] = action[0]
                mujoco.mj_step(model, data, 3)
                reward = 2.0 * data.sensordata[2] + -0.5 * data.sensordata[3] - 0.1 * np.sum(np.square(data.ctrl))
                assert row["pool.reward"][0] == reward


@pytest.mark.parametrize(
    ("sensors", "ranges"), [("velocity[2]", [-1.0, np.inf]), ("angle, velocity[2]", [-1.0, 1.0, -3.0, np.inf])]
)
def test_leaving_the_ranges_ends_the_episode(sensors: str, ranges: list[float]) -> None:
    """It falls, faster and faster. The healthy reward is given in all steps but the last."""
    watched = [{"velocity[2]": 2, "angle": 3}[name] for name in sensors.split(", ")]
    bounds = np.reshape(ranges, (-1, 2))
    options = {"xml_file": XML, "healthy_sensors": sensors, "healthy_ranges": ranges, "healthy_reward": 2.0}
    with Rows("MujocoCustom-v0", options, both_flags=True) as env:
        for seed in range(3):
            values = env.reset(seed)["obs.sensordata"][0, watched]
            assert np.all((bounds[:, 0] <= values) & (values <= bounds[:, 1]))
            steps = 0
            healthy = True
            while healthy and steps < 200:
                row = env.step(np.ones((1, 2), np.float32))
                steps += 1
                values = row["obs.sensordata"][0, watched]
                healthy = bool(np.all((bounds[:, 0] <= values) & (values <= bounds[:, 1])))
                assert row["pool.terminated"][0] == (not healthy)
                assert row["pool.reward"][0] == 2.0 * healthy
            assert 1 < steps < 200


def test_keyframe() -> None:
    with Rows("MujocoCustom-v0", {"xml_file": XML, "keyframe": "high", "reset_noise_scale": 0.0}) as env:
        np.testing.assert_array_equal(env.reset(1)["obs.qpos"][0], [0, 0, 3, 1, 0, 0, 0, 0.5])


def test_spaces() -> None:
    env = gymnasium.make("envpool/MujocoCustom-v0", xml_file=XML)
    assert env.observation_space["qpos"].shape == (8,)  # type: ignore[index]
    np.testing.assert_array_equal(env.action_space.high, np.array([1, 1e10], np.float32))  # type: ignore[attr-defined]
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "xml_file"),
        ({"xml_file": "<mujoco/>"}, "the model has no actuators"),
        ({"xml_file": "<mujoco>\n<thing/>\n</mujoco>"}, "the XML text: .*line 2"),
        ({"xml_file": "/nowhere.xml"}, "can't read the model /nowhere.xml"),
        ({"xml_file": XML, "reward_sensors": "speed"}, 'has no "speed"; it has velocity, angle'),
        ({"xml_file": XML, "reward_sensors": "velocity"}, r"the sensor has 3 values: velocity\[0\] to \[2\]"),
        ({"xml_file": XML, "reward_sensors": "velocity[3]"}, "the sensor has 3 values"),
        ({"xml_file": XML, "reward_sensors": "velocity[x]"}, "the sensor has 3 values"),
        ({"xml_file": XML, "reward_weights": [1.0]}, "reward_weights has 1 values for 0 reward_sensors"),
        ({"xml_file": XML, "healthy_sensors": "speed"}, 'has no "speed"; it has velocity, angle'),
        ({"xml_file": XML, "healthy_sensors": "velocity"}, 'healthy_sensors: "velocity": the sensor has 3 values'),
        ({"xml_file": XML, "healthy_sensors": "angle"}, "healthy_ranges has 0 values for 1 healthy_sensors"),
        (
            {"xml_file": XML, "healthy_sensors": "angle", "healthy_ranges": [1.0, 0.0]},
            r"healthy_ranges: 1\.0+ to 0\.0+ is empty",
        ),
        ({"xml_file": XML, "keyframe": "low"}, 'has no "low"; it has high'),
    ],
)
def test_bad_options_are_explained(options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match=message):
        envpool_sdk.make("MujocoCustom-v0", **options)
