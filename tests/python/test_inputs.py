"""Wrong arguments: each gets an exception that names the argument, the value and what is allowed, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import envpool_sdk

# ---- make ----


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"task_id": "CartPol-v1"}, "'CartPol-v1' 'CartPole-v1'"),
        ({"task_id": "envpool/cartpole-v1"}, "cartpole-v1 'CartPole-v1'"),
        ({"env_type": "gymnasum"}, "CartPole-v1 env_type='gymnasum' 'gymnasium'"),
        ({"num_envs": 0}, "CartPole-v1 num_envs=0 1"),
        ({"num_envs": -3}, "num_envs=-3"),
        ({"num_envs": 2.5}, "num_envs=2.5 integer"),
        ({"num_envs": "4"}, "num_envs='4' integer"),
        ({"batch_size": 4}, "CartPole-v1 batch_size=4 num_envs=1"),
        ({"num_envs": 4, "batch_size": -1}, "batch_size=-1 0"),
        ({"num_envs": 4, "batch_size": 5}, "batch_size=5 num_envs=4"),
        ({"num_threads": -1}, "num_threads=-1 0"),
        ({"thread_affinity_offset": -2}, "thread_affinity_offset=-2 -1"),
        ({"max_episode_steps": 0}, "max_episode_steps=0 1"),
        ({"max_episode_steps": -2}, "max_episode_steps=-2"),
        ({"max_faults": -1}, "max_faults=-1"),
        ({"seed": -1}, "seed=-1 0"),
        ({"seed": "x"}, "seed='x'"),
        ({"num_envs": 3, "seed": [1, 2]}, "seed 2 3"),
        ({"autoreset_mode": "Never"}, "autoreset_mode='Never' 'NextStep' 'SameStep' 'Disabled'"),
        ({"render_mode": "human"}, "render_mode='human' 'rgb_array'"),
        ({"render_width": -1}, "render_width=-1 0"),
        ({"render_camera_id": "top"}, "render_camera_id='top' integer"),
        ({"max_num_players": 2}, "max_num_players=2 1"),
        ({"gym_reset_return_info": False}, "gym_reset_return_info=False True"),
        ({"num_env": 3}, "'num_env' 'num_envs'"),
        ({"gravty": 3.0}, "CartPole-v1 'gravty' 'gravity'"),
        ({"stack_nums": 3}, "'stack_nums' 'stack_num'"),
        ({"use_fire_rest": True}, "'use_fire_rest' 'use_fire_reset'"),
        ({"zzz": 1}, "'zzz'"),
        ({"frame_skip": 0}, "frame_skip 0 1"),
        ({"frame_skip": -1}, "frame_skip -1"),
        ({"stack_num": 0}, "stack_num 0 1"),
        ({"use_fire_reset": 2}, "use_fire_reset 2"),
        ({"use_inter_area_resize": 1}, "use_inter_area_resize=1 bool"),
        ({"use_inter_area_resize": True, "interpolation": "linear"}, "'use_inter_area_resize' 'interpolation' given"),
        ({"interpolation": "cubic"}, "interpolation cubic area linear"),
        ({"length": 0.001}, "length 0.01"),
        ({"kinematics_integrator": "rk4"}, "kinematics_integrator rk4 euler semi-implicit"),
        ({"gravity": "strong"}, "gravity strong"),
        ({"sutton_barto_reward": 2}, "sutton_barto_reward 2"),
        ({"num_envs": 2, "env_kwargs": [{}] * 3}, "env_kwargs 3 num_envs=2"),
        ({"num_envs": 2, "env_kwargs": [{}, {"gravty": 1.0}]}, "env_kwargs[1] 'gravty' 'gravity'"),
        ({"num_envs": 2, "env_kwargs": [{}, {"frame_skip": 1}]}, "env_kwargs[1] 'frame_skip'"),
    ],
    ids=str,
)
def test_make(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(words.split()[0])) as caught:
        envpool_sdk.make(**({"task_id": "CartPole-v1"} | arguments))
    for word in words.split():
        assert word in str(caught.value)


@pytest.mark.parametrize(("name", "none"), [("img_height", None), ("img_width", None), ("noop_max", 0)])
def test_image_options(name: str, none: int | None) -> None:
    with pytest.raises(ValueError, match=rf"{name}.*-1"):
        envpool_sdk.make("Image-v0", **{name: -1})
    envpool_sdk.make("Image-v0", **{name: none}).reset()


def test_transforms_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"stack_num|image"):
        envpool_sdk.make("CartPole-v1", stack_num=4)


def test_too_many_threads_are_capped_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="CartPole-v1: num_threads=1000"):
        env = envpool_sdk.make("CartPole-v1", num_envs=2, num_threads=1000)
    assert env.config["num_threads"] <= 2
    env.reset()


def test_no_name_is_no_id() -> None:
    with pytest.raises(TypeError, match="task_id"):
        envpool_sdk.make(3)  # type: ignore[arg-type]


def test_envs_with_different_specs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1"):
        envpool_sdk.make("KitchenSink-v0", num_envs=2, env_kwargs=[{"size": 3}, {"size": 4}])


def test_envs_that_cannot_be_made() -> None:
    with pytest.raises(envpool_sdk.EnvError, match="faulty: failed in create of env 1"):
        envpool_sdk.make("Faulty-v0", num_envs=2, fault="failed", where="create", env_id=1)
    env = envpool_sdk.make("Faulty-v0", num_envs=2, fault="failed", where="reset", env_id=1)
    with pytest.raises(envpool_sdk.EnvError, match="faulty: failed in reset of env 1"):
        env.reset()


def test_one_per_process_tasks() -> None:
    env = gymnasium.make("envpool/Globals-v0")
    env.reset()
    env.close()


# ---- actions ----


@pytest.fixture
def cartpole() -> envpool_sdk.EnvPool:
    env = envpool_sdk.make("CartPole-v1", num_envs=3)
    env.reset()
    return env


@pytest.mark.parametrize(
    "action",
    [
        0,
        [0, 1],
        [0, 1, 0, 1],
        [[0], [1], [0]],
        [[0, 1], [2]],
        [0, 1, 2],
        [0, 1, -1],
        [0.0, 1.0, 0.0],
        [np.nan, 0, 1],
        np.zeros(3, np.float32),
        ["0", "1", "0"],
        [None, 0, 1],
        [2**40, 0, 0],
        [2**70, 0, 0],
        np.array([2**63, 0, 0], np.uint64),
        None,
        {"a": [0, 1, 0]},
        [],
    ],
    ids=repr,
)
def test_wrong_actions(cartpole: envpool_sdk.EnvPool, action: Any) -> None:
    vector = gymnasium.make_vec("envpool/CartPole-v1", num_envs=3)
    vector.reset(seed=42)
    for _ in range(2):  # every time, not only the first
        with pytest.raises(ValueError, match="CartPole-v1"):
            cartpole.step(action)
        with pytest.raises(ValueError, match="CartPole-v1"):
            vector.step(action)
    # Nothing was stepped, and all still works.
    np.testing.assert_array_equal(cartpole.step([0, 1, 0])[0], vector.step([0, 1, 0])[0])
    assert cartpole.step([0, 1, 0])[4]["elapsed_step"].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "action",
    [
        [0, 1, 1],
        (0, 1, 1),
        np.array([0, 1, 1], np.int8),
        np.array([0, 1, 1], np.uint64),
        np.array([0, 1, 1], ">i4"),
        np.array([False, True, True]),
        np.array([0, 9, 1, 9, 1, 9])[::2],
        [np.int32(0), np.int64(1), 1],
    ],
    ids=repr,
)
def test_right_actions(cartpole: envpool_sdk.EnvPool, action: Any) -> None:
    np.testing.assert_array_equal(cartpole.step(action)[0], _after(np.array([0, 1, 1])))


def _after(action: Any) -> Any:
    env = envpool_sdk.make("CartPole-v1", num_envs=3)
    env.reset()
    return env.step(action)[0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"move": [9, 0]}, "move"),
        ({"push": [[0.0, 0.0]]}, "push"),
        ({"push": "left"}, "push"),
        ({"keys": [[0, 1, 2], [0, 0, 0]]}, "keys"),
        ({"choice": [[0, 4], [0, 0]]}, "choice"),
        ({"say": ("x" * 17, "")}, "say.*17.*16"),
        ({"say": ("é" * 9, "")}, "say.*18.*16"),
        ({"say": "ab"}, "say"),
        ({"say": ("a",)}, "say"),
        ({"say": (1, 2)}, "say"),
        ({"path_length": [5, 0]}, "path"),
        ({"path_length": [-1, 0]}, "path_length"),
        ({"hand": ([0, 0],)}, "hand.*2"),
        ({"hand": 3}, "hand"),
        ({"more": 3}, "more"),
    ],
    ids=str,
)
def test_wrong_parts_of_actions(change: dict[str, Any], match: str) -> None:
    env = envpool_sdk.make("KitchenSink-v0", num_envs=2)
    env.reset()
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    good = space.sample()
    with pytest.raises(ValueError, match=f"KitchenSink-v0.*{match}"):
        env.step(good | change)
    for name in good:
        with pytest.raises(ValueError, match=f"KitchenSink-v0: action must be a dictionary with the keys .*'{name}'"):
            env.step({key: value for key, value in good.items() if key != name})
    assert env.step(good)[0]["num"]["int64"].tolist() == [1, 1]


def test_box_actions_are_the_envs_to_judge() -> None:
    env = envpool_sdk.make("KitchenSink-v0", num_envs=2)
    env.reset()
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    action = space.sample() | {"push": [[np.nan, 5], [np.inf, -7]]}
    np.testing.assert_array_equal(
        env.step(action)[0]["echo"]["push"], np.array([[np.nan, 5], [np.inf, -7]], np.float32)
    )


def test_unicode_texts() -> None:
    env = envpool_sdk.make("KitchenSink-v0", num_envs=2)
    env.reset()
    space = gymnasium.vector.utils.batch_space(env.action_space, 2)
    assert env.step(space.sample() | {"say": ("grüß 日本", "")})[0]["echo"]["say"] == ("grüß 日本", "")


@given(
    arrays.arrays(
        st.one_of(
            arrays.integer_dtypes(), arrays.unsigned_integer_dtypes(), arrays.floating_dtypes(), arrays.boolean_dtypes()
        ),
        arrays.array_shapes(max_dims=2, max_side=4),
    ),
    st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool", "float32", "float64"]),
)
def test_casts_keep_values(value: np.ndarray[Any, Any], name: str) -> None:
    from envpool_sdk.rows import cast

    dtype = np.dtype(name)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (0, 1)
    fits = dtype.kind == "f" or (value.dtype.kind != "f" and all(low <= one <= high for one in value.ravel().tolist()))
    if not fits:
        with pytest.raises(ValueError, match=r"^action "):
            cast(value, dtype, "action")
        return
    array = cast(value, dtype, "action")
    assert array.dtype == dtype
    assert array.shape == value.shape
    assert array.flags.c_contiguous
    if dtype.kind != "f":
        assert array.tolist() == value.tolist()


# ---- env ids ----


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ([3], "env_id 3, allowed: 0 .. 2"),
        ([-1], "env_id -1"),
        ([2**40], "env_id"),
        ([1, 1], "1"),
        ([0.5], "env_id"),
        ([[0]], "env_id"),
        ("0", "env_id"),
        # As recv() gives them, the pool itself checks them.
        (np.array([3], np.int32), "env_id 3, allowed: 0 .. 2"),
        (np.array([-1], np.int32), "env_id -1, allowed: 0 .. 2"),
        (np.array([1, 1], np.int32), "1"),
        (np.array([[0]], np.int32), "env_id"),
    ],
)
def test_wrong_env_ids(cartpole: envpool_sdk.EnvPool, ids: Any, match: str) -> None:
    count = np.size(ids)
    for call in (
        cartpole.reset,
        lambda some: cartpole.step([0] * count, some),
        lambda some: cartpole.send([0] * count, some),
    ):
        with pytest.raises(ValueError, match=f"CartPole-v1.*{re.escape(match)}"):
            call(ids)
        with pytest.raises(ValueError, match=f"CartPole-v1.*{re.escape(match)}"):
            cartpole.send(np.zeros(3, np.int32), ids)  # an action for each env of the pool
    assert len(cartpole.step([0, 0, 0])[0]) == 3


def test_env_ids_of_any_memory(cartpole: envpool_sdk.EnvPool) -> None:
    strided = np.array([2, 1, 0, 1], np.int32)[::2]
    frozen = np.array([2, 0], np.int32)
    frozen.flags.writeable = False
    for ids in (strided, frozen, frozen.astype(">i4"), frozen.astype(np.uint8)):
        cartpole.send(np.zeros(2, np.int32), ids)
        assert cartpole.recv()[4]["env_id"].tolist() == [2, 0]


def test_envs_in_flight(cartpole: envpool_sdk.EnvPool) -> None:
    cartpole.send([0, 0], [0, 2])
    with pytest.raises(ValueError, match="2"):
        cartpole.send([0, 0], [1, 2])
    with pytest.raises(ValueError, match="0"):
        cartpole.send([0, 0, 0])
    cartpole.send([0], [1])
    assert cartpole.recv()[4]["env_id"].tolist() == [0, 2]
    assert cartpole.recv()[4]["env_id"].tolist() == [1]


def test_nothing_in_flight(cartpole: envpool_sdk.EnvPool) -> None:
    with pytest.raises(RuntimeError, match="flight"):
        cartpole.recv()


def test_many_sends_lose_nothing() -> None:
    env = envpool_sdk.make("Counter-v0", num_envs=64)
    env.reset()
    for i in range(64):
        env.send([i], [i])
    rows = [env.recv() for _ in range(64)]
    assert [row[1].tolist() for row in rows] == [[i] for i in range(64)]


# ---- resets ----


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"seed": -1}, "seed=-1"),
        ({"seed": [1, 2]}, "seed has 2 entries for 3 envs"),
        ({"seed": [1, 2, -3]}, r"seed\[2\]=-3"),
        ({"options": {"lo": 0.1}}, "'lo'.*'low'"),
        ({"options": {"gravity": 1.0}}, "'gravity'"),
        ({"options": {"low": "x"}}, "low"),
    ],
)
def test_wrong_resets(cartpole: envpool_sdk.EnvPool, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        cartpole.reset(**arguments)
    assert cartpole.step([0, 0, 0])[4]["elapsed_step"].tolist() == [1, 1, 1]


def test_batched_samples_fit(same: Callable[..., None]) -> None:
    """action_space.sample() goes into step() where the spaces are batched."""
    for task in ("CartPole-v1", "KitchenSink-v0", "Image-v0", "Counter-v0"):
        envs = gymnasium.make_vec(f"envpool/{task}", num_envs=3)
        envs.reset(seed=0)
        for _ in range(20):
            obs = envs.step(envs.action_space.sample())[0]
            assert obs in envs.observation_space
