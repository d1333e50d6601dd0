"""The structs and constants of envpool/env.h and its extensions, as ctypes sees them.

Functions take addresses (integers), so that arguments can lie wherever a check wants them. A test compares every size,
offset and constant with the headers.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_char_p, c_double, c_int32, c_int64, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

MAJOR, MINOR = 1, 0
SYMBOL = "envpool_plugin_v1"

STATUS = {
    0: "EP_OK",
    -1: "EP_E_FAILED",
    -2: "EP_E_ARGUMENT",
    -3: "EP_E_UNSUPPORTED",
    -4: "EP_E_STATE",
    -5: "EP_E_NOMEM",
    -6: "EP_E_NOT_FOUND",
    -7: "EP_E_CANCELLED",
    -8: "EP_E_BROKEN",
}
OK, E_FAILED, E_ARGUMENT, E_STATE, E_NOMEM, E_NOT_FOUND, E_CANCELLED = 0, -1, -2, -4, -5, -6, -7

DTYPES = {
    108: "bool",
    208: "uint8",
    216: "uint16",
    232: "uint32",
    264: "uint64",
    308: "int8",
    316: "int16",
    332: "int32",
    364: "int64",
    416: "float16",
    432: "float32",
    464: "float64",
}
BOOL, UINT8, INT8 = 108, 208, 308

ROLES = {1: "obs", 2: "action", 3: "info", 4: "global"}
OBS, ACTION, INFO, GLOBAL = 1, 2, 3, 4
PLAIN, HW, HWC, CHW, INDEXED = 0, 1, 2, 3, 4
BOX, DISCRETE, MULTI_BINARY, TEXT = 1, 2, 3, 4
FIELD_PER_AGENT, FIELD_RAGGED, FIELD_VOLATILE = 1 << 0, 1 << 1, 1 << 16

T_BOOL, T_INT, T_FLOAT, T_STRING, T_PATH, T_ARRAY, T_JSON = 1, 2, 3, 4, 5, 6, 7
TYPES = {1: "bool", 2: "int", 3: "float", 4: "string", 5: "path", 6: "array", 7: "json"}
OPTION_REQUIRED, OPTION_AT_RESET, OPTION_SHAPES_SPEC = 1, 2, 4

ONE_PER_PROCESS, THREAD_BOUND, FREE = 0, 1, 2
TASK_MAIN_THREAD = 1 << 0
TASK_OWN_THREADS, TASK_NONDETERMINISTIC, TASK_MAY_BLOCK, TASK_STICKY = 1 << 32, 1 << 33, 1 << 34, 1 << 35

EXT_AGENTS, EXT_BATCH, EXT_RENDER, EXT_STATE = (
    "envpool.agents/1",
    "envpool.batch/1",
    "envpool.render/1",
    "envpool.state/1",
)
RGB8, RGBA8, DEPTH_F32, ANSI = 1, 2, 3, 4
STATE_CLONE, STATE_PERSIST = 1, 2

_status = c_int32


def status_name(status: int) -> str:
    """ "EP_E_STATE", or the number of a status that env.h does not name."""
    return STATUS.get(status, f"the status {status}")


class Value(ctypes.Structure):
    """ep_value."""

    _fields_ = [
        ("type", c_int32),
        ("dtype", c_int32),
        ("i", c_int64),
        ("f", c_double),
        ("s", c_void_p),
        ("data", c_void_p),
        ("count", c_uint64),
    ]


class Field(ctypes.Structure):
    """ep_field."""

    _fields_ = [
        ("size", c_uint32),
        ("role", c_int32),
        ("kind", c_int32),
        ("dtype", c_int32),
        ("name", c_char_p),
        ("doc", c_char_p),
        ("unit", c_char_p),
        ("shape", c_void_p),
        ("low", c_void_p),
        ("high", c_void_p),
        ("n", c_void_p),
        ("start", c_void_p),
        ("rank", c_uint32),
        ("bound_count", c_uint32),
        ("flags", c_uint32),
        ("group", c_uint32),
        ("layout", c_int32),
        ("reserved", c_uint32),
        ("meaning", c_char_p),
        ("labels", c_void_p),
        ("palette", c_void_p),
        ("gray", c_void_p),
    ]


class Option(ctypes.Structure):
    """ep_option."""

    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("name", c_char_p),
        ("doc", c_char_p),
        ("unit", c_char_p),
        ("def", Value),
        ("min", c_void_p),
        ("max", c_void_p),
        ("choices", c_void_p),
        ("choice_count", c_uint32),
        ("reserved", c_uint32),
    ]


Add = CFUNCTYPE(_status, c_void_p, c_void_p)


class Spec(ctypes.Structure):
    """ep_spec."""

    _fields_ = [
        ("size", c_uint32),
        ("max_agents", c_uint32),
        ("max_episode_steps", c_int64),
        ("reward_threshold", c_double),
        ("fps", c_double),
        ("ctx", c_void_p),
        ("add", Add),
    ]


HostExtension = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
Log = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
Explain = CFUNCTYPE(None, c_void_p, c_char_p)
Asset = CFUNCTYPE(_status, c_void_p, c_char_p, c_void_p, c_uint64, c_void_p)
Cancelled = CFUNCTYPE(c_int32, c_void_p)


class Host(ctypes.Structure):
    """ep_host."""

    _fields_ = [
        ("size", c_uint32),
        ("abi_major", c_uint16),
        ("abi_minor", c_uint16),
        ("ctx", c_void_p),
        ("name", c_char_p),
        ("version", c_char_p),
        ("extension", HostExtension),
        ("log", Log),
        ("explain", Explain),
        ("asset", Asset),
        ("cancelled", Cancelled),
    ]


class Input(ctypes.Structure):
    """ep_input."""

    _fields_ = [("size", c_uint32), ("agents", c_uint32), ("action", c_void_p), ("action_length", c_void_p)]


class Result(ctypes.Structure):
    """ep_result."""

    _fields_ = [
        ("size", c_uint32),
        ("agents", c_uint32),
        ("reward", c_void_p),
        ("terminated", c_void_p),
        ("truncated", c_void_p),
        ("alive", c_void_p),
        ("episode_over", c_void_p),
    ]


class View(ctypes.Structure):
    """ep_view."""

    _fields_ = [
        ("size", c_uint32),
        ("agents", c_uint32),
        ("obs", c_void_p),
        ("info", c_void_p),
        ("global", c_void_p),
        ("obs_length", c_void_p),
        ("info_length", c_void_p),
        ("global_length", c_void_p),
    ]


class Reset(ctypes.Structure):
    """ep_reset."""

    _fields_ = [
        ("size", c_uint32),
        ("has_seed", c_uint32),
        ("seed", c_uint64),
        ("options", c_void_p),
        ("option_count", c_uint32),
        ("reserved", c_uint32),
    ]


class Create(ctypes.Structure):
    """ep_create."""

    _fields_ = [("size", c_uint32), ("option_count", c_uint32), ("options", c_void_p), ("env_id", c_uint64)]


Describe = CFUNCTYPE(_status, c_void_p, c_void_p, c_void_p)
MakeEnv = CFUNCTYPE(_status, c_void_p, c_void_p, c_void_p)
ResetEnv = CFUNCTYPE(_status, c_void_p, c_void_p)
Step = CFUNCTYPE(_status, c_void_p, c_void_p, c_void_p)
Observe = CFUNCTYPE(_status, c_void_p, c_void_p)
Destroy = CFUNCTYPE(None, c_void_p)
TaskExtension = CFUNCTYPE(c_void_p, c_char_p)


class Task(ctypes.Structure):
    """ep_task."""

    _fields_ = [
        ("size", c_uint32),
        ("sharing", c_int32),
        ("flags", c_uint64),
        ("id", c_char_p),
        ("doc", c_char_p),
        ("options", c_void_p),
        ("option_count", c_uint32),
        ("reserved", c_uint32),
        ("describe", Describe),
        ("create", MakeEnv),
        ("reset", ResetEnv),
        ("step", Step),
        ("observe", Observe),
        ("destroy", Destroy),
        ("extension", TaskExtension),
    ]


class Plugin(ctypes.Structure):
    """ep_plugin."""

    _fields_ = [
        ("size", c_uint32),
        ("abi_major", c_uint16),
        ("abi_minor", c_uint16),
        ("host_minor", c_uint16),
        ("reserved", c_uint16),
        ("task_count", c_uint32),
        ("tasks", c_void_p),
        ("name", c_char_p),
        ("version", c_char_p),
        ("license", c_char_p),
        ("url", c_char_p),
    ]


Entry = CFUNCTYPE(c_void_p, c_void_p)

AgentName = CFUNCTYPE(c_char_p, c_uint32)


class Agents(ctypes.Structure):
    """ep_agents."""

    _fields_ = [("size", c_uint32), ("group_count", c_uint32), ("name", AgentName), ("group", AgentName)]


class Column(ctypes.Structure):
    """ep_column."""

    _fields_ = [("data", c_void_p), ("row_bytes", c_uint64)]


class Rows(ctypes.Structure):
    """ep_rows. Its member `in` is spelled in_ here."""

    _fields_ = [
        ("size", c_uint32),
        ("count", c_uint32),
        ("env", c_void_p),
        ("in_", c_void_p),
        ("out", c_void_p),
        ("action", c_void_p),
        ("obs", c_void_p),
        ("info", c_void_p),
        ("reward", c_void_p),
        ("terminated", c_void_p),
        ("truncated", c_void_p),
        ("status", c_void_p),
    ]


StepMany = CFUNCTYPE(_status, c_void_p)


class Batch(ctypes.Structure):
    """ep_batch."""

    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("step_many", StepMany)]


class Image(ctypes.Structure):
    """ep_image."""

    _fields_ = [
        ("size", c_uint32),
        ("format", c_int32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("camera", c_uint32),
        ("reserved", c_uint32),
        ("row_bytes", c_uint64),
        ("pixels", c_void_p),
    ]


Draw = CFUNCTYPE(_status, c_void_p, c_void_p)


class Render(ctypes.Structure):
    """ep_render."""

    _fields_ = [("size", c_uint32), ("formats", c_uint32), ("measure", Draw), ("draw", Draw)]


Write = CFUNCTYPE(_status, c_void_p, c_void_p, c_uint64)


class Writer(ctypes.Structure):
    """ep_writer."""

    _fields_ = [("ctx", c_void_p), ("write", Write)]


Save = CFUNCTYPE(_status, c_void_p, c_int32, c_void_p)
Load = CFUNCTYPE(_status, c_void_p, c_int32, c_void_p, c_uint64)


class State(ctypes.Structure):
    """ep_state."""

    _fields_ = [("size", c_uint32), ("purposes", c_uint32), ("save", Save), ("load", Load)]


EXTENSIONS: dict[str, type[Any]] = {EXT_AGENTS: Agents, EXT_BATCH: Batch, EXT_RENDER: Render, EXT_STATE: State}

STRUCTS: dict[str, type[Any]] = {
    "ep_value": Value,
    "ep_field": Field,
    "ep_option": Option,
    "ep_spec": Spec,
    "ep_host": Host,
    "ep_input": Input,
    "ep_result": Result,
    "ep_view": View,
    "ep_reset": Reset,
    "ep_create": Create,
    "ep_task": Task,
    "ep_plugin": Plugin,
    "ep_agents": Agents,
    "ep_column": Column,
    "ep_rows": Rows,
    "ep_batch": Batch,
    "ep_image": Image,
    "ep_render": Render,
    "ep_writer": Writer,
    "ep_state": State,
}
