"""The Ray that a run uses: the program's own, a cluster that is there, or a local one that ends with the run."""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from twotower.errors import UserError

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# The first is Ray's own switch for machines that others must not reach; despite its name it works on Linux. The
# second gives workers this process's priority instead of nearly the lowest.
LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}
LOOPBACK = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
PROBE_SECONDS = 5.0


def prepare(address: str | None) -> None:
    """Set what Ray reads from the environment when it is imported."""
    for variable, value in (QUIET if address else QUIET | LOCAL).items():
        os.environ.setdefault(variable, value)


class Session:
    """A connection to Ray, to be closed."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        """Connect to the cluster at `address`, or start Ray here with a core a worker."""
        self.name = f"the Ray cluster at {address}" if address else "the local Ray"
        import ray

        self._ours = not ray.is_initialized()
        if not self._ours:
            return
        if address and address != "auto":
            _probe(address)
        cores = None if address else workers or len(os.sched_getaffinity(0))
        with _own_signals(), _in_words(self.name):
            own: dict[str, Any] = {} if address else LOOPBACK
            ray.init(address or "local", num_cpus=cores, log_to_driver=False, logging_level=logging.ERROR, **own)

    def close(self) -> None:
        """End the local Ray, or leave the cluster; the program's own is left as it is."""
        import ray

        if self._ours:
            ray.shutdown()


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this program's handler of SIGTERM, which Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Say in one sentence why Ray could not be reached."""
    try:
        yield
    except Exception as error:  # Ray raises all kinds, the bare class among them
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(
            f"Cannot use {name} ({lines[0].strip().rstrip('.')}): this machine must be one of its nodes, and a cluster "
            "with a token needs RAY_AUTH_MODE=token and the token in RAY_AUTH_TOKEN; see docs/cluster.md."
        ) from error


def _probe(address: str) -> None:
    """Refuse an address where nobody listens; Ray itself would try for minutes."""
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS).close()
    except OSError as error:
        raise UserError(
            f"Nothing answers at {address} ({error.strerror or error}): start the cluster's head there with "
            f"ray start --head --port={port}"
        ) from error
