"""What a log is: somewhere else that a run's metrics go."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

from twotower.config import TrainConfig
from twotower.runs import Evaluation, RunFolder


class Log(ABC):
    """One dashboard's view of one run; opening it forgets what a killed process logged after its last checkpoint."""

    package: ClassVar[str]
    install: ClassVar[str]

    @abstractmethod
    def __init__(self, config: TrainConfig, folder: RunFolder) -> None: ...

    def record(self, row: Mapping[str, Any]) -> None:
        """Send one iteration."""
        self._send(scalars(row), row["iteration"])

    def evaluated(self, evaluation: Evaluation, iteration: int) -> None:
        """Send the final evaluation."""
        self._send({"evaluation/mean": evaluation.mean, "evaluation/std": evaluation.std}, iteration)

    @abstractmethod
    def _send(self, values: Mapping[str, float], iteration: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what is not written yet."""


@final
class Logs:
    """All logs of a run."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = logs

    def record(self, row: Mapping[str, Any]) -> None:
        for log in self.logs:
            log.record(row)

    def evaluated(self, evaluation: Evaluation, iteration: int) -> None:
        for log in self.logs:
            log.evaluated(evaluation, iteration)


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """A row's finite numbers, the population's and the phases' under headings of their own."""
    values = {name: value for name, value in row.items() if name != "iteration" and isinstance(value, int | float)}
    return {
        name.replace("_", "/", 1) if name.startswith(("population_", "seconds_")) else name: float(value)
        for name, value in values.items()
        if math.isfinite(value)
    }
