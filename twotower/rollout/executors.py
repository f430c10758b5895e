"""Where workers live: in this process, or one process each; the results are the same."""

import os
from typing import Any, final

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.rollout.base import Account, Executor, Setup, timed
from twotower.rollout.plan import slot_streams
from twotower.rollout.processes import Processes
from twotower.rollout.worker import Worker


@final
class Serial(Executor):
    """One worker that owns all slots, in this process."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, streams: tuple[int, ...], worker_class: type) -> None:
        self.worker = Setup(worker_class, config, spec, streams).worker(0, 1)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        seconds, answer = timed(self.worker, method, arguments)
        self.account = Account(0.0, (seconds,), 0)
        return [answer]

    def close(self) -> None:
        self.worker.close()


def make_executor(
    config: TrainConfig, spec: EnvSpec, num_members: int, worker_class: type[Worker] = Worker
) -> Executor:
    """The workers a configuration asks for, ready for populations of up to `num_members`."""
    streams = slot_streams(num_members, config.env.slots, config.strategy.common_random_numbers)
    if config.executor == "serial":
        return Serial(config, spec, streams, worker_class)
    workers = config.workers or len(os.sched_getaffinity(0))
    return Processes(config, spec, streams, worker_class, workers)
