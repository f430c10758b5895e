"""Where workers live: in this process, or one process each; the results are the same."""

import os
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from multiprocessing.connection import Connection
from typing import Any, final

import numpy as np

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
from twotower.rollout.plan import Job, slot_streams
from twotower.rollout.worker import Returns, Worker


class Executor(ABC):
    """Runs a job on all workers; used as a context manager."""

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


@final
class Serial(Executor):
    """One worker that owns all slots, in this process."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, streams: tuple[int, ...], worker_class: type) -> None:
        self.worker = worker_class(config, spec, tuple(range(len(streams))), streams)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(self.worker, method)(*arguments)]

    def close(self) -> None:
        self.worker.close()


@final
class Processes(Executor):
    """Worker processes that own every W-th slot; one message goes out and one comes back an iteration.

    They are started afresh instead of forked: no lock or thread of this process can leak into them, and a
    script that trains needs no `if __name__ == "__main__"`.
    """

    def __init__(
        self, config: TrainConfig, spec: EnvSpec, streams: tuple[int, ...], worker_class: type, workers: int
    ) -> None:
        self.connections: list[Connection] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        for index in range(min(workers, len(streams))):
            ours, theirs = socket.socketpair()
            command = [sys.executable, "-m", "twotower.rollout.process", str(theirs.fileno())]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self.processes.append(subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment))
            theirs.close()
            self.connections.append(Connection(ours.detach()))
            slots = tuple(range(index, len(streams), workers))
            self._send(index, (worker_class, config, spec, slots, streams[index::workers]))

    def call(self, method: str, *arguments: Any) -> list[Any]:
        for index in range(len(self.connections)):
            self._send(index, (method, arguments))
        answers = [self._receive(index) for index in range(len(self.connections))]
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        for process in self.processes:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _send(self, index: int, message: Any) -> None:
        try:
            self.connections[index].send(message)
        except OSError as error:
            raise self._died(index) from error

    def _receive(self, index: int) -> Any:
        try:
            return self.connections[index].recv()
        except (EOFError, OSError) as error:
            raise self._died(index) from error

    def _died(self, index: int) -> UserError:
        code = self.processes[index].wait()
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return UserError(f"Worker {index} died ({reason}). Nothing is lost: resume the run from its last checkpoint.")


def make_executor(
    config: TrainConfig, spec: EnvSpec, num_members: int, worker_class: type[Worker] = Worker
) -> Executor:
    """The workers a configuration asks for, ready for populations of up to `num_members`."""
    streams = slot_streams(num_members, config.env.slots, config.strategy.common_random_numbers)
    if config.executor == "serial":
        return Serial(config, spec, streams, worker_class)
    workers = config.workers or len(os.sched_getaffinity(0))
    return Processes(config, spec, streams, worker_class, workers)
