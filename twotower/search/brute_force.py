"""Exact search: every candidate is scored, tile by tile in cache."""

from dataclasses import dataclass
from typing import final

import numpy as np

from twotower.search.scanned_subset import ScannedSubset


@final
@dataclass(eq=False)
class BruteForce(ScannedSubset):
    """Scores all candidates; nothing to tune, never wrong."""

    name = "brute_force"
    exact = True

    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        return np.arange(len(latents))
