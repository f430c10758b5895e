"""The fused kernel chooses what the NumPy reference chooses, for every combination of choices."""

import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.kernels.layout import TILE
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.policies.base import NOISE_WORD, ImplicitPolicy, Policy
from twotower.policies.explicit import Explicit
from twotower.randomness import derive, extend, generator, hash32, unit_float

SLOTS, STEPS, STATE, SHARED_KEY = 4, 4, 7, 77
SPACES: dict[str, ActionSpace] = {
    "symmetric": BoxActions((-1.0,) * 6, (1.0,) * 6),
    "odd": BoxActions((-2.0, 0.0, 1e-3), (3.0, 1.0, 40.0)),
    "discrete": DiscreteActions(3),
    "many": DiscreteActions(TILE + 44),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "shallow": {},
    "deep": {"latent": 5, "state_hidden": (6,), "action_hidden": (6, 4), "hidden": (9, 5, 3)},
}
CHOICES = {
    "argmax": {},
    "sample": {"choice": "sample", "temperature": 0.7},
    "softmax": {"choice": "sample", "kernel": "softmax", "temperature": 2.0},
}


def candidates_for(space: ActionSpace) -> list[CandidatesConfig]:
    """Every way of offering candidates in a space, with counts around whole tiles."""
    if isinstance(space, DiscreteActions):
        return [CandidatesConfig(encoding="onehot"), CandidatesConfig(encoding="scalar")]
    return [
        CandidatesConfig(count, refresh=refresh, draw=draw)
        for refresh in ("step", "rollout", "iteration", "fixed")
        for draw, count in (("uniform", TILE + 44), ("uniform", TILE), ("sobol", TILE + 44))
    ]


def policies(space: ActionSpace) -> list[Policy]:
    """Every policy for a space."""
    made = []
    for network, choice, activation in itertools.product(
        NETWORKS.values(), CHOICES.values(), ("relu", "linear", "tanh")
    ):
        for kind, offered in itertools.product(("itt", "iot"), candidates_for(space)):
            config = PolicyConfig(kind=kind, activation=activation, **network, **choice)
            made.append(make_policy(config, offered, STATE, space))
        if not choice:
            config = PolicyConfig(kind="explicit", activation=activation, **network)
            made.append(make_policy(config, CandidatesConfig(), STATE, space))
    return made


class Tally:
    """Compares choices, setting aside those that the reference itself calls too close."""

    def __init__(self) -> None:
        self.seen = self.close = 0

    def compare(
        self, policy: Policy, theta: np.ndarray, observation: np.ndarray, key: int, step: int, acted: Any
    ) -> None:
        self.seen += 1
        if isinstance(policy, Explicit):
            np.testing.assert_allclose(acted, policy.action(theta, observation), rtol=1e-5, atol=1e-5)
            return
        assert isinstance(policy, ImplicitPolicy)
        step_key = extend(key, step)
        shared = isinstance(policy.actions, DiscreteActions) or policy.candidates.refresh in ("iteration", "fixed")
        set_key = SHARED_KEY if shared else key if policy.candidates.refresh == "rollout" else step_key
        offered = policy.encoded_set(set_key)
        expected = policy.choose(theta, observation, offered, step_key)
        if isinstance(policy.actions, DiscreteActions):
            same = acted == expected
        else:
            same = np.allclose(acted, offered[expected], rtol=1e-6, atol=1e-6)
        if not same:
            self.close += 1
            assert too_close(policy, theta, observation, offered, step_key), (policy.config, policy.candidates)


def too_close(
    policy: ImplicitPolicy, theta: np.ndarray, observation: np.ndarray, offered: np.ndarray, key: int
) -> bool:
    """Whether float32 cannot tell the reference's top two: within 1e-4 of each other and of their size."""
    config, kept = policy.config, len(offered)
    scores = policy.scores(theta, observation, offered)
    if config.choice == "sample":
        # Leave the noise to the reference: the runner-up is what it picks once the winner is gone.
        best = policy.choose(theta, observation, offered, key)
        others = np.delete(np.arange(kept), best)
        logits = np.exp(np.minimum(scores, 80.0)) if config.kernel == "softmax" else scores
        noise = -np.log(-np.log(noise_of(kept, key)))
        scores = logits / config.temperature + noise
        gap = scores[best] - scores[others].max()
    else:
        top = np.sort(scores)[-2:]
        gap = top[1] - top[0]
    return bool(gap < 1e-4 * max(1.0, np.abs(scores).max()))


def noise_of(count: int, key: int) -> np.ndarray:
    """The uniform numbers behind a step's Gumbel noise, (count,)."""
    return unit_float(hash32(np.arange(count, dtype=np.uint32), extend(key, NOISE_WORD))).astype(float) + 2.0**-25


@pytest.mark.parametrize("space", SPACES)
def test_kernel_and_reference_choose_alike(space: str) -> None:
    tally = Tally()
    for number, policy in enumerate(policies(SPACES[space])):
        random = generator(number)
        actor = make_actor(policy, SLOTS)
        actor.begin(SHARED_KEY, None)
        thetas = random.normal(size=(SLOTS, policy.num_params))
        for slot in range(SLOTS):
            actor.start(slot, thetas[slot], derive(5, slot))
        for step in range(STEPS):
            slots = np.arange(step % 2, SLOTS, 1 + step % 2, dtype=np.int32)  # all, then the odd ones
            observations = random.normal(size=(len(slots), STATE))
            acted = actor.act(slots, observations).copy()
            for row, slot in enumerate(slots):
                theta = thetas[slot].astype(np.float32).astype(float)
                taken = step - step // 2 if slot % 2 == 0 else step  # even slots sat out every other step
                tally.compare(policy, theta, observations[row], derive(5, int(slot)), taken, acted[row])
    # Saturated tanh units make neighbours among so many scalar actions nearly equal more often than chance does.
    assert tally.close <= (0.02 if space == "many" else 0.005) * tally.seen, (tally.close, tally.seen)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("network", NETWORKS)
def test_sharing_the_action_towers_features_changes_nothing(space: str, network: str) -> None:
    offered = CandidatesConfig(TILE + 44, refresh="iteration")
    policy = make_policy(PolicyConfig(kind="itt", **NETWORKS[network]), offered, STATE, SPACES[space])
    random = generator(1)
    thetas = np.tile(random.normal(size=policy.num_params), (SLOTS, 1))
    thetas[:, : policy.state_params] = random.normal(size=(SLOTS, policy.state_params))  # θ₂ is the same for all
    shared, own = make_actor(policy, SLOTS), make_actor(policy, SLOTS)
    shared.begin(SHARED_KEY, thetas[0])
    own.begin(SHARED_KEY, None)
    for slot in range(SLOTS):
        for actor in (shared, own):
            actor.start(slot, thetas[slot], derive(5, slot))
    slots, seen = np.arange(SLOTS, dtype=np.int32), set()
    for _ in range(STEPS):
        observations = random.normal(size=(SLOTS, STATE))
        acted = shared.act(slots, observations)
        assert np.array_equal(acted, own.act(slots, observations))
        seen |= {row.tobytes() for row in acted}
    assert len(seen) > 1
    # The next iteration moves θ₂ again: no features may stay behind.
    for actor in (shared, own):
        actor.begin(SHARED_KEY + 1, None)
        for slot in range(SLOTS):
            actor.start(slot, -thetas[slot], derive(6, slot))
    assert np.array_equal(shared.act(slots, observations), own.act(slots, observations))
