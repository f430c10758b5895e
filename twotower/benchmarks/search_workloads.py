"""What is searched: latents of action towers that training produced, or of random ones, and what is asked."""

import json
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twotower.files import sealed_file
from twotower.randomness import generator
from twotower.towers import forward, num_params

FOLDER = Path(__file__).parent / "workloads"
# d -> the task whose trained towers have latents of that size.
TRAINED = {2: "swimmer", 3: "hopper", 6: "halfcheetah", 14: "swimmer15", 20: "fish-swim", 64: "humanoid"}
# d -> the action's size in a random tower: that of a task with latents of that size.
ACTIONS = {2: 2, 3: 3, 6: 6, 14: 7, 20: 6, 64: 17}
QUERIES = 512


class Workload(NamedTuple):
    """Towers over a box of actions, and queries."""

    kind: str  # trained | random
    theta: np.ndarray  # the action tower's parameters
    sizes: tuple[int, ...]
    activation: str
    low: np.ndarray
    high: np.ndarray
    past: np.ndarray | None  # what was asked in earlier episodes, (n, d); None: nothing is known
    queries: np.ndarray  # (QUERIES, d)

    def latents(self, count: int) -> np.ndarray:
        """The latents (N, d) of uniform candidates."""
        random = generator(count, self.sizes[-1])
        parts = []
        for start in range(0, count, 2**18):
            unit = random.random((min(2**18, count - start), len(self.low)), dtype=np.float32)
            parts.append(forward(self.theta, self.sizes, self.activation, self.low + (self.high - self.low) * unit))
        return np.concatenate(parts)


def workload(kind: str, size: int) -> Workload:
    """The workload of a kind with latents of a size."""
    if kind == "trained":
        tensors, text = sealed_file.load(FOLDER / f"{TRAINED[size]}.safetensors", "workload")
        facts = json.loads(text)
        arrays = {name: np.array(tensor) for name, tensor in tensors.items()}
        return Workload(
            kind, arrays["theta"], tuple(facts["sizes"]), facts["activation"], arrays["low"], arrays["high"],
            arrays["past"], arrays["test"],
        )  # fmt: skip
    random, inputs = generator(0, size), ACTIONS[size]
    sizes = (inputs, size, size)
    theta = random.normal(size=num_params(sizes)).astype(np.float32)
    queries = random.normal(size=(QUERIES, size)).astype(np.float32)
    bound = np.ones(inputs, np.float32)
    return Workload(kind, theta, sizes, "relu", -bound, bound, None, queries)


class Problem:
    """A workload at one N, with what each query's best and mean products are."""

    def __init__(self, work: Workload, count: int) -> None:
        self.work = work
        self.latents = np.ascontiguousarray(work.latents(count), np.float32)
        self.queries = work.queries

    @cached_property
    def best(self) -> np.ndarray:
        """The largest product of each query, in float64 from the candidates that float32 puts first."""
        best = np.full(len(self.queries), -np.inf)
        for start in range(0, len(self.latents), 2**16):
            rows = self.latents[start : start + 2**16]
            places = (self.queries @ rows.T).argmax(axis=1)
            best = np.maximum(best, np.einsum("nd,nd->n", rows[places].astype(np.float64), self.queries))
        return best

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean product of each query."""
        return self.queries @ self.latents.mean(axis=0, dtype=np.float64)

    def regrets(self, found: np.ndarray) -> np.ndarray:
        """(best − found) / (best − mean) of the first len(found) queries."""
        queries = self.queries[: len(found)].astype(np.float64)
        products = np.einsum("nd,nd->n", self.latents[found].astype(np.float64), queries)
        best, spread = self.best[: len(found)], self.best[: len(found)] - self.mean[: len(found)]
        return np.maximum(np.where(spread > 0, (best - products) / np.where(spread > 0, spread, 1.0), 0.0), 0.0)
