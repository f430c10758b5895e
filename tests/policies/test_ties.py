"""Ties go to the first index, and no parameters lead outside the actions."""

import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.kernels.layout import TILE
from twotower.policies import make_policy
from twotower.policies.actor import Actor, make_actor
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import extend, generator

KEY = 12345
BOX = BoxActions((-2.0, 0.0), (3.0, 1.0))


def started(theta: Any, space: ActionSpace, offered: CandidatesConfig, **policy: Any) -> Actor:
    """One slot ready to act, whose θ is given or filled with a number."""
    made = make_policy(PolicyConfig(**policy), offered, 3, space)
    actor = make_actor(made, 1)
    actor.begin(KEY, None)
    actor.start(0, np.broadcast_to(theta, made.num_params), KEY)
    return actor


def act(actor: Actor, observation: Any = (1.0, 2.0, -1.0)) -> Any:
    return actor.act(np.zeros(1, np.int32), np.array([observation], float)).copy()[0]


@pytest.mark.parametrize("refresh", ["step", "rollout", "iteration"])
@pytest.mark.parametrize("kind", ["itt", "iot"])
def test_the_first_candidate_wins_where_all_scores_are_equal(kind: str, refresh: Any) -> None:
    offered = CandidatesConfig(2 * TILE + 88, refresh=refresh)
    actor = started(0.0, BOX, offered, kind=kind, latent=3, action_hidden=(4,), hidden=(4,))
    assert isinstance(actor.policy, ImplicitPolicy)
    first = actor.policy.encoded_set(extend(KEY, 0) if refresh == "step" else KEY)[0]
    assert np.array_equal(act(actor), first)


@pytest.mark.parametrize("encoding", ["scalar", "onehot"])
@pytest.mark.parametrize("kind", ["itt", "iot"])
def test_a_dead_relu_gives_the_first_action(kind: str, encoding: Any) -> None:
    for count in (2, 5, TILE + 44):
        actor = started(-1.0, DiscreteActions(count), CandidatesConfig(encoding=encoding), kind=kind,
                        latent=2, state_hidden=(2,), hidden=(2,))  # fmt: skip
        assert act(actor, (1.0, 1.0, 1.0)) == 0


def test_a_score_linear_in_the_index_lets_only_the_ends_win() -> None:
    winners = set()
    for seed in range(30):
        theta = generator(seed).normal(size=4)
        actor = started(theta, DiscreteActions(5), CandidatesConfig(encoding="scalar"), kind="itt", latent=1)
        latent = theta[:3].astype(np.float32) @ (1.0, 2.0, -1.0)
        assert act(actor) == (4 if latent * theta[3] > 0 else 0)
        winners.add(int(act(actor)))
    assert winners == {0, 4}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45])
@pytest.mark.parametrize("choice", ["argmax", "sample"])
@pytest.mark.parametrize("kind", ["itt", "iot", "explicit"])
def test_no_parameters_lead_outside(kind: str, choice: str, value: float) -> None:
    network: dict[str, Any] = dict(
        kind=kind, choice=choice, latent=2, state_hidden=(3,), action_hidden=(3,), hidden=(3, 3)
    )
    kernels = ("dot", "softmax") if kind == "itt" else ("dot",)
    for kernel, count in itertools.product(kernels, (2, 5, TILE + 44)):
        actor = started(value, DiscreteActions(count), CandidatesConfig(), kernel=kernel, **network)
        for observation in ((1.0, 2.0, -1.0), (0.0, 0.0, 0.0), (np.nan, 1.0, np.inf)):
            assert 0 <= act(actor, observation) < count
    for refresh in ("step", "rollout"):
        actor = started(value, BOX, CandidatesConfig(TILE + 44, refresh=refresh), **network)
        action = act(actor)
        if kind != "explicit":  # whose NaN the environment will see, and the return with it
            assert (action >= BOX.low).all() and (action <= BOX.high).all()


def test_a_parameter_that_is_not_finite_may_hide_no_other_action() -> None:
    # One NaN candidate must not keep the scan from answering with an index in range.
    theta = np.array([1.0, 1.0, 1.0, np.nan, 5.0, 1.0])
    actor = started(theta, DiscreteActions(3), CandidatesConfig(), kind="itt", latent=1)
    assert act(actor) in (0, 1, 2)
