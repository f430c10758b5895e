"""Candidates in a box: independent uniform draws or a shifted Sobol sequence, named by a key."""

from functools import lru_cache

import numpy as np

from twotower.actions.base import BoxActions
from twotower.kernels.layout import padded
from twotower.randomness import extend, half_float, hash32, unit_float

NO_TABLE = np.zeros((0, 0), np.uint32)


def bounds(actions: BoxActions) -> tuple[np.ndarray, np.ndarray]:
    """The box's lower corner and its widths, float32 (a,) each."""
    low, high = np.asarray(actions.low, np.float32), np.asarray(actions.high, np.float32)
    span = high - low
    # Where the difference was rounded up, low + span would leave the box.
    return low, np.where(low + span.astype(np.float64) > high, np.nextafter(span, np.float32(0)), span)


@lru_cache(maxsize=4)
def sobol_points(count: int, dimensions: int) -> np.ndarray:
    """The first points of the Sobol sequence as 32-bit integers, (a, padded N)."""
    from scipy.stats import qmc

    size = padded(count)
    points = qmc.Sobol(dimensions, scramble=False, bits=32).random_base2(int(np.ceil(np.log2(size))))
    return np.ascontiguousarray((points[:size] * 2.0**32).astype(np.uint32).T)


def draw(actions: BoxActions, count: int, key: int, table: np.ndarray = NO_TABLE) -> np.ndarray:
    """The candidates (N, a) named by a key; the reference of `kernels.counter.draw_tile`.

    `table` holds Sobol points, which the key shifts digitally, or is empty for independent draws.
    """
    low, span = bounds(actions)
    columns = []
    for dimension in range(low.size):
        if table.size:
            bits = table[dimension, :count] ^ np.uint32(extend(key, dimension) & 0xFFFFFFFF)
            columns.append(low[dimension] + span[dimension] * unit_float(bits))
        else:  # one hash serves two dimensions
            bits = hash32(np.arange(count, dtype=np.uint32), extend(key, dimension - dimension % 2))
            halves = bits >> np.uint32(16) if dimension % 2 == 0 else bits & np.uint32(0xFFFF)
            columns.append(half_float(halves, low[dimension], span[dimension]))
    return np.stack(columns, axis=1)
