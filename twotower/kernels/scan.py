"""Exact maximum inner product over feature-major tiles."""

import numpy as np
from numba import njit

from twotower.kernels.layers import dense_tile, first_index, tile_maximum
from twotower.kernels.layout import TILE


@njit(cache=True)
def scan_tiles(query, tiles, count, scores, lanes):
    """The largest q·f over tiles (tiles, d, TILE) and the first index that has it."""
    best, index = np.float32(-np.inf), 0
    size = tiles.shape[1]
    for tile in range(tiles.shape[0]):
        dense_tile(query, 0, size, size, 1, tiles[tile], scores)
        for t in range(max(count - tile * TILE, 0), TILE):
            scores[0, t] = -np.inf
        value = tile_maximum(scores[0], lanes)
        if value > best:
            best, index = value, tile * TILE + first_index(scores[0], value)
    return best, index
