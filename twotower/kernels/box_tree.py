"""A tree of boxes around latents, and branch and bound through it for the largest inner product.

A box with centre c and half-widths h holds no latent whose product with q exceeds q·c + |q|·h. Boxes lie along the
latents' principal axes, where they are tightest; products are taken in the latents' own coordinates.
"""

import numpy as np
from numba import njit

from twotower.kernels.layout import LANES

FANOUT = 16  # children of a node, whose bounds are one vector
DEPTH = 8
BLOCK = 256
ROUNDING = np.float32(2.0**-21)  # of |q|·|x|, for each term of a sum: far above the rounding of a bound or a score


@njit(cache=True)
def levels_of(leaves):
    """Where each level's nodes begin (depth + 1,), the root first; a node holds the boxes of its children."""
    counts = np.zeros(DEPTH, np.int64)
    depth = 0
    while True:
        leaves = (leaves + FANOUT - 1) // FANOUT
        counts[depth] = leaves
        depth += 1
        if leaves == 1:
            break
    starts = np.zeros(depth + 1, np.int64)
    for level in range(depth):
        starts[level + 1] = starts[level] + counts[depth - 1 - level]
    return starts


@njit(cache=True)
def facts_of(latents, facts):
    """Fill facts (d + 1,) with the latents' mean and their largest norm."""
    count, size = latents.shape
    sums, largest = np.zeros(size), 0.0
    for i in range(count):
        square = 0.0
        for c in range(size):
            value = np.float64(latents[i, c])
            sums[c] += value
            square += value * value
        largest = max(largest, square)
    for c in range(size):
        facts[c] = sums[c] / count
    facts[size] = np.sqrt(largest)


@njit(cache=True)
def rotate(rows, rotation, rotated):
    """rotated = rows · rotation, in one order of sums whatever the machine's BLAS."""
    for i in range(rows.shape[0]):
        rotated[i] = 0.0
        for c in range(rows.shape[1]):
            for k in range(rows.shape[1]):
                rotated[i, k] += rows[i, c] * rotation[c, k]


@njit(cache=True)
def halve(rows, levels, order):
    """Sort order (N,) by halving 2^levels - 1 times at medians of the widest axis; returns where leaves begin."""
    count = rows.shape[0]
    for i in range(count):
        order[i] = i
    keys, sorted_keys = np.empty(count, np.float32), np.empty(count, np.float32)
    spare = np.empty(count, np.int32)
    starts = np.array([0, count])
    for _ in range(levels):
        parents = starts
        starts = np.empty(2 * parents.size - 1, np.int64)
        starts[-1] = count
        for node in range(parents.size - 1):
            begin, end = parents[node], parents[node + 1]
            starts[2 * node] = begin
            starts[2 * node + 1] = begin + (end - begin + 1) // 2
            split(rows, order[begin:end], keys[: end - begin], sorted_keys, spare)
    return starts


@njit(cache=True)
def cut(rows, levels, axes, cuts):
    """Halve a sample as `halve` does, and keep where: node n splits axes[n] at cuts[n] into 2n and 2n + 1, from 1."""
    count = rows.shape[0]
    order = np.arange(count).astype(np.int32)
    keys, sorted_keys = np.empty(count, np.float32), np.empty(count, np.float32)
    spare = np.empty(count, np.int32)
    starts = np.array([0, count])
    for level in range(levels):
        parents = starts
        starts = np.empty(2 * parents.size - 1, np.int64)
        starts[-1] = count
        for node in range(parents.size - 1):
            begin, end = parents[node], parents[node + 1]
            middle = begin + (end - begin + 1) // 2
            starts[2 * node], starts[2 * node + 1] = begin, middle
            axis = widest_axis(rows, order[begin:end])
            split(rows, order[begin:end], keys[: end - begin], sorted_keys, spare)
            axes[(1 << level) + node] = axis
            largest = rows[order[begin], axis]
            for i in range(begin + 1, middle):
                largest = max(largest, rows[order[i], axis])
            cuts[(1 << level) + node] = largest


@njit(cache=True)
def sort_by_cuts(rows, levels, axes, cuts, leaves, order):
    """Sort order (N,) by the cells of a sample's cuts, and by number within each of the equal leaves it is dealt to."""
    count, cells = rows.shape[0], 1 << levels
    cell = np.empty(count, np.int32)
    ends = np.zeros(cells + 1, np.int64)
    for begin in range(0, count, BLOCK):  # level by level: rows do not wait for each other as a row's levels would
        nodes = cell[begin : begin + BLOCK]
        nodes[:] = 1
        for _ in range(levels):
            for i in range(nodes.size):
                node = nodes[i]
                nodes[i] = 2 * node + (rows[begin + i, axes[node]] > cuts[node])
    for i in range(count):
        cell[i] -= cells
        ends[cell[i] + 1] += 1
    for k in range(cells):
        ends[k + 1] += ends[k]
    starts = np.arange(leaves + 1) * count // leaves
    filled = starts[:-1].copy()
    for i in range(count):
        place = ends[cell[i]]
        ends[cell[i]] += 1
        leaf = ((place + 1) * leaves - 1) // count
        order[filled[leaf]] = i
        filled[leaf] += 1
    return starts


@njit(cache=True)
def split(rows, order, keys, values, spare):
    """Move the lower half of a node's latents along their widest axis to its front; equals keep their order."""
    axis = widest_axis(rows, order)
    count, half = order.size, (order.size + 1) // 2
    for i in range(count):
        keys[i] = rows[order[i], axis]
        values[i] = keys[i]
    median = select(values, count, half - 1)
    ties = half
    for i in range(count):
        ties -= keys[i] < median
    left = right = 0
    for i in range(count):  # without branches, which nothing could predict
        tied = keys[i] == median
        goes_left = (keys[i] < median) | (tied & (ties > 0))
        ties -= tied
        number = order[i]
        order[left] = number
        spare[right] = number
        left += goes_left
        right += 1 - goes_left
    order[left:] = spare[:right]


@njit(cache=True)
def widest_axis(rows, order):
    """The axis with the largest extent among at most 64 of a node's latents."""
    low, high = rows[order[0]].copy(), rows[order[0]].copy()
    for i in range(0, order.size, max(order.size // 64, 1)):
        for c in range(low.size):
            low[c], high[c] = min(low[c], rows[order[i], c]), max(high[c], rows[order[i], c])
    return np.argmax(high - low)


@njit(cache=True)
def select(values, count, rank):
    """The value of a rank among values[:count], which it reorders (quickselect with a sampled pivot)."""
    begin, end = 0, count
    sample = np.empty(15, np.float32)
    while end - begin > 15:
        for s in range(15):
            sample[s] = values[begin + (end - begin) * (2 * s + 1) // 30]
        sample.sort()
        pivot = sample[15 * (rank - begin) // (end - begin)]
        middle = begin
        for i in range(begin, end):
            value = values[i]
            values[i] = values[middle]
            values[middle] = value
            middle += value < pivot
        if rank < middle:
            end = middle
        elif middle > begin:
            begin = middle
        else:  # the pivot is the least: set all that equal it aside
            for i in range(begin, end):
                value = values[i]
                values[i] = values[middle]
                values[middle] = value
                middle += value <= pivot
            if rank < middle:
                return pivot
            begin = middle
    rest = values[begin:end]
    rest.sort()
    return rest[rank - begin]


@njit(cache=True)
def fill_leaves(latents, rotated, order, starts, points, numbers, boxes):
    """Lay the latents out by leaves, points (leaves, d, size), with their numbers and the boxes of all levels."""
    leaves, size, capacity = points.shape
    levels = levels_of(leaves)
    bottom = boxes[levels[levels.size - 2] :]
    for leaf in range(leaves):
        low, high = bottom[leaf // FANOUT, :size, leaf % FANOUT], bottom[leaf // FANOUT, size:, leaf % FANOUT]
        low[:] = np.inf
        high[:] = -np.inf
        for i in range(capacity):
            number = order[min(starts[leaf] + i, starts[leaf + 1] - 1)]  # the last of a short leaf is repeated
            numbers[leaf, i] = number
            for c in range(size):
                points[leaf, c, i] = latents[number, c]
                value = rotated[number, c]
                low[c], high[c] = min(low[c], value), max(high[c], value)
    children = leaves
    for level in range(levels.size - 2, 0, -1):
        children = merge_boxes(boxes[levels[level] :], children, boxes[levels[level - 1] :])
    for node in range(boxes.shape[0]):
        for c in range(size):
            for k in range(FANOUT):
                low, high = boxes[node, c, k], boxes[node, size + c, k]
                centre = np.float32(0.5) * (low + high)
                boxes[node, c, k], boxes[node, size + c, k] = centre, max(high - centre, centre - low)


@njit(cache=True)
def merge_boxes(children, count, parents):
    """Bound `count` boxes by one box for every FANOUT of them; returns how many that makes."""
    size = children.shape[1] // 2
    nodes = (count + FANOUT - 1) // FANOUT
    for node in range(nodes):
        used = min(FANOUT, count - node * FANOUT)
        for c in range(size):
            parents[node // FANOUT, c, node % FANOUT] = children[node, c, :used].min()
            parents[node // FANOUT, size + c, node % FANOUT] = children[node, size + c, :used].max()
    return nodes


@njit(cache=True, fastmath={"contract"})
def bound_children(query, magnitudes, boxes, bounds):
    """Upper bounds (FANOUT,) of the products in the children of a node, boxes (2d, FANOUT)."""
    size = query.size
    for k in range(FANOUT):
        bounds[k] = 0.0
    for c in range(size):
        centre, half, weight, magnitude = boxes[c], boxes[size + c], query[c], magnitudes[c]
        for k in range(FANOUT):
            bounds[k] += weight * centre[k] + magnitude * half[k]


@njit(cache=True, fastmath={"contract"})
def score_leaf(query, points, scores):
    """Products of the query with points (d, size): the sums of `dense_tile`, in its order."""
    size, count = query.size, scores.size
    i = 0
    if size >= 4:
        w0, w1, w2, w3 = query[0], query[1], query[2], query[3]
        x0, x1, x2, x3 = points[0], points[1], points[2], points[3]
        for t in range(count):
            scores[t] = w0 * x0[t] + w1 * x1[t] + w2 * x2[t] + w3 * x3[t]
        i = 4
    else:
        w0, x0 = query[0], points[0]
        for t in range(count):
            scores[t] = w0 * x0[t]
        i = 1
    while i + 4 <= size:
        w0, w1, w2, w3 = query[i], query[i + 1], query[i + 2], query[i + 3]
        x0, x1, x2, x3 = points[i], points[i + 1], points[i + 2], points[i + 3]
        for t in range(count):
            scores[t] += w0 * x0[t] + w1 * x1[t] + w2 * x2[t] + w3 * x3[t]
        i += 4
    while i + 2 <= size:
        w0, w1 = query[i], query[i + 1]
        x0, x1 = points[i], points[i + 1]
        for t in range(count):
            scores[t] += w0 * x0[t] + w1 * x1[t]
        i += 2
    if i < size:
        w0, x0 = query[i], points[i]
        for t in range(count):
            scores[t] += w0 * x0[t]


@njit(cache=True)
def largest(values, lanes):
    """The largest of values, whose number is a multiple of LANES."""
    for lane in range(LANES):
        lanes[lane] = values[lane]
    for t in range(LANES, values.size, LANES):
        for lane in range(LANES):
            value = values[t + lane]
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    best = lanes[0]
    for lane in range(1, LANES):
        best = max(best, lanes[lane])
    return best


@njit(cache=True)
def search_box_tree(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate of tree sets[n].

    points (sets, leaves, d, size) and numbers (sets, leaves, size) lie leaf by leaf; boxes (sets, nodes, 2d, FANOUT)
    level by level, along the axes in rotations (sets, d, d); facts (sets, d + 2): mean, radius, slack. visited (n,)
    counts the candidates scored.
    """
    points, numbers, boxes, rotations, facts = tables
    size, leaves = points.shape[2], points.shape[1]
    levels = levels_of(leaves)
    scratch = (
        np.empty((2, size), np.float32),
        np.empty((DEPTH, FANOUT), np.float32),
        np.empty(DEPTH, np.int64),
        np.empty(points.shape[3], np.float32),
        np.empty(LANES, np.float32),
    )
    for n in range(sets.size):
        tree = sets[n]
        found[n], visited[n] = descend(
            queries[n], points[tree], numbers[tree], boxes[tree], rotations[tree], facts[tree], levels, scratch
        )


@njit(cache=True)
def descend(query, points, numbers, boxes, rotation, facts, levels, scratch):
    """The winner and how many were scored: depth first, best bound first; of equals the one with the lowest number."""
    rotated, bounds, path, scores, lanes = scratch
    size, slack = query.size, facts[query.size + 1]
    margin = turn(query, rotation, rotated) * facts[size] * size * ROUNDING
    if margin == 0:
        return 0, 0  # every product is zero
    baseline = np.float32(0.0)
    for c in range(size):
        baseline += query[c] * facts[c]
    best, winner, floor, visited = np.float32(-np.inf), 0, np.float32(-np.inf), 0
    last, level = levels.size - 2, 0
    path[0] = 0
    bound_children(rotated[0], rotated[1], boxes[0], bounds[0])
    if last == 0:
        bounds[0, points.shape[0] :] = -np.inf
    else:
        bounds[0, levels[2] - levels[1] :] = -np.inf
    while level >= 0:
        child = np.argmax(bounds[level])
        if not bounds[level, child] > floor:
            level -= 1
            continue
        bounds[level, child] = -np.inf
        node = path[level] * FANOUT + child
        if level < last:
            level += 1
            path[level] = node
            bound_children(rotated[0], rotated[1], boxes[levels[level] + node], bounds[level])
            continue
        score_leaf(query, points[node], scores)
        visited += scores.size
        value = largest(scores, lanes)
        if value >= best:
            place = 0
            while scores[place] != value:
                place += 1
            if value > best or numbers[node, place] < winner:
                winner = numbers[node, place]
            best = value
            floor = best + slack * max(best - baseline, np.float32(0.0)) - (margin if slack == 0 else np.float32(0.0))
    return winner, visited


@njit(cache=True)
def turn(query, rotation, rotated):
    """Fill rotated with the query along the tree's axes and its magnitudes; returns the query's norm."""
    norm = np.float32(0.0)
    rotated[0] = 0.0
    for c in range(query.size):
        norm += query[c] * query[c]
        for k in range(query.size):
            rotated[0, k] += query[c] * rotation[c, k]
    for k in range(query.size):
        rotated[1, k] = abs(rotated[0, k])
    return np.sqrt(norm)
