"""Search through hash buckets in the order of their agreement with the query's hash."""

import numpy as np
from numba import njit

from twotower.kernels.box_tree import largest, score_leaf
from twotower.kernels.layout import BUCKET, LANES

MAX_RUN = 512  # candidates scored at a time


@njit(cache=True)
def search_buckets(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate among the first `budget` in set sets[n]'s buckets.

    points (sets, d, N) and numbers (sets, N) lie range by range and bucket by bucket; keys (sets, buckets) ascend and
    name the buckets, -1 where there is no more; starts (sets, ranges, buckets + 1); lengths (sets, ranges) are C;
    projections (sets, m, d) and offsets (sets, m) make the query's hash; weighted (sets,) and budget (sets,) are the
    choices. visited (n,) counts the candidates scored, and BUCKET for every bucket opened.
    """
    points, numbers = tables[:2]
    scores, lanes = np.empty(MAX_RUN, np.float32), np.empty(LANES, np.float32)
    runs = np.empty((min(tables[8].max(), numbers.shape[1]), 2), np.int64)
    for n in range(sets.size):
        at = sets[n]
        best, winner, visited[n] = np.float32(-np.inf), -1, 0
        for run in range(probe(queries[n], at, tables, runs)):
            begin, end = runs[run]
            best, winner = scan_run(queries[n], points[at], numbers[at], begin, end, scores, lanes, best, winner)
            visited[n] += BUCKET + end - begin
        found[n] = max(winner, 0)


@njit(cache=True)
def probe(query, at, tables, runs):
    """Fill runs (most, 2) with where the buckets to score begin and end, the most promising first; returns how many.

    A bucket promises C of its range times its agreement, so each range opens its buckets in the one order of keys.
    """
    _, _, keys, starts, lengths, projections, offsets, weighted, budget = tables
    ranges = lengths.shape[1]
    signs, agreement = np.empty(offsets.shape[1], np.float32), np.empty(keys.shape[1], np.float32)
    ranked, order = np.empty(keys.shape[1], np.float32), np.empty(keys.shape[1], np.int64)
    places, promises = np.full(ranges, -1), np.empty(ranges, np.float32)
    project(query, projections[at], offsets[at], weighted[at] > 0, signs)
    buckets = agree(signs, keys[at], agreement)
    known, count, left, pick = 0, 0, min(budget[at], tables[1].shape[1]), 0
    for turn in range(ranges + runs.shape[0]):  # first the best bucket of each range, then the next of one
        if turn >= ranges:
            pick = np.argmax(promises)
            if left == 0 or promises[pick] == -np.inf:
                break
            bucket = order[places[pick]]
            begin = starts[at, pick, bucket]
            runs[count, 0], runs[count, 1] = begin, min(starts[at, pick, bucket + 1], begin + left)
            left -= runs[count, 1] - begin
            count += 1
        else:
            pick = turn
        promises[pick] = -np.inf
        while promises[pick] == -np.inf and places[pick] + 1 < buckets:
            places[pick] += 1
            if places[pick] == known:
                order[known] = np.argmax(agreement[:buckets])
                ranked[known] = agreement[order[known]]
                agreement[order[known]] = -np.inf
                known += 1
            bucket = order[places[pick]]
            if starts[at, pick, bucket + 1] > starts[at, pick, bucket]:
                promises[pick] = lengths[at, pick] * ranked[places[pick]]
    return count


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
