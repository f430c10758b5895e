"""The convex hull's vertices: in up to three dimensions few enough to score them all."""

from dataclasses import dataclass
from typing import final

import numpy as np

from twotower.errors import UserError
from twotower.search.scanned_subset import ScannedSubset

MAX_DIMENSION = 3


@final
@dataclass(eq=False)
class Hull(ScannedSubset):
    """Scores the vertices of the latents' convex hull, one of which is among the best for every query.

    Up to rounding: Qhull leaves out vertices that stick out by less than it can tell.
    """

    name = "hull"

    def _capacity(self, count: int) -> int:
        return count

    def _members(self, latents: np.ndarray, seed: int) -> np.ndarray:
        from scipy.spatial import ConvexHull, QhullError

        if latents.shape[1] > MAX_DIMENSION:
            raise UserError(
                f"hull is for latents of at most {MAX_DIMENSION} dimensions, not {latents.shape[1]}: "
                "the hull of more has too many vertices. Use box_tree."
            )
        if latents.shape[1] == 1:
            return np.unique([latents.argmin(), latents.argmax()])
        try:
            return np.sort(ConvexHull(latents.astype(np.float64)).vertices.astype(np.int64))
        except QhullError:  # the latents are too few or lie in a plane
            return np.arange(len(latents))
