"""A coreset of the candidates that win in many directions."""

from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels import coreset
from twotower.kernels.scan import winners
from twotower.randomness import Domain, derive, generator
from twotower.search.scanned_subset import ScannedSubset

FREE = (0.0, 0.0, 0.0, 0.0, np.inf)


@final
@dataclass(eq=False)
class DirectionalCoreset(ScannedSubset):
    """Scores only the winners of random directions and of past queries.

    A policy's queries lie in a thin cone that random directions rarely meet: pass the state latents it asked lately.
    With `regret`, directions are added in doubling batches, until the winners of all directions but one regret so
    little of that one, on average, that directions nobody has asked must be expected to regret less.
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
        if self.regret is not None:
            return min(self.directions + coreset.SAFETY, count)
        return min(self.directions + (0 if self.queries is None else len(self.queries)), count)

    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        if self.regret is not None:
            return grow(latents, self.queries, seed, self.regret, self.directions).members
        directions = generator(seed, Domain.SEARCH).normal(size=(self.directions, latents.shape[1]))
        if self.queries is not None:
            directions = np.concatenate([directions, unit(past_queries(self.queries, latents.shape[1]))])
        best, places = np.empty(len(directions), np.float32), np.empty(len(directions), np.int64)
        winners(directions.astype(np.float32), latents, best, places)
        return np.unique(places)


class Grown(NamedTuple):
    """A coreset that has grown, or has given up."""

    members: np.ndarray  # the candidates' numbers, ascending
    asked: int
    """Directions."""
    regret: float
    """Mean of each direction's among the winners of all others."""
    error: float
    """What that may be off."""
    reached: bool


def grow(
    latents: np.ndarray,
    queries: np.ndarray | None,
    seed: int,
    regret: float,
    directions: int = coreset.MOST,
    seconds: tuple[float, ...] = FREE,
) -> Grown:
    """Grow a coreset of latents (N, d) by so many directions at most, while forecasts let it (see `coreset.grow`)."""
    past = past_queries(queries, latents.shape[1])
    key = np.uint64(derive(seed, Domain.SEARCH))
    return Grown(*coreset.grow(latents, past, key, regret, directions, np.array(seconds)))


def past_queries(queries: np.ndarray | None, size: int) -> np.ndarray:
    """Queries (n, d) as kernels take them, refused in words where they make no sense; None is no queries."""
    past = np.zeros((0, size)) if queries is None else np.ascontiguousarray(queries, np.float64)
    if past.ndim != 2 or past.shape[1] != size:
        raise UserError(f"past queries must have shape (n, {size}), not {past.shape}.")
    if not np.isfinite(past).all():
        raise UserError("past queries must be finite: some are NaN or infinite.")
    return past


def unit(queries: np.ndarray) -> np.ndarray:
    """Queries (n, d) at length 1, in float64; zeros stay."""
    norms = np.linalg.norm(queries, axis=1, keepdims=True)
    return queries / np.where(norms > 0, norms, 1.0)
