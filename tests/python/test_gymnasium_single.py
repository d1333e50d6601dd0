"""gymnasium.make: the contract of one env, against Gymnasium's own checkers and its CartPole."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import envpool_sdk
from envpool_sdk import _native

TASKS = [
    ("CartPole-v1", {}),
    ("KitchenSink-v0", {}),
    ("Image-v0", {}),
    ("Image-v0", {"layout": "indexed", "frame_skip": 2, "gray_scale": True, "img_height": 12, "stack_num": 3}),
    ("Counter-v0", {}),
    ("Slow-v0", {"step_us": 0.0, "length": 7}),
    ("Bound-v0", {}),
]
IDS = [f"{task}-{'-'.join(options)}" for task, options in TASKS]


@pytest.mark.parametrize(("task", "options"), TASKS, ids=IDS)
@pytest.mark.filterwarnings("ignore:.*A Box:UserWarning", "ignore:.*For Box action:UserWarning")
@pytest.mark.filterwarnings("error")
def test_passes_the_checker(task: str, options: dict[str, Any]) -> None:
    if task in ("KitchenSink-v0", "Image-v0", "Slow-v0", "Bound-v0"):
        # They have infos that are told to differ (times, threads, counts), which the checker can't know.
        env = _Deterministic(gymnasium.make(f"envpool/{task}", **options).unwrapped)
        env.spec = copy.deepcopy(gymnasium.spec(f"envpool/{task}"))
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
    else:
        env = gymnasium.make(f"envpool/{task}", **options).unwrapped
    check_env(env)


class _Deterministic(gymnasium.Wrapper):
    spec = None
    volatile = ("spent", "drawn", "thread")

    def step(self, action):
        *rest, info = self.env.step(action)
        return (*rest, {key: value for key, value in info.items() if key not in self.volatile})


@pytest.mark.parametrize(("task", "options"), TASKS, ids=IDS)
def test_plays_without_a_warning(task: str, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"envpool/{task}", **options)
        env.action_space.seed(1)
        env.reset(seed=1)
        for _ in range(60):
            obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
            assert obs in env.observation_space
            assert type(reward) is float
            assert type(terminated) is type(truncated) is bool
            assert type(info) is dict
            if terminated or truncated:
                env.reset()
        env.close()


def test_kept_observations_never_change(same) -> None:
    env = gymnasium.make("envpool/KitchenSink-v0", length=1000, max_episode_steps=1000)
    kept = [env.reset(seed=0)]
    kept += [env.step(env.action_space.sample()) for _ in range(120)]
    for t, step in enumerate(kept):
        obs, info = step[0], step[-1]
        assert obs["num"]["int64"] == t
        assert info["t"] == t
        assert obs["words"] == f"calm:{t}"
    obs["box"][...] = 7  # the caller's to change
    assert env.step(env.action_space.sample())[0]["box"][0, 0] == 0


def test_fields_of_every_kind() -> None:
    env = gymnasium.make("envpool/KitchenSink-v0", size=2, length=50)
    env.action_space.seed(3)
    obs, info = env.reset(seed=0)
    for t in range(1, 30):
        action = env.action_space.sample()
        obs, reward, _, _, info = env.step(action)
        assert {name: value.dtype.name for name, value in obs["num"].items()} == {n: n for n in obs["num"]}
        assert all(value.shape == () for value in obs["num"].values())
        assert obs["num"]["float16"] == t
        assert obs["num"]["bool"] == t % 2
        assert obs["pick"]["one"] == t % 5 - 2
        np.testing.assert_array_equal(obs["pick"]["multi"], [t % 2, t % 3 + 1, t % 4 + 2])
        np.testing.assert_array_equal(obs["bits"], [t >> i & 1 for i in range(4)])
        assert obs["bits"].dtype == np.int8
        assert type(obs["pair"]) is tuple
        np.testing.assert_array_equal(obs["pair"][0], [t, -t])
        assert obs["pair"][1] == t
        rows = info["events_length"]
        assert rows == t % 7
        np.testing.assert_array_equal(obs["events"][:rows], [[j, t] for j in range(rows)] or np.zeros((0, 2)))
        np.testing.assert_array_equal(obs["events"][rows:], 0)
        np.testing.assert_array_equal(obs["vec"], [0.5 + t, 1.5 + t])
        echo = obs["echo"]
        assert echo["move"] == action["move"]
        np.testing.assert_array_equal(echo["push"], action["push"])
        np.testing.assert_array_equal(echo["keys"], action["keys"])
        np.testing.assert_array_equal(echo["choice"], action["choice"])
        assert echo["say"] == action["say"]
        length = action["path_length"]
        assert info["echo"]["path_length"] == length
        np.testing.assert_array_equal(echo["path"][:length], action["path"][:length])
        np.testing.assert_array_equal(echo["path"][length:], 0)
        assert (echo["hand"][0], echo["hand"][1]) == action["hand"]
        assert reward == t + action["move"] / 2
        assert info["lives"] == 3 - t % 3
        assert info["note"] == "n" * min(t, 8)
        assert info["tail_length"] == t % 5
        np.testing.assert_array_equal(info["tail"], [t] * (t % 5) + [0] * (4 - t % 5))
        assert info["global"]["tick"] == t
        np.testing.assert_array_equal(info["global"]["board"], np.arange(t, t + 9).reshape(3, 3))


def test_infos_have_the_types_that_vector_envs_keep() -> None:
    env = gymnasium.make("envpool/KitchenSink-v0")
    _, info = env.reset(seed=0)
    assert type(info["lives"]) is np.int32
    assert type(info["t"]) is np.int64
    assert type(info["note"]) is str


def test_is_gymnasiums_cartpole_bit_for_bit() -> None:
    """From the same state, which "low" and "high" set in both."""
    ours = gymnasium.make("envpool/CartPole-v1").unwrapped
    theirs = gymnasium.make("CartPole-v1").unwrapped
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    steps = 0
    for _ in range(60):
        start = float(rng.uniform(-0.05, 0.05))
        obs, _ = ours.reset(seed=0, options={"low": start, "high": start})
        expected, _ = theirs.reset(seed=0, options={"low": start, "high": start})
        np.testing.assert_array_equal(obs, expected)
        over = False
        while not over:
            action = int(rng.integers(2))
            obs, reward, over, truncated, _ = ours.step(action)
            expected, expected_reward, expected_over, _, _ = theirs.step(action)
            np.testing.assert_array_equal(obs, expected, strict=True)
            assert (reward, over, truncated) == (expected_reward, expected_over, False)
            steps += 1
    assert steps > 1000


# ---- seeds ----


def test_seeds(same) -> None:
    env = gymnasium.make("envpool/CartPole-v1")
    twice = [[env.reset(seed=123), env.reset()] for _ in range(2)]
    same(twice[0], twice[1])
    assert not np.array_equal(twice[0][0][0], twice[0][1][0])
    assert env.np_random_seed == 123
    # The engine's seed is the number itself.
    counter = gymnasium.make("envpool/Counter-v0")
    assert counter.reset(seed=123)[0][0] == 123
    assert counter.reset()[0].tolist() == [123, 2, 0, 0]
    assert counter.reset(seed=2**64 + 5)[0][0] == 5


def test_unseeded_resets_take_entropy_or_np_random() -> None:
    env = gymnasium.make("envpool/Counter-v0")
    seeds = {int(gymnasium.make("envpool/Counter-v0").reset()[0][0]) for _ in range(3)}
    assert len(seeds) == 3
    taken = []
    for _ in range(2):
        env = gymnasium.make("envpool/Counter-v0")
        env.unwrapped.np_random = np.random.default_rng(5)
        taken.append(env.reset()[0].tolist())
    assert taken[0] == taken[1]


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_wrong_seeds(seed: Any) -> None:
    env = gymnasium.make("envpool/Counter-v0")
    with pytest.raises(ValueError, match="Counter-v0: seed="):
        env.reset(seed=seed)


def test_reset_options(same) -> None:
    env = gymnasium.make("envpool/KitchenSink-v0")
    obs, info = env.reset(seed=0, options={"salt": 40, "mood": "fancy"})
    assert obs["num"]["int64"] == 40
    assert info["mood"] == "fancy"
    obs, info = env.reset()
    assert (obs["num"]["int64"], info["mood"]) == (0, "plain")
    with pytest.raises(ValueError, match=r"'sallt'.*'salt'"):
        env.reset(options={"sallt": 1})
    with pytest.raises(ValueError, match=r"salt.*1000"):
        env.reset(options={"salt": 1001})
    with pytest.raises(ValueError, match="'size'"):
        env.reset(options={"size": 3})  # not an option of resets


# ---- time limit, rendering, the end ----


def steps_until_over(env: gymnasium.Env) -> tuple[int, bool, bool]:
    env.action_space.seed(0)
    env.reset(seed=0)
    for t in range(1, 2000):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            return t, terminated, truncated
    return 0, False, False


def test_time_limits() -> None:
    make = gymnasium.make
    assert gymnasium.spec("envpool/KitchenSink-v0").max_episode_steps == 100
    assert gymnasium.spec("envpool/CartPole-v1").reward_threshold == 475
    assert steps_until_over(make("envpool/KitchenSink-v0", length=1000)) == (100, False, True)
    assert steps_until_over(make("envpool/KitchenSink-v0", length=1000, max_episode_steps=150)) == (150, False, True)
    assert steps_until_over(make("envpool/KitchenSink-v0", length=300, max_episode_steps=-1)) == (300, True, False)
    assert steps_until_over(make("envpool/KitchenSink-v0", length=5)) == (5, True, False)
    assert steps_until_over(make("envpool/KitchenSink-v0", length=5, cut=True)) == (5, False, True)
    assert steps_until_over(make("envpool/KitchenSink-v0", length=5, max_episode_steps=5)) == (5, True, True)
    assert steps_until_over(make("envpool/Counter-v0")) == (0, False, False)


def test_the_limit_counts_steps_whatever_the_skip() -> None:
    env = gymnasium.make("envpool/Image-v0", frame_skip=4, life_loss=0.0, max_episode_steps=10)
    assert steps_until_over(env) == (10, False, True)


def test_renders() -> None:
    env = gymnasium.make("envpool/CartPole-v1", render_mode="rgb_array")
    assert env.metadata["render_modes"] == ["rgb_array"]
    assert env.metadata["render_fps"] == 50
    env.reset(seed=0)
    frame = env.render()
    assert (frame.dtype, frame.ndim, frame.shape[2]) == (np.uint8, 3, 3)
    env = gymnasium.make(
        "envpool/KitchenSink-v0", render_mode="rgb_array", render_width=5, render_height=4, render_camera_id=1
    )
    env.reset(seed=0)
    env.step(env.action_space.sample())
    np.testing.assert_array_equal(env.render(), np.full((4, 5, 3), 2, np.uint8))


def test_render_modes_that_do_not_work_are_refused() -> None:
    assert gymnasium.make("envpool/Counter-v0").metadata["render_modes"] == []
    with pytest.raises(ValueError, match="Counter-v0: render_mode='rgb_array' must be None"):
        gymnasium.make("envpool/Counter-v0", render_mode="rgb_array")
    with (
        pytest.raises(ValueError, match="render_mode='ansi' must be None or 'rgb_array'"),
        pytest.warns(match="not in the possible"),
    ):
        gymnasium.make("envpool/CartPole-v1", render_mode="ansi")
    env = gymnasium.make("envpool/CartPole-v1").unwrapped
    env.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_human_rendering_is_gymnasiums() -> None:
    pytest.importorskip("pygame")
    with pytest.warns(UserWarning, match="HumanRendering"):
        env = gymnasium.make("envpool/CartPole-v1", render_mode="human")
    assert isinstance(env, gymnasium.wrappers.HumanRendering)
    env.close()


def test_close() -> None:
    env = gymnasium.make("envpool/CartPole-v1")
    env.reset()
    env.close()
    env.close()
    with pytest.raises(envpool_sdk.ClosedError):
        env.step(0)
    with pytest.raises(envpool_sdk.ClosedError):
        env.reset()
    assert env.observation_space.shape == (4,)


def test_step_before_reset() -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        gymnasium.make("envpool/CartPole-v1").step(0)
    with pytest.raises(RuntimeError, match="never reset"):
        gymnasium.make("envpool/CartPole-v1").unwrapped.step(0)


def test_a_fault_costs_an_episode() -> None:
    env = gymnasium.make("envpool/Faulty-v0", fault="failed", at_step=3, key="single", times=1)
    env.reset(seed=0)
    for _t in range(1, 3):
        _, _, terminated, truncated, info = env.step(0)
        assert (terminated, truncated, "fault" in info) == (False, False, False)
    _obs, _, terminated, truncated, info = env.step(0)
    assert truncated
    assert "faulty: failed in step" in info["fault"]
    env.reset()
    assert [env.step(0)[2] for _ in range(10)] == [False] * 9 + [True]


def test_single_only() -> None:
    with pytest.raises(ValueError, match=r"Pursuit-v0: has 3 agents.*envpool_sdk\.make"):
        gymnasium.make("envpool/Pursuit-v0")
    assert gymnasium.make("envpool/Pursuit-v0", agents=1).reset(seed=0)


# ---- wrappers ----


def test_wrappers() -> None:
    env = gymnasium.make("envpool/Image-v0", gray_scale=True, life_loss=0.3)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.FrameStackObservation(env, 4))
    obs, _ = env.reset(seed=0)
    assert obs.shape == (4, 24, 32)
    env.action_space.seed(0)
    over, rewards = False, []
    while not over:
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        rewards.append(reward)
        over = terminated or truncated
    assert info["episode"]["l"] == len(rewards)
    assert info["episode"]["r"] == pytest.approx(sum(rewards))


def test_record_video(tmp_path) -> None:
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy")
    env = gymnasium.make("envpool/CartPole-v1", render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path), episode_trigger=lambda episode: True)
    steps_until_over(env)
    env.close()
    assert list(tmp_path.glob("*.mp4"))


def test_specs_survive_json() -> None:
    spec = gymnasium.spec("envpool/CartPole-v1")
    again = gymnasium.envs.registration.EnvSpec.from_json(spec.to_json())
    assert gymnasium.make(again).observation_space.shape == (4,)
    assert gymnasium.make("envpool_sdk:envpool/CartPole-v1").spec.id == "envpool/CartPole-v1"


def test_the_cartpoles_in_c_and_in_cpp_are_the_same_bit_for_bit(plugins: Path) -> None:
    """By the native module: two plugins can't offer one id to envpool_sdk.make."""
    pools = []
    for name in ("cartpole_c", "cartpole_cpp"):
        plugin = _native.Plugin(str(plugins / f"{name}.so"))
        pools.append(_native.Pool(plugin, "CartPole-v1", [{}], num_envs=8, batch_size=8))
    rng = np.random.default_rng(0)
    for pool in pools:
        pool.reset(None, np.arange(8, dtype=np.uint64))
    rows = [pool.recv()[0] for pool in pools]
    for _ in range(300):
        for one, other in zip(*rows, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
        actions = (rng.integers(2, size=8),)
        rows = [pool.step(actions)[0] for pool in pools]
