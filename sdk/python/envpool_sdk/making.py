"""From the arguments of make() to a pool: the same for every face."""

from __future__ import annotations

import atexit
import inspect
import json
import math
import operator
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from envpool_sdk import registry
from envpool_sdk._native import EnvError, Plugin, PluginError, Pool, available_cpus
from envpool_sdk.manifest import Manifest
from envpool_sdk.rows import cast as cast_array
from envpool_sdk.workers import DEFAULT, Workers

if TYPE_CHECKING:
    from envpool_sdk._native import OptionDict, SpecDict, TaskDict, TransformsDict


@dataclass(frozen=True)
class Transform:
    """An option that the runtime itself offers for every task."""

    default: Any
    """Changes nothing."""
    allowed: str
    doc: str


TRANSFORMS = {
    "frame_skip": Transform(1, "at least 1", "env steps that an action is repeated for; rewards are summed"),
    "max_last_two": Transform(False, "", "shows the maximum over the last two frames of a skip"),
    "last_frame": Transform("true", "'true', 'stale'", "which frame a skip shows that was cut short"),
    "gray_scale": Transform(False, "", "makes images gray"),
    "img_height": Transform(None, "at least 1", "pixels of an image; None: as the env has it"),
    "img_width": Transform(None, "at least 1", "pixels of an image; None: as the env has it"),
    "interpolation": Transform("area", "'area', 'linear'", "how images are resized"),
    "stack_num": Transform(1, "at least 1", "how many frames are stacked, the newest last"),
    "stack_pad": Transform("first", "'first', 'zero'", "what a stack is filled with at a reset"),
    "channels_last": Transform(False, "", "puts the channels of an image last"),
    "reward_clip": Transform(False, "", "gives the sign of the reward"),
    "episodic_life": Transform(False, "", "a lost life terminates the episode"),
    "stop_on_life_loss": Transform(False, "", "a lost life cuts the skip short"),
    "life_loss_at_zero": Transform(False, "", "falling to no lives counts as a loss too"),
    "life_loss_reset": Transform("continue", "'continue', 'real'", "what a reset after a lost life does to the game"),
    "noop_min": Transform(1, "at least 0", "a reset is followed by noop_min .. noop_min + noop_max - 1 no-ops"),
    "noop_max": Transform(0, "at least 0", "see noop_min; 0: none"),
    "use_fire_reset": Transform(False, "", "a reset is followed by FIRE, where there is such an action"),
    "fire_order": Transform("last", "'first', 'last'", "where that FIRE stands, relative to the no-ops"),
}
"""By name. sdk/runtime/transform.hpp and docs/dev/atari-semantics.md say more."""

AREA_RESIZE = "use_inter_area_resize"
"""EnvPool's option for what is interpolation="area" or "linear" here."""

IMAGE_SIZES = frozenset({"img_height", "img_width"})

RENDER = "envpool.render/1"

MOST_ENVS = 2**20
"""The most envs that a pool can have."""

MOST_CAMERAS = 2**32 - 1
"""The highest number that a camera can have."""

_INT64, _UINT32 = 2**63 - 1, 2**32 - 1

_NO_ARGUMENTS = frozenset({"self", "options", "task_id"})


@dataclass(frozen=True)
class Setup:
    """A task with its options, checked as far as that needs no env: what a pool is opened from."""

    id: str
    manifest: Manifest
    plugin: Plugin
    task: TaskDict
    options: tuple[Mapping[str, Any], ...]
    """The plugin's options: for all envs alike, or for each one."""
    transforms: TransformsDict

    @classmethod
    def of(
        cls,
        maker: Callable[..., Any],
        task_id: str,
        options: Mapping[str, Any],
        env_kwargs: Sequence[Mapping[str, Any]] | None = None,
    ) -> Setup:
        """Finds the task, loads its plugin and sorts the options: one that the plugin declares goes to the plugin,
        else it is a transform.

        Args:
            maker: what the user called, whose own arguments are suggested for a misspelt option too.
            task_id: "Pong-v5" or "envpool/Pong-v5".
            options: by name; those that are not given have the task's defaults.
            env_kwargs: the plugin's options for each env, on top of those.

        Raises:
            ValueError: no such task or option (names the nearest), an option given twice by two names.
            PluginError: the plugin can't be loaded.
        """
        entry = registry.find(task_id)
        plugin = registry.load(entry.manifest)
        if entry.task.id not in plugin.tasks:
            raise PluginError(
                f"{plugin.path}: has no task {entry.task.id!r}, which the manifest {entry.manifest.name!r} promises."
                f" It has {', '.join(plugin.tasks)}."
            )
        task = plugin.tasks[entry.task.id]
        declared = _declared(task)
        known = frozenset(inspect.signature(maker).parameters)
        defaults = dict(entry.task.defaults)
        if entry.task.more_defaults is not None:
            defaults |= entry.task.more_defaults({**defaults, **options})
        plain, transforms = _sort(defaults, declared, task_id)
        given, given_transforms = _sort(options, declared, task_id, known)
        plain |= given
        transforms |= given_transforms
        each = [plain]
        if env_kwargs is not None:
            if isinstance(env_kwargs, Mapping) or not isinstance(env_kwargs, Iterable):
                raise ValueError(
                    f"{task_id}: env_kwargs={env_kwargs!r} must be a list with one dictionary for each env"
                )
            each = []
            for i, one in enumerate(env_kwargs):
                if not isinstance(one, Mapping):
                    raise ValueError(f"{task_id}: env_kwargs[{i}]={one!r} must be a dictionary of options")
                more, misplaced = _sort(one, declared, f"{task_id}: env_kwargs[{i}]")
                if misplaced:
                    raise ValueError(
                        f"{task_id}: env_kwargs[{i}]: {next(iter(misplaced))!r} is the same for all envs of a pool:"
                        " give it to make() itself"
                    )
                each.append(plain | more)
        return cls(task_id, entry.manifest, plugin, task, tuple(each), cast("TransformsDict", transforms))

    @property
    def renders(self) -> bool:
        """Whether the task can draw itself."""
        return RENDER in self.task["extensions"]

    @property
    def values(self) -> dict[str, Any]:
        """All options and transforms with their values, defaults included (transforms: those that are set)."""
        defaults = {option["name"]: option["default"] for option in self.task["options"]}
        return {**self.transforms, **defaults, **self.options[0]}

    def describe(self) -> SpecDict:
        """The spec, transformed, without a pool. Raises ValueError for a bad value, naming what is allowed."""
        return self.plugin.describe(self.task["id"], self.options[0], self.transforms)

    def open(
        self,
        owner: Any,
        *,
        num_envs: int,
        batch_size: int,
        num_threads: int,
        thread_affinity_offset: int = -1,
        autoreset_mode: AutoresetMode,
        max_episode_steps: int | None,
        both_flags: bool,
        reward_dtype: str,
        max_faults: int = 1000,
        pool_columns: Sequence[str],
        copy: bool = True,
        workers: Workers = DEFAULT,
    ) -> Pool:
        """Makes the envs. The owner's close() is called at the interpreter's exit.

        Args:
            max_episode_steps: None: the task's own; -1: no limit.
            workers: threads or processes.
            pool_columns: which of the pool's own columns batches have.
            copy: False: all batches are the same arrays.

        Raises:
            ValueError: an argument out of its range, or the value of an option; EnvError: an env can't be made.
        """
        num_envs = integer(self.id, "num_envs", num_envs, 1, MOST_ENVS)
        batch_size = integer(self.id, "batch_size", batch_size, least=0) or num_envs
        if batch_size > num_envs:
            raise ValueError(f"{self.id}: batch_size={batch_size} must be at most num_envs={num_envs}; 0: num_envs")
        if len(self.options) not in (1, num_envs):
            raise ValueError(f"{self.id}: env_kwargs has {len(self.options)} entries for num_envs={num_envs}")
        pool = Pool(
            self.plugin,
            self.task["id"],
            self.options,
            num_envs=num_envs,
            batch_size=batch_size,
            num_threads=_threads(self.id, num_threads, num_envs, batch_size),
            thread_affinity_offset=integer(self.id, "thread_affinity_offset", thread_affinity_offset, -1, _INT64),
            autoreset=autoreset_mode.name.lower(),
            max_episode_steps=_limit(self.id, max_episode_steps),
            both_flags=both_flags,
            reward_dtype=reward_dtype,
            max_faults=integer(self.id, "max_faults", max_faults, 0, _INT64),
            envs_per_worker=integer(self.id, "envs_per_worker", workers.envs_per_worker, 1, MOST_ENVS),
            **workers.arguments(self.id, self.manifest),
            transforms=self.transforms,
            pool_columns=pool_columns,
            copy=boolean(self.id, "copy", copy),
        )
        _owners.add(owner)
        return pool

    def reset_options(self, options: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The options of a reset, if all of them may be given then; else ValueError naming those that may."""
        if options is None:
            return {}
        if not isinstance(options, Mapping):
            raise ValueError(f"{self.id}: options={options!r} of reset() must be a dictionary")
        allowed = {name: option for name, option in _declared(self.task).items() if option["at_reset"]}
        for name in options:
            if name not in allowed:
                hint = registry.nearest(str(name), allowed)
                raise ValueError(f"{self.id}: options[{name!r}] of reset() is no option that may be given then. {hint}")
        return {name: _plain(value, allowed[name], f"{self.id}: option {name}") for name, value in options.items()}


def _declared(task: TaskDict) -> dict[str, OptionDict]:
    return {option["name"]: option for option in task["options"]}


def _plain(value: Any, option: OptionDict | None, where: str) -> Any:
    """The value in the types that the native module takes.

    Raises:
        ValueError: it is no array, text or JSON of the option's type.
    """
    if option is not None and option["type"] == "array":
        return cast_array(value, np.dtype(option["dtype"]), where)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, os.PathLike)):
        value = os.fsdecode(value)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where}={value!r} is not UTF-8: {error}") from None
    if option is not None and option["type"] == "json" and not isinstance(value, str):
        try:
            return json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}={value!r} is not JSON: {error}") from None
    return value


def _sort(
    options: Mapping[str, Any], declared: Mapping[str, OptionDict], where: str, known: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the plugin, and transforms by the runtime's names."""
    plain: dict[str, Any] = {}
    transforms: dict[str, Any] = {}
    for name, value in options.items():
        if name in declared:
            plain[name] = _plain(value, declared[name], f"{where}: option {name}")
        elif name in IMAGE_SIZES:
            transforms[name] = _image_size(value, f"{where}: {name}")
        elif name in TRANSFORMS:
            transforms[name] = _plain(value, None, f"{where}: option {name}")
        elif name == AREA_RESIZE:
            if "interpolation" in options:
                raise ValueError(
                    f"{where}: {name!r} sets 'interpolation', which is given as well: give only one of them"
                )
            if not isinstance(value, (bool, np.bool_)):
                raise ValueError(f"{where}: {name}={value!r} must be a bool")
            transforms["interpolation"] = "area" if value else "linear"
        else:
            hint = registry.nearest(
                str(name), declared.keys() | TRANSFORMS.keys() | {AREA_RESIZE} | known - _NO_ARGUMENTS
            )
            raise ValueError(f"{where}: there is no option {name!r}. {hint or 'See envpool-sdk info.'}")
    return plain, transforms


def _image_size(value: Any, where: str) -> Any:
    """Pixels as the pool takes them: 0 leaves the size alone, for which users say None."""
    if value is None:
        return 0
    if value == 0 and not isinstance(value, bool):
        raise ValueError(f"{where}={value!r} must be at least 1, or None: as the env has it")
    return _plain(value, None, where)


# ---- arguments --------------------------------------------------------------


def integer(task_id: str, name: str, value: Any, least: int, most: float = math.inf) -> int:
    """The value as an int, if it is a whole number, neither below the least nor above the most; else ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most or isinstance(value, bool):
        bound = f"at most {most}" if number > most else f"at least {least}"
        raise ValueError(f"{task_id}: {name}={value!r} must be an integer, {bound}")
    return number


def boolean(task_id: str, name: str, value: Any) -> bool:
    """The value, if it is a bool; else ValueError."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{task_id}: {name}={value!r} must be a bool")
    return bool(value)


def autoreset(task_id: str, mode: AutoresetMode | str) -> AutoresetMode:
    """The mode itself, or by its value ("NextStep") or its name ("next_step"); else ValueError."""
    if isinstance(mode, AutoresetMode):
        return mode
    for one in AutoresetMode:
        if str(mode).lower() in (one.name.lower(), one.value.lower()):
            return one
    raise ValueError(
        f"{task_id}: autoreset_mode={mode!r} must be one of {', '.join(repr(m.value) for m in AutoresetMode)}"
    )


def render_mode(setup: Setup, mode: str | None) -> str | None:
    """The mode, if the task has it; else ValueError."""
    if mode is not None and (mode != "rgb_array" or not setup.renders):
        allowed = "None or 'rgb_array'" if setup.renders else "None: this task draws no pictures"
        raise ValueError(f"{setup.id}: render_mode={mode!r} must be {allowed}")
    return mode


def camera(task_id: str, width: int, height: int, camera_id: int) -> tuple[int, int, int]:
    """What Pool.render() takes, checked; else ValueError."""
    return (
        integer(task_id, "render_width", width, 0, _UINT32),
        integer(task_id, "render_height", height, 0, _UINT32),
        integer(task_id, "render_camera_id", camera_id, 0, MOST_CAMERAS),
    )


def metadata(setup: Setup, spec: SpecDict) -> dict[str, Any]:
    """Gymnasium's metadata: only what works."""
    if not setup.renders:
        return {"render_modes": []}
    return {"render_modes": ["rgb_array"], "render_fps": spec["fps"] or 30}


def pool_columns(pool: Pool) -> dict[str, int]:
    """Where the pool's own columns stand, by name."""
    return {name: i for i, (section, name) in enumerate(pool.columns) if section == "pool"}


def shows_raw_reward(setup: Setup, spec: SpecDict) -> bool:
    """Whether Gymnasium's faces put the unclipped reward into the info: it is clipped, and no info field has its name."""
    return bool(setup.transforms.get("reward_clip")) and all(field["name"] != "reward" for field in spec["info"])


def gymnasium_columns(setup: Setup) -> list[str]:
    """Those of the pool's own columns that Gymnasium's faces look at."""
    return ["reward", "terminated", "truncated", *(["raw_reward"] if setup.transforms.get("reward_clip") else [])]


def single_agent(task_id: str, spec: SpecDict) -> None:
    """Raises ValueError for a task of several agents, which Gymnasium's faces can't express."""
    if spec["max_agents"] > 1:
        raise ValueError(
            f"{task_id}: has {spec['max_agents']} agents, and Gymnasium's API is for one: use envpool_sdk.make()"
        )


def granted_cpus() -> int:
    """CPUs that Ray gave to the task or actor that this is, which it doesn't bind to them; 0: it is none, or asked for none."""
    ray = sys.modules.get("ray")  # not there unless the process uses it
    if ray is None or not ray.is_initialized() or ray.get_runtime_context().worker.mode != ray.WORKER_MODE:
        return 0
    cpus: float = ray.get_runtime_context().get_assigned_resources().get("CPU", 0)
    return math.ceil(cpus)


def _threads(task_id: str, num_threads: Any, num_envs: int, batch_size: int) -> int:
    number = integer(task_id, "num_threads", num_threads, least=0)
    if number == 0:  # which the pool takes for all CPUs
        return min(granted_cpus(), available_cpus(), batch_size)
    most = min(num_envs, 16 * available_cpus())
    if number > most:
        warnings.warn(
            f"{task_id}: num_threads={number} is more than {num_envs} envs on {available_cpus()} CPUs can use:"
            f" taking {most}",
            stacklevel=5,
        )
    return min(number, most)


def _limit(task_id: str, max_episode_steps: int | None) -> int:
    """As the pool takes it: -1 the task's own, 0 none."""
    if max_episode_steps is None:
        return -1
    if max_episode_steps == -1:
        return 0
    try:
        return integer(task_id, "max_episode_steps", max_episode_steps, 1, _INT64)
    except ValueError as error:
        raise ValueError(f"{error}; -1: no limit, None: the task's own") from None


# ---- resets -----------------------------------------------------------------

SEED_MASK = 2**64 - 1
"""Gymnasium's seeds are unbounded; an engine takes their lowest 64 bits."""


def env_ids_of(task_id: str, env_id: Any, num_envs: int) -> npt.NDArray[np.int32]:
    """The envs that a user names: int32[k]. Whether one is named twice or in flight is for others to see.

    Raises:
        ValueError: it is no list of numbers from 0 to num_envs - 1.
    """
    ids = np.atleast_1d(cast_array(env_id, np.dtype(np.int32), f"{task_id}: env_id"))
    if ids.ndim != 1:
        raise ValueError(f"{task_id}: env_id must be a list of envs, not of shape {ids.shape}")
    if np.asarray(env_id).dtype == np.bool_:
        raise ValueError(f"{task_id}: env_id must be a list of envs, not a mask: np.flatnonzero() makes one")
    wrong = ids[(ids < 0) | (ids >= num_envs)]
    if len(wrong):
        raise ValueError(f"{task_id}: env_id {int(wrong[0])}, allowed: 0 .. {num_envs - 1}")
    return ids


def seeds_of(
    task_id: str, seed: int | Sequence[int | None] | npt.NDArray[Any] | None, env_ids: npt.NDArray[np.int32]
) -> list[int | None]:
    """An engine seed for each of these envs.

    Args:
        seed: an integer s gives env i the seed s + i; a sequence holds one seed per env; None, also as an entry: the
            env goes on with its generator.

    Raises:
        ValueError: a seed is negative or no integer, or their number is wrong.
    """
    if seed is None:
        return [None] * len(env_ids)
    if isinstance(seed, np.ndarray):
        seed = seed.tolist()
    if not isinstance(seed, Sequence) or isinstance(seed, (str, bytes)):
        first = integer(task_id, "seed", seed, least=0)
        return [(first + i) & SEED_MASK for i in env_ids.tolist()]
    if len(seed) != len(env_ids):
        raise ValueError(f"{task_id}: seed has {len(seed)} entries for {len(env_ids)} envs")
    return [
        None if one is None else integer(task_id, f"seed[{i}]", one, least=0) & SEED_MASK for i, one in enumerate(seed)
    ]


def resets(
    env_ids: npt.NDArray[np.int32], seeds: Sequence[int | None]
) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64] | None]]:
    """The resets that give each of these envs its seed, or none: env ids and their seeds, as Pool.reset() takes them."""
    seeded = np.array([seed is not None for seed in seeds], np.bool_)
    numbers = np.array([seed for seed in seeds if seed is not None], np.uint64)
    return [(ids, one) for ids, one in ((env_ids[seeded], numbers), (env_ids[~seeded], None)) if len(ids)]


def reset_now(
    pool: Pool, env_ids: npt.NDArray[np.int32], seeds: Sequence[int | None], options: Mapping[str, Any]
) -> tuple[tuple[npt.NDArray[Any], ...] | None, tuple[tuple[int, str], ...]]:
    """Resets these envs of a synchronous pool in which none is in flight. Returns the columns, or None if they came in
    parts and are to be asked for by observe(); and the faults."""
    columns = None
    faults: tuple[tuple[int, str], ...] = ()
    parts = resets(env_ids, seeds)
    for ids, ids_seeds in parts:
        pool.reset(ids, ids_seeds, options)
        columns, _, more = pool.recv()
        faults += more
    return columns if len(parts) == 1 else None, faults


def drain(pool: Pool) -> None:
    """Drops the rows that an interrupted or failed call left in flight, for faces whose users can't receive them."""
    pending = pool.pending
    while pending:
        try:
            pool.recv()
        except EnvError:  # of one of those rows, or for good
            if pool.pending == pending:
                raise
        pending = pool.pending


# ---- pickling ---------------------------------------------------------------


def refuse_pickling(pool: Any, protocol: Any = None) -> NoReturn:
    """Raises TypeError, as the __reduce_ex__ of every face: envs live in one process."""
    raise TypeError(
        f"cannot pickle or copy {pool}: its envs live in this process. Pass the task's id and the options, and make them"
        " where they are needed; envpool_sdk.ray.RayPool does so on several machines"
    )


# ---- the end ----------------------------------------------------------------

_owners: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    deadline = time.monotonic() + 1.0
    for owner in list(_owners):
        owner.close(timeout=max(0.0, deadline - time.monotonic()))
