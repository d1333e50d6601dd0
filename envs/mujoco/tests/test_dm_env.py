"""make_dm() in lockstep with dm_control's own environments: equal TimeSteps, specs and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import TestCase

import dm_env
import dm_oracles
import numpy as np
import pytest
from dm_env import test_utils
from mujoco_pools import read_state
from test_dm_control import ROUNDED

import envpool_sdk

STEPS = 30  # of an episode; where a task ends sooner, it does so in both

TASKS = [("cheetah", "run"), ("walker", "walk"), ("reacher", "easy"), ("pendulum", "swingup"), ("lqr", "lqr_2_1")]


def compare(ours: dm_env.TimeStep, theirs: dm_env.TimeStep) -> None:
    assert ours.step_type is theirs.step_type
    assert type(ours.reward) is type(None if theirs.reward is None else 0.0)
    if theirs.reward is not None:
        np.testing.assert_allclose(ours.reward, theirs.reward, rtol=1e-9, atol=1e-12)  # tolerance() uses NumPy's exp
    assert ours.discount == theirs.discount
    observe(ours.observation, theirs.observation)


def observe(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        assert np.asarray(ours[name]).dtype == np.asarray(expected).dtype
        rounding = {"rtol": 1e-9, "atol": 1e-12} if name in ROUNDED else {"rtol": 0.0, "atol": 0.0}
        np.testing.assert_allclose(ours[name], expected, err_msg=name, **rounding)


@pytest.mark.parametrize(("domain", "task"), TASKS)
def test_lockstep(domain: str, task: str) -> None:
    limit = {} if domain == "lqr" else {"time_limit": STEPS * dm_oracles.load(domain, task).control_timestep()}
    oracle = dm_oracles.load(domain, task, **limit)
    spec = oracle.action_spec()
    random = np.random.default_rng(3)
    with envpool_sdk.make_dm(dm_oracles.ID_OF[domain, task], **limit) as env:
        own = env.action_spec()
        assert (own.shape, own.dtype) == (spec.shape, spec.dtype)
        np.testing.assert_array_equal(np.broadcast_to(getattr(own, "minimum", -np.inf), spec.shape), spec.minimum)
        np.testing.assert_array_equal(np.broadcast_to(getattr(own, "maximum", np.inf), spec.shape), spec.maximum)
        shapes = {name: (one.shape, one.dtype, one.name) for name, one in env.observation_spec().items()}
        theirs = {name: (one.shape, one.dtype, one.name) for name, one in oracle.observation_spec().items()}
        assert shapes == theirs
        assert env.reward_spec() == oracle.reward_spec()
        assert env.discount_spec() == oracle.discount_spec()
        for _ in range(2):
            first = env.reset()
            assert (first.step_type, first.reward, first.discount) == (dm_env.StepType.FIRST, None, None)
            dm_oracles.set_state(oracle, domain, task, *read_state(env.save_state(), oracle.physics.model.ptr))
            observe(first.observation, oracle.task.get_observation(oracle.physics))
            for _ in range(STEPS):
                action = random.uniform(spec.minimum.clip(-1), spec.maximum.clip(None, 1))  # lqr has no bounds
                step = env.step(action)
                compare(step, oracle.step(action))
            assert step.last() == (domain != "lqr")
            assert step.discount == 1.0


class TestCheetah(test_utils.EnvironmentTestMixin, TestCase):
    """dm_env's own test of an Environment."""

    def make_object_under_test(self) -> Any:
        return envpool_sdk.make_dm("CheetahRun-v1", max_episode_steps=5)

    def make_action_sequence(self) -> Any:
        for _ in range(15):
            yield self.make_action()
