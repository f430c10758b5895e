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
SAMPLE_LEVELS = 11  # cells of two members of the sample
OWN_AXES = 1.1  # so much wider may boxes be that spare the rotation


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
        self.exact: bool = self.regret == 0

    search: ClassVar[Search] = staticmethod(box_tree.search_box_tree)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        count, size = latents.shape
        leaves = 2 ** levels(count)
        capacity = -(-count // leaves)
        points = aligned_zeros((1, leaves, size, capacity + -capacity % LANES))
        numbers = np.empty((1, leaves, points.shape[3]), np.int32)
        boxes = aligned_zeros((1, box_tree.levels_of(leaves)[-1], 2 * size, box_tree.FANOUT))
        rotation, facts = np.empty((1, size, size), np.float32), np.empty((1, size + 2), np.float32)
        return self._renewed(latents, seed, (points, numbers, boxes, rotation, facts))

    def _renewed(self, latents: np.ndarray, seed: int, old: Tables) -> Tables:
        points, numbers, boxes, rotation, facts = (table[0] for table in old)
        axes, rotated = best_axes(latents), latents
        rotation[:] = np.eye(len(rotation)) if axes is None else axes
        if axes is not None:
            rotated = np.empty_like(latents)
            box_tree.rotate(latents, rotation, rotated)
        order, starts = sort_into_leaves(rotated, levels(len(latents)))
        box_tree.fill_leaves(latents, rotated, order, starts, points, numbers, boxes)
        box_tree.facts_of(latents, facts)
        facts[-1] = self.regret / (1 - self.regret)  # b − f ≤ slack (f − m) is b − f ≤ regret (b − m)
        return old


def levels(count: int) -> int:
    """How often `count` candidates are halved on the way to leaves of at most LEAF."""
    return max(int(np.ceil(np.log2(count / LEAF))), 0)


def best_axes(latents: np.ndarray) -> np.ndarray | None:
    """The principal axes (d, d), in columns, of a sample of the latents; None where their own are about as tight."""
    sample = latents[:: -(-len(latents) // 1024)].astype(np.float64)
    sample -= sample.mean(axis=0)
    axes = np.linalg.eigh(sample.T @ sample)[1]
    if np.ptp(sample, axis=0).sum() <= OWN_AXES * np.ptp(sample @ axes, axis=0).sum():
        return None
    return np.ascontiguousarray(axes, np.float32)


def sort_into_leaves(rows: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows (N, d) in the order of 2^depth leaves, and where each leaf begins.

    Many rows are halved as a sample of them is: a few more are scored, but the building takes a fraction of the time.
    """
    order = np.empty(len(rows), np.int32)
    if len(rows) <= 4 * SAMPLE:
        return order, box_tree.halve(rows, depth, order)
    cells = min(depth + 1, SAMPLE_LEVELS)
    axes, cuts = np.zeros(2**cells, np.int32), np.zeros(2**cells, np.float32)
    box_tree.cut(np.ascontiguousarray(rows[:: len(rows) // SAMPLE]), cells, axes, cuts)
    return order, box_tree.sort_by_cuts(rows, cells, axes, cuts, 2**depth, order)
