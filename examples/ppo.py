"""PPO in one file, on a CPU: for tasks with discrete actions that show pictures (Atari, Doom) or vectors.

    python ppo.py --bfloat16                               # Pong, as in docs/examples.md
    python ppo.py --task DoomBasic-v1 --options '{}'       # Doom
    python ppo.py --help

The folder runs/TASK gets progress.csv (and TensorBoard's events, if that is installed), checkpoint.pt, and at the end
learning.png and agent.gif. The same command goes on where a stopped run was.

Proximal policy optimisation: Schulman et al. 2017, https://arxiv.org/abs/1707.06347; advantages by GAE, Schulman et al.
2015, https://arxiv.org/abs/1506.02438.
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import matplotlib.figure
import numpy as np
import torch
import tyro
from PIL import Image
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor, nn

import envpool_sdk


@dataclass(frozen=True)
class Settings:
    task: str = "Pong-v5"
    """What to learn; `envpool-sdk list` shows the tasks."""
    options: str = '{"img_height": 42, "img_width": 42, "reward_clip": true}'
    """The task's options, as JSON; `envpool-sdk info TASK` shows them."""
    plugin: Path | None = None
    """A shared library that has the task, if no installed package has it."""
    out: Path | None = None
    """The folder of the run. None: runs/TASK."""
    seed: int = 1
    steps: int = 3_000_000
    """Steps of environments altogether."""
    num_envs: int = 16
    num_steps: int = 128
    """Steps of each environment between two updates."""
    epochs: int = 4
    """How often an update goes through these steps."""
    minibatches: int = 8
    learning_rate: float = 1e-3
    """At the start; it falls to zero linearly."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.95
    clip: float = 0.2
    """How far the ratio of the new policy to the old one counts."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    value: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    bfloat16: bool = False
    """The body computes in bfloat16: quicker on a CPU that has instructions for it (AMX, AVX512-BF16), slower on others."""
    threads: int = 2
    """Of PyTorch, and of the environments."""
    checkpoint_seconds: float = 120
    """Between two checkpoints."""
    episodes: int = 20
    """Of the evaluation at the end."""
    gif_steps: int = 600
    """Steps that agent.gif shows, at most; 0: no GIF."""

    @property
    def folder(self) -> Path:
        return self.out or Path("runs", self.task)

    def make(self, num_envs: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        options = {"num_threads": self.threads, **json.loads(self.options)}
        return gymnasium.make_vec(f"envpool/{self.task}", num_envs=num_envs, **options)


# ---- the agent --------------------------------------------------------------


class Agent(nn.Module):
    """A policy and a value, over one body: convolutions for pictures [channels, height, width], else two layers."""

    def __init__(
        self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], bfloat16: bool = False
    ) -> None:
        super().__init__()
        self.bfloat16 = bfloat16
        if not isinstance(observation_space, gymnasium.spaces.Box):
            raise ValueError(f"this agent sees one array, not {observation_space}")
        if not isinstance(action_space, gymnasium.spaces.Discrete):
            raise ValueError(f"this agent has discrete actions, not {action_space}")
        shape = observation_space.shape
        self.scale = 255.0 if observation_space.dtype == np.uint8 else 1.0
        if len(shape) == 3:
            stride = 4 if min(shape[1:]) > 48 else 3  # small pictures need their details
            body = nn.Sequential(
                layer(nn.Conv2d(shape[0], 32, 2 * stride, stride)),
                layer(nn.Conv2d(32, 32, 4, 2)),
                layer(nn.Conv2d(32, 32, 3, 1)),
                nn.Flatten(),
            ).to(memory_format=torch.channels_last)  # the quicker order on a CPU
            features = body(torch.zeros(1, *shape)).shape[1]
            self.body = nn.Sequential(body, layer(nn.Linear(features, 256)))
            width = 256
        else:
            features, width = int(np.prod(shape)), 64
            self.body = nn.Sequential(nn.Flatten(), layer(nn.Linear(features, width)), layer(nn.Linear(width, width)))
        self.policy = orthogonal(nn.Linear(width, int(action_space.n)), 0.01)
        self.critic = orthogonal(nn.Linear(width, 1), 1.0)

    def forward(self, observation: Tensor) -> tuple[torch.distributions.Categorical, Tensor]:
        """The distribution of actions and the value of observations [n, ...]."""
        x = observation.float() / self.scale
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            features = self.body(x)
        features = features.float()
        return torch.distributions.Categorical(logits=self.policy(features)), self.critic(features)[:, 0]


def orthogonal(linear: Any, gain: float) -> Any:
    """The layer, initialised as is usual for PPO."""
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


def layer(linear: nn.Module) -> nn.Module:
    return nn.Sequential(orthogonal(linear, 2**0.5), nn.ReLU())


# ---- learning ---------------------------------------------------------------


@dataclass(frozen=True)
class Rollout:
    """What happened in T steps of N environments."""

    observations: Tensor  # [T, N, ...]
    actions: Tensor  # int64[T, N]
    log_probs: Tensor  # float32[T, N], as all that follow
    advantages: Tensor
    returns: Tensor  # what the values should have been
    valid: Tensor  # bool[T, N]: not a step that only began an episode
    episodes: list[float]  # returns of the episodes that ended


class Player:
    """Plays the environments with an agent, T steps at a time.

    After a step that ended an episode, the next one of that environment begins a new episode and ignores the action
    (Gymnasium's next-step autoreset). Such steps are not learnt from; in return the last observation of each episode is
    seen, with whose value the return of a truncated episode is completed.
    """

    def __init__(self, envs: gymnasium.vector.VectorEnv[Any, Any, Any], settings: Settings, seed: int) -> None:
        self.envs, self.settings = envs, settings
        self.observation = envs.reset(seed=seed)[0]
        self.over = np.zeros(envs.num_envs, np.bool_)
        self.episode_returns = np.zeros(envs.num_envs)

    @torch.no_grad()
    def play(self, agent: Agent) -> Rollout:
        observations, actions, log_probs, values, rewards, terminated, over, valid = ([] for _ in range(8))
        episodes: list[float] = []
        for _ in range(self.settings.num_steps):
            observation = torch.from_numpy(self.observation)
            policy, value = agent(observation)
            action = policy.sample()
            observations.append(observation)
            actions.append(action)
            log_probs.append(policy.log_prob(action))
            values.append(value)
            valid.append(torch.from_numpy(~self.over))

            self.observation, reward, ended, truncated, info = self.envs.step(action.numpy())
            self.over = ended | truncated
            rewards.append(torch.from_numpy(reward).float())
            terminated.append(torch.from_numpy(ended))
            over.append(torch.from_numpy(self.over))
            self.episode_returns += info.get("reward", reward)  # the info has it as it was before clipping
            episodes += self.episode_returns[self.over].tolist()
            self.episode_returns[self.over] = 0

        values.append(agent(torch.from_numpy(self.observation))[1])
        advantages = self.advantages(rewards, values, terminated, over)
        return Rollout(
            torch.stack(observations),
            torch.stack(actions),
            torch.stack(log_probs),
            advantages,
            advantages + torch.stack(values[:-1]),
            torch.stack(valid),
            episodes,
        )

    def advantages(
        self, rewards: list[Tensor], values: list[Tensor], terminated: list[Tensor], over: list[Tensor]
    ) -> Tensor:
        """Generalised advantage estimates: nothing is worth anything after a termination, and no sum goes on from one
        episode to the next."""
        gamma = self.settings.gamma
        advantages = []
        advantage = torch.zeros_like(values[0])
        for t in reversed(range(len(rewards))):
            error = rewards[t] + gamma * values[t + 1] * ~terminated[t] - values[t]
            advantage = error + gamma * self.settings.gae_lambda * advantage * ~over[t]
            advantages.append(advantage)
        return torch.stack(advantages[::-1])


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout, settings: Settings) -> dict[str, float]:
    """Several epochs over a rollout. Returns what is worth a look, averaged."""
    usable = rollout.valid.flatten().nonzero()[:, 0]
    observations = rollout.observations.flatten(0, 1)
    actions, old_log_probs, advantages, returns = (
        x.flatten() for x in (rollout.actions, rollout.log_probs, rollout.advantages, rollout.returns)
    )
    sums: dict[str, float] = {}
    rounds = 0
    for _ in range(settings.epochs):
        for batch in usable[torch.randperm(len(usable))].chunk(settings.minibatches):
            policy, value = agent(observations[batch])
            advantage = advantages[batch]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            log_ratio = policy.log_prob(actions[batch]) - old_log_probs[batch]
            ratio = log_ratio.exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            value_loss = 0.5 * (value - returns[batch]).square().mean()
            entropy = policy.entropy().mean()
            optimizer.zero_grad()
            (policy_loss + settings.value * value_loss - settings.entropy * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), settings.max_grad_norm)
            optimizer.step()

            with torch.no_grad():
                seen = {
                    "policy_loss": policy_loss,
                    "value_loss": value_loss,
                    "entropy": entropy,
                    "kl": (ratio - 1 - log_ratio).mean(),  # http://joschu.net/blog/kl-approx.html
                    "clipped": ((ratio - 1).abs() > settings.clip).float().mean(),
                }
            rounds += 1
            for name, number in seen.items():
                sums[name] = sums.get(name, 0.0) + number.item()
    return {name: total / rounds for name, total in sums.items()}


def train(settings: Settings) -> Agent:
    """Trains from the latest checkpoint, or from the beginning, up to settings.steps."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = settings.folder / "checkpoint.pt"
    torch.manual_seed(settings.seed)
    envs = settings.make(settings.num_envs)
    agent = Agent(envs.single_observation_space, envs.single_action_space, settings.bfloat16)
    optimizer = torch.optim.Adam(agent.parameters(), settings.learning_rate, eps=1e-5)
    step, seconds, count = 0, 0.0, 0
    recent: deque[float] = deque(maxlen=100)
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        agent.load_state_dict(saved["agent"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["generator"])
        step, seconds, count = saved["step"], saved["seconds"], saved["episodes"]
        recent.extend(saved["recent"])

    def save() -> None:
        state = {
            "agent": agent.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": torch.get_rng_state(),
            "step": step,
            "seconds": seconds,
            "episodes": count,
            "recent": list(recent),
        }
        torch.save(state, checkpoint.with_suffix(".new"))
        os.replace(checkpoint.with_suffix(".new"), checkpoint)  # there is always a whole one

    player = Player(envs, settings, seed=settings.seed + step)  # a resumed run begins new episodes
    log = Log(settings.folder, step)
    started = saved_at = time.monotonic()
    started -= seconds
    with progress() as bar:
        shown = bar.add_task(settings.task, total=settings.steps, completed=step, score=float("nan"))
        while step < settings.steps:
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - step / settings.steps)
            rollout = player.play(agent)
            losses = update(agent, optimizer, rollout, settings)
            step += settings.num_envs * settings.num_steps
            recent.extend(rollout.episodes)
            count += len(rollout.episodes)
            score = float(np.mean(recent)) if recent else float("nan")
            seconds = time.monotonic() - started
            log.write({"step": step, "seconds": seconds, "episodes": count, "mean_return": score, **losses})
            bar.update(shown, completed=step, score=score)
            if time.monotonic() - saved_at > settings.checkpoint_seconds:
                save()
                saved_at = time.monotonic()
    save()
    envs.close()
    return agent


# ---- what is seen of it -----------------------------------------------------


class Log:
    """A row for each update: in progress.csv, and in TensorBoard's events if that is installed."""

    def __init__(self, folder: Path, step: int) -> None:
        """Keeps the rows of an earlier run up to the step that this one goes on from."""
        path = folder / "progress.csv"
        rows = [row for row in read_log(path) if row["step"] <= step] if path.exists() else []
        self.file = path.open("w", newline="")
        self.writer: csv.DictWriter[str] | None = None
        self.board = None
        for row in rows:
            self.write(row)
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.board = SummaryWriter(str(folder), purge_step=step)

    def write(self, row: dict[str, float]) -> None:
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, row)
            self.writer.writeheader()
        self.writer.writerow({name: f"{number:.6g}" if name != "step" else int(number) for name, number in row.items()})
        self.file.flush()
        if self.board is not None:
            for name, number in row.items():
                self.board.add_scalar(name, number, int(row["step"]))


def read_log(path: Path) -> Iterator[dict[str, float]]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield {name: float(text) for name, text in row.items()}


def progress() -> Progress:
    columns = ("{task.description}", BarColumn(), "{task.percentage:.1f} %", "return {task.fields[score]:.1f}")
    parts = [TextColumn(column) if isinstance(column, str) else column for column in columns]
    return Progress(*parts, TimeElapsedColumn(), "of which left", TimeRemainingColumn())


def plot(settings: Settings) -> None:
    """learning.png, from progress.csv."""
    rows = list(read_log(settings.folder / "progress.csv"))
    figure = matplotlib.figure.Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot(
        title=f"PPO on {settings.task}", xlabel="steps", ylabel="return, mean of the last 100 episodes"
    )
    axes.plot([row["step"] for row in rows], [row["mean_return"] for row in rows])
    axes.grid(alpha=0.3)
    figure.savefig(settings.folder / "learning.png", dpi=120)


@torch.no_grad()
def evaluate(agent: Agent, settings: Settings) -> list[float]:
    """The returns of an episode in each of so many environments, whose seeds were not trained with."""
    envs = settings.make(settings.episodes)
    observation, _ = envs.reset(seed=settings.seed + 1_000_000)
    returns, going = np.zeros(settings.episodes), np.ones(settings.episodes, np.bool_)
    while going.any():
        action = agent(torch.from_numpy(observation))[0].sample()
        observation, reward, terminated, truncated, info = envs.step(action.numpy())
        returns += going * info.get("reward", reward)
        going &= ~(terminated | truncated)
    envs.close()
    return returns.tolist()


@torch.no_grad()
def film(agent: Agent, settings: Settings) -> None:
    """agent.gif: an episode, or its beginning."""
    env = gymnasium.make(f"envpool/{settings.task}", render_mode="rgb_array", **json.loads(settings.options))
    observation, _ = env.reset(seed=settings.seed + 2_000_000)
    frames = []
    for step in range(settings.gif_steps):
        if step % 2 == 0:
            frames.append(Image.fromarray(env.render()).quantize(32))
        action = agent(torch.from_numpy(observation)[None])[0].sample()
        observation, _, terminated, truncated, _ = env.step(action.item())
        if terminated or truncated:
            break
    env.close()
    frames[0].save(
        settings.folder / "agent.gif", save_all=True, append_images=frames[1:], duration=120, loop=0, optimize=True
    )


def main(settings: Settings) -> None:
    if settings.plugin is not None:
        envpool_sdk.load_plugin(settings.plugin)
    torch.set_num_threads(settings.threads)
    agent = train(settings)
    plot(settings)
    returns = evaluate(agent, settings)
    print(f"{settings.task}: return {np.mean(returns):.1f} ± {np.std(returns):.1f} over {len(returns)} episodes")
    if settings.gif_steps:
        film(agent, settings)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
