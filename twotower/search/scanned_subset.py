"""Indexes that score some of the candidates, chosen when they are built, whatever the query."""

from abc import abstractmethod

import numpy as np

from twotower.kernels.layout import TILE, aligned_zeros, padded
from twotower.kernels.scan import search_scan
from twotower.search.base import CompiledIndex, Tables


class ScannedSubset(CompiledIndex):
    """Scores every member of a subset of the candidates, a tile at a time."""

    search = staticmethod(search_scan)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        members = self._members(latents, seed)
        return tiled(latents[members]), np.pad(members, (0, -len(members) % TILE), mode="edge")[None]

    @abstractmethod
    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        """The numbers of the candidates to score, ascending."""


def tiled(latents: np.ndarray) -> np.ndarray:
    """Latents (N, d) as one set of feature-major tiles (1, tiles, d, TILE); the last is repeated to the end."""
    count, size = latents.shape
    tiles = aligned_zeros((1, padded(count) // TILE, size, TILE))
    whole = count // TILE
    tiles[0, :whole] = latents[: whole * TILE].reshape(whole, TILE, size).transpose(0, 2, 1)
    if whole * TILE < count:
        tiles[0, whole] = latents[-1][:, None]
        tiles[0, whole, :, : count - whole * TILE] = latents[whole * TILE :].T
    return tiles
