"""Indexes that score some of the candidates, chosen when they are built, whatever the query."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from twotower.kernels.layout import LANES, aligned_zeros
from twotower.kernels.scan import lay_out, lay_out_rows, search_scan
from twotower.search.base import CompiledIndex, Search, Tables


class ScannedSubset(CompiledIndex):
    """Scores every member of a subset of the candidates, a block at a time."""

    search: ClassVar[Search] = staticmethod(search_scan)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        return subset_tables(latents, self._members(latents, seed), self._capacity(len(latents)))

    def _capacity(self, count: int) -> int:
        """The most members that any `count` latents could have, or 0 where that is of no use."""
        return 0

    @abstractmethod
    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        """The numbers of the candidates to score, ascending."""


def subset_tables(latents: np.ndarray, members: np.ndarray, capacity: int = 0) -> Tables:
    """The tables of `search_scan` for some members of latents (N, d), with room for `capacity`."""
    blocks = -(-max(len(members), capacity) // LANES)
    tiles, numbers = aligned_zeros((1, blocks, latents.shape[1], LANES)), np.empty((1, blocks * LANES), np.int32)
    lay_out(latents, members, tiles[0], numbers[0])
    return tiles, numbers, np.array([-(-len(members) // LANES)])


def whole_tables(latents: np.ndarray) -> Tables:
    """The tables of `search_scan` for all of latents (N, d)."""
    count, size = latents.shape
    blocks = -(-count // LANES)
    tiles, numbers = aligned_zeros((1, blocks, size, LANES)), np.empty((1, blocks * LANES), np.int32)
    lay_out_rows(latents, 0, tiles[0], numbers[0])
    return tiles, numbers, np.array([blocks])
