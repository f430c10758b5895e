"""TensorBoard scalars in the run's folder, to be watched with `tensorboard --logdir runs`."""

import json
from collections.abc import Mapping
from typing import final

from twotower.config import TrainConfig, to_dict
from twotower.errors import UserError
from twotower.files.atomic import reason
from twotower.logs.base import Log
from twotower.runs import RunFolder


@final
class TensorBoard(Log):
    """Event files in the folder `tensorboard`; a resumed run writes them anew from its metrics."""

    package = "tensorboardX"
    install = 'pip install "twotower[log]"'

    def __init__(self, config: TrainConfig, folder: RunFolder) -> None:
        from tensorboardX import SummaryWriter

        path = folder.path / "tensorboard"
        try:
            for stale in path.glob("events.out.tfevents.*"):
                stale.unlink()
            # A TensorBoard that watched the old file drops what it has of these steps.
            self._writer = SummaryWriter(str(path), purge_step=0, flush_secs=10)
        except OSError as error:
            raise UserError(f"Cannot write {path}: {reason(error)}.") from error
        self._writer.add_text("config", f"```json\n{json.dumps(to_dict(config), indent=2)}\n```")

    def _send(self, values: Mapping[str, float], iteration: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)

    def close(self) -> None:
        self._writer.close()
