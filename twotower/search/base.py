"""Search: from a state's latent to the number of the candidate with the largest inner product."""

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from twotower.errors import UserError
from twotower.files import sealed_file
from twotower.kernels.layout import BUCKET
from twotower.kernels.scan import magnitude

Tables = tuple[np.ndarray, ...]
Search = Callable[[np.ndarray, np.ndarray, Tables, np.ndarray, np.ndarray], None]
SAFE = 2.0**40  # numbers up to this size, and down to its inverse, have products far from overflow


class Index(ABC):
    """Maximum-inner-product search over candidate latents (N, d); the constructor stores, `build` works."""

    name: ClassVar[str]
    exact: bool = False
    """Whether a query always finds the first of the best."""
    scale_free: ClassVar[bool] = True
    """Whether multiplying all latents by a number leaves the answers as they are."""
    latents: np.ndarray  # (N, d) float32
    seed: int

    def build(self, latents: np.ndarray, seed: int = 0) -> Self:
        """Index the candidates' latents (N, d)."""
        latents = np.array(latents, np.float32, order="C")
        if latents.ndim != 2 or 0 in latents.shape:
            raise UserError(f"latents must be a matrix (N, d) with at least one row, not of shape {latents.shape}.")
        largest = magnitude(latents.ravel())
        if not math.isfinite(largest):
            raise UserError("latents must be finite: some are NaN or infinite.")
        self.latents, self.seed = latents, seed
        self._build(latents if self._is_safe(largest) else tame(latents), seed)
        return self

    def take(self, latents: np.ndarray, seed: int) -> None:
        """Index finite float32 latents (N, d) that nobody will change."""
        self.latents, self.seed = latents, seed
        self._build(latents if self._is_safe(magnitude(latents.ravel())) else tame(latents), seed)

    def query(self, latent: np.ndarray) -> int:
        """The number of the best candidate found for one latent (d,); of equals the first."""
        latent = np.asarray(latent, np.float32)
        if latent.shape != self.latents.shape[1:]:
            raise UserError(f"the query must have shape {self.latents.shape[1:]}, not {latent.shape}.")
        return int(self.query_batch(latent[None])[0])

    def query_batch(self, latents: np.ndarray) -> np.ndarray:
        """The best candidate's number for each of the latents (n, d), one after the other in a compiled loop."""
        latents = self._checked(latents)
        if not self._is_safe(magnitude(latents.ravel())):
            latents = np.stack([tame(latent) for latent in latents])
        return self._find(latents)

    def _checked(self, latents: np.ndarray) -> np.ndarray:
        """Queries (n, d) as kernels take them, refused in words where they make no sense."""
        latents = np.ascontiguousarray(latents, np.float32)
        if latents.ndim != 2 or latents.shape[1] != self.latents.shape[1]:
            raise UserError(f"queries must have shape (n, {self.latents.shape[1]}), not {latents.shape}.")
        if not math.isfinite(magnitude(latents.ravel())):
            raise UserError("queries must be finite: some are NaN or infinite.")
        return latents

    def regrets(self, latents: np.ndarray) -> np.ndarray:
        """(best − found) / (best − mean) of the products, for each of the latents (n, d); 0 where all are equal."""
        regrets = np.empty(len(latents))
        for n, found in enumerate(self.query_batch(latents)):
            products = self.latents @ np.asarray(latents[n], np.float64)
            spread = products.max() - products.mean()
            regrets[n] = (products.max() - products[found]) / spread if spread > 0 else 0.0
        return regrets

    def __len__(self) -> int:
        return len(self.latents)

    def save(self, path: str | Path) -> None:
        """Write what it takes to build this index again, in one file; `twotower.search.load` reads it."""
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # pyright: ignore
        arrays = {name: np.asarray(value, np.float64) for name, value in options.items() if np.ndim(value) > 0}
        plain = {name: value for name, value in options.items() if name not in arrays}
        facts = json.dumps({"method": self.name, "options": plain, "seed": self.seed})
        sealed_file.save(Path(path), "index", {"latents": self.latents} | arrays, facts)

    def _is_safe(self, largest: float) -> bool:
        """Whether products of latents up to such a magnitude can be taken as they are."""
        return not self.scale_free or largest == 0 or 1 / SAFE <= largest <= SAFE

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory of what queries read."""

    @abstractmethod
    def _build(self, latents: np.ndarray, seed: int) -> None:
        """Prepare for queries among latents (N, d), whose products cannot overflow."""

    @abstractmethod
    def _find(self, latents: np.ndarray) -> np.ndarray:
        """The winner's number (n,) for each of the queries (n, d)."""


class CompiledIndex(Index):
    """An index that is all in `tables`, arrays (sets, …) for a compiled loop.

    There is one set here; in training there is one for every member at work.
    """

    tables: Tables
    visited: np.ndarray = np.zeros(0, np.int64)
    """How many candidates each of the last queries scored, (n,)."""
    buckets: np.ndarray = np.zeros(0, np.int64)
    """How many hash buckets each of the last queries opened, (n,); 0 without hashing."""
    search: ClassVar[Search]
    """search(sets, queries, tables, found, visited) writes the winner of set sets[n] for each of the queries (n, d)."""

    def tables_of(self, latents: np.ndarray, seed: int, old: Tables = ()) -> Tables:
        """The tables for finite latents (N, d) that the caller keeps; written over `old` ones where that saves time."""
        latents = latents if self._is_safe(magnitude(latents.ravel())) else tame(latents)
        return self._renewed(latents, seed, old) if old else self._tables(latents, seed)

    def _renewed(self, latents: np.ndarray, seed: int, old: Tables) -> Tables:
        """Tables for other latents of the same shape; `old` ones may be written over."""
        return self._tables(latents, seed)

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables)

    def _build(self, latents: np.ndarray, seed: int) -> None:
        self.tables = self._tables(latents, seed)

    def _find(self, latents: np.ndarray) -> np.ndarray:
        found, visited = np.empty(len(latents), np.int64), np.empty(len(latents), np.int64)
        type(self).search(np.zeros(len(latents), np.int64), latents, self.tables, found, visited)
        self.visited, self.buckets = visited % BUCKET, visited // BUCKET
        return found

    @abstractmethod
    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        """All that `search` reads: the same shapes for any latents (N, d)."""


def tame(latents: np.ndarray) -> np.ndarray:
    """The latents times a power of two that brings the largest number below 1: nothing is rounded that matters."""
    return np.ldexp(latents, -np.frexp(np.abs(latents).max())[1])
