"""Exact search by branch and bound through a tree of boxes, or search whose regret is bounded in advance."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels import box_tree
from twotower.kernels.layout import LANES, aligned_zeros
from twotower.search.base import CompiledIndex, Search, Tables

LEAF = 64
SAMPLE = 4096


@final
@dataclass(eq=False)
class BoxTree(CompiledIndex):
    """Skips boxes of candidates that cannot hold the winner.

    With `regret` > 0 it also skips boxes that can hold no candidate better by more than that fraction of the spread:
    (best − found) / (best − mean) ≤ regret then holds for every query, not on average.
    """

    regret: float = 0.0

    name = "box_tree"

    def __post_init__(self) -> None:
        if not 0 <= self.regret < 1:
            raise UserError(f"regret must be at least 0 and less than 1, not {self.regret}.")
        self.exact = self.regret == 0

    search: ClassVar[Search] = staticmethod(box_tree.search_box_tree)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        count, size = latents.shape
        depth = levels(count)
        leaves = 2**depth
        rotation = principal_axes(latents)
        rotated, order = np.empty_like(latents), np.empty(count, np.int32)
        box_tree.rotate(latents, rotation, rotated)
        starts = box_tree.halve(rotated, depth, order)
        capacity = -(-count // leaves)
        points = aligned_zeros((1, leaves, size, capacity + -capacity % LANES))
        numbers = np.empty((1, leaves, points.shape[3]), np.int32)
        boxes = aligned_zeros((1, box_tree.levels_of(leaves)[-1], 2 * size, box_tree.FANOUT))
        box_tree.fill_leaves(latents, rotated, order, starts, points[0], numbers[0], boxes[0])
        radius = np.sqrt(np.square(latents, dtype=np.float64).sum(axis=1).max())
        # b − f ≤ slack (f − m) is b − f ≤ regret (b − m).
        facts = np.concatenate([latents.mean(axis=0, dtype=np.float64), [radius, self.regret / (1 - self.regret)]])
        return points, numbers, boxes, rotation[None], facts.astype(np.float32)[None]


def levels(count: int) -> int:
    """How often `count` candidates are halved on the way to leaves of at most LEAF."""
    return max(int(np.ceil(np.log2(count / LEAF))), 0)


def principal_axes(latents: np.ndarray) -> np.ndarray:
    """The axes (d, d) along which a sample of the latents varies most and least, in columns."""
    sample = latents[:: -(-len(latents) // SAMPLE)].astype(np.float64)
    sample -= sample.mean(axis=0)
    return np.ascontiguousarray(np.linalg.eigh(sample.T @ sample)[1], np.float32)
