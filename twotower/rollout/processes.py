"""Worker processes of this machine, each with a socket to the coordinator."""

import contextlib
import mmap
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, final

import numpy as np

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.rollout.base import Setup
from twotower.rollout.elastic import Died, Elastic

GRACE = 2.0  # seconds for workers to end by themselves


@final
class Processes(Elastic):
    """One process a share; one message goes out to it and one comes back in a call.

    They are started afresh instead of forked: no lock or thread of this process can leak into them, and a
    script that trains needs no `if __name__ == "__main__"`.
    """

    def __init__(
        self, config: TrainConfig, spec: EnvSpec, streams: tuple[int, ...], worker_class: type, workers: int
    ) -> None:
        super().__init__(config.worker_timeout)
        self._setup = Setup(worker_class, config, spec, streams)
        self._shares = min(workers, len(streams))
        self.workers = [self._start(share) for share in range(self._shares)]

    def close(self) -> None:
        for worker in self.workers:
            worker.connection.close()
        deadline = time.monotonic() + GRACE
        for worker in self.workers:
            worker.end(max(deadline - time.monotonic(), 0.0))

    def _start(self, share: int) -> "WorkerProcess":
        worker = WorkerProcess(self.timeout)
        worker.send(ForkingPickler.dumps((self._setup, share, self._shares)))
        return worker

    def _recruit(self) -> int:
        return self._shares

    def _pack(self, pickled: bytes) -> Any:
        return pickled

    def _post(self, share: int, message: Any) -> None:
        self.workers[share].send(message)

    def _collect(self, waiting: list[int], seconds: float) -> Iterator[tuple[int, bytes | Died]]:
        share_of = {self.workers[share].connection: share for share in waiting}
        for connection in wait(list(share_of), seconds):
            share = share_of[connection]  # pyright: ignore[reportArgumentType]
            yield share, self.workers[share].receive()

    def _pulses(self, waiting: list[int]) -> dict[int, int]:
        return {share: int(self.workers[share].pulse[0]) for share in waiting}

    def _replace(self, share: int) -> None:
        self.workers[share].connection.close()
        self.workers[share].end(0.0)
        self.workers[share] = self._start(share)


class WorkerProcess:
    """One process, the connection to it, and the memory in which it counts its steps."""

    def __init__(self, timeout: float) -> None:
        ours, theirs = socket.socketpair()
        # A stopped process neither reads the rest of a message nor writes it.
        limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        shared = os.memfd_create("twotower-pulse")
        os.ftruncate(shared, 8)
        self.pulse = np.frombuffer(mmap.mmap(shared, 8), np.int64)
        command = [sys.executable, "-m", "twotower.rollout.process", str(theirs.fileno()), str(shared)]
        # A process a core: its matrix products, in building an index, must not start threads of their own.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno(), shared], env=environment)
        theirs.close()
        os.close(shared)
        self.connection = Connection(ours.detach())

    def send(self, message: Any) -> None:
        """Send pickled bytes; a process that cannot take them all is ended, for its stream is torn."""
        try:
            self.connection.send_bytes(message)
        except OSError:
            self.process.kill()

    def receive(self) -> bytes | Died:
        """The answer that is there, or the news that there will be none."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            code = self.end(GRACE)
            return Died(f"signal {-code}" if code < 0 else f"exit code {code}")

    def end(self, seconds: float) -> int:
        """Wait that long for the process to end, then kill it; its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        self.process.kill()
        return self.process.wait()
