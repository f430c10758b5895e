"""Exact draws from the softmax over all candidates that score few of them, and exact search."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from twotower.kernels import lazy_gumbel
from twotower.search.base import Search, Tables, tame
from twotower.search.box_tree import BoxTree
from twotower.search.sampler import Draw, Sampler


@final
@dataclass(eq=False)
class LazyGumbel(Sampler):
    """`sample` draws candidate i with probability exp(q·x_i / temperature) / Σ; a query finds the best.

    Gumbel noise makes the softmax an argmax (Mussmann, Levy and Ermon 2017). Most candidates cannot win whatever
    their noise, so it is drawn only where a tree of boxes says that it might.
    """

    temperature: float = 1.0
    """Divides the inner products: small is greedy."""

    name = "lazy_gumbel"
    exact = True

    search: ClassVar[Search] = staticmethod(lazy_gumbel.search_lazy_gumbel)
    draw: ClassVar[Draw] = staticmethod(lazy_gumbel.draw_lazy_gumbel)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        safe, scale = self._scaled(latents)
        return *BoxTree().tables_of(safe, seed), np.array([scale])

    def _renewed(self, latents: np.ndarray, seed: int, old: Tables) -> Tables:
        safe, old[-1][0] = self._scaled(latents)
        BoxTree().tables_of(safe, seed, old[:-1])
        return old

    def _scaled(self, latents: np.ndarray) -> tuple[np.ndarray, float]:
        """The latents within (-1, 1), and what their products with a query are to be multiplied by."""
        return tame(latents), float(np.ldexp(1.0, np.frexp(np.abs(latents).max())[1]) / self.temperature)

    def softmax(self, latent: np.ndarray) -> np.ndarray:
        """The distribution (N,) that `sample` draws from, for one latent (d,)."""
        products = self.latents.astype(np.float64) @ np.asarray(latent, np.float32) / self.temperature
        weights = np.exp(products - products.max())
        return weights / weights.sum()
