"""Exact draws from a softmax that look at few candidates: Gumbel noise, drawn only where it could win.

Of y_i + G_i, with G_i standard Gumbel noise, the largest is that of candidate i with probability exp(y_i) / Σ exp(y).
The noise of n candidates whose y is at most u is a Poisson process: its arrivals u + log n − log(E₁ + … + E_j), of
uniformly drawn candidates, bound y_i + G_i from above and fall, so that they end where they pass the best so far.
"""

import math

import numpy as np
from numba import njit

from twotower.kernels.box_tree import DEPTH, FANOUT, ROUNDING, bound_children, levels_of, search_box_tree, turn
from twotower.kernels.counter import uniform

ARRIVALS = 16.0


@njit(cache=True)
def tamed(query, target):
    """Fill target with the query times a power of two that keeps products from overflow; returns its inverse."""
    largest = np.float32(0.0)
    for c in range(query.size):
        largest = max(largest, abs(query[c]))
    exponent = math.frexp(largest)[1]
    for c in range(query.size):
        target[c] = math.ldexp(np.float64(query[c]), -exponent)
    return math.ldexp(1.0, exponent)


@njit(cache=True)
def search_lazy_gumbel(sets, queries, tables, found, visited):
    """The best candidate itself: `search_box_tree` for queries of any scale."""
    safe = np.empty_like(queries)
    for n in range(sets.size):
        tamed(queries[n], safe[n])
    search_box_tree(sets, safe, tables[:5], found, visited)


@njit(cache=True)
def draw_lazy_gumbel(sets, queries, keys, tables, found, visited):
    """For query n a candidate of set sets[n], drawn from its softmax by the randomness that keys[n] names.

    The tables are those of `search_box_tree` and scales (sets,), by which products are to be multiplied. visited (n,)
    counts the candidates scored.
    """
    points, numbers, boxes, rotations, facts, scales = tables
    levels = levels_of(points.shape[1])
    query, products = np.empty(queries.shape[1], np.float32), np.empty(points.shape[3])
    scratch = np.empty((2, query.size), np.float32), np.empty((DEPTH, FANOUT), np.float32), np.empty(DEPTH, np.int64)
    for n in range(sets.size):
        at = sets[n]
        scale = min(scales[at] * tamed(queries[n], query), 1e300)
        found[n], visited[n] = race(
            query, scale, keys[n], points[at], numbers[at], boxes[at], rotations[at], facts[at], levels, products,
            scratch,
        )  # fmt: skip


@njit(cache=True)
def race(query, scale, key, points, numbers, boxes, rotation, facts, levels, products, scratch):
    """The winner and how many were scored: box by box, first those that may hold the largest products."""
    rotated, bounds, path = scratch
    leaves, size, capacity = points.shape
    margin = turn(query, rotation, rotated) * facts[size] * size * ROUNDING
    last, level, counter, visited = levels.size - 2, 0, 0, 0
    best, winner = -np.inf, np.int64(0)
    path[0] = 0
    bound_children(rotated[0], rotated[1], boxes[0], bounds[0])
    bounds[0, leaves if last == 0 else levels[2] - levels[1] :] = -np.inf
    while level >= 0:
        child = np.argmax(bounds[level])
        if bounds[level, child] == -np.inf:
            level -= 1
            continue
        ceiling = (np.float64(bounds[level, child]) + margin) * scale  # u
        bounds[level, child] = -np.inf
        node = path[level] * FANOUT + child
        below = FANOUT ** (last - level)  # leaves of a child
        places = min(below, leaves - node * below) * capacity
        if places * np.exp(ceiling - best) > ARRIVALS:
            if level < last:
                level += 1
                path[level] = node
                bound_children(rotated[0], rotated[1], boxes[levels[level] + node], bounds[level])
                continue
            count = occupied(numbers[node])
            visited += count
            value, place = leaf_winner(query, scale, points[node], count, key, counter, products)
            counter += 2
            if value > best:
                best, winner = value, np.int64(numbers[node, place])
            continue
        passed = 0.0
        while True:
            passed -= np.log(uniform(key, counter))
            arrival = ceiling + np.log(places / passed)
            counter += 2
            if not arrival > best:
                break
            place = int(uniform(key, counter - 1) * places)
            leaf, place = node * below + place // capacity, place % capacity
            if place >= occupied(numbers[leaf]):  # where a short leaf repeats its last
                continue
            visited += 1
            value = arrival - ceiling + scale * product(query, points[leaf], place)
            if value > best:
                best, winner = value, np.int64(numbers[leaf, place])
    return winner, visited


@njit(cache=True)
def occupied(numbers):
    """How many candidates a leaf holds before its last is repeated."""
    count = numbers.size
    while count > 1 and numbers[count - 2] == numbers[count - 1]:
        count -= 1
    return count


@njit(cache=True)
def product(query, points, place):
    """q·x of one candidate of a leaf, points (d, size)."""
    total = 0.0
    for c in range(query.size):
        total += np.float64(query[c]) * np.float64(points[c, place])
    return total


@njit(cache=True)
def leaf_winner(query, scale, points, count, key, counter, products):
    """The largest of a leaf's y_i + G_i, which is log Σ exp(y) + G whoever wins, and its place."""
    largest, total = -np.inf, 0.0
    for i in range(count):
        products[i] = scale * product(query, points, i)
        largest = max(largest, products[i])
    for i in range(count):
        products[i] = np.exp(products[i] - largest)
        total += products[i]
    target, place = uniform(key, counter + 1) * total, 0
    running = products[0]
    while running <= target and place < count - 1:
        place += 1
        running += products[place]
    return largest + np.log(total) - np.log(-np.log(uniform(key, counter))), place
