"""Observation normalisation: running statistics of what the rollouts saw, and the map they stand for."""

from typing import NamedTuple

import numpy as np

FLOOR = 1e-8


class Normaliser(NamedTuple):
    """Shifts and scales observations, dimension by dimension."""

    mean: np.ndarray  # (s,) float64
    scale: np.ndarray  # (s,) float64

    def __call__(self, observations: np.ndarray) -> np.ndarray:  # (…, s) -> (…, s)
        """Normalised observations."""
        return (observations - self.mean) * self.scale


class Moments(NamedTuple):
    """How many observations were seen, their mean and their squared deviations from it."""

    seen: int
    mean: np.ndarray  # (s,) float64
    squares: np.ndarray  # (s,) float64: Σ (o - mean)²

    @classmethod
    def none(cls, size: int) -> "Moments":
        """Nothing seen yet."""
        return cls(0, np.zeros(size), np.zeros(size))

    def with_sums(self, count: int, deviations: np.ndarray, squares: np.ndarray) -> "Moments":
        """With `count` more observations, given Σ (o - mean) and Σ (o - mean)² about the mean so far, (s,) each."""
        total = self.seen + count
        if total == 0:
            return self
        shift = deviations / total
        return Moments(total, self.mean + shift, np.maximum(self.squares + squares - shift * deviations, 0.0))

    def with_observations(self, observations: np.ndarray) -> "Moments":
        """With more observations, (n, s)."""
        away = np.asarray(observations, np.float64) - self.mean
        return self.with_sums(len(away), away.sum(axis=0), np.square(away).sum(axis=0))

    def normaliser(self) -> Normaliser:
        """To mean 0 and deviation 1; before anything was seen, observations pass as they are."""
        if self.seen < 2:
            return Normaliser(np.zeros_like(self.mean), np.ones_like(self.mean))
        return Normaliser(self.mean, 1.0 / np.sqrt(self.squares / self.seen + FLOOR))
