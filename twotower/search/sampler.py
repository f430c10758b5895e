"""Indexes that can also draw a candidate from the softmax of the products, not only find the best."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from twotower.errors import UserError
from twotower.randomness import Domain, generator
from twotower.search.base import CompiledIndex, Tables

Draw = Callable[[np.ndarray, np.ndarray, np.ndarray, Tables, np.ndarray, np.ndarray], None]


class Sampler(CompiledIndex):
    """Draws candidate i with probability ∝ exp(q·x_i / temperature), exactly or nearly."""

    temperature: float
    draw: ClassVar[Draw]
    """draw(sets, queries, keys, tables, found, visited) writes a draw for each query by the randomness of its key."""

    scale_free = False

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise UserError(f"temperature must be a positive number, not {self.temperature}.")

    def sample(self, latent: np.ndarray, count: int, seed: int) -> np.ndarray:
        """`count` independent draws of a candidate's number for one latent (d,)."""
        queries = np.repeat(self._checked(np.asarray(latent)[None]), count, axis=0)
        keys = generator(seed, Domain.SEARCH).integers(2**64, size=count, dtype=np.uint64)
        found = np.empty(count, np.int64)
        self.visited: np.ndarray = np.empty(count, np.int64)
        type(self).draw(np.zeros(count, np.int64), queries, keys, self.tables, found, self.visited)
        return found

    @abstractmethod
    def softmax(self, latent: np.ndarray) -> np.ndarray:
        """The exact distribution (N,) for one latent (d,)."""
