"""The laws of the directions; error rates are for a fresh seed, the seeds here are fixed."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from threadpoolctl import threadpool_limits

from twotower.errors import UserError
from twotower.es import DIRECTIONS, directions


def all_rows(kind: str, iteration: int, count: int, dims: int, seed: int = 0) -> np.ndarray:
    return DIRECTIONS[kind](seed, iteration, count, dims).rows(0, count)


@pytest.mark.parametrize("kind", sorted(DIRECTIONS))
def test_mean_zero_and_covariance_identity(kind: str) -> None:
    draws, dims = 6000, 6
    for row in (0, 3):
        values = np.stack([all_rows(kind, t, 5, dims)[row] for t in range(draws)])
        # Entries of the mean have standard error 1/√n, of the second moments at most √2/√n;
        # 5 standard errors over 28 statistics a row: false alarm below 4e-5.
        assert np.abs(values.mean(axis=0)).max() < 5 / np.sqrt(draws)
        assert np.abs(values.T @ values / draws - np.eye(dims)).max() < 5 * np.sqrt(2 / draws)
        products = values[:, :4].prod(axis=1)  # no four coordinates conspire (they would without D₃)
        assert abs(products.mean()) < 5 * products.std() / np.sqrt(draws)


def test_orthogonal_rows_are_orthogonal_in_blocks_beyond_which_they_are_independent() -> None:
    rows = all_rows("orthogonal", 0, count=12, dims=5)
    for start, stop in ((0, 5), (5, 10), (10, 12)):
        unit = rows[start:stop] / np.linalg.norm(rows[start:stop], axis=1, keepdims=True)
        assert np.abs(unit @ unit.T - np.eye(stop - start)).max() < 1e-10
    assert np.linalg.matrix_rank(rows[[0, 5, 10]]) == 3


def test_orthogonal_rows_are_haar_and_their_lengths_chi() -> None:
    rows = np.stack([all_rows("orthogonal", t, 3, 5) for t in range(1500)])
    lengths = np.linalg.norm(rows, axis=2)
    assert scipy.stats.kstest(lengths.ravel(), scipy.stats.chi(5).cdf).pvalue > 1e-4
    # A direction uniform on the sphere in R^5 has (1 + u)/2 ~ Beta(2, 2) in every coordinate.
    for row in range(3):
        u = rows[:, row, row] / lengths[:, row]
        assert scipy.stats.kstest((1 + u) / 2, scipy.stats.beta(2, 2).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(lengths[:, 0], lengths[:, 1])[0, 1]) < 5 / np.sqrt(1500)


def test_orthogonal_bits_do_not_depend_on_blas_threads() -> None:
    bits = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            bits.append(all_rows("orthogonal", 0, 300, 300))  # a size at which OpenBLAS's QR does depend on them
    assert np.array_equal(*bits)


def test_walsh_hadamard_is_hadamards_matrix() -> None:
    for n in (1, 2, 8, 32):
        assert np.array_equal(directions.walsh_hadamard(np.eye(n)), scipy.linalg.hadamard(n))


def test_structured_rows_are_exactly_orthogonal_in_the_padded_space_and_cut_from_it() -> None:
    padded = all_rows("structured", 3, count=40, dims=16)
    for block in (padded[:16], padded[16:32]):
        assert np.array_equal(block @ block.T, 16 * np.eye(16))
    assert np.abs(padded[:16] @ padded[16:32].T).max() > 0  # blocks are drawn apart
    assert not np.array_equal(padded[:8], padded[16:24])
    assert np.array_equal(all_rows("structured", 3, count=40, dims=11), padded[:, :11])


def test_structured_half_block_ties_no_two_coordinates() -> None:
    # With a single HD product coordinates j and j + n/2 would be equal, up to sign, in all of these rows.
    rows = all_rows("structured", 0, count=32, dims=64)
    gram = rows.T @ rows / np.outer(np.linalg.norm(rows, axis=0), np.linalg.norm(rows, axis=0))
    assert np.abs(gram - np.eye(64)).max() < 0.9


def test_structured_needs_neither_memory_nor_its_neighbours() -> None:
    huge = DIRECTIONS["structured"](0, 0, 10**6, 2**15)
    assert len(pickle.dumps(huge)) < 300
    row = huge.rows(999_999, 10**6)
    assert row.shape == (1, 2**15)
    assert set(np.unique(np.abs(row) % 2.0**-15)) == {0.0}  # sums of signs over n: no rounding to depend on


@pytest.mark.parametrize("kind", sorted(DIRECTIONS))
def test_rows_beyond_the_last_do_not_exist(kind: str) -> None:
    chosen = DIRECTIONS[kind](0, 0, 3, 8)
    assert chosen.rows(3, 3).shape == (0, 8)
    for start, stop in ((2, 4), (-1, 1), (2, 1)):
        with pytest.raises(IndexError, match="of 3 directions"):
            chosen.rows(start, stop)


@pytest.mark.parametrize("kind", sorted(DIRECTIONS))
def test_weighted_sum_is_the_sum_over_every_chunk(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = DIRECTIONS[kind](1, 2, 23, 7)
    weights = np.linspace(-1, 2, 23)
    expected = weights @ chosen.rows(0, 23)
    for entries in (1, 30, 10**6):
        monkeypatch.setattr(directions, "CHUNK_ENTRIES", entries)
        np.testing.assert_allclose(chosen.weighted_sum(weights), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["orthogonal", "independent"])
def test_directions_that_would_fill_the_memory_are_refused(kind: str) -> None:
    with pytest.raises(UserError, match="74.5 GiB: lower num_directions, or take directions 'structured'"):
        DIRECTIONS[kind](0, 0, 100_000, 100_000)
