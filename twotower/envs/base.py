"""What the engine needs of an environment library: a batch of slots that episodes queue on."""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twotower.actions.base import BoxActions, DiscreteActions
from twotower.config import EnvConfig
from twotower.errors import UserError


@dataclass(frozen=True)
class EnvSpec:
    """The facts of a task that policies and files depend on."""

    env_id: str
    backend: str
    observation_size: int
    actions: BoxActions | DiscreteActions
    max_episode_steps: int | None


class SlotSeeds(NamedTuple):
    """Names the random streams of a batch: slot i draws from the stream `slots[i]` of `seed`.

    Two slots with the same number get the same episode starts, in the same order.
    """

    seed: int
    slots: tuple[int, ...]


class Transition(NamedTuple):
    """What n advanced slots answer, in the order they were named."""

    observations: np.ndarray  # (n, s) float64, flattened; a starting slot's first observation
    rewards: np.ndarray  # (n,) float64; 0 where an episode starts
    dones: np.ndarray  # (n,) bool: terminated or truncated; False where an episode starts


class EnvBatch(ABC):
    """A share of a run's slots; the same slot gives the same episodes whatever batch it is in."""

    @abstractmethod
    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        """Make ready for an iteration; `episodes` (slots,) counts what each slot ran before it.

        The counts start at zero again whenever `iteration` is a multiple of `reseed_every`.
        """

    @abstractmethod
    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Step the named slots, or start an episode where `starting` (whose action is ignored).

        slots (n,) int32 indices into this batch, ascending; actions (n, a) float64, or (n,) int64 for
        discrete spaces; starting (n,) bool; seeds (n,) int64: the starting episodes' own seeds, which
        backends that seed whole slots leave aside.
        """

    @property
    @abstractmethod
    def reseed_every(self) -> int:
        """Iterations after which slots take fresh streams (1: at every iteration)."""

    @abstractmethod
    def close(self) -> None:
        """Release the environments."""


class Backend(ABC):
    """One environment library: which ids it knows, what their tasks look like, and batches of them."""

    package: str  # the import name that must be there
    extra: str  # the pip extra that brings it

    @property
    def installed(self) -> bool:
        """Whether the library can be imported (found out without importing it)."""
        return importlib.util.find_spec(self.package) is not None

    @abstractmethod
    def ids(self) -> Iterable[str]:
        """The ids worth suggesting for a mistyped one."""

    @abstractmethod
    def has(self, env_id: str) -> bool:
        """Whether the library knows the id."""

    @abstractmethod
    def inspect(self, env: EnvConfig, env_id: str) -> EnvSpec:
        """The facts of a task the library knows, or what keeps it from running here."""

    @abstractmethod
    def make_batch(self, env: EnvConfig, spec: EnvSpec, seeds: SlotSeeds) -> EnvBatch:
        """One slot for each of `seeds.slots`."""


def missing(env_id: str, package: str, extra: str, hint: str = "") -> UserError:
    """The sentence for an id whose library is not installed."""
    return UserError(f'{env_id}{hint} needs the package {package}; run: pip install "twotower[{extra}]"')


class EnvironmentFailure(Exception):
    """An environment raised; `slot` is its index in the batch, so that the member can be named."""

    def __init__(self, slot: int, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.slot = slot
