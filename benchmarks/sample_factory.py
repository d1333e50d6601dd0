"""Sample Factory's sampler on CartPole-v1: worker processes that step envs one by one, and a process for the policy.

It can't step envs without a policy; this one is as small as it allows, so that the figure is the sampler's.
"""

from __future__ import annotations

import os
import tempfile
from time import perf_counter
from typing import Any

from .contender import Case, LeftOutError, Stepper

TASK = "CartPole-v1"
MOST_ENVS = 256
ROLLOUT = 32
"""Steps that a worker makes before it hands them over."""


def make_env(name: str, cfg: Any = None, env_config: Any = None, render_mode: Any = None) -> Any:
    """As Sample Factory wants it."""
    import gymnasium

    return gymnasium.make(name)


class Sampler:
    """Its SyncSamplingAPI: workers run all the time, play() takes what they have done."""

    def __init__(self, case: Case) -> None:
        if case.num_envs > MOST_ENVS or case.num_envs < case.threads:
            raise LeftOutError(f"it is measured with {case.threads} .. {MOST_ENVS} envs")
        from sample_factory.algo.sampling.simplified_sampling_api import SyncSamplingAPI
        from sample_factory.algo.utils.env_info import obtain_env_info_in_a_separate_process
        from sample_factory.algo.utils.rl_utils import samples_per_trajectory
        from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
        from sample_factory.envs.env_utils import register_env

        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        register_env(TASK, make_env)
        per_worker = case.num_envs // case.threads
        values = {
            "env": TASK,
            "experiment": "benchmark",
            "train_dir": tempfile.mkdtemp(),
            "device": "cpu",
            "num_workers": case.threads,
            "num_envs_per_worker": per_worker,
            "worker_num_splits": 2 if per_worker % 2 == 0 else 1,  # one half is stepped while the other waits
            "rollout": ROLLOUT,
            "batch_size": ROLLOUT * case.num_envs,
            "use_rnn": False,
            "encoder_mlp_layers": 4,
        }
        arguments = [f"--{name}={value}" for name, value in values.items()]
        parser, _ = parse_sf_args(arguments)
        configuration = parse_full_cfg(parser, arguments)
        self._count = samples_per_trajectory
        self._sampler = SyncSamplingAPI(configuration, obtain_env_info_in_a_separate_process(configuration))
        self._sampler.start()
        self._take()  # it runs

    def _take(self) -> int:
        return int(self._count(self._sampler.get_trajectories_sync()))

    def play(self, seconds: float) -> int:
        steps, end = 0, perf_counter() + seconds
        while perf_counter() < end:
            steps += self._take()
        return steps

    def close(self) -> None:
        self._sampler.stop()


def make(case: Case) -> Stepper:
    return Sampler(case)
