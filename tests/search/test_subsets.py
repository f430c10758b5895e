"""Coresets and hulls: few candidates that hold the winners."""

import numpy as np
import pytest

from twotower.errors import UserError
from twotower.kernels.scan import winners
from twotower.randomness import generator
from twotower.search import BruteForce, DirectionalCoreset, Hull
from twotower.search.scanned_subset import tiled


@pytest.mark.parametrize("count", [1, 511, 512, 513, 2000])
def test_winners_are_brute_forces(count: int) -> None:
    latents, directions = (generator(seed).normal(size=(n, 5)).astype("f4") for seed, n in ((0, count), (1, 33)))
    best, places = np.empty(33, np.float32), np.empty(33, np.int64)
    winners(directions, tiled(latents)[0], best, places)
    np.testing.assert_array_equal(places, BruteForce().build(latents).query_batch(directions))
    np.testing.assert_allclose(best, (directions @ latents.T).max(axis=1), rtol=1e-5)


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
