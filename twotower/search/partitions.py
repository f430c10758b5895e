"""Candidates in cells around centres, of which a query scores those whose centres it likes best."""

from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels import partitions
from twotower.kernels.coreset import FIRST, RARE, draw, mean_row
from twotower.kernels.layout import LANES, aligned_zeros
from twotower.kernels.scan import winners
from twotower.randomness import Domain, derive
from twotower.search.base import CompiledIndex, Search, Tables
from twotower.search.directional_coreset import past_queries


@final
@dataclass(eq=False)
class Partitions(CompiledIndex):
    """Scores the candidates of as few cells as keep the wanted regret, measured on directions while it is built.

    For latents of many dimensions of which too many win somewhere for a coreset.
    """

    regret: float = 0.01
    """Mean of (best − found) / (best − mean) that is allowed, with what the measurement may be off."""
    queries: np.ndarray | None = field(default=None, repr=False)
    """State latents (n, d) like those that will be asked; None takes them to be Gaussian."""

    name = "partitions"

    def __post_init__(self) -> None:
        if not 0 < self.regret < 1:
            raise UserError(f"regret must be between 0 and 1, not {self.regret}.")

    search: ClassVar[Search] = staticmethod(partitions.search_partitions)

    @property
    def probes(self) -> int:
        """How many cells a query scores: all, where fewer would regret too much."""
        return int(self.tables[4][0])

    @property
    def cells(self) -> int:
        """How many there are."""
        return self.tables[3].shape[2]

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        count, size = latents.shape
        cells = cells_for(count)
        centres, nearest = np.empty((cells, size), np.float32), np.empty(count, np.int32)
        partitions.place_centres(latents, centres)
        partitions.assign(latents, centres, nearest)
        blocks = count // LANES + cells  # each cell may end in the middle of a block
        tiles, numbers = aligned_zeros((1, blocks, size, LANES)), np.empty((1, blocks * LANES), np.int32)
        starts = np.empty((1, cells + 1), np.int64)
        partitions.fill_cells(latents, nearest, tiles[0], numbers[0], starts[0])
        centres = np.ascontiguousarray(centres.T)
        probes = self._probes(latents, seed, tiles[0], starts[0], centres)
        return tiles, numbers, starts, centres[None], np.array([probes])

    def _probes(
        self, latents: np.ndarray, seed: int, tiles: np.ndarray, starts: np.ndarray, centres: np.ndarray
    ) -> int:
        """How many cells are enough for directions that will be asked, or as good as those."""
        past = past_queries(self.queries, latents.shape[1])
        measured = max(FIRST, int(2 * RARE / self.regret)) if len(past) == 0 else len(past)
        directions = np.empty((measured, latents.shape[1]), np.float32)
        key = np.uint64(derive(seed, Domain.SEARCH))
        draw(past, np.arange(len(past)), key, directions, 0, measured)
        best, places = np.empty(measured, np.float32), np.empty(measured, np.int64)
        winners(directions, latents, best, places)
        return partitions.probes_for(tiles, starts, centres, directions, best, mean_row(latents), self.regret)


def cells_for(count: int) -> int:
    """About the square root of the candidates' number, in whole blocks."""
    return min(max(round(count**0.5 / LANES), 1), 256) * LANES
