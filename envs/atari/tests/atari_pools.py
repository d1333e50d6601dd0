"""The native pool, dressed for tests: rows by name, transforms by the runtime's own names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from envpool_atari.plugin import manifest
from envpool_sdk._native import Plugin, Pool

ROM_OF = {
    task_id: rom
    for rom, task_id, *_ in (
        line.split() for line in Path(manifest().library).with_name("games.txt").read_text().splitlines()
    )
}
ID_OF = {rom: task_id for task_id, rom in ROM_OF.items()}


def plugin() -> Plugin:
    own = manifest()
    assets = own.assets
    return Plugin(own.library, assets() if callable(assets) else assets)


class Rows:
    """A pool whose reset and step give {name: array}; "obs" is the observation."""

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        options: Mapping[str, Any] | None = None,
        transforms: Mapping[str, Any] | None = None,
        max_episode_steps: int = 0,
    ) -> None:
        self.pool = Pool(
            plugin(),
            ID_OF[game],
            [options or {}],
            num_envs=num_envs,
            batch_size=num_envs,
            max_episode_steps=max_episode_steps,
            transforms=transforms or {},
        )
        self.names = ["obs" if section == "obs" else name if section == "info" else f"pool.{name}"
                      for section, name in self.pool.columns]  # fmt: skip
        self.labels = self.pool.spec["action"][0]["labels"]

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.close()

    def reset(self, *seeds: int) -> dict[str, Any]:
        self.pool.reset(None, np.array(seeds, np.uint64) if seeds else None)
        return dict(zip(self.names, self.pool.recv()[0], strict=True))

    def step(self, *actions: int) -> dict[str, Any]:
        return dict(zip(self.names, self.pool.step([np.array(actions, np.int64)])[0], strict=True))

    def observe(self) -> dict[str, Any]:
        return dict(zip(self.names, self.pool.observe(np.arange(self.pool.num_envs, dtype=np.int32)), strict=True))
