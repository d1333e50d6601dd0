"""The runtime's transforms over the plugin, in lockstep with what other implementations do, from the same integer seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from atari_peers import AleVector, EnvPool, Peer
from atari_pools import Rows

NUM_ENVS, SEED = 2, 7
COMMON = {
    "frame_skip": 4,
    "max_last_two": True,
    "gray_scale": True,
    "img_height": 84,
    "img_width": 84,
    "stack_num": 4,
    "noop_max": 30,
    "use_fire_reset": True,
}
ALE_VECTOR = COMMON | {
    "last_frame": "stale",
    "stack_pad": "zero",
    "noop_min": 0,
    "fire_order": "first",
    "reward_clip": True,
    "life_loss_reset": "real",
}
ENVPOOL = COMMON | {
    "last_frame": "true",
    "stack_pad": "first",
    "noop_min": 1,
    "fire_order": "last",
    "life_loss_reset": "continue",
}
LIFE = {"episodic_life": True, "stop_on_life_loss": True}
STICKY = {"repeat_action_probability": 0.25}


@pytest.mark.parametrize(
    ("peer", "game", "settings", "options", "transforms", "limit"),
    [
        (AleVector, "pong", {}, {}, ALE_VECTOR, 0),
        (AleVector, "breakout", {"episodic_life": True}, {}, ALE_VECTOR | LIFE, 0),
        (AleVector, "seaquest", STICKY, STICKY, ALE_VECTOR, 0),
        (
            AleVector,
            "space_invaders",
            {"noop_max": 0, "episodic_life": True},
            {},
            ALE_VECTOR | LIFE | {"noop_max": 0},
            0,
        ),
        (AleVector, "mr_do", {"channels": 3}, {}, ALE_VECTOR | {"gray_scale": False, "channels_last": True}, 0),
        (EnvPool, "pong", {}, {}, ENVPOOL, 0),
        (EnvPool, "breakout", {"episodic_life": True}, {}, ENVPOOL | {"episodic_life": True}, 0),
        (EnvPool, "seaquest", STICKY, STICKY, ENVPOOL, 0),
        (EnvPool, "freeway", {"max_steps": 101}, {}, ENVPOOL, 101),
        (EnvPool, "ms_pacman", {"full_action_space": True}, {"full_action_space": True}, ENVPOOL, 0),
        (EnvPool, "breakout", {"channels": 3}, {}, ENVPOOL | {"gray_scale": False}, 0),
        (EnvPool, "breakout", {"frame_skip": 1}, {}, ENVPOOL | {"frame_skip": 1}, 0),
    ],
)
def test_lockstep(
    peer: type[Peer],
    game: str,
    settings: dict[str, Any],
    options: dict[str, Any],
    transforms: dict[str, Any],
    limit: int,
) -> None:
    models = [peer(game=game, seed=SEED + i, **settings) for i in range(NUM_ENVS)]
    with Rows(game, NUM_ENVS, options, transforms, limit) as env:
        row = env.reset(*(SEED + i for i in range(NUM_ENVS)))
        for i, model in enumerate(models):
            np.testing.assert_array_equal(row["obs"][i], model.reset().obs)
        random = np.random.default_rng(0)
        for _ in range(900):
            actions = [int(a) for a in random.integers(len(env.labels), size=NUM_ENVS)]
            row = env.step(*actions)
            for i, model in enumerate(models):
                want = model.step(actions[i])
                got = row["pool.reward"][i], row["pool.terminated"][i], row["pool.truncated"][i], row["lives"][i]
                assert got == (want.reward, want.terminated, want.truncated, want.lives)
                if not want.stale:  # ours shows the last frame that was played
                    np.testing.assert_array_equal(row["obs"][i], want.obs)
