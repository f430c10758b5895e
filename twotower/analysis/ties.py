"""How often a policy's best score is shared, so that the order of its candidates decides."""

import numpy as np

from twotower.actions.refresh import Lifetime, lifetime
from twotower.analysis.episode import offered, watch
from twotower.policies import make_policy
from twotower.policies.base import ImplicitPolicy
from twotower.runs import PolicyFile

STATES = 200  # of one episode, evenly spaced: enough for a rate, and quick with many candidates
STEPS = 1000


def tie_rate(file: PolicyFile) -> float | None:
    """The share of an evaluation episode's states in which several candidates score best; None without candidates."""
    config, spec = file.config, file.spec
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
    if not isinstance(policy, ImplicitPolicy):
        return None
    observations = watch(file, last=STEPS).observations
    steps = np.unique(np.linspace(0, len(observations) - 1, STATES).astype(int))
    theta = file.theta.astype(np.float32)
    kept = None if lifetime(policy.candidates, policy.actions) is Lifetime.STEP else offered(policy, file, 0, 0)
    tied = 0
    for step in steps:
        encoded = offered(policy, file, 0, int(step)) if kept is None else kept
        scores = policy.scores(theta, observations[step].astype(np.float32), encoded)
        tied += int(np.count_nonzero(scores == scores.max()) > 1)
    return tied / len(steps)
