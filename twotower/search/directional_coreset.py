"""A coreset of the candidates that win in many directions."""

from dataclasses import dataclass, field
from typing import final

import numpy as np

from twotower.errors import UserError
from twotower.kernels.scan import winners
from twotower.randomness import Domain, generator
from twotower.search.scanned_subset import ScannedSubset, tiled


@final
@dataclass(eq=False)
class DirectionalCoreset(ScannedSubset):
    """Scores only the winners of random directions and of past queries.

    A policy's queries lie in a thin cone that random directions rarely meet: pass the state latents it asked lately.
    """

    directions: int = 512
    """How many random directions."""
    queries: np.ndarray | None = field(default=None, repr=False)
    """State latents (n, d) whose winners are kept too."""

    name = "coreset"

    def __post_init__(self) -> None:
        if self.directions < 1:
            raise UserError(f"directions must be at least 1, not {self.directions}.")

    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        directions = generator(seed, Domain.SEARCH).normal(size=(self.directions, latents.shape[1]))
        if self.queries is not None:
            norms = np.linalg.norm(self.queries, axis=1, keepdims=True)
            directions = np.concatenate([directions, self.queries / np.where(norms > 0, norms, 1.0)])
        best, places = np.empty(len(directions), np.float32), np.empty(len(directions), np.int64)
        winners(directions.astype(np.float32), tiled(latents)[0], best, places)
        return np.unique(places)
