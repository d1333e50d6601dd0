"""The host that the plugin is given: an ep_host written here, whose every answer a check can set."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping

from envpool_sdk.check import abi


class Host:
    """An ep_host. It lives as long as the process.

    Attributes:
        cancelled: what ep_host.cancelled() answers.
        lines: what was logged, as (level, text).
        address: where the struct is.
    """

    _all: list[Host] = []  # noqa: RUF012 - immortal, as env.h promises

    def __init__(self, assets: Mapping[str, str], minor: int = abi.MINOR, memory: bytes = b"") -> None:
        self.assets = dict(assets)
        self.cancelled = False
        self.lines: list[tuple[int, str]] = []
        self._explained = threading.local()
        raw = abi.Host(
            size=ctypes.sizeof(abi.Host) + len(memory),
            abi_major=abi.MAJOR,
            abi_minor=minor,
            name=b"envpool-sdk check",
            version=b"1",
            extension=abi.HostExtension(lambda host, name: None),
            log=abi.Log(self._log),
            explain=abi.Explain(self._explain),
            asset=abi.Asset(self._asset),
            cancelled=abi.Cancelled(lambda host: int(self.cancelled)),
        )
        self._raw = raw
        self._copy = ctypes.create_string_buffer(bytes(raw) + memory, raw.size)
        self.address = ctypes.addressof(self._copy)
        Host._all.append(self)

    def place(self, address: int) -> None:
        """Moves the struct to other memory, which stays there for ever."""
        ctypes.memmove(address, self._copy, ctypes.sizeof(abi.Host))
        self.address = address

    def explanation(self) -> str:
        """What the calling thread's last failed call said; "" if nothing. Asking forgets it."""
        said = getattr(self._explained, "text", "")
        self._explained.text = ""
        return said

    def _log(self, host: int, level: int, text: bytes) -> None:
        self.lines.append((level, (text or b"").decode(errors="replace")))

    def _explain(self, host: int, text: bytes) -> None:
        self._explained.text = (text or b"").decode(errors="replace")

    def _asset(self, host: int, name: bytes, buffer: int, capacity: int, length: int) -> int:
        path = self.assets.get((name or b"").decode(errors="replace"))
        data = os.fsencode(path) if path is not None else b""
        if length:
            ctypes.c_uint64.from_address(length).value = len(data)
        if path is None:
            self._explain(host, b"the package has no asset " + (name or b"NULL"))
            return abi.E_NOT_FOUND
        if not buffer or capacity <= len(data):
            return abi.E_ARGUMENT
        ctypes.memmove(buffer, data + b"\0", len(data) + 1)
        return abi.OK
