"""Plays an Atari game in many environments at once, then runs Gymnasium's own vector environment at the same settings.

scripts/demo starts it. The agents act at random; what they saw is written as an animated GIF.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from PIL import Image
from rich.console import Console
from rich.live import Live
from rich.table import Table

FRAME_SKIP = 4
PICTURES = 150  # steps in the GIF
SHOWN_ENVS = 16

console = Console(highlight=False)


def ours(game: str, num_envs: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """One native pool, loaded from the plugin of envpool-atari; grayscale, resize and stack are native too."""
    import envpool_sdk  # noqa: F401 - registers the ids

    return gymnasium.make_vec(f"envpool/{game}-v5", num_envs=num_envs, frame_skip=FRAME_SKIP, use_fire_reset=False)


def theirs(game: str, num_envs: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Gymnasium's AsyncVectorEnv: a process for each env, the standard preprocessing wrappers in it."""

    def make() -> gymnasium.Env[Any, Any]:
        import ale_py

        gymnasium.register_envs(ale_py)
        env = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
        env = gymnasium.wrappers.AtariPreprocessing(env, noop_max=30, frame_skip=FRAME_SKIP, screen_size=84)
        return gymnasium.wrappers.FrameStackObservation(env, 4)

    return gymnasium.vector.AsyncVectorEnv([make] * num_envs)


@dataclass
class Player:
    """Steps a vector env with random actions and keeps the books."""

    envs: gymnasium.vector.VectorEnv[Any, Any, Any]
    frames: int = 0
    seconds: float = 0.0
    episodes: int = 0
    returns: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._running = np.zeros(self.envs.num_envs)
        self._actions = int(self.envs.single_action_space.n)  # type: ignore[attr-defined]
        self.envs.reset(seed=0)

    def play(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Steps for ever, one batch of observations at a time; what the caller does between them is not timed."""
        while True:
            start = time.perf_counter()
            actions = self._random.integers(self._actions, size=self.envs.num_envs)
            observations, rewards, terminated, truncated, _ = self.envs.step(actions)
            self.seconds += time.perf_counter() - start
            self.frames += FRAME_SKIP * self.envs.num_envs
            self._running += rewards
            for env in np.flatnonzero(terminated | truncated):
                self.episodes += 1
                self.returns.append(float(self._running[env]))
                self._running[env] = 0.0
            yield observations

    @property
    def speed(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0

    def status(self, goal: int) -> str:
        mean = f"{np.mean(self.returns):.2f}" if self.returns else "-"
        return (
            f"{self.frames:>9,} of {goal:,} frames   {self.speed:>8,.0f} frames/s   "
            f"{self.episodes:>4} episodes   mean return {mean}"
        )


def show_progress(player: Player, goal: int, record: Callable[[npt.NDArray[np.uint8]], None]) -> None:
    """Plays until the goal with a live line; without a terminal, with a line every two seconds."""
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    last = time.monotonic()
    with live or nullcontext():
        for observations in player.play():
            record(observations)
            done = player.frames >= goal
            if done or time.monotonic() - last > (0.1 if live else 2.0):
                last = time.monotonic()
                if live:
                    live.update(player.status(goal), refresh=True)
                else:
                    print(player.status(goal), flush=True)
            if done:
                return


def play_for(player: Player, seconds: float) -> None:
    end = player.seconds + seconds
    for _ in player.play():
        if player.seconds >= end:
            return


def write_gif(path: Path, pictures: list[npt.NDArray[np.uint8]]) -> None:
    """The newest frame of each env, side by side, as the agents saw it: 84x84, gray."""
    shown = pictures[0].shape[0]
    columns = int(np.ceil(np.sqrt(shown)))
    rows = -(-shown // columns)
    images = []
    for batch in pictures:
        sheet = np.zeros((rows * 88, columns * 88), np.uint8)
        for i, picture in enumerate(batch):
            top, left = i // columns * 88 + 2, i % columns * 88 + 2
            sheet[top : top + 84, left : left + 84] = picture
        images.append(Image.fromarray(sheet).resize((columns * 176, rows * 176), Image.Resampling.NEAREST))
    images[0].save(path, save_all=True, append_images=images[1:], duration=66, loop=0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--game", default="Breakout", help="as in envpool/GAME-v5 (default: %(default)s)")
    parser.add_argument("--num-envs", type=int, default=16, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--frames", type=int, default=300_000, metavar="N", help="frames to play (default: %(default)s)"
    )
    parser.add_argument(
        "--compare", type=float, default=6.0, metavar="SECONDS", help="for each side; 0: none (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, metavar="GIF", help="default: demo-GAME.gif")
    arguments = parser.parse_args()
    if arguments.num_envs < 1 or arguments.frames < 1:
        parser.error("--num-envs and --frames must be at least 1")
    output = arguments.output or Path(f"demo-{arguments.game}.gif")

    # Gymnasium's processes first: they are forked, which goes well only before this process has threads.
    peer = None
    if arguments.compare > 0:
        console.print(f"starting {arguments.num_envs} processes of Gymnasium's AsyncVectorEnv, for the comparison")
        peer = Player(theirs(arguments.game, arguments.num_envs))
    console.print(f"making {arguments.num_envs} x envpool/{arguments.game}-v5")
    start = time.perf_counter()
    player = Player(ours(arguments.game, arguments.num_envs))
    console.print(f"made and reset in {time.perf_counter() - start:.2f} s")

    with closing(player.envs):
        pictures: list[npt.NDArray[np.uint8]] = []

        def record(observations: npt.NDArray[np.uint8]) -> None:
            if len(pictures) < PICTURES:
                pictures.append(observations[:SHOWN_ENVS, -1].copy())

        show_progress(player, arguments.frames, record)
        write_gif(output, pictures)
        print(f"what the agents saw: {output.resolve()}", flush=True)
        if peer is not None:
            with closing(peer.envs):
                compare(player, peer, arguments.compare)
    return 0


def compare(player: Player, peer: Player, seconds: float) -> None:
    """Both sides in turn, in three rounds, so that whatever else the machine does falls on both."""
    console.print("\ncomparing, in turns ...")
    players = {"envpool-sdk": player, "Gymnasium AsyncVectorEnv": peer}
    for each in players.values():
        each.frames, each.seconds = 0, 0.0
    for _ in range(3):
        for each in players.values():
            play_for(each, seconds / 3)
    table = Table("", "frames/s", "times Gymnasium", title="84x84 gray, frame skip 4, stack of 4, random actions")
    for name, each in players.items():
        table.add_row(name, f"{each.speed:,.0f}", f"{each.speed / peer.speed:.2f}")
    console.print(table)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
