"""The checker on a scenario whose episodes are short."""

from __future__ import annotations

import pytest

from envpool_sdk.testing import conformance

test_loading = conformance("DoomBasic-v1", only=["load"])
test_basic = pytest.mark.full(conformance("DoomBasic-v1"))
