"""How a check ends when it does not just pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Finding(Exception):  # noqa: N818 - it is one
    """A promise is broken."""

    expected: str
    """What should be."""
    seen: str
    """What is."""

    def __str__(self) -> str:
        return f"expected {self.expected}; seen: {self.seen}"


@dataclass
class NotApplicable(Exception):  # noqa: N818 - no error
    """The check has nothing to look at in this task; says why."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def require(holds: bool, expected: str, seen: str) -> None:
    """Raises Finding unless it holds."""
    if not holds:
        raise Finding(expected, seen)
