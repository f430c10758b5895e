"""Scores of repeated runs, as arrays (runs, tasks), to the numbers that tables and figures show.

A row is a run (a seed), a column a task, or an iteration of a curve; a plain list of runs counts as one task.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from twotower.errors import UserError

CHUNK_ENTRIES = 2**22  # resampled scores held at a time


class MeanStd(NamedTuple):
    """Mean and sample standard deviation over runs."""

    mean: np.ndarray  # (tasks,)
    std: np.ndarray  # (tasks,), NaN for a single run


class Band(NamedTuple):
    """A lower and an upper limit."""

    low: np.ndarray  # (tasks,), or a scalar where tasks are pooled
    high: np.ndarray


class PairedTest(NamedTuple):
    """A two-sided t-test of paired runs; NaN where all pairs are equal or there is only one."""

    difference: np.ndarray  # (tasks,), mean of first - second
    effect_size: np.ndarray  # (tasks,), Cohen's d of the differences: their mean over their standard deviation
    p: np.ndarray  # (tasks,)


def mean_std(scores: ArrayLike) -> MeanStd:
    """Each task's mean and sample standard deviation (n - 1) over runs."""
    values = _table(scores)
    return MeanStd(values.mean(axis=0), _std(values))


def percentile_band(scores: ArrayLike, low: float = 10, high: float = 90) -> Band:
    """Each task's percentiles over runs."""
    return Band(*np.percentile(_table(scores), [low, high], axis=0))


def mean_band(scores: ArrayLike, confidence: float = 0.95) -> Band:
    """Student's confidence interval of each task's mean; NaN for a single run."""
    values = _table(scores)
    runs = len(values)
    quantile = special.stdtrit(runs - 1, 0.5 + confidence / 2) if runs > 1 else math.nan
    reach = quantile * _std(values) / math.sqrt(runs)
    return Band(values.mean(axis=0) - reach, values.mean(axis=0) + reach)


def interquartile_mean(scores: ArrayLike) -> np.ndarray:  # (…, runs, tasks) -> (…)
    """Mean of the middle half of all runs of all tasks together (IQM)."""
    values = np.asarray(scores, dtype=np.float64)
    pooled = np.sort(values.reshape(*values.shape[:-2], -1), axis=-1)
    cut = pooled.shape[-1] // 4
    return pooled[..., cut : pooled.shape[-1] - cut].mean(axis=-1)


def bootstrap_band(
    scores: ArrayLike,
    statistic: Callable[[np.ndarray], np.ndarray] = interquartile_mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Band:
    """Percentile bootstrap of a statistic (…, runs, tasks) -> (…), stratified: runs are redrawn task by task."""
    values = _table(scores)
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_ENTRIES // values.size)
    found = []
    for start in range(0, resamples, chunk):
        rows = rng.integers(len(values), size=(min(chunk, resamples - start), *values.shape))
        found.append(statistic(np.take_along_axis(values[None], rows, axis=1)))
    tail = 100 * (1 - confidence) / 2
    return Band(*np.percentile(np.concatenate(found), [tail, 100 - tail], axis=0))


def paired_t_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Whether the mean of first - second differs from 0, task by task; row i of both is the same seed."""
    a, b = _table(first), _table(second)
    if a.shape != b.shape:
        raise UserError(f"Paired runs must have the same shape, not {a.shape} and {b.shape}.")
    differences = a - b
    mean, std = differences.mean(axis=0), _std(differences)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0: nothing to test; x/0: every pair differs alike
        effect_size = mean / std
    p = 2 * special.stdtr(max(len(a) - 1, 1), -np.abs(effect_size) * math.sqrt(len(a)))
    return PairedTest(mean, effect_size, p)


def holm(p_values: ArrayLike) -> np.ndarray:  # same shape
    """Holm's correction of a family of p-values for many tests; NaN, a test not made, stays NaN and counts for none."""
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(p.shape, np.nan)
    made = np.flatnonzero(~np.isnan(p))
    order = made[np.argsort(p.flat[made], kind="stable")]
    scaled = p.flat[order] * np.arange(len(order), 0, -1)
    corrected.flat[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def _table(scores: ArrayLike) -> np.ndarray:  # (runs, tasks)
    values = np.asarray(scores, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise UserError(f"Scores must be finite numbers (runs, tasks), not an array of shape {values.shape}.")
    return values


def _std(values: np.ndarray) -> np.ndarray:  # (runs, tasks) -> (tasks,)
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
