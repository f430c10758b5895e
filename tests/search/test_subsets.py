"""Coresets and hulls: few candidates that hold the winners."""

import numpy as np
import pytest

from twotower.errors import UserError
from twotower.kernels import coreset
from twotower.kernels.box_tree import score_leaf
from twotower.kernels.layout import LANES
from twotower.kernels.scan import winners
from twotower.randomness import generator
from twotower.search import BruteForce, DirectionalCoreset, Hull
from twotower.search.directional_coreset import grow


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 14, 23, 24, 25, 31])  # on both sides of UNROLLED
@pytest.mark.parametrize("count", [1, 15, 16, 511, 513, 2000])
def test_scans_score_as_trees_do_to_the_bit(count: int, size: int) -> None:
    latents, directions = (generator(seed).normal(size=(n, size)).astype("f4") for seed, n in ((0, count), (1, 33)))
    best, places = np.empty(33, np.float32), np.empty(33, np.int64)
    winners(directions, latents, best, places)
    np.testing.assert_array_equal(places, BruteForce().build(latents).query_batch(directions))
    points, scores = np.zeros((size, count + -count % LANES), np.float32), np.empty(count + -count % LANES, np.float32)
    points[:, :count] = latents.T
    for k in range(33):
        score_leaf(directions[k], points, scores)
        assert (scores[:count].argmax(), scores[:count].max()) == (places[k], best[k])


def test_the_first_of_equals_wins_a_scan() -> None:
    latents = np.repeat(generator(0).normal(size=(40, 3)), 30, axis=0)
    index, queries = BruteForce().build(latents), generator(1).normal(size=(50, 3))
    assert (index.query_batch(queries) % 30 == 0).all()


@pytest.mark.parametrize("size", [2, 3, 6, 9])
def test_cones_keep_every_winner_of_their_directions(size: int) -> None:
    random = generator(size)
    latents = random.normal(size=(6000, size)).astype("f4")
    directions = (np.eye(size)[[0] * 40 + [1] * 40] + 0.05 * random.normal(size=(80, size))).astype("f4")
    sample, places = latents[:500].copy(), np.empty(80, np.int64)
    winners(directions, sample, np.empty(80, np.float32), places)
    planes, offsets = np.empty((16, size, size), np.float32), np.empty((16, size), np.float32)
    ranks = np.zeros(16, np.int64)
    assert coreset.wrap(sample, directions, places, planes, offsets, ranks)
    alive = coreset.rule_out(latents, planes, offsets, ranks)
    assert np.isin((directions @ latents.T).argmax(axis=1), alive).all()
    assert len(alive) < 0.5 * len(latents)


def test_what_is_regretted_is_measured_without_the_own_winner() -> None:
    latents = np.array([[1, 0], [0, 1], [0.5, 0.5], [0, 0]], "f4")
    directions = np.array([[1, 0], [1, 0], [0, 1]], "f4")
    best, places = np.array([1, 1, 1], "f4"), np.array([0, 0, 1])
    regret, error = coreset.leave_one_out(latents, directions, best, places, np.zeros(2), np.array([0, 1]))
    assert regret == pytest.approx(1 / 3)  # the third direction alone has its winner, and finds 0 of 1 without it
    assert error == pytest.approx(coreset.SURE * np.sqrt((1 / 3 - 1 / 9) / 3))


def test_directions_near_the_past_queries_follow_when_these_are_used_up() -> None:
    random = generator(5)
    hidden = np.maximum(random.uniform(-1, 1, (20_000, 6)) @ random.normal(size=(6, 14)), 0)
    latents, towards = (hidden @ random.normal(size=(14, 14))).astype("f4"), 2 * random.normal(size=14)
    past, future = (towards + random.normal(size=(400, 14)) for _ in range(2))
    grown = grow(latents, past, 0, 0.002)
    assert grown.reached and grown.asked > 400
    index = DirectionalCoreset(directions=2**15, queries=past, regret=0.002).build(latents)
    assert index.regrets(future).mean() <= 0.002


def test_a_coreset_gives_up_when_a_rival_is_faster() -> None:
    latents = generator(0).normal(size=(5000, 8)).astype("f4")
    grown = grow(latents, None, 0, 0.001, seconds=(0.0, 1.0, 0.0, 0.0, 500.0))  # a second a direction
    assert not grown.reached and 0 < grown.asked <= 500
    assert not grow(latents, None, 0, 0.01, seconds=(0.0, 1.0, 0.0, 0.0, 5.0)).asked


def test_a_coreset_answers_its_own_directions_exactly() -> None:
    latents, queries = generator(0).normal(size=(20_000, 8)), generator(1).normal(size=(200, 8))
    index = DirectionalCoreset(directions=50, queries=queries).build(latents)
    assert np.array_equal(index.query_batch(queries), BruteForce().build(latents).query_batch(queries))
    assert index.nbytes < 0.1 * index.latents.nbytes


def test_past_queries_help_in_a_policys_cone() -> None:
    random = generator(2)
    latents, towards = random.normal(size=(20_000, 8)), 4 * random.normal(size=8)
    past, future = (towards + random.normal(size=(300, 8)) for _ in range(2))
    random_only = DirectionalCoreset(directions=600).build(latents).regrets(future).mean()
    refreshed = DirectionalCoreset(directions=300, queries=past).build(latents).regrets(future).mean()
    assert refreshed < 0.3 * random_only


def test_a_query_of_zeros_among_the_past_ones_does_no_harm() -> None:
    latents = generator(0).normal(size=(100, 3))
    index = DirectionalCoreset(directions=9, queries=np.zeros((2, 3))).build(latents)
    assert 0 <= index.query(np.ones(3)) < 100


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_hull_holds_every_winner(size: int) -> None:
    latents, queries = generator(size).normal(size=(5000, size)), generator(9).normal(size=(500, size))
    hull = Hull().build(latents)
    assert np.array_equal(hull.query_batch(queries), BruteForce().build(latents).query_batch(queries))
    assert len(np.unique(hull.tables[1])) < 400


@pytest.mark.parametrize("latents", [np.zeros((9, 3)), np.ones((9, 1)) * [[1.0, 2.0, 3.0]], np.eye(3)])
def test_flat_latents_have_no_hull_and_are_all_scored(latents: np.ndarray) -> None:
    queries = generator(1).normal(size=(20, 3))
    assert np.array_equal(Hull().build(latents).query_batch(queries), np.argmax(queries @ latents.T, axis=1))


def test_a_hull_of_many_dimensions_is_refused() -> None:
    with pytest.raises(UserError, match="at most 3 dimensions, not 4"):
        Hull().build(np.ones((9, 4)))
