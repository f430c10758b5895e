"""Fresh episodes of a finished policy, the same ones wherever it is loaded."""

import dataclasses

import numpy as np

from twotower.envs import inspect
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.rollout.audits import Audit, summed
from twotower.rollout.plan import evaluation_job
from twotower.rollout.worker import Worker
from twotower.runs import Evaluation, PolicyFile


def evaluate_policy(policy: PolicyFile, episodes: int) -> Evaluation:
    """Undiscounted returns of `episodes` episodes whose randomness training never used."""
    return evaluate_and_audit(policy, episodes)[0]


def evaluate_and_audit(policy: PolicyFile, episodes: int) -> tuple[Evaluation, Audit | None]:
    """The evaluation, and what its search missed where `search.audit` asks for that."""
    config, spec = policy.config, policy.spec
    check_spaces(policy, inspect(dataclasses.replace(config.env, backend=spec.backend), spec.env_id))
    slots = min(episodes, config.env.slots)
    make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search).check_theta(
        policy.theta
    )
    worker = Worker(config, spec, tuple(range(slots)), tuple(range(slots)))
    try:
        results = worker.evaluate(evaluation_job(policy.theta, episodes, slots, policy.normaliser, policy.queries))
    finally:
        worker.close()
    returns = results.returns
    if not np.isfinite(returns).all():
        member = int(np.flatnonzero(~np.isfinite(returns))[0])
        raise UserError(
            f"{spec.env_id} returned {returns[member]} in evaluation episode {member} (seed {config.seed})."
        )
    return Evaluation(tuple(returns.tolist()), config.seed), summed(results.audits)


def check_spaces(policy: PolicyFile, found: EnvSpec) -> None:
    """Refuse a task or parameters that the policy was not trained for."""
    spec = policy.spec
    if (found.observation_size, found.actions) != (spec.observation_size, spec.actions):
        raise UserError(
            f"The policy was trained for observations of size {spec.observation_size} and {spec.actions}, but "
            f"{found.env_id} here has {found.observation_size} and {found.actions}: use the version it trained with."
        )
