"""The fused action choice of implicit policies: draw, action tower, score, argmax, tile by tile in cache.

One pair of functions serves both energies. ITT: K = q·f(a), where f is the action tower without its last
matrix W and q = Wᵀ l_S(s), so the last matrix is applied once a state instead of once a candidate.
IOT: the first matrix is split the same way, into a part of the state (q) and one of the action (f).
"""

import numpy as np
from numba import njit

from twotower.kernels.counter import draw_one, draw_tile, hash32, subkey, unit_float
from twotower.kernels.layers import (
    LINEAR,
    activate_tile,
    activate_vector,
    dense_tile,
    dense_vector,
    dot,
    first_index,
    tile_maximum,
)
from twotower.kernels.layout import LANES, TILE

NOISE_WORD = 1 << 40
REFINEMENT_WORD = 1 << 41


@njit(cache=True, fastmath={"contract"}, forceinline=True)
def query_of(one_tower, observation, parameters, state_sizes, sizes, activation, vectors, query):
    """Fill query with all that scoring needs of a state; vectors (2, width) is scratch."""
    if one_tower:
        for j in range(sizes[1]):
            query[j] = dot(parameters, j * sizes[0], observation, state_sizes[0])
        return
    vectors[0, : observation.size] = observation
    start, last = 0, state_sizes.size - 2
    for layer in range(last + 1):
        inputs, outputs = state_sizes[layer], state_sizes[layer + 1]
        dense_vector(parameters, start, inputs, outputs, vectors[layer % 2], vectors[(layer + 1) % 2])
        if layer < last:
            activate_vector(activation, outputs, vectors[(layer + 1) % 2])
        start += inputs * outputs
    latent = vectors[(last + 1) % 2]  # l_S(s)
    for layer in range(sizes.size - 2):
        start += sizes[layer] * sizes[layer + 1]
    inputs, outputs = sizes[-2], sizes[-1]
    for i in range(inputs):
        total = 0.0
        for j in range(outputs):
            total += np.float64(parameters[start + j * inputs + i]) * latent[j]
        query[i] = total


@njit(cache=True, forceinline=True)
def features_of(one_tower, parameters, state_sizes, sizes, activation, tiles):
    """Turn the actions in tiles[0] into features; returns which of tiles[0], tiles[1] holds them."""
    if one_tower:
        stride, actions = sizes[0], sizes[0] - state_sizes[0]
        dense_tile(parameters, state_sizes[0], stride, actions, sizes[1], tiles[0], tiles[1])
        return 1
    start = 0
    for layer in range(state_sizes.size - 1):
        start += state_sizes[layer] * state_sizes[layer + 1]
    for layer in range(sizes.size - 2):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        dense_tile(parameters, start, inputs, inputs, outputs, tiles[layer % 2], tiles[(layer + 1) % 2])
        activate_tile(activation, outputs, tiles[(layer + 1) % 2])
        start += inputs * outputs
    return (sizes.size - 2) % 2


@njit(cache=True, forceinline=True)
def score_tile(one_tower, parameters, sizes, activation, query, features, spare, scores):
    """Scores K in scores[0] of a tile of features; spare (2, width, TILE) is scratch for the one-tower's layers."""
    if not one_tower:
        dense_tile(query, 0, sizes[-2], sizes[-2], 1, features, scores)
        return
    hidden = spare[0] if sizes.size > 2 else scores
    for j in range(sizes[1]):
        shift, source, target = query[j], features[j], hidden[j]
        for t in range(TILE):
            target[t] = source[t] + shift
    start = sizes[0] * sizes[1]
    for layer in range(1, sizes.size - 1):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        source = spare[(layer + 1) % 2]
        activate_tile(activation, inputs, source)
        target = spare[layer % 2] if layer < sizes.size - 2 else scores
        dense_tile(parameters, start, inputs, inputs, outputs, source, target)
        start += inputs * outputs


@njit(cache=True)
def add_gumbel(start, key, softmax_kernel, temperature, scores):
    """Turn scores into logits / temperature + Gumbel noise, whose argmax samples the softmax exactly."""
    noise_key = subkey(key, NOISE_WORD)
    low, high = np.uint32(noise_key & np.uint64(0xFFFFFFFF)), np.uint32(noise_key >> np.uint64(32))
    for t in range(TILE):
        logit = np.float64(scores[t])
        if softmax_kernel:
            logit = np.exp(min(logit, 80.0))
        uniform = np.float64(unit_float(hash32(np.uint32(start + t), low, high))) + 2.0**-25
        scores[t] = logit / temperature - np.log(-np.log(uniform))


@njit(cache=True)
def choose_fresh(
    one_tower,
    slots,  # (n,) which slots act
    observations,  # (n, s) float64
    parameters,  # (slots, D) float32
    keys,  # (slots,) uint64: each rollout's candidate key
    steps,  # (slots,) int64
    state_sizes,
    sizes,
    activation,
    table,  # Sobol points or empty
    low,
    span,
    count,
    sampling,  # (3,) float64: sample?, softmax kernel?, temperature
    refinement,  # (3,) float64: rounds, radius, shrink
    scratch,  # tiles (5, width, TILE), vectors (2, width), query (width,), box (2, a), action (a,)
    chosen,  # out (n,) int64
    actions,  # out (n, a) float64
):
    """Choose among candidates drawn anew at this step, for every acting slot."""
    tiles, vectors, query, box, action = scratch
    for n in range(slots.size):
        slot = slots[n]
        weights = parameters[slot]
        query_of(one_tower, observations[n], weights, state_sizes, sizes, activation, vectors, query)
        key = subkey(keys[slot], steps[slot])
        best, index = scan_fresh(
            one_tower, weights, key, state_sizes, sizes, activation, table, low, span, count, sampling, tiles, query
        )
        chosen[n] = index
        draw_one(index, key, table, low, span, action)
        if refinement[0] > 0:
            refine(
                one_tower, weights, key, state_sizes, sizes, activation, table, low, span, count, sampling, refinement,
                tiles, query, box, best, action,
            )  # fmt: skip
        for d in range(low.size):
            actions[n, d] = action[d]


@njit(cache=True)
def refine(
    one_tower, weights, key, state_sizes, sizes, activation, table, low, span, count, sampling, refinement, tiles,
    query, box, best, action,
):  # fmt: skip
    """Derivative-free optimisation: redraw the candidates in ever smaller boxes around the best action so far."""
    radius = np.float32(refinement[1] * 0.5)
    for round_ in range(int(refinement[0])):
        for d in range(low.size):
            lower = max(low[d], action[d] - radius * span[d])
            box[0, d] = lower
            box[1, d] = min(low[d] + span[d], action[d] + radius * span[d]) - lower
        round_key = subkey(key, REFINEMENT_WORD + round_)
        value, index = scan_fresh(
            one_tower, weights, round_key, state_sizes, sizes, activation, table, box[0], box[1], count, sampling,
            tiles, query,
        )  # fmt: skip
        if value > best:
            best = value
            draw_one(index, round_key, table, box[0], box[1], action)
        radius *= np.float32(refinement[2])


@njit(cache=True, forceinline=True)
def scan_fresh(
    one_tower, weights, key, state_sizes, sizes, activation, table, low, span, count, sampling, tiles, query
):
    """The best score and the first index that has it, over `count` candidates drawn under `key`."""
    lanes = np.empty(LANES, np.float32)
    best, best_index = np.float32(-np.inf), 0
    scores = tiles[2]
    for start in range(0, count, TILE):
        draw_tile(start, key, table, low, span, tiles[0])
        features = tiles[features_of(one_tower, weights, state_sizes, sizes, activation, tiles)]
        best, best_index = keep_best(
            one_tower, weights, key, sizes, activation, start, count, sampling, query, features, tiles[3:], scores,
            lanes, best, best_index,
        )  # fmt: skip
    return best, best_index


@njit(cache=True, forceinline=True)
def keep_best(
    one_tower, weights, key, sizes, activation, start, count, sampling, query, features, spare, scores, lanes, best,
    best_index,
):  # fmt: skip
    """Score one tile and return the better of its best candidate and the best so far; ties keep the earlier."""
    score_tile(one_tower, weights, sizes, activation, query, features, spare, scores)
    if sampling[0] > 0:
        add_gumbel(start, key, sampling[1] > 0, sampling[2], scores[0])
    for t in range(max(count - start, 0), TILE):
        scores[0, t] = -np.inf
    value = tile_maximum(scores[0], lanes)
    if value > best:
        return value, start + first_index(scores[0], value)
    return best, best_index


@njit(cache=True)
def draw_set(key, table, low, span, count, kept_actions):
    """Fill kept_actions (tiles, a, TILE) with the set of `count` candidates named by `key`."""
    for tile in range(kept_actions.shape[0]):
        draw_tile(tile * TILE, key, table, low, span, kept_actions[tile])


@njit(cache=True)
def features_set(one_tower, weights, state_sizes, sizes, activation, kept_actions, scratch, kept_features):
    """Fill kept_features (tiles, features, TILE) for a kept set of actions under one θ₂."""
    tiles = scratch[0]
    width = kept_features.shape[1]
    for tile in range(kept_actions.shape[0]):
        tiles[0, : kept_actions.shape[1]] = kept_actions[tile]
        holder = features_of(one_tower, weights, state_sizes, sizes, activation, tiles)
        kept_features[tile] = tiles[holder, :width]


@njit(cache=True)
def choose_kept(
    one_tower,
    slots,
    observations,
    parameters,
    keys,
    steps,
    state_sizes,
    sizes,
    activation,
    kept_actions,  # (sets, tiles, a, TILE)
    kept_features,  # (sets, tiles, features, TILE)
    count,
    sampling,
    scratch,
    chosen,
    actions,
):
    """Choose among kept candidates, whose features are already there; one set may serve all slots."""
    tiles, vectors, query, _, _ = scratch
    lanes = np.empty(LANES, np.float32)
    scores = tiles[2]
    for n in range(slots.size):
        slot = slots[n]
        weights = parameters[slot]
        features = kept_features[slot if kept_features.shape[0] > 1 else 0]
        offered = kept_actions[slot if kept_actions.shape[0] > 1 else 0]
        query_of(one_tower, observations[n], weights, state_sizes, sizes, activation, vectors, query)
        key = subkey(keys[slot], steps[slot])
        best, index = np.float32(-np.inf), 0
        for tile in range(features.shape[0]):
            best, index = keep_best(
                one_tower, weights, key, sizes, activation, tile * TILE, count, sampling, query, features[tile],
                tiles[3:], scores, lanes, best, index,
            )  # fmt: skip
        chosen[n] = index
        for d in range(actions.shape[1]):
            actions[n, d] = offered[index // TILE, d, index % TILE]


@njit(cache=True)
def choose_corner(slots, observations, parameters, state_sizes, sizes, activation, low, span, scratch, chosen, actions):
    """The exact argmax over the whole box for a one-matrix action tower: the corner a* = sgn(W₂ᵀ l_S)."""
    _, vectors, query, _, _ = scratch
    for n in range(slots.size):
        query_of(False, observations[n], parameters[slots[n]], state_sizes, sizes, activation, vectors, query)
        chosen[n] = 0
        for d in range(low.size):
            side = 1.0 if query[d] > 0 else (0.0 if query[d] < 0 else 0.5)
            actions[n, d] = low[d] + side * span[d]


@njit(cache=True)
def choose_explicit(
    slots, observations, parameters, sizes, activation, low, span, num_discrete, scratch, chosen, actions
):
    """An explicit policy's action: tanh of its output, spread over the box or binned over the indices."""
    vectors = scratch[1]
    last = sizes.size - 2
    for n in range(slots.size):
        weights, start = parameters[slots[n]], 0
        vectors[0, : sizes[0]] = observations[n]
        for layer in range(last + 1):
            inputs, outputs = sizes[layer], sizes[layer + 1]
            dense_vector(weights, start, inputs, outputs, vectors[layer % 2], vectors[(layer + 1) % 2])
            activate_vector(activation if layer < last else LINEAR, outputs, vectors[(layer + 1) % 2])
            start += inputs * outputs
        output = vectors[(last + 1) % 2]
        if num_discrete > 0:
            unit = 0.5 * (np.tanh(output[0]) + 1.0)
            # The comparison is False for NaN, whose conversion to an integer is undefined.
            chosen[n] = min(int(unit * num_discrete), num_discrete - 1) if unit > 0 else 0
            continue
        chosen[n] = 0
        for d in range(low.size):
            actions[n, d] = low[d] + 0.5 * (np.tanh(output[d]) + 1.0) * span[d]
