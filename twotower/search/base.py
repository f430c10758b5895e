"""Search: from a state's latent to the index of the candidate with the largest inner product."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from twotower.errors import UserError


class Index(ABC):
    """Maximum-inner-product search over candidate latents (N, d); the constructor stores, `build` works."""

    latents: np.ndarray  # (N, d) float32

    def build(self, latents: np.ndarray, seed: int = 0) -> Self:
        """Index the candidates' latents (N, d)."""
        latents = np.asarray(latents, np.float32)
        if latents.ndim != 2 or 0 in latents.shape:
            raise UserError(f"latents must be a matrix (N, d) with at least one row, not of shape {latents.shape}.")
        if not np.isfinite(latents).all():
            raise UserError("latents must be finite: some are NaN or infinite.")
        self.latents = np.ascontiguousarray(latents)
        self._build(seed)
        return self

    def query(self, latent: np.ndarray) -> int:
        """The index of the best candidate for one latent (d,); ties go to the first."""
        latent = np.asarray(latent, np.float32)
        if latent.shape != (self.latents.shape[1],):
            raise UserError(f"the query must have shape ({self.latents.shape[1]},), not {latent.shape}.")
        return self._query(latent)

    def query_batch(self, latents: np.ndarray) -> np.ndarray:
        """The best candidate's index for each of the latents (n, d)."""
        return np.array([self.query(latent) for latent in latents], np.int64)

    def __len__(self) -> int:
        return len(self.latents)

    @abstractmethod
    def _build(self, seed: int) -> None:
        """Prepare whatever `_query` needs."""

    @abstractmethod
    def _query(self, latent: np.ndarray) -> int:
        """The index of the best candidate found."""
