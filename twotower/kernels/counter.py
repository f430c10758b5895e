"""Counter-based random numbers in the kernel: a draw is a hash of (key, counter), so any one can be redrawn alone."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint32, uint64
from numba.extending import intrinsic as numba_intrinsic

from twotower.kernels.layout import TILE

intrinsic: Any = numba_intrinsic  # its functions lose their first parameter, which type checkers cannot see

_SPREAD = np.uint32(0x9E3779B9)
_FIRST, _SECOND = np.uint32(0x21F0AAAD), np.uint32(0x735A2D97)
_8, _15, _16, _LOW_HALF = np.uint32(8), np.uint32(15), np.uint32(16), np.uint32(0xFFFF)


def _uint32_operation(name: str) -> Any:
    """An operation on 32-bit words: Numba would widen it to 64 bits and halve the vector width."""

    @intrinsic
    def operation(typing_context, x, y):
        def generate(context, builder, signature, arguments):
            return getattr(builder, name)(arguments[0], arguments[1])

        return types.uint32(types.uint32, types.uint32), generate

    return operation


_multiply, _add, _xor, _and, _shift = (_uint32_operation(name) for name in ("mul", "add", "xor", "and_", "lshr"))


@intrinsic
def _small_to_float(typing_context, x):
    """A word below 2^31 as float32, by the signed conversion that every vector unit has."""

    def generate(context, builder, signature, arguments):
        return builder.sitofp(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


@njit(cache=True, inline="always")
def mix64(x):
    """The splitmix64 step, bit for bit that of `twotower.randomness`."""
    x = uint64(x) + uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(cache=True, inline="always")
def subkey(key, word):
    """The key of a part of what `key` names: one step of a rollout, one dimension of a step."""
    return mix64(uint64(key) ^ mix64(uint64(word)))


@njit(cache=True, inline="always")
def hash32(counter, low, high):
    """32 random bits for a counter under a 64-bit key given as two words (a lowbias32 mix, keyed twice)."""
    x = _xor(_multiply(counter, _SPREAD), low)
    x = _multiply(_xor(x, _shift(x, _16)), _FIRST)
    x = _xor(x, high)
    x = _multiply(_xor(x, _shift(x, _15)), _SECOND)
    return _xor(x, _shift(x, _15))


@njit(cache=True, inline="always")
def unit_float(bits):
    """The top 24 bits as a float32 in [0, 1)."""
    return _small_to_float(_shift(bits, _8)) * np.float32(2.0**-24)


@njit(cache=True)
def uniform(key, counter):
    """A float64 in (0, 1) of 48 random bits."""
    low, high = uint32(key & uint64(0xFFFFFFFF)), uint32(key >> uint64(32))
    fine = np.float64(unit_float(hash32(uint32(2 * counter + 1), low, high))) + 2.0**-25
    return np.float64(unit_float(hash32(uint32(2 * counter), low, high))) + fine * 2.0**-24


@njit(cache=True, inline="always")
def half_float(half, low, span):
    """Sixteen bits as the middle of one of 2¹⁶ equal parts of [low, low + span]."""
    step = span * np.float32(2.0**-16)
    return (low + np.float32(0.5) * step) + step * _small_to_float(half)


@njit(cache=True)
def draw_tile(start, key, table, low, span, tile):
    """Fill tile[:a] (a, TILE) with candidates start … start + TILE - 1 of the set named by `key`.

    `table` (a, padded N) holds Sobol points to shift by the key, or is empty for independent draws: then one
    hash serves two dimensions, since hashing is most of the time and an action needs no more than 16 bits.
    """
    size = low.size
    for dimension in range(0, size, 1 if table.shape[0] > 0 else 2):
        dimension_key = subkey(key, dimension)
        low_word, high_word = uint32(dimension_key & uint64(0xFFFFFFFF)), uint32(dimension_key >> uint64(32))
        row, offset, width = tile[dimension], low[dimension], span[dimension]
        if table.shape[0] > 0:
            points = table[dimension, start : start + TILE]
            for t in range(TILE):
                row[t] = offset + width * unit_float(_xor(points[t], low_word))
            continue
        last = tile[min(dimension + 1, size - 1)]
        bits = last.view(np.uint32)  # the hashes wait where the last dimension's values will be
        first = uint32(start)
        for t in range(TILE):
            bits[t] = hash32(_add(uint32(t), first), low_word, high_word)
        for t in range(TILE):
            row[t] = half_float(_shift(bits[t], _16), offset, width)
        if dimension + 1 < size:
            offset, width = low[dimension + 1], span[dimension + 1]
            for t in range(TILE):
                last[t] = half_float(_and(bits[t], _LOW_HALF), offset, width)


@njit(cache=True)
def draw_one(index, key, table, low, span, action):
    """Redraw candidate `index` alone into action (a,): the same floats as in its tile."""
    for dimension in range(low.size):
        if table.shape[0] > 0:
            low_word = uint32(subkey(key, dimension) & uint64(0xFFFFFFFF))
            action[dimension] = low[dimension] + span[dimension] * unit_float(_xor(table[dimension, index], low_word))
        else:
            pair_key = subkey(key, dimension - dimension % 2)
            bits = hash32(uint32(index), uint32(pair_key & uint64(0xFFFFFFFF)), uint32(pair_key >> uint64(32)))
            half = _shift(bits, _16) if dimension % 2 == 0 else _and(bits, _LOW_HALF)
            action[dimension] = half_float(half, low[dimension], span[dimension])
