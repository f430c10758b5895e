"""What holds for every kind of policy: its size, its actions, and that slots do not know of each other."""

import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.policies import KINDS, make_policy
from twotower.policies.actor import Actor, make_actor
from twotower.policies.base import Policy
from twotower.randomness import derive, generator

STATE, SLOTS = 5, 6
BOX, DISCRETE = BoxActions((-2.0, 0.0, 1e-3), (3.0, 1.0, 40.0)), DiscreteActions(4)
CASES: list[tuple[str, ActionSpace, Any, str, str]] = [
    *itertools.product(sorted(KINDS), (BOX,), ("step", "rollout", "iteration"), ("argmax", "sample"), ("brute_force",)),
    *itertools.product(sorted(KINDS), (DISCRETE,), ("step",), ("argmax", "sample"), ("brute_force",)),
    ("itt", BOX, "step", "argmax", "corner"),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{type(case[1]).__name__[:3]}-{'-'.join(case[2:])}")
def policy(request: pytest.FixtureRequest) -> Policy:
    kind, space, refresh, choice, search = request.param
    action_hidden = () if search == "corner" else (4,)
    config = PolicyConfig(
        kind, latent=3, state_hidden=(6,), action_hidden=action_hidden, hidden=(6, 4), choice=choice, search=search
    )
    return make_policy(config, CandidatesConfig(200, refresh=refresh), STATE, space)


def thetas(policy: Policy) -> np.ndarray:  # (slots, D)
    return generator(1).normal(size=(SLOTS, policy.num_params))


def started(policy: Policy, members: list[int], shared_key: int = 7) -> Actor:
    """Slot i runs member members[i]."""
    actor = make_actor(policy, len(members))
    actor.begin(shared_key, None)
    for slot, member in enumerate(members):
        actor.start(slot, thetas(policy)[member], derive(2, member))
    return actor


def played(policy: Policy, members: list[int], steps: int = 4) -> np.ndarray:
    """The actions (steps, slots, …) of members whose observations depend on (member, step) alone."""
    actor, slots = started(policy, members), np.arange(len(members), dtype=np.int32)
    seen = []
    for step in range(steps):
        observations = np.stack([generator(3, member, step).normal(size=STATE) for member in members])
        seen.append(actor.act(slots, observations).copy())
    return np.array(seen)


def test_theta_is_its_towers_end_to_end(policy: Policy) -> None:
    weights = [a * b for sizes in policy.tower_sizes for a, b in itertools.pairwise(sizes)]
    assert policy.num_params == sum(weights)
    assert 1 <= policy.state_params <= policy.num_params
    assert (policy.state_params < policy.num_params) == (policy.config.kind == "itt")
    assert policy.tower_sizes[0][0] >= STATE


def test_actions_lie_in_the_space_and_move_with_the_state(policy: Policy) -> None:
    actions = played(policy, list(range(SLOTS)), steps=10)
    if isinstance(policy.actions, DiscreteActions):
        assert actions.shape == (10, SLOTS) and actions.dtype == np.int64
        assert actions.min() >= 0 and actions.max() < policy.actions.count and len(np.unique(actions)) > 1
    else:
        assert actions.shape == (10, SLOTS, 3) and actions.dtype == np.float64
        assert (actions >= np.float32(policy.actions.low)).all() and (actions <= np.float32(policy.actions.high)).all()
        assert len(np.unique(actions.reshape(-1, 3), axis=0)) > 5  # of the corner's 8


def test_a_member_acts_the_same_in_any_slot_beside_any_others(policy: Policy) -> None:
    whole = played(policy, list(range(SLOTS)))
    for members in ([5, 2, 0], [3], [1, 3, 4, 5]):
        assert np.array_equal(played(policy, members), whole[:, members])


def test_slots_may_act_at_different_times(policy: Policy) -> None:
    together = played(policy, [0, 1, 2])
    actor, taken = started(policy, [0, 1, 2]), [0, 0, 0]
    for slots in ([0], [0, 2], [1], [1, 2], [0, 1, 2]):
        observations = np.stack([generator(3, slot, taken[slot]).normal(size=STATE) for slot in slots])
        acted = actor.act(np.array(slots, np.int32), observations)
        for row, slot in enumerate(slots):
            assert np.array_equal(acted[row], together[taken[slot], slot])
            taken[slot] += 1


def test_a_slot_starts_over_with_its_next_member(policy: Policy) -> None:
    actor, slots = started(policy, [0, 1]), np.arange(2, dtype=np.int32)
    for _ in range(3):
        actor.act(slots, np.ones((2, STATE)))
    actor.start(1, thetas(policy)[4], derive(2, 4))
    fresh = started(policy, [4])
    for step in range(3):
        observation = generator(3, step).normal(size=(1, STATE))
        assert np.array_equal(actor.act(slots[1:], observation), fresh.act(slots[:1], observation))


def test_idle_actions_look_like_actions(policy: Policy) -> None:
    actor = started(policy, [0, 1, 2])
    idle, acted = actor.idle_actions(2), actor.act(np.array([0, 2], np.int32), np.ones((2, STATE)))
    assert idle.shape == acted.shape and idle.dtype == acted.dtype


def test_candidates_are_redrawn_when_they_should_be(policy: Policy) -> None:
    if (
        isinstance(policy.actions, DiscreteActions)
        or policy.config.kind == "explicit"
        or policy.config.search == "corner"
    ):
        return
    # One member in an unchanging state, so that only candidates (and sampling noise) move.
    seen: dict[tuple[int, int], set[bytes]] = {}
    offered: set[bytes] = set()
    for shared_key, rollout in itertools.product((1, 2), (1, 2)):
        actor = make_actor(policy, 1)
        actor.begin(shared_key, None)
        actor.start(0, thetas(policy)[0], rollout)
        acted = [actor.act(np.zeros(1, np.int32), np.ones((1, STATE))).tobytes() for _ in range(5)]
        seen[shared_key, rollout] = set(acted)
        offered |= set(acted)
    refresh, argmax = policy.candidates.refresh, policy.config.choice == "argmax"
    if argmax:
        assert [len(acted) for acted in seen.values()] == [5 if refresh == "step" else 1] * 4
        assert len(offered) == {"step": 10, "rollout": 2, "iteration": 2}[refresh]
        # A rollout's candidates are its own; an iteration's are all rollouts'.
        assert (seen[1, 1] == seen[2, 1]) == (refresh != "iteration")
        assert (seen[1, 1] == seen[1, 2]) == (refresh == "iteration")
    else:
        assert len(offered) > 2
