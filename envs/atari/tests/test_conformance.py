"""The checker on two games: one whose episodes are short, one whose are long."""

from __future__ import annotations

import pytest

from envpool_sdk.testing import conformance

test_loading = conformance("Pong-v5", only=["load"])
test_breakout = pytest.mark.full(conformance("Breakout-v5"))
test_pong = pytest.mark.full(conformance("Pong-v5", options={"full_action_space": True}))
