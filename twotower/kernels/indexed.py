"""Between the towers and an index: states to queries, and the numbers an index found to actions."""

import numpy as np
from numba import njit

from twotower.kernels.counter import draw_one, hash32, subkey, unit_float
from twotower.kernels.implicit import NOISE_WORD, query_of

ASKED_WORD = 1 << 43
LARGE = np.float32(2.0**40)  # products of numbers between its inverse and this cannot leave float32


@njit(cache=True)
def queries_of(slots, observations, parameters, state_sizes, sizes, activation, tame, scratch, queries):
    """Fill queries (n, features) for the acting slots; `tame` scales extreme ones, which no argmax notices."""
    _, vectors, query, _, _ = scratch
    width = queries.shape[1]
    for n in range(slots.size):
        query_of(False, observations[n], parameters[slots[n]], state_sizes, sizes, activation, vectors, query)
        largest = np.float32(0.0)
        for k in range(width):
            queries[n, k] = query[k]
            largest = max(largest, abs(query[k]))
        if tame and largest > 0 and not 1 / LARGE <= largest <= LARGE:
            for k in range(width):
                queries[n, k] = query[k] / largest


@njit(cache=True)
def noise_keys(slots, keys, steps, named):
    """Name the randomness (n,) with which the slots choose at this step."""
    for n in range(slots.size):
        named[n] = subkey(subkey(keys[slots[n]], steps[slots[n]]), NOISE_WORD)


@njit(cache=True)
def take(slots, found, set_keys, table, low, span, actions):
    """The actions numbered found[n] among the candidates of the slots."""
    action = np.empty(low.size, np.float32)
    for n in range(found.size):
        draw_one(found[n], set_keys[slots[n]], table, low, span, action)
        for d in range(low.size):
            actions[n, d] = action[d]


@njit(cache=True)
def keep_some(slots, keys, steps, queries, asked):
    """Let asked[slot] (places, features) be an even sample of the rollout's queries so far (reservoirs of one)."""
    for n in range(slots.size):
        slot = slots[n]
        key = subkey(subkey(keys[slot], steps[slot]), ASKED_WORD)
        low, high = np.uint32(key & np.uint64(0xFFFFFFFF)), np.uint32(key >> np.uint64(32))
        for place in range(asked.shape[1]):
            if unit_float(hash32(np.uint32(place), low, high)) * np.float32(steps[slot] + 1) < 1:
                for k in range(queries.shape[1]):
                    asked[slot, place, k] = queries[n, k]
