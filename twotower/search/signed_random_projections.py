"""Signed random projections: candidates are hashed by the signs of random projections, and buckets probed in order."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels.hashing import probe, search_buckets
from twotower.search.base import CompiledIndex, Search, Tables
from twotower.search.projections import orthogonal_projections

MAX_BITS, MAX_RANGES = 20, 1024


@dataclass(eq=False)
class Hashing(CompiledIndex):
    """What all ways of hashing share: the lift, the projections, the buckets and the order of probing."""

    bits: int | None = None
    """m, the number of projections; None takes what suits N."""
    budget: int | None = None
    """How many candidates a query scores; None takes the method's default."""

    def __post_init__(self) -> None:
        if self.bits is not None and not 1 <= self.bits <= MAX_BITS:
            raise UserError(f"bits must be between 1 and {MAX_BITS}, not {self.bits}.")
        if self.budget is not None and self.budget < 1:
            raise UserError(f"budget must be at least 1, not {self.budget}.")

    search: ClassVar[Search] = staticmethod(search_buckets)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        count, size = latents.shape
        bits = self.bits or self._bits(count)
        projections = orthogonal_projections(bits, size + 1, seed)  # ω (m, d + 1)
        centred = latents.astype(np.float64) - self._centre(latents)
        part = self._parts(centred)
        squares = np.zeros(part.max() + 1)  # C² of each range
        np.maximum.at(squares, part, np.square(centred).sum(axis=1))
        projected = lift(centred, squares[part]) @ projections.T  # (N, m)
        offsets = self._offsets(projected)
        keys, bucket = np.unique((projected >= offsets) @ (1 << np.arange(bits)), return_inverse=True)
        room = min(2**bits, count)  # the same shape whatever the latents
        cell = part * room + bucket
        firsts = np.searchsorted(np.sort(cell), np.arange(len(squares) * room + 1))
        order = np.argsort(cell, kind="stable")
        return (
            np.ascontiguousarray(latents[order].T)[None],
            order[None],
            np.pad(keys, (0, room - len(keys)), constant_values=-1)[None],
            firsts[np.arange(len(squares))[:, None] * room + np.arange(room + 1)][None],
            np.sqrt(squares).astype(np.float32)[None],
            # A query is lifted by a zero, so the last column never meets it.
            np.ascontiguousarray(projections[:, :size], np.float32)[None],
            offsets.astype(np.float32)[None],
            np.array([self._weighted]),
            np.array([self.budget or self._budget(count, bits)]),
        )

    def looked_at(self, latent: np.ndarray) -> np.ndarray:
        """The numbers of the candidates that a query (d,) scores."""
        runs = np.empty((len(self), 2), np.int64)
        count = probe(self._checked(latent[None])[0], 0, self.tables, runs)
        return np.concatenate([self.tables[1][0, begin:end] for begin, end in runs[:count]])

    def _parts(self, centred: np.ndarray) -> np.ndarray:
        """The range (N,) each candidate is hashed in: one for all, unless a method has more."""
        return np.zeros(len(centred), np.int64)

    _weighted = False

    @abstractmethod
    def _bits(self, count: int) -> int: ...

    @abstractmethod
    def _budget(self, count: int, bits: int) -> int: ...

    @abstractmethod
    def _centre(self, latents: np.ndarray) -> np.ndarray | float: ...

    @abstractmethod
    def _offsets(self, projected: np.ndarray) -> np.ndarray: ...


@final
class PaperSignedRandomProjections(Hashing):
    """As the paper has it: medians subtracted on both sides, buckets by Hamming distance, one bucket's worth scored."""

    name = "srp_paper"

    def _bits(self, count: int) -> int:
        return min(max(int(np.log2(count)) - 8, 1), MAX_BITS)  # buckets of 256

    def _budget(self, count: int, bits: int) -> int:
        return max(count // 2**bits, 1)

    def _centre(self, latents: np.ndarray) -> float:
        return 0.0

    def _offsets(self, projected: np.ndarray) -> np.ndarray:
        return np.median(projected, axis=0)


class CentredHashing(Hashing):
    """As measures best: latents centred (the winner stays the same), no offsets, more and smaller buckets.

    Buckets are probed by Σ ±(ω·q) over their bits: a bit whose projection is near zero says little.
    """

    _weighted = True

    def _budget(self, count: int, bits: int) -> int:
        return 256

    def _centre(self, latents: np.ndarray) -> np.ndarray:
        return latents.mean(axis=0, dtype=np.float64)

    def _offsets(self, projected: np.ndarray) -> np.ndarray:
        return np.zeros(projected.shape[1])


@final
class SignedRandomProjections(CentredHashing):
    """Hashes centred latents, and probes buckets by how firmly their bits agree with the query's."""

    name = "srp"

    def _bits(self, count: int) -> int:
        return min(max(int(np.log2(count)) - 4, 1), 12)


@final
@dataclass(eq=False)
class NormRangingProjections(CentredHashing):
    """As `SignedRandomProjections`, but candidates of each range of norms are lifted to a norm of their own.

    Where norms differ much, one lift makes short candidates alike: most of their length is in the added coordinate
    (Yan et al. 2018). A bucket promises the norm of its range times its agreement.
    """

    ranges: int = 64
    """How many ranges, with as many candidates each."""

    name = "srp_ranges"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.ranges <= MAX_RANGES:
            raise UserError(f"ranges must be between 1 and {MAX_RANGES}, not {self.ranges}.")

    def _bits(self, count: int) -> int:
        return min(max(int(np.log2(count)) - 6, 1), 8)

    def _parts(self, centred: np.ndarray) -> np.ndarray:
        count = len(centred)
        parts = np.empty(count, np.int64)
        parts[np.argsort(np.square(centred).sum(axis=1), kind="stable")] = (
            np.arange(count) * min(self.ranges, count) // count
        )
        return parts


def lift(latents: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Latents (N, d + 1) of norms C, given C² (N,): the added coordinate √(C² − ‖a‖²) meets a query's zero."""
    rest = squares - np.square(latents, dtype=np.float64).sum(axis=1)
    return np.column_stack([latents, np.sqrt(np.maximum(rest, 0.0))])
