"""The forward-difference estimator: one sign of every direction, against θ itself."""

import numpy as np

from twotower.es.base import Strategy


class ForwardDifference(Strategy):
    """Members θ, θ + σε₁, θ + σε₂, …: half the episodes of the antithetic estimator, more variance."""

    def _layout(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(-1, count), np.r_[0.0, np.ones(count)]

    def _weights(self, returns: np.ndarray, sigma: float) -> np.ndarray:
        # eq:orthogonal_at_fd_gradient_detailed: 1/(σM) Σ (F(θ + σεᵢ) - F(θ)) εᵢ
        center, plus = returns[0], returns[1:]  # (), (M,)
        return (plus - center) / (sigma * len(plus))
