"""The checker on one task of each kind: Gymnasium's, dm_control's, a model of the user's."""

from __future__ import annotations

import pytest

from envpool_sdk.testing import conformance

SLIDER = """<mujoco>
  <worldbody><body><joint name="rail" type="slide" axis="1 0 0"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="rail" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>"""

test_loading = conformance("HalfCheetah-v5", only=["load"])
test_gymnasiums = pytest.mark.full(conformance("HalfCheetah-v5"))
test_dm_controls = pytest.mark.full(conformance("BallInCupCatch-v1"))
test_custom = pytest.mark.full(conformance("MujocoCustom-v0", options={"xml_file": SLIDER}))
