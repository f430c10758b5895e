"""The crank: ask, roll out, tell, record, and be ready to die at any instant."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from twotower.actions.schedule import at_iteration
from twotower.errors import UserError
from twotower.es import Moments, Normaliser, Proposal, StrategyState
from twotower.randomness import Domain
from twotower.rollout.audits import summed
from twotower.rollout.executors import Executor, make_executor
from twotower.rollout.plan import Job, population_plan, slot_streams
from twotower.rollout.worker import Returns
from twotower.runs import Checkpoint, MetricsLog, PolicyFile, RunFolder
from twotower.training.build import Experiment

STREAMS_RENEWED_EVERY = 64


class Population(NamedTuple):
    """One iteration's work and where θ itself is among its members."""

    job: Job
    centre: int


class Trainer:
    """Trains in a run folder, from its checkpoint if it has one."""

    def __init__(self, experiment: Experiment, folder: RunFolder) -> None:
        self.experiment = experiment
        self.folder = folder
        self.stop_requested = False
        config, strategy = experiment.config, experiment.strategy
        state = strategy.init(strategy.theta)
        first = strategy.propose(state)
        most = max(len(first.sign), 2 * (config.strategy.num_directions or strategy.num_params))
        self.num_members = most * config.strategy.episodes_per_member + 1
        self.num_slots = len(slot_streams(self.num_members, config.env.slots, config.strategy.common_random_numbers))
        if folder.checkpoint.exists():
            self.checkpoint = Checkpoint.load(folder.checkpoint)
            found = (self.checkpoint.theta, self.checkpoint.memory, self.checkpoint.observation_mean)
            wanted = (state.theta, state.memory, self._no_moments().mean)
            if [part.shape for part in found] != [part.shape for part in wanted]:
                raise UserError(
                    f"{folder.checkpoint} belongs to another configuration than {folder.config}: "
                    "put the original of either back, or train anew."
                )
        else:
            self.checkpoint = Checkpoint(
                state.theta, 0, np.zeros(self.num_slots, np.int64), 0, -np.inf, state.theta, 0.0, 0, state.memory,
                *self._no_moments(),
            )  # fmt: skip

    @property
    def finished(self) -> bool:
        """Whether the budget of iterations or steps is spent."""
        config, now = self.experiment.config, self.checkpoint
        return (config.iterations is not None and now.iteration >= config.iterations) or (
            config.steps is not None and now.steps >= config.steps
        )

    def run(self, report: Callable[[dict[str, Any]], None] = lambda row: None) -> None:
        """Train until the budget is spent or a stop is requested; ends with a checkpoint either way."""
        log = MetricsLog(self.folder.metrics, self.checkpoint.metrics_bytes)
        saved = time.monotonic()
        try:
            if not self.folder.checkpoint.exists():
                self._save(log)
            with make_executor(self.experiment.config, self.experiment.spec, self.num_members) as executor:
                while not (self.finished or self.stop_requested):
                    try:
                        row = self.iterate(executor)
                    except UserError:
                        self._save(log)  # what stops the run costs no iteration
                        raise
                    log.append(row)
                    report(row)
                    if time.monotonic() - saved >= self.experiment.config.checkpoint_seconds:
                        self._save(log)
                        saved = time.monotonic()
            self._save(log)
        finally:
            log.close()

    def iterate(self, executor: Executor) -> dict[str, Any]:
        """One iteration; `self.checkpoint` moves on only if all of it succeeds."""
        strategy, now = self.experiment.strategy, self.checkpoint
        started = time.perf_counter()
        state = StrategyState(now.theta, now.iteration, now.memory, now.steps)
        proposal = strategy.propose(state)
        population = self.populate(proposal, now)
        asked = time.perf_counter()
        results = executor.evaluate(population.job)
        rolled_out = time.perf_counter()
        self._check_finite(results, population)
        state, diagnostics = strategy.update(state, proposal, self._member_returns(results, proposal))
        moments = self._moments(results)
        centre_return = float(results.returns[population.centre])
        is_best = centre_return > now.best
        seconds = time.perf_counter() - started
        self.checkpoint = Checkpoint(
            theta=state.theta,
            iteration=state.iteration,
            episodes=population.job.episodes + population.job.plan.episodes(self.num_slots),
            steps=now.steps + int(results.lengths.sum()),
            best=centre_return if is_best else now.best,
            best_theta=now.theta if is_best else now.best_theta,
            seconds=now.seconds + seconds,
            metrics_bytes=now.metrics_bytes,
            memory=state.memory,
            observations=moments.seen,
            observation_mean=moments.mean,
            observation_squares=moments.squares,
            queries=self._queries(results),
        )
        account = executor.account
        phases = {
            "seconds_ask": asked - started,
            "seconds_rollouts": rolled_out - asked,
            "seconds_tell": seconds - (rolled_out - started),
            "seconds_ship": account.seconds_ship,
            "seconds_slowest_worker": max(account.seconds_workers),
            "seconds_median_worker": float(np.median(account.seconds_workers)),
            "workers": len(account.seconds_workers),
            "workers_replaced": account.replaced,
            "bytes_out": account.bytes_out,
            "bytes_back": account.bytes_back,
        }
        return self._row(results, population, seconds) | diagnostics._asdict() | phases

    def populate(self, proposal: Proposal, now: Checkpoint) -> Population:
        """The members of a proposal with θ itself among them, placed on the slots, each as often as it plays."""
        repeats = self.experiment.config.strategy.episodes_per_member
        proposal = proposal._replace(
            direction_of=np.tile(proposal.direction_of, repeats), sign=np.tile(proposal.sign, repeats)
        )
        centres = np.flatnonzero(proposal.direction_of < 0)
        centre = int(centres[0]) if centres.size else len(proposal.sign)
        if not centres.size:
            proposal = proposal._replace(
                direction_of=np.append(proposal.direction_of, -1), sign=np.append(proposal.sign, 0.0)
            )
        config = self.experiment.config
        plan = population_plan(len(proposal.sign), config.env.slots, config.strategy.common_random_numbers)
        fresh = proposal.iteration % STREAMS_RENEWED_EVERY == 0
        episodes = np.zeros_like(now.episodes) if fresh else now.episodes
        normaliser, queries = self._normaliser(), self.checkpoint.queries
        job = Job(Domain.ENVIRONMENT, proposal.iteration, proposal, plan, episodes, normaliser, queries)
        return Population(job, centre)

    def _no_moments(self) -> Moments:
        normalises = self.experiment.config.policy.normalise_observations
        return Moments.none(self.experiment.spec.observation_size if normalises else 0)

    def _normaliser(self) -> Normaliser | None:
        """The map that the observations so far stand for; all members of an iteration share it."""
        return self.checkpoint.moments.normaliser() if self.experiment.config.policy.normalise_observations else None

    def _moments(self, results: Returns) -> Moments:
        """What the normaliser has seen after an iteration, its members' sums added up in their order."""
        deviations, squares = results.deviations.sum(axis=0), results.squares.sum(axis=0)
        seen = int(results.lengths.sum()) if deviations.size else 0
        return self.checkpoint.moments.with_sums(seen, deviations, squares)

    def _queries(self, results: Returns) -> np.ndarray:  # (n, features)
        """As many of the queries that the members handed on as the search wants, evenly from their order."""
        episodes, some, features = results.asked.shape
        asked = results.asked.reshape(episodes * some, features)
        wanted = min(self.experiment.config.search.queries, len(asked))
        return asked[np.arange(wanted) * len(asked) // max(wanted, 1)]

    def _member_returns(self, results: Returns, proposal: Proposal) -> np.ndarray:  # (members,)
        """The return that trains of every member, the mean of its episodes."""
        repeats, members = self.experiment.config.strategy.episodes_per_member, len(proposal.sign)
        return results.discounted[: repeats * members].reshape(repeats, members).mean(axis=0)

    def _check_finite(self, results: Returns, population: Population) -> None:
        sound = np.isfinite(results.returns) & np.isfinite(results.squares).all(axis=1)
        bad = np.flatnonzero(~sound)
        if bad.size:
            config, spec = self.experiment.config, self.experiment.spec
            value = results.returns[bad[0]]
            did = f"returned {value}" if not np.isfinite(value) else "saw observations that are not finite"
            raise UserError(
                f"Member {bad[0]} of iteration {population.job.iteration} {did} in "
                f"{spec.env_id} (run seed {config.seed}); θ was left as it was and the last checkpoint is good."
            )

    def _row(self, results: Returns, population: Population, seconds: float) -> dict[str, Any]:
        now, returns = self.checkpoint, results.returns
        low, high = np.percentile(returns, [10, 90])
        return {
            "iteration": now.iteration,
            "return": float(returns[population.centre]),
            "best": now.best,
            "population_mean": float(returns.mean()),
            "population_std": float(returns.std()),
            "population_p10": float(low),
            "population_p90": float(high),
            "saturation": float(results.saturations[population.centre]),
            "episodes": len(returns),
            "steps": now.steps,
            "seconds": now.seconds,
            "steps_per_s": float(results.lengths.sum()) / seconds,
        } | self._audit(results)

    def _audit(self, results: Returns) -> dict[str, Any]:
        """What the audits of the search found, where there were any."""
        audit = summed(results.audits) if self.experiment.config.search.audit else None
        return {} if audit is None else {f"search_{name}": value for name, value in audit._asdict().items()}

    def _save(self, log: MetricsLog) -> None:
        """Write the checkpoint, and the policy beside it."""
        self.checkpoint = self.checkpoint._replace(metrics_bytes=log.commit())
        self.checkpoint.save(self.folder.checkpoint)
        self.policy_file().save(self.folder.policy)

    def policy_file(self) -> PolicyFile:
        """The current policy, not yet evaluated."""
        now = self.checkpoint
        config, spec, _, _ = self.experiment
        config = replace(config, candidates=at_iteration(config.candidates, now.iteration))
        return PolicyFile(
            now.theta, config, spec, now.iteration, now.steps, normaliser=self._normaliser(), queries=now.queries
        )
