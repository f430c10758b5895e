"""Where workers live: in this process, in one each, or on a Ray cluster; the results are the same."""

import importlib.util
import os
from typing import Any, final

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
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


def check_executor(config: TrainConfig) -> None:
    """Refuse an executor that cannot work here."""
    if config.executor == "ray" and importlib.util.find_spec("ray") is None:
        raise UserError('--executor ray needs the package ray; run: pip install "twotower[ray]"')


def make_executor(
    config: TrainConfig, spec: EnvSpec, num_members: int, worker_class: type[Worker] = Worker
) -> Executor:
    """The workers a configuration asks for, ready for populations of up to `num_members`."""
    streams = slot_streams(num_members, config.env.slots, config.strategy.common_random_numbers)
    if config.executor == "serial":
        return Serial(config, spec, streams, worker_class)
    if config.executor == "ray":
        check_executor(config)
        from twotower.rollout.ray_session import prepare

        prepare(config.ray.address)
        from twotower.rollout.ray_executor import Ray

        return Ray(config, spec, streams, worker_class)
    workers = config.workers or len(os.sched_getaffinity(0))
    return Processes(config, spec, streams, worker_class, workers)
