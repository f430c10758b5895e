"""Closed-form search over a whole box for one-matrix action towers."""

from typing import final

import numpy as np


@final
class Corner:
    """argmax over the box of l_Sᵀ W₂ a: the corner a* = sgn(W₂ᵀ l_S), or the middle where that is zero."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low: np.ndarray = np.asarray(low, np.float32)
        self.high: np.ndarray = np.asarray(high, np.float32)

    def build(self, weights: np.ndarray) -> "Corner":
        """Take the action tower's only matrix W₂ (d, a)."""
        self.weights: np.ndarray = np.asarray(weights, np.float32)
        return self

    def query(self, latent: np.ndarray) -> np.ndarray:
        """The best action (a,) for a state's latent (d,)."""
        side = 0.5 * (np.sign(self.weights.T @ np.asarray(latent, np.float32)) + 1)
        return self.low + side * (self.high - self.low)
