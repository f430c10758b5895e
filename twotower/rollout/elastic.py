"""Workers that may die: what one owed is done again by its successor, with the same bits."""

import pickle
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from twotower.errors import UserError
from twotower.rollout.base import Account, Executor

ATTEMPTS = 5  # workers a share may cost in one call
LOOKS = 4  # looks at a pulse that stands still before its worker counts as dead


class Died(NamedTuple):
    """In place of a worker's answer: why none will come."""

    reason: str


class Elastic(Executor):
    """Replaces workers that die or go silent; what a share answers does not depend on who works on it."""

    def __init__(self, timeout: float) -> None:
        """Give up on workers that make no step for `timeout` seconds."""
        self.timeout = timeout

    def call(self, method: str, *arguments: Any) -> list[Any]:
        started = time.perf_counter()
        shares = self._recruit()
        pickled = bytes(ForkingPickler.dumps((method, arguments)))
        message = self._pack(pickled)
        for share in range(shares):
            self._post(share, message)
        seconds_ship = time.perf_counter() - started
        answers: dict[int, bytes] = {}
        deaths: Counter[int] = Counter()
        watch = _Watch(self.timeout)
        while len(answers) < shares:
            waiting = [share for share in range(shares) if share not in answers]
            news = list(self._collect(waiting, watch.seconds_left()))
            if watch.is_due():
                silent = Died(f"no step in {self.timeout:g} seconds, the --worker-timeout")
                news += [(share, silent) for share in watch.look(self._pulses(waiting))]
            for share, answer in news:
                if isinstance(answer, Died):
                    deaths[share] += 1
                    _check(share, deaths[share], answer)
                    self._replace(share)
                    self._post(share, message)
                else:
                    answers[share] = answer
        seconds, values = zip(*(pickle.loads(answers[share]) for share in range(shares)), strict=True)
        self.account = Account(seconds_ship, seconds, deaths.total(), len(pickled), sum(map(len, answers.values())))
        for value in values:
            if isinstance(value, UserError):
                raise value
        return list(values)

    @abstractmethod
    def _recruit(self) -> int:
        """See to it that there are workers, and say how many share the work."""

    @abstractmethod
    def _pack(self, pickled: bytes) -> Any:
        """A pickled call as the message that every worker gets."""

    @abstractmethod
    def _post(self, share: int, message: Any) -> None:
        """Send a message to the worker of a share; if it is dead, `_collect` says so."""

    @abstractmethod
    def _collect(self, waiting: list[int], seconds: float) -> Iterable[tuple[int, bytes | Died]]:
        """What came within `seconds`: shares with what their worker's host answered, or its death."""

    @abstractmethod
    def _pulses(self, waiting: list[int]) -> dict[int, int]:
        """How many steps the workers of these shares have made."""

    @abstractmethod
    def _replace(self, share: int) -> None:
        """End the worker of a share, if it still lives, and start another."""


class _Watch:
    """Notices pulses that stand still; it counts its own looks, so sleep and clock jumps cost no worker its life."""

    def __init__(self, timeout: float) -> None:
        self._interval = timeout / LOOKS
        self._next = time.monotonic() + self._interval
        self._pulses: dict[int, int] = {}
        self._still: Counter[int] = Counter()

    def seconds_left(self) -> float:
        """The time until the next look."""
        return max(self._next - time.monotonic(), 0.0)

    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self.seconds_left() == 0.0

    def look(self, pulses: dict[int, int]) -> list[int]:
        """The shares whose pulse has stood still for LOOKS looks."""
        self._next = time.monotonic() + self._interval
        for share, pulse in pulses.items():
            self._still[share] = self._still[share] + 1 if self._pulses.get(share) == pulse else 0
            self._pulses[share] = pulse
        silent = [share for share in pulses if self._still[share] >= LOOKS]
        for share in silent:
            self._still[share] = 0
        return silent


def _check(share: int, deaths: int, died: Died) -> None:
    if deaths >= ATTEMPTS:
        raise UserError(
            f"Worker {share} died {deaths} times at the same work (the last time: {died.reason}), so training "
            "stopped at a checkpoint. If memory ran out, resume with fewer --workers."
        )
