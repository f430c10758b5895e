"""A worker that records what training asks of its environments, and asks the same again without a policy."""

import contextlib
from collections.abc import Callable
from typing import final

import numpy as np

from twotower.config import TrainConfig
from twotower.envs.base import EnvBatch, EnvironmentFailure, EnvSpec, Transition
from twotower.errors import UserError
from twotower.rollout.plan import Job
from twotower.rollout.worker import Returns, Worker


@final
class Recorder(EnvBatch):
    """Listens in on a batch for an iteration; what it heard can be asked again."""

    def __init__(self, batch: EnvBatch) -> None:
        self.batch = batch
        self.calls: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []  # slots, actions, starting, seeds
        self.rewards: list[np.ndarray] = []  # each (n,)
        self.replayed: list[np.ndarray] = []  # each (n,)

    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        """Note where the iteration starts."""
        self._start = (iteration, episodes.copy())
        self.batch.begin(iteration, episodes)

    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Note the call and its rewards."""
        answer = self.batch.advance(slots, actions, starting, seeds)
        # Only the actions live in a buffer that the next step overwrites.
        self.calls.append((slots, actions.copy(), starting, seeds))
        self.rewards.append(answer.rewards)
        return answer

    @property
    def reseed_every(self) -> int:
        """As the batch."""
        return self.batch.reseed_every

    def close(self) -> None:
        """Nothing to do: the batch is the worker's."""

    def rewind(self) -> None:
        """Bring the batch back to where the iteration started."""
        self.batch.begin(*self._start)

    def replay(self) -> None:
        """Make the recorded calls again; keeping the rewards costs as little as it did while recording."""
        advance = self.batch.advance
        self.replayed = []
        # An episode that ends at another step than recorded cannot be stepped on; `check` then tells.
        with contextlib.suppress(AssertionError, EnvironmentFailure):
            self.replayed = [advance(*call).rewards for call in self.calls]

    def check(self) -> int:
        """The environment steps of the iteration, once the replay is found equal to the last bit."""
        expected, found = np.concatenate(self.rewards or [np.zeros(0)]), np.concatenate(self.replayed or [np.zeros(0)])
        if expected.tobytes() != found.tobytes():
            raise UserError(
                f"The replay of iteration {self._start[0]} does not repeat the training's rewards (it earned "
                f"{found.sum()}, not {expected.sum()}), so its time says nothing: choose an environment or --backend "
                "whose episodes repeat when they are seeded alike."
            )
        return sum(int(np.count_nonzero(~starting)) for _, _, starting, _ in self.calls)


class RecordingWorker(Worker):
    """Trains as any worker does; from `record` on it remembers iterations and can replay them."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, slots: tuple[int, ...], streams: tuple[int, ...]) -> None:
        super().__init__(config, spec, slots, streams)
        self.recorders: list[Recorder] | None = None

    def record(self) -> None:
        """Forget the iterations remembered so far, and remember those that follow."""
        self.recorders = []

    def evaluate(self, job: Job, wrap: Callable[[EnvBatch], EnvBatch] = lambda batch: batch) -> Returns:
        """As a worker does, with a recorder listening in where asked to."""
        recorders = self.recorders
        if recorders is None:
            return super().evaluate(job, wrap)

        def listen(batch: EnvBatch) -> EnvBatch:
            recorders.append(Recorder(wrap(batch)))
            return recorders[-1]

        return super().evaluate(job, listen)

    def rewind(self, number: int) -> None:
        """Bring the environments back to the start of a remembered iteration."""
        self._recorder(number).rewind()

    def replay(self, number: int) -> None:
        """Step the environments as that iteration did."""
        self._recorder(number).replay()

    def check(self, number: int) -> int:
        """The steps of a replayed iteration, or the news that the replay was another one."""
        return self._recorder(number).check()

    def _recorder(self, number: int) -> Recorder:
        assert self.recorders is not None, "record first"
        return self.recorders[number]
