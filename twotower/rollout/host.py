"""Where a worker lives, in a process or an actor: it makes the worker and answers pickled calls."""

import pickle
from typing import Any

import numpy as np

from twotower.errors import UserError
from twotower.rollout.base import Setup, timed


class Host:
    """Makes the worker of whichever share it is asked about, and calls its methods."""

    def __init__(self, setup: Setup, pulse: np.ndarray) -> None:
        """The worker is to count its steps in `pulse`, (1,) int64."""
        self.setup = setup
        self.pulse = pulse
        self._share: tuple[int, int] | None = None
        self._worker: Any = None

    def answer(self, share: int, shares: int, message: bytes) -> bytes:
        """The seconds a call took and its answer, or the error to raise in the coordinator."""
        method, arguments = pickle.loads(message)
        try:
            if self._share != (share, shares):
                self._own(share, shares)
            answer = timed(self._worker, method, arguments)
        except UserError as error:
            answer = 0.0, error
        return pickle.dumps(answer)

    def _own(self, share: int, shares: int) -> None:
        if self._worker is not None:  # the number of workers has changed
            self._worker.close()
            self._share = self._worker = None
        self._worker = self.setup.worker(share, shares)
        self._worker.pulse = self.pulse
        self._share = share, shares
