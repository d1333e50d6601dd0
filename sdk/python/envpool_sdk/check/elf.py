"""Reads from a shared library's file which symbols it exports."""

from __future__ import annotations

import struct
from pathlib import Path

_SHT_DYNSYM = 11
_FROM_THE_LINKER = {"_init", "_fini", "_edata", "_end", "__bss_start", "_ftext", "_fdata", "_fbss"}


def exported(path: str) -> list[str]:
    """The defined symbols that other libraries can see, without those that linkers add, sorted.

    Raises:
        ValueError: the file is not a 64-bit little-endian ELF library.
    """
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a shared library of this machine")
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    size, count, _ = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * size) for i in range(count)]
    names: set[str] = set()
    for _, kind, _, _, offset, length, link, _, _, entry in headers:
        if kind != _SHT_DYNSYM:
            continue
        strings = headers[link][4]
        for at in range(offset, offset + length, entry):
            name_at, info, other, section = struct.unpack_from("<IBBH", data, at)
            visible = info >> 4 in (1, 2, 10) and other & 3 in (0, 3)
            if visible and section != 0:
                end = data.index(b"\0", strings + name_at)
                names.add(data[strings + name_at : end].decode(errors="replace"))
    return sorted(names - _FROM_THE_LINKER)
