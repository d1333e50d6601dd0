"""Gymnasium spaces of the typed fields that a plugin declares.

=================  ==========================================================================================
field              space of one env
=================  ==========================================================================================
box                Box, unbounded where no bound is given
discrete           Discrete; MultiDiscrete if it has a shape or is per agent. As int64, Gymnasium's type for them
multi_binary       MultiBinary; Discrete(2) if it has no shape. As int8 and int64, Gymnasium's types for them
text               Text of printable ASCII, up to as many characters as the field has bytes (other characters are
                   handed on, but the space does not contain them); a Tuple of them if per agent
ragged             as above, with the greatest length: observations are zero beyond their length, which is in the
                   info as "<name>_length"; an action has its length beside it, as the action "<name>_length"
per agent          the agents are the first dimension
name "a/b"         Dict(a=Dict(b=...)); a level whose keys are all digits is a Tuple
name ""            the field is the whole space, not an entry of a Dict
=================  ==========================================================================================
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from gymnasium import spaces

from envpool_sdk._native import PluginError

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, SpecDict

T = TypeVar("T")
Tree = Any  # a leaf, or dict[str, Tree], or tuple[Tree, ...]; leaves are neither


def nest(named: Iterable[tuple[str, T]], tuples: bool) -> Tree:
    """Builds the tree that names like "a/b" describe; "" is the whole tree. Levels keep the order of the names.

    Args:
        named: each leaf with its name.
        tuples: make a tuple of each level whose keys are 0, 1, ...
    """
    root: dict[str, Any] = {}
    for name, leaf in named:
        *path, last = f"/{name}".split("/") if name else [""]  # the root is the entry ""
        node = root
        for key in path:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise PluginError(f"the field {name!r} lies within another field")
        if last in node:
            raise PluginError(f"the field {name!r} is there twice, or another lies within it")
        node[last] = leaf
    return _tuples(root.get("", {})) if tuples else root.get("", {})


def _tuples(tree: Tree) -> Tree:
    if not isinstance(tree, dict):
        return tree
    parts = {key: _tuples(part) for key, part in tree.items()}
    if parts and parts.keys() == {str(i) for i in range(len(parts))}:
        return tuple(parts[str(i)] for i in range(len(parts)))
    return parts


def length_name(name: str) -> str:
    """What the length of a ragged field is called, beside the field."""
    return f"{name}_length" if name else "length"


def action_fields(spec: SpecDict) -> list[tuple[str, FieldDict, bool]]:
    """The action's leaves in the order in which the pool takes them: name, field, and whether it is its length."""
    leaves = []
    for field in spec["action"]:
        if field["ragged"] and field["kind"] != "text":
            name = field["name"] or "value"
            leaves += [(name, field, False), (length_name(field["name"]), field, True)]
        else:
            leaves.append((field["name"], field, False))
    return leaves


def observation_space(spec: SpecDict) -> spaces.Space[Any]:
    """The space of one env's observation."""
    return _space(nest(((f["name"], field_space(f)) for f in spec["obs"]), tuples=True))


def action_space(spec: SpecDict) -> spaces.Space[Any]:
    """The space of one env's action."""
    leaves = action_fields(spec)
    return _space(
        nest(((name, (length_space if is_length else field_space)(field)) for name, field, is_length in leaves), True)
    )


def _space(tree: Tree) -> spaces.Space[Any]:
    if isinstance(tree, dict):
        return spaces.Dict({key: _space(part) for key, part in tree.items()})
    if isinstance(tree, tuple):
        return spaces.Tuple([_space(part) for part in tree])
    return tree  # type: ignore[no-any-return]


def field_space(field: FieldDict) -> spaces.Space[Any]:
    """The space of one field; see the module's table."""
    return _KINDS[field["kind"]](field)


def length_space(field: FieldDict) -> spaces.Space[Any]:
    """The space of a ragged field's length."""
    shape = field["shape"]
    if field["per_agent"]:
        return spaces.MultiDiscrete(np.full(shape[:1], shape[1] + 1))
    return spaces.Discrete(shape[0] + 1)


def _spread(bound: np.ndarray[Any, Any], field: FieldDict) -> np.ndarray[Any, Any]:
    """A bound, which is one value or one per element, for all elements and agents."""
    return np.broadcast_to(bound, field["shape"])


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest value of a dtype; infinite for floating point."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def bounds(field: FieldDict) -> tuple[Any, Any]:
    """The least and the greatest value of a field: one for all elements, or an array with one for each."""
    if field["kind"] == "discrete":
        n = np.asarray(field["n"], np.int64)[()]
        start = np.int64(0) if field["start"] is None else np.asarray(field["start"], np.int64)[()]
        return start, start + n - 1
    if field["kind"] == "multi_binary":
        return 0, 1
    least, most = limits(np.dtype(field["dtype"]))
    return least if field["low"] is None else field["low"], most if field["high"] is None else field["high"]


def _box(field: FieldDict) -> spaces.Box:
    dtype = np.dtype(field["dtype"])
    low, high = (_spread(np.asarray(bound, dtype), field) for bound in bounds(field))
    return spaces.Box(low, high, field["shape"], dtype.type)


def _discrete(field: FieldDict) -> spaces.Space[Any]:
    start, most = bounds(field)
    if field["shape"] == ():
        return spaces.Discrete(int(most - start + 1), start=int(start))
    return spaces.MultiDiscrete(_spread(most - start + 1, field), start=_spread(start, field))


def _multi_binary(field: FieldDict) -> spaces.Space[Any]:
    if field["shape"] == ():
        return spaces.Discrete(2)
    shape = field["shape"]
    return spaces.MultiBinary(shape[0] if len(shape) == 1 else list(shape))


def _text(field: FieldDict) -> spaces.Space[Any]:
    *agents, longest = field["shape"]
    one = [spaces.Text(longest, min_length=0, charset=string.printable) for _ in range(agents[0] if agents else 1)]
    return spaces.Tuple(one) if agents else one[0]


_KINDS: dict[str, Callable[[FieldDict], spaces.Space[Any]]] = {
    "box": _box,
    "discrete": _discrete,
    "multi_binary": _multi_binary,
    "text": _text,
}
