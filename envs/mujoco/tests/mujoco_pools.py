"""The native pool, dressed for tests: rows by name, and what a saved state says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from envpool_mujoco.plugin import manifest
from envpool_sdk._native import Plugin, Pool


def plugin() -> Plugin:
    own = manifest()
    assets = own.assets
    return Plugin(own.library, assets() if callable(assets) else assets)


def read_state(data: bytes, model: mujoco.MjModel) -> tuple[np.ndarray, bytes]:
    """Of an env that was just reset, from the bytes of save_state(): its mjSTATE_INTEGRATION, and the model's arrays that
    are its own (see Physics::State in src/physics.hpp)."""
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION)
    at = data.index(struct.pack("<Qd", size, 0.0)) + 8  # the time of a reset is 0
    end = at + 8 * size
    (own,) = struct.unpack_from("<Q", data, end)
    return np.frombuffer(data, np.float64, size, at).copy(), data[end + 8 : end + 8 + own]


class Rows:
    """A pool whose reset and step give {name: array}; observations are "obs" or "obs.NAME", the pool's own "pool.NAME"."""

    def __init__(self, task: str, options: Mapping[str, Any] | None = None, num_envs: int = 1, **settings: Any) -> None:
        settings = {"autoreset": "disabled", **settings}
        self.pool = Pool(plugin(), task, [options or {}], num_envs=num_envs, batch_size=num_envs, **settings)
        self.names = [
            name if section == "info" else f"{section}.{name}".removesuffix(".") for section, name in self.pool.columns
        ]

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.close()

    def reset(self, *seeds: int) -> dict[str, Any]:
        self.pool.reset(None, np.array(seeds, np.uint64) if seeds else None)
        return dict(zip(self.names, self.pool.recv()[0], strict=True))

    def step(self, actions: np.ndarray) -> dict[str, Any]:
        return dict(zip(self.names, self.pool.step([actions])[0], strict=True))

    def observe(self) -> dict[str, Any]:
        return dict(zip(self.names, self.pool.observe(np.arange(self.pool.num_envs, dtype=np.int32)), strict=True))

    def saved(self, model: mujoco.MjModel, env_id: int = 0) -> tuple[np.ndarray, bytes]:
        """What read_state() says of an env that was just reset."""
        return read_state(self.pool.save_state(env_id), model)

    def positions(self, model: mujoco.MjModel, env_id: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """qpos and qvel of an env that was just reset."""
        state, _ = self.saved(model, env_id)
        return state[1 : 1 + model.nq], state[1 + model.nq : 1 + model.nq + model.nv]
