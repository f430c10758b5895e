"""Counter-based random numbers in the kernel: a draw is a hash of (key, counter), so any one can be redrawn alone."""

import numpy as np
from llvmlite import ir
from numba import njit, types, uint32, uint64
from numba.extending import intrinsic

from twotower.kernels.layout import TILE

_SPREAD = np.uint32(0x9E3779B9)
_FIRST, _SECOND = np.uint32(0x21F0AAAD), np.uint32(0x735A2D97)
_8, _15, _16 = np.uint32(8), np.uint32(15), np.uint32(16)


def _uint32_operation(name):
    """An operation on 32-bit words: Numba would widen it to 64 bits and halve the vector width."""

    @intrinsic
    def operation(typing_context, x, y):
        def generate(context, builder, signature, arguments):
            return getattr(builder, name)(arguments[0], arguments[1])

        return types.uint32(types.uint32, types.uint32), generate

    return operation


_multiply, _add, _xor, _shift = (_uint32_operation(name) for name in ("mul", "add", "xor", "lshr"))


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
def draw_tile(start, key, table, low, span, tile):
    """Fill tile[:a] (a, TILE) with candidates start … start + TILE - 1 of the set named by `key`.

    `table` (a, padded N) holds Sobol points to shift by the key, or is empty for independent draws.
    """
    for dimension in range(low.size):
        dimension_key = subkey(key, dimension)
        key_low = uint32(dimension_key & uint64(0xFFFFFFFF))
        key_high = uint32(dimension_key >> uint64(32))
        offset, width = low[dimension], span[dimension]
        row = tile[dimension]
        if table.shape[0] > 0:
            points = table[dimension, start : start + TILE]
            for t in range(TILE):
                row[t] = offset + width * unit_float(_xor(points[t], key_low))
        else:
            first = uint32(start)
            for t in range(TILE):
                row[t] = offset + width * unit_float(hash32(_add(uint32(t), first), key_low, key_high))


@njit(cache=True)
def draw_one(index, key, table, low, span, action):
    """Redraw candidate `index` alone into action (a,): the same floats as in its tile."""
    for dimension in range(low.size):
        dimension_key = subkey(key, dimension)
        key_low = uint32(dimension_key & uint64(0xFFFFFFFF))
        if table.shape[0] > 0:
            bits = _xor(table[dimension, index], key_low)
        else:
            bits = hash32(uint32(index), key_low, uint32(dimension_key >> uint64(32)))
        action[dimension] = low[dimension] + span[dimension] * unit_float(bits)
