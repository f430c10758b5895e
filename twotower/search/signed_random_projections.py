"""Signed random projections: candidates are hashed by the signs of random projections, and buckets probed in order."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels.hashing import search_buckets
from twotower.search.base import CompiledIndex, Search, Tables
from twotower.search.projections import orthogonal_projections

MAX_BITS = 20


@dataclass(eq=False)
class Hashing(CompiledIndex):
    """What both ways of hashing share: the lift, the projections, the buckets and the order of probing."""

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
        projected = lift(latents.astype(np.float64) - self._centre(latents)) @ projections.T  # (N, m)
        offsets = self._offsets(projected)
        hashes = (projected >= offsets) @ (1 << np.arange(bits))
        order = np.argsort(hashes, kind="stable")
        keys, firsts = np.unique(hashes[order], return_index=True)
        room = min(2**bits, count) - len(keys)  # the same shape whatever the latents
        return (
            np.ascontiguousarray(latents[order].T)[None],
            order[None],
            np.pad(keys, (0, room), constant_values=-1)[None],
            np.pad(firsts, (0, room + 1), constant_values=count)[None],
            # A query is lifted by a zero, so the last column never meets it.
            np.ascontiguousarray(projections[:, :size], np.float32)[None],
            offsets.astype(np.float32)[None],
            np.array([self._weighted]),
            np.array([self.budget or self._budget(count, bits)]),
        )

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


@final
class SignedRandomProjections(Hashing):
    """As measures best: latents centred (the winner stays the same), no offsets, more and smaller buckets.

    Buckets are probed by Σ ±(ω·q) over their bits: a bit whose projection is near zero says little.
    """

    name = "srp"
    _weighted = True

    def _bits(self, count: int) -> int:
        return min(max(int(np.log2(count)) - 4, 1), 12)

    def _budget(self, count: int, bits: int) -> int:
        return 256

    def _centre(self, latents: np.ndarray) -> np.ndarray:
        return latents.mean(axis=0, dtype=np.float64)

    def _offsets(self, projected: np.ndarray) -> np.ndarray:
        return np.zeros(projected.shape[1])


def lift(latents: np.ndarray) -> np.ndarray:
    """Latents (N, d + 1) of equal norm C: the added coordinate √(C² − ‖a‖²) meets a query's zero."""
    squares = np.square(latents, dtype=np.float64).sum(axis=1)
    return np.column_stack([latents, np.sqrt(np.maximum(squares.max() - squares, 0.0))])
