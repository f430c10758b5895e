"""The crank: ask, roll out, tell, record, and be ready to die at any instant."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from twotower.errors import UserError
from twotower.es import Proposal, StrategyState
from twotower.randomness import Domain
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
        first = strategy.propose(strategy.init(strategy.theta))
        self.num_members = max(len(first.sign), 2 * (config.strategy.num_directions or strategy.num_params)) + 1
        self.num_slots = len(slot_streams(self.num_members, config.env.slots, config.strategy.common_random_numbers))
        if folder.checkpoint.exists():
            self.checkpoint = Checkpoint.load(folder.checkpoint)
            if self.checkpoint.theta.shape != (strategy.num_params,):
                raise UserError(
                    f"{folder.checkpoint} has {self.checkpoint.theta.size} parameters, not {strategy.num_params}."
                )
        else:
            theta = strategy.theta
            self.checkpoint = Checkpoint(theta, 0, np.zeros(self.num_slots, np.int64), 0, -np.inf, theta, 0.0, 0)

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
        state = StrategyState(now.theta, now.iteration)
        proposal = strategy.propose(state)
        population = self.populate(proposal, now)
        asked = time.perf_counter()
        results = executor.evaluate(population.job)
        rolled_out = time.perf_counter()
        self._check_finite(results, population)
        members = np.arange(len(proposal.sign))
        state, diagnostics = strategy.update(state, proposal, results.discounted[members])
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
        )
        account = executor.account
        phases = {
            "seconds_ask": asked - started,
            "seconds_rollouts": rolled_out - asked,
            "seconds_tell": seconds - (rolled_out - started),
            "seconds_ship": account.seconds_ship,
            "seconds_slowest_worker": max(account.seconds_workers),
            "seconds_median_worker": float(np.median(account.seconds_workers)),
            "workers_replaced": account.replaced,
        }
        return self._row(results, population, seconds) | diagnostics._asdict() | phases

    def populate(self, proposal: Proposal, now: Checkpoint) -> Population:
        """The members of a proposal with θ itself among them, placed on the slots."""
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
        return Population(Job(Domain.ENVIRONMENT, proposal.iteration, proposal, plan, episodes), centre)

    def _check_finite(self, results: Returns, population: Population) -> None:
        bad = np.flatnonzero(~np.isfinite(results.returns))
        if bad.size:
            config, spec = self.experiment.config, self.experiment.spec
            raise UserError(
                f"Member {bad[0]} of iteration {population.job.iteration} returned {results.returns[bad[0]]} in "
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
        }

    def _save(self, log: MetricsLog) -> None:
        """Write the checkpoint, and the policy beside it."""
        self.checkpoint = self.checkpoint._replace(metrics_bytes=log.commit())
        self.checkpoint.save(self.folder.checkpoint)
        self.policy_file().save(self.folder.policy)

    def policy_file(self) -> PolicyFile:
        """The current policy, not yet evaluated."""
        now = self.checkpoint
        return PolicyFile(now.theta, self.experiment.config, self.experiment.spec, now.iteration, now.steps)
