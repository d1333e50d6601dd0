"""A policy gradient in one JAX program: rollout by lax.scan over the pool's step, returns, gradient and update, compiled together.

    python jax_rollout.py --plugin build/release/reference/cartpole_cpp.so     # CartPole, built from this repository
    python jax_rollout.py --help

For tasks with one array of numbers as observation and discrete actions. Prints the mean return of the episodes that ended
in each update.

REINFORCE: Williams 1992, https://doi.org/10.1007/BF00992696; Adam: Kingma and Ba 2015, https://arxiv.org/abs/1412.6980.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import envpool_sdk

HIDDEN = 64
GAMMA = 0.99
LEARNING_RATE = 0.003


def first_parameters(key: Any, inputs: int, actions: int) -> dict[str, Any]:
    first, second = jax.random.split(key)
    return {
        "w1": jax.random.normal(first, (inputs, HIDDEN)) / jnp.sqrt(inputs),
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(second, (HIDDEN, actions)) * 0.01,
        "b2": jnp.zeros(actions),
    }


def logits(parameters: dict[str, Any], observations: Any) -> Any:
    hidden = jnp.tanh(observations @ parameters["w1"] + parameters["b1"])
    return hidden @ parameters["w2"] + parameters["b2"]


def loss(parameters: dict[str, Any], observations: Any, actions: Any, weights: Any) -> Any:
    """Minus the log probabilities of what was done, weighted by how well it went."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(parameters, observations)), actions[..., None], -1)[..., 0]
    return -jnp.mean(chosen * weights)


def returns_of(rewards: Any, over: Any) -> Any:
    """Discounted sums of rewards up to the end of the episode or of the rollout: [steps, envs]."""

    def add(later: Any, now: Any) -> tuple[Any, Any]:
        reward, ended = now
        total = reward + GAMMA * later * ~ended
        return total, total

    return jax.lax.scan(add, jnp.zeros(rewards.shape[1]), (rewards, over), reverse=True)[1]


def adam(parameters: Any, gradient: Any, moments: Any, count: Any) -> tuple[Any, Any]:
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, moments[1], gradient)

    def move(p: Any, m: Any, v: Any) -> Any:
        return p - LEARNING_RATE * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(move, parameters, first, second), (first, second)


def train(env: Any, num_steps: int, updates: int, seed: int) -> None:
    handle, _, _, step = env.xla()
    observations, _ = env.reset()  # before the first step
    key, draw = jax.random.split(jax.random.key(seed))
    parameters = first_parameters(draw, env.observation_space.shape[0], int(env.action_space.n))
    zeros = jax.tree.map(jnp.zeros_like, parameters)

    @jax.jit
    def update(rollout: Any, parameters: Any, moments: Any, count: Any) -> Any:
        def act(carry: Any, _: None) -> Any:
            handle, before, key, begins, sums = carry
            key, draw = jax.random.split(key)
            actions = jax.random.categorical(draw, logits(parameters, before))
            handle, (after, rewards, terminated, truncated, _) = step(handle, actions)
            rewards, over = rewards.astype(jnp.float32), terminated | truncated
            # The step after an end only begins the next episode: what was done in it says nothing.
            sums = jnp.where(begins, 0, sums + rewards)
            return (handle, after, key, over, sums), (before, actions, rewards, over, ~begins, sums)

        rollout, seen = jax.lax.scan(act, rollout, length=num_steps)
        before, actions, rewards, over, counts, episode_returns = seen
        returns = returns_of(rewards, over)
        mean = jnp.mean(returns, where=counts)
        weights = (returns - mean) / (jnp.std(returns, where=counts) + 1e-8) * counts
        gradient = jax.grad(loss)(parameters, before, actions, weights)
        parameters, moments = adam(parameters, gradient, moments, count)
        return rollout, parameters, moments, jnp.mean(episode_returns, where=over)

    begins, sums = jnp.zeros(len(observations), bool), jnp.zeros(len(observations))
    state = (handle, jnp.asarray(observations), key, begins, sums), parameters, (zeros, zeros)
    for count in range(1, updates + 1):
        *state, mean_return = update(*state, count)
        if count % 10 == 0 or count == updates:
            print(f"update {count}: mean return {float(mean_return):.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="CartPole-v1", help="default: %(default)s")
    parser.add_argument("--plugin", type=Path, help="a shared library that has the task, if no package has it")
    parser.add_argument("--num-envs", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--num-steps", type=int, default=256, help="between two updates; default: %(default)s")
    parser.add_argument("--updates", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.plugin is not None:
        envpool_sdk.load_plugin(arguments.plugin)
    with closing(envpool_sdk.make(arguments.task, num_envs=arguments.num_envs, seed=arguments.seed)) as env:
        train(env, arguments.num_steps, arguments.updates, arguments.seed)


if __name__ == "__main__":
    main()
