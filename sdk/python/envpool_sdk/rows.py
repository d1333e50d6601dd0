"""Between the pool's columns and what users see: observations, infos and actions, nested as the fields' names say.

All names are resolved once, when the pool is made; a step only calls what was built then. A column is an array whose
first dimension is the batch; a row is one env's part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from envpool_sdk.spaces import Tree, action_fields, field_space, length_name, nest

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict, Pool, SpecDict

Array = npt.NDArray[Any]
Columns = tuple[Array, ...]
Mask = npt.NDArray[np.bool_]
Actions = Sequence[Array]


class Rows:
    """Reads the columns of one pool. Observations and infos are new objects at each call, arrays are not copied.

    Args:
        pool: whose columns.
        plain: gives every column as it is, texts as UTF-8 with zeros behind: for columns that need not be NumPy's.
    """

    def __init__(self, pool: Pool, plain: bool = False) -> None:
        spec = pool.spec
        index = {column: i for i, column in enumerate(pool.columns)}
        observed = [(f["name"], _Column(f, index, "obs")) for f in spec["obs"]]
        informed = list(_info_columns(spec, index))
        if plain:
            for _, column in observed + informed:
                column.is_text, column.cast = False, None
        info = nest(informed, tuples=False)

        self.observations: Callable[[Columns], Any] = _batch_reader(nest(observed, tuples=True))
        """All rows' observations, in arrays [n, ...]; texts in tuples of str."""
        self.observation: Callable[[Columns, int], Any] = _row_reader(nest(observed, tuples=True), observed=True)
        """One row's observation."""
        self.info: Callable[[Columns, int], dict[str, Any]] = _row_reader(info, observed=False)
        """One row's info."""
        self.infos: Callable[[Columns], dict[str, Any]] = _batch_reader(info)
        """All rows' infos, in arrays [n, ...]; texts in tuples of str."""
        self.masked_infos: Callable[[Columns, Mask], dict[str, Any]] = _mask_reader(info)
        """All rows' infos as Gymnasium's vector envs give them: beside each key its mask, at every level. The arrays
        hold what the columns hold: see clear_infos()."""
        self.has_infos = bool(informed)
        self._info_indices = [i for _, column in informed for i in column.indices]

    def clear_infos(self, columns: Columns, mask: Mask) -> None:
        """Zeroes the infos of all rows outside the mask, in place, as Gymnasium's vector envs give them."""
        for i in self._info_indices:
            columns[i][~mask] = 0

    def final(self, columns: Columns, mask: Mask) -> npt.NDArray[np.object_]:
        """The masked rows' observations in an object array [n], with None for the others."""
        observations = np.full(len(mask), None, dtype=object)
        for row in np.flatnonzero(mask).tolist():
            observations[row] = self.observation(columns, row)
        return observations


class _Column:
    """Where a field stands among the pool's columns, and how its values are seen."""

    def __init__(self, field: FieldDict, index: Mapping[tuple[str, str], int], section: str) -> None:
        self.index = index[section, field["name"]]
        self.is_text = field["kind"] == "text"
        self.length_index = index[f"{section}_length", field["name"]] if self.is_text else -1
        self.is_scalar = field["shape"] == ()
        self.is_box = field["kind"] == "box"
        dtype = np.dtype(field["dtype"])
        space_dtype = None if self.is_text or section != "obs" else field_space(field).dtype
        self.cast = space_dtype if space_dtype != dtype else None  # Gymnasium's type for it, where it has its own
        self.is_bool = dtype == np.bool_

    @property
    def indices(self) -> tuple[int, ...]:
        return (self.index, self.length_index) if self.is_text else (self.index,)


class _Length:
    """The column of a ragged field's lengths."""

    is_text = is_box = is_bool = False
    cast = None

    def __init__(self, field: FieldDict, index: Mapping[tuple[str, str], int], section: str) -> None:
        self.index = index[f"{section}_length", field["name"]]
        self.is_scalar = not field["per_agent"]
        self.indices = (self.index,)


def _info_columns(spec: SpecDict, index: Mapping[tuple[str, str], int]) -> Iterable[tuple[str, _Column | _Length]]:
    for name, field, section, is_length in info_fields(spec):
        yield name, (_Length if is_length else _Column)(field, index, section)


def info_fields(spec: SpecDict) -> Iterable[tuple[str, FieldDict, str, bool]]:
    """What goes into the info: name, field, its section, and whether it is its length. These are info fields, global ones
    below "global", and lengths of ragged fields."""

    def lengths(fields: list[FieldDict], section: str) -> Iterable[tuple[str, FieldDict, str]]:
        return ((f["name"], f, section) for f in fields if f["ragged"] and f["kind"] != "text")

    for field in spec["info"]:
        yield field["name"] or "info", field, "info", False
    for field in spec["globals"]:
        yield _below("global", field["name"]), field, "global", False
    for name, field, section in lengths(spec["obs"], "obs"):
        yield length_name(name), field, section, True
    for name, field, section in lengths(spec["info"], "info"):
        yield length_name(name or "info"), field, section, True
    for name, field, section in lengths(spec["globals"], "global"):
        yield length_name(_below("global", name)), field, section, True


def _below(parent: str, name: str) -> str:
    return f"{parent}/{name}" if name else parent


# ---- reading ----------------------------------------------------------------


def _batch_reader(tree: Tree) -> Callable[[Columns], Any]:
    if isinstance(tree, dict):
        items = [(key, _batch_reader(part)) for key, part in tree.items()]
        return lambda columns: {key: read(columns) for key, read in items}
    if isinstance(tree, tuple):
        parts = [_batch_reader(part) for part in tree]
        return lambda columns: tuple([read(columns) for read in parts])
    if tree.is_text:
        at, length_at = tree.indices
        return lambda columns: _decode(columns[at], columns[length_at])
    if tree.cast is not None:
        at, cast = tree.index, tree.cast
        return lambda columns: columns[at].astype(cast)
    return itemgetter(tree.index)


def _row_reader(tree: Tree, observed: bool) -> Callable[[Columns, int], Any]:
    if isinstance(tree, dict):
        items = [(key, _row_reader(part, observed)) for key, part in tree.items()]
        return lambda columns, row: {key: read(columns, row) for key, read in items}
    if isinstance(tree, tuple):
        parts = [_row_reader(part, observed) for part in tree]
        return lambda columns, row: tuple([read(columns, row) for read in parts])
    at = tree.index
    if tree.is_text:
        length_at = tree.length_index
        return lambda columns, row: _decode(columns[at][row], columns[length_at][row])
    if tree.cast is not None:
        cast = tree.cast
        return lambda columns, row: columns[at][row].astype(cast)
    if tree.is_scalar and observed and tree.is_box:
        return lambda columns, row: columns[at][row, ...]  # an array of no dimensions: a Box contains no scalars
    if tree.is_scalar and tree.is_bool:
        return lambda columns, row: bool(columns[at][row])  # np.bool_ would make SyncVectorEnv give objects
    return lambda columns, row: columns[at][row]


def _mask_reader(tree: dict[str, Tree]) -> Callable[[Columns, Mask], dict[str, Any]]:
    items = [(key, f"_{key}", _mask_part_reader(part)) for key, part in tree.items()]

    def read_all(columns: Columns, mask: Mask) -> dict[str, Any]:
        info: dict[str, Any] = {}
        for key, mask_key, read in items:
            info[key] = read(columns, mask)
            info[mask_key] = mask
        return info

    return read_all


def _mask_part_reader(tree: Tree) -> Callable[[Columns, Mask], Any]:
    if isinstance(tree, dict):
        return _mask_reader(tree)
    at = tree.index
    if tree.is_text:
        length_at = tree.length_index

        def read_texts(columns: Columns, mask: Mask) -> npt.NDArray[np.object_]:
            texts = np.full(len(mask), None, dtype=object)
            for row in np.flatnonzero(mask).tolist():
                texts[row] = _decode(columns[at][row], columns[length_at][row])
            return texts

        return read_texts
    return lambda columns, mask: columns[at]


def _decode(text: Array, length: Any) -> Any:
    """UTF-8 bytes [..., max] and their counts [...] as str, in as many levels of tuples as there are dimensions."""
    if text.ndim == 1:
        return text[:length].tobytes().decode(errors="replace")
    return tuple([_decode(part, count) for part, count in zip(text, length, strict=True)])


# ---- actions ----------------------------------------------------------------


def batch_encoder(spec: SpecDict, task_id: str) -> Callable[[Any], Actions]:
    """What turns a batch of actions, of the action space batched as Gymnasium does it, into the pool's arrays.

    Lists pass for arrays, and other dtypes if they hold the same values: integers of any width, any number for a
    floating point field, but no floating point number for an integer. What it returns is checked for shape and range
    by the pool. Raises ValueError naming the action, what it is and what is allowed.
    """
    return _encoder(spec, task_id, batched=True)


def row_encoder(spec: SpecDict, task_id: str) -> Callable[[Any], Actions]:
    """The same for one env's action: the arrays are a batch of one."""
    return _encoder(spec, task_id, batched=False)


def _encoder(spec: SpecDict, task_id: str, batched: bool) -> Callable[[Any], Actions]:
    leaves: list[tuple[str, _Encode]] = []
    slot = 0
    for name, field, is_length in action_fields(spec):
        where = f"{task_id}: action" + "".join(f"[{key!r}]" for key in name.split("/") if name)
        encode: _Encode
        if field["kind"] == "text":
            encode = _text_encoder(field, where, slot, batched)
            slot += 2
        else:
            encode = _array_encoder(np.dtype(np.uint32 if is_length else field["dtype"]), where, slot, batched)
            slot += 1
        leaves.append((name, encode))
    if slot == 1 and leaves[0][0] == "" and batched:
        return _single_array_encoder(np.dtype(spec["action"][0]["dtype"]), f"{task_id}: action")
    encode_tree = tree_encoder(nest(leaves, tuples=True), f"{task_id}: action")

    def encode_all(action: Any) -> Actions:
        out: list[Any] = [None] * slot
        encode_tree(action, out)
        return out

    return encode_all


_Encode = Callable[[Any, list[Any]], None]  # puts a value's arrays into their slots


def _single_array_encoder(dtype: np.dtype[Any], where: str) -> Callable[[Any], Actions]:
    """The usual case, made short: one array is the whole action, which the pool itself converts where that is safe."""
    safe = frozenset(given for given in map(np.dtype, "?bBhHiIlLqQefd") if np.can_cast(given, dtype))

    def encode(action: Any) -> Actions:
        if type(action) is np.ndarray and action.dtype in safe:
            return (action,)
        return (cast(action, dtype, where),)

    return encode


def tree_encoder(tree: Tree, where: str) -> _Encode:
    """Lets each leaf of the tree, itself an encoder, put its part of a value of that structure into its slots."""
    if isinstance(tree, dict):
        items = [(key, tree_encoder(part, f"{where}[{key!r}]")) for key, part in tree.items()]
        keys = tree.keys()

        def encode_dict(value: Any, out: list[Any]) -> None:
            if not isinstance(value, Mapping) or value.keys() != keys:
                got = f"keys {sorted(value)}" if isinstance(value, Mapping) else f"a {type(value).__name__}"
                raise ValueError(f"{where} must be a dictionary with the keys {sorted(keys)}, not {got}")
            for key, encode in items:
                encode(value[key], out)

        return encode_dict
    if isinstance(tree, tuple):
        parts = [tree_encoder(part, f"{where}[{i}]") for i, part in enumerate(tree)]

        def encode_tuple(value: Any, out: list[Any]) -> None:
            if not isinstance(value, (tuple, list)) or len(value) != len(parts):
                raise ValueError(f"{where} must be a tuple of {len(parts)} entries, not {_brief(value)}")
            for encode, part in zip(parts, value, strict=True):
                encode(part, out)

        return encode_tuple
    return tree  # type: ignore[no-any-return]


def _array_encoder(dtype: np.dtype[Any], where: str, slot: int, batched: bool) -> _Encode:
    def encode(value: Any, out: list[Any]) -> None:
        array = cast(value, dtype, where)
        out[slot] = array if batched else array[np.newaxis]

    return encode


def _text_encoder(field: FieldDict, where: str, slot: int, batched: bool) -> _Encode:
    *agents, longest = field["shape"]

    def encode(value: Any, out: list[Any]) -> None:
        texts = np.asarray(value, dtype=object)
        if not batched:
            texts = texts[np.newaxis]
        if texts.ndim != 1 + len(agents) or not all(isinstance(text, str) for text in texts.flat):
            raise ValueError(f"{where} must be {'a tuple of ' if batched or agents else 'a '}str, not {_brief(value)}")
        try:
            encoded = [text.encode() for text in texts.flat]
        except UnicodeEncodeError as error:
            raise ValueError(f"{where} is not UTF-8: {error}") from None
        lengths = np.array([len(text) for text in encoded], np.uint32).reshape(texts.shape)
        if encoded and lengths.max() > longest:
            raise ValueError(f"{where} has {lengths.max()} bytes of UTF-8; at most {longest} are allowed")
        padded = b"".join(text.ljust(longest, b"\0") for text in encoded)
        out[slot] = np.frombuffer(padded, np.uint8).reshape(*texts.shape, longest)
        out[slot + 1] = lengths

    return encode


def cast(value: Any, dtype: np.dtype[Any], where: str) -> Array:
    """The value as a C-contiguous array of this dtype, if it has such values; else ValueError naming what it is."""
    try:
        given = np.asarray(value)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{where} is no array: {error}") from None
    if given.dtype == dtype or given.size == 0:
        return np.ascontiguousarray(given, dtype).reshape(given.shape)  # ascontiguousarray makes a scalar an array
    if given.dtype.kind not in ("biuf" if dtype.kind == "f" else "biu"):
        raise ValueError(f"{where} must hold {dtype} (or what casts to it safely), not {given.dtype}: {_brief(value)}")
    with np.errstate(over="ignore"):  # a float64 beyond float32 is infinite, which is the env's to judge
        array = given.astype(dtype, order="C")
    if dtype.kind != "f" and not np.array_equal(array, given):
        raise ValueError(f"{where} holds values that {dtype} can't: {_brief(value)}")
    return array


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
