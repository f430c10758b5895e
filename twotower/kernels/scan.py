"""Maximum inner product over feature-major tiles.

Hardly any tile holds a new best, and counting the products above a bar is vectorised where a running maximum is not:
so a tile is first counted, and looked at again only where the count is not zero.
"""

import numpy as np
from numba import njit

from twotower.kernels.box_tree import largest, score_leaf
from twotower.kernels.layout import LANES


def unrolled(width):
    """A scanner that sums its last `width` features (1, 2, 3, 4, 6 or 8) at once, in the order of `score_leaf`."""

    @njit(cache=True, fastmath={"contract"})
    def first_above(queries, k, queries_end, tiles, tile, tiles_end, bars, partial):
        """The first (tile, query) of [tile, tiles_end) × [k, queries_end) with a product above the query's bar."""
        first, count = queries.shape[1] - width, tiles.shape[2]
        for at in range(tile, tiles_end):
            for n in range(k, queries_end):
                for c in range(0, first, 4):
                    a, b, d, e = queries[n, c], queries[n, c + 1], queries[n, c + 2], queries[n, c + 3]
                    for t in range(count):
                        total = a * tiles[at, c, t] + b * tiles[at, c + 1, t]
                        total = total + d * tiles[at, c + 2, t] + e * tiles[at, c + 3, t]
                        partial[t] = total if c == 0 else partial[t] + total
                w0 = queries[n, first]
                w1 = queries[n, first + 1] if width > 1 else w0
                w2 = queries[n, first + 2] if width > 2 else w0
                w3 = queries[n, first + 3] if width > 3 else w0
                w4 = queries[n, first + 4] if width > 4 else w0
                w5 = queries[n, first + 5] if width > 4 else w0
                w6 = queries[n, first + 6] if width > 6 else w0
                w7 = queries[n, first + 7] if width > 6 else w0
                bar, above = bars[n], np.int32(0)
                for t in range(count):
                    total = w0 * tiles[at, first, t]
                    if width == 2:
                        total += w1 * tiles[at, first + 1, t]
                    if width == 3:
                        total += w1 * tiles[at, first + 1, t] + w2 * tiles[at, first + 2, t]
                    if width >= 4:
                        total = total + w1 * tiles[at, first + 1, t] + w2 * tiles[at, first + 2, t]
                        total += w3 * tiles[at, first + 3, t]
                    total += partial[t]
                    if width == 6:
                        total += w4 * tiles[at, first + 4, t] + w5 * tiles[at, first + 5, t]
                    if width == 8:
                        more = w4 * tiles[at, first + 4, t] + w5 * tiles[at, first + 5, t]
                        total += more + w6 * tiles[at, first + 6, t] + w7 * tiles[at, first + 7, t]
                    above += np.int32(total > bar)
                if above > 0:
                    return at, n
        return tiles_end, queries_end

    return first_above


above_1, above_2, above_3, above_4, above_6, above_8 = (unrolled(width) for width in (1, 2, 3, 4, 6, 8))


@njit(cache=True)
def first_above(queries, k, queries_end, tiles, tile, tiles_end, bars, partial):
    """The first (tile, query) with a product above the query's bar, or the ends; partial (width,) begins as zeros."""
    size = queries.shape[1]
    if size == 1 or (size > 4 and size % 4 == 1):
        return above_1(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)
    if size == 2:
        return above_2(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)
    if size % 4 == 3:
        return above_3(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)
    if size == 4:
        return above_4(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)
    if size % 4 == 2:
        return above_6(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)
    return above_8(queries, k, queries_end, tiles, tile, tiles_end, bars, partial)


@njit(cache=True)
def improve(query, tile, start, scores, lanes, best, places, k):
    """Raise best[k] to a tile's largest product if that is larger, and remember the first place that has it."""
    score_leaf(query, tile, scores)
    value = largest(scores, lanes)
    if value > best[k]:
        t = 0
        while scores[t] != value:
            t += 1
        best[k], places[k] = value, start + t


@njit(cache=True)
def winners(queries, tiles, best, places):
    """The place of the best candidate for every query (K, d), a tile (d, width) at a time for all of them."""
    count, width = queries.shape[0], tiles.shape[2]
    scores, partial, lanes = np.empty(width, np.float32), np.zeros(width, np.float32), np.empty(LANES, np.float32)
    best[:] = -np.inf
    places[:] = 0
    for k in range(count):
        improve(queries[k], tiles[0], 0, scores, lanes, best, places, k)
    for tile in range(1, tiles.shape[0]):
        k = 0
        while k < count:
            k = first_above(queries, k, count, tiles, tile, tile + 1, best, partial)[1]
            if k < count:
                improve(queries[k], tiles[tile], tile * width, scores, lanes, best, places, k)
                k += 1


@njit(cache=True)
def search_scan(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate of set sets[n].

    tiles (sets, tiles, d, width); numbers (sets, tiles · width); used (sets,), how many tiles count. visited (n,)
    counts the candidates scored.
    """
    tiles, numbers, used = tables
    width = tiles.shape[3]
    scores, partial, lanes = np.empty(width, np.float32), np.zeros(width, np.float32), np.empty(LANES, np.float32)
    best, places = np.empty(sets.size, np.float32), np.zeros(sets.size, np.int64)
    best[:] = -np.inf
    for n in range(sets.size):
        at = sets[n]
        improve(queries[n], tiles[at, 0], 0, scores, lanes, best, places, n)
        tile = 1
        while tile < used[at]:
            tile = first_above(queries, n, n + 1, tiles[at], tile, used[at], best, partial)[0]
            if tile < used[at]:
                improve(queries[n], tiles[at, tile], tile * width, scores, lanes, best, places, n)
                tile += 1
        found[n] = numbers[at, places[n]]
        visited[n] = used[at] * width
