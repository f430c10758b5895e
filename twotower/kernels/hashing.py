"""Search through hash buckets in the order of their agreement with the query's hash."""

import numpy as np
from numba import njit

from twotower.kernels.box_tree import largest, score_leaf
from twotower.kernels.layout import LANES

MAX_RUN = 512  # candidates scored at a time


@njit(cache=True)
def search_buckets(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate among the first `budget` in set sets[n]'s buckets.

    points (sets, d, N) and numbers (sets, N) lie bucket by bucket; keys (sets, buckets) ascend and name the buckets,
    -1 where there is no more; starts (sets, buckets + 1); projections (sets, m, d) and offsets (sets, m) make the
    query's hash; weighted (sets,) and budget (sets,) are the choices. visited (n,) counts the candidates scored.
    """
    points, numbers, keys, starts, projections, offsets, weighted, budget = tables
    bits = projections.shape[1]
    signs, agreement = np.empty(bits, np.float32), np.empty(keys.shape[1], np.float32)
    scores, lanes = np.empty(MAX_RUN, np.float32), np.empty(LANES, np.float32)
    for n in range(sets.size):
        at = sets[n]
        project(queries[n], projections[at], offsets[at], weighted[at] > 0, signs)
        buckets = agree(signs, keys[at], agreement)
        best, winner, left = np.float32(-np.inf), -1, budget[at]
        while left > 0:
            bucket = np.argmax(agreement[:buckets])
            if agreement[bucket] == -np.inf:
                break
            agreement[bucket] = -np.inf
            begin = starts[at, bucket]
            end = min(starts[at, bucket + 1], begin + left)
            left -= end - begin
            best, winner = scan_run(queries[n], points[at], numbers[at], begin, end, scores, lanes, best, winner)
        found[n] = max(winner, 0)
        visited[n] = budget[at] - left


@njit(cache=True)
def project(query, projections, offsets, weighted, signs):
    """The query's projections, or only their signs; a zero counts as positive, as it does in a hash."""
    for k in range(signs.size):
        total = -offsets[k]
        for c in range(query.size):
            total += projections[k, c] * query[c]
        signs[k] = total if weighted else (np.float32(1.0) if total >= 0 else np.float32(-1.0))


@njit(cache=True)
def agree(signs, keys, agreement):
    """Σ ± signs over the bits of every key, which falls as the Hamming distance grows; returns how many keys."""
    buckets = 0
    while buckets < keys.size and keys[buckets] >= 0:
        buckets += 1
    agreement[:buckets] = 0.0
    for k in range(signs.size):
        for bucket in range(buckets):
            agreement[bucket] += signs[k] if (keys[bucket] >> k) & 1 else -signs[k]
    return buckets


@njit(cache=True)
def scan_run(query, points, numbers, begin, end, scores, lanes, best, winner):
    """Score candidates begin … end - 1 and return the better of their best and the best so far."""
    for start in range(begin, end, MAX_RUN):
        used = min(end - start, MAX_RUN)
        score_leaf(query, points[:, start : start + used], scores[:used])
        whole = used + -used % LANES
        scores[used:whole] = -np.inf
        value = largest(scores[:whole], lanes)
        if value >= best:
            for t in range(used):
                if scores[t] == value and (value > best or numbers[start + t] < winner):
                    best, winner = value, numbers[start + t]
                    break
    return best, winner
