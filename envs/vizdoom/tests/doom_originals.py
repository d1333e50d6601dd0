"""vizdoom's own DoomGame, played beside a task of ours with the same scenario, seed and settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import vizdoom

SCENARIOS = Path(vizdoom.scenarios_path)
VARIABLES = list(vizdoom.GameVariable.__members__)


@dataclass(frozen=True)
class Frame:
    """What DoomGame shows after a step; without pictures when the episode is over."""

    screen: npt.NDArray[np.uint8] | None
    variables: dict[str, float]
    reward: float
    over: bool
    timeout: bool
    state: Any


class Original:
    """A DoomGame of a scenario, in the folder given, since it writes into the working directory."""

    def __init__(self, scenario: str, seed: int, tmp_path: Path, frame_skip: int = 1, **settings: Any) -> None:
        self.game = vizdoom.DoomGame()
        self.game.load_config(str(SCENARIOS / f"{scenario}.cfg"))
        if settings:
            assert self.game.set_config(settings)
        self.game.set_doom_config_path(str(tmp_path / "_vizdoom.ini"))
        self.game.set_window_visible(False)
        self.game.set_mode(vizdoom.Mode.PLAYER)
        if "screen_format" not in settings:
            self.game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        self.game.set_audio_buffer_size(frame_skip)
        self.game.set_notifications_buffer_size(frame_skip)
        self.game.set_seed(seed)
        self.frame_skip = frame_skip
        self.game.init()

    def __enter__(self) -> Original:
        return self

    def __exit__(self, *_: object) -> None:
        self.game.close()

    @property
    def buttons(self) -> list[vizdoom.Button]:
        return self.game.get_available_buttons()

    def frame(self, reward: float = 0.0) -> Frame:
        state = self.game.get_state()
        return Frame(
            screen=None if state is None else state.screen_buffer,
            variables={n: self.game.get_game_variable(v) for n, v in vizdoom.GameVariable.__members__.items()},
            reward=reward,
            over=self.game.is_episode_finished(),
            timeout=self.game.is_episode_timeout_reached(),
            state=state,
        )

    def new_episode(self) -> Frame:
        self.game.new_episode()
        return self.frame()

    def step(self, buttons: list[float]) -> Frame:
        return self.frame(self.game.make_action(buttons, self.frame_skip))
