"""How long candidates live, the keys of their sets, and the actions of a discrete space."""

import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import BoxActions, DiscreteActions
from twotower.actions.discrete import encode
from twotower.actions.refresh import Lifetime, lifetime, rollout_key, shared_key
from twotower.config import CandidatesConfig
from twotower.randomness import Domain

BOX = BoxActions((-1.0,), (1.0,))


@pytest.mark.parametrize(
    ("refresh", "expected"),
    [
        ("step", Lifetime.STEP),
        ("rollout", Lifetime.ROLLOUT),
        ("iteration", Lifetime.SHARED),
        ("fixed", Lifetime.SHARED),
    ],
)
def test_lifetimes(refresh: Any, expected: Lifetime) -> None:
    offered = CandidatesConfig(refresh=refresh)
    assert lifetime(offered, BOX) is expected
    assert lifetime(offered, DiscreteActions(3)) is Lifetime.SHARED  # all actions, always


def test_a_shared_set_is_new_each_iteration_unless_fixed() -> None:
    def keys(refresh: Any) -> set[int]:
        offered = CandidatesConfig(refresh=refresh)
        uses = (Domain.ENVIRONMENT, Domain.EVALUATION)
        return {shared_key(offered, 3, use, iteration) for use in uses for iteration in range(5)}

    assert len(keys("iteration")) == 10
    assert len(keys("fixed")) == 1  # the same in training and evaluation
    fixed = CandidatesConfig(refresh="fixed")
    assert len({shared_key(fixed, seed, Domain.ENVIRONMENT, 0) for seed in range(5)}) == 5


def test_every_rollout_has_a_key_of_its_own() -> None:
    names = list(itertools.product(range(4), (Domain.ENVIRONMENT, Domain.EVALUATION), range(4), range(4)))
    keys = {rollout_key(*name) for name in names}
    shared = {shared_key(CandidatesConfig(), *name[:3]) for name in names}
    assert len(keys) == len(names) and len(shared) == len(names) // 4 and not keys & shared


def test_discrete_actions_as_networks_see_them() -> None:
    assert np.array_equal(encode(DiscreteActions(3), "onehot"), np.eye(3))
    assert encode(DiscreteActions(3), "scalar").tolist() == [[0], [1], [2]]
    assert {encode(DiscreteActions(3), kind).dtype for kind in ("onehot", "scalar")} == {np.dtype(np.float32)}
