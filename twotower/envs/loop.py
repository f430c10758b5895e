"""Environments that are Python objects, stepped one after another."""

from abc import abstractmethod
from typing import Any

import numpy as np

from twotower.envs.base import EnvBatch, EnvironmentFailure, EnvSpec, Transition


class CannotDraw(Exception):
    """An environment that was asked for a picture and has none to give."""


class LoopBatch(EnvBatch):
    """A batch that seeds every episode by itself, so no slot carries a stream from one to the next."""

    def __init__(self, environments: list[Any], spec: EnvSpec) -> None:
        self.environments = environments
        self._observation_size = spec.observation_size

    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        """Nothing to do: an episode depends on nothing but its own seed."""

    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Step or start the named slots in their order, naming the one that raises."""
        count = len(slots)
        observations = np.empty((count, self._observation_size))  # (n, s)
        rewards, dones = np.zeros(count), np.zeros(count, np.bool_)
        actions = self._translate(actions)
        for row, (slot, start) in enumerate(zip(slots.tolist(), starting.tolist(), strict=True)):
            try:
                if start:
                    observations[row] = self._start(slot, int(seeds[row]))
                else:
                    observations[row], rewards[row], dones[row] = self._step(slot, actions[row])
            except Exception as error:
                raise EnvironmentFailure(slot, error) from error
        return Transition(observations, rewards, dones)

    @property
    def reseed_every(self) -> int:
        """Never: the seeds come with the episodes."""
        return 2**31

    def close(self) -> None:
        """Release the environments."""
        for environment in self.environments:
            environment.close()

    def picture(self, slot: int) -> np.ndarray:
        """What the slot looks like now, (height, width, 3) uint8."""
        try:
            drawn = self._draw(slot)
        except Exception as error:
            raise CannotDraw(f"{type(error).__name__}: {str(error) or 'no reason given'}") from error
        if not isinstance(drawn, np.ndarray) or drawn.ndim != 3:
            raise CannotDraw("it returned no picture")
        return drawn

    @property
    @abstractmethod
    def steps_per_second(self) -> float:
        """How many steps make a second of the task's own time."""

    @abstractmethod
    def _draw(self, slot: int) -> np.ndarray | None:
        """A picture of the slot, or whatever the library answers instead."""

    @abstractmethod
    def _translate(self, actions: np.ndarray) -> np.ndarray:
        """A policy's actions as the library takes them, in an array of their own."""

    @abstractmethod
    def _start(self, slot: int, seed: int) -> np.ndarray:
        """The flat first observation (s,) of the episode with this seed."""

    @abstractmethod
    def _step(self, slot: int, action: Any) -> tuple[np.ndarray, float, bool]:
        """One step's flat observation (s,), reward and whether it ended the episode."""
