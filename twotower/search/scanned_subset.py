"""Indexes that score some of the candidates, chosen when they are built, whatever the query."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from twotower.kernels.layout import LANES, TILE, aligned_zeros
from twotower.kernels.scan import search_scan
from twotower.search.base import CompiledIndex, Search, Tables

NARROW = 128  # where most of the room may stay empty


class ScannedSubset(CompiledIndex):
    """Scores every member of a subset of the candidates, a tile at a time."""

    search: ClassVar[Search] = staticmethod(search_scan)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        members = self._members(latents, seed)
        capacity = self._capacity(len(latents)) or len(members)
        return subset_tables(latents, members, capacity, TILE if capacity > TILE else NARROW)

    def _capacity(self, count: int) -> int:
        """The most members that any `count` latents could have, or 0 where that is of no use."""
        return 0

    @abstractmethod
    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        """The numbers of the candidates to score, ascending."""


def fitting(members: int) -> int:
    """The width of a tile that holds so many members, or of one of several."""
    return min(members + -members % LANES, TILE)


def subset_tables(latents: np.ndarray, members: np.ndarray | None, capacity: int, width: int) -> Tables:
    """The tables of `search_scan` for some members of latents (N, d), or for all, with room for `capacity`."""
    if members is None:
        members = np.arange(len(latents), dtype=np.int32)
        tiles = tiled(latents, capacity, width)
    else:
        members = members.astype(np.int32)
        tiles = tiled(latents[members], capacity, width)
    missing = tiles.shape[1] * width - len(members)
    numbers = np.concatenate([members, np.full(missing, members[-1])]) if missing else members
    return tiles, numbers[None], np.array([-(-len(members) // width)])


def tiled(latents: np.ndarray, capacity: int = 0, width: int = TILE) -> np.ndarray:
    """Latents (N, d) as one set of feature-major tiles (1, tiles, d, width); the last is repeated to the tile's end."""
    count, size = latents.shape
    tiles = aligned_zeros((1, -(-max(count, capacity) // width), size, width))
    whole = count // width
    tiles[0, :whole] = latents[: whole * width].reshape(whole, width, size).transpose(0, 2, 1)
    if whole * width < count:
        tiles[0, whole] = latents[-1][:, None]
        tiles[0, whole, :, : count - whole * width] = latents[whole * width :].T
    return tiles
