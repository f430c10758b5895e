"""Inverted lists: candidates lie cell by cell, and a query scores the cells whose centres it likes best."""

import numpy as np
from numba import njit

from twotower.kernels.box_tree import score_leaf
from twotower.kernels.coreset import RARE, SURE
from twotower.kernels.layout import LANES
from twotower.kernels.scan import aligned, scan

ROUNDS = 5  # of Lloyd's algorithm
SAMPLE = 32  # candidates a cell to place its centre
PROBES = 64  # cells at most, if it is not all


@njit(cache=True)
def place_centres(latents, centres):
    """Fill centres (cells, d) by Lloyd's algorithm on a sample of every so many latents (N, d)."""
    cells, size = centres.shape
    sample = latents[:: max(latents.shape[0] // (SAMPLE * cells), 1)].copy()
    for cell in range(cells):
        centres[cell] = sample[cell * sample.shape[0] // cells]
    nearest, sums, members = np.empty(sample.shape[0], np.int32), np.empty((cells, size)), np.empty(cells, np.int64)
    for _ in range(ROUNDS):
        assign(sample, centres, nearest)
        sums[:], members[:] = 0, 0
        for i in range(nearest.size):
            members[nearest[i]] += 1
            for c in range(size):
                sums[nearest[i], c] += sample[i, c]
        for cell in range(cells):
            for c in range(size if members[cell] > 0 else 0):
                centres[cell, c] = sums[cell, c] / members[cell]


@njit(cache=True)
def assign(latents, centres, nearest):
    """The nearest of the centres (cells, d) to each of the latents (N, d): the largest x·c - |c|² / 2."""
    cells, size = centres.shape
    tiles = aligned(cells * (size + 1)).reshape(cells // LANES, size + 1, LANES)
    for cell in range(cells):
        half = 0.0
        for c in range(size):
            tiles[cell // LANES, c, cell % LANES] = centres[cell, c]
            half += np.float64(centres[cell, c]) ** 2 / 2
        tiles[cell // LANES, size, cell % LANES] = -half
    row = np.ones((1, size + 1), np.float32)
    for i in range(latents.shape[0]):
        for c in range(size):
            row[0, c] = latents[i, c]
        _, place = scan(row, 0, tiles, 0, size + 1, 0, tiles.shape[0], np.float32(-np.inf), 0)
        nearest[i] = place


@njit(cache=True)
def fill_cells(latents, nearest, tiles, numbers, starts):
    """Lay the latents (N, d) out by cells of whole blocks, the last of a cell repeated, and say where cells begin."""
    members = np.zeros(starts.size - 1, np.int64)
    for i in range(nearest.size):
        members[nearest[i]] += 1
    starts[0] = 0
    for cell in range(members.size):
        starts[cell + 1] = starts[cell] + (members[cell] + LANES - 1) // LANES
    free = starts[:-1] * LANES
    numbers[:] = 0
    for i in range(nearest.size):
        numbers[free[nearest[i]]] = i
        free[nearest[i]] += 1
    for cell in range(members.size):
        for place in range(free[cell], starts[cell + 1] * LANES):
            numbers[place] = numbers[free[cell] - 1]
    for place in range(starts[-1] * LANES):
        for c in range(latents.shape[1]):
            tiles[place // LANES, c, place % LANES] = latents[numbers[place], c]


@njit(cache=True)
def search_partitions(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate in the probed cells of set sets[n].

    tiles (sets, blocks, d, LANES) and numbers (sets, blocks · LANES) lie cell by cell, from the blocks in starts (sets,
    cells + 1); centres (sets, d, cells); probes (sets,). visited (n,) counts the candidates scored.
    """
    tiles, numbers, starts, centres, probes = tables
    size, room = queries.shape[1], tiles.shape[1] * queries.shape[1] * LANES
    one, scores = np.ones((1, 1), np.float32), aligned(centres.shape[2])
    for n in range(sets.size):
        at = sets[n]
        score_leaf(queries[n], centres[at], scores)
        best, place, left, visited[n] = np.float32(-np.inf), -1, probes[at], 0
        while left > 0 or place < 0:  # every candidate is in some cell
            _, cell = scan(one, 0, scores, 0, 1, 0, scores.size // LANES, np.float32(-np.inf), 0)
            scores[cell] = -np.inf
            begin, end = starts[at, cell], starts[at, cell + 1]
            best, place = scan(queries, n * size, tiles, at * room, size, begin, end, best, place)
            visited[n] += (end - begin) * LANES
            left -= 1
        found[n] = numbers[at, place]


@njit(cache=True)
def probes_for(tiles, starts, centres, directions, best, mean, wanted):
    """The least probes with which directions (n, d), whose best products are known, regret no more than wanted."""
    cells, count, size = centres.shape[1], directions.shape[0], directions.shape[1]
    most = min(PROBES, cells)
    one, scores = np.ones((1, 1), np.float32), aligned(cells)
    sums, squares = np.zeros(most), np.zeros(most)
    for n in range(count):
        score_leaf(directions[n], centres, scores)
        middle, found = 0.0, np.float32(-np.inf)
        for c in range(size):
            middle += mean[c] * directions[n, c]
        for probe in range(most):
            _, cell = scan(one, 0, scores, 0, 1, 0, cells // LANES, np.float32(-np.inf), 0)
            scores[cell] = -np.inf
            found, _ = scan(directions, n * size, tiles, 0, size, starts[cell], starts[cell + 1], found, 0)
            if found >= best[n]:
                break
            regret = min((best[n] - found) / (best[n] - middle), 1.0) if best[n] > middle else 0.0
            sums[probe] += regret
            squares[probe] += regret * regret
    for probe in range(most):
        regret = sums[probe] / count
        error = SURE * np.sqrt(max(squares[probe] / count - regret * regret, 0.0) / count) + RARE / count
        if regret + error <= wanted:
            return probe + 1
    return cells
