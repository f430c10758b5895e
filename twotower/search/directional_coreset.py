"""A coreset of the candidates that win in many directions."""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from twotower.errors import UserError
from twotower.kernels.scan import winners
from twotower.randomness import Domain, generator
from twotower.search.scanned_subset import ScannedSubset, tiled

FIRST_BATCH = 32
SAFETY = 4  # so many past queries to one random direction
RARE = 0.25  # the regret of a kind of query so rare that a batch may lack it


@final
@dataclass(eq=False)
class DirectionalCoreset(ScannedSubset):
    """Scores only the winners of random directions and of past queries.

    A policy's queries lie in a thin cone that random directions rarely meet: pass the state latents it asked lately.
    With `regret`, directions are added in doubling batches, and each batch first measures, on directions the coreset
    has not seen, what it still regrets; building stops when that is little enough.
    """

    directions: int = 512
    """How many random directions; with `regret`, the most directions of any kind."""
    queries: np.ndarray | None = field(default=None, repr=False)
    """State latents (n, d) whose winners are kept too; with `regret`, directions are drawn among them."""
    regret: float | None = None
    """Stop when the mean regret of unseen directions, and what it may be off, is at most this."""

    name = "coreset"

    def __post_init__(self) -> None:
        if self.directions < 1:
            raise UserError(f"directions must be at least 1, not {self.directions}.")
        if self.regret is not None and not 0 < self.regret < 1:
            raise UserError(f"regret must be between 0 and 1, not {self.regret}.")

    def _capacity(self, count: int) -> int:
        return min(self.directions + (0 if self.queries is None or self.regret else len(self.queries)), count)

    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        tiles = tiled(latents)[0]
        if self.regret is not None:
            growth = Growth(latents, tiles, self.queries, seed)
            while growth.asked < self.directions and not growth.exhausted and not growth.reaches(self.regret):
                growth.add(min(max(growth.asked, FIRST_BATCH), self.directions - growth.asked))
            return growth.members
        directions = generator(seed, Domain.SEARCH).normal(size=(self.directions, latents.shape[1]))
        if self.queries is not None:
            directions = np.concatenate([directions, unit(self.queries)])
        return np.unique(_win(directions, tiles)[1])


class Growth:
    """A coreset that grows by batches of directions, each of which first measures the coreset so far."""

    def __init__(self, latents: np.ndarray, tiles: np.ndarray, queries: np.ndarray | None, seed: int) -> None:
        self.latents, self.tiles = latents, tiles
        self.members = np.zeros(0, np.int64)
        self.asked = 0
        self.regret = self.error = np.inf  # mean over the last batch, and what it may be off
        self._rate = 0.8  # regret falls like directions^-rate
        self._mean = np.full(len(latents), 1 / len(latents), np.float32) @ latents  # which `mean` takes long over
        self._random = generator(seed, Domain.SEARCH)
        self._pool = None if queries is None or len(queries) == 0 else unit(self._random.permutation(queries))

    def reaches(self, regret: float) -> bool:
        """Whether the last batch's mean regret, with what it may be off, is within what is wanted."""
        return self.regret + self.error <= regret

    def directions_for(self, regret: float) -> int:
        """How many directions should reach a regret, by how it has fallen so far."""
        if not np.isfinite(self.regret):
            return self.asked
        by_regret = self.asked * min(max(self.regret / regret, 1.0) ** (1 / self._rate), 1e6)
        return int(max(by_regret, 2 * RARE / regret))

    def members_for(self, directions: int) -> int:
        """How many different winners so many directions should have: the more there are, the fewer are new."""
        return int(len(self.members) * (directions / max(self.asked, 1)) ** 0.6)

    @property
    def exhausted(self) -> bool:
        """Whether every past query has been used, so that nothing unseen is left to measure on."""
        return self._pool is not None and self.asked >= len(self._pool)

    def add(self, count: int) -> None:
        """Measure the coreset on `count` new directions, then add their winners, and for safety those of random ones.

        New directions are past queries where any are known.
        """
        size = self.latents.shape[1]
        if self._pool is None:
            directions = self._random.normal(size=(count, size))
        else:
            past = self._pool[self.asked : self.asked + count]
            count = len(past)
            directions = np.concatenate([past, self._random.normal(size=(-(-count // SAFETY), size))])
        best, places = _win(directions, self.tiles)
        if self.asked > 0:
            self._measure(directions[:count].astype(np.float32), best[:count])
        self.members = np.union1d(self.members, places)
        self.asked += count

    def _measure(self, directions: np.ndarray, best: np.ndarray) -> None:
        found = (directions @ self.latents[self.members].T).max(axis=1)
        spread = best - directions @ self._mean
        regrets = np.where(spread > 0, (best - found) / np.where(spread > 0, spread, 1.0), 0.0)
        regrets = np.maximum(regrets, 0.0)  # a product summed in another order may come out larger
        earlier, self.regret = self.regret, float(regrets.mean())
        self.error = float(regrets.std() / np.sqrt(len(best))) + RARE / len(best)
        if 0 < self.regret < earlier < np.inf:  # between this batch and the last, the coreset doubled
            self._rate = min(max(np.log2(earlier / self.regret), 0.6), 2.0)


def unit(queries: np.ndarray) -> np.ndarray:
    """Queries (n, d) at length 1, in float64; zeros stay."""
    queries = np.asarray(queries, np.float64)
    norms = np.linalg.norm(queries, axis=1, keepdims=True)
    return queries / np.where(norms > 0, norms, 1.0)


def _win(directions: np.ndarray, tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest product in each of the directions (K, d), and the first candidate that has it."""
    best, places = np.empty(len(directions), np.float32), np.empty(len(directions), np.int64)
    winners(np.ascontiguousarray(directions, np.float32), tiles, best, places)
    return best, places
