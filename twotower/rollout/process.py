"""The program of a worker process: answer the coordinator's calls until it hangs up."""

import ctypes
import mmap
import signal
import sys
from multiprocessing.connection import Connection

import numpy as np

from twotower.rollout.host import Host

PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


def main() -> None:
    """Make the worker that the first message describes, then call its methods as told."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a group's signals are the coordinator's to handle
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    connection = Connection(int(sys.argv[1]))
    pulse = np.frombuffer(mmap.mmap(int(sys.argv[2]), 8), np.int64)
    try:
        setup, share, shares = connection.recv()
        host = Host(setup, pulse)
        while True:
            connection.send_bytes(host.answer(share, shares, connection.recv_bytes()))
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
