"""Measure what searches cost on this machine, for `auto`: `twotower bench search --calibrate`."""

import time
from collections.abc import Callable

import numpy as np

from twotower.kernels.scan import winners
from twotower.randomness import generator
from twotower.runs.versions import versions
from twotower.search import BoxTree, Partitions
from twotower.search.base import CompiledIndex
from twotower.search.brute_force import BruteForce
from twotower.search.costs import CALIBRATED, Costs

SIZES = (2, 3, 6, 16, 64)
COUNTS = (2**6, 2**10, 2**13, 2**16, 2**18)
DIRECTIONS = 32
LEAST = 0.01  # seconds of repetitions


def calibrate(progress: Callable[[int, int], None] = lambda done, total: None) -> Costs:
    """Time every kind of work over a grid of d and N, single-threaded."""
    tables: dict[str, list[list[float]]] = {}
    for row, size in enumerate(SIZES):
        rows: dict[str, list[float]] = {}
        for column, count in enumerate(COUNTS):
            for kind, seconds in _measure(count, size).items():
                rows.setdefault(kind, []).append(seconds)
            progress(row * len(COUNTS) + column + 1, len(SIZES) * len(COUNTS))
        for kind, values in rows.items():
            tables.setdefault(kind, []).append(values)
    return Costs(versions()["cpu"], SIZES, COUNTS, tables)


def _measure(count: int, size: int) -> dict[str, float]:
    """Seconds of each kind of work for random ReLU towers and Gaussian queries."""
    random = generator(size, count)
    hidden = np.maximum(random.uniform(-1, 1, (count, min(size, 8))) @ random.normal(size=(min(size, 8), size)), 0)
    latents = (hidden @ random.normal(size=(size, size))).astype(np.float32)
    queries = random.normal(size=(DIRECTIONS, size)).astype(np.float32)
    best, places = np.empty(DIRECTIONS, np.float32), np.empty(DIRECTIONS, np.int64)
    brute, tree, partitions = BruteForce(), BoxTree(), Partitions(regret=CALIBRATED)
    brute.tables = brute._tables(latents, 0)
    tree.tables, partitions.tables = tree._tables(latents, 0), partitions._tables(latents, 0)
    return {
        "copy": timed(lambda: brute._tables(latents, 0)),
        "scan": _query(brute, queries),
        "winners": timed(lambda: winners(queries, latents, best, places)) / DIRECTIONS,
        "tree_build": timed(lambda: tree._tables(latents, 0)),
        "tree_query": _query(tree, queries),
        "partition_build": timed(lambda: partitions._tables(latents, 0)),
        "partition_query": _query(partitions, queries),
    }


def _query(index: CompiledIndex, queries: np.ndarray) -> float:
    many = np.tile(queries, (64, 1)) if index.tables[0][0].size < 2**16 else queries  # so that the call weighs little
    return timed(lambda: index._find(many)) / len(many)


def timed(work: Callable[[], object]) -> float:
    """The least seconds of some work over at least three repetitions; the first is for warming up."""
    work()
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < LEAST and len(seconds) < 1000):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
