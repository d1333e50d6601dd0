"""envpool_sdk.make: what EnvPool's users rely on, synchronous and asynchronous."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest

import envpool_sdk

INFO = {"env_id", "players", "elapsed_step", "reward", "terminated", "TimeLimit.truncated"}


def make(task: str = "Counter-v0", num_envs: int = 4, **options: Any) -> envpool_sdk.EnvPool:
    return envpool_sdk.make(task, num_envs=num_envs, **options)


# ---- what it is ----


def test_spaces_are_unbatched_and_types_envpools() -> None:
    env = make("CartPole-v1")
    assert env.observation_space.shape == env.single_observation_space.shape == (4,)
    assert env.action_space == env.single_action_space == gymnasium.spaces.Discrete(2)
    assert (len(env), env.num_envs, env.is_vector_env, env.is_async) == (4, 4, True, False)
    assert (env.all_env_ids.dtype, env.all_env_ids.tolist()) == (np.int32, [0, 1, 2, 3])
    obs, info = env.reset()
    assert (obs.shape, obs.dtype) == ((4, 4), np.float32)
    assert info.keys() == INFO
    obs, reward, terminated, truncated, info = env.step(np.zeros(4, int))
    assert info.keys() == INFO
    assert (reward.dtype, terminated.dtype, truncated.dtype) == (np.float32, np.bool_, np.bool_)
    dtypes = {key: info[key].dtype.name for key in INFO - {"players"}}
    assert dtypes == {
        "env_id": "int32",
        "elapsed_step": "int32",
        "reward": "float32",
        "terminated": "int32",
        "TimeLimit.truncated": "bool",
    }
    assert info["players"]["env_id"].tolist() == info["env_id"].tolist() == [0, 1, 2, 3]
    info["added"] = 1
    del info["env_id"]
    assert "added" not in env.step(np.zeros(4, int))[4]


def test_plugin_infos_stand_beside_the_pools() -> None:
    env = make("KitchenSink-v0", num_envs=2)
    _, info = env.reset()
    assert info.keys() == INFO | {
        "lives",
        "t",
        "note",
        "tail",
        "tail_length",
        "spent",
        "mood",
        "global",
        "echo",
        "events_length",
    }
    assert info["lives"].tolist() == [3, 3]
    assert info["mood"] == ("plain", "plain")
    assert info["global"]["tick"].tolist() == [0, 0]


def test_config_and_spec() -> None:
    env = make("CartPole-v1", gravity=5.0, seed=3)
    wanted = {"num_envs": 4, "batch_size": 4, "seed": 3, "max_episode_steps": 500, "gravity": 5.0, "force_mag": 10.0}
    assert env.config | wanted == env.config
    assert env.config["max_num_players"] == 1
    assert env.spec.id == "CartPole-v1"
    assert env.spec.config.max_episode_steps == env.spec.max_episode_steps == 500
    assert env.spec.reward_threshold == 475
    assert env.spec.observation_space == env.observation_space
    assert env.spec.action_space == env.action_space
    assert env.spec.gen_config(num_envs=9) == env.spec.config._replace(num_envs=9)
    env.spec.id, env.spec.reward_threshold, env.num_envs, env.is_vector_env, env.name = "x", 1.0, 9, False, "n"
    assert len(env) == 4
    env.reset()


def test_make_spec_makes_no_env() -> None:
    spec = envpool_sdk.make_spec("KitchenSink-v0", size=5, num_envs=3, seed=1)
    assert spec.observation_space["vec"].shape == (5,)
    assert (spec.config.size, spec.config.num_envs, spec.config.max_episode_steps) == (5, 3, 100)
    # A task whose creation fails has a spec all the same.
    assert envpool_sdk.make_spec("Faulty-v0", fault="failed", where="create").action_space.n == 2


def test_makers() -> None:
    assert envpool_sdk.make_gymnasium("envpool/CartPole-v1").spec.id == "envpool/CartPole-v1"
    assert envpool_sdk.make(task_id="CartPole-v1", env_type="gymnasium", max_num_players=1, gym_reset_return_info=True)


def test_is_a_gymnasium_env() -> None:
    env = gymnasium.Wrapper(make("CartPole-v1"))
    assert env.reset()[0].shape == (4, 4)
    assert env.unwrapped.all_env_ids.tolist() == [0, 1, 2, 3]
    assert env.spec.config.num_envs == 4
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make("CartPole-v1"))
    envs.reset()
    while not (info := envs.step(np.ones(4, int))[4]).get("_episode", np.zeros(1, bool)).all():
        pass
    assert info["episode"]["l"].shape == (4,)


def test_array_specs() -> None:
    spec = envpool_sdk.make_spec("CartPole-v1")
    assert list(spec.action_array_spec) == ["env_id", "players.env_id", "action"]
    action = spec.action_array_spec["action"]
    assert (action.shape, action.minimum, action.maximum, action.is_discrete) == ([-1], 0, 1, True)
    assert list(spec.state_array_spec) == [
        *("info:env_id", "info:players.env_id", "elapsed_step", "done", "reward", "discount", "step_type", "trunc"),
        "obs",
    ]
    assert spec.state_array_spec["obs"].shape == [4]
    spec = envpool_sdk.make_spec("KitchenSink-v0")
    assert {"move", "path", "path_length", "hand.0"} < spec.action_array_spec.keys()
    assert {"obs:num.bool", "obs:vec", "info:lives"} < spec.state_array_spec.keys()
    keys, bits = spec.action_array_spec["keys"], spec.state_array_spec["obs:bits"]
    assert (keys.minimum, keys.maximum, bits.minimum, bits.maximum) == (0, 1, 0, 1)
    config = envpool_sdk.make_spec("CartPole-v1", num_envs=4).config
    assert (config.num_envs, config.batch_size, config.max_num_players) == (4, 4, 1)


# ---- seeds ----


def test_default_seed_is_42() -> None:
    assert make().reset()[0][:, 0].tolist() == [42, 43, 44, 45]
    assert make(seed=7).reset()[0][:, 0].tolist() == [7, 8, 9, 10]
    assert make(seed=[4, 4, 1, 2]).reset()[0][:, 0].tolist() == [4, 4, 1, 2]


def test_reset_honours_seeds() -> None:
    env = make()
    env.reset()
    assert env.reset()[0][:, :2].tolist() == [[42, 2], [43, 2], [44, 2], [45, 2]]  # goes on
    assert env.reset(seed=7)[0][:, :2].tolist() == [[7, 1], [8, 1], [9, 1], [10, 1]]
    assert env.reset([3, 1], seed=7)[0][:, :2].tolist() == [[10, 1], [8, 1]]
    assert env.reset([3, 1], seed=[7, None])[0][:, :2].tolist() == [[7, 1], [8, 2]]


def test_partial_first_resets() -> None:
    env = make()
    assert env.reset([2])[0][:, :2].tolist() == [[44, 1]]
    assert env.reset([0, 2, 1])[0][:, :2].tolist() == [[42, 1], [44, 2], [43, 1]]
    assert env.reset()[0][:, :2].tolist() == [[42, 2], [43, 2], [44, 3], [45, 1]]


def test_seed_does_nothing_but_warn() -> None:
    env = make()
    with pytest.warns(UserWarning, match="seed"):
        env.seed(3)
    assert env.reset()[0][0, 0] == 42


# ---- synchronous ----


def test_rows_follow_the_order_sent() -> None:
    env = make()
    env.reset()
    obs, reward, _, _, info = env.step(np.array([30, 20, 0]), np.array([3, 2, 0]))
    assert info["env_id"].tolist() == [3, 2, 0]
    assert obs[:, 0].tolist() == [45, 44, 42]
    assert reward.tolist() == [30, 20, 0]
    assert info["elapsed_step"].tolist() == [1, 1, 1]
    assert env.step([1, 1, 1, 1])[4]["elapsed_step"].tolist() == [2, 1, 2, 2]


def test_partial_sends_are_batches_of_their_own() -> None:
    env = make()
    env.reset()
    env.send([1, 2], [3, 1])
    env.send([5], [0])
    assert env.recv()[1].tolist() == [1, 2]
    assert env.recv()[1].tolist() == [5]
    env.send([9], [2])
    with pytest.raises(RuntimeError, match="1 envs are in flight"):
        env.reset()
    assert env.recv()[1].tolist() == [9]
    env.reset()


@pytest.mark.parametrize("ids", [[], np.array([]), np.zeros(0, np.int64)])
def test_no_envs(ids: Any) -> None:
    env = make()
    obs, info = env.reset(ids)
    assert obs.shape == (0, 4)
    assert info["env_id"].shape == (0,)
    env.reset()
    obs, reward, *_ = env.step([], ids)
    assert (obs.shape, reward.shape) == ((0, 4), (0,))


def test_first_step_resets() -> None:
    env = make()
    obs, reward, *_, info = env.step([1, 1, 1, 1])
    assert obs.tolist() == make().reset()[0].tolist()
    assert (reward.tolist(), info["elapsed_step"].tolist()) == ([0] * 4, [0] * 4)
    assert env.step([1, 1, 1, 1])[1].tolist() == [1] * 4


def test_a_first_step_checks_its_actions() -> None:
    """Though it ignores them."""
    env = make("CartPole-v1")
    for action in ([0, 1, 0, 2], [0, 1, 0], [0.0] * 4):
        with pytest.raises(ValueError, match="CartPole-v1: action"):
            env.step(action)
    with pytest.raises(ValueError, match=r"env 3.* 9|9.*env 3"):
        env.send([9], [3])
    assert env.step([0, 1, 0, 1])[4]["elapsed_step"].tolist() == [0] * 4


def test_actions_in_dictionaries() -> None:
    env = make()
    env.reset()
    assert env.step({"action": np.array([1, 2, 3, 4])})[1].tolist() == [1, 2, 3, 4]
    *_, info = env.step({"action": np.array([5, 6]), "env_id": np.array([2, 0])})
    assert info["env_id"].tolist() == [2, 0]
    for players in ({"players.env_id": np.array([2, 0])}, {"players": {"env_id": np.array([2, 0])}}):
        env.send({"action": np.array([5, 6]), "env_id": np.array([2, 0]), **players})
        assert env.recv()[1].tolist() == [5, 6]
    assert env.step({"action": np.array([7]), "env_id": np.array([2])}, [3])[4]["env_id"].tolist() == [3]
    with pytest.raises(ValueError, match=r"players\.env_id must be env_id"):
        env.send({"action": np.array([5, 6]), "env_id": np.array([2, 0]), "players.env_id": np.array([0, 2])})
    assert len(env.step({"action": [], "env_id": [], "players.env_id": []})[0]) == 0
    with pytest.raises(ValueError, match=r"Counter-v0: players\.env_id"):
        env.send({"action": np.array([5]), "env_id": [0], "players": {}})
    with pytest.raises(ValueError, match="env_id 4"):
        env.send({"action": np.array([5]), "env_id": np.array([4])})
    with pytest.raises(ValueError, match="Counter-v0: action"):
        env.send({"push": np.array([5])})
    nested = make("KitchenSink-v0", num_envs=2)
    nested.reset()
    action = gymnasium.vector.utils.batch_space(nested.action_space, 1).sample()
    assert nested.step({**action, "env_id": [1]})[4]["env_id"].tolist() == [1]
    agents = make("Pursuit-v0", num_envs=2)
    agents.reset()
    agents.step({"action": np.ones((2, 3), int), "env_id": [0, 1], "players": {"env_id": np.repeat([0, 1], 3)}})


def test_all_actions_for_envs_that_begin_anew() -> None:
    """One for each env of the pool, which nobody reads, is as good as one for each of these envs; else it is too many."""
    env = make("KitchenSink-v0", env_kwargs=[{"length": 2}, {"length": 9}, {"length": 2}, {"length": 9}])
    action = gymnasium.vector.utils.batch_space(env.action_space, 4).sample()
    env.reset()
    with pytest.raises(ValueError, match=r"shape \(4,"):
        env.step(action, [0, 2])
    env.step(action)
    assert env.step(action)[2].tolist() == [True, False, True, False]
    with pytest.raises(ValueError, match=r"shape \(4,"):
        env.step(action, [0, 1])
    *_, info = env.step(action, [2, 0])
    assert (info["env_id"].tolist(), info["elapsed_step"].tolist()) == ([2, 0], [0, 0])
    with pytest.raises(ValueError, match=r"shape \(4,"):
        env.step(action, [2, 0])


def test_reset_mask() -> None:
    env = make()
    env.reset()
    obs, info = env.reset(options={"reset_mask": np.array([False, True, False, True])})
    assert (info["env_id"].tolist(), obs[:, 1].tolist()) == ([1, 3], [2, 2])
    assert env.reset(options={"reset_mask": np.zeros(4, bool)})[0].shape == (0, 4)
    with pytest.raises(ValueError, match=r"reset_mask.*bool\[4\]"):
        env.reset(options={"reset_mask": [1, 0, 1, 0]})
    with pytest.raises(ValueError, match="not both"):
        env.reset([1], options={"reset_mask": np.ones(4, bool)})


def test_recv_gives_what_a_reset_gives() -> None:
    env = make()
    env.async_reset()
    obs, info = env.recv(True)
    assert (obs.shape, info["elapsed_step"].tolist()) == ((4, 4), [0] * 4)


def test_autoreset() -> None:
    """The done step has the last observation; the next one ignores its action and has the first one."""
    env = make("KitchenSink-v0", num_envs=2, max_episode_steps=3)
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    env.reset()
    rows = [env.step(space.sample()) for _ in range(5)]
    assert [row[0]["num"]["int64"][0] for row in rows] == [1, 2, 3, 0, 1]
    assert [row[4]["elapsed_step"][0] for row in rows] == [1, 2, 3, 0, 1]
    assert [row[3][0] for row in rows] == [False, False, True, False, False]
    assert [row[4]["TimeLimit.truncated"][0] for row in rows] == [False, False, True, False, False]
    assert rows[3][1].tolist() == [0, 0]
    assert not np.any([row[2] for row in rows])


def test_a_natural_end_on_the_limit_step_is_terminated_only() -> None:
    env = make("KitchenSink-v0", num_envs=1, length=3, max_episode_steps=3)
    space = gymnasium.vector.utils.batch_space(env.action_space, 1)
    env.reset()
    *_, (_, _, terminated, truncated, info) = [env.step(space.sample()) for _ in range(3)]
    assert (terminated[0], truncated[0], info["terminated"][0], info["TimeLimit.truncated"][0]) == (
        True,
        False,
        1,
        False,
    )


def test_same_step_has_final_observations() -> None:
    env = make("KitchenSink-v0", num_envs=2, autoreset_mode="SameStep", env_kwargs=[{"length": 2}, {"length": 5}])
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    env.reset()
    env.step(space.sample())
    obs, _, terminated, _, info = env.step(space.sample())
    assert terminated.tolist() == [True, False]
    assert obs["num"]["int64"].tolist() == [0, 2]
    assert info["final_obs"][0]["num"]["int64"] == 2
    assert info["final_obs"][1] is None
    assert info["final_info"]["t"].tolist() == [2, 0]


def test_reward_is_raw_in_the_info() -> None:
    env = make(reward_clip=True)
    env.reset()
    _, reward, *_, info = env.step([0, 1, 5, 7])
    assert reward.tolist() == [0, 1, 1, 1]
    assert info["reward"].tolist() == [0, 1, 5, 7]


def test_reset_after_steps_is_a_fresh_start(same: Callable[..., None]) -> None:
    env = make("CartPole-v1")
    first = env.reset(seed=5)
    for _ in range(50):
        env.step([0, 1, 0, 1])
    again = env.reset(seed=5)
    same(first, again)
    assert again[1]["elapsed_step"].tolist() == [0] * 4


def test_scale() -> None:
    for num_envs in (256, 1024, 4096):
        env = make(num_envs=num_envs)
        obs, info = env.reset()
        assert info["env_id"].tolist() == list(range(num_envs))
        assert obs[:, 0].tolist() == list(range(42, 42 + num_envs))
        env.close()


# ---- asynchronous ----


def test_async_reset_gives_every_env_once() -> None:
    env = make("Slow-v0", num_envs=6, batch_size=2, step_us=200.0, vary=0.9)
    assert env.is_async
    env.async_reset()
    seen = [env.recv()[4]["env_id"] for _ in range(3)]
    assert [len(ids) for ids in seen] == [2, 2, 2]
    assert sorted(np.concatenate(seen).tolist()) == list(range(6))
    with pytest.raises(RuntimeError):
        env.recv()


def test_async_steps() -> None:
    env = make("Slow-v0", num_envs=6, batch_size=2, step_us=300.0, vary=0.9)
    env.async_reset()
    steps = np.zeros(6, int)
    for _ in range(100):
        obs, _reward, _terminated, _truncated, info = env.recv()
        ids = info["env_id"]
        assert len(ids) == len(obs) == 2
        np.testing.assert_array_equal(obs, steps[ids])
        np.testing.assert_array_equal(info["elapsed_step"], steps[ids])
        steps[ids] += 1
        env.send(np.ones(2, int), ids)
    assert steps.sum() == 200


def test_async_rows_come_in_order_of_completion() -> None:
    slow_first = [{"step_us": 200_000.0}, {"step_us": 0.0}, {"step_us": 0.0}, {"step_us": 0.0}]
    env = make("Slow-v0", batch_size=3, num_threads=2, env_kwargs=slow_first)
    env.async_reset()
    assert len(env.recv()[4]["env_id"]) == 3
    assert len(env.recv()[4]["env_id"]) == 1
    env.send([0, 0, 0, 0], [0, 1, 2, 3])
    assert sorted(env.recv()[4]["env_id"].tolist()) == [1, 2, 3]
    assert env.recv()[4]["env_id"].tolist() == [0]


def test_trajectories_are_those_of_a_synchronous_pool() -> None:
    def play(**options: Any) -> dict[int, list[Any]]:
        env = make("CartPole-v1", num_envs=5, **options)
        rows: dict[int, list[Any]] = {i: [] for i in range(5)}
        env.async_reset()
        while min(map(len, rows.values())) < 60:
            obs, reward, terminated, _, info = env.recv()
            ids = info["env_id"]
            for k, i in enumerate(ids.tolist()):
                rows[i].append((obs[k].tolist(), float(reward[k]), bool(terminated[k])))
            env.send([(len(rows[i]) * (i + 1)) // 2 % 2 for i in ids.tolist()], ids)
        env.close()
        return {i: row[:60] for i, row in rows.items()}

    expected = play()
    for batch_size, num_threads in itertools.product((1, 2, 5), (1, 2)):
        assert play(batch_size=batch_size, num_threads=num_threads) == expected


def test_recv_waits_no_longer_than_told() -> None:
    env = make("Slow-v0", num_envs=2, step_us=400_000.0)
    env.reset()
    env.send([0, 0])
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="0"):
        env.recv(timeout=0.05)
    assert time.monotonic() - start < 0.3
    assert env.recv(timeout=5)[0].tolist() == [1, 1]  # nothing was lost
    with pytest.raises(RuntimeError):
        env.recv(timeout=0)


def test_several_threads() -> None:
    env = make(num_envs=32, batch_size=4)
    env.async_reset()
    counts = np.zeros(32, int)
    lock, failures = threading.Lock(), []

    def work() -> None:
        try:
            for _ in range(200):
                ids = env.recv()[4]["env_id"]
                with lock:
                    counts[ids] += 1
                env.send(np.zeros(len(ids), int), ids)
        except Exception as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert counts.sum() == 4 * 200 * 4


# ---- several agents ----


def test_several_agents() -> None:
    env = make("Pursuit-v0", num_envs=2)
    obs, info = env.reset()
    assert obs["place"].shape == (2, 3, 2)
    assert obs["clock"].shape == (2,)
    assert info["players"]["env_id"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert info["others_length"].tolist() == [[2, 2, 2]] * 2
    for _ in range(12):
        obs, reward, terminated, truncated, info = env.step(np.ones((2, 3), int))
    assert (reward.shape, terminated.shape, truncated.shape) == ((2, 3),) * 3
    assert info["alive"].shape == (2, 3)
    assert info["episode_over"].shape == (2,)
    assert env.config["max_num_players"] == 3
    with pytest.raises(ValueError, match="max_num_players=2 must be 3"):
        make("Pursuit-v0", max_num_players=2)


# ---- options ----


def test_options_by_envpools_names() -> None:
    env = make(
        "Image-v0",
        num_envs=1,
        use_fire_reset=True,
        use_inter_area_resize=False,
        stack_num=4,
        img_height=8,
        img_width=8,
        gray_scale=True,
    )
    assert env.observation_space.shape == (4, 8, 8)
    assert (env.config["use_fire_reset"], env.config["interpolation"]) == (True, "linear")


def test_a_plugins_own_option_goes_to_the_plugin() -> None:
    for task in ("Image-v0", "ImageSkip-v0"):
        env = make(task, num_envs=1, frame_skip=3, life_loss=0.0)
        env.reset()
        info = env.step([0])[4]
        assert info["frame"].tolist() == [3]
    assert make("ImageSkip-v0").config["frame_skip"] == 4  # the plugin's default
    with pytest.raises(ValueError, match="frame_skip"):
        make("ImageSkip-v0", frame_skip=101)


def test_option_values() -> None:
    env = make(
        "KitchenSink-v0",
        num_envs=1,
        size=np.int64(4),
        scale=np.float32(0.5),
        cut=np.bool_(True),
        weights=[1, 2],
        ticks=np.array([1, 2], np.int32),
        extra={"a": [1]},
        file=Path("/tmp"),
    )
    obs, _ = env.reset()
    assert obs["vec"].tolist() == [[1, 2, 1, 2]]
    assert obs["box"][0, 0].tolist() == [0, 0.5, 1]


# ---- rendering, faults, the end ----


def test_render() -> None:
    env = make("KitchenSink-v0", num_envs=3, render_mode="rgb_array", render_env_id=1, render_width=6, render_height=4)
    env.reset()
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    env.step(space.sample(), [1, 2])
    assert (env.render().shape, int(env.render()[0, 0, 0, 0])) == ((1, 4, 6, 3), 1)
    frames = env.render([0, 2], camera_id=0)
    assert (frames.shape, frames[:, 0, 0, 0].tolist()) == ((2, 4, 6, 3), [1, 2])
    assert env.render([0, 2], camera_id=-1)[:, 0, 0, 0].tolist() == [0, 1]  # the default camera
    with pytest.raises(ValueError, match="env_id 3"):
        env.render([3])
    with pytest.warns(UserWarning, match="render_mode"):
        assert make("KitchenSink-v0").render() is None


def test_faults() -> None:
    env = make("Faulty-v0", num_envs=3, fault="broken", at_step=2, env_id=1, key="facade", times=1)
    env.reset()
    env.step([0, 0, 0])
    _, _, _, truncated, info = env.step([0, 0, 0], [2, 1, 0])
    assert truncated.tolist() == [False, True, False]
    assert info["fault"][0] is None
    assert "faulty: broken in step of env 1" in info["fault"][1]
    obs, _, _, _, info = env.step([0, 0, 0])
    assert "fault" not in info
    assert obs[:, 0].tolist() == [3, 0, 3]


def test_too_many_faults() -> None:
    env = make("Faulty-v0", num_envs=2, fault="failed", at_step=1, max_faults=5)
    env.reset()

    def play() -> None:
        for _ in range(20):
            env.step([0, 0])

    with pytest.raises(envpool_sdk.EnvError, match="faulty: failed"):
        play()


def test_close() -> None:
    env = make("Slow-v0", num_envs=4, batch_size=2, step_us=100_000.0)
    env.async_reset()
    start = time.monotonic()
    assert not env.closed
    env.close()
    env.close()
    assert env.closed
    assert time.monotonic() - start < 2
    assert env.action_space.n == 2
    assert len(env) == 4
    for call in (env.reset, env.recv, env.async_reset, lambda: env.step([0] * 4), lambda: env.send([0] * 4)):
        with pytest.raises(envpool_sdk.ClosedError):
            call()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts file descriptors in /proc")
def test_nothing_is_left_behind() -> None:
    process = psutil.Process()

    def play(times: int) -> tuple[int, int, int]:
        for _ in range(times):
            env = make("Image-v0", num_envs=4, num_threads=2, height=64, width=64)
            env.reset()
            env.step([0] * 4)
            env.close()
        return process.num_threads(), process.num_fds(), process.memory_info().rss

    threads, fds, rss = play(20)
    more_threads, more_fds, more_rss = play(180)
    assert (more_threads, more_fds) == (threads, fds)
    assert more_rss - rss < 8 * 2**20


# ---- signals, forks, hangs: each in a process of its own ----

START = """
import os, signal, sys, threading, time
import envpool_sdk
envpool_sdk.load_plugin({path!r})
"""


def test_ctrl_c_while_waiting(plugins: Path, run_python: Callable[..., Any]) -> None:
    done = run_python(
        START.format(path=str(plugins / "kitchen_sink.so"))
        + """
env = envpool_sdk.make("Slow-v0", num_envs=40, num_threads=2, step_us=100_000.0)
env.reset()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    env.step([0] * 40)
except KeyboardInterrupt:
    assert time.monotonic() - start < 1.0
    assert env.recv()[0].tolist() == [1] * 40  # nothing was lost
    print("interrupted")
"""
    )
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_a_forked_child_gets_an_error(plugins: Path, run_python: Callable[..., Any]) -> None:
    done = run_python(
        START.format(path=str(plugins / "kitchen_sink.so"))
        + """
env = envpool_sdk.make("Slow-v0", num_envs=4, num_threads=2, step_us=100.0)
env.reset()
child = os.fork()
if child == 0:
    try:
        env.step([0] * 4)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
        os._exit(7)
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert env.step([0] * 4)[0].tolist() == [1] * 4
# A pool made in the child works.
child = os.fork()
if child == 0:
    other = envpool_sdk.make("Slow-v0", num_envs=4, num_threads=2, step_us=100.0)
    other.reset()
    os._exit(other.step([0] * 4)[0].tolist() == [1] * 4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
"""
    )
    assert done.returncode == 0, done.stderr
    assert "RuntimeError" in done.stdout
    assert "fork" in done.stdout


def test_an_env_that_hangs(plugins: Path, run_python: Callable[..., Any]) -> None:
    start = time.monotonic()
    done = run_python(
        START.format(path=str(plugins / "kitchen_sink.so"))
        + """
env = envpool_sdk.make("Faulty-v0", num_envs=3, num_threads=2, fault="hang", at_step=2, env_id=1)
env.reset()
env.step([0] * 3)
env.send([0] * 3)
try:
    env.recv(timeout=0.3)
except TimeoutError as error:
    print(error)
env.close(timeout=0.3)
"""
    )
    assert done.returncode == 0, done.stderr
    assert "1" in done.stdout
    assert time.monotonic() - start < 30  # it would hang for ever
