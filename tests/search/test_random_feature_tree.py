"""What is sampled is what is reported, and near the softmax where the features suffice."""

import numpy as np
import pytest

from twotower.randomness import generator
from twotower.search import RandomFeatureTree

SIZE = 4


def short_latents(count: int, seed: int = 0) -> np.ndarray:
    return 0.4 * generator(seed).normal(size=(count, SIZE))


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("leaf", [1, 64])
@pytest.mark.parametrize("kind", ["optimal", "favor"])
def test_the_estimate_is_near_the_softmax_for_any_count(count: int, leaf: int, kind: str) -> None:
    index = RandomFeatureTree(leaf=leaf, kind=kind).build(short_latents(count))  # pyright: ignore[reportArgumentType]
    queries = short_latents(20, seed=1)
    assert index.probabilities(queries[0]).sum() == pytest.approx(1)
    distances = index.total_variation(queries)
    expected = np.exp(short_latents(count).astype(np.float32) @ queries[0].astype(np.float32))
    np.testing.assert_allclose(index.softmax(queries[0]), expected / expected.sum(), rtol=1e-5)
    assert distances.max() < (0.08 if leaf == 1 else 0.03)


@pytest.mark.parametrize("count", [37, 300])
@pytest.mark.parametrize("options", [{"leaf": 1}, {}, {"temperature": 0.05}, {"normalise": True, "temperature": 0.3}])
def test_samples_follow_the_reported_distribution(count: int, options: dict) -> None:
    """Pearson's statistic over up to 300 cells: below its mean + 6 standard deviations, false alarms below 1e-6."""
    index = RandomFeatureTree(**options).build(short_latents(count))
    draws = 40_000
    for query in short_latents(2, seed=2):
        expected = draws * index.probabilities(query)
        counts = np.bincount(index.sample(query, draws, seed=3), minlength=count)
        assert len(counts) == count
        common = expected > 5
        statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
        assert abs(statistic - common.sum()) < 6 * np.sqrt(2 * common.sum()) + 1
        rare = expected[~common].sum()
        assert abs(counts[~common].sum() - rare) < 6 * np.sqrt(rare) + 1


def test_samples_follow_the_softmax_within_the_reported_distance() -> None:
    """An event's frequency over 100,000 draws is within 5 standard errors (0.008) of a probability that is."""
    index = RandomFeatureTree().build(short_latents(500))
    query = 3 * short_latents(1, seed=4)[0]
    softmax = index.softmax(query)
    event = softmax > np.median(softmax)
    frequency = event[index.sample(query, 100_000, seed=5)].mean()
    assert abs(frequency - softmax[event].sum()) < index.total_variation(query[None])[0] + 0.008


def test_the_law_does_not_depend_on_the_split() -> None:
    latents, query = short_latents(333), short_latents(1, seed=1)[0]
    order = generator(7).permutation(333)
    one = RandomFeatureTree(leaf=1).build(latents)
    other = RandomFeatureTree(leaf=1).build(latents[order])
    np.testing.assert_allclose(other.probabilities(query), one.probabilities(query)[order], rtol=1e-6)


def test_optimal_features_are_better_where_latents_are_long() -> None:
    def distance(kind: str) -> float:
        index = RandomFeatureTree(kind=kind, leaf=1)  # pyright: ignore[reportArgumentType]
        latents, queries = 3.5 * short_latents(200), 3.5 * short_latents(20, seed=1)
        return float(np.mean([index.build(latents, seed).total_variation(queries).mean() for seed in range(10)]))

    assert distance("optimal") < 0.9 * distance("favor")


def test_the_shrinkage_is_the_minimum_of_the_variance() -> None:
    keys = short_latents(100)
    size, spread = SIZE, 2 * np.square(keys).sum(axis=1).mean()
    found = RandomFeatureTree()._shrink(keys)

    def log_second_moment(a: float) -> float:
        return size * np.log(1 - 4 * a) - size / 2 * np.log(1 - 8 * a) + 2 * (1 - 4 * a) / (1 - 8 * a) * spread

    grid = [log_second_moment(found + step) for step in (-0.01, -0.001, 0.0, 0.001, 0.01)]
    assert min(grid) == grid[2] and found < 0


def test_more_features_estimate_better() -> None:
    latents, queries = 2 * short_latents(300), 2 * short_latents(20, seed=1)
    distances = [RandomFeatureTree(r).build(latents).total_variation(queries).mean() for r in (8, 64, 1024)]
    assert distances[0] > distances[1] > distances[2]


def test_low_temperatures_are_greedy() -> None:
    latents, queries = 0.2 * short_latents(400), short_latents(50, seed=1)
    warm, cold = (RandomFeatureTree(temperature=t).build(latents).regrets(queries).mean() for t in (1.0, 0.02))
    assert cold < warm
    assert RandomFeatureTree(leaf=400, samples=0).build(latents).regrets(queries).max() < 1e-6


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-3, 30.0, 1e10, 1e30])
@pytest.mark.parametrize("kind", ["optimal", "favor"])
def test_no_scale_breaks_it(scale: float, kind: str) -> None:
    latents = scale * generator(1).normal(size=(77, 3))
    index = RandomFeatureTree(features=32, leaf=8, kind=kind).build(latents)  # pyright: ignore[reportArgumentType]
    for query in (np.zeros(3), np.ones(3), np.full(3, 1e30), np.full(3, 1e-30), latents[3]):
        probabilities = index.probabilities(query)
        assert np.isfinite(probabilities).all() and probabilities.sum() == pytest.approx(1)
        draws = index.sample(query, 100, seed=2)
        assert draws.min() >= 0 and draws.max() < 77
