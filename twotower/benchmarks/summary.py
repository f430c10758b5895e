"""Repeated measurements, their middle and how far they scatter."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Repetition(NamedTuple):
    """Training, its replay and the ceiling, measured in turn."""

    steps: int
    iterations: list[dict[str, float]]  # seconds of each phase
    replays: list[float]  # seconds of each iteration's replay
    ceiling: float  # steps a second

    @property
    def train(self) -> float:
        """Steps a second of whole training iterations."""
        return self.steps / sum(seconds["iteration"] for seconds in self.iterations)

    @property
    def limit(self) -> float:
        """Steps a second of the same calls without a policy."""
        return self.steps / sum(self.replays)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    names = ("minimum", "lower_quartile", "median", "upper_quartile", "maximum")
    return dict(zip(names, np.percentile(values, (0, 25, 50, 75, 100)).tolist(), strict=True))


def summary(repetitions: list[Repetition]) -> dict[str, Any]:
    """Medians and spreads; ratios are taken within a repetition, where the machine was in one mood."""
    measured = {
        "limit_steps_per_s": [r.limit for r in repetitions],
        "train_steps_per_s": [r.train for r in repetitions],
        "ratio": [r.train / r.limit for r in repetitions],
        "ceiling_steps_per_s": [r.ceiling for r in repetitions],
        "ratio_to_ceiling": [r.train / r.ceiling for r in repetitions],
    }
    spreads = {name: spread(values) for name, values in measured.items()}
    iterations = [seconds for r in repetitions for seconds in r.iterations]
    phases = {phase: float(np.median([seconds[phase] for seconds in iterations])) for phase in iterations[0]}
    replay = float(np.median([seconds for r in repetitions for seconds in r.replays]))
    return {name: spreads[name]["median"] for name in measured} | {
        "spread": spreads,
        "repetitions": len(repetitions),
        "iterations_measured": len(iterations),
        "steps_measured": sum(r.steps for r in repetitions),
        "phase_seconds": phases | {"replay": replay},
    }
