"""What audits say of a search, over all episodes of an iteration or of an evaluation."""

from typing import NamedTuple

import numpy as np

from twotower.kernels.audit import BUCKETS, COUNT, HITS, REGRET, VISITED, WORST


class Audit(NamedTuple):
    """How choices compare with the best candidate, where regret is (best - found) / (best - mean)."""

    audits: int
    """Choices compared."""
    regret: float
    """Mean regret."""
    worst_regret: float
    recall: float
    """Share of choices that found the best."""
    visited: float
    """Mean number of candidates a choice scored."""
    buckets: float
    """Mean number of hash buckets a choice opened; 0 without hashing."""


def summed(audits: np.ndarray) -> Audit | None:
    """The audits (episodes, AUDITED) as one account, added up in the episodes' order; None where there was none."""
    count = int(audits[:, COUNT].sum())
    if not count:
        return None
    regret, hits, visited, buckets = (
        float(audits[:, column].sum()) / count for column in (REGRET, HITS, VISITED, BUCKETS)
    )
    return Audit(count, regret, float(audits[:, WORST].max()), hits, visited, buckets)
