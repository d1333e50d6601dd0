"""The plugin with nothing but colours on top: every frame is what ale_py gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ale_py
import numpy as np
import pytest
from ale_py import roms
from atari_pools import ID_OF, ROM_OF, Rows, plugin

from envpool_atari.plugin import assets, manifest

SEED = 77
SAMPLE = ["pong", "breakout", "seaquest", "adventure", "air_raid", "double_dunk", "skiing", "tic_tac_toe_3d"]
GAMES = [pytest.param(rom, marks=[] if rom in SAMPLE else pytest.mark.full) for rom in ID_OF]


def bare(game: str, repeat: float = 0.0) -> ale_py.ALEInterface:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", SEED)
    ale.setFloat("repeat_action_probability", repeat)
    ale.loadROM(roms.get_rom_path(game))
    return ale


def test_manifest_agrees_with_the_library() -> None:
    promised = manifest()
    assert [task.id for task in promised.tasks] == list(plugin().tasks)
    assert len(promised.tasks) == 104
    names = {name for task in promised.tasks for name in (task.id, *task.aliases)}
    without = {"combat", "joust", "maze_craze", "warlords"}  # ale_py has no single-player mode of these
    assert {rom.title().replace("_", "") + "-v5" for rom in roms.get_all_rom_ids() if rom not in without} <= names


def test_manifest_is_light() -> None:
    code = (
        "import sys, envpool_sdk; before = set(sys.modules); import envpool_atari.plugin as p; p.manifest(); p.assets();"
        "print(sorted(m for m in set(sys.modules) - before if 'ale' in m or 'numpy' in m))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("special", [False, True], ids=["default", "special"])
def test_every_frame(game: str, special: bool) -> None:
    """With stickiness, all actions, and the last mode and difficulty if special."""
    ale = bare(game, 0.25 if special else 0.0)
    options = {}
    if special:
        mode, difficulty = ale.getAvailableModes()[-1], ale.getAvailableDifficulties()[-1]
        ale.setMode(mode)
        ale.setDifficulty(difficulty)
        options = {"repeat_action_probability": 0.25, "full_action_space": True, "mode": mode, "difficulty": difficulty}
    actions = ale.getLegalActionSet() if special else ale.getMinimalActionSet()
    with Rows(game, options=options, transforms={"channels_last": True}) as env:
        assert env.labels == tuple(action.name for action in actions)
        row = env.reset(SEED)
        ale.reset_game()
        random = np.random.default_rng(5)
        for _ in range(200):
            if row["pool.terminated"][0]:  # not the info: in one mode of demon_attack the game is over from the start
                ale.reset_game()
                row = env.step(0)  # the automatic reset
            np.testing.assert_array_equal(row["obs"][0], ale.getScreenRGB())
            np.testing.assert_array_equal(row["ram"][0], ale.getRAM())
            assert row["lives"][0] == ale.lives()
            action = int(random.integers(len(actions)))
            reward = ale.act(actions[action])
            row = env.step(action)
            assert row["pool.reward"][0] == reward
            assert row["terminated"][0] == row["pool.terminated"][0] == ale.game_over(with_truncation=False)
        np.testing.assert_array_equal(env.pool.render(0), ale.getScreenRGB())


@pytest.mark.parametrize("game", ["pong", "air_raid", "mr_do"])  # NTSC, PAL with odd pixel values, PAL
def test_colours(game: str) -> None:
    ale = bare(game)
    with Rows(game, transforms={"gray_scale": True}) as env:
        env.reset(SEED)
        ale.reset_game()
        for _ in range(60):
            np.testing.assert_array_equal(env.step(0)["obs"][0], (ale.act(0), ale.getScreenGrayscale())[1])
            np.testing.assert_array_equal(env.pool.render(0), ale.getScreenRGB())


def test_seeding_again_switches_the_console_off_and_on() -> None:
    with Rows("seaquest", options={"repeat_action_probability": 0.5}) as env:

        def play() -> list[np.ndarray]:
            return [env.step(t % 18 % len(env.labels))["obs"][0].copy() for t in range(150)]

        env.reset(1)
        first = play()
        env.reset()
        second = play()
        env.reset(1)
        np.testing.assert_array_equal(play(), first)
        assert not np.array_equal(first, second)


@pytest.mark.parametrize("repeat", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("game", ["pong", "breakout", "pitfall2"])
def test_saved_state_goes_on_alike(game: str, repeat: float) -> None:
    options = {"repeat_action_probability": repeat}
    with Rows(game, options=options) as one, Rows(game, options=options) as other:
        one.reset(3)
        random = np.random.default_rng(0)
        for action in random.integers(len(one.labels), size=70):
            one.step(int(action))
        state = one.pool.save_state(0)
        other.reset(4)
        other.step(1)
        other.pool.load_state(0, state)
        np.testing.assert_array_equal(one.observe()["obs"], other.observe()["obs"])
        for action in random.integers(len(one.labels), size=150):
            mine, theirs = one.step(int(action)), other.step(int(action))
            for name in ("obs", "ram", "lives", "pool.reward", "pool.terminated"):
                np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


def test_state_of_another_game_or_damaged_is_refused() -> None:
    with Rows("pong") as pong, Rows("breakout") as breakout:
        pong.reset(1)
        breakout.reset(1)
        state = breakout.pool.save_state(0)
        before = pong.observe()["ram"].copy()
        for bad in (state, state[:-9], b""):
            with pytest.raises(Exception, match="state"):
                pong.pool.load_state(0, bad)
        np.testing.assert_array_equal(pong.observe()["ram"], before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": 99}, "pong has no mode 99; it has 0, 1"),
        ({"difficulty": 9}, "pong has no difficulty 9; it has 0, 1, 2, 3"),
        ({"rom_path": "/nowhere/pong.bin"}, "can't read the ROM /nowhere/pong.bin"),
        ({"rom_path": "breakout"}, 'is the game "breakout", not "pong"'),
        ({"rom_path": "library"}, "is no ROM that ALE knows"),
        ({"ale_library": "/nowhere.so"}, "nowhere.so"),
        ({"ale_library": "own"}, "it is not the module of ale-py"),
        ({"repeat_action_probability": 1.5}, "repeat_action_probability"),
    ],
)
def test_bad_options_are_explained(options: dict[str, object], message: str) -> None:
    special = {
        "breakout": str(roms.get_rom_path("breakout")),
        "library": assets()["ale_library"],
        "own": manifest().library,
    }
    with pytest.raises(Exception, match=message):
        Rows("pong", options={name: special.get(str(value), value) for name, value in options.items()})


def test_another_rom_file_is_taken(tmp_path: Path) -> None:
    copy = tmp_path / "anything.bin"
    copy.write_bytes(Path(roms.get_rom_path("pong")).read_bytes())
    with Rows("pong", options={"rom_path": str(copy)}) as one, Rows("pong") as other:
        np.testing.assert_array_equal(one.reset(1)["obs"], other.reset(1)["obs"])


def test_colour_averaging_of_ale_py_stays_as_it_is() -> None:
    """Our consoles load without the table that it reads; those of ale_py in the same process must not."""

    def averaged() -> np.ndarray:
        ale = ale_py.ALEInterface()
        ale.setInt("random_seed", SEED)
        ale.setBool("color_averaging", True)
        ale.loadROM(roms.get_rom_path("asteroids"))
        return np.stack([(ale.act(t % 5), ale.getScreen().copy())[1] for t in range(30)])

    with Rows("pong", num_envs=4) as env:
        env.reset(1, 2, 3, 4)
        with_plugin = averaged()
    assert len(np.unique(with_plugin)) > 3
    alone = subprocess.run([sys.executable, "-c", _AVERAGED_ALONE], capture_output=True, check=True, timeout=60).stdout
    assert with_plugin.tobytes() == alone


_AVERAGED_ALONE = f"""
import sys, ale_py, numpy as np
from ale_py import roms
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
ale = ale_py.ALEInterface()
ale.setInt("random_seed", {SEED})
ale.setBool("color_averaging", True)
ale.loadROM(roms.get_rom_path("asteroids"))
sys.stdout.buffer.write(np.stack([(ale.act(t % 5), ale.getScreen().copy())[1] for t in range(30)]).tobytes())
"""


def test_many_consoles_at_once_are_independent() -> None:
    games = ["pong", "breakout", "adventure", "seaquest"]

    def play(env: Rows, action: int) -> np.ndarray:
        return np.stack([env.step(*([action] * env.pool.num_envs))["ram"].copy() for _ in range(60)])

    for game in games:
        with Rows(game, num_envs=8) as many:
            many.reset(*range(8))
            together = play(many, 1)
        for seed in (0, 7):
            with Rows(game) as alone:
                alone.reset(seed)
                np.testing.assert_array_equal(play(alone, 1)[:, 0], together[:, seed])


def test_ids() -> None:
    assert ROM_OF["TicTacToe3d-v5"] == "tic_tac_toe_3d"
    assert ID_OF["space_invaders"] == "SpaceInvaders-v5"
