"""What other implementations do around ALE, written down frame by frame over bare ale_py.

docs/dev/atari-semantics.md puts it into words. test_peers.py holds the models against the originals, as far as those are
installed; test_lockstep.py holds our runtime against the models.
"""

from __future__ import annotations

from dataclasses import dataclass

import ale_py
import cv2
import numpy as np
import numpy.typing as npt
from ale_py import roms

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)

Frame = npt.NDArray[np.uint8]
NOOP, FIRE = 0, 1


class Mt19937:
    """std::mt19937 and libstdc++'s uniform_int_distribution over it."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(seed)

    def below(self, n: int) -> int:
        """Uniform in 0 .. n-1; draws for n = 1 as well."""
        product = int(self._bits.random_raw()) * n
        while product & 0xFFFFFFFF < (1 << 32) % n:
            product = int(self._bits.random_raw()) * n
        return product >> 32


@dataclass
class Outcome:
    """What a reset or step gives."""

    obs: Frame
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    lives: int = 0
    stale: bool = False
    """EnvPool only: the game ended so early in the step that the observation shows the step before."""


@dataclass(kw_only=True)
class Peer:
    """The common part: one game, its actions, two frames for the maximum, and the stack."""

    game: str
    seed: int
    frame_skip: int = 4
    stack_num: int = 4
    noop_max: int = 30
    use_fire_reset: bool = True
    episodic_life: bool = False
    reward_clip: bool = False
    repeat_action_probability: float = 0.0
    full_action_space: bool = False
    interpolation: int = cv2.INTER_AREA
    channels: int = 1

    def __post_init__(self) -> None:
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", self.repeat_action_probability)
        self.ale.setInt("random_seed", self.seed)
        self.ale.loadROM(roms.get_rom_path(self.game))
        self.actions = self.ale.getLegalActionSet() if self.full_action_space else self.ale.getMinimalActionSet()
        self.fire = int(self.use_fire_reset and ale_py.Action.FIRE in self.actions)
        self.random = Mt19937(self.seed)
        self.newest = self.older = np.zeros_like(self.screen())
        self.stack = [np.zeros_like(self.resized(self.newest))] * self.stack_num

    def screen(self) -> Frame:
        return (self.ale.getScreenGrayscale() if self.channels == 1 else self.ale.getScreenRGB()).copy()

    def resized(self, frame: Frame) -> Frame:
        return np.asarray(cv2.resize(frame, (84, 84), interpolation=self.interpolation))

    def push(self, frame: Frame) -> None:
        self.stack = [*self.stack[1:], self.resized(frame)]

    def noops(self, n: int) -> bool:
        """Whether the game ended meanwhile."""
        ended = False
        for _ in range(n):
            self.ale.act(NOOP)
            if self.ale.game_over():
                self.ale.reset_game()
                ended = True
        return ended

    def obs(self) -> Frame:
        return np.stack(self.stack)

    def outcome(self, reward: float = 0.0, terminated: bool = False, truncated: bool = False) -> Outcome:
        return Outcome(self.obs(), float(reward), bool(terminated), bool(truncated), self.ale.lives())


@dataclass(kw_only=True)
class AleVector(Peer):
    """One env of ale_py.AtariVectorEnv 0.12.1, with next-step autoreset."""

    reward_clip: bool = True
    max_frames: int = 108000

    def reset(self) -> Outcome:
        self.ale.reset_game()
        if self.fire:
            self.ale.act(FIRE)
        self.noops(self.random.below(max(self.noop_max, 1)) - self.fire)
        self.newest, self.older = self.screen(), np.zeros_like(self.newest)
        self.stack = [np.zeros_like(self.stack[0])] * self.stack_num
        self.push(self.newest)
        self.elapsed, self.lives, self.over = 0, self.ale.lives(), False
        return self.outcome()

    def step(self, action: int) -> Outcome:
        if self.over:
            return self.reset()
        reward = 0
        for left in range(self.frame_skip, 0, -1):
            reward += self.ale.act(self.actions[action])
            self.elapsed += 1
            ended, lost = self.ale.game_over(), 0 < self.ale.lives() < self.lives
            out_of_time = self.elapsed >= self.max_frames
            self.over = ended or out_of_time or (self.episodic_life and lost)
            if self.over:
                break
            if left == 2:
                self.older = self.screen()
            elif left == 1:
                self.newest = self.screen()
        self.newest = np.maximum(self.newest, self.older)
        self.push(self.newest)
        self.lives = self.ale.lives()
        terminated = ended or (self.episodic_life and lost)
        shown = max(-1, min(1, reward)) if self.reward_clip else reward
        return self.outcome(shown, terminated, out_of_time and not terminated)


@dataclass(kw_only=True)
class EnvPool(Peer):
    """One env of EnvPool 1.2.5's Atari, whose autoreset is the next step's. Screens of 210 rows only: it crops others."""

    max_steps: int = 27000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.elapsed, self.over = self.max_steps, False

    def obs(self) -> Frame:
        stacked = super().obs()
        return stacked if self.channels == 1 else stacked.transpose(0, 3, 1, 2).reshape(-1, 84, 84)

    def reset(self) -> Outcome:
        noops = self.random.below(self.noop_max) + 1 - self.fire
        anew = not self.episodic_life or self.ale.game_over() or self.elapsed >= self.max_steps
        if anew:
            self.ale.reset_game()
            self.elapsed = 0
        anew |= self.noops(noops)
        if self.fire:
            self.ale.act(FIRE)
        self.newest = self.screen()
        self.push(self.newest)
        if anew:
            self.stack = [self.stack[-1]] * self.stack_num
        self.lives, self.over = self.ale.lives(), False
        return self.outcome()

    def step(self, action: int) -> Outcome:
        if self.over:
            return self.reset()
        reward, frames = 0, []
        for _ in range(self.frame_skip):
            reward += self.ale.act(self.actions[action])
            frames.append(self.screen())
            if self.ale.game_over():
                break
        self.elapsed += 1
        # A game that ended before the last two frames leaves the frame of the step before.
        if len(frames) == self.frame_skip:
            self.newest = np.maximum(frames[-1], frames[-2]) if self.frame_skip > 1 else frames[-1]
        elif len(frames) == self.frame_skip - 1:
            self.newest = frames[-1]
        self.push(self.newest)
        truncated = self.elapsed >= self.max_steps
        lost = self.episodic_life and 0 < self.ale.lives() < self.lives
        self.over = self.ale.game_over() or truncated or lost
        self.lives = self.ale.lives()
        shown = float(np.sign(reward)) if self.reward_clip else reward
        outcome = self.outcome(shown, self.over and not truncated, truncated)
        outcome.stale = len(frames) < self.frame_skip - 1
        return outcome
