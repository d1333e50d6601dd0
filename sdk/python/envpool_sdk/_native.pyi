"""The native pool: plugins, specs and batches. Private: envpool_sdk's own modules are its only callers."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

__version__: str
ABI_VERSION: tuple[int, int]

class PluginError(ValueError):
    """A file is no usable plugin, or its spec breaks the contract."""

class ClosedError(RuntimeError):
    """The pool is closed."""

class EnvError(RuntimeError):
    """An env failed in create or in its first reset, or envs failed more often than max_faults allows."""

class FieldDict(TypedDict):
    """One typed field; see ep_field in envpool/env.h. dtype is NumPy's name."""

    name: str
    doc: str
    unit: str
    meaning: str
    kind: str  # "box" | "discrete" | "multi_binary" | "text"
    dtype: str
    shape: tuple[int, ...]  # of one env: the agent dimension first, if per_agent
    low: npt.NDArray[Any] | None  # () or the full shape without agents, in dtype; None: unbounded
    high: npt.NDArray[Any] | None
    n: npt.NDArray[np.int64] | None  # () or the full shape without agents
    start: npt.NDArray[np.int64] | None
    per_agent: bool
    ragged: bool
    volatile: bool
    group: int
    layout: str  # "plain" | "hw" | "hwc" | "chw" | "indexed"
    labels: tuple[str, ...]

class SpecDict(TypedDict):
    obs: list[FieldDict]
    action: list[FieldDict]
    info: list[FieldDict]
    globals: list[FieldDict]
    max_agents: int
    max_episode_steps: int  # 0: none
    reward_threshold: float  # NaN: none
    fps: float  # 0: unknown
    agent_names: list[str]  # empty unless the plugin names its agents
    group_names: list[str]

class OptionDict(TypedDict):
    name: str
    doc: str
    unit: str
    type: str  # "bool" | "int" | "float" | "string" | "path" | "array" | "json"
    dtype: str  # of an array's elements, else ""
    default: Any
    min: float | int | None
    max: float | int | None
    choices: list[Any]
    required: bool
    at_reset: bool
    shapes_spec: bool

class TaskDict(TypedDict):
    id: str
    doc: str
    sharing: str  # "one_per_process" | "thread_bound" | "free"
    flags: list[str]  # "main_thread", "own_threads", "nondeterministic", "may_block", "sticky"
    options: list[OptionDict]
    extensions: list[str]  # which of the ids this host knows the task has: "envpool.render/1", ...

class TransformsDict(TypedDict, total=False):
    """What the pool does between env and user; the defaults (in brackets) change nothing. See sdk/runtime/transform.hpp."""

    frame_skip: int  # >= 1 [1]: env steps that an action is repeated for
    max_last_two: bool  # [False]: maximum over the last two frames of a skip
    last_frame: str  # ["true"] | "stale": which frame a skip shows that was cut short
    gray_scale: bool  # [False]
    img_height: int  # [0: unchanged]
    img_width: int
    interpolation: str  # ["area"] | "linear"
    stack_num: int  # >= 1 [1: no stack]: gray (stack, H, W), colour (stack * C, H, W), channels_last (stack, H, W, C)
    stack_pad: str  # ["first"] | "zero"
    channels_last: bool  # [False]
    reward_clip: bool  # [False]: sign
    episodic_life: bool  # [False]
    stop_on_life_loss: bool  # [False]: a lost life cuts the skip short
    life_loss_at_zero: bool  # [False]
    life_loss_reset: str  # ["continue"] | "real"
    noop_min: int  # [1]; noop_min .. noop_min + noop_max - 1 no-ops after a reset
    noop_max: int  # [0]
    use_fire_reset: bool  # [False]
    fire_order: str  # ["last"] | "first"

class Plugin:
    """A loaded plugin. Loading the same file twice gives the same plugin; libraries are never unloaded."""

    def __init__(self, path: str, assets: Mapping[str, str] = {}) -> None:
        """Raises PluginError naming the file and its flaw."""
    path: str
    name: str
    version: str
    license: str
    url: str
    abi: tuple[int, int]
    tasks: dict[str, TaskDict]
    def describe(self, task: str, options: Mapping[str, Any], transforms: TransformsDict) -> SpecDict:
        """The spec after transforms. Raises ValueError for a bad option or transform, naming it and what is allowed."""

class Pool:
    """Steps many envs of one task. Every method may be called from any thread."""

    def __init__(
        self,
        plugin: Plugin,
        task: str,
        options: Sequence[Mapping[str, Any]],  # 1 (for all) or num_envs
        *,
        num_envs: int,
        batch_size: int,  # == num_envs: synchronous
        num_threads: int = 0,  # 0: as many as CPUs may be used, at most batch_size
        thread_affinity_offset: int = -1,  # -1: no affinity
        autoreset: str = "next_step",  # "next_step" | "same_step" | "disabled"
        max_episode_steps: int = -1,  # -1: the spec's; 0: none
        both_flags: bool = False,  # a natural end on the limit step: truncated too (Gymnasium's TimeLimit), or terminated only
        reward_dtype: str = "float64",  # or "float32"
        max_faults: int = 1000,
        transforms: TransformsDict = {},
        isolation: str = "auto",  # "auto" | "thread" | "process"
        worker_command: Sequence[str] = [],  # program and first arguments of worker processes
        guest_library: str = "",  # not empty: the program is a guest, and this the library that it loads
        envs_per_worker: int = 1,
        step_timeout: float | None = None,  # seconds; worker processes only
        reset_timeout: float | None = None,
        pool_columns: Sequence[str] | None = None,  # which of the "pool" columns batches have; None: the first ten
        copy: bool = True,  # False, only if synchronous: every batch is the same arrays, which the next one overwrites
    ) -> None:
        """Makes the envs, in parallel. Raises ValueError, EnvError (an env could not be made: names it and why)."""
    spec: SpecDict  # after transforms
    num_envs: int
    batch_size: int
    num_threads: int  # threads, or worker processes, that run envs at once
    isolation: str  # "thread" | "process"
    closed: bool
    columns: list[tuple[str, str]]
    """What recv's arrays are: (section, name) with sections "obs", "info", "global" (the plugin's fields, transformed;
    a field with lengths is followed by (section + "_length", name): uint32, per agent if per_agent) and "pool":
    "env_id" int32[n], "elapsed_step" int32[n], "reward" [n] or [n, agents] (after reward_clip), "raw_reward" float32
    likewise (before), "terminated", "truncated" bool likewise, "episode_return" float64 likewise (raw, summed since reset),
    "fault" bool[n], and for max_agents > 1 "alive" bool[n, agents], "episode_over" bool[n]. Only if asked for: once more, so
    that who changes one array doesn't change the other, "player_env_id" int32 as env_id but one an agent, "terminated_int32"
    int32 and "time_limit" bool as terminated and truncated.
    Discrete fields of rank 0 are [n]; per-agent fields [n, max_agents, ...]."""
    retained_bytes: int  # memory of batches that is out, held by arrays or free for the next batch
    pending: int  # envs sent and not yet received
    statistics: dict[str, int]  # "steps", "episodes", "faults"
    faults: list[tuple[int, str]]  # (env_id, message) of the latest 1000, oldest first

    def send(self, actions: Sequence[npt.NDArray[Any]], env_ids: npt.NDArray[np.int32] | None = None) -> None:
        """Steps these envs (None: all, in order). One array of shape [len(env_ids), ...] per action field, of its dtype or one
        that NumPy casts to it safely; a field with lengths is followed by uint32 lengths. All is checked before anything is
        enqueued: RuntimeError: copy=False and a batch is in flight;
        ValueError naming the field and what is wrong (shape, dtype, discrete value out of range), ids out of range, given
        twice or in flight; RuntimeError: never reset, or ended (autoreset disabled). Copies; the arrays may change
        afterwards."""
    def check_actions(self, actions: Sequence[npt.NDArray[Any]], env_ids: npt.NDArray[np.int32] | None = None) -> None:
        """Raises ValueError as send() for actions of a wrong shape, dtype or range, and sends nothing. The ids must be in range."""
    def reset(
        self,
        env_ids: npt.NDArray[np.int32] | None = None,
        seeds: npt.NDArray[np.uint64] | None = None,  # one per id; None: go on with each env's generator
        options: Mapping[str, Any] = {},  # EP_OPTION_AT_RESET ones
    ) -> None:
        """Enqueues resets; recv gives their rows. A first reset without seeds takes entropy."""
    def recv(
        self, timeout: float = -1.0
    ) -> tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...] | None, tuple[tuple[int, str], ...]]:
        """The next batch: (columns, final, faults). Synchronous: the rows of the oldest send, in its order. Asynchronous:
        batch_size rows in order of completion, or fewer if no more are in flight. timeout in seconds, negative: none.

        final is None unless autoreset is "same_step" and an episode ended in this batch: then one array for each column,
        in the order of columns, holding the row that the step before the reset would have had, followed by a bool[n]
        mask: rows outside it hold garbage.
        faults: (env_id, message) of rows whose "fault" is set.
        Raises RuntimeError if nothing is in flight, TimeoutError naming the envs waited for (nothing is lost),
        EnvError, ClosedError. Ctrl-C raises KeyboardInterrupt and loses nothing."""
    def step(
        self, actions: Sequence[npt.NDArray[Any]], env_ids: npt.NDArray[np.int32] | None = None
    ) -> tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...] | None, tuple[tuple[int, str], ...]]:
        """send, then recv."""
    def observe(self, env_ids: npt.NDArray[np.int32]) -> tuple[npt.NDArray[Any], ...]:
        """The last row of each env again, without stepping (columns as in recv). Refused for envs in flight. For
        reset_mask: the full batch after a partial reset."""
    def render(self, env_id: int, width: int = 0, height: int = 0, camera: int = 0) -> npt.NDArray[np.uint8]:
        """uint8[height, width, 3]. Refused for an env in flight. ValueError if the task can't render."""
    def save_state(self, env_id: int) -> bytes:
        """The env's and the pool's state of it (frame stack, episode, generator), by envpool.state/1."""
    def load_state(self, env_id: int, state: bytes) -> None:
        """Takes such bytes into any env of a pool made alike; the next observe() and step() go on from there."""
    def lend_to_xla(self) -> int:
        """The number by which programs with xla_handlers name this pool: 64 bits, the same at each call."""
    def close(self, timeout: float = 2.0) -> bool:
        """Stops at once, dropping what is in flight; joins the workers. False if one still hangs in its env after
        timeout seconds (it is left behind). Twice is safe."""

def bare_loop(
    plugin: Plugin,
    task: str,
    options: Mapping[str, Any],
    actions: Sequence[npt.NDArray[Any]],  # as Pool.send takes them: rows taken in turn
    *,
    seconds: float,
    seed: int = 0,
    frame_skip: int = 1,
) -> tuple[int, int, float]:
    """Plays one env on the calling thread, by the ABI's calls alone, for at least these seconds: frame_skip calls of
    step() for each action, then observe() of all fields; no pool, no transform. (actions taken, episodes,
    seconds). Raises ValueError for actions or options that are wrong, EnvError if a call fails, with the plugin's text."""

def resize(
    image: npt.NDArray[np.uint8], height: int, width: int, interpolation: str, isa: str = "best"
) -> npt.NDArray[np.uint8]:
    """uint8[h, w, c] to uint8[height, width, c] by the pool's own kernels, for tests: "nearest" | "linear" | "area", on
    "best" | "generic" | "avx2" | "avx512" (which the CPU must have)."""

def gray(image: npt.NDArray[np.uint8], isa: str = "best") -> npt.NDArray[np.uint8]:
    """uint8[h, w, 3] RGB to uint8[h, w], likewise."""

xla_handlers: dict[str, Any]
"""PyCapsules of XLA FFI handlers, by the name of their custom call; sdk/runtime/xla.hpp says what they take and give."""

def available_cpus() -> int:
    """CPUs that this process may use: affinity and cgroup limits honoured, at least 1."""

def set_log_sink(sink: Any) -> None:
    """Calls sink(level, text) for every line that plugins log; None: stderr."""
