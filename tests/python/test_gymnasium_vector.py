"""gymnasium.make_vec: step by step what SyncVectorEnv over the single envs gives, and the rest of the contract."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import envpool_sdk

N = 4
VOLATILE = frozenset({"spent", "thread", "drawn"})  # infos that their plugins declare to differ

TASKS = {
    "cartpole": ("CartPole-v1", {}),
    "cartpole-limit": ("CartPole-v1", {"max_episode_steps": 12}),
    "kitchen-sink": ("KitchenSink-v0", {"length": 9}),
    "kitchen-sink-cut": ("KitchenSink-v0", {"length": 9, "cut": True, "max_episode_steps": 9}),
    "image": ("Image-v0", {"life_loss": 0.3}),
    "image-transformed": (
        "Image-v0",
        {
            "life_loss": 0.2,
            "layout": "indexed",
            "frame_skip": 3,
            "max_last_two": True,
            "gray_scale": True,
            "img_height": 12,
            "img_width": 16,
            "stack_num": 4,
            "reward_clip": True,
            "episodic_life": True,
            "need_fire": True,
            "use_fire_reset": True,
            "noop_max": 5,
        },
    ),
    "counter": ("Counter-v0", {"max_episode_steps": 5}),
    "reward-clip": ("KitchenSink-v0", {"length": 4, "reward_clip": True}),
    "bound": ("Bound-v0", {}),
}


@pytest.fixture(params=TASKS)
def pair(request: pytest.FixtureRequest) -> Callable[[AutoresetMode], tuple[Any, Any]]:
    """Makes SyncVectorEnv of our single env, and our vector env."""
    task, options = TASKS[request.param]

    def make(mode: AutoresetMode) -> tuple[Any, Any]:
        theirs = SyncVectorEnv([lambda: gymnasium.make(f"envpool/{task}", **options)] * N, autoreset_mode=mode)
        return theirs, gymnasium.make_vec(f"envpool/{task}", num_envs=N, autoreset_mode=mode, **options)

    return make


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_agrees_with_sync_vector_env(
    pair: Callable[[AutoresetMode], tuple[Any, Any]], mode: AutoresetMode, same: Callable[..., None]
) -> None:
    theirs, ours = pair(mode)
    for name in ("observation_space", "action_space", "single_observation_space", "single_action_space", "metadata"):
        assert getattr(ours, name) == getattr(theirs, name), name
    ours.action_space.seed(1)
    rng = np.random.default_rng(2)
    same(ours.reset(seed=7), theirs.reset(seed=7), "reset", VOLATILE)
    for t in range(150):
        actions = ours.action_space.sample()
        step = ours.step(actions)
        same(step, theirs.step(actions), f"step {t}", VOLATILE)
        over = step[2] | step[3]
        if mode is AutoresetMode.DISABLED and over.any():
            both = [env.reset(options={"reset_mask": over.copy()}) for env in (ours, theirs)]
            same(*both, f"reset after {t}", VOLATILE)
        elif t % 40 == 20:
            both = [env.reset() for env in (ours, theirs)]
            same(*both, f"reset after {t}", VOLATILE)
        elif t % 40 == 30:
            both = [env.reset(seed=[5, None, 6, None]) for env in (ours, theirs)]
            same(*both, f"seeded reset after {t}", VOLATILE)
        elif t % 40 == 35:
            mask = rng.random(N) < 0.5
            mask[rng.integers(N)] = True
            both = [env.reset(seed=t, options={"reset_mask": mask.copy()}) for env in (ours, theirs)]
            same(*both, f"partial reset after {t}", VOLATILE)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_shows_ends_of_episodes(mode: AutoresetMode) -> None:
    """That the comparison above compares what it is meant to."""
    envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=2, length=3, autoreset_mode=mode.value)
    assert envs.metadata["autoreset_mode"] is mode
    envs.reset(seed=0)
    for t in range(1, 4):
        obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert terminated.tolist() == [t == 3] * 2
    assert not truncated.any()
    if mode is AutoresetMode.SAME_STEP:
        assert obs["num"]["int64"].tolist() == [0, 0]
        assert [one["num"]["int64"] for one in info["final_obs"]] == [3, 3]
        assert info["final_info"]["t"].tolist() == [3, 3]
        return
    assert obs["num"]["int64"].tolist() == [3, 3]
    assert "final_obs" not in info
    if mode is AutoresetMode.NEXT_STEP:
        obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert obs["num"]["int64"].tolist() == [0, 0]
        assert (reward.tolist(), terminated.any(), truncated.any()) == ([0, 0], False, False)
    else:
        with pytest.raises(RuntimeError, match="episode of env 0 is over"):
            envs.step(envs.action_space.sample())
        envs.reset(options={"reset_mask": np.array([True, False])})
        with pytest.raises(RuntimeError, match="env 1"):  # the other one's episode is still over
            envs.step(envs.action_space.sample())
        envs.reset()
        envs.step(envs.action_space.sample())


def test_types() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    obs, info = envs.reset(seed=0)
    assert info == {}
    obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert (obs.dtype, obs.shape, reward.dtype, terminated.dtype, truncated.dtype) == (
        np.float32,
        (3, 4),
        np.float64,
        np.bool_,
        np.bool_,
    )
    for array in (obs, reward, terminated, truncated):
        array[...] = 1  # the caller's to change


def test_no_python_loop_is_needed_for_lists() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    envs.reset(seed=0)
    envs.step([0, 1, 0])
    envs.step(np.array([0, 1, 0], np.int8))


def leaves(info: dict[str, Any]) -> list[Any]:
    return [leaf for value in info.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_info_leaves_are_arrays(mode: AutoresetMode) -> None:
    envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=3, length=4, autoreset_mode=mode)
    infos = [envs.reset(seed=0)[1]] + [envs.step(envs.action_space.sample())[4] for _ in range(9)]
    for info in infos:
        assert leaves(info)
        assert all(isinstance(leaf, np.ndarray) and len(leaf) == 3 for leaf in leaves(info))
        assert "episode" not in info


def test_kept_batches_never_change() -> None:
    envs = gymnasium.make_vec("envpool/Counter-v0", num_envs=3)
    kept = [envs.reset(seed=0)[0]] + [envs.step(np.full(3, t))[0] for t in range(1, 120)]
    for t, obs in enumerate(kept):
        np.testing.assert_array_equal(obs, [[seed, 1, t, t] for seed in range(3)])


# ---- seeds, options, masks ----


def test_seeds_are_those_of_single_envs() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    for seed, each in ((5, [5, 6, 7]), ([9, 3, 9], [9, 3, 9])):
        obs, _ = envs.reset(seed=seed)
        for i, one in enumerate(each):
            single = gymnasium.make("envpool/CartPole-v1")
            np.testing.assert_array_equal(obs[i], single.reset(seed=one)[0])
    assert envs.unwrapped.np_random_seed == 5


def test_unseeded_envs_differ() -> None:
    obs = [gymnasium.make_vec("envpool/Counter-v0", num_envs=3).reset()[0] for _ in range(2)]
    assert len({int(seed) for batch in obs for seed in batch[:, 0]}) == 6


def test_resets_differ_across_envs_and_episodes() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=8)
    starts = np.concatenate([envs.reset(seed=0)[0], envs.reset()[0], envs.reset()[0]])
    assert len(np.unique(starts, axis=0)) == 24


@pytest.mark.parametrize(
    ("seed", "match"),
    [
        (-1, "seed=-1 must be an integer, at least 0"),
        ([1, 2], "seed has 2 entries for 3 envs"),
        ([1, -2, 3], r"seed\[1\]"),
    ],
)
def test_wrong_seeds(seed: Any, match: str) -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    with pytest.raises(ValueError, match=f"CartPole-v1: {match}"):
        envs.reset(seed=seed)
    envs.reset(seed=0)


def test_reset_mask_touches_only_its_envs() -> None:
    envs = gymnasium.make_vec("envpool/Counter-v0", num_envs=4)
    envs.reset(seed=10)
    before = [envs.step([1, 2, 3, 4])[0] for _ in range(3)][-1]
    options = {"reset_mask": np.array([False, True, False, False])}
    obs, _ = envs.reset(seed=50, options=options)
    assert obs[1].tolist() == [51, 1, 0, 0]
    np.testing.assert_array_equal(obs[[0, 2, 3]], before[[0, 2, 3]])
    assert list(options) == ["reset_mask"]  # ours to read, not to pop
    obs = envs.step([1, 1, 1, 1])[0]
    assert obs[:, 2].tolist() == [4, 1, 4, 4]


def test_reset_mask_of_masked_infos() -> None:
    envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=3)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    _, info = envs.reset(options={"reset_mask": np.array([False, True, False]), "salt": 9})
    assert info["_lives"].tolist() == [False, True, False]
    assert info["lives"].tolist() == [0, 3, 0]
    assert info["mood"].tolist() == [None, "plain", None]
    assert info["_global"].tolist() == info["global"]["_tick"].tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, False], TypeError),
        (np.array([1, 0, 0]), TypeError),
        (np.array([True, False]), ValueError),
        (np.zeros(3, bool), ValueError),
    ],
)
def test_wrong_masks(mask: Any, error: type[Exception]) -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    envs.reset(seed=0)
    with pytest.raises(error, match=r"CartPole-v1: options\['reset_mask'\]"):
        envs.reset(options={"reset_mask": mask})


def test_reset_options() -> None:
    envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=2)
    obs, _ = envs.reset(seed=0, options={"salt": 5})
    assert obs["num"]["int64"].tolist() == [5, 5]
    with pytest.raises(ValueError, match="'salt'"):
        envs.reset(options={"salty": 5})


def test_each_env_has_its_own_options() -> None:
    envs = gymnasium.make_vec(
        "envpool/KitchenSink-v0", num_envs=3, mode="wild", env_kwargs=[{"mode": "calm"}, {}, {"length": 2}]
    )
    obs, _ = envs.reset(seed=0)
    assert obs["words"] == ("calm:0", "wild:0", "wild:0")
    ended = [envs.step(envs.action_space.sample())[2].tolist() for _ in range(2)]
    assert ended == [[False] * 3, [False, False, True]]


@pytest.mark.parametrize("num_threads", [1, 2, 8])
def test_threads_change_nothing(num_threads: int, same: Callable[..., None]) -> None:
    task, options = TASKS["image-transformed"]
    envs = [
        gymnasium.make_vec(f"envpool/{task}", num_envs=8, num_threads=threads, **options)
        for threads in (1, num_threads)
    ]
    envs[0].action_space.seed(0)
    same(*[one.reset(seed=3) for one in envs], "reset", VOLATILE)
    for t in range(100):
        actions = envs[0].action_space.sample()
        same(*[one.step(actions) for one in envs], f"step {t}", VOLATILE)


# ---- the rest of the contract ----


def test_batch_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size=2 .*envpool_sdk.make\('CartPole-v1', num_envs=4, batch_size=2\)"):
        gymnasium.make_vec("envpool/CartPole-v1", num_envs=4, batch_size=2)
    gymnasium.make_vec("envpool/CartPole-v1", num_envs=4, batch_size=4)


def test_make_vec_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gymnasium.make_vec("envpool/CartPole-v1", num_envs=2, num_threads=1, autoreset_mode="SameStep").close()


def test_spec_has_the_config_too() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3, gravity=5.0, max_episode_steps=20)
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    for one in (envs, wrapped):
        assert one.spec.id == "envpool/CartPole-v1"
        assert one.spec.config.gravity == 5
        assert one.spec.config.num_envs == 3
        assert one.spec.config.max_episode_steps == 20
    assert "CartPole-v1" in repr(envs)


def test_time_limits() -> None:
    def first_end(**options: Any) -> int:
        envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=2, length=1000, **options)
        envs.reset(seed=0)
        for t in range(1, 160):
            if envs.step(envs.action_space.sample())[3].all():
                return t
        return 0

    assert first_end() == 100
    assert first_end(max_episode_steps=150) == 150
    assert first_end(max_episode_steps=-1) == 0
    with pytest.raises(ValueError, match="max_episode_steps=0"):
        first_end(max_episode_steps=0)


def test_render_is_a_tuple_of_frames() -> None:
    envs = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=3, render_mode="rgb_array")
    assert (envs.render_mode, envs.metadata["render_fps"]) == ("rgb_array", 25)
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    frames = envs.render()
    assert type(frames) is tuple
    assert [(frame.shape, int(frame[0, 0, 0])) for frame in frames] == [
        ((24, 32, 3), 0),
        ((24, 32, 3), 1),
        ((24, 32, 3), 1),
    ]
    with pytest.raises(ValueError, match="render_mode"):
        gymnasium.make_vec("envpool/Counter-v0", num_envs=3, render_mode="rgb_array")
    without = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=3)
    with pytest.warns(UserWarning, match="render_mode"):
        assert without.render() is None


def test_close() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    envs.reset()
    envs.close()
    envs.close()
    assert envs.closed
    assert envs.num_envs == 3
    with pytest.raises(envpool_sdk.ClosedError):
        envs.step([0, 0, 0])
    with pytest.raises(envpool_sdk.ClosedError):
        envs.reset()


def test_step_before_reset() -> None:
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    with pytest.raises(RuntimeError, match="never reset"):
        envs.step([0, 0, 0])
    envs.reset()
    envs.step([0, 0, 0])


def test_a_fault_costs_its_env_an_episode() -> None:
    envs = gymnasium.make_vec(
        "envpool/Faulty-v0", num_envs=3, fault="throw", at_step=2, env_id=1, key="vector", times=1, length=5
    )
    envs.reset(seed=0)
    assert "fault" not in envs.step([0, 0, 0])[4]
    obs, _, _terminated, truncated, info = envs.step([0, 0, 0])
    assert info["_fault"].tolist() == truncated.tolist() == [False, True, False]
    assert "faulty: throw in step of env 1" in info["fault"][1]
    assert obs[[0, 2], 0].tolist() == [2, 2]
    obs, _, _, truncated, info = envs.step([0, 0, 0])
    assert obs[:, 0].tolist() == [3, 0, 3]
    assert not truncated.any()
    assert "fault" not in info


def test_multi_agent_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="3 agents"):
        gymnasium.make_vec("envpool/Pursuit-v0", num_envs=2)


# ---- wrappers ----

vector_wrappers = gymnasium.wrappers.vector
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "RecordEpisodeStatistics": vector_wrappers.RecordEpisodeStatistics,
    "NormalizeObservation": vector_wrappers.NormalizeObservation,
    "NormalizeReward": vector_wrappers.NormalizeReward,
    "ClipReward": lambda env: vector_wrappers.ClipReward(env, -0.5, 0.5),
    "DictInfoToList": vector_wrappers.DictInfoToList,
    "FlattenObservation": vector_wrappers.FlattenObservation,
    "TransformObservation": lambda env: vector_wrappers.TransformObservation(env, lambda obs: obs * 2),
}


NOT_SAME_STEP = {"NormalizeObservation", "FlattenObservation", "TransformObservation"}  # Gymnasium refuses it


@pytest.mark.parametrize(
    ("wrapper", "mode"),
    [
        (wrapper, mode)
        for wrapper in WRAPPERS
        for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
        if mode is AutoresetMode.NEXT_STEP or wrapper not in NOT_SAME_STEP
    ],
)
@pytest.mark.filterwarnings("ignore:.*without passing in a value for `single_observation_space`")
def test_wrappers(wrapper: str, mode: AutoresetMode, same: Callable[..., None]) -> None:
    def make() -> gymnasium.Env:
        return gymnasium.make("envpool/Image-v0", height=4, width=5, life_loss=0.3)

    theirs = WRAPPERS[wrapper](SyncVectorEnv([make] * N, autoreset_mode=mode))
    ours = WRAPPERS[wrapper](
        gymnasium.make_vec("envpool/Image-v0", num_envs=N, autoreset_mode=mode, height=4, width=5, life_loss=0.3)
    )
    assert ours.observation_space == theirs.observation_space
    ours.action_space.seed(0)
    ignore = VOLATILE | {"t"}  # seconds in RecordEpisodeStatistics
    same(ours.reset(seed=1), theirs.reset(seed=1), "reset", ignore)
    for t in range(60):
        actions = ours.action_space.sample()
        same(ours.step(actions), theirs.step(actions), f"step {t}", ignore)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_recorded_lengths_are_those_of_the_episodes(mode: AutoresetMode) -> None:
    ours = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=2, length=6, autoreset_mode=mode)
    theirs = SyncVectorEnv(
        [lambda: gymnasium.make("envpool/KitchenSink-v0", length=6) for _ in range(2)], autoreset_mode=mode
    )
    assert recorded_lengths(ours, mode) == recorded_lengths(theirs, mode)


def recorded_lengths(envs: gymnasium.vector.VectorEnv, mode: AutoresetMode) -> list[int]:
    """Six each, but in same-step mode Gymnasium's 1.2 forgets a step of all episodes but the first."""
    envs = vector_wrappers.RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    lengths: list[int] = []
    while len(lengths) < 6:
        _, _, terminated, _, info = envs.step(envs.action_space.sample())
        if terminated.any():
            lengths += info["episode"]["l"][info["_episode"]].tolist()
            if mode is AutoresetMode.DISABLED:
                envs.reset(options={"reset_mask": terminated})
    assert lengths[:2] == [6, 6]
    return lengths


def test_record_video(tmp_path) -> None:
    pytest.importorskip("moviepy", reason="Gymnasium's RecordVideo needs moviepy")
    envs = gymnasium.make_vec("envpool/CartPole-v1", num_envs=2, render_mode="rgb_array")
    envs = vector_wrappers.RecordVideo(envs, str(tmp_path), episode_trigger=lambda episode: True)
    envs.reset(seed=0)
    for _ in range(60):
        envs.step(envs.action_space.sample())
    envs.close()
    assert list(tmp_path.glob("*.mp4"))
