"""Sampled choices follow the softmax of K over the temperature; seeds are fixed, error rates below 1e-4 a test."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from twotower.actions.base import DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.kernels.layout import TILE
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import derive

DRAWS, SLOTS = 20_000, 50
SCORES = np.array([0.3, -0.8, 0.0, 1.2, 0.9])


def sampled(kernel: Any, temperature: float, kind: Any = "itt") -> tuple[np.ndarray, np.ndarray]:
    """How often each of five actions was chosen, and its score K."""
    config = PolicyConfig(kind=kind, kernel=kernel, choice="sample", temperature=temperature, latent=1)
    policy = make_policy(config, CandidatesConfig(), 1, DiscreteActions(5))
    assert isinstance(policy, ImplicitPolicy)
    # In the state 1 the state tower's 1 × 1 matrix (or the one tower's state weight) leaves SCORES as they are.
    theta = np.array([1.0 if kind == "itt" else 0.0, *SCORES])
    actor = make_actor(policy, SLOTS)
    actor.begin(0, None)
    for slot in range(SLOTS):
        actor.start(slot, theta, derive(11, slot))
    slots, ones = np.arange(SLOTS, dtype=np.int32), np.ones((SLOTS, 1))
    counts = np.zeros(5, int)
    for _ in range(DRAWS // SLOTS):
        counts += np.bincount(actor.act(slots, ones), minlength=5)
    return counts, policy.scores(theta, np.ones(1), policy.encoded_set(0))


def fit(counts: np.ndarray, logits: np.ndarray) -> float:
    """The p-value of the counts under the softmax of the logits: chi-square, and Poisson for the rare ones' sum."""
    expected = scipy.special.softmax(logits) * counts.sum()
    rare = expected < 5
    tail = scipy.stats.poisson.sf(counts[rare].sum() - 1, expected[rare].sum()) if rare.any() else 1.0
    if (~rare).sum() == 1:
        return tail
    scale = counts[~rare].sum() / expected[~rare].sum()
    return min(tail, scipy.stats.chisquare(counts[~rare], expected[~rare] * scale).pvalue)


@pytest.mark.parametrize("kind", ["itt", "iot"])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kernel", ["dot", "softmax"])
def test_frequencies_are_the_softmaxs(kernel: str, temperature: float, kind: str) -> None:
    counts, scores = sampled(kernel, temperature, kind)
    np.testing.assert_allclose(scores, SCORES, atol=1e-12)
    logits = {"dot": scores, "softmax": np.exp(scores)}
    assert fit(counts, logits[kernel] / temperature) > 1e-5
    other = logits["softmax" if kernel == "dot" else "dot"]
    assert fit(counts, other / temperature) < 1e-4
    assert fit(counts, logits[kernel] / temperature / 4) < 1e-9


def test_the_noise_changes_with_step_rollout_and_action() -> None:
    policy = make_policy(PolicyConfig(choice="sample", latent=1), CandidatesConfig(), 1, DiscreteActions(2))
    actor = make_actor(policy, 2)
    actor.begin(0, None)
    chosen = np.zeros((2, 4000), int)
    for slot in range(2):
        actor.start(slot, np.zeros(3), derive(3, slot))
    for step in range(4000):
        chosen[:, step] = actor.act(np.arange(2, dtype=np.int32), np.zeros((2, 1)))
    # Fair coins; means and correlations (between slots, between steps) within 5 standard errors.
    assert np.abs(chosen.mean(axis=1) - 0.5).max() < 5 * 0.5 / np.sqrt(4000)
    assert abs(np.corrcoef(chosen)[0, 1]) < 5 / np.sqrt(4000)
    for slot in range(2):
        assert abs(np.corrcoef(chosen[slot, 1:], chosen[slot, :-1])[0, 1]) < 5 / np.sqrt(3999)


def test_the_whole_tile_is_sampled() -> None:
    policy = make_policy(PolicyConfig(choice="sample", latent=1), CandidatesConfig(), 1, DiscreteActions(TILE + 44))
    actor = make_actor(policy, SLOTS)
    actor.begin(0, None)
    for slot in range(SLOTS):
        actor.start(slot, np.zeros(TILE + 45), derive(17, slot))
    slots, zeros = np.arange(SLOTS, dtype=np.int32), np.zeros((SLOTS, 1))
    chosen = np.concatenate([actor.act(slots, zeros).copy() for _ in range(120)])
    assert scipy.stats.chisquare(np.bincount(chosen, minlength=TILE + 44)).pvalue > 1e-4
