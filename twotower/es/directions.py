"""The directions ε in which θ is perturbed: all kinds have E[ε εᵀ] = I."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController

from twotower.errors import UserError
from twotower.randomness import Domain, generator

CHUNK_ENTRIES = 2**18  # entries summed at a time: part of the result's bits
MAX_DENSE_ENTRIES = 2**28  # 2 GiB of float64

_blas = functools.cache(ThreadpoolController)


@dataclass(frozen=True, eq=False)
class Directions(ABC):
    """The rows ε₁ … ε_M of one iteration, each in R^dims, to be asked for in any order."""

    count: int
    dims: int

    def rows(self, start: int, stop: int) -> np.ndarray:  # (stop - start, dims)
        """Rows start … stop - 1; a row's bits do not depend on its neighbours in the request."""
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"rows {start}:{stop} of {self.count} directions")
        return self._rows(start, stop)

    def weighted_sum(self, weights: np.ndarray) -> np.ndarray:  # (count,) -> (dims,)
        """Σ wᵢ εᵢ, in one order whatever the number of BLAS threads, without holding all rows."""
        chunk = max(1, CHUNK_ENTRIES // self.dims)
        total = np.zeros(self.dims)
        for start in range(0, self.count, chunk):
            stop = min(start + chunk, self.count)
            # einsum sums in a loop of its own; `@` would leave the order to BLAS and its threads.
            total += np.einsum("i,ij->j", weights[start:stop], self.rows(start, stop))
        return total

    @abstractmethod
    def _rows(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class DenseDirections(Directions):
    """Directions held, and shipped, as numbers."""

    values: np.ndarray  # (count, dims)

    def _rows(self, start: int, stop: int) -> np.ndarray:
        return self.values[start:stop]


@dataclass(frozen=True, eq=False)
class StructuredDirections(Directions):
    """Rows of √n · HD₁HD₂HD₃ in R^n, n the next power of two, cut to dims; shipped as their seed.

    H is the orthonormal Walsh-Hadamard matrix and the D are random signs, so a block's n rows are
    orthogonal in R^n; further rows come from further, independent blocks.
    """

    seed: int
    iteration: int

    @property
    def padded(self) -> int:
        """n, the dimension in which rows are orthogonal."""
        return 1 << (self.dims - 1).bit_length()

    def _rows(self, start: int, stop: int) -> np.ndarray:
        n = self.padded
        values = np.empty((stop - start, self.dims))
        for block in range(start // n, -(-stop // n)):
            first, last = max(start, block * n), min(stop, (block + 1) * n)
            indices = np.arange(first - block * n, last - block * n)
            values[first - start : last - start] = self._block_rows(block, indices)[:, : self.dims]
        return values

    def _block_rows(self, block: int, indices: np.ndarray) -> np.ndarray:  # (rows,) -> (rows, n)
        n = self.padded
        stream = generator(self.seed, Domain.DIRECTIONS, self.iteration, block)
        signs = 1.0 - 2.0 * stream.integers(0, 2, size=(3, n))
        parity = np.bitwise_count(indices[:, None] & np.arange(n)) & 1
        rows = (1.0 - 2.0 * parity) * signs[0]
        # All values are integers below 2^53 until the division by a power of two: no rounding at all.
        return walsh_hadamard(walsh_hadamard(rows) * signs[1]) * signs[2] / n


def walsh_hadamard(rows: np.ndarray) -> np.ndarray:  # (rows, n) -> (rows, n), n a power of two
    """The Walsh-Hadamard transform of every row, unnormalised, by butterflies."""
    for _ in range(rows.shape[1].bit_length() - 1):
        even, odd = rows[:, 0::2], rows[:, 1::2]
        rows = np.concatenate((even + odd, even - odd), axis=1)
    return rows


def orthogonal(seed: int, iteration: int, count: int, dims: int) -> Directions:
    """Haar rows of χ length, orthogonal in blocks of `dims`: Gaussian marginals."""
    _check_dense(count, dims)
    stream = generator(seed, Domain.DIRECTIONS, iteration)
    blocks = [_haar_rows(stream, min(dims, count - start), dims) for start in range(0, count, dims)]
    lengths = np.sqrt(stream.chisquare(dims, size=(count, 1)))
    return DenseDirections(count, dims, np.concatenate(blocks) * lengths)


def independent(seed: int, iteration: int, count: int, dims: int) -> Directions:
    """Independent Gaussian rows."""
    _check_dense(count, dims)
    values = generator(seed, Domain.DIRECTIONS, iteration).standard_normal((count, dims))
    return DenseDirections(count, dims, values)


def structured(seed: int, iteration: int, count: int, dims: int) -> Directions:
    """Hadamard-Rademacher rows, regenerated from the seed wherever they are needed."""
    return StructuredDirections(count, dims, seed, iteration)


DIRECTIONS: dict[str, Callable[[int, int, int, int], Directions]] = {
    "orthogonal": orthogonal,
    "structured": structured,
    "independent": independent,
}


def _haar_rows(stream: np.random.Generator, rows: int, dims: int) -> np.ndarray:  # (rows, dims)
    # LAPACK's rounding depends on how many threads BLAS has, hence one.
    with _blas().limit(limits=1, user_api="blas"):
        q, r = np.linalg.qr(stream.standard_normal((dims, rows)))
    # LAPACK picks the signs of R's diagonal by convention; only with positive ones is Q Haar.
    return (q * np.where(np.diagonal(r) < 0, -1.0, 1.0)).T


def _check_dense(count: int, dims: int) -> None:
    if count * dims > MAX_DENSE_ENTRIES:
        raise UserError(
            f"{count} directions of {dims} parameters take {count * dims * 8 / 2**30:.1f} GiB:"
            " lower num_directions, or take directions 'structured', which are never stored."
        )
