"""A tree of boxes over a set of candidates, in which exact search can rule out most of them unseen."""

from typing import NamedTuple

import numpy as np

LEAF = 20
FANOUT = 8


class BoundingTree(NamedTuple):
    """Candidates in the order of their leaves; leaf l is a child of coarse box l // FANOUT."""

    actions: np.ndarray  # (a, leaves · leaf size) float32, the last of a short leaf repeated
    indices: np.ndarray  # (leaves · leaf size,) int64: each candidate's number in the original set
    leaf_boxes: np.ndarray  # (2, a, leaves) float32: centres and half-widths
    coarse_boxes: np.ndarray  # (2, a, leaves / FANOUT) float32

    @property
    def leaf_size(self) -> int:
        """Candidates in a leaf."""
        return self.indices.size // self.leaf_boxes.shape[2]


def build_tree(actions: np.ndarray) -> BoundingTree:
    """Split candidates (N, a) at medians, the widest dimension first, into leaves of about LEAF."""
    leaves = _split(actions, np.arange(len(actions)), levels_for(len(actions)))
    size = max(leaf.size for leaf in leaves)
    indices = np.concatenate([np.pad(leaf, (0, size - leaf.size), mode="edge") for leaf in leaves])
    ordered = actions[indices].astype(np.float32)
    by_leaf = ordered.reshape(len(leaves), size, -1)
    by_coarse = ordered.reshape(len(leaves) // FANOUT, size * FANOUT, -1)
    return BoundingTree(np.ascontiguousarray(ordered.T), indices, _boxes(by_leaf), _boxes(by_coarse))


def levels_for(count: int) -> int:
    """How often `count` candidates are halved on the way to their leaves."""
    return max(int(np.ceil(np.log2(max(count / LEAF, 1)))), 3)


def _split(actions: np.ndarray, indices: np.ndarray, levels: int) -> list[np.ndarray]:
    if levels == 0:
        return [indices]
    inside = actions[indices]
    widest = int(np.argmax(inside.max(axis=0) - inside.min(axis=0)))
    middle = (indices.size + 1) // 2  # the first half is never empty, so that every leaf has a candidate to repeat
    order = np.argpartition(inside[:, widest], middle - 1)
    halves = order[:middle], order[middle:] if indices.size > 1 else order
    return [leaf for half in halves for leaf in _split(actions, indices[half], levels - 1)]


def _boxes(groups: np.ndarray) -> np.ndarray:
    """Centres and half-widths (2, a, groups) of groups (groups, members, a), rounded outwards."""
    low, high = groups.min(axis=1).T, groups.max(axis=1).T
    centre = (low + high) / 2
    return np.ascontiguousarray(np.stack([centre, np.maximum(high - centre, centre - low) * np.float32(1 + 1e-6)]))
