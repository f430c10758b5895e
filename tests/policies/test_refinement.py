"""Derivative-free optimisation of the candidate: never worse than the plain argmax, and close to a peak."""

from typing import Any

import numpy as np
import pytest

from twotower.actions.base import BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import derive, generator

SLOTS = 20
BOX = BoxActions((-1.0, -3.0), (1.0, 5.0))
PEAK = np.array([0.4, -2.0])


def chosen(theta: np.ndarray, count: int, space: BoxActions = BOX, **choices: Any) -> tuple[ImplicitPolicy, np.ndarray]:
    """The policy, and the actions (slots, a) of slots that differ in their candidates alone."""
    policy = make_policy(PolicyConfig(**choices), CandidatesConfig(count), 3, space)
    assert isinstance(policy, ImplicitPolicy)
    actor = make_actor(policy, SLOTS)
    actor.begin(0, None)
    for slot in range(SLOTS):
        actor.start(slot, theta, derive(4, slot))
    return policy, actor.act(np.arange(SLOTS, dtype=np.int32), np.ones((SLOTS, 3))).copy()


@pytest.mark.parametrize("kind", ["itt", "iot"])
def test_the_score_never_falls_below_the_plain_argmaxs(kind: Any) -> None:
    network: dict[str, Any] = dict(kind=kind, latent=4, action_hidden=(6,), hidden=(8, 6), activation="tanh")
    better = 0
    for seed in range(5):
        size = make_policy(PolicyConfig(**network), CandidatesConfig(), 3, BOX).num_params
        theta = generator(seed).normal(size=size)
        best = []
        for rounds in (0, 1, 3):
            policy, actions = chosen(theta, 20, refinements=rounds, **network)
            best.append(policy.scores(theta, np.ones(3), actions)[None])
            assert (actions >= BOX.low).all() and (actions <= BOX.high).all()
        scores = np.concatenate(best)  # (rounds, slots)
        assert (np.diff(scores, axis=0) >= -1e-5).all()
        better += (scores[2] > scores[0] + 1e-3).sum()
    assert better > 50  # of 100


def peaked_theta(hidden: int) -> np.ndarray:
    """A linear-in-|.| tent: −Σ |aᵢ − peakᵢ|, out of ReLU pairs that read the constant state."""
    rows, last = [], []
    for d in range(2):
        for sign in (1.0, -1.0):
            row = np.zeros(5)
            row[0], row[3 + d] = -sign * PEAK[d], sign
            rows.append(row)
            last.append(-1.0)
    assert len(rows) == hidden
    return np.concatenate([*rows, last])


@pytest.mark.parametrize(("rounds", "mean"), [(1, 0.2), (2, 0.1), (10, 0.01)])
def test_a_peak_is_approached(rounds: int, mean: float) -> None:
    theta = peaked_theta(4)
    policy, actions = chosen(theta, 40, kind="iot", hidden=(4,), refinements=rounds)
    scores = policy.scores(theta, np.ones(3), actions)
    np.testing.assert_allclose(scores, -np.abs(actions - PEAK).sum(axis=1), atol=1e-6)
    assert -mean < scores.mean()  # −0.39 without refinement


def test_radius_and_shrink_bound_how_far_the_action_moves() -> None:
    theta = peaked_theta(4)
    _, plain = chosen(theta, 40, kind="iot", hidden=(4,))
    width = np.array(BOX.high) - BOX.low
    for radius, shrink in ((0.1, 0.5), (0.02, 1.0)):
        choices: dict[str, Any] = dict(refinements=4, refinement_radius=radius, refinement_shrink=shrink)
        _, refined = chosen(theta, 40, kind="iot", hidden=(4,), **choices)
        reach = radius / 2 * sum(shrink**k for k in range(4)) * width
        moved = np.abs(refined - plain)
        assert (moved <= reach * (1 + 1e-5)).all() and (moved > 0.1 * reach).any()


@pytest.mark.parametrize(
    "space",
    [BoxActions((-1e6, 0.1), (0.1, 0.1)), BoxActions((-0.3, 1e-6), (0.1, 1.0000001e-6)), BoxActions((-1e6,), (1e6,))],
)
def test_refined_actions_stay_in_awkward_boxes(space: BoxActions) -> None:
    low, high = np.float32(space.low), np.float32(space.high)
    for sign in (1.0, -1.0):  # the score pulls into a corner
        theta = np.array([0.0, 0.0, 0.0, *[sign] * len(space.low)])
        _, actions = chosen(theta, 30, space, kind="iot", refinements=6, refinement_radius=2.0)
        assert (actions >= low).all() and (actions <= high).all()


@pytest.mark.parametrize(
    ("space", "candidates", "choices"),
    [
        (DiscreteActions(3), CandidatesConfig(), {}),
        (BOX, CandidatesConfig(refresh="rollout"), {}),
        (BOX, CandidatesConfig(), {"choice": "sample"}),
    ],
)
def test_refinement_is_refused_where_it_cannot_be(space: Any, candidates: CandidatesConfig, choices: Any) -> None:
    with pytest.raises(UserError, match="--policy.refinements needs a box"):
        make_policy(PolicyConfig(refinements=1, **choices), candidates, 3, space)
