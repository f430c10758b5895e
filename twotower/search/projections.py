"""Random projections shared by hashes and random features."""

import numpy as np

from twotower.randomness import Domain, generator


def orthogonal_projections(count: int, size: int, seed: int) -> np.ndarray:
    """Standard normal rows (count, size), orthogonal within blocks of `size`."""
    blocks = []
    for block in range(-(-count // size)):
        random = generator(seed, Domain.SEARCH, block)
        haar, upper = np.linalg.qr(random.normal(size=(size, size)))
        lengths = np.linalg.norm(random.normal(size=(size, size)), axis=1)
        blocks.append((haar * np.where(np.diag(upper) < 0, -1.0, 1.0)).T * lengths[:, None])
    return np.concatenate(blocks)[:count]
