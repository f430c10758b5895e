"""Exact maximum inner product over feature-major tiles."""

import numpy as np
from numba import njit

from twotower.kernels.layers import dense_tile, first_index, tile_maximum
from twotower.kernels.layout import LANES, TILE


@njit(cache=True)
def scan_tiles(query, tiles, scores, lanes):
    """The largest q·f over tiles (tiles, d, TILE) and the first place that has it."""
    best, place = np.float32(-np.inf), 0
    size = tiles.shape[1]
    for tile in range(tiles.shape[0]):
        dense_tile(query, 0, size, size, 1, tiles[tile], scores)
        value = tile_maximum(scores[0], lanes)
        if value > best:
            best, place = value, tile * TILE + first_index(scores[0], value)
    return best, place


@njit(cache=True)
def search_scan(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate of set sets[n]; tiles (sets, tiles, d, TILE), numbers (sets, ·).

    visited (n,) counts the candidates scored.
    """
    tiles, numbers = tables
    scores, lanes = np.empty((1, TILE), np.float32), np.empty(LANES, np.float32)
    for n in range(sets.size):
        place = scan_tiles(queries[n], tiles[sets[n]], scores, lanes)[1]
        found[n] = numbers[sets[n], place]
        visited[n] = numbers.shape[1]


@njit(cache=True)
def winners(directions, tiles, best, places):
    """The place of the best candidate for every direction (K, d), a tile at a time for all of them."""
    scores, lanes = np.empty((1, TILE), np.float32), np.empty(LANES, np.float32)
    size = tiles.shape[1]
    best[:] = -np.inf
    places[:] = 0
    for tile in range(tiles.shape[0]):
        for k in range(directions.shape[0]):
            dense_tile(directions[k], 0, size, size, 1, tiles[tile], scores)
            value = tile_maximum(scores[0], lanes)
            if value > best[k]:
                best[k], places[k] = value, tile * TILE + first_index(scores[0], value)
