"""The antithetic estimator: both signs of every direction."""

import numpy as np

from twotower.es.base import Strategy


class Antithetic(Strategy):
    """Members θ + σε₁, θ - σε₁, θ + σε₂, θ - σε₂, …; even terms of F cancel within a pair."""

    def _layout(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(np.arange(count), 2), np.tile([1.0, -1.0], count)

    def _weights(self, returns: np.ndarray, sigma: float) -> np.ndarray:
        # eq:orthogonal_at_gradient: 1/(2σM) Σ (F(θ + σεᵢ) - F(θ - σεᵢ)) εᵢ
        plus, minus = returns[0::2], returns[1::2]  # (M,) each
        return (plus - minus) / (2 * sigma * len(plus))
