"""The machine's ceiling: a process a core steps 32 environments with random actions, and nothing else."""

import os
import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from twotower.config import TrainConfig
from twotower.envs import BoxActions, EnvSpec, SlotSeeds, make_batch
from twotower.envs.envpool_batch import EnvPoolBatch
from twotower.randomness import Domain, generator
from twotower.rollout.executors import Executor, Processes

SLOTS = 32
DRAWS = 251


@final
class CeilingWorker:
    """One process of the ceiling; it goes under the batches' lids, to step environments with the least around them."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, slots: tuple[int, ...], streams: tuple[int, ...]) -> None:
        batch: Any = make_batch(config.env, spec, SlotSeeds(config.seed, streams))
        random, actions = generator(config.seed, Domain.CANDIDATES, *streams), spec.actions
        if isinstance(actions, BoxActions):
            drawn = random.uniform(actions.low, actions.high, (DRAWS, len(slots), len(actions.low)))
        else:
            drawn = random.integers(actions.count, size=(DRAWS, len(slots)))
        self._slots = len(slots)
        self._restarting = 0
        # Steps all slots; answers how many of them start over, instead of stepping, in the next call.
        self._step: Callable[[Any], int]
        if isinstance(batch, EnvPoolBatch):
            batch.begin(0, np.zeros(self._slots, np.int64))
            self._step = _pool_stepper(batch._pool, self._slots)
            self._actions = list(drawn.astype(batch._action_type))
        else:
            self._step = _loop_stepper(batch.environments)
            self._actions = [batch._translate(row) for row in drawn]

    def run(self, seconds: float) -> tuple[int, float]:
        """Step for `seconds`: environment steps, without the resets that they took, and the exact time."""
        steps = calls = 0
        started = now = time.perf_counter()
        while now - started < seconds:
            steps += self._slots - self._restarting
            self._restarting = self._step(self._actions[calls % DRAWS])
            calls += 1
            now = time.perf_counter()
        return steps, now - started


def _pool_stepper(pool: Any, slots: int) -> Callable[[Any], int]:
    """The pool's raw pair: step() does the same and then checks and names every array."""
    ids = np.arange(slots, dtype=np.int32)
    done = list(pool._state_keys).index("done")
    pool._reset(ids)
    pool._recv()

    def step(actions: np.ndarray) -> int:
        pool._send([ids, ids, actions])
        return int(np.count_nonzero(pool._recv()[done]))

    return step


def _loop_stepper(environments: list[Any]) -> Callable[[Any], int]:
    """A plain loop over Python environments; each starts over at once, so no call is spent on it."""
    for environment in environments:
        environment.reset()

    def step(actions: np.ndarray) -> int:
        for environment, action in zip(environments, actions, strict=True):
            answer = environment.step(action)  # Gymnasium's five, or dm_control's TimeStep
            if (answer[2] or answer[3]) if type(answer) is tuple else answer.last():
                environment.reset()
        return 0

    return step


def make_ceiling(config: TrainConfig, spec: EnvSpec) -> Executor:
    """The ceiling's processes, whatever executor and workers the training has."""
    cores = len(os.sched_getaffinity(0))
    ceiling = Processes(config, spec, tuple(range(SLOTS * cores)), CeilingWorker, cores)
    ceiling.call("run", 0.1)  # environments are built at the first call, and no process should run alone
    return ceiling


def ceiling_steps_per_s(ceiling: Executor, seconds: float) -> float:
    """What all processes reach together."""
    return sum(steps / spent for steps, spent in ceiling.call("run", seconds))
