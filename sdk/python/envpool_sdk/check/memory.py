"""Memory that tells on whoever misuses it: pages before and after that can't be touched, contents that may only be read,
memory that is gone after the call."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
NOTHING, READ, READ_WRITE = 0, 1, 3

POISON = 0xA5
POISONS = (0xA5, 0x5A)
"""Two fills that have no bit in common: a byte that is one and the other was not written."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def _map(size: int) -> int:
    address = _libc.mmap(None, size, READ_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"mmap of {size} bytes: error {ctypes.get_errno()}")
    return int(address)


class Pages:
    """`size` bytes between two pages that can't be touched.

    Args:
        size: bytes.
        align: of the elements; a power of two.
        side: "after": the bytes end where the page behind them begins; "before": they begin where the page before
            them ends.
    """

    def __init__(self, size: int, align: int = 1, side: str = "after") -> None:
        room = -(-max(size, 1) // PAGE) * PAGE
        self._base, self._total = _map(room + 2 * PAGE), room + 2 * PAGE
        self._inner, self._room = self._base + PAGE, room
        _libc.mprotect(self._base, PAGE, NOTHING)
        _libc.mprotect(self._inner + room, PAGE, NOTHING)
        self.address = self._inner if side == "before" else (self._inner + room - size) // align * align

    def protect(self, access: int) -> None:
        """Sets what may be done with the bytes: READ_WRITE, READ or NOTHING."""
        _libc.mprotect(self._inner, self._room, access)

    def unmap(self) -> None:
        _libc.munmap(self._base, self._total)


class Memory:
    """Where the arguments of calls lie: here, in ordinary memory, aligned to 64 bytes, gone after the call.

    A caller places what the plugin reads (`given`) and what it writes (`asked`), calls, reads the results with `read`,
    and ends with `done`.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def given(self, data: bytes, align: int = 8) -> int:
        """The address of a copy of data, which the plugin may read during the call."""
        return self._place(data, len(data), align)

    def asked(self, size: int, align: int = 8, fill: int = POISON) -> int:
        """The address of size bytes, all `fill`, which the plugin may write during the call."""
        return self._place(bytes([fill]) * size, size, align)

    def struct(self, struct: Any) -> int:
        """The address of a copy of a struct whose members are filled in; its size, where it has one, is set."""
        if hasattr(struct, "size"):
            struct.size = ctypes.sizeof(struct)
        return self.given(bytes(struct), 8)

    def pointers(self, addresses: list[int | None]) -> int:
        """The address of an array of pointers."""
        return self.given(bytes((ctypes.c_void_p * len(addresses))(*addresses)))

    def done(self) -> None:
        """The call is over."""
        self._kept.clear()

    def _place(self, data: bytes, size: int, align: int) -> int:
        room = ctypes.create_string_buffer(
            size + 4 * 64
        )  # with space around: who writes there is found by other checks
        address = -(-ctypes.addressof(room) // 64) * 64 + 64 + self._offset(align)
        ctypes.memmove(address, data, size)
        self._kept.append(room)
        return address

    def _offset(self, align: int) -> int:
        """Bytes from an address that is aligned to 64."""
        return 0


def unwritten(one: bytes, two: bytes) -> Any:
    """Which bytes still are POISONS[0] in one and POISONS[1] in two, of as many as both have."""
    size = min(len(one), len(two))
    a, b = np.frombuffer(one, np.uint8, size), np.frombuffer(two, np.uint8, size)
    return np.flatnonzero((a == POISONS[0]) & (b == POISONS[1]))


def read(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size)


class Unaligned(Memory):
    """Ordinary memory, aligned to the type of the elements and to nothing more."""

    def _offset(self, align: int) -> int:
        return align


class Guarded(Memory):
    """Each argument between pages that can't be touched.

    Args:
        side: how what the plugin writes lies; see Pages.
        given: the same for what it reads; "": that lies in ordinary memory.
        read_only: what is given can only be read.
        vanish: after the call nothing of it can be touched any more, and no later argument gets the same address.
    """

    def __init__(
        self, side: str = "after", *, given: str = "after", read_only: bool = False, vanish: bool = False
    ) -> None:
        super().__init__()
        self._side, self._given, self._read_only, self._vanish = side, given, read_only, vanish
        self._pages: list[Pages] = []

    def given(self, data: bytes, align: int = 8) -> int:
        if not self._given:
            return super().given(data, align)
        pages = Pages(len(data), align, self._given)
        ctypes.memmove(pages.address, data, len(data))
        if self._read_only:
            pages.protect(READ)
        self._pages.append(pages)
        return pages.address

    def asked(self, size: int, align: int = 8, fill: int = POISON) -> int:
        pages = Pages(size, align, self._side)
        ctypes.memset(pages.address, fill, size)
        self._pages.append(pages)
        return pages.address

    def done(self) -> None:
        for pages in self._pages:
            if self._vanish:
                pages.protect(NOTHING)
            else:
                pages.unmap()
        self._pages.clear()
        super().done()


class Larger(Memory):
    """Structs as a host of a later minor version sends them: longer, with members that this one does not know."""

    def struct(self, struct: Any) -> int:
        extra = 64
        if not hasattr(struct, "size"):
            return super().struct(struct)
        struct.size = ctypes.sizeof(struct) + extra
        return self.given(bytes(struct) + bytes([POISON]) * extra, 8)


class Exact(Memory):
    """Structs that end where a page begins that can't be touched: nothing behind their size can be read."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: list[Pages] = []

    def struct(self, struct: Any) -> int:
        struct.size = ctypes.sizeof(struct)
        pages = Pages(struct.size, 8)
        ctypes.memmove(pages.address, bytes(struct), struct.size)
        self._pages.append(pages)
        return pages.address

    def done(self) -> None:
        for pages in self._pages:
            pages.unmap()
        self._pages.clear()
        super().done()
