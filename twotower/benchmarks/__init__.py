"""Throughput, measured against its limit and its ceiling in one run."""

from collections.abc import Callable
from typing import Any

from twotower.benchmarks import search, throughput
from twotower.benchmarks.options import ThroughputConfig
from twotower.benchmarks.search import SearchBenchmark

# Command -> (its options, the function that takes them and returns an exit code).
BENCHMARKS: dict[str, tuple[type, Callable[[Any], int]]] = {
    "throughput": (ThroughputConfig, throughput.main),
    "search": (SearchBenchmark, search.main),
}
