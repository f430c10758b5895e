import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from twotower.analysis.statistics import (
    bootstrap_band,
    holm,
    interquartile_mean,
    mean_band,
    mean_std,
    paired_t_test,
    percentile_band,
)
from twotower.errors import UserError

RNG = np.random.default_rng(7)
SCORES = RNG.normal([0.0, 50.0, -3.0], [1.0, 20.0, 0.1], size=(10, 3))
OTHERS = SCORES + RNG.normal([0.5, 0.0, 1.0], [1.0, 5.0, 2.0], size=(10, 3))


def test_mean_and_std_by_hand() -> None:
    mean, std = mean_std([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    assert mean.tolist() == [3.0, 5.0]
    assert std.tolist() == [pytest.approx(math.sqrt(7)), 0.0]  # ((−2)² + (−1)² + 3²) / 2 = 7


def test_a_list_is_one_task() -> None:
    assert mean_std([1.0, 3.0]).mean.tolist() == [2.0]


def test_one_run_has_no_spread() -> None:
    assert np.isnan(mean_std([[1.0]]).std).all()
    assert np.isnan(mean_band([[1.0]]).low).all()
    assert np.isnan(paired_t_test([1.0], [2.0]).p).all()


def test_percentiles_by_hand() -> None:
    band = percentile_band(np.arange(11.0))
    assert (band.low.tolist(), band.high.tolist()) == ([1.0], [9.0])


def test_mean_band_is_students() -> None:
    band = mean_band(SCORES, 0.9)
    wanted = scipy.stats.t.interval(0.9, 9, SCORES.mean(axis=0), scipy.stats.sem(SCORES))
    np.testing.assert_allclose(band, wanted)


def test_interquartile_mean_by_hand() -> None:
    # Of 8 pooled values 2 go at each end: (3 + 4 + 5 + 60) / 4.
    assert interquartile_mean([[1.0, 4.0], [900.0, 3.0], [5.0, 60.0], [2.0, 800.0]]) == 18.0


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_interquartile_mean_is_scipys_trimmed_mean(runs: int, tasks: int, seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(runs, tasks))
    assert interquartile_mean(scores) == pytest.approx(scipy.stats.trim_mean(scores, 0.25, axis=None))


def test_bootstrap_agrees_with_scipys() -> None:
    one = SCORES[:, [1]]
    ours = bootstrap_band(one, lambda values: values.mean(axis=(-2, -1)), resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (one[:, 0],), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    np.testing.assert_allclose(ours, theirs, atol=0.5)  # the standard error of the mean is 6


def test_bootstrap_is_stratified() -> None:
    # Constant tasks: whichever runs are redrawn, the pooled mean is the same; redrawing over tasks would scatter.
    scores = np.tile([0.0, 100.0], (6, 1))
    band = bootstrap_band(scores, lambda values: values.mean(axis=(-2, -1)))
    assert band.low == band.high == 50.0


def test_bootstrap_redraws_each_task_by_itself() -> None:
    # Two tasks that cancel run by run: only independent redraws let their mean scatter.
    runs = np.arange(10.0)
    band = bootstrap_band(np.column_stack([runs, -runs]), lambda values: values.mean(axis=(-2, -1)))
    assert band.low < -0.5 and band.high > 0.5


def test_bootstrap_depends_on_its_seed_only() -> None:
    assert bootstrap_band(SCORES, seed=3) == bootstrap_band(SCORES, seed=3)
    assert bootstrap_band(SCORES, seed=3) != bootstrap_band(SCORES, seed=4)


def test_bootstrap_covers_the_mean() -> None:
    """The bootstrap's reach of 1.96 √(29/30) errors covers |t₂₉| in 93.6 % of cases; of 400, within ± 3 errors."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        band = bootstrap_band(rng.normal(size=(30, 1)), lambda v: v.mean(axis=(-2, -1)), resamples=400)
        covered += bool(band.low <= 0 <= band.high)
    assert 360 <= covered <= 389


def test_paired_t_test_is_scipys() -> None:
    test = paired_t_test(SCORES, OTHERS)
    wanted = scipy.stats.ttest_rel(SCORES, OTHERS)
    np.testing.assert_allclose(test.p, wanted.pvalue)
    np.testing.assert_allclose(test.effect_size * math.sqrt(10), wanted.statistic)
    np.testing.assert_allclose(test.difference, (SCORES - OTHERS).mean(axis=0))


def test_paired_t_test_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, deviation 1, t = 2√3 with 2 degrees of freedom; p = 1 - t/√(2 + t²).
    test = paired_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert test.effect_size[0] == 2.0
    assert test.p[0] == pytest.approx(1 - math.sqrt(12 / 14))


def test_pairing_matters() -> None:
    assert paired_t_test(SCORES, OTHERS).p.tolist() != paired_t_test(SCORES, OTHERS[::-1]).p.tolist()


def test_equal_pairs_cannot_be_tested() -> None:
    assert np.isnan(paired_t_test([500.0, 500.0], [500.0, 500.0]).p).all()


def test_pairs_that_all_differ_alike() -> None:
    assert paired_t_test([1.0, 1.0], [0.0, 0.0]).p.tolist() == [0.0]


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1: 0.03, 0.04, 0.04.
    np.testing.assert_allclose(holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1.0, 1.0])


def test_holm_never_falls_and_leaves_out_tests_not_made() -> None:
    np.testing.assert_allclose(holm([0.011, np.nan, 0.02, 0.9]), [0.033, np.nan, 0.04, 0.9])
    np.testing.assert_allclose(holm([0.02, 0.011]), [0.022, 0.022])


@pytest.mark.parametrize("scores", [[], [[]], [[math.nan]], [[[1.0]]], 3.0, [[1.0], [math.inf]]])
def test_what_is_no_table_of_scores_is_refused(scores: object) -> None:
    with pytest.raises(UserError, match="finite numbers"):
        mean_std(scores)  # pyright: ignore[reportArgumentType]


def test_pairs_of_different_shape_are_refused() -> None:
    with pytest.raises(UserError, match="same shape"):
        paired_t_test([1.0, 2.0], [1.0])
