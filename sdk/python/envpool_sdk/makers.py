"""make() and the others by which EnvPool's users get pools and specs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from gymnasium.vector import AutoresetMode

from envpool_sdk import gym_face, making, registry
from envpool_sdk.facade import EnvPool, GymnasiumEnvPool
from envpool_sdk.making import Setup
from envpool_sdk.specs import Spec
from envpool_sdk.workers import Workers

if TYPE_CHECKING:
    from envpool_sdk.dm import DMEnvPool, Environment

ENV_TYPES = ("gymnasium", "gym", "dm")


@overload
def make(task_id: str, env_type: Literal["gymnasium", "gym"] = "gymnasium", **arguments: Any) -> GymnasiumEnvPool: ...
@overload
def make(task_id: str, env_type: Literal["dm"], **arguments: Any) -> DMEnvPool: ...
@overload
def make(task_id: str, env_type: str, **arguments: Any) -> Any: ...
def make(
    task_id: str,
    env_type: str = "gymnasium",
    *,
    num_envs: int = 1,
    batch_size: int = 0,
    num_threads: int = 0,
    seed: int | Sequence[int] = 42,
    max_episode_steps: int | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    thread_affinity_offset: int = -1,
    max_faults: int = 1000,
    isolation: str = "auto",
    envs_per_worker: int = 1,
    step_timeout: float | None = None,
    reset_timeout: float | None = None,
    render_mode: str | None = None,
    render_env_id: int = 0,
    render_width: int = 0,
    render_height: int = 0,
    render_camera_id: int = -1,
    env_kwargs: Sequence[Mapping[str, Any]] | None = None,
    copy: bool = True,
    gym_reset_return_info: bool | None = None,
    zero_discount_on_life_loss: bool = False,
    max_num_players: int | None = None,
    **options: Any,
) -> Any:
    """Makes a pool of envs, in parallel.

    Args:
        task_id: "Pong-v5" or "envpool/Pong-v5"; see `list_all_envs`.
        env_type: "gymnasium": a GymnasiumEnvPool. "gym": where the package gym is installed its spaces, and before gym
            0.26 its forms: see OldGymEnvPool; else as "gymnasium". "dm": a DMEnvPool, which needs the package dm_env.
        num_envs: how many envs.
        batch_size: how many of them a recv() gives; 0: all, which makes the pool synchronous.
        num_threads: 0: as many as CPUs may be used; in a Ray task or actor, as Ray gave it.
        seed: of the first resets: an integer s seeds env i with s + i, a sequence has one for each env.
        max_episode_steps: steps after which an episode is truncated. None: the task's own limit; -1: no limit.
        autoreset_mode: Gymnasium's AutoresetMode, or its value.
        thread_affinity_offset: the first CPU to bind threads to; -1: don't bind.
        max_faults: how many failures of envs to bear before raising EnvError.
        isolation: "thread": threads of this process run the envs; "process": worker processes, so that a crash or
            a hang costs an episode of one env; "auto": processes where the engine needs them.
        envs_per_worker: envs in one worker process, which die together. More than 1 is for cheap envs.
        step_timeout, reset_timeout: seconds after which a worker process that is in one step or reset is killed,
            which is a fault of its envs; None: no limit.
        render_mode: None or "rgb_array".
        render_env_id: the env that render() draws unless told otherwise.
        render_width, render_height: pixels; 0: the env's own.
        render_camera_id: the engine's camera, from 0; -1: the default one.
        env_kwargs: options of the task for each env, on top of the common ones.
        copy: False, for synchronous pools: every batch is the same array objects, which the next one overwrites (of a
            step of some envs, views of their first rows); that saves about a third of a small step. recv() before the next
            send() or reset(). Text and what same-step mode tells of ended episodes are new objects also then.
        gym_reset_return_info: only in gym's old forms may it be False, which it is there unless given: reset() gives the
            observations without an info.
        zero_discount_on_life_loss: a lost life has discount 0, though the episode goes on. For env_type="dm"; the others
            tell of no discounts.
        max_num_players: only the number of agents that the task has.
        options: the task's options and the runtime's transforms (frame_skip, stack_num, img_height, gray_scale,
            reward_clip, ...). An option that the task declares itself goes to the task.

    Raises:
        ValueError: unknown task or option (names the nearest), or a value that is not allowed.
        EnvError: an env can't be made.
    """
    made, face = _setup(task_id, env_type, options, env_kwargs)
    env = face(
        made,
        num_envs=num_envs,
        batch_size=batch_size,
        num_threads=num_threads,
        seed=seed,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        thread_affinity_offset=thread_affinity_offset,
        max_faults=max_faults,
        workers=Workers(isolation, envs_per_worker, step_timeout, reset_timeout),
        copy=copy,
        render_mode=render_mode,
        render_env_id=render_env_id,
        render_width=render_width,
        render_height=render_height,
        render_camera_id=render_camera_id,
        gym_reset_return_info=_return_info(task_id, face, gym_reset_return_info),
        zero_discount_on_life_loss=making.boolean(task_id, "zero_discount_on_life_loss", zero_discount_on_life_loss),
    )
    agents = env.config["max_num_players"]
    if max_num_players not in (None, agents):
        env.close()
        raise ValueError(f"{task_id}: max_num_players={max_num_players!r} must be {agents}, as the task has it")
    return env


def make_gymnasium(task_id: str, **arguments: Any) -> GymnasiumEnvPool:
    """make(task_id, "gymnasium", ...)."""
    return make(task_id, "gymnasium", **arguments)


def make_gym(task_id: str, **arguments: Any) -> GymnasiumEnvPool:
    """make(task_id, "gym", ...)."""
    return make(task_id, "gym", **arguments)


def make_dm(task_id: str, num_envs: int | None = None, **arguments: Any) -> DMEnvPool | Environment:
    """A pool or a single env of dm_env.

    Args:
        task_id: as make().
        num_envs: make(task_id, "dm", num_envs=num_envs, ...), a pool, also of one. None: a single dm_env.Environment,
            without a batch dimension.
        arguments: as make(); of a single env: see `envpool_sdk.dm.Environment`.

    Raises:
        ImportError: the package dm_env is not installed.
    """
    from envpool_sdk import dm

    if num_envs is None:
        return dm.Environment(task_id, **arguments)
    return make(task_id, "dm", num_envs=num_envs, **arguments)


_ARGUMENTS = {
    name: parameter.default
    for name, parameter in inspect.signature(make).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}


def make_spec(task_id: str, env_type: str = "gymnasium", **arguments: Any) -> Spec:
    """The spec of what make() would make with these arguments, without making an env. What only a pool looks at (its
    config's num_threads, isolation, ...) is taken as given.

    Raises:
        ValueError: unknown task, env_type or option, or an option's value that is not allowed.
    """
    config = {name: arguments.pop(name, default) for name, default in _ARGUMENTS.items()}
    made, face = _setup(task_id, env_type, arguments, config["env_kwargs"])
    native = made.describe()
    if config["max_episode_steps"] is None:
        config["max_episode_steps"] = native["max_episode_steps"]
    config["gym_reset_return_info"] = _return_info(task_id, face, config["gym_reset_return_info"])
    config["batch_size"] = config["batch_size"] or config["num_envs"]
    config["max_num_players"] = native["max_agents"]
    return Spec.of(made, native, {**made.values, "task_id": made.id, **config}, face.convert)


def _setup(
    task_id: str, env_type: str, options: Mapping[str, Any], env_kwargs: Sequence[Mapping[str, Any]] | None
) -> tuple[Setup, type[EnvPool]]:
    """The task with its options, and the class of its pools."""
    if env_type not in ENV_TYPES:
        raise ValueError(f"{task_id}: env_type={env_type!r} is unknown. {registry.nearest(str(env_type), ENV_TYPES)}")
    face: type[EnvPool] = GymnasiumEnvPool
    if env_type == "dm":
        from envpool_sdk.dm import DMEnvPool

        face = DMEnvPool
    elif env_type == "gym" and (gym := gym_face.package()) is not None:
        face = gym_face.pool_class(gym)
    return Setup.of(make, task_id, options, env_kwargs), face


def _return_info(task_id: str, face: type[EnvPool], asked: bool | None) -> bool:
    """The value of gym_reset_return_info. Raises ValueError for False where there always is an info."""
    old = issubclass(face, gym_face.OldGymEnvPool)
    if asked is None:
        return not old
    if not making.boolean(task_id, "gym_reset_return_info", asked) and not old:
        raise ValueError(f"{task_id}: gym_reset_return_info=False must be True: only gym before 0.26 gives no info")
    return asked
