"""Comparison of some choices with exact search, aside from the choosing itself."""

import numpy as np
from numba import njit

from twotower.kernels.counter import draw_tile, hash32, subkey, unit_float
from twotower.kernels.implicit import features_of, query_of, score_tile
from twotower.kernels.layout import BUCKET, TILE

AUDIT_WORD = 1 << 42
COUNT, REGRET, WORST, HITS, VISITED, BUCKETS = range(6)
AUDITED = 6


@njit(cache=True)
def audit_choices(
    share,  # of the choices
    one_tower,
    slots,
    observations,
    parameters,
    keys,
    steps,
    set_keys,  # (slots,) uint64: names of the candidates each slot chose among
    encoded,  # (tiles, inputs, TILE): the candidates of a discrete space, or empty where they are drawn
    state_sizes,
    sizes,
    activation,
    table,
    low,
    span,
    count,
    chosen,  # (n,)
    visited,  # (n,): candidates scored, and BUCKET for every bucket opened
    scratch,
    audits,  # out (slots, AUDITED) float64: audits, regrets, worst, hits, candidates and buckets visited
):
    """Add what a share of the choices missed, by a hash of rollout and step, to their slots' audits."""
    tiles, vectors, query, _, _ = scratch
    for n in range(slots.size):
        slot = slots[n]
        key = subkey(subkey(keys[slot], steps[slot]), AUDIT_WORD)
        bits = hash32(np.uint32(0), np.uint32(key & np.uint64(0xFFFFFFFF)), np.uint32(key >> np.uint64(32)))
        if not unit_float(bits) < share:
            continue
        weights = parameters[slot]
        query_of(one_tower, observations[n], weights, state_sizes, sizes, activation, vectors, query)
        best, total, found = -np.inf, 0.0, 0.0
        for start in range(0, count, TILE):
            if encoded.shape[0] > 0:
                tiles[0, : encoded.shape[1]] = encoded[start // TILE]
            else:
                draw_tile(start, set_keys[slot], table, low, span, tiles[0])
            features = tiles[features_of(one_tower, weights, state_sizes, sizes, activation, tiles)]
            score_tile(one_tower, weights, sizes, activation, query, features, tiles[3:], tiles[2])
            for t in range(min(count - start, TILE)):
                score = np.float64(tiles[2, 0, t])
                best = max(best, score)
                total += score
                found = score if start + t == chosen[n] else found
        spread = best - total / count
        regret = (best - found) / spread if spread > 0 else 0.0
        sums = audits[slot]
        sums[COUNT] += 1
        sums[REGRET] += regret
        sums[WORST] = max(sums[WORST], regret)
        sums[HITS] += found == best
        sums[VISITED] += visited[n] % BUCKET
        sums[BUCKETS] += visited[n] // BUCKET
