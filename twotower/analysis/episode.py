"""One episode of a policy's evaluation, watched step by step, and the candidates each of its steps offered."""

from typing import NamedTuple, final

import numpy as np

from twotower.actions.refresh import Lifetime, lifetime, rollout_key, shared_key
from twotower.envs import inspect
from twotower.envs.base import EnvBatch, Transition
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.base import ImplicitPolicy
from twotower.randomness import Domain, extend
from twotower.rollout.plan import evaluation_job
from twotower.rollout.worker import Worker
from twotower.runs import PolicyFile
from twotower.training.evaluate import check_spaces


class Watched(NamedTuple):
    """What an episode showed the policy, and what it did."""

    observations: np.ndarray  # (steps, s) as the network takes them
    actions: np.ndarray  # (steps, a), or indices (steps, 1)
    rewards: np.ndarray  # (steps,)


def watch(file: PolicyFile, episode: int = 0, last: int = 1_000_000) -> Watched:
    """Run an episode of the evaluation, as `evaluate` does, for at most `last` steps."""
    config, spec = file.config, file.spec
    if not 0 <= episode < config.env.slots:
        raise UserError(f"--episode must be between 0 and {config.env.slots - 1}, not {episode}.")
    check_spaces(file, inspect(_trained_in(file), spec.env_id))
    make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search).check_theta(
        file.theta
    )
    worker = Worker(config, spec, (episode,), (episode,))
    job = evaluation_job(file.theta, 1, 1, file.normaliser)
    number = np.array([episode])
    job = job._replace(plan=job.plan._replace(streams=number, slots=number), episodes=np.zeros(episode + 1, np.int64))
    try:
        witness = Witness(worker.batch(job.domain), last)
        worker.evaluate(job, lambda batch: witness)
    finally:
        worker.close()
    observations = np.array(witness.observations)
    observations = observations if file.normaliser is None else file.normaliser(observations)
    return Watched(observations, np.array(witness.actions), np.array(witness.rewards))


def offered(policy: ImplicitPolicy, file: PolicyFile, episode: int, step: int) -> np.ndarray:
    """The encoded candidates (N, inputs) that step `step` of an evaluation episode chose among."""
    seed, life = file.config.seed, lifetime(policy.candidates, policy.actions)
    if life is Lifetime.SHARED:
        return policy.encoded_set(shared_key(policy.candidates, seed, Domain.EVALUATION, 0))
    key = rollout_key(seed, Domain.EVALUATION, 0, episode)
    return policy.encoded_set(extend(key, step) if life is Lifetime.STEP else key)


@final
class Witness(EnvBatch):
    """Writes down what a batch of one slot answers, and ends the episode after `last` steps."""

    def __init__(self, batch: EnvBatch, last: int) -> None:
        self.batch, self.last = batch, last
        self.observations: list[np.ndarray] = []
        self.actions: list[np.ndarray] = []
        self.rewards: list[float] = []

    def begin(self, iteration: int, episodes: np.ndarray) -> None:
        self.batch.begin(iteration, episodes)

    def advance(self, slots: np.ndarray, actions: np.ndarray, starting: np.ndarray, seeds: np.ndarray) -> Transition:
        """Step as the batch does; an observation is kept when an action will follow it."""
        answer = self.batch.advance(slots, actions, starting, seeds)
        if not starting[0]:
            self.actions.append(np.array(actions[0], np.float64).reshape(-1))
            self.rewards.append(float(answer.rewards[0]))
        done = bool(answer.dones[0]) or len(self.rewards) >= self.last
        if not done:
            self.observations.append(answer.observations[0].copy())
        return answer._replace(dones=np.array([done]))

    @property
    def reseed_every(self) -> int:
        return self.batch.reseed_every

    def close(self) -> None:
        self.batch.close()


def _trained_in(file: PolicyFile):
    from dataclasses import replace

    return replace(file.config.env, backend=file.spec.backend)
