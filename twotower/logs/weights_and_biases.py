"""Weights & Biases: online, or offline into the run's folder with WANDB_MODE=offline."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import final

from twotower.config import TrainConfig, to_dict
from twotower.errors import UserError
from twotower.files.atomic import write_atomically
from twotower.logs.base import Log
from twotower.runs import RunFolder


@final
class WeightsAndBiases(Log):
    """One run there for one run here, however often it is resumed; its id is kept in the folder."""

    package = "wandb"
    install = "pip install wandb"

    def __init__(self, config: TrainConfig, folder: RunFolder) -> None:
        import wandb
        from wandb.errors import Error, UsageError

        directory = folder.path / "wandb"
        directory.mkdir(exist_ok=True)
        number = _number(directory)
        # What was not synced is logged again from the metrics, up to the checkpoint.
        for stale in directory.glob(f"offline-run-*-{number}"):
            if not any(stale.glob("*.synced")):
                shutil.rmtree(stale, ignore_errors=True)
        settings = wandb.Settings(console="off", silent=True)
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "twotower"), name=folder.path.name, id=number, resume="allow",
                group=config.task, config=to_dict(config), dir=str(folder.path), settings=settings,
            )  # fmt: skip
        except (UsageError, Error) as error:
            words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UserError(
                f"Weights & Biases refused ({words}): run wandb login, or set WANDB_MODE=offline."
            ) from error
        self._next = self._run.step

    def _send(self, values: Mapping[str, float], iteration: int) -> None:
        if iteration >= self._next:  # the others are there already
            self._run.log(dict(values), step=iteration)

    def close(self) -> None:
        self._run.finish()


def _number(directory: Path) -> str:
    """The run's id at Weights & Biases, made when it is first logged."""
    path = directory / "id"
    if not path.exists():
        write_atomically(path, os.urandom(6).hex().encode())
    return path.read_text().strip()
