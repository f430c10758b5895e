"""The search that a cost model expects to be fastest, checked against the latents while it is built."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels.coreset import BLIND, FIRST, RARE, WIDE
from twotower.search.base import CompiledIndex, Index
from twotower.search.box_tree import BoxTree
from twotower.search.brute_force import BruteForce
from twotower.search.costs import CALIBRATED, Costs, machine_costs
from twotower.search.directional_coreset import DirectionalCoreset, grow
from twotower.search.partitions import Partitions
from twotower.search.scanned_subset import subset_tables

TREE_DIMENSIONS = 8  # in more, boxes rule out little
WORTH_IT = 0.9  # another method must promise this fraction of brute force's time, for a forecast may be wrong
OVERHEAD = 2.5e-5  # seconds a coreset takes to grow, whatever its size
PROBE = 3e-8  # seconds to find the next cell to score
CONES = 12  # passes that rule out most candidates for all past queries, where these lie in a few thin cones


class Choice(NamedTuple):
    """What was chosen, for whom, and why."""

    method: str
    seconds: float
    """Forecast of building and of all queries."""
    why: str

    def __str__(self) -> str:
        return f"{self.method}: {self.why}"


@lru_cache(maxsize=1024)
def choose(
    count: int,
    size: int,
    queries: float,
    regret: float,
    costs: Costs | None = None,
    known_queries: bool = False,
    without: tuple[str, ...] = (),
) -> Choice:
    """The method with the least forecast time for N = count, d = size and so many queries between two builds.

    `known_queries` says that past queries will tell a coreset where to look; `without` names methods not to choose.
    """
    costs = costs or machine_costs()
    forecasts = {"brute_force": costs.of("copy", count, size) + queries * costs.of("scan", count, size)}
    if size <= TREE_DIMENSIONS:
        forecasts["box_tree"] = costs.of("tree_build", count, size) + queries * costs.of("tree_query", count, size)
    if regret > 0:
        least = max(FIRST, (RARE if known_queries else BLIND) / regret)
        directions = least if known_queries else max(least, _directions(size, regret))
        passes = min(directions, CONES) if known_queries and count > WIDE * size else directions
        base, each, asked, member = coreset_seconds(count, size, queries, costs)
        forecasts["coreset"] = base + passes * each + asked + member * directions**0.6
        probing = queries * costs.of("partition_query", count, size) * (CALIBRATED / regret) ** 0.2
        forecasts["partitions"] = costs.of("partition_build", count, size) + probing
    forecasts = {method: seconds for method, seconds in forecasts.items() if method not in without}
    best = min(forecasts, key=lambda method: forecasts[method] / (1.0 if method == "brute_force" else WORTH_IT))
    rest = ", ".join(f"{method} {spoken(seconds)}" for method, seconds in forecasts.items() if method != best)
    why = f"{queries:,.0f} queries among {count:,} latents of {size} numbers should take {spoken(forecasts[best])}"
    return Choice(best, forecasts[best], f"{why} ({rest})" if rest else why)


@lru_cache(maxsize=1024)
def coreset_seconds(count: int, size: int, queries: float, costs: Costs) -> tuple[float, ...]:
    """Forecasts for `grow`: a coreset's overhead, a direction, the queries with no member and for every one."""
    none = queries * costs.of("scan", costs.counts[0], size)
    member = (queries * costs.of("scan", costs.counts[1], size) - none) / (costs.counts[1] - costs.counts[0])
    return OVERHEAD, costs.of("winners", count, size), none, max(member, 0.0)


@final
@dataclass(eq=False)
class Auto(Index):
    """Chooses among brute force, a box tree, partitions, and a coreset that grows until it measures the wanted regret.

    `choice` says what was chosen and why. Costs are this machine's (`twotower bench search --calibrate`), or those
    that come with the package.
    """

    queries_per_build: float = 10_000
    """How many queries are expected before the latents change."""
    regret: float = 0.01
    """Mean of (best − found) / (best − mean) that is allowed; 0 asks for exact search."""
    queries: np.ndarray | None = field(default=None, repr=False)
    """State latents (n, d) like those that will be asked; None takes them to be Gaussian."""

    name = "auto"

    def __post_init__(self) -> None:
        if not self.queries_per_build >= 1:
            raise UserError(f"queries_per_build must be at least 1, not {self.queries_per_build}.")
        if not 0 <= self.regret < 1:
            raise UserError(f"regret must be at least 0 and less than 1, not {self.regret}.")
        self.exact: bool = self.regret == 0
        self.choice: Choice
        self.index: CompiledIndex

    def _build(self, latents: np.ndarray, seed: int) -> None:
        count, size = latents.shape
        costs = machine_costs()
        asked = count, size, self.queries_per_build, self.regret, costs, self.queries is not None
        self.choice = choose(*asked)
        if self.choice.method == "coreset":
            if self._grow(latents, seed, coreset_seconds(*asked[:3], costs), choose(*asked, ("coreset",))):
                return
        if self.choice.method == "partitions":
            self.index = Partitions(regret=self.regret, queries=self.queries)
            self.index.take(latents, seed)
            cells, whole = self.index.cells, costs.of("scan", count, size)
            probing = self.index.probes * (PROBE + whole / cells) + costs.of("scan", cells, size)
            if probing < WORTH_IT * whole:
                return
            exact = choose(*asked, ("coreset", "partitions"))
            self.choice = exact._replace(why=f"{self.index.probes} of {cells} cells are too many; {exact.why}")
        self.index = BoxTree(regret=self.regret) if self.choice.method == "box_tree" else BruteForce()
        self.index.take(latents, seed)

    def _grow(self, latents: np.ndarray, seed: int, seconds: tuple[float, ...], rival: Choice) -> bool:
        """Grow a coreset while it can still beat a rival; whether it reached the regret."""
        grown = grow(latents, self.queries, seed, self.regret, seconds=(*seconds, WORTH_IT * rival.seconds))
        if not grown.reached:
            why = f"a coreset of {grown.asked} directions regrets {grown.regret:.2%}, and more do not pay; {rival.why}"
            self.choice = rival._replace(why=why)
            return False
        self.index = DirectionalCoreset(directions=grown.asked, queries=self.queries, regret=self.regret)
        self.index.latents, self.index.seed = latents, seed
        self.index.tables = subset_tables(latents, grown.members)
        why = f"{len(grown.members)} winners of {grown.asked} directions regret {grown.regret:.2%} on unseen ones"
        self.choice = self.choice._replace(why=f"{why}; {self.choice.why}")
        return True

    def _find(self, latents: np.ndarray) -> np.ndarray:
        return self.index._find(latents)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes


def _directions(size: int, regret: float) -> int:
    """How many Gaussian directions reach a regret, by rule of thumb: 64 leave 0.25 % a dimension."""
    return int(64 * max(0.0025 * size / regret, 1.0) ** (1 / min(2.9 / size**0.5, 2.0)))


def spoken(seconds: float) -> str:
    """A duration for people."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"
