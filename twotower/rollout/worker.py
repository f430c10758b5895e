"""A worker: its share of the slots, and the loop that turns members into returns."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from twotower.actions.refresh import rollout_key, shared_key
from twotower.actions.schedule import at_iteration
from twotower.config import CandidatesConfig, TrainConfig
from twotower.envs import make_batch
from twotower.envs.base import EnvBatch, EnvironmentFailure, EnvSpec, SlotSeeds
from twotower.errors import UserError
from twotower.kernels.account import account, observe
from twotower.kernels.audit import AUDITED
from twotower.policies import make_policy
from twotower.policies.actor import make_actor
from twotower.randomness import Domain
from twotower.rollout.plan import Job, episode_seed, stream_seed

NOT_BOXED = np.zeros((0, 0))


class Returns(NamedTuple):
    """What a worker's members earned."""

    members: np.ndarray  # (n,) int64
    returns: np.ndarray  # (n,) float64, undiscounted
    discounted: np.ndarray  # (n,) float64: what trains, without the survival bonus
    lengths: np.ndarray  # (n,) int64
    saturations: np.ndarray  # (n,) float64: mean over steps and dimensions of |action| where the box is [-1, 1]
    deviations: np.ndarray  # (n, s) float64: sums of observation - mean, where observations are normalised
    squares: np.ndarray  # (n, s) float64: sums of their squares
    audits: np.ndarray  # (n, AUDITED) float64: what exact search says of some choices, see `kernels.audit`
    asked: np.ndarray  # (n, some, features) float32: a sample of the queries, where the search learns from them


class Worker:
    """Runs the episodes of the slots it owns; what a slot answers does not depend on who owns it."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, slots: tuple[int, ...], streams: tuple[int, ...]) -> None:
        """Own `slots`; `streams` names the environment stream of each."""
        self.config = config
        self.spec = spec
        self.slots = slots
        self.streams = streams
        self._offer(at_iteration(config.candidates, 0))
        self.pulse = np.zeros(1, np.int64)  # steps made, for whoever watches over this worker
        self._batches: dict[Domain, EnvBatch] = {}

    def batch(self, domain: Domain) -> EnvBatch:
        """The environments for training or evaluation, made when first needed."""
        if domain not in self._batches:
            seeds = SlotSeeds(stream_seed(self.config.seed, domain), self.streams)
            self._batches[domain] = make_batch(self.config.env, self.spec, seeds)
        return self._batches[domain]

    def evaluate(self, job: Job, wrap: Callable[[EnvBatch], EnvBatch] = lambda batch: batch) -> Returns:
        """Run every member that queues on this worker's slots; `wrap` may listen in on the environments."""
        local = {slot: index for index, slot in enumerate(self.slots)}
        queues: list[deque[int]] = [deque() for _ in self.slots]
        for member, slot in enumerate(job.plan.slots.tolist()):
            if slot in local:
                queues[local[slot]].append(member)
        batch = wrap(self.batch(job.domain))
        episodes = job.episodes[list(self.slots)]
        batch.begin(job.iteration, episodes if job.iteration % batch.reseed_every else np.zeros_like(episodes))
        offered = at_iteration(self.config.candidates, job.iteration)
        if offered != self.policy.candidates:
            self._offer(offered)
        same_action_tower = job.proposal.active <= self.policy.state_params
        key = shared_key(self.config.candidates, self.config.seed, job.domain, job.iteration)
        self.actor.learn(job.queries)
        self.actor.begin(key, job.proposal.theta if same_action_tower else None)
        return _Episodes(self, job, queues).run(batch)

    def _offer(self, candidates: CandidatesConfig) -> None:
        """Make the policy and its compiled side for these candidates."""
        config, spec = self.config, self.spec
        self.policy = make_policy(config.policy, candidates, spec.observation_size, spec.actions, config.search)
        self.actor = make_actor(self.policy, len(self.slots))

    def close(self) -> None:
        """Release the environments."""
        for batch in self._batches.values():
            batch.close()


class _Episodes:
    """The state of one `evaluate`: which member each slot runs, and its sums."""

    def __init__(self, worker: Worker, job: Job, queues: list[deque[int]]) -> None:
        self.worker, self.job, self.queues = worker, job, queues
        count, members = len(queues), len(job.plan.slots)
        self.member = np.full(count, -1, np.int64)
        self.seeds = np.zeros(count, np.int64)
        self.totals, self.discounted = np.zeros(count), np.zeros(count)
        self.weights, self.lengths = np.ones(count), np.zeros(count, np.int64)
        self.finished: list[int] = []
        self.saturations = np.zeros(count)
        self.sums = (self.totals, self.discounted, self.weights, self.lengths, self.saturations)
        self.results = np.zeros((4, members))
        size = 0 if job.normaliser is None else worker.spec.observation_size
        self.observed = np.zeros((2, count, size))  # of the episodes that run
        self.moments = np.zeros((2, members, size))
        self.normalised = np.zeros((count, size))
        self.audits = np.zeros((members, AUDITED))
        self.asked = np.zeros((members, *worker.actor.asked.shape[1:]), np.float32)

    def run(self, batch: EnvBatch) -> Returns:
        actor, strategy, pulse = self.worker.actor, self.worker.config.strategy, self.worker.pulse
        discount, bonus = strategy.discount, strategy.survival_bonus
        active = np.array([slot for slot, queue in enumerate(self.queues) if queue], np.int32)
        for slot in active:
            self._start(slot)
        starting = np.ones(active.size, bool)
        actions = actor.idle_actions(active.size)
        while active.size:
            pulse[0] += 1
            try:
                observations, rewards, dones = batch.advance(active, actions, starting, self.seeds[active])
            except EnvironmentFailure as failure:
                raise self._failure(failure) from failure
            table = actions.reshape(active.size, -1)  # indices (n,) too
            if account(active, rewards, dones, starting, table, discount, bonus, actor.low, actor.span, *self.sums):
                active, starting, actions = self._turn(active, dones, observations)
            else:
                actions = self._act(active, observations)
        members = np.array(sorted(self.finished), np.int64)
        returns, discounted, lengths, saturations = self.results[:, members]
        deviations, squares = self.moments[:, members]
        return Returns(
            members, returns, discounted, lengths.astype(np.int64), saturations, deviations, squares,
            self.audits[members], self.asked[members],
        )  # fmt: skip

    def _act(self, slots: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """The slots' actions, for observations that are normalised first where the job says so."""
        if self.job.normaliser is not None:
            (mean, scale), (deviations, squares) = self.job.normaliser, self.observed
            normalised = self.normalised[: slots.size]
            observe(slots, observations, mean, scale, deviations, squares, normalised)
            observations = normalised
        return self.worker.actor.act(slots, observations)

    def _turn(
        self, active: np.ndarray, dones: np.ndarray, observations: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """After a step in which episodes ended or began: who goes on, who starts, and with what actions."""
        running = ~dones
        goes_on = running.copy()
        for position in np.flatnonzero(dones):
            slot = active[position]
            self._finish(slot)
            if self.queues[slot]:
                self._start(slot)
                goes_on[position] = True
        actions = self.worker.actor.idle_actions(active.size)
        if running.any():
            actions[running] = self._act(active[running], observations[running])
        return active[goes_on], dones[goes_on], actions[goes_on]

    def _start(self, slot: int) -> None:
        """Put the slot's next member into it."""
        member = self.queues[slot].popleft()
        job, seed = self.job, self.worker.config.seed
        stream = int(job.plan.streams[member])
        self.member[slot] = member
        self.seeds[slot] = episode_seed(seed, job.domain, job.iteration, stream)
        for sums, zero in zip(self.sums, (0.0, 0.0, 1.0, 0, 0.0), strict=True):
            sums[slot] = zero
        self.observed[:, slot] = 0.0
        key = rollout_key(seed, job.domain, job.iteration, stream)
        self.worker.actor.start(slot, job.proposal.member(member), key)

    def _finish(self, slot: int) -> None:
        """Record the slot's episode."""
        member = self.member[slot]
        length = self.lengths[slot]
        self.results[:, member] = self.totals[slot], self.discounted[slot], length, self.saturations[slot] / length
        self.moments[:, member] = self.observed[:, slot]
        self.audits[member] = self.worker.actor.audits[slot]
        self.asked[member] = self.worker.actor.asked[slot]
        self.finished.append(int(member))

    def _failure(self, failure: EnvironmentFailure) -> UserError:
        member, config = self.member[failure.slot], self.worker.config
        return UserError(
            f"{self.worker.spec.env_id} raised {failure} in step {self.lengths[failure.slot]} of member {member}, "
            f"iteration {self.job.iteration}; reset(seed={self.seeds[failure.slot]}) of run seed {config.seed} "
            "starts that episode again. The last checkpoint is good."
        )
