"""Candidates in a box: uniform, independent of each other and of every other set; error rates are for a fresh key."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.stats import qmc

from twotower.actions.base import BoxActions
from twotower.actions.box import draw, sobol_points
from twotower.actions.refresh import rollout_key, shared_key
from twotower.config import CandidatesConfig
from twotower.kernels.layout import padded
from twotower.randomness import Domain, derive, extend

N = 4000
UNIT = BoxActions((0.0,) * 4, (1.0,) * 4)


def table_for(kind: str, count: int, size: int) -> np.ndarray:
    return sobol_points(count, size) if kind == "sobol" else np.zeros((0, 0), np.uint32)


def named_sets() -> dict[str, np.ndarray]:
    """Sets (N, 4) whose names differ in one word each: seed, use, iteration, stream, step."""
    base: tuple[int, Domain, int, int] = (0, Domain.ENVIRONMENT, 5, 3)
    names = {
        "base": base,
        "seed": (1, *base[1:]),
        "use": (0, Domain.EVALUATION, 5, 3),
        "iteration": (0, Domain.ENVIRONMENT, 6, 3),
        "stream": (0, Domain.ENVIRONMENT, 5, 4),
    }
    sets = {name: draw(UNIT, N, extend(rollout_key(*words), 7)) for name, words in names.items()}
    sets["step"] = draw(UNIT, N, extend(rollout_key(*base), 8))
    sets["rollout"] = draw(UNIT, N, rollout_key(*base))
    sets["shared"] = draw(UNIT, N, shared_key(CandidatesConfig(), 0, Domain.ENVIRONMENT, 5))
    return sets


SETS = named_sets()


@pytest.mark.parametrize("name", SETS)
def test_each_dimension_is_uniform(name: str) -> None:
    for column in SETS[name].T:  # 4 × 8 tests at 1e-5: one false alarm in 3,000 keys
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-5


def test_pooled_draws_are_uniform_finely() -> None:
    pooled = np.concatenate([draw(UNIT, N, derive(1, k)).ravel() for k in range(60)])  # 960,000
    counts = np.histogram(pooled, bins=4096, range=(0, 1))[0]
    assert 1e-5 < scipy.stats.chisquare(counts).pvalue < 1 - 1e-5  # neither too rough nor too even


def test_many_small_sets_are_uniform_each() -> None:
    # The p-values of 500 sets' dimensions are uniform in their turn: no set is off, and none is too good.
    pvalues = [scipy.stats.kstest(c, "uniform").pvalue for k in range(125) for c in draw(UNIT, 200, derive(2, k)).T]
    assert scipy.stats.kstest(pvalues, "uniform").pvalue > 1e-4


def test_dimensions_and_sets_are_uncorrelated() -> None:
    columns = np.concatenate([s for s in SETS.values()], axis=1)  # (N, 32)
    for power in (1, 2):  # centred values, and how far out they are
        correlations = np.corrcoef(np.abs(columns - 0.5) if power == 2 else columns, rowvar=False)
        # 496 correlations of standard error 1/√N, 5.5 of them: false alarm below 2e-5.
        assert np.abs(correlations[np.triu_indices(32, 1)]).max() < 5.5 / np.sqrt(N)


def test_pairs_fill_the_square() -> None:
    columns = np.concatenate([s for s in SETS.values()], axis=1)
    for i in range(32):
        for j in range(i):
            counts = np.histogram2d(columns[:, i], columns[:, j], bins=10, range=[[0, 1]] * 2)[0]
            assert scipy.stats.chisquare(counts.ravel()).pvalue > 1e-7  # 496 tests: false alarm below 5e-5


def test_pairs_of_dimensions_fill_the_square_finely() -> None:
    # A hash serves two dimensions: pooled over keys, its halves must not know of each other.
    many = np.concatenate([draw(UNIT, N, derive(9, k)) for k in range(50)])
    for i, j in ((0, 1), (1, 2), (2, 3), (0, 2), (0, 3)):
        counts = np.histogram2d(many[:, i], many[:, j], bins=64, range=[[0, 1]] * 2)[0]
        assert 1e-5 < scipy.stats.chisquare(counts.ravel()).pvalue < 1 - 1e-5


def test_neighbours_in_a_set_are_independent() -> None:
    for lag in (1, 2, 16, 256):
        for column in SETS["base"].T:
            assert abs(np.corrcoef(column[lag:], column[:-lag])[0, 1]) < 5 / np.sqrt(N - lag)
            counts = np.histogram2d(column[lag:], column[:-lag], bins=10, range=[[0, 1]] * 2)[0]
            assert scipy.stats.chisquare(counts.ravel()).pvalue > 1e-6


def test_one_candidate_over_many_keys_is_uniform_and_unpredictable() -> None:
    # What a rollout sees over its steps, at one position of the set.
    for index in (0, 1, 99):
        series = np.stack(
            [draw(UNIT, 100, extend(rollout_key(0, Domain.ENVIRONMENT, 0, 0), t))[index] for t in range(2000)]
        )
        for column in series.T:
            assert scipy.stats.kstest(column, "uniform").pvalue > 1e-5
            assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5 / np.sqrt(1999)


def test_sobol_covers_more_evenly_than_chance_and_shifts_with_the_key() -> None:
    count = 1024
    table = sobol_points(count, 4)
    sets = [draw(UNIT, count, derive(3, k), table) for k in range(20)]
    chance = [qmc.discrepancy(draw(UNIT, count, derive(3, k))) for k in range(20)]
    assert max(qmc.discrepancy(s) for s in sets) < 0.2 * min(chance)
    # Every shifted set has one point in each of the 1,024 elementary intervals of a dimension.
    for points in sets:
        for column in points.T:
            assert np.array_equal(np.sort((column * count).astype(int)), np.arange(count))
    # The shift is the key's: positions of one point over keys are uniform, and dimensions shift apart.
    firsts = np.stack([draw(UNIT, 1, derive(4, k), table)[0] for k in range(1000)])
    for column in firsts.T:
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-5
    assert np.abs(np.corrcoef(firsts, rowvar=False)[np.triu_indices(4, 1)]).max() < 5 / np.sqrt(1000)


@pytest.mark.parametrize("count", [1, 5, 1000, 1024, 1025])
def test_sobol_tables_have_whole_tiles_of_the_sequence(count: int) -> None:
    table = sobol_points(count, 3)
    assert table.shape == (3, padded(count)) and table.dtype == np.uint32
    expected = qmc.Sobol(3, scramble=False, bits=32).random_base2(11)[:count]
    assert np.array_equal(table[:, :count].T / 2.0**32, expected)


@pytest.mark.parametrize("kind", ["uniform", "sobol"])
@pytest.mark.parametrize(
    ("low", "high"),
    [(-1e6, 1e6), (-1e-6, 1e-6), (1.0, 1.0000001), (-1e6, 0.1), (0.1, 1e6), (3.0, 3.0), (-1e-45, 1e-45), (-1e10, 1e10)],
)
def test_extreme_boxes_hold_their_candidates(kind: str, low: float, high: float) -> None:
    space: Any = BoxActions((low, low), (high, high))
    candidates = draw(space, 1000, derive(5), table_for(kind, 1000, 2))
    assert (candidates >= np.float32(low)).all() and (candidates <= np.float32(high)).all()
    if high - low > 1e-3:
        assert np.ptp(candidates) > 0.98 * (high - low)


def test_a_longer_set_begins_like_a_shorter_one() -> None:
    assert np.array_equal(draw(UNIT, 5000, 1)[:10], draw(UNIT, 10, 1))
    assert np.array_equal(draw(UNIT, 5000, 1, sobol_points(5000, 4))[:10], draw(UNIT, 10, 1, sobol_points(10, 4)))
