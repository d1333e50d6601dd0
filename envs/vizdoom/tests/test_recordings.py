"""Recordings (.lmp): written by episodes, replayed by ours and by vizdoom's DoomGame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import vizdoom
from doom_originals import Original
from doom_pools import RAW, raw

TASK, SCENARIO, SEED = "DoomDeadlyCorridor-v1", "deadly_corridor", 3


def episode(env: Any, actions: np.ndarray[Any, Any]) -> list[Any]:
    """Pictures and rewards until death."""
    rows = [env.reset()[0]]
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action[None])
        rows += [obs, reward, terminated]
        if terminated or truncated:
            break
    return rows


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all((x == y).all() for x, y in zip(a, b, strict=True))


def test_a_recording_replays_its_episode(tmp_path: Path) -> None:
    actions = np.random.default_rng(0).integers(2, size=(400, 7)).astype(np.int8)
    env = raw(TASK, seed=SEED, lmp_save_dir=str(tmp_path))
    first, second = episode(env, actions), episode(env, actions)
    env.close()  # which completes the second one
    assert sorted(path.name for path in tmp_path.iterdir()) == ["env0_0.lmp", "env0_1.lmp"]
    assert not same(first, second)

    plain = raw(TASK, seed=SEED)
    assert same(episode(plain, actions), first)
    plain.close()

    idle = np.zeros_like(actions)
    for number, recorded in enumerate((first, second)):
        replay = raw(TASK, seed=99, demo_path=str(tmp_path / f"env0_{number}.lmp"))
        assert same(episode(replay, idle), recorded)
        replay.close()


def test_vizdoom_replays_it(tmp_path: Path) -> None:
    actions = np.random.default_rng(1).integers(2, size=(60, 7)).astype(np.int8)
    folder = tmp_path / "recordings"
    folder.mkdir()
    env = raw(TASK, seed=SEED, lmp_save_dir=str(folder))
    screens = episode(env, actions)[1::3]
    env.close()
    with Original(SCENARIO, 1, tmp_path) as original:
        original.game.replay_episode(str(folder / "env0_0.lmp"))
        for screen in screens[:50]:
            original.game.advance_action(1)
            np.testing.assert_array_equal(screen[0], original.game.get_state().screen_buffer)


def test_a_replay_may_be_chosen_at_reset(tmp_path: Path) -> None:
    import gymnasium

    actions = np.random.default_rng(2).integers(2, size=(30, 7)).astype(np.int8)
    env = raw(TASK, seed=SEED, lmp_save_dir=str(tmp_path))
    recorded = episode(env, actions)
    env.close()
    single = gymnasium.make(f"envpool/{TASK}", frame_skip=1, **RAW)
    single.reset(seed=5)
    obs, _ = single.reset(options={"demo_path": str(tmp_path / "env0_0.lmp")})
    np.testing.assert_array_equal(obs, recorded[0][0])
    single.close()


assert vizdoom.__version__ == "1.3.2"  # replays are those of one version
