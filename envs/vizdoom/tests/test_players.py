"""Games of several players: their views, scores and ends, lockstep with vizdoom's DoomGame, and engines that die."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from doom_match import Match
from doom_pools import raw

import envpool_sdk

RAW = {"screen_resolution": "160x120"}
IDLE = np.zeros((1, 2, 3), np.int8)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def duel(**options: Any) -> Any:
    return raw("DoomMultiDuel-v1", num_players=2, **{**RAW, "seed": 7, **options})


def random_buttons(generator: np.random.Generator, envs: int = 1) -> np.ndarray[Any, Any]:
    return generator.integers(2, size=(envs, 2, 3)).astype(np.int8)


def test_each_player_is_an_agent() -> None:
    envs = envpool_sdk.make("DoomCig-v1", num_envs=2, num_players=2, seed=1, gray_scale=True)
    assert envs.observation_space.shape == (2, 4, 84, 84)
    obs, info = envs.reset()
    assert obs.shape == (2, 2, 4, 84, 84)
    assert info["HEALTH"].tolist() == [[100, 100]] * 2
    assert len({view.tobytes() for view in obs.reshape(4, -1)}) == 4  # two games, two views of each
    envs.action_space.seed(1)
    actions = {name: np.stack([space.sample()] * 2) for name, space in envs.action_space.items()}
    obs, reward, terminated, truncated, _ = envs.step(actions)
    assert (obs[:, :, 0] != obs[:, :, 3]).any(axis=(2, 3)).all()
    assert reward.shape == terminated.shape == truncated.shape == (2, 2)
    envs.close()


def test_images_of_each_player_are_transformed_alone() -> None:
    """What a player's stack shows is what a pool without a stack shows, step by step."""
    cv2 = pytest.importorskip("cv2")
    stacked = duel(img_height=42, img_width=84, stack_num=2)
    plain = duel()
    generator = np.random.default_rng(0)
    frames = [plain.reset()[0][0]]
    got = stacked.reset()[0][0]
    for _ in range(5):
        for player in range(2):
            for age in range(2):
                frame = frames[max(len(frames) - 2 + age, 0)][player]
                want = cv2.resize(frame, (84, 42), interpolation=cv2.INTER_AREA)
                np.testing.assert_array_equal(got[player, age], want)
        buttons = random_buttons(generator)
        frames.append(plain.step(buttons)[0][0])
        got = stacked.step(buttons)[0][0]
    stacked.close()
    plain.close()


def lockstep(match: Match, env: Any, steps: int) -> int:
    """Plays both; the first step in which they differ, `steps` if none."""
    players = len(match.first)
    generator = np.random.default_rng(0)
    obs, info = env.reset()
    rewards = np.zeros((1, players))
    frames = match.first
    for step in range(steps):
        for player, (screen, variables, reward) in enumerate(frames):
            got = {name: info[name][0, player] for name in variables}
            if got != variables or rewards[0, player] != np.float32(reward) or (obs[0, player] != screen).any():
                return step
        deltas = 2 if isinstance(env.action_space, gymnasium.spaces.Dict) else 0
        binary = generator.integers(2, size=(players, 8 if deltas else 3)).astype(np.int8)
        turns = generator.normal(0, 3, (players, deltas)).astype(np.float32)
        frames = match.tic([[float(x) for x in row] for row in np.concatenate([binary, turns], 1)])
        action: Any = {"binary": binary[None], "continuous": turns[None]} if deltas else binary[None]
        obs, rewards, _, _, info = env.step(action)
    return steps


@pytest.mark.parametrize(
    ("task_id", "scenario", "players", "steps"),
    [
        ("DoomMultiDuel-v1", "multi_duel", 2, 120),
        pytest.param("DoomMultiDuel-v1", "multi_duel", 2, 500, marks=pytest.mark.full),
        pytest.param("DoomCig-v1", "cig", 3, 500, marks=pytest.mark.full),
    ],
)
def test_same_as_vizdooms_players(task_id: str, scenario: str, players: int, steps: int, tmp_path: Path) -> None:
    """Pictures, variables and rewards. vizdoom's players start as luck has it (see Match.tic); so they have some tries."""
    config = {"screen_resolution": "RES_160X120", "frag_reward": 3, "damage_taken_penalty": 1}
    same = []
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        env = raw(task_id, num_players=players, seed=7, config=config, **RAW)
        with Match(scenario, players, 7, folder, **config) as match:
            same.append(lockstep(match, env, steps))
        env.close()
        if same[-1] == steps:
            return
    pytest.fail(f"none of several games was the same for {steps} steps, but for {same}")


def fight(envs: Any, steps: int, actions: int, **how: Any) -> list[Any]:
    """What an episode shows; players move at random and shoot."""
    generator = np.random.default_rng(actions)
    count = envs.config["num_envs"]
    obs, info = envs.reset(**how)
    rows = [obs, info["HEALTH"]]
    for _ in range(steps):
        buttons = random_buttons(generator, count)
        buttons[:, :, 2] = 1
        obs, reward, terminated, truncated, info = envs.step(buttons)
        rows += [obs, reward, terminated, truncated, info["HEALTH"], info["FRAGCOUNT"], info["DEATHCOUNT"]]
    return rows


def same(a: list[Any], b: list[Any]) -> bool:
    return all((x == y).all() for x, y in zip(a, b, strict=True))


def test_seeds_and_two_pools_at_once() -> None:
    """The same seed gives the same two episodes, in another pool and after them in the same one."""
    one, other = (duel(num_envs=2, frame_skip=4, num_threads=threads) for threads in (1, 2))
    first = [fight(one, 100, 0, seed=5), fight(one, 100, 1)]
    assert not same(first[0][:1], first[1][:1])
    assert same(fight(other, 100, 0, seed=5), first[0])
    assert same(fight(other, 100, 1), first[1])
    assert same(fight(one, 100, 0, seed=5), first[0])
    one.close()
    other.close()


def rampage(env: Any, steps: int) -> Iterator[Any]:
    """Plays Cig with rockets; who shoots at random soon dies of them."""
    generator = np.random.default_rng(1)
    env.reset()
    for _ in range(steps):
        buttons = generator.integers(2, size=(1, 2, 8)).astype(np.int8)
        yield env.step({"binary": buttons, "continuous": generator.normal(0, 3, (1, 2, 2)).astype(np.float32)})


def cig(**options: Any) -> Any:
    return raw("DoomCig-v1", num_players=2, frame_skip=4, seed=3, **{**RAW, **options})


def test_the_dead_come_back_and_the_score_is_kept() -> None:
    env = cig(config={"frag_reward": 1})
    score, total, rises = np.zeros(2), np.zeros(2), np.zeros(2)
    for _, reward, terminated, truncated, info in rampage(env, 1000):
        assert not (terminated | truncated).any()
        total += reward[0]
        before, score = score, info["FRAGCOUNT"][0]
        rises += np.maximum(score - before, 0)
        if info["DEATHCOUNT"].sum() > 0 and (info["HEALTH"] > 0).all():
            break
    assert info["DEATHCOUNT"].sum() > 0
    assert info["FRAGCOUNT"].any()
    np.testing.assert_array_equal(total, rises)  # who kills himself loses a frag, but no reward
    assert [info[f"PLAYER{i}_FRAGCOUNT"][0].tolist() for i in (1, 2)] == [[frags, frags] for frags in score]
    env.close()


def test_an_episode_ends_for_all() -> None:
    env = duel(config={"episode_timeout": 20})
    env.reset()
    for step in range(1, 21):
        _, _, terminated, truncated, _ = env.step(IDLE)
        assert not terminated.any()
        assert truncated.tolist() == [[step == 20] * 2]
    assert env.step(IDLE)[4]["elapsed_step"] == 0
    env.close()


def test_episodic_life() -> None:
    env = cig(episodic_life=True)
    for _, _, terminated, _, info in rampage(env, 1000):
        assert terminated.tolist() == [[bool((info["DEAD"] > 0).any())] * 2]
        if terminated.any():
            break
    assert terminated.all()
    env.close()


def engines() -> set[int]:
    return {p.pid for p in psutil.Process().children() if p.name() == "vizdoom"}


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_game_is_made_anew_if_an_engine_fails(by: signal.Signals) -> None:
    games = [duel(engine_timeout=2.0), duel()]
    games[0].reset()
    first = engines()
    games[1].reset()
    second = engines() - first
    psutil.Process(min(first)).send_signal(by)
    _, _, terminated, truncated, info = games[0].step(IDLE)
    said = "was killed by signal 9" if by == signal.SIGKILL else "did not answer within 2 s"
    assert said in str(info["fault"])
    assert truncated.all()
    assert not terminated.any()
    for game in games:
        info = game.step(IDLE)[4]
        assert "fault" not in info or not any(info["fault"])
    assert second < engines()
    assert not first & engines()
    assert len(engines()) == 4
    for game in games:
        game.close()


def test_what_is_drawn() -> None:
    env = duel(render_mode="rgb_array")
    obs, _ = env.reset()
    for player in range(2):
        np.testing.assert_array_equal(env.render(camera_id=player)[0], obs[0, player])
    with pytest.raises((ValueError, envpool_sdk.EnvError), match=r"by 2 camera\(s\), one a player"):
        env.render(camera_id=2)
    env.close()


def test_games_are_not_recorded(tmp_path: Path) -> None:
    with pytest.raises((ValueError, envpool_sdk.EnvError), match="only games of one player are recorded"):
        duel(lmp_save_dir=str(tmp_path)).reset()
