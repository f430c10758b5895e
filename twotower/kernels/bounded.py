"""Exact argmax over kept candidates by branch and bound, for action towers with at most one hidden layer.

In a box of actions every ReLU of the tower lies between two lines, so q·relu(W a) lies under one linear
function of a (the relaxation that verifies neural networks), whose maximum over the box is closed form. Boxes
whose bound is below a score already seen cannot hold the winner. Only the boxes, W and q are read, so the
search stays in cache where scanning every member's features would wait for memory.
"""

import numpy as np
from numba import njit

from twotower.kernels.implicit import query_of
from twotower.kernels.layers import RELU, activate_tile, dense_tile, tile_maximum
from twotower.kernels.layout import LANES, TILE

MARGIN = np.float32(3e-5)  # of the largest possible score: far above the rounding of a bound or a score
REMEMBERED = 16


@njit(cache=True, fastmath={"contract"})
def bound_boxes(weights, start, hidden, query, boxes, count, work, bounds):
    """Upper bounds (count,) of the scores in boxes (2, a, ≥ count); hidden is 0 for a one-matrix tower.

    work (a + 4, ≥ count) holds the linear functions' slopes, then offset, centre, half-width and slope of a unit.
    """
    size = boxes.shape[1]
    slopes, offset, middle, reach = work[:size], work[size], work[size + 1], work[size + 2]
    offset[:count] = 0.0
    for d in range(size):
        slopes[d, :count] = query[d] if hidden == 0 else 0.0
    for j in range(hidden):
        row, factor = start + j * size, query[j]
        middle[:count] = 0.0
        reach[:count] = 0.0
        for d in range(size):
            weight = weights[row + d]
            magnitude = abs(weight)
            centres, widths = boxes[0, d], boxes[1, d]
            for k in range(count):
                middle[k] += weight * centres[k]
                reach[k] += magnitude * widths[k]
        relax(factor, count, middle, reach, offset)
        for d in range(size):
            weight = weights[row + d]
            slope = slopes[d]
            for k in range(count):
                slope[k] += weight * middle[k]
    for k in range(count):
        bounds[k] = offset[k]
    for d in range(size):
        slope, centres, widths = slopes[d], boxes[0, d], boxes[1, d]
        for k in range(count):
            bounds[k] += slope[k] * centres[k] + abs(slope[k]) * widths[k]


@njit(cache=True, fastmath={"contract"})
def relax(factor, count, middle, reach, offset):
    """Replace middle by the slope of the line over factor·relu(z) for z in middle ± reach; offset gains its height.

    Over a rising unit (factor > 0) that is the chord, under a falling one the line through zero on z's side.
    """
    zero, one = np.float32(0.0), np.float32(1.0)
    if factor > zero:
        for k in range(count):
            low, high = middle[k] - reach[k], middle[k] + reach[k]
            chord = max(high, zero) / max(high - low, np.float32(1e-30))
            slope = one if low >= zero else chord
            offset[k] -= factor * slope * (zero if low >= zero else low)
            middle[k] = factor * slope
    else:
        for k in range(count):
            middle[k] = factor if middle[k] > zero else zero


@njit(cache=True)
def choose_bounded(
    slots,
    observations,
    parameters,
    state_sizes,
    sizes,
    activation,
    actions_in_order,  # (a, leaves · leaf size): the tree's candidates
    indices,  # (leaves · leaf size,)
    leaf_boxes,  # (2, a, leaves)
    coarse_boxes,  # (2, a, coarse)
    winners,  # (slots, REMEMBERED) int64: places of a slot's recent winners, -1 where there is none
    scratch,
    bounded_scratch,  # boxes (2, a, leaves), work (a + 3, leaves), bounds (leaves,), survivors (2, leaves) int64
    chosen,
    visited,  # out (n,) int64: candidates scored
    actions,
):
    """The first of the best candidates, for every acting slot: brute force's answer without its work."""
    tiles, vectors, query, _, _ = scratch
    hidden = sizes[1] if sizes.size == 3 else 0
    start = 0
    for layer in range(state_sizes.size - 1):
        start += state_sizes[layer] * state_sizes[layer + 1]
    for n in range(slots.size):
        weights = parameters[slots[n]]
        query_of(False, observations[n], weights, state_sizes, sizes, activation, vectors, query)
        place, visited[n] = search_tree(
            weights, start, hidden, query, actions_in_order, indices, leaf_boxes, coarse_boxes, winners[slots[n]],
            tiles, bounded_scratch,
        )  # fmt: skip
        chosen[n] = indices[place]
        for d in range(actions.shape[1]):
            actions[n, d] = actions_in_order[d, place]


@njit(cache=True)
def search_tree(
    weights, start, hidden, query, actions_in_order, indices, leaf_boxes, coarse_boxes, winners, tiles, bounded_scratch
):
    """The place of the best candidate in the tree's order, of equals the lowest index's, and how many were scored."""
    boxes, work, bounds, survivors = bounded_scratch
    size, leaves, coarse = leaf_boxes.shape[1], leaf_boxes.shape[2], coarse_boxes.shape[2]
    leaf_size, fanout = indices.size // leaves, leaves // coarse
    floor = known_score(weights, start, hidden, query, actions_in_order, winners, tiles) - margin(
        weights, start, hidden, size, query, coarse_boxes
    )
    bound_boxes(weights, start, hidden, query, coarse_boxes, coarse, work, bounds)
    packed = 0
    for box in range(coarse):
        if not bounds[box] < floor:  # a bound that is not a number rules nothing out
            for child in range(box * fanout, (box + 1) * fanout):
                survivors[0, packed] = child
                for d in range(size):
                    boxes[0, d, packed], boxes[1, d, packed] = leaf_boxes[0, d, child], leaf_boxes[1, d, child]
                packed += 1
    bound_boxes(weights, start, hidden, query, boxes, packed, work, bounds)
    remaining = 0
    for k in range(packed):
        if not bounds[k] < floor:
            survivors[1, remaining] = survivors[0, k]
            remaining += 1
    place = best_in_leaves(
        weights, start, hidden, query, actions_in_order, indices, survivors[1, :remaining], leaf_size, tiles
    )
    remember(winners, place)
    return place, remaining * leaf_size


@njit(cache=True)
def best_in_leaves(weights, start, hidden, query, actions_in_order, indices, leaves, leaf_size, tiles):
    """Score the candidates of some leaves, a tile at a time."""
    lanes = np.empty(LANES, np.float32)
    size, per_tile = actions_in_order.shape[0], TILE // leaf_size
    best, place, first = np.float32(-np.inf), 0, indices.size
    for begin in range(0, leaves.size, per_tile):
        group = leaves[begin : begin + per_tile]
        for d in range(size):
            for k in range(group.size):
                source = group[k] * leaf_size
                for i in range(leaf_size):
                    tiles[0, d, k * leaf_size + i] = actions_in_order[d, source + i]
        score_actions(weights, start, hidden, size, query, tiles)
        used = group.size * leaf_size
        tiles[2, 0, used:] = -np.inf
        value = tile_maximum(tiles[2, 0], lanes)
        if value >= best:
            for t in range(used):
                if tiles[2, 0, t] == value:
                    candidate = group[t // leaf_size] * leaf_size + t % leaf_size
                    if value > best or indices[candidate] < first:
                        best, place, first = value, candidate, indices[candidate]
    while first == indices.size and indices[place] != 0:  # no score is a number: brute force answers 0
        place += 1
    return place


@njit(cache=True)
def score_actions(weights, start, hidden, size, query, tiles):
    """Scores in tiles[2, 0] of the actions in tiles[0]: the sums of `score_tile`, in its order."""
    if hidden == 0:
        dense_tile(query, 0, size, size, 1, tiles[0], tiles[2])
        return
    dense_tile(weights, start, size, size, hidden, tiles[0], tiles[1])
    activate_tile(RELU, hidden, tiles[1])
    dense_tile(query, 0, hidden, hidden, 1, tiles[1], tiles[2])


@njit(cache=True)
def known_score(weights, start, hidden, query, actions_in_order, winners, tiles):
    """The best score among a slot's recent winners: often the winner again, and always a lower bound."""
    size, best = actions_in_order.shape[0], np.float32(-np.inf)
    for w in range(winners.size):
        if winners[w] < 0:
            break
        score = np.float32(0.0)
        for j in range(max(hidden, 1)):
            unit = np.float32(0.0)
            for d in range(size):
                unit += (weights[start + j * size + d] if hidden > 0 else query[d]) * actions_in_order[d, winners[w]]
            score += query[j] * max(unit, np.float32(0.0)) if hidden > 0 else unit
        best = max(best, score)
    return best


@njit(cache=True)
def margin(weights, start, hidden, size, query, boxes):
    """How much a score or a bound could be off by rounding, generously; infinite near the limits of float32."""
    largest = np.float32(0.0)
    for d in range(size):
        for k in range(boxes.shape[2]):
            largest = max(largest, abs(boxes[0, d, k]) + boxes[1, d, k])
    total, unit, factor = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for j in range(hidden if hidden > 0 else size):
        magnitude = np.float32(0.0)
        for d in range(size if hidden > 0 else 1):
            weight = abs(weights[start + j * size + d]) if hidden > 0 else np.float32(1.0)
            magnitude += weight
            total += abs(query[j]) * weight
        unit, factor = max(unit, magnitude * largest), max(factor, abs(query[j]))
    score = total * largest
    # Beyond these, products round by more than a fraction of the result, or to zero or infinity.
    usual = 1e-25 < total < 1e25 and unit < 1e25 and 1e-25 * max(factor, np.float32(1.0)) < score < 1e25
    return MARGIN * score if usual else np.float32(np.inf)


@njit(cache=True)
def remember(winners, place):
    """Move a winner to the front of a slot's recent ones."""
    position = winners.size - 1
    for w in range(winners.size):
        if winners[w] == place:
            position = w
            break
    for w in range(position, 0, -1):
        winners[w] = winners[w - 1]
    winners[0] = place
