"""What every executor shares: workers made from one description, a call to all of them, and its account."""

import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.rollout.plan import Job
from twotower.rollout.worker import Returns


class Setup(NamedTuple):
    """All it takes to make any worker, anywhere."""

    worker_class: type
    config: TrainConfig
    spec: EnvSpec
    streams: tuple[int, ...]  # the environment stream of every slot of the run

    def worker(self, share: int, shares: int) -> Any:
        """The worker that owns every `shares`-th slot from `share` on."""
        slots = tuple(range(share, len(self.streams), shares))
        return self.worker_class(self.config, self.spec, slots, self.streams[share::shares])


class Account(NamedTuple):
    """Where the time of a call went."""

    seconds_ship: float
    """Until every worker had been sent its message."""
    seconds_workers: tuple[float, ...]
    """What each worker spent on its share."""
    replaced: int
    """Workers that died meanwhile, whose shares were done again."""
    bytes_out: int = 0
    """Length of the message that every worker was sent."""
    bytes_back: int = 0
    """Length of all their answers together."""


class Executor(ABC):
    """Runs a job on all workers; used as a context manager."""

    account = Account(0.0, (), 0)
    """Of the last call."""

    def evaluate(self, job: Job) -> Returns:
        """The returns of all members, in their order."""
        return merge(self.call("evaluate", job))

    @abstractmethod
    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker at once and gather the answers in the workers' order."""

    @abstractmethod
    def close(self) -> None:
        """Stop the workers."""

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def merge(parts: list[Returns]) -> Returns:
    """The workers' returns as one table, ordered by member."""
    members, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(members)
    return Returns(members[order], *(column[order] for column in columns))


def timed(worker: Any, method: str, arguments: tuple[Any, ...]) -> tuple[float, Any]:
    """Call a worker's method: the seconds it took, and its answer."""
    started = time.perf_counter()
    answer = getattr(worker, method)(*arguments)
    return time.perf_counter() - started, answer
