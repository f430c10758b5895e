"""Who runs where, and with which randomness: a fixed function of the configuration, never of the workers."""

from typing import NamedTuple

import numpy as np

from twotower.es.base import Proposal
from twotower.es.directions import DenseDirections
from twotower.es.normaliser import Normaliser
from twotower.randomness import Domain, derive

INT63 = 2**63 - 1
NO_QUERIES = np.zeros((0, 0), np.float32)


class Plan(NamedTuple):
    """The members of one iteration on the slots of the run."""

    streams: np.ndarray  # (members,) int64: members with the same number share all their randomness
    slots: np.ndarray  # (members,) int64: the slot each member queues on

    def episodes(self, num_slots: int) -> np.ndarray:
        """How many episodes each slot runs, (slots,)."""
        return np.bincount(self.slots, minlength=num_slots)


class Job(NamedTuple):
    """One iteration's work, the same message for every worker."""

    domain: Domain  # what the randomness is for: training, or evaluation
    iteration: int
    proposal: Proposal
    plan: Plan
    episodes: np.ndarray  # (slots,) int64: what each slot ran since its streams began
    normaliser: Normaliser | None = None  # of observations, where the policy asks for it
    queries: np.ndarray = NO_QUERIES  # (n, features) float32: what earlier rollouts asked the search, where it learns


def population_plan(num_members: int, slots: int, paired: bool) -> Plan:
    """Members queue on slots in turn; the last member is θ itself.

    Paired members 2i and 2i + 1 queue on two slots with the same streams, and θ has a slot of its own.
    """
    members = np.arange(num_members)
    if not paired:
        return Plan(members, members % slots)
    half = max(slots // 2, 1)
    queued = members // 2 % half + (members % 2) * half
    queued[-1] = 2 * half
    return Plan(np.where(members == num_members - 1, num_members, members // 2), queued)


def slot_streams(num_members: int, slots: int, paired: bool) -> tuple[int, ...]:
    """The environment stream of every slot that a population uses."""
    if not paired:
        return tuple(range(min(slots, num_members)))
    half = max(slots // 2, 1)
    return (*range(half), *range(half), half)


def evaluation_job(
    theta: np.ndarray,
    episodes: int,
    slots: int,
    normaliser: Normaliser | None = None,
    queries: np.ndarray = NO_QUERIES,
) -> Job:
    """Fresh episodes of one θ, with randomness that training never uses."""
    no_directions = DenseDirections(0, 0, np.zeros((0, 0)))
    centre = Proposal(0, theta, 0.0, 0, no_directions, np.full(episodes, -1, np.int64), np.zeros(episodes))
    plan = Plan(np.arange(episodes), np.arange(episodes) % slots)
    return Job(Domain.EVALUATION, 0, centre, plan, np.zeros(min(episodes, slots), np.int64), normaliser, queries)


def stream_seed(seed: int, domain: Domain) -> int:
    """The seed of a domain's environment streams."""
    return derive(seed, domain, Domain.ENVIRONMENT) & INT63


def episode_seed(seed: int, domain: Domain, iteration: int, stream: int) -> int:
    """The seed of one episode, for environments that are seeded by the episode."""
    return derive(seed, domain, Domain.ENVIRONMENT, iteration, stream) & 0x7FFFFFFF
