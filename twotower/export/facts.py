"""What it takes to act: weights, candidates and bounds, as plain data that any runtime can hold."""

from typing import Any

import numpy as np

from twotower.actions import box
from twotower.actions.base import BoxActions, DiscreteActions
from twotower.actions.refresh import Lifetime, lifetime, shared_key
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import Domain, derive
from twotower.runs import PolicyFile
from twotower.towers import Sizes

Facts = dict[str, Any]


def facts_of(file: PolicyFile) -> Facts:
    """A policy as the constants of its program; what it draws in use, it draws like an evaluation."""
    config, spec = file.config, file.spec
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
    policy.check_theta(file.theta)
    if config.policy.refinements:
        raise UserError("Policies with --policy.refinements cannot be exported.")
    theta, towers, start = file.theta.astype(np.float32), [], 0
    for sizes in policy.tower_sizes:
        towers.append(_matrices(theta[start:], sizes))
        start += sum(matrix.size for matrix in towers[-1])
    nowhere = (np.zeros(0, np.float32),) * 2
    low, span = box.bounds(spec.actions) if isinstance(spec.actions, BoxActions) else nowhere
    facts: Facts = {
        "kind": config.policy.kind,
        "activation": config.policy.activation,
        "towers": towers,
        "mean": None if file.normaliser is None else file.normaliser.mean,
        "scale": None if file.normaliser is None else file.normaliser.scale,
        "low": low,
        "span": span,
        "discrete": spec.actions.count if isinstance(spec.actions, DiscreteActions) else 0,
        "first": spec.actions.first if isinstance(spec.actions, DiscreteActions) else 0,
        "corner": config.policy.search == "corner",
        "refresh": "kept",
        "candidates": None,
    }
    if isinstance(policy, ImplicitPolicy) and not facts["corner"]:
        facts |= _candidates(policy, config.seed)
    return facts


def _candidates(policy: ImplicitPolicy, seed: int) -> Facts:
    """The set that is kept, or how to draw one for every rollout or step; and how one of them is chosen."""
    config, life = policy.config, lifetime(policy.candidates, policy.actions)
    facts: Facts = {
        "sample": config.choice == "sample",
        "softmax_kernel": config.kernel == "softmax",
        "temperature": config.temperature,
        "key": derive(seed, Domain.EVALUATION, Domain.CANDIDATES, 0),  # of all episodes' draws
    }
    if life is Lifetime.SHARED:
        return facts | {"candidates": policy.encoded_set(shared_key(policy.candidates, seed, Domain.EVALUATION, 0))}
    count = policy.candidates.count
    table = policy.table[:, :count] if policy.table.size else None
    return facts | {"refresh": "step" if life is Lifetime.STEP else "rollout", "count": count, "table": table}


def _matrices(theta: np.ndarray, sizes: Sizes) -> list[np.ndarray]:
    """The network's weight matrices, (outputs, inputs) each."""
    matrices, start = [], 0
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        matrices.append(theta[start : start + inputs * outputs].reshape(outputs, inputs))
        start += inputs * outputs
    return matrices
