"""How the kernels lay out their data: feature-major tiles that stay in the first-level cache."""

import math

import numpy as np

TILE = 512
LANES = 16
CACHE_LINE = 64
BUCKET = 1 << 32  # what a bucket that was opened adds to a count of candidates


def padded(count: int) -> int:
    """`count` rounded up to whole tiles."""
    return -(-count // TILE) * TILE


def aligned_zeros(shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
    """Zeros that begin a cache line, so that no vector load of a tile straddles two."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + CACHE_LINE, np.uint8)
    start = -buffer.ctypes.data % CACHE_LINE
    return buffer[start : start + size].view(dtype).reshape(shape)
