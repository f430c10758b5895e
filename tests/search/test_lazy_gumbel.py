"""Draws follow the exact softmax whatever N, temperature and scale, and score few candidates."""

import numpy as np
import pytest
import scipy.stats

from twotower.randomness import generator
from twotower.search import LazyGumbel

DRAWS = 60_000


def fit(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of Pearson's statistic, the rare candidates as one cell."""
    expected = counts.sum() * probabilities
    common = expected > 10
    cells = [np.append(part[common], part[~common].sum()) for part in (counts, expected)]
    if cells[1][-1] == 0:
        return scipy.stats.chisquare(cells[0][:-1], cells[1][:-1]).pvalue if common.sum() > 1 else 1.0
    return scipy.stats.chi2.sf(((cells[0] - cells[1]) ** 2 / cells[1]).sum(), common.sum())


@pytest.mark.parametrize("count", [1, 2, 37, 64, 65, 1000, 5000])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 30.0])
def test_draws_follow_the_exact_softmax(count: int, temperature: float) -> None:
    """Each of the 21 cases fails a correct sampler with probability 1e-5; the seeds are fixed."""
    latents, query = generator(count).normal(size=(count, 3)), 1.5 * generator(1).normal(size=3)
    index = LazyGumbel(temperature).build(latents)
    drawn = index.sample(query, DRAWS, seed=2)
    products = latents.astype(np.float32) @ query.astype(np.float32) / temperature
    expected = np.exp(products.astype(np.float64) - products.max())
    np.testing.assert_allclose(index.softmax(query), expected / expected.sum(), rtol=1e-4)
    counts = np.bincount(drawn, minlength=count)
    assert len(counts) == count and fit(counts, index.softmax(query)) > 1e-5
    if count >= 37:  # and the test can tell
        assert fit(counts, LazyGumbel(temperature * 1.2).build(latents).softmax(query)) < 1e-5 or temperature > 1


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e10, 1e30])
def test_any_scale_is_drawn_alike(scale: float) -> None:
    """A scale that the queries undo, in powers of two that round nothing, leaves every draw as it was."""
    latents, query = generator(5).normal(size=(300, 4)), generator(6).normal(size=4)
    power = 2.0 ** np.round(np.log2(scale))
    plain = LazyGumbel().build(latents).sample(query, 200, seed=1)
    assert np.array_equal(LazyGumbel().build(latents * power).sample(query / power, 200, seed=1), plain)
    for extreme in (np.zeros(4), query * scale, np.full(4, 1e30), np.full(4, 1e-30)):
        drawn = LazyGumbel().build(latents * scale).sample(extreme, 50, seed=3)
        assert drawn.min() >= 0 and drawn.max() < 300
    greedy = LazyGumbel().build(latents * 1e30).sample(query, 50, seed=3)
    assert set(greedy) == {np.argmax(latents.astype(np.float32) @ query.astype(np.float32))}


def test_equal_and_zero_latents_are_drawn_evenly() -> None:
    """Twelve standard deviations of a chi-square: false alarms below 1e-6."""
    for latents in (np.zeros((700, 3)), np.ones((700, 3))):
        counts = np.bincount(LazyGumbel().build(latents).sample(np.ones(3), DRAWS, seed=4), minlength=700)
        assert abs(((counts - DRAWS / 700) ** 2 / (DRAWS / 700)).sum() - 699) < 12 * np.sqrt(2 * 699)


def test_the_candidates_scored_grow_far_slower_than_the_candidates() -> None:
    for length, few in ((0.5, 80), (1.0, 130), (2.0, 1500)):
        scored = {}
        for count in (2**12, 2**17):
            random = generator(7)
            latents = length / 6**0.5 * random.normal(size=(count, 6))
            index = LazyGumbel().build(latents)
            queries = length / 6**0.5 * random.normal(size=(20, 6))
            counts = []
            for query in queries:
                index.sample(query, 20, seed=8)
                counts.append(index.visited.mean())
            scored[count] = np.mean(counts)
        assert scored[2**17] < few and scored[2**17] < 6 * scored[2**12]


def test_draws_differ_by_seed_and_are_independent() -> None:
    """Repeats of neighbouring draws among 50 equal candidates: within 5 standard errors of one in 50."""
    index = LazyGumbel().build(np.zeros((50, 2)))
    drawn, other = (index.sample(np.ones(2), 20_000, seed) for seed in (1, 2))
    assert not np.array_equal(drawn, other)
    for repeats in (drawn[1:] == drawn[:-1], drawn == other):
        assert abs(repeats.mean() - 1 / 50) < 5 * np.sqrt(1 / 50 / 20_000)
