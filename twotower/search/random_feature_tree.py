"""Random feature tree: samples from a softmax that positive random features estimate, in O(log N)."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from twotower.errors import UserError
from twotower.kernels import random_features
from twotower.search.base import Search, Tables
from twotower.search.projections import orthogonal_projections
from twotower.search.sampler import Draw, Sampler


@final
@dataclass(eq=False)
class RandomFeatureTree(Sampler):
    """Samples candidate i with probability ≈ exp(q·x_i / temperature) / Σ; `total_variation` says how nearly.

    A query's answer is the best of `samples` quantiles of that distribution, or with samples=0 the best of the leaf
    reached by always taking the heavier branch.
    """

    features: int = 256
    """r, the number of random features; multiplies memory and time."""
    leaf: int = 64
    """Candidates in a leaf, among which the softmax is exact."""
    temperature: float = 1.0
    """Divides the inner products: small is greedy, and hard to estimate."""
    normalise: bool = False
    """Use cosines in place of inner products."""
    kind: Literal["optimal", "favor"] = "optimal"
    """Positive features: FAVOR+, or those of the least variance for latents of this size (OPRF)."""
    samples: int = 16
    """How many quantiles a query takes the best of."""

    name = "rft"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("features", "leaf"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.samples < 0:
            raise UserError(f"samples must be 0 or more, not {self.samples}.")
        if self.kind not in ("optimal", "favor"):
            raise UserError(f"kind must be optimal or favor, not {self.kind!r}.")

    search: ClassVar[Search] = staticmethod(random_features.search_random_features)
    draw: ClassVar[Draw] = staticmethod(random_features.draw_random_features)

    def _tables(self, latents: np.ndarray, seed: int) -> Tables:
        count, size = latents.shape
        scale = self.temperature**-0.5  # of the latents and of the queries alike
        keys = latents.astype(np.float64)
        if self.normalise:
            norms = np.linalg.norm(keys, axis=1, keepdims=True)
            keys /= np.where(norms > 0, norms, 1.0)
        keys -= keys.mean(axis=0)  # which leaves the softmax as it is, and its estimate better
        keys *= scale
        gaussian = orthogonal_projections(self.features, size, seed)  # ω (r, d)
        shrink = self._shrink(keys)  # A
        projections = np.sqrt(1 - 4 * shrink) * gaussian
        weights = shrink * np.square(gaussian).sum(axis=1)
        sums = np.empty((-(-count // self.leaf), self.features))
        random_features.running_sums(keys, projections, weights, self.leaf, sums)
        options = np.array([self.leaf, scale, self.normalise, self.samples], np.float64)
        return keys[None], sums[None], projections[None], weights[None], options[None]

    def _shrink(self, keys: np.ndarray) -> float:
        """A in ψ(x) = exp(A‖ω‖² + √(1 − 4A) ω·x − ‖x‖²/2): 0 is FAVOR+, the optimum minimises the variance.

        Queries are taken to be as long as the keys, so that ‖x + q‖² is 2‖x‖² on average. With u = 1 − 8A the
        variance is least where d u² − (d + 2φ) u − 2φ = 0.
        """
        size, spread = keys.shape[1], 2 * float(np.square(keys).sum(axis=1).mean())  # d, φ
        if self.kind == "favor":
            return 0.0
        half = size + 2 * spread
        return (1 - (half + np.sqrt(half * half + 8 * size * spread)) / (2 * size)) / 8

    def probabilities(self, latent: np.ndarray) -> np.ndarray:
        """The distribution (N,) that `sample` draws from, for one latent (d,)."""
        keys, sums, projections, weights, options = (table[0] for table in self.tables)
        query = np.empty(len(latent))
        random_features.scaled(np.asarray(latent, np.float32), options, query)
        features = np.empty(self.features)
        random_features.query_features(query, projections, weights, features)
        masses = np.maximum(np.diff(sums @ features, prepend=0.0), 0.0)
        masses = masses / masses.sum() if masses.sum() > 0 else np.full(len(sums), 1 / len(sums))
        starts = np.arange(0, len(keys), self.leaf)
        products = keys @ query
        largest = np.repeat(np.maximum.reduceat(products, starts), self.leaf)[: len(keys)]
        inside = np.exp(products - largest)
        totals = np.add.reduceat(inside, starts)
        return inside * np.repeat(masses / totals, self.leaf)[: len(keys)]

    def softmax(self, latent: np.ndarray) -> np.ndarray:
        """The exact distribution (N,) that is estimated, for one latent (d,)."""
        keys, options = self.tables[0][0], self.tables[-1][0]
        query = np.empty(len(latent))
        random_features.scaled(np.asarray(latent, np.float32), options, query)
        products = keys @ query
        weights = np.exp(products - products.max())
        return weights / weights.sum()

    def total_variation(self, latents: np.ndarray) -> np.ndarray:
        """The distance in [0, 1] between what is sampled and the exact softmax, for each of the latents (n, d)."""
        return np.array([0.5 * np.abs(self.probabilities(q) - self.softmax(q)).sum() for q in latents])
