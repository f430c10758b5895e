"""Sending a run's metrics to other people's dashboards."""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from twotower.config import TrainConfig
from twotower.errors import UserError
from twotower.logs.base import Log, Logs
from twotower.logs.tensorboard import TensorBoard
from twotower.logs.weights_and_biases import WeightsAndBiases
from twotower.runs import RunFolder

LOGS: dict[str, type[Log]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}


def check_logs(config: TrainConfig) -> None:
    """Refuse logs whose package is missing."""
    for name in config.log:
        if importlib.util.find_spec(LOGS[name].package) is None:
            raise UserError(f"--log {name} needs the package {LOGS[name].package}; run: {LOGS[name].install}")


@contextmanager
def open_logs(config: TrainConfig, folder: RunFolder, rows: Sequence[Mapping[str, Any]]) -> Iterator[Logs]:
    """The logs a run asks for, holding exactly `rows`, those of its checkpoint, whatever they held before."""
    with ExitStack() as stack:
        logs = []
        for name in dict.fromkeys(config.log):
            log = LOGS[name](config, folder)
            stack.callback(log.close)
            for row in rows:
                log.record(row)
            logs.append(log)
        yield Logs(logs)
