"""The tree holds every candidate once, in boxes that contain them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotower.randomness import generator
from twotower.search.bounding_tree import FANOUT, LEAF, build_tree, levels_for


def candidates(count: int, size: int, scale: float = 1.0, grid: int | None = None) -> np.ndarray:
    """Candidates (count, size); on a coarse grid many of them are equal."""
    drawn = generator(count, size).uniform(-1, 1, (count, size))
    return ((drawn if grid is None else np.round(drawn * grid) / grid) * scale).astype(np.float32)


@given(
    count=st.integers(1, 4000),
    size=st.integers(1, 7),
    exponent=st.integers(-30, 30),
    grid=st.sampled_from([None, 1, 3]),
)
def test_every_candidate_has_a_place_inside_its_boxes(count: int, size: int, exponent: int, grid: int | None) -> None:
    actions = candidates(count, size, 10.0**exponent, grid)
    tree = build_tree(actions)
    assert set(tree.indices.tolist()) == set(range(count))
    np.testing.assert_array_equal(tree.actions.T, actions[tree.indices])
    leaves = tree.leaf_boxes.shape[2]
    assert tree.indices.size == leaves * tree.leaf_size and leaves % FANOUT == 0
    for boxes, members in ((tree.leaf_boxes, tree.leaf_size), (tree.coarse_boxes, tree.leaf_size * FANOUT)):
        centre, reach = boxes.astype(np.float64)
        inside = tree.actions.reshape(size, -1, members)
        assert (np.abs(inside - centre[..., None]) <= reach[..., None]).all()


@pytest.mark.parametrize("count", [2048, 10_000, 2**15])
def test_leaves_are_of_about_the_size_asked_for(count: int) -> None:
    tree = build_tree(candidates(count, 5))
    assert LEAF / 2 <= tree.leaf_size <= LEAF
    assert tree.leaf_boxes.shape[2] == 2 ** levels_for(count)


def test_boxes_shrink_towards_the_leaves() -> None:
    tree = build_tree(candidates(10_000, 3))
    assert tree.leaf_boxes[1].mean() < tree.coarse_boxes[1].mean() < 0.5
