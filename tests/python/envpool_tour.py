"""What a script written for EnvPool sees of a task, in every form: shapes, dtypes, keys, orders, and a trajectory.

test_envpool.py runs it twice, on EnvPool and on this project: python envpool_tour.py '[[task, options], ...]' writes JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from typing import Any

import envpool
import numpy as np

NUM_ENVS, BATCH = 4, 2


def look(value: Any) -> Any:
    """The structure of a result: names, dtypes, shapes, in their order."""
    if isinstance(value, dict):
        return {str(key): look(part) for key, part in value.items()}
    if hasattr(value, "_fields"):
        return {name: look(getattr(value, name)) for name in value._fields}
    if isinstance(value, (tuple, list)):
        return [look(part) for part in value]
    array = np.asarray(value)
    return f"{array.dtype}{list(array.shape)}"


def space(value: Any) -> Any:
    """The structure of a space or of dm_env's spec of an action."""
    if hasattr(value, "spaces"):
        return {name: space(part) for name, part in sorted(value.spaces.items())}
    if hasattr(value, "n"):
        return f"Discrete({int(value.n)})"
    if hasattr(value, "num_values"):
        return f"{value.dtype} {value.num_values} values {value.name}"
    return f"{type(value).__name__} {value.dtype}{list(value.shape)} {getattr(value, 'name', '')}"


def specs(value: Any) -> Any:
    """The structure of dm_env's spec of an observation: names and shapes."""
    if hasattr(value, "_fields"):
        return {name: specs(getattr(value, name)) for name in value._fields}
    return f"{value.name} {value.dtype}{list(value.shape)}"


def actions(env: Any, rows: int, turn: int) -> np.ndarray[Any, Any]:
    """A batch of actions that is a function of the row and the turn."""
    one = env.action_space
    if hasattr(one, "n"):
        return ((np.arange(rows) + turn) % int(one.n)).astype(np.int64)
    wave = np.sin(np.arange(rows * int(np.prod(one.shape))) + turn).reshape(rows, *one.shape)
    floats = (one.low + (one.high - one.low) * (wave + 1) / 2).astype(
        np.float32
    )  # values that float32 has, in any dtype
    return floats.astype(one.dtype)


def dm_actions(env: Any, rows: int) -> np.ndarray[Any, Any]:
    spec = env.action_spec()
    return np.stack([np.asarray(spec.generate_value(), spec.dtype)] * rows)


def synchronous(task: str, env_type: str, options: dict[str, Any]) -> dict[str, Any]:
    env = envpool.make(task, env_type=env_type, num_envs=NUM_ENVS, seed=1, **options)
    spaces = [space(env.observation_space), space(env.action_space)]
    seen: dict[str, Any] = {"len": len(env), "is_async": env.is_async, "spaces": spaces}
    seen["single"] = [space(env.single_observation_space), space(env.single_action_space)]
    seen["all_env_ids"] = look(env.all_env_ids)
    seen["reset"] = look(env.reset())
    seen["step"] = look(env.step(actions(env, NUM_ENVS, 0)))
    some = np.array([3, 0, 2])
    result = env.step(actions(env, 3, 0), some)
    seen["some"] = [look(result), result[-1]["env_id"].tolist(), result[-1]["elapsed_step"].tolist()]
    result = env.step({"action": actions(env, 1, 0), "env_id": np.array([1])})
    seen["dictionary"] = result[-1]["env_id"].tolist()
    seen["reset some"] = look(env.reset(np.array([2, 1])))
    seen["reset none"] = look(env.reset(np.array([], np.int32)))
    seen["send, recv"] = [env.send(actions(env, NUM_ENVS, 0)), look(env.recv())]
    seen["config"] = {
        key: env.config[key] for key in ("num_envs", "batch_size", "max_num_players", "max_episode_steps")
    }
    seen["spec.config"] = [env.spec.config.num_envs, env.spec.config.max_episode_steps, env.spec.config.seed]
    seen["action_array_spec"] = {name: list(one.shape) for name, one in env.spec.action_array_spec.items()}
    env.close()
    return seen


def asynchronous(task: str, env_type: str, options: dict[str, Any]) -> dict[str, Any]:
    env = envpool.make(task, env_type=env_type, num_envs=NUM_ENVS, batch_size=BATCH, seed=1, **options)
    env.async_reset()
    ids: list[int] = []
    steps = np.zeros(NUM_ENVS, int)
    for turn in range(12):
        result = env.recv()
        info = result.observation if env_type == "dm" else result[-1]
        env_id = info.env_id if env_type == "dm" else info["env_id"]
        ids += env_id.tolist()
        if env_type != "dm":
            assert (info["elapsed_step"] <= steps[env_id]).all()
        steps[env_id] += 1
        env.send(dm_actions(env, BATCH) if env_type == "dm" else actions(env, BATCH, turn), env_id)
    seen = {"is_async": env.is_async, "ids": min(ids) >= 0 and max(ids) < NUM_ENVS, "recv": look(result)}
    env.close()
    return seen


def dm(task: str, options: dict[str, Any]) -> dict[str, Any]:
    env = envpool.make(task, env_type="dm", num_envs=NUM_ENVS, seed=1, max_episode_steps=3, **options)
    assert type(env.reset().observation).__name__ == "State"
    seen: dict[str, Any] = {"reset": look(env.reset()), "action_spec": space(env.action_spec())}
    seen["observation_spec"] = specs(env.observation_spec())
    steps = [env.step(dm_actions(env, NUM_ENVS)) for _ in range(4)]
    seen["step"] = look(steps[0])
    seen["types"] = [step.step_type.tolist() for step in steps]
    seen["discounts before the limit"] = [step.discount.tolist() for step in steps[:2]]
    seen["some"] = env.step(dm_actions(env, 2), np.array([3, 1])).observation.env_id.tolist()
    env.close()
    return seen


def trajectory(task: str, options: dict[str, Any], steps: int) -> dict[str, Any]:
    """The observations' hashes and first values, rewards and flags."""
    env = envpool.make(task, env_type="gymnasium", num_envs=NUM_ENVS, seed=1, **options)
    observations, _ = env.reset()
    played: dict[str, Any] = {"hash": [], "values": [], "rewards": [], "terminated": [], "truncated": []}
    for turn in range(steps):
        played["hash"].append([hashlib.sha256(np.ascontiguousarray(row).tobytes()).hexdigest() for row in observations])
        played["values"].append(np.asarray(observations, float).reshape(NUM_ENVS, -1)[:, :64].tolist())
        observations, rewards, terminated, truncated, _ = env.step(actions(env, NUM_ENVS, turn))
        played["rewards"].append(rewards.tolist())
        played["terminated"].append(terminated.tolist())
        played["truncated"].append(truncated.tolist())
    env.close()
    return played


def tour(task: str, options: dict[str, Any], steps: int) -> dict[str, Any]:
    seen: dict[str, Any] = {"listed": task in envpool.list_all_envs()}
    if steps:
        return {**seen, "trajectory": trajectory(task, options, steps)}
    for env_type in ("gymnasium", "gym"):
        seen[env_type] = synchronous(task, env_type, options)
    for env_type in ("gymnasium", "dm"):
        seen[f"{env_type}, asynchronous"] = asynchronous(task, env_type, options)
    return {**seen, "dm": dm(task, options)}


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    sys.stdout.flush()
    quiet = os.dup(1)
    os.dup2(2, 1)  # what engines print
    with contextlib.redirect_stdout(sys.stderr):
        results = [tour(task, options, steps) for task, options, steps in wanted]
    os.write(quiet, json.dumps(results).encode())
