"""What a gradient estimator sees in place of raw returns, and which directions count."""

from typing import NamedTuple

import numpy as np

from twotower.config import StrategyConfig


class Shaped(NamedTuple):
    """Returns made ready for an estimator."""

    values: np.ndarray  # (members,) float64
    counts: np.ndarray  # (M,) bool: the directions that count


def shape_returns(config: StrategyConfig, returns: np.ndarray, direction_of: np.ndarray) -> Shaped:
    """Rank, select, scale: a pure function of the members' returns and directions (-1: θ itself)."""
    values = centred_ranks(returns) if config.shaping == "ranks" else returns
    counts = best_directions(values, direction_of, config.top_directions)
    if config.scale_returns:
        used = (direction_of < 0) | counts[direction_of]
        deviation = float(values[used].std())
        if 0 < deviation < np.inf:
            values = values / deviation
    return Shaped(values, counts)


def centred_ranks(values: np.ndarray) -> np.ndarray:  # (n,) -> (n,)
    """Ranks spread evenly over [-1/2, 1/2]; equal values share the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(sizes) - sizes
    ranks = (first + (sizes - 1) / 2)[group]
    return ranks / max(len(values) - 1, 1) - 0.5


def best_directions(values: np.ndarray, direction_of: np.ndarray, top: int | None) -> np.ndarray:  # (M,) bool
    """The `top` directions with the best member, or all of them; ties go to the first."""
    count = int(direction_of.max()) + 1
    if top is None or top >= count:
        return np.ones(count, bool)
    merits = np.full(count, -np.inf)
    perturbed = direction_of >= 0
    np.maximum.at(merits, direction_of[perturbed], values[perturbed])
    counts = np.zeros(count, bool)
    counts[np.argsort(-merits, kind="stable")[:top]] = True
    return counts
