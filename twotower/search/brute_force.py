"""Exact search: every candidate is scored, tile by tile in cache."""

from typing import final

import numpy as np

from twotower.kernels.layout import LANES, TILE, padded
from twotower.kernels.scan import scan_tiles
from twotower.search.base import Index


@final
class BruteForce(Index):
    """Scores all candidates; nothing to tune, never wrong."""

    def _build(self, seed: int) -> None:
        count, size = self.latents.shape
        columns = np.zeros((padded(count), size), np.float32)
        columns[:count] = self.latents
        self._tiles = np.ascontiguousarray(columns.reshape(-1, TILE, size).transpose(0, 2, 1))  # (tiles, d, TILE)
        self._scores = np.zeros((1, TILE), np.float32)
        self._lanes = np.zeros(LANES, np.float32)

    def _query(self, latent: np.ndarray) -> int:
        return int(scan_tiles(latent, self._tiles, len(self), self._scores, self._lanes)[1])
