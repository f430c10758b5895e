"""Bias-free layers on one vector and on a feature-major tile of candidates."""

import numpy as np
from numba import njit

from twotower.kernels.layout import LANES, TILE

LINEAR, RELU, TANH = 0, 1, 2


@njit(cache=True, fastmath={"contract"}, forceinline=True)
def dot(weights, start, x, size):
    """weights[start:] · x[:size] in float64; four running sums in a fixed order, none waiting for another."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):
        s0 += np.float64(weights[start + i]) * x[i]
        s1 += np.float64(weights[start + i + 1]) * x[i + 1]
        s2 += np.float64(weights[start + i + 2]) * x[i + 2]
        s3 += np.float64(weights[start + i + 3]) * x[i + 3]
    for i in range(whole, size):
        s0 += np.float64(weights[start + i]) * x[i]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, forceinline=True)
def dense_vector(weights, start, inputs, outputs, x, y):
    """y = W x, for W (outputs, inputs) at weights[start:]."""
    for j in range(outputs):
        y[j] = dot(weights, start + j * inputs, x, inputs)


@njit(cache=True, fastmath={"contract"})
def dense_tile(weights, start, stride, inputs, outputs, x, y):
    """y[:outputs] = W x[:inputs] over a tile (features, TILE); W's rows begin `stride` apart at weights[start:].

    Four inputs at a time keep the loads and stores of y from being the limit.
    """
    for j in range(outputs):
        row = start + j * stride
        target = y[j]
        i = 0
        if inputs >= 4:
            w0, w1, w2, w3 = weights[row], weights[row + 1], weights[row + 2], weights[row + 3]
            x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
            for t in range(TILE):
                target[t] = w0 * x0[t] + w1 * x1[t] + w2 * x2[t] + w3 * x3[t]
            i = 4
        else:
            w0, x0 = weights[row], x[0]
            for t in range(TILE):
                target[t] = w0 * x0[t]
            i = 1
        while i + 4 <= inputs:
            w0, w1, w2, w3 = weights[row + i], weights[row + i + 1], weights[row + i + 2], weights[row + i + 3]
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            for t in range(TILE):
                target[t] += w0 * x0[t] + w1 * x1[t] + w2 * x2[t] + w3 * x3[t]
            i += 4
        while i + 2 <= inputs:
            w0, w1 = weights[row + i], weights[row + i + 1]
            x0, x1 = x[i], x[i + 1]
            for t in range(TILE):
                target[t] += w0 * x0[t] + w1 * x1[t]
            i += 2
        if i < inputs:
            w0, x0 = weights[row + i], x[i]
            for t in range(TILE):
                target[t] += w0 * x0[t]


@njit(cache=True)
def activate_vector(activation, size, x):
    """Apply the activation to x[:size] in place."""
    if activation == RELU:
        for j in range(size):
            x[j] = max(x[j], 0.0)
    elif activation == TANH:
        for j in range(size):
            x[j] = np.tanh(x[j])


@njit(cache=True)
def activate_tile(activation, size, x):
    """Apply the activation to x[:size] (size, TILE) in place."""
    if activation == RELU:
        zero = np.float32(0.0)
        for j in range(size):
            row = x[j]
            for t in range(TILE):
                row[t] = row[t] if row[t] > zero else zero
    elif activation == TANH:
        for j in range(size):
            row = x[j]
            for t in range(TILE):
                row[t] = np.tanh(row[t])


@njit(cache=True)
def tile_maximum(scores, lanes):
    """The largest of scores (TILE,); sixteen running maxima let the compiler use vectors."""
    for lane in range(LANES):
        lanes[lane] = scores[lane]
    for t in range(LANES, TILE, LANES):
        for lane in range(LANES):
            value = scores[t + lane]
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    best = lanes[0]
    for lane in range(1, LANES):
        best = max(best, lanes[lane])
    return best


@njit(cache=True)
def first_index(scores, value):
    """The first position of `value` in scores (TILE,): ties go to the lowest index."""
    for t in range(TILE):
        if scores[t] == value:
            return t
    return 0
