"""What RayPool and its nodes do with batches and actions: join them, take rows, record them.

Batches are nested in dictionaries and tuples, as field names say. Their leaves are arrays [n, ...], but texts are tuples of n
str: what is a leaf is told by a batch of no rows, in which only those are ().
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from envpool_sdk.facade import Step

# ---- batches ----------------------------------------------------------------


def row_count(batch: Step) -> int:
    """How many rows a batch has."""
    return len(batch[4]["env_id"])


def faults_of(info: Mapping[str, Any]) -> list[tuple[int, str]]:
    """(env_id, message) of the rows of a batch that tell of a fault."""
    if "fault" not in info:
        return []
    return [(i, text) for i, text in zip(info["env_id"].tolist(), info["fault"], strict=True) if text is not None]


def map_leaves(function: Callable[..., Any], no_rows: Any, *trees: Any) -> Any:
    """The tree of what the function gives for the leaves of these trees that stand in one place."""
    if isinstance(no_rows, dict):
        return {key: map_leaves(function, part, *(tree[key] for tree in trees)) for key, part in no_rows.items()}
    if isinstance(no_rows, tuple) and no_rows:
        return tuple(map_leaves(function, part, *parts) for part, *parts in zip(no_rows, *trees, strict=True))
    return function(*trees)


def joined(no_rows: Step, batches: Sequence[Step]) -> Step:
    """The rows of these batches in one."""
    if len(batches) == 1:
        return batches[0]

    def join(*leaves: Any) -> Any:
        return sum(leaves, ()) if isinstance(leaves[0], tuple) else np.concatenate(leaves)

    batch: Step = map_leaves(join, no_rows, *batches)
    if any("fault" in info for *_, info in batches):
        batch[4]["fault"] = np.concatenate(
            [info.get("fault", np.full(len(info["env_id"]), None, object)) for *_, info in batches]
        )
    return batch


def chosen(no_rows: Step, batch: Step, rows: npt.NDArray[np.intp]) -> Step:
    """These rows of a batch, in this order; one may be given often."""

    def choose(leaf: Any) -> Any:
        return tuple(leaf[i] for i in rows) if isinstance(leaf, tuple) else leaf[rows]

    result: Step = map_leaves(choose, no_rows, batch)
    if "fault" in batch[4]:
        result[4]["fault"] = batch[4]["fault"][rows]
    return result


class Record:
    """Batches of n rows, one a step, in arrays [steps, n, ...]; texts in arrays of objects."""

    def __init__(self, no_rows: Any, steps: int, n: int) -> None:
        self._no_rows = no_rows

        def made(leaf: Any) -> npt.NDArray[Any]:
            if isinstance(leaf, tuple):
                return np.empty((steps, n), object)
            return np.empty((steps, n, *leaf.shape[1:]), leaf.dtype)

        self.tree = map_leaves(made, no_rows, no_rows)

    def write(self, step: int, batch: Any) -> None:
        def put(record: npt.NDArray[Any], leaf: Any) -> None:
            if isinstance(leaf, tuple):
                leaf = np.fromiter(leaf, object, len(leaf))
            record[step] = leaf

        map_leaves(put, self._no_rows, self.tree, batch)


# ---- actions ----------------------------------------------------------------


def arrays(space: Any, action: Any, n: int, where: str) -> Any:
    """A batch of n actions as arrays [n, ...], nested as the space of one action. Raises ValueError."""
    if isinstance(space, spaces.Dict):
        if not isinstance(action, Mapping) or action.keys() != space.keys():
            raise ValueError(f"{where} must be a dictionary with the keys {sorted(space)}")
        return {key: arrays(part, action[key], n, f"{where}[{key!r}]") for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        if not isinstance(action, (tuple, list)) or len(action) != len(space):
            raise ValueError(f"{where} must be a tuple of {len(space)} entries")
        return tuple(
            arrays(part, one, n, f"{where}[{i}]") for i, (part, one) in enumerate(zip(space, action, strict=True))
        )
    array = np.asarray(action, object if isinstance(space, spaces.Text) else None)
    if array.ndim == 0 or len(array) != n:
        raise ValueError(f"{where} must hold an action for each of {n} envs, and is of shape {array.shape}")
    return array


def taken(actions: Any, rows: npt.NDArray[np.intp]) -> Any:
    """These rows of what arrays() gave."""
    return map_leaves(lambda array: array[rows], actions, actions)


def stacked(actions: Sequence[Any]) -> Any:
    """Batches of actions, one a step, as one tree of arrays [steps, n, ...]."""
    first = actions[0]
    if isinstance(first, Mapping):
        return {key: stacked([action[key] for action in actions]) for key in first}
    if isinstance(first, (tuple, list)) and isinstance(first[0], (Mapping, tuple, np.ndarray)):
        return tuple(stacked(part) for part in zip(*actions, strict=True))
    return np.stack([np.asarray(action) for action in actions])
