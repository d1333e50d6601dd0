"""Our pool beside the originals themselves, step by step from the same seeds: ale_py's vector env, and Gymnasium's wrappers."""

from __future__ import annotations

from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

import envpool_sdk

GAMES = {
    "pong": "Pong",
    "breakout": "Breakout",
    "seaquest": "Seaquest",
    "space_invaders": "SpaceInvaders",
    "ms_pacman": "MsPacman",
    "freeway": "Freeway",
    "qbert": "Qbert",
    "mr_do": "MrDo",
}
STEPS = 1000
ORDINARY = ("breakout", "freeway", "mr_do")  # lives, none, and a tall picture; the others in the long sweeps
SWEEP = [game if game in ORDINARY else pytest.param(game, marks=pytest.mark.full) for game in GAMES]


@pytest.mark.parametrize("game", SWEEP)
def test_gymnasium_wrappers(game: str) -> None:
    """AtariPreprocessing and FrameStackObservation over ALE/*-v5, sticky actions and ends at lost lives included."""
    gymnasium.register_envs(ale_py)
    life = game in ("breakout", "seaquest", "ms_pacman")
    seed = 5
    theirs: Any = gymnasium.make(f"ALE/{GAMES[game]}-v5", frameskip=1, repeat_action_probability=0.25)
    theirs = AtariPreprocessing(theirs, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=life)
    theirs = FrameStackObservation(theirs, 4)
    ours = envpool_sdk.make(
        f"{GAMES[game]}-v5",
        repeat_action_probability=0.25,
        last_frame="stale",
        noop_max=0,
        use_fire_reset=False,
        episodic_life=life,
        stop_on_life_loss=life,
        life_loss_at_zero=life,
        life_loss_reset="real",
        # The word of Gymnasium's seed that ALE gets.
        seed=[int(np.random.SeedSequence(seed).generate_state(2)[1])],
    )
    want, info = theirs.reset(seed=seed)
    got, mine = ours.reset()
    np.testing.assert_array_equal(got[0], want)
    actions = np.random.default_rng(1).integers(theirs.action_space.n, size=STEPS)
    ended = False
    for step, action in enumerate(actions.tolist()):
        if ended:
            (want, info), reward, terminated, truncated = theirs.reset(), 0.0, False, False
        else:
            want, reward, terminated, truncated, info = theirs.step(action)
        got, rewards, ends, cuts, mine = ours.step([action])
        np.testing.assert_array_equal(got[0], want, f"step {step}")
        assert (rewards[0], ends[0], cuts[0], mine["lives"][0]) == (reward, terminated, truncated, info["lives"]), step
        ended = terminated or truncated
    theirs.close()
    ours.close()


@pytest.mark.parametrize("game", SWEEP)
def test_ale_vector_env(game: str) -> None:
    """ale_py.AtariVectorEnv with all its defaults: up to 30 no-ops, FIRE, clipped rewards."""
    num_envs, seed = 3, 11
    theirs = ale_py.AtariVectorEnv(game, num_envs)
    ours = envpool_sdk.make(
        f"{GAMES[game]}-v5",
        num_envs=num_envs,
        seed=seed,
        last_frame="stale",
        stack_pad="zero",
        noop_min=0,
        fire_order="first",
        reward_clip=True,
    )
    want, info = theirs.reset(seed=seed)
    got, mine = ours.reset()
    np.testing.assert_array_equal(got, want)
    actions = np.random.default_rng(2).integers(ours.action_space.n, size=(STEPS, num_envs))
    for step in range(STEPS):
        want, reward, terminated, truncated, info = theirs.step(actions[step])
        got, rewards, ends, cuts, mine = ours.step(actions[step])
        np.testing.assert_array_equal(got, want, f"step {step}")
        np.testing.assert_array_equal(rewards, reward, f"step {step}")
        np.testing.assert_array_equal(ends, terminated, f"step {step}")
        np.testing.assert_array_equal(cuts, truncated, f"step {step}")
        np.testing.assert_array_equal(mine["lives"], info["lives"], f"step {step}")
    ours.close()
