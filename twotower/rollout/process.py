"""The program of a worker process: answer the coordinator's calls until it hangs up."""

import ctypes
import signal
import sys
from multiprocessing.connection import Connection

from twotower.errors import UserError

PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


def main() -> None:
    """Make the worker that the first message describes, then call its methods as told."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a group's signals are the coordinator's to handle
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    connection = Connection(int(sys.argv[1]))
    try:
        worker_class, *setup = connection.recv()
        worker = None
        while True:
            method, arguments = connection.recv()
            try:
                worker = worker or worker_class(*setup)
                answer = getattr(worker, method)(*arguments)
            except UserError as error:
                answer = error
            connection.send(answer)
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
