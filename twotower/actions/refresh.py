"""When the candidates A* are redrawn, and so how long latents and indexes live: decided here and nowhere else."""

from enum import Enum

from twotower.actions.base import ActionSpace, DiscreteActions
from twotower.config import CandidatesConfig
from twotower.randomness import Domain, derive


class Lifetime(Enum):
    """How long one set of candidates serves."""

    STEP = "step"
    ROLLOUT = "rollout"
    SHARED = "shared"


def lifetime(candidates: CandidatesConfig, actions: ActionSpace) -> Lifetime:
    """All members of an iteration share one set when it is kept for the iteration, or is the whole space."""
    if isinstance(actions, DiscreteActions) or candidates.refresh in ("iteration", "fixed"):
        return Lifetime.SHARED
    return Lifetime.STEP if candidates.refresh == "step" else Lifetime.ROLLOUT


def shared_key(candidates: CandidatesConfig, seed: int, domain: Domain, iteration: int) -> int:
    """The key of the set that all members share; a fixed set is the same in training and evaluation."""
    if candidates.refresh == "fixed":
        return derive(seed, Domain.CANDIDATES)
    return derive(seed, domain, Domain.CANDIDATES, iteration)


def rollout_key(seed: int, domain: Domain, iteration: int, stream: int) -> int:
    """The key from which a rollout's own draws come: its set, its steps' sets, its sampling noise."""
    return derive(seed, domain, Domain.CANDIDATES, iteration, stream + 1)
