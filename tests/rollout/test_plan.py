"""Who runs where: fixed by the configuration, the same randomness for those that share it."""

import itertools

import numpy as np
import pytest

from twotower.randomness import Domain
from twotower.rollout.plan import episode_seed, evaluation_job, population_plan, slot_streams, stream_seed

SIZES = list(itertools.product((3, 9, 21), (1, 2, 5, 8, 64)))  # members (pairs and θ), slots


@pytest.mark.parametrize(("members", "slots"), SIZES)
def test_unpaired_members_have_streams_of_their_own_on_slots_in_turn(members: int, slots: int) -> None:
    plan, streams = population_plan(members, slots, paired=False), slot_streams(members, slots, paired=False)
    assert len(set(plan.streams)) == members == len(plan.slots)
    assert len(set(streams)) == len(streams) == min(slots, members)
    assert set(plan.slots) == set(range(len(streams)))
    assert np.ptp(plan.episodes(len(streams))) <= 1


@pytest.mark.parametrize(("members", "slots"), SIZES)
def test_paired_members_share_streams_and_their_slots_streams(members: int, slots: int) -> None:
    plan, streams = population_plan(members, slots, paired=True), slot_streams(members, slots, paired=True)
    plus, minus = np.arange(0, members - 1, 2), np.arange(1, members - 1, 2)
    assert np.array_equal(plan.streams[plus], plan.streams[minus])
    assert len(set(plan.streams[plus])) == len(plus) and plan.streams[-1] not in plan.streams[:-1]
    assert (plan.slots < len(streams)).all()
    for a, b in zip(plus, minus, strict=True):
        # Streams of slots go on from episode to episode: the pair must stand at the same place of its queue.
        assert plan.slots[a] != plan.slots[b] and streams[plan.slots[a]] == streams[plan.slots[b]]
        place = [(plan.slots[:member] == plan.slots[member]).sum() for member in (a, b)]
        assert place[0] == place[1]
    centre = plan.slots[-1]
    assert (plan.slots == centre).sum() == 1 and streams.count(streams[centre]) == 1


def test_episodes_counts_every_slot() -> None:
    assert population_plan(7, 4, paired=False).episodes(4).tolist() == [2, 2, 2, 1]
    assert population_plan(7, 4, paired=True).episodes(5).tolist() == [2, 1, 2, 1, 1]
    assert population_plan(2, 8, paired=False).episodes(8).tolist() == [1, 1, *[0] * 6]


@pytest.mark.parametrize(("episodes", "slots"), [(1, 64), (7, 3), (64, 64)])
def test_an_evaluation_is_theta_alone(episodes: int, slots: int) -> None:
    theta = np.arange(3.0)
    job = evaluation_job(theta, episodes, slots)
    assert job.domain is Domain.EVALUATION and len(job.plan.slots) == episodes
    assert all(np.array_equal(job.proposal.member(member), theta) for member in range(episodes))
    assert len(job.episodes) == min(episodes, slots) and job.plan.slots.max() < len(job.episodes)
    assert len(set(job.plan.streams)) == episodes


def test_seeds_are_their_own() -> None:
    names = list(itertools.product(range(4), (Domain.ENVIRONMENT, Domain.EVALUATION), range(5), range(5)))
    seeds = {episode_seed(*name) for name in names}
    assert len(seeds) == len(names) and all(0 <= seed < 2**31 for seed in seeds)
    assert len({stream_seed(*name[:2]) for name in names}) == 8
