"""The tree gives brute force's answers to the bit, and keeps the regret it was given for every query."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twotower.kernels import box_tree
from twotower.kernels.layers import dense_tile
from twotower.kernels.layout import TILE
from twotower.randomness import generator
from twotower.search import BoxTree, BruteForce
from twotower.search.box_tree import LEAF, levels


def tower_latents(count: int, inputs: int, size: int, seed: int = 0) -> np.ndarray:
    """Latents (N, d) of a random ReLU tower over a box."""
    random = generator(seed)
    hidden = np.maximum(random.uniform(-1, 1, (count, inputs)) @ random.normal(size=(inputs, size)), 0)
    return (hidden @ random.normal(size=(size, size))).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 14, 20])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000, 5000, 16384])
def test_it_answers_what_brute_force_answers(count: int, size: int) -> None:
    latents = tower_latents(count, min(size, 6), size, seed=size)
    queries = generator(count).normal(size=(100, size))
    assert np.array_equal(
        BoxTree().build(latents).query_batch(queries), BruteForce().build(latents).query_batch(queries)
    )


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([1, 2, 63, 64, 65, 129, 700, 2000]))
def test_of_equals_it_finds_the_first(seed: int, size: int, count: int) -> None:
    random = generator(seed)
    latents = random.integers(-2, 3, (count, size))  # few values, so many ties and duplicates
    queries = random.integers(-2, 3, (20, size))
    expected = np.argmax(queries @ latents.T, axis=1)
    assert np.array_equal(BoxTree().build(latents).query_batch(queries), expected)


@pytest.mark.parametrize("regret", [0.3, 0.05, 0.001])
@pytest.mark.parametrize(("count", "size"), [(3000, 2), (20_000, 3), (20_000, 6)])
def test_no_query_regrets_more_than_was_allowed(count: int, size: int, regret: float) -> None:
    latents, queries = tower_latents(count, size, size), generator(1).normal(size=(300, size))
    regrets = BoxTree(regret=regret).build(latents).regrets(queries)
    assert regrets.max() <= regret + 1e-5
    if regret == 0.3:
        assert regrets.max() > 0.01  # it does use the licence


@pytest.mark.parametrize("size", [1, 3, 4, 6, 9, 20])
def test_a_leaf_is_scored_as_a_tile_is(size: int) -> None:
    random = generator(size)
    query, points = random.normal(size=size).astype(np.float32), random.normal(size=(size, TILE)).astype(np.float32)
    tile, leaf = np.empty((1, TILE), np.float32), np.empty(TILE, np.float32)
    dense_tile(query, 0, size, size, 1, points, tile)
    box_tree.score_leaf(query, points, leaf)
    assert np.array_equal(tile[0], leaf)


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, -2.0, 7.0, 1e-3]), min_size=1, max_size=60), st.data())
def test_selection_finds_the_rank(values: list[float], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    array = np.array(values, np.float32)
    assert box_tree.select(array.copy(), len(values), rank) == np.sort(array)[rank]


@pytest.mark.parametrize("count", [65, 128, 1000, 4097])
def test_leaves_hold_every_candidate_once_and_boxes_hold_their_leaves(count: int) -> None:
    latents = tower_latents(count, 3, 3)
    index = BoxTree().build(latents)
    points, numbers, boxes, rotations, _ = (table[0] for table in index.tables)
    assert points.shape[0] == 2 ** levels(count) and points.shape[2] <= LEAF + 16
    assert set(numbers.ravel()) == set(range(count))
    np.testing.assert_array_equal(points.transpose(0, 2, 1), latents[numbers])
    starts = box_tree.levels_of(len(points))
    bottom = boxes[starts[-2] :].transpose(0, 2, 1).reshape(-1, 6)[: len(points)]  # (leaves, centres and halves)
    rotated = points.transpose(0, 2, 1) @ rotations
    outside = np.abs(rotated - bottom[:, None, :3]) - bottom[:, None, 3:]
    assert outside.max() < 1e-5 * np.abs(latents).max()
    sizes = [len(np.unique(leaf)) for leaf in numbers]
    assert max(sizes) - min(sizes) <= 1


def test_it_looks_at_few_candidates() -> None:
    # Each level visited and each leaf scored is counted by spoiling what was not visited.
    latents = tower_latents(2**15, 6, 6)
    index, query = BoxTree().build(latents), generator(3).normal(size=6)
    answer = index.query(query)
    points = index.tables[0][0]
    needed = 0
    for leaf in range(len(points)):
        kept = points[leaf].copy()
        points[leaf] = 1e6 * np.sign(query[:, None])  # would win, if it were looked at
        needed += index.query(query) != answer
        points[leaf] = kept
    assert 1 <= needed < 0.1 * len(points)
