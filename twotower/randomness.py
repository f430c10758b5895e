"""Counter-based randomness: every draw is a function of what it is for, never of who asks or when."""

from enum import IntEnum

import numpy as np

_MASK = 2**64 - 1


class Domain(IntEnum):
    """What randomness is used for; different uses never share a stream."""

    PARAMETERS = 1
    DIRECTIONS = 2
    SCHEDULE = 3
    ENVIRONMENT = 4
    CANDIDATES = 5
    SEARCH = 6
    EVALUATION = 7
    TUNING = 8


def derive(seed: int, *words: int) -> int:
    """Mix a seed and words such as (Domain, iteration, member) into 64 well-spread bits."""
    # Mixed once more than a word, for mix(mix(a) ^ mix(b)) would make seed a's word b seed b's word a.
    return extend(_mix(_mix(seed & _MASK)), *words)


def extend(key: int, *words: int) -> int:
    """The key of a part of what `key` names: extend(derive(s, a), b) == derive(s, a, b)."""
    for word in words:
        key = _mix(key ^ _mix(int(word) & _MASK))
    return key


def generator(seed: int, *words: int) -> np.random.Generator:
    """A NumPy generator for the stream named by a seed and words."""
    return np.random.Generator(np.random.Philox(key=derive(seed, *words)))


def _mix(x: int) -> int:
    """The splitmix64 step: a bijection of 64-bit words in which every input bit flips half the output."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def hash32(counters: np.ndarray, key: int) -> np.ndarray:
    """32 random bits for each uint32 counter under a key; the reference of `kernels.counter.hash32`."""
    low, high = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    x = counters * np.uint32(0x9E3779B9) ^ low
    x = (x ^ x >> np.uint32(16)) * np.uint32(0x21F0AAAD)
    x = x ^ high
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x735A2D97)
    return x ^ x >> np.uint32(15)


def unit_float(bits: np.ndarray) -> np.ndarray:
    """The top 24 bits as float32 in [0, 1)."""
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def half_float(halves: np.ndarray, low: np.float32, span: np.float32) -> np.ndarray:
    """Sixteen bits as the middle of one of 2¹⁶ equal parts of [low, low + span]."""
    step = span * np.float32(2.0**-16)
    return (low + np.float32(0.5) * step) + step * halves.astype(np.float32)
