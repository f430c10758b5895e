"""Everything a run needs to go on as if it had never stopped."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twotower.errors import UserError
from twotower.es import Moments
from twotower.files import sealed_file
from twotower.towers import is_finite


class Checkpoint(NamedTuple):
    """The state of a run between two iterations."""

    theta: np.ndarray  # (D,) float64
    iteration: int
    """Iterations done."""
    episodes: np.ndarray  # (slots,) int64: episodes each slot ran
    steps: int
    """Environment steps so far, all members."""
    best: float
    """Best return of θ_k so far; -inf before the first."""
    best_theta: np.ndarray  # (D,) float64
    seconds: float
    """Training time so far."""
    metrics_bytes: int
    """Length of metrics.jsonl at this moment."""
    memory: np.ndarray = np.zeros((0, 0))  # (rows, D) float64: the step rule's
    observations: int = 0
    """Observations that the normaliser has seen."""
    observation_mean: np.ndarray = np.zeros(0)  # (s,) float64
    observation_squares: np.ndarray = np.zeros(0)  # (s,) float64: Σ (o - mean)²

    queries: np.ndarray = np.zeros(
        (0, 0), np.float32
    )  # (n, features): what the last rollouts asked a search that learns

    @property
    def moments(self) -> Moments:
        """What the normaliser has seen."""
        return Moments(self.observations, self.observation_mean, self.observation_squares)

    def save(self, path: Path) -> None:
        """Write the checkpoint, atomically."""
        if not self._is_sound():
            raise UserError(
                f"The run's numbers are no longer finite, so {path} keeps the last good ones: "
                "lower --step-size or --sigma."
            )
        tensors = {name: np.asarray(value, _LAYOUT[name][0]) for name, value in self._asdict().items()}
        sealed_file.save(path, "checkpoint", tensors)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint, refusing anything but a whole one."""
        tensors = sealed_file.load(path, "checkpoint").tensors
        tensors.setdefault("queries", np.zeros((0, 0), np.float32))  # which older runs did not keep
        if {name: (array.dtype.type, array.ndim) for name, array in tensors.items()} != _LAYOUT:
            raise UserError(f"{path} does not hold the fields of a checkpoint: use another copy or train again.")
        values: dict[str, Any] = {name: array.copy() if array.ndim else array.item() for name, array in tensors.items()}
        checkpoint = cls(**values)
        if not checkpoint._is_sound():
            raise UserError(f"{path} holds values no run could have: use another copy or train again.")
        return checkpoint

    def _is_sound(self) -> bool:
        return bool(
            self.theta.shape == self.best_theta.shape
            and self.theta.size > 0
            and is_finite(self.theta)
            and is_finite(self.best_theta)
            and not np.isnan(self.best)
            and 0 <= self.seconds < np.inf
            and min(self.iteration, self.steps, self.metrics_bytes, self.episodes.min(initial=0)) >= 0
            and np.isfinite(self.memory).all()
            and self.observations >= 0
            and self.observation_mean.shape == self.observation_squares.shape
            and np.isfinite(self.observation_mean).all()
            and np.isfinite(self.observation_squares).all()
            and self.observation_squares.min(initial=0) >= 0
            and np.isfinite(self.queries).all()
        )


_LAYOUT = {
    "theta": (np.float64, 1),
    "iteration": (np.int64, 0),
    "episodes": (np.int64, 1),
    "steps": (np.int64, 0),
    "best": (np.float64, 0),
    "best_theta": (np.float64, 1),
    "seconds": (np.float64, 0),
    "metrics_bytes": (np.int64, 0),
    "memory": (np.float64, 2),
    "observations": (np.int64, 0),
    "observation_mean": (np.float64, 1),
    "observation_squares": (np.float64, 1),
    "queries": (np.float32, 2),
}
