"""How the kernels lay out their data: feature-major tiles that stay in the first-level cache."""

TILE = 256
LANES = 16


def padded(count: int) -> int:
    """`count` rounded up to whole tiles."""
    return -(-count // TILE) * TILE
