"""Exact search: every candidate is scored, tile by tile in cache."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from twotower.kernels.scan import search_scan
from twotower.search.base import CompiledIndex, Search, Tables
from twotower.search.scanned_subset import whole_tables


@final
@dataclass(eq=False)
class BruteForce(CompiledIndex):
    """Scores all candidates; nothing to tune, never wrong."""

    name = "brute_force"
    exact = True

    search: ClassVar[Search] = staticmethod(search_scan)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        return whole_tables(latents)
