"""Sampling from an estimated softmax by descending a tree of sums of positive random features.

One global ψ makes the product of the branches' probabilities telescope, so the tree is kept as running sums over its
leaves and a branch is a step of a binary search. Within a leaf the softmax is exact.
"""

import numpy as np
from numba import njit

from twotower.kernels.counter import uniform


@njit(cache=True)
def log_features(latents, projections, weights, features):
    """log ψ(x) (n, r) up to a constant, for latents x (n, d): weights + ω·x − ‖x‖²/2."""
    for i in range(latents.shape[0]):
        square = 0.0
        for c in range(latents.shape[1]):
            square += latents[i, c] * latents[i, c]
        for k in range(weights.size):
            total = weights[k] - 0.5 * square
            for c in range(latents.shape[1]):
                total += projections[k, c] * latents[i, c]
            features[i, k] = total


@njit(cache=True)
def running_sums(latents, projections, weights, leaf, sums):
    """Fill sums (leaves, r) with Σ ψ(x) over all candidates up to a leaf's end, over one global maximum."""
    features = np.empty((1, weights.size))
    largest = -np.inf
    for i in range(latents.shape[0]):
        log_features(latents[i : i + 1], projections, weights, features)
        largest = max(largest, features.max())
    for number in range(sums.shape[0]):
        sums[number] = 0.0
        if number > 0:
            sums[number] = sums[number - 1]
        for i in range(number * leaf, min((number + 1) * leaf, latents.shape[0])):
            log_features(latents[i : i + 1], projections, weights, features)
            for k in range(weights.size):
                sums[number, k] += np.exp(features[0, k] - largest)


@njit(cache=True)
def query_features(query, projections, weights, features):
    """ψ(q) (r,) over its largest entry."""
    log_features(query.reshape(1, -1), projections, weights, features.reshape(1, -1))
    largest = features.max()
    for k in range(features.size):
        features[k] = np.exp(features[k] - largest)


@njit(cache=True, fastmath={"contract", "reassoc"})
def mass(features, sums):
    """ψ(q)·ξ, the estimated mass of the candidates that ξ sums over."""
    total = 0.0
    for k in range(features.size):
        total += features[k] * sums[k]
    return total


@njit(cache=True)
def sample_leaf(features, sums, uniform):
    """The leaf at a quantile of the estimated distribution, and where in the leaf's mass the quantile lies."""
    last = sums.shape[0] - 1
    total = mass(features, sums[last])
    if not total > 0:  # the query's features and the candidates' underflow each other's: all leaves are alike
        place = uniform * sums.shape[0]
        return min(int(place), last), place - int(place)
    target = uniform * total
    low, high = 0, last  # the first leaf whose running mass exceeds the target
    while low < high:
        middle = (low + high) // 2
        if mass(features, sums[middle]) > target:
            high = middle
        else:
            low = middle + 1
    below = mass(features, sums[low - 1]) if low > 0 else 0.0
    inside = mass(features, sums[low]) - below
    return low, (target - below) / inside if inside > 0 else 0.5


@njit(cache=True)
def heaviest_leaf(features, sums):
    """The leaf reached by always taking the heavier half."""
    low, high, below = 0, sums.shape[0], 0.0
    above = mass(features, sums[high - 1])
    while high - low > 1:
        middle = (low + high) // 2
        split = mass(features, sums[middle - 1])
        if split - below >= above - split:
            high, above = middle, split
        else:
            low, below = middle, split
    return low


@njit(cache=True)
def products_in_leaf(query, latents, leaf, number, products):
    """Fill products with q·x of a leaf's candidates; returns how many there are."""
    begin = number * leaf
    count = min(leaf, latents.shape[0] - begin)
    for i in range(count):
        products[i] = 0.0
        for c in range(query.size):
            products[i] += query[c] * latents[begin + i, c]
    return count


@njit(cache=True)
def sample_within(products, uniform):
    """The position at a quantile of the exact softmax of products."""
    largest, total = products.max(), 0.0
    for i in range(products.size):
        total += np.exp(products[i] - largest)
    target, running = uniform * total, 0.0
    for i in range(products.size):
        running += np.exp(products[i] - largest)
        if running > target:
            return i
    return products.size - 1


@njit(cache=True)
def scaled(query, options, target):
    """The query over the square root of the temperature, after normalising it where that is asked for."""
    norm = 1.0
    if options[2] > 0:
        norm = np.sqrt((query.astype(np.float64) ** 2).sum())
    for c in range(query.size):
        target[c] = query[c] * options[1] / (norm if norm > 0 else 1.0)


@njit(cache=True)
def draw_random_features(sets, queries, keys, tables, found, visited):
    """For query n a sample of set sets[n], by the randomness that keys[n] names.

    The tables are those of `search_random_features`. visited (n,) counts the candidates scored.
    """
    latents, sums, projections, weights, options = tables
    target, features = np.empty(queries.shape[1]), np.empty(weights.shape[1])
    for n in range(sets.size):
        at = sets[n]
        leaf = int(options[at, 0])
        products = np.empty(leaf)
        scaled(queries[n], options[at], target)
        query_features(target, projections[at], weights[at], features)
        number, inside = sample_leaf(features, sums[at], uniform(keys[n], 0))
        visited[n] = products_in_leaf(target, latents[at], leaf, number, products)
        found[n] = number * leaf + sample_within(products[: visited[n]], inside)


@njit(cache=True)
def search_random_features(sets, queries, tables, found, visited):
    """For query n, the best of some samples of set sets[n], or the best of its heaviest leaf (no samples).

    latents (sets, N, d); sums (sets, leaves, r); projections (sets, r, d) and weights (sets, r) make the features;
    options (sets, 4): leaf size, scale of a query, whether to normalise it, samples. visited (n,) counts the
    candidates scored.
    """
    latents, sums, projections, weights, options = tables
    for n in range(sets.size):
        at = sets[n]
        leaf, samples = int(options[at, 0]), int(options[at, 3])
        target, features, products = np.empty(queries.shape[1]), np.empty(weights.shape[1]), np.empty(leaf)
        scaled(queries[n], options[at], target)
        query_features(target, projections[at], weights[at], features)
        best, found[n], visited[n] = -np.inf, 0, 0
        for k in range(max(samples, 1)):
            if samples > 0:
                number, inside = sample_leaf(features, sums[at], (k + 0.5) / samples)
            else:
                number, inside = heaviest_leaf(features, sums[at]), 0.0
            count = products_in_leaf(target, latents[at], leaf, number, products)
            visited[n] += count
            place = sample_within(products[:count], inside) if samples > 0 else np.argmax(products[:count])
            winner = number * leaf + place
            if products[place] > best or (products[place] == best and winner < found[n]):
                best, found[n] = products[place], winner
