"""What every test shares: property tests that draw the same examples each time, and one Ray cluster."""

import importlib.util
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The first call of a compiled kernel takes seconds, which no deadline could tell from a fault.
settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two Ray nodes on this machine, with two cores each, to which this process is connected."""
    if importlib.util.find_spec("ray") is None:  # it reads its environment when it is imported
        pytest.skip("Ray is not installed")
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_AUTH_MODE": "disabled",
            "RAY_worker_niceness": "0",
            "PYTHONPATH": os.pathsep.join(paths),
        }.items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        nodes.add_node(num_cpus=2)
        ray.init(nodes.address, log_to_driver=False, logging_level=logging.ERROR)
        yield nodes
        ray.shutdown()
        nodes.shutdown()
