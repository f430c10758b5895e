"""The closed form for one-matrix action towers is the exact argmax over the whole box."""

import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import BoxActions, DiscreteActions
from twotower.actions.box import draw
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import generator
from twotower.search import Corner

STATE = 5


def box(size: int) -> BoxActions:
    """A box off the origin, its widths all different."""
    low, width = generator(size).normal(size=(2, size))
    return BoxActions(tuple(low), tuple(low + np.abs(width) + 0.1))


def kernel_actions(space: BoxActions, theta: np.ndarray, observations: np.ndarray, **choices: Any) -> np.ndarray:
    """The actions (n, a) of a policy for observations (n, s)."""
    policy = make_policy(PolicyConfig(**choices), CandidatesConfig(), STATE, space)
    actor = make_actor(policy, len(observations))
    actor.begin(0, None)
    for slot in range(len(observations)):
        actor.start(slot, theta, slot)
    return actor.act(np.arange(len(observations), dtype=np.int32), observations).copy()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("hidden", [(), (4,)])
def test_the_corner_is_the_best_of_all_corners(size: int, hidden: tuple[int, ...]) -> None:
    space = box(size)
    network: dict[str, Any] = {"latent": 3, "state_hidden": hidden, "activation": "tanh"}
    corners = np.array(list(itertools.product(*zip(space.low, space.high, strict=True))))  # (2^a, a)
    plain = make_policy(PolicyConfig(**network), CandidatesConfig(), STATE, space)
    assert isinstance(plain, ImplicitPolicy)
    theta = generator(1).normal(size=plain.num_params)
    observations = generator(2).normal(size=(30, STATE))
    actions = kernel_actions(space, theta, observations, search="corner", **network)
    index = Corner(np.array(space.low), np.array(space.high)).build(theta[plain.state_params :].reshape(3, size))
    for observation, action in zip(observations, actions, strict=True):
        scores = plain.scores(theta, observation, corners)
        np.testing.assert_allclose(action, corners[np.argmax(scores)], rtol=1e-5, atol=1e-6)
        state_latent = plain.state_latents(theta, observation[None])[0]  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_allclose(index.query(state_latent), action, rtol=1e-5, atol=1e-6)
    if size > 1:
        assert len(np.unique(actions, axis=0)) > 1


def test_brute_force_approaches_it_as_candidates_grow() -> None:
    space = box(2)
    policy = make_policy(PolicyConfig(), CandidatesConfig(), STATE, space)
    assert isinstance(policy, ImplicitPolicy)
    theta, observations = generator(3).normal(size=policy.num_params), generator(4).normal(size=(20, STATE))
    best = kernel_actions(space, theta, observations, search="corner")
    gaps = []
    for count in (10, 1000, 30_000):
        offered = draw(space, count, 0)
        scores = [
            policy.scores(theta, o, np.concatenate([offered, [a]])) for o, a in zip(observations, best, strict=True)
        ]
        spread = [(s[-1] - s[:-1].max()) / (s[-1] - s[:-1].mean()) for s in scores]
        assert min(spread) >= -1e-6  # no candidate beats the corner
        gaps.append(np.mean(spread))
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 0.02


def test_a_zero_query_gives_the_middle() -> None:
    space = BoxActions((-2.0, 0.0), (4.0, 1.0))
    index = Corner(np.array(space.low), np.array(space.high)).build(np.eye(2))
    assert index.query(np.zeros(2)).tolist() == [1.0, 0.5]
    assert index.query(np.array([-1.0, 0.0])).tolist() == [-2.0, 0.5]
    size = make_policy(PolicyConfig(), CandidatesConfig(), STATE, space).num_params
    for theta, state in ((np.zeros(size), np.ones(STATE)), (np.ones(size), np.zeros(STATE))):
        assert kernel_actions(space, theta, state[None], search="corner").tolist() == [[1.0, 0.5]]


@pytest.mark.parametrize(("low", "high"), [(-1e6, 0.1), (-0.3, 0.7), (-0.1, 1e6), (-1e-6, 1e-6)])
def test_corners_do_not_leave_the_box(low: float, high: float) -> None:
    space = BoxActions((low,), (high,))
    theta = np.ones(STATE + 1)
    states = np.array([np.ones(STATE), -np.ones(STATE)])
    for choices in ({"search": "corner"}, {"kind": "explicit"}):
        scale = 30.0 if "kind" in choices else 1.0
        actions = kernel_actions(space, scale * theta[: STATE + (not scale > 1)], states, **choices)
        assert (actions >= np.float32(low)).all() and (actions <= np.float32(high)).all()
        assert abs(np.ptp(actions) - (high - low)) <= 1e-6 * (high - low)


@pytest.mark.parametrize(
    ("space", "choices"),
    [
        (box(2), {"kind": "iot"}),
        (box(2), {"kind": "explicit"}),
        (box(2), {"action_hidden": (2,)}),
        (box(2), {"choice": "sample"}),
        (DiscreteActions(3), {}),
    ],
)
def test_it_is_refused_where_it_does_not_apply(space: Any, choices: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="--policy.search corner is the closed form"):
        make_policy(PolicyConfig(search="corner", **choices), CandidatesConfig(), STATE, space)


def test_an_unknown_search_is_refused() -> None:
    with pytest.raises(UserError, match="must be one of auto, bounded, corner, brute_force"):
        make_policy(PolicyConfig(search="hash"), CandidatesConfig(), STATE, box(1))
