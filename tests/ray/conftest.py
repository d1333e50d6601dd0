"""What the tests with Ray share: a cluster of two nodes with one CPU each, on this machine.

They run in an environment of their own, for Ray pins an older Gymnasium: scripts/test ray. Elsewhere there are none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import envpool_sdk

if find_spec("ray") is None:
    collect_ignore_glob = ["test_*.py"]

sys.path.insert(0, str(Path(__file__).parent))  # for playing.py
ROOT = Path(__file__).parents[2]
REFERENCE = Path(os.environ.get("ENVPOOL_REFERENCE_DIR", ROOT / "build/release/reference"))
PLUGINS = [REFERENCE / f"{name}.so" for name in ("cartpole_cpp", "kitchen_sink", "multi_agent", "evil")]


@pytest.fixture(scope="session", autouse=True)
def plugins() -> None:
    """The reference plugins, known here and in all processes that are started here."""
    os.environ["ENVPOOL_PLUGIN_PATH"] = os.pathsep.join(map(str, PLUGINS))
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # else Ray warns that this will change
    for path in PLUGINS:
        envpool_sdk.load_plugin(path)


@contextmanager
def running(nodes: int) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="module")
def cluster(plugins: None) -> Iterator[Any]:
    """Two nodes of one CPU each, to which this process is connected."""
    with running(2) as cluster:
        yield cluster


@pytest.fixture
def start_cluster(plugins: None) -> Callable[[int], Any]:
    """Starts a cluster of so many nodes of one CPU each, as a context manager, for tests that break it."""
    return running
